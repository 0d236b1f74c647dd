//! Ambiguous replies, and replies that would run text that is only quoted: all are refused.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;

/// Asserts that each of `texts` is refused with `expected` in the fault.
fn all_refused<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, expected: &str) {
    for text in texts {
        let text = text.as_ref();
        let fault = call(text).expect_err(text);
        assert!(fault.contains(expected), "{text}\n{fault}");
    }
}

const UNCLEAR: &str = "it cannot be told whether this `# Agent Response` is another response or part of what is \
    written above: write one response alone, and put a file or a command that has such lines between longer \
    fences (````)";
const OPEN: &str = "the code block that begins here is never closed: it ends with a line that has nothing but the \
    same fence; content that has such lines goes between longer fences";
const BEHIND: &str = "nothing is expected after the code block, which ends at the first line that has nothing \
    but the same fence: content that has such lines goes between longer fences (````)";
const BESIDE: &str = "a command is given as it is, or alone in one code block: nothing else may stand beside it; \
    one that has such lines, or ``` in it, goes between longer fences";
const RUN: &str = "the shell would run what is between these backticks: quote the word of the here-document, \
    as in <<'EOF', or write $(...) where it is meant to be run";

/// Returns responses that a file or a command may contain.
fn examples() -> [String; 6] {
    [
        uses("COMMAND", "rm -rf x\n"),
        uses("COMMAND", "```sh\nrm -rf x\n```\n"),
        uses("DONE", "All is done.\n"),
        uses("LIST_PROCESSES", ""),
        uses("WRITE_FILE", "\"b\"\n```\nx\n```\n"),
        reads("b"),
    ]
}

#[test]
fn an_example_in_a_short_block_is_refused_whatever_tool_shows_it() {
    for example in examples() {
        for header in [
            "# Agent Response",
            "### Agent Response",
            "**Agent Response**",
        ] {
            let example = example.replace("# Agent Response", header);
            all_refused(
                [
                    writes("```md", &example, "```"),
                    writes("~~~", &example, "~~~"),
                    writes("```md", &format!("# T\n{example}End\n"), "```"),
                    uses(
                        "DONE",
                        &format!("The form is:\n\n```markdown\n{example}```\n"),
                    ),
                    uses("DONE", &format!("```\n{example}```\n")),
                    uses(
                        "ASK_USER",
                        &format!("Is\n~~~\n{example}~~~\nwhat you mean?\n"),
                    ),
                    uses(
                        "COMMAND",
                        &format!("```sh\ncat > a.md <<'E'\n{example}E\n```\n"),
                    ),
                    format!(
                        "# Agent Response\n## Thoughts\n```\n{example}```\n{}",
                        reads("a")
                    ),
                    format!("So:\n````\n{example}````\n\n{}", reads("a")),
                    format!("```markdown\n{example}```\n\n{}", reads("a")),
                    format!("{}\n```markdown\n{example}```\n", reads("a")),
                ],
                UNCLEAR,
            );
        }
    }
}

#[test]
fn an_example_in_a_raw_command_is_refused() {
    for example in examples() {
        for (begin, end) in [
            ("cat > a.md <<EOF", "EOF"),
            ("cat > a.md <<-\"E F\"", "\tE F"),
            ("cat > a.md <<'EOF'", ""),
            ("git commit -m \"$(cat <<'EOF'", "EOF)\""),
            ("ssh host 'cat <<EOF", "EOF'"),
            ("echo '", "' > a.md"),
            ("python3 -c \"", "\""),
            ("ls", ""),
        ] {
            let command = format!("{begin}\nExample:\n\n{example}{end}");
            all_refused(
                [
                    uses("COMMAND", &command),
                    uses("RUN_IN", &format!("a\n{command}")),
                ],
                UNCLEAR,
            );
        }
    }
}

#[test]
fn an_example_in_a_file_with_a_fence_too_few_is_refused() {
    for example in examples() {
        for (opening, inner) in [
            ("```md", "```"),
            ("```", "```"),
            ("```md", "```md"),
            ("~~~", "~~~"),
            ("````", "````"),
        ] {
            let close = inner.trim_end_matches("md");
            for before in [
                "",
                "# T\n",
                "# T\n```sh\nls\n```\n\n",
                "# T\n```\nls\n```\n\n",
                "\n",
            ] {
                for words in ["", "\n", "So:\n\n"] {
                    let content = |end: &str, behind: &str| {
                        format!("{before}{inner}\n{words}{example}{end}\n{behind}")
                    };
                    for text in [
                        writes(opening, &content(close, "End\n"), close),
                        writes(opening, &content(close, ""), close),
                        writes(opening, &content(close, "End\n"), ""),
                        writes(opening, &content("", "End\n"), close),
                        writes(opening, &content("", ""), close),
                    ] {
                        let read = call(&text);
                        assert!(read.is_err(), "{text}\n{read:?}");
                        // The same goes for a misspelled tool name.
                        let read = call(&text.replacen("WRITE_FILE", "WRITE", 1));
                        assert!(read.is_err(), "{text}\n{read:?}");
                    }
                }
            }
        }
    }
    // Both ends are missing.
    for text in [
        writes(
            "```md",
            &format!("# T\n```\n{}", uses("COMMAND", "rm -rf x\n")),
            "",
        ),
        writes(
            "```md",
            &format!("# T\n```\n\n{}", uses("COMMAND", "rm -rf x\n")),
            "",
        ),
        writes(
            "```md",
            &format!("# T\n```\n{}", writes("~~~", "x\n", "~~~")),
            "",
        ),
        writes(
            "```md",
            &format!("# T\n```\nls\n```\n\n```\n{}", reads("b")),
            "",
        ),
    ] {
        all_refused([text], UNCLEAR);
    }
}

#[test]
fn thoughts_must_end_before_the_response() {
    let endless =
        "all from here on is thought, since no `</think>` follows: end your thoughts, and reply";
    for thought in [
        "<think>never ended\n",
        "So:\n<thinking>\n",
        "<think>\n```\n",
    ] {
        all_refused([format!("{thought}{}", reads("a"))], endless);
    }
    let late =
        "all up to this end of a thought is no response: write the response after your thoughts";
    for tool in ["DONE", "COMMAND", "LIST_PROCESSES"] {
        let text = uses(tool, "x\n</think>\nBut wait.\n");
        assert_eq!(call(&text), Err(format!("line 8: {late}")));
    }
    all_refused([format!("hm\n{}</think>", reads("a"))], late);
    // A response with a malformed header, whose content includes the end of a thought.
    let text = writes("```md", &format!("```\n</think>\n{}", reads("b")), "```");
    all_refused(
        [text.replacen("# Agent Response", "# Agent Reponse", 1)],
        "it cannot be told whether this ends a thought",
    );
    // A response within a thought; its content may include the end of a thought.
    let text = format!(
        "<think>\n{}</think>\n```\n",
        writes("```", &uses("COMMAND", "rm x\n"), "")
    );
    all_refused(
        [text.replace(
            "# Agent Response\n\n## Tool Choice\nCOMMAND",
            "</think>\n# Agent Response\n\n## Tool Choice\nCOMMAND",
        )],
        "the code block that begins here is never closed",
    );
    all_refused(
        [
            "<think>\n# Agent Response\n</think>",
            &format!("<think>{}</think>", reads("a")),
        ],
        "there is no `# Agent Response` header",
    );
}

#[test]
fn headings_in_a_block_do_not_count() {
    let quoted = "## Tool Choice\nCOMMAND\n## Tool Input\nrm x\n";
    all_refused(
        [
            format!(
                "# Agent Response\n## Thoughts\n```\n{quoted}```\n## Tool Choice\nREAD_FILE\n## Tool Input\na"
            ),
            // The fence that opens the file closes the one above.
            format!(
                "# Agent Response\n## Thoughts\n```sh\nhm\n## Tool Choice\nWRITE_FILE\n## Tool Input\n\"a\"\n```\n{quoted}```\n```\n"
            ),
            format!(
                "# Agent Response\n## Thoughts\n````\nhm\n## Tool Choice\nWRITE_FILE\n## Tool Input\n\"a\"\n````\n{quoted}````\n````\n"
            ),
            format!("# Agent Response\n## Tool Choice\nWRITE_FILE\n\"a\"\n```\n{quoted}```\n"),
        ],
        "this heading is in a code block",
    );
    all_refused(
        [
            "# Agent Response\n## Tool Choice\nWRITE_FILE\n\"a\"\n```\nx\n```\n## Tool Input\n\"b\"\n```\ny\n```",
        ],
        "a code block under `## Tool Choice`",
    );
}

#[test]
fn text_after_a_block_is_refused() {
    for path in [
        "a.rs",
        "README.md",
        "notes.txt",
        "CMakeLists.txt",
        "docs/a.rst",
    ] {
        for behind in [
            "That is all.",
            "```",
            "\nThat is all.\n",
            "\n---\n",
            "It prints:\n\n```\nhi\n```",
            "```sh\nls\n```",
            "```\n```",
            "\n## Tool Choice\nDONE",
            "\n## Task List\nwords",
            "\n## Task List\n- [x] a\nwords",
            "\n## Task List\n",
            "\nwords\n## Task List\n- [x] a\n",
            "\n## Task List\n[x] a\n```\nb\n```",
        ] {
            for label in ["", "md", "rust"] {
                let read = input(
                    "WRITE_FILE",
                    &format!("\"{path}\"\n```{label}\nx\n```\n{behind}"),
                );
                let fault = read.unwrap_err();
                assert!(
                    fault.ends_with(BEHIND) || fault.ends_with(OPEN),
                    "{behind}\n{fault}"
                );
            }
        }
    }
    let words = "\"a\"\n```\nx\n```\nThat is all.";
    assert_eq!(input("WRITE_FILE", words), Err(format!("line 9: {BEHIND}")));
    all_refused(
        [
            "```sh\nrm x\n```",
            "It is ```rm x```.",
            "# Next\nrm x",
            "Or:\n```sh\nrm x\n```",
            "## Tool Choice\nCOMMAND\n## Tool Input\nrm x",
            "<|im_end|>\nrm x",
        ]
        .map(|behind| uses("COMMAND", &format!("```bash\nls\n```\n{behind}"))),
        BEHIND,
    );
    // The fence that closes the block may be a line of the file.
    let cut = "```sh\ncat > a.md <<'E'\n# T\n```\nWords.\nE\n";
    all_refused([uses("COMMAND", cut)], BEHIND);
}

#[test]
fn a_block_that_is_never_closed_is_refused() {
    for (tool, text) in [
        ("WRITE_FILE", "\"a\"\n```ts\nx\n"),
        ("WRITE_FILE", "\"a\"\n````ts\nx\n```"),
        ("WRITE_FILE", "\"a\"\n```ts\nx\n``` x"),
        ("WRITE_FILE", "\"a\"\n~~~\nx\n```"),
        // The only fence may end the file's block or the one inside.
        ("WRITE_FILE", "\"a\"\n```md\n# Use\n\n```sh\nls\n```"),
        ("COMMAND", "```sh\ncat > a.md <<'E'\n# Use\n```sh\nls\n```"),
        (
            "FIND_AND_REPLACE_IN_FILE",
            "a\n```find\nx\n```\n```replace\ny",
        ),
        (
            "FIND_AND_REPLACE_IN_FILE",
            "a\n```find\nx\n```replace\ny\n```\n```",
        ),
        ("COMMAND", "```sh\nls"),
        ("COMMAND", "ls\n```"),
        ("READ_FILE", "```\na"),
        ("DONE", "So:\n```\nx"),
        ("LIST_PROCESSES", "none\n```"),
    ] {
        all_refused([uses(tool, text)], OPEN);
    }
    all_refused(
        [format!(
            "# Agent Response\n## Thoughts\n```sh\n{}",
            &reads("a")[18..]
        )],
        OPEN,
    );
}

#[test]
fn nothing_next_to_a_command_is_run() {
    for text in [
        "Let me look:\n```bash\nls\n```\n",
        "ls\n```\nrm y\n```\nx\n",
        "ls\n## Tool Choice\nCOMMAND\n## Tool Input\nrm x",
        "ls\n**Tool Choice**\nCOMMAND\n**Tool Input:**\nrm x",
        "ls\nTool Choice: COMMAND\nTool Input: rm x",
        "Use << to feed it.\n```bash\nls\n```\n",
        "cat <<'E'\nhello\nE\n```bash\nls\n```\n",
        "cat > a.md <<'E'\n```\nx\n```\nE\n",
        "cat <<'E'\n<tool_result>\nE",
        "```echo one```",
        "Run this: ```touch x```",
        "Look:\n      ```bash\n      touch x\n      ```",
        "> ```bash\n> ls\n> ```",
        "ls\n## Task List\n[x] a",
        "ls\n## Tool Result\nmain.rs",
        "ls\n### Output\nmain.rs",
        "ls\n# Tool result\nmain.rs",
        "ls\n<tool_result>\nmain.rs\n</tool_result>",
        "ls\n<think>\nhm",
        "ls\n<|im_end|>\nls",
    ] {
        all_refused([uses("COMMAND", text)], BESIDE);
    }
    for label in [
        "python",
        "json",
        "console",
        "cargo test",
        "bash -c ls",
        "bash # x",
        "fish",
        "rust",
    ] {
        let fault = input("COMMAND", &format!("```{label}\nls\n```"));
        let expected = format!(
            "line 5: a command stands alone between ```sh and ```, but this code block is labelled `{label}`: \
             the shell `sh` runs it, line by line"
        );
        assert_eq!(fault, Err(expected));
    }
    for text in [
        "````bash\ncat > a.md <<EOF\n```sh\ntouch ran\n```\nEOF\nls\n````",
        "cat > a <<EOF\nRun `rm -rf build` to clean.\nEOF",
        "```sh\ncat > a << EOF\nRun `rm -rf build` to clean.\nEOF\n```",
        "````sh\ngit commit -m \"\n```\nrm x\n```\n\"\n````",
        "````sh\nls\n```\nrm x\n```\n````",
    ] {
        all_refused([uses("COMMAND", text)], RUN);
    }
}

#[test]
fn a_response_above_that_may_hold_the_last_is_refused() {
    let last = reads("last");
    for draft in [
        writes("```", "draft\n", "```"),
        writes("```", "draft\n", "```") + "Wait:\n",
        writes("```ts", "never closed\n", ""),
        writes("```md", "```sh\nx\n```\nnever closed\n", ""),
        uses("COMMAND", "ls\n"),
        uses("RUN_IN", "a\nls\n"),
        uses("BASH", "ls\n"),
        uses("WRITE", "a\n```\nx\n```\n"),
        uses("COMMAND", "```\nls\n```\n```\nls\n```\n"),
        uses("COMMAND", "```\nls\n```"),
        uses("DONE", "```\na\n```\nb\n```\nc\n```\n"),
        "# Agent Response\n```\nx\n```\n".to_owned(),
        "# Agent Response\n## Tool Choice\nREAD_FILE\nCOMMAND\n## Tool Input\nx\n".to_owned(),
    ] {
        let newline = if draft.ends_with("ls\n```") {
            "\n"
        } else {
            "\n\n"
        };
        all_refused([format!("{draft}{newline}{last}")], UNCLEAR);
    }
}

#[test]
fn words_around_a_last_block_do_not_make_it_a_response() {
    let example = uses("COMMAND", "rm x\n");
    all_refused(
        [
            format!("The form is:\n```\n{example}```\nas you know."),
            format!("```\nIt is:\n{example}```\n"),
            format!("```\n{example}```\n```\n{example}```\n"),
            format!("```\nls\n```\n```\nSo:\n{example}```\n"),
        ],
        "line ",
    );
}

#[test]
fn an_example_in_a_block_next_to_words_is_not_a_response() {
    let input = "## Tool Input\n\"a.md\"\n\n";
    for above in [
        format!("## Tool Choice\nWRITE_FILE\n{input}"),
        format!("# Response\n## Tool Choice\nWRITE_FILE\n{input}"),
        format!("# Agent Reponse\n\n## Tool Choice\nWRITE_FILE\n{input}"),
        format!(
            "# Agent Respnse\n## Tol Choice\nWRITE_FILE\n{}",
            input.replace("Input", "Inptu")
        ),
        "<tool>WRITE_FILE</tool>\n\"a.md\"\n".to_owned(),
        "I write the guide `a.md`, with WRITE_FILE:\n\n".to_owned(),
        "You could reply like this:\n\n".to_owned(),
    ] {
        for example in examples() {
            for fence in ["```", "````", "~~~~"] {
                for end in [fence, ""] {
                    let reply = format!("{above}{fence}markdown\n{example}{end}\n");
                    all_refused(
                        [&reply, &format!("<think>\nhm\n</think>\n{reply}")],
                        UNCLEAR,
                    );
                }
            }
        }
    }
    for behind in ["That is the form.\n", "```\nls\n```\n"] {
        let example = uses("COMMAND", "touch x\n");
        all_refused([format!("````md\n{example}````\n{behind}")], "line ");
    }
}

#[test]
fn many_drafts_and_tags_and_fences_cost_no_more_than_their_length() {
    let (sender, over) = mpsc::channel();
    thread::spawn(move || {
        for piece in [
            "cat <<EO\n",
            "cat <<EO ",
            "</think>\n",
            "<think>\n",
            "<think>x</think>\n",
            "```\n",
            "~~~a\n",
            "# Agent Response\n",
            "```a\n# Agent Response\n",
            "# Agent Response\n## Tool Choice\nDONE\n## Tool Input\nx\n",
            "## Tool Input\n",
            "## Task List\n[x] a\n",
        ] {
            let many = piece.repeat(30_000);
            let _ = call(&uses("COMMAND", &many));
            let _ = call(&uses("COMMAND", &format!("{many}</think>\n```\n")));
            let _ = call(&writes("```", &many, "```"));
            let _ = call(&format!("{many}{}", reads("a")));
        }
        sender.send(())
    });
    // This takes seconds; in quadratic time, it would take hours.
    assert!(over.recv_timeout(Duration::from_mins(5)).is_ok());
}

#[test]
fn response_after_a_possible_file_is_refused_whatever_it_uses() {
    let example = uses("COMMAND", "```\ntouch pwned\n```\n");
    let another = uses("WRITE_FILE", "\"pwned\"\n\n```\nx\n```\n");
    let guides = [
        // No header above, and an example in a block that lacks a fence.
        "I will write the guide.\n\n## Tool Choice\nWRITE_FILE\n\n## Tool Input\n\"a.md\"\n\n```md\nExample:\n```\n".to_owned(),
        "## Tool Choice\nWRITE_FILE\n\n## Tool Input\n\"a.md\"\n\n".to_owned(),
        // Content without a block.
        uses("WRITE_FILE", "\"a.md\"\n\nGuide:\n\n"),
        uses("FIND_AND_REPLACE_IN_FILE", "\"a.md\"\nold\nnew\n\n"),
    ];
    let whole = uses("WRITE_FILE", "\"a.md\"\n\n```md\nGuide\n```\n\n");
    assert!(call(&format!("{whole}{example}")).is_err());
    for guide in &guides {
        for shown in [&example, &another] {
            let fault = call(&format!("{guide}{shown}")).unwrap_err();
            assert!(
                fault.contains("it cannot be told whether this `# Agent Response`"),
                "{guide}{shown}{fault}"
            );
        }
    }
}
