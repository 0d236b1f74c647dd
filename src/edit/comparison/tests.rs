//! Tests of notes to a reviewer on changes throughout a file.

use super::*;

#[test]
fn only_changes_of_the_whole_file_are_reported() {
    const CRLF_TO_LF: &str = "had CRLF line endings and now has LF throughout";
    const NEWLINE_ADDED: &str = "now has a newline at its end";
    const BOM_DROPPED: &str = "has lost its byte order mark";
    for (old, new, expected) in [
        (&b"a\r\nb\r\n"[..], "a\nc\n", vec![CRLF_TO_LF]),
        (
            b"a\nb\n",
            "a\r\nb\r\n",
            vec!["had LF line endings and now has CRLF throughout"],
        ),
        (b"a\r\nb\n", "a\nb\n", vec![]),
        (b"a\nb\n", "a\r\nb\n", vec![]),
        (b"\xef\xbb\xbfa\n", "a\n", vec![BOM_DROPPED]),
        (
            b"a\n",
            "\u{feff}a\n",
            vec!["now begins with a byte order mark"],
        ),
        (b"a\n", "a", vec!["has lost the newline at its end"]),
        (b"a", "a\n", vec![NEWLINE_ADDED]),
        (
            b"\xef\xbb\xbfa\r\nb",
            "a\nb\n",
            vec![BOM_DROPPED, CRLF_TO_LF, NEWLINE_ADDED],
        ),
        (
            b"a\xffb",
            "a",
            vec!["was not UTF-8 text and is replaced as a whole"],
        ),
        (b"", "a", vec![]),
        (b"a\n", "", vec![]),
        (b"a\n", "b\nc\n", vec![]),
    ] {
        assert_eq!(silent_changes(old, new), expected, "{old:?} -> {new:?}");
    }
}
