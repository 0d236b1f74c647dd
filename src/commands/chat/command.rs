//! The terminal agent, `chat`: a user talks to it in a full screen, or sends it a single request without a terminal.
//!
//! A profile: it selects the parts of the engine that make up the agent. `place` sets up its resources, `request` works
//! on a request, and `talk` handles the user's input.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::args::{ChatArgs, ChatCommand};
use super::attach::submission;
use super::error::ChatError;
use super::models::ChosenModel;
use super::place::ChatPlace;
use super::talk::TalkEnd;
use super::welcome::welcome;
use super::{attach, login, models, outgoing, place, proposals, request, settings, talk, trusting};
use crate::agent::conversation::UserRequest;
use crate::agent::session::SessionFile;
use crate::commands::answers::AnswerSource;
use crate::commands::screen::{Screen, at_screen, screen_options, with_user};
use crate::commands::sessions::{self as listing, KEEPS_ALL};
use crate::commands::stored_session::{SessionChoice, SessionLog as _};
use crate::commands::talk::{Unfinished, left, say, slash};
use crate::commands::workspace::AgentOptions;
use crate::model::Provider;
use crate::project::home::CHAT;
use crate::record::event::WithoutKeys;
use crate::record::mode::{Mode, SharedMode};
use crate::run::context::{Context, ModelChoice, Stdin};
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::home_file;
use crate::ui::input::{InputError, User};
use crate::ui::is_dumb;
use crate::ui::tui::ToScreen;
use crate::ui::tui::terminal::ScreenOptions;

/// File with the input history, in the agent's home.
const HISTORY: &str = "history.jsonl";

/// Talks to the user, answers a single request, or runs another command of the agent.
///
/// # Errors
/// Fails if the setup is incomplete or, without a terminal, if the request fails.
pub fn chat(context: &Context<'_>, arguments: &ChatArgs, stdin: Stdin) -> Result<Outcome, Failure> {
    match &arguments.command {
        Some(ChatCommand::Login { given, .. }) if !given.is_empty() => {
            return Err(ChatError::KeyAsArgument.into());
        }
        Some(ChatCommand::Login {
            account, provider, ..
        }) => {
            let provider = provider.as_deref().and_then(Provider::named);
            return login::login(context, account.as_deref(), provider, stdin.is_terminal);
        }
        Some(ChatCommand::Logout) => return login::logout(context),
        Some(ChatCommand::Sessions(_)) => return sessions(context),
        Some(ChatCommand::Config) => return config(context),
        Some(ChatCommand::Trust { yes }) => return trusting::trust(context, *yes),
        None => {}
    }
    let options = &AgentOptions::new(
        context,
        &arguments.agent,
        arguments.prompt.as_deref(),
        SessionChoice::of(arguments.session, arguments.resume),
        ModelChoice {
            allow_secrets: arguments.allow_secrets,
            ..ModelChoice::streamed(arguments.model.as_deref(), arguments.timeout)
        },
        true,
    )?;
    let first_mode = arguments.first_mode();
    if options.is_headless() {
        return headless(context, options, first_mode);
    }
    let first = arguments.first.as_deref();
    let mode = SharedMode::new(first_mode.unwrap_or_default());
    if arguments.agent.plain {
        return by_lines(context, options, first, &mode, stdin);
    }
    if !stdin.is_terminal || !stdin.is_seen {
        return Err(ChatError::NoTerminal("standard input or output is not one").into());
    }
    if is_dumb(context.environment) {
        return Err(ChatError::NoTerminal("`TERM` is unset or names a dumb terminal").into());
    }
    interactive(context, options, first, &mode)
}

/// Answers a single request without a terminal.
fn headless(
    context: &Context<'_>,
    options: &AgentOptions,
    mode: Option<Mode>,
) -> Result<Outcome, Failure> {
    let request = options.request.as_deref();
    if request.is_some_and(|request| request.trim().is_empty()) {
        return Err(InputError::Blank.into());
    }
    let own = request.and_then(slash::split);
    let chosen = models::choose(context, &options.choice, BTreeMap::new(), None)?;
    let reporter = without_key(context, &chosen);
    let context = &redacted(context, &reporter);
    let shared = SharedMode::new(mode.unwrap_or_default());
    let mut place = ChatPlace::open(context, options, chosen, shared)?;
    place.report_warnings();
    let recorded = place.base.replay(context, options)?;
    let recorded_mode = place.base.recorded.as_ref().and_then(|record| record.mode);
    if let Some(mode) = recorded_mode.filter(|_| mode.is_none()) {
        place.mode.set(mode);
    }
    let asked = || (request.map(str::to_owned), AnswerSource::Nowhere);
    let (request, answers) = recorded.unwrap_or_else(asked);
    let asked = if let Some((name, argument)) = own {
        let expanded = expanded(&mut place, name, argument);
        // The expanded command may have changed the permissions.
        proposals::keep_permissions(&place);
        Some(expanded?)
    } else {
        let submission = request.map(|text| submission(context, &text)).transpose()?;
        submission.map(|submission| attach::request(&place, &submission))
    };
    let mut done = request::work(&place, answers, asked.as_ref());
    proposals::keep_permissions(&place);
    let redact = |text: &mut String| *text = context.redactor.text(text).into_owned();
    match &mut done {
        Ok(outcome) => redact(&mut outcome.summary),
        Err(failure) => failure.output.text.iter_mut().for_each(redact),
    }
    done
}

/// Expands a user-defined command into a request, after switching to the model that it names.
fn expanded(place: &mut ChatPlace<'_>, name: &str, argument: &str) -> Result<UserRequest, Failure> {
    let Some(command) = place.command(name) else {
        return Err(ChatError::UnknownCommand(outgoing::censored(name)).into());
    };
    if let Some(model) = command.model.clone() {
        place.choose_model_of(name, &model)?;
    }
    let argument = request::censored(place, argument);
    attach::expand(place, None, name, &argument)?.map_err(|problem| {
        let name = name.to_owned();
        ChatError::NotExpanded { name, problem }.into()
    })
}

/// Talks to the user at the screen.
fn interactive(
    context: &Context<'_>,
    options: &AgentOptions,
    first: Option<&str>,
    mode: &SharedMode,
) -> Result<Outcome, Failure> {
    let home = login::home(context)?;
    let settings = place::settings(&home)?;
    let screen_options = ScreenOptions {
        first: first.map(|text| submission(context, text)).transpose()?,
        mode: Some(mode.clone()),
        mouse: settings.ui.mouse,
        notify: settings.ui.notify,
        ..screen_options(context, home.join(HISTORY))
    };
    at_screen(context, screen_options, |screen, farewell| {
        let context = &context.with_reporter(&**screen);
        let user: User = RefCell::new(Box::new(Rc::clone(screen)));
        talk_until_left(context, options, (&user, Some(&**screen)), mode, |place| {
            *farewell = place.farewell();
        })
    })?;
    Ok(Outcome::default())
}

/// Talks to the user in line mode.
fn by_lines(
    context: &Context<'_>,
    options: &AgentOptions,
    first: Option<&str>,
    mode: &SharedMode,
    stdin: Stdin,
) -> Result<Outcome, Failure> {
    with_user(context, stdin, None, |context, open| {
        let user: User = RefCell::new(open()?);
        if let Some(first) = first {
            user.borrow_mut().send(first.to_owned().into());
        }
        let mut session = None;
        let talked = talk_until_left(context, options, (&user, None), mode, |place| {
            session = place.base.is_begun().then(|| place.id());
        });
        left(session, talked)
    })
}

/// Talks to the user, at the screen if there is one, and sets everything up again when the account changes. Calls
/// `leave` whenever a conversation has ended, successfully or not.
fn talk_until_left(
    context: &Context<'_>,
    options: &AgentOptions,
    (user, screen): (&User, Option<&Screen>),
    mode: &SharedMode,
    mut leave: impl FnMut(&ChatPlace<'_>),
) -> Result<(), Failure> {
    let mut options = options.clone();
    let (mut briefing, mut permissions, mut accounts) = (None, None, BTreeMap::new());
    let unfinished = Unfinished::default();
    // The table includes the vendor's list of models, in case the user has chosen a model from it.
    let mut table = None;
    loop {
        let is_first = table.is_none();
        let chosen = models::choose(context, &options.choice, accounts.clone(), table)?;
        let reporter = without_key(context, &chosen);
        let context = &redacted(context, &reporter);
        if let Some(screen) = screen {
            screen.redact_with(context.redactor);
        }
        let mut place = ChatPlace::open(context, &options, chosen, mode.clone())?;
        match place.base.is_begun() {
            true if is_first => talk::show_conversation(&place, screen),
            false if is_first => say(context, user, &welcome(&place, screen.is_some())),
            _ => {}
        }
        if let Some(known) = permissions.take() {
            place.permissions.replace(known);
        }
        place.report_warnings();
        if let Some(uncontained) = &place.base.uncontained {
            context.warn(uncontained.clone());
        }
        if let Some(known) = briefing.take() {
            place.briefing.replace(known);
        }
        let talked = talk::talk(&mut place, (user, &unfinished), screen);
        leave(&place);
        match talked? {
            TalkEnd::Left => return Ok(()),
            TalkEnd::Reopen(provider, Some(account)) => {
                accounts.insert(provider, account);
            }
            TalkEnd::Reopen(provider, None) => {
                accounts.remove(&provider);
            }
        }
        user.borrow_mut().show(ToScreen::SettingUp);
        options.session = SessionChoice::Named(place.id());
        options.choice.model = Some(place.base.models.first.spec.name.clone());
        briefing = Some(place.briefing.into_inner());
        permissions = Some(place.permissions.into_inner());
        table = Some(place.table);
    }
}

/// Returns the reporter for a chosen model. The outer one does not know a key that a program has supplied.
fn without_key<'c>(context: &Context<'c>, chosen: &ChosenModel) -> WithoutKeys<'c> {
    WithoutKeys {
        inner: context.reporter,
        redactor: context.redactor.and(chosen.key.exposed()),
    }
}

/// Returns the same context with this reporter and its redactor.
fn redacted<'c>(context: &Context<'c>, reporter: &'c WithoutKeys<'_>) -> Context<'c> {
    Context {
        redactor: &reporter.redactor,
        ..context.with_reporter(reporter)
    }
}

/// Lists the sessions.
///
/// # Errors
/// Fails if they cannot be read.
pub fn sessions(context: &Context<'_>) -> Result<Outcome, Failure> {
    listing::list::<SessionFile>(context, &CHAT, &login::home(context)?, KEEPS_ALL)
}

/// Opens `settings.json` in the user's editor, and checks the result.
///
/// # Errors
/// Fails if there is no editor, or the settings cannot be used.
pub fn config(context: &Context<'_>) -> Result<Outcome, Failure> {
    let home = login::home(context)?;
    let path = home.join(settings::FILE);
    if home_file::read(&path).map_err(NotReady::of)?.is_none() {
        let made = CHAT.create(&path, settings::DEFAULTS.as_bytes());
        made.map_err(NotReady::of)?;
    }
    listing::edit(context, &path, || place::settings(&home).map(drop))
}
