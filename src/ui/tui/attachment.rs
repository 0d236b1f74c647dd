//! Attachments, sent beside or in place of typed text: long pastes and pictures.
//!
//! Reads files that are named as pictures, and nothing else. Guarantees that what is attached is a picture by its first
//! bytes, and of a kind and size that a model takes.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use super::buffer::placeholder;
use crate::model::message::Image;
use crate::sys::files::{self, Links, MIB};
use crate::sys::numbers::grouped;
use crate::sys::text::regex;
use crate::ui::tui::Submission;

/// The largest size that a picture may have.
const LARGEST: u64 = 5 * MIB;
/// The ends of names that are pictures.
const ENDS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The object that a placeholder stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Attachment {
    /// A text that is too long to be shown.
    Paste(String),
    /// A picture.
    Image(Image),
}

/// Returns the label of each: numbers count each kind for itself.
pub fn labels(attachments: &[Attachment]) -> Vec<String> {
    let (mut pastes, mut images) = (0, 0);
    let label = |attachment: &Attachment| match attachment {
        Attachment::Paste(text) => {
            pastes += 1;
            let lines = grouped(text.lines().count() as u64);
            format!("[Pasted text #{pastes} +{lines} lines]")
        }
        Attachment::Image(_) => {
            images += 1;
            image_label(images)
        }
    };
    attachments.iter().map(label).collect()
}

/// Returns the label of a picture, in the input and in the text that is sent.
pub fn image_label(number: usize) -> String {
    format!("[Image #{number}]")
}

/// The reason why a file is not attached.
#[derive(Debug, thiserror::Error)]
#[error("cannot attach `{}`: {problem}", .path.display())]
pub struct ImageProblem {
    /// The file.
    pub path: PathBuf,
    /// The system's word, or what is to be done.
    pub problem: String,
}

/// Returns whether a name is that of a picture.
fn is_image_name(path: &str) -> bool {
    let end = Path::new(path).extension().and_then(|end| end.to_str());
    end.is_some_and(|end| ENDS.contains(&&*end.to_ascii_lowercase()))
}

/// Returns the media type of a picture that begins with these bytes.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

/// The picture in a file.
fn load(path: PathBuf) -> Result<Image, ImageProblem> {
    let read = files::read(&path, Links::Followed, LARGEST);
    let image = read.map_err(|error| {
        if files::is_too_large(&error) {
            "it is larger than 5 MB; make it smaller first".to_owned()
        } else {
            error.to_string()
        }
    });
    let image = image.and_then(|bytes| {
        let problem = "it is no PNG, JPEG, GIF or WebP; convert it first";
        image_of(&bytes).ok_or_else(|| problem.to_owned())
    });
    image.map_err(|problem| ImageProblem { path, problem })
}

/// These bytes, if they are a picture's.
pub fn image_of(bytes: &[u8]) -> Option<Image> {
    let media_type = media_type(bytes)?.to_owned();
    let data = STANDARD.encode(bytes);
    Some(Image { media_type, data })
}

/// The picture whose path, and nothing else, was pasted, as terminals do it with a file that is dropped on them; `None`
/// where it is another text.
pub fn pasted_image(text: &str, root: &Path) -> Option<Result<Image, ImageProblem>> {
    let text = text.trim();
    let is_path = !text.contains('\n') && is_image_name(text.trim_end_matches(['\'', '"']));
    // Terminals quote it as for a shell.
    let words = is_path.then(|| shlex::split(text))??;
    let [word] = &words[..] else { return None };
    let path = root.join(word.strip_prefix("file://").unwrap_or(word));
    path.is_file().then(|| load(path))
}

/// Returns the submission of a text with placeholders. Pastes are written out; pictures, and those that an `@` names,
/// go beside it, and the text says where they belong. So do pictures that a word names without an `@`; the word stays,
/// since it may be about the file.
pub fn with_images(
    text: &str,
    attachments: &[Attachment],
    root: &Path,
) -> Result<Submission, ImageProblem> {
    let mut sent = Submission::default();
    let mut from = 0;
    for named in named_paths(text) {
        if !is_image_name(named.path) {
            continue;
        }
        let (before, image) = match load(root.join(named.path)) {
            Ok(image) if named.is_marked => (named.range.start, image),
            Ok(image) => (named.range.end, image),
            Err(problem) if named.is_marked => return Err(problem),
            Err(_) => continue,
        };
        push_text(&mut sent, &text[from..before], attachments);
        if !named.is_marked {
            sent.text.push(' ');
        }
        push(&mut sent, image);
        from = named.range.end;
    }
    push_text(&mut sent, &text[from..], attachments);
    Ok(sent)
}

/// A path that a text may name.
pub struct NamedPath<'t> {
    /// The path, without what stands around it.
    pub path: &'t str,
    /// True if an `@` says that it is one.
    pub is_marked: bool,
    /// Where it stands, with its `@` and its quotes.
    range: Range<usize>,
}

/// The words of a text that may be paths. Between quotes, they may have blanks; what ends a sentence is no part of one.
pub fn named_paths(text: &str) -> impl Iterator<Item = NamedPath<'_>> {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"(?:^|\s)(?<mark>@?)(?:"(?<quoted>[^"\n]+)"|(?<word>\S*[^\s,;:.)?!]))"#)
    });
    let paths = NAMED.captures_iter(text).filter_map(|found| {
        let mark = found.name("mark")?;
        let end = found.get(0)?.end();
        let path = found.name("quoted").or(found.name("word"))?;
        Some(NamedPath {
            path: path.as_str(),
            is_marked: !mark.is_empty(),
            range: mark.start()..end,
        })
    });
    paths.filter(|named| named.path != "@")
}

fn push_text(sent: &mut Submission, text: &str, attachments: &[Attachment]) {
    for c in text.chars() {
        let attachment = placeholder(c.encode_utf8(&mut [0; 4]));
        match attachment.and_then(|index| attachments.get(index)) {
            Some(Attachment::Paste(text)) => sent.text.push_str(text),
            Some(Attachment::Image(image)) => push(sent, image.clone()),
            None => sent.text.push(c),
        }
    }
}

fn push(sent: &mut Submission, image: Image) {
    sent.images.push(image);
    sent.text.push_str(&image_label(sent.images.len()));
}
