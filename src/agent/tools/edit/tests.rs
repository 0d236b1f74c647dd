//! Tests of replacements by `edit_file`, and of the messages if there are none.

use std::fs;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::resolved_path::Outside;
use super::super::write::tests::{Plain, told};
use super::*;
use crate::agent::tool::Tool;
use crate::agent::tools::files::{FileAccess, ReadAccess};
use crate::agent::tools::replace::FindAndReplace;

/// Edits a file with this content; returns the message for the model, the preview that the user saw, and the new
/// content.
fn edit(content: &str, mut input: Value) -> (Result<String, String>, Option<String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::write(root.join("a"), content).unwrap();
    let files = Plain::below(&root);
    let read = ReadAccess::to(&root, Outside::Refused);
    let files = &files;
    let tool = FindAndReplace(FileAccess { read, files }, &STRINGS);
    input["path"] = "a".into();
    let arguments = match EDIT_FILE.check(&input) {
        Ok(arguments) => arguments,
        Err(problem) => return (Err(problem), None, content.to_owned()),
    };
    let preview = tool.preview(&arguments).ok().flatten();
    let unchanged = fs::read_to_string(root.join("a")).unwrap();
    assert_eq!(unchanged, content, "a preview changes nothing");
    let told = told(tool.run(&arguments));
    (told, preview, fs::read_to_string(root.join("a")).unwrap())
}

#[test]
fn one_place_or_all_are_replaced() {
    for (content, input, told, expected) in [
        (
            "a\nb\nc\n",
            json!({"old_string": "b", "new_string": "x\ny"}),
            "changed `a`:\n 1 | a\n>2 | x\n>3 | y\n 4 | c",
            "a\nx\ny\nc\n",
        ),
        (
            "a b\nb\n\nb",
            json!({"old_string": "b", "new_string": "x\ny", "replace_all": true}),
            "changed `a` at 3 places: lines 1, 3 and 6",
            "a x\ny\nx\ny\n\nx\ny",
        ),
        (
            "a b",
            json!({"old_string": "b", "new_string": "", "replace_all": true}),
            "changed `a`:\n>1 | a",
            "a ",
        ),
        (
            "a\r\nb\r\na\r\nb\r\n",
            json!({"old_string": "a\nb", "new_string": "x\ny", "replace_all": true}),
            "changed `a` at 2 places: lines 1 and 3",
            "x\r\ny\r\nx\r\ny\r\n",
        ),
        (
            "aaaa",
            json!({"old_string": "aa", "new_string": "aaa", "replace_all": true}),
            "changed `a` at 2 places: lines 1 and 1",
            "aaaaaa",
        ),
        (
            "$1 \\0",
            json!({"old_string": "$1", "new_string": "\\1$0"}),
            "changed `a`:\n>1 | \\1$0 \\0",
            "\\1$0 \\0",
        ),
    ] {
        let (said, _, after) = edit(content, input);
        assert_eq!(
            (said.as_deref().map(str::trim_end), &*after),
            (Ok(told), expected)
        );
    }
}

#[test]
fn preview_is_a_diff() {
    let input = json!({"old_string": "b\n", "new_string": ""});
    let (_, preview, _) = edit("a\nb\n", input);
    let diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1 @@\n a\n-b\n";
    assert_eq!(preview.as_deref(), Some(diff));
}

#[test]
fn ambiguous_or_idle_edits_are_reported_in_the_models_terms() {
    for (input, said) in [
        (
            json!({"old_string": "b", "new_string": "c"}),
            "`a`: `old_string` is found 2 times: lines 2 and 4; add lines around it, so that it is there once, or \
             set `replace_all`",
        ),
        (
            json!({"old_string": "", "new_string": "c"}),
            "`old_string` is empty",
        ),
        (
            json!({"old_string": "b", "new_string": "b", "replace_all": true}),
            "`old_string` and `new_string` are the same",
        ),
        (
            json!({"old_string": "d", "new_string": "c"}),
            "`old_string` is not found",
        ),
        (json!({"old_string": "a"}), "edit_file needs `new_string`"),
        (
            json!({"old_string": "a", "new_string": 1}),
            "`new_string` of edit_file must be a JSON string",
        ),
        (
            json!({"old_string": "a", "new_string": "b", "replace_all": "yes"}),
            "`replace_all` of edit_file must be a JSON boolean",
        ),
    ] {
        let (told, preview, after) = edit("a\nb\n\nb", input);
        let problem = told.unwrap_err();
        assert!(problem.contains(said), "{problem}");
        assert_eq!((preview, &*after), (None, "a\nb\n\nb"), "{said}");
    }
}

proptest! {
    #[test]
    fn a_file_changes_where_the_passage_is_there_once_and_nowhere_else(
        text in "[ab\n]{0,12}", find in "[ab\n]{1,3}", replace in "[xy]{0,3}",
    ) {
        let places = (0..text.len()).filter(|at| text[*at..].starts_with(&find)).count();
        let input = json!({"old_string": find, "new_string": replace});
        let (told, preview, after) = edit(&text, input);
        prop_assert_eq!(told.is_ok(), places == 1, "{:?}", told);
        prop_assert_eq!(preview.is_some(), places == 1);
        let expected = if places == 1 { text.replacen(&find, &replace, 1) } else { text };
        prop_assert_eq!(after, expected);
    }

    #[test]
    fn all_places_are_replaced_and_nothing_else(
        text in "[ab\n]{0,12}", find in "[ab\n]{1,3}", replace in "[xy]{0,3}",
    ) {
        let input = json!({"old_string": find, "new_string": replace, "replace_all": true});
        let (told, _, after) = edit(&text, input);
        prop_assert_eq!(told.is_ok(), text.contains(&find));
        prop_assert_eq!(after, text.replace(&find, &replace));
    }
}
