//! Questions to the user: those answered in words, where slash commands work, too, and those of permission.

use std::ops::ControlFlow;

use super::slash::{self, COMMON, Slash, SlashLine};
use crate::record::event::Event;
use crate::record::question::{Question, Verdict};
use crate::run::context::Context;
use crate::sys::error::Error;
use crate::sys::text::without_ci_commands;
use crate::ui::change::seen;
use crate::ui::input::{Typed, User};
use crate::ui::tui::CommandHint;

/// Asks until `ask` returns something other than a command. `/help` is answered here, with `intro` above the list;
/// `obey` executes any other command, and says what to show, or breaks off.
///
/// # Errors
/// Returns the error of `ask`, or of `obey`.
pub fn asked<B, E>(
    context: &Context<'_>,
    intro: &str,
    mut ask: impl FnMut() -> Result<Typed, E>,
    mut obey: impl FnMut(Slash, &str) -> Result<ControlFlow<B, String>, E>,
) -> Result<ControlFlow<B, Typed>, E> {
    loop {
        let typed = ask()?;
        let Typed::Line(line) = &typed else {
            return Ok(ControlFlow::Continue(typed));
        };
        let said = match slash::read(line, &COMMON, &[]) {
            SlashLine::Request | SlashLine::Own(..) => return Ok(ControlFlow::Continue(typed)),
            SlashLine::Command(Slash::Help, _) => slash::help(intro, &hints()),
            SlashLine::Command(command, argument) => match obey(command, argument)? {
                ControlFlow::Continue(said) => said,
                ControlFlow::Break(end) => return Ok(ControlFlow::Break(end)),
            },
            SlashLine::Refused(problem) => problem,
        };
        context.notice(said);
    }
}

/// Asks the user for permission, on the screen or by lines.
///
/// # Errors
/// When the user leaves, or stops the work.
pub fn permission(
    context: &Context<'_>,
    user: &User,
    question: &Question,
    preview: Option<&str>,
) -> Result<Verdict, Error> {
    let mut user = user.borrow_mut();
    if let Some(verdict) = user.confirm(question, preview) {
        return Ok(verdict?);
    }
    show(context, question, preview);
    user.forget_typed_ahead();
    // The prompt is shown however quiet the rest is.
    let text = format!("{}\n{}", question.sentence, question.prompt());
    let asked = context.redactor.text(&text);
    let answer = user.line(&without_ci_commands(&asked))?.answer()?;
    Ok(question.verdict(&answer.unwrap_or_default()))
}

/// Shows by lines what a question is about, with every character that cannot be seen by its number: what the user allows
/// is done as it was shown.
pub fn show(context: &Context<'_>, question: &Question, preview: Option<&str>) {
    let whole = |text: &str| seen(&text.replace('\t', "    "));
    let subject = whole(&question.subject);
    // The sentence may have only the beginning.
    if !question.sentence.contains(&subject) {
        context.reporter.event(&Event::Shown(subject));
    }
    if let Some(preview) = preview.map(whole) {
        // Only the program's own question, which names no tool, comes with plain lines.
        let shown = match question.tool.as_str() {
            "" => Event::Shown,
            _ => Event::ShownDiff,
        };
        context.reporter.event(&shown(preview));
    }
}

/// The commands available at a question, for completion.
pub fn hints() -> Vec<CommandHint> {
    slash::listed(&COMMON, &[])
}
