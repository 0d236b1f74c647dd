//! The agent `dev`: a developer at the terminal whose work must pass an independent audit.
//!
//! A profile: it selects the parts of the engine that make up the agent. [`crate::agent`] connects them; sessions, runs
//! and screens are shared with the other agents.

use std::cell::{Cell, RefCell};
use std::mem::take;
use std::time::Duration;

use super::args::{DevArgs, DevCommand};
use super::place::{self, settings};
use super::settings::FILE;
use crate::agent::audit::work_until_passed;
use crate::agent::memory::{Compress, TokenCounts};
use crate::agent::permissions::Everything;
use crate::agent::protocol::markdown::PlainReplies;
use crate::agent::restricted::AuditCommands;
use crate::agent::session::{SessionFile, SessionState};
use crate::agent::tool::Toolbox;
use crate::agent::tools::background::{
    BackgroundAction, BackgroundTool, KILL_BACKGROUND_PROCESS, LIST_BACKGROUND_PROCESSES,
    READ_BACKGROUND_PROCESS,
};
use crate::agent::tools::command::{COMMAND, RESTRICTED_COMMAND, Shell};
use crate::agent::tools::files::FileAccess;
use crate::agent::tools::list::{LIST_DIRECTORY, ListDirectory};
use crate::agent::tools::notes::{
    ASK_USER, AskUser, DONE, Done, UPDATE_TASK_LIST, UpdateTaskList, VERDICT,
};
use crate::agent::tools::read::{READ_FILE, ReadFile};
use crate::agent::tools::replace::{FIND, FIND_AND_REPLACE_IN_FILE, FindAndReplace};
use crate::agent::tools::write::{WRITE_FILE, WriteFile};
use crate::agent::{Agent, AgentError, Brief, ToolTries, protocol};
use crate::commands::agent_run::{AgentRun, AgentSetup, NOTHING_TO_COMPACT, compact};
use crate::commands::answers::AnswerSource;
use crate::commands::error::CommandError;
use crate::commands::screen::with_user;
use crate::commands::sessions as listing;
use crate::commands::stored_session::{SessionChoice, SessionLog as _};
use crate::commands::talk::{SessionFacts, Talk, Talker, Unfinished, left};
use crate::commands::workspace::{AgentOptions, PROOF_TIMEOUT, Workspace, home};
use crate::model::{Purpose, ToolForm};
use crate::project::home::DEV;
use crate::record::event::Event;
use crate::record::todos::Todo;
use crate::run::context::{Context, ModelChoice, Stdin};
use crate::run::outcome::{Failure, Outcome};
use crate::run::recovery;
use crate::sys::error::Error;
use crate::ui::input::OpenUser;
use crate::ui::tui::Submission;

/// The command's name.
const NAME: &str = "dev";

/// Instructions of the developer.
const DEVELOPER: &str = include_str!("../../../prompts/dev_worker.txt");
/// Instructions of the auditor.
const AUDITOR: &str = include_str!("../../../prompts/dev_audit.txt");
/// Instructions for summaries.
const SUMMARIZER: &str = include_str!("../../../prompts/dev_compress.txt");

/// The hint for a request that does not stay in the session.
const TAKEN_OUT: &str = "the request is not in the session any more: give it in other words or in parts, or to another model";

/// Minimum time limit of an auditor's checks, which include the project's build and tests and cannot continue in the
/// background.
const CHECKS: Duration = Duration::from_mins(10);

/// Runs the agent, or another of its commands.
///
/// # Errors
/// Fails if the command fails.
pub fn dev(context: &Context<'_>, arguments: &DevArgs, stdin: Stdin) -> Result<Outcome, Failure> {
    match &arguments.command {
        Some(DevCommand::Config) => return config(context),
        Some(DevCommand::Sessions(_)) => return sessions(context),
        None => {}
    }
    let options = &AgentOptions::new(
        context,
        &arguments.agent,
        arguments.prompt.as_deref(),
        SessionChoice::of(arguments.session, arguments.resume),
        ModelChoice::streamed(arguments.model.as_deref(), arguments.timeout),
        false,
    )?;
    let home = home(context, &DEV)?;
    let wants_screen = !options.is_headless() && !arguments.agent.plain;
    let screen = wants_screen.then_some(&*home);
    with_user(context, stdin, screen, |context, open| {
        serve(context, options, open)
    })
}

/// Works on one request, or on those that the user enters at the terminal.
fn serve<'c>(
    context: &'c Context<'c>,
    options: &AgentOptions,
    open: OpenUser<'_>,
) -> Result<Outcome, Failure> {
    let request = options.request.as_deref();
    let goes_on = options.goes_on()?;
    let mut place = place::open(context, options)?;
    if let Some((request, answers)) = place.replay(context, options)? {
        return work(context, &place, answers, request.as_deref());
    }
    if goes_on && !place.has_more_to_do() {
        return Err(CommandError::NothingAsked.into());
    }
    if request.is_some() {
        let request = request.filter(|_| !goes_on);
        return work(context, &place, AnswerSource::Nowhere, request);
    }
    let user = RefCell::new(open()?);
    // A person may have stopped the work because it went wrong.
    let continues = place.has_more_to_do() && !user.borrow().is_person();
    let mut developer = Developer {
        context,
        options,
        place,
        continues,
        undone: Vec::new(),
    };
    if !continues {
        developer.recap();
    }
    let talked = Talk::new(context, &user, &Unfinished::default()).run(&mut developer);
    left(developer.facts().session, talked)
}

/// The developer agent that a user talks to.
struct Developer<'t, 'c> {
    context: &'c Context<'c>,
    options: &'t AgentOptions,
    place: Workspace<'c>,
    /// `true` if the unfinished request of a resumed session is continued at once.
    continues: bool,
    /// Runs undone since the last request, to be reported to the agent.
    undone: Vec<String>,
}

impl Developer<'_, '_> {
    /// Shows the end of the conversation so far, and says whether it is unfinished.
    fn recap(&self) {
        if let Some(recap) = self.place.stored.session.borrow().conversation.recap() {
            self.context.reporter.event(&Event::Words(recap));
        }
        if self.place.has_more_to_do() {
            let unfinished = "this session was not finished: say what to do next";
            self.context.notice(unfinished);
        }
    }
}

impl Talker for Developer<'_, '_> {
    const PROMPT: &'static str = "dev> ";

    fn todos(&self) -> Vec<Todo> {
        let session = self.place.stored.session.borrow();
        session.conversation.tasks.iter().map(Todo::from).collect()
    }

    fn has_more_to_do(&self) -> Result<bool, Failure> {
        Ok(self.continues)
    }

    fn facts(&self) -> SessionFacts {
        let session = self.place.stored.session.borrow();
        let place = &self.place;
        SessionFacts {
            session: place.is_begun().then(|| session.id.to_string()),
            tokens: Some(session.file.total_tokens),
            ..SessionFacts::of(&place.models.first.spec, place.limits.context())
        }
    }

    fn attend(
        &mut self,
        talk: &mut Talk<'_>,
        request: Option<Submission>,
    ) -> Result<Outcome, Failure> {
        let prompt = request.map(|request| {
            let request = request.text.trim();
            match take(&mut self.undone).as_slice() {
                [] => request.to_owned(),
                undone => format!(
                    "[I have undone what you changed in {}: those files are as they were before.]\n\n{request}",
                    undone.join(" and ")
                ),
            }
        });
        let answers = AnswerSource::Typed(talk.user);
        let done = work(self.context, &self.place, answers, prompt.as_deref());
        talk.count(&done);
        done
    }

    fn undone(&mut self, run: String) -> Result<(), Failure> {
        self.undone.push(run);
        Ok(())
    }

    fn sessions(&self) -> Result<Vec<(String, String)>, Failure> {
        self.place.stored.others(self.context.project.directory())
    }

    fn change_session(&mut self, which: SessionChoice) -> Result<String, Failure> {
        self.place.change_session(self.context, &which)?;
        self.undone.clear();
        self.recap();
        Ok(String::new())
    }

    fn own_model(&self) -> Option<String> {
        let settings = place::settings(self.context);
        settings.ok().map(|(_, settings)| settings.model)
    }

    fn choose_model(&mut self, name: &str) -> Result<(), Failure> {
        let (context, options) = (self.context, self.options);
        place::choose_model(&mut self.place, context, options, name)?;
        Ok(())
    }

    fn compact(&mut self, talk: &mut Talk<'_>, focus: &str) -> Result<String, Failure> {
        if !self.place.is_begun() {
            return Ok(NOTHING_TO_COMPACT.to_owned());
        }
        let form = self.place.models.first.spec.tools.unwrap_or_default();
        let done = compact(
            self.context,
            setup(self.context, &self.place, AnswerSource::Nowhere),
            &*protocol::of(form, PlainReplies::Refused),
            (SUMMARIZER, focus),
        );
        talk.spend(&done);
        Ok(done?.summary)
    }
}

/// Works on one request until it passes the audit. The project is locked only during that time.
fn work(
    context: &Context<'_>,
    place: &Workspace<'_>,
    answers: AnswerSource<'_>,
    request: Option<&str>,
) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    let model = &place.models.first;
    if model.spec.tools == Some(ToolForm::Native) {
        let mut session = place.stored.session.borrow_mut();
        session.conversation.set_thinker(&model.thinker);
    }
    let (had_more_to_do, is_taken_out) = (place.has_more_to_do(), Cell::new(false));
    let mut setup = setup(context, place, answers);
    setup.proof = place.flags.proof(PROOF_TIMEOUT);
    setup.conventions = place.conventions(context).unwrap_or_else(|problem| {
        context.warn(problem.clone());
        setup.warnings.push(problem);
        None
    });
    let run = AgentRun::start(context, setup, request)?;
    let form = place.models.first.spec.tools.unwrap_or_default();
    let (patience, max_loops) = (place.limits.command_timeout(), place.limits.max_loops);
    let audit_commands = AuditCommands {
        root: context.project.root(),
        path: context.environment.os("PATH"),
        own: &place.audit_commands,
        check_timeout: patience.max(CHECKS),
    };
    let restricted = |command: &str| audit_commands.command(command);
    let output_files = || run.command_output();
    let command = |shell| place.command(shell, &output_files);
    let read = place.access(context);
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
                tools: developers_tools(context, place, &run).with(&COMMAND, command(Shell::Full)),
                ..Brief::default()
            },
            protocol: &*protocol::of(form, PlainReplies::Refused),
            permissions: &place.closed_to(context, &Everything),
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
                    &limits(&audit_commands.text(), max_loops, run.unattended_tries()),
                ]
                .concat(),
                tools: Toolbox::default()
                    .with(&READ_FILE, ReadFile(read))
                    .with(&LIST_DIRECTORY, ListDirectory(read))
                    .with(&VERDICT, Done)
                    .with(&RESTRICTED_COMMAND, command(Shell::Restricted(&restricted))),
                ..Brief::default()
            },
            protocol: &*protocol::of(form, PlainReplies::Taken),
            tries: run.unattended_tries(),
            ..worker.clone()
        };
        let before = conversation.clone();
        let worked = work_until_passed(&worker, &auditor, conversation, request);
        let is_ruled_out = worked.as_ref().is_err_and(AgentError::rules_out);
        if is_ruled_out && conversation.is_unanswered_since(&before) {
            run.take_out(conversation, before);
            run.with(|run| run.advice = |_| Some(TAKEN_OUT.to_owned()));
            is_taken_out.set(true);
        }
        worked
    });
    if is_taken_out.get() && !had_more_to_do {
        // The request before it is done.
        place.stored.note_state(SessionState::Complete)?;
    }
    let result = run.end_commands(&mut place.processes.borrow_mut(), result);
    let outcome = run.finish(result)?;
    Ok(Outcome {
        is_answer: true,
        ..outcome
    })
}

/// Returns the setup of a run. Its hints name `config.json` if the model is the one named there.
fn setup<'s>(
    context: &Context<'_>,
    place: &'s Workspace<'_>,
    answers: AnswerSource<'s>,
) -> AgentSetup<'s> {
    let model = &place.models.first.spec.name;
    let is_own = settings(context).is_ok_and(|(_, settings)| settings.model == *model);
    let advice = if is_own {
        Error::hint
    } else {
        AgentError::hint_without_config
    };
    AgentSetup {
        advice,
        ..place.setup(NAME, answers)
    }
}

/// Describes an agent's limits, after the rules for its commands.
fn limits(commands: &str, max_loops: u16, tries: u32) -> String {
    format!(
        "\n## Limits\n\n{commands}\
         - You see at most 32 KiB of a tool's output: the beginning and the end of what is longer.\n\
         - This task has at most {max_loops} replies, the auditor's and summaries included; {tries} failures in a row \
         end it.\n"
    )
}

/// Returns the developer's tools, except for commands.
fn developers_tools<'w>(
    context: &'w Context<'_>,
    place: &'w Workspace<'_>,
    run: &'w AgentRun<'_>,
) -> Toolbox<'w> {
    let background = |action| BackgroundTool {
        processes: &place.processes,
        action,
    };
    let read = place.access(context);
    let access = FileAccess { read, files: run };
    let tools = Toolbox::default()
        .with(&LIST_DIRECTORY, ListDirectory(read))
        .with(&READ_FILE, ReadFile(read))
        .with(&WRITE_FILE, WriteFile(access))
        .with(&FIND_AND_REPLACE_IN_FILE, FindAndReplace(access, &FIND))
        .with(&UPDATE_TASK_LIST, UpdateTaskList)
        .with(&DONE, Done)
        .with(&READ_BACKGROUND_PROCESS, background(BackgroundAction::Read))
        .with(
            &LIST_BACKGROUND_PROCESSES,
            background(BackgroundAction::List),
        )
        .with(&KILL_BACKGROUND_PROCESS, background(BackgroundAction::Kill));
    if run.is_interactive() {
        tools.with(&ASK_USER, AskUser(run))
    } else {
        tools
    }
}

/// Lists the sessions of `dev`.
///
/// # Errors
/// Fails if they cannot be read.
pub fn sessions(context: &Context<'_>) -> Result<Outcome, Failure> {
    let (home, settings) = settings(context)?;
    listing::list::<SessionFile>(context, &DEV, &home, settings.session_retention_days)
}

/// Opens `config.json` in the user's editor, and checks the result.
///
/// # Errors
/// Fails if there is no editor, or the configuration cannot be used.
pub fn config(context: &Context<'_>) -> Result<Outcome, Failure> {
    let home = home(context, &DEV)?;
    // Create the file if it is missing; the editor is for correcting any errors in it.
    let _ = settings(context);
    listing::edit(context, &home.join(FILE), || settings(context).map(drop))
}
