//! The state of the screen, and how keys and messages change it.
//!
//! Reads no clock and does not touch the terminal: the time is an argument, and actions for the terminal or the
//! engine are returned as [`ScreenEffect`]s. The composer reads pictures and paths, and adds to the history.

mod keys;
mod view;

use std::collections::VecDeque;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent};

use super::composer::Composer;
use super::dialog::Dialog;
use super::history::is_secret;
use super::spinner::{CallTimes, Wait, Waiting};
use super::transcript::Transcript;
use super::{Entry, FromScreen, Status, Submission, ToScreen};
use crate::record::event::Event;
use crate::record::mode::SharedMode;
use crate::record::todos::{Todo, TodoStatus};
use crate::ui::present::{self, present};

/// The time for which a hint is shown.
const HINT: Duration = Duration::from_secs(4);
/// The time within which a second Escape must follow the first.
const ARMED: Duration = Duration::from_secs(2);
/// The time that must pass after a letter, without another key, before it answers a question.
const HELD: Duration = Duration::from_millis(200);
/// The hint shown while a stop is in progress.
const STOPPING: &str = "Stopping...";
/// The interval between checks for finished syntax highlighting.
const COLORS: Duration = Duration::from_millis(20);

/// An effect that the terminal's loop carries out.
#[derive(Debug, Clone, PartialEq)]
pub enum ScreenEffect {
    /// Sends this message to the engine.
    Send(FromScreen),
    /// Stops the engine's work by raising the interrupt.
    Stop,
    /// Copies this text to the terminal's clipboard.
    Copy(String),
    /// Shows this text in the user's pager.
    Page(String),
    /// Opens this text in the user's editor; the result goes to [`App::edited`].
    Editor(String),
    /// Fetches the clipboard's picture; the result goes to [`App::attach_image`].
    FetchImage,
    /// Restores the terminal, prints this farewell, and closes the screen.
    Leave(String),
    /// Redraws the whole screen.
    Redraw,
}

/// The state of the engine as known to the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EngineState {
    /// Setup is in progress: submissions wait, and there is nothing to stop.
    #[default]
    SettingUp,
    /// The engine waits for a submission.
    Idle,
    /// The engine works on a submission.
    Working,
}

/// The state of the screen.
#[derive(Default)]
pub struct App {
    /// True if no colours are shown.
    pub is_plain: bool,
    /// The mode, if the agent has modes and streams prose; `None` for agents with structured replies, for which
    /// only the steps are shown.
    mode: Option<SharedMode>,
    composer: Composer,
    dialog: Option<Dialog>,
    transcript: Transcript,
    status: Status,
    todos: Vec<Todo>,
    /// The current wait, if any.
    wait: Option<Wait>,
    engine: EngineState,
    /// Submissions to send when the engine is idle.
    queue: VecDeque<Submission>,
    /// While a stop is in progress: the number of submissions queued when it was requested. Afterwards, these wait
    /// until the user sends them, or sends another one.
    stopping: Option<usize>,
    call: CallProgress,
    times: CallTimes,
    /// The time until which a second Escape stops the work.
    armed: Option<Duration>,
    /// The time until which a second Ctrl-C exits.
    leaving: Option<Duration>,
    /// A letter that answers the question at this time unless another key follows.
    held: Option<(KeyEvent, Duration)>,
    /// A temporary hint, and the time at which it expires.
    hint: Option<(String, Duration)>,
    /// The time of the last update.
    now: Duration,
    /// The last animation frame reported.
    frame: Option<(usize, u64)>,
    is_changed: bool,
}

/// The progress of the latest call to the model.
#[derive(Debug, Default)]
struct CallProgress {
    /// The time at which it began.
    since: Duration,
    /// The size of its prompt, in tokens.
    tokens: u64,
    /// The size of its answer so far, in bytes.
    bytes: u64,
}

impl App {
    /// Creates an empty screen. Submissions wait until the engine reports that it is ready:
    /// [`ToScreen::Settled`].
    pub fn new(mode: Option<SharedMode>, composer: Composer) -> Self {
        Self {
            transcript: Transcript::new(mode.is_none()),
            mode,
            composer,
            is_changed: true,
            ..Self::default()
        }
    }

    /// Queues a submission to send when the engine is ready, as if it had been typed.
    pub fn send_first(&mut self, submission: Submission) {
        self.queue.push_back(submission);
    }

    /// Handles a message from the engine.
    pub fn handle(&mut self, message: ToScreen, now: Duration) -> Vec<ScreenEffect> {
        self.now = now;
        self.is_changed = true;
        match message {
            ToScreen::Event(event) => self.event(event),
            ToScreen::Transcript(entries) => self.transcript.replace(entries),
            ToScreen::Said(text) => self.transcript.add(Entry::Agent(text)),
            ToScreen::Status(status) => self.status = status,
            ToScreen::Todos(todos) => self.todos = todos,
            ToScreen::Ask { question, preview } => {
                let is_agents = question.may_redirect;
                self.transcript.asked();
                let mut dialog = Dialog::question(question, preview.as_deref());
                if self.stopping.is_some() && is_agents {
                    // The agent waits for this question but is to stop, so close it as the user would.
                    let closed = dialog.key(KeyEvent::from(KeyCode::Esc));
                    return closed.map(ScreenEffect::Send).into_iter().collect();
                }
                self.ask(dialog);
            }
            ToScreen::Choose(menu) => self.ask(Dialog::menu(menu)),
            ToScreen::Type { prompt, is_secret } => {
                self.ask(Dialog::Line(prompt, is_secret));
                self.composer.begin_line(is_secret);
            }
            ToScreen::Commands(commands) => self.composer.set_commands(commands),
            ToScreen::SendAgain(submission) => self.queue.push_front(submission),
            ToScreen::Copy(text) => {
                self.say("Copied");
                return vec![ScreenEffect::Copy(text)];
            }
            ToScreen::Page(text) => return vec![ScreenEffect::Page(text)],
            ToScreen::SettingUp => (self.engine, self.armed) = (EngineState::SettingUp, None),
            ToScreen::Settled => return self.settled(),
            ToScreen::End(farewell) => return vec![ScreenEffect::Leave(farewell)],
        }
        Vec::new()
    }

    fn ask(&mut self, dialog: Dialog) {
        self.composer.end_line();
        (self.dialog, self.held) = (Some(dialog), None);
    }

    /// Ends the work on the last submission and sends the next one in the queue, unless the user has stopped the work
    /// and has sent nothing since.
    fn settled(&mut self) -> Vec<ScreenEffect> {
        self.transcript.settle();
        (self.engine, self.wait, self.armed) = (EngineState::Idle, None, None);
        self.hint.take_if(|(hint, _)| hint == STOPPING);
        match self.stopping.take() {
            Some(waited) if self.queue.len() <= waited => Vec::new(),
            _ => self.send_next(),
        }
    }

    /// Sends the oldest submission in the queue.
    fn send_next(&mut self) -> Vec<ScreenEffect> {
        let next = self.queue.pop_front();
        next.map(|next| self.send(next)).into_iter().collect()
    }

    /// Sends a submission, and shows it.
    fn send(&mut self, submission: Submission) -> ScreenEffect {
        let text = submission.text.as_str();
        let is_request = !text.starts_with(['/', '!']);
        if is_request {
            // Completed todos stay listed until the next request.
            self.todos
                .retain(|todo| todo.status != TodoStatus::Completed);
            self.wait_for(Waiting::Thinking);
        }
        self.transcript.add(Entry::User {
            shown: shown(&submission).to_owned(),
            text: public(text).to_owned(),
        });
        self.transcript.show_end();
        self.engine = EngineState::Working;
        ScreenEffect::Send(FromScreen::Line(submission))
    }

    /// Handles an event of a run.
    fn event(&mut self, event: Event) {
        let works = matches!(
            event,
            Event::Asking { .. }
                | Event::Tool { .. }
                | Event::Building { .. }
                | Event::Waiting { .. }
        );
        if works && self.engine == EngineState::SettingUp {
            // A resumed session is continued without a submission.
            self.engine = EngineState::Working;
        }
        match &event {
            Event::Asking { step, .. } if self.mode.is_none() => {
                let doing = present::doing(step).unwrap_or("Thinking...").to_owned();
                self.wait_for(Waiting::Counting { doing, tokens: 0 });
            }
            Event::Receiving {
                output_tokens,
                thought_tokens,
                ..
            } if self.mode.is_none() => {
                let wait = self.wait.as_mut().map(|wait| &mut wait.waiting);
                if let Some(Waiting::Counting { tokens, .. }) = wait {
                    *tokens = output_tokens.saturating_add(*thought_tokens);
                }
            }
            Event::Waiting { .. } => self.wait_for(Waiting::Tool {
                name: "an agent".to_owned(),
                description: present::awaited_in_all(&event),
            }),
            Event::Tool { asks: true, .. } if self.mode.is_none() => self.wait = None,
            Event::Asking { prompt, model, .. } => {
                let tokens = prompt.as_ref().map_or(0, |size| size.tokens);
                self.call = CallProgress {
                    since: self.now,
                    tokens,
                    bytes: 0,
                };
                let details = model.clone();
                self.wait_for(Waiting::Api { details });
                self.estimate();
            }
            Event::Receiving {
                piece, is_thought, ..
            } => {
                self.call.bytes += piece.len() as u64;
                let bytes = self.call.bytes;
                self.wait_for(match is_thought {
                    true => Waiting::Thinking,
                    false => Waiting::Streaming { bytes },
                });
                self.estimate();
            }
            Event::Retrying { .. } => {
                self.call.bytes = 0;
                let details = present(&event).map_or_else(String::new, |shown| shown.subject);
                self.wait = None;
                self.wait_for(Waiting::Api { details });
            }
            Event::Answered { took, .. } => {
                self.times.add(self.call.tokens, *took);
                self.wait_for(Waiting::Thinking);
            }
            Event::Tool {
                name,
                subject,
                category,
                ..
            } => self.wait_for(Waiting::for_tool(name, *category, subject)),
            Event::Progress {
                message,
                done,
                total,
            } => self.wait_for(Waiting::Progress {
                message: message.clone(),
                done: done.clone(),
                total: *total,
            }),
            Event::ToolResult { .. } | Event::Built { .. } => self.wait_for(Waiting::Thinking),
            Event::Building { .. } => self.wait_for(Waiting::Tool {
                name: "build.sh".to_owned(),
                description: String::new(),
            }),
            Event::Todos(todos) => self.todos.clone_from(todos),
            Event::Tasks(tasks) => self.todos = tasks.iter().map(Todo::from).collect(),
            _ => {}
        }
        self.transcript.event(event);
    }

    /// Sets the current wait; its timer continues if it is of the same kind as before.
    fn wait_for(&mut self, waiting: Waiting) {
        let (is_same, since) = match &self.wait {
            Some(wait) => (wait.waiting.is_like(&waiting), wait.since),
            None => (false, self.now),
        };
        self.wait = Some(Wait {
            waiting,
            since: if is_same { since } else { self.now },
            estimate: None,
        });
    }

    /// Estimates the duration of the current call.
    fn estimate(&mut self) {
        if let Some(wait) = &mut self.wait {
            let about = self.times.estimate(self.call.tokens);
            wait.estimate = about.map(|about| (self.call.since, about));
        }
    }

    /// Shows a temporary hint, such as the reason why something cannot be done.
    pub fn hint(&mut self, text: &str, now: Duration) {
        self.now = now;
        self.say(text);
    }

    fn say(&mut self, text: &str) {
        self.hint = Some((text.to_owned(), self.now + HINT));
        self.is_changed = true;
    }

    /// Updates the time. Returns whether anything looks different since the last draw.
    pub fn tick(&mut self, now: Duration) -> bool {
        self.now = now;
        let frame = self.wait.as_ref().map(|wait| wait.frame(now));
        if frame != self.frame && self.dialog.is_none() {
            self.is_changed = true;
        }
        self.frame = frame;
        if self.armed.is_some_and(|until| now >= until) {
            (self.armed, self.is_changed) = (None, true);
        }
        if self.hint.as_ref().is_some_and(|(_, until)| now >= *until) {
            (self.hint, self.is_changed) = (None, true);
        }
        self.is_changed |= self.transcript.poll();
        self.is_changed
    }

    /// Returns the time until [`Self::tick`] must be called if nothing else happens; `None` if it need not be.
    pub fn next_tick(&self, now: Duration) -> Option<Duration> {
        let wait = self.wait.as_ref().filter(|_| self.dialog.is_none());
        let hint = self.hint.as_ref().map(|(_, until)| *until);
        let held = self.held.map(|(_, until)| until);
        let times = [self.armed, held, hint].into_iter().flatten();
        let ends = times.map(|until| until.saturating_sub(now));
        let turns = wait.map(|wait| wait.next_frame(now));
        let colors = self.transcript.is_pending().then_some(COLORS);
        ends.chain(turns).chain(colors).min()
    }

    /// Returns whether a second Escape would stop the work.
    pub fn is_armed(&self) -> bool {
        self.armed.is_some()
    }

    /// Returns whether the input contains text, in which case a question would interrupt the user's typing.
    pub fn is_typing(&self) -> bool {
        !self.composer.is_empty()
    }
}

/// Returns the visible text of a submission.
fn shown(submission: &Submission) -> &str {
    public(submission.shown.as_deref().unwrap_or(&submission.text))
}

/// Returns the part of a text that may be shown.
fn public(text: &str) -> &str {
    if is_secret(text) {
        // The rest of the line may contain an API key.
        text.split_whitespace().next().unwrap_or_default()
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
