//! Paths, and the contents of files: what is taken byte by byte, and that none is whose end cannot be told.

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
        "Path: a.py",
        "File: `a.py`",
        "**a.py**",
        "**File:** `a.py`",
        "\u{201c}a.py\u{201d}",
        "- a.py",
        "* a.py",
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
        "Path:a.py",
        "\u{ab}a.py\u{bb}",
        "a.py\u{200b}",
        "</think>",
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
fn a_files_content_is_taken_byte_by_byte() {
    for (text, content) in [
        ("\"a\"\n```ts\nx\n```\n", "x\n"),
        ("\"a\"\n\n```\n\n  x\t \n\n```", "\n  x\t \n\n"),
        ("\"a\"\r\n\r\n```\r\nx\r\ny\n```\r\n", "x\r\ny\n"),
        ("\"a\"\n~~~~\n```\n~~~\n~~~~", "```\n~~~\n"),
        ("\"a\"\n```\n```", ""),
        ("\"a\"\n```\nx\n```\nThat is all.\n", "x\n"),
        ("\"a\"\n```md\n```sh\nls\n```\n```", "```sh\nls\n```\n"),
        ("\"a\"\n```md\n```\nls\n```\nx\n```", "```\nls\n```\nx\n"),
        ("\"a\"\n````md\n```sh\nopen\n````", "```sh\nopen\n"),
        (
            "\"a\"\n```\n## Tool Choice\n# Agent Responses\n```",
            "## Tool Choice\n# Agent Responses\n",
        ),
        ("\"a\"\n```\n<think>\n</think>\n```", "<think>\n</think>\n"),
    ] {
        let expected = format!("WRITE_FILE path=a content={content}");
        assert_eq!(input("WRITE_FILE", text), Ok(expected), "{text}");
    }
}

#[test]
fn texts_may_have_bare_fences_in_them() {
    for name in [
        "docs/a.md",
        "README",
        "readme.txt",
        "A.MDX",
        "a.md.j2",
        "C:\\a\\b.rst",
    ] {
        let text = format!("\"{name}\"\n```\nA:\n```\nls\n```\n```");
        let expected = format!("WRITE_FILE path={name} content=A:\n```\nls\n```\n");
        assert_eq!(input("WRITE_FILE", &text), Ok(expected));
    }
}

#[test]
fn content_whose_end_cannot_be_told_is_a_fault() {
    let expected = "expected a fenced code block with `content` (the whole content)";
    let open = "the code block that begins here is never closed: it ends with a line that has nothing but \
        the same fence";
    let unclear = |from| {
        format!(
            "it cannot be told where the code block that begins here ends: the fences from line {from} on \
             can be read in more ways than one; put content that has fences between longer ones, and nothing \
             behind the last"
        )
    };
    let more = "nothing is expected behind the code block: a reply uses one tool";
    for (text, fault) in [
        ("\"a\"", format!("line 5: {expected}")),
        ("\"a\"\nx", format!("line 6: {expected}")),
        ("\"a\"\n\n```ts\nx\n", format!("line 7: {open}")),
        ("\"a\"\n````ts\nx\n```", format!("line 6: {open}")),
        ("\"a\"\n```ts\nx\n``` x", format!("line 6: {open}")),
        (
            "\"a\"\n```md\n```sh\nls\n```\nx\n",
            format!("line 6: {}", unclear(7)),
        ),
        (
            "\"a\"\n```md\n```\nls\n```\nx\n",
            format!("line 6: {}", unclear(7)),
        ),
        (
            "\"a\"\n```ts\nx\n```\nThen:\n```sh\nls\n```",
            format!("line 6: {}", unclear(10)),
        ),
        // A fence too many, or one too few.
        (
            "\"a\"\n```py\nx\n```\n```",
            format!("line 6: {}", unclear(8)),
        ),
        (
            "\"a.md\"\n```markdown\n# T\n\n```\nnpm i\n```",
            format!("line 6: {}", unclear(9)),
        ),
        // It is no text that may have such blocks.
        (
            "\"a.py\"\n```\nx\n```\ny\n```\nz\n```",
            format!("line 6: {}", unclear(8)),
        ),
        // Words and what is to be seen, behind the file.
        (
            "\"a.py\"\n```python\nx\n```\n\nIt prints:\n\n```\nhi\n```",
            format!("line 6: {}", unclear(8)),
        ),
        (
            "\"a\"\n````ts\nx\n````\n```sh\nls\n```",
            format!("line 9: {more}"),
        ),
        (
            "\"a\"\n```ts\nx\n```\n## Tool Choice\nREAD_FILE",
            format!("line 9: {more}"),
        ),
    ] {
        assert_eq!(input("WRITE_FILE", text), Err(fault), "{text}");
    }
}

#[test]
fn labelled_blocks_come_in_any_order() {
    for (text, find, replace) in [
        ("\"a\"\n\n```find\nx\n```\n\n```replace\ny\n```\n", "x", "y"),
        ("\"a\"\n```replace\ny\n```\n```find\nx\n```", "x", "y"),
        (
            "\"a\"\n```Find\nx\n\n```\nwith\n~~~replace ts\n~~~",
            "x\n",
            "",
        ),
        (
            "\"a\"\r\n```find\r\nx\r\ny\r\n```\r\n```replace\r\n\r\n```",
            "x\r\ny",
            "",
        ),
        (
            "\"a\"\n````find\n```replace\n```\n````\n```replace\ny\n```",
            "```replace\n```",
            "y",
        ),
        (
            "\"a\"\n```find\n```sh\nls\n```\n```\n```replace\ny\n```",
            "```sh\nls\n```",
            "y",
        ),
    ] {
        let expected = Ok((find.to_owned(), replace.to_owned()));
        let text = format!(
            "# Agent Response\n## Tool Choice\nFIND_AND_REPLACE_IN_FILE\n## Tool Input\n{text}"
        );
        let turn = read_turn(&text).map_err(|fault| fault.to_string());
        let read = turn.map(|turn| {
            let arguments = &only_call(&turn).arguments;
            assert_eq!(arguments.get("path"), "a");
            (
                arguments.get("find").to_owned(),
                arguments.get("replace").to_owned(),
            )
        });
        assert_eq!(read, expected, "{text}");
    }
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
            "line 6: expected code blocks labelled `find` and `replace`",
        ),
        (
            "\"a\"\n```find\nx\n```",
            "line 6: there is no code block labelled `replace` (what is to be there)",
        ),
        (
            "\"a\"\n```find\nx\n```\n```find\ny\n```\n",
            "line 9: there is another code block labelled `find`",
        ),
        (
            "\"a\"\n```\nx\n```\n```replace\ny\n```\n",
            "line 6: a code block without a label; expected are `find` and `replace`",
        ),
        (
            "\"a\"\n```find\nx\n```\n```with\ny\n```\n",
            "line 9: a code block labelled `with`, where those that are expected are `find` and `replace`; \
             content that has fences goes between longer ones",
        ),
        (
            "\"a\"\n```find\nx\n```replace\ny\n```\n",
            "line 6: it cannot be told where the code block that begins here ends: the fences from line 8 \
             on can be read in more ways than one; put content that has fences between longer ones, and \
             nothing behind the last",
        ),
        (
            "\"a\"\n```find\nx\n```\n```replace\ny\n```\n\nSo:\n```\ny\n```",
            "line 9: it cannot be told where the code block that begins here ends: the fences from line 11 \
             on can be read in more ways than one; put content that has fences between longer ones, and \
             nothing behind the last",
        ),
        (
            "\"a\"\n```find\nx\n```\n```replace\ny\n",
            "line 9: the code block that begins here is never closed: it ends with a line that has nothing \
             but the same fence",
        ),
    ] {
        let read = input("FIND_AND_REPLACE_IN_FILE", text);
        assert_eq!(read, Err(expected.to_owned()), "{text}");
    }
}
