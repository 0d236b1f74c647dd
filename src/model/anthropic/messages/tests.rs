//! Table tests of a request's messages, and properties that hold for any conversation. Pure.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::*;
use crate::model::anthropic::tests::{described, fits};
use crate::model::message::Text;

fn call(id: &str) -> Part<'static> {
    Part::Call(Call {
        id: id.to_owned(),
        name: "read_file".to_owned(),
        input: json!({"path": "a"}),
        written: None,
    })
}

fn result(id: &str, text: &str) -> Part<'static> {
    Part::Result(CallResult {
        id: id.to_owned(),
        text: text.to_owned(),
        is_error: false,
    })
}

fn shown(text: &str) -> Part<'static> {
    Part::Thought(Thought::Shown {
        text: text.to_owned(),
        signature: "sig".to_owned(),
    })
}

fn said(text: &'static str) -> Part<'static> {
    Part::Text(text.into())
}

fn marked_text(text: &'static str) -> Part<'static> {
    let mut text = Text::from(text);
    text.is_marked = true;
    Part::Text(text)
}

fn message(role: Role, parts: Vec<Part<'static>>) -> Message<'static> {
    Message { role, parts }
}

fn user(parts: Vec<Part<'static>>) -> Message<'static> {
    message(Role::User, parts)
}

fn model(parts: Vec<Part<'static>>) -> Message<'static> {
    message(Role::Assistant, parts)
}

/// Summarizes the turns sent for these messages: each role, and each block by its kind.
fn short(messages: &[Message<'static>]) -> Vec<String> {
    let sent = json!(turns(messages, true, Marks::Nowhere, false));
    let turns = sent.as_array().unwrap().iter().map(|turn| {
        let content = turn["content"].as_array().unwrap().iter().map(|block| {
            let text = |name: &str| block[name].as_str().unwrap_or("").to_owned();
            match block["type"].as_str().unwrap() {
                "text" => text("text"),
                "thinking" => format!("({})", text("thinking")),
                "redacted_thinking" => format!("({})", text("data")),
                "tool_use" => format!("?{}", text("id")),
                "tool_result" => {
                    let failed = if block["is_error"] == true { "!" } else { "=" };
                    format!("{failed}{} {}", text("tool_use_id"), text("content"))
                }
                other => format!("<{other}>"),
            }
        });
        let blocks: Vec<String> = content.collect();
        let role = &turn["role"].as_str().unwrap()[..1];
        format!("{role}: {}", blocks.join(" | "))
    });
    turns.collect()
}

#[test]
fn each_part_has_its_block() {
    let picture = Image {
        media_type: "image/png".to_owned(),
        data: "AAAA".to_owned(),
    };
    let failed = CallResult {
        id: "toolu_1".to_owned(),
        text: "no".to_owned(),
        is_error: true,
    };
    let sealed = Thought::Sealed {
        data: "xyz".to_owned(),
    };
    let messages = [
        user(vec![said("look"), Part::Image(picture)]),
        model(vec![
            shown("hm"),
            Part::Thought(sealed),
            said("ok"),
            call("toolu_1"),
        ]),
        message(Role::Tool, vec![Part::Result(failed), said("go on")]),
    ];
    let expected = json!([
        {"role": "user", "content": [
            {"type": "text", "text": "look"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "redacted_thinking", "data": "xyz"},
            {"type": "text", "text": "ok"},
            {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "no", "is_error": true},
            {"type": "text", "text": "go on"},
        ]},
    ]);
    assert_eq!(
        json!(turns(&messages, true, Marks::Nowhere, false)),
        expected
    );
    assert_eq!(system(&messages, Marks::Rolling).len(), 0);
}

#[test]
fn any_history_becomes_alternating_turns() {
    let ask = || user(vec![said("do")]);
    for (messages, expected) in [
        (vec![], vec!["u: Go on."]),
        (vec![user(vec![said(" \n")])], vec!["u: Go on."]),
        (vec![ask(), ask()], vec!["u: do | do"]),
        (
            vec![model(vec![said("hi")])],
            vec![
                "u: (The beginning of the conversation is left out.)",
                "a: hi",
                "u: Go on.",
            ],
        ),
        // A call without a result, at the end and before a request.
        (
            vec![ask(), model(vec![call("1")])],
            vec!["u: do", "a: ?1", "u: !1 No result is known."],
        ),
        (
            vec![
                ask(),
                model(vec![call("1"), call("2")]),
                user(vec![said("stop"), result("2", "b")]),
            ],
            vec![
                "u: do",
                "a: ?1 | ?2",
                "u: !1 No result is known. | =2 b | stop",
            ],
        ),
        // Results without a call, and of a call that already has one.
        (
            vec![
                ask(),
                model(vec![call("1")]),
                user(vec![result("1", "a"), result("1", "b"), result("9", "c")]),
            ],
            vec![
                "u: do",
                "a: ?1",
                "u: =1 a | [result of 1]\nb | [result of 9]\nc",
            ],
        ),
        (
            vec![user(vec![result("1", "a")]), model(vec![said("x")]), ask()],
            vec!["u: [result of 1]\na", "a: x", "u: do"],
        ),
        (
            vec![ask(), model(vec![call("1")]), user(vec![result("1", " ")])],
            vec!["u: do", "a: ?1", "u: =1 "],
        ),
        // An id used twice, as by a server that numbers each reply's calls from 1.
        (
            vec![
                ask(),
                model(vec![call("1")]),
                user(vec![result("1", "a")]),
                model(vec![call("1")]),
                user(vec![result("1", "b")]),
            ],
            vec!["u: do", "a: ?1", "u: =1 a", "a: ?1-2", "u: =1-2 b"],
        ),
        (
            vec![
                ask(),
                model(vec![call("a.b/c")]),
                user(vec![result("a.b/c", "x")]),
            ],
            vec!["u: do", "a: ?a_b_c", "u: =a_b_c x"],
        ),
        // A message of thoughts alone is dropped, and so are thoughts at the end of a message.
        (
            vec![ask(), model(vec![shown("hm")]), ask()],
            vec!["u: do | do"],
        ),
        (
            vec![ask(), model(vec![shown("a"), said("x"), shown("b")]), ask()],
            vec!["u: do", "a: (a) | x", "u: do"],
        ),
        // A pause, followed by more of the same reply.
        (
            vec![
                ask(),
                model(vec![shown("a"), said("x")]),
                model(vec![shown("b"), said("y")]),
                ask(),
            ],
            vec!["u: do", "a: (a) | x | (b) | y", "u: do"],
        ),
    ] {
        assert_eq!(short(&messages), expected);
    }
}

#[test]
fn without_tools_calls_and_results_are_reported_in_words() {
    let messages = [
        user(vec![said("do")]),
        model(vec![call("1")]),
        user(vec![result("1", "a")]),
    ];
    let told = json!(turns(&messages, false, Marks::Nowhere, false));
    let text = |at: usize| told[at]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text(1), "[call 1 of read_file]\n{\"path\":\"a\"}");
    assert_eq!(text(2), "[result of 1]\na");
}

#[test]
fn invalid_input_is_wrapped_in_an_object() {
    for (input, expected) in [
        (json!({}), json!({})),
        (json!("{\"a\": "), json!({"INVALID_JSON": "{\"a\": "})),
        (json!([1]), json!({"INVALID_JSON": "[1]"})),
        (json!(null), json!({"INVALID_JSON": "null"})),
    ] {
        let call = Call {
            input,
            ..Call::default()
        };
        let written = json!(tool_use(&call, "1".to_owned()));
        assert_eq!(written["input"], expected);
        assert_eq!(written["name"], "_");
    }
}

/// Returns the positions of the marks: the indices of turn and block.
fn marked(turns: &Value) -> Vec<(usize, usize)> {
    let turns = turns.as_array().unwrap().iter().enumerate();
    let blocks = turns.flat_map(|(turn, said)| {
        let blocks = said["content"].as_array().unwrap().iter().enumerate();
        blocks.map(move |(at, block)| (turn, at, block))
    });
    let marked =
        blocks.filter(|(_, _, block)| block["cache_control"] == json!({"type": "ephemeral"}));
    marked.map(|(turn, at, _)| (turn, at)).collect()
}

#[test]
fn marks_stand_where_earlier_requests_ended() {
    let mut messages = vec![user(vec![said("do")])];
    let mut ended = Vec::new();
    for step in 0..6 {
        let turns = json!(turns(&messages, true, Marks::Rolling, false));
        let found = marked(&turns);
        let end = (
            step * 2,
            turns[step * 2]["content"].as_array().unwrap().len() - 1,
        );
        ended.push(end);
        let last = ended.len().saturating_sub(MARKS);
        assert_eq!(found, ended[last..], "{step}");
        let ids: Vec<String> = (0..=30 * step).map(|at| format!("{step}-{at}")).collect();
        messages.push(model(ids.iter().map(|id| call(id)).collect()));
        messages.push(user(ids.iter().map(|id| result(id, "x")).collect()));
    }
    let system = [
        Message::text(Role::System, "a"),
        Message::text(Role::System, "b"),
    ];
    let blocks = |marks| json!(super::system(&system, marks));
    let mark = json!({"type": "ephemeral"});
    assert_eq!(blocks(Marks::Rolling)[0]["cache_control"], Value::Null);
    assert_eq!(blocks(Marks::Rolling)[1]["cache_control"], mark);
    assert_eq!(blocks(Marks::Nowhere)[1]["cache_control"], Value::Null);
}

#[test]
fn a_prompt_with_marks_has_those_alone() {
    let parts = vec![
        marked_text("a"),
        marked_text("b"),
        marked_text(" "),
        said("c"),
    ];
    let messages = [user(parts)];
    assert_eq!(Marks::of(&messages, true), Marks::Explicit);
    let turns = json!(turns(&messages, false, Marks::Explicit, false));
    assert_eq!(marked(&turns), [(0, 0), (0, 1)]);
    let plain = [user(vec![said("a")])];
    assert_eq!(Marks::of(&plain, true), Marks::Rolling);
    assert_eq!(Marks::of(&plain, false), Marks::Nowhere);
}

static MESSAGE: LazyLock<jsonschema::Validator> = LazyLock::new(|| described("InputMessage"));

/// Generates any part, in any position.
fn any_part() -> impl Strategy<Value = Part<'static>> {
    let id = || prop::sample::select(vec!["", "1", "2", "3", "a/b"]);
    let text = || prop::sample::select(vec!["", " ", "\n\t", "x", "</a>"]);
    prop_oneof![
        text().prop_map(said),
        id().prop_map(call),
        (id(), text()).prop_map(|(id, text)| result(id, text)),
        text().prop_map(shown),
        Just(Part::Thought(Thought::Sealed {
            data: String::new()
        })),
        Just(Part::Image(Image {
            media_type: "image/png".to_owned(),
            data: "A".to_owned()
        })),
        text().prop_map(marked_text),
    ]
}

fn any_message() -> impl Strategy<Value = Message<'static>> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Tool, Role::Assistant]);
    let parts = prop::collection::vec(any_part(), 0..5);
    (role, parts).prop_map(|(role, parts)| Message { role, parts })
}

/// Returns the API's objection to these messages, if any.
fn objection(turns: &Value, has_tools: bool) -> Option<String> {
    let turns = turns.as_array().unwrap();
    let mut ids = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let is_users = turn["role"] == "user";
        if is_users != (at % 2 == 0) {
            return Some(format!("{at} is out of turn"));
        }
        let blocks = turn["content"].as_array().unwrap();
        let (results, others) = blocks.split_at(open.len().min(blocks.len()));
        for (id, result) in open.drain(..).zip(results) {
            if result["type"] != "tool_result" || result["tool_use_id"] != id {
                return Some(format!("{at} has no result of {id}"));
            }
        }
        for block in others {
            let kind = block["type"].as_str().unwrap();
            let is_allowed = match kind {
                "text" => !block["text"].as_str().unwrap().trim().is_empty(),
                "image" => is_users,
                "thinking" => !is_users && block["signature"] != "",
                "redacted_thinking" => !is_users && block["data"] != "",
                "tool_use" => {
                    let id = block["id"].as_str().unwrap();
                    open.push(id);
                    !is_users && has_tools && ids.insert(id) && !id.is_empty()
                }
                _ => false,
            };
            if !is_allowed {
                return Some(format!("{at} may not say {block}"));
            }
        }
        let last = blocks
            .last()
            .map_or("nothing", |last| last["type"].as_str().unwrap());
        if ["nothing", "thinking", "redacted_thinking"].contains(&last) {
            return Some(format!("{at} ends with {last}"));
        }
    }
    (turns.len().is_multiple_of(2) || !open.is_empty())
        .then(|| "the user is to speak last".to_owned())
}

proptest! {
    #[test]
    fn the_api_takes_whatever_is_made_of_a_conversation(messages in prop::collection::vec(any_message(), 0..8), has_tools in any::<bool>()) {
        for marks in [Marks::Nowhere, Marks::Explicit, Marks::Rolling] {
            let turns = json!(turns(&messages, has_tools, marks, false));
            turns.as_array().unwrap().iter().for_each(|turn| fits(&MESSAGE, turn));
            prop_assert_eq!(objection(&turns, has_tools), None, "{}", turns);
            prop_assert!(marked(&turns).len() <= MARKS);
        }
    }

    #[test]
    fn earlier_turns_are_resent_unchanged(steps in prop::collection::vec((prop::collection::vec(any_part(), 0..4), any::<bool>()), 1..8)) {
        let bytes = |messages: &[Message<'static>]| {
            let turns = json!(turns(messages, true, Marks::Nowhere, false)).to_string();
            turns.strip_suffix("]}]").unwrap().to_owned()
        };
        let mut messages = vec![user(vec![said("do")])];
        for (step, (parts, is_answered)) in steps.into_iter().enumerate() {
            let before = bytes(&messages);
            let mut reply = vec![shown("hm"), said("ok")];
            reply.extend(parts.into_iter().filter(|part| matches!(part, Part::Thought(_) | Part::Text(_))));
            let id = step.to_string();
            reply.push(call(&id));
            messages.push(model(reply));
            let results = if is_answered { vec![result(&id, "x")] } else { Vec::new() };
            messages.push(user(results.into_iter().chain([said("more")]).collect()));
            prop_assert!(bytes(&messages).starts_with(&before));
        }
    }
}
