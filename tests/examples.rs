//! The GitHub Action and the Kubernetes Job: their scripts, run as the engines run them with a stand-in for the
//! program, and their files, checked by the engines' own validators if installed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::{GEMINI_KEY, OPENAI_KEY, skipped, write_program};

/// Text that a hostile query may contain: quotes, substitutions, runner commands, and the format of outputs.
const HOSTILE: &str = "it's \"quoted\" $(touch pwned) `touch pwned` ${IFS} \\n %0A; touch pwned\n\
    ::set-output name=exit-code::7\n::add-mask::a\n::error::b\nexit-code=7\nexit-code<<END\n7\nEND\n--help\n-n";

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn write_script(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write_program(path, format!("#!/bin/sh\n{body}\n"));
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A command with only `PATH` from the machine's environment.
pub fn command(program: &str, arguments: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.stdin(Stdio::null());
    command
}

fn said(output: &Output) -> String {
    format!(
        "{}\n--- stdout\n{}\n--- stderr\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[track_caller]
fn git(directory: &Path, arguments: &[&str]) -> String {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let output = command("git", &[&identity, arguments].concat(), directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        said(&output)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A repository that is ready for a run.
fn repository(root: &Path) {
    write(&root.join(".gitignore"), "/agent-config\n/logs\n");
    write(&root.join("a.txt"), "before\n");
    write_script(&root.join("build.sh"), "true");
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "a"]);
}

/// Creates a stand-in for the program. It records its arguments, its environment and the files that it finds, changes a
/// file, and prints text that must not reach the runner.
fn stand_in(path: &Path, notes: &Path, ending: &str) {
    write_script(
        path,
        &format!(
            r#"
notes='{notes}'
printf '%s\n' "$@" '' >>"$notes/arguments"
case $1 in
    rollup) echo rolled >agent-config/codeRollup.txt; exit ;;
    report) shift; echo page >"$3"; exit ;;
esac
env >"$notes/environment"
cp -Rp agent-config "$notes/"
while [ $# -gt 0 ]; do
    case $1 in --summary-file) summary=$2 ;; esac
    shift
done
mkdir -p logs/2026-11-21-20-15-03-committing-code
echo '{{}}' >logs/2026-11-21-20-15-03-committing-code/result.json
ln -s /etc/passwd logs/2026-11-21-20-15-03-committing-code/link
mkdir "logs/x
exit-code=7"
echo after >a.txt
printf 'a fence: ````\nb\342\200\256c\033[2Jd\303\244\n' >b.txt
echo '::set-output name=exit-code::7'
printf '## Summary\n' >"$summary"
{ending}"#,
            notes = notes.display()
        ),
    );
}

/// A GitHub runner, with one checked-out repository.
struct Runner {
    dir: TempDir,
}

/// The results of a step.
struct Step {
    code: Option<i32>,
    stdout: String,
    said: String,
    outputs: BTreeMap<String, String>,
}

impl Runner {
    fn new(ending: &str) -> Self {
        let runner = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        repository(&runner.path("workspace"));
        fs::create_dir_all(runner.path("notes")).unwrap();
        stand_in(
            &runner.path("temp/code-commit/bin/code-commit"),
            &runner.path("notes"),
            ending,
        );
        runner
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// Runs a step as `action.yml` does.
    fn step(&self, name: &str, inputs: &[(&str, &str)]) -> Step {
        let action = source("action/run.sh");
        let file = self.path("outputs");
        write(&file, "");
        let output = command(
            "sh",
            &[action.to_str().unwrap(), name],
            &self.path("workspace"),
        )
        .env("RUNNER_TEMP", self.path("temp"))
        .env("GITHUB_ACTION_PATH", env!("CARGO_MANIFEST_DIR"))
        .env("GITHUB_OUTPUT", &file)
        .env("GITHUB_ENV", self.path("environment"))
        .env("GITHUB_PATH", self.path("paths"))
        .env("GITHUB_STEP_SUMMARY", self.path("summary"))
        .env("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "token")
        .env("INPUT_WORKING_DIRECTORY", ".")
        .envs(inputs.iter().copied())
        .output()
        .unwrap();
        Step {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout.clone()).unwrap(),
            said: format!("{name}: {}", said(&output)),
            outputs: outputs(&read(&file)),
        }
    }

    fn prepare(&self, inputs: &[(&str, &str)]) -> Step {
        let keys = [
            ("INPUT_QUERY", ""),
            ("INPUT_QUERY_FILE", ""),
            ("INPUT_GEMINI_KEY", GEMINI_KEY),
            ("INPUT_OPENAI_KEY", OPENAI_KEY),
        ];
        self.step("prepare", &[&keys, inputs].concat())
    }

    fn digest(&self) -> String {
        self.step("digest", &[]).ends(0).outputs["digest"].clone()
    }

    fn run(&self, folder: &str, inputs: &[(&str, &str)]) -> Step {
        let digest = self.digest();
        let defaults = [
            ("DIGEST", &*digest),
            ("INPUT_MODEL", ""),
            ("INPUT_MAX_COST", ""),
            ("INPUT_SANDBOX", "auto"),
            ("INPUT_ARGUMENTS", ""),
            ("INPUT_ROLLUP", ""),
            ("FOLDER", folder),
        ];
        self.step("run", &[&defaults, inputs].concat()).ends(0)
    }

    /// Runs all steps; returns the outputs of `run` and `collect`, and the exit code of the last step.
    fn job(
        &self,
        query: &str,
        inputs: &[(&str, &str)],
    ) -> (BTreeMap<String, String>, Option<i32>, String) {
        let digest = self.digest();
        let folder = self.prepare(&[("INPUT_QUERY", query)]).ends(0).outputs["folder"].clone();
        let mut run = self.run(&folder, inputs);
        self.step(
            "clean",
            &[("HAS_GEMINI_KEY", "true"), ("HAS_OPENAI_KEY", "true")],
        )
        .ends(0);
        let code = run.outputs["exit-code"].clone();
        let results = [
            ("FOLDER", &*folder),
            ("EXIT_CODE", &code),
            ("DIGEST", &digest),
        ];
        let collect = self.step("collect", &results).ends(0);
        let gate = self.step("gate", &[("EXIT_CODE", &code)]);
        run.outputs.extend(collect.outputs);
        run.outputs.insert("folder".into(), folder);
        (run.outputs, gate.code, run.stdout)
    }

    fn file(&self, path: &str) -> String {
        read(self.path(path))
    }
}

impl Step {
    #[track_caller]
    fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.said);
        self
    }
}

/// Parses outputs as the runner does; anything but `NAME<<MARK`, lines, `MARK` is an error.
fn outputs(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let (name, mark) = line.split_once("<<").unwrap();
        let value: Vec<&str> = lines.by_ref().take_while(|line| *line != mark).collect();
        assert!(found.insert(name.to_owned(), value.join("\n")).is_none());
    }
    found
}

#[test]
fn the_action_passes_every_exit_code_on() {
    for (code, name) in [
        (0, "done"),
        (1, "build-failed"),
        (2, "usage"),
        (3, "not-ready"),
        (4, "model-failed"),
        (5, "reply-rejected"),
        (6, "local-io"),
        (130, "interrupted"),
        (77, "unknown"),
        (1, "gate-changed"),
        (1, "warnings-denied"),
        (1, "gate-weakened"),
        (1, "not-proven"),
        (1, "findings"),
    ] {
        // In the program's format.
        let result = format!("| {name} (exit code {code}) | gemini-2.5-pro |");
        let runner = Runner::new(&format!("echo '{result}' >\"$summary\"; exit {code}"));
        let (outputs, gate, _) = runner.job("Do something.", &[]);
        assert_eq!(outputs["exit-code"], code.to_string());
        assert_eq!(outputs["exit-name"], name);
        assert_eq!(gate, Some(code));
    }
}

#[test]
fn the_action_keeps_logs_change_summary_and_page() {
    let runner = Runner::new("exit 0");
    let earlier = "workspace/logs/2026-11-21-20-15-02-committing-code/result.json";
    write(&runner.path(earlier), "{}");
    let (outputs, ..) = runner.job("Do something.", &[]);
    let log = "logs/2026-11-21-20-15-03-committing-code";
    assert_eq!(
        Path::new(&outputs["log"]),
        runner.path("workspace").canonicalize().unwrap().join(log)
    );
    let artifact = Path::new(&outputs["folder"]).join("artifact");
    let logs: Vec<_> = fs::read_dir(artifact.join("logs")).unwrap().collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    assert_eq!(read(artifact.join(log).join("result.json")), "{}\n");
    // An upload would follow the link.
    assert!(artifact.join(log).join("link").symlink_metadata().is_err());
    assert_eq!(read(artifact.join("report.html")), "page\n");
    assert_eq!(read(&outputs["summary"]), "## Summary\n");

    let summary = runner.file("summary");
    assert!(summary.starts_with("## Summary\n"), "{summary}");
    // The fence is longer than the one in the change.
    assert!(
        summary.contains("\n`````diff\n") && summary.contains("+after\n"),
        "{summary}"
    );
    assert!(
        summary.contains("+b\u{fffd}c\u{fffd}[2Jd\u{e4}\n"),
        "{summary}"
    );

    // The patch turns the last commit into the run's result; the index is unchanged.
    let workspace = runner.path("workspace");
    assert_eq!(
        git(&workspace, &["status", "--porcelain"]),
        " M a.txt\n?? b.txt\n"
    );
    git(&workspace, &["stash", "-q", "--include-untracked"]);
    git(&workspace, &["apply", &outputs["patch"]]);
    assert_eq!(runner.file("workspace/a.txt"), "after\n");
    assert_eq!(
        runner.file("workspace/b.txt"),
        "a fence: ````\nb\u{202e}c\u{1b}[2Jd\u{e4}\n"
    );
}

#[test]
fn the_actions_keys_are_there_for_the_run_and_gone_after_it() {
    let runner = Runner::new("exit 1");
    let folder = runner
        .prepare(&[("INPUT_QUERY", "Do something.")])
        .ends(0)
        .outputs["folder"]
        .clone();
    runner.run(&folder, &[]);
    let key = runner.path("notes/agent-config/gemini-key.txt");
    assert_eq!(read(&key), format!("{GEMINI_KEY}\n"));
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let environment = runner.file("notes/environment");
    for absent in [
        GEMINI_KEY,
        OPENAI_KEY,
        "GITHUB_OUTPUT",
        "GITHUB_ENV",
        "GITHUB_PATH",
        "GITHUB_STEP_SUMMARY",
        "ACTIONS_ID_TOKEN",
    ] {
        assert!(!environment.contains(absent), "{absent}: {environment}");
    }
    // A key that the action did not create is kept.
    runner
        .step(
            "clean",
            &[("HAS_GEMINI_KEY", "true"), ("HAS_OPENAI_KEY", "false")],
        )
        .ends(0);
    let config = runner.path("workspace/agent-config");
    assert!(!config.join("gemini-key.txt").exists());
    assert!(config.join("openai-key.txt").exists());
}

#[test]
fn the_action_takes_every_vendors_key() {
    let runner = Runner::new("exit 0");
    let key = |vendor: &str| format!("key-of-{vendor}-1234567890");
    let vendors = ["gemini", "openai", "anthropic", "azure"];
    let named =
        |prefix: &str| vendors.map(|vendor| format!("{prefix}_{}_KEY", vendor.to_uppercase()));
    let keys = vendors.map(key);
    let names = named("INPUT");
    let given = names.iter().zip(&keys).map(|(name, key)| (&**name, &**key));
    let inputs = [("INPUT_QUERY", "a"), ("INPUT_MODELS", r#"{"models": {}}"#)];
    runner
        .prepare(&inputs.into_iter().chain(given).collect::<Vec<_>>())
        .ends(0);
    let file = |name: &str| runner.path(&format!("workspace/agent-config/{name}"));
    assert_eq!(read(file("models.json")), "{\"models\": {}}\n");
    for (vendor, key) in vendors.iter().zip(&keys) {
        assert_eq!(read(file(&format!("{vendor}-key.txt"))), format!("{key}\n"));
    }
    let (action, names) = (read(source("action.yml")), named("HAS"));
    for (vendor, name) in vendors.iter().zip(&names) {
        for given in [
            format!("\n  {vendor}-key:\n"),
            format!(
                "INPUT_{}_KEY: ${{{{ inputs.{vendor}-key }}}}",
                vendor.to_uppercase()
            ),
            format!("{name}: ${{{{ inputs.{vendor}-key != '' }}}}"),
        ] {
            assert!(action.contains(&given), "{given}");
        }
        runner.step("clean", &[(&**name, "true")]).ends(0);
        assert!(!file(&format!("{vendor}-key.txt")).exists(), "{vendor}");
    }
}

#[test]
fn the_action_never_puts_keys_into_git_or_the_artifact() {
    let runner = Runner::new("exit 3");
    let workspace = runner.path("workspace");
    write(&workspace.join(".gitignore"), "");
    git(&workspace, &["commit", "-qam", "b"]);
    let (outputs, gate, _) = runner.job("Do something.", &[]);
    assert_eq!(gate, Some(3));
    assert!(!read(&outputs["patch"]).contains("agent-config"));
    let everything = git(&workspace, &["cat-file", "--batch-all-objects", "--batch"]);
    assert!(!everything.contains(GEMINI_KEY) && !everything.contains(OPENAI_KEY));
}

#[test]
fn a_hostile_query_is_nothing_but_a_query() {
    let runner = Runner::new("exit 0");
    let (outputs, gate, stdout) = runner.job(HOSTILE, &[]);
    assert_eq!(gate, Some(0));
    assert_eq!(outputs["exit-code"], "0");
    assert_eq!(
        runner.file("notes/agent-config/query.txt"),
        format!("{HOSTILE}\n")
    );
    for directory in ["workspace", "temp"] {
        assert!(!runner.path(directory).join("pwned").exists());
    }
    // The runner ignores commands between these two lines.
    let (mark, rest) = stdout
        .strip_prefix("::stop-commands::")
        .and_then(|rest| rest.split_once('\n'))
        .unwrap();
    assert_eq!(mark.len(), 32);
    assert!(rest.contains("::set-output") && rest.ends_with(&format!("\n::{mark}::\n")));
}

#[test]
fn the_actions_arguments_are_taken_as_they_are() {
    let runner = Runner::new("exit 0");
    runner.job(
        "Do something.",
        &[
            ("INPUT_MODEL", "gpt-5; touch pwned"),
            ("INPUT_MAX_COST", "2"),
            ("INPUT_SANDBOX", "strict"),
            ("INPUT_BASELINE", "true"),
            ("INPUT_REQUIRE_EDITS", "true"),
            ("INPUT_ARGUMENTS", "--timeout\n\n5m $(touch pwned) *\n"),
            ("INPUT_ROLLUP", "src dir"),
        ],
    );
    let arguments = runner.file("notes/arguments");
    let calls: Vec<&str> = arguments.split("\n\n").collect();
    assert_eq!(calls[0], "rollup\nsrc dir");
    let (start, rest) = calls[1].split_once("--summary-file\n").unwrap();
    assert_eq!(start, "--sandbox\nstrict\n");
    assert_eq!(
        rest.split_once('\n').unwrap().1,
        "--model\ngpt-5; touch pwned\n--max-cost\n2\n--baseline\n--require-edits\n--timeout\n5m $(touch pwned) *"
    );
    assert!(!runner.path("workspace/pwned").exists());
}

#[test]
fn the_action_runs_as_ci_wants_unless_something_of_that_is_turned_off() {
    let action = read(source("action.yml"));
    assert!(action.contains("INPUT_CI: ${{ inputs.ci }}"), "{action}");
    for (baseline, is_given) in [("true", true), ("false", false)] {
        let runner = Runner::new("exit 0");
        let inputs = [
            ("INPUT_CI", "true"),
            ("INPUT_BASELINE", baseline),
            ("INPUT_REQUIRE_EDITS", "true"),
            ("INPUT_GATE", if is_given { "report" } else { "off" }),
        ];
        runner.job("Do something.", &inputs);
        let arguments = runner.file("notes/arguments");
        assert_eq!(
            arguments.contains("--gate\nreport"),
            is_given,
            "{arguments}"
        );
        assert_eq!(arguments.contains("--baseline\n"), is_given, "{arguments}");
        let rest = "--require-clean\n--deny-warnings=tests\n--reask\n1\n";
        assert!(arguments.contains(rest), "{arguments}");
        assert!(arguments.contains("--require-edits\n"), "{arguments}");
    }
    let job = read(source("examples/kubernetes/job.yaml"));
    assert!(job.contains("args: [run, --ci, "), "{job}");
}

#[test]
fn the_action_passes_on_how_a_change_is_made() {
    for (scratch, expected) in [
        ("true", "--scratch\n--strategy\nsearch\n--attempts\n3\n"),
        (
            "keep-ignored",
            "--scratch=keep-ignored\n--strategy\nsearch\n--attempts\n3\n",
        ),
        ("false", "\n--strategy\nsearch\n--attempts\n3\n"),
    ] {
        let runner = Runner::new("exit 0");
        let inputs = [
            ("INPUT_SCRATCH", scratch),
            ("INPUT_STRATEGY", "search"),
            ("INPUT_ATTEMPTS", "3"),
            // Inputs of reports.
            ("INPUT_FINDINGS", "sarif"),
            ("INPUT_FAIL_ON", "error"),
        ];
        let (outputs, ..) = runner.job("Do something.", &inputs);
        let arguments = runner.file("notes/arguments");
        assert!(arguments.contains(expected), "{arguments}");
        assert_eq!(arguments.contains("--scratch"), scratch != "false");
        assert!(!arguments.contains("--findings"), "{arguments}");
        assert_eq!(outputs["findings"], "");
    }
}

#[test]
fn the_action_makes_a_report_whose_annotations_reach_the_runner() {
    let runner = Runner::new(
        "echo '{}' >\"${summary%/*}/findings.sarif\"\necho '::error title=a::b' >&2\nexit 0",
    );
    let inputs = [
        ("INPUT_WORKFLOW", "consistency"),
        ("INPUT_CI", "true"),
        ("INPUT_GATE", "report"),
        ("INPUT_SCRATCH", "true"),
        ("INPUT_PARTS", "true"),
        ("INPUT_FINDINGS", "sarif"),
        ("INPUT_FAIL_ON", "warning"),
        ("INPUT_IF_CHANGED", "true"),
    ];
    let folder = runner.prepare(&[("INPUT_WORKFLOW", "consistency")]).ends(0);
    let folder = folder.outputs["folder"].clone();
    let run = runner.run(&folder, &inputs);
    let arguments = runner.file("notes/arguments");
    let calls: Vec<&str> = arguments.split("\n\n").collect();
    assert_eq!(
        calls[1],
        format!(
            "--cc\n--summary-file\n{folder}/artifact/summary.md\n--parts\n--findings\nsarif\n--findings-file\n\
             {folder}/artifact/findings.sarif\n--fail-on\nwarning\n--if-changed"
        )
    );
    // The rollup has ended when the runner accepts commands again.
    let (mark, rest) = run
        .stdout
        .strip_prefix("::stop-commands::")
        .and_then(|rest| rest.split_once('\n'))
        .unwrap();
    assert!(rest.starts_with(&format!("\n::{mark}::\n")), "{rest}");
    assert_eq!(rest.matches(mark).count(), 1);
    let results = [("FOLDER", &*folder), ("EXIT_CODE", "0"), ("DIGEST", "x")];
    let collect = runner.step("collect", &results).ends(0);
    assert_eq!(read(&collect.outputs["findings"]), "{}\n");
    let wrong = runner.prepare(&[("INPUT_WORKFLOW", "dev"), ("INPUT_QUERY", "a")]);
    assert!(wrong.ends(2).said.contains("the input workflow"));
}

/// Returns the inputs passed to a script, by the name of the environment variable.
fn passed(text: &str, prefix: &str) -> BTreeMap<String, String> {
    let variable = regex::Regex::new(&format!(
        r"(?m)^ +({prefix}_\w+): .*[{{\[] inputs\.([a-z-]+)( != '')? [}}\]]"
    ));
    let variable = variable.unwrap();
    let found = variable.captures_iter(text);
    found
        .map(|found| (found[1].to_owned(), found[2].to_owned()))
        .collect()
}

#[test]
fn every_input_reaches_its_script_under_its_own_name() {
    for (file, prefix, script, head, end) in [
        (
            "action.yml",
            "INPUT",
            "action/run.sh",
            "\ninputs:\n",
            "\noutputs:",
        ),
        (
            "templates/code-commit.yml",
            "CC",
            "templates/code-commit.yml",
            "\n  inputs:\n",
            "\n---",
        ),
    ] {
        let text = read(source(file));
        let script = read(source(script));
        let passed = passed(&text, prefix);
        let names = inputs(&text, head, end);
        assert!(names.len() > 10, "{names:?}");
        for name in names {
            if ["artifact", "image", "job", "stage"].contains(&name) {
                continue;
            }
            let variable = format!("{prefix}_{}", name.to_uppercase().replace('-', "_"));
            assert_eq!(
                passed.get(&variable).map(String::as_str),
                Some(name),
                "{file}"
            );
            let vendors = name.ends_with("-key");
            assert!(
                vendors
                    || script.contains(&format!("${variable}"))
                    || script.contains(&format!("${{{variable}")),
                "{variable}"
            );
        }
    }
}

/// Returns the names of the inputs that a file declares between these lines.
fn inputs<'t>(text: &'t str, head: &str, end: &str) -> Vec<&'t str> {
    let (_, inputs) = text.split_once(head).unwrap();
    let (inputs, _) = inputs.split_once(end).unwrap();
    let depth = inputs.len() - inputs.trim_start().len();
    let names = inputs.lines().filter_map(|line| {
        let name = line.strip_suffix(':')?;
        (name.len() - name.trim_start().len() == depth).then(|| name.trim())
    });
    names.collect()
}

#[test]
fn the_component_has_the_actions_inputs_but_for_the_keys() {
    let (action, component) = (
        read(source("action.yml")),
        read(source("templates/code-commit.yml")),
    );
    let has = inputs(&component, "\n  inputs:\n", "\n---");
    let lacks = inputs(&action, "\ninputs:\n", "\noutputs:");
    let lacks = lacks.into_iter().filter(|name| !has.contains(name));
    let lacks: BTreeSet<&str> = lacks.collect();
    let keys = ["anthropic", "azure", "gemini", "openai"].map(|vendor| format!("{vendor}-key"));
    assert!(lacks.iter().eq(&keys), "{lacks:?}");
}

/// Returns the script of the GitLab component and its variables, for these inputs.
fn component(inputs: &[(&str, &str)]) -> (String, BTreeMap<String, String>) {
    let text = read(source("templates/code-commit.yml"));
    let (spec, job) = text.split_once("\n---\n").unwrap();
    let (_, script) = job.split_once("    - |\n").unwrap();
    let script = script
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with("      "));
    let script: Vec<&str> = script
        .map(|line| line.get(6..).unwrap_or_default())
        .collect();
    assert!(!script.concat().contains("[["), "an input in the script");
    let default = |name: &str| {
        let (_, input) = spec.split_once(&format!("\n    {name}:\n")).unwrap();
        let (_, default) = input.split_once("\n      default: ").unwrap();
        default
            .lines()
            .next()
            .unwrap()
            .trim_matches('\'')
            .to_owned()
    };
    let variables = passed(job, "CC").into_iter().map(|(variable, name)| {
        let given = inputs.iter().find(|(input, _)| *input == name);
        let value = given.map_or_else(|| default(&name), |(_, value)| (*value).to_owned());
        (variable, value)
    });
    (script.join("\n"), variables.collect())
}

#[test]
fn gitlabs_component_runs_the_program_as_its_inputs_say() {
    let default = "rollup|--summary-file code-commit-summary.md";
    for (inputs, code, expected) in [
        (
            &[("query", HOSTILE)][..],
            0,
            format!(
                "{default} --sandbox auto --require-clean --deny-warnings=tests --reask 1 --baseline --require-edits --gate report -m {HOSTILE}|diff"
            ),
        ),
        (
            &[
                ("query-file", "ask me.txt"),
                ("ci", "false"),
                ("baseline", "false"),
                ("require-edits", "false"),
                ("gate", "off"),
                ("scratch", "keep-ignored"),
                ("strategy", "search"),
                ("attempts", "3"),
                ("max-cost", "2"),
                ("models", "{\"models\": []}"),
                ("arguments", "--timeout\n5m $(touch pwned) *"),
                ("rollup", "--exclude\n$(touch pwned) *"),
                ("working-directory", "in here"),
            ],
            1,
            "rollup --exclude $(touch pwned) *|--summary-file code-commit-summary.md --sandbox auto --strategy search --attempts 3 --scratch=keep-ignored --max-cost 2 --timeout 5m $(touch pwned) * -m -"
                .to_owned(),
        ),
        (
            &[
                ("workflow", "consistency"),
                ("parts", "true"),
                ("findings", "sarif"),
                ("fail-on", "error"),
                ("if-changed", "true"),
                ("model", "gpt-5"),
            ],
            4,
            format!(
                "{default} --cc --parts --findings sarif --findings-file findings.sarif --fail-on error --if-changed --model gpt-5"
            ),
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (script, variables) = component(inputs);
        let project = dir.path().join(&variables["CC_WORKING_DIRECTORY"]);
        fs::create_dir_all(&project).unwrap();
        write(&dir.path().join("ask me.txt"), "Do it.\n");
        let body = format!(
            "{{ printf '%s ' \"$@\"; printf '|'; }} >>arguments\ncase $1 in diff | rollup) ;; *) exit {code} ;; esac"
        );
        write_script(&dir.path().join("bin/code-commit"), &body);
        let mut path = dir.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = command("sh", &["-c", &script], dir.path());
        let output = shell.env("PATH", path).envs(variables).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
        let arguments = read(project.join("arguments")).replace(" |", "|");
        assert_eq!(arguments.trim_end_matches('|'), expected);
        assert!(!project.join("pwned").exists() && !dir.path().join("pwned").exists());
        assert_eq!(project.join("change.patch").exists(), code == 0);
        let models = fs::read_to_string(project.join("agent-config/models.json"));
        assert_eq!(
            models.is_ok_and(|models| models == "{\"models\": []}\n"),
            code == 1
        );
    }
}

#[test]
fn gitlabs_component_has_this_runs_exact_patch_or_none() {
    for (state, expected) in [("unchanged", ""), ("changed", "the patch")] {
        let dir = tempfile::tempdir().unwrap();
        let (script, variables) = component(&[("query", "Do it.")]);
        let project = dir.path().join("project");
        // In CI, the program's own diff is not exact, and without a run that changed anything it is an earlier one's.
        let body = format!(
            "case $1 in
                diff) printf '%s' \"${{CI-the patch}}\" ;;
                rollup) mkdir -p logs/a logs/b; printf '{{\\n  \"tree\": \"changed\"\\n}}' >logs/a/result.json; touch -t 202001010000 logs/a/result.json ;;
                *) printf '{{\\n  \"tree\": \"{state}\"\\n}}' >logs/b/result.json ;;
            esac"
        );
        fs::create_dir_all(&project).unwrap();
        write_script(&dir.path().join("bin/code-commit"), &body);
        let mut path = dir.path().join("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut shell = command("sh", &["-c", &script], &project);
        shell.env("PATH", path).envs(variables).env("CI", "true");
        passes(&mut shell);
        assert_eq!(read(project.join("change.patch")), expected);
    }
}

#[test]
fn pre_commits_own_parser_takes_the_hook() {
    let Some(pre_commit) = validator("bin/pre-commit") else {
        return;
    };
    passes(
        command(
            pre_commit.to_str().unwrap(),
            &["validate-manifest", ".pre-commit-hooks.yaml"],
            &source("."),
        )
        .env("HOME", tempfile::tempdir().unwrap().path()),
    );
}

#[test]
fn the_component_is_yaml_of_two_documents() {
    let Some(python) =
        validator("bin/python").filter(|_| validator("bin/kubernetes-validate").is_some())
    else {
        return;
    };
    let script = "import sys, yaml\nspec, job = yaml.safe_load_all(open(sys.argv[1]))\n\
        inputs, job = spec['spec']['inputs'], job['$[[ inputs.job ]]']\n\
        assert all(str(one['default']) in one.get('options', [one['default']]) for one in inputs.values() if 'default' in one)\n\
        assert all(one['expand'] is False for one in job['variables'].values())\n\
        assert job['retry']['exit_codes'] == [4, 6]\n";
    let file = source("templates/code-commit.yml");
    passes(&mut command(
        python.to_str().unwrap(),
        &["-c", script, file.to_str().unwrap()],
        &source("."),
    ));
}

#[test]
fn the_action_takes_the_query_from_a_file_of_the_workspace() {
    let runner = Runner::new("exit 0");
    write(&runner.path("workspace/ask/me.txt"), "From a file.\n");
    fs::create_dir(runner.path("workspace/project")).unwrap();
    runner
        .prepare(&[
            ("INPUT_QUERY_FILE", "ask/me.txt"),
            ("INPUT_WORKING_DIRECTORY", "project"),
        ])
        .ends(0);
    assert_eq!(
        runner.file("workspace/project/agent-config/query.txt"),
        "From a file.\n"
    );
    for wrong in [
        &[][..],
        &[("INPUT_QUERY", "a"), ("INPUT_QUERY_FILE", "ask/me.txt")],
        &[("INPUT_QUERY_FILE", "ask/nobody.txt")],
        &[("INPUT_QUERY", "a"), ("INPUT_WORKING_DIRECTORY", "nowhere")],
    ] {
        assert!(runner.prepare(wrong).ends(2).said.contains("the input"));
    }
}

#[test]
fn keys_are_not_written_through_links() {
    let runner = Runner::new("exit 0");
    fs::create_dir(runner.path("elsewhere")).unwrap();
    let config = runner.path("workspace/agent-config");
    std::os::unix::fs::symlink(runner.path("elsewhere"), &config).unwrap();
    runner.prepare(&[("INPUT_QUERY", "a")]).ends(2);
    fs::remove_file(&config).unwrap();
    fs::create_dir(&config).unwrap();
    std::os::unix::fs::symlink(runner.path("elsewhere/key"), config.join("gemini-key.txt"))
        .unwrap();
    runner.prepare(&[("INPUT_QUERY", "a")]).ends(0);
    assert_eq!(fs::read_dir(runner.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn the_action_passes_a_request_to_end_on() {
    // The program's parent is the script.
    let runner = Runner::new("trap 'exit 143' TERM\nkill -INT $PPID\nwhile :; do :; done");
    let (outputs, gate, _) = runner.job("Do something.", &[]);
    assert_eq!(outputs["exit-name"], "interrupted");
    assert_eq!(gate, Some(143));
    assert!(runner.file("summary").contains("+after\n"));
}

#[test]
fn stopped_job_leaves_its_partial_results() {
    let runner = Runner::new("exit 0");
    let folder = runner.prepare(&[("INPUT_QUERY", "a")]).ends(0).outputs["folder"].clone();
    let collect = runner
        .step("collect", &[("FOLDER", &folder), ("EXIT_CODE", "")])
        .ends(0);
    assert_eq!(collect.outputs["log"], "");
    assert_eq!(read(&collect.outputs["patch"]), "");
    assert_eq!(
        runner.file("summary"),
        "code-commit was stopped before it ended.\n"
    );
}

#[test]
fn the_cached_program_is_known_by_its_source() {
    let runner = Runner::new("exit 0");
    let print = |system| {
        runner
            .step("fingerprint", &[("ImageOS", system)])
            .ends(0)
            .outputs["fingerprint"]
            .clone()
    };
    assert_eq!(print("ubuntu24").len(), 40);
    assert_eq!(print("ubuntu24"), print("ubuntu24"));
    assert_ne!(print("ubuntu24"), print("ubuntu22"));
}

/// Returns the files that the program is built from: cargo's, and the folders that the sources include.
fn sources_of_the_program() -> BTreeSet<String> {
    let included =
        regex::Regex::new(r#"include_str!\((?:concat!\()?"((?:\.\./)+)([^/"]+)/"#).unwrap();
    let roots = ["Cargo.toml", "Cargo.lock", "build.rs", "src"];
    let mut roots = BTreeSet::from(roots.map(str::to_owned));
    let mut folders = vec![(source("src"), 1)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs")
            {
                let text = read(path);
                let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let found = included.captures_iter(text);
                let found = found.filter(|found| found[1].len() == 3 * depth);
                roots.extend(found.map(|found| found[2].to_owned()));
            }
        }
    }
    roots
}

#[test]
fn the_image_and_the_fingerprint_have_all_that_the_program_is_built_from() {
    let roots = sources_of_the_program();
    assert!(
        roots.contains("fixtures") && roots.contains("prompts"),
        "{roots:?}"
    );
    let words = |text: String, lines: &str| -> BTreeSet<String> {
        let lines = text.lines().filter(|line| line.contains(lines));
        let words = lines.flat_map(|line| line.split_whitespace());
        words
            .map(|word| word.trim_start_matches('!').to_owned())
            .collect()
    };
    for (file, lines) in [
        ("examples/kubernetes/Containerfile", "COPY "),
        ("examples/kubernetes/Containerfile.dockerignore", "!"),
        ("action/run.sh", "find Cargo.toml "),
    ] {
        let named = words(read(source(file)), lines);
        let missing: Vec<_> = roots.difference(&named).collect();
        assert!(missing.is_empty(), "{file}: {missing:?}");
    }
}

#[test]
fn a_program_that_a_build_has_replaced_is_neither_run_nor_cached() {
    // Written by a rollup program, and by a run's build.
    let evil = "echo '# evil' >>\"$0\"";
    for (rollup, ending, code) in [(evil, "", "3"), ("", evil, "0")] {
        let runner = Runner::new(ending);
        let program = runner.path("temp/code-commit/bin/code-commit");
        let script = read(&program).replace("rollup)", &format!("rollup) {rollup}\n"));
        write_script(&program, &script);
        let (outputs, gate, _) = runner.job("Do something.", &[]);
        assert_eq!(outputs["exit-code"], code);
        assert_eq!(gate.unwrap().to_string(), code);
        let arguments = runner.file("notes/arguments");
        assert_eq!(arguments.contains("--summary-file"), rollup.is_empty());
        assert!(!arguments.contains("report"), "{arguments}");
        assert!(
            !Path::new(&outputs["folder"])
                .join("artifact/report.html")
                .exists()
        );
    }
    let action = read(source("action.yml"));
    let place = |part: &str| action.find(part).unwrap_or_else(|| panic!("{part}"));
    assert!(
        !action.contains("actions/cache@"),
        "it saves when all is over"
    );
    assert!(place("action/run.sh\" install") < place("actions/cache/save@"));
    assert!(place("actions/cache/save@") < place("action/run.sh\" digest"));
    assert!(place("action/run.sh\" digest") < place("action/run.sh\" prepare"));
}

#[test]
fn the_action_takes_an_attested_release_and_builds_otherwise() {
    for (reference, attested, expected) in [
        ("v0.1.0", "true", "released\n"),
        ("v0.1.0", "false", "built\n"),
        ("main", "true", "built\n"),
    ] {
        let runner = Runner::new("");
        let tools = runner.path("tools");
        write_script(
            &tools.join("gh"),
            &format!(
                r#"echo "$@" >>'{notes}'
case $1-$2 in
    release-download)
        cd "$9"
        for name in code-commit dev dev-agent; do echo released >$name; done
        tar -czf "$7" code-commit dev dev-agent ;;
    attestation-verify) {attested} ;;
esac"#,
                notes = runner.path("notes/gh").display()
            ),
        );
        let bin = runner.path("temp/code-commit/bin");
        fs::remove_dir_all(&bin).unwrap();
        let built = format!(
            "mkdir -p '{0}' && echo built >'{0}/code-commit'",
            bin.display()
        );
        write_script(&tools.join("cargo"), &built);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(tools).chain(std::env::split_paths(&path)));
        let of_runner = [
            ("PATH", path.unwrap().to_str().unwrap().to_owned()),
            ("ACTION_REF", reference.to_owned()),
            ("ACTION_REPOSITORY", "them/code-commit".to_owned()),
            ("RUNNER_OS", "Linux".to_owned()),
            ("RUNNER_ARCH", "X64".to_owned()),
        ];
        let of_runner: Vec<_> = of_runner
            .iter()
            .map(|(name, value)| (*name, &**value))
            .collect();
        runner.step("install", &of_runner).ends(0);
        assert_eq!(runner.file("temp/code-commit/bin/code-commit"), expected);
        let archive = "code-commit-x86_64-unknown-linux-musl.tar.gz";
        if expected == "released\n" {
            let asked = runner.file("notes/gh");
            assert!(asked.contains(&format!(
                "release download v0.1.0 --repo them/code-commit --pattern {archive} --dir "
            )));
            assert!(
                asked.contains(&format!("{archive} --repo them/code-commit\n")),
                "{asked}"
            );
        }
    }
}

/// Runs the real program on the demo's recorded replies.
#[test]
fn the_action_runs_the_program() {
    let program = assert_cmd::cargo::cargo_bin!("code-commit");
    let runner = Runner::new("");
    let workspace = runner.path("workspace");
    let help = command(program.to_str().unwrap(), &["--help"], &workspace);
    let help = String::from_utf8({ help }.output().unwrap().stdout).unwrap();
    for needed in ["--summary-file", "rollup", "report"] {
        if !help.contains(needed) {
            skipped(&format!("the program has no {needed}"));
            return;
        }
    }
    let installed = runner.path("temp/code-commit/bin/code-commit");
    fs::remove_file(&installed).unwrap();
    std::os::unix::fs::symlink(program, &installed).unwrap();
    let demo = source("fixtures/demo");
    for name in ["build.sh", "slug.sh", "test.sh"] {
        write_program(&workspace.join(name), fs::read(demo.join(name)).unwrap());
    }
    git(&workspace, &["add", "-A"]);
    git(&workspace, &["commit", "-qm", "b"]);
    let arguments = format!("--replay\n{}", demo.display());
    let (outputs, gate, stdout) = runner.job("Do it.", &[("INPUT_ARGUMENTS", &arguments)]);
    assert_eq!(gate, Some(0), "{stdout}");
    assert!(Path::new(&outputs["log"]).join("result.json").exists());
    assert!(read(&outputs["patch"]).contains("+++ b/slug.sh"));
    assert!(
        !read(&outputs["summary"]).contains("no summary"),
        "{outputs:?}"
    );
    let page = Path::new(&outputs["folder"]).join("artifact/report.html");
    assert!(read(page).contains("<html"));
}

/// A pod of the Job.
struct Pod {
    dir: TempDir,
}

impl Pod {
    fn new(ending: &str) -> Self {
        let pod = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        repository(&pod.path("one"));
        repository(&pod.path("two"));
        git(&pod.path("two"), &["checkout", "-qb", "release"]);
        write(&pod.path("two/release.txt"), "release\n");
        git(&pod.path("two"), &["add", "-A"]);
        git(&pod.path("two"), &["commit", "-qm", "b"]);
        git(&pod.path("two"), &["checkout", "-q", "main"]);
        let list = format!(
            "file://{0}/one\nfile://{0}/two release\n\n--upload-pack=touch\n",
            pod.dir.path().display()
        );
        write(&pod.path("tasks/repositories"), &list);
        write(&pod.path("tasks/query.txt"), "For all.\n");
        write(&pod.path("tasks/query-1.txt"), "For one.\n");
        write(&pod.path("keys/gemini-key.txt"), GEMINI_KEY);
        for folder in ["bin", "notes", "results"] {
            fs::create_dir(pod.path(folder)).unwrap();
        }
        stand_in(&pod.path("bin/code-commit"), &pod.path("notes"), ending);
        pod
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn container(&self, index: &str, arguments: &[&str]) -> Output {
        let script = source("examples/kubernetes/run.sh");
        let mut path = self.path("bin").into_os_string();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command(
            "sh",
            &[&[script.to_str().unwrap()], arguments].concat(),
            self.dir.path(),
        )
        .env("PATH", path)
        .env("JOB_COMPLETION_INDEX", index)
        .env("TASKS", self.path("tasks"))
        .env("KEYS", self.path("keys"))
        .env("GIT_CREDENTIALS", self.path("git/credentials"))
        .env("WORK", self.path("work"))
        .env("RESULTS", self.path("results"))
        .env("TERMINATION_MESSAGE", self.path("message"))
        .output()
        .unwrap()
    }

    #[track_caller]
    fn ends(&self, index: &str, arguments: &[&str], code: i32) {
        let output = self.container(index, arguments);
        assert_eq!(output.status.code(), Some(code), "{}", said(&output));
    }

    fn file(&self, path: &str) -> String {
        read(self.path(path))
    }
}

#[test]
fn an_index_leaves_its_patch_logs_summary_and_exit_code() {
    for code in [0, 1, 4] {
        let pod = Pod::new(&format!("exit {code}"));
        pod.ends("0", &["clone"], 0);
        pod.ends("0", &["run", "--max-cost", "2.00"], code);
        assert_eq!(pod.file("results/exit-code"), format!("{code}\n"));
        assert_eq!(pod.file("results/summary.md"), "## Summary\n");
        assert_eq!(pod.file("message"), "## Summary\n");
        assert!(
            pod.path("results/logs/2026-11-21-20-15-03-committing-code/result.json")
                .exists()
        );
        assert!(
            pod.file("notes/arguments")
                .ends_with("--max-cost\n2.00\n\n")
        );
        assert_eq!(pod.file("notes/agent-config/query.txt"), "For all.\n");
        assert_eq!(pod.file("notes/agent-config/gemini-key.txt"), GEMINI_KEY);
        assert!(
            !pod.path("work/project/agent-config/gemini-key.txt")
                .exists()
        );
        git(
            &pod.path("one"),
            &["apply", pod.path("results/change.patch").to_str().unwrap()],
        );
        assert_eq!(pod.file("one/a.txt"), "after\n");
        assert_eq!(
            pod.file("one/b.txt"),
            "a fence: ````\nb\u{202e}c\u{1b}[2Jd\u{e4}\n"
        );
    }
}

#[test]
fn an_index_whose_record_says_that_it_would_end_the_same_way_is_not_tried_again() {
    for (retryable, ends) in [(true, 4), (false, 1)] {
        let record = "logs/2026-11-21-20-15-03-committing-code/result.json";
        let record = format!("echo '\"retryable\": {retryable}' >{record}\nexit 4");
        let pod = Pod::new(&record);
        pod.ends("0", &["clone"], 0);
        pod.ends("0", &["run"], ends);
        assert_eq!(pod.file("results/exit-code"), "4\n");
    }
}

#[test]
fn an_index_has_its_branch_and_its_query() {
    let pod = Pod::new("exit 0");
    pod.ends("1", &["clone"], 0);
    pod.ends("1", &["run"], 0);
    assert_eq!(pod.file("work/project/release.txt"), "release\n");
    assert_eq!(pod.file("notes/agent-config/query.txt"), "For one.\n");
}

#[test]
fn an_index_without_a_repository_is_not_tried_again() {
    let pod = Pod::new("exit 0");
    pod.ends("2", &["clone"], 2);
    pod.ends("7", &["clone"], 2);
    assert!(pod.file("message").contains("no line for index 7"));
    pod.ends("0", &[], 2);
    // A repository that cannot be cloned may exist later. An address is never taken for an option.
    pod.ends("3", &["clone"], 1);
    assert!(!pod.path("work/project").exists());
    fs::remove_file(pod.path("tasks/query.txt")).unwrap();
    pod.ends("0", &["clone"], 2);
}

#[test]
fn index_ended_by_a_signal_keeps_its_results() {
    let pod = Pod::new("trap 'exit 143' TERM\nkill -TERM $PPID\nwhile :; do :; done");
    pod.ends("0", &["clone"], 0);
    pod.ends("0", &["run"], 143);
    assert_eq!(pod.file("results/exit-code"), "143\n");
    assert!(pod.file("results/change.patch").contains("+after"));
}

/// The path to which `tests/examples/install.sh` installs a validator.
pub fn validator(name: &str) -> Option<PathBuf> {
    let path = source("target/validators").join(name);
    let found = path.exists();
    if !found {
        skipped(&format!("no {name}; see tests/examples/install.sh"));
    }
    found.then_some(path)
}

#[track_caller]
pub fn passes(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn githubs_parser_takes_the_action_and_the_workflow() {
    let Some(_) = validator("node_modules/@actions/languageservice") else {
        return;
    };
    let script = fs::File::open(source("tests/examples/actions.mjs")).unwrap();
    passes(
        command(
            "node",
            &["--input-type=module", "-"],
            &source("target/validators"),
        )
        .arg(source("action.yml"))
        .arg(source("examples/github/code-commit.yml"))
        .arg(source(".github/workflows/release.yml"))
        .arg(source("examples/fleet/actions/fleet.yml"))
        .stdin(script),
    );
}

#[test]
fn kubernetes_schemas_and_rules_take_the_job() {
    let Some(_) = validator("bin/kubernetes-validate") else {
        return;
    };
    let python = source("target/validators/bin/python");
    passes(
        command(
            python.to_str().unwrap(),
            &[],
            &source("examples/kubernetes"),
        )
        .arg(source("tests/examples/kubernetes.py"))
        .args(["job.yaml", "reader.yaml", "../fleet/kubernetes/job.yaml"]),
    );
}

#[test]
fn the_container_file_passes_its_linter() {
    let Some(hadolint) = validator("bin/hadolint") else {
        return;
    };
    let directory = source("examples/kubernetes");
    passes(&mut command(
        hadolint.to_str().unwrap(),
        &["Containerfile"],
        &directory,
    ));
}

#[test]
fn the_scripts_pass_their_linter() {
    let Some(shellcheck) = validator("bin/shellcheck") else {
        return;
    };
    passes(&mut command(
        shellcheck.to_str().unwrap(),
        &[
            "action/run.sh",
            "examples/kubernetes/run.sh",
            "examples/fleet/parallel/run.sh",
            "examples/fleet/slurm/task.sh",
            "tests/examples/install.sh",
        ],
        &source("."),
    ));
}
