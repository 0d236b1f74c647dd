//! Commands that run for the user: by the agent's own tool, in the same sandbox, and shown to the model.

use serde_json::json;

use super::error::ChatError;
use super::permissions::ChatPermissions;
use super::place::ChatPlace;
use super::request::{by_itself, censored};
use crate::agent::conversation::HistoryMessage;
use crate::agent::permissions::{Permission, Permissions as _};
use crate::agent::tagged::{Tag, tagged};
use crate::agent::tool::{Arguments, Tool as _, ToolCall};
use crate::agent::tools::command::{EXECUTE_COMMAND, RunCommand, Shell};
use crate::agent::{AgentError, Host as _};
use crate::commands::agent_run::AgentRun;
use crate::commands::screen::Screen;
use crate::model::Purpose;
use crate::record::event::Event;
use crate::record::question::{Answer, Question};
use crate::run::outcome::Failure;
use crate::sys::error::Error;

/// Runs a command that the user has typed behind `!`; the model sees it with the next request.
///
/// # Errors
/// When it cannot be run.
pub fn run_for_user(place: &ChatPlace<'_>, command: &str) -> Result<(), Failure> {
    // It runs as it was typed; what looks like a credential in it is told to nobody.
    let shown = &*censored(place, command);
    let about = format!("!{shown}");
    let outcome = by_itself(place, &about, |run, conversation| {
        let text = run_in(place, run, command, shown)?;
        let told = format!("The user has run this command:\n$ {shown}\n{text}");
        let attributes = [("tool", &*EXECUTE_COMMAND.name)];
        let told = tagged(Tag::TOOL_RESULT, &attributes, &told);
        conversation.say(HistoryMessage::tagged(told));
        run.keep(&Purpose::STEP, conversation)?;
        place.context.interrupt.check()?;
        Ok(text)
    })?;
    // How it ended stands beside the command already.
    let printed = outcome.summary.split_once('\n');
    let printed = printed.map_or("", |(_, printed)| printed.trim_end());
    if !printed.is_empty() {
        place
            .context
            .reporter
            .event(&Event::Shown(printed.to_owned()));
    }
    Ok(())
}

/// Returns the output of a shell command inside one of the user's own commands, run with these arguments in the
/// variable `ARGUMENTS`, or a sentence on why it has printed nothing. It is allowed, asked about and refused as the
/// agent's commands are; without a screen, nobody is there to be asked.
///
/// # Errors
/// When it cannot be run, or nobody is there to allow it.
pub fn output_of(
    place: &ChatPlace<'_>,
    screen: Option<&Screen>,
    command: &str,
    arguments: &str,
    is_trusted: bool,
) -> Result<Result<String, String>, Failure> {
    let call = ToolCall {
        tool: EXECUTE_COMMAND.clone(),
        arguments: the_command(command),
        hazards: Vec::new(),
    };
    place.refused.take();
    let permitted = ChatPermissions {
        counts: is_trusted,
        ..place.permitted(screen.is_none())
    };
    let decided = match (permitted.decide(&call), screen) {
        (Permission::Allowed, _) => Answer::Yes,
        (Permission::Ask(question), Some(screen)) => {
            let question = Question {
                sentence: format!("The slash command wants to run `{command}`. May it?"),
                may_last: false,
                may_forbid: false,
                may_redirect: false,
                ..question
            };
            screen.ask(question, None)?.answer
        }
        (Permission::Ask(_), None) => Answer::No,
        (Permission::Refused(_), _) => {
            let refused = place.refused.take();
            if refused.calls.is_empty() {
                let problem = "forbidden in this mode, or by the project's permissions";
                return Ok(Err(format!("`{command}` is {problem}")));
            }
            return Err(Error::from(ChatError::NotPermitted(refused)).into());
        }
    };
    // While it was asked, less may have become allowed.
    let decided_now = permitted.decide(&call);
    if decided != Answer::Yes || matches!(decided_now, Permission::Refused(_)) {
        return Ok(Err(format!("`{command}` was not allowed")));
    }
    // Only a text with a NUL in it cannot be quoted.
    let Ok(quoted) = shlex::try_quote(arguments) else {
        return Ok(Err("its arguments have a NUL character in them".to_owned()));
    };
    let with_arguments = format!("export ARGUMENTS={quoted}\n{command}");
    let outcome = by_itself(place, &format!("!{command}"), |run, _| {
        run_in(place, run, &with_arguments, command)
    })?;
    place.context.interrupt.check().map_err(AgentError::from)?;
    // That it went well, its output says by itself.
    let output = outcome.summary.strip_prefix("exit code: 0\n");
    let output = output.unwrap_or(&outcome.summary).trim_end();
    Ok(Ok(output.to_owned()))
}

/// Runs a command in a run of its own, and gives what it has printed; `shown` is what people see of it.
fn run_in(
    place: &ChatPlace<'_>,
    run: &AgentRun<'_>,
    command: &str,
    shown: &str,
) -> Result<String, AgentError> {
    let output_files = || run.command_output();
    let tool = RunCommand {
        processes: &place.base.processes,
        patience: place.base.limits.command_timeout(),
        shell: Shell::Full,
        output_files: &output_files,
    };
    let call = (&*EXECUTE_COMMAND.name, json!({"command": shown}));
    let used = run.own_step(Purpose::COMMAND, call, || tool.run(&the_command(command)))?;
    Ok(censored(place, &used.text))
}

fn the_command(command: &str) -> Arguments {
    let mut arguments = Arguments::default();
    arguments.set("command", command);
    arguments
}
