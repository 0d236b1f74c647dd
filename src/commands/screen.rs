//! The agent's side of the screen: sends events to the screen, and receives the user's answers.
//!
//! Starts the screen's thread, and otherwise accesses only the two channels. Guarantees that the agent waits for the
//! screen only when it asks the user something.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use uuid::Uuid;

use crate::model::Purpose;
use crate::record::event::{Event, Reporter};
use crate::record::question::{Question, Verdict};
use crate::run::context::{Context, Stdin};
use crate::run::outcome::{Failure, Outcome};
use crate::secret::Redactor;
use crate::sys::exit::Exit;
use crate::sys::interrupt::{Interrupt, Interrupted, Signal};
use crate::sys::parallel::joined;
use crate::ui::history::{self, History};
use crate::ui::input::{self, InputError, LineReader, Lines, OpenUser, Typed};
use crate::ui::pager::Pager;
use crate::ui::tui::channel::{ScreenSender, channel};
use crate::ui::tui::clipboard::Clipboard;
use crate::ui::tui::terminal::{self, ScreenOptions};
use crate::ui::tui::{CommandHint, Connection, FromScreen, Menu, Status, Submission, ToScreen};
use crate::ui::{editor, is_dumb};

/// Maximum number of lines of the last answer left on the normal screen on exit.
const LINES_AT_END: usize = 24;

/// Approximate number of characters per token.
const TOKEN: u64 = 4;

/// Number of tokens by which a reply must grow before the status bar is updated.
const SEEN_TO_GROW: u64 = 50;

/// Returns the usual settings of a screen. `history` is the file with the input history, in the agent's home.
pub fn screen_options<'c>(context: &Context<'c>, history: PathBuf) -> ScreenOptions<'c> {
    let (environment, root) = (context.environment, context.project.root());
    let no_color = environment.get("NO_COLOR");
    ScreenOptions {
        first: None,
        clock: context.clock,
        no_color: no_color.is_some_and(|value| !value.is_empty()),
        mode: None,
        mouse: true,
        notify: true,
        root: root.to_owned(),
        draft: history.with_file_name(format!("draft-{}.md", Uuid::new_v4())),
        history: Some(History::of(history, context.redactor)),
        editor: editor::chosen(environment).ok().map(str::to_owned),
        pager: Pager::of_screen(environment, root),
        clipboard: Clipboard::of(environment, root),
    }
}

/// Shows the screen on a separate thread while `talk` runs. The text that `talk` writes to its second argument is
/// printed to the terminal on exit, however the run ends. The engine stays on this thread because commands live only as
/// long as the thread that started them.
///
/// # Errors
/// Returns the error of `talk`, or an error if the terminal fails or a signal arrives.
pub fn at_screen<T>(
    context: &Context<'_>,
    options: ScreenOptions<'_>,
    talk: impl FnOnce(&Rc<Screen>, &mut String) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (sender, receiver) = channel().map_err(InputError::from)?;
    let (answers, actions) = mpsc::channel();
    thread::scope(|scope| {
        let interrupt = context.interrupt.clone();
        let drawn = thread::Builder::new()
            .name("screen".to_owned())
            .spawn_scoped(scope, || {
                terminal::run(options, receiver, answers, interrupt)
            })
            .map_err(InputError::from)?;
        let screen = Rc::new(Screen {
            sender,
            receiver: actions,
            interrupt: context.interrupt.clone(),
            status: RefCell::default(),
            is_own_call: Cell::new(true),
            begun: RefCell::default(),
            came: Cell::default(),
            has_left: Cell::default(),
            last_words: RefCell::default(),
            redactor: RefCell::new(context.redactor.clone()),
        });
        let mut farewell = String::new();
        let talked = talk(&screen, &mut farewell);
        screen.post(ToScreen::End(farewell));
        let is_interrupted =
            |failure: &Failure| matches!(failure.error.exit(), Exit::Interrupted(_));
        match joined(drawn).map_err(InputError::from) {
            // The engine's error has the run's log.
            Err(InputError::Interrupted(_)) if talked.as_ref().is_err_and(is_interrupted) => {}
            // A failing screen also stops the engine; the screen's error says more than the engine's.
            drawn => drawn?,
        }
        talked
    })
}

/// Runs `work` with the user at the full screen if the terminal supports it and `home`, which contains the screen's
/// history, is given; otherwise, in line mode.
///
/// # Errors
/// Returns the error of `work`, or an error if the terminal fails.
pub fn with_user(
    context: &Context<'_>,
    stdin: Stdin,
    home: Option<&Path>,
    work: impl FnOnce(&Context<'_>, OpenUser<'_>) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let has_screen = stdin.is_terminal && stdin.is_seen && !is_dumb(context.environment);
    let Some(home) = home.filter(|_| has_screen) else {
        return work(context, &|| {
            let interrupt = context.interrupt.clone();
            let reader = input::stdin(interrupt.clone())?;
            let person = stdin.is_terminal.then_some(interrupt);
            Ok(Box::new(Lines::new(reader, person)))
        });
    };
    let options = screen_options(context, home.join(history::FILE));
    at_screen(context, options, |screen, farewell| {
        let context = &context.with_reporter(&**screen);
        let open =
            || -> Result<Box<dyn LineReader>, InputError> { Ok(Box::new(Rc::clone(screen))) };
        let done = work(context, &open);
        *farewell = screen.last_words();
        done
    })
}

/// Reads lines from the user at the screen, for agents that ask for one line at a time.
impl LineReader for Rc<Screen> {
    fn line(&mut self, prompt: &str) -> Result<Typed, InputError> {
        let prompt = prompt.trim_end_matches("> ");
        let typed = self.answered(Screen::typed(self, prompt, false));
        Ok(match typed {
            Ok(line) => line.map_or(Typed::End, Typed::Line),
            Err(InputError::Interrupted(Interrupted::CTRL_C)) => Typed::Interrupted,
            Err(error) => return Err(error),
        })
    }

    fn request(&mut self, _prompt: &str) -> Result<Typed<Submission>, InputError> {
        let _ = self.interrupt.take();
        self.post(ToScreen::Settled);
        let request = self.next();
        let _ = self.interrupt.take();
        self.interrupt.check()?;
        Ok(request.map_or(Typed::End, Typed::Line))
    }

    fn confirm(
        &mut self,
        question: &Question,
        preview: Option<&str>,
    ) -> Option<Result<Verdict, InputError>> {
        let redactor = self.redactor.borrow();
        let redacted = |text: &str| redactor.text(text).into_owned();
        let question = Question {
            sentence: redacted(&question.sentence),
            subject: redacted(&question.subject),
            cause: question.cause.iter().map(|part| redacted(part)).collect(),
            ..question.clone()
        };
        let preview = preview.map(str::to_owned);
        let asked = ToScreen::Ask { question, preview };
        let verdict = self.answer(asked, FromScreen::try_as_answered);
        Some(verdict.map_err(InputError::from))
    }

    fn send(&mut self, request: Submission) {
        self.post(ToScreen::SendAgain(request));
    }

    fn secret(&mut self, prompt: &str) -> Result<Typed, InputError> {
        let typed = Screen::typed(self, prompt, true)?;
        Ok(typed.map_or(Typed::End, Typed::Line))
    }

    fn choose(&mut self, menu: Menu) -> Option<Result<Option<usize>, InputError>> {
        Some(self.answered(Screen::choose(self, menu)))
    }

    fn show_status(&mut self, status: Status, commands: Vec<CommandHint>) {
        self.status(|now| *now = status);
        self.post(ToScreen::Commands(commands));
    }

    fn show(&mut self, message: ToScreen) -> bool {
        self.post(message);
        true
    }

    fn is_screen(&self) -> bool {
        true
    }
}

/// The screen's ends of both channels.
pub struct Screen {
    /// Sends events to the screen.
    sender: ScreenSender,
    /// Receives the user's actions.
    receiver: Receiver<FromScreen>,
    /// Receives the user's requests to stop.
    interrupt: Interrupt,
    /// The contents of the status bar.
    status: RefCell<Status>,
    /// `true` if the current call belongs to the conversation itself, and not to another agent's part.
    is_own_call: Cell<bool>,
    /// The part of the current reply received so far, without thoughts.
    begun: RefCell<String>,
    /// The number of tokens of the current reply that the status bar already includes.
    came: Cell<u64>,
    /// `true` if the user wants to leave.
    has_left: Cell<bool>,
    /// The last answer, printed on exit.
    last_words: RefCell<String>,
    /// Redacts keys.
    redactor: RefCell<Redactor>,
}

impl Screen {
    /// Checks for signals that have arrived since the question.
    fn answered<T>(&self, answer: Result<T, Interrupted>) -> Result<T, InputError> {
        let answer = answer?;
        self.interrupt.check()?;
        Ok(answer)
    }

    /// Takes the part of an unfinished reply received so far, with keys redacted.
    pub fn take_begun(&self) -> String {
        self.redactor.borrow().text(&self.begun.take()).into_owned()
    }

    /// Returns the end of the last answer, for the normal screen.
    pub fn last_words(&self) -> String {
        let words = self.last_words.borrow();
        let lines: Vec<&str> = words.trim_end().lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES_AT_END)..];
        last.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Uses this redactor from now on.
    pub fn redact_with(&self, redactor: &Redactor) {
        self.redactor.replace(redactor.clone());
    }

    /// Sends a message to the screen.
    pub fn post(&self, message: ToScreen) {
        self.sender.send(message);
    }

    /// Returns the user's next submission, or `None` if they leave or the screen is gone.
    fn next(&self) -> Option<Submission> {
        while !self.has_left.get() {
            match self.receiver.recv() {
                Ok(FromScreen::Line(submission)) => return Some(submission),
                Ok(FromScreen::Leave(_)) | Err(_) => return None,
                // The corresponding question is no longer shown.
                Ok(FromScreen::Answered(_) | FromScreen::Chosen(_) | FromScreen::Typed(_)) => {}
            }
        }
        None
    }

    /// Lets the user choose an entry; `None` if they cancel.
    ///
    /// # Errors
    /// Fails if the user leaves instead.
    pub fn choose(&self, menu: Menu) -> Result<Option<usize>, Interrupted> {
        self.answer(ToScreen::Choose(menu), FromScreen::try_as_chosen)
    }

    /// Lets the user type a line; `None` if they cancel.
    ///
    /// # Errors
    /// Fails if the user leaves instead.
    fn typed(&self, prompt: &str, is_secret: bool) -> Result<Option<String>, Interrupted> {
        let prompt = prompt.to_owned();
        let asked = ToScreen::Type { prompt, is_secret };
        self.answer(asked, FromScreen::try_as_typed)
    }

    /// Changes the contents of the status bar.
    pub fn status(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.status.borrow_mut();
        change(&mut status);
        self.post(ToScreen::Status(status.clone()));
    }

    /// Sends a request and waits for the matching answer.
    fn answer<T>(
        &self,
        request: ToScreen,
        take: impl Fn(FromScreen) -> Option<T>,
    ) -> Result<T, Interrupted> {
        self.post(request);
        loop {
            let signal = match self.receiver.recv() {
                Ok(FromScreen::Leave(signal)) => signal,
                Err(_) => Signal::Int,
                Ok(answer) => match take(answer) {
                    Some(taken) => return Ok(taken),
                    None => continue,
                },
            };
            self.has_left.set(true);
            return Err(Interrupted { signal });
        }
    }

    /// Updates the status bar for an event.
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
                // Pieces arrive too often to update the status bar for each of them.
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
            Event::ToolResult { end, .. } => self.status(|status| {
                let tokens = (end.text.chars().count() as u64).div_ceil(TOKEN);
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
        if let Event::Finished { summary, .. } = &redacted {
            self.last_words.replace(summary.clone());
        }
        self.post(ToScreen::Event(redacted));
        self.note(event);
    }

    fn is_live(&self) -> bool {
        true
    }
}
