//! The input: typed text, pastes and attachments, and their display.
//!
//! Reads pictures named in the text, and through its parts the project's paths and the history. Guarantees that
//! a paste is never sent by itself, that it is sent in full however it is displayed, and that nothing in the
//! text moves the cursor or controls the terminal. The arguments of `/login` are not displayed.

mod view;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::channel::Wake;
use super::completion::{
    Completing, Completion, ProjectPaths, as_command, completing, matching_commands, matching_paths,
};
use super::history::{HistorySearch, Recall, is_secret};
use super::keys::{is_letter, moved};
use super::{CommandHint, Submission};
use crate::model::message::Image;
use crate::sys::text::with_unix_line_ends;
use crate::ui::history::History;
use crate::ui::tui::attachment::{Attachment, image_label, pasted_image, with_images};
use crate::ui::tui::buffer::{PLACEHOLDERS, TextBuffer, TextRow};

/// The number of lines above which a paste is shown as a placeholder.
const MOST_PASTED_LINES: usize = 10;
/// The number of characters above which a paste is shown as a placeholder.
const MOST_PASTED_LETTERS: usize = 1000;
/// The answer to Ctrl-V if the agent takes no pictures.
const TEXT_ONLY: &str = "this agent takes no pictures";

/// Options of the input.
#[derive(Debug, Default)]
pub struct ComposerOptions {
    /// The project's root, below which paths are completed.
    pub root: PathBuf,
    /// The history of submissions; `None` to keep none.
    pub history: Option<History>,
    /// The handle that wakes the screen when paths have been listed.
    pub wake: Option<Wake>,
    /// True if the agent takes no pictures: a path then stays in the text.
    pub is_text_only: bool,
}

/// The result of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum ComposerAction {
    /// Nothing has changed.
    None,
    /// The display has changed.
    Changed,
    /// A submission to send; the input is now empty.
    Send(Submission),
    /// A request to open the text in the user's editor.
    OpenEditor,
    /// A request for the clipboard's picture, which goes to [`Composer::attach_image`].
    FetchImage,
    /// A request to exit: Ctrl-D was pressed in the empty input.
    Leave,
    /// The action failed for this reason; the input is unchanged.
    Refused(String),
    /// The key has no meaning here.
    Unhandled,
}

/// The input.
#[derive(Debug, Default)]
pub struct Composer {
    buffer: TextBuffer,
    attachments: Vec<Attachment>,
    recall: Recall,
    /// Drafts sent or typed in this session, as shown in the input, by their full text.
    drafts: HashMap<String, (String, Vec<Attachment>)>,
    search: Option<HistorySearch>,
    /// The draft set aside while a line is asked for.
    aside: Option<(TextBuffer, Vec<Attachment>)>,
    /// True if only the length of the text is shown.
    is_masked: bool,
    /// See [`ComposerOptions::is_text_only`].
    is_text_only: bool,
    commands: Vec<CommandHint>,
    paths: ProjectPaths,
    /// The index of the selected candidate.
    marked: usize,
    /// True if the list of candidates is closed until the word changes.
    is_closed: bool,
    /// The width of the text when it was last drawn; `None` before that.
    columns: Cell<Option<usize>>,
    /// Cached candidates, and the text that they complete; see [`Self::candidates`].
    candidates: RefCell<Option<Candidates>>,
}

/// Completions of a word.
#[derive(Debug, Clone)]
struct Candidates {
    /// The text before the cursor, and the number of known paths.
    of: (String, usize),
    found: Vec<Completion>,
}

impl Composer {
    /// Creates an empty input.
    pub fn new(options: ComposerOptions) -> Self {
        Self {
            recall: Recall::new(options.history),
            is_text_only: options.is_text_only,
            paths: ProjectPaths::new(options.root, options.wake),
            ..Self::default()
        }
    }

    /// Sets the commands that can be completed.
    pub fn set_commands(&mut self, commands: Vec<CommandHint>) {
        self.commands = commands;
        self.candidates.take();
    }

    /// Returns whether the input is empty.
    pub fn is_empty(&self) -> bool {
        self.buffer.text().is_empty() && self.search.is_none()
    }

    /// Ends a search, or else clears the input, which Up brings back.
    pub fn cancel(&mut self) {
        if self.search.take().is_none() {
            let draft = self.keep_draft();
            self.recall.keep(&draft);
            self.clear();
        }
    }

    /// Clears the input.
    pub fn clear(&mut self) {
        self.search = None;
        self.recall.reset();
        self.attachments.clear();
        self.set("");
    }

    /// Sets the draft aside for a line that is asked for; a secret is masked and stored nowhere.
    pub fn begin_line(&mut self, is_secret: bool) {
        self.search = None;
        self.aside = Some(Default::default());
        self.swap_aside();
        self.is_masked = is_secret;
        self.changed();
    }

    /// Brings back the draft that was set aside, if any.
    pub fn end_line(&mut self) {
        if let Some(draft) = self.aside.take() {
            self.clear();
            (self.buffer, self.attachments) = draft;
            self.is_masked = false;
        }
    }

    /// Inserts a paste into the draft, also while that is set aside.
    pub fn paste_to_draft(&mut self, text: &str) -> ComposerAction {
        self.swap_aside();
        let action = self.paste(text);
        self.swap_aside();
        action
    }

    /// Swaps the draft set aside, if any, and the line asked for.
    fn swap_aside(&mut self) {
        if let Some((buffer, attachments)) = &mut self.aside {
            std::mem::swap(&mut self.buffer, buffer);
            std::mem::swap(&mut self.attachments, attachments);
        }
    }

    /// Replaces the input with this text.
    pub fn set_text(&mut self, text: &str) {
        self.clear();
        self.set(text);
    }

    /// Replaces the input with an earlier submission.
    pub fn take_back(&mut self, submission: Submission) {
        self.clear();
        if submission.images.is_empty() {
            self.look_at(&submission.text);
            return;
        }
        let text = harmless(&submission.text);
        let mut rest = &*text;
        for (image, number) in submission.images.into_iter().zip(1..) {
            if let Some((before, after)) = rest.split_once(&image_label(number)) {
                self.buffer.insert(before);
                self.attach(Attachment::Image(image));
                rest = after;
            }
        }
        self.buffer.insert(rest);
        self.changed();
    }

    /// Returns the full text with pastes inserted, as it would be sent.
    pub fn text(&self) -> String {
        self.with(|attachment| match self.attachments.get(attachment)? {
            Attachment::Paste(text) => Some(text.clone()),
            Attachment::Image(_) => Some(String::new()),
        })
    }

    /// Returns the text for an external editor; `None` if it may contain a key, which must not be written to a
    /// file.
    pub fn editable_text(&self) -> Option<String> {
        (!self.is_secret()).then(|| self.text())
    }

    /// Returns whether the text may contain a key.
    fn is_secret(&self) -> bool {
        self.is_masked || is_secret(self.buffer.text())
    }

    fn set(&mut self, text: &str) {
        self.buffer.set(harmless(text));
        self.changed();
    }

    /// Updates the state after a change to the text.
    fn changed(&mut self) {
        self.marked = 0;
        self.is_closed = false;
        if self.is_secret() {
            self.buffer.forget_killed();
        }
    }

    /// Inserts pasted text without interpreting it.
    pub fn paste(&mut self, text: &str) -> ComposerAction {
        let mut text = harmless(text);
        if self.is_masked {
            text.truncate(text.find('\n').unwrap_or(text.len()));
        }
        if let Some(search) = &mut self.search {
            search
                .wanted
                .push_str(text.lines().next().unwrap_or_default());
            self.look(None);
            return ComposerAction::Changed;
        }
        self.recall.reset();
        let image = |root| pasted_image(&text, root);
        match self.pictures().and_then(image) {
            Some(Ok(image)) => self.attach(Attachment::Image(image)),
            Some(Err(error)) => return ComposerAction::Refused(error.to_string()),
            None => self.insert_whole(text),
        }
        self.changed();
        ComposerAction::Changed
    }

    /// Returns the directory of the pictures that a path may name; `None` if the agent takes none.
    fn pictures(&self) -> Option<&Path> {
        (!self.is_text_only).then(|| self.paths.root())
    }

    /// Inserts a text at the cursor, as a single attachment if it is long.
    fn insert_whole(&mut self, text: String) {
        let is_long = text.lines().count() > MOST_PASTED_LINES
            || text.chars().nth(MOST_PASTED_LETTERS).is_some();
        // Keep a key pasted after `/login` recognizable as such.
        if is_long && !self.is_secret() {
            self.attach(Attachment::Paste(text));
        } else {
            self.buffer.insert(&text);
        }
    }

    /// Inserts a picture at the cursor.
    pub fn attach_image(&mut self, image: Image) {
        self.recall.reset();
        self.attach(Attachment::Image(image));
        self.changed();
    }

    /// Inserts an attachment's placeholder at the cursor.
    fn attach(&mut self, attachment: Attachment) {
        let code =
            PLACEHOLDERS.start + u32::try_from(self.attachments.len()).unwrap_or(u32::MAX / 2);
        // When the plane is full, after about thirty thousand pastes, insert the text itself.
        let placeholder = char::from_u32(code).filter(|_| PLACEHOLDERS.contains(&code));
        match (placeholder, attachment) {
            (Some(placeholder), attachment) => {
                self.attachments.push(attachment);
                self.buffer.insert(&placeholder.to_string());
            }
            (None, Attachment::Paste(text)) => self.buffer.insert(&text),
            (None, Attachment::Image(_)) => {}
        }
    }

    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> ComposerAction {
        if self.search.is_some() {
            return self.search_key(key);
        }
        if let Some(action) = self.candidate_key(key) {
            return action;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let shift = key.modifiers.contains(KeyModifiers::SHIFT);
        match key.code {
            KeyCode::Enter if alt || shift || control => self.insert("\n"),
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Enter => self.enter(),
            KeyCode::Up => self.row(true),
            KeyCode::Down => self.row(false),
            KeyCode::Char('p') if control => self.row(true),
            KeyCode::Char('n') if control => self.row(false),
            KeyCode::Char('r') if control && !self.is_masked => self.begin_search(),
            KeyCode::Char('g') if control => ComposerAction::OpenEditor,
            KeyCode::Char('v') if control && self.is_text_only => {
                ComposerAction::Refused(TEXT_ONLY.to_owned())
            }
            KeyCode::Char('v') if control => ComposerAction::FetchImage,
            KeyCode::Char('d') if control && self.buffer.text().is_empty() => ComposerAction::Leave,
            // The text cannot be scrolled, so leave these keys to the transcript.
            KeyCode::Home | KeyCode::End if control || self.buffer.text().is_empty() => {
                ComposerAction::Unhandled
            }
            KeyCode::Char(c) if is_letter(key) => self.insert(c.encode_utf8(&mut [0; 4])),
            _ => self.edit(key),
        }
    }

    fn insert(&mut self, text: &str) -> ComposerAction {
        self.recall.reset();
        self.buffer.insert(&harmless(text));
        self.changed();
        if text == "@" && matches!(completing(self.before()), Some(Completing::Path(..))) {
            self.paths.refresh();
        }
        ComposerAction::Changed
    }

    fn edit(&mut self, key: KeyEvent) -> ComposerAction {
        let before = self.buffer.text().len();
        match self.buffer.key(key) {
            None => return ComposerAction::Unhandled,
            Some(false) => return ComposerAction::None,
            Some(true) => {}
        }
        if self.buffer.text().len() != before {
            self.recall.reset();
        }
        self.changed();
        ComposerAction::Changed
    }

    /// Returns the text before the cursor.
    fn before(&self) -> &str {
        &self.buffer.text()[..self.buffer.cursor()]
    }

    /// Handles Enter, which sends the text, or starts a new line after a `\`.
    fn enter(&mut self) -> ComposerAction {
        if let Some(start) = self.before().strip_suffix('\\').map(str::len) {
            self.buffer.replace(start..start + 1, "\n");
            self.changed();
            return ComposerAction::Changed;
        }
        if self.buffer.text().trim().is_empty() {
            return ComposerAction::None;
        }
        match self.submission() {
            Ok(submission) => {
                let whole = self.keep_draft();
                if !self.is_masked {
                    self.recall.add(&whole);
                }
                self.clear();
                ComposerAction::Send(submission)
            }
            Err(reason) => ComposerAction::Refused(reason),
        }
    }

    /// Returns the submission, with pastes inserted and pictures attached.
    fn submission(&self) -> Result<Submission, String> {
        // Shell commands, keys and requested lines are sent unchanged.
        let text = self.buffer.text();
        if text.starts_with('!') || self.is_secret() || self.aside.is_some() {
            return Ok(self.text().into());
        }
        let mut submission = with_images(text, &self.attachments, self.pictures())
            .map_err(|error| error.to_string())?;
        let labels = self.labels();
        let shown = self.with(|attachment| labels.get(attachment).cloned());
        submission.shown = Some(shown).filter(|shown| *shown != submission.text);
        Ok(submission)
    }

    /// Returns the text with each placeholder replaced.
    fn with(&self, of: impl Fn(usize) -> Option<String>) -> String {
        let pieces = self.buffer.text().chars().map(|c| {
            let attachment = crate::ui::tui::buffer::placeholder(c.encode_utf8(&mut [0; 4]));
            attachment.and_then(&of).unwrap_or_else(|| c.to_string())
        });
        pieces.collect()
    }

    /// Stores the draft in the input under its full text, which it returns.
    fn keep_draft(&mut self) -> String {
        let whole = self.text();
        if !self.is_secret() {
            let draft = (self.buffer.text().to_owned(), self.attachments.clone());
            self.drafts.insert(whole.clone(), draft);
        }
        whole
    }

    /// Replaces the input with an earlier text: as a draft of this session if there is one, otherwise as plain
    /// text, or as a single attachment if it is long.
    fn look_at(&mut self, whole: &str) {
        self.buffer.set(String::new());
        if let Some((text, attachments)) = self.drafts.get(whole).cloned() {
            self.attachments = attachments;
            self.buffer.set(text);
        } else {
            self.attachments.clear();
            self.insert_whole(harmless(whole));
        }
        self.changed();
        // Do not let the next Enter complete a recalled text.
        self.is_closed = true;
    }

    /// Handles Up and Down: moves by a row or, at the edge of the text, through the history.
    fn row(&mut self, is_up: bool) -> ComposerAction {
        let labels = self.labels();
        let rows = self.rows(self.columns.get().unwrap_or(usize::MAX), &labels);
        if self.buffer.go_row(&rows, is_up, &labels) {
            return ComposerAction::Changed;
        }
        if self.is_masked {
            return ComposerAction::Unhandled;
        }
        let text = self.keep_draft();
        let entry = if is_up {
            self.recall.older(&text)
        } else {
            self.recall.newer()
        };
        let Some(entry) = entry.map(str::to_owned) else {
            return ComposerAction::Unhandled;
        };
        self.look_at(&entry);
        ComposerAction::Changed
    }

    fn rows(&self, columns: usize, labels: &[String]) -> Vec<TextRow> {
        crate::ui::tui::buffer::rows(self.buffer.text(), columns, labels)
    }

    fn labels(&self) -> Vec<String> {
        crate::ui::tui::attachment::labels(&self.attachments)
    }
}

/// Completion candidates.
impl Composer {
    /// Returns the completions of the word before the cursor; empty while the list is closed.
    fn candidates(&self) -> Vec<Completion> {
        if self.is_closed || self.is_masked || self.search.is_some() {
            return Vec::new();
        }
        let paths = self.paths.listed();
        let of = (self.before().to_owned(), paths.len());
        let mut known = self.candidates.borrow_mut();
        if let Some(known) = known.as_ref().filter(|known| known.of == of) {
            return known.found.clone();
        }
        let found = match completing(&of.0) {
            Some(Completing::Path(_, typed)) => matching_paths(&paths, typed),
            Some(Completing::Command(typed)) => matching_commands(&self.commands, typed),
            None => Vec::new(),
        };
        known.insert(Candidates { of, found }).found.clone()
    }

    /// Applies a key to the candidates; `None` if there are none, or they do not use the key.
    fn candidate_key(&mut self, key: KeyEvent) -> Option<ComposerAction> {
        if is_letter(key) || key.code == KeyCode::Backspace {
            return None;
        }
        let candidates = self.candidates();
        let marked = candidates.get(self.marked.min(candidates.len().checked_sub(1)?))?;
        if let Some(at) = moved(key, self.marked, candidates.len()) {
            self.marked = at;
            return Some(ComposerAction::Changed);
        }
        match key.code {
            KeyCode::Esc => self.is_closed = true,
            KeyCode::Tab => self.complete(marked),
            KeyCode::Enter if key.modifiers.is_empty() => {
                // A complete name is meant as typed, and so is a bare `@`.
                let (is_whole, is_sent) = match completing(self.before())? {
                    // A quoted path is incomplete without its closing quotation mark.
                    Completing::Path(start, typed) => {
                        let is_open = self.before()[start..].starts_with('"');
                        let (listed, named) = (self.paths.listed(), typed.trim_end_matches('/'));
                        let mut names = listed.iter().map(|path| path.trim_end_matches('/'));
                        let is_named = !is_open && names.any(|name| name == named);
                        (typed.is_empty() || is_named, false)
                    }
                    Completing::Command(typed) => {
                        as_command(&self.commands, typed, &marked.text, self.marked > 0)
                    }
                };
                if !is_whole {
                    self.complete(marked);
                }
                if is_whole || is_sent {
                    return None;
                }
            }
            _ => return None,
        }
        Some(ComposerAction::Changed)
    }

    /// Replaces the typed word with a candidate; after a directory, completion continues.
    fn complete(&mut self, candidate: &Completion) {
        let cursor = self.buffer.cursor();
        let start = match completing(self.before()) {
            Some(Completing::Path(start, _)) => start,
            Some(Completing::Command(_)) => 1,
            None => return,
        };
        self.buffer.replace(start..cursor, &candidate.written());
        self.changed();
    }
}

/// History search.
impl Composer {
    fn begin_search(&mut self) -> ComposerAction {
        self.search = Some(HistorySearch::default());
        ComposerAction::Changed
    }

    /// Searches for the wanted text before the given match, or from the end. Keeps the given match if there is no
    /// earlier one.
    fn look(&mut self, before: Option<usize>) {
        if let Some(search) = &mut self.search {
            search.at = self.recall.find(&search.wanted, before).or(before);
        }
    }

    fn search_key(&mut self, key: KeyEvent) -> ComposerAction {
        let Some(search) = &mut self.search else {
            return ComposerAction::Unhandled;
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('r') if control => {
                let before = search.at;
                self.look(before);
            }
            KeyCode::Esc => self.search = None,
            KeyCode::Char('g') if control => self.search = None,
            KeyCode::Backspace => {
                search.wanted.pop();
                self.look(None);
            }
            KeyCode::Char(c) if is_letter(key) => {
                search.wanted.push(c);
                self.look(None);
            }
            // Any other key accepts the match; Enter does not send it yet.
            _ => {
                let found = search.at.and_then(|at| self.recall.entry(at));
                let found = found.map(str::to_owned);
                self.search = None;
                if let Some(found) = found {
                    self.look_at(&found);
                }
            }
        }
        ComposerAction::Changed
    }
}

/// Replaces placeholder characters in a text, and normalizes its line endings to `\n`.
fn harmless(text: &str) -> String {
    with_unix_line_ends(text).replace(|c: char| PLACEHOLDERS.contains(&u32::from(c)), "\u{fffd}")
}

#[cfg(test)]
mod tests;
