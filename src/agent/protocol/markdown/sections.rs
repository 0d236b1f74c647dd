//! A response's sections: thoughts, task list, the tool's name, and its input. Pure.
//!
//! Guarantees that no heading in a code block is taken for one of the response's own.

use super::super::Fault;
use super::lines::{Line, Name, fenced, joined, trimmed};
use crate::agent::tool::{ParameterKind, ToolSpec, Toolbox};
use crate::record::tasks::Task;
use crate::sys::fences::FenceLine;

/// A section.
#[derive(Debug, Clone)]
struct Section<'r> {
    name: Name,
    /// The line of its heading.
    at: usize,
    /// What stands behind the heading's colon, and below.
    body: Vec<Line<'r>>,
}

/// The sections of a response, as they stand in it.
#[derive(Debug, Clone, Default)]
pub struct Sections<'r> {
    /// The line of the response's header.
    header: usize,
    found: Vec<Section<'r>>,
}

impl<'r> Sections<'r> {
    /// The sections of `lines`, which begin with the response's header. All behind `## Tool Input` is input.
    ///
    /// # Errors
    /// Where a code block above the input holds a heading that names a tool or its input.
    pub fn of(lines: &[Line<'r>]) -> Result<Self, Fault> {
        let header = lines.first().map_or(1, |line| line.number);
        let mut found: Vec<Section<'_>> = Vec::new();
        for (at, line, place) in fenced(lines).skip(1) {
            match (line.heading(), place) {
                (Some((name, value)), FenceLine::Outside) => {
                    let mut section = Section {
                        name,
                        at: line.number,
                        body: Vec::new(),
                    };
                    section.body.extend(
                        Some(Line {
                            raw: value,
                            ..*line
                        })
                        .filter(|_| !value.is_empty()),
                    );
                    if name == Name::ToolInput {
                        section.body.extend(lines.iter().skip(at + 1));
                        found.push(section);
                        break;
                    }
                    found.push(section);
                }
                (Some((Name::ToolChoice | Name::ToolInput, _)), _) => {
                    return Err(line.fault(
                        "this heading stands in a code block: close the block that was opened above, or \
                         leave the heading out of it",
                    ));
                }
                _ => {
                    if let Some(section) = found.last_mut() {
                        section.body.push(*line);
                    }
                }
            }
        }
        Ok(Self { header, found })
    }

    fn named(&self, name: Name) -> impl Iterator<Item = &Section<'r>> {
        self.found
            .iter()
            .filter(move |section| section.name == name)
    }

    pub fn has(&self, name: Name) -> bool {
        self.named(name).next().is_some()
    }

    /// What stands under `## Thoughts`.
    pub fn thoughts(&self) -> String {
        let bodies: Vec<String> = self
            .named(Name::Thoughts)
            .map(|section| joined(&section.body).trim().to_owned())
            .collect();
        bodies.join("\n\n").trim().to_owned()
    }

    /// The task list; `None` where no task is named: that is no list, and the one that was before stays.
    pub fn tasks(&self) -> Option<Vec<Task>> {
        let lists = self
            .named(Name::TaskList)
            .map(|section| tasks(&section.body));
        lists.filter(|tasks| !tasks.is_empty()).last()
    }

    /// What stands under `## Tool Input`, less the blank lines around it, and the line of its heading.
    pub fn input(&self) -> Option<(&[Line<'r>], usize)> {
        let section = self.named(Name::ToolInput).next()?;
        Some((trimmed(&section.body), section.at))
    }

    /// Takes a task list that stands behind the input out of it, where that cannot be part of it.
    pub fn part_tasks(&mut self, tool: &ToolSpec) {
        let is_raw = tool.takes(ParameterKind::Text) || tool.takes(ParameterKind::Command);
        let Some(input) = self
            .found
            .last_mut()
            .filter(|last| last.name == Name::ToolInput)
        else {
            return;
        };
        let mut block_ended = false;
        let mut heading = None;
        for (at, line, place) in fenced(&input.body) {
            let is_heading = matches!(line.heading(), Some((Name::TaskList, _)));
            block_ended |= place == FenceLine::Closing;
            match place {
                FenceLine::Outside if is_heading && (block_ended || !is_raw) => heading = Some(at),
                FenceLine::Outside => {}
                _ => heading = None,
            }
        }
        let Some(at) = heading else { return };
        let is_list = |line: &Line<'_>| line.is_blank() || Task::parse(line.text()).is_some();
        if input.body.iter().skip(at + 1).all(is_list) {
            let body = input.body.split_off(at);
            let at = body.first().map_or(input.at, |line| line.number);
            self.found.push(Section {
                name: Name::TaskList,
                at,
                body,
            });
        }
    }

    /// The tool that is chosen, and the line that names it.
    ///
    /// # Errors
    /// Where none is, or more than one.
    pub fn tool<'t>(&self, tools: &'t Toolbox<'_>) -> Result<(&'t ToolSpec, usize), Fault> {
        let Some(first) = self.named(Name::ToolChoice).next() else {
            let behind = if self.has(Name::ToolInput) {
                " before `## Tool Input`, which comes last"
            } else {
                ""
            };
            let problem = format!("there is no `## Tool Choice` section{behind}");
            return Err(Fault::at(self.header, problem));
        };
        let bodies = self
            .named(Name::ToolChoice)
            .map(|section| name_lines(&section.body));
        let lines: Vec<Line<'_>> = bodies.collect::<Result<Vec<_>, Fault>>()?.concat();
        let mut chosen: Option<(&'t ToolSpec, usize)> = None;
        for line in &lines {
            for tool in named_in(line.text(), tools) {
                let (first, _) = *chosen.get_or_insert((tool, line.number));
                if first.name != tool.name {
                    return Err(line.fault(format!(
                        "`{}` besides `{}`: a reply uses one tool",
                        tool.name, first.name
                    )));
                }
            }
        }
        chosen.ok_or_else(|| match lines.first() {
            None => Fault::at(first.at, "no tool is named under `## Tool Choice`"),
            Some(line) => no_tool(line, tools),
        })
    }
}

/// The lines of a tool choice that may name the tool, less a code block that is around all of them.
fn name_lines<'r>(body: &[Line<'r>]) -> Result<Vec<Line<'r>>, Fault> {
    let lines = trimmed(body);
    let inner = match lines {
        [first, inner @ .., last] if first.fence().is_some() && last.fence().is_some() => inner,
        _ => lines,
    };
    match inner.iter().find(|line| line.fence().is_some()) {
        Some(line) => Err(line.fault(
            "a code block under `## Tool Choice`: what a tool is given stands under `## Tool Input`",
        )),
        None => Ok(inner.iter().filter(|line| !line.text().trim_matches(is_ornament).is_empty()).copied().collect()),
    }
}

/// The tools that a line names: as a whole in any spelling, or by words that are written just so.
fn named_in<'t>(text: &str, tools: &'t Toolbox<'_>) -> Vec<&'t ToolSpec> {
    // Markdown has it so, where no emphasis is meant.
    let text = text.replace("\\_", "_");
    let whole = text.trim_matches(is_ornament).replace([' ', '-'], "_");
    if let Some(tool) = tools
        .specs()
        .find(|tool| tool.name.eq_ignore_ascii_case(&whole))
    {
        return vec![tool];
    }
    let words = text.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let known = |word: &str| {
        tools
            .specs()
            .find(|tool| tool.name == word.trim_matches('_'))
    };
    words.filter_map(known).collect()
}

fn no_tool(line: &Line<'_>, tools: &Toolbox<'_>) -> Fault {
    let names: Vec<String> = tools
        .specs()
        .map(|tool| format!("`{}`", tool.name))
        .collect();
    let name = line.text().trim_matches(is_ornament);
    line.fault(format!(
        "there is no tool `{name}`; there are {}",
        names.join(", ")
    ))
}

/// Whether a tool's name may have `c` around it.
fn is_ornament(c: char) -> bool {
    !c.is_alphabetic()
}

/// The tasks of a list. An indented line goes on with the task above it; others are passed over.
fn tasks(lines: &[Line<'_>]) -> Vec<Task> {
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
