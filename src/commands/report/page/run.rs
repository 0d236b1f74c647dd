//! Renders the story of one run as a page. Pure.

use std::time::Duration;

use maud::{Markup, html};

use super::blocks::BlockPainter;
use super::changes::DiffRenderer;
use super::elements::{anchor, fact, left_out, mark_and_class, within};
use super::text::HtmlEscaper;
use super::{promise, shell};
use crate::run::past::story::block::Story;
use crate::secret::Redactor;

/// The prefix of the steps' anchors.
const STEP: &str = "a";
/// The number of steps always shown; a commit has at most four.
const LEAST: usize = 12;
/// The markup budget for further steps on a page, in bytes; the last one may exceed it.
const MARKUP: usize = 4 << 20;

/// Renders the page about one run. `elapsed` returns the time since some fixed point; highlighting stops when it takes
/// too long.
pub fn page(
    story: &Story<'_>,
    redactor: &Redactor,
    interactive: bool,
    elapsed: &dyn Fn() -> Duration,
) -> String {
    let escaper = HtmlEscaper::new(redactor);
    let mut painter = BlockPainter {
        escaper,
        diffs: DiffRenderer::new(escaper, elapsed),
        links: ("", 0),
    };
    let numbered = story.sections.iter().enumerate();
    let sections: Vec<Markup> = numbered
        .map(|(at, section)| painter.section(&format!("s{}", at + 1), section, 0))
        .collect();
    let changed = story.changes.as_ref();
    let changes = changed.map(|changes| painter.section("run", changes, 0));
    let steps = within(MARKUP, LEAST, &story.steps, |at, step, left| {
        painter.section(&anchor(STEP, at), step, left)
    });
    painter.links = (STEP, steps.len());
    let called = story.calls.as_ref();
    let calls = called.map(|calls| painter.section("calls", calls, 0));
    let body = html! {
        (head(escaper, story))
        main {
            @if !story.facts.is_empty() { section aria-label="Facts" { dl.facts {
                @for (name, value, note) in &story.facts {
                    (fact(name, &escaper.name(value), note.as_ref().map(|note| escaper.name(note))))
                }
            } } }
            @for section in &sections { (section) }
            @for section in calls.iter().chain(&changes) { (section) }
            @for step in &steps { (step) }
            (left_out(story.steps.len() - steps.len(), "later call", &story.folder))
        }
        footer { p { "Written by code-commit " (env!("CARGO_PKG_VERSION")) (promise(interactive)) } }
    };
    let title = format!("{}: {}", story.headline, story.folder);
    shell(&escaper.name(&title), &body, interactive)
}

fn head(escaper: HtmlEscaper<'_>, story: &Story<'_>) -> Markup {
    let (mark, class) = mark_and_class(story.is_good);
    html! {
        header {
            p.kicker { "code-commit" }
            h1 {
                span class={ "sign " (class) } aria-hidden="true" { (mark) }
                " " (escaper.name(&story.headline))
            }
            @for sentence in &story.about { p.sub { (escaper.passage(sentence)) } }
            p.sub { code { (escaper.name(&story.folder)) } }
        }
    }
}
