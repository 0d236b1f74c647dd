//! Shows a wait: the animation, its message, and the expected time. Pure: time comes as an argument.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use ratatui::text::{Line, Span};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::theme;
use crate::record::tool::Category;
use crate::sys::counter::Counter;
use crate::sys::numbers::{counted, elapsed};
use crate::sys::text::{text_width, truncated};
use crate::ui::blocks::one_line;

// The frames of animations, as cli-spinners has them.
const DOTS: &[&str] = &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const ARC: &[&str] = &["◜", "◠", "◝", "◞", "◡", "◟"];
const BOUNCING_BAR: &[&str] = &[
    "[    ]", "[=   ]", "[==  ]", "[=== ]", "[====]", "[ ===]", "[  ==]", "[   =]", "[    ]",
    "[   =]", "[  ==]", "[ ===]", "[====]", "[=== ]", "[==  ]", "[=   ]",
];
const LINE: &[&str] = &["-", "\\", "|", "/"];

/// The messages after the animation, each with the time from which it is shown.
const MESSAGES: [(Duration, &str); 5] = [
    (Duration::ZERO, "Starting..."),
    (Duration::from_secs(3), "Still working..."),
    (Duration::from_secs(8), "This is taking a bit longer..."),
    (Duration::from_secs(15), "Almost there..."),
    (Duration::from_secs(30), "Thank you for your patience..."),
];

/// The vendor whose model is called by name.
const ANTHROPIC: &str = "Anthropic";

/// The hint on how to stop.
const HINT: &str = " (esc to interrupt)";

/// The width of a bar, in columns.
const BAR: u64 = 20;

/// An activity being waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The model or the engine is thinking.
    Thinking,
    /// A tool is running.
    Tool {
        /// The tool's name.
        name: String,
        /// The subject of the call.
        description: String,
    },
    /// A file is being read or written.
    File {
        /// The verb: `Reading` or `Writing`.
        operation: &'static str,
        /// The file's path.
        path: String,
    },
    /// The vendor has been called but has not answered yet.
    Api {
        /// Details of the call.
        details: String,
    },
    /// The answer is arriving.
    Streaming {
        /// The number of bytes so far.
        bytes: u64,
    },
    /// A reply whose tokens are counted is arriving.
    Counting {
        /// The activity, such as `Thinking...`.
        doing: String,
        /// The tokens so far.
        tokens: u64,
    },
    /// An activity with a known total.
    Progress {
        /// The description of the activity.
        message: String,
        /// The amount done.
        done: Counter,
        /// The total amount.
        total: u64,
    },
}

impl Waiting {
    /// Returns the wait for a tool of this category, used on `subject`.
    pub fn for_tool(name: &str, category: Option<Category>, subject: &str) -> Self {
        let operation = match category {
            Some(Category::File) if !subject.is_empty() => "Reading",
            Some(Category::Edit) if !subject.is_empty() => "Writing",
            _ => {
                return Self::Tool {
                    name: name.to_owned(),
                    description: subject.to_owned(),
                };
            }
        };
        Self::File {
            operation,
            path: subject.to_owned(),
        }
    }

    /// Returns whether it is the same activity, possibly with more progress.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Streaming { .. }, Self::Streaming { .. })
            | (Self::Counting { .. }, Self::Counting { .. }) => true,
            _ => self == other,
        }
    }

    /// Returns the duration of a frame in milliseconds, the frames, and their color.
    fn frames(&self) -> (u128, &'static [&'static str], Color) {
        match self {
            Self::Thinking | Self::Counting { .. } => (80, DOTS, Color::Cyan),
            Self::Tool { .. } | Self::File { .. } | Self::Progress { .. } => {
                (100, ARC, Color::Yellow)
            }
            Self::Api { .. } => (80, BOUNCING_BAR, Color::Blue),
            Self::Streaming { .. } => (130, LINE, Color::Green),
        }
    }

    /// Returns the message for a model of this vendor; "" if the vendor is not known yet.
    fn message(&self, vendor: &str) -> String {
        let vendor = if vendor.is_empty() { ANTHROPIC } else { vendor };
        match self {
            Self::Thinking if vendor == ANTHROPIC => "Claude is thinking".to_owned(),
            Self::Thinking => "Thinking".to_owned(),
            Self::Tool { name, .. } => format!("Executing {}", one_line(name)),
            Self::File { operation, path } => format!("{operation} {}", one_line(path)),
            Self::Api { .. } => format!("Calling {vendor} API"),
            Self::Streaming { .. } => "Streaming response".to_owned(),
            Self::Counting { doing, tokens } => format!("{doing} [{}]", counted(*tokens, "token")),
            Self::Progress { message, .. } => one_line(message),
        }
    }

    fn details(&self) -> String {
        match self {
            Self::Tool { description, .. } => one_line(description),
            Self::Api { details } => one_line(details),
            Self::Streaming { bytes } => format!("{bytes} bytes received"),
            Self::Thinking | Self::File { .. } | Self::Counting { .. } | Self::Progress { .. } => {
                String::new()
            }
        }
    }

    /// Returns whether the hint that Escape stops it is shown; Escape stops every activity.
    fn has_hint(&self) -> bool {
        !matches!(self, Self::Api { .. } | Self::File { .. })
    }
}

/// A wait, with the time at which it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The activity being waited for.
    pub waiting: Waiting,
    /// The time at which it began.
    pub since: Duration,
    /// The time at which the call began, and its estimated duration.
    pub estimate: Option<(Duration, Duration)>,
}

impl Wait {
    /// Returns the current animation frame and the whole seconds waited; a change requires a redraw.
    pub fn frame(&self, now: Duration) -> (usize, u64) {
        let (interval, frames, _) = self.waiting.frames();
        let waited = now.saturating_sub(self.since);
        let turned = waited.as_millis() / interval;
        let frame = usize::try_from(turned).unwrap_or_default() % frames.len();
        (frame, waited.as_secs())
    }

    /// Returns the time until the next frame.
    pub fn next_frame(&self, now: Duration) -> Duration {
        let (interval, ..) = self.waiting.frames();
        let waited = now.saturating_sub(self.since).as_millis();
        let left = u64::try_from(interval - waited % interval);
        Duration::from_millis(left.unwrap_or_default())
    }

    /// Draws the wait on a line, and its details on a second one if there is room.
    pub fn render(&self, now: Duration, vendor: &str, area: Rect, buf: &mut Buffer) {
        let (_, frames, color) = self.waiting.frames();
        let frame = frames[self.frame(now).0];
        let waited = now.saturating_sub(self.since);
        let line = |smart: &str, hint: &'static str| {
            Line::from(vec![
                Span::styled(frame, theme::PLAIN.fg(color)),
                Span::raw(format!(" {}{smart}", self.waiting.message(vendor))),
                Span::styled(hint, theme::DIM),
            ])
        };
        let hint = if self.waiting.has_hint() { HINT } else { "" };
        let smart = format!(" {}", smart(waited));
        // The hint takes precedence over the time; if neither fits, the hint moves to the second line.
        let forms = [line(&smart, hint), line("", hint), line("", "")];
        let fits = |line: &&Line<'_>| line.width() <= usize::from(area.width);
        let at = forms.iter().position(|line| fits(&line)).unwrap_or(2);
        buf.set_line(area.x, area.y, &forms[at], area.width);
        if area.height > 1 {
            let hint = if at == 2 { hint.trim_start() } else { "" };
            let line = self.second_line(hint, now, area.width.into());
            buf.set_line(area.x, area.y + 1, &line, area.width);
        }
    }

    fn second_line(&self, hint: &str, now: Duration, width: usize) -> Line<'static> {
        let mut spans = vec![Span::raw("  ")];
        if let Waiting::Progress { done, total, .. } = &self.waiting {
            let (done, total) = (done.get(), *total);
            let share = |whole: u64| done.min(total).saturating_mul(whole) / total.max(1);
            let (full, percent) = (share(BAR), share(100));
            let filled = "█".repeat(usize::try_from(full).unwrap_or_default());
            let rest = "░".repeat(usize::try_from(BAR - full).unwrap_or_default());
            spans.push(Span::raw(filled + &rest));
            spans.push(Span::styled(format!(" {percent}%"), theme::DIM));
        }
        let mut details = vec![hint.to_owned(), self.waiting.details()];
        if let Some((since, about)) = self.estimate {
            let waited = now.saturating_sub(since);
            // An estimate that has been exceeded is not helpful.
            if waited <= about {
                details.push(format!("{} of about {}", elapsed(waited), elapsed(about)));
            }
        }
        details.retain(|detail| !detail.is_empty());
        let room = width.saturating_sub(Line::from(spans.clone()).width());
        let details = details.join(" · ");
        let details = match self.waiting {
            // Of a retry, the number and the wait are at the end.
            Waiting::Api { .. } => end_of(&details, room),
            _ => truncated(&details, room).into_owned(),
        };
        spans.push(Span::styled(details, theme::DIM));
        Line::from(spans)
    }
}

/// Returns a text, of which only the end is kept if it does not fit.
fn end_of(text: &str, columns: usize) -> String {
    if text_width(text) <= columns {
        return text.to_owned();
    }
    let mut taken = "…".width();
    let fits = |(_, c): &(usize, char)| {
        taken += c.width().unwrap_or_default();
        taken <= columns
    };
    let end = text.char_indices().rev().take_while(fits).last();
    format!("…{}", end.map_or("", |(at, _)| &text[at..]))
}

/// Returns the message for the time waited.
fn smart(waited: Duration) -> &'static str {
    let passed = MESSAGES.iter().rfind(|(after, _)| waited >= *after);
    passed.map_or("", |(_, message)| message)
}

/// The durations of calls, used to estimate the next one.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallTimes {
    calls: u32,
    took: Duration,
    tokens: u64,
}

impl CallTimes {
    /// Records the duration of a call with this number of prompt tokens.
    pub fn add(&mut self, tokens: u64, took: Duration) {
        self.calls += 1;
        self.took += took;
        self.tokens += tokens;
    }

    /// Estimates the duration of a call with this number of prompt tokens, in whole seconds: the average of the
    /// mean duration of earlier calls and the duration at their mean rate; `None` before the first call.
    pub fn estimate(&self, tokens: u64) -> Option<Duration> {
        let mean = self.took.checked_div(self.calls)?;
        let total = u128::from(self.tokens.max(1));
        let by_rate = mean.as_millis() * u128::from(tokens) * u128::from(self.calls) / total;
        let millis = match self.tokens {
            0 => mean.as_millis(),
            _ => u128::midpoint(mean.as_millis(), by_rate),
        };
        let seconds = u64::try_from(millis.div_ceil(1000)).ok()?;
        Some(Duration::from_secs(seconds.max(1)))
    }
}

/// Returns the note on lines below the visible part: `3 new lines`.
pub fn more_below(lines: usize) -> String {
    match lines {
        0 => "↓ more below (End)".to_owned(),
        lines => format!("↓ {} below (End)", counted(lines as u64, "new line")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(waiting: Waiting, waited: u64, estimate: Option<u64>) -> String {
        let wait = Wait {
            waiting,
            since: Duration::from_secs(5),
            estimate: estimate.map(|about| (Duration::from_secs(5), Duration::from_secs(about))),
        };
        let area = Rect::new(0, 0, 70, 2);
        let mut buf = Buffer::empty(area);
        let now = Duration::from_millis(5000 + waited);
        wait.render(now, "", area, &mut buf);
        let row = |y| (0..70).map(|x| buf[(x, y)].symbol()).collect::<String>();
        format!("{}\n{}", row(0).trim_end(), row(1).trim_end())
    }

    #[test]
    fn each_kind_looks_as_specified() {
        insta::assert_snapshot!(drawn(Waiting::Thinking, 80, None), @"⠙ Claude is thinking Starting... (esc to interrupt)");
        let tool = Waiting::for_tool("execute_command", Some(Category::Shell), "cargo test");
        insta::assert_snapshot!(drawn(tool, 3000, None), @r"
        ◜ Executing execute_command Still working... (esc to interrupt)
          cargo test
        ");
        let api = Waiting::Api {
            details: String::new(),
        };
        insta::assert_snapshot!(drawn(api, 8080, Some(12)), @r"
        [ ===] Calling Anthropic API This is taking a bit longer...
          8s of about 12s
        ");
        // An exceeded estimate is not shown.
        assert!(!drawn(Waiting::Thinking, 13_000, Some(12)).contains("about"));
        insta::assert_snapshot!(drawn(Waiting::Streaming { bytes: 1234 }, 130, None), @r"
        \ Streaming response Starting... (esc to interrupt)
          1234 bytes received
        ");
        insta::assert_snapshot!(drawn(Waiting::for_tool("read_file", Some(Category::File), "src/x.rs"), 0, None), @"◜ Reading src/x.rs Starting...");
        insta::assert_snapshot!(drawn(Waiting::for_tool("edit_file", Some(Category::Edit), "a\u{1b}[2J"), 0, None), @"◜ Writing a Starting...");
        let done = Counter::default();
        done.add();
        let progress = Waiting::Progress {
            message: "Taking back changes".to_owned(),
            done,
            total: 3,
        };
        insta::assert_snapshot!(drawn(progress, 0, None), @r"
        ◜ Taking back changes Starting... (esc to interrupt)
          ██████░░░░░░░░░░░░░░ 33%
        ");
    }

    #[test]
    fn of_a_retry_that_does_not_fit_the_number_and_the_wait_are_shown() {
        let retry = "the stream ended before the reply was whole; try 3 in 0.8s";
        let details = |width| {
            let waiting = Waiting::Api {
                details: retry.to_owned(),
            };
            let since = Duration::ZERO;
            let estimate = None;
            let wait = Wait {
                waiting,
                since,
                estimate,
            };
            wait.second_line("", since, width).to_string()
        };
        assert_eq!(details(80), format!("  {retry}"));
        assert_eq!(details(30), "  …ly was whole; try 3 in 0.8s");
        assert_eq!(end_of("日本語", 4), "…語");
        assert_eq!(end_of("日本語", 0), "…");
    }

    #[test]
    fn the_message_is_the_last_whose_time_has_passed() {
        for (millis, expected) in [
            (0, "Starting..."),
            (2999, "Starting..."),
            (3000, "Still working..."),
            (7999, "Still working..."),
            (8000, "This is taking a bit longer..."),
            (15_000, "Almost there..."),
            (29_999, "Almost there..."),
            (30_000, "Thank you for your patience..."),
            (9_000_000, "Thank you for your patience..."),
        ] {
            assert_eq!(smart(Duration::from_millis(millis)), expected, "{millis}");
        }
    }

    #[test]
    fn earlier_calls_tell_how_long_the_next_may_take() {
        let mut times = CallTimes::default();
        assert_eq!(times.estimate(1000), None);
        times.add(1000, Duration::from_secs(4));
        assert_eq!(times.estimate(1000), Some(Duration::from_secs(4)));
        assert_eq!(times.estimate(3000), Some(Duration::from_secs(8)));
        times.add(0, Duration::ZERO);
        assert_eq!(times.estimate(0), Some(Duration::from_secs(1)));
    }

    #[test]
    fn frames_follow_their_interval() {
        let wait = |waiting| Wait {
            waiting,
            since: Duration::ZERO,
            estimate: None,
        };
        let streaming = wait(Waiting::Streaming { bytes: 0 });
        let frames = [0, 129, 130, 390, 520].map(|at| streaming.frame(Duration::from_millis(at)).0);
        assert_eq!(frames, [0, 0, 1, 3, 0]);
    }
}
