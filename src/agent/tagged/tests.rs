//! Tests of text between tags that no content can close.

use super::*;
use proptest::prelude::*;
use regex::Regex;

#[test]
fn text_stands_between_tags_on_lines_of_their_own() {
    assert_eq!(
        tagged(Tag::TaskList, &[], "a\nb"),
        "<task_list>\na\nb\n</task_list>"
    );
    assert_eq!(
        tagged(Tag::TaskList, &[], "a\n"),
        "<task_list>\na\n</task_list>"
    );
    assert_eq!(tagged(Tag::TaskList, &[], ""), "<task_list>\n</task_list>");
    assert_eq!(
        tagged(
            Tag::ToolResult,
            &[("tool", "A"), ("input", "a \"b\"\n</tool_result> & c")],
            "x"
        ),
        "<tool_result tool=\"A\" input=\"a__b____tool_result____c\">\nx\n</tool_result>"
    );
}

#[test]
fn imitated_tags_are_escaped() {
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
        "</tool_result\u{df}>",
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

#[test]
fn every_letter_with_an_ascii_letter_as_its_other_case_is_taken_for_it() {
    for c in '\0'..=char::MAX {
        let cases = c.to_lowercase().chain(c.to_uppercase());
        let ascii: Vec<char> = cases.filter(char::is_ascii_alphabetic).collect();
        // `ß` and ligatures stand for two letters.
        let [one] = ascii[..] else { continue };
        if !c.is_ascii() && c.to_uppercase().count() == 1 && c.to_lowercase().count() == 1 {
            assert_eq!(lower(c), one.to_ascii_lowercase(), "{c:?}");
        }
    }
}

fn tag() -> impl Strategy<Value = Tag> {
    prop::sample::select(Tag::VARIANTS)
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
                tag().prop_map(|tag| tag.into_str().to_uppercase()),
                tag().prop_map(|tag| tag.into_str().to_owned()),
                any::<String>(),
            ],
            0..24,
        ),
        tag in tag(),
    ) {
        let content = pieces.concat();
        let name = tag.into_str();
        let whole = tagged(tag, &[("input", &content)], &content);
        let visible: String = whole.chars().filter(|c| !is_invisible(*c)).collect();
        let names = Tag::VARIANTS.iter().map(Tag::into_str).collect::<Vec<_>>();
        let any_tag = Regex::new(&format!(r"(?i)<[\s/]*({})([^a-z0-9_.:-]|$)", names.join("|"))).unwrap();
        prop_assert_eq!(any_tag.find_iter(&visible).count(), 2);
        let opening = format!("<{name} input=\"");
        let closing = format!("\n</{name}>");
        prop_assert!(whole.starts_with(&opening));
        prop_assert!(whole.ends_with(&closing));
        // Only the `<` of tags is changed.
        let restored = defused(&content).replace("&lt;", "<");
        prop_assert_eq!(restored, content.replace("&lt;", "<"));
    }
}
