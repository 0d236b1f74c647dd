//! Attachments to a request: the files that it names, and the expansions of user-defined commands.
//!
//! Reads files and runs commands with the agent's own tools, so that the same restrictions apply.

use super::commands::Piece;
use super::error::ChatError;
use super::place::ChatPlace;
use super::request::censored;
use super::shell::output_of;
use crate::agent::conversation::UserRequest;
use crate::agent::tagged::{Tag, tagged};
use crate::agent::tool::{Arguments, OUTPUT_LIMIT, Tool as _, ToolError};
use crate::agent::tools::read::{ReadFile, ReadPart};
use crate::agent::tools::resolved_path::leads_into;
use crate::commands::talk::question::permission;
use crate::record::mode::Mode;
use crate::record::question::{Answer, Question};
use crate::run::context::Context;
use crate::run::outcome::Failure;
use crate::sys::error::Error;
use crate::sys::excerpt::text::bounded;
use crate::sys::numbers::counted;
use crate::ui::input::User;
use crate::ui::tui::Submission;
use crate::ui::tui::attachment::{named_paths, with_images};

/// Converts a request that was not typed at the screen, attaching the images that it names.
pub fn submission(context: &Context<'_>, text: &str) -> Result<Submission, Error> {
    let submission = with_images(text, &[], Some(context.project.root()));
    Ok(submission.map_err(ChatError::from)?)
}

/// Builds a request and attaches the files that it names with `@path`. Warns about a file that cannot be read, and
/// leaves it out.
pub fn request(place: &ChatPlace<'_>, submission: &Submission) -> UserRequest {
    let (mut shown, mut missing) = (Vec::new(), Vec::new());
    for path in named(&submission.text) {
        match shown_file(place, path) {
            Some(Ok(file)) => shown.push(file),
            Some(Err(problem)) => {
                let warning = format!("`@{path}` is not attached: {problem}");
                place.context.warn(warning);
            }
            None => missing.push(format!("`@{path}`")),
        }
    }
    if let [first, others @ ..] = &missing[..] {
        let more = match others.len() {
            0 => String::new(),
            others => format!(" (nor for {})", counted(others as u64, "other word")),
        };
        place.context.notice(format!(
            "nothing is attached for {first}: there is no such file{more}"
        ));
    }
    UserRequest {
        shown,
        images: submission.images.clone(),
        text: censored(place, &submission.text),
    }
}

/// Reads a file with the agent's own tool and formats it for the model; an inner error is the reason for not attaching
/// it. Returns `None` if the file does not exist, so that the word is not a path.
fn shown_file(place: &ChatPlace<'_>, path: &str) -> Option<Result<String, String>> {
    let root = place.context.project.root();
    if !root.join(path).exists() {
        return None;
    }
    let mut closed = place.base.closed.iter();
    if closed.any(|closed| leads_into(root, path, closed)) {
        return Some(Err("it holds agents' settings or sessions".to_owned()));
    }
    let mut arguments = Arguments::default();
    arguments.set("path", path);
    let reads = ReadPart(ReadFile(place.base.access(place.context)));
    Some(match reads.run(&arguments) {
        Ok(output) => {
            let content = bounded(&censored(place, &output.text), OUTPUT_LIMIT);
            let file = format!("path: {path}\n\n{content}");
            Ok(tagged(Tag::File, &[], &file))
        }
        // The hint is meant for the model.
        Err(ToolError::Failed(failure)) => Err(failure.message),
        Err(ToolError::Fatal(error)) => Err(error.to_string()),
    })
}

/// Returns the paths that a text names with an `@`, without duplicates.
fn named(text: &str) -> Vec<&str> {
    let mut paths: Vec<&str> = Vec::new();
    for named in named_paths(text) {
        if named.is_marked && !paths.contains(&named.path) {
            paths.push(named.path);
        }
    }
    paths
}

/// Expands a user-defined command into a request; the inner error is the reason for not running the command. Without a
/// user, everything that needs permission is refused.
///
/// # Errors
/// Fails if one of the command's shell commands cannot be run.
pub fn expand(
    place: &mut ChatPlace<'_>,
    user: Option<&User>,
    name: &str,
    arguments: &str,
) -> Result<Result<UserRequest, String>, Failure> {
    let Some(command) = place.command(name) else {
        return Ok(Err("there is no such command".to_owned()));
    };
    let (mode, is_projects, pieces) = (
        command.mode,
        command.is_projects(),
        command.expand(arguments),
    );
    let is_trusted = place.permissions.borrow().trusts(command);
    let now = place.mode.get();
    if let Some(mode) = mode.filter(|mode| *mode != now) {
        // A project's file must not give itself more freedom.
        let is_freer = mode == Mode::AutoPilot || now == Mode::Planning;
        if is_freer && is_projects && !may_switch(place, user, name, mode)? {
            let title = mode.into_str();
            let problem = format!("it wants to switch to {title}, which was not allowed");
            return Ok(Err(problem));
        }
        place.mode.set(mode);
    }
    let mut asked = UserRequest::default();
    for piece in pieces {
        match piece {
            Piece::Text(text) => asked.text.push_str(&text),
            Piece::File(path) => {
                match shown_file(place, &path) {
                    Some(Ok(shown)) => asked.shown.push(shown),
                    Some(Err(problem)) => return Ok(Err(format!("`{path}`: {problem}"))),
                    // The word is not a path.
                    None => {}
                }
                asked.text.push_str(&format!("@{path}"));
            }
            Piece::Command { command, arguments } => {
                match output_of(place, user, &command, &arguments, is_trusted)? {
                    Ok(output) => asked.text.push_str(&output),
                    Err(problem) => return Ok(Err(problem)),
                }
            }
        }
    }
    Ok(Ok(asked))
}

/// Asks the user whether a command of the project may switch to this mode.
fn may_switch(
    place: &ChatPlace<'_>,
    user: Option<&User>,
    name: &str,
    mode: Mode,
) -> Result<bool, Failure> {
    let Some(user) = user else {
        return Ok(false);
    };
    let title = mode.into_str();
    let question = Question {
        sentence: format!("`/{name}` is the project's, and wants to switch to {title}. May it?"),
        tool: title.to_ascii_lowercase(),
        reasons: vec![format!("switches to {title} Mode for all that follows")],
        ..Question::default()
    };
    Ok(permission(place.context, user, &question, None)?.answer == Answer::Yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_named_at_the_beginning_of_a_word() {
        for (text, expected) in [
            ("see @src/a.rs, and (@b)", &["src/a.rs"][..]),
            ("@a @b? @a", &["a", "b"]),
            ("mail me@here.org", &[]),
            ("@ @.", &[]),
            ("@\"my notes.txt\", @\"ä\"@x", &["my notes.txt", "ä"]),
            ("@\"open @b", &["\"open", "b"]),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
    }
}
