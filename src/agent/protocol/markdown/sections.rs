//! The sections of a response: thoughts, task list, the tool's name and its input. Pure.
//!
//! Guarantees that headings in code blocks are not taken for those of the response.

use super::super::Fault;
use super::lines::{Name, ReplyLine, fenced, joined, trimmed};
use crate::agent::tool::{ToolSpec, Toolbox};
use crate::record::tasks::Task;
use crate::sys::fences::FenceLine;

/// A section of a response.
#[derive(Debug, Clone)]
struct ReplySection<'r> {
    name: Name,
    /// The line number of its heading.
    at: usize,
    /// The text after the heading's colon, and the lines below.
    body: Vec<ReplyLine<'r>>,
}

/// The sections of a response, in order.
#[derive(Debug, Clone, Default)]
pub struct Sections<'r> {
    /// The line number of the response's header.
    header: usize,
    found: Vec<ReplySection<'r>>,
}

impl<'r> Sections<'r> {
    /// Splits `lines`, which begin with the response's header, into sections. Everything after `## Tool Input` is
    /// input, except a task list after its last code block.
    ///
    /// # Errors
    /// Fails if a code block above the input contains a heading that names a tool or its input.
    pub fn of(lines: &[ReplyLine<'r>]) -> Result<Self, Fault> {
        let header = lines.first().map_or(1, |line| line.number);
        let mut found: Vec<ReplySection<'_>> = Vec::new();
        for (_, line, place) in fenced(lines).skip(1) {
            let is_input = found
                .last()
                .is_some_and(|last| last.name == Name::ToolInput);
            match (line.heading().filter(|_| !is_input), place) {
                (Some((name, raw)), FenceLine::Outside) => found.push(ReplySection {
                    name,
                    at: line.number,
                    body: vec![ReplyLine { raw, ..*line }],
                }),
                (Some((Name::ToolChoice | Name::ToolInput, _)), _) => {
                    return Err(line.fault("this heading is in a code block").with_remedy(
                        "close the block that was opened above, or leave the heading out of it",
                    ));
                }
                _ => {
                    if let Some(section) = found.last_mut() {
                        section.body.push(*line);
                    }
                }
            }
        }
        let last = found.last_mut().filter(|last| last.name == Name::ToolInput);
        let list = last.and_then(|input| Some((task_list(&input.body)?, input)));
        if let Some((at, input)) = list {
            let body = input.body.split_off(at);
            found.push(ReplySection {
                name: Name::TaskList,
                at: body.first().map_or(header, |line| line.number),
                body,
            });
        }
        Ok(Self { header, found })
    }

    fn named(&self, name: Name) -> impl Iterator<Item = &ReplySection<'r>> {
        self.found
            .iter()
            .filter(move |section| section.name == name)
    }

    /// Returns whether any section is a tool choice or a tool input.
    pub fn name_a_tool(&self) -> bool {
        let mut names = self.found.iter().map(|section| section.name);
        names.any(|name| matches!(name, Name::ToolChoice | Name::ToolInput))
    }

    /// Returns the text under `## Thoughts`.
    pub fn thoughts(&self) -> String {
        let bodies = self
            .named(Name::Thoughts)
            .map(|section| joined(&section.body).trim().to_owned());
        bodies.collect::<Vec<_>>().join("\n\n").trim().to_owned()
    }

    /// Returns the task list; `None` if it names no task, in which case the previous list remains.
    pub fn tasks(&self) -> Option<Vec<Task>> {
        let lists = self
            .named(Name::TaskList)
            .map(|section| tasks(&section.body));
        lists.filter(|tasks| !tasks.is_empty()).last()
    }

    /// Returns the lines under `## Tool Input`, without blank lines at either end, and the line number of the heading.
    pub fn input(&self) -> Option<(&[ReplyLine<'r>], usize)> {
        let section = self.named(Name::ToolInput).next()?;
        Some((trimmed(&section.body), section.at))
    }

    /// Returns the number of the line that says `NONE` in place of a tool.
    pub fn none(&self) -> Option<usize> {
        let chosen = self.named(Name::ToolChoice);
        let mut lines = chosen.flat_map(|section| &section.body);
        let word = |line: &ReplyLine<'r>| line.text().trim_matches(is_ornament);
        let none = lines.find(|line| word(line).eq_ignore_ascii_case("none"))?;
        Some(none.number)
    }

    /// Returns the chosen tool, and the number of the line that names it.
    ///
    /// # Errors
    /// Fails if no tool is chosen, or more than one.
    pub fn tool<'t>(&self, tools: &'t Toolbox<'_>) -> Result<(&'t ToolSpec, usize), Fault> {
        let Some(first) = self.named(Name::ToolChoice).next() else {
            let place = " before `## Tool Input`, which comes last";
            let behind = if self.name_a_tool() { place } else { "" };
            let problem = format!("there is no `## Tool Choice` section{behind}");
            return Err(Fault::at(self.header, problem));
        };
        let mut lines = Vec::new();
        for section in self.named(Name::ToolChoice) {
            lines.extend(name_lines(&section.body)?);
        }
        let mut named = lines.iter().flat_map(|line| {
            let tools = named_in(line.text(), tools).into_iter();
            tools.map(|tool| (tool, line.number))
        });
        let Some((tool, at)) = named.next() else {
            return Err(lines.first().map_or_else(
                || Fault::at(first.at, "no tool is named under `## Tool Choice`"),
                |line| line.fault(tools.unknown(line.text().trim_matches(is_ornament))),
            ));
        };
        let Some((other, beside)) = named.find(|(other, _)| other.name != tool.name) else {
            return Ok((tool, at));
        };
        let (tool, other) = (&tool.name, &other.name);
        let problem = format!("`{other}` besides `{tool}`: a reply uses one tool");
        Err(Fault::at(beside, problem))
    }
}

/// Returns the lines of a tool choice that may name the tool, without a code block around all of them.
fn name_lines<'r>(body: &[ReplyLine<'r>]) -> Result<Vec<ReplyLine<'r>>, Fault> {
    let lines = trimmed(body);
    let inner = match lines {
        [first, inner @ .., last] if first.fence().is_some() && last.fence().is_some() => inner,
        _ => lines,
    };
    match inner.iter().find(|line| line.fence().is_some()) {
        Some(line) => Err(line.fault(
            "a code block under `## Tool Choice`: a tool's input goes under `## Tool Input`",
        )),
        None => Ok(inner
            .iter()
            .filter(|line| !line.text().trim_matches(is_ornament).is_empty())
            .copied()
            .collect()),
    }
}

/// Returns the tools named on a line: as the whole line in any spelling, or as exactly spelled words within it.
fn named_in<'t>(text: &str, tools: &'t Toolbox<'_>) -> Vec<&'t ToolSpec> {
    // Markdown escapes underscores that mark no emphasis.
    let text = text.replace("\\_", "_");
    let whole = text.trim_matches(is_ornament).replace([' ', '-'], "_");
    let is_whole = |tool: &&ToolSpec| tool.name.eq_ignore_ascii_case(&whole);
    if let Some(tool) = tools.specs().find(is_whole) {
        return vec![tool];
    }
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let known = words.filter_map(|word| tools.named(word.trim_matches('_')));
    known.collect()
}

/// Returns whether `c` may be decoration around a tool's name.
fn is_ornament(c: char) -> bool {
    !c.is_alphabetic()
}

/// Returns the index where a task list begins after an input's last code block; `None` if there is no list, or anything
/// besides a heading and tasks.
fn task_list(input: &[ReplyLine<'_>]) -> Option<usize> {
    let closing = fenced(input).filter(|(_, _, place)| *place == FenceLine::Closing);
    let behind = closing.last()?.0 + 1;
    let (heading, tasks) = trimmed(input.get(behind..)?).split_first()?;
    let is_task = |line: &ReplyLine<'_>| line.is_blank() || Task::parse(line.text()).is_some();
    let is_list = heading.heading() == Some((Name::TaskList, ""))
        && !tasks.is_empty()
        && tasks.iter().all(is_task);
    let mut lines = input.iter().filter(|_| is_list);
    lines.position(|line| line.number == heading.number)
}

/// Parses the tasks of a list. An indented line continues the task above it; other lines are ignored.
pub fn tasks(lines: &[ReplyLine<'_>]) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    for line in lines {
        let text = line.text();
        if let Some(task) = Task::parse(text) {
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
