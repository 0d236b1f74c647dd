//! The part of a code base that is sent under a limit: the outline of all files, and the texts of those that rank first
//! for the query. Also grants the model's requests for more.
//!
//! Reads the files that a build's output names; everything else is given. Guarantees that only files of the code base
//! are sent, and knows for each of them what the model has seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::code_base::{self, CodeBase, Rolled};
use crate::edit::beneath::split;
use crate::edit::{Digest, EditKind, FaultKind, FileEdit, ParsedReply, ReplyFault, Rule, Sent};
use crate::model::tokens;
use crate::project::excerpts::{excerpts, numbered, ranges};
use crate::project::outline::outline;
use crate::project::ranking::{PastCommit, Ranked, Source, rank};
use crate::project::rollup::header;
use crate::record::run_files::SHOWN;
use crate::run::past::findings;
use crate::secret::{Redactor, credentials};
use crate::sys::error::Error;
use crate::sys::files::{self, Links, MIB};
use crate::sys::numbers::grouped;
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

/// A location in a build's output: `src/a.rs:10`, `src/a.ts(3,5)`, `A.java:[12,8]`, `"a.py", line 3`, `a.php on line 3`.
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"([\w@./+-]+)(?::\[?|\(|(?:"?,| on) line )(\d+)"#));

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
    /// Files and directories that are left out.
    pub exclude: Vec<PathBuf>,
    /// The content of the files shown, as they were.
    pub digests: BTreeMap<String, Digest>,
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
}

/// A code base, and the part of it that the model has seen.
#[derive(Default)]
pub struct CodeContext {
    /// The code base, without what is excluded.
    pub files: Vec<Rolled>,
    /// All of them, best first; no words explain those that the user named.
    pub ranked: Vec<Ranked>,
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
    /// Ranks the files of a code base, and with a limit selects what to send.
    ///
    /// # Errors
    /// When a file to include or exclude is not in the code base.
    pub fn select(
        code_base: CodeBase,
        query: &str,
        history: &[PastCommit],
        limit: &CodeLimit,
    ) -> Result<Self, Error> {
        let exclude = (limit.shown.as_ref()).map_or(&limit.exclude, |shown| &shown.exclude);
        let (include, excluded) = (code_base.named(&limit.include)?, code_base.named(exclude)?);
        let mut files = code_base.files;
        files.retain(|file| !excluded.contains(&file.path));
        let sources: Vec<Source<'_>> = files.iter().map(Rolled::source).collect();
        let ranking = rank(query, &sources, history);
        let words = words(query);
        let is_named =
            |file: &Rolled| include.contains(&file.path) || words.contains(file.path.as_str());
        let (mut ranked, rest): (Vec<_>, Vec<_>) =
            (ranking.files.into_iter()).partition(|ranked| is_named(&files[ranked.index]));
        let named = ranked.len();
        for named in &mut ranked {
            named.why.clear();
        }
        ranked.extend(rest);
        let Some(tokens) = limit.tokens else {
            return Ok(Self {
                files,
                ranked,
                ..Self::default()
            });
        };
        let of_all = |has_text: &dyn Fn(usize) -> bool| {
            let listed = ranked.iter().map(|ranked| {
                let file = &files[ranked.index];
                let text = Some(&*file.content).filter(|_| has_text(ranked.index));
                (file.path.as_str(), text.unwrap_or_default())
            });
            let listed: Vec<_> = listed.collect();
            outline(&listed, &tokens::count, tokens / OUTLINE)
        };
        let whole_outline = of_all(&|_| true);
        let mut left = tokens.saturating_sub(tokens::count(&whole_outline));
        let mut shown = Vec::new();
        for (at, ranked) in ranked.iter().enumerate() {
            let is_named = at < named;
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
            };
            if file.tokens > left || file.tokens > most && !is_named {
                let header = tokens::count(&header(&file.path));
                let most = left.min(most).saturating_sub(header);
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
        let mut code = Self {
            files,
            ranked,
            shown,
            outline,
            ..Self::default()
        };
        // The headers of excerpts, and an outline of other files, may take more than was foreseen.
        while !code.shown.is_empty() && tokens::count(&code.text()) > tokens {
            code.shown.pop();
        }
        code.sight = match &limit.shown {
            Some(shown) => shown.clone(),
            None => Sight::of(&code, tokens, exclude),
        };
        Ok(code)
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

    /// Grants a reply's request, with `room` for so many tokens: the files join those that the model has seen. Returns
    /// their paths. A reply that is recorded has been granted before: what is gone since is left out.
    ///
    /// # Errors
    /// All faults of the request; nothing is granted then.
    pub fn grant(
        &mut self,
        reply: &ParsedReply,
        request: &FileEdit,
        is_recorded: bool,
        room: u64,
    ) -> Result<Vec<String>, Vec<ReplyFault>> {
        let fault = |line, kind| ReplyFault { line, kind };
        let alone = |why: &'static str| vec![fault(request.line, FaultKind::Need(why.into()))];
        if reply.edits.len() > 1 || !reply.faults.is_empty() || !reply.repeated.is_empty() {
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
                // Also what the model has made itself.
                _ if self.sight.whole.contains(path) && !is_recorded => Rule::AlreadyShown,
                None if is_recorded => continue,
                None => Rule::NotListed,
                Some(found) => {
                    wanted.insert(found);
                    continue;
                }
            };
            let path = path.to_owned();
            faults.push(fault(request.line + at + 1, FaultKind::Path { path, rule }));
        }
        if wanted.is_empty() && faults.is_empty() && !is_recorded {
            return Err(alone("a request for files names at least one"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let wanted: Vec<&Rolled> = wanted.into_iter().map(|found| &self.files[found]).collect();
        if !is_recorded && wanted.iter().map(|file| file.tokens).sum::<u64>() > room {
            let (room, wanted) = (grouped(room), wanted.into_iter());
            let sizes = wanted.map(|file| format!("`{}` has {}", file.path, grouped(file.tokens)));
            let sizes = sizes.collect::<Vec<_>>().join(", ");
            let why = format!(
                "the files do not fit in the window, which has room for {room} tokens: {sizes}"
            );
            return Err(vec![fault(request.line, FaultKind::Need(why.into()))]);
        }
        self.rounds += 1;
        for file in &wanted {
            self.needed.extend(file.parts());
            self.sight.add(file, None);
        }
        Ok(wanted.into_iter().map(|file| file.path.clone()).collect())
    }

    /// Notes that the model has changed a file, which has this text now, and that a repair shows these lines of it or,
    /// with `None`, all.
    pub fn note(&mut self, path: &str, now: Option<&str>, lines: Option<Vec<Range<usize>>>) {
        let file = self.files.iter_mut().find(|file| file.path == path);
        if let (Some(file), Some(now)) = (file, now) {
            now.clone_into(&mut file.content);
        }
        let sight = &mut self.sight;
        match lines.filter(|_| sight.parts.contains_key(path) && !sight.whole.contains(path)) {
            // The excerpts shown before have other numbers now.
            Some(lines) => drop(sight.parts.insert(path.to_owned(), lines)),
            None => drop(sight.whole.insert(path.to_owned())),
        }
    }

    /// Limits the text of a file to what the model has seen of it. `sent` is its text if it is as it was sent.
    pub fn sent(&self, path: &str, sent: Sent) -> Sent {
        let file = self.files.iter().find(|file| file.path == path);
        let text = match (sent, file) {
            (Sent::Text(text), _) => text,
            // It has changed since, which is told when it would be written to.
            (Sent::NotShown, Some(file)) => file.content.clone(),
            (sent, _) => return sent,
        };
        match self.sight.parts.get(path) {
            _ if self.sight.whole.contains(path) => Sent::Text(text),
            Some(lines) => Sent::Excerpts(text, lines.clone()),
            None => Sent::NotShown,
        }
    }

    /// The number of requests granted so far.
    pub fn rounds(&self) -> u16 {
        self.rounds
    }

    /// Returns the surroundings of the places that a failed build names, as they are on the disk below `root`, in files
    /// that the model has not seen in whole. A file that now holds what `search` takes for a credential is left out.
    ///
    /// # Errors
    /// When such a file cannot be read.
    pub fn places(
        &mut self,
        output: &str,
        root: &Path,
        search: Option<&Redactor>,
    ) -> Result<String, Error> {
        let mut by_name: HashMap<&str, Vec<&str>> = HashMap::new();
        let unseen = self.files.iter().map(|file| file.path.as_str());
        for path in unseen.filter(|path| !self.sight.whole.contains(*path)) {
            by_name.entry(split(path).1).or_default().push(path);
        }
        let mut lines: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        let found = findings::read(output, root);
        let told = found
            .iter()
            .filter_map(|found| Some((found.file.as_deref()?, found.line?)));
        // What is wrong comes before whatever else is named, such as the frames of a stack.
        let others = PLACE.captures_iter(output).filter_map(|found| {
            let (_, [named, line]) = found.extract();
            Some((named, line.parse().ok().filter(|line| *line > 0)?))
        });
        for (named, line) in told.chain(others) {
            let named = Path::new(named);
            let named = named.strip_prefix(root).unwrap_or(named);
            let named = named.strip_prefix(".").unwrap_or(named);
            let name = named.file_name().and_then(|name| name.to_str());
            let paths = name.and_then(|name| by_name.get(name));
            let paths = paths.into_iter().flatten();
            // Some tools name a file by its path below its package.
            let mut paths: Vec<_> = paths
                .filter(|path| Path::new(path).ends_with(named))
                .collect();
            paths.sort_by_key(|path| path.len());
            let is_one = |first: &str| paths.len() == 1 || Path::new(first) == named;
            let path = paths.first().filter(|first| is_one(first));
            if let Some(path) = path {
                let path = (**path).to_owned();
                lines.entry(path).or_default().insert(line - 1);
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
            let around = ranges(around.flatten().collect::<BTreeSet<usize>>());
            let finds = |search| !credentials::find("", &file.content, search).is_empty();
            // The build may speak of lines that the file no longer has.
            if around.is_empty() || search.is_some_and(finds) {
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

    fn of(code: &CodeContext, tokens: u64, exclude: &[PathBuf]) -> Self {
        let mut sight = Self {
            tokens,
            exclude: exclude.to_vec(),
            ..Self::default()
        };
        for shown in &code.shown {
            sight.add(&code.files[shown.index], shown.lines.as_ref());
        }
        sight
    }

    /// Adds a file that is shown: these lines of it or, with `None`, all.
    fn add(&mut self, file: &Rolled, lines: Option<&Vec<Range<usize>>>) {
        let path = file.path.clone();
        let digest = Digest::of(file.content.as_bytes());
        self.digests.insert(path.clone(), digest);
        match lines {
            Some(lines) => drop(self.parts.insert(path, lines.clone())),
            None => drop(self.whole.insert(path)),
        }
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

/// Returns the paths that the query's words may be: without what stands around them. A name without dot or slash may be
/// any word, unless `@` stands before it.
fn words(query: &str) -> BTreeSet<&str> {
    let around = |c: char| c.is_ascii_punctuation() && !matches!(c, '.' | '/' | '_' | '-' | '@');
    let words = query.split_whitespace().filter_map(|word| {
        let word = word.trim_matches(around).trim_end_matches(['.', '/']);
        let path = word.trim_start_matches('@').trim_start_matches("./");
        // A line number may follow.
        let path = path
            .split(':')
            .next()
            .unwrap_or(path)
            .trim_end_matches(around);
        (path.len() < word.len() && word.starts_with('@') || path.contains(['.', '/']))
            .then_some(path)
    });
    words.collect()
}

#[cfg(test)]
mod tests;
