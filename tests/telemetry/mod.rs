//! Runs that are exported to a collector, and runs that are not.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::signals::kill;
use crate::support::agent::{AgentProject, PASS, done, write};
use crate::support::anthropic::say;
use crate::support::chat::ChatProject;
use crate::support::orchestra::{Branch, OrchestraProject, execute, finished, published, read_log};
use crate::support::plan::{self, PlanProject};
use crate::support::{
    Answer, Finished, GEMINI_KEY, ModelServer, Recorded, TestProject, gemini, skipped,
    within_a_minute,
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";
const KEY: &str = "collector-key-0123456789";

/// A collector that accepts this many traces.
fn collector(traces: usize) -> ModelServer {
    ModelServer::start((0..traces).map(|_| Answer::json(&json!({}))))
}

/// Sets the variables that export to this collector.
fn exported(project: TestProject, url: &str, protocol: &str) -> TestProject {
    project
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        .variable("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
}

/// A project whose change needs a repair, and whose build prints a key.
fn repaired() -> TestProject {
    let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n", "Better so.\n^^^ok\n\n^^^end\n"]);
    let project = TestProject::new().with(&server);
    project.build(&format!("echo {GEMINI_KEY}; test -e ok"))
}

fn resource(trace: &Value) -> BTreeMap<String, Value> {
    attributes(&trace["resourceSpans"][0]["resource"])
}

fn spans(trace: &Value) -> &Vec<Value> {
    trace["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap()
}

fn names(trace: &Value) -> Vec<&str> {
    let spans = spans(trace).iter();
    spans.map(|span| span["name"].as_str().unwrap()).collect()
}

fn attributes(span: &Value) -> BTreeMap<String, Value> {
    let attributes = span["attributes"].as_array().unwrap().iter();
    let attributes = attributes.map(|attribute| {
        let value = attribute["value"].as_object().unwrap().values().next();
        let key = attribute["key"].as_str().unwrap().to_owned();
        (key, value.unwrap().clone())
    });
    attributes.collect()
}

fn only(collector: &ModelServer) -> Recorded {
    let [request] = &collector.requests()[..] else {
        panic!("{} requests", collector.requests().len());
    };
    request.clone()
}

#[test]
fn a_commit_is_a_trace_within_the_trace_that_started_it() {
    let collector = collector(1);
    let project = exported(repaired(), &collector.url(), "http/json")
        .variable("TRACEPARENT", &format!("00-{TRACE}-{SPAN}-01"))
        .variable("OTEL_SERVICE_NAME", "nightly")
        .variable("OTEL_RESOURCE_ATTRIBUTES", "team=core%20tools")
        .variable(
            "OTEL_EXPORTER_OTLP_HEADERS",
            &format!("x-key={KEY},x-b=1%2B1"),
        );
    let run = project.run(&[]).exits(0);
    assert!(!run.stderr.contains("trace"), "{}", run.stderr);
    let request = only(&collector);
    assert_eq!(request.line, "POST /v1/traces HTTP/1.1");
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("x-key"), Some(KEY));
    assert_eq!(request.header("x-b"), Some("1+1"));
    let trace = request.json();
    let about = resource(&trace);
    assert_eq!(about["service.name"], "nightly");
    assert_eq!(about["team"], "core tools");
    let calls = ["chat gemini-2.5-pro", "execute_tool build.sh"];
    assert_eq!(
        names(&trace),
        [&["invoke_agent commit"], &calls[..], &calls[..]].concat()
    );
    let spans = spans(&trace);
    assert_eq!(spans[0]["parentSpanId"], SPAN);
    for (nth, span) in spans.iter().enumerate() {
        assert_eq!(span["traceId"], TRACE);
        let own = |field: &str| span[field].as_str().unwrap().parse::<u64>().unwrap();
        let of_run = |field: &str| spans[0][field].as_str().unwrap().parse::<u64>().unwrap();
        // The times in the steps have a precision of milliseconds.
        let close = 2_000_000;
        assert!(own("startTimeUnixNano") <= own("endTimeUnixNano"));
        assert!(own("startTimeUnixNano") >= of_run("startTimeUnixNano"));
        assert!(own("endTimeUnixNano") <= of_run("endTimeUnixNano") + close);
        if nth > 0 {
            assert_eq!(span["parentSpanId"], spans[0]["spanId"]);
        }
    }
    let root = attributes(&spans[0]);
    assert_eq!(root["gen_ai.usage.input_tokens"], "200");
    assert_eq!(root["gen_ai.usage.output_tokens"], "100");
    assert_eq!(root["gen_ai.provider.name"], "gcp.gemini");
    assert_eq!(root["code_commit.exit.name"], "done");
    assert_eq!(root["code_commit.log"], format!("logs/{}", run.folder));
    let call = attributes(&spans[1]);
    assert_eq!(call["gen_ai.response.model"], "gemini-2.5-pro-test");
    assert_eq!(
        attributes(&spans[2])["error.type"],
        "exit code 1",
        "the first build"
    );
    // Text is sent only on request.
    let sent = String::from_utf8(request.body).unwrap();
    for text in ["Better so", "Do something", "messages", "REDACTED"] {
        assert!(!sent.contains(text), "{text}");
    }
}

#[test]
fn a_url_for_traces_is_used_with_its_query_and_the_task_of_a_fleet_is_reported() {
    let collector = collector(1);
    let url = format!("{}/x?team=a&key=b%20c", collector.url());
    let project = repaired()
        .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &url)
        .variable("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
        .variable("CODE_COMMIT_TASK_FOLDER", "/out/web-7");
    project.run(&[]).exits(0);
    let request = only(&collector);
    assert_eq!(request.line, "POST /x?team=a&key=b%20c HTTP/1.1");
    for span in spans(&request.json()) {
        assert_eq!(attributes(span)["code_commit.task.id"], "web-7");
    }
}

#[test]
fn texts_are_exported_if_asked_for_as_the_record_has_them() {
    let collector = collector(1);
    let project = exported(repaired(), &collector.url(), "http/json")
        .variable("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true");
    project.run(&[]).exits(0);
    let request = only(&collector);
    let trace = request.json();
    let spans = spans(&trace);
    let messages = |nth: usize, name: &str| -> Value {
        let text = attributes(&spans[nth])[name].clone();
        serde_json::from_str(text.as_str().unwrap()).unwrap()
    };
    let asked = messages(1, "gen_ai.input.messages");
    let asked = asked[0]["parts"][0]["content"].as_str().unwrap();
    assert!(asked.contains("Do something."), "{asked}");
    let said = messages(3, "gen_ai.output.messages");
    assert_eq!(
        said,
        json!([{"role": "assistant", "finish_reason": "STOP",
            "parts": [{"type": "text", "content": "Better so.\n^^^ok\n\n^^^end\n"}]}])
    );
    let sent = String::from_utf8(request.body).unwrap();
    assert!(sent.contains("[REDACTED") && !sent.contains(GEMINI_KEY));
}

/// Returns this path among the Python packages installed by `tests/examples/install.sh`, if it exists.
fn installed(package: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/validators");
    let versions = fs::read_dir(folder.join("lib")).into_iter().flatten();
    let mut paths = versions.map(|version| {
        let version = version.unwrap().path();
        version.join("site-packages").join(package)
    });
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        skipped(&format!("no {package}; see tests/examples/install.sh"));
    }
    found
}

#[test]
fn both_forms_say_the_same() {
    if installed("opentelemetry/proto").is_none() {
        return;
    }
    let project = repaired();
    let mut traces = Vec::new();
    // Protobuf is the default.
    for protocol in ["http/json", ""] {
        let server = ModelServer::gemini(&["^^^a\nx\n^^^end\n", "^^^ok\n\n^^^end\n"]);
        let collector = collector(1);
        let project = exported(project.clone().with(&server), &collector.url(), protocol);
        project.run(&[]).exits(0);
        let request = only(&collector);
        let mut trace = if protocol.is_empty() {
            let kind = Some("application/x-protobuf");
            assert_eq!(request.header("content-type"), kind);
            decoded(&request.body)
        } else {
            request.json()
        };
        let spans = &mut trace["resourceSpans"][0]["scopeSpans"][0]["spans"];
        for span in spans.as_array_mut().unwrap() {
            for (field, length) in [
                ("traceId", 32),
                ("spanId", 16),
                ("parentSpanId", 16),
                ("startTimeUnixNano", 19),
                ("endTimeUnixNano", 19),
            ] {
                if let Some(value) = span.get_mut(field) {
                    assert_eq!(value.take().as_str().unwrap().len(), length);
                }
            }
            let attributes = span["attributes"].as_array_mut().unwrap();
            attributes.retain(|attribute| attribute["key"] != "code_commit.log");
        }
        traces.push(trace);
    }
    assert_eq!(traces[0], traces[1]);
}

/// Parses a protobuf trace with OpenTelemetry's own package.
fn decoded(body: &[u8]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut python = Command::new(root.join("target/validators/bin/python"))
        .arg(root.join("tests/telemetry/decode.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python.stdin.take().unwrap().write_all(body).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the address of a port that is currently free.
fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[test]
fn a_real_collector_takes_both_forms() {
    let Some(program) = installed("rotel/rotel-agent") else {
        return;
    };
    let (http, grpc) = (free(), free());
    let mut rotel = Command::new(program)
        .args(["start", "--exporter", "blackhole"])
        .args(["--otlp-http-endpoint", &http])
        .args(["--otlp-grpc-endpoint", &grpc])
        .args(["--debug-log", "traces", "--debug-log-verbosity", "detailed"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(within_a_minute(|| TcpStream::connect(&http).is_ok()));
    let mut lines = BufReader::new(rotel.stdout.take().unwrap()).lines();
    let mut until = |words: &str| {
        let mut said = String::new();
        while !said.contains(words) {
            said += &lines.next().unwrap_or_else(|| panic!("{said}")).unwrap();
            said.push('\n');
        }
        said
    };
    for protocol in ["http/json", "http/protobuf"] {
        let project = exported(repaired(), &format!("http://{http}"), protocol);
        let run = project.run(&[]).exits(0);
        assert!(!run.stderr.contains("trace"), "{}", run.stderr);
        until("invoke_agent commit");
    }
    rotel.kill().unwrap();
    rotel.wait().unwrap();
}

#[test]
fn nothing_is_sent_unless_the_environment_asks_for_it() {
    for variables in [
        &[][..],
        &[("OTEL_SDK_DISABLED", "true")],
        &[("OTEL_TRACES_EXPORTER", "none")],
        &[("TRACEPARENT", &format!("00-{TRACE}-{SPAN}-00"))],
    ] {
        let collector = collector(1);
        let mut project = repaired();
        for (name, value) in variables {
            project = exported(project, &collector.url(), "http/json").variable(name, value);
        }
        project.run(&[]).exits(0);
        assert_eq!(collector.requests().len(), 0, "{variables:?}");
    }
    // A `.env` may belong to another program.
    let collector = collector(1);
    let (agent, _server) = AgentProject::scripted(&[done(), PASS.to_owned()]);
    let line = format!("OTEL_EXPORTER_OTLP_ENDPOINT={}\n", collector.url());
    agent.with_file(".env", &line).work("go").exits(0);
    assert_eq!(collector.requests().len(), 0);
}

#[test]
fn every_system_is_exported() {
    let collector = collector(5);
    let with = |project: TestProject| exported(project, &collector.url(), "http/json");
    let server = ModelServer::gemini(&["# 1 Summary\n"]);
    with(TestProject::new().with(&server)).run(&["--cc"]);
    let (mut agent, _server) =
        AgentProject::scripted(&[write("b", "x\n"), done(), PASS.to_owned()]);
    agent.project = with(agent.project);
    agent.work("go").exits(0);
    let (mut plan, _server) = PlanProject::scripted(&[
        plan::tasks(&[("Write", "write_file")]),
        plan::write("a.txt", "a\n"),
        plan::response("It is written."),
        plan::summary("Done"),
    ]);
    plan.project = with(plan.project);
    plan.work("Write").exits(0);
    let (mut chat, _server) = ChatProject::scripted([
        say("I look.").call("list_files", json!({})),
        say("There is `src`."),
    ]);
    chat.project = with(chat.project);
    chat.ask("What is there?").exits(0);
    let mut orchestra = OrchestraProject::scripted(
        [
            execute("claude_code", "Add the flag."),
            execute("codex", "Review it."),
            read_log(),
            finished("The flag is there."),
        ],
        [
            Branch::done("implemented"),
            Branch::review("CLEAN"),
            Branch::done(&published()),
        ],
    );
    orchestra.project = with(orchestra.project);
    orchestra.run(&[]).exits(0);
    let traces: Vec<Value> = collector.requests().iter().map(Recorded::json).collect();
    let expected = [
        ("invoke_agent consistency", "gcp.gemini", None),
        (
            "invoke_agent dev",
            "openai",
            Some("execute_tool WRITE_FILE"),
        ),
        (
            "invoke_agent plan",
            "ollama",
            Some("execute_tool write_file"),
        ),
        (
            "invoke_agent chat",
            "anthropic",
            Some("execute_tool list_files"),
        ),
        (
            "invoke_agent orchestrate",
            "azure.ai.openai",
            Some("execute_tool execute_agent"),
        ),
    ];
    assert_eq!(traces.len(), expected.len());
    for (trace, (agent, provider, tool)) in traces.iter().zip(expected) {
        let names = names(trace);
        assert_eq!(names[0], agent);
        assert!(names[1].starts_with("chat "), "{names:?}");
        assert!(tool.is_none_or(|tool| names.contains(&tool)), "{names:?}");
        let call = attributes(&spans(trace)[1]);
        assert_eq!(call["gen_ai.provider.name"], provider, "{names:?}");
    }
}

#[test]
fn a_run_that_fails_says_how() {
    let collector = collector(1);
    let server = ModelServer::start([Answer::error(401, &json!({"error": {"message": "no"}}))]);
    let project = exported(
        TestProject::new().with(&server),
        &collector.url(),
        "http/json",
    );
    project.run(&[]).exits(4);
    let trace = only(&collector).json();
    let spans = spans(&trace);
    assert_eq!(spans.len(), 2);
    assert_eq!(attributes(&spans[0])["error.type"], "model-failed");
    assert_eq!(attributes(&spans[1])["error.type"], "key-rejected");
    for span in spans {
        assert_eq!(span["status"], json!({"code": 2}));
    }
}

#[track_caller]
fn warns_once(run: &Finished, words: &str) {
    let told = "the run's trace was not exported: ";
    assert_eq!(run.stderr.matches(told).count(), 1, "{}", run.stderr);
    assert!(run.stderr.contains(words), "{}", run.stderr);
    assert!(!run.stderr.contains(KEY), "{}", run.stderr);
}

#[test]
fn a_failure_to_export_is_a_warning_and_changes_nothing_else() {
    let (silence, _told) = Answer::silence();
    let silent = ModelServer::start([silence]);
    let refusing = ModelServer::start([Answer::new(503, &[], "")]);
    let redirecting = ModelServer::start([Answer::new(307, &[("location", "http://x.test")], "")]);
    let nobody = format!("http://{}", free());
    let headers = format!("key={KEY}");
    for (url, name, value, words) in [
        (
            &*refusing.url(),
            "",
            "",
            "`127.0.0.1`: it answers with status 503",
        ),
        (&redirecting.url(), "", "", "redirects"),
        (&silent.url(), "TIMEOUT", "300", "no whole answer in time"),
        (&nobody, "", "", "`127.0.0.1`: "),
        (
            &nobody,
            "TIMEOUT",
            "soon",
            "`OTEL_EXPORTER_OTLP_TIMEOUT` is not",
        ),
        (&nobody, "TIMEOUT", "0", "a number of milliseconds"),
        (
            &nobody,
            "PROTOCOL",
            "grpc",
            "is not `http/protobuf` or `http/json`",
        ),
        (
            &nobody,
            "HEADERS",
            KEY,
            "`OTEL_EXPORTER_OTLP_HEADERS` is not a list",
        ),
        (
            "http://collector",
            "HEADERS",
            &headers,
            "taken for loopback hosts only",
        ),
        ("http://example.com", "", "", "plain http"),
        ("nonsense", "", "", "not a plain URL"),
    ] {
        let project = repaired().variable("OTEL_EXPORTER_OTLP_ENDPOINT", url);
        let project = project.variable(&format!("OTEL_EXPORTER_OTLP_{name}"), value);
        let run = project.run(&[]).exits(0);
        warns_once(&run, words);
        assert_eq!(run.result()["exit"]["name"], "done");
    }
}

#[test]
fn a_signal_ends_an_export_and_a_run_that_it_ends_is_not_exported() {
    let (silence, asked) = Answer::silence();
    let silent = ModelServer::start([silence]);
    let project = exported(repaired(), &silent.url(), "http/json");
    let child = project.start(&[]);
    asked.recv().unwrap();
    kill(&child, rustix::process::Signal::INT);
    let run = Finished::new(&project, &[], child.wait_with_output().unwrap()).exits(0);
    warns_once(&run, "interrupted by SIGINT");

    let (silence, asked) = Answer::silence();
    let server = ModelServer::start([silence]);
    let collector = collector(1);
    let project = TestProject::new().with(&server);
    let project = exported(project, &collector.url(), "http/json");
    let child = project.start(&[]);
    asked.recv().unwrap();
    kill(&child, rustix::process::Signal::TERM);
    let run = Finished::new(&project, &[], child.wait_with_output().unwrap()).exits(143);
    assert!(!run.stderr.contains("trace"), "{}", run.stderr);
    assert_eq!(collector.requests().len(), 0);
}

#[test]
fn a_collectors_key_is_as_private_as_any_other() {
    let collector = collector(1);
    let server = ModelServer::start([Answer::json(&gemini("^^^ok\n\n^^^end\n"))]);
    let project = TestProject::new()
        .with(&server)
        .build(&format!("env | grep OTEL; echo {KEY}"));
    let project = exported(project, &collector.url(), "http/json").variable(
        "OTEL_EXPORTER_OTLP_HEADERS",
        &format!("authorization=Bearer%20{KEY}"),
    );
    let run = project.run(&[]).exits(0);
    let log = run.logged("initial-build.txt");
    assert!(log.contains("OTEL_EXPORTER_OTLP_ENDPOINT=") && log.contains("[REDACTED]89"));
    assert!(!log.contains("HEADERS") && !log.contains(KEY), "{log}");
    let sent = only(&collector);
    assert_eq!(
        sent.header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
}
