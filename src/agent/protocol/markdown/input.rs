//! A tool's input, read by what parameters the tool takes. Pure.
//!
//! Paths come first, a line each. What else there is follows: one parameter as it is, more of them as code
//! blocks that are labelled with the parameters' names. Guarantees that a block is taken byte by byte up to the
//! first fence that closes it, and that no tool is given a part of an input.

use super::super::Fault;
use super::command;
use super::lines::{Line, fenced, joined, trimmed};
use crate::agent::tool::{Arguments, Parameter, ParameterKind, ToolSpec};
use crate::sys::fences::FenceLine;

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

/// The parameters of a tool as they stand in its input: paths, and what else there is.
pub fn shape(tool: &ToolSpec) -> (Vec<&'static Parameter>, Vec<&'static Parameter>) {
    let is_path = |parameter: &&Parameter| parameter.kind == ParameterKind::Path;
    tool.parameters.iter().partition(is_path)
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
        let found = path(text, name).map(str::to_owned);
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
        let is_label = all.first().is_some_and(|line| {
            line.text()
                .trim_matches(|c: char| !c.is_alphabetic())
                .eq_ignore_ascii_case(name)
        });
        if is_label {
            self.label();
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
            (ParameterKind::Text, Some(block)) if is_alone => joined(block.content),
            (ParameterKind::Text, _) => joined(all).trim().to_owned(),
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
            let find = |label: &str| {
                parameters
                    .iter()
                    .find(|known| known.name.eq_ignore_ascii_case(label))
            };
            // A label above counts, unless the fence has another.
            let known = match (find(label), find(info)) {
                (Some(above), Some(known)) if above.name != known.name => None,
                (None, _) if !label.is_empty() => None,
                (above, known) => above.or(known),
            };
            let Some(parameter) = known else {
                let found = match if label.is_empty() { info } else { label } {
                    "" => "without a label".to_owned(),
                    label => format!("labelled `{label}`"),
                };
                return Err(block.opening.fault(format!(
                    "a code block {found}, where those that are expected are {names}; content that has fences \
                     goes between longer ones"
                )));
            };
            let Some(at) = missing
                .iter()
                .position(|known| known.name == parameter.name)
            else {
                let problem = format!("there is another code block labelled `{}`", parameter.name);
                return Err(block.opening.fault(problem));
            };
            missing.remove(at);
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

/// What models write above or in front of a path.
const PATH_LABELS: [&str; 8] = [
    "path",
    "file",
    "filename",
    "file path",
    "file_path",
    "directory",
    "glob",
    "pattern",
];

/// A path less what is around it; `None` where it is empty, a quote is open, or it is more than a path.
fn path<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let text = ["- ", "* ", "+ "]
        .iter()
        .find_map(|bullet| text.strip_prefix(bullet))
        .unwrap_or(text)
        .trim();
    let text = match text.split_once(':') {
        Some((label, value)) if is_path_label(label, name) => {
            value.strip_prefix("**").unwrap_or(value).trim()
        }
        _ => text,
    };
    let is_bold =
        |inner: &&str| !(inner.contains('*') || inner.starts_with('/') || inner.ends_with('/'));
    let text = within(text, "**", "**").filter(is_bold).unwrap_or(text);
    let quotes = [
        ("\"", "\""),
        ("'", "'"),
        ("`", "`"),
        ("\u{201c}", "\u{201d}"),
    ];
    match quotes.into_iter().find(|(open, _)| text.starts_with(open)) {
        Some((open, close)) => {
            let inner = within(text, open, close)?;
            (!inner.trim().is_empty()).then_some(inner)
        }
        None => is_bare_path(text).then_some(text),
    }
}

fn is_path_label(label: &str, name: &str) -> bool {
    let label = label.trim_matches(['*', '`', '_']);
    let mut known = PATH_LABELS.iter().chain([&name]);
    known.any(|known| known.eq_ignore_ascii_case(label))
}

fn within<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    text.strip_prefix(open)?.strip_suffix(close)
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
