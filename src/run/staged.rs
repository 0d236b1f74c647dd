//! The code base as staged in git's index, whatever the work tree contains.
//!
//! Runs git so that it starts neither filters nor other programs that the repository names. Guarantees complete files.

use std::io::{self, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::thread;

use super::code_base::{CodeBase, LARGEST, LeftOut, Rolled, text, unwanted};
use super::context::Context;
use super::error::RunError;
use crate::project::repository::Repository;
use crate::sys::error::Error;
use crate::sys::git::{Git, listing};

/// Reads the staged files, including those of a commit in progress.
///
/// # Errors
/// Fails if there is no repository, its index or an object cannot be read, or nothing is left to roll up.
pub fn read(context: &Context<'_>) -> Result<CodeBase, Error> {
    let unreadable = |error: io::Error| RunError::StagedUnreadable(error.to_string());
    let found = files(context);
    context.interrupt.check()?;
    let (files, left_out) = found.map_err(unreadable)?;
    Ok(CodeBase::of(files, left_out)?)
}

fn files(context: &Context<'_>) -> io::Result<(Vec<Rolled>, Vec<LeftOut>)> {
    let (project, root) = (&context.project, context.project.root());
    Repository::of(root)
        .map_err(io::Error::other)?
        .ok_or_else(|| io::Error::other("there is no repository"))?
        .check_readable()
        .map_err(io::Error::other)?;
    let git = Git::find(context.environment.os("PATH"), root)
        .ok_or_else(|| io::Error::other("there is no git"))?;
    // Git sets it for hooks, relative to the directory that it starts them in.
    let index = context
        .environment
        .get("GIT_INDEX_FILE")
        .map(|index| project.directory().join(index));
    let git = &git.with_index(index.as_deref().and_then(Path::to_str));
    let command = git.command(root, &["ls-files", "--stage", "-z"]);
    let listed = listing(command, usize::MAX, context.interrupt)?;
    let listed = String::from_utf8(listed).map_err(io::Error::other)?;
    let (mut files, mut left_out, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    for (entry, path) in listed.split('\0').filter_map(|line| line.split_once('\t')) {
        let mut words = entry.split(' ');
        let (mode, id, stage) = (words.next(), words.next(), words.next());
        let reason = match (mode, stage) {
            (_, Some("1" | "2" | "3")) => Some("unmerged"),
            (Some("120000"), _) => Some("link"),
            (Some("160000"), _) => Some("directory"),
            _ => unwanted(path, false),
        };
        match reason {
            // A file that is not merged has up to three entries, one after the other.
            Some(reason) if left_out.last() == Some(&(path.to_owned(), reason)) => {}
            Some(reason) => left_out.push((path.to_owned(), reason)),
            None => wanted.push((path, id.unwrap_or_default())),
        }
    }
    let mut reading = git.command(root, &["cat-file", "--batch"]);
    let mut reading = reading
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (stdin, stdout) = (reading.stdin.take(), reading.stdout.take());
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(io::Error::other("git has no pipes"));
    };
    let ids: String = wanted.iter().map(|(_, id)| format!("{id}\n")).collect();
    thread::scope(|scope| {
        // If git ends early, reading its answers fails.
        scope.spawn(move || stdin.write_all(ids.as_bytes()));
        let mut objects = BufReader::new(stdout);
        for (path, _) in wanted {
            match object(&mut objects, path)? {
                Ok(content) => files.push(Rolled::of(path.to_owned(), content)),
                Err(reason) => left_out.push((path.to_owned(), reason)),
            }
        }
        Ok::<_, io::Error>(())
    })?;
    reading.wait()?;
    Ok((files, left_out))
}

/// Reads the text of the next object, or the reason that it is left out: a line that ends with its size, its content,
/// and a line end.
fn object(objects: &mut impl io::BufRead, path: &str) -> io::Result<Result<String, &'static str>> {
    let mut head = String::new();
    objects.read_line(&mut head)?;
    let size = head
        .trim_end()
        .rsplit(' ')
        .next()
        .and_then(|size| size.parse::<u64>().ok())
        .ok_or_else(|| io::Error::other(format!("git does not have `{path}`")))?;
    let mut whole = objects.take(size + 1);
    if size > LARGEST {
        io::copy(&mut whole, &mut io::sink())?;
        return Ok(Err("huge"));
    }
    let mut content = Vec::new();
    whole.read_to_end(&mut content)?;
    if content.pop().is_none() || content.len() as u64 != size {
        return Err(io::Error::other(format!("git breaks off in `{path}`")));
    }
    Ok(text(content))
}
