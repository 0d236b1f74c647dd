//! A plan's work, killed or failing at every write: the document is complete at any time, and the session can be
//! continued.

use std::thread;

use serde_json::json;

use crate::support::Answer;
use crate::support::plan::{
    PlanProject, response, said, serving, summary_with_updates, tasks_with_criteria, write,
};
use crate::{MANY, THREADS, can_trace, run_with};

/// More answers than two runs need.
const ANSWERS: usize = 40;

/// An answer to any request, since the answers of a server may be lost with the program.
fn answer() -> Answer {
    Answer::To(Box::new(|request| {
        let asked = String::from_utf8_lossy(&request.body).into_owned();
        let steps = [("Write a.txt", "write_file"), ("Look at it", "analyze")];
        said(if asked.contains("You are a planning model.") {
            tasks_with_criteria(&steps, &["a.txt is there"])
        } else if asked.contains("You are a summarizer.") {
            summary_with_updates("✓ a.txt is there", &["a.txt is there"])
        } else if asked.contains("Current task: Look at it")
            || asked.contains("Tool results:\\n[0] ✓")
        {
            response("It is good.")
        } else {
            write("a.txt", "a\n")
        })
    }))
}

/// Injects a fault at each of these calls, and then continues the session.
fn sweep(calls: &str, fault: &str, codes: &[i32]) -> usize {
    let one_share = |share: usize| {
        let mut tried = 0;
        for nth in (1 + share..MANY).step_by(THREADS) {
            let server = serving((0..ANSWERS).map(|_| answer()));
            let plan = PlanProject::new(&server);
            let arguments = ["plan", "--sandbox", "off", "-p", "Make a.txt"];
            let Some(output) = run_with(&plan.project, &arguments, calls, fault, nth) else {
                break;
            };
            tried += 1;
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let what = format!("{fault} at {calls} {nth}: {stderr}");
            assert!(!stderr.contains("panicked"), "{what}");
            if let Some(code) = output.status.code() {
                assert!(codes.contains(&code), "{code}: {what}");
            }
            if plan.sessions().is_empty() {
                continue;
            }
            let path = plan.sessions()[0].join("plan_doc.md");
            if path.exists() {
                plan.run(&["show"]).exits(0);
                let document = plan.document();
                assert!(document.ends_with('\n') && document.contains("## Execution Log\n"));
            }
            let is_begun = plan.session()["requests"] == json!(["Make a.txt"]);
            let is_done = plan.session()["stage"] == "done";
            let resumed = plan.run(&["--resume", "--sandbox", "off", "-p", ""]);
            let code = if is_begun && !is_done { 0 } else { 2 };
            assert_eq!(resumed.code, code, "{what}\n{}", resumed.stderr);
            if !is_begun {
                continue;
            }
            let document = plan.document();
            assert!(
                document.contains("**Status:** completed"),
                "{what}\n{document}"
            );
            assert!(
                document.contains("- [x] a.txt is there"),
                "{what}\n{document}"
            );
            assert_eq!(
                document.matches("**Result:** ✓").count(),
                1,
                "{what}\n{document}"
            );
            assert_eq!(
                document.matches("## Tasks").count(),
                1,
                "{what}\n{document}"
            );
            assert_eq!(plan.project.read("a.txt"), "a\n", "{what}");
        }
        tried
    };
    let one_share = &one_share;
    thread::scope(|scope| {
        let shares: Vec<_> = (0..THREADS)
            .map(|share| scope.spawn(move || one_share(share)))
            .collect();
        shares.into_iter().map(|share| share.join().unwrap()).sum()
    })
}

#[test]
fn killed_between_any_two_writes_a_plan_is_whole_and_resumed() {
    if can_trace() {
        let tried = sweep("rename,renameat,renameat2", "signal=SIGKILL", &[]);
        assert!(tried > 20, "{tried}");
    }
}

#[test]
fn plan_survives_a_full_disk_and_is_resumed() {
    if can_trace() {
        for calls in ["fsync", "write"] {
            // A failed write to the terminal, the chat log or the page ends nothing.
            let tried = sweep(calls, "error=ENOSPC", &[0, 3, 4, 6]);
            assert!(tried > 20, "{tried}");
        }
    }
}
