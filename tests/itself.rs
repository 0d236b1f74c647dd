//! The program can be asked to change itself, although its code base exceeds every prompt.

use std::path::Path;
use std::process::Command;

use code_commit::measured::tokens;

use crate::support::{ModelServer, TestProject, skipped};

/// The maximum number of tokens of all prompts and replies together; the code base has 1.8 million.
const MOST: u64 = 60_000;

fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(directory).args(arguments).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let output = command.output().ok()?;
    let listed = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(listed)
}

/// Copies the repository that contains this test: the tracked files, with a build of one line.
fn copy(server: &ModelServer) -> Option<TestProject> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = git(own, &["ls-files", "-z"])?;
    let mut project = TestProject::new()
        .with(server)
        .without("agent-config/codeRollup.txt");
    for path in files.split_terminator('\0') {
        // A file that is deleted but not yet committed is not copied.
        if let Ok(content) = std::fs::read(own.join(path)) {
            project = project.file(path, content);
        }
    }
    let project = project.build("test -s src/lib.rs");
    let root = project.path(".");
    git(&root, &["init", "--quiet"])?;
    git(&root, &["add", "--all"])?;
    Some(project)
}

/// An edit that appends a word to a file's first line.
fn edit(path: &str) -> String {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(own).unwrap();
    let first = text.lines().next().unwrap();
    format!("^^^{path}\n^^^find\n{first}\n^^^put\n{first} Changed.\n^^^end\n")
}

#[test]
fn a_change_of_this_code_base_costs_what_the_change_is_worth() {
    const NAMED: &str = "src/sys/numbers.rs";
    const ASKED: &str = "src/edit/loss.rs";
    let need = format!("^^^need\n{ASKED}\n^^^end\n");
    let edits = format!("{}{}^^^done 2\n", edit(NAMED), edit(ASKED));
    let server = ModelServer::gemini(&[&need, &edits]);
    let Some(project) = copy(&server) else {
        return skipped("the sources are in no repository of git");
    };
    let query = format!("Let `counted` in {NAMED} say `no files` of none.");
    let arguments = ["-m", &query, "--context", "16k", "--reply-format", "edits"];
    project.run(&arguments).exits(0);
    for path in [NAMED, ASKED] {
        let first = project.read(path).lines().next().unwrap().to_owned();
        assert!(first.ends_with(" Changed."), "{path}: {first}");
    }
    let sent = server.requests().into_iter();
    let sent = sent.map(|request| tokens::count(&request.json().to_string()));
    let all = sent.sum::<u64>() + tokens::count(&need) + tokens::count(&edits);
    assert!(all < MOST, "{all} tokens");
}
