//! The rules of Anthropic's API, and those that make its cache effective.
//!
//! A request is checked against the rules of the API, the server's earlier answers, and the request that it continues.
//! Each violation is described in a sentence, with which the server answers as a 400.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::{Value, json};

use super::super::server::Recorded;

/// The API version in which a model's temperature is an error.
const NEW: &str = "2026-10-21";
const OLD: &str = "2023-06-01";
/// The number of blocks before a mark that are searched for in the cache.
const LOOKBACK: usize = 20;

/// A reply that the server has sent.
pub struct Given {
    key: String,
    model: String,
    content: Vec<Value>,
    end: &'static str,
    /// The number of requests accepted before it.
    taken: usize,
}

/// An accepted request, and its usage.
struct Taken {
    key: String,
    model: String,
    /// The tools and the system prompt, without marks.
    prefix: String,
    messages: Vec<(String, Vec<Value>)>,
    is_refused: bool,
}

/// The judge's state.
#[derive(Default)]
pub struct Judge {
    given: Vec<Given>,
    taken: Vec<Taken>,
    /// The contents of the cache: hashes of all blocks up to a point.
    cached: HashSet<u64>,
    /// True if earlier messages may change, as after a compaction.
    pub may_change: bool,
}

impl Judge {
    /// Returns the faults of a request for a message; empty if it is valid.
    pub fn faults(&self, request: &Recorded) -> Vec<String> {
        let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
            return vec!["the body is no JSON".to_owned()];
        };
        let mut faults = Faults(Vec::new());
        faults.of_headers(request, &body);
        faults.of_fields(&body);
        faults.of_tools(&body);
        faults.of_marks(&body);
        let messages = messages(&body);
        let key = request.header("x-api-key").unwrap_or_default();
        let model = body["model"].as_str().unwrap_or_default();
        self.paused(&messages, &mut faults);
        faults.of_content(&messages);
        faults.of_calls(&messages);
        self.thoughts(&messages, key, model, &mut faults);
        if !self.may_change {
            self.prefix(&body, &messages, key, model, &mut faults);
        }
        faults.0
    }

    /// Checks that roles alternate, and that the last message is the user's, unless the last reply was a pause.
    fn paused(&self, messages: &[(String, Vec<Value>)], faults: &mut Faults) {
        for (at, (role, content)) in messages.iter().enumerate() {
            let expected = ["user", "assistant"][at % 2];
            faults.unless(role == expected, || {
                format!("messages.{at}: the role is {role:?}, and {expected}'s turn it is")
            });
            let is_last = at + 1 == messages.len();
            let mut given = self.given.iter();
            let mut paused = || given.any(|given| given.end == "pause_turn" && given.is(content));
            faults.unless(!is_last || role == "user" || paused(), || {
                "the last message is not the user's".to_owned()
            });
        }
        faults.unless(!messages.is_empty(), || "there are no messages".to_owned());
    }

    /// Checks that thoughts are sent back unchanged, completely and in place, to the model that produced them.
    fn thoughts(
        &self,
        messages: &[(String, Vec<Value>)],
        key: &str,
        model: &str,
        faults: &mut Faults,
    ) {
        for (at, (role, content)) in messages.iter().enumerate() {
            let thoughts: Vec<&Value> = content.iter().filter(|block| is_thought(block)).collect();
            if role != "assistant" {
                faults.unless(thoughts.is_empty(), || {
                    format!("messages.{at}: a user does not think")
                });
                continue;
            }
            for thought in &thoughts {
                let mut known = self
                    .given
                    .iter()
                    .filter(|given| given.content.contains(thought));
                let owned = known.any(|given| given.key == key && given.model == model);
                faults.unless(owned, || {
                    format!("messages.{at}: `thinking` of another account or model, or changed: {thought}")
                });
            }
            let ours = |given: &&Given| given.key == key && given.model == model;
            let Some(given) = self
                .given
                .iter()
                .filter(ours)
                .find(|given| given.is(content))
            else {
                continue;
            };
            let kinds = |content: &[Value]| -> Vec<String> {
                let kept = content.iter().filter(|block| block["text"] != "");
                kept.map(|block| block["type"].to_string()).collect()
            };
            // After a truncated reply, calls are not sent back; nor are thoughts, once another model was called
            // meanwhile.
            let is_cut = given.end == "max_tokens" || self.asked_others_since(given);
            let (sent, gave) = (kinds(content), kinds(&given.content));
            faults.unless(is_cut || sent == gave, || {
                format!("messages.{at}: {sent:?} go back where {gave:?} were given")
            });
        }
    }

    fn asked_others_since(&self, given: &Given) -> bool {
        let since = &self.taken[given.taken..];
        since
            .iter()
            .any(|taken| taken.key != given.key || taken.model != given.model)
    }

    /// Checks that a request begins with the request that it continues, byte by byte except for marks.
    fn prefix(
        &self,
        body: &Value,
        messages: &[(String, Vec<Value>)],
        key: &str,
        model: &str,
        faults: &mut Faults,
    ) {
        let first = messages.first().and_then(|(_, content)| content.first());
        let goes_on = |taken: &&Taken| {
            taken.key == key
                && taken.model == model
                && taken.messages[0].1.first() == first
                && taken.messages.len() <= messages.len()
        };
        let Some(before) = self.taken.iter().rev().find(goes_on) else {
            return;
        };
        // The request for a summary has no tools.
        let has_tools = body.get("tools").is_some();
        faults.unless(!has_tools || before.prefix == prefix(body), || {
            "the prefix has changed: tools or system are not those of the call before".to_owned()
        });
        // Thoughts are dropped permanently once another model was called meanwhile.
        let others = self
            .taken
            .iter()
            .rev()
            .take_while(|taken| !std::ptr::eq(*taken, before));
        let drops = others
            .into_iter()
            .any(|taken| taken.key != key || taken.model != model);
        let words = |content: &[Value]| -> Vec<Value> {
            let kept = content.iter().filter(|block| !drops || !is_thought(block));
            kept.cloned().collect()
        };
        let last = before.messages.len() - 1;
        for (at, ((_, was), (_, is))) in before.messages.iter().zip(messages).enumerate() {
            let same = match at {
                at if at < last => words(was) == words(is),
                _ if before.is_refused => true,
                _ => is.starts_with(was),
            };
            faults.unless(same, || {
                format!("the prefix has changed: messages.{at} was {was:?} and is {is:?}")
            });
        }
    }

    /// Records an accepted request: the parts of it that are read from the cache and written there.
    pub fn take(&mut self, request: &Recorded) -> Value {
        let body = request.json();
        let messages = messages(&body);
        let (read, written, fresh) = self.cache(&body);
        self.taken.push(Taken {
            key: request.header("x-api-key").unwrap_or_default().to_owned(),
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            prefix: prefix(&body),
            messages,
            is_refused: false,
        });
        json!({"input_tokens": fresh, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written, "output_tokens": 1})
    }

    /// Records the answer to the last accepted request.
    pub fn gives(&mut self, content: Vec<Value>, end: &'static str, is_whole: bool) {
        let count = self.taken.len();
        let Some(taken) = self.taken.last_mut() else {
            return;
        };
        taken.is_refused = end == "refusal";
        if is_whole {
            self.given.push(Given {
                key: taken.key.clone(),
                model: taken.model.clone(),
                content: content.into_iter().map(parsed).collect(),
                end,
                taken: count,
            });
        }
    }

    /// Returns the numbers of tokens read from the cache, written to it, and the rest.
    fn cache(&mut self, body: &Value) -> (usize, usize, usize) {
        let mut hasher = DefaultHasher::new();
        body["model"].to_string().hash(&mut hasher);
        let all = |field: &str| body[field].as_array().cloned().unwrap_or_default();
        let messages = messages_as_sent(body)
            .into_iter()
            .flat_map(|(_, blocks)| blocks);
        let blocks = all("tools")
            .into_iter()
            .chain(all("system"))
            .chain(messages);
        let mut ends = Vec::new();
        let mut length = 0;
        for mut block in blocks {
            let is_marked = unmarked(&mut block);
            let text = block.to_string();
            text.hash(&mut hasher);
            length += text.len();
            ends.push((hasher.finish(), length / 4, is_marked));
        }
        let marks = ends.iter().enumerate().filter(|(_, end)| end.2);
        let marks: Vec<usize> = marks.map(|(at, _)| at).collect();
        let hit = |mark: &usize| {
            let looked_at = ends[mark.saturating_sub(LOOKBACK)..=*mark].iter().rev();
            let mut found = looked_at.filter(|end| self.cached.contains(&end.0));
            found.next().map(|end| end.1)
        };
        let read = marks.iter().rev().find_map(hit).unwrap_or(0);
        let marked = marks.last().map_or(0, |mark| ends[*mark].1);
        self.cached.extend(marks.iter().map(|mark| ends[*mark].0));
        (
            read,
            marked.saturating_sub(read),
            (length / 4 - marked).max(1),
        )
    }
}

impl Given {
    /// Returns whether a message is this reply, judging by its calls, thoughts or, without these, its text.
    fn is(&self, content: &[Value]) -> bool {
        let tells = |block: &&Value| {
            matches!(block["type"].as_str(), Some("tool_use")) || is_thought(block)
        };
        let mut telling = content.iter().filter(tells).peekable();
        if telling.peek().is_none() {
            let texts = |blocks: &[Value]| -> Vec<Value> {
                let texts = blocks.iter().filter(|block| block["type"] == "text");
                texts.map(|block| block["text"].clone()).collect()
            };
            return !self.content.is_empty() && texts(content) == texts(&self.content);
        }
        let is_ours = |block: &Value| {
            self.content
                .iter()
                .any(|own| own == block || (own.get("id").is_some() && own["id"] == block["id"]))
        };
        telling.all(is_ours)
    }
}

fn is_thought(block: &Value) -> bool {
    matches!(
        block["type"].as_str(),
        Some("thinking" | "redacted_thinking")
    )
}

/// Parses the input of a call, if it is JSON.
fn parsed(mut block: Value) -> Value {
    if let Some(Ok(input)) = block["input"].as_str().map(serde_json::from_str) {
        block["input"] = input;
    }
    block
}

/// Removes the mark from a block; returns whether there was one.
fn unmarked(block: &mut Value) -> bool {
    let fields = block.as_object_mut();
    fields.is_some_and(|fields| {
        fields
            .remove("cache_control")
            .is_some_and(|mark| !mark.is_null())
    })
}

/// Returns the messages as roles and blocks.
fn messages_as_sent(body: &Value) -> Vec<(String, Vec<Value>)> {
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.map(|message| {
        let blocks = match &message["content"] {
            Value::Array(blocks) => blocks.clone(),
            text => vec![json!({"type": "text", "text": text})],
        };
        (
            message["role"].as_str().unwrap_or_default().to_owned(),
            blocks,
        )
    });
    blocks.collect()
}

/// Returns the messages without marks.
fn messages(body: &Value) -> Vec<(String, Vec<Value>)> {
    let mut messages = messages_as_sent(body);
    for (_, blocks) in &mut messages {
        for block in blocks.iter_mut() {
            unmarked(block);
        }
    }
    messages
}

/// Returns the tools and the system prompt without marks.
fn prefix(body: &Value) -> String {
    let blocks = |field: &str| -> Vec<Value> {
        let mut blocks = body[field].as_array().cloned().unwrap_or_default();
        for block in &mut blocks {
            unmarked(block);
        }
        blocks
    };
    json!([blocks("tools"), blocks("system"), body["system"].as_str()]).to_string()
}

struct Faults(Vec<String>);

impl Faults {
    fn unless(&mut self, is_so: bool, fault: impl FnOnce() -> String) {
        if !is_so {
            self.0.push(fault());
        }
    }

    fn of_headers(&mut self, request: &Recorded, body: &Value) {
        let version = request.header("anthropic-version").unwrap_or_default();
        self.unless(version == NEW || version == OLD, || {
            format!("anthropic-version: {version:?} is not a version")
        });
        let kind = request.header("content-type").unwrap_or_default();
        self.unless(kind.starts_with("application/json"), || {
            format!("content-type: {kind:?}")
        });
        self.unless(request.header("authorization").is_none(), || {
            "authorization: the key goes into x-api-key".to_owned()
        });
        for field in ["temperature", "top_p", "top_k"] {
            self.unless(version != NEW || body.get(field).is_none(), || {
                format!("{field}: not supported since {NEW}")
            });
        }
    }

    fn of_fields(&mut self, body: &Value) {
        const KNOWN: [&str; 14] = [
            "model",
            "messages",
            "max_tokens",
            "system",
            "tools",
            "tool_choice",
            "stream",
            "thinking",
            "output_config",
            "stop_sequences",
            "metadata",
            "temperature",
            "top_p",
            "top_k",
        ];
        for field in body
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.keys())
        {
            self.unless(KNOWN.contains(&field.as_str()), || {
                format!("{field}: extra inputs are not permitted")
            });
        }
        self.unless(body["stream"] == true, || "stream: not true".to_owned());
        let most = body["max_tokens"].as_u64().unwrap_or(0);
        self.unless((1..=128_000).contains(&most), || {
            format!("max_tokens: {most}")
        });
        let thinking = &body["thinking"];
        if !thinking.is_null() {
            let kind = thinking["type"].as_str().unwrap_or_default();
            self.unless(matches!(kind, "adaptive" | "disabled"), || {
                format!("thinking.type: {kind:?} is not supported by this model")
            });
        }
        let effort = &body["output_config"]["effort"];
        let efforts = ["low", "medium", "high", "xhigh", "max"];
        self.unless(
            effort.is_null() || efforts.iter().any(|known| effort == known),
            || format!("output_config.effort: {effort}"),
        );
        for block in body["system"].as_array().into_iter().flatten() {
            self.of_text(block, "system");
        }
    }

    fn of_tools(&mut self, body: &Value) {
        let tools = body["tools"].as_array().cloned().unwrap_or_default();
        let mut names = BTreeSet::new();
        for tool in &tools {
            let name = tool["name"].as_str().unwrap_or_default();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            self.unless(
                !name.is_empty() && name.len() <= 128 && name.chars().all(is_plain),
                || format!("tools: {name:?} is not a name"),
            );
            self.unless(names.insert(name.to_owned()), || {
                format!("tools: names must be unique: {name}")
            });
            let schema = &tool["input_schema"];
            self.unless(
                schema["type"] == "object" && jsonschema::meta::is_valid(schema),
                || format!("tools.{name}.input_schema: no schema of an object: {schema}"),
            );
            let words = tool["description"].as_str().unwrap_or_default();
            self.unless(!words.trim().is_empty(), || {
                format!("tools.{name}: no description")
            });
        }
        let choice = &body["tool_choice"];
        if choice.is_null() {
            return;
        }
        let is_valid = match choice["type"].as_str() {
            Some("auto" | "any") => !tools.is_empty(),
            Some("none") => true,
            Some("tool") => names.contains(choice["name"].as_str().unwrap_or_default()),
            _ => false,
        };
        self.unless(is_valid, || format!("tool_choice: {choice}"));
    }

    fn of_marks(&mut self, body: &Value) {
        let mut marks = 0;
        let messages = messages_as_sent(body)
            .into_iter()
            .flat_map(|(_, blocks)| blocks);
        let all = |field: &str| body[field].as_array().cloned().unwrap_or_default();
        for mut block in all("tools")
            .into_iter()
            .chain(all("system"))
            .chain(messages)
        {
            let mark = block["cache_control"].clone();
            if unmarked(&mut block) {
                marks += 1;
                self.unless(mark["type"] == "ephemeral", || {
                    format!("cache_control: {mark}")
                });
                self.unless(!is_thought(&block), || {
                    "cache_control: not on thoughts".to_owned()
                });
            }
        }
        self.unless(marks <= 4, || {
            format!("cache_control: {marks} marks; at most 4 are allowed")
        });
    }

    fn of_text(&mut self, block: &Value, place: &str) {
        let text = block["text"].as_str().unwrap_or_default();
        self.unless(!text.trim().is_empty(), || {
            format!("{place}: text must not be empty")
        });
    }

    fn of_content(&mut self, messages: &[(String, Vec<Value>)]) {
        for (at, (role, content)) in messages.iter().enumerate() {
            self.unless(!content.is_empty(), || format!("messages.{at}: no content"));
            for block in content {
                let kind = block["type"].as_str().unwrap_or_default();
                let fits = match kind {
                    "text" => true,
                    "image" | "tool_result" => role == "user",
                    "tool_use" | "thinking" | "redacted_thinking" => role == "assistant",
                    _ => false,
                };
                self.unless(fits, || format!("messages.{at}: {kind:?} in the {role}'s"));
                if kind == "text" {
                    self.of_text(block, &format!("messages.{at}"));
                }
                if kind == "tool_use" {
                    self.unless(block["input"].is_object(), || {
                        format!("messages.{at}: the input of a call is {}", block["input"])
                    });
                }
            }
            self.unless(
                content.last().is_none_or(|block| !is_thought(block)),
                || format!("messages.{at}: the last block is a thought"),
            );
        }
    }

    /// Checks that every call has one result, at the beginning of the next message.
    fn of_calls(&mut self, messages: &[(String, Vec<Value>)]) {
        let ids = |content: &[Value], kind: &str, field: &str| -> Vec<String> {
            let blocks = content.iter().filter(|block| block["type"] == kind);
            blocks
                .map(|block| block[field].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        let mut called = BTreeMap::new();
        let nothing = Vec::new();
        for (at, (_, content)) in messages.iter().enumerate() {
            let asked = at
                .checked_sub(1)
                .map_or(&nothing, |before| &messages[before].1);
            let mut asked = ids(asked, "tool_use", "id");
            let mut told = ids(content, "tool_result", "tool_use_id");
            let leading = content
                .iter()
                .take_while(|block| block["type"] == "tool_result")
                .count();
            self.unless(leading == told.len(), || {
                format!("messages.{at}: a tool_result behind something else")
            });
            asked.sort();
            told.sort();
            self.unless(asked == told, || {
                format!("messages.{at}: the calls {asked:?} have the results {told:?}")
            });
            for id in ids(content, "tool_use", "id") {
                let before = called.insert(id.clone(), at);
                self.unless(before.is_none(), || {
                    format!("messages.{at}: the id {id} was there before")
                });
            }
        }
        let last = messages.last().map(|(_, content)| content);
        self.unless(
            last.is_none_or(|content| ids(content, "tool_use", "id").is_empty()),
            || "the last calls have no results".to_owned(),
        );
    }
}
