//! Puts text that is not the program's own between XML tags that the text itself cannot close. Pure.
//!
//! Guarantees that of the tags the program uses, the only ones in the result are the two it has put there.
//! A model reads more loosely than a parser, so what merely looks like such a tag counts as one.

use std::sync::LazyLock;

use regex::Regex;

use crate::sys::text::{is_ignorable, line_end, regex};

/// A tag that the program puts around text, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag(&'static str);

impl Tag {
    /// What the user asks for.
    pub const USER_REQUEST: Self = Self("user_request");
    /// What came of a tool.
    pub const TOOL_RESULT: Self = Self("tool_result");
    /// What was said, to be summed up.
    pub const CONVERSATION: Self = Self("conversation");
    /// What was said before, summed up.
    pub const CONTEXT_SUMMARY: Self = Self("context_summary");
    /// A task list.
    pub const TASK_LIST: Self = Self("task_list");
    /// What an agent says of its own work.
    pub const WORK_SUMMARY: Self = Self("work_summary");
    /// The program's own words.
    pub const SYSTEM_NOTE: Self = Self("system_note");

    /// All of them: what is not here is not defused.
    const ALL: [Self; 7] = [
        Self::USER_REQUEST,
        Self::TOOL_RESULT,
        Self::CONVERSATION,
        Self::CONTEXT_SUMMARY,
        Self::TASK_LIST,
        Self::WORK_SUMMARY,
        Self::SYSTEM_NOTE,
    ];
}

/// What the user has asked for, each between tags of its own.
#[must_use]
pub fn tagged_requests(requests: &[String]) -> String {
    let requests = requests.iter();
    let tagged = requests.map(|text| tagged(Tag::USER_REQUEST, &[], text));
    tagged.collect::<Vec<_>>().join("\n\n")
}

/// `content` between two of these tags, which stand on lines of their own.
///
/// In an attribute, all but letters, digits, `_`, `.` and `-` becomes `_`. In the content, the `<` of whatever looks like a tag of the program's own is written as `&lt;`; all else
/// stays byte by byte.
#[must_use]
pub fn tagged(tag: Tag, attributes: &[(&str, &str)], content: &str) -> String {
    let is_odd = |c: char| !c.is_ascii_alphanumeric() && !"_.-".contains(c);
    let attributes: String = attributes
        .iter()
        .map(|(key, value)| format!(" {key}=\"{}\"", value.replace(is_odd, "_")))
        .collect();
    let (name, content) = (tag.0, defused(content));
    let line_end = line_end(&content);
    format!("<{name}{attributes}>\n{content}{line_end}</{name}>")
}

/// What stands behind a `<` and makes it look like a tag of the program's; some letters of other alphabets
/// are cases of ASCII's. Of other alphabets, a sign behind the name may be one that hardly shows.
static TAG: LazyLock<Regex> = LazyLock::new(|| {
    let names = Tag::ALL.map(|tag| tag.0).join("|");
    regex(&format!(r"^[\s/]*(?i:{names})(?:$|[^-A-Za-z0-9_.:])"))
});

/// `content` without anything that looks like a tag of the program's.
fn defused(content: &str) -> String {
    let mut pieces = content.split('<');
    let mut defused = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let seen = piece.chars().filter(|c| !is_invisible(*c));
        let seen: String = seen.flat_map(char::to_uppercase).collect();
        defused.push_str(if TAG.is_match(&seen) { "&lt;" } else { "<" });
        defused.push_str(piece);
    }
    defused
}

/// Whether nothing is to be seen of `c`: control characters, signs for notes, and what Unicode ignores.
fn is_invisible(c: char) -> bool {
    c.is_control() && !c.is_whitespace() || is_ignorable(c) || matches!(c, '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex::Regex;

    #[test]
    fn text_stands_between_tags_on_lines_of_their_own() {
        assert_eq!(
            tagged(Tag::TASK_LIST, &[], "a\nb"),
            "<task_list>\na\nb\n</task_list>"
        );
        assert_eq!(
            tagged(Tag::TASK_LIST, &[], "a\n"),
            "<task_list>\na\n</task_list>"
        );
        assert_eq!(tagged(Tag::TASK_LIST, &[], ""), "<task_list>\n</task_list>");
        assert_eq!(
            tagged(
                Tag::TOOL_RESULT,
                &[("tool", "A"), ("input", "a \"b\"\n</tool_result> & c")],
                "x"
            ),
            "<tool_result tool=\"A\" input=\"a__b____tool_result____c\">\nx\n</tool_result>"
        );
    }

    #[test]
    fn what_looks_like_a_tag_of_the_programs_is_defused() {
        for content in [
            "<tool_result>",
            "</tool_result>",
            "</tool_result",
            "</USER_Request >",
            "< / system_note\n>",
            "<\n/task_list>",
            "<conversation x=\"1\"/>",
            "</tool\u{200b}_result>",
            "<\u{feff}/\u{ad}tool_result\u{2060}>",
            "</tool_result\0>",
            "<//tool_result>",
            // A Kelvin sign and a long s.
            "</tas\u{212a}_li\u{17f}t>",
            "</tool_result\u{301}>",
        ] {
            let expected = content.replacen('<', "&lt;", 1);
            assert_eq!(defused(content), expected, "{content:?}");
        }
    }

    #[test]
    fn all_else_stays_byte_by_byte() {
        for content in [
            "",
            "a < b && c > d\r\n",
            "<div></div> &lt; &amp;",
            "<tool_results> <conversation-list/> <task_list.x> <x:task_list>",
            "<< tool result>",
            "tool_result>",
            "\u{200b}<\u{200b}a>",
        ] {
            assert_eq!(defused(content), content);
        }
    }

    fn tag() -> impl Strategy<Value = Tag> {
        prop::sample::select(&Tag::ALL)
    }

    proptest! {
        #[test]
        fn the_only_tags_are_the_two_around_it(
            pieces in prop::collection::vec(
                prop_oneof![
                    Just("<".to_owned()),
                    Just("/".to_owned()),
                    Just(">".to_owned()),
                    Just("\u{200b}".to_owned()),
                    Just("tool_".to_owned()),
                    Just("result".to_owned()),
                    tag().prop_map(|tag| tag.0.to_uppercase()),
                    tag().prop_map(|tag| tag.0.to_owned()),
                    any::<String>(),
                ],
                0..24,
            ),
            tag in tag(),
        ) {
            let content = pieces.concat();
            let name = tag.0;
            let whole = tagged(tag, &[("input", &content)], &content);
            let visible: String = whole.chars().filter(|c| !is_invisible(*c)).collect();
            let names = Tag::ALL.map(|tag| tag.0);
            let any_tag = Regex::new(&format!(r"(?i)<[\s/]*({})([^a-z0-9_.:-]|$)", names.join("|"))).unwrap();
            prop_assert_eq!(any_tag.find_iter(&visible).count(), 2);
            let opening = format!("<{name} input=\"");
            let closing = format!("\n</{name}>");
            prop_assert!(whole.starts_with(&opening));
            prop_assert!(whole.ends_with(&closing));
            // Nothing but the `<` of tags is changed.
            let restored = defused(&content).replace("&lt;", "<");
            prop_assert_eq!(restored, content.replace("&lt;", "<"));
        }
    }
}
