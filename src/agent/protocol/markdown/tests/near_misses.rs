//! Replies that deviate from the format but can be read in only one way.

use super::*;
use crate::agent::tools::notes::{UPDATE_TASK_LIST, UpdateTaskList};

/// Asserts that each of `texts` is read as `expected`.
fn all_read<T: AsRef<str>>(texts: impl IntoIterator<Item = T>, expected: &str) {
    for text in texts {
        let text = text.as_ref();
        assert_eq!(call(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn headers() {
    let headers = [
        "# Agent Response",
        "# agent response #",
        "# AGENT RESPONSE",
        "#Agent Response",
        "#  Agent  Response  ",
        "# Agent Response:",
        "# **Agent Response**",
        "# `Agent Response`",
        "# *Agent Response*",
        "## Agent Response",
        "### Agent Response ###",
        "**Agent Response**",
        "**Agent Response:**",
        "**Agent Response**:",
        "**# Agent Response**",
        "# \u{1f916} Agent Response",
        "\u{1f916} **Agent Response**",
        "# 1. Agent Response",
        "1. # Agent Response",
        "# Agent_Response",
        "  # Agent Response",
        "\u{feff}# Agent Response",
        "\u{200b}# Agent Response",
        "\u{a0}# Agent\u{a0}Response",
        "# Agent Response\r",
        "# Agent Response\n\n# Agent Response",
        "# Agent Response\n## Thoughts\nNo, once more.\n\n## Agent Response",
        "Sure! Here is the next step.\n\n# Agent Response",
        "```sh\nls\n```\n\n# Agent Response",
        "---\n# Agent Response\n---",
        "<think>\nhm\n</think>\n# Agent Response",
        "<think></think># Agent Response",
        "<think>\n\n</think>\n\n\n# Agent Response",
        "<thinking>x</thinking> <think>y</think>\n# Agent Response",
        "<think>\n```sh\n</think>\n# Agent Response",
        "<think>\n# Agent Response\n## Tool Choice\nDONE\n## Tool Input\nx\n</think>\n# Agent Response",
        "hm\n</think>\n# Agent Response",
        "hm</think>\n# Agent Response",
        "So:\n<think>\nhm\n</think>\nWell:\n# Agent Response",
    ];
    let rest = "## Tool Choice\nREAD_FILE\n## Tool Input\na";
    all_read(
        headers.map(|header| format!("{header}\n{rest}")),
        "READ_FILE path=a",
    );
}

#[test]
fn choices() {
    let choices = [
        "## Tool Choice\nREAD_FILE",
        "# Tool Choice\nREAD_FILE",
        "### TOOL CHOICE:\r\n\r\n`read_file`\r\n\r",
        "#### Tool Choice\n\n\n  READ_FILE  ",
        "## **Tool Choice**\n**READ_FILE**",
        "**Tool Choice**\nREAD_FILE",
        "**Tool Choice:**\n- READ_FILE",
        "**Tool Choice:** READ_FILE",
        "**Tool Choice**: `READ_FILE`",
        "**Tool Choice: READ_FILE**",
        "## Tool Choice: READ_FILE",
        "## Tool Choice: `READ_FILE`",
        "## Tool Choice:READ_FILE",
        "3. Tool Choice\nREAD_FILE",
        "3. Tool Choice: READ_FILE",
        "## 3. Tool Choice\nREAD_FILE",
        "## 3) Tool Choice:\nREAD_FILE",
        "**3. Tool Choice**\nREAD_FILE",
        "3. **Tool Choice**\nREAD_FILE",
        "## \u{1f527} Tool Choice\nREAD_FILE",
        "\u{1f527} Tool Choice: READ_FILE",
        "## Tool_Choice\nREAD_FILE",
        "## ToolChoice\nREAD_FILE",
        "Tool Choice:\nREAD_FILE",
        "Tool Choice: READ_FILE",
        "## Tool Choice\n\"READ_FILE\"",
        "## Tool Choice\n[READ_FILE]",
        "## Tool Choice\n<READ_FILE>",
        "## Tool Choice\n__READ_FILE__",
        "## Tool Choice\nREAD\\_FILE",
        "## Tool Choice\nRead File",
        "## Tool Choice\nread-file",
        "## Tool Choice\nREAD_FILE.",
        "## Tool Choice\n\u{27a1}\u{fe0f} READ_FILE",
        "## Tool Choice\nREAD_FILE\nto see what is there",
        "## Tool Choice\nREAD_FILE (to see what is there)",
        "## Tool Choice\nI will use `READ_FILE`.",
        "## Tool Choice\n```\nREAD_FILE\n```",
        "## Tool Choice\n~~~text\nread_file\n~~~",
        "## Tool Choice\n{\"tool\": \"READ_FILE\"}",
        "## Plan\nx\n## Tool Choice\nREAD_FILE",
        "## Thoughts\nI read.\n## Tool Choice\nREAD_FILE",
        "**Thoughts:** I read.\n\n**Tool Choice:** READ_FILE",
        "## Tool Choice\nREAD_FILE\n## Thoughts\nx",
        "## Thoughts\n```rust\nfn main() {}\n```\nIt is empty.\n## Tool Choice\nREAD_FILE",
        "## Tool Choice\nREAD_FILE\n## Tool Choice\nREAD_FILE",
    ];
    let text = |choice| format!("# Agent Response\n{choice}\n## Tool Input\na");
    all_read(choices.map(text), "READ_FILE path=a");
}

#[test]
fn paths() {
    let inputs = [
        "## Tool Input\na.rs",
        "# Tool Input:\n\n\n\"a.rs\"\n\n",
        "**Tool Input**\n'a.rs'",
        "**Tool Input:** a.rs",
        "## Tool Input: \"a.rs\"",
        "4. Tool Input\na.rs",
        "## 4. Tool Input\r\na.rs\r\n",
        "## \u{1f4e5} Tool Input\n`a.rs`",
        "Tool Input:\na.rs",
        "## Tool Input\n  \"a.rs\"  ",
        "## Tool Input\n`a.rs`",
        "## Tool Input\n\u{201c}a.rs\u{201d}",
        "## Tool Input\n- a.rs",
        "## Tool Input\n* `a.rs`",
        "## Tool Input\n**a.rs**",
        "## Tool Input\n**`a.rs`**",
        "## Tool Input\nPath: a.rs",
        "## Tool Input\npath: \"a.rs\"",
        "## Tool Input\nPath:a.rs",
        "## Tool Input\nFile: `a.rs`",
        "## Tool Input\n**File:** `a.rs`",
        "## Tool Input\n**File**: a.rs",
        "## Tool Input\n- **Path:** `a.rs`",
        "## Tool Input\n`path`: a.rs",
        "## Tool Input\nFile path: a.rs",
        "## Tool Input\n```\na.rs\n```",
        "## Tool Input\n```text\n\"a.rs\"\n```\n",
        "## Tool Input\n~~~\n\na.rs\n~~~",
        "## Tool Input\n\"a.rs\"<|im_end|>",
        "## Tool Input\n\"a.rs\"</s>\n<|eot_id|>\n",
    ];
    let text = |input| format!("# Agent Response\n## Tool Choice\nREAD_FILE\n{input}");
    all_read(inputs.map(text), "READ_FILE path=a.rs");
}

#[test]
fn contents() {
    let inputs = [
        "\"a\"\n```\nx\n```",
        "\"a\"\n\n\n```rust\nx\n```\n\n\n",
        "a\n```json\nx\n```",
        "`a`\n~~~\nx\n~~~",
        "Path: a\n```\nx\n```",
        "- a\n\n```\nx\n```",
        "**a**\n```\nx\n```",
        "```\na\n```\n```\nx\n```",
        "\"a\"\n\nContent:\n```\nx\n```",
        "\"a\"\n**Content:**\n\n```\nx\n```",
        "\"a\"\n### Content\n```\nx\n```",
        "\"a\"\n````\nx\n````",
        "\"a\"\n```\nx\n`````",
        "\"a\"\n   ```\nx\n  ```",
        "\"a\"\n```rust title=\"a\"\nx\n```  ",
        "\"a\"\n```\nx\n```<|im_end|>",
    ];
    all_read(
        inputs.map(|input| uses("WRITE_FILE", input)),
        "WRITE_FILE path=a content=x\n",
    );
    // The content of a block is not parsed.
    for (fence, content) in [
        ("```", "## Tool Choice\nDONE\n## Tool Input\nx\n"),
        ("```", "<think>\n</think>\n"),
        ("```", "~~~\nx\n~~~\n## Task List\n[x] y\n"),
        ("```", "\n  x\t \n\n"),
        ("```", "x\r\ny\r\n"),
        ("```", ""),
        ("````", "```sh\nls\n```\n"),
        ("````", "```sh\nls\n"),
        ("~~~", "```\nls\n```\n"),
        ("~~~~", "~~~\n```\n~~~\n"),
        (
            "````",
            "# Agent Response\n## Tool Choice\nDONE\n## Tool Input\nx\n",
        ),
        ("````", "```\n# Agent Response\n```\n"),
        ("~~~~", "## Agent Response\n</think>\n**Agent Response**\n"),
    ] {
        let expected = format!("WRITE_FILE path=a content={content}");
        all_read(
            [
                writes(fence, content, fence),
                writes(&format!("{fence}md"), content, fence),
            ],
            &expected,
        );
    }
}

#[test]
fn replacements() {
    let inputs = [
        "\"a\"\n\n```find\nx\n```\n\n```replace\ny\n```",
        "a\n```Find\nx\n```\n~~~REPLACE rs\ny\n~~~",
        "a\n````find\nx\n````\n```replace\ny\n```",
        "a\nFind:\n```\nx\n```\nReplace:\n```\ny\n```",
        "a\n\n**Find:**\n\n```rust\nx\n```\n\n**Replace:**\n\n```rust\ny\n```\n",
        "a\n### Find\n```rs\nx\n```\n### Replace\n```rs\ny\n```",
        "a\nFIND\n```\nx\n```\nREPLACE\n```\ny\n```",
        "a\n1. Find:\n```find\nx\n```\n2. Replace:\n```replace\ny\n```",
        "File: `a`\n\n`find`:\n```\nx\n```\n`replace`:\n```\ny\n```\n",
        "\"a\"\r\n```find\r\nx\r\n```\r\n```replace\r\ny\r\n```\r\n",
    ];
    let expected = "FIND_AND_REPLACE_IN_FILE path=a find=x replace=y";
    all_read(
        inputs.map(|input| uses("FIND_AND_REPLACE_IN_FILE", input)),
        expected,
    );
}

#[test]
fn commands() {
    let inputs = [
        "ls -l",
        "\n\n  ls -l  \n\n",
        "`ls -l`",
        "ls -l\r\n",
        "ls -l<|im_end|>",
        "```\nls -l\n```",
        "```sh\nls -l\n```\n",
        "```BASH\nls -l\n```",
        "```shell\nls -l\n```",
        "```zsh\nls -l\n```",
        "```command\nls -l\n```",
        "```text\nls -l\n```",
        "``` sh \nls -l\n```",
        "```{.bash}\nls -l\n```",
        "```bash title=\"x\"\nls -l\n```",
        "~~~sh\nls -l\n~~~",
        "````sh\nls -l\n````",
        "Command:\n```sh\nls -l\n```",
        "**Command:**\n\n```sh\nls -l\n```",
        "```bash\r\nls -l\r\n```\r\n",
        "```sh\nls -l\n```\n\nThis shows\nwhat is `there`.\n",
        "```sh\nls -l\n```\n---\nrm x",
    ];
    all_read(
        inputs.map(|input| uses("COMMAND", input)),
        "COMMAND command=ls -l",
    );
    for command in [
        "npm i && \\\n  npm t",
        "# list them\nls",
        "## Build\n### Step 1 ###\n# Output\nls",
        "echo `date` `id`",
        "cat <<< x",
        "echo $((1 << x))",
        "<input.txt sort > output.txt",
        "cat > a <<'EOF'\nRun `rm -rf build` to clean.\nEOF",
        "cat > a <<EOF\nRun \\`rm -rf build\\` to clean, $(date).\nEOF",
    ] {
        let blocks = ["", "```", "```sh", "~~~", "````"].map(|fence| {
            let close = fence.trim_end_matches("sh");
            uses("COMMAND", &format!("{fence}\n{command}\n{close}\n"))
        });
        all_read(blocks, &format!("COMMAND command={command}"));
    }
    for command in [
        "cat > a.md <<'E'\n```\n## Tool Input\n```\nE",
        "cat > a.md <<'E'\n# Agent Response\n## Tool Choice\nDONE\nE",
        "echo '<html>\n<output>\n</html>' > a",
        "cat > a <<'EOF'\n<think>\nhm\n</think>\nEOF",
    ] {
        let text = uses("COMMAND", &format!("````sh\n{command}\n````"));
        all_read([text], &format!("COMMAND command={command}"));
    }
}

#[test]
fn words() {
    for (input, words) in [
        ("All is done.", "All is done."),
        ("\n  a\n\n  b\n\n", "a\n\n  b"),
        ("a\r\nb\r\n", "a\nb"),
        ("```\n  a\n\n```", "  a\n"),
        ("```text\na\n```\n", "a"),
        ("Summary:\n\n```\na\n```", "a"),
        ("Done:\n```\nx\n```", "Done:\n```\nx\n```"),
        ("```\nx\n```\nDone.", "```\nx\n```\nDone."),
        (
            "a\n## Tool Choice\nb\n## Tool Input\nc",
            "a\n## Tool Choice\nb\n## Tool Input\nc",
        ),
        ("It stops at <|endoftext|>", "It stops at <|endoftext|>"),
        ("It is written <s>so</s>", "It is written <s>so</s>"),
        (
            "It is <|im_end|> or </s>.<|im_end|>\n</s>\n",
            "It is <|im_end|> or </s>.",
        ),
        ("````\n# Agent Response\n````", "# Agent Response"),
    ] {
        all_read([uses("DONE", input)], &format!("DONE summary={words}"));
    }
    for input in ["", "none", "None.", "N/A", "(no input)", "```\n```", "{}"] {
        all_read([uses("LIST_PROCESSES", input)], "LIST_PROCESSES");
    }
    all_read(
        [
            "# Agent Response\n## Tool Choice\nLIST_PROCESSES",
            "## Agent Response\n**Tool Choice: list processes**",
        ],
        "LIST_PROCESSES",
    );
}

#[test]
fn a_block_around_the_whole_reply() {
    for response in [reads("a"), reads("a").trim_end().to_owned() + "\n\n"] {
        for (before, opening, closing) in [
            ("", "```", "```"),
            ("", "```markdown", "```"),
            ("", "```md\n", "```\n\n"),
            ("", "~~~", "~~~"),
            ("", "````markdown", "````"),
            ("", "```", ""),
            ("\u{feff}", "```markdown", "```"),
            ("<think>\nhm\n</think>\n", "```markdown", "```"),
        ] {
            all_read(
                [format!("{before}{opening}\n{response}{closing}\n")],
                "READ_FILE path=a",
            );
        }
    }
    for (opening, closing) in [
        ("```markdown", "```"),
        ("```markdown", ""),
        ("````", "````"),
        ("~~~", "~~~"),
    ] {
        let wrap = |response: &str| format!("{opening}\n{response}{closing}\n");
        all_read(
            [wrap(&writes("```ts", "x\n", "```"))],
            "WRITE_FILE path=a content=x\n",
        );
        all_read(
            [wrap(&uses("COMMAND", "```sh\nls\n```\n"))],
            "COMMAND command=ls",
        );
        let example = reads("b");
        let expected = format!("WRITE_FILE path=a content={example}");
        all_read([wrap(&writes("`````md", &example, "`````"))], &expected);
    }
}

#[test]
fn last_of_several_responses_counts_and_the_model_is_informed() {
    let note = |text: &str| read_turn(text).unwrap().note;
    for (drafts, others) in [
        (String::new(), 0),
        ("# Agent Response\n".to_owned(), 0),
        ("# Agent Response\n\n## Thoughts\nhm, no\n".to_owned(), 0),
        (reads("draft"), 1),
        (reads("one") + &reads("two"), 2),
        (reads("draft") + "\nResult: it is empty.\n\n---\n\n", 1),
        (uses("READ_FILE", "```\ndraft\n```\n\n"), 1),
        (uses("LIST_PROCESSES", ""), 1),
        (uses("DONE", "It is done.\n"), 1),
        (uses("ASK_USER", "Is this a draft?\n"), 1),
        (uses("COMMAND", "```sh\nls\n```\n\n"), 1),
        (
            "# Agent Response\n\n## Tool Choice\nCOMMAND\n".to_owned(),
            1,
        ),
        (
            "# Agent Response\n\n## Tool Choice\nWRITE_FILE\n\n".to_owned(),
            1,
        ),
        (
            "# Agent Response\n\n## Tool Choice\nCOMMAND\n\n## Tool Input\n\n".to_owned(),
            1,
        ),
        (reads("draft") + "so be it.\n</think>\n", 1),
    ] {
        for (last, expected) in [
            (reads("last"), "READ_FILE path=last"),
            (uses("COMMAND", "```\nls\n```\n"), "COMMAND command=ls"),
            (
                writes("```ts", "x\n", "```"),
                "WRITE_FILE path=a content=x\n",
            ),
            (uses("DONE", "It is done.\n"), "DONE summary=It is done."),
        ] {
            let text = drafts.clone() + &last;
            all_read([&text], expected);
            assert_eq!(note(&text), (others > 0).then(|| not_done(others)));
            let turn = read_turn(&text).unwrap();
            assert_eq!(call(&turn.remembered), call(&last), "what is remembered");
        }
    }
    // Another version of the same file.
    let (draft, last) = (
        writes("```", "draft\n", "```"),
        writes("```", "last\n", "```"),
    );
    all_read(
        [format!("{draft}\n{last}")],
        "WRITE_FILE path=a content=last\n",
    );
}

#[test]
fn task_list_after_a_fenced_input() {
    for (tool, input, expected) in [
        (
            "WRITE_FILE",
            "\"a\"\n```\nx\n```",
            "WRITE_FILE path=a content=x\n",
        ),
        (
            "FIND_AND_REPLACE_IN_FILE",
            "a\n```find\nx\n```\n```replace\ny\n```",
            "FIND_AND_REPLACE_IN_FILE path=a find=x replace=y",
        ),
        ("COMMAND", "````sh\nls\n````", "COMMAND command=ls"),
    ] {
        for heading in ["\n## Task List", "**Task List:**", "\n\n### Task List\n"] {
            let text = uses(tool, &format!("{input}\n{heading}\n- [x] a\n\n- [ ] b\n"));
            all_read([&text], expected);
            let tasks = vec![
                task(TaskStatus::Complete, "a"),
                task(TaskStatus::Pending, "b"),
            ];
            assert_eq!(read_turn(&text).unwrap().tasks, Some(tasks));
        }
    }
}

#[test]
fn a_task_list_as_the_input_of_the_tool_that_updates_it() {
    let tools = toolbox().with(&UPDATE_TASK_LIST, UpdateTaskList);
    for (input, expected) in [
        (
            "- [x] a\n- [ ] b",
            vec![TaskStatus::Complete, TaskStatus::Pending],
        ),
        ("```\n[~] a\n```\n", vec![TaskStatus::InProgress]),
        ("none", vec![TaskStatus::Pending; 3]),
        ("", vec![TaskStatus::Pending; 3]),
    ] {
        let text = uses("UPDATE_TASK_LIST", input).replace(
            "\n## Tool Choice",
            "\n## Task List\n[ ] old\n[ ] older\n[ ] oldest\n\n## Tool Choice",
        );
        let turn = Markdown::default().read(&reply(&text), &tools).unwrap();
        let statuses = turn.tasks.unwrap().into_iter().map(|task| task.status);
        assert_eq!(statuses.collect::<Vec<_>>(), expected, "{text}");
    }
    let text = uses("UPDATE_TASK_LIST", "[x] a\n");
    let turn = Markdown::default().read(&reply(&text), &tools).unwrap();
    assert_eq!(turn.tasks, Some(vec![task(TaskStatus::Complete, "a")]));
}
