//! Commands that run for the user: by the agent's own tool, in the same sandbox, and shown to the model.

use serde_json::json;

use super::place::ChatPlace;
use super::request::{setup, tools};
use super::screen::Screen;
use crate::agent::Host as _;
use crate::agent::chat::permissions::file::PermissionAction;
use crate::agent::chat::risk;
use crate::agent::conversation::HistoryMessage;
use crate::agent::tagged::{Tag, tagged};
use crate::agent::tool::{Arguments, ToolError};
use crate::model::Purpose;
use crate::project::mode::Mode;
use crate::ui::Event;
use crate::ui::question::{Answer, Question};
use crate::workflow::agent_run::AgentRun;
use crate::workflow::run::recovery;
use crate::workflow::workspace::AnswerSource;
use crate::workflow::{Context, Failure};

/// The tool, as the model knows it.
const TOOL: &str = "execute_command";

/// Runs a command that the user has typed behind `!`; the model sees it with the next request.
///
/// # Errors
/// When it cannot be run.
pub fn run_for_user(
    context: &Context<'_>,
    place: &ChatPlace<'_>,
    command: &str,
) -> Result<(), Failure> {
    let text = run(context, place, command, command, true)?;
    // How it ended stands beside the command already.
    let printed = text.split_once('\n').map_or("", |(_, printed)| printed);
    let printed = printed.trim_end().to_owned();
    if !printed.is_empty() {
        context.reporter.event(&Event::Shown(printed));
    }
    Ok(())
}

/// What a command prints that one of the user's own commands has in it, with these arguments in the variable
/// `ARGUMENTS`; else why it has printed nothing, in a sentence. It is asked about as the agent's commands are, where there is
/// a screen.
///
/// # Errors
/// When it cannot be run.
pub fn output_of(
    context: &Context<'_>,
    place: &ChatPlace<'_>,
    screen: Option<&Screen>,
    command: &str,
    arguments: &str,
) -> Result<Result<String, String>, Failure> {
    let action = place.permissions.borrow().action(TOOL);
    let reasons = risk::judge(command).reasons;
    let is_free = place.mode.get() == Mode::AutoPilot
        || action == PermissionAction::Always && reasons.is_empty();
    if action == PermissionAction::Never {
        return Ok(Err("commands are never allowed in this project".to_owned()));
    }
    if !is_free {
        let Some(screen) = screen else {
            return Ok(Err(format!("nobody is there to allow `{command}`")));
        };
        let question = Question {
            sentence: format!("The slash command wants to run `{command}`. May it?"),
            tool: TOOL.to_owned(),
            subject: command.to_owned(),
            reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            may_last: false,
            may_forbid: false,
        };
        if screen.ask(question, None)?.answer != Answer::Yes {
            return Ok(Err(format!("`{command}` was not allowed")));
        }
    }
    // Only a text with a NUL in it cannot be quoted.
    let Ok(quoted) = shlex::try_quote(arguments) else {
        return Ok(Err("its arguments have a NUL character in them".to_owned()));
    };
    let with_arguments = format!("export ARGUMENTS={quoted}\n{command}");
    Ok(Ok(run(context, place, &with_arguments, command, false)?))
}

/// Runs a command in a run of its own, and gives what it has printed.
fn run(
    context: &Context<'_>,
    place: &ChatPlace<'_>,
    command: &str,
    shown: &str,
    is_told: bool,
) -> Result<String, Failure> {
    let _lock = recovery::take(context)?;
    let request = format!("!{shown}");
    let run = AgentRun::start(
        context,
        setup(place, AnswerSource::Nowhere, true),
        Some(&request),
    )?;
    let result = run.work(|conversation| {
        let output_files = || run.command_output();
        let tools = tools(context, place, &run, &output_files, &|_| (), None).toolbox();
        let mut arguments = Arguments::default();
        arguments.set("command", command);
        let used = run.own_step(
            Purpose::COMMAND,
            (TOOL, json!({"command": shown})),
            || match tools.named(TOOL) {
                Some(tool) => tool.run(&arguments),
                None => Err(ToolError::failed("there is no such tool".to_owned())),
            },
        )?;
        let text = super::request::censored(context, place, &used.text);
        if is_told {
            let told = format!("The user has run this command:\n$ {shown}\n{text}");
            conversation.say(HistoryMessage::tagged(tagged(
                Tag::TOOL_RESULT,
                &[("tool", TOOL)],
                &told,
            )));
            run.keep(&Purpose::STEP, conversation)?;
        }
        Ok(text)
    });
    Ok(super::request::finish(context, place, run, result)?.summary)
}
