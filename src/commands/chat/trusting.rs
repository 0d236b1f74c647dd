//! The user's trust in a project's own files.
//!
//! Reads the project's permissions and commands, and saves the user's decision. Guarantees that no such file takes
//! effect before the user has seen what it would allow.

use super::commands::{self, CommandFile};
use super::login::home;
use super::permissions::file::{Choice, FILE, PermissionFile};
use super::permissions::untrusted::Untrusted;
use super::permissions::words_of;
use super::place::ChatPlace;
use crate::commands::talk::question::permission;
use crate::commands::talk::say;
use crate::record::question::{Answer, Question};
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::error::Error;
use crate::ui::input::{self, InputError, LineReader as _, Lines, Typed, User};

/// The question to the user.
const QUESTION: &str = "Trust this folder?";

/// Asks the user whether the project's own files may take effect; a refusal applies until the program ends. If the user
/// is another program, only warns: that program cannot know whether it will be asked.
///
/// # Errors
/// Fails if the answer cannot be saved, or the user leaves.
pub fn ask_at_start(place: &ChatPlace<'_>, user: &User) -> Result<(), Error> {
    let untrusted = Untrusted::find(&place.permissions.borrow(), &place.commands);
    if untrusted.lines.is_empty() || place.permissions.borrow().is_declined {
        return Ok(());
    }
    if user.borrow().is_person() {
        return ask(place, user, &untrusted);
    }
    place.permissions.borrow_mut().is_declined = true;
    if let Some(warning) = untrusted.warning() {
        place.context.warn(warning);
    }
    Ok(())
}

/// Asks for trust before this choice is written to an untrusted file.
///
/// # Errors
/// Same as for [`ask_at_start`].
pub fn ask_before(place: &ChatPlace<'_>, user: &User, choice: &Choice) -> Result<(), Error> {
    let permissions = place.permissions.borrow();
    if permissions.is_declined || !permissions.needs_trust(choice) {
        return Ok(());
    }
    let mut allowed = permissions.withheld();
    allowed.push(words_of(choice));
    let mut untrusted = Untrusted::default();
    untrusted.add(FILE, "has come with the project, and would allow", allowed);
    drop(permissions);
    ask(place, user, &untrusted)
}

/// Trusts the project's command of this name if it has the content that the program has just shown to the user and
/// written.
///
/// # Errors
/// Fails if the trust cannot be saved.
pub fn trust_written(place: &ChatPlace<'_>, name: &str, content: &str) -> Result<(), Error> {
    let is_it = |command: &&CommandFile| {
        let source = command.source();
        source.is_some_and(|(_, found)| found == content.as_bytes())
    };
    let Some(command) = place.command(name).filter(is_it) else {
        return Ok(());
    };
    let trusted = place.permissions.borrow_mut().trust_command(command);
    Ok(trusted.map_err(NotReady::of)?)
}

fn ask(place: &ChatPlace<'_>, user: &User, untrusted: &Untrusted) -> Result<(), Error> {
    let question = Question {
        sentence: QUESTION.to_owned(),
        ..Question::default()
    };
    let lines = untrusted.lines.join("\n");
    let verdict = permission(place.context, user, &question, Some(&lines))?;
    let mut permissions = place.permissions.borrow_mut();
    if verdict.answer == Answer::Yes {
        let trusted = permissions.trust(&untrusted.commands);
        trusted.map_err(NotReady::of)?;
    } else {
        permissions.is_declined = true;
        let text = "What the project's files allow is asked about; `always` holds until you leave.";
        say(place.context, user, text);
    }
    Ok(())
}

/// Shows what the project's files would allow, and trusts them if the user agrees, either in advance (`is_given`) or
/// with a `y` on standard input.
///
/// # Errors
/// Fails if the files cannot be read, or trust cannot be saved.
pub fn trust(context: &Context<'_>, is_given: bool) -> Result<Outcome, Failure> {
    let root = context.project.root();
    let home = home(context)?;
    let mut permissions = PermissionFile::open(&home, root)?;
    let (commands, _) = commands::load(root, &home);
    let untrusted = Untrusted::find(&permissions, &commands);
    if untrusted.lines.is_empty() {
        return Ok(Outcome::new(
            "done: nothing in this folder would allow anything that is not trusted",
        ));
    }
    for line in &untrusted.lines {
        context.notice(line.clone());
    }
    if !is_given && !is_agreed(context)? {
        return Ok(Outcome::new(
            "nothing was trusted: `always` counts as `ask` here",
        ));
    }
    let trusted = permissions.trust(&untrusted.commands);
    trusted.map_err(NotReady::of)?;
    let paths = untrusted.paths.join(", ");
    let are = match untrusted.paths.len() {
        1 => "it is",
        _ => "they are",
    };
    Ok(Outcome::new(format!("done: {paths} trusted as {are} now")))
}

fn is_agreed(context: &Context<'_>) -> Result<bool, Error> {
    let stdin = input::stdin(context.interrupt.clone()).map_err(InputError::from)?;
    let mut lines = Lines::new(stdin, Some(context.interrupt.clone()));
    let typed = lines.line(&format!("{QUESTION} [y/N] "))?;
    Ok(matches!(typed, Typed::Line(line) if Answer::read(&line) == Answer::Yes))
}
