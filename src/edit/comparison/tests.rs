//! What a reviewer is told of changes throughout a file, and which comments count as left-out code.

use super::*;

#[test]
fn what_changes_throughout_is_told_and_nothing_else() {
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

#[test]
fn an_elision_is_a_comment_that_stands_for_code() {
    for line in [
        "// ... rest of the code unchanged",
        "// rest of code remains the same",
        "    # ... existing code ...",
        "/* … omitted for brevity */",
        "<!-- same as before -->",
        "-- remaining functions here unchanged",
        "// ... other methods unchanged ...",
        "# The rest of the file stays as before",
        "// (previous implementation)",
        "{/* existing code */}",
        "; everything else unchanged",
    ] {
        assert_eq!(
            elided_at(10_000, &format!("fn a() {{}}\n{line}\n")),
            Some(2),
            "{line}"
        );
    }
    for line in [
        "// ...",
        "    //...",
        "// [...]",
        "/* … */",
        "<!-- ... -->",
        "// [unchanged]",
        "// unchanged",
        "// ... (unchanged)",
        "# --- snip ---",
        "<!-- rest of page -->",
        "{{!-- rest unchanged --}}",
        "code(); // ... rest of the code unchanged",
        "REM ...",
    ] {
        assert_eq!(elided_at(10_000, &format!("{line}\n")), Some(1), "{line}");
    }
    for line in [
        "let all = [first, ...rest];",
        "for x in 0...9 {",
        "print('...')",
        "# Loading ...",
        "// -----",
        "// changed",
        "let rest = code.unchanged();",
        "// waits for the remaining requests",
        "// The previous value is kept.",
        "# Unlike before, this returns early.",
        "// See below.",
    ] {
        assert_eq!(elided_at(10_000, &format!("{line}\n")), None, "{line}");
    }
}

#[test]
fn a_file_that_keeps_a_third_of_its_size_is_not_elided() {
    let new = "// rest of the code unchanged\n";
    assert_eq!(elided_at(new.len() as u64 * 3, new), None);
    assert_eq!(elided_at(new.len() as u64 * 3 + 1, new), Some(1));
}
