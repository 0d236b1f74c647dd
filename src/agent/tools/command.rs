//! `COMMAND`: runs a command in the project's root, and moves it to the background when it takes long.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use crate::agent::tool::{
    Arguments, CallFailure, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::exec::process::{CommandStatus, Invocation, ProcessError, Processes, Ran, SHELL};
use crate::record::tool::CommandEnd;

/// The text that takes the place of an empty output.
pub const NOTHING_PRINTED: &str = "(nothing was printed)\n";

/// The description of `COMMAND`.
pub static COMMAND: ToolSpec = ToolSpec::new(
    "COMMAND",
    "Runs a shell command in the project's root, without input, and gives its exit code and \
              what it prints. One that takes long goes on in the background: start servers and \
              watchers as they are, without `&`.",
    &[
        Parameter::new("command", ParameterKind::Command, "the command")
            .example("npm install commander && npm run build"),
    ],
    Effect::Runs,
);

/// The maximum time that a call may wait for a command, in seconds; longer waits waste the model's time.
const LONGEST_WAIT: u64 = 600;

/// The description of `execute_command`, whose calls specify the wait.
pub static EXECUTE_COMMAND: ToolSpec = ToolSpec::new(
    "execute_command",
    "Runs a shell command in the project's root, without input, and gives its exit code and what it prints. One that \
     has not ended after timeout_seconds goes on in the background, where the background tools read and end it: start \
     servers and watchers as they are, without `&`.",
    &[
        Parameter::new("command", ParameterKind::Command, "The command"),
        Parameter::new(
            "timeout_seconds",
            ParameterKind::Json(r#"{"type": "integer", "minimum": 1, "maximum": 600}"#),
            "How long to wait for its end; 120 if left out",
        )
        .optional(),
    ],
    Effect::Runs,
)
.streaming(Duration::from_secs(LONGEST_WAIT));

/// The description of `COMMAND` for agents that may run only some commands.
pub static RESTRICTED_COMMAND: ToolSpec = ToolSpec::new(
    "COMMAND",
    "Runs one of a few commands in the project's root, without a shell and without input, and \
              gives its exit code and what it prints. One that takes long is ended.",
    &[Parameter::new("command", ParameterKind::Command, "the command").example("git diff --stat")],
    Effect::Runs,
);

/// A command that an agent with restricted commands may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedCommand {
    /// The program and its arguments, which are passed on unchanged.
    pub words: Vec<String>,
    /// The time after which it is terminated.
    pub timeout: Duration,
}

/// The way in which commands are run.
#[derive(Clone, Copy)]
pub enum Shell<'r> {
    /// Commands are run by a shell, without restrictions.
    Full,
    /// Commands are run without a shell: this function returns the command to run, or the reason why it is not
    /// permitted. Commands never continue in the background.
    Restricted(&'r dyn Fn(&str) -> Result<AllowedCommand, String>),
    /// Commands are run by a shell, except that those recognized by this function are run as it specifies, without a
    /// shell. Commands never continue in the background; they are terminated when they take too long.
    Foreground(&'r dyn Fn(&str) -> Option<AllowedCommand>),
}

/// The tool that runs shell commands.
#[derive(Clone, Copy)]
pub struct RunCommand<'p, 'a> {
    /// The processes of the run, which run the commands.
    pub processes: &'p RefCell<Processes<'a>>,
    /// The time after which a command continues in the background, if the call does not specify the wait.
    pub patience: Duration,
    /// The way in which commands are run.
    pub shell: Shell<'p>,
    /// Returns a new path for a command's output, in an existing directory.
    pub output_files: &'p dyn Fn() -> PathBuf,
}

impl RunCommand<'_, '_> {
    fn invoke(
        &self,
        invocation: Invocation<'_>,
        patience: Duration,
    ) -> Result<ToolOutput, ToolError> {
        let output_file = (self.output_files)();
        let mut processes = self.processes.borrow_mut();
        let ran = processes.run(invocation, patience, &output_file);
        // There may be no next command, which would notice a change.
        let ran = ran.and_then(|ran| processes.check_sandbox().map(|()| ran));
        let (ran, output) = ran.map_err(|error| match error {
            ProcessError::NotStarted { .. } => ToolError::from(error.to_string()),
            error => ToolError::Fatal(error.into()),
        })?;
        let printed = printed(&output);
        let is_failure = matches!(ran, Ran::Stopped);
        let (text, command, brief) = match ran {
            Ran::Ended(status) => {
                let command = match status {
                    CommandStatus::Exited(code) => CommandEnd::Exited(code),
                    _ => CommandEnd::Killed,
                };
                (format!("{status}\n{printed}"), command, status.to_string())
            }
            Ran::InBackground(id) => {
                let text = format!(
                    "Command backgrounded as {id}\n\
                     It still runs: read the background process {id} to see how it stands and what it has \
                     printed, kill it to end it. So far it has printed:\n{printed}"
                );
                (text, CommandEnd::InBackground, format!("goes on as {id}"))
            }
            // The agent itself stops before its next step.
            Ran::Stopped => {
                let text = format!(
                    "The command was stopped before its end, and may have done a part of its work. It has \
                     printed:\n{printed}"
                );
                (text, CommandEnd::Killed, "stopped".to_owned())
            }
            Ran::TimedOut => {
                let patience = patience.as_secs_f64();
                let text = format!(
                    "The command did not end within {patience} s, and was ended.\n{printed}"
                );
                (text, CommandEnd::Killed, "timed out".to_owned())
            }
        };
        Ok(ToolOutput {
            command,
            printed: Some(printed),
            brief: Some(brief),
            is_failure,
            ..ToolOutput::text(text)
        })
    }
}

impl Tool for RunCommand<'_, '_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let command = arguments.get("command");
        let asked = arguments.number("timeout_seconds");
        let patience = asked.map_or(self.patience, Duration::from_secs);
        let AllowedCommand { words, timeout } = match self.shell {
            Shell::Full | Shell::Foreground(_) if command.trim().is_empty() => {
                return Err("the command is empty".to_owned().into());
            }
            Shell::Full => return self.invoke(Invocation::Shell(command), patience),
            Shell::Foreground(known) => known(command).unwrap_or_else(|| AllowedCommand {
                words: [SHELL, "-c", command].map(str::to_owned).to_vec(),
                timeout: patience,
            }),
            Shell::Restricted(allowed) => allowed(command).map_err(|why| {
                ToolError::Failed(CallFailure::new(CallFailure::NOT_ALLOWED, why, ""))
            })?,
        };
        self.invoke(Invocation::Words(&words), timeout)
    }
}

/// Formats a command's output for the model.
pub(super) fn printed(output: &str) -> String {
    let text = Some(output).filter(|output| !output.is_empty());
    text.unwrap_or(NOTHING_PRINTED).to_owned()
}
