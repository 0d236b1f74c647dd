//! Questions of an agent that are answered in words, with the few commands that there are meanwhile.

use super::slash::{self, Slash, SlashLine};
use crate::run::context::Context;
use crate::ui::input::Typed;
use crate::ui::tui::CommandHint;

/// Switches to the model of this name, or lets the user choose one for a blank name; returns the message for the user.
pub type SwitchModel<'s, E> = &'s mut dyn FnMut(&str) -> Result<String, E>;

/// The only commands available while an agent waits for an answer in words; the last one for its task alone.
const AT_QUESTION: &[Slash] = &[Slash::Exit, Slash::Help, Slash::Model];

/// Asks until `ask` returns something other than a command, which is answered here. `/model` is there if
/// models can still be switched.
///
/// # Errors
/// Returns the error of `ask`, or of `/model`.
pub fn asked<E>(
    context: &Context<'_>,
    mut ask: impl FnMut() -> Result<Typed, E>,
    mut model: Option<SwitchModel<'_, E>>,
) -> Result<Typed, E> {
    let commands = at_question(model.is_some());
    loop {
        let typed = ask()?;
        let Typed::Line(line) = &typed else {
            return Ok(typed);
        };
        let said = match (slash::read(line, commands, &[]), &mut model) {
            (SlashLine::Request | SlashLine::Own(..), _) => return Ok(typed),
            (SlashLine::Command(Slash::Exit, _), _) => return Ok(Typed::End),
            (SlashLine::Command(Slash::Model, name), Some(model)) => model(name)?,
            (SlashLine::Command(..), _) => slash::help(&slash::listed(commands, &[])),
            (SlashLine::Refused(problem), _) => problem,
        };
        context.notice(said);
    }
}

fn at_question(has_models: bool) -> &'static [Slash] {
    &AT_QUESTION[..AT_QUESTION.len() - usize::from(!has_models)]
}

/// The commands available at a question, for completion.
pub fn hints_at_question(has_models: bool) -> Vec<CommandHint> {
    slash::listed(at_question(has_models), &[])
}
