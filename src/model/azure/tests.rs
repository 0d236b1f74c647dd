//! Azure's wire format: URLs, request bodies, and the text of each error. Pure.

use super::*;
use crate::model::Request;
use crate::model::message::{Call, CallResult, Message, Part, Role, Text};
use crate::model::{End, Form, ModelError, ReasoningEffort, StepId, Tier, ToolSchema};

const RESOURCE: &str = "https://r.openai.azure.com";

fn resource() -> Endpoint {
    Endpoint::parse("V", RESOURCE, true).unwrap()
}

#[test]
fn a_call_goes_to_the_deployment_in_either_form_of_the_api() {
    let newer = format!("{RESOURCE}/openai/v1");
    for (base, version, expected) in [
        (
            RESOURCE,
            None,
            "/openai/deployments/d-1.x_y/chat/completions?api-version=2024-10-21",
        ),
        (
            RESOURCE,
            Some("2025-04-01-preview"),
            "/openai/deployments/d-1.x_y/chat/completions?api-version=2025-04-01-preview",
        ),
        (&newer, None, "/openai/v1/chat/completions"),
        (
            &newer,
            Some("preview"),
            "/openai/v1/chat/completions?api-version=preview",
        ),
    ] {
        for slash in ["", "/"] {
            let endpoint = Endpoint::parse("V", &format!("{base}{slash}"), true).unwrap();
            let spec = azure_spec(&endpoint, "d-1.x_y", version);
            assert_eq!(spec.base_url.as_deref(), Some(base));
            let url = Azure.url(&endpoint, &spec, Delivery::Streamed);
            assert_eq!(url, format!("{RESOURCE}{expected}"));
        }
    }
}

#[test]
fn names_that_need_escaping_in_a_url_are_refused() {
    for name in [
        "", ".", "..", "a/b", "a b", "a?b", "a#b", "a%20b", "a:b", "ä", "a\n",
    ] {
        let problem = check(&azure_spec(&resource(), name, None)).unwrap_err();
        assert!(problem.contains("name of a deployment"), "{problem}");
        let problem = check(&azure_spec(&resource(), "d", Some(name))).unwrap_err();
        assert!(problem.contains("version of Azure"), "{problem}");
    }
}

/// Returns the JSON of a request to a deployment.
fn written(spec: &ModelSpec, messages: Vec<Message<'static>>, form: Form) -> Value {
    let request = Request {
        step: StepId::INITIAL,
        messages,
        form,
        max_output_tokens: spec.max_output_tokens,
        tier: Tier::Flex,
        cached_by_marks: true,
        once: false,
        deadline: None,
    };
    let mut body = Vec::new();
    let manner = Delivery::Streamed.into();
    Azure
        .write_request((spec, &request, manner), &mut body)
        .unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_request_has_what_the_description_knows_and_nothing_else() {
    // Judging by its name, it could be one of OpenAI's own models.
    let spec = azure_spec(&resource(), "gpt-5.6-sol", None);
    let mut marked = Text::from("a");
    marked.is_marked = true;
    let marked = vec![Part::Text(marked), Part::Text("b".into())];
    let messages = vec![
        Message::text(Role::System, "be brief"),
        Message {
            role: Role::User,
            parts: marked,
        },
    ];
    let warm = Form {
        temperature: Some(0.5),
        ..Form::default()
    };
    let expected = json!({
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "ab"}],
        "model": "gpt-5.6-sol",
        "max_completion_tokens": 4000,
    });
    assert_eq!(written(&spec, messages.clone(), warm.clone()), expected);
    let told = ModelSpec {
        temperature: Some(0.0),
        reasoning_effort: Some(ReasoningEffort::High),
        max_output_tokens: Some(9),
        ..spec
    };
    let form = Form {
        tools: vec![ToolSchema {
            name: "t".to_owned(),
            description: "does".to_owned(),
            schema: json!({"type": "object"}),
        }],
        ..warm
    };
    let body = written(&told, messages, form);
    let fields: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        [
            "messages",
            "model",
            "tools",
            "temperature",
            "max_completion_tokens",
            "tool_choice"
        ]
    );
    assert_eq!(
        (&body["temperature"], &body["max_completion_tokens"]),
        (&json!(0.0), &json!(9))
    );
    let function = json!({"name": "t", "description": "does", "parameters": {"type": "object"}});
    assert_eq!(
        (&body["tools"], &body["tool_choice"]),
        (
            &json!([{"type": "function", "function": function}]),
            &json!("auto")
        )
    );
}

#[test]
fn every_call_goes_back_as_it_came_with_a_result_of_its_own() {
    let spec = azure_spec(&resource(), "d", None);
    let arguments = ["{\"a\":1}", "{\"a\":", "\"text\"", "[1]"];
    let calls = arguments.iter().zip(1..).map(|(arguments, id)| {
        json!({"id": format!("c{id}"), "type": "function", "function": {"name": "t", "arguments": arguments}})
    });
    let message =
        json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>()});
    let answer =
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]});
    let reply = Azure.read_reply(answer.to_string().as_bytes()).unwrap();
    let asked = Message {
        role: Role::Assistant,
        parts: reply.calls.iter().cloned().map(Part::Call).collect(),
    };
    let result = |call: &Call| {
        Part::Result(CallResult {
            id: call.id.clone(),
            text: format!("of {}", call.id),
            is_error: false,
        })
    };
    let results = Message {
        role: Role::Tool,
        parts: reply.calls.iter().map(result).collect(),
    };
    let body = written(&spec, vec![asked, results], Form::default());
    assert_eq!(body["messages"][0], message);
    let results: Vec<Value> = ["c1", "c2", "c3", "c4"]
        .map(|id| json!({"role": "tool", "content": format!("of {id}"), "tool_call_id": id}))
        .into();
    assert_eq!(body["messages"].as_array().unwrap()[1..], results);
}

#[test]
fn errors_are_reported_in_azures_words_with_what_was_filtered() {
    let results = json!({"hate": {"filtered": true, "severity": "high"}, "jailbreak": {"detected": true, "filtered": true},
        "violence": {"filtered": false, "severity": "safe"}});
    let found = "m (filtered: hate (high), jailbreak)";
    for (answer, code, message) in [
        (
            json!({"error": {"code": "content_filter", "message": "m", "status": 400, "param": "prompt",
                "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": results}}}),
            "content_filter",
            found,
        ),
        (
            json!({"error": {"code": "content_filter", "message": "m",
                "inner_error": {"content_filter_results": results}}}),
            "content_filter",
            found,
        ),
        (
            json!({"error": {"code": "401", "message": "Access denied"}}),
            "401",
            "Access denied",
        ),
        (
            json!({"statusCode": 401, "message": "Unauthorized"}),
            "401",
            "Unauthorized",
        ),
        (
            json!({"error": {"code": "DeploymentNotFound", "message": "m"}}),
            "DeploymentNotFound",
            "m",
        ),
        (
            json!({"error": {"code": "429", "message": "m"}}),
            "429",
            "m",
        ),
    ] {
        let failure = Azure.read_failure(answer.to_string().as_bytes());
        assert_eq!(failure.code.as_deref(), Some(code));
        assert_eq!(failure.message.as_deref(), Some(message));
    }
}

#[test]
fn each_error_names_the_variables_that_may_be_wrong() {
    for (status, code, expected) in [
        (400, Some("content_filter"), &["change the wording"][..]),
        (
            401,
            None,
            &["`AZURE_OPENAI_API_KEY`", "`AZURE_OPENAI_BASE_URL`"],
        ),
        (403, Some("AccessDenied"), &["`AZURE_OPENAI_API_KEY`"]),
        (
            404,
            Some("DeploymentNotFound"),
            &["`AZURE_OPENAI_DEPLOYMENT`", "`AZURE_OPENAI_BASE_URL`"],
        ),
        (
            404,
            Some("404"),
            &["`AZURE_OPENAI_DEPLOYMENT`", "`AZURE_OPENAI_API_VERSION`"],
        ),
        (
            400,
            Some("OperationNotSupported"),
            &["`AZURE_OPENAI_DEPLOYMENT`"],
        ),
        (400, Some("context_length_exceeded"), &[]),
        (429, Some("429"), &[]),
        (500, None, &[]),
    ] {
        let hint = Azure.hint(status, code).unwrap_or_default();
        assert_eq!(hint.is_empty(), expected.is_empty(), "{status} {code:?}");
        for name in expected {
            assert!(hint.contains(name), "{hint}");
        }
    }
}

#[test]
fn a_filtered_answer_is_a_refusal_that_says_what_was_filtered() {
    let results = json!({"sexual": {"filtered": false, "severity": "safe"},
        "protected_material_code": {"detected": true, "filtered": true}});
    let answer = json!({"choices": [{"index": 0, "message": {"role": "assistant"}, "finish_reason": "content_filter",
        "content_filter_results": results}]});
    let error = Azure.read_reply(answer.to_string().as_bytes()).unwrap_err();
    assert!(matches!(
        error,
        ModelError::CutShort {
            end: End::Refused,
            ..
        }
    ));
    assert!(
        error
            .to_string()
            .ends_with("it ended with `content_filter`: filtered: protected_material_code")
    );
}
