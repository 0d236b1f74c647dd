//! The sections of a response. Pure.

use super::super::Fault;
use super::lines::{Line, Nesting, is_title, joined, trimmed};
use crate::record::tasks::{Task, TaskStatus};

/// The sections that a response can have, under these headings of any level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Thoughts,
    TaskList,
    ToolChoice,
    ToolInput,
}

impl Name {
    /// The section that `line` is the heading of.
    pub fn of(line: &Line<'_>) -> Option<Self> {
        let (_, title) = line.heading()?;
        let names = [
            ("Thoughts", Self::Thoughts),
            ("Task List", Self::TaskList),
            ("Tool Choice", Self::ToolChoice),
            ("Tool Input", Self::ToolInput),
        ];
        let found = names.into_iter().find(|(name, _)| is_title(title, name));
        found.map(|(_, name)| name)
    }
}

/// A section, its heading first.
#[derive(Debug, Clone, Copy)]
struct Section<'a, 'r> {
    name: Name,
    /// Where in the response its heading is.
    at: usize,
    heading: &'a Line<'r>,
    body: &'a [Line<'r>],
}

/// The sections of a response, as they stand in it.
#[derive(Debug, Clone)]
pub struct Sections<'a, 'r> {
    /// The line of the response's header.
    header: usize,
    found: Vec<Section<'a, 'r>>,
}

impl<'a, 'r> Sections<'a, 'r> {
    /// The sections of `lines`, which begin with the response's header.
    ///
    /// A heading inside a fenced block is a quotation, unless a fence that was never closed hides all that
    /// is looked for.
    pub fn of(lines: &'a [Line<'r>]) -> Self {
        Self::outside_of_fences(lines).unwrap_or_else(|| Self::found(lines, false))
    }

    /// The sections whose headings are in no fenced block; `None` where a tool or its input is not among
    /// them.
    pub fn outside_of_fences(lines: &'a [Line<'r>]) -> Option<Self> {
        let found = Self::found(lines, true);
        (found.has(Name::ToolChoice) && found.has(Name::ToolInput)).then_some(found)
    }

    fn found(lines: &'a [Line<'r>], are_fences_heeded: bool) -> Self {
        let mut headings: Vec<(usize, Name)> = Vec::new();
        let mut nesting = Nesting::default();
        for (at, line) in lines.iter().enumerate().skip(1) {
            if are_fences_heeded {
                nesting.step(line);
            }
            let Some(name) = Name::of(line).filter(|_| nesting.is_closed()) else {
                continue;
            };
            headings.push((at, name));
            // All that follows belongs to it.
            if name == Name::ToolInput {
                break;
            }
        }
        let ends = headings
            .iter()
            .skip(1)
            .map(|(at, _)| *at)
            .chain([lines.len()]);
        let section = |((at, name), end): (&(usize, Name), usize)| {
            let (heading, body) = lines.get(*at..end)?.split_first()?;
            Some(Section {
                name: *name,
                at: *at,
                heading,
                body,
            })
        };
        Self {
            header: lines.first().map_or(1, |line| line.number),
            found: headings.iter().zip(ends).filter_map(section).collect(),
        }
    }

    fn has(&self, name: Name) -> bool {
        self.named(name).next().is_some()
    }

    fn named(&self, name: Name) -> impl Iterator<Item = &Section<'a, 'r>> {
        self.found
            .iter()
            .filter(move |section| section.name == name)
    }

    /// What stands under `## Thoughts`.
    pub fn thoughts(&self) -> String {
        let bodies: Vec<String> = self
            .named(Name::Thoughts)
            .map(|section| joined(section.body).trim().to_owned())
            .collect();
        bodies.join("\n\n").trim().to_owned()
    }

    /// The task list; `None` where no task is named: that is no list, and the one that was before stays.
    pub fn tasks(&self) -> Option<Vec<Task>> {
        let lists = self
            .named(Name::TaskList)
            .map(|section| tasks(section.body));
        lists.filter(|tasks| !tasks.is_empty()).last()
    }

    /// The tools that are named under `## Tool Choice`, less their ornaments, each with its line; at least one.
    ///
    /// # Errors
    /// Where none is.
    pub fn choices(&self) -> Result<Vec<(&'r str, usize)>, Fault> {
        let mut sections = self.named(Name::ToolChoice).peekable();
        let Some(first) = sections.peek().map(|section| section.heading.number) else {
            let behind = if self.has(Name::ToolInput) {
                " before `## Tool Input`, which comes last"
            } else {
                ""
            };
            let problem = format!("there is no `## Tool Choice` section{behind}");
            return Err(Fault::at(self.header, problem));
        };
        let lines = sections.flat_map(|section| section.body);
        let named: Vec<_> = lines
            .filter(|line| line.fence().is_none())
            .map(|line| (line.text().trim_matches(is_ornament), line.number))
            .filter(|(name, _)| !name.is_empty())
            .collect();
        if named.is_empty() {
            let problem = "no tool is named under `## Tool Choice`".to_owned();
            return Err(Fault::at(first, problem));
        }
        Ok(named)
    }

    /// What stands under `## Tool Input`, less the blank lines around it, and the line of its heading.
    pub fn input(&self) -> Option<(&'a [Line<'r>], usize)> {
        let section = self.named(Name::ToolInput).next()?;
        Some((trimmed(section.body), section.heading.number))
    }

    /// Where in the response the heading of the tool's input is.
    pub fn input_at(&self) -> Option<usize> {
        self.named(Name::ToolInput).next().map(|section| section.at)
    }
}

/// Whether a tool's name may have `c` around it.
fn is_ornament(c: char) -> bool {
    c.is_whitespace() || "`*\"':.-[]".contains(c)
}

/// The tasks of a list. An indented line goes on with the task above it; others are passed over.
fn tasks(lines: &[Line<'_>]) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    for line in lines {
        let text = line.text();
        if let Some(task) = task(text) {
            tasks.push(task);
        } else if let Some(last) = tasks.last_mut()
            && text.starts_with([' ', '\t'])
            && !line.is_blank()
        {
            last.text.push(' ');
            last.text.push_str(text.trim());
        }
    }
    tasks
}

/// The task that a line names.
fn task(line: &str) -> Option<Task> {
    let text = without_bullet(line.trim_start()).strip_prefix('[')?;
    let (sign, text) = text.split_once(']')?;
    let status = status(sign.trim())?;
    // A link has its address right behind it.
    let text = Some(text).filter(|text| !text.starts_with('('))?.trim();
    (!text.is_empty()).then(|| Task {
        status,
        text: text.to_owned(),
    })
}

/// The state that stands in a task's brackets. Some models have signs of their own; their tasks must not be lost.
fn status(sign: &str) -> Option<TaskStatus> {
    Some(match sign.trim_end_matches('\u{fe0f}') {
        "" | "!" | "?" | "\u{2717}" | "\u{2718}" | "\u{274c}" => TaskStatus::Pending,
        "~" | "-" | "/" | ">" | "*" | "\u{23f3}" | "\u{1f504}" | "\u{1f6a7}" => {
            TaskStatus::InProgress
        }
        "x" | "X" | "v" | "V" | "+" | "\u{d7}" | "\u{221a}" | "\u{2611}" | "\u{2705}"
        | "\u{2713}" | "\u{2714}" => TaskStatus::Complete,
        _ => return None,
    })
}

/// `text` less the bullet or the number of a list's item.
fn without_bullet(text: &str) -> &str {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let bullets: &[char] = if number.len() < text.len() {
        &['.', ')']
    } else {
        &['-', '*', '+']
    };
    let item = number.strip_prefix(bullets);
    item.filter(|item| item.starts_with([' ', '\t']))
        .map_or(text, str::trim_start)
}
