//! Azure's wire format: OpenAI's chat completions, for a deployment in the user's own Azure resource. Pure.
//!
//! Follows Azure's API description of 2024-10-21. Guarantees that a request contains no field missing from that
//! description, except `model`, and that names that become part of a URL need no escaping there.

#[cfg(test)]
mod tests;

use std::io::Write;

use serde_json::{Value, json};

use super::openai::{Dialect, OpenAi, filtered};
use super::{
    Delivery, Endpoint, ModelError, ModelSpec, Origin, Provider, Reply, Tier, ToolChoice, ToolForm,
    Vendor, VendorError,
};
use crate::model::wire::{Asked, Assembler, Wire};
use crate::sys::text::without_mark;

/// The API version used if none is set.
const API_VERSION: &str = "2024-10-21";
/// The ending of a base URL of the newer form, for which only the request's body names the deployment.
const NEWER_FORM: &str = "/openai/v1";

/// Creates the entry for the model behind a deployment of the resource at `endpoint`, for agents that use the vendor's
/// native tool calls; `api_version` has a default. Both names must be usable in a URL without escaping; see
/// [`is_plain`].
pub fn azure_spec(endpoint: &Endpoint, deployment: &str, api_version: Option<&str>) -> ModelSpec {
    ModelSpec {
        base_url: Some(endpoint.base().to_owned()),
        api_version: api_version.map(str::to_owned),
        key_file: None,
        tools: Some(ToolForm::Native),
        origin: Origin::Added,
        ..Provider::Azure.spec(deployment)
    }
}

/// Checks that the names that become part of the URL need no escaping there.
///
/// # Errors
/// Fails if one of the names needs escaping.
fn check(spec: &ModelSpec) -> Result<(), String> {
    if spec.reasoning_effort.is_some() || spec.tier != Tier::Standard {
        let fields = "`reasoningEffort` and `serviceTier`";
        return Err(format!("{fields} are not for the provider `azure`"));
    }
    if !is_plain(&spec.id) {
        return Err(format!(
            "`{}` is not the name of a deployment, which is made of letters, digits and `-_.`",
            spec.id.escape_debug()
        ));
    }
    match &spec.api_version {
        Some(version) if !is_plain(version) => Err(format!(
            "`{}` is not a version of Azure's API, which is like `{API_VERSION}`",
            version.escape_debug()
        )),
        _ => Ok(()),
    }
}

/// Returns whether the name of a deployment, or an API version, needs no escaping in a URL.
pub fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && name.chars().all(plain) && name != "." && name != ".."
}

const WORDING_HINT: &str =
    "change the wording, or the content filter of the deployment in Azure's portal";
const KEY_HINT: &str = "the resource does not accept the key: check `AZURE_OPENAI_API_KEY` (or the entry's key file), and that \
     `AZURE_OPENAI_BASE_URL` (or the entry's `baseUrl`) is the resource that the key is of";
const DEPLOYMENT_HINT: &str = "the resource has no such deployment for chat: check `AZURE_OPENAI_DEPLOYMENT` (or the entry's `id`), \
     `AZURE_OPENAI_BASE_URL` (or its `baseUrl`) and, where it is set, `AZURE_OPENAI_API_VERSION` (or its `apiVersion`)";

struct Azure;

pub(super) static AZURE: Vendor = Vendor {
    telemetry_name: "azure.ai.openai",
    key_file: Some("azure-key.txt"),
    key_by_default: true,
    key_variables: &["AZURE_OPENAI_API_KEY"],
    // From `spec/dev-agent.md`.
    max_output_tokens: Some(4000),
    refuses_tiers: true,
    takes_temperature: false,
    key_header: ("api-key", ""),
    ..Vendor::of(&Azure, "azure", "Azure", "AZURE_OPENAI_BASE_URL")
};

impl Wire for Azure {
    fn check_entry(&self, spec: &ModelSpec) -> Result<(), String> {
        check(spec)
    }

    fn url(&self, endpoint: &Endpoint, spec: &ModelSpec, _delivery: Delivery) -> String {
        let version = spec.api_version.as_deref();
        if !endpoint.base().ends_with(NEWER_FORM) {
            let (deployment, version) = (&spec.id, version.unwrap_or(API_VERSION));
            return endpoint.url(&format!(
                "/openai/deployments/{deployment}/chat/completions?api-version={version}"
            ));
        }
        let query = version.map(|version| format!("?api-version={version}"));
        endpoint.url(&format!("/chat/completions{}", query.unwrap_or_default()))
    }

    /// Writes the request's JSON. Answers are never streamed.
    fn write_request(&self, asked: Asked<'_>, out: &mut dyn Write) -> serde_json::Result<()> {
        let form = &asked.1.form;
        let may_call = form.tool_choice == ToolChoice::Auto && !form.tools.is_empty();
        let dialect = Dialect {
            system: "system",
            limit: "max_completion_tokens",
            in_segments: false,
            by_marks: false,
            has_thoughts: false,
            rest: json!({"tool_choice": may_call.then_some("auto")}),
        };
        dialect.write(asked, out)
    }

    fn assembler(&self) -> Box<dyn Assembler> {
        OpenAi.assembler()
    }

    fn read_reply(&self, json: &[u8]) -> Result<Reply, ModelError> {
        OpenAi.read_reply(json)
    }

    fn hint(&self, status: u16, code: Option<&str>) -> Option<&'static str> {
        match (status, code) {
            (_, Some("content_filter")) => Some(WORDING_HINT),
            (401 | 403, _) => Some(KEY_HINT),
            // A deployment for anything other than chat counts as missing.
            (404, _) | (_, Some("OperationNotSupported")) => Some(DEPLOYMENT_HINT),
            _ => None,
        }
    }

    /// Reads the JSON of a failed call's answer. Azure's gateway sends its own errors without the `error` object around
    /// them.
    fn read_failure(&self, json: &[u8]) -> VendorError {
        let answer: Value = serde_json::from_slice(without_mark(json)).unwrap_or_default();
        self.read_error(answer.get("error").unwrap_or(&answer))
    }

    fn vendor_error(&self, error: &Value) -> VendorError {
        let vendor = OpenAi.vendor_error(error);
        let status = error["statusCode"].as_u64();
        let code = vendor.code.or(status.map(|status| status.to_string()));
        // The service sends the first spelling of each pair; its API description has the second.
        let inner = ["innererror", "inner_error"].map(|name| &error[name]);
        let results = inner.iter().flat_map(|inner| {
            ["content_filter_result", "content_filter_results"].map(|name| &inner[name])
        });
        let found = results.filter_map(filtered);
        VendorError {
            message: vendor
                .message
                .into_iter()
                .chain(found)
                .reduce(|message, found| format!("{message} ({found})")),
            code,
            ..vendor
        }
    }
}
