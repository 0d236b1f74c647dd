//! Proposals of the agent that the user reviews before they take effect: a summary, `AGENTS.md`, a slash command.

use serde_json::json;

use super::permissions::file::REFUSED;
use super::place::ChatPlace;
use super::{commands, request};
use crate::agent::conversation::Conversation;
use crate::agent::memory::truncate::summarize;
use crate::agent::tool::ToolOutput;
use crate::agent::tools::files::Files as _;
use crate::commands::agent_run::{NOTHING_TO_COMPACT, SUMMARY};
use crate::commands::talk::question::permission;
use crate::commands::talk::say;
use crate::edit::EditKind;
use crate::model::Purpose;
use crate::record::question::{Answer, Question};
use crate::run::not_ready::NotReady;
use crate::run::outcome::Failure;
use crate::sys::diff::{self, FileChange};
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::ui::input::User;

/// The name of the tool that writes files.
const TOOL: &str = "write_file";
/// Request sent by `/init`.
pub const INIT: &str = include_str!("../../../prompts/chat_init.txt");
/// Request sent by `/command`.
const COMMAND: &str = include_str!("../../../prompts/chat_command.txt");

/// Replaces the conversation with a summary.
///
/// # Errors
/// Fails if no summary can be made.
pub fn compact(place: &ChatPlace<'_>, focus: &str) -> Result<String, Failure> {
    if !place.base.is_begun() {
        return Ok(NOTHING_TO_COMPACT.to_owned());
    }
    let outcome = request::aside(place, "/compact", true, |agent, conversation| {
        let system = request::system(agent);
        let (meter, window) = (&place.meter, place.window());
        let asked = (SUMMARY, focus);
        Ok(summarize(agent.frame(&system), meter, window, asked, conversation)?.message())
    })?;
    Ok(outcome.summary)
}

/// Returns the model's proposal for a slash command of this name.
///
/// # Errors
/// Fails if the model does not propose one.
pub fn command(place: &ChatPlace<'_>, name: &str, description: &str) -> Result<String, Failure> {
    let request = format!("{COMMAND}\nName: {name}\nDescription: {description}\n");
    proposed(place, &format!("/command {name}"), &request)
}

/// Asks the model, on the program's behalf, to explore the project and write a file. Returns the file.
///
/// # Errors
/// Fails if the model does not write a file.
pub fn proposed(place: &ChatPlace<'_>, about: &str, request: &str) -> Result<String, Failure> {
    let outcome = request::aside(place, about, false, |agent, _| {
        let mut conversation = Conversation::default();
        Ok(agent.work_on(&mut conversation, Some(request))?.words)
    })?;
    Ok(commands::template(&outcome.summary))
}

/// Shows a file proposed for the project, writes it if the user agrees, and reports the outcome. The change can be
/// undone.
///
/// # Errors
/// Fails if the file cannot be read or written, or the user leaves.
pub fn offer(
    place: &ChatPlace<'_>,
    user: &User,
    path: &str,
    content: &str,
) -> Result<String, Failure> {
    let file = place.context.project.root().join(path);
    let read = || files::read(&file, Links::Refused, MIB).if_there();
    let before = read().map_err(PathError::of("read", path))?;
    let after = Some(content.as_bytes().to_vec());
    let change = FileChange::of(path.to_owned(), before.clone(), after);
    let overwrites = before.is_some().then(|| "overwrites".to_owned());
    let question = Question {
        sentence: format!("Write `{path}`?"),
        tool: TOOL.to_owned(),
        subject: path.to_owned(),
        reasons: overwrites.into_iter().collect(),
        ..Question::default()
    };
    let diff = diff::text(&[change]);
    let verdict = permission(place.context, user, &question, Some(&diff))?;
    if verdict.answer != Answer::Yes {
        return Ok(format!("`{path}` is as it was"));
    }
    let outcome = request::by_itself(place, &format!("write {path}"), |run, _| {
        let input = json!({"path": path, "content": content});
        let used = run.own_step(Purpose::COMMAND, (TOOL, input), || {
            if read().ok() != Some(before) {
                let problem = "it was changed while it was looked at: nothing was written";
                return Err(problem.to_owned().into());
            }
            let edit = (path.to_owned(), EditKind::Write(content.to_owned()));
            run.apply(vec![edit])?;
            Ok(ToolOutput::text("it was written"))
        })?;
        Ok(format!("`{path}`: {}", used.text))
    })?;
    Ok(outcome.summary)
}

/// Restores permissions that a command has changed while no user was present to review the change.
pub fn keep_permissions(place: &ChatPlace<'_>) {
    let permissions = place.permissions.borrow();
    if permissions.changed_on_disk().is_none() {
        return;
    }
    let path = permissions.path();
    place.context.warn(match permissions.put_back() {
        Ok(()) => format!(
            "`{}` was changed meanwhile, and is as it was before: nobody was there to look at the change, which is in `{REFUSED}`",
            path.display()
        ),
        Err(problem) => problem.to_string(),
    });
}

/// Asks about permissions that have changed on disk since they were read: they take effect if the user agrees, and are
/// restored if the user declines or leaves.
///
/// # Errors
/// Fails if the permissions cannot be used or restored, or the user leaves.
pub fn look_at_permissions(place: &ChatPlace<'_>, user: &User) -> Result<(), Error> {
    let changed = place.permissions.borrow().changed_on_disk();
    let Some((diff, file)) = changed else {
        return Ok(());
    };
    let path = place.permissions.borrow().path().display().to_string();
    let question = Question {
        sentence: format!("`{path}` was changed on disk. Do these permissions hold from now on?"),
        tool: "permissions".to_owned(),
        ..Question::default()
    };
    let verdict = permission(place.context, user, &question, Some(&diff));
    if verdict.as_ref().is_ok_and(|it| it.answer == Answer::Yes) {
        let mut file = file.map_err(NotReady::of)?;
        file.trust(&[]).map_err(NotReady::of)?;
        place.permissions.replace(file);
    } else {
        let put_back = place.permissions.borrow().put_back();
        put_back.map_err(NotReady::of)?;
        let said = format!("`{path}` is as it was; what stood there is in `{REFUSED}`");
        say(place.context, user, &said);
    }
    verdict.map(drop)
}
