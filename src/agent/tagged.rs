//! Puts text that is not the program's own between XML tags that the text itself cannot close. Pure.

/// `content` between the tags `name`.
#[must_use]
pub fn tagged(name: &str, content: &str) -> String {
    format!("<{name}>\n{content}\n</{name}>")
}
