//! The model's tools, and the results that it receives.

use serde_json::{Value, json};

use crate::support::anthropic::{Anthropic, Reply, call, error, last_said, nothing, results, say};
use crate::support::chat::ChatProject;
use crate::support::screen::{CTRL_D, Screen};

/// Runs one tool on these files; returns the result sent to the model.
fn used(files: &[(&str, &str)], tool: &str, input: Value) -> (ChatProject, String, bool) {
    let (chat, server) = ChatProject::scripted([call(tool, input), say("ok")]);
    let chat = files
        .iter()
        .fold(chat, |chat, (path, content)| chat.with_file(path, content));
    chat.let_work("go").exits(0);
    let (text, failed) = results(&server, 1).remove(0);
    (chat, text, failed)
}

#[test]
fn every_tool_is_described_once_with_a_schema() {
    let (chat, server) = ChatProject::scripted([say("ok")]);
    chat.ask("hi").exits(0);
    let tools = server.messages()[0]["tools"].clone();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    for name in [
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "execute_command",
        "search_project",
        "replace_in_files",
        "delete_file",
        "update_todos",
        "spawn_agent",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let schema = |name: &str| {
        let tools = tools.as_array().unwrap().iter();
        let mut tools = tools.filter(|tool| tool["name"] == name);
        tools.next().unwrap()["input_schema"].clone()
    };
    let edit = schema("edit_file");
    assert_eq!(
        edit["required"],
        json!(["path", "old_string", "new_string"])
    );
    assert_eq!(edit["properties"]["replace_all"]["type"], "boolean");
    assert_eq!(
        schema("read_file")["properties"]["limit"]["type"],
        "integer"
    );
}

#[test]
fn files_are_read_written_edited_and_deleted() {
    let text = "one\ntwo\nthree\ntwo\n";
    let (_, told, failed) = used(&[("a.txt", text)], "read_file", json!({"path": "a.txt"}));
    assert!(!failed && told.contains("three"), "{told}");
    let input = json!({"path": "a.txt", "offset": 2, "limit": 1});
    let (_, told, _) = used(&[("a.txt", text)], "read_file", input);
    assert!(told.contains("two") && !told.contains("three"), "{told}");
    let (_, told, failed) = used(&[], "read_file", json!({"path": "none.txt"}));
    assert!(failed && told.contains("none.txt"), "{told}");

    let input = json!({"path": "deep/new.txt", "content": "new\n"});
    let (chat, _, failed) = used(&[], "write_file", input);
    assert!(!failed);
    assert_eq!(chat.project.read("deep/new.txt"), "new\n");

    let edit = |old: &str, new: &str, all: bool| {
        let input =
            json!({"path": "a.txt", "old_string": old, "new_string": new, "replace_all": all});
        let (chat, told, failed) = used(&[("a.txt", text)], "edit_file", input);
        (chat.project.read("a.txt"), told, failed)
    };
    let (content, _, failed) = edit("three", "3", false);
    assert!(!failed);
    assert_eq!(content, "one\ntwo\n3\ntwo\n");
    let (content, told, failed) = edit("two", "2", false);
    assert!(failed && told.contains('2') && told.contains('4'), "{told}");
    assert_eq!(content, text);
    let (content, _, failed) = edit("two", "2", true);
    assert!(!failed);
    assert_eq!(content, "one\n2\nthree\n2\n");
    for (old, new) in [("four", "4"), ("", "x"), ("one", "one")] {
        let (content, _, failed) = edit(old, new, false);
        assert!(failed && content == text, "{old:?}");
    }

    let (chat, _, failed) = used(&[("a.txt", text)], "delete_file", json!({"path": "a.txt"}));
    assert!(!failed && !chat.project.path("a.txt").exists());
    let (_, told, failed) = used(&[], "delete_file", json!({"path": "none.txt"}));
    assert!(failed && told.contains("none.txt"), "{told}");
}

#[test]
fn the_project_is_listed_searched_and_replaced_in() {
    let files = [
        ("src/a.rs", "fn needle() {}\n"),
        ("src/b.rs", "needle();\nneedle();\n"),
        ("target/c.rs", "needle();\n"),
    ];
    let (_, told, _) = used(&files, "list_files", json!({"pattern": "src/*.rs"}));
    assert!(told.contains("a.rs") && told.contains("b.rs"), "{told}");
    let (_, told, _) = used(&files, "list_files", json!({}));
    assert!(told.contains("src") && !told.contains("c.rs"), "{told}");
    let (_, told, failed) = used(&files, "search_project", json!({"pattern": "need.e\\("}));
    assert!(
        !failed && told.contains("src/a.rs") && !told.contains("target/c.rs"),
        "{told}"
    );
    let (_, told, failed) = used(&files, "search_project", json!({"pattern": "need(le"}));
    assert!(failed, "{told}");
    let input = json!({"pattern": "needle", "replacement": "thread", "path": "src"});
    let (chat, told, failed) = used(&files, "replace_in_files", input);
    assert!(!failed, "{told}");
    assert_eq!(chat.project.read("src/b.rs"), "thread();\nthread();\n");
    assert_eq!(chat.project.read("target/c.rs"), "needle();\n");
}

#[test]
fn commands_are_run_with_their_output_and_exit_code_and_without_keys() {
    let input = json!({"command": "echo out; echo err >&2; exit 3"});
    let (_, told, _) = used(&[], "execute_command", input);
    for part in ["out", "err", "3"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let (_, told, _) = used(&[], "execute_command", json!({"command": "env"}));
    assert!(
        !told.contains("ANTHROPIC_API_KEY") && told.contains("PATH="),
        "{told}"
    );
    let input = json!({"command": "cat", "timeout_seconds": 5});
    let (_, _, failed) = used(&[], "execute_command", input);
    assert!(!failed, "its standard input is empty");
    let input = json!({"command": "echo x", "timeout_seconds": -1});
    let (_, told, failed) = used(&[], "execute_command", input);
    assert!(failed && told.contains("timeout_seconds"), "{told}");
}

#[test]
fn todos_are_replaced_whole_and_one_at_a_time_is_in_progress() {
    let todo = |content: &str, status: &str| json!({"content": content, "status": status, "activeForm": "Doing"});
    let server = Anthropic::start([
        call(
            "update_todos",
            json!({"todos": [todo("a", "in_progress"), todo("b", "in_progress")]}),
        ),
        call(
            "update_todos",
            json!({"todos": [todo("a", "completed"), todo("b", "in_progress")]}),
        ),
        say("ok"),
    ]);
    let chat = ChatProject::new(&server);
    chat.ask("go").exits(0);
    let (told, failed) = results(&server, 1).remove(0);
    assert!(
        failed && told.contains("Complete current task first"),
        "{told}"
    );
    assert!(!results(&server, 2)[0].1);
    let todos = chat.session().to_string();
    assert!(
        todos.contains("in_progress") && todos.contains("completed"),
        "{todos}"
    );
    // The initial empty list causes a reminder.
    let first = server.messages()[0]["messages"].to_string();
    assert!(
        first.contains("<system-reminder>") && first.contains("todo"),
        "{first}"
    );
}

#[test]
fn a_helper_knows_its_prompt_alone_and_starts_no_other() {
    let (chat, server) = ChatProject::scripted([
        call(
            "spawn_agent",
            json!({"description": "Counts files", "prompt": "COUNT THEM"}),
        ),
        call("list_files", json!({})),
        say("There are 7."),
        say("Seven."),
    ]);
    let run = chat.let_work("SECRET WISH").exits(0);
    assert_eq!(run.stdout, "Seven.\n");
    let helper = &server.messages()[1];
    let sent = helper["messages"].to_string();
    assert!(
        sent.contains("COUNT THEM") && !sent.contains("SECRET WISH"),
        "{sent}"
    );
    assert!(!helper["tools"].to_string().contains("spawn_agent"));
    assert!(results(&server, 3)[0].0.contains("There are 7."));
}

#[test]
fn what_is_done_after_a_helpers_work_is_recorded_as_the_callers() {
    let (chat, _server) = ChatProject::scripted([
        nothing()
            .call("write_file", json!({"path": "a.txt", "content": "1\n"}))
            .call("execute_command", json!({"command": "echo before"}))
            .call(
                "spawn_agent",
                json!({"description": "Looks", "prompt": "LOOK"}),
            )
            .call("execute_command", json!({"command": "echo behind"}))
            .call("delete_file", json!({"path": "a.txt"})),
        call("list_files", json!({})),
        say("There are 7."),
        say("Seven."),
    ]);
    let run = chat.let_work("go").exits(0);
    let tools = |steps: &[Value]| -> Vec<Vec<String>> {
        let tools = steps.iter().map(|step| {
            let actions = step["tools"].as_array().into_iter().flatten();
            actions
                .map(|action| action["name"].as_str().unwrap().to_owned())
                .collect()
        });
        tools.collect()
    };
    let result = run.result();
    let recorded = tools(result["attempts"].as_array().unwrap());
    assert_eq!(
        recorded[0],
        [
            "write_file",
            "execute_command",
            "spawn_agent",
            "execute_command",
            "delete_file"
        ]
    );
    assert_eq!(recorded[1], ["list_files"]);
    assert!(recorded[2].is_empty());
    let told = chat.project.run(&["log", &run.folder]).exits(0).stdout;
    let (caller, helper) = told.split_once("Helper 2").unwrap();
    assert!(
        !caller.contains("list_files") && helper.contains("list_files"),
        "{told}"
    );
    assert!(told.contains("before") && told.contains("behind"), "{told}");
}

#[test]
fn a_helper_that_the_vendor_refuses_is_reported_and_the_work_continues() {
    let (chat, server) = ChatProject::scripted([
        nothing()
            .call("write_file", json!({"path": "n.txt", "content": "1\n"}))
            .call(
                "spawn_agent",
                json!({"description": "Looks", "prompt": "BAD"}),
            ),
        say("I will not say tha").stop("refusal"),
        say("Then without."),
        say("Yes."),
    ]);
    assert_eq!(chat.let_work("go").exits(0).stdout, "Then without.\n");
    let told = &results(&server, 2)[1];
    assert!(told.1 && told.0.contains("refus"), "{told:?}");
    chat.run(&["--resume", "-p", "done?"]).exits(0);
    assert!(last_said(&server, 3).contains("done?"));
    assert!(server.messages()[3].to_string().contains("n.txt"));
}

#[test]
fn a_helper_whose_request_the_vendor_does_not_take_is_reported_and_the_work_continues() {
    let (chat, server) = ChatProject::scripted([
        call(
            "spawn_agent",
            json!({"description": "Looks", "prompt": "BAD"}),
        ),
        error(400, "invalid_request_error", "Could not process it"),
        say("Then without."),
    ]);
    assert_eq!(chat.ask("go").exits(0).stdout, "Then without.\n");
    let told = &results(&server, 2)[0];
    assert!(
        told.1 && told.0.contains("Could not process it"),
        "{told:?}"
    );
}

#[test]
fn a_step_is_recorded_with_all_that_its_calls_have_changed() {
    let write = |reply: Reply, path: &str| {
        reply.call("write_file", json!({"path": path, "content": "1\n"}))
    };
    let reply = ["b", "c", "a"].into_iter().fold(nothing(), write);
    let reply = reply.call("delete_file", json!({"path": "c"}));
    let (chat, _server) = ChatProject::scripted([reply, say("ok")]);
    let run = chat.let_work("go").exits(0);
    let edits = &run.result()["attempts"][0]["edits"];
    assert_eq!(*edits, json!({"written": ["a", "b"], "removed": ["c"]}));
}

#[test]
fn all_calls_of_a_reply_are_carried_out_in_their_order() {
    let (chat, server) = ChatProject::scripted([
        nothing()
            .call("write_file", json!({"path": "n.txt", "content": "1\n"}))
            .call(
                "edit_file",
                json!({"path": "n.txt", "old_string": "1", "new_string": "2"}),
            )
            .call("read_file", json!({"path": "n.txt"})),
        say("ok"),
    ]);
    chat.let_work("go").exits(0);
    let results = results(&server, 1);
    assert!(
        results[2].0.contains('2') && results.iter().all(|(_, failed)| !failed),
        "{results:?}"
    );
}

#[test]
fn changes_of_a_request_are_reverted() {
    let (chat, _server) = ChatProject::scripted([
        nothing()
            .call(
                "edit_file",
                json!({"path": "a.txt", "old_string": "old", "new_string": "new"}),
            )
            .call("write_file", json!({"path": "b.txt", "content": "b\n"}))
            .call("delete_file", json!({"path": "c.txt"})),
        say("ok"),
    ]);
    let chat = chat.with_file("a.txt", "old\n").with_file("c.txt", "c\n");
    let before = chat.project.tree();
    let run = chat.let_work("go").exits(0);
    assert_eq!(chat.project.read("a.txt"), "new\n");
    chat.project.run(&["undo", &run.folder]).exits(0);
    let mut after = chat.project.tree();
    after.retain(|path, _| before.contains_key(path));
    assert_eq!(chat.project.read("a.txt"), "old\n");
    assert_eq!(chat.project.read("c.txt"), "c\n");
    assert!(!chat.project.path("b.txt").exists());
    let story = chat.project.run(&["log", &run.folder]).exits(0).stdout;
    assert!(story.contains("a.txt"), "{story}");
}

#[test]
fn a_run_is_replayed_without_a_server() {
    let (chat, server) = ChatProject::scripted([thinking_and_writing(), say("Written.")]);
    let run = chat.let_work("write it").exits(0);
    std::fs::remove_file(chat.project.path("r.txt")).unwrap();
    let replay = chat
        .run(&["--auto-pilot", "--replay", &run.folder])
        .exits(0);
    assert_eq!(replay.stdout, "Written.\n");
    // A mode given on the command line holds there, too.
    std::fs::remove_file(chat.project.path("r.txt")).unwrap();
    chat.run(&["--mode", "planning", "--replay", &run.folder]);
    assert!(!chat.project.path("r.txt").exists());
    chat.run(&["--replay", &run.folder]).exits(0);
    assert_eq!(chat.project.read("r.txt"), "r\n");
    assert_eq!(server.messages().len(), 2);
}

#[test]
fn a_recorded_yes_is_not_an_answer_to_another_question() {
    let edit = json!({"path": "a.txt", "old_string": "one", "new_string": "two"});
    let (chat, _server) = ChatProject::scripted([
        call("edit_file", edit),
        call("execute_command", json!({"command": "rm precious"})),
        say("Kept."),
    ]);
    let chat = chat.with_file("a.txt", "one\n").with_file("precious", "x");
    let Some(mut screen) = Screen::open(&chat.command(&[]), 100, 30) else {
        return;
    };
    screen.shows("Mode").types("go\r");
    screen.shows("edit_file").shows("y yes").rests().types("a");
    screen
        .shows("rm precious")
        .shows("y yes")
        .rests()
        .types("n");
    screen.shows("Kept.").types(CTRL_D);
    screen.ends();
    // The edit is now allowed permanently, and the scripted yes is not used.
    let chat = chat.with_file("a.txt", "one\n");
    let recorded = chat.project.runs().remove(0);
    let run = chat.run(&["--replay", recorded.to_str().unwrap()]);
    let run = run.exits(0);
    assert_eq!(chat.project.read("a.txt"), "two\n");
    assert!(chat.project.path("precious").exists(), "{}", run.stderr);
}

fn thinking_and_writing() -> crate::support::anthropic::Reply {
    crate::support::anthropic::thinking("hm")
        .call("write_file", json!({"path": "r.txt", "content": "r\n"}))
}
