//! The screen, as the engine sees it: what happens is shown there, and the user answers there.
//!
//! Touches nothing but the two channels. Guarantees that nothing waits for the screen but where the user is asked.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::Receiver;

use crate::agent::AgentError;
use crate::model::Purpose;
use crate::record::event::{Event, Reporter};
use crate::record::question::Question;
use crate::record::question::Verdict;
use crate::secret::Redactor;
use crate::sys::error::Error;
use crate::sys::interrupt::{Interrupted, Signal};
use crate::ui::tui::channel::ScreenSender;
use crate::ui::tui::{Connection, FromScreen, Menu, Status, Submission, ToScreen};

/// About so many characters are a token.
const TOKEN: u64 = 4;

/// By how many tokens a reply grows before the status bar says so.
const SEEN_TO_GROW: u64 = 50;

/// The screen's ends of both channels.
pub struct Screen {
    /// Where what happens is shown.
    sender: ScreenSender,
    /// What the user does there.
    receiver: Receiver<FromScreen>,
    /// What the status bar shows.
    status: RefCell<Status>,
    /// Whether the model is asked for the conversation itself, and not for a part that another agent works on.
    is_own_call: Cell<bool>,
    /// What has come of the reply that is under way, thoughts left out.
    begun: RefCell<String>,
    /// How many tokens of it the status bar counts.
    came: Cell<u64>,
    /// Whether the user wants to leave.
    has_left: Cell<bool>,
    /// Knows the keys.
    redactor: RefCell<Redactor>,
}

impl Screen {
    /// The screen behind these channels.
    pub fn new(sender: ScreenSender, receiver: Receiver<FromScreen>) -> Self {
        Self {
            sender,
            receiver,
            status: RefCell::default(),
            is_own_call: Cell::new(true),
            begun: RefCell::default(),
            came: Cell::default(),
            has_left: Cell::default(),
            redactor: RefCell::default(),
        }
    }

    /// What has come of a reply that did not come to its end.
    pub fn take_begun(&self) -> String {
        self.redactor.borrow().text(&self.begun.take()).into_owned()
    }

    /// From now on, these keys are not shown.
    pub fn redact_with(&self, redactor: &Redactor) {
        self.redactor.replace(redactor.clone());
    }

    /// Tells the screen something.
    pub fn tell(&self, told: ToScreen) {
        self.sender.send(told);
    }

    /// The program's own words, Markdown.
    pub fn say(&self, words: impl Into<String>) {
        self.tell(ToScreen::Said(words.into()));
    }

    /// What the user does next; `None`: they leave, or the screen is gone.
    pub fn next(&self) -> Option<Submission> {
        while !self.has_left.get() {
            match self.receiver.recv() {
                Ok(FromScreen::Line(submission)) => return Some(submission),
                Ok(FromScreen::Leave) | Err(_) => return None,
                // The question that it answers is gone.
                Ok(FromScreen::Answered(_) | FromScreen::Chosen(_) | FromScreen::Typed(_)) => {}
            }
        }
        None
    }

    /// Has the user choose one; `None`: none.
    ///
    /// # Errors
    /// When they leave instead.
    pub fn choose(&self, menu: Menu) -> Result<Option<usize>, Error> {
        self.tell(ToScreen::Choose(menu));
        self.answer(|answer| match answer {
            FromScreen::Chosen(chosen) => Some(chosen),
            _ => None,
        })
    }

    /// Has the user type a line; `None`: nothing.
    ///
    /// # Errors
    /// When they leave instead.
    pub fn typed(&self, prompt: &str, is_secret: bool) -> Result<Option<String>, Error> {
        self.tell(ToScreen::Type {
            prompt: prompt.to_owned(),
            is_secret,
        });
        self.answer(|answer| match answer {
            FromScreen::Typed(typed) => Some(typed),
            _ => None,
        })
    }

    /// Asks whether something is done.
    ///
    /// # Errors
    /// When the user leaves instead.
    pub fn ask(&self, question: Question, preview: Option<String>) -> Result<Verdict, Error> {
        let redactor = self.redactor.borrow();
        let redacted = |text: &str| redactor.text(text).into_owned();
        let question = Question {
            sentence: redacted(&question.sentence),
            subject: redacted(&question.subject),
            ..question
        };
        self.tell(ToScreen::Ask { question, preview });
        self.answer(|answer| match answer {
            FromScreen::Answered(verdict) => Some(verdict),
            _ => None,
        })
    }

    /// Changes what the status bar shows.
    pub fn status(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.status.borrow_mut();
        change(&mut status);
        self.tell(ToScreen::Status(status.clone()));
    }

    fn answer<T>(&self, take: impl Fn(FromScreen) -> Option<T>) -> Result<T, Error> {
        loop {
            match self.receiver.recv() {
                Ok(FromScreen::Leave) | Err(_) => {
                    self.has_left.set(true);
                    let signal = Signal::Int;
                    return Err(AgentError::Interrupted(Interrupted { signal }).into());
                }
                Ok(answer) => {
                    if let Some(taken) = take(answer) {
                        return Ok(taken);
                    }
                }
            }
        }
    }

    /// What an event means for the status bar.
    fn note(&self, event: &Event) {
        match event {
            Event::Asking { step, .. } => {
                self.is_own_call.set(step.purpose == Purpose::STEP);
                self.begun.take();
                self.came.take();
            }
            _ if !self.is_own_call.get() => {}
            Event::Receiving {
                piece,
                is_thought,
                output_tokens,
                thought_tokens,
                ..
            } => {
                if !is_thought {
                    self.begun.borrow_mut().push_str(piece);
                }
                let came = output_tokens + thought_tokens;
                // Not for each piece: they are many.
                if came >= self.came.get() + SEEN_TO_GROW {
                    let more = came - self.came.replace(came);
                    self.status(|status| status.used = status.used.saturating_add(more));
                }
            }
            Event::Answered { usage, .. } => {
                self.begun.take();
                self.came.take();
                self.status(|status| {
                    if let Some(usage) = usage {
                        status.used = usage.input_tokens.saturating_add(usage.answered());
                    }
                    status.connection = Connection::Connected;
                });
            }
            Event::ToolResult { text, .. } => self.status(|status| {
                let tokens = (text.chars().count() as u64).div_ceil(TOKEN);
                status.used = status.used.saturating_add(tokens);
            }),
            Event::Retrying { .. } => {
                self.begun.take();
                let came = self.came.take();
                self.status(|status| {
                    status.used = status.used.saturating_sub(came);
                    status.connection = Connection::Disconnected;
                });
            }
            Event::Compressed { tokens_after, .. } => {
                self.status(|status| status.used = *tokens_after);
            }
            _ => {}
        }
    }
}

impl Reporter for Screen {
    fn event(&self, event: &Event) {
        let redacted = event.redacted(&self.redactor.borrow());
        self.tell(ToScreen::Event(redacted));
        self.note(event);
    }

    fn is_live(&self) -> bool {
        true
    }
}
