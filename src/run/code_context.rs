//! The part of a code base that is sent under a limit: the outline of all files, and the texts of those that rank first
//! for the query. Also grants the model's requests for more.
//!
//! Reads the files that a build's output names; everything else is given. Guarantees that only files of the code base
//! are sent, and knows for each of them what the model has seen.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::code_base::{self, CodeBase, NoCodeBase, Rolled};
use crate::edit::{EditKind, FaultKind, FileEdit, ParsedReply, ReplyFault, Rule, Sent};
use crate::model::tokens;
use crate::project::excerpts::{excerpts, numbered};
use crate::project::outline::outline;
use crate::project::ranking::{PastCommit, Source, rank};
use crate::project::rollup::header;
use crate::record::run_files::SHOWN;
use crate::sys::error::Error;
use crate::sys::files::{self, Links, MIB};
use crate::sys::text::regex;

/// The name of the block with which a reply asks for files.
const NEED: &str = "need";
/// Maximum number of requests for files that a run grants.
pub const ROUNDS: u16 = 3;
/// The share of the limit that the outline takes at most: more costs more of the files than it tells about others.
const OUTLINE: u64 = 8;
/// The share of the limit above which a file is shown in excerpts.
const SHARE: u64 = 4;
/// Minimum number of tokens for which another file is worth showing.
const LEAST: u64 = 100;
/// Number of lines shown around a place that a build names.
const AROUND: usize = 15;
/// Maximum number of such places.
const PLACES: usize = 20;

/// A location in a build's output: `src/a.rs:10`, `src/a.ts(3,5)`, `File "a.py", line 3`.
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"([\w@./+-]+\.\w+)(?::|\()(\d+)|File "([^"]+)", line (\d+)"#));

/// The limit on what is sent of the code base.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CodeLimit {
    /// Maximum number of tokens; `None`: the model's entry decides.
    pub tokens: Option<u64>,
    /// Files and directories to send first.
    pub include: Vec<PathBuf>,
    /// Files and directories to leave out.
    pub exclude: Vec<PathBuf>,
    /// What an earlier run has shown, if that run is resumed.
    pub shown: Option<Sight>,
}

/// The parts of the code base that the model has seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sight {
    /// The limit, in tokens.
    pub tokens: u64,
    /// The files shown in whole.
    pub whole: BTreeSet<String>,
    /// The lines shown of other files, from 0 on.
    pub parts: BTreeMap<String, Vec<Range<usize>>>,
}

/// A file that is shown, in whole or in part.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownFile {
    /// Index among the files of the code base.
    pub index: usize,
    /// The lines shown, from 0 on; `None`: all.
    pub lines: Option<Vec<Range<usize>>>,
    /// Its tokens, header included.
    pub tokens: u64,
    /// The words of the query that put it there; none if the user named it.
    pub why: Vec<String>,
}

/// A code base, and the part of it that the model has seen.
pub struct CodeContext {
    /// The code base, without what is excluded.
    pub files: Vec<Rolled>,
    /// The files shown at first, best first.
    pub shown: Vec<ShownFile>,
    /// The outline's text.
    outline: String,
    /// What the model has seen.
    pub sight: Sight,
    /// The files sent at the model's request, as text of the prompt.
    pub needed: String,
    rounds: u16,
}

impl CodeContext {
    /// Selects what to send of a code base.
    ///
    /// # Errors
    /// When a file to include or exclude is not in the code base.
    pub fn select(
        code_base: CodeBase,
        query: &str,
        history: &[PastCommit],
        limit: &CodeLimit,
    ) -> Result<Self, Error> {
        let tokens = limit.tokens.unwrap_or(u64::MAX);
        let mut files = code_base.files;
        check_named(&files, limit.include.iter().chain(&limit.exclude))?;
        files.retain(|file| !is_below(&file.path, &limit.exclude));
        let sources: Vec<Source<'_>> = files.iter().map(Rolled::source).collect();
        let ranking = rank(query, &sources, history);
        let is_named =
            |file: &Rolled| is_below(&file.path, &limit.include) || names(query, &file.path);
        let (first, rest): (Vec<_>, Vec<_>) = (ranking.files.iter())
            .map(|ranked| (ranked, is_named(&files[ranked.index])))
            .partition(|(_, is_named)| *is_named);
        let order: Vec<_> = first.into_iter().chain(rest).collect();
        let of_all = |has_text: &dyn Fn(usize) -> bool| {
            let listed = order.iter().map(|(ranked, _)| {
                let file = &files[ranked.index];
                let text = if has_text(ranked.index) {
                    &*file.content
                } else {
                    ""
                };
                (file.path.as_str(), text)
            });
            outline(
                &listed.collect::<Vec<_>>(),
                &tokens::count,
                tokens / OUTLINE,
            )
        };
        let whole_outline = of_all(&|_| true);
        let mut left = tokens.saturating_sub(tokens::count(&whole_outline.text));
        let mut shown = Vec::new();
        for (ranked, is_named) in &order {
            if left < LEAST {
                break;
            }
            if ranked.score <= 0.0 && !is_named {
                continue;
            }
            let (file, most) = (&files[ranked.index], tokens / SHARE);
            let mut one = ShownFile {
                index: ranked.index,
                lines: None,
                tokens: file.tokens,
                why: if *is_named {
                    Vec::new()
                } else {
                    ranked.why.clone()
                },
            };
            if file.tokens > left || file.tokens > most && !is_named {
                let most = left
                    .min(most)
                    .saturating_sub(tokens::count(&header(&file.path)));
                let lines = excerpts(&file.content, &ranking.weights, &tokens::count, most);
                if lines.is_empty() {
                    continue;
                }
                one.tokens = tokens::count(&part(file, &lines));
                one.lines = Some(lines);
            }
            left = left.saturating_sub(one.tokens);
            shown.push(one);
        }
        // What is shown in whole leaves its share of the outline to others.
        let whole = shown.iter().filter(|shown| shown.lines.is_none());
        let whole: BTreeSet<usize> = whole.map(|shown| shown.index).collect();
        let outline = of_all(&|index| !whole.contains(&index));
        let sight = Sight::of(&files, &shown, tokens);
        Ok(Self {
            outline: outline.text,
            sight: limit.shown.clone().unwrap_or(sight),
            files,
            shown,
            needed: String::new(),
            rounds: 0,
        })
    }

    /// The text in the place of the rolled-up code base.
    pub fn text(&self) -> String {
        let mut text = format!("Outline of all files:\n{}", self.outline);
        for shown in &self.shown {
            let file = &self.files[shown.index];
            match &shown.lines {
                Some(lines) => text.push_str(&part(file, lines)),
                None => text.extend(file.parts()),
            }
        }
        text
    }

    /// Returns the request for files that a reply is, if it is one.
    pub fn request(reply: &ParsedReply) -> Option<&FileEdit> {
        reply.edits.iter().find(|edit| edit.path == NEED)
    }

    /// Grants a reply's request: the files join those that the model has seen.
    ///
    /// # Errors
    /// All faults of the request; nothing is granted then.
    pub fn grant(
        &mut self,
        reply: &ParsedReply,
        request: &FileEdit,
    ) -> Result<(), Vec<ReplyFault>> {
        let fault = |line, kind| ReplyFault { line, kind };
        let alone = |why| vec![fault(request.line, FaultKind::Need(why))];
        if reply.edits.len() > 1 || !reply.faults.is_empty() {
            return Err(alone("a request for files stands alone, without edits"));
        }
        let EditKind::Write(list) = &request.kind else {
            return Err(alone("a request for files lists them, one path a line"));
        };
        if self.rounds == ROUNDS {
            return Err(alone("no more files are sent: answer with edits"));
        }
        let (mut wanted, mut faults) = (BTreeSet::new(), Vec::new());
        for (at, path) in list.lines().enumerate() {
            let path = path.trim();
            let found = self.files.iter().position(|file| file.path == path);
            let rule = match found {
                _ if path.is_empty() => continue,
                None => Rule::NotListed,
                Some(_) if self.sight.whole.contains(path) => Rule::AlreadyShown,
                Some(found) => {
                    wanted.insert(found);
                    continue;
                }
            };
            let path = path.to_owned();
            faults.push(fault(request.line + at + 1, FaultKind::Path { path, rule }));
        }
        if wanted.is_empty() && faults.is_empty() {
            return Err(alone("a request for files names at least one"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        for found in wanted {
            let file = &self.files[found];
            self.needed.extend(file.parts());
            self.sight.whole.insert(file.path.clone());
        }
        self.rounds += 1;
        Ok(())
    }

    /// The number of requests granted so far.
    pub fn rounds(&self) -> u16 {
        self.rounds
    }

    /// Returns the surroundings of the places that a failed build names, as they are on the disk below `root`, in files
    /// that the model has not seen in whole.
    ///
    /// # Errors
    /// When such a file cannot be read.
    pub fn places(&mut self, output: &str, root: &Path) -> Result<String, Error> {
        let mut lines: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for found in PLACE.captures_iter(output) {
            let (path, line) = (found.get(1).or(found.get(3)), found.get(2).or(found.get(4)));
            let path = path.map_or("", |path| path.as_str());
            let path = Path::new(path)
                .strip_prefix(root)
                .unwrap_or(Path::new(path));
            let path = path.strip_prefix(".").unwrap_or(path).to_string_lossy();
            let line = line.and_then(|line| line.as_str().parse::<usize>().ok());
            let is_shown = self.sight.whole.contains(&*path);
            let is_listed = self.files.iter().any(|file| *file.path == *path);
            if let Some(line) = line.filter(|line| *line > 0 && is_listed && !is_shown) {
                lines.entry(path.into_owned()).or_default().insert(line - 1);
            }
            if lines.values().map(BTreeSet::len).sum::<usize>() == PLACES {
                break;
            }
        }
        let (files, _) = code_base::read(root, &lines.keys().cloned().collect::<Vec<_>>(), true)?;
        let mut text = String::new();
        for file in files {
            let count = file.content.lines().count();
            let around = lines[&file.path].iter().filter(|line| **line < count);
            let around = around.map(|line| line.saturating_sub(AROUND)..(line + AROUND).min(count));
            let around = merged(around);
            // The build may speak of lines that the file no longer has.
            if around.is_empty() {
                continue;
            }
            text.push_str(&part(&file, &around));
            self.sight
                .parts
                .entry(file.path)
                .or_default()
                .extend(around);
        }
        Ok(text)
    }
}

impl Sight {
    /// What the run in `folder` has shown at first, if it had a limit.
    pub fn of_run(folder: &Path) -> Option<Self> {
        let json = files::read(&folder.join(SHOWN), Links::Refused, MIB).ok()?;
        serde_json::from_slice(&json).ok()
    }

    /// Limits the text of a file to what the model has seen of it.
    pub fn limited(&self, path: &str, sent: Sent) -> Sent {
        match (sent, self.parts.get(path)) {
            (Sent::Text(text), _) if self.whole.contains(path) => Sent::Text(text),
            (Sent::Text(text), Some(lines)) => Sent::Excerpts(text, lines.clone()),
            (Sent::Text(_), None) => Sent::NotShown,
            (sent, _) => sent,
        }
    }

    /// Notes that a file was changed by the model, and is shown in a repair: these lines of it or, with `None`, all.
    pub fn note(&mut self, path: &str, lines: Option<Vec<Range<usize>>>) {
        match lines.filter(|_| self.parts.contains_key(path) && !self.whole.contains(path)) {
            // The excerpts shown before have other numbers now.
            Some(lines) => drop(self.parts.insert(path.to_owned(), lines)),
            None => drop(self.whole.insert(path.to_owned())),
        }
    }

    fn of(files: &[Rolled], shown: &[ShownFile], tokens: u64) -> Self {
        let mut sight = Self {
            tokens,
            ..Self::default()
        };
        for shown in shown {
            let path = files[shown.index].path.clone();
            match &shown.lines {
                Some(lines) => drop(sight.parts.insert(path, lines.clone())),
                None => drop(sight.whole.insert(path)),
            }
        }
        sight
    }
}

/// A file's excerpts, below a header that says which lines they are.
fn part(file: &Rolled, lines: &[Range<usize>]) -> String {
    let shown = lines
        .iter()
        .map(|range| format!("{}-{}", range.start + 1, range.end));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let count = file.content.lines().count();
    let title = format!("{} (lines {shown} of {count})", file.path);
    header(&title) + &numbered(&file.content, lines)
}

/// Joins ranges, sorted by their starts, that touch or overlap.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    ranges.fold(Vec::new(), |mut merged: Vec<Range<usize>>, range| {
        match merged.last_mut().filter(|last| last.end >= range.start) {
            Some(last) => last.end = last.end.max(range.end),
            None => merged.push(range),
        }
        merged
    })
}

fn is_below(path: &str, named: &[PathBuf]) -> bool {
    let mut named = named.iter().map(path_clean::clean);
    named.any(|named| named == Path::new(".") || Path::new(path).starts_with(named))
}

fn check_named<'n>(
    files: &[Rolled],
    mut named: impl Iterator<Item = &'n PathBuf>,
) -> Result<(), NoCodeBase> {
    let is_known = |named: &&PathBuf| {
        let named = std::slice::from_ref(*named);
        files.iter().any(|file| is_below(&file.path, named))
    };
    let unknown = named.find(|named| !is_known(named));
    unknown.map_or(Ok(()), |unknown| {
        Err(NoCodeBase::NotTracked(unknown.clone()))
    })
}

/// Returns whether the query names the file at `path`: by a word that is its path, or its path after `@`. A name
/// without dot or slash may be any word.
fn names(query: &str, path: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '/' | '_' | '-');
    query.match_indices(path).any(|(at, _)| {
        let (before, behind) = (&query[..at], &query[at + path.len()..]);
        let before = before.strip_suffix("./").unwrap_or(before);
        let is_marked = before.ends_with('@');
        let is_path = is_marked || path.contains(['.', '/']);
        // A dot that ends a sentence is no part of the name.
        let goes_on = behind.starts_with('.') && behind[1..].starts_with(is_part);
        is_path
            && !before.ends_with(is_part)
            && (is_marked || !before.ends_with('.'))
            && !behind.starts_with(is_part)
            && !goes_on
    })
}

#[cfg(test)]
mod tests;
