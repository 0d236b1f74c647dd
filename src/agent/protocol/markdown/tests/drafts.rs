//! Which of several responses counts, and what is only quoted or thought.

use super::*;

#[test]
fn the_last_response_counts() {
    let last = reads("last");
    for draft in [
        reads("draft"),
        "# Agent Response\n".to_owned(),
        "# Agent Response\n## Thoughts\nhm, no\n".to_owned(),
        writes("```ts", "x\n", "```"),
        writes("```ts", "never closed\n", ""),
        writes("```", "never closed\n", ""),
        format!("{}{}", reads("one"), writes("```", "x\n", "```")),
        "```ts\nnever closed\n".to_owned(),
        format!("```markdown\n{}```\n", reads("draft")),
        format!("<think>\n{}```sh\n</think>\n", reads("draft")),
        format!("{}so be it.\n</think>", reads("draft")),
        format!("<think>{}</think>", reads("draft")),
    ] {
        let text = format!("{draft}\n{last}");
        assert_eq!(call(&text).as_deref(), Ok("READ_FILE path=last"), "{text}");
    }
    let last = writes("```", "last\n", "```");
    for draft in [
        writes("```", "draft\n", "```"),
        writes("```ts", "draft\n", "```"),
        writes("```", "never closed\n", ""),
        writes("```ts", "never closed\n", ""),
        writes("```md", "```sh\nx\n```\nnever closed\n", ""),
        format!(
            "{}\n{}",
            writes("```", "1\n", "```"),
            writes("```", "2\n", "```")
        ),
    ] {
        let text = format!("{draft}\n{last}");
        let expected = Ok("WRITE_FILE path=a content=last\n");
        assert_eq!(call(&text).as_deref(), expected, "{text}");
    }
}

#[test]
fn a_header_in_a_files_content_is_content() {
    let example = reads("example");
    let nested = format!("# Protocol\n```markdown\n{example}```\n");
    for (opening, content, closing) in [
        ("```md", &example, "```"),
        ("````md", &example, "````"),
        ("```md", &nested, "```"),
        ("````md", &nested, "````"),
        ("~~~", &nested, "~~~"),
        ("````md", &format!("```\n{example}```\n"), "````"),
        ("````md", &format!("```sh\n{example}"), "````"),
        (
            "```md",
            &format!("```\nx\n```\n```\n{example}```\n```sh\nx\n```\n"),
            "```",
        ),
    ] {
        for draft in [
            String::new(),
            reads("draft\n"),
            writes("```", "draft\n", "```"),
        ] {
            let text = format!("{draft}\n{}", writes(opening, content, closing));
            let read = call(&text);
            // Where blocks of one length stand in each other, it may be refused, but not mistaken.
            if opening == "```md" && content.contains("```\n```\n") {
                assert!(
                    read.is_err() || read == Ok(format!("WRITE_FILE path=a content={content}")),
                    "{text}"
                );
                continue;
            }
            assert_eq!(
                read,
                Ok(format!("WRITE_FILE path=a content={content}")),
                "{text}"
            );
        }
    }
    let quoted = format!("It is\n````\nan example:\n```\n{example}```\n````");
    let text = format!("# Agent Response\n## Tool Choice\nNOTE\n## Tool Input\n{quoted}");
    assert_eq!(call(&text), Ok(format!("NOTE words={quoted}")));
    let script = format!("cat > a.md <<'E'\n```markdown\n{example}```\nE");
    let text = uses("COMMAND", &format!("```sh\n{script}\n```\n"));
    assert_eq!(call(&text), Ok(format!("COMMAND command={script}")));
}

const UNCLEAR: &str = "it cannot be told whether this `# Agent Response` is another response or part of what is \
    written above: write one response alone, and put a file or a command that has such lines or fences between \
    longer fences";

#[test]
fn a_documented_example_is_never_carried_out() {
    let example = uses("COMMAND", "rm -rf x\n");
    let content = format!("# Protocol\n```\n{example}```\nThat is all.\n");
    let fault = call(&writes("```md", &content, "```")).unwrap_err();
    assert_eq!(fault, format!("line 12: {UNCLEAR}"));
    for content in [
        format!("# Protocol\n```sh\nls\n```\n\n```\n{example}```\n"),
        format!("# Protocol\n```\nls\n```\n\n```\n{example}```\n"),
        format!("# Protocol\n```\nls\n```\n\n```markdown\n{example}```\n"),
        format!("# Protocol\n```\n\n```\n{example}"),
        format!("{example}```\n\n```\n{example}"),
    ] {
        for (opening, closing) in [
            ("```md", "```"),
            ("```", "```"),
            ("````md", "````"),
            ("````", "````"),
            ("~~~", "~~~"),
        ] {
            let text = writes(opening, &content, closing);
            let read = call(&text);
            let file = Ok(format!("WRITE_FILE path=a content={content}"));
            let is_sure = opening.len() > 5 || !opening.starts_with("```");
            assert!(
                read == file || !is_sure && read.is_err(),
                "{text}\n{read:?}"
            );
            let text = text.replace("WRITE_FILE", "WRITE");
            assert!(call(&text).is_err(), "{text}");
            let many = format!("```markdown\n{example}```\n").repeat(6);
            let text = uses("WRITE", &many);
            assert!(call(&text).is_err(), "{text}");
        }
    }
}

#[test]
fn an_example_that_words_quote_is_never_carried_out() {
    let example = uses("COMMAND", "rm -rf x\n");
    for (tool, input) in [
        (
            "DONE",
            format!("The form is now:\n\n```markdown\n{example}```\n"),
        ),
        ("DONE", format!("**The form:**\n```\n{example}```\n")),
        (
            "DONE",
            format!("It is so\n```\n{example}```\nas you said.\n"),
        ),
        ("DONE", format!("```\n{example}```\n")),
        (
            "ASK_USER",
            format!("Is\n~~~\n{example}~~~\nwhat you mean?\n"),
        ),
        (
            "COMMAND",
            format!("cat > a.md <<'E'\n```markdown\n{example}```\nE\n"),
        ),
        (
            "COMMAND",
            format!("echo '\n````\n{example}````\n' > a.md\n"),
        ),
    ] {
        let text = uses(tool, &input);
        let fault = call(&text).unwrap_err();
        assert!(fault.ends_with(UNCLEAR), "{text}\n{fault}");
    }
}

#[test]
fn an_example_in_a_here_document_is_never_carried_out() {
    for example in [
        uses("COMMAND", "rm -rf x\n"),
        uses("DONE", "All is done.\n"),
    ] {
        for (begin, end) in [
            ("cat > a.md <<EOF", "EOF"),
            ("cat > a.md << 'EOF'", "EOF"),
            ("cat > a.md <<-\"E F\"", "\tE F"),
            // Where the shell is not followed, too; and where it never ends.
            ("mkdir -p `dirname a/b`\ncat > a.md <<'EOF'", "EOF"),
            ("cat > a.md <<EOF\ndocker run \\", "EOF"),
            ("git commit -m \"$(cat <<'EOF'", "EOF)\""),
            ("ssh host 'cat <<EOF", "EOF'"),
            ("cat > a.md <<'EOF'", ""),
            ("echo '", "' > a.md"),
            ("python3 -c \"", "\""),
        ] {
            let command = format!("{begin}\nExample:\n\n{example}{end}");
            let fault = call(&uses("COMMAND", &command)).unwrap_err();
            assert!(fault.ends_with(UNCLEAR), "{fault}");
            let text = uses("COMMAND", &format!("```bash\n{command}\n```\n"));
            let command = command.trim_end_matches('\n');
            assert_eq!(
                call(&text).map(|read| read.trim_end().to_owned()),
                Ok(format!("COMMAND command={command}"))
            );
        }
    }
    // It has ended.
    let text = format!("{}{}", uses("COMMAND", "cat <<'E'\nx\nE\n"), reads("last"));
    assert_eq!(call(&text).as_deref(), Ok("READ_FILE path=last"));
}

#[test]
fn a_draft_that_breaks_off_does_not_swallow_the_last_response() {
    let python = writes("```python", "x = 1\n", "");
    let last = uses("COMMAND", "```\nls\n```\n");
    for drafts in [
        writes("```markdown", "# T\n```bash\n...\n", ""),
        uses("COMMAND", "```sh\ncat > a.md <<'E'\n# T\n```bash\n...\n"),
        format!("{python}Hm.\n{python}"),
        format!("{}{python}", writes("```python", "x = 2\n", "```")),
    ] {
        for end in ["", "But first look.\n", "But first look.\n</think>\n\n"] {
            for last in [last.clone(), format!("```markdown\n{last}```\n")] {
                let read = call(&format!("So:\n{drafts}{end}{last}"));
                assert!(
                    read.is_err() || read.as_deref() == Ok("COMMAND command=ls"),
                    "{drafts}{end}{last}: {read:?}"
                );
            }
        }
    }
    // A path that nobody would write is a draft's, too.
    for draft in ["</think>\n\n", "Actually, I should look first:\n"] {
        let text = format!(
            "{}{draft}```markdown\n{}```\n",
            uses("WRITE_FILE", ""),
            reads("last")
        );
        let read = call(&text);
        assert!(
            read.is_err() || read.as_deref() == Ok("READ_FILE path=last"),
            "{text}: {read:?}"
        );
    }
}

/// Drafts, and whether the fences in them may leave it unclear where they end.
fn drafts() -> Vec<(String, bool)> {
    let mut drafts = vec![
        ("# Agent Response\n".to_owned(), false),
        ("# Agent Response\n\n## Thoughts\nHm.\n".to_owned(), false),
        (
            "# Agent Response\n\n## Tool Choice\nCOMMAND\n".to_owned(),
            false,
        ),
        (uses("COMMAND", "echo draft > draft.txt\n"), false),
        (uses("COMMAND", "cat > d <<'E'\n```\nx\n```\nE\n"), true),
        (uses("READ_FILE", "\"draft.txt\"\n"), false),
        (uses("READ_FILE", "```\n\"draft.txt\"\n```\n"), true),
        (uses("LIST_PROCESSES", ""), false),
        (uses("NOTE", "draft\n"), false),
        (uses("DONE", "all done\n"), false),
        (uses("ASK_USER", "Is this a draft?\n"), false),
        (
            format!("{}\n{}", uses("DONE", "one\n"), uses("DONE", "two\n")),
            false,
        ),
        (
            format!(
                "{}\n```\n{}```\n",
                uses("DONE", "one\n"),
                uses("DONE", "two\n")
            ),
            true,
        ),
    ];
    for (opening, closing) in [
        ("```", "```"),
        ("```ts", "```"),
        ("````", "````"),
        ("````ts", "````"),
        ("~~~", "~~~"),
        ("```", ""),
        ("```ts", ""),
    ] {
        drafts.extend([
            (
                uses("COMMAND", &format!("{opening}\ndraft\n{closing}\n")),
                true,
            ),
            (writes(opening, "draft\n", closing), true),
            (
                uses(
                    "FIND_AND_REPLACE_IN_FILE",
                    &format!("\"a\"\n```find\ndraft\n```\n\n{opening}replace\ndraft\n{closing}\n")
                        .replace("tsreplace", "replace"),
                ),
                true,
            ),
        ]);
    }
    let wrapped = ["```", "```markdown", "~~~"].map(|fence| {
        let close = fence.trim_end_matches(char::is_alphabetic);
        let wrap = |(draft, _): &(String, bool)| (format!("{fence}\n{draft}{close}\n"), true);
        drafts.iter().map(wrap).collect::<Vec<_>>()
    });
    drafts.extend(wrapped.concat());
    drafts
}

/// Responses, and what is read of each where it stands alone.
fn finals() -> Vec<(String, &'static str)> {
    vec![
        (
            uses("COMMAND", "echo final > final.txt\n"),
            "COMMAND command=echo final > final.txt",
        ),
        (uses("COMMAND", "```sh\nls\n```\n"), "COMMAND command=ls"),
        (uses("COMMAND", "```\nls\n```\n"), "COMMAND command=ls"),
        (reads("final"), "READ_FILE path=final"),
        (uses("DONE", "It is done.\n"), "DONE summary=It is done."),
        (
            writes("```", "final\n", "```"),
            "WRITE_FILE path=a content=final\n",
        ),
        (
            writes("```ts", "final\n", "```"),
            "WRITE_FILE path=a content=final\n",
        ),
        (
            writes("````", "final\n", "````"),
            "WRITE_FILE path=a content=final\n",
        ),
    ]
}

#[test]
fn a_last_response_in_a_block_is_never_mixed_with_a_draft() {
    for (draft, has_fences) in drafts() {
        for ((last, expected), fence) in finals().iter().flat_map(|last| {
            ["```", "```markdown", "````", "````md", "~~~"].map(|fence| (last, fence))
        }) {
            let close = fence.trim_end_matches(char::is_alphabetic);
            for between in ["", "\n", "\nNo, better so.\n\n", "\nWait, better:\n\n"] {
                for behind in ["\n", "\nThat does it.\n"] {
                    let text = format!("{draft}{between}{fence}\n{last}{close}\n{behind}");
                    let read = call(&text);
                    let is_quotable = between.contains(':') || behind.contains("does");
                    let may_fail = has_fences || is_quotable;
                    assert!(
                        read.as_deref() == Ok(expected) || may_fail && read.is_err(),
                        "{text}\n{read:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_last_response_in_a_block_counts_where_a_draft_has_ended() {
    let last = uses("COMMAND", "echo final > final.txt\n");
    let expected = "COMMAND command=echo final > final.txt";
    for draft in [
        uses("COMMAND", "```bash\ndraft\n```\n"),
        writes("```", "draft\n", "```"),
        writes("```ts", "draft\n", "```"),
        writes("```", "never closed\n", ""),
        uses(
            "FIND_AND_REPLACE_IN_FILE",
            "\"a\"\n```find\nx\n```\n```replace\ny\n```\n",
        ),
    ] {
        for (fence, close) in [("```markdown", "```"), ("~~~", "~~~"), ("~~~md", "~~~")] {
            let text = format!("{draft}\nNo, better so.\n\n{fence}\n{last}{close}\n");
            assert_eq!(call(&text).as_deref(), Ok(expected), "{text}");
        }
    }
    // It may be part of the file's content.
    let text = format!("{}\n```\n{last}```\n", writes("```", "A\n", "```"));
    assert_eq!(call(&text), Err(format!("line 14: {UNCLEAR}")));
}

#[test]
fn of_many_drafts_the_last_counts_and_none_costs_much() {
    let drafts = "```a\n# Agent Response\n".repeat(2_000);
    let text = format!("{drafts}{}", reads("last"));
    assert_eq!(call(&text).as_deref(), Ok("READ_FILE path=last"));
    for tool in ["COMMAND", "WRITE_FILE", "DELETE"] {
        let draft = uses(tool, "x\n").repeat(20);
        let blocks = format!("```\n{}```\n", reads("last")).repeat(2_000);
        let read = call(&format!("{draft}{blocks}"));
        assert!(read.is_err() || read.as_deref() == Ok("READ_FILE path=last"));
    }
}

#[test]
fn a_response_may_stand_in_a_block_of_its_own() {
    for fence in ["```markdown", "```", "~~~"] {
        let close = fence.trim_end_matches("markdown");
        let wrapped = |response: &str| call(&format!("So:\n\n{fence}\n{response}{close}\n"));
        assert_eq!(wrapped(&reads("a")).as_deref(), Ok("READ_FILE path=a"));
        let written = wrapped(&writes("```ts", "x\n", "```"));
        assert_eq!(written.as_deref(), Ok("WRITE_FILE path=a content=x\n"));
        let documented = wrapped(&writes("````md", &reads("b"), "````"));
        assert_eq!(
            documented,
            Ok(format!("WRITE_FILE path=a content={}", reads("b")))
        );
        let open = call(&format!("{fence}\n{}", writes("```ts", "x\n", "```")));
        assert_eq!(open.as_deref(), Ok("WRITE_FILE path=a content=x\n"));
    }
}

#[test]
fn what_content_shows_of_thoughts_and_responses_is_content_or_unclear() {
    for thought in [
        "<think>\nhidden\n</think>",
        "<think>hidden</think>",
        "<thinking>\nx\n</thinking>",
    ] {
        // The second fence seems to end the block, but for the last.
        let content = format!("Example:\n```\n{thought}\n```\nEnd\n");
        let expected = format!("WRITE_FILE path=a content={content}");
        assert_eq!(call(&writes("```md", &content, "```")), Ok(expected));
    }
    for wrapping in ["```", "~~~"] {
        for thought in ["line 1\n</think>\n", "<think>\nhm\n</think>\n"] {
            for quoted in [
                uses("DONE", "All is done.\n"),
                "# Agent Response\nline 9\n".to_owned(),
            ] {
                let content = format!("{thought}{quoted}");
                let reply = writes("````", &content, "````");
                let written = Ok(format!("WRITE_FILE path=a content={content}"));
                let read = call(&format!("{wrapping}\n{reply}{wrapping}\n"));
                assert!(read.is_err() || read == written, "{content}: {read:?}");
                assert_eq!(call(&reply), written);
            }
        }
    }
    for command in [
        "cat > a <<'EOF'\nStart.\n<think>\nhm\n</think>\nAnswer.\nEOF",
        "cat > a <<'EOF'\n<think>hm</think>\nAnswer.\nEOF\nls",
    ] {
        let written = Ok(format!("COMMAND command={command}"));
        assert_eq!(call(&uses("COMMAND", command)), written);
    }
    // But what was thought of another response is none, and words of a reply's end stay.
    let behind = format!(
        "{}<think>\nThen:\n{}</think>\nThis",
        writes("```", "x\n", "```"),
        reads("b")
    );
    assert_eq!(
        call(&behind).as_deref(),
        Ok("WRITE_FILE path=a content=x\n")
    );
    let run = uses("COMMAND", "ls\n<think>\nhm\n</think>\nls a");
    assert!(call(&run).is_err());
    for content in [
        format!(
            "# Doc\n```\n~~~md\n{}~~~\n",
            uses("COMMAND", "touch evil\n")
        ),
        format!(
            "# Doc\n```\n````\n{}````\n",
            uses("COMMAND", "touch evil\n")
        ),
        format!("# Doc\n```\n{}", uses("COMMAND", "touch evil\n")),
        format!(
            "# Doc\n```\n<think>x</think>\n{}",
            uses("COMMAND", "touch evil\n")
        ),
    ] {
        for (open, close) in [("```markdown", "```"), ("```", "```"), ("~~~", "~~~")] {
            let read = call(&writes(open, &content, close));
            let written = format!("WRITE_FILE path=a content={content}");
            assert!(read.is_err() || read == Ok(written), "{content}: {read:?}");
        }
    }
}

#[test]
fn what_was_thought_is_passed_over() {
    for (thought, is_draft) in [
        ("<think>\nhm\n</think>\n", false),
        ("<think></think>\n", false),
        ("<think>\n```sh\n</think>", false),
        ("hm\n</think>\n", false),
        ("hm</think>\n", false),
        ("<thinking>x</thinking> <think>y</think>\n\n", false),
        ("<think>", true),
    ] {
        let close = if is_draft { "</think>" } else { "" };
        let text = format!("{thought}{}{close}", reads("a"));
        if is_draft {
            assert!(
                call(&text).unwrap_err().contains("no `# Agent Response`"),
                "{text}"
            );
        } else {
            assert_eq!(call(&text).as_deref(), Ok("READ_FILE path=a"), "{text}");
        }
    }
    // All of it is thought.
    for thought in ["<think>never ended\n", "So:\n<thinking>\n"] {
        let error = call(&format!("{thought}{}", reads("a"))).unwrap_err();
        assert!(error.contains("on is thought"), "{error}");
    }
    // Between two responses, too.
    let text = format!("{}<think>\n```\n</think>\nSo:\n{}", reads("b"), reads("a"));
    assert_eq!(call(&text).as_deref(), Ok("READ_FILE path=a"));
    let turn = read_turn(&format!("<think>x</think>\n{}\n{}", reads("b"), reads("a"))).unwrap();
    assert_eq!(turn.remembered, reads("a").trim_end());
    // Lines are those of the whole reply.
    let fault = read_turn("<think>\nx\n</think>\n# Agent Response\n").unwrap_err();
    assert_eq!(fault.line, Some(4));
}
