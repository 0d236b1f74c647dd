//! Questions to the user, answered in text, and requests for permission. Slash commands work at
//! both.

use super::slash::{self, COMMON, Slash, SlashLine};
use crate::agent::AgentError;
use crate::record::event::Event;
use crate::record::question::{Answer, Question, Verdict};
use crate::run::context::Context;
use crate::sys::error::Error;
use crate::sys::text::without_ci_commands;
use crate::ui::change::seen;
use crate::ui::columns::folded;
use crate::ui::input::User;

/// The text of `/help` at a question: an introduction, and the commands that act there.
pub type Help<'h> = (&'h str, &'h [Slash]);

/// The help at a question that comes up during work.
pub const AT_WORK: Help<'_> = (
    "answer the question; Esc or Ctrl-D, or by lines an empty one, is no answer; Ctrl-C stops the work",
    &[Slash::Exit, Slash::Help],
);

/// Asks until `ask` returns something other than a command. `/help` is answered here; `execute` executes any other
/// command, and returns the text to show.
///
/// # Errors
/// Returns the error of `ask`, or of `execute`.
pub fn asked<E>(
    context: &Context<'_>,
    (intro, acting): Help<'_>,
    mut ask: impl FnMut() -> Result<Option<String>, E>,
    mut execute: impl FnMut(Slash) -> Result<String, E>,
) -> Result<Option<String>, E> {
    let hints = slash::listed(acting, &[]);
    loop {
        let answer = ask()?;
        let Some(line) = &answer else {
            return Ok(None);
        };
        let said = match slash::read(line, &COMMON, &hints) {
            SlashLine::Request | SlashLine::Own(..) => return Ok(answer),
            SlashLine::Command(Slash::Help, _) => slash::help(intro, &hints),
            SlashLine::Command(command, _) => execute(command)?,
            SlashLine::Refused(problem) => problem,
        };
        context.notice(said);
    }
}

/// Answers a command other than `/exit` and `/help` at a question that comes up during work.
pub fn later(command: Slash) -> String {
    let name = command.name();
    format!("`/{name}` works between requests: answer the question, or leave by `/exit`")
}

/// Asks the user for permission, on the screen or by lines. An instruction to do something else instead is never parsed
/// as a command.
///
/// # Errors
/// Fails if the user leaves, or stops the work.
pub fn permission(
    context: &Context<'_>,
    user: &User,
    question: &Question,
    preview: Option<&str>,
) -> Result<Verdict, Error> {
    let mut verdict = question.verdict("");
    if !user.borrow().is_screen() {
        show(context, question, preview);
    }
    let prompt = format!("{}\n{}", question.sentence, question.prompt());
    let ask = || {
        let confirmed = user.borrow_mut().confirm(question, preview);
        let written = if let Some(confirmed) = confirmed {
            verdict = confirmed?;
            String::new()
        } else {
            let written = line(context, user, &prompt)?.unwrap_or_default();
            verdict = question.verdict(&written);
            written
        };
        Ok(Some(match &verdict.answer {
            Answer::Instead(words) => words.clone(),
            Answer::Yes | Answer::No => written,
        }))
    };
    let execute = |command| match command {
        Slash::Exit => Err(AgentError::Left.into()),
        command if user.borrow().is_screen() => {
            let name = command.name();
            Ok(format!(
                "`/{name}` works between requests: answer the question, or stop by Ctrl-C"
            ))
        }
        command => Ok(later(command)),
    };
    asked::<Error>(context, AT_WORK, ask, execute)?;
    Ok(verdict)
}

/// Returns the text that the user types at a prompt; `None` if they type nothing.
///
/// # Errors
/// Fails if the user leaves or interrupts the prompt, or no input can be read.
pub fn line(context: &Context<'_>, user: &User, prompt: &str) -> Result<Option<String>, Error> {
    // Redact before wrapping, which could split a key.
    let prompt = context.redactor.text(prompt);
    let words = prompt.trim_end();
    let end = &prompt[words.len()..];
    let prompt = folded(words, context.reporter.columns(), 0) + end;
    let mut user = user.borrow_mut();
    user.forget_typed_ahead();
    context.reporter.pause();
    Ok(user.line(&without_ci_commands(&prompt))?.answer()?)
}

/// Shows the subject of a question in line mode, with invisible characters replaced by their numbers, so that the user
/// allows exactly what was shown.
pub fn show(context: &Context<'_>, question: &Question, preview: Option<&str>) {
    let whole = |text: &str| seen(&text.replace('\t', "    "));
    let subject = whole(&question.subject);
    // The sentence may contain only the beginning of the subject.
    if !question.sentence.contains(&subject) {
        context.reporter.event(&Event::Shown(subject));
    }
    if let Some(preview) = preview.map(whole) {
        // Only the program's own question, which names no tool, has a preview of plain lines.
        let shown = match question.tool.as_str() {
            "" => Event::Shown,
            _ => Event::ShownDiff,
        };
        context.reporter.event(&shown(preview));
    }
}
