//! Renders the parts of a story. Pure.
//!
//! Guarantees that the markup of each section is bounded, however much was done. Omitted parts are counted.

use maud::{Markup, html};

use super::changes::{DiffRenderer, recorded};
use super::elements::{badge, code, left_out, prose, within};
use super::text::{HtmlEscaper, beginning};
use super::{output, tables};
use crate::record::finding::Severity;
use crate::record::result::SectionRecord;
use crate::record::run_files::STEPS;
use crate::run::past::story::block::{Block, Extent, Form, Outcome, Section};
use crate::run::past::words::bytes;

/// The limits of a collapsed request, in lines and bytes.
const REQUEST: (usize, usize) = (12, 1500);
/// The limits of an expanded request, in lines and bytes.
const WHOLE_REQUEST: (usize, usize) = (2000, 64 << 10);
/// The limits of a report, in lines and bytes.
const REPORT: (usize, usize) = (20_000, 1 << 20);
/// The limits of any other text, in lines and bytes.
const TEXT: (usize, usize) = (1000, 32 << 10);
/// The maximum number of report sections listed; a report has five.
const SECTIONS: usize = 50;
/// The maximum number of tools shown per step.
const TOOLS: usize = 50;
/// The maximum number of lines for which an output is initially expanded.
const OPENED: usize = 12;

/// Renders sections, whose diffs share a markup budget.
pub struct BlockPainter<'a> {
    /// Cleans all texts.
    pub escaper: HtmlEscaper<'a>,
    /// Renders changes.
    pub diffs: DiffRenderer<'a>,
    /// The prefix of the anchors that the first rows of a table link to, and the number of such
    /// rows.
    pub links: (&'static str, usize),
}

impl BlockPainter<'_> {
    /// Renders a section; `id` is its anchor and the prefix of the anchors in it. `left` is the
    /// budget for its tools, in bytes.
    pub fn section(&mut self, id: &str, section: &Section<'_>, left: usize) -> Markup {
        let class = match section.severity {
            Some(Severity::Error) => Some("box bad"),
            Some(Severity::Warning | Severity::Note) => Some("box warn"),
            None => section.outcome.as_ref().map(|_| "step"),
        };
        html! {
            section class=[class] id=(id) {
                h2 {
                    @if let Some(severity) = section.severity { span aria-hidden="true" { (severity.mark()) " " } }
                    (self.titled(&section.title, section.outcome.as_ref()))
                }
                (self.blocks(id, section, left))
            }
        }
    }

    fn titled(&self, title: &str, outcome: Option<&Outcome>) -> Markup {
        html! {
            (self.escaper.name(title))
            @if let Some((is_good, words)) = outcome { " " (badge(*is_good, &self.escaper.name(words))) }
        }
    }

    /// Renders a title within a section; a title with an outcome is the name of a program.
    fn heading(&self, title: &str, outcome: Option<&Outcome>) -> Markup {
        html! { h3 class=[outcome.map(|_| "call")] { (self.titled(title, outcome)) } }
    }

    fn blocks(&mut self, id: &str, section: &Section<'_>, left: usize) -> Markup {
        let blocks = section.blocks.iter().enumerate();
        html! { @for (at, block) in blocks { (self.block(id, at, block, left)) } }
    }

    /// Renders the block at an index of the section with this anchor.
    fn block(&mut self, id: &str, at: usize, block: &Block<'_>, left: usize) -> Markup {
        let escaper = self.escaper;
        match block {
            Block::Note(text) => html! { p.note { (escaper.passage(text)) } },
            Block::Title(title, outcome) => self.heading(title, outcome.as_ref()),
            Block::Items(items) => {
                html! { ul { @for item in items { li { (escaper.passage(item)) } } } }
            }
            Block::Text(form, text, extent) => {
                self.text(&format!("{id}-{}", at + 1), *form, text, *extent)
            }
            Block::Changes(changes) => self.diffs.show(id, changes),
            Block::Table(table) => html! {
                (tables::shown(escaper, table, self.links))
                (left_out(table.left_out, "more", STEPS))
            },
            Block::Tools(tools) => {
                let shown = within(left, 0, tools.iter().take(TOOLS), |nth, tool, _| {
                    html! {
                        (self.heading(&tool.title, tool.outcome.as_ref()))
                        (self.blocks(&format!("{id}-t{}", nth + 1), tool, 0))
                    }
                });
                html! {
                    @for tool in &shown { (tool) }
                    (left_out(tools.len() - shown.len(), "more tool", STEPS))
                }
            }
            Block::Details(title, block) => {
                let is_open = !matches!(**block, Block::Text(Form::Code, ..));
                fold(title, &self.block(id, at, block, left), is_open)
            }
        }
    }

    fn text(&self, id: &str, form: Form<'_>, text: &str, extent: Extent) -> Markup {
        let escaper = self.escaper;
        match form {
            Form::Request => request(escaper, text),
            Form::Prose => prose(escaper, text, TEXT),
            Form::Report(sections) => report(escaper, id, text, sections),
            Form::Code => code(escaper, text, TEXT),
            Form::Diff => recorded(escaper, text, TEXT),
            Form::Output(title) => {
                let is_short = text.lines().count() <= OPENED;
                let is_open = match extent {
                    Extent::Nothing => false,
                    Extent::First | Extent::Few => is_short,
                    Extent::Last | Extent::Errors => true,
                };
                fold(title, &output::show(escaper, id, text), is_open)
            }
        }
    }
}

fn fold(title: &str, content: &Markup, is_open: bool) -> Markup {
    html! { details.build open[is_open] { summary { (title) } (content) } }
}

/// Renders the user's request.
fn request(escaper: HtmlEscaper<'_>, text: &str) -> Markup {
    let (_, is_all) = beginning(text.trim_matches('\n'), REQUEST.0, REQUEST.1);
    html! {
        blockquote { (prose(escaper, text, REQUEST)) }
        @if !is_all { details {
            summary { "The whole request, " (bytes(text.len() as u64)) }
            (prose(escaper, text, WHOLE_REQUEST))
        } }
    }
}

/// Renders a report verbatim, with its sections as headings. `id` is the prefix of the anchors.
fn report(escaper: HtmlEscaper<'_>, id: &str, text: &str, sections: &[SectionRecord]) -> Markup {
    let sections = &sections[..sections.len().min(SECTIONS)];
    // Split by line, so that line numbers match those of the recorded sections.
    let text = escaper.text(text);
    let (shown, is_all) = beginning(&text, REPORT.0, REPORT.1);
    let count = shown.lines().count();
    let anchored = |(number, section): (usize, &SectionRecord)| {
        let line = section.first_line.and_then(|line| line.checked_sub(1));
        let start = line.filter(|start| *start < count);
        (start, format!("{id}-s{}", number + 1))
    };
    let starts: Vec<_> = sections.iter().enumerate().map(anchored).collect();
    html! {
        @if !sections.is_empty() {
            ol.sections { @for (section, (start, anchor)) in sections.iter().zip(&starts) {
                @let title = escaper.name(&section.title);
                li {
                    @if start.is_some() { a href={ "#" (anchor) } { (title) } } @else { (title) " " }
                    @if section.first_line.is_none() { span.quiet { "is missing" } }
                }
            } }
        }
        pre.prose { @for (at, line) in shown.split_inclusive('\n').enumerate() {
            @for (_, anchor) in starts.iter().filter(|(start, _)| *start == Some(at)) {
                span id=(anchor) {}
            }
            (line)
        } }
        @if !is_all { p.left-out { "The rest of the report is left out." } }
    }
}
