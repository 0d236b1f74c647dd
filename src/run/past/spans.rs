//! A run as a trace in the JSON form of OTLP, by OpenTelemetry's conventions for generative AI. Pure.

use std::time::Duration;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use crate::exec::build_script::BUILD_SCRIPT;
use crate::model::StepId;
use crate::model::price::Usd;
use crate::model::usage::Usage;
use crate::record::result::RunRecord;
use crate::record::run_files::{Artifact, ERROR_LINE};
use crate::record::seconds::Seconds;
use crate::record::step::{Action, BuildRecord, Step};
use crate::sys::exit::Exit;
use crate::sys::text::{cut, one_line};

/// The maximum length of a text, in characters.
const LONGEST_TEXT: usize = 64 << 10;
/// The maximum length of a tool's name, which a model may have made up, in characters.
const LONGEST_NAME: usize = 100;

/// OTLP's numbers for the kinds of spans, and for the status of failed ones.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const FAILED: u8 = 2;

/// The identifiers of a trace.
#[derive(Debug, Clone, Copy)]
pub struct TraceIds {
    /// The id of the trace.
    pub trace: u128,
    /// The span that the run is a part of.
    pub parent: Option<u64>,
    /// The random number from which the ids of the run's spans are derived.
    pub seed: u128,
}

/// A function that finds the text of a step's file.
pub type StepText<'r> = dyn Fn(&StepId, Artifact) -> Option<String> + 'r;

/// A run to trace.
pub struct Trace<'r> {
    /// The run's record.
    pub record: &'r RunRecord,
    /// The run's steps in full.
    pub steps: &'r [Step],
    /// The identifiers.
    pub ids: TraceIds,
    /// The id of the task, in a list of many, that the run belongs to.
    pub task: Option<&'r str>,
    /// The texts; `None` to leave them out.
    pub text: Option<&'r StepText<'r>>,
}

impl Trace<'_> {
    /// Returns the trace as a request to export it. `resource` describes the program, as an object.
    pub fn request(&self, resource: &Value) -> Value {
        let mut spans = vec![self.run()];
        for step in self.steps {
            spans.extend(step.model.as_ref().map(|model| self.call(step, model)));
            spans.extend(step.build.as_ref().map(|build| self.build(step, build)));
            spans.extend(step.actions.iter().map(|action| self.tool(action)));
        }
        let id = |nth: usize| xxh3_64(format!("{:x}/{nth}", self.ids.seed).as_bytes());
        for (nth, span) in spans.iter_mut().enumerate() {
            let parent = if nth == 0 {
                self.ids.parent
            } else {
                Some(id(0))
            };
            span["spanId"] = format!("{:016x}", id(nth)).into();
            if let Some(parent) = parent {
                span["parentSpanId"] = format!("{parent:016x}").into();
            }
        }
        let scope = json!({"name": env!("CARGO_PKG_NAME"), "version": self.record.version});
        json!({"resourceSpans": [{
            "resource": {"attributes": attributes(resource)},
            "scopeSpans": [{"scope": scope, "spans": spans}],
        }]})
    }

    /// Creates a span that begins at a time since the start of the run. Its name begins with the operation. The
    /// attributes are an object, with null for those that are unknown.
    fn span(
        &self,
        (kind, name): (u8, String),
        (start, took): (Duration, Duration),
        error: Option<&str>,
        mut about: Value,
    ) -> Value {
        about["gen_ai.operation.name"] = name.split(' ').next().into();
        about["error.type"] = error.into();
        about["code_commit.task.id"] = self.task.into();
        let nanos = self.record.started.timestamp_nanos_opt();
        let began = u128::try_from(nanos.unwrap_or_default()).unwrap_or_default();
        let start = began + start.as_nanos();
        let mut span = json!({
            "traceId": format!("{:032x}", self.ids.trace), "name": name, "kind": kind,
            "startTimeUnixNano": start.to_string(),
            "endTimeUnixNano": (start + took.as_nanos()).to_string(),
            "attributes": attributes(&about),
        });
        if error.is_some() {
            span["status"] = json!({"code": FAILED});
        }
        span
    }

    fn run(&self) -> Value {
        let RunRecord { exit, workflow, .. } = self.record;
        let usage = self.record.usage();
        let provider = self.steps.iter().find_map(|step| step.provider);
        let agent = self.record.agent.as_ref();
        self.span(
            (INTERNAL, format!("invoke_agent {workflow}")),
            (Duration::ZERO, self.record.seconds.0),
            (exit.code != 0).then_some(&*exit.name),
            json!({
                "gen_ai.provider.name": provider.map(|provider| provider.vendor().telemetry_name),
                "gen_ai.agent.name": workflow,
                "gen_ai.conversation.id": agent.and_then(|agent| agent.session.as_ref()),
                "gen_ai.request.model": self.record.model,
                "gen_ai.usage.input_tokens": usage.map(|usage| usage.input_tokens),
                "gen_ai.usage.output_tokens": usage.as_ref().map(Usage::answered),
                "code_commit.exit.code": exit.code,
                "code_commit.exit.name": exit.name,
                "code_commit.cost": self.record.cost.map(Usd::dollars),
                "code_commit.log": self.record.log,
            }),
        )
    }

    fn call(&self, step: &Step, model: &str) -> Value {
        let usage = step.usage.as_ref();
        let text = |artifact| self.text(&(self.text?)(&step.id(), artifact)?);
        let message = |role: &str, text: String| json!({"role": role, "parts": [{"type": "text", "content": text}]});
        let query = text(Artifact::Query).map(|query| message("user", query));
        let reply = text(Artifact::ResponseText)
            .filter(|text| !text.starts_with(ERROR_LINE))
            .map(|reply| {
                let mut reply = message("assistant", reply);
                reply["finish_reason"] = json!(step.finish);
                reply
            });
        self.span(
            (CLIENT, format!("chat {model}")),
            (since_start(step.at), step.seconds.0),
            self.failure(step),
            json!({
                "gen_ai.provider.name": step.provider.map(|provider| provider.vendor().telemetry_name),
                "gen_ai.request.model": model,
                "gen_ai.response.model": step.model_version,
                "gen_ai.response.finish_reasons": step.finish.as_ref().map(|finish| [finish]),
                "gen_ai.usage.input_tokens": usage.map(|usage| usage.input_tokens),
                "gen_ai.usage.cache_read.input_tokens": usage.map(|usage| usage.cached_tokens),
                "gen_ai.usage.output_tokens": usage.map(Usage::answered),
                "gen_ai.input.messages": query.map(|query| json!([query]).to_string()),
                "gen_ai.output.messages": reply.map(|reply| json!([reply]).to_string()),
                "code_commit.step": step.id().to_string(),
                "code_commit.cost": step.cost.map(Usd::dollars),
            }),
        )
    }

    /// Returns the reason that the call failed, if it did: if it was the last call, the error that the run ended with.
    fn failure(&self, step: &Step) -> Option<&str> {
        let mut calls = self.steps.iter().rev().filter(|step| step.model.is_some());
        let is_last = calls.next().is_some_and(|last| last.id() == step.id());
        let ends_run = is_last && self.record.exit.exit() == Some(Exit::ModelFailed);
        let error = self.record.error.as_ref().filter(|_| is_last);
        let reason = error.map_or("_OTHER", |error| &error.reason);
        (step.finish.is_none() || ends_run).then_some(reason)
    }

    /// Returns the span of a build, which is recorded as a tool call by the program itself.
    fn build(&self, step: &Step, build: &BuildRecord) -> Value {
        self.tool(&Action {
            tool: BUILD_SCRIPT.into(),
            failed: !build.passed(),
            exit_code: build.code,
            at: Some(Seconds(since_start(step.at) + step.seconds.0)),
            seconds: Some(build.seconds),
            result: self.text.and_then(|text| text(&step.id(), Artifact::Build)),
            ..Action::default()
        })
    }

    fn tool(&self, action: &Action) -> Value {
        let name = one_line(&action.tool, LONGEST_NAME);
        let exit = action.exit_code.filter(|code| *code != 0);
        let error = exit.map_or("failed".to_owned(), |code| format!("exit code {code}"));
        let input = action.input.as_ref().map(Value::to_string);
        self.span(
            (INTERNAL, format!("execute_tool {name}")),
            (since_start(action.at), since_start(action.seconds)),
            action.is_bad().then_some(&error),
            json!({
                "gen_ai.tool.name": name,
                "gen_ai.tool.call.id": action.id,
                "gen_ai.tool.call.arguments": input.and_then(|input| self.text(&input)),
                "gen_ai.tool.call.result": action.result.as_deref().and_then(|text| self.text(text)),
                "process.exit.code": action.exit_code,
            }),
        )
    }

    /// Returns the text, limited in length, if texts are wanted.
    fn text(&self, text: &str) -> Option<String> {
        self.text.map(|_| cut(text, LONGEST_TEXT).into_owned())
    }
}

fn since_start(at: Option<Seconds>) -> Duration {
    at.unwrap_or_default().0
}

/// Returns the known fields of an object as a list of attributes.
fn attributes(object: &Value) -> Vec<Value> {
    let fields = object.as_object().into_iter().flatten();
    let known = fields.filter(|(_, value)| !value.is_null());
    known
        .map(|(key, value)| json!({"key": key, "value": attribute(value)}))
        .collect()
}

fn attribute(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => json!({"doubleValue": value}),
        Value::Number(number) => json!({"intValue": number.to_string()}),
        Value::Array(all) => {
            let values: Vec<Value> = all.iter().map(attribute).collect();
            json!({"arrayValue": {"values": values}})
        }
        other => json!({"stringValue": other}),
    }
}

#[cfg(test)]
mod tests;
