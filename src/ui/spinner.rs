//! What turns on a terminal while something takes a while, and counts along.
//!
//! Touches stderr, which must be a terminal. Takes texts as they are: they are to be without keys and without
//! anything that moves the cursor.

use std::fmt;
use std::io;
use std::sync::Mutex;
use std::time::Duration;

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use crate::model::price::Usd;
use crate::sys::numbers::{counted, elapsed, grouped};

/// How a stage that is going on looks.
const STAGE: &str = "{spinner} {prefix:>6}  {msg}  {elapsed}";
/// How an agent's call looks; what does not fit on the line is cut off.
const CALL: &str = "{spinner} {wide_msg} {elapsed}";
/// How an agent's tool looks, and behind it what it has printed last, as far as that fits.
const WORK: &str = "{spinner} {prefix}  {elapsed}  {wide_msg}";
/// How a branch looks that is waited for.
const WAIT: &str = "{spinner} {msg}: {waited}";
/// What a key does meanwhile.
const KEYS: &str = " · Ctrl-C stops";
/// How often it moves while something is counted.
const TICK: Duration = Duration::from_millis(100);
/// How often while something is waited for that takes hours.
const SLOW_TICK: Duration = Duration::from_secs(1);
/// What turns meanwhile; the last one is seen when it is over.
const TURNING: &str = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ";

/// What is going on, while it is shown.
#[derive(Debug, Default)]
pub(super) struct Spinner(Mutex<Option<Activity>>);

/// Something that takes a while.
#[derive(Debug, Clone)]
struct Activity {
    bar: ProgressBar,
    /// What it is about, without the figures behind it.
    text: String,
    /// Whether it is an agent's call: all that is seen of it is how it counts along.
    is_call: bool,
}

impl Spinner {
    /// Shows a step of a pipeline. The figures go when they are updated.
    pub fn stage(&self, label: &str, text: String, figures: &str) {
        let bar = bar(STAGE);
        bar.set_prefix(label.to_owned());
        bar.set_message(format!("{text}{figures}"));
        self.start(bar, text, false, TICK);
    }

    /// Shows an agent's call.
    pub fn call(&self, doing: &str) {
        let bar = bar(CALL);
        bar.set_message(call_text(doing, 0) + KEYS);
        self.start(bar, doing.to_owned(), true, TICK);
    }

    /// Shows an agent's tool.
    pub fn work(&self, text: String) {
        let bar = bar(WORK);
        bar.set_prefix(text.clone());
        self.start(bar, text, false, TICK);
    }

    /// Shows this line behind an agent's tool.
    pub fn beside(&self, line: String) {
        if let Ok(going) = self.0.lock()
            && let Some(Activity { bar, .. }) = &*going
        {
            bar.set_message(line);
        }
    }

    /// Shows what has been waited for so long, in the place of what was shown.
    pub fn wait(&self, text: &str, waited: Duration) {
        self.stop();
        let bar = bar(WAIT).with_elapsed(waited);
        bar.set_message(text.to_owned());
        self.start(bar, text.to_owned(), false, SLOW_TICK);
    }

    fn start(&self, bar: ProgressBar, text: String, is_call: bool, tick: Duration) {
        bar.enable_steady_tick(tick);
        if let Ok(mut going) = self.0.lock() {
            *going = Some(Activity { bar, text, is_call });
        }
    }

    /// Shows how far the reply has come, behind the step that is going on.
    pub fn update(&self, output_tokens: u64, thought_tokens: u64, spent: Usd) {
        if let Ok(going) = self.0.lock()
            && let Some(Activity { bar, text, is_call }) = &*going
        {
            bar.set_message(if *is_call {
                call_text(text, output_tokens.saturating_add(thought_tokens)) + KEYS
            } else {
                let thought = aside(thought_tokens, "thought");
                let (tokens, spent) = (grouped(output_tokens), dollars(spent));
                format!("{text}  about {tokens} tokens{thought}{spent}")
            });
        }
    }

    /// Does something to the terminal while nothing turns there.
    pub fn suspend(&self, write: impl FnOnce()) {
        match self.0.lock().ok().and_then(|going| going.clone()) {
            Some(Activity { bar, .. }) => bar.suspend(write),
            None => write(),
        }
    }

    /// Nothing turns any more, and nothing is left of it.
    pub fn stop(&self) {
        let going = self.0.lock().ok();
        if let Some(Activity { bar, .. }) = going.and_then(|mut going| going.take()) {
            bar.finish_and_clear();
        }
    }
}

/// A terminal that is a little narrower than it is. The spinner's line is filled up to the end, where
/// the `^C` that the terminal echoes would begin a new line, and clearing would clear that one.
#[derive(Debug)]
struct Narrow(Term);

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        const ECHO: u16 = 4;
        self.0.size().1.saturating_sub(ECHO)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_left(columns)
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.0.write_line(line)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A spinner on stderr.
fn bar(template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(
        None,
        ProgressDrawTarget::term_like_with_hz(Box::new(Narrow(Term::stderr())), 10),
    );
    // A template that indicatif does not take would only look plainer.
    if let Ok(style) = ProgressStyle::with_template(template) {
        let style = style.with_key(
            "waited",
            |state: &ProgressState, line: &mut dyn fmt::Write| {
                // A line that cannot be written to looks plainer.
                let _ = line.write_str(&elapsed(state.elapsed()));
            },
        );
        bar.set_style(style.tick_chars(TURNING));
    }
    bar
}

/// `Thinking... [1,247 tokens]`
fn call_text(doing: &str, tokens: u64) -> String {
    format!("{doing} [{}]", counted(tokens, "token"))
}

/// How many of some tokens are such, behind their count; nothing where none are.
pub(super) fn aside(tokens: u64, such: &str) -> String {
    match tokens {
        0 => String::new(),
        tokens => format!(" ({} {such})", grouped(tokens)),
    }
}

/// What was spent, where it is anything.
pub(super) fn dollars(spent: Usd) -> String {
    if spent == Usd::ZERO {
        return String::new();
    }
    format!("  {spent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_along_as_specified() {
        for (tokens, expected) in [
            (0, "Thinking... [0 tokens]"),
            (1, "Thinking... [1 token]"),
            (1247, "Thinking... [1,247 tokens]"),
        ] {
            assert_eq!(call_text("Thinking...", tokens), expected);
        }
    }

    #[test]
    fn every_template_is_one_that_indicatif_takes() {
        for template in [STAGE, CALL, WORK, WAIT] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
