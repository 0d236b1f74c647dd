//! Tests of recorded runs' spans: their names, parents and attributes, and the texts left out unless requested.

use super::*;

use std::fmt::Write as _;

use chrono::DateTime;

use crate::model::{Provider, Purpose};
use crate::record::result::ErrorRecord;
use crate::sys::exit::Exit;

const IDS: TraceIds = TraceIds {
    trace: 0xabc,
    parent: None,
    seed: 7,
};

fn seconds(seconds: u64) -> Seconds {
    Seconds(Duration::from_secs(seconds))
}

fn record(exit: Exit) -> RunRecord {
    let started = DateTime::parse_from_rfc3339("2026-11-21T20:15:03+01:00").unwrap();
    RunRecord {
        model: Some("gemini-2.5-pro".to_owned()),
        seconds: seconds(60),
        ..RunRecord::new("commit", exit, started)
    }
}

/// Returns a step that begins after this many seconds and takes five.
fn step(id: StepId, at: u64, finish: Option<&str>) -> Step {
    Step {
        provider: Some(Provider::Gemini),
        at: Some(seconds(at)),
        seconds: seconds(5),
        finish: finish.map(str::to_owned),
        ..Step::new(id, "gemini-2.5-pro", Vec::new())
    }
}

fn build(code: i32) -> Option<BuildRecord> {
    let build = json!({"code": code, "signal": null, "seconds": 2.5});
    serde_json::from_value(build).unwrap()
}

/// Returns the spans, one per line: name, kind, seconds from the start of the run, error, and these attributes.
fn told(trace: &Trace<'_>, shown: &[&str]) -> String {
    let request = trace.request(&json!({}));
    let spans = &request["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let mut told = String::new();
    let nanos = |time: &Value| time.as_str().unwrap().parse::<i64>().unwrap();
    let began = nanos(&spans[0]["startTimeUnixNano"]);
    for span in spans.as_array().unwrap() {
        let time = |field: &str| (nanos(&span[field]) - began) / 1_000_000;
        let (start, end) = (time("startTimeUnixNano"), time("endTimeUnixNano"));
        let name = span["name"].as_str().unwrap();
        write!(told, "{name}, {}, {start}-{end}", span["kind"]).unwrap();
        let mut has_error = false;
        for attribute in span["attributes"].as_array().unwrap() {
            let (key, value) = (attribute["key"].as_str().unwrap(), &attribute["value"]);
            has_error |= key == "error.type";
            if shown.contains(&key) || key == "error.type" {
                let value = value.as_object().unwrap().values().next().unwrap();
                write!(told, ", {key}={value}").unwrap();
            }
        }
        assert_eq!(span.get("status").is_some(), has_error, "{span}");
        told.push('\n');
    }
    told
}

fn of(record: &RunRecord, steps: &[Step], shown: &[&str]) -> String {
    let trace = Trace {
        record,
        steps,
        ids: IDS,
        task: None,
        text: None,
    };
    told(&trace, shown)
}

#[test]
fn a_commit_is_its_calls_and_builds() {
    let usage = Usage {
        cached_tokens: 10,
        thought_tokens: 30,
        ..Usage::plain(100, 20)
    };
    let mut steps = [
        step(StepId::INITIAL, 1, Some("STOP")),
        step(StepId::repair(1), 10, Some("STOP")),
    ];
    steps[0].build = build(101);
    steps[1].build = build(0);
    for (step, version) in steps
        .iter_mut()
        .zip(["gemini-2.5-pro-001", "gemini-3.8-flash"])
    {
        step.model_version = Some(version.to_owned());
    }
    for step in &mut steps {
        step.usage = Some(usage);
        step.cost = Some(Usd::try_from(0.25).unwrap());
    }
    let record = RunRecord {
        cost: Some(Usd::try_from(0.5).unwrap()),
        steps: steps.to_vec(),
        ..record(Exit::Done)
    };
    let shown = [
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.agent.name",
        "gen_ai.request.model",
        "gen_ai.response.model",
        "gen_ai.response.finish_reasons",
        "gen_ai.tool.name",
        "code_commit.exit.code",
        "code_commit.exit.name",
        "code_commit.step",
    ];
    let expected = r#"invoke_agent commit, 1, 0-60000, gen_ai.provider.name="gcp.gemini", gen_ai.agent.name="commit", gen_ai.request.model="gemini-2.5-pro", code_commit.exit.code="0", code_commit.exit.name="done", gen_ai.operation.name="invoke_agent"
chat gemini-2.5-pro, 3, 1000-6000, gen_ai.provider.name="gcp.gemini", gen_ai.request.model="gemini-2.5-pro", gen_ai.response.model="gemini-2.5-pro-001", gen_ai.response.finish_reasons={"values":[{"stringValue":"STOP"}]}, code_commit.step="the change", gen_ai.operation.name="chat"
execute_tool build.sh, 1, 6000-8500, gen_ai.tool.name="build.sh", gen_ai.operation.name="execute_tool", error.type="exit code 101"
chat gemini-2.5-pro, 3, 10000-15000, gen_ai.provider.name="gcp.gemini", gen_ai.request.model="gemini-2.5-pro", gen_ai.response.model="gemini-3.8-flash", gen_ai.response.finish_reasons={"values":[{"stringValue":"STOP"}]}, code_commit.step="repair 1", gen_ai.operation.name="chat"
execute_tool build.sh, 1, 15000-17500, gen_ai.tool.name="build.sh", gen_ai.operation.name="execute_tool"
"#;
    assert_eq!(of(&record, &steps, &shown), expected);
    let shown = [
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.cache_read.input_tokens",
        "gen_ai.usage.output_tokens",
        "code_commit.cost",
    ];
    let expected = r#"invoke_agent commit, 1, 0-60000, gen_ai.usage.input_tokens="200", gen_ai.usage.output_tokens="100", code_commit.cost=0.5
chat gemini-2.5-pro, 3, 1000-6000, gen_ai.usage.input_tokens="100", gen_ai.usage.cache_read.input_tokens="10", gen_ai.usage.output_tokens="50", code_commit.cost=0.25
"#;
    let told = of(&record, &steps[..1], &shown);
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn an_agents_step_is_its_call_and_tools_and_its_own_steps_are_tools_alone() {
    let action = |tool: &'static str, at, exit_code, failed| Action {
        tool: tool.into(),
        failed,
        id: Some(format!("call_{at}")),
        exit_code,
        at: Some(seconds(at)),
        seconds: Some(seconds(1)),
        ..Action::default()
    };
    let first = StepId::new(Purpose::STEP, 1);
    let own = StepId::new(Purpose::PUBLISH, 2);
    let steps = [
        Step {
            actions: vec![
                action("read_file", 6, None, false),
                action("run_command", 7, Some(1), false),
                action("made\nup", 8, None, true),
            ],
            ..step(first, 1, Some("tool_calls"))
        },
        Step {
            at: Some(seconds(20)),
            actions: vec![action("push", 20, Some(0), false)],
            ..Step::own(own)
        },
    ];
    let shown = [
        "gen_ai.tool.call.id",
        "process.exit.code",
        "gen_ai.provider.name",
    ];
    let expected = r#"invoke_agent commit, 1, 0-60000, gen_ai.provider.name="gcp.gemini", error.type="loop-limit"
chat gemini-2.5-pro, 3, 1000-6000, gen_ai.provider.name="gcp.gemini"
execute_tool read_file, 1, 6000-7000, gen_ai.tool.call.id="call_6"
execute_tool run_command, 1, 7000-8000, gen_ai.tool.call.id="call_7", process.exit.code="1", error.type="exit code 1"
execute_tool made up, 1, 8000-9000, gen_ai.tool.call.id="call_8", error.type="failed"
execute_tool push, 1, 20000-21000, gen_ai.tool.call.id="call_20", process.exit.code="0"
"#;
    assert_eq!(of(&record(Exit::LoopLimit), &steps, &shown), expected);
}

#[test]
fn a_call_without_a_reply_fails_by_the_reason_of_the_run() {
    let error = ErrorRecord {
        message: "no".to_owned(),
        hint: None,
        reason: "quota".into(),
        retryable: false,
        http_status: None,
        problems: Vec::new(),
    };
    for (exit, finishes, expected) in [
        (Exit::ModelFailed, &[None][..], &["quota"][..]),
        (Exit::ModelFailed, &[Some("MAX_TOKENS")], &["quota"]),
        (Exit::ModelFailed, &[None, None], &["_OTHER", "quota"]),
        (Exit::ModelFailed, &[Some("STOP"), None], &["", "quota"]),
        (Exit::ReplyRejected, &[Some("STOP")], &[""]),
        (Exit::Done, &[None, Some("STOP")], &["_OTHER", ""]),
    ] {
        let record = RunRecord {
            error: Some(error.clone()),
            ..record(exit)
        };
        let steps: Vec<Step> = (1..)
            .zip(finishes)
            .map(|(nth, finish)| step(StepId::new(Purpose::STEP, nth), 1, *finish))
            .collect();
        let told = of(&record, &steps, &[]);
        let errors = told.lines().skip(1).map(|line| {
            let (_, error) = line.split_once("error.type=").unwrap_or_default();
            error.trim_matches('"')
        });
        assert_eq!(errors.collect::<Vec<_>>(), expected, "{exit:?}");
    }
}

#[test]
fn texts_are_exported_only_on_request() {
    let record = record(Exit::Done);
    let action = Action {
        tool: "write_file".into(),
        input: Some(json!({"path": "a"})),
        result: Some("written".to_owned()),
        ..Action::default()
    };
    let steps = [
        Step {
            build: build(0),
            ..step(StepId::INITIAL, 1, Some("STOP"))
        },
        Step {
            actions: vec![action],
            ..step(StepId::new(Purpose::STEP, 1), 9, None)
        },
    ];
    let text = |step: &StepId, artifact| {
        Some(match artifact {
            Artifact::Query => "x".repeat(LONGEST_TEXT + 1),
            Artifact::ResponseText if step.number == 1 => format!("{ERROR_LINE}no"),
            other => format!("{other:?}"),
        })
    };
    let mut trace = Trace {
        record: &record,
        steps: &steps,
        ids: IDS,
        task: None,
        text: Some(&text),
    };
    let shown = [
        "gen_ai.output.messages",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
    ];
    let expected = r#"invoke_agent commit, 1, 0-60000
chat gemini-2.5-pro, 3, 1000-6000, gen_ai.output.messages="[{\"role\":\"assistant\",\"parts\":[{\"type\":\"text\",\"content\":\"ResponseText\"}],\"finish_reason\":\"STOP\"}]"
execute_tool build.sh, 1, 6000-8500, gen_ai.tool.call.result="Build"
chat gemini-2.5-pro, 3, 9000-14000, error.type="_OTHER"
execute_tool write_file, 1, 0-0, gen_ai.tool.call.arguments="{\"path\":\"a\"}", gen_ai.tool.call.result="written"
"#;
    assert_eq!(told(&trace, &shown), expected);
    let input = told(&trace, &["gen_ai.input.messages"]);
    assert!(
        input.contains(r#"[{\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"content\":\"xxx"#)
    );
    assert!(input.contains("xxx…\\\"}]}]"), "{}", input.len());
    trace.text = None;
    let all = ["gen_ai.input.messages"].iter().chain(&shown).copied();
    let told = told(&trace, &all.collect::<Vec<_>>());
    assert!(!told.contains("gen_ai"), "{told}");
}

#[test]
fn the_run_is_the_parent_of_its_parts_and_a_part_of_what_started_it() {
    let record = record(Exit::Done);
    let steps = [step(StepId::INITIAL, 1, Some("STOP"))];
    for (parent, expected) in [(None, None), (Some(0xdef), Some("0000000000000def"))] {
        let trace = Trace {
            record: &record,
            steps: &steps,
            ids: TraceIds { parent, ..IDS },
            task: None,
            text: None,
        };
        let request = trace.request(&json!({"service.name": "x"}));
        let spans = &request["resourceSpans"][0];
        assert_eq!(
            spans["resource"],
            json!({"attributes": [{"key": "service.name", "value": {"stringValue": "x"}}]})
        );
        let spans = &spans["scopeSpans"][0]["spans"];
        assert_eq!(spans[0]["parentSpanId"].as_str(), expected);
        assert_eq!(spans[1]["parentSpanId"], spans[0]["spanId"]);
        assert_ne!(spans[1]["spanId"], spans[0]["spanId"]);
        for span in spans.as_array().unwrap() {
            assert_eq!(span["traceId"], "00000000000000000000000000000abc");
            assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        }
        assert_eq!(spans[0]["startTimeUnixNano"], "1795288503000000000");
        // The same seed gives the same ids.
        assert_eq!(trace.request(&json!({"service.name": "x"})), request);
    }
}
