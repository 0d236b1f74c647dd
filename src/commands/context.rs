//! Shows which files a query is about, most relevant first, as `--context` chooses them. Changes nothing.

use clap::Args;
use serde_json::{Value, json};

use super::cli::inputs::ChosenArgs;
use super::cli::values::{parse_text, parse_tokens};
use super::query;
use crate::model::tokens;
use crate::project::history::past_commits;
use crate::run::code_base::CodeBase;
use crate::run::code_context::CodeContext;
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::run::ready;
use crate::sys::numbers::{counted, grouped};
use crate::ui::columns::{self, Align};
use crate::ui::input;

#[derive(Debug, Clone, Args)]
pub struct ContextArgs {
    /// Rank for this change, not for the one in agent-config/query.txt; `-` reads it from standard
    /// input
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true, value_parser = parse_text)]
    pub message: Option<String>,

    /// Show what `--context N` sends: the outline, and which files in whole or in which lines
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_tokens)]
    pub tokens: Option<u64>,

    /// The files chosen.
    #[command(flatten)]
    pub chosen: ChosenArgs,
}

/// The number of files listed in the table.
const NAMED: usize = 30;

/// Ranks the project's files for the query.
///
/// # Errors
/// Fails if there is no query, the tracked files cannot be determined, or a file cannot be read.
pub fn context(context: &Context<'_>, arguments: &ContextArgs) -> Result<Outcome, Failure> {
    let query = match arguments.message.as_deref() {
        Some("-") => query::from_stdin(context)?,
        Some(text) => input::prompt_from(text.as_bytes())?,
        None => ready::query_file(&context.project).map_err(NotReady::of)?,
    };
    let root = context.project.root();
    let mut code_base = CodeBase::read(root, &[], false)?;
    if arguments.tokens.is_some() {
        // A run does not send files with credentials either.
        code_base = code_base.without_credentials(context.redactor);
    }
    let history = past_commits(root, context.environment.os("PATH"), context.interrupt)?;
    let limit = arguments.chosen.limit(arguments.tokens);
    let selected = CodeContext::select(code_base, &query, &history, &limit)?;
    let (text, data) = choice(&selected);
    let sent = arguments.tokens.map(|_| {
        let tokens = data["tokens"].as_u64().unwrap_or_default();
        let shown = grouped(selected.shown.len() as u64);
        format!(
            "{shown} would be sent, {} in all; ",
            counted(tokens, "token")
        )
    });
    let summary = format!(
        "done: {} ranked by the query and by {}; {}nothing was sent",
        counted(selected.files.len() as u64, "file"),
        counted(history.len() as u64, "earlier commit"),
        sent.unwrap_or_default()
    );
    Ok(Outcome::shown(text, data).with_summary(summary))
}

/// Returns the files by rank, as a table and as data. With a limit, also returns the outline's size and the part of
/// each file that is sent.
pub(super) fn choice(context: &CodeContext) -> (String, Value) {
    let is_limited = context.sight.tokens > 0;
    let mut rows = vec![
        ["tokens", "file", "shown", "why"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let (mut files, mut more, mut of_files) = (Vec::new(), 0_u64, 0);
    let mut shown = context.shown.iter().peekable();
    for ranked in &context.ranked {
        let file = &context.files[ranked.index];
        let sent = shown.next_if(|shown| shown.index == ranked.index);
        let ranges = sent.and_then(|sent| sent.lines.as_ref());
        let lines: Option<Vec<_>> =
            ranges.map(|ranges| ranges.iter().map(|it| [it.start + 1, it.end]).collect());
        let tokens = sent.map_or(file.tokens, |sent| sent.tokens);
        let form = match (sent, &lines) {
            (None, _) => "",
            (_, None) => "whole",
            (_, Some(_)) => "lines",
        };
        if sent.is_some() || files.len() < NAMED {
            let ranges = lines.as_ref().map(|lines| {
                let ranges = lines.iter().map(|[first, last]| format!("{first}-{last}"));
                ranges.collect::<Vec<_>>().join(" ")
            });
            let path = file.path.escape_debug().to_string();
            let shown = ranges.unwrap_or_else(|| form.to_owned());
            rows.push(vec![grouped(tokens), path, shown, ranked.why.join(" ")]);
        } else {
            more += 1;
        }
        if sent.is_some() || !is_limited {
            of_files += tokens;
        }
        files.push(
            json!({"path": file.path, "tokens": tokens, "score": ranked.score, "shown": form,
            "lines": lines, "why": ranked.why}),
        );
    }
    let mut data = json!({"schema": 1, "tokens": of_files, "exact": false, "files": files});
    if is_limited {
        let total = tokens::count(&context.text());
        let outline = total.saturating_sub(of_files);
        let row = [&grouped(outline), "outline of all files", "", ""];
        rows.insert(1, row.map(str::to_owned).to_vec());
        (data["tokens"], data["outline"]) = (total.into(), outline.into());
    } else {
        for row in &mut rows {
            row.remove(2);
        }
    }
    let aligns = [Align::Right, Align::Left, Align::Left, Align::Left];
    let mut lines = columns::aligned(&rows, &aligns);
    if more > 0 {
        lines.push(format!("and {}", counted(more, "more file")));
    }
    (lines.join("\n"), data)
}
