//! Work on a single request: a run, with the parts that make up this agent.

use super::error::{ChatError, hint_in_chat};
use super::instructions::system_prompt;
use super::permissions::file::{Choice, FILE, PermissionAction};
use super::permissions::{ChatPermissions, remembered};
use super::place::ChatPlace;
use super::tools::{ChatTools, looking};
use super::{outgoing, spending, trusting};
use crate::agent::conversation::{Conversation, HistoryMessage, UserRequest};
use crate::agent::memory::truncate::{self, Meter, Truncate};
use crate::agent::protocol::native::Native;
use crate::agent::tagged::without_reminders;
use crate::agent::tools::command::Shell;
use crate::agent::tools::files::FileAccess;
use crate::agent::{Agent, AgentError, Brief, Env, Host, ToolTries};
use crate::commands::agent_run::{AgentRun, AgentSetup};
use crate::commands::answers::AnswerSource;
use crate::commands::talk::question::permission;
use crate::commands::talk::say;
use crate::commands::workspace::PROOF_TIMEOUT;
use crate::model::message::Role;
use crate::model::{Purpose, ToolChoice};
use crate::project::repository::nearest_top;
use crate::record::mode::{Mode, SharedMode};
use crate::record::question::{Answer, Question};
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome, record_of};
use crate::run::recovery;
use crate::sys::error::{Error, Problem as _};
use crate::sys::exit::Exit;
use crate::ui::input::User;

/// The command's name.
const NAME: &str = "chat";
/// Number of consecutive tool failures that ends a request.
const TOOL_TRIES: u32 = 25;

/// Asks the user for permission, and saves a permanent choice.
///
/// # Errors
/// Fails if the user leaves, or their trust cannot be saved.
pub fn ask(
    place: &ChatPlace<'_>,
    user: &User,
    question: &Question,
    preview: Option<&str>,
) -> Result<Answer, Error> {
    let verdict = permission(place.context, user, question, preview)?;
    // Changes made by the user in the meantime must not be attributed to the call.
    place.briefing.borrow_mut().look();
    if let Some(choice) = remembered(question, &verdict) {
        trusting::ask_before(place, user, &choice)?;
        let now = place.context.clock.now();
        let remembered = place.permissions.borrow_mut().remember(&choice, now);
        match (remembered, choice) {
            (Err(problem), _) => {
                let hint = problem.hint().unwrap_or_default();
                say(place.context, user, &format!("{problem}\n\n{hint}"));
            }
            (Ok(()), Choice::Tool(tool, PermissionAction::Never)) => {
                let told =
                    format!("`{tool}` is never used in this project from now on; `{FILE}` says so");
                say(place.context, user, &told);
            }
            _ => {}
        }
    }
    Ok(verdict.answer)
}

/// Works on a request in a separate run.
///
/// # Errors
/// Fails if the request fails.
pub fn work(
    place: &ChatPlace<'_>,
    answers: AnswerSource<'_>,
    request: Option<&UserRequest>,
) -> Result<Outcome, Failure> {
    place.check_key()?;
    place.refused.take();
    let is_headless = !answers.can_answer();
    let text = request.map(|request| &*request.text);
    let setup = AgentSetup {
        proof: place.base.flags.proof(PROOF_TIMEOUT),
        ..setup(place, answers, true)
    };
    in_run(place, setup, text, |run, conversation| {
        let before = conversation.clone();
        let mut known = place.briefing.borrow().clone();
        let used = place.meter.used(&before);
        let result = with_agent(place, run, is_headless, |agent| {
            Ok(agent.work_on_request(conversation, request)?.words)
        });
        let is_unanswered = conversation.is_unanswered_since(&before);
        let is_taken_out = |error: &AgentError| match error {
            // What is refused may be anything since the request; a picture would come with each further request.
            AgentError::Model(error) if error.is_refusal() => true,
            AgentError::Model(error) if error.is_bad_request() => is_unanswered,
            error => is_unanswered && error.rules_out(),
        };
        if result.as_ref().is_err_and(is_taken_out) {
            place.meter.estimated(used, &before);
            if !run.is_in_scratch() {
                known.taken_out(&run.changed(), &commands(conversation.since(&before)));
            }
            place.briefing.replace(known);
            run.take_out(conversation, before);
        }
        result
    })
}

/// Returns the commands in these messages that the agent has run successfully.
fn commands<'m>(messages: impl Iterator<Item = &'m HistoryMessage> + Clone) -> Vec<String> {
    let results = messages.clone().filter(|message| !message.is_failed);
    let done: Vec<&String> = results.filter_map(|it| it.call.as_ref()).collect();
    let calls = messages.flat_map(|message| &message.calls);
    let succeeded = calls.filter(|call| done.contains(&&call.id));
    let commands = succeeded.filter_map(|call| call.input["command"].as_str());
    commands.map(str::to_owned).collect()
}

/// Does `work` in a run. The run fails as not permitted if calls were refused because no user was present. Its spending
/// is added to that of the account.
fn in_run(
    place: &ChatPlace<'_>,
    setup: AgentSetup<'_>,
    about: Option<&str>,
    work: impl FnOnce(&AgentRun<'_>, &mut Conversation) -> Result<String, AgentError>,
) -> Result<Outcome, Failure> {
    let _lock = recovery::take(place.context)?;
    let run = AgentRun::start(place.context, setup, about)?;
    let worked = run.work(|conversation| work(&run, conversation));
    let worked = run.end_commands(&mut place.base.processes.borrow_mut(), worked);
    let refused = place.refused.borrow().clone();
    let words = worked.as_ref().ok().cloned();
    let result = match worked {
        Ok(_) if !refused.calls.is_empty() => Err(ChatError::NotPermitted(refused).into()),
        worked => worked,
    };
    let is_refused = matches!(&result, Err(error) if error.exit() == Exit::NotPermitted);
    let mut finished = run.finish(result);
    if let Some(record) = record_of(&finished) {
        spending::count(place, record);
    }
    match &mut finished {
        Ok(outcome) => outcome.is_answer = true,
        Err(failure) if is_refused => {
            let text = &mut failure.output.text;
            *text = text.take().or(words);
        }
        Err(_) => {}
    }
    finished
}

/// Returns the setup of a run of this agent; if `keeps`, the conversation is saved in the session.
fn setup<'s>(place: &'s ChatPlace<'_>, answers: AnswerSource<'s>, keeps: bool) -> AgentSetup<'s> {
    AgentSetup {
        advice: hint_in_chat,
        session: keeps.then_some(place as _),
        mode: Some(place.mode.get()),
        ..place.base.setup(NAME, answers)
    }
}

/// Assembles the agent from its parts and passes it to `work`.
fn with_agent<T>(
    place: &ChatPlace<'_>,
    run: &AgentRun<'_>,
    is_headless: bool,
    work: impl FnOnce(&Agent<'_>) -> Result<T, AgentError>,
) -> Result<T, AgentError> {
    let output_files = || run.command_output();
    let tools = ChatTools {
        access: FileAccess {
            read: place.base.access(place.context),
            files: run,
        },
        command: place.base.command(Shell::Full, &output_files),
        todos: &|list| place.update_todos(list),
        spawn: None,
    };
    // Text in a file must not be mistaken for a reminder from the program.
    let censor = |text: &str| without_reminders(&censored(place, text));
    let env = Env {
        censor: Some(&censor),
        ..run.env()
    };
    let permitted = place.permitted(is_headless);
    let permissions = place.base.closed_to(place.context, &permitted);
    let memory = memory(place, &place.meter);
    // A helper has a separate conversation.
    let helper_meter = Meter::default();
    let helper_memory = self::memory(place, &helper_meter);
    let helper = Agent {
        purpose: Purpose::HELPER,
        brief: &|| Brief {
            instructions: instructions(place.context, is_headless),
            context: place.briefing.borrow_mut().prompt().into_iter().collect(),
            tools: tools.toolbox(),
            // All tools are described in Planning mode, too.
            tool_choice: match place.mode.get() {
                Mode::Planning => ToolChoice::None,
                Mode::Regular | Mode::AutoPilot => ToolChoice::Auto,
            },
            reminders: Vec::new(),
        },
        protocol: &Native {
            instructions: "",
            ..Native::default()
        },
        permissions: &permissions,
        memory: &helper_memory,
        ending: &|_, _| Ok(()),
        tries: run.tries(),
        tool_tries: ToolTries::UpTo(TOOL_TRIES),
        calls: None,
        temperature: None,
        env,
    };
    let spawn = |prompt: &str| {
        helper_meter.reset();
        run.delegate(|| helper.work_apart(prompt))
    };
    let with_helper = ChatTools {
        spawn: Some(&spawn),
        ..tools
    };
    let agent = Agent {
        purpose: Purpose::STEP,
        brief: &|| Brief {
            tools: with_helper.toolbox(),
            reminders: reminders(place),
            ..(helper.brief)()
        },
        memory: &memory,
        ..helper.clone()
    };
    work(&agent)
}

/// Has the agent do something besides the user's requests, with read-only tools. If `keeps`, the changed conversation
/// is saved in the session.
///
/// # Errors
/// Fails if the work fails.
pub fn aside(
    place: &ChatPlace<'_>,
    about: &str,
    keeps: bool,
    work: impl FnOnce(&Agent<'_>, &mut Conversation) -> Result<String, AgentError>,
) -> Result<Outcome, Failure> {
    place.check_key()?;
    let setup = setup(place, AnswerSource::Nowhere, keeps);
    in_run(place, setup, Some(about), |run, conversation| {
        with_agent(place, run, false, |agent| {
            let meter = Meter::default();
            // Never asks, but refuses what the user has forbidden.
            let mode = SharedMode::new(Mode::AutoPilot);
            let permissions = ChatPermissions {
                mode: &mode,
                ..place.permitted(false)
            };
            let aside = Agent {
                brief: &|| Brief {
                    tools: looking(place.base.access(place.context)),
                    reminders: Vec::new(),
                    ..(agent.brief)()
                },
                permissions: &place.base.closed_to(place.context, &permissions),
                memory: &memory(place, &meter),
                ..agent.clone()
            };
            let text = work(&aside, conversation)?;
            if keeps {
                Host::save(run, &Purpose::STEP, conversation)?;
                place.briefing.borrow_mut().renewed();
            }
            Ok(text)
        })
    })
}

/// Does `work` in a separate run, without calling a model.
///
/// # Errors
/// Fails if the work fails.
pub fn by_itself(
    place: &ChatPlace<'_>,
    about: &str,
    work: impl FnOnce(&AgentRun<'_>, &mut Conversation) -> Result<String, AgentError>,
) -> Result<Outcome, Failure> {
    let setup = setup(place, AnswerSource::Nowhere, true);
    in_run(place, setup, Some(about), work)
}

/// Creates the memory of a conversation that is measured by this meter.
fn memory<'m>(place: &ChatPlace<'_>, meter: &'m Meter) -> Truncate<'m> {
    Truncate {
        window: place.window(),
        threshold: place.settings.compact_threshold.into(),
        meter,
    }
}

/// Returns the agent's system prompt as sent.
pub fn system(agent: &Agent<'_>) -> Vec<String> {
    let brief = (agent.brief)();
    [vec![brief.instructions], brief.context].concat()
}

/// Returns the agent's instructions.
fn instructions(context: &Context<'_>, is_headless: bool) -> String {
    let (root, directory) = (context.project.root(), context.project.directory());
    let is_repository = nearest_top(directory).is_some();
    system_prompt(root, directory, is_repository, !is_headless)
}

/// Returns the reminders due since the last step.
fn reminders(place: &ChatPlace<'_>) -> Vec<HistoryMessage> {
    let session = place.base.stored.session.borrow();
    let sent = session.conversation.untruncated();
    // A paused reply must be the last message when it is sent back.
    if sent.last().is_some_and(|last| last.role == Role::Assistant) {
        return Vec::new();
    }
    let mut briefing = place.briefing.borrow_mut();
    let next = briefing.next(place.mode.get(), &place.todos.borrow(), sent);
    for warning in briefing.warnings() {
        place.context.warn(warning);
    }
    next
}

/// Estimates the number of tokens of a request, including its attachments.
pub fn tokens_of(asked: &UserRequest) -> u64 {
    let mut alone = Conversation::default();
    alone.ask(asked.clone());
    truncate::tokens_of(&alone.history)
}

/// Redacts keys in a text, and likely credentials, unless the user allows sending those.
pub fn censored(place: &ChatPlace<'_>, text: &str) -> String {
    let text = place.context.redactor.text(text);
    if place.choice.allow_secrets {
        return text.into_owned();
    }
    outgoing::censored(&text)
}
