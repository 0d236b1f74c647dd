//! Tool results, normalized to one form for all servers. Pure.
//!
//! Guarantees that a text is moved out of the answer, not copied.

use serde_json::{Map, Value};

use super::error::McpError;

/// Normalizes a result: `structuredContent`, or the JSON in its text, or its text as a JSON string. A lone `result`
/// member, in which servers wrap values other than objects, is unwrapped.
///
/// # Errors
/// [`McpError::Tool`] with the tool's message if the tool failed; [`McpError::Protocol`] if it requests input.
pub fn normalized(result: Value, server: &str) -> Result<Value, McpError> {
    let Value::Object(mut result) = result else {
        return Ok(unwrapped(result));
    };
    let kind = result.get("resultType").and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != "complete") {
        let problem = "the tool asks for input, which this client does not give";
        return Err(McpError::protocol(server, problem));
    }
    let has_failed = result.get("isError") == Some(&Value::Bool(true));
    let structured = result
        .remove("structuredContent")
        .filter(|content| !content.is_null());
    let content = result.remove("content");
    if has_failed {
        let is_blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
        let content = content.map(text).filter(|value| !is_blank(value));
        let message = match content.or(structured) {
            Some(Value::String(words)) => words,
            Some(words) => words.to_string(),
            None => "it does not say why".to_owned(),
        };
        return Err(McpError::Tool(message));
    }
    if let Some(structured) = structured {
        return Ok(unwrapped(structured));
    }
    match content {
        Some(content) => Ok(unwrapped(text(content))),
        // Some servers answer without the protocol's envelope.
        None => Ok(unwrapped(Value::Object(result))),
    }
}

/// Returns the text blocks of a tool's content, joined by newlines; the content itself if it has no text.
fn text(content: Value) -> Value {
    let Value::Array(mut blocks) = content else {
        return content;
    };
    let mut texts: Vec<String> = blocks.iter_mut().filter_map(block_text).collect();
    match (texts.len(), blocks.is_empty()) {
        (0, false) => Value::Array(blocks),
        // In the usual case, nothing is copied.
        (1, _) => Value::String(texts.remove(0)),
        _ => Value::String(texts.join("\n")),
    }
}

fn block_text(block: &mut Value) -> Option<String> {
    let text = match block.get("type").and_then(Value::as_str) {
        Some("text") => block.get_mut("text"),
        Some("resource") => block.get_mut("resource")?.get_mut("text"),
        _ => None,
    };
    match text.map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// Unwraps a lone `result` member, and parses a text that is a JSON object or list.
fn unwrapped(value: Value) -> Value {
    match value {
        Value::Object(object) => unwrapped_object(object),
        Value::String(text) => match parsed(&text) {
            Some(Value::Object(object)) => unwrapped_object(object),
            Some(value) => value,
            None => Value::String(text),
        },
        other => other,
    }
}

fn unwrapped_object(mut object: Map<String, Value>) -> Value {
    if object.len() != 1 {
        return Value::Object(object);
    }
    match object.remove("result") {
        Some(Value::String(text)) => parsed(&text).unwrap_or(Value::String(text)),
        Some(inner) => inner,
        None => Value::Object(object),
    }
}

/// Parses a text that is a JSON object or list; a lone number or word remains text.
fn parsed(text: &str) -> Option<Value> {
    let is_json = text.trim_start().starts_with(['{', '[']);
    is_json.then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_form_of_a_result_is_made_one() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (result, expected) in [
            (
                json!({"structuredContent": {"id": "b"}, "content": [text("x")]}),
                json!({"id": "b"}),
            ),
            (
                json!({"structuredContent": {"result": "plain"}, "content": []}),
                json!("plain"),
            ),
            (
                json!({"structuredContent": {"result": "{\"id\": 1}"}}),
                json!({"id": 1}),
            ),
            (
                json!({"structuredContent": {"result": {"id": 1}}}),
                json!({"id": 1}),
            ),
            (
                json!({"structuredContent": {"result": [1], "more": 2}}),
                json!({"result": [1], "more": 2}),
            ),
            (
                json!({"structuredContent": null, "content": [text("{\"id\": 1}")]}),
                json!({"id": 1}),
            ),
            (json!({"content": [text(" [1, 2]\n")]}), json!([1, 2])),
            (
                json!({"content": [text("{\"result\": {\"id\": 1}}")]}),
                json!({"id": 1}),
            ),
            (
                json!({"content": [text("{\"result\": \"{\\\"id\\\": 1}\"}")]}),
                json!({"id": 1}),
            ),
            (
                json!({"content": [text("{\"result\": \"text\"}")]}),
                json!("text"),
            ),
            (json!({"content": [text("{cut")]}), json!("{cut")),
            (json!({"content": [text("42")]}), json!("42")),
            (json!({"content": [text("a"), text("b")]}), json!("a\nb")),
            (
                json!({"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "t"}}]}),
                json!("t"),
            ),
            (
                json!({"content": [{"type": "image", "data": "aa", "mimeType": "image/png"}]}),
                json!([{"type": "image", "data": "aa", "mimeType": "image/png"}]),
            ),
            (json!({"content": []}), json!("")),
            (json!({"content": [], "isError": false}), json!("")),
            (json!({"content": "plain"}), json!("plain")),
            (json!({"branch_id": "b"}), json!({"branch_id": "b"})),
            (
                json!({"result": {"branch_id": "b"}}),
                json!({"branch_id": "b"}),
            ),
            (
                json!({"resultType": "complete", "content": [text("a")]}),
                json!("a"),
            ),
            (json!("plain"), json!("plain")),
            (json!(null), json!(null)),
        ] {
            let text = result.to_string();
            assert_eq!(normalized(result, "s").unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_tool_that_has_failed_is_an_error_with_its_words() {
        for (result, expected) in [
            (
                json!({"isError": true, "content": [{"type": "text", "text": "no such branch"}]}),
                "no such branch",
            ),
            (
                json!({"isError": true, "structuredContent": {"a": 1}}),
                "{\"a\":1}",
            ),
            (
                json!({"isError": true, "structuredContent": {"a": 1}, "content": []}),
                "{\"a\":1}",
            ),
            (
                json!({"isError": true, "content": [{"type": "text", "text": "{\"a\":1}"}]}),
                "{\"a\":1}",
            ),
            (
                json!({"isError": true, "content": []}),
                "it does not say why",
            ),
        ] {
            let failed = normalized(result, "s");
            assert!(
                matches!(&failed, Err(McpError::Tool(message)) if message == expected),
                "{failed:?}"
            );
        }
        let asks = normalized(json!({"resultType": "input_required"}), "s");
        assert!(matches!(asks, Err(McpError::Protocol { .. })), "{asks:?}");
    }
}
