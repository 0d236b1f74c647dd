//! A shell command as a tool's input: as it is, or alone in one fenced block. Pure.
//!
//! To a shell, a code fence is a command whose output is run, and words that stand beside a command are
//! commands too. Guarantees that nothing but the command is taken for one: what may be more is a [`Fault`].
//! Here-documents may hold anything, if their words are quoted: else code between backticks in them is run too.

use super::super::Fault;
use super::blocks::{block, nothing_else, without_last_line_end};
use super::documents::{Place, places};
use super::lines::{Fence, Line, joined};
use super::sections::Name;

/// What may stand behind a command's fence. Code in another language, and transcripts with their outputs, are
/// no commands.
const SHELLS: [&str; 14] = [
    "",
    "sh",
    "bash",
    "shell",
    "zsh",
    "ksh",
    "dash",
    "ash",
    "command",
    "cmd",
    "terminal",
    "text",
    "txt",
    "plaintext",
];

/// The command that `lines` are, the blank ones around it left out.
///
/// # Errors
/// Where there is more than a command.
pub fn command(lines: &[Line<'_>]) -> Result<String, Fault> {
    let Some(fence) = lines.first().and_then(Line::fence) else {
        return raw(lines);
    };
    if !SHELLS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(fence.info))
    {
        return Err(no_shell(&fence));
    }
    let block = block(lines, &fence)?;
    nothing_else(&block)?;
    check(block.content, |line, place| {
        let inner = line.fence();
        inner.is_some_and(|inner| place == Place::Command || inner.closes(&fence))
    })?;
    Ok(without_last_line_end(joined(block.content)))
}

/// Looks whether each line is of the command: what is not text must not be odd.
fn check(lines: &[Line<'_>], is_odd: impl Fn(&Line<'_>, Place) -> bool) -> Result<(), Fault> {
    for (line, place) in lines.iter().zip(places(lines)) {
        match place {
            Place::Expanded if line.raw.replace("\\`", "").contains('`') => return Err(run(line)),
            Place::Command | Place::Quoted if is_odd(line, place) => return Err(beside(line)),
            Place::Command | Place::Quoted | Place::Document | Place::Expanded => {}
        }
    }
    Ok(())
}

fn raw(lines: &[Line<'_>]) -> Result<String, Fault> {
    if let [line] = lines
        && let Some(quoted) = quoted(line.text().trim())
    {
        return Ok(quoted.to_owned());
    }
    check(lines, |line, _| {
        let text = line.raw.trim();
        line.raw.contains("```")
            || line.fence().is_some()
            || Name::of(line).is_some()
            || is_bold_heading(text)
            || is_result(line)
            // A tag of a template's: to a shell, it would be a file to read from, and one to write to.
            || text.starts_with('<') && text.ends_with('>')
    })?;
    Ok(joined(lines).trim().to_owned())
}

/// What stands between two backticks, as models write a short piece of code.
fn quoted(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('`')?.strip_suffix('`')?;
    (!inner.contains('`') && !inner.trim().is_empty()).then_some(inner)
}

fn is_bold_heading(text: &str) -> bool {
    let title = text
        .trim_end_matches(':')
        .trim_matches('*')
        .trim_end_matches(':');
    text.starts_with("**")
        && matches!(
            title,
            "Tool Choice" | "Tool Input" | "Task List" | "Thoughts"
        )
}

/// Whether it is a heading of what models make up behind a command. Comments have one `#`, as a rule.
fn is_result(line: &Line<'_>) -> bool {
    let heading = line.heading();
    heading.is_some_and(|(level, title)| {
        let tool = title.get(..5);
        !title.is_empty()
            && (level > 1 || tool.is_some_and(|tool| tool.eq_ignore_ascii_case("tool ")))
    })
}

fn no_shell(fence: &Fence<'_>) -> Fault {
    let problem = format!(
        "a command stands alone between ```sh and ```, but this code block is labelled `{}`: the shell `sh` \
         runs it, line by line",
        fence.info
    );
    Fault::at(fence.line, problem)
}

fn beside(line: &Line<'_>) -> Fault {
    let problem = "a command is given as it is, or alone in one code block: nothing else may stand beside it; \
        one that has ``` in it goes between longer fences";
    Fault::at(line.number, problem)
}

fn run(line: &Line<'_>) -> Fault {
    let problem = "the shell would run what stands between these backticks: quote the word of the \
        here-document, as in <<'EOF'";
    Fault::at(line.number, problem)
}
