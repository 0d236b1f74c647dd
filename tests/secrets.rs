//! Secrets in a build's output and environment, which do not reach the model.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::agent::{self, AgentProject, Endless, PASS, done, last_told, reply};
use crate::support::{Finished, GEMINI_KEY, ModelServer, TestProject, bubblewrap_works};

const NOTHING: &str = "Nothing to do.";
const VALUE: &str = "hunter2-hunter2-Qq";

fn warnings(run: &Finished) -> String {
    let result = run.result();
    let warnings = result["warnings"].as_array().unwrap().iter();
    let warnings: Vec<&str> = warnings.filter_map(Value::as_str).collect();
    warnings.join("\n")
}

#[test]
fn credentials_that_a_build_prints_are_neither_logged_nor_sent() {
    // Split, so that no scanner reports this file.
    let token = format!("ghp_{}", "a0".repeat(18));
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
    let key = format!(
        "-----BEGIN PRIVATE{0}\n{body}\n-----END PRIVATE{0}",
        " KEY-----"
    );
    for flags in [&[][..], &["--allow-secrets"]] {
        let server = ModelServer::gemini(&[NOTHING, "^^^ok\n^^^end\n"]);
        let project = TestProject::new()
            .with(&server)
            // The text shown to the model has been searched before.
            .file("printed", format!("one {token}\n{key}\ntwo\n"))
            .build("cat printed; test -e ok");
        let run = project.run(flags).exits(0);
        let shown = "one [REDACTED: a GitHub token]\n[REDACTED: a private key]\ntwo\n";
        let query = server.requests()[1].user();
        for text in [run.logged("initial-build.txt"), query] {
            assert!(text.contains(shown), "{text}");
        }
        let told = "the build printed secrets, which are neither in its log nor sent: a GitHub token, a private key";
        assert!(warnings(&run).contains(told), "{}", warnings(&run));
        for file in run.files() {
            let text = run.logged(&file);
            assert!(!text.contains(&token) && !text.contains(body), "{file}");
        }
    }
}

#[test]
fn secret_variables_are_kept_from_sandboxes_unless_they_are_passed_and_never_shown() {
    if !bubblewrap_works() {
        return;
    }
    let build = r#"echo "${#MY_TOKEN} ${#DB_PASSWORD} ${#OTHER} $MY_TOKEN."; printf %s "$MY_TOKEN" | base64"#;
    for (flags, expected) in [
        (&["--sandbox", "auto"][..], "0 0 5 .\n"),
        (&["--sandbox", "strict"], "0 0 5 .\n"),
        (
            &["--sandbox", "strict", "--pass-env", "MY_TOKEN"],
            "18 0 5 [REDACTED]Qq.\n[REDACTED]Qq",
        ),
        (
            &["--pass-env", "MY_TOKEN", "--pass-env", "DB_PASSWORD"],
            "18 8 5 [REDACTED]Qq.\n[REDACTED]Qq",
        ),
        (&["--sandbox", "off"], "18 8 5 [REDACTED]Qq.\n[REDACTED]Qq"),
    ] {
        let server = ModelServer::gemini(&[NOTHING]);
        let project = TestProject::new()
            .with(&server)
            .variable("MY_TOKEN", VALUE)
            // A common word, which is not searched for.
            .variable("DB_PASSWORD", "password")
            .variable("OTHER", "token")
            .build(build);
        let run = project.run(flags).exits(0);
        let log = run.logged("initial-build.txt");
        let output = log.split_once('\n').unwrap().1;
        assert!(output.starts_with(expected), "{flags:?}: {output}");
        let told = "an API key or the value of a secret variable";
        assert_eq!(warnings(&run).contains(told), output.contains("REDACTED"));
    }
}

#[test]
fn passwords_in_urls_and_the_lines_of_keys_are_secret_too() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
    let key = format!("-----BEGIN A-----\n{body}\n-----END A-----\n");
    let build = r#"echo "$DATABASE_URL${PGPASSWORD}$npm_config__authToken$GPG_TTY"; echo "$DATABASE_URL" | cut -d: -f3; echo "$APP_KEY" | sed -n 2p"#;
    let shown = "[REDACTED]/x[REDACTED]QqTOKEN/dev/pts/0\n[REDACTED]db@host/x\n[REDACTED]Sj\n";
    for mode in ["off", "auto"] {
        if mode == "auto" && !bubblewrap_works() {
            return;
        }
        let server = ModelServer::gemini(&[NOTHING]);
        let project = TestProject::new()
            .with(&server)
            .variable("DATABASE_URL", "postgres://app:s3cret-of-db@host/x")
            .variable("PGPASSWORD", VALUE)
            // Too short to be searched for, but still not inherited.
            .variable("npm_config__authToken", "TOKEN")
            .variable("APP_KEY", &key)
            .variable("GPG_TTY", "/dev/pts/0")
            .build(build);
        let run = project.run(&["--sandbox", mode]).exits(0);
        let log = run.logged("initial-build.txt");
        assert!(!log.contains("s3cret") && !log.contains(body), "{log}");
        let (_, output) = log.split_once('\n').unwrap();
        let expected = match mode {
            "off" => shown,
            _ => "/dev/pts/0\n\n",
        };
        assert_eq!(output, expected);
    }
}

#[test]
fn variable_with_a_key_is_never_passed() {
    let server = ModelServer::gemini(&[NOTHING]);
    let project = TestProject::new()
        .with(&server)
        .variable("AUTH_TOKEN", &format!("Bearer {GEMINI_KEY}"))
        .build(r#"echo "${#AUTH_TOKEN}.""#);
    let run = project
        .run(&["--sandbox", "off", "--pass-env", "AUTH_TOKEN"])
        .exits(0);
    assert!(run.logged("initial-build.txt").ends_with("\n0.\n"));
    project
        .run(&["--pass-env", "OPENAI_API_KEY"])
        .exits(2)
        .says(&["it holds a key of this program's own"]);
    project
        .run(&["--pass-env", "A=b"])
        .exits(2)
        .says(&["name the variable alone"]);
}

#[test]
fn the_value_of_a_secret_variable_is_held_back_as_a_key_is() {
    let server = ModelServer::gemini(&[NOTHING]);
    let project = TestProject::new()
        .with(&server)
        .variable("MY_TOKEN", VALUE)
        .variable("DB_PASSWORD", "password")
        // A path to a secret is not a secret.
        .variable("APP_CREDENTIALS", "/usr/bin")
        .file(
            "agent-config/query.txt",
            format!("Log in by password {VALUE}, as in /usr/bin.\n"),
        );
    project
        .run(&[])
        .exits(3)
        .says(&["`agent-config/query.txt`, line 1: the value of a secret environment variable"]);
    project.run(&["--allow-secrets"]).exits(0).says(&[
        "warning: the value of a secret environment variable stands in the query or the code base",
    ]);
    let sent = server.requests()[0].user();
    assert!(
        sent.contains("Log in by password [REDACTED]Qq, as in /usr/bin."),
        "{sent}"
    );
}

#[test]
fn commands_of_an_agent_do_not_get_them_either() {
    if !bubblewrap_works() {
        return;
    }
    let command = reply("COMMAND", "echo \"${#MY_TOKEN} $MY_TOKEN.\"");
    for (flags, expected) in [
        (&["-p", "Go."][..], "0 ."),
        (&["-p", "Go.", "--pass-env", "MY_TOKEN"], "18 [REDACTED]Qq."),
        (&["-p", "Go.", "--sandbox", "off"], "18 [REDACTED]Qq."),
    ] {
        let texts = [command.as_str(), &done(), PASS];
        let (agent, server) = AgentProject::scripted(&texts);
        let agent = agent.with_variable("MY_TOKEN", VALUE);
        agent.run(flags).exits(0);
        let told = server.requests()[1].json().to_string();
        assert!(told.contains(expected), "{flags:?}: {told}");
        assert!(!told.contains(VALUE));
    }
}

#[test]
fn credentials_that_commands_of_an_agent_print_are_neither_logged_nor_sent() {
    let token = format!("ghp_{}", "a0".repeat(18));
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
    let printed = format!("one {token}\n-----BEGIN PRIVATE{0}\n{body}\n", " KEY-----");
    let endless = Endless::new();
    for (command, shown) in [
        ("cat printed".to_owned(), "exit code: 0\none "),
        (
            format!("cat printed; printf {}; {}", token, endless.command()),
            "Command backgrounded as proc_",
        ),
    ] {
        let texts = [reply("COMMAND", &command), done(), PASS.to_owned()];
        let (agent, server) = AgentProject::scripted(&texts);
        let agent = agent
            .configured(&json!({"commandTimeout": 1}))
            .with_file("printed", &printed);
        let run = agent.run(&["-p", "Go."]).exits(0);
        let told = last_told(&server, 1);
        assert!(told.contains(shown), "{told}");
        let redacted = "one [REDACTED: a GitHub token]\n[REDACTED: a private key]";
        assert!(told.contains(redacted), "{told}");
        let warning = "commands printed secrets, which are neither in their logs nor sent: a GitHub token, a private key";
        assert!(warnings(&run).contains(warning), "{}", warnings(&run));
        assert!(!told.contains(body), "{told}");
        for file in run.files() {
            assert!(!run.logged(&file).contains(body), "{file}");
        }
    }
}

#[test]
fn neither_the_program_nor_what_it_starts_dumps_core() {
    let server = ModelServer::gemini(&[NOTHING]);
    let project = TestProject::new().with(&server).build("ulimit -c");
    let command = project.command(&[]);
    let mut shell = std::process::Command::new("sh");
    let variables = command.get_envs();
    shell
        .args(["-c", "ulimit -S -c $(ulimit -H -c); exec \"$0\""])
        .arg(command.get_program())
        .current_dir(project.path(""))
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))));
    let run = Finished::new(&project, &[], shell.output().unwrap()).exits(0);
    assert!(run.logged("initial-build.txt").ends_with("\n0\n"));
}

#[test]
fn new_directories_are_private() {
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let commands: [&[&str]; 5] = [
        &["init"],
        &["rollup"],
        &["demo", "--quiet", "shown"],
        &["-m", "Do it.", "--rollup", "--sandbox", "off"],
        &["dev", "-p", "Go."],
    ];
    for command in commands {
        let server = ModelServer::gemini(&[NOTHING]);
        let agent_server = agent::server(&[done(), PASS.to_owned()]);
        let AgentProject { project, home } = AgentProject::new(&agent_server);
        let project = project.with(&server);
        fs::remove_dir_all(project.path("agent-config")).unwrap();
        let project = project.variable("GEMINI_API_KEY", GEMINI_KEY);
        for arguments in [&["init", "-q"][..], &["add", "src"]] {
            let mut git = Command::new("git");
            let git = git.args(arguments).current_dir(project.path(""));
            assert!(git.status().unwrap().success());
        }
        project.run(command).exits(0);
        drop(home);
        let found = ["agent-config", "logs", "shown/agent-config", "shown/logs"]
            .map(|name| project.path(name))
            .into_iter()
            .filter(|path| path.exists());
        let made: Vec<PathBuf> = found
            .flat_map(|path| {
                let entries = fs::read_dir(&path).unwrap();
                let inner = entries.map(|entry| entry.unwrap().path());
                let inner: Vec<_> = inner.filter(|path| path.is_dir()).collect();
                std::iter::once(path).chain(inner)
            })
            .collect();
        assert!(!made.is_empty(), "{command:?}");
        for path in made {
            assert_eq!(mode(&path), 0o700, "{command:?}: {}", path.display());
        }
    }
}
