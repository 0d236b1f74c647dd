//! Runs that are interrupted or killed at any point. Without the signal, each would wait forever.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr};
use std::sync::mpsc::Receiver;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::orchestra::{
    Branch, GITHUB_TOKEN, OrchestraProject, START, branch, execute, finished, report, says,
};
use crate::support::{Answer, Finished};

const HEADLESS: [&str; 3] = ["--headless", "--task", "Add a flag."];

fn kill(child: &Child, signal: Signal) {
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

/// A point at which a run waits, and the signal that it was reached.
struct Hanging {
    orchestra: OrchestraProject,
    /// `None`: the run waits for a branch.
    reached: Option<Receiver<()>>,
    /// The number of started branches.
    branches: usize,
    /// The last successful branch, and the one that continues remotely.
    latest: String,
    waiting: Option<String>,
    /// True if the server must be told that the call is cancelled.
    cancels: bool,
}

fn slowly(orchestra: OrchestraProject) -> OrchestraProject {
    orchestra
        .with_variable("MCP_POLL_INITIAL_SECONDS", "3600")
        .with_variable("MCP_POLL_MAX_SECONDS", "7200")
}

/// Returns all points at which a run can wait for long.
fn everywhere() -> Vec<(&'static str, Hanging)> {
    let steps = || {
        [
            execute("claude_code", "x"),
            execute("codex", "y"),
            finished("done"),
        ]
    };
    let begun = || [Branch::done("x")];
    let passed = || {
        [
            Branch::done("x"),
            Branch::review("CLEAN"),
            Branch::endless(),
        ]
    };
    let hanging = |orchestra, reached, branches: usize, waits: bool, cancels| {
        let done = if waits { branches - 1 } else { branches };
        let latest = if done == 0 {
            START.to_owned()
        } else {
            branch(done)
        };
        Hanging {
            orchestra,
            reached,
            branches,
            latest,
            waiting: waits.then(|| branch(branches)),
            cancels,
        }
    };
    let (model, model_hangs) = Answer::silence();
    let asked = OrchestraProject::scripted([execute("claude_code", "x"), model], begun());
    let call = |tool: &str, nth| {
        let orchestra = OrchestraProject::scripted(steps(), passed());
        let (silence, reached) = Answer::silence();
        orchestra.pantheon.answers(tool, nth, silence);
        (orchestra, Some(reached))
    };
    let (starts, starting) = call("parallel_explore", 2);
    let (looks, looking) = call("get_branch", 4);
    let (reads, reading) = call("branch_read_file", 1);
    let (publishes, publishing) = call("parallel_explore", 3);
    let waits = OrchestraProject::scripted(steps(), [Branch::done("x"), Branch::endless()]);
    let publishes_long = OrchestraProject::scripted(steps(), passed());
    vec![
        (
            "asking the model",
            hanging(asked, Some(model_hangs), 1, false, false),
        ),
        (
            "starting an agent",
            hanging(starts, starting, 1, false, true),
        ),
        (
            "looking at a branch",
            hanging(looks, looking, 2, true, true),
        ),
        (
            "waiting for a branch",
            hanging(slowly(waits), None, 2, true, false),
        ),
        (
            "reading the review's log",
            hanging(reads, reading, 2, false, true),
        ),
        (
            "starting to publish",
            hanging(publishes, publishing, 2, false, true),
        ),
        (
            "publishing",
            hanging(slowly(publishes_long), None, 3, true, false),
        ),
    ]
}

impl Hanging {
    fn lineage(&self) -> Option<Value> {
        let run = self.orchestra.project.runs().pop()?;
        let lineage = fs::read(run.join("lineage.json")).ok()?;
        serde_json::from_slice(&lineage).ok()
    }

    /// Starts the run, and waits until it reaches the point. Its later output is to be read.
    fn start(&self) -> (Child, BufReader<ChildStderr>) {
        let mut child = self.orchestra.spawn(&HEADLESS);
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        match (&self.reached, &self.waiting) {
            (Some(reached), _) => reached.recv().unwrap(),
            (None, waiting) => {
                let waits = format!("on branch {} (running)", waiting.as_deref().unwrap());
                let mut told = stderr.by_ref().lines().map(Result::unwrap);
                assert!(told.any(|line| line.contains(&waits)));
            }
        }
        (child, stderr)
    }

    /// Checks that the record of the run shows where it was.
    #[track_caller]
    fn tells_where(&self, name: &str) {
        let lineage = self.lineage().unwrap();
        assert_eq!(lineage["start_branch_id"], START, "{name}");
        assert_eq!(lineage["latest_branch_id"], self.latest, "{name}");
        assert_eq!(lineage["waiting_for"], json!(self.waiting), "{name}");
        assert_eq!(
            lineage.get("starting").is_some(),
            name.starts_with("starting"),
            "{name}"
        );
        assert_eq!(
            lineage["branches"].as_array().unwrap().len(),
            self.branches,
            "{name}"
        );
    }
}

#[test]
fn a_signal_ends_every_wait_and_nothing_is_published() {
    let signals = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];
    for ((name, hanging), (signal, code)) in everywhere().into_iter().zip(signals.iter().cycle()) {
        let (child, _stderr) = hanging.start();
        kill(&child, *signal);
        let output = child.wait_with_output().unwrap();
        let run = Finished::new(&hanging.orchestra.project, &HEADLESS, output);
        assert_eq!(run.code, *code, "{name}");
        assert_eq!(run.result()["exit"]["name"], "interrupted");
        let told = report(&run);
        assert_eq!(told["status"], "interrupted", "{name}");
        assert_eq!(told["is_finished"], false);
        assert_eq!(told["latest_branch_id"], hanging.latest, "{name}");
        assert!(told.get("publish_report").is_none(), "{name}");
        let instructions = told["instructions"].as_str().unwrap();
        let goes_on = format!(
            "dev-agent --parent-branch-id {} --project-name project",
            hanging.latest
        );
        assert!(instructions.contains(&goes_on), "{name}: {instructions}");
        if let Some(waiting) = &hanging.waiting {
            let works = format!("On Pantheon branch `{waiting}` an agent may still be at work");
            assert!(instructions.contains(&works), "{name}: {instructions}");
            let resumes = format!("run `dev-agent --resume {}`", told["log"].as_str().unwrap());
            assert!(instructions.contains(&resumes), "{name}: {instructions}");
        }
        assert!(!instructions.contains("could not be"), "{instructions}");
        let starts = instructions.contains("may have been started on a further branch");
        assert_eq!(starts, name.starts_with("starting"), "{name}");
        hanging.tells_where(name);
        let messages = hanging.orchestra.pantheon.messages();
        let cancelled = messages
            .iter()
            .filter(|sent| sent["method"] == "notifications/cancelled");
        assert_eq!(cancelled.count(), usize::from(hanging.cancels), "{name}");
        let explored = hanging.orchestra.pantheon.called("parallel_explore");
        let publishes = explored
            .iter()
            .any(|sent| sent.to_string().contains(GITHUB_TOKEN));
        assert_eq!(publishes, name.contains("publish"), "{name}");
    }
}

#[test]
fn a_killed_run_shows_where_it_was_and_is_reported_as_a_story() {
    for (name, hanging) in everywhere() {
        let (mut child, _stderr) = hanging.start();
        kill(&child, Signal::KILL);
        child.wait().unwrap();
        hanging.tells_where(name);
        let project = &hanging.orchestra.project;
        let run = project.runs().pop().unwrap();
        let folder = run.file_name().unwrap().to_str().unwrap();
        let told = project.run(&["log", folder]).exits(0).stdout;
        for id in [Some(START.to_owned()), hanging.waiting.clone()]
            .into_iter()
            .flatten()
        {
            assert!(told.contains(&id), "{name}: {id}\n{told}");
        }
        project.run(&["log"]).exits(0);
        project.run(&["report", folder]).exits(0);
        // The replay goes as far as the run did.
        let again = ["orchestrate", "--headless", "--replay", folder];
        project.run(&again).exits(4).says(&["record"]);
    }
}

#[test]
fn a_signal_before_the_work_begins_leaves_nothing() {
    for method in ["initialize", "notifications/initialized", "tools/list"] {
        let orchestra = OrchestraProject::clean();
        let (silence, reached) = Answer::silence();
        orchestra.pantheon.answers(method, 1, silence);
        let child = orchestra.spawn(&HEADLESS);
        reached.recv().unwrap();
        kill(&child, Signal::INT);
        let output = child.wait_with_output().unwrap();
        let run = Finished::new(&orchestra.project, &HEADLESS, output).exits(130);
        assert!(run.folder.is_empty() && run.stdout.is_empty(), "{method}");
        assert!(orchestra.azure.requests().is_empty(), "{method}");
    }
}

#[test]
fn a_signal_ends_the_wait_for_a_user_who_types_nothing() {
    let orchestra = OrchestraProject::scripted([says("Which?")], []);
    let mut child = orchestra.spawn(&["--task", "x"]);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut told = String::new();
    stdout.read_line(&mut told).unwrap();
    assert_eq!(told, "assistant> Which?\n");
    kill(&child, Signal::TERM);
    stdout.read_to_string(&mut told).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(told.contains("\"status\": \"interrupted\""), "{told}");
}
