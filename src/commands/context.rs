//! Shows which files a query is about, the most relevant first, as `--context` chooses them. Changes nothing.

use clap::Args;
use serde_json::{Value, json};

use super::cli::values::parse_tokens;
use super::query;
use crate::model::tokens;
use crate::project::history::past_commits;
use crate::project::ranking::{Ranked, rank};
use crate::run::code_base::{CodeBase, Rolled};
use crate::run::code_context::{CodeContext, CodeLimit};
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::ready;
use crate::sys::git::Git;
use crate::sys::numbers::{counted, grouped};
use crate::ui::columns::{self, Align};
use crate::ui::input;

/// Arguments of `context`.
#[derive(Debug, Clone, Args)]
pub struct ContextArgs {
    /// Rank for this change, not for the one in agent-config/query.txt; `-` reads it from standard
    /// input
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub message: Option<String>,

    /// Show what `--context N` sends: the outline, and which files in whole or in which lines
    #[arg(long, value_name = "N", value_parser = parse_tokens)]
    pub tokens: Option<u64>,
}

/// The number of files listed in the table.
const NAMED: usize = 30;

/// Ranks the project's files for the query.
///
/// # Errors
/// When there is no query, the tracked files cannot be determined, or a file cannot be read.
pub fn context(context: &Context<'_>, arguments: &ContextArgs) -> Result<Outcome, Failure> {
    let query = match arguments.message.as_deref() {
        Some("-") => query::from_stdin(context)?,
        Some(text) => input::prompt_from(text.as_bytes())?,
        None => ready::query_file(&context.project).map_err(NotReady::of)?,
    };
    let root = context.project.root();
    let code_base = CodeBase::read(root, &[], false)?;
    let git = Git::find(context.environment.os("PATH"), root);
    let history = past_commits(root, git.as_ref());
    if let Some(tokens) = arguments.tokens {
        let limit = CodeLimit {
            tokens: Some(tokens),
            ..CodeLimit::default()
        };
        // As for a run, which sends none of them.
        let code_base = code_base.without_credentials(context.redactor);
        let selected = CodeContext::select(code_base, &query, &history, &limit)?;
        return Ok(sent(&selected));
    }
    let sources = code_base.files.iter().map(Rolled::source);
    let ranking = rank(&query, &sources.collect::<Vec<_>>(), &history);
    let files = ranking.files.iter();
    let files: Vec<_> = files
        .map(|ranked| (&code_base.files[ranked.index], ranked))
        .collect();
    let (count, commits) = (files.len() as u64, history.len() as u64);
    let summary = format!(
        "done: {} ranked by the query and by {}; nothing was sent",
        counted(count, "file"),
        counted(commits, "earlier commit")
    );
    Ok(Outcome {
        summary,
        ..Outcome::shown(table(&files), data(&files))
    })
}

fn table(files: &[(&Rolled, &Ranked)]) -> String {
    let mut rows = vec![["tokens", "file", "why"].map(str::to_owned).to_vec()];
    for (file, ranked) in files.iter().take(NAMED) {
        let path = file.path.escape_debug().to_string();
        rows.push(vec![grouped(file.tokens), path, ranked.why.join(" ")]);
    }
    let mut lines = columns::aligned(&rows, &[Align::Right, Align::Left, Align::Left]);
    if files.len() > NAMED {
        lines.push(format!("and {} more files", files.len() - NAMED));
    }
    lines.join("\n")
}

fn data(files: &[(&Rolled, &Ranked)]) -> Value {
    let tokens: u64 = files.iter().map(|(file, _)| file.tokens).sum();
    let files = files.iter().map(|(file, ranked)| {
        json!({"path": file.path, "tokens": file.tokens, "score": ranked.score, "why": ranked.why})
    });
    json!({"schema": 1, "tokens": tokens, "exact": false, "files": files.collect::<Vec<_>>()})
}

fn sent(context: &CodeContext) -> Outcome {
    let (text, data) = choice(context);
    let summary = format!(
        "done: {} of {} would be sent, {} in all; nothing was",
        counted(context.shown.len() as u64, "file"),
        grouped(context.files.len() as u64),
        counted(data["tokens"].as_u64().unwrap_or_default(), "token")
    );
    Outcome {
        summary,
        ..Outcome::shown(text, data)
    }
}

/// Returns the outline's size and the files that are sent, as a table and as data.
pub(super) fn choice(context: &CodeContext) -> (String, Value) {
    let total = tokens::count(&context.text());
    let of_files: u64 = context.shown.iter().map(|file| file.tokens).sum();
    let outline = total.saturating_sub(of_files);
    let head = ["tokens", "file", "shown", "why"].map(str::to_owned);
    let first = [&grouped(outline), "outline of all files", "", ""].map(str::to_owned);
    let (mut rows, mut files) = (vec![head.to_vec(), first.to_vec()], Vec::new());
    for file in &context.shown {
        let path = &context.files[file.index].path;
        let lines = file.lines.as_ref().map(|lines| {
            let lines = lines.iter().map(|range| [range.start + 1, range.end]);
            lines.collect::<Vec<_>>()
        });
        let shown = lines.as_ref().map_or("whole".to_owned(), |lines| {
            let lines = lines.iter().map(|[first, last]| format!("{first}-{last}"));
            lines.collect::<Vec<_>>().join(" ")
        });
        rows.push(vec![
            grouped(file.tokens),
            path.escape_debug().to_string(),
            shown,
            file.why.join(" "),
        ]);
        files.push(json!({"path": path, "tokens": file.tokens, "lines": lines, "why": file.why}));
    }
    let aligns = [Align::Right, Align::Left, Align::Left, Align::Left];
    let data =
        json!({"schema": 1, "tokens": total, "exact": false, "outline": outline, "files": files});
    (columns::aligned(&rows, &aligns).join("\n"), data)
}
