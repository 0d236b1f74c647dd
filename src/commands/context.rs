//! Shows which files a query is about, the most relevant first, as `--context` chooses them. Changes nothing.

use clap::Args;
use serde_json::{Value, json};

use super::query;
use crate::project::history::past_commits;
use crate::project::ranking::{Ranked, Source, rank};
use crate::run::code_base::{CodeBase, Rolled};
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
    let sources = code_base.files.iter().map(|file| Source {
        path: &file.path,
        text: &file.content,
    });
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
