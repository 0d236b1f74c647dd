//! Questions of an agent that are answered in words, where slash commands work, too.

use std::ops::ControlFlow;

use super::slash::{self, COMMON, Slash, SlashLine};
use crate::run::context::Context;
use crate::ui::input::Typed;
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

/// The commands available at a question, for completion.
pub fn hints() -> Vec<CommandHint> {
    slash::listed(&COMMON, &[])
}
