//! JSON-RPC messages: those sent, and the interpretation of those received. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::version::Version;

/// The error code for a request that this client does not answer.
const METHOD_NOT_FOUND: i64 = -32601;

/// A request or a notification from the client.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'m> {
    /// The request's id; `None` for a notification.
    pub id: Option<u64>,
    /// The method.
    pub method: &'m str,
    /// The parameters, an object.
    pub params: &'m Value,
    /// The negotiated protocol version; `None` during the handshake.
    pub version: Option<Version>,
}

impl Outgoing<'_> {
    /// Serializes the message as one line of JSON.
    pub fn to_text(self) -> String {
        let (method, params) = (Value::from(self.method), self.params);
        let id = self.id.map_or(String::new(), |id| format!("\"id\":{id},"));
        format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":{method},\"params\":{params}}}")
    }
}

/// An error that a server returns in place of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcError {
    /// The error's code.
    pub code: i64,
    /// The server's error message.
    pub message: String,
    /// Data for programs; null if absent.
    #[serde(default)]
    pub data: Value,
}

/// A received message, from the viewpoint of a client that awaits an answer.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// The awaited answer: a result or an error.
    Answer(Result<Value, RpcError>),
    /// A request from the server, with the reply to send.
    Asks(Value),
    /// The progress of the request whose answer is awaited, as a line for the user.
    Progress(String),
}

impl Incoming {
    /// Reads a message, or a batch of them; `awaited` is the id of the request whose answer is awaited. Other
    /// notifications, answers that are not awaited and invalid messages are left out.
    pub fn read(message: Value, awaited: u64) -> Vec<Self> {
        let messages = match message {
            Value::Array(messages) => messages,
            message => vec![message],
        };
        let one = |message| Self::of_one(message, awaited);
        messages.into_iter().filter_map(one).collect()
    }

    fn of_one(message: Value, awaited: u64) -> Option<Self> {
        let Value::Object(mut message) = message else {
            return None;
        };
        let id = message.remove("id").filter(|id| !id.is_null());
        match (message.get("method"), id) {
            (Some(Value::String(method)), Some(id)) => Some(Self::Asks(reply(method, &id))),
            (Some(Value::String(method)), None) if method == "notifications/progress" => {
                progress(message.get("params")?, awaited).map(Self::Progress)
            }
            (None, Some(id)) if id == awaited => outcome(&mut message).map(Self::Answer),
            _ => None,
        }
    }
}

/// Returns the error in a message without an id: a server that could not read a request does not know its id.
pub fn error_without_id(message: &mut Value) -> Option<RpcError> {
    let message = message.as_object_mut()?;
    if message.get("id").is_some_and(|id| !id.is_null()) {
        return None;
    }
    outcome(message)?.err()
}

/// Describes the progress of the awaited request, as in `3 of 10: indexing`.
fn progress(params: &Value, awaited: u64) -> Option<String> {
    let done = params["progress"]
        .as_f64()
        .filter(|_| params["progressToken"] == awaited)?;
    let total = params["total"].as_f64().map(|total| format!(" of {total}"));
    let message = params["message"].as_str().map(|text| format!(": {text}"));
    Some(format!(
        "{done}{}{}",
        total.unwrap_or_default(),
        message.unwrap_or_default()
    ))
}

/// Creates the reply to a request from the server.
fn reply(method: &str, id: &Value) -> Value {
    if method == "ping" {
        return json!({"jsonrpc": "2.0", "id": id, "result": {}});
    }
    let message = format!("this client does not answer `{method}`");
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": METHOD_NOT_FOUND, "message": message}})
}

fn outcome(message: &mut Map<String, Value>) -> Option<Result<Value, RpcError>> {
    let result = message.remove("result");
    let failure = message.remove("error").filter(|error| !error.is_null());
    let mut error = match (result, failure) {
        (None | Some(Value::Null), Some(error)) => error,
        (result, _) => return result.map(Ok),
    };
    let text = match error.get_mut("message").map(Value::take) {
        Some(Value::String(text)) => text,
        // Some proxies and servers send a plain text as the error.
        _ => error
            .as_str()
            .map_or_else(|| error.to_string(), str::to_owned),
    };
    Some(Err(RpcError {
        code: error["code"].as_i64().unwrap_or_default(),
        message: text,
        data: error.get_mut("data").map(Value::take).unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_an_id_and_a_notification_does_not() {
        let params = json!({"a": [1]});
        let mut message = Outgoing {
            id: Some(7),
            method: "tools/call",
            params: &params,
            version: None,
        };
        assert_eq!(
            message.to_text(),
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":[1]}}"#
        );
        message.id = None;
        assert_eq!(
            message.to_text(),
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"a":[1]}}"#
        );
    }

    #[test]
    fn an_answer_is_what_has_our_id() {
        let error = |code, message: &str, data| {
            let message = message.to_owned();
            Some(Incoming::Answer(Err(RpcError {
                code,
                message,
                data,
            })))
        };
        for (message, expected) in [
            (
                json!({"jsonrpc": "2.0", "id": 7, "result": {"a": 1}}),
                Some(Incoming::Answer(Ok(json!({"a": 1})))),
            ),
            (
                json!({"id": 7, "result": null}),
                Some(Incoming::Answer(Ok(Value::Null))),
            ),
            (json!({"id": 8, "result": {}}), None),
            (json!({"id": "7", "result": {}}), None),
            (json!({"id": null, "result": {}}), None),
            (json!({"id": 7}), None),
            (
                json!({"id": 7, "error": {"code": -32602, "message": "no", "data": [1]}}),
                error(-32602, "no", json!([1])),
            ),
            (json!({"id": 7, "error": "no"}), error(0, "no", Value::Null)),
            (
                json!({"id": 7, "result": null, "error": {"code": 1, "message": "no"}}),
                error(1, "no", Value::Null),
            ),
            (
                json!({"id": 7, "result": 1, "error": null}),
                Some(Incoming::Answer(Ok(json!(1)))),
            ),
            (
                json!({"id": 7, "method": "ping"}),
                Some(Incoming::Asks(
                    json!({"jsonrpc": "2.0", "id": 7, "result": {}}),
                )),
            ),
            (
                json!({"id": "x", "method": "sampling/createMessage", "params": {}}),
                Some(Incoming::Asks(json!({"jsonrpc": "2.0", "id": "x", "error":
                    {"code": -32601, "message": "this client does not answer `sampling/createMessage`"}}))),
            ),
            (json!({"method": "notifications/progress"}), None),
            (
                json!({"method": "notifications/progress", "params": {"progressToken": 7, "progress": 3, "total": 10, "message": "indexing"}}),
                Some(Incoming::Progress("3 of 10: indexing".to_owned())),
            ),
            (
                json!({"method": "notifications/progress", "params": {"progressToken": 7, "progress": 0.5}}),
                Some(Incoming::Progress("0.5".to_owned())),
            ),
            (
                json!({"method": "notifications/progress", "params": {"progressToken": 8, "progress": 3}}),
                None,
            ),
            (json!("text"), None),
        ] {
            let text = message.to_string();
            assert_eq!(
                Incoming::read(message, 7),
                Vec::from_iter(expected),
                "{text}"
            );
        }
        let list = json!([{"method": "notifications/x"}, {"id": 7, "result": 1}]);
        assert_eq!(Incoming::read(list, 7), [Incoming::Answer(Ok(json!(1)))]);
    }

    #[test]
    fn an_error_for_what_could_not_be_read_has_no_id() {
        for (mut message, code) in [
            (
                json!({"id": null, "error": {"code": -32700, "message": "a"}}),
                Some(-32700),
            ),
            (
                json!({"error": {"code": -32600, "message": "a"}}),
                Some(-32600),
            ),
            (
                json!({"id": 1, "error": {"code": -32600, "message": "a"}}),
                None,
            ),
            (json!({"result": 1}), None),
            (json!([]), None),
        ] {
            let error = error_without_id(&mut message);
            assert_eq!(error.map(|error| error.code), code);
        }
    }
}
