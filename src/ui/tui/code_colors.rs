//! Highlights code on a separate thread, since loading and matching the grammars takes longer than a frame.
//!
//! Guarantees that lookups never block, and that the cache is bounded.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::ui::syntax::{Highlighter, Pieces};

/// The maximum number of highlighted blocks in the cache.
const KEPT: usize = 64;

/// A block of code, and its highlighting if available.
#[derive(Debug, Clone, PartialEq)]
struct ColoredCode {
    language: String,
    code: String,
    lines: Option<Vec<Pieces>>,
}

/// The channels to and from the worker thread.
struct ColorWorker {
    to: Sender<ColoredCode>,
    from: Receiver<ColoredCode>,
}

/// The cache of highlighted code.
#[derive(Default)]
pub struct CodeColors {
    state: RefCell<ColorState>,
}

#[derive(Default)]
struct ColorState {
    worker: Option<ColorWorker>,
    /// The cached blocks, latest last.
    known: VecDeque<ColoredCode>,
    /// The block being highlighted. There is only one at a time, so that the thread never falls far behind the
    /// screen.
    is_pending: bool,
}

impl CodeColors {
    /// Returns the highlighting of some code as far as it is known; for a growing text, that of its first
    /// lines. Requests whatever is missing.
    pub fn of(&self, language: &str, code: &str) -> Option<Vec<Pieces>> {
        if language.is_empty() {
            return None;
        }
        let state = &mut *self.state.borrow_mut();
        let known = state.known.iter().rev().find(|known| {
            known.language == language && (known.lines.is_none() || code.starts_with(&known.code))
        });
        let is_all = known.is_some_and(|known| known.lines.is_none() || known.code == code);
        let found = match known {
            Some(ColoredCode { lines: None, .. }) => return None,
            Some(known) => known.lines.clone().map(|mut lines| {
                if !is_all {
                    // The last line is incomplete.
                    lines.pop();
                }
                lines
            }),
            None => Some(Vec::new()),
        };
        if !is_all && !state.is_pending {
            state.request(language, code);
        }
        found
    }

    /// Receives finished highlighting. Returns whether there is any, in which case code must be redrawn.
    pub fn poll(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        let worker = state.worker.as_ref();
        let Some(Ok(found)) = worker.map(|worker| worker.from.try_recv()) else {
            return false;
        };
        state.take(found);
        true
    }

    /// Returns whether highlighting is in progress.
    pub fn is_pending(&self) -> bool {
        self.state.borrow().is_pending
    }

    /// Waits for the highlighting in progress.
    #[cfg(test)]
    pub fn wait(&self) {
        let state = &mut *self.state.borrow_mut();
        if state.is_pending
            && let Some(worker) = &state.worker
            && let Ok(found) = worker.from.recv()
        {
            state.take(found);
        }
    }
}

impl ColorState {
    fn request(&mut self, language: &str, code: &str) {
        let worker = self.worker.get_or_insert_with(ColorWorker::start);
        let wanted = ColoredCode {
            language: language.to_owned(),
            code: code.to_owned(),
            lines: None,
        };
        // Without a thread, code has no colours.
        self.is_pending = worker.to.send(wanted).is_ok();
    }

    fn take(&mut self, found: ColoredCode) {
        self.is_pending = false;
        // Earlier versions of the same text are no longer needed.
        let is_older = |known: &ColoredCode| {
            known.language == found.language && found.code.starts_with(&known.code)
        };
        self.known.retain(|known| !is_older(known));
        self.known.push_back(found);
        if self.known.len() > KEPT {
            self.known.pop_front();
        }
    }
}

impl ColorWorker {
    /// Starts the thread, which ends when the channel closes.
    fn start() -> Self {
        let (to, wanted) = channel::<ColoredCode>();
        let (found, from) = channel();
        let work = move || {
            let colors = Highlighter::new(&|| Duration::ZERO);
            for mut code in wanted {
                code.lines = colors.code(&code.language, &code.code);
                if found.send(code).is_err() {
                    return;
                }
            }
        };
        // Without a thread, nothing is highlighted.
        let _ = thread::Builder::new().name("colors".to_owned()).spawn(work);
        Self { to, from }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_later_and_grow_with_the_code() {
        let colors = CodeColors::default();
        assert_eq!(colors.of("", "x"), None);
        assert_eq!(colors.of("rust", "let x;"), Some(Vec::new()));
        colors.wait();
        let first = colors.of("rust", "let x;").unwrap();
        assert_eq!(first[0][0], (3, Some("k")));
        let grown = "let x;\nlet y";
        assert_eq!(
            colors.of("rust", grown),
            Some(Vec::new()),
            "the line goes on"
        );
        colors.wait();
        assert_eq!(colors.of("rust", grown).unwrap().len(), 2);
        assert_eq!(colors.of("rust", &format!("{grown}\n")).unwrap().len(), 1);
        assert_eq!(colors.state.borrow().known.len(), 1);
    }

    #[test]
    fn an_unknown_language_has_no_colors() {
        let colors = CodeColors::default();
        assert_eq!(colors.of("klingon", "x"), Some(Vec::new()));
        colors.wait();
        assert!(!colors.poll());
        assert_eq!(colors.of("klingon", "y"), None);
    }
}
