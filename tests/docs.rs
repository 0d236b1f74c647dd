//! What the documents say is so.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::TestProject;
use crate::support::agent::{AgentProject, PASS, done, told};

/// The page about the agent describes every setting, with its default, and every tool.
#[test]
fn the_agents_page_names_every_setting_and_every_tool() {
    let page = document("docs/dev.md");
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    agent.typed(&[], "go\n").exits(0);
    let config = fs::read_to_string(agent.home("config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_str(&config).unwrap();
    for (field, default) in config.as_object().unwrap() {
        assert!(page.contains(&format!("`{field}`")), "{field}");
        let default = default.to_string().replace('"', "");
        assert!(page.contains(&default), "{field}: {default}");
    }
    let tools = regex::Regex::new(r"(?m)^### ([A-Z_]+)").unwrap();
    let told = told(&server, 0);
    let mut named = 0;
    for tool in tools.captures_iter(&told) {
        assert!(page.contains(&format!("`{}`", &tool[1])), "{}", &tool[1]);
        named += 1;
    }
    assert_eq!(named, 11, "{told}");
}

fn document(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
}

/// The commands in the shell blocks of the README.
fn commands() -> Vec<String> {
    let readme = document("README.md");
    let blocks = readme
        .split("```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.strip_prefix("sh\n"));
    blocks
        .flat_map(str::lines)
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_readmes_first_command_does_what_it_shows() {
    assert!(commands().contains(&"cargo run --release -- demo".to_owned()));
    let readme = document("README.md");
    let shown = readme
        .split("```text\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let project = TestProject::new();
    let output = project.command(&["demo"]).output().unwrap();
    let printed = [output.stderr, output.stdout].concat();
    let stable = |text: &str| {
        // Times and the folder's stamp differ from run to run.
        let times = regex::Regex::new(r"\d+\.\d+s|\d{4}(-\d\d){5}").unwrap();
        times.replace_all(text.trim_end(), "TIME").into_owned()
    };
    assert_eq!(stable(shown), stable(&String::from_utf8(printed).unwrap()));
}

#[test]
fn the_readmes_test_command_is_the_one_that_ci_runs() {
    assert!(commands().contains(&"./build.sh".to_owned()));
    assert!(document(".ci/run").contains("./build.sh"));
}

#[test]
fn the_readmes_own_project_commands_make_a_project_ready() {
    let project = tempfile::tempdir().unwrap();
    let program = Path::new(assert_cmd::cargo::cargo_bin!("code-commit"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(program.parent().unwrap().to_path_buf())
        .chain(std::env::split_paths(&path));
    let path = std::env::join_paths(path).unwrap();
    let run = |command: &str| {
        let shell = Command::new("sh")
            .args(["-c", command])
            .current_dir(project.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        assert!(shell.status.success(), "{command}\n{shell:?}");
        String::from_utf8(shell.stdout).unwrap()
    };
    run("git init -q && echo 'text' > file.txt && git add file.txt");
    let setup: Vec<String> = commands()
        .into_iter()
        .skip_while(|command| command != "code-commit init")
        .take_while(|command| !command.starts_with("code-commit && "))
        .collect();
    assert_eq!(setup.len(), 4, "{setup:?}");
    let said: String = setup.iter().map(|command| run(command)).collect();
    assert!(
        said.contains("done: the project is ready; nothing was sent"),
        "{said}"
    );
}

#[test]
fn the_readme_names_every_flag_and_every_exit_code() {
    let readme = document("README.md");
    let help = TestProject::new().run(&["--help"]).stdout;
    let commands =
        ["rollup", "diff", "report"].map(|name| TestProject::new().run(&[name, "--help"]).stdout);
    let agent = [
        &["dev", "--help"][..],
        &["dev", "sessions", "list", "--help"],
    ]
    .map(|arguments| TestProject::new().run(arguments).stdout);
    let readme = readme + &document("docs/dev.md");
    let help = help + &commands.concat() + &agent.concat();
    let flags = regex::Regex::new(r"--[a-z][a-z-]+").unwrap();
    for flag in flags.find_iter(&help).map(|flag| flag.as_str()) {
        // As a word of its own: `--all` is not in `--allow-secrets`.
        let is_word = regex::Regex::new(&format!(r"[`\[ ]{flag}[`\] ]")).unwrap();
        assert!(
            ["--help", "--version"].contains(&flag) || is_word.is_match(&readme),
            "{flag}"
        );
    }
    for name in [
        "done",
        "build-failed",
        "usage",
        "not-ready",
        "model-failed",
        "reply-rejected",
        "local-io",
        "interrupted",
    ] {
        assert!(readme.contains(&format!("| {name} |")), "{name}");
        assert!(help.contains(name), "{name}");
    }
    for name in ["audit-failed", "tools-failed", "loop-limit", "over-budget"] {
        assert!(readme.contains(name) && help.contains(name), "{name}");
    }
}

#[test]
fn the_rollup_script_takes_every_text_file_that_git_tracks() {
    let script = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("codeRollup.sh")).unwrap();
    let sneaky = "x\nagent-config/gemini-key.txt";
    let project = TestProject::new()
        .program("codeRollup.sh", script)
        .file("binary", b"a\0b")
        .file("late", [b"x".repeat(100_000), b"\0".to_vec()].concat())
        .file("latin", b"caf\xe9\n")
        .file("no newline", "x")
        .file("-rf", "dash\n")
        .file("--help", "help\n")
        .file("caf\u{e9}", "accent\n")
        .file(sneaky, "sneaky\n");
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(arguments)
            .current_dir(project.path(""))
            .status()
            .unwrap();
        assert!(status.success());
    };
    git(&["init", "-q"]);
    let tracked = [
        ".gitignore",
        "src/main.rs",
        "binary",
        "late",
        "latin",
        "no newline",
        "-rf",
        "--help",
        "caf\u{e9}",
        sneaky,
    ];
    git(&[&["add", "--"], &tracked[..]].concat());
    let elsewhere = tempfile::tempdir().unwrap();
    let script = project.path("codeRollup.sh");
    assert!(
        Command::new(&script)
            .current_dir(elsewhere.path())
            .status()
            .unwrap()
            .success()
    );
    let expected = format!(
        "--- --help ---\nhelp\n--- -rf ---\ndash\n--- .gitignore ---\n/agent-config\n/logs\n/target\n\
         --- caf\u{e9} ---\naccent\n--- no newline ---\nx\n--- src/main.rs ---\nfn main() {{}}\n--- {sneaky} ---\nsneaky\n"
    );
    assert_eq!(project.read("agent-config/codeRollup.txt"), expected);
    fs::remove_dir_all(project.path(".git")).unwrap();
    assert!(
        !Command::new(&script)
            .env("GIT_CEILING_DIRECTORIES", "/")
            .output()
            .unwrap()
            .status
            .success()
    );
    assert_eq!(
        project.read("agent-config/codeRollup.txt"),
        expected,
        "a rollup that fails leaves the old one"
    );
}
