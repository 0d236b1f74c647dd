//! `READ_BACKGROUND_PROCESS`, `LIST_BACKGROUND_PROCESSES` and `KILL_BACKGROUND_PROCESS`: commands that continue in the
//! background.

use std::cell::RefCell;
use std::time::Duration;

use super::command::printed;
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::exec::process::{CommandStatus, Listed, Processes, Report};
use crate::record::tool::Verb;

const PROCESS: &[Parameter] =
    &[Parameter::text("process", "the process's name").example("proc_abc123")];

/// The description of `READ_BACKGROUND_PROCESS`.
pub static READ_BACKGROUND_PROCESS: ToolSpec = ToolSpec::new(
    "READ_BACKGROUND_PROCESS",
    "Shows how a background process stands, and what it has printed so far.",
    PROCESS,
    Effect::Reads,
)
.doing(Verb::Watch);

/// The description of `LIST_BACKGROUND_PROCESSES`.
pub static LIST_BACKGROUND_PROCESSES: ToolSpec = ToolSpec::new(
    "LIST_BACKGROUND_PROCESSES",
    "Lists all background processes, those that have ended too.",
    &[],
    Effect::Reads,
)
.doing(Verb::ListProcesses);

/// The description of `KILL_BACKGROUND_PROCESS`.
pub static KILL_BACKGROUND_PROCESS: ToolSpec = ToolSpec::new(
    "KILL_BACKGROUND_PROCESS",
    "Ends a background process and all that it has started.",
    PROCESS,
    Effect::Runs,
)
.doing(Verb::EndProcess);

/// An action on background processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackgroundAction {
    /// Shows the state of a process and its output.
    Read,
    /// Lists all processes.
    List,
    /// Terminates a process.
    Kill,
}

/// The tool for background processes.
pub struct BackgroundTool<'p, 'a> {
    /// The processes of the run.
    pub processes: &'p RefCell<Processes<'a>>,
    /// The action to perform.
    pub action: BackgroundAction,
}

impl Tool for BackgroundTool<'_, '_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let id = name(arguments);
        let mut processes = self.processes.borrow_mut();
        let report = match self.action {
            BackgroundAction::List => return Ok(ToolOutput::text(table(&processes.list()))),
            BackgroundAction::Read => processes.read(id),
            BackgroundAction::Kill => processes.kill(id),
        }?;
        Ok(ToolOutput::text(described(id, &report)))
    }
}

/// Returns the name of the process, without the quotes that models like to add.
fn name(arguments: &Arguments) -> &str {
    let quotes = ['"', '\'', '`'];
    arguments.get("process").trim().trim_matches(quotes)
}

fn described(id: &str, report: &Report) -> String {
    let state = state(report.status, report.took);
    let (command, printed) = (&report.command, printed(&report.output));
    format!("{id}: {state}\ncommand: {command}\n{printed}")
}

fn table(list: &[Listed]) -> String {
    if list.is_empty() {
        return "There are no background processes.\n".to_owned();
    }
    let line = |one: &Listed| {
        let state = state(one.status, one.took);
        format!("{}: {state}: {}\n", one.id, one.command)
    };
    list.iter().map(line).collect()
}

fn state(status: Option<CommandStatus>, took: Duration) -> String {
    let seconds = took.as_secs_f64();
    match status {
        None => format!("running for {seconds:.1} s"),
        Some(status) => format!("{status}, after {seconds:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_line_for_each() {
        let listed = |id: &str, status, command: &str| Listed {
            id: id.to_owned(),
            status,
            took: Duration::from_millis(1250),
            command: command.to_owned(),
        };
        let list = [
            listed("proc_aaaaaa", None, "npm start"),
            listed("proc_bbbbbb", Some(CommandStatus::Exited(2)), "make"),
            listed("proc_cccccc", Some(CommandStatus::Signaled(15)), "top"),
        ];
        assert_eq!(
            table(&list),
            "proc_aaaaaa: running for 1.2 s: npm start\n\
             proc_bbbbbb: exit code: 2, after 1.2 s: make\n\
             proc_cccccc: signal: 15 (SIGTERM), after 1.2 s: top\n"
        );
        assert_eq!(table(&[]), "There are no background processes.\n");
    }

    #[test]
    fn a_name_is_taken_out_of_its_quotes() {
        for written in ["proc_abc123", " `proc_abc123`\n", "\"proc_abc123\""] {
            let mut arguments = Arguments::default();
            arguments.set("process", written.to_owned());
            assert_eq!(name(&arguments), "proc_abc123");
        }
    }
}
