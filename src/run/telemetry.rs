//! The export of runs to an OpenTelemetry collector, for users whose environment asks for it.
//!
//! Touches the network, but only if a variable names the collector. Guarantees that an export ends within its time
//! limit, and at once when a signal arrives.

use std::num::NonZeroU32;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use crate::model::StepId;
use crate::project::Project;
use crate::record::result::RunRecord;
use crate::run::past::history::PastRun;
use crate::run::past::protobuf;
use crate::run::past::spans::{Trace, TraceIds};
use crate::sys::environment::Environment;
use crate::sys::http::HttpClient;
use crate::sys::http::endpoint::{Endpoint, EndpointProblem, Proxies};
use crate::sys::interrupt::Interrupt;

/// The prefixes of the export's variables: each setting has one for traces, which takes precedence, and one for all
/// signals.
const FOR_TRACES: &str = "OTEL_EXPORTER_OTLP_TRACES_";
const FOR_ALL: &str = "OTEL_EXPORTER_OTLP_";
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";
const CONTENTS: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
/// The path that follows the endpoint for all signals.
const PATH: &str = "/v1/traces";
/// The default time limit, in milliseconds.
const TIMEOUT: u32 = 10_000;

/// The settings of the export, from the environment.
#[derive(Debug, Clone, Copy)]
pub struct Telemetry<'e> {
    environment: &'e Environment,
    /// The random number from which all ids are derived.
    seed: u128,
}

impl<'e> Telemetry<'e> {
    /// Reads the settings; `None` if nothing is exported. `seed` is random.
    pub fn of(environment: &'e Environment, seed: u128) -> Option<Self> {
        let is = |name, word| {
            let value = environment.get(name);
            value.is_some_and(|value| value.trim().eq_ignore_ascii_case(word))
        };
        let is_off = is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none");
        let is_sampled = parent(environment).is_none_or(|(.., is_sampled)| is_sampled);
        let (_, endpoint) = setting(environment, "ENDPOINT");
        (endpoint.is_some() && !is_off && is_sampled).then_some(Self { environment, seed })
    }

    /// Returns the identifiers for the run with this folder.
    fn ids(&self, folder: &str) -> TraceIds {
        let seed = self.seed ^ xxh3_128(folder.as_bytes());
        let parent = parent(self.environment);
        TraceIds {
            trace: parent.map_or(seed, |(trace, ..)| trace),
            parent: parent.map(|(_, span, _)| span),
            seed,
        }
    }

    /// Sends the trace of a run, and of the task that it is for, to the collector.
    ///
    /// # Errors
    /// Fails if a setting cannot be used, or the collector does not accept the trace in time.
    pub fn export_run(
        &self,
        project: &Project,
        (record, task): (&RunRecord, Option<&str>),
        interrupt: &Interrupt,
    ) -> Result<(), String> {
        let folder = record.log.as_deref().unwrap_or_default();
        // The folder's files contain no keys.
        let past = PastRun::at(project, folder);
        let text = |step: &StepId, artifact| past.text(step, artifact);
        let contents = self.environment.get(CONTENTS).unwrap_or_default();
        let trace = Trace {
            record,
            steps: &past.recorded_steps(),
            ids: self.ids(folder),
            task,
            text: contents.eq_ignore_ascii_case("true").then_some(&text),
        };
        self.export(&trace, interrupt)
    }

    /// Sends a trace to the collector.
    ///
    /// # Errors
    /// Fails if a setting cannot be used, or the collector does not accept the trace in time.
    fn export(&self, trace: &Trace<'_>, interrupt: &Interrupt) -> Result<(), String> {
        let setting = |name| setting(self.environment, name);
        let described = |problem: EndpointProblem| problem.to_string();
        let (variable, value) = setting("HEADERS");
        let headers = pairs(&variable, value.unwrap_or_default())?;
        let (variable, value) = setting("ENDPOINT");
        let url = value.unwrap_or_default();
        // The URL for traces is used unchanged; a query may contain a key.
        let of_traces = variable.starts_with(FOR_TRACES);
        let query = url.find('?').filter(|_| of_traces);
        let (base, path) = url.split_at(query.unwrap_or(url.len()));
        let has_key = !headers.is_empty() || query.is_some();
        let endpoint = Endpoint::parse(&variable, base, has_key).map_err(described)?;
        let path = if of_traces { path.trim_end() } else { PATH };
        let (variable, value) = setting("TIMEOUT");
        let wrong_time = |_| wrong(&variable, "a number of milliseconds");
        let timeout = value
            .map(|value| value.trim().parse().map_err(wrong_time))
            .transpose()?
            .map_or(TIMEOUT, NonZeroU32::get);
        let (variable, value) = setting("PROTOCOL");
        let json = trace.request(&self.resource()?);
        let (kind, body) = match value.unwrap_or("http/protobuf") {
            "http/protobuf" => ("application/x-protobuf", protobuf::request(&json)),
            "http/json" => ("application/json", json.to_string().into_bytes()),
            _ => return Err(wrong(&variable, "`http/protobuf` or `http/json`")),
        };
        let proxies = Proxies::from_environment(self.environment).map_err(described)?;
        let client = HttpClient::new(endpoint, &proxies, interrupt, 0);
        let mut request = client.agent.post(client.endpoint.url(path));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let call = request
            .header("content-type", kind)
            .config()
            .timeout_global(Some(Duration::from_millis(timeout.into())));
        let reason = match client.answer(call.build().send(&body)) {
            Ok(answer) if answer.status().is_success() => return Ok(()),
            Ok(answer) => format!("it answers with status {}", answer.status().as_u16()),
            Err(error) => error.to_string(),
        };
        Err(format!("`{}`: {reason}", client.endpoint.host()))
    }

    /// Returns the attributes of the program, as an object.
    fn resource(&self) -> Result<Value, String> {
        let given = pairs(RESOURCE, self.environment.get(RESOURCE).unwrap_or_default())?;
        let mut resource = json!({"service.name": env!("CARGO_PKG_NAME"), "service.version": env!("CARGO_PKG_VERSION")});
        for (name, value) in given {
            resource[name] = value.into();
        }
        if let Some(name) = self.environment.get("OTEL_SERVICE_NAME") {
            resource["service.name"] = name.into();
        }
        Ok(resource)
    }
}

/// Returns the parts of the headers that may be keys: each value, and the text after a scheme such as `Bearer`.
pub fn header_secrets(environment: &Environment) -> Vec<String> {
    let lists = [FOR_TRACES, FOR_ALL]
        .map(|prefix| environment.get(&format!("{prefix}HEADERS")))
        .into_iter()
        .flatten();
    let pairs = lists.flat_map(|list| pairs("", list).unwrap_or_default());
    let last = |value: &str| value.rsplit(' ').next().unwrap_or_default().to_owned();
    pairs.flat_map(|(_, value)| [last(&value), value]).collect()
}

/// Returns the variable that decides a setting, and its value.
fn setting<'e>(environment: &'e Environment, name: &str) -> (String, Option<&'e str>) {
    let [traces, all] = [FOR_TRACES, FOR_ALL].map(|prefix| format!("{prefix}{name}"));
    match environment.get(&traces) {
        Some(value) => (traces, Some(value)),
        None => (all.clone(), environment.get(&all)),
    }
}

/// Parses `name=value,name=value`, with escapes in the values, which errors do not show: they may be secrets.
fn pairs(variable: &str, list: &str) -> Result<Vec<(String, String)>, String> {
    let parts = list.split(',').filter(|part| !part.trim().is_empty());
    let pair = |part: &str| {
        let (left, right) = part.split_once('=')?;
        let value = percent_decode_str(right.trim()).decode_utf8().ok()?;
        let name = Some(left.trim()).filter(|name| !name.is_empty())?;
        Some((name.to_owned(), value.into_owned()))
    };
    let pairs: Option<_> = parts.map(pair).collect();
    pairs.ok_or_else(|| wrong(variable, "a list of `name=value`"))
}

fn wrong(variable: &str, expected: &str) -> String {
    format!("`{variable}` is not {expected}")
}

/// Returns the trace and the span named by `TRACEPARENT`, and whether they are sampled; `None` if it is invalid, or has
/// an unknown version.
fn parent(environment: &Environment) -> Option<(u128, u64, bool)> {
    let value = environment.get("TRACEPARENT")?.trim();
    let fields: Vec<&str> = value.split('-').collect();
    let ["00", trace, span, flags] = fields[..] else {
        return None;
    };
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
    let has_form = value.bytes().all(is_digit) && [trace, span, flags].map(str::len) == [32, 16, 2];
    let trace = u128::from_str_radix(trace, 16).ok()?;
    let span = u64::from_str_radix(span, 16).ok()?;
    let flags = u8::from_str_radix(flags, 16).ok()?;
    (has_form && trace != 0 && span != 0).then_some((trace, span, flags & 1 == 1))
}

#[cfg(test)]
mod tests;
