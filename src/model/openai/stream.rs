//! Assembles a streamed answer of OpenAI, or of a compatible server, into the JSON of a whole one. Pure.

use serde_json::{Value, json};

use crate::model::wire::{Assembler, elements, first, parse_answer, text, update};
use crate::model::{Listener, ModelError, Provider};

/// The data of a stream's last event; logged as the finish reason of a stream that has no other.
pub(super) const DONE: &str = "[DONE]";

/// A streamed answer: chunks whose choice has a `delta` in place of the message.
#[derive(Default)]
pub(super) struct ChatStream {
    /// The top-level fields of the chunks; `choices` is replaced at the end.
    answer: Value,
    pub(super) content: String,
    refusal: Option<String>,
    /// The thinking, with the name of its field.
    thought: Option<(&'static str, String)>,
    pub(super) calls: Vec<PartialCall>,
    finish: Option<String>,
    done: bool,
}

/// A call, as far as it has been received.
#[derive(Default)]
pub(super) struct PartialCall {
    index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl Assembler for ChatStream {
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError> {
        // Anything after the end is not part of the answer.
        self.done |= data.trim_ascii() == DONE.as_bytes();
        if self.done {
            return Ok(());
        }
        let chunk = Value::Object(parse_answer(data)?);
        Provider::OpenAi.vendor().wire.check(&chunk["error"])?;
        update(&mut self.answer, &chunk);
        let Some(choice) = first(&chunk["choices"]) else {
            return Ok(());
        };
        // Some servers send an empty finish reason with every chunk.
        let finish = text(&choice["finish_reason"]).filter(|finish| !finish.is_empty());
        self.finish = finish.or(self.finish.take());
        let delta = &choice["delta"];
        let parts = elements(&delta["content"]).map(|part| &part["text"]);
        for text in parts.chain([&delta["content"]]).filter_map(Value::as_str) {
            listener.text(text);
            self.content.push_str(text);
        }
        // Compatible servers send thinking by one of these names; some send both, or no text.
        let mut names = ["reasoning_content", "reasoning"].into_iter();
        let said = |name| Some((name, delta[name].as_str().filter(|said| !said.is_empty())?));
        if let Some((name, thought)) = names.find_map(said) {
            listener.thought(thought);
            let (_, all) = self.thought.get_or_insert((name, String::new()));
            all.push_str(thought);
        }
        if let Some(refusal) = delta["refusal"].as_str() {
            self.refusal.get_or_insert_default().push_str(refusal);
        }
        for piece in elements(&delta["tool_calls"]) {
            self.call(piece);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.done
    }

    fn is_whole(&self) -> bool {
        self.done || self.finish.is_some()
    }

    fn finish(self: Box<Self>) -> Option<Vec<u8>> {
        // Servers send a finish reason, `[DONE]`, or both.
        let finish = self.finish.or(self.done.then(|| DONE.to_owned()))?;
        let call = |call: &PartialCall| {
            let function = json!({"name": call.name, "arguments": call.arguments});
            json!({"id": call.id, "type": "function", "function": function})
        };
        let mut message =
            json!({"role": "assistant", "content": self.content, "refusal": self.refusal});
        if let Some((name, thought)) = self.thought.filter(|_| !self.calls.is_empty()) {
            message[name] = thought.into();
        }
        if !self.calls.is_empty() {
            message["tool_calls"] = self.calls.iter().map(call).collect();
        }
        let mut answer = self.answer;
        answer["object"] = "chat.completion".into();
        answer["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish}]);
        Some(answer.to_string().into_bytes())
    }
}

impl ChatStream {
    /// Adds a piece of a call, whose name is in its first piece. Servers that omit the index send calls whole, or one
    /// after the other.
    pub(super) fn call(&mut self, piece: &Value) {
        let index = piece["index"].as_u64();
        let function = &piece["function"];
        let owned = |value: &Value| text(value).unwrap_or_default();
        let [id, name] = [&piece["id"], &function["name"]].map(owned);
        // Some servers give every call the index of the first, so a different id means a different call; others make up
        // an id for each piece.
        let is_known = |call: &PartialCall| match index {
            None => name.is_empty(),
            Some(_) if call.index != index => false,
            Some(_) => name.is_empty() || id.is_empty() || id == call.id,
        };
        let known = self.calls.iter().rposition(is_known);
        if known.is_none() {
            self.calls.push(PartialCall {
                index,
                ..PartialCall::default()
            });
        }
        let at = known.unwrap_or(self.calls.len() - 1);
        let call = &mut self.calls[at];
        // Id and name are sent once, but some servers repeat them.
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        match &function["arguments"] {
            whole @ Value::Object(_) => call.arguments = whole.to_string(),
            piece => call.arguments.push_str(&owned(piece)),
        }
    }
}
