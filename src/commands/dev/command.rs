//! The agent `dev`: a developer at the terminal whose work an independent audit must pass.
//!
//! A profile: the parts of the engine it is made of. [`crate::agent`] makes them work together, and all agents share
//! what surrounds them.

use std::time::Duration;

use crate::agent::audit::work_until_passed;
use crate::agent::memory::{Compress, TokenCounts};
use crate::agent::permissions::{DenyPaths, Everything, ReadOnly};
use crate::agent::protocol::markdown::PlainReplies;
use crate::agent::restricted::AuditCommands;
use crate::agent::session::SessionFile;
use crate::agent::settings::FILE;
use crate::agent::tool::Toolbox;
use crate::agent::tools::background::{BackgroundAction, BackgroundTool};
use crate::agent::tools::command::{RunCommand, Shell};
use crate::agent::tools::list::ListDirectory;
use crate::agent::tools::notes::{AskUser, DONE, Done, UpdateTaskList, VERDICT};
use crate::agent::tools::read::ReadFile;
use crate::agent::tools::replace::FindAndReplace;
use crate::agent::tools::write::WriteFile;
use crate::agent::{Agent, Brief, ToolTries, protocol};
use crate::commands::agent_run::{AgentRun, AgentSetup};
use crate::commands::sessions as listing;
use crate::commands::talk::{self, OpenInput};
use crate::commands::workspace::{AgentOptions, AnswerSource, Workspace, home, settings};
use crate::model::Purpose;
use crate::project::home::DEV;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::error::Error;

/// The command's name.
const NAME: &str = "dev";

/// Instructions of the developer.
const DEVELOPER: &str = include_str!("../../../prompts/dev_worker.txt");
/// Instructions of the auditor.
const AUDITOR: &str = include_str!("../../../prompts/dev_audit.txt");
/// Instructions for summaries.
const SUMMARIZER: &str = include_str!("../../../prompts/dev_compress.txt");

/// The time an auditor's checks may take at the least: the project's build and tests are among them, and nothing of
/// its goes on in the background.
const CHECKS: Duration = Duration::from_secs(600);

/// Works on one request, or on what is asked for at the terminal.
///
/// # Errors
/// When the last request was not done.
pub fn dev<'c>(
    context: &'c Context<'c>,
    options: &AgentOptions,
    input: OpenInput<'_>,
) -> Result<Outcome, Failure> {
    talk::serve(context, NAME, options, input, &work)
}

/// Works on one request until the audit passes it.
fn work(
    context: &Context<'_>,
    place: &Workspace<'_>,
    answers: AnswerSource<'_>,
    request: Option<&str>,
) -> Result<Outcome, Failure> {
    let (root, outside) = (context.project.root(), place.outside);
    let mut warnings: Vec<String> = place.uncontained.iter().cloned().collect();
    let conventions = place.conventions(context).unwrap_or_else(|problem| {
        context.warn(problem.clone());
        warnings.push(problem);
        None
    });
    let setup = AgentSetup {
        advice: Error::hint,
        name: NAME,
        models: &place.models,
        limits: place.limits,
        session: Some(&place.kept),
        answers,
        warnings,
        conventions,
        stops_at_no: false,
        changes_files: true,
        orchestration: None,
        mode: None,
    };
    let run = AgentRun::start(context, setup, request)?;
    let form = place.models.first.spec.tools.unwrap_or_default();
    let (patience, max_loops) = (place.limits.command_timeout(), place.limits.max_loops);
    let audit_commands = AuditCommands {
        root,
        path: context.environment.os("PATH"),
        own: &place.audit_commands,
        check_timeout: patience.max(CHECKS),
    };
    let restricted = |command: &str| audit_commands.command(command);
    let output_files = || run.command_output();
    let command = |shell| RunCommand {
        processes: &place.processes,
        patience,
        shell,
        output_files: &output_files,
    };
    let background = format!(
        "- A command goes on in the background after {} s.\n",
        patience.as_secs_f64()
    );
    let counts = TokenCounts::default();
    let result = run.work(|conversation| {
        let worker = Agent {
            purpose: Purpose::STEP,
            brief: &|| Brief {
                instructions: run.with_conventions(
                    &[DEVELOPER, &limits(&background, max_loops, run.tries())].concat(),
                ),
                tools: developers_tools(context, place, &run).with(command(Shell::Full)),
                ..Brief::default()
            },
            protocol: &*protocol::of(form, PlainReplies::Refused),
            permissions: &DenyPaths {
                permissions: &Everything,
                root,
                paths: &place.closed,
            },
            memory: &Compress {
                limit: place.limits.context(),
                instructions: SUMMARIZER,
                counts: &counts,
            },
            ending: &|_, _| Ok(()),
            tries: run.tries(),
            tool_tries: ToolTries::AsReplies,
            calls: None,
            temperature: None,
            env: run.env(),
        };
        let auditor = Agent {
            purpose: Purpose::AUDIT,
            brief: &|| Brief {
                instructions: [
                    AUDITOR,
                    &limits(&audit_commands.told(), max_loops, run.unattended_tries()),
                ]
                .concat(),
                tools: Toolbox::new()
                    .with(ReadFile { root, outside })
                    .with(listing(context, place))
                    .with(Done(&VERDICT))
                    .with(command(Shell::Restricted(&restricted))),
                ..Brief::default()
            },
            protocol: &*protocol::of(form, PlainReplies::Taken),
            permissions: &DenyPaths {
                permissions: &ReadOnly {
                    commands: &restricted,
                },
                root,
                paths: &place.closed,
            },
            tries: run.unattended_tries(),
            ..worker.clone()
        };
        work_until_passed(&worker, &auditor, conversation, request)
    });
    run.warn_of_commands(&place.processes.borrow());
    let outcome = run.finish(result)?;
    Ok(Outcome {
        is_answer: true,
        ..outcome
    })
}

/// Tells an agent its limits, behind the rules for its commands.
fn limits(commands: &str, max_loops: u16, tries: u32) -> String {
    format!(
        "\n## Limits\n\n{commands}\
         - You see at most 32 KiB of a tool's output: the beginning and the end of what is longer.\n\
         - This task has at most {max_loops} replies, the auditor's and summaries included; {tries} failures in a row \
         end it.\n"
    )
}

/// The tool that lists directories.
fn listing<'w>(context: &'w Context<'_>, place: &Workspace<'_>) -> ListDirectory<'w> {
    ListDirectory {
        root: context.project.root(),
        outside: place.outside,
        interrupt: context.interrupt,
    }
}

/// The developer's tools, without commands.
fn developers_tools<'w>(
    context: &'w Context<'_>,
    place: &'w Workspace<'_>,
    run: &'w AgentRun<'_>,
) -> Toolbox<'w> {
    let (root, outside) = (context.project.root(), place.outside);
    let background = |action| BackgroundTool {
        processes: &place.processes,
        action,
    };
    let tools = Toolbox::new()
        .with(listing(context, place))
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
        .with(Done(&DONE))
        .with(background(BackgroundAction::Read))
        .with(background(BackgroundAction::List))
        .with(background(BackgroundAction::Kill));
    if run.is_interactive() {
        tools.with(AskUser { user: run })
    } else {
        tools
    }
}

/// Lists the sessions of `dev`.
///
/// # Errors
/// When they cannot be read.
pub fn sessions(context: &Context<'_>) -> Result<Outcome, Failure> {
    let (home, settings) = settings(context)?;
    listing::list::<SessionFile>(context, &DEV, &home, settings.session_retention_days)
}

/// Opens `config.json` in the user's editor, and checks that the result can be used.
///
/// # Errors
/// When there is no editor, or the configuration cannot be used.
pub fn config(context: &Context<'_>) -> Result<Outcome, Failure> {
    let home = home(context, &DEV)?;
    // What is wrong with it now is what the editor is for.
    let _ = settings(context);
    listing::edit(context, &home.join(FILE), || settings(context).map(drop))
}
