//! Tests of paths and labelled blocks, and of the messages about invalid ones.

use super::*;

#[test]
fn a_path_stands_in_quotes_or_bare_or_in_a_block() {
    for (text, path) in [
        ("\"a b\"", "a b"),
        ("\n\n  'a'  \n\n", "a"),
        ("`a`", "a"),
        ("src/**/*.ts", "src/**/*.ts"),
        ("\"C:\\path\\to\\file.ts\"\r\n", "C:\\path\\to\\file.ts"),
        ("\"it's \"so\"\"", "it's \"so\""),
        ("```\n\"a\"\n```", "a"),
        ("~~~text\n\na\n~~~\n", "a"),
        ("proc_abc123", "proc_abc123"),
        ("**/*.rs", "**/*.rs"),
        ("*.rs", "*.rs"),
        (".", "."),
        ("**", "**"),
        ("..", ".."),
        ("[a-z]*/(group)/[id].ts", "[a-z]*/(group)/[id].ts"),
        ("c:\\a.ts", "c:\\a.ts"),
        ("\"- (a): b.ts,\"", "- (a): b.ts,"),
    ] {
        assert_eq!(
            input("READ_FILE", text),
            Ok(format!("READ_FILE path={path}")),
            "{text}"
        );
    }
    let expected = "expected `path` (the file) on a line of its own, in double quotes";
    for (text, fault) in [
        ("", format!("line 4: {expected}")),
        ("\"\"", format!("line 5: {expected}, but found `\"\"`")),
        ("\"a", format!("line 5: {expected}, but found `\"a`")),
        ("\"", format!("line 5: {expected}, but found `\"`")),
        ("\n```\na\nb\n```", format!("line 6: {expected}")),
        ("a.py:", format!("line 5: {expected}, but found `a.py:`")),
        (
            "a\n\nb",
            "line 7: nothing is expected here: this tool takes one line of input, and a reply uses one tool"
                .to_owned(),
        ),
    ] {
        assert_eq!(input("READ_FILE", text), Err(fault), "{text}");
    }
    for adorned in [
        "### a.py",
        "> a.py",
        "path = \"a.py\"",
        "<path>a.py</path>",
        "[a.py](a.py)",
        "a.py (new file)",
        "(a.py)",
        "a.py,",
        "a.py.",
        "Create a.py",
        "No, wait.",
        "path=a.py",
        "Path: Create a.py",
        "\u{201c}a.py",
        "\u{ab}a.py\u{bb}",
        "a.py\u{200b}",
        "a.py, b.py",
        "- \"a.py\" and \"b.py\" too",
    ] {
        let text = format!("{adorned}\n```\nx\n```");
        let fault = Err(format!("line 5: {expected}, but found `{adorned}`"));
        assert_eq!(input("WRITE_FILE", &text), fault);
    }
    assert_eq!(
        input("MOVE", "\"a\"\n\n'b'"),
        Ok("MOVE path=a to=b".to_owned())
    );
    assert_eq!(
        input("RUN_IN", "\"a\"\nls\n-l"),
        Ok("RUN_IN path=a command=ls\n-l".to_owned())
    );
}

#[test]
fn labelled_blocks_must_be_those_that_are_expected() {
    for (text, expected) in [
        (
            "\"a\"",
            "line 5: there is no code block labelled `find` (what is there)",
        ),
        (
            "\"a\"\nx",
            "line 6: expected code blocks labelled `find` and `replace`, and nothing beside them",
        ),
        (
            "\"a\"\n```find\nx\n```",
            "line 6: there is no code block labelled `replace` (what is to be there)",
        ),
        (
            "\"a\"\n```find\nx\n```\n```find\ny\n```\n",
            "line 9: a code block labelled `find`, where those that are expected are `find` and `replace`, each once; \
             content that has fences goes between longer ones",
        ),
        (
            "\"a\"\n```\nx\n```\n```replace\ny\n```\n",
            "line 6: a code block labelled ``, where those that are expected are `find` and `replace`, each once; \
             content that has fences goes between longer ones",
        ),
        (
            "\"a\"\n```find\nx\n```\n```with\ny\n```\n",
            "line 9: a code block labelled `with`, where those that are expected are `find` and `replace`, each once; \
             content that has fences goes between longer ones",
        ),
        (
            "\"a\"\nReplace:\n```find\nx\n```\n```replace\ny\n```\n",
            "line 7: a code block labelled `Replace`, where those that are expected are `find` and `replace`, each once; \
             content that has fences goes between longer ones",
        ),
        (
            "\"a\"\n```find\nx\n```\n```replace\ny\n```\n\nSo it is:\n```\ny\n```",
            "line 13: expected code blocks labelled `find` and `replace`, and nothing beside them",
        ),
        (
            "\"a\"\n```find\nx\n```\n```replace\ny\n",
            "line 9: the code block that begins here is never closed: it ends with a line that has nothing \
             but the same fence; content that has such lines goes between longer fences",
        ),
    ] {
        let read = input("FIND_AND_REPLACE_IN_FILE", text);
        assert_eq!(read, Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn a_file_may_have_labelled_blocks_in_its_own_labelled_one() {
    let readme = "# T\n```sh\nls\n```\n\nThen:\n\n```rust\nx\n```\n";
    let written = call(&uses(
        "WRITE_FILE",
        &format!("\"README.md\"\n```md\n{readme}```"),
    ));
    assert!(written.unwrap().contains(readme));
    let bare = "\"README.md\"\n```md\n# T\n```\nls\n```\n```";
    assert!(call(&uses("WRITE_FILE", bare)).is_err(), "who closes what?");
    let command = "```bash\ncat\n```sh\nls\n```\n```";
    assert!(call(&uses("COMMAND", command)).is_err(), "no file");
}
