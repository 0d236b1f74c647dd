//! A real language model, if one is installed by `tests/model/install.sh`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::support::agent::AgentProject;
use crate::support::skipped;

/// A model server, which ends when its standard input is closed.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    /// Starts the server; all replies follow the grammar or, without one, the schema in the request. `None` if no model
    /// is installed.
    pub fn start(grammar: Option<&str>) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut child = Command::new(root.join("target/model/bin/python"))
            .arg(root.join("tests/model/serve.py"))
            .args(grammar.map(|name| root.join("tests/model").join(name)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = lines
            .map_while(Result::ok)
            .find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
        if ready.is_none() {
            child.wait().unwrap();
        }
        ready.map(|url| Self { child, url })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
fn a_real_model_works_through_tools() {
    let Some(server) = Server::start(Some("writes.gbnf")) else {
        skipped("no language model; see tests/model/install.sh");
        return;
    };
    let agent = AgentProject::at(&server.url).configured(&json!({"maxLoops": 2}));
    let run = agent
        .work("Write a story of a cat into story.md.")
        .exits(1)
        .says(&["the loop limit is reached"]);
    let story = agent.project.read("story.md");
    let session = agent.session();
    let reply = session["history"][1]["content"].as_str().unwrap();
    assert!(reply.starts_with("# Agent Response\n"), "{reply}");
    assert!(!story.is_empty());
    let steps = run.result()["attempts"].clone();
    assert_eq!(steps.as_array().unwrap().len(), 2, "{steps:#}");
    for step in steps.as_array().unwrap() {
        let used = json!([{"name": "WRITE_FILE", "failed": false}]);
        assert_eq!(step["tools"], used, "{step:#}");
        assert!(step["usage"]["output_tokens"].as_u64() > Some(10));
    }
    // The model knows its earlier actions.
    let second = session["history"][3]["content"].as_str().unwrap();
    assert!(second.ends_with(&format!("```\n{story}```")), "{second}");
    assert!(session["totalTokens"].as_u64() > Some(2_000), "{session:#}");
}
