//! The parsing of replies, and the messages to the model about unreadable ones.

use serde_json::{Value, json};

use crate::support::agent::{AgentProject, PASS, done, last_told, reply, told, write};

#[test]
fn a_request_is_worked_on_until_the_audit_passes() {
    let (agent, server) = AgentProject::scripted(&[
        write("hello.txt", "hello\n"),
        reply("COMMAND", "```bash\ncat hello.txt\n```"),
        done(),
        PASS.to_owned(),
    ]);
    let run = agent.work("Write hello.txt").exits(0);
    assert_eq!(agent.project.read("hello.txt"), "hello\n");
    assert!(run.stdout.contains("It is done."), "{}", run.stdout);
    let first = server.requests()[0].json();
    assert_eq!(first["model"], "test-model");
    assert_eq!(first["stream"], true);
    assert_eq!(first["messages"][0]["role"], "system");
    assert!(told(&server, 0).contains("<user_request>\nWrite hello.txt\n</user_request>"));
    // The command's result is sent back.
    assert!(
        last_told(&server, 2).contains("exit code: 0\nhello\n"),
        "{}",
        last_told(&server, 2)
    );
    let session = agent.session();
    assert_eq!(session["state"], "complete");
    assert_eq!(session["originalPrompt"], "Write hello.txt");
    assert_eq!(
        session["taskList"][0],
        json!({"status": "in-progress", "text": "The work"})
    );
    assert_eq!(
        session["history"][0],
        json!({"role": "user", "content": "Write hello.txt"})
    );
    assert!(session["totalTokens"].as_u64().unwrap() >= 600);
}

#[test]
fn the_last_response_counts_and_nothing_else_is_remembered() {
    let drafts = format!(
        "<think>\n{}\n</think>\n{}\nWait, better:\n\n{}",
        write("think.txt", "x\n"),
        write("draft.txt", "x\n"),
        write("final.txt", "x\n"),
    );
    let (agent, server) = AgentProject::scripted(&[drafts, done(), PASS.to_owned()]);
    agent.work("go").exits(0);
    assert!(agent.project.path("final.txt").exists());
    assert!(!agent.project.path("draft.txt").exists());
    assert!(!agent.project.path("think.txt").exists());
    let second = told(&server, 1);
    assert!(second.contains("final.txt"));
    assert!(
        !second.contains("draft.txt") && !second.contains("Wait, better"),
        "{second}"
    );
    let kept = std::fs::read_to_string(agent.session_path()).unwrap();
    assert!(
        !kept.contains("draft.txt") && !kept.contains("secret thoughts"),
        "{kept}"
    );
    // Streamed thoughts are not stored in the run's folder either.
    for run in agent.project.runs() {
        for entry in std::fs::read_dir(run).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
            assert!(!text.contains("secret thoughts"));
        }
    }
}

#[test]
fn last_of_several_responses_is_run_and_the_model_is_informed() {
    let (agent, server) = AgentProject::scripted(&[
        format!("{}\n{}", reply("READ_FILE", "\"a\""), write("b.txt", "b\n")),
        format!("{}\n{}", reply("READ_FILE", "\"a\""), done()),
        "Overall: FAIL\nFeedback: no".to_owned(),
        done(),
        PASS.to_owned(),
    ]);
    agent.work("go").exits(0);
    assert_eq!(agent.project.read("b.txt"), "b\n");
    let note = "<system_note>\nYour reply had 2 responses. Only the last was carried out: nothing was done of \
                what stood above it. Write one response in a reply.\n</system_note>";
    for (request, result) in [(1, "b.txt"), (3, "Audit: FAIL")] {
        let last = last_told(&server, request);
        assert!(last.contains(note) && last.contains(result), "{last}");
    }
}

#[test]
fn a_response_that_may_be_part_of_another_is_not_carried_out() {
    let command = |name: &str| reply("COMMAND", &format!("echo {name} > {name}.txt"));
    let wrapped = |name: &str| format!("```markdown\n{}\n```\n", command(name));
    let shown = |name: &str| format!("\"doc.md\"\n\n```md\n# Doc\n```\n{}\n```\n", command(name));
    let replies = [
        format!("{}\n\n{}", command("draft"), wrapped("first")),
        format!("{}\n\n{}", done(), wrapped("second")),
        format!("{}\n\n{}", command("draft"), command("third")),
        reply("WRITE_FILE", &shown("fourth")),
        format!("{}\n\n{}", write("draft.txt", "A\n"), command("fifth")),
    ];
    let refused = replies.len();
    let last = [wrapped("last"), done(), PASS.to_owned()];
    let (agent, server) = AgentProject::scripted(&[&replies[..], &last].concat());
    agent.work("go").exits(0);
    for reply in 1..=refused {
        let told = last_told(&server, reply);
        assert!(told.contains("it cannot be told whether"), "{told}");
        assert!(told.contains("between longer fences (````)"), "{told}");
    }
    let texts =
        ["draft", "first", "second", "third", "fourth", "fifth"].map(|name| format!("{name}.txt"));
    for name in texts.iter().map(String::as_str).chain(["doc.md"]) {
        assert!(!agent.project.path(name).exists(), "{name}");
    }
    assert_eq!(agent.project.read("last.txt"), "last\n");
}

#[test]
fn fences_in_a_file_are_a_part_of_it_between_longer_ones() {
    let content = "# Doc\n\n```sh\necho hi\n```\n\n# Agent Response\n\n## Tool Choice\nDONE\n";
    let input = |fence: &str| format!("\"doc.md\"\n\n{fence}md\n{content}{fence}");
    let (agent, server) = AgentProject::scripted(&[
        reply("WRITE_FILE", &input("```")),
        reply(
            "WRITE_FILE",
            "\"doc.md\"\n\n```md\n# Doc\n```\n\nThat is all.",
        ),
        reply("WRITE_FILE", &input("````")),
        done(),
        PASS.to_owned(),
    ]);
    agent.work("go").exits(0);
    assert_eq!(agent.project.read("doc.md"), content);
    assert!(
        last_told(&server, 1).contains("content that has such lines goes between longer fences")
    );
    assert!(last_told(&server, 2).contains("nothing is expected after the code block"));
}

#[test]
fn malformed_replies_are_returned_with_a_line_and_later_forgotten() {
    let (agent, server) = AgentProject::scripted(&[
        "I will just chat.".to_owned(),
        reply("DELETE_EVERYTHING", "now"),
        "# Agent Response\n\n## Thoughts\nx\n\n## Tool Choice\nWRITE_FILE\n\n## Tool Input\n\"a\"\n\n```\ncut off".to_owned(),
        done(),
        PASS.to_owned(),
    ]);
    agent.work("go").exits(0);
    assert!(
        last_told(&server, 1).contains("# Agent Response"),
        "{}",
        last_told(&server, 1)
    );
    let second = last_told(&server, 2);
    assert!(
        second.contains("DELETE_EVERYTHING") && second.contains("WRITE_FILE"),
        "{second}"
    );
    let third = last_told(&server, 3);
    assert!(third.contains("line 12"), "{third}");
    assert!(!agent.project.path("a").exists());
    let kept = std::fs::read_to_string(agent.session_path()).unwrap();
    assert!(!kept.contains("DELETE_EVERYTHING"), "{kept}");
}

#[test]
fn ten_replies_in_a_row_that_are_not_understood_end_an_automated_run_and_three_an_interactive_one()
{
    let (agent, server) = AgentProject::scripted(&["no"; 20]);
    let run = agent
        .work("go")
        .exits(5)
        .says(&["10 failures in a row", "hint:"]);
    assert_eq!(run.result()["exit"]["name"], "reply-rejected");
    assert_eq!(server.requests().len(), 10);

    let (agent, server) = AgentProject::scripted(&["no"; 20]);
    agent.typed(&[], "go\n").says(&["3 failures in a row"]);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn several_calls_of_one_reply_that_fail_are_one_failure() {
    let missing = |nth: usize| json!({"tool": "READ_FILE", "input": {"path": format!("no-{nth}")}});
    let calls: Vec<Value> = (0..4).map(missing).collect();
    let looks = json!({"thoughts": "Hm.", "calls": calls}).to_string();
    let [done, pass] = ["It is done.", PASS].map(|words| json!({"answer": words}).to_string());
    let (agent, server) = AgentProject::scripted(&[&looks, &looks, &done, &pass]);
    let entry = r#"{"models": {"test-model": {"provider": "openai", "tools": "json"}}}"#;
    let agent = agent.with_file("agent-config/models.json", entry);
    agent.typed(&[], "go\n").exits(0);
    let told = last_told(&server, 1);
    assert!(told.contains("no-0") && told.contains("no-3"), "{told}");
}

#[test]
fn tools_that_fail_again_and_again_end_the_run() {
    let (agent, server) = AgentProject::scripted(&vec![reply("READ_FILE", "\"missing.txt\""); 20]);
    let run = agent
        .work("go")
        .exits(1)
        .says(&["missing.txt", "10 failures"]);
    assert_eq!(run.result()["exit"]["name"], "tools-failed");
    assert_eq!(server.requests().len(), 10);
}

#[test]
fn examples_are_real_ones_and_limits_are_reported() {
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    let agent = agent.configured(&json!({"commandTimeout": 45, "maxLoops": 77}));
    agent.work("go").exits(0);
    for nth in 0..2 {
        let request = server.requests()[nth].json();
        let told = request["messages"][0]["content"].as_str().unwrap();
        let (template, examples) = told.split_once("## Tools\n").unwrap();
        // The template is the specification's.
        assert!(template.contains("[Agent's observations and reasoning about the current state]"));
        assert!(
            examples.contains("## Tool Input\n\"src/**/*.ts\"\n"),
            "{examples}"
        );
        assert!(
            examples.contains("## Tool Input\n\"src/index.ts\"\n\n10-80\n"),
            "{examples}"
        );
        for line in examples.lines() {
            let is_in_brackets = line.trim_matches('"').starts_with('[');
            assert!(!is_in_brackets, "{line}");
        }
        assert!(
            examples.contains("At most 32 KiB are shown at once"),
            "{examples}"
        );
    }
    let told = told(&server, 0);
    for limit in [
        "- A command goes on in the background after 45 s.\n",
        "- This task has at most 77 replies",
        "10 failures in a row",
    ] {
        assert!(told.contains(limit), "{told}");
    }
}
