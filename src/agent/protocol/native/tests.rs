//! Tests of the vendors' rules on random histories, both the engine's and arbitrary ones.

use proptest::prelude::*;

use super::*;
use crate::agent::conversation::Conversation;
use crate::model::message::{Image, Thought};

fn thought(text: &str) -> ReplyPart {
    ReplyPart::Thought(Thought::Shown {
        text: text.to_owned(),
        signature: format!("signed {text}"),
    })
}

fn call(id: &str) -> Call {
    Call {
        id: id.to_owned(),
        name: "look".to_owned(),
        input: json!({}),
        ..Call::default()
    }
}

/// Parses a message from its short form. The parts of a reply are `t` for a thought, `w` for words, `b` for blank
/// words, and a digit for the call with that id.
fn said(words: &str) -> HistoryMessage {
    match words.split_at(1) {
        ("u", text) => HistoryMessage::of_user(text),
        ("p", _) => HistoryMessage {
            images: vec![Image {
                media_type: "image/png".to_owned(),
                data: "iVBO".to_owned(),
            }],
            ..HistoryMessage::of_user("")
        },
        ("n", text) => HistoryMessage::note(text),
        ("s", text) => HistoryMessage::reminder(text),
        ("r", id) => HistoryMessage::of_tool("look", id, format!("result of {id}")),
        ("f", id) => HistoryMessage::not_done(&call(id), "no"),
        (_, parts) => {
            let part = |c: char| match c {
                't' => thought("hm"),
                'w' => ReplyPart::Text("words".to_owned()),
                'b' => ReplyPart::Text(" \n".to_owned()),
                id => ReplyPart::Call(id.to_string()),
            };
            let calls = parts.chars().filter(char::is_ascii_digit);
            HistoryMessage {
                calls: calls.map(|id| call(&id.to_string())).collect(),
                parts: parts.chars().map(part).collect(),
                ..HistoryMessage::of_agent(if parts.contains('w') { "words" } else { "" })
            }
        }
    }
}

/// Returns the messages in the same short form, one word each; images are `p`.
fn rendered(history: &[&str]) -> String {
    let history: Vec<HistoryMessage> = history.iter().map(|words| said(words)).collect();
    let messages = Native::default().render(&history);
    let sign = |part: &Part<'_>| match part {
        Part::Text(text) if text.to_string() == "words" => "w".to_owned(),
        Part::Text(_) => "u".to_owned(),
        Part::Thought(_) => "t".to_owned(),
        Part::Call(call) => call.id.clone(),
        Part::Result(result) if result.text == CUT_SHORT => format!("?{}", result.id),
        Part::Result(result) if result.is_error => format!("f{}", result.id),
        Part::Result(result) => format!("r{}", result.id),
        Part::Image(_) => "p".to_owned(),
    };
    let messages = messages
        .iter()
        .map(|message| message.parts.iter().map(sign).collect::<String>());
    messages.collect::<Vec<_>>().join(" ")
}

#[test]
fn replies_keep_their_order_and_calls_are_answered_immediately() {
    for (history, expected) in [
        (&["u", "atw1t2", "r1", "f2"][..], "u tw1t2 r1f2"),
        // Results are sent in the order of the calls, before any message between them.
        (&["u", "a12", "r2", "nlook out", "r1"], "u 12 r1r2 u"),
        // The work is stopped, and another request follows.
        (&["u", "a12", "r1", "u"], "u 12 r1?2 u"),
        (&["u", "a12", "sreminder"], "u 12 ?1?2 u"),
        // An id used again in another reply belongs to another call.
        (&["u", "a1", "r1", "a1", "r1", "aw"], "u 1 r1 1 r1 w"),
        // A result without a call is sent nevertheless.
        (&["u", "r7", "aw", "r1"], "u u w u"),
        (&["u", "a1", "r1", "r1"], "u 1 r1 u"),
        (&["p", "abw", "u", "ab"], "pu w u"),
    ] {
        assert_eq!(rendered(history), expected, "{history:?}");
    }
}

#[test]
fn a_reply_whose_parts_are_not_known_is_its_words_and_its_calls() {
    let old = HistoryMessage {
        calls: vec![call("1")],
        ..HistoryMessage::of_agent("I look.")
    };
    let messages = Native::default().render(&[old]);
    assert!(matches!(
        messages[0].parts.as_slice(),
        [Part::Text(_), Part::Call(_)]
    ));
}

#[test]
fn another_thinkers_thoughts_are_dropped_and_nothing_else_is() {
    let mut conversation = Conversation::default();
    conversation.set_thinker("work: opus");
    for words in ["u", "atwt1", "r1", "at"] {
        conversation.say(said(words));
    }
    let before = conversation.clone();
    conversation.set_thinker("work: opus");
    assert_eq!(conversation, before);
    conversation.set_thinker("home: opus");
    assert_eq!(conversation.thinker.as_deref(), Some("home: opus"));
    let parts: Vec<usize> = conversation
        .history
        .iter()
        .map(|message| message.parts.len())
        .collect();
    assert_eq!(parts, [0, 2, 0, 0]);
    assert_eq!(Native::default().render(&conversation.history).len(), 3);
}

/// Checks that messages follow the vendor's rules.
pub(in crate::agent) fn check(messages: &[Message<'_>]) -> Result<(), String> {
    for (at, message) in messages.iter().enumerate() {
        let at_fault = |what: &str| Err(format!("message {at}: {what}: {messages:#?}"));
        let ids = |message: &Message<'_>| -> Vec<String> {
            let id = |part: &Part<'_>| match part {
                Part::Call(call) => Some(call.id.clone()),
                Part::Result(result) => Some(result.id.clone()),
                _ => None,
            };
            message.parts.iter().filter_map(id).collect()
        };
        if message.parts.is_empty() {
            return at_fault("there is nothing in it");
        }
        let is_blank = |part: &Part<'_>| matches!(part, Part::Text(text) if text.pieces().all(|piece| piece.trim().is_empty()));
        if message.parts.iter().any(is_blank) {
            return at_fault("a text is blank");
        }
        let calls = match message.role {
            Role::Assistant => ids(message),
            _ => Vec::new(),
        };
        let results = messages
            .get(at + 1)
            .filter(|next| next.role == Role::Tool)
            .map(ids)
            .unwrap_or_default();
        if calls != results {
            return at_fault("its calls are not those that are answered behind it");
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_history_meets_the_vendors_rules(
        history in prop::collection::vec("[u][x]|p|n[x]|s[x]|r[1-4]|f[1-4]|a[twb]{0,2}1?[tw]?2?b?3?", 0..30)
    ) {
        let history: Vec<HistoryMessage> = history.iter().map(|words| said(words)).collect();
        let messages = Native::default().render(&history);
        prop_assert_eq!(check(&messages), Ok(()));
        // Nothing but blank words is dropped.
        let thoughts = |parts: &mut dyn Iterator<Item = bool>| parts.filter(|is| *is).count();
        let told = thoughts(&mut messages.iter().flat_map(|said| &said.parts).map(|part| matches!(part, Part::Thought(_))));
        let were = thoughts(&mut history.iter().flat_map(|said| &said.parts).map(|part| matches!(part, ReplyPart::Thought(_))));
        prop_assert_eq!(told, were);
        let others = messages.iter().filter(|said| said.role == Role::User).count();
        let parts = messages.iter().flat_map(|said| &said.parts);
        let results = parts.filter(|part| matches!(part, Part::Result(result) if result.text != CUT_SHORT)).count();
        let said = history.iter().filter(|said| said.role != Role::Assistant).count();
        prop_assert_eq!(others + results, said);
    }
}
