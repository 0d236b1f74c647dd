//! An animated line on a terminal that shows the current activity and its progress.
//!
//! Touches stderr, which must be a terminal, from its own thread. Texts are printed unchanged: callers must
//! remove keys and anything that moves the cursor.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use ratatui::style::Style;

use super::paint::{COLUMNS, columns, paint};
use super::present::{aside, dollars};
use super::stderr;
use crate::model::price::Usd;
use crate::sys::numbers::{counted, elapsed, grouped};
use crate::sys::text::{text_width, truncated};

/// The hint on how to stop an agent's call.
const KEYS: &str = " · Ctrl-C stops";
/// The time between two frames.
const TICK: Duration = Duration::from_millis(100);
/// The time between two frames while waiting for something that takes hours.
const SLOW_TICK: Duration = Duration::from_secs(1);
/// The frames of the animation, shown in turn.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
/// The number of columns left free for the `^C` that a terminal echoes, which would otherwise wrap.
const ECHO: usize = 4;

/// The sequence that clears the line.
const CLEAR: &str = "\r\x1b[K";

/// An animation that shows the current activity.
#[derive(Debug, Default)]
pub(super) struct Spinner(Arc<Turning>);

#[derive(Debug, Default)]
struct Turning {
    state: Mutex<SpinnerState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct SpinnerState {
    activity: Option<Activity>,
    /// True if the drawing thread is running.
    is_turning: bool,
}

/// An activity that takes a while.
#[derive(Debug, Clone, Default)]
struct Activity {
    /// A stage of a pipeline, an agent's call, a tool, or a wait.
    text: String,
    /// The figures after the text.
    figures: String,
    /// The last output of a tool.
    printed: String,
    /// The separator between text and time.
    gap: &'static str,
    /// True for an agent's call, whose only visible progress is the token count.
    is_call: bool,
    tick: Duration,
    ticks: usize,
    waited: Duration,
}

impl Activity {
    fn new(text: String, tick: Duration) -> Self {
        Self {
            text,
            gap: "  ",
            tick,
            ..Self::default()
        }
    }

    /// Returns the line, to be drawn over the previous one.
    fn line(&self) -> String {
        let columns = columns(io::stderr()).unwrap_or(COLUMNS);
        let most = columns.saturating_sub(ECHO);
        let frame = FRAMES[self.ticks % FRAMES.len()];
        let (text, figures, gap) = (&self.text, &self.figures, self.gap);
        let whole = format!("{frame} {text}{figures}{gap}{}", elapsed(self.waited));
        let line = truncated(&whole, most);
        let room = most.saturating_sub(text_width(&line) + 2);
        let printed = match truncated(&self.printed, room) {
            printed if printed.is_empty() || room == 0 => String::new(),
            printed => format!("  {}", paint(&printed, Style::new().dim())),
        };
        format!("\r{line}{printed}\x1b[K")
    }
}

impl Turning {
    fn lock(&self) -> MutexGuard<'_, SpinnerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Draws frames until the activity is stopped.
    fn turn(&self) {
        let mut state = self.lock();
        while let Some(now) = &mut state.activity {
            stderr::print(&now.line());
            let tick = now.tick;
            let is_going = |state: &mut SpinnerState| state.activity.is_some();
            let waited = self.changed.wait_timeout_while(state, tick, is_going);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if let Some(now) = &mut state.activity {
                now.ticks += 1;
                now.waited += tick;
            }
        }
        state.is_turning = false;
    }
}

impl Spinner {
    /// Shows a stage of a pipeline. The first update replaces `figures`.
    pub fn stage(&self, label: &str, text: &str, figures: &str) {
        let mut activity = Activity::new(format!("{label:>6}  {text}"), TICK);
        figures.clone_into(&mut activity.figures);
        self.start(activity);
    }

    /// Shows an agent's call.
    pub fn call(&self, doing: &str) {
        let mut activity = Activity::new(doing.to_owned(), TICK);
        activity.figures = counting(0);
        activity.is_call = true;
        self.start(activity);
    }

    /// Shows an agent's tool.
    pub fn work(&self, text: String) {
        self.start(Activity::new(text, TICK));
    }

    /// Shows a line of output after an agent's tool.
    pub fn beside(&self, line: String) {
        if let Some(activity) = &mut self.0.lock().activity {
            activity.printed = line;
            stderr::print(&activity.line());
        }
    }

    /// Shows what is awaited and the time waited so far, in place of the current activity.
    pub fn wait(&self, text: &str, waited: Duration) {
        let mut activity = Activity::new(text.to_owned(), SLOW_TICK);
        (activity.gap, activity.waited) = (": ", waited);
        self.start(activity);
    }

    fn start(&self, activity: Activity) {
        let mut state = self.0.lock();
        state.activity = Some(activity);
        if !state.is_turning {
            let turning = Arc::clone(&self.0);
            // Without a thread, there is no animation.
            state.is_turning = thread::Builder::new().spawn(move || turning.turn()).is_ok();
        }
    }

    /// Shows the progress of the reply after the current activity.
    pub fn update(&self, output_tokens: u64, thought_tokens: u64, spent: Usd) {
        if let Some(activity) = &mut self.0.lock().activity {
            activity.figures = if activity.is_call {
                counting(output_tokens.saturating_add(thought_tokens))
            } else {
                let thought = aside(thought_tokens, "thought");
                let (tokens, spent) = (grouped(output_tokens), dollars(spent));
                format!("  about {tokens} tokens{thought}{spent}")
            };
        }
    }

    /// Prints lines above the current activity.
    pub fn print(&self, lines: &str) {
        let state = self.0.lock();
        let moving = state.activity.as_ref().map(Activity::line);
        let above = moving.as_ref().map_or("", |_| CLEAR);
        stderr::print(&format!("{above}{lines}{}", moving.unwrap_or_default()));
    }

    /// Stops the animation and clears the line.
    pub fn stop(&self) {
        let mut state = self.0.lock();
        if state.activity.take().is_some() {
            stderr::print(CLEAR);
            self.0.changed.notify_all();
        }
    }
}

/// Formats a token count: ` [1,247 tokens] · Ctrl-C stops`.
fn counting(tokens: u64) -> String {
    format!(" [{}]{KEYS}", counted(tokens, "token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_along_as_specified() {
        for (tokens, expected) in [
            (0, " [0 tokens] · Ctrl-C stops"),
            (1, " [1 token] · Ctrl-C stops"),
            (1247, " [1,247 tokens] · Ctrl-C stops"),
        ] {
            assert_eq!(counting(tokens), expected);
        }
    }

    #[test]
    fn one_thread_serves_all_activities() {
        let spinner = Spinner::default();
        spinner.stop();
        for _ in 0..3 {
            spinner.call("Thinking...");
            spinner.work("Running x".to_owned());
            spinner.stop();
        }
        assert!(spinner.0.lock().activity.is_none());
    }
}
