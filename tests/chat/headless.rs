//! One request without a terminal: only the answer on standard output, and an exit code for the outcome.

use serde_json::{Value, json};

use crate::support::anthropic::{
    Anthropic, MODELS, call, error, last_said, nothing, plain, results, said, say, status,
    thinking, undescribed,
};
use crate::support::chat::ChatProject;

#[test]
fn the_answer_stands_alone_on_stdout() {
    let (chat, server) = ChatProject::scripted([thinking("Hm.").say("It is *a* project.\n")]);
    let run = chat.ask("What is it?").exits(0);
    assert_eq!(run.stdout, "It is *a* project.\n");
    assert!(run.stderr.contains("logs/") && run.folder.ends_with("-chat"));
    assert!(last_said(&server, 0).contains("What is it?"));
    let request = &server.requests("POST")[0];
    assert_eq!(request.header("anthropic-version"), Some("2026-10-21"));
    let body = request.json();
    assert_eq!(body["model"], "claude-sonnet-5-5");
    assert_eq!(
        body["thinking"],
        json!({"type": "adaptive", "display": "summarized"})
    );
    assert_eq!(run.result()["workflow"], "chat");
    // Standard input works the same way.
    server.then([say("Yes.")]);
    let run = chat.typed(&["-p", "-"], "Is it?\n").exits(0);
    assert_eq!(run.stdout, "Yes.\n");
    assert!(last_said(&server, 1).contains("Is it?"));
}

#[test]
fn a_picture_that_the_request_names_is_attached() {
    let (chat, server) = ChatProject::scripted([say("A dot.")]);
    let chat = chat
        .with_file("dot.png", b"\x89PNG\r\n\x1a\nrest")
        .with_file("text.png", "no picture");
    chat.ask("look at @dot.png").exits(0);
    let asked = server.messages();
    let content = asked[0]["messages"][0]["content"].as_array().unwrap();
    let picture = content.iter().find(|block| block["type"] == "image");
    assert_eq!(picture.unwrap()["source"]["media_type"], "image/png");
    assert!(last_said(&server, 0).contains("look at [Image #1]"));
    for (request, problem) in [
        ("look at @text.png", "it is no PNG"),
        ("look at @none.png", "none.png"),
    ] {
        let run = chat.run(&["-p", request]);
        assert_eq!(run.code, 2);
        assert!(run.stderr.contains(problem), "{}", run.stderr);
    }
}

#[test]
fn words_of_a_reply_that_calls_tools_are_not_the_answer() {
    let (chat, server) = ChatProject::scripted([
        say("I look.").call("list_files", json!({})),
        say("There is `src`."),
    ]);
    let run = chat.ask("What is here?").exits(0);
    assert_eq!(run.stdout, "There is `src`.\n");
    // All calls use one connection.
    assert_eq!(server.connections(), 1);
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let (chat, _server) = ChatProject::scripted([say("There is `src`.")]);
    let mut command = chat.command(&["-p", "What is here?"]);
    let full = std::fs::File::options().write(true).open("/dev/full");
    let status = command.stdout(full.unwrap()).status().unwrap();
    assert_eq!(status.code(), Some(6));
}

#[test]
fn in_json_the_answer_is_the_agents_last_words() {
    let (chat, _server) = ChatProject::scripted([say("There is `src`.")]);
    let run = chat.run(&["-p", "What is here?", "--output-format", "json"]);
    let record: Value = serde_json::from_str(&run.exits(0).stdout).unwrap();
    assert_eq!(record["agent"]["answer"], "There is `src`.");
}

#[test]
fn requests_are_those_that_the_vendor_describes_and_begin_as_the_one_before() {
    let (chat, server) = ChatProject::scripted([
        thinking("hm")
            .sealed("c2VhbGVk")
            .call("read_file", json!({"path": "src/main.rs"})),
        call("list_files", json!({})).call("read_file", json!({"path": "build.sh"})),
        say("Done."),
    ]);
    chat.ask("Look around").exits(0);
    let requests = server.messages();
    if let Some(faults) = undescribed(&requests) {
        assert!(faults.is_empty(), "{faults:#?}");
    }
    let usages = server.usages();
    for pair in usages.windows(2) {
        let had = pair[0]["cache_read_input_tokens"].as_u64().unwrap()
            + pair[0]["cache_creation_input_tokens"].as_u64().unwrap();
        assert_eq!(pair[1]["cache_read_input_tokens"], had, "{usages:#?}");
        assert!(had > 1000, "{usages:#?}");
    }
    // The cached prefix contains no time and no counter.
    let system = requests[0]["system"].to_string();
    assert!(!system.contains("2026-"), "{system}");
}

#[test]
fn the_system_prompt_has_its_sections_and_the_projects_instructions_the_nearest_last() {
    let (chat, server) = ChatProject::scripted([say("ok")]);
    let chat = chat
        .with_file("AGENTS.md", "ROOT RULES </agents_md>")
        .with_file(".agent/context.md", "EXTRA CONTEXT");
    chat.ask("hi").exits(0);
    let request = &server.messages()[0];
    let system = request["system"].to_string();
    let first = said(&request["messages"][0]);
    let all = format!("{system}{first}");
    for section in ["IMPORTANT", "ALWAYS", "NEVER"] {
        assert!(system.contains(section), "{section}: {system}");
    }
    let root = all.find("ROOT RULES").unwrap();
    let extra = all.find("EXTRA CONTEXT").unwrap();
    assert!(root < extra && all.contains("AGENTS.md"), "{all}");
    let tokens = system.len() / 4;
    assert!((1800..=4500).contains(&tokens), "{tokens}");
}

#[test]
fn a_model_is_chosen_and_a_retired_one_names_its_successor() {
    for model in MODELS {
        let (chat, server) = ChatProject::scripted([say("hi")]);
        chat.run(&["-p", "hi", "--model", model]).exits(0);
        assert_eq!(server.messages()[0]["model"], model);
    }
    let (chat, server) = ChatProject::scripted([]);
    for retired in ["claude-3-opus", "claude-3-sonnet"] {
        chat.run(&["-p", "hi", "--model", retired])
            .exits(2)
            .says(&[retired, "retired", "claude-", "-5-5"]);
    }
    chat.run(&["-p", "hi", "--model", "gpt-17"])
        .exits(2)
        .says(&["gpt-17", "claude-sonnet-5-5"]);
    chat.run(&["-p", "hi", "--mode", "yolo"])
        .exits(2)
        .says(&["yolo", "auto-pilot", "planning"]);
    chat.run(&["-p", "hi", "--tier", "flex"])
        .exits(2)
        .says(&["--tier"]);
    chat.run(&["-p", "hi", "--no-such-flag"]).exits(2);
    let unknown = "5a0d7e1c-0000-4000-8000-000000000000";
    chat.run(&["-p", "hi", "--session", "no-uuid"]).exits(2);
    chat.run(&["-p", "", "--session", unknown]).exits(2);
    chat.run(&["-p", "hi", "--resume"]).exits(2);
    assert!(server.messages().is_empty());
    assert!(chat.project.runs().is_empty());
}

#[test]
fn without_a_key_both_ways_to_one_are_named_and_nothing_is_sent() {
    let (chat, server) = ChatProject::scripted([]);
    chat.without_key()
        .ask("hi")
        .exits(3)
        .says(&["ANTHROPIC_API_KEY", "code-commit chat login"]);
    assert!(server.requests("").is_empty());
}

#[test]
fn a_key_that_is_refused_is_reported_and_not_tried_again() {
    let (chat, server) = ChatProject::scripted([]);
    let chat = chat.with_key("sk-ant-api03-Wrong_0123456789-abcdefghij");
    let run = chat.ask("hi").exits(4).says(&["401", "x-api-key"]);
    assert!(!run.stderr.contains("Wrong_0123456789"), "{}", run.stderr);
    assert_eq!(server.requests("POST").len(), 1);
}

#[test]
fn a_home_that_cannot_be_written_is_reported_and_nothing_is_sent() {
    let (chat, server) = ChatProject::scripted([say("Hello.")]);
    let chat = chat.with_variable("AGENT_HOME", "/proc/1/x");
    chat.ask("hi").exits(3).says(&[
        "`/proc/1/x/models.json` cannot be made",
        "set `AGENT_HOME` to one that is",
    ]);
    assert!(server.requests("").is_empty());
}

#[test]
fn broken_settings_are_reported_with_their_place_and_nothing_is_sent() {
    let good = r#"{"version": 1, "active": "a", "accounts": [{"name": "a", "api_key": "sk-ant-api03-x"}]}"#;
    for (file, content, place) in [
        ("auth.json", "{\"version\": 1,\n \"active\": }", "line 2"),
        (
            "auth.json",
            &good.replace("\"active\": \"a\"", "\"active\": \"b\"")[..],
            "active",
        ),
        ("auth.json", &good.replace("1,", "7,"), "`version`"),
        (
            "settings.json",
            "{\n\n\"compactThreshold\": 80,,}",
            "line 3",
        ),
        ("settings.json", r#"{"compactThreshold": 95}"#, "60"),
        (
            "settings.json",
            r#"{"compactThreshhold": 70}"#,
            "compactThreshold",
        ),
        ("models.json", "{\"models\": [", "line 1"),
    ] {
        let (chat, server) = ChatProject::scripted([]);
        let chat = chat.without_key().with_setting(file, content);
        chat.ask("hi").exits(3).says(&[file, place]);
        assert!(server.requests("").is_empty());
    }
    for (content, place) in [
        ("{\"version\": 1,\n\"permissions\": [}", "line 2"),
        (
            r#"{"version": 1, "permissions": [{"tool": "read_file", "action": "maybe"}]}"#,
            "`action`",
        ),
        (
            r#"{"version": 1, "permissions": {"read_file": "always"}}"#,
            "line 1",
        ),
        ("", "line 1"),
    ] {
        let (chat, server) = ChatProject::scripted([]);
        let chat = chat.with_file(".agent/permissions.json", content);
        chat.ask("hi").exits(3).says(&["permissions.json", place]);
        assert!(server.requests("").is_empty());
    }
}

#[test]
fn transient_errors_are_retried_and_shown_once() {
    let (chat, server) = ChatProject::scripted([
        status(529),
        say("Half an ans").fails("overloaded_error"),
        say("Half an ans").fails("api_error"),
        say("The answer."),
    ]);
    let run = chat.ask("hi").exits(0);
    assert_eq!(run.stdout, "The answer.\n");
    assert_eq!(server.left(), 0);
    let (chat, server) = ChatProject::scripted([
        status(429),
        status(500),
        say("cut").cut_after(300),
        say("The answer."),
    ]);
    assert_eq!(chat.ask("hi").exits(0).stdout, "The answer.\n");
    assert_eq!(server.left(), 0);
}

#[test]
fn permanent_errors_are_reported_at_once_in_the_vendors_words() {
    for (reply, parts) in [
        (
            error(400, "invalid_request_error", "Your credit is too low."),
            &["400", "credit is too low"][..],
        ),
        (
            error(403, "permission_error", "No access."),
            &["403", "No access"],
        ),
        (
            say("x").fails("invalid_request_error"),
            &["invalid_request_error"],
        ),
        (
            plain(200, "text/html", "<html>A proxy's login</html>"),
            &["html"],
        ),
        (plain(200, "application/json", "{}"), &[]),
        (nothing(), &[]),
    ] {
        let (chat, server) = ChatProject::scripted([reply]);
        let run = chat.ask("hi").exits(4).says(parts);
        assert_eq!(run.stdout, "");
        // Possibly transient errors are retried; then the script ends.
        server.takes_faults();
    }
}

#[test]
fn a_refusal_is_reported_and_taken_out_of_the_history() {
    let (chat, server) = ChatProject::scripted([
        say("First."),
        say("I will not say tha").stop("refusal"),
        say("Third."),
    ]);
    chat.ask("one").exits(0);
    let run = chat
        .run(&["--resume", "-p", "two"])
        .exits(4)
        .says(&["refus"]);
    assert_eq!(run.stdout, "");
    chat.run(&["--resume", "-p", "three"]).exits(0);
    let sent = server.messages()[2]["messages"].to_string();
    assert!(sent.contains("one") && sent.contains("three"), "{sent}");
    assert!(!sent.contains("I will not say"), "{sent}");
}

#[test]
fn a_request_that_the_vendor_does_not_take_is_not_sent_again() {
    for reply in [
        error(400, "invalid_request_error", "Could not process image"),
        status(413),
    ] {
        let (chat, server) = ChatProject::scripted([say("First."), reply, say("Third.")]);
        server.lets_the_past_change();
        chat.ask("one").exits(0);
        chat.run(&["--resume", "-p", "THE SECOND"])
            .exits(4)
            .says(&["stays in the session only if some of it was done"]);
        chat.run(&["--resume", "-p", "three"]).exits(0);
        let sent = server.messages()[2]["messages"].to_string();
        assert!(sent.contains("one") && sent.contains("three"), "{sent}");
        assert!(!sent.contains("THE SECOND"), "{sent}");
    }
}

#[test]
fn effects_of_a_refused_request_are_reported() {
    let (chat, server) = ChatProject::scripted([
        nothing()
            .call("write_file", json!({"path": "n.txt", "content": "1\n"}))
            .call("execute_command", json!({"command": "touch made"})),
        say("I will not say tha").stop("refusal"),
        say("I see."),
    ]);
    chat.let_work("BAD WISH").exits(4).says(&["`/undo`"]);
    chat.run(&["--resume", "-p", "what now?"]).exits(0);
    let sent = server.messages()[2]["messages"].to_string();
    assert!(sent.contains("\\n- n.txt\\n- touch made\\n"), "{sent}");
    assert!(!sent.contains("BAD WISH"), "{sent}");
}

#[test]
fn no_call_of_a_reply_that_was_cut_short_is_carried_out() {
    let (chat, server) = ChatProject::scripted([
        say("I write.")
            .call("write_file", json!({"path": "cut.txt", "content": "half"}))
            .stop("max_tokens"),
        say("Never mind."),
    ]);
    let run = chat.let_work("write").exits(0);
    assert_eq!(run.stdout, "Never mind.\n");
    assert!(!chat.project.path("cut.txt").exists());
    let told = server.messages()[1]["messages"].to_string();
    assert!(told.contains("max_tokens"), "{told}");
    assert!(!told.contains("form that was described"), "{told}");
}

#[test]
fn a_prompt_that_does_not_fit_is_made_shorter_before_it_is_an_error() {
    // Text with more than one token per four characters.
    let dense = "a1".repeat(80_000);
    let models = json!({"models": {"claude-sonnet-5-5": {"provider": "anthropic", "contextWindow": 60000, "maxOutputTokens": 1000, "thinking": "adaptive"}},
        "selectionRules": {"default": "claude-sonnet-5-5"}});
    let input = json!({"path": "dense.txt", "content": dense});
    let server = Anthropic::start([call("write_file", input), say("Done.")]);
    server.lets_the_past_change();
    let chat = ChatProject::new(&server).with_setting("models.json", &models.to_string());
    assert_eq!(chat.let_work("write").exits(0).stdout, "Done.\n");
    assert!(server.requests("POST")[1].body.len() < 100_000);
    // Nothing can be left out of the request itself.
    chat.typed(&["-p", "-"], &dense)
        .exits(3)
        .says(&["`/compact`"]);
    assert_eq!(server.left(), 0);
    // The request is not in the session, so that the next one needs no truncation.
    server.then([say("Short.")]);
    chat.run(&["--resume", "-p", "shorter"]).exits(0);
    assert!(!server.messages()[2].to_string().contains("a1a1"));
}

#[test]
fn a_window_that_is_full_is_tried_again_with_less_in_it_once() {
    let full = || say("I").stop("model_context_window_exceeded");
    let read = || call("read_file", json!({"path": "long.txt"}));
    for (script, code) in [
        (vec![read(), full(), say("Done.")], 0),
        (vec![read(), full(), full()], 4),
    ] {
        let server = Anthropic::start(script);
        server.lets_the_past_change();
        let chat =
            ChatProject::new(&server).with_file("long.txt", "All work and no play.\n".repeat(100));
        let run = chat.ask("read").exits(code);
        if code != 0 {
            run.says(&["model_context_window_exceeded", "`/compact`"]);
        }
        assert_eq!(server.left(), 0);
    }
}

#[test]
fn a_pause_is_sent_back_as_it_is() {
    let (chat, server) = ChatProject::scripted([
        thinking("hm").say("Still at it,").stop("pause_turn"),
        say(" and there."),
    ]);
    let run = chat.ask("hi").exits(0);
    // The answer is everything that the model said.
    assert_eq!(run.stdout, "Still at it, and there.\n");
    assert_eq!(run.result()["agent"]["answer"], "Still at it, and there.");
    let sent = server.messages()[1]["messages"].clone();
    let [_, paused] = &sent.as_array().unwrap()[..] else {
        panic!("{sent:#}");
    };
    assert_eq!(paused["role"], "assistant", "{sent:#}");
    assert_eq!(paused["content"][1]["text"], "Still at it,");
}

#[test]
fn invalid_calls_are_answered_with_errors_that_name_the_field() {
    let (chat, server) = ChatProject::scripted([
        nothing()
            .call("read_file", json!({}))
            .call("read_file", json!({"path": 7}))
            .call("read_file", json!({"path": "src/main.rs", "offset": "x"}))
            .call("read_file", json!({"path": "a\u{0}b"}))
            .call("no_such_tool", json!({}))
            .call(
                "update_todos",
                json!({"todos": [{"content": "a", "status": "done", "activeForm": "b"}]}),
            ),
        say("Sorry."),
    ]);
    chat.ask("go").exits(0);
    let results = results(&server, 1);
    assert!(results.iter().all(|(_, failed)| *failed), "{results:#?}");
    for ((text, _), field) in
        results
            .iter()
            .zip(["path", "path", "offset", "path", "no_such_tool", "status"])
    {
        assert!(text.contains(field), "{field}: {text}");
    }
}

#[test]
fn input_that_is_not_json_harms_nothing() {
    let (chat, server) = ChatProject::scripted([
        say("hm").raw_call("read_file", "{\"path\": \"src/ma"),
        say("ok"),
        say("ok"),
    ]);
    let run = chat.ask("go");
    assert!(run.code == 0 || run.code == 4, "{}", run.stderr);
    server.assert_clean();
    let run = chat.run(&["--resume", "-p", "again"]).exits(0);
    assert_eq!(run.stdout, "ok\n");
}

#[test]
fn of_two_hundred_calls_a_hundred_are_carried_out_and_all_answered_in_their_order() {
    let mut many = nothing();
    for nth in 0..200 {
        many = many.call("read_file", json!({"path": format!("f{nth}.txt")}));
    }
    let (chat, server) = ChatProject::scripted([many, say("Read.")]);
    let chat = (0..200).fold(chat, |chat, nth| {
        chat.with_file(&format!("f{nth}.txt"), format!("content {nth}\n"))
    });
    chat.ask("read all").exits(0);
    let results = results(&server, 1);
    assert_eq!(results.len(), 200);
    for (nth, (text, failed)) in results.iter().enumerate() {
        let (expected, is_late) = match nth {
            100.. => ("at most 100 calls".to_owned(), true),
            _ => (format!("content {nth}\n"), false),
        };
        assert!(*failed == is_late && text.contains(&expected), "{text}");
    }
}

#[test]
fn a_reply_in_a_hundred_thousand_deltas_is_taken_whole() {
    let text = "All work and no play. ".repeat(4_600);
    let (chat, _server) = ChatProject::scripted([say(text.as_str()).in_many_deltas()]);
    let run = chat.ask("hi").exits(0);
    assert_eq!(run.stdout.trim_end(), text.trim_end());
}

#[test]
fn two_chats_in_one_project_do_not_harm_each_other() {
    let server = Anthropic::making(|request| {
        let told = request["messages"].to_string();
        let name = if told.contains("work on alpha") {
            "alpha"
        } else {
            "beta"
        };
        if request["messages"].as_array().unwrap().len() > 1 {
            return say(format!("{name} is done."));
        }
        let path = format!("{name}.txt");
        call(
            "write_file",
            json!({"path": path, "content": format!("{name}\n")}),
        )
    });
    let chat = ChatProject::new(&server);
    let children = ["work on alpha", "work on beta"]
        .map(|request| (request, chat.spawn(&["--auto-pilot", "-p", request])));
    for (request, child) in children {
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        // One of them works; the other either works too, or says who holds the project.
        let code = output.status.code().unwrap();
        assert!(
            code == 0 || (code == 3 && stderr.contains("project")),
            "{request}: {stderr}"
        );
        if code == 0 {
            let name = request.rsplit(' ').next().unwrap();
            assert_eq!(
                chat.project.read(&format!("{name}.txt")),
                format!("{name}\n")
            );
        }
    }
}

#[test]
fn screen_command_is_not_a_request_and_its_key_is_not_sent() {
    let secret = "sk-ant-api03-Secret_0123456789-abcdefghij";
    for (request, named) in [
        (format!("/login {secret}"), "code-commit chat login"),
        (format!(" /login\n{secret}"), "`/login`"),
        ("/logout".to_owned(), "code-commit chat logout"),
        ("/clear".to_owned(), "`/clear`"),
        (format!("!echo {secret}"), "`!`"),
        (format!("/nothing {secret}"), "`/nothing`"),
    ] {
        let (chat, server) = ChatProject::scripted([]);
        let run = chat.ask(&request).exits(2).says(&[named]);
        assert!(!run.stderr.contains("Secret_"), "{}", run.stderr);
        assert!(server.requests("").is_empty());
        assert!(chat.project.runs().is_empty() && chat.sessions().is_empty());
    }
}

#[test]
fn a_command_of_ones_own_is_carried_out_without_a_screen() {
    let chat = |server: &Anthropic| {
        ChatProject::new(server)
            .with_file("notes.txt", "THE NOTES\n")
            .with_file(".agent/commands/ok.md", "Review $1 by @notes.txt.\n")
            .with_file(
                ".agent/commands/run.md",
                "It says: !`echo by $((40 + 2))`\n",
            )
            .with_file(
                ".agent/commands/fly.md",
                "---\nmode: auto-pilot\n---\nDo it.\n",
            )
    };
    let server = Anthropic::start([say("Done."), say("Seen.")]);
    assert_eq!(chat(&server).ask("/ok alpha").exits(0).stdout, "Done.\n");
    let sent = last_said(&server, 0);
    assert!(
        sent.contains("Review alpha by") && sent.contains("THE NOTES"),
        "{sent}"
    );
    // Nobody is there to allow a command, or to turn off the questions.
    for (request, told) in [("/run", "`echo by $((40 + 2))`"), ("/fly", "`/fly`")] {
        let run = chat(&server).ask(request).exits(1).says(&[told]);
        assert_eq!(run.stdout, "");
    }
    assert_eq!(server.messages().len(), 1);
    chat(&server).let_work("/run").exits(0);
    let sent = last_said(&server, 1);
    assert!(
        sent.contains("It says:") && sent.contains("by 42"),
        "{sent}"
    );
}
