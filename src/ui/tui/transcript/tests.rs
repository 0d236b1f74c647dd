//! Tests of transcripts at their end and scrolled back, with any content.

use proptest::prelude::*;

use super::*;
use crate::model::StepId;
use crate::model::price::Usd;
use crate::record::event::Event;
use crate::record::tool::{CommandEnd, ToolEnd, Verb};
use crate::sys::text::is_deceptive;

fn transcript() -> Transcript {
    Transcript::new(false)
}

fn buffer(transcript: &mut Transcript, width: u16, height: u16) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    transcript.render(buf.area, &mut buf);
    buf
}

fn text(buf: &Buffer) -> String {
    let row = |y| {
        (0..buf.area.width)
            .map(|x| buf[(x, y)].symbol())
            .collect::<String>()
    };
    let rows = (0..buf.area.height).map(|y| row(y).trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn shown(transcript: &mut Transcript, width: u16, height: u16) -> String {
    text(&buffer(transcript, width, height))
}

fn asking() -> Event {
    Event::Asking {
        step: StepId::new(crate::model::Purpose::STEP, 1),
        model: "m".to_owned(),
        prompt: None,
        spent: Usd::ZERO,
    }
}

fn piece(piece: &str, is_thought: bool) -> Event {
    Event::Receiving {
        piece: piece.to_owned(),
        is_thought,
        output_tokens: 0,
        thought_tokens: 0,
        spent: Usd::ZERO,
    }
}

fn answered() -> Event {
    Event::Answered {
        model: "m".to_owned(),
        usage: None,
        cost: None,
        tier: None,
        took: std::time::Duration::ZERO,
    }
}

fn retrying() -> Event {
    Event::Retrying {
        next_try: 2,
        wait: std::time::Duration::ZERO,
        reason: "overloaded".to_owned(),
    }
}

fn tool(name: &str, subject: &str) -> Event {
    Event::Tool {
        category: None,
        name: name.to_owned(),
        input: String::new(),
        arguments: serde_json::Value::Null,
        subject: subject.to_owned(),
        asks: false,
        verb: Verb::Use,
    }
}

fn result(name: &str, text: &str, brief: Option<&str>, failed: bool) -> Event {
    Event::ToolResult {
        name: name.to_owned(),
        end: ToolEnd {
            command: match brief.and_then(|brief| brief.strip_prefix("exit code: ")) {
                Some(code) => CommandEnd::Exited(code.parse().unwrap()),
                None => CommandEnd::None,
            },
            ..ToolEnd::of_text(text, brief, failed)
        },
        is_end: false,
    }
}

const DIFF: &str = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n";

#[test]
fn an_exchange_is_distinguished_from_top_to_bottom() {
    let mut transcript = transcript();
    transcript.add(Entry::user("fix it\nplease".to_owned()));
    for event in [
        asking(),
        piece("Let me ", true),
        piece("see.\n", true),
        piece("I'll **look**", false),
        piece(" first.\n\n- a\n- b", false),
        answered(),
        Event::Thoughts("I'll **look** first.\n\n- a\n- b".to_owned()),
        tool("read_file", "src/x.rs"),
        result("read_file", "a\nb", Some("575 lines"), false),
        tool("edit_file", "x"),
        Event::Changed {
            diff: DIFF.to_owned(),
        },
        result("edit_file", "ok", None, false),
        tool("execute_command", "false"),
        Event::Printed("1\n2\n3\n4\n5\n6\n".to_owned()),
        result("execute_command", "…", Some("exit code: 1"), false),
        tool("delete_file", "y"),
        result("delete_file", "the user does not allow this", None, true),
        Event::Warning("look out".to_owned()),
        Event::Notice("Agent stopped by user".to_owned()),
        tool("execute_command", "sleep 9"),
        Event::Printed("on it\n".to_owned()),
    ] {
        transcript.event(event);
    }
    insta::assert_snapshot!(shown(&mut transcript, 40, 40), @r"
    > fix it
      please

      Let me see.

    I'll look first.

    • a
    • b

    • read_file src/x.rs (575 lines)
    • edit_file x (+1 -1)
        1 -old
        1 +new
    ✗ execute_command false (exit code: 1)
        … 1 more line …
        2
        3
        4
        5
        6
    ✗ delete_file y (failed)
        the user does not allow this

    warning: look out

    Agent stopped by user

    ○ execute_command sleep 9
        on it
    ");
    insta::assert_snapshot!(shown(&mut transcript, 40, 5), @r"

    Agent stopped by user

    ○ execute_command sleep 9
        on it
    ");
    transcript.settle();
    transcript.toggle_folding();
    insta::assert_snapshot!(shown(&mut transcript, 40, 12), @r"
        1 -old
        1 +new
    ✗ execute_command false (exit code: 1)
        …
    ✗ delete_file y (failed)
        the user does not allow this

    warning: look out

    Agent stopped by user

    ✗ execute_command sleep 9 (stopped)
    ");
}

/// Returns a tool call with this verb.
fn doing(verb: Verb, name: &str, subject: &str) -> Event {
    let mut event = tool(name, subject);
    if let Event::Tool { verb: of_tool, .. } = &mut event {
        *of_tool = verb;
    }
    event
}

#[test]
fn calls_are_reported_as_orders_and_the_todos_and_the_end_not_at_all() {
    let mut transcript = transcript();
    for event in [
        doing(Verb::Run, "execute_command", "cargo\u{200b} build"),
        result("execute_command", "", Some("exit code: 0"), false),
        doing(Verb::Edit, "edit_file", "src/main.rs"),
        result("edit_file", "ok", Some("done"), false),
        doing(Verb::Note, "update_todos", ""),
        result("update_todos", "ok", Some("0 of 3 todos done"), false),
        doing(Verb::Finish, "DONE", "It is done."),
        result("DONE", "It is done.", None, false),
    ] {
        transcript.event(event);
    }
    insta::assert_snapshot!(shown(&mut transcript, 40, 6), @r"
    • $ cargo<U+200B> build (exit code: 0)
    • Edit src/main.rs (done)
    ");
}

#[test]
fn a_call_is_shown_as_its_question_has_shown_it() {
    let mut transcript = transcript();
    let family = "👩\u{200d}👩\u{200d}👧";
    for event in [
        doing(Verb::Run, "execute_command", &format!("echo\t{family}")),
        result("execute_command", "", Some("exit code: 0"), false),
        doing(Verb::Edit, "edit_file", "x"),
        Event::Changed {
            diff: "--- a/x\n+++ b/x\n@@ -8,4 +8,4 @@ fn f()\n a\n b\n-c\n+\u{200b}d\n e\n"
                .to_owned(),
        },
        result("edit_file", "ok", None, false),
        doing(
            Verb::Run,
            "execute_command",
            &format!("echo {family}{}\nrm -rf x{0}", "\ntrue".repeat(5)),
        ),
    ] {
        transcript.event(event);
    }
    transcript.asked();
    let screen = shown(&mut transcript, 60, 24);
    for line in [
        &format!("• $ echo    {family}"),
        "• Edit x (+1 -1)\n    10 -c\n    10 +<U+200B>d\n    11  e\n",
        &format!("    echo {family}\n"),
        "    true\n    true\n    rm -rf x\n    true\n    true\n    true\n    true\n    true",
    ] {
        assert!(screen.contains(line), "{line}: {screen}");
    }
}

#[test]
fn turns_are_apart_and_text_is_at_most_100_columns_wide() {
    let mut transcript = transcript();
    for text in ["one", "two"] {
        transcript.add(Entry::user(text));
        transcript.add(Entry::Agent("word ".repeat(30)));
    }
    let screen = shown(&mut transcript, 200, 20);
    let widths = screen.lines().map(|line| line.chars().count());
    assert_eq!(widths.max(), Some(100), "{screen}");
    let rule = "─".repeat(100);
    assert!(screen.contains(&format!("\n\n{rule}\n> two\n")), "{screen}");
    assert!(!screen.starts_with('─'));
}

#[test]
fn long_command_is_wrapped_and_shown_whole() {
    let mut transcript = transcript();
    transcript.event(tool(
        "execute_command",
        "echo a quiet beginning; touch the-end.txt",
    ));
    insta::assert_snapshot!(shown(&mut transcript, 40, 4), @r"
    ○ execute_command
        echo a quiet beginning; touch
        the-end.txt
    ");
}

#[test]
fn output_of_a_failed_try_is_removed() {
    let mut transcript = transcript();
    transcript.add(Entry::user("go".to_owned()));
    transcript.event(asking());
    transcript.event(piece("half a thou", true));
    transcript.event(piece(&"half a reply\n\n".repeat(300), false));
    assert!(shown(&mut transcript, 40, 20).contains("half a reply"));
    transcript.event(Event::Notice("something else".to_owned()));
    transcript.event(retrying());
    assert_eq!(shown(&mut transcript, 40, 20), "> go\n\nsomething else");
    transcript.event(piece("whole", false));
    transcript.event(answered());
    transcript.event(asking());
    transcript.event(piece("cut sh", false));
    transcript.event(Event::Failed {
        error: "no reply".to_owned(),
        hint: None,
        log: None,
    });
    assert_eq!(
        shown(&mut transcript, 40, 20),
        "> go\n\nsomething else\n\nwhole\n\nerror: no reply"
    );
    // A reply that was shown, but rejected.
    transcript.settle();
    transcript.event(asking());
    transcript.event(piece("no form", false));
    transcript.event(asking());
    assert!(!shown(&mut transcript, 40, 20).contains("no form"));
}

#[test]
fn tools_within_a_tool_stand_within_it() {
    let mut transcript = transcript();
    for event in [
        tool("spawn_agent", "look around"),
        asking(),
        piece("Looking.", false),
        answered(),
        tool("read_file", "x"),
        result("read_file", "a", None, false),
        result("spawn_agent", "found", None, false),
        tool("read_file", "y"),
    ] {
        transcript.event(event);
    }
    insta::assert_snapshot!(shown(&mut transcript, 40, 12), @r"
    • spawn_agent look around (1 line)

      Looking.

      • read_file x (1 line)
    ○ read_file y
    ");
}

/// Creates a transcript of this many one-line paragraphs.
fn long(lines: usize) -> Transcript {
    let mut transcript = transcript();
    for at in 0..lines {
        transcript.add(Entry::notice(format!("line {at}")));
    }
    transcript
}

/// Returns the first and the last visible line.
fn seen(transcript: &mut Transcript) -> (String, String) {
    let text = shown(transcript, 40, 11);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    (lines[0].to_owned(), lines[lines.len() - 1].to_owned())
}

#[test]
fn what_is_said_about_another_conversation_stays_when_that_is_shown() {
    let mut transcript = transcript();
    transcript.add(Entry::notice("about the first"));
    transcript.add(Entry::user("the first"));
    transcript.add(Entry::notice("about the second"));
    transcript.replace(vec![Entry::user("the second")]);
    assert_eq!(
        shown(&mut transcript, 40, 10),
        "> the second\n\nabout the second"
    );
}

#[test]
fn it_follows_the_end_unless_the_user_looks_elsewhere() {
    let mut transcript = long(100);
    assert_eq!(seen(&mut transcript).1, "line 99");
    transcript.scroll(-4);
    let (first, last) = seen(&mut transcript);
    assert_eq!(
        (first.as_str(), last.as_str()),
        ("line 92", "↓ more below (End)")
    );
    transcript.add(Entry::notice("more".to_owned()));
    transcript.add(Entry::notice("more".to_owned()));
    assert_eq!(
        seen(&mut transcript),
        (first, "↓ 4 new lines below (End)".to_owned())
    );
    transcript.show_start();
    assert_eq!(seen(&mut transcript).0, "line 0");
    transcript.scroll(-9);
    assert_eq!(seen(&mut transcript).0, "line 0");
    transcript.page(true);
    assert_eq!(seen(&mut transcript).0, "line 4");
    transcript.show_end();
    assert_eq!(seen(&mut transcript).1, "more");
    transcript.page(false);
    transcript.page(true);
    assert_eq!(seen(&mut transcript).1, "more");
    assert!(transcript.top.is_none(), "at the end it follows again");
}

#[test]
fn it_keeps_its_place_when_the_terminal_changes() {
    let mut transcript = transcript();
    for at in 0..50 {
        let text = format!("start{at} {}", "word ".repeat(40));
        transcript.add(Entry::Agent(text));
    }
    shown(&mut transcript, 80, 20);
    transcript.scroll(-60);
    let first = |transcript: &Transcript| transcript.top.unwrap().item;
    let before = first(&transcript);
    for width in [40, 120, 61, 80] {
        shown(&mut transcript, width, 20);
        assert_eq!(first(&transcript), before, "{width}");
    }
}

#[test]
fn only_what_is_near_is_kept() {
    let mut transcript = long(10_000);
    for _ in 0..500 {
        transcript.page(false);
        shown(&mut transcript, 40, 40);
    }
    let held = transcript.items.iter().filter(|item| item.lines.is_some());
    assert!(held.count() <= HELD + 2 * NEAR);
}

#[test]
fn a_reply_that_streams_is_parsed_once() {
    let mut transcript = transcript();
    transcript.event(asking());
    let mut whole = String::new();
    for at in 0..400 {
        let text = format!("Paragraph {at} of *many* words.\n\n");
        whole += &text;
        for letter in text.chars() {
            transcript.event(piece(&letter.to_string(), false));
        }
    }
    let longest = transcript.items.iter().map(|item| match &item.body {
        Entry::Agent(text) => text.len(),
        _ => 0,
    });
    assert!(longest.max().unwrap() < 2 * SETTLING);
    let streamed = shown(&mut transcript, 60, 50);
    let mut other = self::transcript();
    other.add(Entry::Agent(whole));
    assert_eq!(streamed, shown(&mut other, 60, 50));
}

#[test]
fn code_gets_its_colours_when_they_are_found() {
    let mut transcript = transcript();
    transcript.add(Entry::Agent("```rust\nlet x;\n```".to_owned()));
    let style = |transcript: &mut Transcript| buffer(transcript, 40, 4)[(4, 0)].style().fg;
    let before = style(&mut transcript);
    transcript.code.wait();
    transcript.forget_lines();
    assert_ne!(style(&mut transcript), before);
    // Another session shows the same code.
    transcript.replace(vec![Entry::Agent("```rust\nlet x;\n```".to_owned())]);
    assert_ne!(style(&mut transcript), before);
}

/// Generates text that a terminal might interpret.
fn hostile() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<String>(),
        Just("\u{1b}[2J\u{1b}]0;x\u{7}".to_owned()),
        Just("\u{9b}31m\r\n\t\u{8}\u{202e}\u{2066}\u{200f}\u{e0041}".to_owned()),
        Just("&#27;[2J &#x202e; `\u{1b}c`".to_owned()),
        Just("宽字👩\u{200d}👩 e\u{301}\u{fe0f}".to_owned()),
        "[#>*`|~\\-+ \n@a-z]{0,40}",
    ];
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_that_a_terminal_obeys_is_drawn(text in hostile(), width in 1_u16..120, height in 0_u16..40, up in 0_isize..40) {
        let mut transcript = transcript();
        transcript.add(Entry::user(text.clone()));
        transcript.add(Entry::Agent(text.clone()));
        transcript.add(Entry::thought(text.clone()));
        transcript.add(Entry::notice(text.clone()));
        transcript.event(Event::Warning(text.clone()));
        transcript.event(asking());
        transcript.event(piece(&text, false));
        transcript.event(answered());
        transcript.event(tool(&text, &text));
        transcript.event(Event::Printed(text.clone()));
        transcript.event(Event::Changed { diff: format!("@@ -1 +1 @@\n+{text}") });
        transcript.event(result(&text, &text, Some(&text), text.len().is_multiple_of(2)));
        transcript.toggle_folding();
        buffer(&mut transcript, width, height);
        transcript.scroll(-up);
        let buf = buffer(&mut transcript, width, height);
        for cell in buf.content() {
            prop_assert!(!cell.symbol().chars().any(is_deceptive), "{:?}", cell.symbol());
        }
    }
}
