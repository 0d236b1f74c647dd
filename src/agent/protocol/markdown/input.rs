//! A tool's input, read by what parameters the tool takes. Pure.
//!
//! Paths come first, a line each. What else there is follows: one parameter as it is, more of them as
//! fenced blocks that are labelled with the parameters' names. Guarantees that a block is taken byte by
//! byte, and that none whose end cannot be told is taken at all.

use super::super::Fault;
use super::blocks::{Form, Labels, block, content, nothing_else, open, without_last_line_end};
use super::command::command;
use super::lines::{Block, BlockProblem, Fence, Line, joined, trimmed};
use super::sections::Name;
use crate::agent::tool::{Arguments, Parameter, ParameterKind, ToolSpec};

/// The arguments of `tool` that `input` tells; `heading` is the line of the section's heading.
///
/// # Errors
/// What is wrong with the input, and what is expected.
pub fn arguments(
    tool: &'static ToolSpec,
    input: &[Line<'_>],
    heading: usize,
) -> Result<Arguments, Fault> {
    let mut arguments = Arguments::default();
    let (paths, others) = shape(tool);
    if paths.is_empty() && others.is_empty() {
        return one_tool(input).map(|()| arguments);
    }
    let mut rest = Input {
        lines: trimmed(input),
        line: input.first().map_or(heading, |line| line.number),
    };
    let mut form = Form::Other;
    for parameter in paths {
        let path = rest.path(parameter)?;
        form = Form::of(&path);
        arguments.set(parameter.name, path);
    }
    match others.as_slice() {
        [] => rest.end()?,
        [only] => arguments.set(only.name, rest.only(only, form)?),
        parameters => {
            let labels = Labels { parameters, form };
            rest.labelled(&labels, &mut arguments)?;
        }
    }
    Ok(arguments)
}

/// The parameters of a tool as they stand in its input: paths, and what else there is.
pub fn shape(tool: &ToolSpec) -> (Vec<&'static Parameter>, Vec<&'static Parameter>) {
    let is_path = |parameter: &&Parameter| parameter.kind == ParameterKind::Path;
    tool.parameters.iter().partition(is_path)
}

/// That nothing is meant to be another call. Words are passed over by a tool that takes none.
fn one_tool(input: &[Line<'_>]) -> Result<(), Fault> {
    let mut lines = input.iter();
    match lines.find(|line| Name::of(line) == Some(Name::ToolChoice)) {
        None => Ok(()),
        Some(line) => Err(Fault::at(line.number, "a reply uses one tool")),
    }
}

/// What is still to be read.
struct Input<'a, 'r> {
    /// Less the blank lines around it.
    lines: &'a [Line<'r>],
    /// The line up to which it was read, for faults at the end.
    line: usize,
}

impl<'r> Input<'_, 'r> {
    /// Takes `count` lines, and the blank ones behind.
    fn skip(&mut self, count: usize) {
        let (taken, rest) = self.lines.split_at(count.min(self.lines.len()));
        self.line = taken.last().map_or(self.line, |line| line.number);
        self.lines = trimmed(rest);
    }

    /// Takes a path.
    fn path(&mut self, parameter: &Parameter) -> Result<String, Fault> {
        let expected = || {
            let Parameter { name, meaning, .. } = parameter;
            format!("expected `{name}` ({meaning}) on a line of its own, in double quotes")
        };
        let Some(first) = self.lines.first() else {
            return Err(Fault::at(self.line, expected()));
        };
        let (line, taken) = match first.fence() {
            Some(fence) => self
                .path_in_block(&fence)
                .ok_or_else(|| Fault::at(first.number, expected()))?,
            None => (*first, 1),
        };
        self.skip(taken);
        let text = line.text().trim();
        path(text).map(str::to_owned).ok_or_else(|| {
            let problem = format!("{}, but found `{text}`", expected());
            Fault::at(line.number, problem)
        })
    }

    /// The one line of the block that `fence` opens, and how many lines the block has.
    fn path_in_block(&self, fence: &Fence<'_>) -> Option<(Line<'r>, usize)> {
        let rest = self.lines.get(1..)?;
        let end = rest
            .iter()
            .position(|line| line.fence().is_some_and(|end| end.closes(fence)))?;
        match trimmed(rest.get(..end)?) {
            [line] => Some((*line, end + 2)),
            _ => None,
        }
    }

    /// Takes the end.
    fn end(&self) -> Result<(), Fault> {
        match self.lines.first() {
            None => Ok(()),
            Some(line) => Err(Fault::at(
                line.number,
                "nothing is expected here: this tool takes one line of input, and a reply uses one tool",
            )),
        }
    }

    /// Takes all that is left as the argument for `parameter`.
    fn only(&self, parameter: &Parameter, form: Form) -> Result<String, Fault> {
        let text = match parameter.kind {
            ParameterKind::Path | ParameterKind::Block => {
                return Ok(joined(self.block(parameter, form)?));
            }
            ParameterKind::Text => self.text()?,
            ParameterKind::Command => command(self.lines)?,
        };
        if text.trim().is_empty() {
            let Parameter { name, meaning, .. } = parameter;
            return Err(Fault::at(
                self.line,
                format!("expected `{name}` ({meaning}) under `## Tool Input`"),
            ));
        }
        // The line ends of words are the reply's own.
        Ok(text.replace("\r\n", "\n"))
    }

    fn block(&self, parameter: &Parameter, form: Form) -> Result<&[Line<'r>], Fault> {
        let Parameter { name, meaning, .. } = parameter;
        let expected = || format!("expected a fenced code block with `{name}` ({meaning})");
        let Some(first) = self.lines.first() else {
            return Err(Fault::at(self.line, expected()));
        };
        let Some(fence) = first.fence() else {
            return Err(Fault::at(first.number, expected()));
        };
        // Either says so, the file's name or what stands behind the fence.
        let form = match form {
            Form::Other => Form::of(fence.label()),
            Form::Markdown => form,
        };
        let block = block(self.lines, &fence)?;
        nothing_else(&block)?;
        content(&block, &fence, form)
    }

    /// All of it; of what is one fenced block, the content.
    fn text(&self) -> Result<String, Fault> {
        let Some(fence) = self.lines.first().and_then(Line::fence) else {
            return Ok(joined(self.lines).trim().to_owned());
        };
        match Block::of(self.lines, &fence) {
            Ok(block) if block.behind.is_empty() => {
                Ok(without_last_line_end(joined(block.content)))
            }
            Err(BlockProblem::Open) => Err(open(&fence)),
            Ok(_) | Err(BlockProblem::Unclear(_)) => Ok(joined(self.lines).trim().to_owned()),
        }
    }

    /// Takes a block for each of the parameters, in any order.
    fn labelled(&self, labels: &Labels<'_>, arguments: &mut Arguments) -> Result<(), Fault> {
        let mut seen: Vec<&str> = Vec::new();
        for part in labels.parts(self.lines) {
            let (parameter, value) = labels.argument(part)?;
            if seen.contains(&parameter.name) {
                let problem = format!("there is another code block labelled `{}`", parameter.name);
                return Err(Fault::at(
                    part.first().map_or(self.line, |line| line.number),
                    problem,
                ));
            }
            seen.push(parameter.name);
            arguments.set(parameter.name, value);
        }
        let is_missing = |known: &&&Parameter| !seen.contains(&known.name);
        let Some(missing) = labels.parameters.iter().find(is_missing) else {
            return Ok(());
        };
        let Parameter { name, meaning, .. } = missing;
        let line = self.lines.first().map_or(self.line, |line| line.number);
        let problem = format!("there is no code block labelled `{name}` ({meaning})");
        Err(Fault::at(line, problem))
    }
}

/// A path less the quotes around it; `None` where it is empty, a quote is open, or it is more than a path.
fn path(text: &str) -> Option<&str> {
    let quote = text.chars().next()?;
    if !matches!(quote, '"' | '\'' | '`') {
        return is_bare_path(text).then_some(text);
    }
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.trim().is_empty()).then_some(inner)
}

/// Whether it has none of what models write around a path. A path that really has it goes between quotes.
fn is_bare_path(text: &str) -> bool {
    let is_foreign = |c: char| {
        c.is_whitespace()
            || "\"'`\u{201c}\u{201d}\u{2018}\u{2019}\u{ab}\u{bb}\u{200b}\u{feff}".contains(c)
    };
    let is_within = |open: &str, close: &str| text.starts_with(open) && text.ends_with(close);
    let is_adorned = text.starts_with(['#', '<', '>'])
        || text.ends_with([':', ',', ';'])
        || is_within("(", ")")
        || is_within("[", ")")
        || is_within("**", "**") && text.len() > "****".len();
    // A sentence's end.
    let before_dot = text.strip_suffix('.').and_then(|text| text.chars().last());
    let is_sentence = before_dot.is_some_and(char::is_alphanumeric);
    // `path=…`; one letter is a drive's.
    let name = text.find([':', '=']).and_then(|at| text.get(..at));
    let is_labelled =
        name.is_some_and(|name| name.len() > 1 && name.chars().all(|c| c.is_ascii_alphabetic()));
    !(text.contains(is_foreign) || is_adorned || is_sentence || is_labelled)
}
