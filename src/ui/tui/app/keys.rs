//! Handlers for keys, pastes and the mouse wheel.

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{ARMED, App, EngineState, HELD, HINT, STOPPING, ScreenEffect};
use crate::model::message::Image;
use crate::sys::interrupt::Signal;
use crate::ui::tui::FromScreen;
use crate::ui::tui::composer::ComposerAction;
use crate::ui::tui::dialog::Dialog;
use crate::ui::tui::keys::{is_cancel, is_letter};

/// The number of lines scrolled per notch of the wheel.
const NOTCH: i32 = 3;

impl App {
    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent, now: Duration) -> Vec<ScreenEffect> {
        self.now = now;
        self.is_changed = true;
        let is_armed = self.armed.take().is_some_and(|until| now < until);
        let is_leaving = self.leaving.take().is_some_and(|until| now < until);
        let held = self.held.take().map(|(letter, _)| letter);
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_cycle = key.code == KeyCode::BackTab
            || (key.code == KeyCode::Tab && key.modifiers.contains(KeyModifiers::SHIFT));
        if let Some(mode) = self.mode.as_ref().filter(|_| is_cycle) {
            mode.set(mode.get().next());
            return Vec::new();
        }
        match key.code {
            KeyCode::Char('o') if is_control => {
                self.transcript.toggle_folding();
                return Vec::new();
            }
            KeyCode::Char('l') if is_control => return vec![ScreenEffect::Redraw],
            _ => {}
        }
        if self.dialog.is_some() {
            return self.asked(key, held, is_armed);
        }
        match key.code {
            KeyCode::Char('c') if is_control => self.cancel(is_leaving),
            KeyCode::Esc => self.escape(key, is_armed),
            KeyCode::PageUp | KeyCode::PageDown => {
                self.transcript.page(key.code == KeyCode::PageDown);
                Vec::new()
            }
            KeyCode::Up if self.composer.is_empty() && !self.queue.is_empty() => {
                // The draft continues as if it had not been sent.
                if let Some(last) = self.queue.pop_back() {
                    self.composer.take_back(last);
                }
                Vec::new()
            }
            _ => self.typed(key),
        }
    }

    /// Handles a key while a question is open. A letter answers it unless there is a draft that it may belong to, or
    /// another letter follows: then both are text for the draft.
    fn asked(
        &mut self,
        key: KeyEvent,
        held: Option<KeyEvent>,
        is_armed: bool,
    ) -> Vec<ScreenEffect> {
        let has_draft = self.is_typing();
        let Some(dialog) = &self.dialog else {
            return Vec::new();
        };
        let is_page = matches!(key.code, KeyCode::PageUp | KeyCode::PageDown);
        if is_page && dialog.leaves_pages() {
            self.transcript.page(key.code == KeyCode::PageDown);
            return Vec::new();
        }
        if has_draft && dialog.clears_draft(key) {
            self.composer.cancel();
            return Vec::new();
        }
        if dialog.wants_text() && !is_cancel(key) && !is_page {
            return self.typed(key);
        }
        match held {
            Some(before) if is_letter(key) => {
                self.typed(before);
                self.typed(key)
            }
            _ if dialog.leaves(key, has_draft) => self.typed(key),
            _ if has_draft && key.code == KeyCode::Enter && dialog.awaits_letter() => {
                if is_exit(&self.composer.text()) {
                    return self.leave();
                }
                self.say("Ctrl-C clears your draft, then a letter answers");
                Vec::new()
            }
            _ if dialog.is_letter(key) => {
                self.held = Some((key, self.now + HELD));
                Vec::new()
            }
            _ => self.answer(key, is_armed),
        }
    }

    /// Cancels a held letter, because a key that is not for the screen has followed it.
    pub fn follows(&mut self) {
        self.held = None;
    }

    /// Handles a held letter once its waiting time has passed.
    pub fn unfollowed(&mut self, now: Duration) -> Vec<ScreenEffect> {
        let held = self.held.take_if(|(_, until)| now >= *until);
        held.map_or_else(Vec::new, |(key, _)| self.answer(key, false))
    }

    /// Closes the current question after a stop that came from elsewhere, as Ctrl-C would.
    pub fn stopped(&mut self) -> Vec<ScreenEffect> {
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        self.answer(control_c, false)
    }

    /// Handles a key for the current question. An Escape that closes the question counts as the first of two;
    /// Ctrl-C stops the work immediately.
    fn answer(&mut self, key: KeyEvent, is_armed: bool) -> Vec<ScreenEffect> {
        let Some(dialog) = &mut self.dialog else {
            return Vec::new();
        };
        self.is_changed = true;
        let Some(action) = dialog.key(key) else {
            return Vec::new();
        };
        let is_menu = matches!(self.dialog.take(), Some(Dialog::Menu(_)));
        self.composer.end_line();
        let answer = ScreenEffect::Send(action);
        if is_menu || !is_cancel(key) || self.engine != EngineState::Working {
            return vec![answer];
        }
        // Stop first, since the engine checks for a stop when it receives the answer.
        let mut effects = match key.code {
            KeyCode::Esc => self.escaped(is_armed),
            _ => self.stop(),
        };
        effects.push(answer);
        effects
    }

    /// Handles Ctrl-C, which clears the input, else stops the work, else exits if it is pressed twice.
    fn cancel(&mut self, is_leaving: bool) -> Vec<ScreenEffect> {
        if !self.composer.is_empty() {
            self.composer.cancel();
            return Vec::new();
        }
        if self.engine != EngineState::Idle {
            return self.stop();
        }
        if is_leaving {
            return vec![ScreenEffect::Send(FromScreen::Leave(Signal::Int))];
        }
        self.leaving = Some(self.now + HINT);
        self.say("ctrl+c again to quit");
        Vec::new()
    }

    /// Handles Escape, which closes whatever is open; pressed twice, it stops the work.
    fn escape(&mut self, key: KeyEvent, is_armed: bool) -> Vec<ScreenEffect> {
        let is_closing = !is_armed && self.composer.key(key) == ComposerAction::Changed;
        if is_closing || self.engine != EngineState::Working {
            return Vec::new();
        }
        self.escaped(is_armed)
    }

    /// Arms the stop on the first Escape, and stops the work on the second.
    fn escaped(&mut self, is_armed: bool) -> Vec<ScreenEffect> {
        if is_armed {
            return self.stop();
        }
        self.armed = Some(self.now + ARMED);
        Vec::new()
    }

    /// Leaves, and stops the work.
    fn leave(&self) -> Vec<ScreenEffect> {
        let stop = (self.engine != EngineState::Idle).then_some(ScreenEffect::Stop);
        let leave = ScreenEffect::Send(FromScreen::Leave(Signal::Int));
        std::iter::once(leave).chain(stop).collect()
    }

    fn stop(&mut self) -> Vec<ScreenEffect> {
        self.say(STOPPING);
        self.stopping = Some(self.queue.len());
        vec![ScreenEffect::Stop]
    }

    /// Handles a key for the input.
    fn typed(&mut self, key: KeyEvent) -> Vec<ScreenEffect> {
        match self.composer.key(key) {
            ComposerAction::Send(submission) => {
                if let Some(dialog) = self.dialog.take() {
                    self.composer.end_line();
                    return vec![ScreenEffect::Send(dialog.typed(submission.text))];
                }
                let rest = submission.text.trim().strip_prefix("/mode");
                let is_name =
                    |rest: &&str| rest.is_empty() || rest.starts_with(char::is_whitespace);
                match (rest.filter(is_name), &self.mode) {
                    (Some(name), Some(mode)) if self.engine != EngineState::Idle => {
                        let notice = mode.switch(name.trim());
                        self.say(&notice);
                        return Vec::new();
                    }
                    // Such an agent asks for what it reads.
                    _ if self.status.is_one_task && self.engine == EngineState::Working => {
                        if is_exit(&submission.text) {
                            return self.leave();
                        }
                        self.composer.take_back(submission);
                        self.say("nothing is read until the agent asks; Ctrl-D leaves");
                        return Vec::new();
                    }
                    // Submissions left waiting by a stop go first.
                    _ => self.queue.push_back(submission),
                }
                if self.engine == EngineState::Idle {
                    return self.send_next();
                }
            }
            ComposerAction::OpenEditor => match self.composer.editable_text() {
                Some(text) => return vec![ScreenEffect::Editor(text)],
                None => self.say("Keys are never written to a file"),
            },
            ComposerAction::FetchImage => return vec![ScreenEffect::FetchImage],
            ComposerAction::Leave => {
                // As in line-based input, this leaves the question unanswered.
                if let Some(Dialog::Line(..)) = self.dialog {
                    self.dialog = None;
                    self.composer.end_line();
                    return vec![ScreenEffect::Send(FromScreen::Typed(None))];
                }
                return self.leave();
            }
            ComposerAction::Refused(reason) => self.say(&reason),
            ComposerAction::None | ComposerAction::Unhandled
                if key.code == KeyCode::Enter
                    && self.engine == EngineState::Idle
                    && self.dialog.is_none() =>
            {
                return self.send_next();
            }
            ComposerAction::Unhandled => match key.code {
                KeyCode::Home => self.transcript.show_start(),
                KeyCode::End => self.transcript.show_end(),
                _ => {}
            },
            ComposerAction::None | ComposerAction::Changed => {}
        }
        Vec::new()
    }

    /// Handles a paste.
    pub fn paste(&mut self, text: &str) {
        (self.is_changed, self.held) = (true, None);
        // A paste never answers a question: unless it filters a menu, it goes into the input.
        let dialog = self.dialog.as_mut();
        if !dialog.is_some_and(|dialog| dialog.paste(text)) {
            let pasted = self.composer.paste(text);
            self.pasted(pasted);
        }
    }

    /// Inserts text that was typed or pasted before the current question was visible.
    pub fn typed_ahead(&mut self, text: &str) {
        self.is_changed = true;
        let pasted = self.composer.paste_to_draft(text);
        self.pasted(pasted);
    }

    fn pasted(&mut self, action: ComposerAction) {
        if let ComposerAction::Refused(reason) = action {
            self.say(&reason);
        }
    }

    /// Inserts the clipboard's picture.
    pub fn attach_image(&mut self, image: Image) {
        self.composer.attach_image(image);
        self.is_changed = true;
    }

    /// Replaces the input with the text from the user's editor.
    pub fn edited(&mut self, text: &str) {
        self.composer.set_text(text);
        self.is_changed = true;
    }

    /// Scrolls by notches of the wheel, up if negative: the question if one is open, otherwise the transcript.
    pub fn wheel(&mut self, notches: i32) {
        self.is_changed = true;
        let lines = notches.saturating_mul(NOTCH);
        match &mut self.dialog {
            Some(dialog) => dialog.scroll(lines),
            None => self
                .transcript
                .scroll(isize::try_from(lines).unwrap_or_default()),
        }
    }
}

/// Returns whether the text is the command to leave.
fn is_exit(text: &str) -> bool {
    matches!(text.trim(), "/exit" | "/quit")
}
