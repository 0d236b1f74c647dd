//! The agent `dev`: a developer at the terminal whose work an independent audit must pass.
//!
//! A profile: which parts of the engine it is made of. How they work together is [`crate::agent`]'s, and
//! what surrounds them is shared by all workflows with agents.

use std::time::Duration;

use super::agent_run::AgentRun;
use super::run::Names;
use super::talk::{self, OpenInput};
use super::workplace::{AgentOptions, Answers, Workplace};
use super::{Context, Failure, Outcome};
use crate::agent::audit::work_until_passed;
use crate::agent::memory::Compress;
use crate::agent::permissions::{Everything, KeepingOut, ReadOnly};
use crate::agent::protocol::markdown::{Markdown, PlainReplies};
use crate::agent::tool::Toolbox;
use crate::agent::tools::background::{
    KillBackgroundProcess, ListBackgroundProcesses, ReadBackgroundProcess,
};
use crate::agent::tools::command::{RunCommand, Shell};
use crate::agent::tools::list::ListDirectory;
use crate::agent::tools::notes::{AskUser, Done, UpdateTaskList};
use crate::agent::tools::read::ReadFile;
use crate::agent::tools::replace::FindAndReplace;
use crate::agent::tools::write::WriteFile;
use crate::agent::{Agent, restricted};
use crate::model::Purpose;

const NAMES: Names = Names {
    record: "dev",
    folder: "dev",
};

/// Who the developer is and how it works.
const DEVELOPER: &str = include_str!("../../prompts/dev_worker.txt");
/// The same of the auditor.
const AUDITOR: &str = include_str!("../../prompts/dev_audit.txt");
/// The same of whoever sums up what was said.
const SUMMARIZER: &str = include_str!("../../prompts/dev_compress.txt");

/// How long an auditor's commands may take at the least: the project's tests are among them, and nothing of its
/// goes on in the background.
const CHECKS: Duration = Duration::from_secs(600);

/// Works on one request, or on what is asked for at the terminal.
///
/// # Errors
/// When the last request was not done.
pub fn dev(
    context: &Context<'_>,
    options: &AgentOptions,
    input: OpenInput<'_>,
) -> Result<Outcome, Failure> {
    talk::serve(context, NAMES.record, options, input, &work)
}

/// Works on one request until the audit passes it.
fn work(
    context: &Context<'_>,
    place: &Workplace<'_>,
    answers: Answers<'_>,
    request: Option<&str>,
) -> Result<Outcome, Failure> {
    let (root, outside) = (context.project.root(), place.outside);
    let run = AgentRun::start(context, NAMES, place, answers, request)?;
    let result = run.work(|conversation| {
        let output_files = || run.command_output();
        let memory = Compress {
            limit: place.context_limit(),
            instructions: SUMMARIZER,
        };
        let restricted = |command: &str| restricted::words(command, root);
        let patience = place.settings.command_timeout;
        let command = |shell, patience| RunCommand {
            processes: &place.processes,
            patience,
            shell,
            output_files: &output_files,
        };
        let worker = Agent {
            purpose: Purpose::STEP,
            instructions: DEVELOPER,
            protocol: &Markdown::default(),
            tools: developers_tools(context, place, &run).with(command(Shell::Full, patience)),
            permissions: &KeepingOut {
                permissions: &Everything,
                root,
                paths: &place.closed,
            },
            memory: &memory,
            ending: &|_| Ok(()),
            tries: run.tries(),
            surroundings: run.surroundings(),
        };
        let auditor = Agent {
            purpose: Purpose::AUDIT,
            instructions: AUDITOR,
            protocol: &Markdown {
                plain_replies: PlainReplies::Taken,
            },
            tools: Toolbox::new()
                .with(ReadFile { root, outside })
                .with(ListDirectory { root, outside })
                .with(command(
                    Shell::Restricted(&restricted),
                    patience.max(CHECKS),
                )),
            permissions: &KeepingOut {
                permissions: &ReadOnly {
                    commands: &restricted,
                },
                root,
                paths: &place.closed,
            },
            tries: run.unattended_tries(),
            ..worker
        };
        work_until_passed(&worker, auditor, conversation, request)
    });
    run.finish(result)
}

/// What the developer can use, besides commands.
fn developers_tools<'w>(
    context: &'w Context<'_>,
    place: &'w Workplace<'_>,
    run: &'w AgentRun<'_, '_>,
) -> Toolbox<'w> {
    let (root, outside) = (context.project.root(), place.outside);
    let processes = &place.processes;
    let tools = Toolbox::new()
        .with(ListDirectory { root, outside })
        .with(ReadFile { root, outside })
        .with(WriteFile {
            root,
            outside,
            files: run,
        })
        .with(FindAndReplace {
            root,
            outside,
            files: run,
        })
        .with(UpdateTaskList)
        .with(Done)
        .with(ReadBackgroundProcess { processes })
        .with(ListBackgroundProcesses { processes })
        .with(KillBackgroundProcess { processes });
    if run.is_interactive() {
        tools.with(AskUser { user: run })
    } else {
        tools
    }
}
