//! Limits that end a run before it is done.

use std::io::Write as _;
use std::process::Command;

use serde_json::json;

use crate::support::agent::{
    AgentProject, Endless, PASS, done, last_told, reply, server, streamed, told, write,
};
use crate::support::{Answer, Finished, ModelServer};

fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.unwrap().success());
}

#[test]
fn the_loop_limit_ends_a_run_by_its_own_name() {
    let (agent, server) = AgentProject::scripted(&vec![reply("LIST_DIRECTORY", "\".\""); 10]);
    let agent = agent.configured(&json!({"maxLoops": 4}));
    let run = agent.work("go").exits(1).says(&["loop limit", "hint:"]);
    assert_eq!(run.result()["exit"]["name"], "loop-limit");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_call_that_fails_is_tried_again_and_ends_the_run_with_4() {
    let failing = || Answer::error(500, &json!({"error": {"message": "down"}}));
    let server = ModelServer::start([
        Answer::new(503, &[("retry-after", "0")], "{}"),
        streamed(&done()),
        streamed(PASS),
    ]);
    AgentProject::new(&server)
        .work("go")
        .exits(0)
        .says(&["503"]);
    let server = ModelServer::start([
        Answer::error(401, &json!({"error": {"message": "who?"}})),
        failing(),
    ]);
    let agent = AgentProject::new(&server);
    agent.work("go").exits(4).says(&["401", "who?"]);
    assert_eq!(agent.session()["state"], "failed");
}

#[test]
fn a_limit_on_cost_needs_a_price_and_is_kept() {
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    agent
        .run(&["-p", "go", "--max-cost", "1"])
        .exits(3)
        .says(&["price", "hint:"]);
    assert!(server.requests().is_empty());
}

#[test]
fn an_interrupt_ends_an_automated_run_with_130_and_its_command_with_it() {
    let endless = Endless::new();
    let (agent, _server) = AgentProject::scripted(&[
        reply("COMMAND", &endless.command()),
        done(),
        PASS.to_owned(),
    ]);
    let child = agent.spawn(&["-p", "go"]);
    endless.begins(&agent);
    signal(child.id(), "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(endless.ends());
    assert_eq!(agent.session()["state"], "interrupted");
    agent.run(&["--resume", "-p", ""]).exits(0);
}

#[test]
fn an_interrupt_returns_an_interactive_session_to_its_prompt() {
    let endless = Endless::new();
    let (agent, server) = AgentProject::scripted(&[
        reply("COMMAND", &endless.command()),
        done(),
        PASS.to_owned(),
    ]);
    let mut child = agent.spawn(&[]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"go\n").unwrap();
    endless.begins(&agent);
    signal(child.id(), "-INT");
    assert!(endless.ends());
    stdin.write_all(b"something else\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(told(&server, 1).contains("<user_request>\nsomething else\n"));
    assert!(told(&server, 1).contains("stopped before its end"));
    // The stopped request is not audited.
    let audit = last_told(&server, 2);
    assert!(
        audit.contains("<user_request>\nsomething else\n"),
        "{audit}"
    );
    assert!(!audit.contains("<user_request>\ngo\n"), "{audit}");
}

#[test]
fn a_session_does_not_wait_for_a_project_that_another_run_holds() {
    let (silence, waiting) = Answer::silence();
    let first = ModelServer::start([silence]);
    let holder = AgentProject::new(&first);
    let mut child = holder.spawn(&["-p", "go"]);
    waiting.recv().unwrap();
    holder
        .work("me too")
        .exits(3)
        .says(&["another run holds the project"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn files_written_before_a_model_failure_stay_and_are_recorded() {
    let server = server(&[write("a.txt", "a\n")]);
    let agent = AgentProject::new(&server);
    let run = agent.work("go").exits(4);
    assert_eq!(agent.project.read("a.txt"), "a\n");
    assert_eq!(run.result()["tree"], "changed");
}

#[test]
fn a_reply_that_is_empty_or_cut_short_is_asked_for_again() {
    let cut =
        json!({"choices": [{"message": {"content": "# Agent Resp"}, "finish_reason": "length"}]});
    let server = ModelServer::start([
        streamed(""),
        Answer::json(&cut),
        streamed(&done()),
        streamed(PASS),
    ]);
    let agent = AgentProject::new(&server);
    agent
        .work("go")
        .exits(0)
        .says(&["has no text", "is incomplete"]);
    assert!(told(&server, 1).contains("has no text"));

    let server = ModelServer::start([streamed(""), streamed("")]);
    let agent = AgentProject::new(&server).configured(&json!({"maxRetriesAutomated": 2}));
    agent.work("go").exits(4).says(&["has no text"]);
}

#[test]
fn exceeded_budget_has_its_own_exit_name() {
    let (agent, server) = AgentProject::scripted(&vec![reply("LIST_DIRECTORY", "\".\""); 50]);
    let agent = AgentProject {
        project: agent.project.with(&server),
        ..agent
    };
    let first = agent.run(&["-p", "go", "--model", "gpt-5", "--max-cost", "0.0001"]);
    assert_eq!(first.exits(3).result()["exit"]["name"], "not-ready");
    assert!(server.requests().is_empty());
    let later = agent.run(&["-p", "go", "--model", "gpt-5", "--max-cost", "0.086"]);
    let later = later.exits(1).says(&["--resume"]);
    assert_eq!(later.result()["exit"]["name"], "over-budget");
    assert!(!server.requests().is_empty());
}

#[test]
fn the_table_of_models_may_know_the_price_of_the_users_own_server() {
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    let entry = json!({"models": {"test-model": {"provider": "openai", "price": {"input": 1, "output": 2}}}});
    let agent = agent.with_file("agent-config/models.json", &entry.to_string());
    let run = agent.run(&["-p", "go", "--max-cost", "1"]).exits(0);
    assert!(
        run.result()["cost"].as_f64() > Some(0.0),
        "{}",
        run.result()
    );
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_file_that_cannot_be_written_is_reported_to_the_model() {
    // No file system accepts a name of that length.
    let long = "n".repeat(300);
    let (agent, server) = AgentProject::scripted(&[
        write(&long, "a\n"),
        write(&format!("{long}/a.txt"), "a\n"),
        done(),
        PASS.to_owned(),
    ]);
    agent.work("go").exits(0);
    for nth in [1, 2] {
        let told = last_told(&server, nth);
        assert!(
            told.contains("ERROR: ") && told.contains("too long"),
            "{told}"
        );
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_no_end() {
    let (agent, _server) = AgentProject::scripted(&[reply("COMMAND", "seq 1 100000")]);
    let program = agent.command(&["-p", "go"]);
    let variables = program.get_envs();
    let output = Command::new("sh")
        .args(["-c", "ulimit -f 20; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args())
        .current_dir(program.get_current_dir().unwrap())
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    Finished::new(&agent.project, &[], output)
        .exits(6)
        .says(&["File too large", "hint:"]);
}

#[test]
fn however_quiet_it_is_a_person_hears_how_their_request_has_ended() {
    let (agent, _server) = AgentProject::scripted(&vec!["Hm.".to_owned(); 3]);
    agent
        .typed(&["--quiet"], "go\n")
        .exits(5)
        .says(&["was not understood", "hint:"]);
}
