//! Thoughts that a server leaves in the text of a reply. Pure.

/// The tags that begin thoughts.
pub const OPENING: [&str; 2] = ["<think>", "<thinking>"];
/// The tags that end thoughts.
pub const CLOSING: [&str; 2] = ["</think>", "</thinking>"];

/// Returns the text without the thoughts at its very beginning; `None` if it consists of thoughts only.
pub fn without_thoughts(mut text: &str) -> Option<&str> {
    loop {
        let bare = text.trim_start();
        if !OPENING.iter().any(|tag| bare.starts_with(tag)) {
            return Some(text);
        }
        text = CLOSING.iter().find_map(|tag| bare.split_once(tag))?.1;
    }
}

/// Returns whether a line begins or ends with a tag that ends thoughts.
pub fn ends_thought(line: &str) -> bool {
    let text = line.trim();
    let ends = |tag: &&str| text.starts_with(*tag) || text.ends_with(*tag);
    CLOSING.iter().any(ends)
}
