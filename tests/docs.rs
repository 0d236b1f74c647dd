//! The claims of the documents: their commands run, their links work, and they name what exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory as _;
use code_commit::Cli;
use code_commit::Exit;
use code_commit::measured::Signal;
use regex::Regex;
use serde_json::json;

use crate::support::agent::{AgentProject, PASS, done, told};
use crate::support::{Answer, GEMINI_KEY, ModelServer, TestProject, gemini, skipped};

/// The maximum number of lines of a page, so that people read it.
const LONGEST_PAGE: usize = 150;

pub fn document(name: &str) -> String {
    let path = root().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns README and the pages in `docs`.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if Path::new(&name).extension().is_some_and(|end| end == "md") {
            pages.push(format!("docs/{name}"));
        }
    }
    assert!(pages.len() > 5, "{pages:?}");
    pages
}

/// Returns the fenced blocks of a document in this language.
pub fn blocks<'d>(document: &'d str, language: &str) -> Vec<&'d str> {
    let head = format!("{language}\n");
    let blocks = document.split("```").skip(1).step_by(2);
    blocks
        .filter_map(|block| block.strip_prefix(&head))
        .collect()
}

/// Returns the commands in a document's shell blocks, without comments.
pub fn commands(document: &str) -> Vec<&str> {
    let lines = blocks(document, "sh").into_iter().flat_map(str::lines);
    let commands = lines.map(|line| line.split("  #").next().unwrap_or_default().trim());
    commands.filter(|command| !command.is_empty()).collect()
}

/// Returns the code spans of a document outside of fenced blocks.
fn spans(document: &str) -> Vec<String> {
    let prose: String = document.split("```").step_by(2).collect();
    let span = Regex::new("`([^`\n]+)`").unwrap();
    let spans = span.captures_iter(&prose);
    spans.map(|span| span[1].replace("\\|", "|")).collect()
}

/// Returns the rows of the table whose header begins with `first`, as cells.
fn table(document: &str, first: &str) -> Vec<Vec<String>> {
    let head = format!("| {first} |");
    let lines = document.lines().skip_while(|line| !line.starts_with(&head));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<String>> = rows
        .map(|row| {
            let cells = row.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(!rows.is_empty(), "no table of {first}");
    rows
}

/// Splits a cell such as `a, b`, and removes code marks.
fn listed(cell: &str) -> Vec<String> {
    let parts = cell.split(", ");
    parts.map(|part| part.replace('`', "")).collect()
}

#[test]
fn no_page_is_too_long() {
    for page in pages() {
        let lines = document(&page).lines().count();
        assert!(lines <= LONGEST_PAGE, "{page} has {lines} lines");
    }
}

/// Returns a heading's anchor as GitHub generates it.
fn anchor(heading: &str) -> String {
    let letters = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = letters
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let link = Regex::new(r"\]\(([^)]+)\)").unwrap();
    let others = ["CHANGELOG.md", "examples/kubernetes/README.md"].map(str::to_owned);
    let mut linked = BTreeSet::new();
    for page in pages().into_iter().chain(others) {
        let text = document(&page);
        let folder = root().join(&page).parent().unwrap().to_path_buf();
        for link in link.captures_iter(&text) {
            if link[1].starts_with("https://") {
                continue;
            }
            let (path, name) = link[1].split_once('#').unwrap_or((&link[1], ""));
            let target = if path.is_empty() {
                root().join(&page)
            } else {
                folder.join(path)
            };
            assert!(target.exists(), "{page}: {}", &link[1]);
            let target = target.canonicalize().unwrap();
            if !name.is_empty() {
                let target = fs::read_to_string(&target).unwrap();
                let mut headings = target.lines().filter(|line| line.starts_with('#'));
                assert!(
                    headings.any(|line| anchor(line) == name),
                    "{page}: {}",
                    &link[1]
                );
            }
            if page == "README.md" {
                linked.insert(target);
            }
        }
    }
    for page in pages().iter().skip(1) {
        assert!(
            linked.contains(&root().join(page)),
            "README does not link {page}"
        );
    }
}

#[test]
fn the_changelog_says_nothing_twice() {
    let changelog = document("CHANGELOG.md");
    let mut said = BTreeSet::new();
    for entry in changelog.lines().filter(|line| line.starts_with("- ")) {
        let beginning: String = entry.chars().take(50).collect();
        assert!(said.insert(beginning), "{entry}");
    }
}

#[test]
fn every_file_of_this_repository_that_is_named_is_there() {
    for page in pages() {
        for span in spans(&document(&page)) {
            let is_ours = ["src/", "tests/", "fixtures/"]
                .iter()
                .any(|own| span.starts_with(own));
            assert!(!is_ours || root().join(&span).exists(), "{page}: {span}");
        }
    }
}

/// Returns all sources as one text, with continued strings joined into one line.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    Regex::new(r"\\\n\s*")
        .unwrap()
        .replace_all(&text, "")
        .into_owned()
}

#[test]
fn the_messages_that_need_help_are_those_of_the_program() {
    let sources = sources(&root().join("src"));
    let mut quoted = 0;
    for row in table(&document("docs/troubleshooting.md"), "you see") {
        for message in spans(&row[0]) {
            assert!(sources.contains(&message), "{message}");
            quoted += 1;
        }
    }
    assert!(quoted > 5, "{quoted}");
}

/// Removes times and the folder's stamp, which differ from run to run.
pub fn stable(text: &str) -> String {
    let times = Regex::new(r"\d+\.\d+s|\d{4}(-\d\d){5}").unwrap();
    times.replace_all(text, "TIME").into_owned()
}

#[test]
fn the_readmes_demo_is_one_installed_or_not() {
    let readme = document("README.md");
    let command = commands(&readme)[0];
    let arguments = command.strip_prefix("cargo run --release -- ").unwrap();
    assert_eq!(
        blocks(&readme, "bash")[0],
        format!("cargo install --path .\ncode-commit {arguments}\n")
    );
    let told = TestProject::new().run(&[arguments]).exits(0).stdout;
    // The first reply breaks the build, and the first repair fixes it.
    assert!(
        told.contains("done: build.sh passed after 1 repair"),
        "{told}"
    );
}

/// A home directory in which scripts from the documents are run.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Runs a script with this model server, and returns its output.
    fn runs(&self, script: &str, arguments: &[&str], server: &ModelServer) -> String {
        let program = Path::new(assert_cmd::cargo::cargo_bin!("code-commit"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = std::iter::once(program.parent().unwrap().to_path_buf());
        let path = std::env::join_paths(own.chain(std::env::split_paths(&path)));
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).args(arguments);
        shell.current_dir(self.path("")).env_clear();
        shell.env("PATH", path.unwrap()).env("HOME", self.path(""));
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@example.com"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@example.com"),
            ("GEMINI_API_KEY", GEMINI_KEY),
            ("GOOGLE_GEMINI_BASE_URL", &server.url()),
        ] {
            shell.env(name, value);
        }
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{script}\n{output:?}");
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    }

    /// Creates a repository with this build below `repositories`.
    fn repository(&self, name: &str, build: &str) {
        let nobody = ModelServer::start([]);
        let script = "mkdir -p repositories/$1 && cd repositories/$1 && git init -q && \
            printf '/agent-config\\n/logs\\n' >.gitignore && echo before >file && \
            if [ -n \"$2\" ]; then printf '#!/bin/sh\\n%s\\n' \"$2\" >build.sh && chmod +x build.sh; fi && \
            git add --all && git commit -qm begun";
        self.runs(script, &[name, build], &nobody);
    }
}

const GOOD: &str = "^^^file\nafter\n^^^end\n";

#[test]
fn the_first_hour_ends_with_a_proven_change() {
    let page = document("docs/first-hour.md");
    let home = Home::new();
    fs::write(home.path("gemini-key.txt"), GEMINI_KEY).unwrap();
    let server = ModelServer::gemini(&["^^^greet.sh\necho \"Hello, ${1:-world}!\"\n^^^end\n\
        ^^^test.sh\ntest \"$(sh greet.sh Ada)\" = \"Hello, Ada!\"\ntest \"$(sh greet.sh)\" = \"Hello, world!\"\n^^^end\n"]);
    let script = format!("set -e\n{}", blocks(&page, "sh").concat());
    let told = home.runs(&script, &[], &server);
    let result = page.split("its result: `").nth(1).unwrap();
    let result = result.split('`').next().unwrap();
    for said in [
        "✓ The build passed after 1 repair\n",
        "done: the project is as it was before",
        "done: the project is ready; nothing was sent",
        result,
        "+echo \"Hello, ${1:-world}!\"",
        "] Greet the world by default",
    ] {
        assert!(told.contains(said), "{said}\n{told}");
    }
    assert_eq!(server.requests().len(), 1);
    let left = home.runs(
        "cd greet && git status --porcelain && sh greet.sh",
        &[],
        &server,
    );
    assert_eq!(left, "Hello, world!\n");
    // The documentation of new keys.
    let flag = page.split("add `").nth(1).unwrap();
    let flag = flag.split('`').next().unwrap();
    let other = format!("cd greet && code-commit -m x --rollup --dry-run {flag}");
    let ready = home.runs(&other, &[], &server);
    assert!(ready.contains("model     gemini-3.8-flash\n"), "{ready}");
}

#[test]
fn the_readmes_night_changes_a_repository_or_leaves_it_as_it_was() {
    let readme = document("README.md");
    let home = Home::new();
    home.repository("a", "grep -q . file");
    home.repository("b", "grep -q before file");
    let server = ModelServer::gemini(&[GOOD; 5]);
    home.runs(&format!("{}true", blocks(&readme, "bash")[1]), &[], &server);
    assert_eq!(home.read("repositories/a/file"), "after\n");
    assert_eq!(home.read("repositories/b/file"), "before\n");
}

fn has_jq() -> bool {
    let jq = Command::new("jq").arg("--version").output();
    let is_there = jq.is_ok_and(|jq| jq.status.success());
    if !is_there {
        skipped("there is no jq");
    }
    is_there
}

#[test]
fn a_second_night_and_a_hook_leave_each_repository_with_a_branch_or_as_it_was() {
    if !has_jq() {
        return;
    }
    let page = document("docs/nightly.md");
    let script = format!("{}true", blocks(&page, "sh")[0]);
    let home = Home::new();
    for name in ["a-good", "b-hooked"] {
        home.repository(name, "grep -q . file");
    }
    let server = ModelServer::gemini(&[&*format!("{GOOD}^^^new\nx\n^^^end\n"); 4]);
    let hook = "mkdir -p $1 && printf '#!/bin/sh\\necho x >file; exit 1\\n' >$1/pre-commit && \
        chmod +x $1/pre-commit";
    home.runs(hook, &["repositories/b-hooked/.git/hooks"], &server);
    for nights in [1, 2] {
        home.runs(&script, &["Change the file."], &server);
        for (name, branches) in [("a-good", nights), ("b-hooked", 0)] {
            let left = format!("cd repositories/{name} && git branch && git status -s && cat file");
            let left = home.runs(&left, &[], &server);
            let lines: Vec<&str> = left.lines().collect();
            assert_eq!(lines.len(), branches + 2, "{left}");
            assert!(lines[0].starts_with("* ma") && lines[branches + 1] == "before");
        }
        let noted = home.runs("cat nightly-*/look-at", &[], &server);
        assert_eq!(noted, "b-hooked\n".repeat(nights));
    }
}

#[test]
fn the_nightly_script_does_what_its_table_says() {
    if !has_jq() {
        return;
    }
    let page = document("docs/nightly.md");
    let scripts = blocks(&page, "sh");
    let home = Home::new();
    for (name, build) in [
        ("a-good", "grep -q . file"),
        ("b-broken", "grep -q before file"),
        ("c-unprepared", ""),
        ("d-failing", "false"),
        ("e-unanswered", "true"),
        ("f-idle", "true"),
        ("g-unclean", "true"),
        ("h-edited", "true"),
    ] {
        home.repository(name, build);
    }
    fs::write(home.path("repositories/g-unclean/mine"), "").unwrap();
    let good = || Answer::json(&gemini(GOOD));
    let gone = Answer::error(
        404,
        &json!({"error": {"code": 404, "message": "no such model"}}),
    );
    let idle = || Answer::json(&gemini("Nothing."));
    let edited = home.path("repositories/h-edited/file");
    let edit = move || fs::write(edited, "mine\n").unwrap();
    let late = Answer::gemini_after(edit, GOOD);
    let answers = [
        good(),
        good(),
        good(),
        good(),
        good(),
        gone,
        idle(),
        idle(),
        late,
    ];
    let server = ModelServer::start(answers);
    home.runs(
        &format!("{}true", scripts[0]),
        &["Change the file."],
        &server,
    );
    assert_eq!(server.requests().len(), 9);
    let night = home.runs("echo nightly-*", &[], &server);
    let night = night.trim_end();
    let noted = |list: &str| home.read(&format!("{night}/{list}"));
    assert_eq!(
        noted("look-at"),
        "b-broken\nc-unprepared\nd-failing\ne-unanswered\nf-idle\ng-unclean\n"
    );
    assert_eq!(noted("try-again"), "h-edited\n");
    let left = "cd repositories; for name in *; do cd $name; git status --porcelain; \
        git log --all --format=\"$name %s\"; cat file; cd ..; done";
    let left = home.runs(left, &[], &server);
    assert!(left.contains("a-good Change the file.\n"), "{left}");
    assert_eq!(left.matches("before\n").count(), 7, "{left}");
    assert_eq!(
        left.lines().filter(|line| line.starts_with("??")).count(),
        1,
        "{left}"
    );
    let read = home.runs(scripts[1], &[], &server);
    let told: Vec<Vec<&str>> = read
        .lines()
        .map(|line| line.split('\t').collect())
        .collect();
    let ends: Vec<[&str; 2]> = told[..8].iter().map(|line| [line[0], line[1]]).collect();
    assert_eq!(
        ends,
        [
            ["done", "-"],
            ["build-failed", "build"],
            ["not-ready", "missing-input"],
            ["not-ready", "baseline"],
            ["model-failed", "server"],
            ["reply-rejected", "no-edits"],
            ["not-ready", "not-clean"],
            ["reply-rejected", "changed-meanwhile"],
        ]
    );
    assert!(told[8][0].parse::<f64>().unwrap() > 0.0, "{read}");
}

#[test]
fn the_documents_name_the_oldest_toolchain_that_will_do() {
    let needed = format!("Rust {} or later", env!("CARGO_PKG_RUST_VERSION"));
    assert!(document("README.md").contains(&needed), "{needed}");
    let needed = format!(
        "Rust toolchain ({} or later)",
        env!("CARGO_PKG_RUST_VERSION")
    );
    assert!(document("action.yml").contains(&needed), "{needed}");
}

#[test]
fn the_readmes_test_command_is_the_one_that_ci_runs() {
    assert_eq!(commands(&document("README.md"))[1], "./build.sh");
    let script = document(".ci/run");
    assert_eq!(script.lines().last(), Some("./build.sh"));
}

#[test]
fn the_readmes_other_commands_take_a_project_to_its_first_change() {
    let project = tempfile::tempdir().unwrap();
    let server = ModelServer::gemini(&["^^^new.txt\nfrom the model\n^^^end\n"]);
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
            .env("GOOGLE_GEMINI_BASE_URL", server.url())
            .output()
            .unwrap();
        assert!(shell.status.success(), "{command}\n{shell:?}");
        String::from_utf8(shell.stdout).unwrap()
    };
    run("git init -q && echo 'text' > file.txt && git add file.txt");
    run("printf '#!/bin/sh\n' > build.sh && chmod 755 build.sh");
    let readme = document("README.md");
    let said: Vec<String> = commands(&readme)[2..]
        .iter()
        .map(|command| run(&command.replace("AIza-PASTE-YOURS-HERE", GEMINI_KEY)))
        .collect();
    assert_eq!(said.len(), 4, "{said:?}");
    let ready = "done: the project is ready; nothing was sent\n";
    assert!(said[2].ends_with(ready), "{}", said[2]);
    assert!(
        said[3].ends_with("\n@@ -0,0 +1 @@\n+from the model\n"),
        "{}",
        said[3]
    );
    let prompt = server.requests()[0].user();
    assert!(prompt.contains("Add a --verbose flag."), "{prompt}");
}

#[test]
fn the_examples_of_a_table_of_models_and_of_a_reply_work() {
    let models = document("docs/models.md");
    let project = TestProject::new().file("agent-config/models.json", blocks(&models, "json")[0]);
    let listed = project.run(&["models"]).exits(0).stdout;
    assert!(listed.contains("\nlocal "), "{listed}");
    let page = document("docs/reply-format.md");
    let server = ModelServer::gemini(&[blocks(&page, "text")[0]]);
    let project = TestProject::new().with(&server).file("src/old.rs", "old\n");
    project.run(&[]).exits(0);
    assert_eq!(project.read("src/lib.rs"), "pub mod cli;\n");
    assert!(!project.path("src/old.rs").exists());
}

/// Returns every visible command of the program, by its words, with its flags.
fn all_commands() -> BTreeMap<Vec<String>, BTreeSet<String>> {
    fn collect(
        command: &clap::Command,
        path: &[String],
        found: &mut BTreeMap<Vec<String>, BTreeSet<String>>,
    ) {
        let flags = command.get_arguments().flat_map(|argument| {
            let aliases = argument.get_visible_aliases().into_iter().flatten();
            argument.get_long().into_iter().chain(aliases)
        });
        let flags = flags.map(|flag| format!("--{flag}")).collect();
        found.insert(path.to_vec(), flags);
        for inner in command.get_subcommands() {
            if !inner.is_hide_set() && inner.get_name() != "help" {
                let path = [path, &[inner.get_name().to_owned()]].concat();
                collect(inner, &path, found);
            }
        }
    }
    let mut whole = Cli::command();
    whole.build();
    let mut found = BTreeMap::new();
    collect(&whole, &[], &mut found);
    assert!(found.len() > 10, "{found:?}");
    found
}

/// Returns the command that a line of a document calls, with its flags; `None` if it calls another program.
fn called(
    line: &str,
    commands: &BTreeMap<Vec<String>, BTreeSet<String>>,
) -> Option<(Vec<String>, Vec<String>)> {
    let quoted = Regex::new("\"[^\"]*\"").unwrap();
    let line = quoted.replace_all(line, "TEXT").replace(['[', ']'], "");
    let mut words = line.split_whitespace().peekable();
    let mut path = match words.next()? {
        "code-commit" => vec![],
        "dev" => vec!["dev".to_owned()],
        "dev-agent" => vec!["orchestrate".to_owned()],
        _ => return None,
    };
    while let Some(word) = words.peek() {
        path.push((*word).to_owned());
        if !commands.contains_key(&path) {
            path.pop();
            break;
        }
        words.next();
    }
    // A word that is neither a command, a flag nor a placeholder must not look like a command.
    let is_lower = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
    let odd = words
        .peek()
        .filter(|word| is_lower(word) && !["help", "last"].contains(word));
    assert_eq!(odd, None, "there is no such command: {line}");
    let flags = words.filter(|word| word.starts_with("--"));
    Some((path, flags.map(str::to_owned).collect()))
}

/// Returns all calls of the program in a document.
fn calls(
    document: &str,
    commands: &BTreeMap<Vec<String>, BTreeSet<String>>,
) -> Vec<(Vec<String>, Vec<String>)> {
    let shown = self::commands(document).into_iter().map(str::to_owned);
    let lines: Vec<String> = spans(document).into_iter().chain(shown).collect();
    let lines = lines.iter().flat_map(|line| line.split(['&', '|', ';']));
    lines.filter_map(|line| called(line, commands)).collect()
}

#[test]
fn commands_and_flags_in_the_pages_exist() {
    let commands = all_commands();
    let flags: BTreeSet<&String> = commands.values().flatten().collect();
    let mut checked = 0;
    for page in pages() {
        let text = document(&page);
        for (path, given) in calls(&text, &commands) {
            for flag in given {
                assert!(commands[&path].contains(&flag), "{page}: {path:?} {flag}");
                checked += 1;
            }
        }
        for span in spans(&text) {
            if span.starts_with("--") {
                let flag = span.split([' ', '=']).next().unwrap();
                assert!(flags.contains(&flag.to_owned()), "{page}: {span}");
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "{checked}");
}

#[test]
fn the_pages_of_commands_and_proof_name_every_command_and_every_flag() {
    let page = [
        "docs/commands.md",
        "docs/proof.md",
        "docs/fleet.md",
        "docs/consistency.md",
    ]
    .map(document)
    .concat();
    let commands = all_commands();
    let of_the_workflow = calls(&document("docs/commands.md"), &commands);
    let calls = calls(&page, &commands);
    let alone: BTreeSet<String> = spans(&document("docs/commands.md"))
        .iter()
        .filter_map(|span| Some(span.split(' ').next()?.to_owned()))
        .collect();
    for (path, flags) in &commands {
        // A group of commands need not be called by itself.
        let is_group = commands
            .keys()
            .any(|other| other.len() > path.len() && other.starts_with(path));
        let is_called = calls.iter().any(|(called, _)| called == path);
        assert!(is_called || is_group, "{path:?}");
        let with_flags: [Vec<String>; 5] = [
            vec![],
            vec!["dev".to_owned()],
            vec!["plan".to_owned()],
            vec!["orchestrate".to_owned()],
            vec!["chat".to_owned()],
        ];
        let everywhere = [
            "--help",
            "--version",
            "--quiet",
            "--output-format",
            "--root",
        ];
        for flag in flags {
            let calls = if path.is_empty() {
                &of_the_workflow
            } else {
                &calls
            };
            let mut given = calls.iter().filter(|(called, _)| called == path);
            let is_given = given.any(|(_, given)| given.contains(flag));
            let is_alone = with_flags.contains(path) || everywhere.contains(&flag.as_str());
            assert!(
                is_given || (is_alone && alone.contains(flag)),
                "{path:?} {flag}"
            );
        }
    }
}

#[test]
fn help_fits_a_terminal_of_80_columns() {
    let project = TestProject::new();
    let help = |mut command: Command, flag: &str| {
        let output = command.arg(flag).env("COLUMNS", "200").output().unwrap();
        assert!(output.status.success(), "{command:?}");
        let help = String::from_utf8(output.stdout).unwrap();
        for line in help.lines() {
            assert!(line.chars().count() <= 80, "{command:?}\n{line}");
        }
    };
    for path in all_commands().keys() {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        help(project.command(&path), "-h");
        help(project.command(&path), "--help");
    }
    help(Command::new(assert_cmd::cargo::cargo_bin!("dev")), "--help");
    help(
        Command::new(assert_cmd::cargo::cargo_bin!("dev-agent")),
        "--help",
    );
}

/// Returns every exit code with its names.
fn exits() -> BTreeSet<(u8, String)> {
    let all = [
        Exit::Done,
        Exit::BuildFailed,
        Exit::GateChanged,
        Exit::WarningsDenied,
        Exit::GateWeakened,
        Exit::NotProven,
        Exit::Findings,
        Exit::Usage,
        Exit::NotReady,
        Exit::ModelFailed,
        Exit::McpFailed,
        Exit::ReplyRejected,
        Exit::LocalIo,
        Exit::AuditFailed,
        Exit::ToolsFailed,
        Exit::LoopLimit,
        Exit::OverBudget,
        Exit::NotPermitted,
        Exit::StepFailed,
        Exit::Stopped,
        Exit::Unreliable,
        Exit::IterationLimit,
        Exit::BranchTimeout,
        Exit::PublishFailed,
        Exit::Interrupted(Signal::Hup),
        Exit::Interrupted(Signal::Int),
        Exit::Interrupted(Signal::Term),
    ];
    for exit in all {
        // A new exit does not compile here: add it to the list, and to the documents.
        match exit {
            Exit::Done
            | Exit::BuildFailed
            | Exit::GateChanged
            | Exit::WarningsDenied
            | Exit::GateWeakened
            | Exit::NotProven
            | Exit::Findings
            | Exit::Usage
            | Exit::NotReady
            | Exit::ModelFailed
            | Exit::McpFailed
            | Exit::ReplyRejected
            | Exit::LocalIo
            | Exit::AuditFailed
            | Exit::ToolsFailed
            | Exit::LoopLimit
            | Exit::OverBudget
            | Exit::NotPermitted
            | Exit::StepFailed
            | Exit::Stopped
            | Exit::Unreliable
            | Exit::IterationLimit
            | Exit::BranchTimeout
            | Exit::PublishFailed
            | Exit::Interrupted(Signal::Hup | Signal::Int | Signal::Term) => {}
        }
    }
    all.iter()
        .map(|exit| (exit.code(), exit.name().to_owned()))
        .collect()
}

#[test]
fn the_tables_of_exit_codes_are_those_of_the_program() {
    for page in ["README.md", "docs/programs.md"] {
        let mut documented = BTreeSet::new();
        for row in table(&document(page), "code") {
            for code in listed(&row[0]) {
                for name in listed(&row[1]) {
                    documented.insert((code.parse().unwrap(), name));
                }
            }
        }
        assert_eq!(documented, exits(), "{page}");
    }
}

#[test]
fn help_lists_the_exit_codes_of_the_program() {
    let project = TestProject::new();
    let mut shown = BTreeSet::new();
    for arguments in [
        &["--help"][..],
        &["dev", "--help"],
        &["plan", "--help"],
        &["mcp", "--help"],
        &["orchestrate", "--help"],
        &["chat", "--help"],
    ] {
        let help = project.run(arguments).stdout;
        let lines = help
            .lines()
            .skip_while(|line| !line.starts_with("Exit codes"));
        let mut codes: Vec<u8> = Vec::new();
        for line in lines.skip(1).take_while(|line| !line.is_empty()) {
            let name = line.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let numbers = line[..name]
                .split(',')
                .filter_map(|code| code.trim().parse().ok());
            let numbers: Vec<u8> = numbers.collect();
            // A line without a code continues the one above, or adds a name to the same code.
            if !numbers.is_empty() {
                codes = numbers;
            } else if name > 5 {
                continue;
            }
            let name = line[name..].split([' ', ',']).next().unwrap().to_owned();
            shown.extend(codes.iter().map(|code| (*code, name.clone())));
        }
    }
    assert_eq!(shown, exits());
}

#[test]
fn the_agents_page_has_every_setting_with_its_default_and_every_tool() {
    let page = document("docs/dev.md");
    let (agent, server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    agent.typed(&[], "go\n").exits(0);
    let config = fs::read_to_string(agent.home("config.json")).unwrap();
    let config: BTreeMap<String, serde_json::Value> = serde_json::from_str(&config).unwrap();
    let is: BTreeMap<String, String> = config
        .into_iter()
        .map(|(field, default)| (field, default.to_string().replace('"', "")))
        .collect();
    let mut documented = BTreeMap::new();
    for row in table(&page, "field") {
        documented.extend(listed(&row[0]).into_iter().zip(listed(&row[1])));
    }
    assert_eq!(documented, is);
    let heading = Regex::new(r"(?m)^### ([A-Z_]+)").unwrap();
    let told = told(&server, 0);
    let tools: BTreeSet<String> = heading
        .captures_iter(&told)
        .map(|tool| tool[1].to_owned())
        .collect();
    let rows = table(&page, "tool");
    assert_eq!(tools, rows.iter().flat_map(|row| listed(&row[0])).collect());
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
