//! Reads a picture from the desktop's clipboard, with a program made for that.
//!
//! Starts `wl-paste` or `xclip`. Guarantees that neither is taken from the project, that no more is read than a
//! picture may have, that an unresponsive program is killed, and that the screen never waits for it: it runs on
//! its own thread.

use std::path::Path;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use super::attachment::image_of;
use super::channel::Wake;
use crate::exec::pipes;
use crate::model::message::Image;
use crate::sys::environment::Environment;
use crate::sys::interrupt::Interrupt;
use crate::sys::programs::program_outside;

/// The maximum size of a picture, in bytes.
const LARGEST: usize = 5 << 20;
/// The time limit for a program without output.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The environment variable that indicates a desktop, and the command that prints its clipboard's picture.
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

/// The error if no suitable program is available.
const NO_TOOL: &str = "no clipboard to take a picture from: name the file after an `@`, or, on a desktop, install `wl-paste` or `xclip`";
/// The error if the clipboard contains no suitable picture.
const NO_IMAGE: &str = "there is no picture of at most 5 MB in the clipboard";

/// The result of fetching a picture.
pub type FoundImage = Result<Image, &'static str>;

/// The command that prints the clipboard's picture; `None` if there is none.
#[derive(Debug, Clone, Default)]
pub struct Clipboard(Option<Vec<String>>);

impl Clipboard {
    /// Finds the desktop's program in an absolute directory of `PATH` outside `project`.
    pub fn of(environment: &Environment, project: &Path) -> Self {
        let words = |(desktop, name, arguments): (&str, &str, &[&str])| {
            environment.os(desktop)?;
            let program = program_outside(name, environment.os("PATH")?, project)?;
            let arguments = arguments.iter().map(ToString::to_string);
            Some(std::iter::once(program).chain(arguments).collect())
        };
        Self(TOOLS.into_iter().find_map(words))
    }

    /// Fetches the picture in the background, sends it to `found`, and wakes the screen. A stop cancels it.
    pub fn fetch(&self, found: Sender<FoundImage>, wake: Wake, interrupt: Interrupt) {
        let this = self.clone();
        let started = thread::Builder::new().spawn(move || {
            // The receiver may be gone by now.
            let _ = found.send(this.image(&interrupt, TIMEOUT));
            wake.wake();
        });
        // If no thread can be created, a missing picture is the least problem.
        drop(started);
    }

    fn image(&self, interrupt: &Interrupt, patience: Duration) -> FoundImage {
        let words = self.0.as_ref().ok_or(NO_TOOL)?;
        let printed = pipes::output(words, LARGEST, interrupt, &|| patience);
        let image = printed.ok().and_then(|(bytes, _)| image_of(&bytes));
        image.ok_or(NO_IMAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::channel::channel;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::sync::mpsc;

    #[test]
    fn a_picture_is_what_the_desktops_program_prints() {
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("xclip");
        let path = dir.path().to_str().unwrap();
        let project = Path::new("/no/such/project");
        let clipboard =
            |variables: &[(&str, &str)]| Clipboard::of(&Environment::of(variables), project);
        let interrupt = Interrupt::never().unwrap();
        let image = |clipboard: Clipboard| clipboard.image(&interrupt, Duration::from_millis(10));
        let with = [("DISPLAY", ":0"), ("PATH", path)];
        assert_eq!(image(clipboard(&with)), Err(NO_TOOL));
        for (script, expected) in [
            (r"printf 'GIF89a rest'", Ok("image/gif")),
            ("echo text", Err(NO_IMAGE)),
            ("exit 1", Err(NO_IMAGE)),
            (
                r"printf GIF89a; exec head -c 6000000 /dev/zero",
                Err(NO_IMAGE),
            ),
        ] {
            fs::write(&tool, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
            let (sender, receiver) = channel().unwrap();
            let (found, pictures) = mpsc::channel();
            clipboard(&with).fetch(found, receiver.wake(), interrupt.clone());
            let picture = pictures.recv_timeout(Duration::from_mins(1)).unwrap();
            let kind = picture.as_ref().map(|image| image.media_type.as_str());
            assert_eq!(kind, expected.as_ref().copied(), "{script}");
            drop(sender);
        }
        fs::write(&tool, "#!/bin/sh\nprintf GIF89a; exec sleep 3600\n").unwrap();
        assert_eq!(image(clipboard(&with)), Err(NO_IMAGE));
        assert_eq!(image(clipboard(&with[1..])), Err(NO_TOOL));
        let own = Clipboard::of(&Environment::of(&with), dir.path());
        assert_eq!(image(own), Err(NO_TOOL));
    }
}
