//! The conversation between a model, its tools and the user, as a transcript on stdout. Pure.
//!
//! Guarantees that it contains no keys and nothing that moves the cursor, that only a speaker's label starts in
//! the first column, and that each message is bounded.

use super::blocks::fitted;
use crate::record::event::Event;
use crate::secret::Redactor;
use crate::sys::text::one_line;

/// The maximum number of lines shown of a message from the model or the user.
const SAID: usize = 100;
/// The maximum number of lines shown of a tool's result.
const RESULT: usize = 12;
/// The maximum number of characters shown of a tool call.
const CALL: usize = 300;

/// Returns the lines for an event, at most `width` columns wide; `None` if the event is not part of the
/// conversation.
pub(super) fn lines(event: &Event, redactor: &Redactor, width: usize) -> Option<Vec<String>> {
    let (label, text, limit) = match event {
        Event::Thoughts(text) | Event::Words(text) => ("assistant> ", text.clone(), SAID),
        Event::Tool {
            name, arguments, ..
        } => {
            // Redact before conversion to JSON, which escapes quotes inside a key.
            let call = format!("{name} {}", redactor.json(arguments));
            ("tool> ", one_line(&redactor.text(&call), CALL), SAID)
        }
        Event::ToolResult { end, .. } => {
            let error = if end.failed { "error: " } else { "" };
            ("tool< ", format!("{error}{}", end.text), RESULT)
        }
        Event::Heard { question, answer } => {
            (question.as_str(), answer.clone().unwrap_or_default(), SAID)
        }
        _ => return None,
    };
    // Redact before wrapping, which could split a key.
    let text = redactor.text(&text);
    let mut lines = fitted(&text, width.saturating_sub(label.len()), limit);
    if lines.is_empty() {
        lines.push("(nothing)".to_owned());
    }
    let indent = " ".repeat(label.len());
    for (at, line) in lines.iter_mut().enumerate() {
        let before = if at == 0 { label } else { &indent };
        format!("{before}{line}").trim_end().clone_into(line);
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tool::{ToolEnd, Verb};
    use crate::sys::text::is_deceptive;
    use serde_json::{Value, json};

    const KEY: &str = "sekret-\"key\"-1";

    fn seen(event: &Event, width: usize) -> Vec<String> {
        lines(event, &Redactor::new([KEY]), width).unwrap_or_default()
    }

    fn tool(arguments: Value) -> Event {
        Event::Tool {
            category: None,
            name: "execute_agent".to_owned(),
            input: String::new(),
            arguments,
            subject: String::new(),
            verb: Verb::Use,
            asks: false,
        }
    }

    fn result(text: &str, failed: bool) -> Event {
        Event::ToolResult {
            name: "execute_agent".to_owned(),
            end: ToolEnd {
                text: text.to_owned(),
                brief: Some("brief".to_owned()),
                failed,
                ..ToolEnd::default()
            },
            is_end: false,
        }
    }

    fn heard(answer: Option<&str>) -> Event {
        Event::Heard {
            question: "you> ".to_owned(),
            answer: answer.map(str::to_owned),
        }
    }

    #[test]
    fn an_exchange_is_a_transcript() {
        for (event, expected) in [
            (
                Event::Words("First.\n\nThen tool> x.".to_owned()),
                &["assistant> First.", "", "           Then tool> x."][..],
            ),
            (Event::Thoughts("x".to_owned()), &["assistant> x"]),
            (
                tool(json!({"agent": "codex", "prompt": "a\nb"})),
                &[r#"tool> execute_agent {"agent":"codex","prompt":"a\nb"}"#],
            ),
            (
                result("status: succeed\nbranch_id: 1", false),
                &["tool< status: succeed", "      branch_id: 1"],
            ),
            (
                result("no such branch\nhint: x", true),
                &["tool< error: no such branch", "      hint: x"],
            ),
            (result("", false), &["tool< (nothing)"]),
            (heard(Some("go on")), &["you> go on"]),
            (heard(None), &["you> (nothing)"]),
            (Event::Warning("x".to_owned()), &[]),
            (Event::Printed("x".to_owned()), &[]),
        ] {
            assert_eq!(seen(&event, 400), expected, "{event:?}");
        }
    }

    #[test]
    fn it_is_bounded_and_contains_neither_commands_nor_keys() {
        // Output of `grep --color`.
        let coloured = KEY.replacen("ret", "\u{1b}[mret\u{1b}[K", 1);
        let hostile = format!(
            "{KEY} {coloured}\u{1b}[2J\u{202e}\r{}\n",
            "word ".repeat(60)
        )
        .repeat(200);
        for (event, limit) in [
            (Event::Words(hostile.clone()), SAID),
            (Event::Thoughts(hostile.clone()), SAID),
            (tool(json!({"prompt": hostile, KEY: [KEY]})), SAID),
            (tool(Value::String(hostile.clone())), SAID),
            (result(&hostile, false), RESULT),
            (result(&hostile, true), RESULT),
            (heard(Some(&hostile)), SAID),
        ] {
            for width in [40, 80, 400] {
                let lines = seen(&event, width);
                assert!((1..=limit).contains(&lines.len()), "{event:?}");
                let (first, more) = lines.split_first().unwrap();
                assert!(!first.starts_with(' '));
                assert!(
                    more.iter()
                        .all(|line| line.is_empty() || line.starts_with("     "))
                );
                for line in &lines {
                    assert!(console::measure_text_width(line) <= width, "{line:?}");
                    assert!(!line.contains(is_deceptive), "{line:?}");
                    assert!(!line.contains("sekret"), "{line:?}");
                }
            }
        }
        let call = seen(&tool(json!({"prompt": "x".repeat(1000)})), 400);
        assert_eq!(call.len(), 1);
    }
}
