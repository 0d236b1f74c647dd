//! The picture in the desktop's clipboard, where a program is there that tells it.
//!
//! Starts `wl-paste` or `xclip`. Guarantees that neither is taken from the project, that no more is read than a picture
//! may have, and that nobody waits for it: it runs on a thread of its own.

use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

use super::channel::Wake;
use super::composer::image_of;
use crate::model::message::Image;
use crate::sys::environment::Environment;
use crate::sys::files::MIB;
use crate::sys::git::program_outside;

/// How large a picture may be.
const LARGEST: u64 = 5 * MIB;
/// The variable that tells of a desktop, and the command that prints its clipboard's picture.
const TOOLS: [(&str, &str, &[&str]); 2] = [
    (
        "WAYLAND_DISPLAY",
        "wl-paste",
        &["--no-newline", "--type", "image/png"],
    ),
    (
        "DISPLAY",
        "xclip",
        &["-selection", "clipboard", "-t", "image/png", "-o"],
    ),
];

/// Why there is no picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClipboardProblem {
    /// Nothing can tell it.
    #[error(
        "no clipboard to take a picture from: install `wl-paste` or `xclip`, or name the file behind an `@`"
    )]
    NoTool,
    /// Something else is in it, or nothing.
    #[error("there is no picture of at most 5 MB in the clipboard")]
    NoImage,
}

/// What came of looking for one.
pub type FoundImage = Result<Image, ClipboardProblem>;

/// What tells the clipboard's picture.
#[derive(Debug, Clone, Default)]
pub struct Clipboard(Option<(String, &'static [&'static str])>);

impl Clipboard {
    /// The desktop's own program, from an absolute directory of `PATH` that is not in `project`.
    #[must_use]
    pub fn of(environment: &Environment, project: &Path) -> Self {
        let program = |(desktop, name, arguments): (&str, &str, &'static [&'static str])| {
            environment.os(desktop)?;
            let program = program_outside(name, environment.os("PATH")?, project)?;
            Some((program, arguments))
        };
        Self(TOOLS.into_iter().find_map(program))
    }

    /// Has the picture sent to `found`, and the screen woken then.
    pub fn fetch(&self, found: Sender<FoundImage>, wake: Wake) {
        let this = self.clone();
        let started = thread::Builder::new().spawn(move || {
            // Who does not wait any more has gone.
            let _ = found.send(this.image());
            wake.poke();
        });
        // Where no thread can be had, there are greater worries than a picture.
        drop(started);
    }

    fn image(&self) -> FoundImage {
        let (program, arguments) = self.0.as_ref().ok_or(ClipboardProblem::NoTool)?;
        let mut command = Command::new(program);
        command.args(*arguments).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut tool = command.spawn().map_err(|_| ClipboardProblem::NoTool)?;
        let mut bytes = Vec::new();
        let output = tool.stdout.take();
        let read = output.map(|output| output.take(LARGEST + 1).read_to_end(&mut bytes));
        let _ = tool.kill();
        let _ = tool.wait();
        let is_whole = matches!(read, Some(Ok(_))) && bytes.len() as u64 <= LARGEST;
        let image = image_of(&bytes).filter(|_| is_whole);
        image.ok_or(ClipboardProblem::NoImage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::channel::channel;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn a_picture_is_what_the_desktops_program_prints() {
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("xclip");
        let path = dir.path().to_str().unwrap();
        let project = Path::new("/no/such/project");
        let clipboard =
            |variables: &[(&str, &str)]| Clipboard::of(&Environment::of(variables), project);
        let with = [("DISPLAY", ":0"), ("PATH", path)];
        assert_eq!(clipboard(&with).image(), Err(ClipboardProblem::NoTool));
        for (script, expected) in [
            (r"printf 'GIF89a rest'", Ok("image/gif")),
            ("echo text", Err(ClipboardProblem::NoImage)),
            ("exit 1", Err(ClipboardProblem::NoImage)),
            (
                r"printf GIF89a; exec head -c 6000000 /dev/zero",
                Err(ClipboardProblem::NoImage),
            ),
        ] {
            fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
            let (sender, receiver) = channel().unwrap();
            let (found, pictures) = mpsc::channel();
            clipboard(&with).fetch(found, receiver.wake());
            let picture = pictures.recv_timeout(Duration::from_secs(60)).unwrap();
            let kind = picture.as_ref().map(|image| image.media_type.as_str());
            assert_eq!(kind, expected.as_ref().copied(), "{script}");
            drop(sender);
        }
        assert_eq!(clipboard(&with[1..]).image(), Err(ClipboardProblem::NoTool));
        let own = Clipboard::of(&Environment::of(&with), dir.path());
        assert_eq!(own.image(), Err(ClipboardProblem::NoTool));
    }
}
