//! Parsing of a tool's input according to the tool's parameters. Pure.
//!
//! Paths come first, one per line. The other parameters follow: a single one as is, several as code blocks labelled
//! with the parameters' names. Guarantees that a block is taken byte by byte up to the first fence that closes it, and
//! that no tool receives part of an input.

use std::sync::LazyLock;

use regex::Regex;

use super::super::Fault;
use super::command;
use super::lines::{ReplyLine, fenced, joined, trimmed};
use crate::agent::tool::{Arguments, Parameter, ParameterKind, ToolSpec};
use crate::sys::fences::FenceLine;
use crate::sys::text::regex;

/// Returns the arguments for `tool` in `input`; `heading` is the line number of the section's heading.
///
/// # Errors
/// A fault that names the problem with the input and the expected form.
pub fn arguments(
    tool: &ToolSpec,
    input: &[ReplyLine<'_>],
    heading: usize,
) -> Result<Arguments, Fault> {
    let mut rest = Unread {
        lines: input,
        line: input.first().map_or(heading, |line| line.number),
    };
    if tool.schema.is_some() {
        return rest.object();
    }
    let mut arguments = Arguments::default();
    let (paths, others) = shape(tool);
    for parameter in &paths {
        arguments.set(parameter.name, rest.path(parameter)?);
    }
    match others.as_slice() {
        // A tool without parameters accepts any input.
        [] if paths.is_empty() => {}
        [] => rest.end("nothing is expected here: this tool takes one line of input, and a reply uses one tool")?,
        [only] if only.kind == ParameterKind::Lines => {
            if let Some(range) = rest.range() {
                arguments.set(only.name, range);
            }
            rest.end("nothing is expected here but a range of lines such as `10-80`: a reply uses one tool")?;
        }
        [only] => arguments.set(only.name, rest.only(only)?),
        parameters => rest.labelled(parameters, &mut arguments)?,
    }
    Ok(arguments)
}

/// Returns the parameters of a tool in the order of its input: paths, then the others.
pub fn shape(tool: &ToolSpec) -> (Vec<&'static Parameter>, Vec<&'static Parameter>) {
    let is_path = |parameter: &&Parameter| parameter.kind == ParameterKind::Path;
    // The task list has its own section.
    let is_input = |parameter: &&Parameter| parameter.kind != ParameterKind::Tasks;
    tool.parameters.iter().filter(is_input).partition(is_path)
}

/// The part of an input that has not been read yet.
struct Unread<'a, 'r> {
    /// The remaining lines, without blank lines at either end.
    lines: &'a [ReplyLine<'r>],
    /// The number of the last line read, for faults at the end.
    line: usize,
}

/// A code block.
struct Block<'a, 'r> {
    opening: &'a ReplyLine<'r>,
    content: &'a [ReplyLine<'r>],
}

impl<'a, 'r> Unread<'a, 'r> {
    /// Skips `count` lines and the blank lines after them.
    fn skip(&mut self, count: usize) {
        let (taken, rest) = self.lines.split_at(count.min(self.lines.len()));
        self.line = taken.last().map_or(self.line, |line| line.number);
        self.lines = trimmed(rest);
    }

    fn fault(&self, problem: impl Into<String>) -> Fault {
        let line = self.lines.first().map_or(self.line, |line| line.number);
        Fault::at(line, problem)
    }

    /// Expects the end of the input.
    fn end(&self, problem: &str) -> Result<(), Fault> {
        match self.lines {
            [] => Ok(()),
            [line, ..] => Err(line.fault(problem)),
        }
    }

    /// Takes a code block if it comes next.
    fn block(&mut self) -> Option<Block<'a, 'r>> {
        let opening = self.lines.first().filter(|line| line.fence().is_some())?;
        let mut fences = fenced(self.lines);
        let (end, ..) = fences.find(|(_, _, place)| *place == FenceLine::Closing)?;
        let content = self.lines.get(1..end)?;
        self.skip(end + 1);
        Some(Block { opening, content })
    }

    /// Takes the label, a single word on a line above a block; empty if the block has none.
    fn label(&mut self) -> &'r str {
        let mut there = self.lines.iter().filter(|line| !line.is_blank());
        let (Some(label), Some(next)) = (there.next(), there.next()) else {
            return "";
        };
        let name = label.text().trim_matches(|c: char| !c.is_alphabetic());
        let is_name = name.chars().all(|c| c.is_alphabetic() || c == '_');
        if label.fence().is_some() || next.fence().is_none() || !is_name {
            return "";
        }
        self.skip(usize::from(!name.is_empty()));
        name
    }

    /// Takes the input of a tool with a schema: a JSON object alone in a code block.
    fn object(&mut self) -> Result<Arguments, Fault> {
        let missing = self.fault("expected a JSON object in a code block");
        let Some(block) = self.block() else {
            return Err(missing);
        };
        self.end(BEHIND)?;
        let object = serde_json::from_str(&joined(block.content));
        object.map(Arguments).map_err(|error| Fault {
            problem: format!("{}: {error}", missing.problem),
            ..missing
        })
    }

    /// Takes a path.
    fn path(&mut self, parameter: &Parameter) -> Result<String, Fault> {
        let Parameter { name, meaning, .. } = parameter;
        let expected =
            format!("expected `{name}` ({meaning}) on a line of its own, in double quotes");
        let missing = self.fault(&expected);
        // A path may also be alone in a code block.
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

    /// Takes a line with a line range if it comes next.
    fn range(&mut self) -> Option<&'r str> {
        let range = inner(&RANGE, self.lines.first()?.text().trim())?;
        self.skip(1);
        Some(range)
    }

    /// Takes everything that is left as the argument for `parameter`.
    fn only(&mut self, parameter: &Parameter) -> Result<String, Fault> {
        let Parameter { name, meaning, .. } = parameter;
        let kind = parameter.kind;
        let (all, begin) = (self.lines, self.line);
        if !self.label().eq_ignore_ascii_case(name) {
            (self.lines, self.line) = (all, begin);
        }
        let missing = |place: &str| format!("expected {place} `{name}` ({meaning})");
        let missing_block = self.fault(missing("a fenced code block with"));
        let is_words = matches!(kind, ParameterKind::Text | ParameterKind::Tasks);
        let text = match self.block() {
            Some(block) if is_words && self.lines.is_empty() => joined(block.content),
            _ if is_words => joined(all).trim().to_owned(),
            None if kind == ParameterKind::Command => command::raw(all)?.trim().to_owned(),
            None => return Err(missing_block),
            Some(block) if kind == ParameterKind::Command => {
                if !command::are_words(self.lines, block.content) {
                    self.end(BEHIND)?;
                }
                command::in_block(block.opening, block.content)?
            }
            Some(block) => {
                self.end(BEHIND)?;
                return Ok(joined(block.content));
            }
        };
        if text.trim().is_empty() {
            let line = all.first().map_or(begin, |line| line.number);
            return Err(Fault::at(line, missing("under `## Tool Input`:")));
        }
        // In text arguments, line endings come from the reply and are normalized.
        Ok(without_last_line_end(text).replace("\r\n", "\n"))
    }

    /// Takes one block for each parameter, in any order.
    fn labelled(
        &mut self,
        parameters: &[&'static Parameter],
        arguments: &mut Arguments,
    ) -> Result<(), Fault> {
        let names = parameters
            .iter()
            .map(|known| format!("`{}`", known.name))
            .collect::<Vec<_>>()
            .join(" and ");
        let mut missing = parameters.to_vec();
        let begin = self.fault("");
        while !self.lines.is_empty() {
            let label = self.label();
            let problem = self.fault(format!(
                "expected code blocks labelled {names}, and nothing beside them"
            ));
            let block = self.block().ok_or(problem)?;
            let info = block
                .opening
                .fence()
                .map_or("", |fence| fence.info)
                .split_whitespace()
                .next()
                .unwrap_or_default();
            let named = |text: &str| {
                let mut missing = missing.iter();
                missing.position(|known| known.name.eq_ignore_ascii_case(text))
            };
            // A label above the block takes precedence, unless the fence has the name of another parameter.
            let (found, at) = match (label, named(info)) {
                ("", at) => (info, at),
                (label, None) => (label, named(label)),
                (label, at) => (label, at.filter(|at| named(label) == Some(*at))),
            };
            let at = at.ok_or_else(|| {
                block.opening.fault(format!(
                    "a code block labelled `{found}`, where those that are expected are {names}, each once; content \
                     that has fences goes between longer ones"
                ))
            })?;
            let parameter = missing.remove(at);
            arguments.set(parameter.name, without_last_line_end(joined(block.content)));
        }
        match missing.first() {
            None => Ok(()),
            Some(Parameter { name, meaning, .. }) => {
                let problem = format!("there is no code block labelled `{name}` ({meaning})");
                Err(Fault { problem, ..begin })
            }
        }
    }
}

const BEHIND: &str = "nothing is expected after the code block, which ends at the first line that has nothing \
                      but the same fence: content that has such lines goes between longer fences (````)";

/// Strips the last line ending from `text`.
fn without_last_line_end(mut text: String) -> String {
    let end = text.strip_suffix('\n').map_or(text.len(), |rest| {
        rest.strip_suffix('\r').unwrap_or(rest).len()
    });
    text.truncate(end);
    text
}

/// Labels that models write before a path.
static LABEL: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?i)^(?:[-*+] )?\s*",
        r"(?:[*`_]*(?:path|file|filename|file[ _]path|directory|glob|pattern|to)[*`_]*:(?:\*\*)?)?\s*"
    ))
});
/// A line range, with the decoration that models add.
static RANGE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"^(?i:lines?:?\s*)?["`]?(\d+(?:-\d*)?)["`]?$"#));
static BOLD: LazyLock<Regex> = LazyLock::new(|| regex(r"^\*\*([^*/]|[^*/][^*]*[^*/])\*\*$"));
static IN_QUOTES: LazyLock<Regex> =
    LazyLock::new(|| regex("^(?:\"(.*)\"|'(.*)'|`(.*)`|\u{201c}(.*)\u{201d})$"));
/// Decoration that models add around a path: quotes and blanks, Markdown characters, punctuation, `path=`. A path that
/// really contains these must be quoted.
static NO_BARE_PATH: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        "[\\s\"'`\u{201c}\u{201d}\u{2018}\u{2019}\u{ab}\u{bb}\u{200b}\u{feff}]",
        r"|^[#<>]|[:,;]$|^[(\[].*\)$|^\*\*.+\*\*$|[\p{Alphabetic}\p{N}]\.$|^[A-Za-z]{2,}[:=]"
    ))
});

/// Returns the path without the decoration around it; `None` if it is empty, a quote is not closed, or there is more
/// than a path.
fn path(text: &str) -> Option<&str> {
    let value = text.get(LABEL.find(text)?.end()..)?;
    let plain = inner(&BOLD, value).unwrap_or(value);
    match inner(&IN_QUOTES, plain) {
        Some(quoted) => (!quoted.trim().is_empty()).then_some(quoted),
        None => (!plain.is_empty() && !NO_BARE_PATH.is_match(plain)).then_some(plain),
    }
}

/// Returns the text of the first group of `pattern` that matched.
fn inner<'t>(pattern: &Regex, text: &'t str) -> Option<&'t str> {
    let found = pattern.captures(text)?;
    let group = found.iter().skip(1).flatten().next();
    group.map(|group| group.as_str())
}
