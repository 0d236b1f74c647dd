//! Commands run for the user with the agent's own tool, in the same sandbox; the model sees their output.

use std::path::PathBuf;

use serde_json::json;

use super::error::ChatError;
use super::permissions::ChatPermissions;
use super::place::ChatPlace;
use super::request::{by_itself, censored};
use crate::agent::conversation::HistoryMessage;
use crate::agent::permissions::{Permission, Permissions as _};
use crate::agent::tagged::{Tag, tagged};
use crate::agent::tool::{Arguments, OUTPUT_LIMIT, Tool as _, ToolCall, ToolOutput};
use crate::agent::tools::command::{EXECUTE_COMMAND, Shell};
use crate::agent::{AgentError, Host as _, ToolUse};
use crate::commands::agent_run::AgentRun;
use crate::commands::talk::question::permission;
use crate::model::Purpose;
use crate::record::event::Event;
use crate::record::question::{Answer, Question};
use crate::record::tool::CommandEnd;
use crate::run::outcome::Failure;
use crate::sys::excerpt::text::bounded;
use crate::ui::input::User;

/// Runs a command that the user has typed after `!`; the model sees it and its output with the next request.
/// On a screen (`is_screen`), the output of a command that has not failed is shown below its line.
///
/// # Errors
/// Fails if the command cannot be run.
pub fn run_for_user(place: &ChatPlace<'_>, command: &str, is_screen: bool) -> Result<(), Failure> {
    // The command runs as typed, but likely credentials in it are never shown or sent.
    let shown = &*censored(place, command);
    let about = format!("!{shown}");
    let (mut printed, mut rest) = (None, None);
    by_itself(place, &about, |run, conversation| {
        let (text, output, output_file) = run_in(place, run, command, shown)?;
        // Otherwise, the command's line already has it.
        printed = output
            .printed
            .filter(|_| is_screen && !output.command.is_failure());
        rest = (output.command == CommandEnd::InBackground).then_some(output_file);
        let report = format!("The user has run this command:\n$ {shown}\n{text}");
        let attributes = [("tool", &*EXECUTE_COMMAND.name)];
        let end = output
            .brief
            .map_or(String::new(), |end| format!(" ({end})"));
        let result = tagged(Tag::ToolResult, &attributes, &report);
        conversation.say(HistoryMessage {
            brief: Some(format!("!{shown}{end}")),
            ..HistoryMessage::tagged(result)
        });
        run.save(&Purpose::STEP, conversation)?;
        place.context.interrupt.check()?;
        Ok(text)
    })?;
    // The exit status is already shown beside the command.
    if let Some(printed) = printed.filter(|printed| !printed.is_empty()) {
        place.context.reporter.event(&Event::Shown(printed));
    }
    if let Some(rest) = rest {
        let root = place.context.project.root();
        place.context.notice(format!(
            "it runs on in the background until you leave; the rest of its output goes to `{}`",
            rest.strip_prefix(root).unwrap_or(&rest).display()
        ));
    }
    Ok(())
}

/// Runs a shell command of a user-defined command, with the arguments in the variable `ARGUMENTS`, and returns its
/// output or the reason for not running it. It needs the same permissions as the agent's commands; without a user, a
/// command that would have to be asked about is refused.
///
/// # Errors
/// Fails if the command cannot be run, or no user is present to allow it.
pub fn output_of(
    place: &ChatPlace<'_>,
    user: Option<&User>,
    command: &str,
    arguments: &str,
    is_trusted: bool,
) -> Result<Result<String, String>, Failure> {
    let call = ToolCall {
        tool: EXECUTE_COMMAND.clone(),
        arguments: command_arguments(command),
        hazards: Vec::new(),
    };
    place.refused.take();
    let permitted = ChatPermissions {
        counts: is_trusted,
        ..place.permitted(user.is_none())
    };
    let decided = match (permitted.decide(&call), user) {
        (Permission::Allowed, _) => Answer::Yes,
        (Permission::Ask(question), Some(user)) => {
            let question = Question {
                sentence: format!("The slash command wants to run `{command}`. May it?"),
                may_be_permanent: false,
                may_forbid: false,
                may_redirect: false,
                ..question
            };
            permission(place.context, user, &question, None)?.answer
        }
        (Permission::Ask(_), None) => Answer::No,
        (Permission::Refused(_), _) => {
            let refused = place.refused.take();
            if refused.calls.is_empty() {
                let problem = "forbidden in this mode, or by the project's permissions";
                return Ok(Err(format!("`{command}` is {problem}")));
            }
            return Err(ChatError::NotPermitted(refused).into());
        }
    };
    // Permissions may have become stricter while the user was asked.
    let decided_now = permitted.decide(&call);
    if decided != Answer::Yes || matches!(decided_now, Permission::Refused(_)) {
        return Ok(Err(format!("`{command}` was not allowed")));
    }
    // Quoting fails only if the text contains a NUL.
    let Ok(quoted) = shlex::try_quote(arguments) else {
        return Ok(Err("its arguments have a NUL character in them".to_owned()));
    };
    let with_arguments = format!("export ARGUMENTS={quoted}\n{command}");
    let mut printed = None;
    let outcome = by_itself(place, &format!("!{command}"), |run, _| {
        let (text, output, _) = run_in(place, run, &with_arguments, command)?;
        // A successful exit code is left out of the output.
        let is_done = output.command == CommandEnd::Exited(0);
        printed = output.printed.filter(|_| is_done);
        Ok(text)
    })?;
    place.context.interrupt.check().map_err(AgentError::from)?;
    Ok(Ok(printed.unwrap_or(outcome.summary).trim_end().to_owned()))
}

/// Runs a command in this run. Returns the text for the model, the output, and the file with the complete output.
/// `shown` is the command as shown to the user.
fn run_in(
    place: &ChatPlace<'_>,
    run: &AgentRun<'_>,
    command: &str,
    shown: &str,
) -> Result<(String, ToolOutput, PathBuf), AgentError> {
    let output_file = run.command_output();
    let output_files = || output_file.clone();
    let tool = place.base.command(Shell::Full, &output_files);
    let call = (&*EXECUTE_COMMAND.name, json!({"command": shown}));
    let ToolUse {
        text, mut output, ..
    } = run.own_step(Purpose::COMMAND, call, || {
        tool.run(&command_arguments(command))
    })?;
    let shown = |text: &str| bounded(censored(place, text).trim_end(), OUTPUT_LIMIT);
    output.printed = output.printed.as_deref().map(shown);
    Ok((censored(place, &text), output, output_file))
}

fn command_arguments(command: &str) -> Arguments {
    let mut arguments = Arguments::default();
    arguments.set("command", command);
    arguments
}
