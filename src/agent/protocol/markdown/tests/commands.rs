//! Commands and words: what is taken, and that nothing beside a command is.

use super::*;

#[test]
fn a_fence_that_the_shell_would_run_is_a_fault() {
    let text = "cat > a.md <<EOF\n```sh\ntouch ran\n```\nEOF\nls";
    for (text, line) in [
        (text.to_owned(), 6),
        (format!("````bash\n{text}\n````"), 7),
        (format!("```bash\n{text}\n```"), 7),
    ] {
        let fault = input("COMMAND", &text).unwrap_err();
        assert!(
            fault.starts_with(&format!("line {line}: the shell would run")),
            "{fault}"
        );
    }
    let quoted = "````sh\ngit commit -m \"\n```\nrm x\n```\n\"\n````";
    assert!(input("COMMAND", quoted).is_err());
}

#[test]
fn code_in_a_here_document_whose_word_is_bare_is_a_fault() {
    let fault = input(
        "COMMAND",
        "cat > a <<EOF\nRun `rm -rf build` to clean.\nEOF",
    )
    .unwrap_err();
    assert!(fault.starts_with("line 6: the shell would run"), "{fault}");
    for text in [
        "cat > a <<'EOF'\nRun `rm -rf build` to clean.\nEOF",
        "cat > a <<EOF\nRun \\`rm -rf build\\` to clean, $(date).\nEOF",
    ] {
        assert_eq!(
            input("COMMAND", text),
            Ok(format!("COMMAND command={text}"))
        );
    }
}

#[test]
fn code_that_is_no_shells_is_a_fault() {
    for label in [
        "python",
        "json",
        "console",
        "cargo test",
        "bash -c ls",
        "bash # x",
        "fish",
    ] {
        let fault = input("COMMAND", &format!("```{label}\nls\n```")).unwrap_err();
        let expected = format!(
            "line 5: a command stands alone between ```sh and ```, but this code block is labelled `{label}`"
        );
        assert!(fault.starts_with(&expected), "{fault}");
    }
    for label in [
        "sh",
        "BASH",
        "shell",
        "zsh",
        "text",
        "command",
        " sh ",
        "{.bash}",
        "bash a=\"x\"",
    ] {
        let read = input("COMMAND", &format!("```{label}\nls\n```"));
        assert_eq!(read.as_deref(), Ok("COMMAND command=ls"));
    }
}

#[test]
fn words_behind_a_command_are_never_part_of_it() {
    for command in [
        "grep -rn 'cout << x' .",
        "echo $((1 << x))",
        "ls # << x",
        "grep '<<x'",
        "cat <<<x",
    ] {
        let text = format!("```bash\n{command}\n```\n\nThis may print `rm y` or\n\n```\nx\n```");
        let read = input("COMMAND", &text);
        assert!(read.is_err(), "{read:?}");
        let text = format!("{command}\n```\nrm y\n```\nx\n");
        let read = input("COMMAND", &text);
        assert!(read.is_err(), "{read:?}");
    }
}

#[test]
fn words_are_taken_as_they_are() {
    for words in [
        "It stops at <|endoftext|>",
        "It is <|im_end|> or </s>",
        "It is written <s>so</s>",
    ] {
        assert_eq!(input("NOTE", words), Ok(format!("NOTE words={words}")));
        let ended = format!("{words}.<|im_end|>\n</s>\n");
        assert_eq!(input("NOTE", &ended), Ok(format!("NOTE words={words}.")));
    }
}

#[test]
fn words_are_taken_raw_or_from_one_block() {
    for (text, words) in [
        ("npm i\n", "npm i"),
        ("\n  a\n\n  b\n\n", "a\n\n  b"),
        (
            "```bash\nnpm i && \\\n  npm t\n```\n",
            "npm i && \\\n  npm t",
        ),
        ("~~~\n  a\n\n~~~", "  a\n"),
        (
            "```sh\ncat > a.md <<'E'\n```\nx\n```\nE\n```",
            "cat > a.md <<'E'\n```\nx\n```\nE",
        ),
        ("cd a\r\nls\r\n", "cd a\nls"),
    ] {
        assert_eq!(
            input("COMMAND", text),
            Ok(format!("COMMAND command={words}")),
            "{text}"
        );
        assert_eq!(
            input("NOTE", text),
            Ok(format!("NOTE words={words}")),
            "{text}"
        );
    }
    let blank = "line 4: expected `command` (a shell command) under `## Tool Input`";
    assert_eq!(input("COMMAND", "\n \n"), Err(blank.to_owned()));
    let blank = "line 5: expected `command` (a shell command) under `## Tool Input`";
    assert_eq!(input("COMMAND", "```\n\n```"), Err(blank.to_owned()));
    let blank = "line 4: expected `words` (words) under `## Tool Input`";
    assert_eq!(input("NOTE", ""), Err(blank.to_owned()));
    let blank = "line 5: expected `words` (words) under `## Tool Input`";
    assert_eq!(input("NOTE", "```\n```"), Err(blank.to_owned()));
    let open = "line 5: the code block that begins here is never closed: it ends with a line that has \
        nothing but the same fence";
    assert_eq!(input("COMMAND", "```sh\nls"), Err(open.to_owned()));
    for text in [
        "Done:\n```\nx\n```",
        "```\nx\n```\nDone.",
        "a\n## Tool Choice\nb\n## Tool Input\nc",
    ] {
        assert_eq!(
            input("NOTE", text),
            Ok(format!("NOTE words={text}")),
            "{text}"
        );
    }
    // A tool that takes nothing takes no offence.
    assert_eq!(
        input("LIST_PROCESSES", "none\n```"),
        Ok("LIST_PROCESSES".to_owned())
    );
    // But what it is asked for besides would be lost.
    assert_eq!(
        input("LIST_PROCESSES", "\n## Tool Choice\nDONE\n## Tool Input\nx"),
        Err("line 6: a reply uses one tool".to_owned())
    );
}

#[test]
fn nothing_beside_a_command_is_run() {
    let block = "```bash\ncat notes.txt\n```\n";
    for behind in ["", "This shows the notes.\n", "\n---\n", "<|im_end|>\n"] {
        assert_eq!(
            input("COMMAND", &format!("{block}{behind}")),
            Ok("COMMAND command=cat notes.txt".to_owned()),
            "{behind}"
        );
    }
    for text in [
        format!("Let me look:\n{block}"),
        format!("{block}{block}"),
        format!("{block}Or:\n{block}"),
        format!("{block}It should print:\n```\ntouch x\n```\n"),
        "```\ntouch a\n```\n```\ntouch b\n```".to_owned(),
        "```\ntouch a\n```\n\n```\ntouch b\n```".to_owned(),
        format!("{block}```"),
        "```bash\ncat <<'E'\nx\nE\n```\nOutput:\n```\ntouch x\n```".to_owned(),
        "ls\n## Tool Choice\nCOMMAND\n## Tool Input\nrm x".to_owned(),
        "ls\n**Tool Choice**\nCOMMAND\n**Tool Input:**\nrm x".to_owned(),
        format!("Use << to feed it.\n{block}"),
        format!("echo $((1<<2))\n{block}"),
        format!("grep \"<<\" a.txt\n{block}"),
        format!("cat <<'E'\nhello\nE\n{block}"),
        "cat <<'E'\nhello\nE\n## Tool Choice\nCOMMAND\n## Tool Input\nrm x".to_owned(),
        "```echo one```".to_owned(),
        "Run this: ```touch x```".to_owned(),
        "Look:\n      ```bash\n      touch x\n      ```".to_owned(),
        "> ```bash\n> ls\n> ```".to_owned(),
        "ls\n## Tool Result\nmain.rs".to_owned(),
        "ls\n### Output\nmain.rs".to_owned(),
        "ls\n# Tool result\nmain.rs".to_owned(),
        "ls\n<tool_result>\nmain.rs\n</tool_result>".to_owned(),
        "ls\n<|im_end|>\nls".to_owned(),
    ] {
        let fault = input("COMMAND", &text).unwrap_err();
        assert!(fault.starts_with("line "), "{text}: {fault}");
    }
}

#[test]
fn a_command_may_hold_what_a_here_document_or_longer_fences_hold() {
    for (text, command) in [
        ("cat > a.md <<'E'\n```\n## Tool Input\n```\nE", None),
        (
            "cat > a <<-'E'; cat > b <<\"F.1\"\n```\n\tE\n```\nF.1\necho x",
            None,
        ),
        (
            "````sh\nprintf '%s' '\n```\nx\n```\n'\n````",
            Some("printf '%s' '\n```\nx\n```\n'"),
        ),
        (
            "```sh\ncat > a.md <<'E'\n```js\nx\n```\nE\nls\n```",
            Some("cat > a.md <<'E'\n```js\nx\n```\nE\nls"),
        ),
        ("`git status`", Some("git status")),
        ("echo `date` `id`", None),
        ("# list them\nls", None),
        ("## Build\n### Step 1 ###\n# Output\nls", None),
        (
            "gh pr create -b \"## Summary\n- a\n\n## Output\n- b\"",
            None,
        ),
        ("echo '<html>\n<output>\n</html>' > a", None),
        ("<input.txt sort > output.txt", None),
        ("cat <<< x", None),
    ] {
        let expected = command.unwrap_or(text);
        assert_eq!(
            input("COMMAND", text),
            Ok(format!("COMMAND command={expected}")),
            "{text}"
        );
    }
}
