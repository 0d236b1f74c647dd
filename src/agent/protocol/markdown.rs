//! The `# Agent Response` protocol: replies in Markdown sections that name one tool. Pure.
//!
//! The response begins at the last `# Agent Response` outside of code blocks; code blocks end as CommonMark defines.
//! Decorations are tolerated, but nothing is guessed: a reply that can be read in two ways, or that lacks the end of a
//! file's content, is a [`Fault`] that tells the model how to fix it.
//!
//! | part | purpose |
//! |---|---|
//! | `lines` | lines, and the headings among them |
//! | `thoughts` | removal of thoughts |
//! | `response` | the part of the reply that counts |
//! | `sections` | thoughts, task list, the tool's name |
//! | `input` | the tool's input, by its parameters |
//! | `command` | a shell command in the input |
//! | `instructions` | the description of the format for the model |

mod command;
mod input;
mod instructions;
mod lines;
mod response;
mod sections;
#[cfg(test)]
mod tests;
mod thoughts;

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

pub use self::instructions::PlainReplies;
use self::lines::{ReplyLine, joined, with_inner_blocks};
use self::response::{Response, response};
use self::sections::Sections;
use super::{Decision, Fault, Offer, Protocol, Turn};
use crate::agent::tool::{ParameterKind, Toolbox};
use crate::model::message::Call;
use crate::model::{Form, Reply};
use crate::record::tasks::Task;
use crate::record::verdict;
use crate::sys::text::regex;

/// Replies in Markdown sections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Markdown {
    /// The handling of replies that use no tool.
    pub plain_replies: PlainReplies,
}

impl Protocol for Markdown {
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        Offer {
            instructions: instructions::instructions(tools, self.plain_replies),
            form: Form::default(),
        }
    }

    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let lines = thoughts::lines_without_thoughts(strip_trailing(&reply.text))?;
        let read = |lines: &[_]| match response(lines, tools)? {
            Some(response) => turn(&response, tools, self.plain_replies),
            None => self.answer(lines),
        };
        read(&lines).or_else(|fault| {
            let nested = with_inner_blocks(&lines).and_then(|lines| read(&lines.ok()?).ok());
            nested
                .filter(|turn| writes_a_file(turn, tools))
                .ok_or(fault)
        })
    }
}

/// Returns whether a turn uses a tool that takes the content of a file.
fn writes_a_file(turn: &Turn, tools: &Toolbox<'_>) -> bool {
    let Decision::Use(calls) = &turn.decision else {
        return false;
    };
    let mut used = calls.iter().filter_map(|call| tools.named(&call.name));
    used.any(|tool| tool.takes(ParameterKind::Block))
}

impl Markdown {
    /// Reads a reply without a header.
    fn answer(self, lines: &[ReplyLine<'_>]) -> Result<Turn, Fault> {
        let text = joined(lines).trim().to_owned();
        if self.plain_replies == PlainReplies::Taken && !text.is_empty() {
            return Ok(Turn::of(Decision::Answer(text.clone()), text));
        }
        let fault = Fault::at(1, "there is no `# Agent Response` header");
        Err(fault.with_remedy("reply in the form of the template, and use a tool"))
    }
}

/// Returns the text of a reply without the thoughts at its beginning; empty if it consists of thoughts only.
pub(in crate::agent) fn without_thoughts(text: &str) -> String {
    let spoken = thoughts::lines_without_thoughts(text);
    spoken.map_or_else(|_| String::new(), |lines| joined(&lines).trim().to_owned())
}

/// Tokens that end a reply in models' chat templates, which some servers pass through. After a blank, they are taken
/// for part of the last line.
static END: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"(?:^|[^ \t\\])((?:<\|(?:im_end|eot_id|eom_id|endoftext|end)\|>",
        "|<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>|<end_of_turn>|<eos>|</s>)\\s*)$"
    ))
});

/// Strips end-of-reply tokens from the end of `text`.
fn strip_trailing(mut text: &str) -> &str {
    while let Some(end) = END.captures(text).and_then(|found| found.get(1)) {
        let before = text.get(..end.start()).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        if end.as_str().starts_with("</s>") && line.contains("<s>") {
            break;
        }
        text = before;
    }
    text
}

/// Reads a response.
fn turn(
    response: &Response<'_, '_>,
    tools: &Toolbox<'_>,
    plain_replies: PlainReplies,
) -> Result<Turn, Fault> {
    let sections = Sections::of(response.lines)?;
    if let (Some(at), PlainReplies::Taken) = (sections.none(), plain_replies) {
        let problem = "`NONE` is no tool, and an answer has no `# Agent Response`";
        return Err(Fault::at(at, problem).with_remedy(verdict::FORM));
    }
    let (tool, named_at) = sections.tool(tools)?;
    // A fence that ends an inner block also ends the outer one: without the outer fence, the content may continue.
    if let Some(Err(unclosed)) = with_inner_blocks(response.lines) {
        return Err(unclosed);
    }
    let (input, heading) = sections.input().unwrap_or((&[], named_at));
    let name = &tool.name;
    let missing = format!("there is no `## Tool Input` section after it, which `{name}` needs");
    let arguments =
        input::arguments(tool, input, heading).map_err(|fault| match sections.input() {
            Some(_) => fault,
            None => Fault::at(named_at, missing),
        });
    let call = Call {
        id: Call::own_id(1),
        name: tool.name.clone().into_owned(),
        input: Value::Object(arguments?.0),
        ..Call::default()
    };
    // A tool that takes the task list may get it as its input.
    let given = tool
        .takes(ParameterKind::Tasks)
        .then(|| sections::tasks(input))
        .filter(|tasks| !tasks.is_empty());
    let (thoughts, tasks) = (sections.thoughts(), given.or_else(|| sections.tasks()));
    let listed = tasks.as_deref().unwrap_or_default();
    let remembered = rendered(&thoughts, listed, &call.name, joined(input).trim());
    Ok(Turn {
        thoughts,
        outside: joined(response.above).trim().to_owned(),
        tasks,
        note: (response.others > 0).then(|| not_done(response.others)),
        ..Turn::of(Decision::Use(vec![call]), remembered)
    })
}

/// Formats the note telling the model that other responses preceded the one that counts.
fn not_done(others: usize) -> String {
    format!(
        "Your reply had {} responses. Only the last was carried out: nothing was done of what stood above it. \
         Write one response in a reply.",
        others + 1
    )
}

/// Renders a turn in the form of the template.
fn rendered(thoughts: &str, tasks: &[Task], tool: &str, input: &str) -> String {
    let tasks: Vec<String> = tasks.iter().map(ToString::to_string).collect();
    let sections = [
        ("Thoughts", thoughts),
        ("Task List", &tasks.join("\n")),
        ("Tool Choice", tool),
        ("Tool Input", input),
    ];
    let there = sections.iter().filter(|(_, text)| !text.is_empty());
    let written = there.map(|(name, text)| format!("\n\n## {name}\n{text}"));
    format!("# Agent Response{}", written.collect::<String>())
}
