//! Rolls the code base up: what git tracks, as one text. Writes `agent-config/codeRollup.txt` alone, and starts no
//! git. Guarantees that nothing outside the project gets into it: each file is read through handles below the root.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::run::recovery;
use super::{Context, Failure, Outcome};
use crate::cli::RollupArgs;
use crate::edit::beneath::{OpenDirectory, PathEntry, Root};
use crate::model::tokens;
use crate::project::LOGS;
use crate::project::index::TrackedPaths;
use crate::project::rollup::header;
use crate::project::{CONFIG, ROLLUP};
use crate::secret::credentials;
use crate::sys::atomic_file;
use crate::sys::files::PathError;
use crate::sys::numbers::{counted, grouped, percent};
use crate::ui::columns::{self, Align};
use crate::workflow::error::Error;

/// A file of more bytes is never rolled up: no model takes that much.
const LARGEST: u64 = 64 << 20;
/// How many files the table names.
const NAMED: usize = 30;
/// The names of files that tools write to pin dependencies, and nobody reads.
const LOCK_FILES: &str = "Cargo.lock package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock \
    bun.lockb deno.lock poetry.lock pdm.lock uv.lock Pipfile.lock Gemfile.lock composer.lock go.sum mix.lock \
    flake.lock pubspec.lock Package.resolved";

/// A file that is rolled up.
struct Rolled {
    path: String,
    content: String,
    tokens: u64,
}

/// A file that is left out, and why.
type LeftOut = (String, &'static str);

/// Rolls the project up.
///
/// # Errors
/// When what git tracks is not known, or a file cannot be read, or the rollup not be written.
pub fn rollup(context: &Context<'_>, options: &RollupArgs) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    let root = context.project.root();
    let tracked = TrackedPaths::below(root).map_err(Error::NoIndex)?;
    let paths = chosen(tracked.files().collect(), &options.paths)?;
    let (files, left_out) = read(root, paths, options.all)?;
    if files.is_empty() {
        return Err(Error::EmptyRollup(left_out_text(&left_out)).into());
    }
    write(context, &files).map_err(PathError::of("write", ROLLUP))?;
    let total = files.iter().map(|file| file.tokens).sum();
    let excess = options.budget.filter(|budget| total > *budget);
    let proposal = excess.map(|budget| leave_out(&files, total - budget));
    let mut text = table(&files, total);
    if let Some((budget, proposal)) = excess.zip(proposal.as_ref()) {
        text.push_str(&advice(budget, total, proposal));
    }
    let data = data(&files, &left_out, total, proposal.as_deref());
    let summary = format!(
        "done: {ROLLUP} has {}, about {}; {} left out",
        counted(files.len() as u64, "file"),
        counted(total, "token"),
        left_out_text(&left_out)
    );
    Ok(Outcome {
        summary,
        ..Outcome::shown(text, data)
    })
}

/// Those of the tracked files that were named.
fn chosen(tracked: Vec<String>, named: &[PathBuf]) -> Result<Vec<String>, Error> {
    if named.is_empty() {
        return Ok(tracked);
    }
    let clean: Vec<PathBuf> = named.iter().map(path_clean::clean).collect();
    let is_below =
        |path: &str, named: &Path| named == Path::new(".") || Path::new(path).starts_with(named);
    for (clean, named) in clean.iter().zip(named) {
        if !tracked.iter().any(|path| is_below(path, clean)) {
            return Err(Error::NotTracked(named.clone()));
        }
    }
    let is_named = |path: &String| clean.iter().any(|named| is_below(path, named));
    Ok(tracked.into_iter().filter(is_named).collect())
}

/// Reads the files that are text, and says which are left out.
fn read(root: &Path, paths: Vec<String>, all: bool) -> Result<(Vec<Rolled>, Vec<LeftOut>), Error> {
    let (mut files, mut left_out) = (Vec::new(), Vec::new());
    let handle = Root::open(root).map_err(PathError::of("read", root))?;
    let mut directory = OpenDirectory::to_read();
    for path in paths {
        let content = unwanted(&path, all).map_or_else(
            || {
                let entry = directory.entry(&handle, &path)?;
                content(entry, &root.join(&path))
            },
            |reason| Ok(Err(reason)),
        );
        match content.map_err(PathError::of("read", &path))? {
            Ok(content) => files.push(Rolled {
                // The header is a part of what is sent.
                tokens: tokens::count(&header(&path)) + tokens::count(&content),
                path,
                content,
            }),
            Err(reason) => left_out.push((path, reason)),
        }
    }
    Ok((files, left_out))
}

/// Why a file is left out, whatever it holds. The paths of an index may be any.
fn unwanted(path: &str, all: bool) -> Option<&'static str> {
    let mut names = path.split('/');
    let is = |name: &str, known: &str| name.eq_ignore_ascii_case(known);
    if path.contains('\n') || names.clone().any(|name| matches!(name, "" | "." | "..")) {
        return Some("odd name");
    }
    let in_git = names.clone().any(|name| is(name, ".git"));
    let first = names.next().unwrap_or_default();
    if in_git || is(first, CONFIG) || is(first, LOGS) {
        return Some("protected");
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    if credentials::is_secret_file(name) {
        return Some("secret");
    }
    (!all && LOCK_FILES.split(' ').any(|lock| lock == name)).then_some("lock file")
}

/// The text of a file; or why it is left out.
fn content(entry: PathEntry, path: &Path) -> io::Result<Result<String, &'static str>> {
    let file = match entry {
        PathEntry::File(file) => file,
        PathEntry::Nothing => return Ok(Err("gone")),
        PathEntry::SomethingElse if path.is_dir() => return Ok(Err("directory")),
        PathEntry::SomethingElse => return Ok(Err("link")),
    };
    let size = file.metadata()?.len();
    if size > LARGEST {
        return Ok(Err("huge"));
    }
    let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    // It may have grown meanwhile.
    file.take(LARGEST).read_to_end(&mut content)?;
    let text = String::from_utf8(content).ok();
    Ok(text.filter(|text| !text.contains('\0')).ok_or("binary"))
}

fn write(context: &Context<'_>, files: &[Rolled]) -> io::Result<()> {
    let directory = context.project.config();
    // What a link leads to may lie anywhere.
    if directory.is_symlink() {
        return Err(io::Error::other("`agent-config` is a symbolic link"));
    }
    fs::create_dir_all(directory)?;
    atomic_file::replace(&context.project.root().join(ROLLUP), |out| {
        let mut out = io::BufWriter::new(out);
        for file in files {
            out.write_all(header(&file.path).as_bytes())?;
            out.write_all(file.content.as_bytes())?;
            // The next header begins a line, whatever the last byte of the file is.
            if !file.content.is_empty() && !file.content.ends_with('\n') {
                out.write_all(b"\n")?;
            }
        }
        out.flush()
    })
}

/// The files by their tokens, the largest first.
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

/// The largest files that together have at least so many tokens: as few as can be.
fn leave_out(files: &[Rolled], excess: u64) -> Vec<&Rolled> {
    let (mut needed, mut proposal) = (excess, Vec::new());
    let mut sorted = by_size(files).into_iter().peekable();
    while let Some(file) = sorted.next() {
        // Of those that are enough by themselves, the smallest.
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
    for file in proposal.iter().take(NAMED) {
        let (tokens, path) = (grouped(file.tokens), file.path.escape_debug());
        text.push_str(&format!("\n  {tokens:>9}  {path}"));
    }
    if proposal.len() > NAMED {
        text.push_str(&format!("\n  and {} more", proposal.len() - NAMED));
    }
    text.push_str("\nto include only some paths, run `code-commit rollup PATH…`");
    text
}

fn left_out_text(left_out: &[LeftOut]) -> String {
    if left_out.is_empty() {
        return "nothing".to_owned();
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, reason) in left_out {
        *counts.entry(reason).or_default() += 1;
    }
    let counts = counts.iter();
    let counts = counts.map(|(reason, count)| format!("{count} {reason}"));
    counts.collect::<Vec<_>>().join(", ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_index_names_nothing_that_is_rolled_up() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("a")).unwrap();
        for file in ["../outside", ".git/config", "a/b"] {
            fs::write(root.join(file), "text\n").unwrap();
        }
        let outside = dir.path().join("outside").to_str().unwrap().to_owned();
        for (path, expected) in [
            ("../outside", Some("odd name")),
            ("a/../../outside", Some("odd name")),
            (&outside, Some("odd name")),
            ("a//b", Some("odd name")),
            ("./a/b", Some("odd name")),
            ("a/b\n", Some("odd name")),
            (".git/config", Some("protected")),
            ("a/.GIT/config", Some("protected")),
            ("Agent-Config/gemini-key.txt", Some("protected")),
            ("a", Some("directory")),
            ("a/b/c", Some("link")),
            ("a/c", Some("gone")),
            ("a/b", None),
        ] {
            let (files, left_out) = read(&root, vec![path.to_owned()], false).unwrap();
            let reason = left_out.first().map(|(_, reason)| *reason);
            assert_eq!(reason, expected, "{path}");
            assert_eq!(files.is_empty(), expected.is_some(), "{path}");
        }
    }
}
