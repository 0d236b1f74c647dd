//! Rolls up the code base: the files that git tracks, as one text, or their outline. Writes only
//! `agent-config/codeRollup.txt` or `agent-config/codeOutline.txt`.

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::commands::cli::values::parse_number;
use crate::model::tokens;
use crate::project::outline::outline;
use crate::project::{OUTLINE, ROLLUP};
use crate::run::code_base::{CodeBase, LeftOut, Rolled};
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::recovery;
use crate::sys::atomic_file;
use crate::sys::files::PathError;
use crate::sys::numbers::{counted, grouped, percent};
use crate::sys::text::{below, first_lines};
use crate::ui::columns::{self, Align};

#[derive(Debug, Clone, Args)]
pub struct RollupArgs {
    /// Include lock files; secrets, logs and binary files are always left out
    #[arg(long)]
    pub all: bool,

    /// Include only these files and directories [default: all]
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Suggest files to leave out if the rollup has more tokens than this; limits an outline to it
    #[arg(long, value_name = "TOKENS", allow_hyphen_values = true, value_parser = parse_number::<u64>)]
    pub budget: Option<u64>,

    /// Write the files' paths and the signatures of their public names to agent-config/codeOutline.txt instead
    #[arg(long)]
    pub outline: bool,
}

/// The maximum number of files listed in the table.
const NAMED: usize = 30;

/// Rolls up the project.
///
/// # Errors
/// Fails if the tracked files cannot be determined, a file cannot be read, or the rollup cannot be written.
pub fn rollup(context: &Context<'_>, options: &RollupArgs) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    let code_base = CodeBase::read(context.project.root(), &options.paths, options.all)?;
    if options.outline {
        return outlined(context, &code_base, options.budget);
    }
    write(context, ROLLUP, |out| code_base.write(out))?;
    let (files, total) = (&code_base.files, code_base.tokens());
    let excess = options.budget.filter(|budget| total > *budget);
    let proposal = excess.map(|budget| leave_out(files, total - budget));
    let mut text = table(files, total);
    if let Some((budget, proposal)) = excess.zip(proposal.as_ref()) {
        text.push_str(&advice(budget, total, proposal));
    }
    let data = data(files, &code_base.left_out, total, proposal.as_deref());
    let summary = format!("done: {ROLLUP} has {}", code_base.summary());
    Ok(Outcome::shown(text, data).with_summary(summary))
}

/// Writes the outline.
fn outlined(
    context: &Context<'_>,
    code_base: &CodeBase,
    limit: Option<u64>,
) -> Result<Outcome, Failure> {
    let files: Vec<(&str, &str)> = code_base
        .files
        .iter()
        .map(|file| (&*file.path, &*file.content))
        .collect();
    let outline = outline(&files, &tokens::count, limit.unwrap_or(u64::MAX));
    write(context, OUTLINE, |out| out.write_all(outline.as_bytes()))?;
    let (tokens, total) = (tokens::count(&outline), code_base.tokens());
    let summary = format!(
        "done: {OUTLINE} has about {}: {} % of the code base's",
        counted(tokens, "token"),
        percent(tokens, total),
    );
    let data = json!({"schema": 1, "tokens": tokens, "exact": false, "of_tokens": total});
    Ok(Outcome::new(summary).with_data(data))
}

/// Writes a file in `agent-config`.
fn write(
    context: &Context<'_>,
    path: &str,
    content: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), PathError> {
    let written = || {
        let directory = context.project.config();
        // A symbolic link may lead anywhere.
        if directory.is_symlink() {
            return Err(io::Error::other("`agent-config` is a symbolic link"));
        }
        atomic_file::private_directory(&directory)?;
        atomic_file::replace(&context.project.root().join(path), |out| {
            let mut out = io::BufWriter::new(out);
            content(&mut out)?;
            out.flush()
        })
    };
    written().map_err(PathError::of("write", path))
}

/// Sorts files by token count, largest first.
fn by_size(files: &[Rolled]) -> Vec<&Rolled> {
    let mut files: Vec<&Rolled> = files.iter().collect();
    files.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.path.cmp(&b.path)));
    files
}

fn table(files: &[Rolled], total: u64) -> String {
    let mut rows = vec![["tokens", "share", "file"].map(str::to_owned).to_vec()];
    for file in by_size(files).into_iter().take(NAMED) {
        let path = file.path.escape_debug().to_string();
        let share = percent(file.tokens, total) + " %";
        rows.push(vec![grouped(file.tokens), share, path]);
    }
    let mut lines = columns::aligned(&rows, &[Align::Right, Align::Right, Align::Left]);
    if files.len() > NAMED {
        lines.push(format!("and {} more files", files.len() - NAMED));
    }
    lines.join("\n")
}

/// Selects the fewest files that together have at least `excess` tokens, preferring large ones.
fn leave_out(files: &[Rolled], excess: u64) -> Vec<&Rolled> {
    let (mut needed, mut proposal) = (excess, Vec::new());
    let mut sorted = by_size(files).into_iter().peekable();
    while let Some(file) = sorted.next() {
        // If one file suffices, choose the smallest that does.
        if sorted.peek().is_none_or(|next| next.tokens < needed) {
            proposal.push(file);
            needed = needed.saturating_sub(file.tokens);
        }
        if needed == 0 {
            break;
        }
    }
    proposal
}

fn advice(budget: u64, total: u64, proposal: &[&Rolled]) -> String {
    let mut text = format!(
        "\n{} tokens over the budget of {}; to meet it, leave out:",
        grouped(total - budget),
        grouped(budget)
    );
    let files = proposal.iter().map(|file| {
        let (tokens, path) = (grouped(file.tokens), file.path.escape_debug());
        format!("{tokens:>9}  {path}")
    });
    text += &below(first_lines(files, NAMED));
    text.push_str("\nto include only some paths, run `code-commit rollup PATH…`");
    text
}

fn data(files: &[Rolled], left_out: &[LeftOut], total: u64, proposal: Option<&[&Rolled]>) -> Value {
    let files = files
        .iter()
        .map(|file| json!({"path": file.path, "tokens": file.tokens}));
    let left_out = left_out
        .iter()
        .map(|(path, reason)| json!({"path": path, "reason": reason}));
    let proposal = proposal.map(|files| files.iter().map(|file| &*file.path).collect::<Vec<_>>());
    json!({"schema": 1, "tokens": total, "exact": false, "files": files.collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(), "over_budget": proposal})
}
