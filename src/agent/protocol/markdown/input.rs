//! A tool's input, read by what parameters the tool takes. Pure.
//!
//! Paths come first, a line each. What else there is follows: one parameter as it is, more of them as code
//! blocks that are labelled with the parameters' names. Guarantees that a block is taken byte by byte up to the
//! first fence that closes it, and that no tool is given a part of an input.

use std::sync::LazyLock;

use regex::Regex;

use super::super::Fault;
use super::command;
use super::lines::{Line, fenced, joined, trimmed};
use crate::agent::tool::{Arguments, Parameter, ParameterKind, ToolSpec};
use crate::sys::fences::FenceLine;
use crate::sys::text::regex;

/// The arguments of `tool` that `input` tells; `heading` is the line of the section's heading.
///
/// # Errors
/// What is wrong with the input, and what is expected.
pub fn arguments(tool: &ToolSpec, input: &[Line<'_>], heading: usize) -> Result<Arguments, Fault> {
    if tool.schema.is_some() {
        return object(input, heading);
    }
    let mut arguments = Arguments::default();
    let (paths, others) = shape(tool);
    let mut rest = Input {
        lines: input,
        line: input.first().map_or(heading, |line| line.number),
    };
    for parameter in &paths {
        arguments.set(parameter.name, rest.path(parameter)?);
    }
    match others.as_slice() {
        // One that takes nothing is content with anything.
        [] if paths.is_empty() => {}
        [] => rest.end("nothing is expected here: this tool takes one line of input, and a reply uses one tool")?,
        [only] => arguments.set(only.name, rest.only(only)?),
        parameters => rest.labelled(parameters, &mut arguments)?,
    }
    Ok(arguments)
}

/// What a tool that came at run time is given: a JSON object, alone in a block.
fn object(input: &[Line<'_>], heading: usize) -> Result<Arguments, Fault> {
    let first = input.first().map_or(heading, |line| line.number);
    let mut rest = Input {
        lines: input,
        line: first,
    };
    let expected = "expected a JSON object in a code block";
    let block = rest.block().ok_or_else(|| Fault::at(first, expected))?;
    rest.end(BEHIND)?;
    let read = serde_json::from_str(&joined(block.content));
    let object = read.map_err(|error| Fault::at(first, format!("{expected}: {error}")))?;
    Ok(Arguments::of(object))
}

/// Whether a tool has any input.
pub fn is_needed(tool: &ToolSpec) -> bool {
    let (paths, others) = shape(tool);
    !paths.is_empty() || !others.is_empty() || tool.schema.is_some()
}

/// The parameters of a tool as they stand in its input: paths, and what else there is.
pub fn shape(tool: &ToolSpec) -> (Vec<&'static Parameter>, Vec<&'static Parameter>) {
    let is_path = |parameter: &&Parameter| parameter.kind == ParameterKind::Path;
    // The task list has a section of its own.
    let is_input = |parameter: &&Parameter| parameter.kind != ParameterKind::Tasks;
    tool.parameters.iter().filter(is_input).partition(is_path)
}

/// What is still to be read.
struct Input<'a, 'r> {
    /// Less the blank lines around it.
    lines: &'a [Line<'r>],
    /// The line up to which it was read, for faults at the end.
    line: usize,
}

/// A code block.
struct Block<'a, 'r> {
    opening: &'a Line<'r>,
    content: &'a [Line<'r>],
}

impl<'a, 'r> Input<'a, 'r> {
    /// Takes `count` lines, and the blank ones behind.
    fn skip(&mut self, count: usize) {
        let (taken, rest) = self.lines.split_at(count.min(self.lines.len()));
        self.line = taken.last().map_or(self.line, |line| line.number);
        self.lines = trimmed(rest);
    }

    fn fault(&self, problem: impl Into<String>) -> Fault {
        let line = self.lines.first().map_or(self.line, |line| line.number);
        Fault::at(line, problem)
    }

    /// Takes the end.
    fn end(&self, problem: &str) -> Result<(), Fault> {
        if self.lines.is_empty() {
            Ok(())
        } else {
            Err(self.fault(problem))
        }
    }

    /// Takes a block, where one is next.
    fn block(&mut self) -> Option<Block<'a, 'r>> {
        let opening = self.lines.first().filter(|line| line.fence().is_some())?;
        let mut fences = fenced(self.lines);
        let (end, ..) = fences.find(|(_, _, place)| *place == FenceLine::Closing)?;
        let content = self.lines.get(1..end)?;
        self.skip(end + 1);
        Some(Block { opening, content })
    }

    /// Takes the line that names a parameter above a block; "" where there is none.
    fn label(&mut self) -> &'r str {
        let (Some(label), Some(next)) = (
            self.lines.first(),
            self.lines.iter().skip(1).find(|line| !line.is_blank()),
        ) else {
            return "";
        };
        let name = label.text().trim_matches(|c: char| !c.is_alphabetic());
        let is_name = name.chars().all(|c| c.is_alphabetic() || c == '_');
        if label.fence().is_some() || next.fence().is_none() || name.is_empty() || !is_name {
            return "";
        }
        self.skip(1);
        name
    }

    /// Takes a path.
    fn path(&mut self, parameter: &Parameter) -> Result<String, Fault> {
        let Parameter { name, meaning, .. } = parameter;
        let expected =
            format!("expected `{name}` ({meaning}) on a line of its own, in double quotes");
        let missing = self.fault(&expected);
        // A path may stand alone in a block, too.
        let lines = if let Some(block) = self.block() {
            trimmed(block.content)
        } else {
            let first = self.lines.get(..1).unwrap_or_default();
            self.skip(1);
            first
        };
        let [line] = lines else { return Err(missing) };
        let text = line.text().trim();
        let found = path(text).map(str::to_owned);
        found.ok_or_else(|| line.fault(format!("{expected}, but found `{text}`")))
    }

    /// Takes all that is left as the argument for `parameter`.
    fn only(&mut self, parameter: &Parameter) -> Result<String, Fault> {
        let Parameter {
            name,
            meaning,
            kind,
        } = parameter;
        let all = self.lines;
        let begin = self.line;
        if !self.label().eq_ignore_ascii_case(name) {
            (self.lines, self.line) = (all, begin);
        }
        let block = self.block();
        let is_alone = self.lines.is_empty();
        let text = match (kind, block) {
            (ParameterKind::Path | ParameterKind::Block, None) => {
                let problem = format!("expected a fenced code block with `{name}` ({meaning})");
                return Err(self.fault(problem));
            }
            (ParameterKind::Path | ParameterKind::Block, Some(block)) => {
                self.end(BEHIND)?;
                return Ok(joined(block.content));
            }
            (ParameterKind::Text | ParameterKind::Tasks, Some(block)) if is_alone => {
                joined(block.content)
            }
            (ParameterKind::Text | ParameterKind::Tasks, _) => joined(all).trim().to_owned(),
            (ParameterKind::Command, Some(block)) => {
                self.end(BEHIND)?;
                command::in_block(block.opening, block.content)?
            }
            (ParameterKind::Command, None) => command::raw(all)?.trim().to_owned(),
        };
        if text.trim().is_empty() {
            let line = all.first().map_or(begin, |line| line.number);
            let problem = format!("expected `{name}` ({meaning}) under `## Tool Input`");
            return Err(Fault::at(line, problem));
        }
        // The line ends of words are the reply's own.
        Ok(without_last_line_end(text).replace("\r\n", "\n"))
    }

    /// Takes a block for each of the parameters, in any order.
    fn labelled(
        &mut self,
        parameters: &[&'static Parameter],
        arguments: &mut Arguments,
    ) -> Result<(), Fault> {
        let names: Vec<String> = parameters
            .iter()
            .map(|known| format!("`{}`", known.name))
            .collect();
        let names = names.join(" and ");
        let mut missing = parameters.to_vec();
        let begin = self.fault("");
        while !self.lines.is_empty() {
            let label = self.label();
            let problem = self.fault(format!(
                "expected code blocks labelled {names}, and nothing beside them"
            ));
            let block = self.block().ok_or(problem)?;
            let info = block.opening.fence().map_or("", |fence| fence.info);
            let info = info.split_whitespace().next().unwrap_or_default();
            let is_info = |known: &Parameter| known.name.eq_ignore_ascii_case(info);
            let is_other =
                !label.eq_ignore_ascii_case(info) && parameters.iter().any(|known| is_info(known));
            let found = if label.is_empty() { info } else { label };
            // A label above counts, unless the fence has another parameter's.
            let at = missing
                .iter()
                .position(|known| known.name.eq_ignore_ascii_case(found))
                .filter(|_| label.is_empty() || !is_other);
            let Some(at) = at else {
                let found = match found {
                    "" => "without a label".to_owned(),
                    label => format!("labelled `{label}`"),
                };
                return Err(block.opening.fault(format!(
                    "a code block {found}, where those that are expected are {names}, each once; content that has \
                     fences goes between longer ones"
                )));
            };
            let parameter = missing.remove(at);
            arguments.set(parameter.name, without_last_line_end(joined(block.content)));
        }
        match missing.first() {
            None => Ok(()),
            Some(Parameter { name, meaning, .. }) => Err(Fault {
                problem: format!("there is no code block labelled `{name}` ({meaning})"),
                ..begin
            }),
        }
    }
}

const BEHIND: &str = "nothing is expected behind the code block, which ends at the first line that has nothing \
                      but the same fence: content that has such lines goes between longer fences (````)";

/// `text` less its last line end.
fn without_last_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// What models write in front of a path.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?i)^(?:[-*+] )?\s*",
        r"(?:[*`_]*(?:path|file|filename|file[ _]path|directory|glob|pattern|to)[*`_]*:(?:\*\*)?)?\s*"
    ))
});
static BOLD: LazyLock<Regex> = LazyLock::new(|| regex(r"^\*\*([^*/]|[^*/][^*]*[^*/])\*\*$"));
static IN_QUOTES: LazyLock<Regex> =
    LazyLock::new(|| regex("^(?:\"(.*)\"|'(.*)'|`(.*)`|\u{201c}(.*)\u{201d})$"));
/// What models write around a path: quotes and blanks, the signs of Markdown, a sentence's end, `path=`. A path that
/// really has it goes between quotes.
static NO_BARE_PATH: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        "[\\s\"'`\u{201c}\u{201d}\u{2018}\u{2019}\u{ab}\u{bb}\u{200b}\u{feff}]",
        r"|^[#<>]|[:,;]$|^[(\[].*\)$|^\*\*.+\*\*$|[\p{Alphabetic}\p{N}]\.$|^[A-Za-z]{2,}[:=]"
    ))
});

/// A path less what is around it; `None` where it is empty, a quote is open, or it is more than a path.
fn path(text: &str) -> Option<&str> {
    let text = text.get(LABEL.find(text).map_or(0, |label| label.end())..)?;
    let inner = |found: ::regex::Captures<'_>| {
        found
            .iter()
            .skip(1)
            .flatten()
            .next()
            .map(|inner| inner.range())
    };
    let bold = BOLD.captures(text).and_then(inner);
    let text = bold.and_then(|bold| text.get(bold)).unwrap_or(text);
    if let Some(inner) = IN_QUOTES.captures(text).and_then(inner) {
        return text.get(inner).filter(|inner| !inner.trim().is_empty());
    }
    (!text.is_empty() && !NO_BARE_PATH.is_match(text)).then_some(text)
}
