//! The part of a code base that is sent under a limit: the outline of all files, and the texts of those that rank first
//! for the query. Also grants the model's requests for more.
//!
//! Reads only files that a build has changed. Guarantees that only files of the code base are sent, and tracks which
//! parts of them the model has seen.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::code_base::{self, CodeBase, Rolled};
use super::present::{Lines, PresentFile, moved};
use crate::edit::beneath::split;
use crate::edit::{Digest, EditKind, FaultKind, FileEdit, ParsedReply, ReplyFault, Rule, Sent};
use crate::model::{ReplyFormat, tokens};
use crate::project::excerpts::{excerpts, numbered, ranges};
use crate::project::outline::outline;
use crate::project::ranking::{PastCommit, Ranked, rank};
use crate::project::rollup::header;
use crate::record::logged;
use crate::record::run_files::SHOWN;
use crate::run::error::RunError;
use crate::run::past::findings;
use crate::secret::{Redactor, credentials};
use crate::sys::error::Error;
use crate::sys::numbers::grouped;
use crate::sys::text::regex;

/// Maximum number of requests for files that a run grants.
pub const ROUNDS: u16 = 3;
/// The outline's maximum share of the limit, as a divisor: a longer one displaces more of the files than it is worth.
const OUTLINE: u64 = 8;
/// The share of the limit, as a divisor, above which a file is shown in excerpts.
const SHARE: u64 = 4;
/// Minimum number of remaining tokens for which another file is added.
const LEAST: u64 = 100;
/// Number of lines of context around each location in the build output.
const AROUND: usize = 15;
/// Maximum number of such locations.
const PLACES: usize = 20;

/// A location in a build's output: `a.rs:10`, `a.ts(3,5)`, `A.java:[12,8]`, `"a.py", line 3`, `a.php on line 3`.
static PLACE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"([\w@./+-]+)(?::\[?|\(|(?:"?,| on) line )(\d+)"#));

/// The limit on the part of the code base that is sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CodeLimit {
    /// Maximum number of tokens; `None`: the model's entry decides.
    pub tokens: Option<u64>,
    /// Files and directories to send first.
    pub include: Vec<PathBuf>,
    /// Files and directories to leave out.
    pub exclude: Vec<PathBuf>,
    /// The code that an earlier run has shown, if that run is resumed.
    pub shown: Option<SeenCode>,
}

/// The parts of the code base that the model has seen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenCode {
    /// The limit, in tokens.
    pub tokens: u64,
    /// Files and directories that are left out.
    pub exclude: Vec<PathBuf>,
    /// The content of the files when they were shown.
    pub digests: BTreeMap<String, Digest>,
    /// The files shown in whole.
    pub whole: BTreeSet<String>,
    /// The lines shown of other files.
    pub parts: BTreeMap<String, Lines>,
}

/// A file that is shown, in whole or in part.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownFile {
    /// Index among the files of the code base.
    pub index: usize,
    /// The lines shown; `None`: all.
    pub lines: Option<Lines>,
    /// The tokens that it takes, header included.
    pub tokens: u64,
}

/// A code base, and the part of it that the model has seen.
#[derive(Default)]
pub struct CodeContext {
    /// The code base without excluded files, ordered by path, as last read.
    pub files: Vec<Rolled>,
    /// All files, best first; those that the user named have no words that explain their rank.
    pub ranked: Vec<Ranked>,
    /// The files shown at first, best first.
    pub shown: Vec<ShownFile>,
    /// The outline's text.
    outline: String,
    /// The code that the first query shows.
    pub first: SeenCode,
    /// The code that the model has seen.
    pub sight: SeenCode,
    /// The original texts of files that have changed.
    before: BTreeMap<String, String>,
    /// The files sent at the model's request.
    needed: Vec<String>,
    rounds: u16,
}

impl CodeContext {
    /// Ranks the files of a code base, and with a limit selects what to send.
    ///
    /// # Errors
    /// Fails if a file to include or exclude is not in the code base.
    pub fn select(
        code_base: CodeBase,
        query: &str,
        history: &[PastCommit],
        limit: &CodeLimit,
    ) -> Result<Self, Error> {
        let exclude = (limit.shown.as_ref()).map_or(&limit.exclude, |shown| &shown.exclude);
        let (include, excluded) = (code_base.named(&limit.include)?, code_base.named(exclude)?);
        let named: Vec<_> = limit.include.iter().map(path_clean::clean).collect();
        let mut left_out = code_base.left_out.into_iter();
        if let Some((path, reason)) = left_out.find(|(path, _)| named.contains(&path.into())) {
            return Err(RunError::NotSent { path, reason }.into());
        }
        let mut files = code_base.files;
        files.retain(|file| !excluded.contains(&file.path));
        let sources = files.iter().map(|file| (&*file.path, &*file.content));
        let ranking = rank(query, &sources.collect::<Vec<_>>(), history);
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
        let mut code = Self {
            files,
            ranked,
            ..Self::default()
        };
        let Some(tokens) = limit.tokens else {
            return Ok(code);
        };
        let whole_outline = code.outline_of_all(tokens, |_| true);
        let left = tokens.saturating_sub(tokens::count(&whole_outline));
        code.shown = code.shown_within(left, tokens / SHARE, named, &ranking.weights);
        // Files shown in whole leave their share of the outline to others.
        let whole = code.shown.iter().filter(|shown| shown.lines.is_none());
        let whole: BTreeSet<usize> = whole.map(|shown| shown.index).collect();
        code.outline = code.outline_of_all(tokens, |index| !whole.contains(&index));
        // The headers of excerpts, and an outline of other files, may take more than estimated.
        while !code.shown.is_empty() && tokens::count(&code.text()) > tokens {
            code.shown.pop();
        }
        let shown = limit.shown.clone();
        code.first = shown.unwrap_or_else(|| SeenCode::of(&code, tokens, exclude));
        code.sight = code.first.clone();
        Ok(code)
    }

    /// Returns the outline of all files under a limit of `tokens` for all code, with the definitions of those that
    /// `has_text` selects.
    fn outline_of_all(&self, tokens: u64, has_text: impl Fn(usize) -> bool) -> String {
        let listed = self.ranked.iter().map(|ranked| {
            let file = &self.files[ranked.index];
            let text = Some(&*file.content).filter(|_| has_text(ranked.index));
            (file.path.as_str(), text.unwrap_or_default())
        });
        let listed: Vec<_> = listed.collect();
        outline(&listed, &tokens::count, tokens / OUTLINE)
    }

    /// Selects the best files that fit in `left` tokens, the first `named` of them at any score. Of a file that does
    /// not fit, or takes more than `most` without being named, excerpts are selected.
    fn shown_within(
        &self,
        mut left: u64,
        most: u64,
        named: usize,
        weights: &HashMap<String, f64>,
    ) -> Vec<ShownFile> {
        let mut shown = Vec::new();
        for (at, ranked) in self.ranked.iter().enumerate() {
            let is_named = at < named;
            if left < LEAST {
                break;
            }
            if ranked.score <= 0.0 && !is_named {
                continue;
            }
            let file = &self.files[ranked.index];
            let mut one = ShownFile {
                index: ranked.index,
                lines: None,
                tokens: file.tokens,
            };
            if file.tokens > left || file.tokens > most && !is_named {
                let header = tokens::count(&header(&file.path));
                let most = left.min(most).saturating_sub(header);
                let lines = excerpts(&file.content, weights, &tokens::count, most);
                if lines.is_empty() {
                    continue;
                }
                one.tokens = tokens::count(&part(file, &lines));
                one.lines = Some(lines);
            }
            left = left.saturating_sub(one.tokens);
            shown.push(one);
        }
        shown
    }

    /// Returns the text sent in place of the rolled-up code base.
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

    /// Grants a reply's request for files of at most `room` tokens, which then count as seen by the model. Returns
    /// their paths. A recorded request was granted before, so files that no longer exist are left out.
    ///
    /// # Errors
    /// All faults of the request; nothing is granted then.
    pub fn grant(
        &mut self,
        reply: &ParsedReply,
        request: &FileEdit,
        was_granted: bool,
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
            let rule = match self.at(path) {
                _ if path.is_empty() => continue,
                // Includes files that the model has written itself.
                _ if self.sight.whole.contains(path) && !was_granted => Rule::AlreadyShown,
                None if was_granted => continue,
                None => Rule::NotListed,
                Some(found) => {
                    wanted.insert(found);
                    continue;
                }
            };
            let path = path.to_owned();
            faults.push(fault(request.line + at + 1, FaultKind::Path { path, rule }));
        }
        if wanted.is_empty() && faults.is_empty() && !was_granted {
            return Err(alone("a request for files names at least one"));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let wanted: Vec<&Rolled> = wanted.into_iter().map(|found| &self.files[found]).collect();
        if !was_granted && wanted.iter().map(|file| file.tokens).sum::<u64>() > room {
            let (room, wanted) = (grouped(room), wanted.into_iter());
            let sizes = wanted
                .map(|file| format!("`{}` has {}", file.path, grouped(file.tokens)))
                .collect::<Vec<_>>()
                .join(", ");
            let why = format!(
                "the files do not fit in the window, which has room for {room} tokens: {sizes}"
            );
            return Err(vec![fault(request.line, FaultKind::Need(why.into()))]);
        }
        self.rounds += 1;
        let digests = wanted.iter().map(|file| file.digest());
        self.first.digests.extend(digests);
        let paths: Vec<String> = wanted.iter().map(|file| file.path.clone()).collect();
        self.sight.whole.extend(paths.iter().cloned());
        self.needed.extend(paths.iter().cloned());
        Ok(paths)
    }

    /// Returns the files sent at the model's request, as text for the prompt.
    pub fn needed(&self) -> String {
        let files = self.needed.iter().filter_map(|path| self.at(path));
        files.flat_map(|at| self.files[at].parts()).collect()
    }

    /// Reads the files again after a failed build, which has `changed` some of them; `own` are those that the run has
    /// written. Returns what a repair shows: these, and all changes to files that the model has seen. A file in which
    /// `search` now finds a credential is no longer known.
    ///
    /// # Errors
    /// Fails if a changed file cannot be read.
    pub fn read_again(
        &mut self,
        own: Vec<PresentFile>,
        mut changed: Vec<String>,
        format: ReplyFormat,
        (root, search): (&Path, Option<&Redactor>),
    ) -> Result<Vec<PresentFile>, Error> {
        let is_own = |path: &str| own.iter().any(|file| file.path == path);
        changed.retain(|path| !is_own(path));
        let (mut now, _) = code_base::read(root, &changed, true)?;
        let finds =
            |file: &Rolled, search| !credentials::find("", &file.content, search).is_empty();
        now.retain(|file| !search.is_some_and(|search| finds(file, search)));
        let rolled = |file: &PresentFile| Some(Rolled::of(file.path.clone(), file.now.clone()?));
        now.extend(own.iter().filter_map(rolled));
        let paths = own.iter().map(|file| file.path.clone());
        let mut gone: BTreeSet<String> = changed.into_iter().chain(paths).collect();
        for file in now {
            gone.remove(&file.path);
            let known = self.at(&file.path).map(|at| &mut self.files[at]);
            if let Some(known) = known.filter(|known| known.content != file.content) {
                let old = mem::replace(known, file);
                self.before.entry(old.path).or_insert(old.content);
            }
        }
        self.files.retain(|file| !gone.contains(&file.path));
        let whole = self.first.whole.iter().chain(&self.needed).cloned();
        self.sight.whole = whole.filter(|path| self.at(path).is_some()).collect();
        self.sight.parts.clone_from(&self.first.parts);
        let others: Vec<_> = self
            .before
            .keys()
            .filter(|path| {
                let is_seen =
                    self.sight.whole.contains(*path) || self.sight.parts.contains_key(*path);
                is_seen && own.iter().all(|file| file.path != **path)
            })
            .filter_map(|path| {
                let now = Some(self.files[self.at(path)?].content.clone());
                Some((PresentFile::of(path.clone(), None, now), false))
            })
            .collect();
        let all = own.into_iter().map(|file| (file, true)).chain(others);
        Ok(all
            .filter_map(|(file, is_own)| self.seen(file, is_own, format))
            .collect())
    }

    /// Records the part of a file that a repair shows; the file was written by the run itself or only changed by its
    /// build. Returns the file if anything is shown.
    fn seen(
        &mut self,
        mut file: PresentFile,
        is_own: bool,
        format: ReplyFormat,
    ) -> Option<PresentFile> {
        let before = self.before.get(&file.path);
        if before.is_some() {
            file = PresentFile::of(file.path, before.map(String::as_str), file.now);
        }
        if self.sight.whole.contains(&file.path) {
            file.lines = file.lines.filter(|_| format == ReplyFormat::Edits);
            return Some(file);
        }
        let now = file.now.as_deref().unwrap_or_default();
        let parts = self
            .first
            .parts
            .get(&file.path)
            .cloned()
            .unwrap_or_default();
        let (mut all, changed) = match before {
            // Texts that cannot be compared are no longer known.
            Some(before) => moved(&parts, before, now).unwrap_or_default(),
            None => (parts, Lines::new()),
        };
        let is_same = changed.is_empty();
        if !is_own {
            file.lines = file.lines.map(|_| changed);
        }
        match &file.lines {
            None if is_own || !is_same => {
                self.sight.whole.insert(file.path.clone());
            }
            lines => {
                all.extend(lines.iter().flatten().cloned());
                self.sight.parts.insert(file.path.clone(), all);
            }
        }
        (is_own || !is_same).then_some(file)
    }

    /// Returns the files that have changed, with their current texts.
    pub fn changed(&self) -> impl Iterator<Item = (&str, &str)> {
        let files = self.before.keys().filter_map(|path| self.at(path));
        files.map(|at| (&*self.files[at].path, &*self.files[at].content))
    }

    /// Limits a file's text to the parts that the model has seen. `sent` is the text of a file that the run wrote.
    pub fn sent(&self, path: &str, sent: Sent) -> Sent {
        let text = match (sent, self.at(path)) {
            (Sent::Missing, _) => return Sent::Missing,
            // A later change to the file is reported when it would be overwritten.
            (_, Some(at)) => self.files[at].content.clone(),
            (Sent::Text(text), None) => text,
            (_, None) => return Sent::NotShown,
        };
        match self.sight.parts.get(path) {
            _ if self.sight.whole.contains(path) => Sent::Text(text),
            Some(lines) => Sent::Excerpts(text, lines.clone()),
            None => Sent::NotShown,
        }
    }

    /// Returns the index of a file.
    fn at(&self, path: &str) -> Option<usize> {
        self.files
            .binary_search_by(|file| (*file.path).cmp(path))
            .ok()
    }

    /// Returns the number of requests granted so far.
    pub fn rounds(&self) -> u16 {
        self.rounds
    }

    /// Returns the surroundings of the places that a failed build of the tree at `root` names, in files that the model
    /// has not seen in whole.
    pub fn places(&mut self, output: &str, root: &Path) -> String {
        let mut by_name: HashMap<&str, Vec<&Rolled>> = HashMap::new();
        let unseen = self.files.iter();
        for file in unseen.filter(|file| !self.sight.whole.contains(&file.path)) {
            by_name.entry(split(&file.path).1).or_default().push(file);
        }
        let mut lines: BTreeMap<&str, (&Rolled, BTreeSet<usize>)> = BTreeMap::new();
        let found = findings::read(output, root);
        let places = found
            .iter()
            .filter_map(|found| Some((found.file.as_deref()?, found.line?)));
        // Problems come before anything else that is named, such as stack frames.
        let others = PLACE.captures_iter(output).filter_map(|found| {
            let (_, [named, line]) = found.extract();
            Some((named, line.parse().ok().filter(|line| *line > 0)?))
        });
        for (named, line) in places.chain(others) {
            let path = Path::new(named);
            let below = path.strip_prefix(root).unwrap_or(path);
            let named = below.strip_prefix(".").unwrap_or(below);
            let name = named.file_name().and_then(|name| name.to_str());
            let namesakes = name.and_then(|name| by_name.get(name));
            // Some tools name a file by its path below its package.
            let mut files: Vec<_> = namesakes
                .into_iter()
                .flatten()
                .filter(|file| Path::new(&file.path).ends_with(named))
                .collect();
            files.sort_by_key(|file| file.path.len());
            if let [file, others @ ..] = &*files
                && (others.is_empty() || Path::new(&file.path) == named)
            {
                let (_, lines) = lines.entry(&file.path).or_insert((file, BTreeSet::new()));
                lines.insert(line - 1);
            }
            if lines.values().map(|(_, lines)| lines.len()).sum::<usize>() == PLACES {
                break;
            }
        }
        let mut text = String::new();
        for (file, lines) in lines.into_values() {
            let count = file.content.lines().count();
            let near = lines
                .iter()
                .filter(|line| **line < count)
                .flat_map(|line| line.saturating_sub(AROUND)..(line + AROUND).min(count));
            let around = ranges(near.collect::<BTreeSet<usize>>());
            // The output may refer to lines that the file no longer has.
            if !around.is_empty() {
                text.push_str(&part(file, &around));
                let parts = self.sight.parts.entry(file.path.clone());
                parts.or_default().extend(around);
            }
        }
        text
    }
}

impl SeenCode {
    /// Reads the record of the code that the run in `folder` showed first; `None` if it had no limit.
    pub fn of_run(folder: &Path) -> Option<Self> {
        logged::json(folder, SHOWN)
    }

    fn of(code: &CodeContext, tokens: u64, exclude: &[PathBuf]) -> Self {
        let mut sight = Self {
            tokens,
            exclude: exclude.to_vec(),
            ..Self::default()
        };
        for shown in &code.shown {
            let file = &code.files[shown.index];
            sight.digests.extend([file.digest()]);
            match &shown.lines {
                Some(lines) => drop(sight.parts.insert(file.path.clone(), lines.clone())),
                None => drop(sight.whole.insert(file.path.clone())),
            }
        }
        sight
    }
}

/// Returns a file's excerpts, below a header that says which lines they are.
fn part(file: &Rolled, lines: &Lines) -> String {
    let shown = lines
        .iter()
        .map(|range| format!("{}-{}", range.start + 1, range.end))
        .collect::<Vec<_>>()
        .join(", ");
    let count = file.content.lines().count();
    let title = format!("{} (lines {shown} of {count})", file.path);
    header(&title) + &numbered(&file.content, lines)
}

/// Returns the query's words that may be paths, without surrounding punctuation. A word without a dot or slash counts
/// only if it begins with `@`.
fn words(query: &str) -> BTreeSet<&str> {
    let around = |c: char| c.is_ascii_punctuation() && !matches!(c, '.' | '/' | '_' | '-' | '@');
    let words = query.split_whitespace().filter_map(|word| {
        let word = word.trim_matches(around).trim_end_matches(['.', '/']);
        let rest = word.trim_start_matches('@').trim_start_matches("./");
        // A line number may follow.
        let (name, _) = rest.split_once(':').unwrap_or((rest, ""));
        let path = name.trim_end_matches(around);
        (path.len() < word.len() && word.starts_with('@') || path.contains(['.', '/']))
            .then_some(path)
    });
    words.collect()
}

#[cfg(test)]
#[expect(
    clippy::single_range_in_vec_init,
    reason = "one range of lines is what is expected"
)]
mod tests;
