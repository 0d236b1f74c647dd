//! Assembles Anthropic's streamed answers. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::model::openai::arguments;
use crate::model::wire::{Assembler, parse_answer, text, update};
use crate::model::{Listener, ModelError, Provider};

/// A message, as far as it has been received.
#[derive(Default)]
pub struct MessageStream {
    /// The message's top-level fields other than its blocks and usage.
    message: Value,
    usage: Value,
    blocks: BTreeMap<u64, PartialBlock>,
    /// True if the end of the message was received.
    done: bool,
}

/// A content block, as far as it has been received.
#[derive(Default)]
struct PartialBlock {
    /// The block, as given by its start event.
    start: Value,
    /// The text, the thinking, or the JSON of the input received so far.
    said: String,
    signature: String,
}

impl Assembler for MessageStream {
    fn event(&mut self, data: &[u8], listener: &dyn Listener) -> Result<(), ModelError> {
        // Anything after the end is not part of the answer.
        if self.done {
            return Ok(());
        }
        let event = Value::Object(parse_answer(data)?);
        Provider::Anthropic.vendor().wire.check(&event["error"])?;
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                update(&mut self.message, &event["message"]);
                update(&mut self.usage, &event["message"]["usage"]);
            }
            "content_block_start" => {
                let block = self.blocks.entry(index).or_default();
                block.start = event["content_block"].clone();
                let [text, thought] = ["text", "thinking"].map(|name| text(&block.start[name]));
                for (kind, said) in [("text_delta", text), ("thinking_delta", thought)] {
                    let said = said.filter(|said| !said.is_empty());
                    said.inspect(|said| block.add(kind, said, listener));
                }
                let signature = block.start["signature"].as_str().unwrap_or_default();
                block.signature = signature.to_owned();
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let kind = delta["type"].as_str().unwrap_or_default();
                let names =
                    ["text", "thinking", "partial_json", "signature"].map(|name| &delta[name]);
                let piece = names.into_iter().find_map(Value::as_str);
                if let Some((block, piece)) = self.blocks.get_mut(&index).zip(piece) {
                    block.add(kind, piece, listener);
                }
            }
            "message_delta" => {
                update(&mut self.message, &event["delta"]);
                update(&mut self.usage, &event["usage"]);
            }
            "message_stop" => self.done = true,
            // The vendor may add kinds of events, and asks clients to ignore unknown ones.
            _ => {}
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.done
    }

    fn finish(self: Box<Self>) -> Option<Vec<u8>> {
        if !self.done {
            return None;
        }
        let content: Value = self.blocks.into_values().map(PartialBlock::whole).collect();
        let whole = json!({"type": "message", "content": content, "usage": self.usage});
        let mut message = self.message;
        update(&mut message, &whole);
        Some(message.to_string().into_bytes())
    }
}

impl PartialBlock {
    fn add(&mut self, kind: &str, piece: &str, listener: &dyn Listener) {
        match kind {
            "text_delta" => listener.text(piece),
            "thinking_delta" => listener.thought(piece),
            "input_json_delta" => {}
            "signature_delta" => return self.signature.push_str(piece),
            _ => return,
        }
        self.said.push_str(piece);
    }

    fn whole(self) -> Value {
        let start = self.start;
        match start["type"].as_str() {
            Some("text") => json!({"type": "text", "text": self.said}),
            Some("thinking") => {
                json!({"type": "thinking", "thinking": self.said, "signature": self.signature})
            }
            Some("tool_use") => {
                let (id, name) = (&start["id"], &start["name"]);
                let given = &start["input"];
                let input = match arguments(&self.said.into()) {
                    // Some servers send the whole input in the start event.
                    none if none == json!({}) && given.is_object() => given.clone(),
                    input => input,
                };
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
            _ => start,
        }
    }
}
