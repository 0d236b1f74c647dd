//! Attachments, sent with or instead of typed text: long pastes and pictures.
//!
//! Reads only files that are named as pictures. Guarantees that the first bytes of an attachment are those of a
//! picture, and that its format and size are accepted by models.

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

/// The maximum size of a picture, in bytes.
const LARGEST: u64 = 5 * MIB;
/// The file extensions of pictures.
const ENDS: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The content that a placeholder represents.
#[derive(Debug, Clone, PartialEq)]
pub enum Attachment {
    /// A text too long to show in the input.
    Paste(String),
    /// A picture.
    Image(Image),
}

/// Returns the label of each attachment; each kind is numbered separately.
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

/// Returns the label of a picture, as used in the input and in the text sent.
pub fn image_label(number: usize) -> String {
    format!("[Image #{number}]")
}

/// An error from attaching a file.
#[derive(Debug, thiserror::Error)]
#[error("cannot attach `{}`: {problem}", .path.display())]
pub struct ImageProblem {
    /// The file's path.
    pub path: PathBuf,
    /// The operating system's error, or advice.
    pub problem: String,
}

/// Returns whether the file name has an image extension.
fn is_image_name(path: &str) -> bool {
    let end = Path::new(path).extension().and_then(|end| end.to_str());
    end.is_some_and(|end| ENDS.contains(&&*end.to_ascii_lowercase()))
}

/// Returns the media type of a picture, detected by its first bytes.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, rest @ ..] if rest.starts_with(b"WEBP") => {
            Some("image/webp")
        }
        _ => None,
    }
}

/// Loads the picture in a file.
fn load(path: PathBuf) -> Result<Image, ImageProblem> {
    let problem = match files::read(&path, Links::Followed, LARGEST) {
        Ok(bytes) if let Some(image) = image_of(&bytes) => return Ok(image),
        Ok(_) => "it is no PNG, JPEG, GIF or WebP; convert it first".to_owned(),
        Err(error) if files::is_too_large(&error) => {
            "it is larger than 5 MB; make it smaller first".to_owned()
        }
        Err(error) => error.to_string(),
    };
    Err(ImageProblem { path, problem })
}

/// Returns the bytes as a picture; `None` if they are not one.
pub fn image_of(bytes: &[u8]) -> Option<Image> {
    let media_type = media_type(bytes)?.to_owned();
    let data = STANDARD.encode(bytes);
    Some(Image { media_type, data })
}

/// Loads the picture if the pasted text is nothing but its path, as inserted by terminals when a file is
/// dropped on them; `None` for any other text.
pub fn pasted_image(text: &str, root: &Path) -> Option<Result<Image, ImageProblem>> {
    let text = text.trim();
    let is_path = !text.contains('\n') && is_image_name(text.trim_end_matches(['\'', '"']));
    // Terminals quote the path as for a shell.
    let words = is_path.then(|| shlex::split(text))??;
    let [word] = &words[..] else { return None };
    let path = root.join(word.strip_prefix("file://").unwrap_or(word));
    path.is_file().then(|| load(path))
}

/// Returns the submission for a text with placeholders. Pastes are inserted into the text; pictures, including
/// those named after an `@`, are attached, with labels in the text. Pictures named without an `@` are attached
/// too, but the name stays in the text, which may be about the file. Without a `root`, a path only names its file.
pub fn with_images(
    text: &str,
    attachments: &[Attachment],
    root: Option<&Path>,
) -> Result<Submission, ImageProblem> {
    let mut sent = Submission::default();
    let mut from = 0;
    for named in named_paths(text) {
        let Some(root) = root.filter(|_| is_image_name(named.path)) else {
            continue;
        };
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

/// A path that a text may refer to.
pub struct NamedPath<'t> {
    /// The path itself.
    pub path: &'t str,
    /// True if it is marked as a path by an `@`.
    pub is_marked: bool,
    /// The byte range in the text, including the `@` and quotes.
    range: Range<usize>,
}

/// Finds the words of a text that may be paths. Quoted paths may contain spaces; trailing punctuation is not
/// part of a path.
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
