//! Renders the story of a run as text.

use crate::run::context::Context;
use crate::run::past::history::PastRun;
use crate::run::past::story::block::{Block, Fact, Outcome, Section, Story, value};
use crate::run::past::story::sources::Sources;
use crate::run::past::story::tell;
use crate::run::past::table::Table;
use crate::run::past::words::{changed, mark};
use crate::sys::diff;
use crate::sys::text::cut;
use crate::ui::columns::{self, Align};

/// Maximum number of lines quoted from a text.
const QUOTED: usize = 12;
/// Maximum width of a diffstat and of a title, in columns.
const WIDTH: usize = 76;
/// The columns of tables dropped on a narrow terminal, in this order.
const DISPENSABLE: [&str; 7] = [
    "finish",
    "from",
    "thought",
    "cached",
    "files",
    "model",
    "took (+ build)",
];

/// Returns the story of a run, folded to the terminal's width.
pub(super) fn story(context: &Context<'_>, run: &PastRun) -> String {
    let sources = Sources::read(run, &context.project);
    let mut painter = Painter {
        text: String::new(),
        columns: context.reporter.columns(),
    };
    painter.story(&tell(run, &sources));
    columns::folded(&painter.text, painter.columns, 2)
}

/// Formats a table as lines, for a terminal of this many columns, if known.
pub(in crate::commands) fn table(table: &Table, columns: Option<usize>) -> Vec<String> {
    let texts = table.texts.iter().map(|&head| (head, Align::Left));
    let numbers = table.numbers.iter().map(|&head| (head, Align::Right));
    let head = texts.chain(numbers).collect();
    let text = columns::table(head, table.cells(), &DISPENSABLE, columns);
    let lines = text.lines().map(str::to_owned);
    lines.chain(table.others()).collect()
}

/// A renderer of stories as text.
struct Painter {
    text: String,
    /// The width of the terminal, if known.
    columns: Option<usize>,
}

impl Painter {
    fn lines(&mut self, indent: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) {
        for line in lines {
            let line = format!("{indent}{}", line.as_ref().replace('\u{a0}', " "));
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    fn story(&mut self, story: &Story<'_>) {
        let headline = format!("{} {}", mark(story.is_good), story.headline);
        self.lines("", [&story.folder, &headline]);
        self.lines("", &story.about);
        let row = |fact: &Fact| vec![fact.0.to_owned(), value(fact)];
        let facts: Vec<_> = story.facts.iter().map(row).collect();
        self.lines("  ", columns::aligned(&facts, &[Align::Left; 2]));
        let sections = story.sections.iter().chain(&story.calls);
        for section in sections.chain(&story.changes).chain(&story.steps) {
            self.text.push('\n');
            self.section("", section);
        }
    }

    fn section(&mut self, indent: &str, section: &Section<'_>) {
        let title = titled(&section.title, section.outcome.as_ref());
        let severity = section.severity.map(|it| it.mark().to_owned() + " ");
        self.lines(indent, [severity.unwrap_or_default() + &title]);
        let indent = format!("{indent}  ");
        for block in &section.blocks {
            self.block(&indent, block);
        }
    }

    fn block(&mut self, indent: &str, block: &Block<'_>) {
        match block {
            Block::Note(text) => self.lines(indent, text.lines()),
            Block::Title(title, outcome) => self.lines(indent, [titled(title, outcome.as_ref())]),
            Block::Items(items) => self.lines(indent, items.iter().flat_map(|item| item.lines())),
            Block::Text(_, text, extent) => {
                self.lines(&format!("{indent}  "), extent.lines(text, QUOTED));
            }
            Block::Changes(changes) => {
                let stat = diff::stat(changes);
                let graph = stat.text(WIDTH);
                let files = graph.lines().take(stat.files.len());
                self.lines(indent, files.map(|line| &line[1..]));
                self.lines(indent, [changed(&stat)]);
            }
            Block::Table(rows) => {
                let columns = self.columns.map(|all| all.saturating_sub(indent.len()));
                self.lines(indent, table(rows, columns));
            }
            Block::Tools(tools) => tools.iter().for_each(|tool| self.section(indent, tool)),
            Block::Details(..) => {}
        }
    }
}

/// Formats a title with an outcome.
fn titled(title: &str, outcome: Option<&Outcome>) -> String {
    let title = cut(title, WIDTH);
    match outcome {
        Some((is_good, words)) => format!("{} {title} ({words})", mark(*is_good)),
        None => title.into_owned(),
    }
}
