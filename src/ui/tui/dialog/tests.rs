//! Tests of keys in questions, menus and lines.

use crossterm::event::KeyModifiers;

use super::*;
use crate::record::question::{Answer, Verdict};
use proptest::prelude::*;

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn letter(c: char) -> KeyEvent {
    key(KeyCode::Char(c))
}

fn drawn_in(dialog: &Dialog, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    dialog.render(area, &mut buf);
    let rows = buf.content.chunks(usize::from(width.max(1)));
    let line = |row: &[ratatui::buffer::Cell]| -> String {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        line.trim_end().to_owned()
    };
    rows.map(line).collect::<Vec<_>>().join("\n")
}

fn drawn(dialog: &Dialog, width: u16) -> String {
    drawn_in(dialog, width, dialog.height(width))
}

fn question(may_be_permanent: bool) -> Question {
    Question {
        sentence: "May I write `src/lexer.rs`?".to_owned(),
        tool: "write_file".to_owned(),
        subject: "src/lexer.rs".to_owned(),
        asks: "Allow this change?",
        reasons: vec!["overwrites".to_owned()],
        may_be_permanent,
        may_forbid: true,
        may_redirect: true,
        ..Question::default()
    }
}

const DIFF: &str = "--- a/src/lexer.rs\n+++ b/src/lexer.rs\n@@ -1,3 +1,3 @@\n fn next() {\n-\told();\n+\tnew();\n }\n";

fn asked(may_be_permanent: bool) -> Dialog {
    Dialog::question(question(may_be_permanent), Some(DIFF))
}

#[test]
fn a_question_looks_like_this() {
    insta::assert_snapshot!(drawn(&asked(true), 40), @r"
    ┌ write_file src/lexer.rs (+1 -1) ─────┐
    │because it overwrites                 │
    │2 -    old();                         │
    │2 +    new();                         │
    │3  }                                  │
    │Allow this change? y yes              │
    │a Always allow for this project | n no│
    │e no, and say what instead            │
    │d never in this project               │
    │←→ Enter choose | Press Esc to cancel │
    └──────────────────────────────────────┘
    ");
    insta::assert_snapshot!(drawn(&asked(false), 100), @r"
    ┌ write_file src/lexer.rs (+1 -1) ─────────────────────────────────────────────────────────────────┐
    │because it overwrites                                                                             │
    │2 -    old();                                                                                     │
    │2 +    new();                                                                                     │
    │3  }                                                                                              │
    │Allow this change? y yes | n no | e no, and say what instead | d never in this project            │
    │←→ Enter choose | Press Esc to cancel                                                             │
    └──────────────────────────────────────────────────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(drawn_in(&asked(false), 40, 8), @r"
    ┌ write_file src/lexer.rs (+1 -1) ─────┐
    │because it overwrites                 │
    │2 -    old();                         │
    │2 +    new();                         │
    │3  }                                  │
    │Allow this change? y yes  n no  e else│
    │d never                               │
    └ Press Esc to cancel ─────────────────┘
    ");
}

#[test]
fn proposal_of_a_tool_is_a_change_and_of_the_program_is_text() {
    let removed = "diff --git a/src/lexer.rs b/src/lexer.rs\ndeleted file mode 100644\n";
    let shown = drawn(&Dialog::question(question(false), Some(removed)), 100);
    assert!(shown.contains("write_file src/lexer.rs ─"), "{shown}");
    let own = Question {
        tool: String::new(),
        ..question(false)
    };
    let shown = drawn(&Dialog::question(own, Some(DIFF)), 100);
    assert!(
        shown.contains("┌ Question ─") && !shown.contains("(+1 -1)"),
        "{shown}"
    );
}

#[test]
fn a_question_is_answered_by_its_keys_alone() {
    let verdict = |answer, is_for_good| {
        Some(FromScreen::Answered(Verdict {
            answer,
            is_for_good,
        }))
    };
    for (may_be_permanent, pressed, expected) in [
        (true, letter('y'), verdict(Answer::Yes, false)),
        (true, letter('a'), verdict(Answer::Yes, true)),
        (true, letter('n'), verdict(Answer::No, false)),
        (true, letter('d'), verdict(Answer::No, true)),
        (true, key(KeyCode::Esc), verdict(Answer::No, false)),
        (false, letter('y'), verdict(Answer::Yes, false)),
        (false, letter('a'), None),
        (false, letter('d'), verdict(Answer::No, true)),
        (true, key(KeyCode::Enter), None),
        (true, letter(' '), None),
        (true, key(KeyCode::Tab), None),
        (
            true,
            KeyEvent::new(KeyCode::Char('y'), KeyModifiers::CONTROL),
            None,
        ),
        (
            true,
            KeyEvent::new(KeyCode::Char('a'), KeyModifiers::ALT),
            None,
        ),
    ] {
        assert_eq!(
            asked(may_be_permanent).key(pressed),
            expected,
            "{pressed:?}"
        );
    }
    let mut once = Dialog::question("Does it hold?".to_owned().into(), None);
    assert_eq!(
        ['a', 'd', 'e'].map(|key| once.key(letter(key))),
        [None, None, None]
    );
    assert_eq!(once.key(key(KeyCode::Esc)), verdict(Answer::No, false));
    insta::assert_snapshot!(drawn(&once, 40), @r"
    ┌ Question ────────────────────────────┐
    │Does it hold?                         │
    │y yes | n no                          │
    │←→ Enter choose | Press Esc to cancel │
    └──────────────────────────────────────┘
    ");
    let general = Dialog::question("Does it hold?".to_owned().into(), Some(DIFF));
    assert!(drawn(&general, 40).contains("Does it hold?"));
    let mut dialog = asked(true);
    dialog.paste("y\na\n");
    assert_eq!(dialog.key(key(KeyCode::Enter)), None);
}

#[test]
fn something_else_may_be_said_instead() {
    let mut dialog = asked(true);
    assert_eq!(dialog.key(letter('e')), None);
    assert!(dialog.wants_text());
    insta::assert_snapshot!(drawn_in(&dialog, 40, 8), @r"
    ┌ write_file src/lexer.rs (+1 -1) ─────┐
    │because it overwrites                 │
    │2 -    old();                         │
    │2 +    new();                         │
    │3  }                                  │
    │                                      │
    │Enter sends it | Press Esc to cancel  │
    └──────────────────────────────────────┘
    ");
    let instead = Answer::Instead("yes, but in Rust".to_owned());
    let expected = Verdict {
        answer: instead,
        is_for_good: false,
    };
    assert_eq!(
        dialog.typed("yes, but in Rust".to_owned()),
        FromScreen::Answered(expected)
    );
    // Escape goes back to the question.
    let mut dialog = asked(true);
    dialog.key(letter('e'));
    assert_eq!(dialog.key(key(KeyCode::Esc)), None);
    assert!(dialog.key(letter('y')).is_some());
}

#[test]
fn nothing_stands_next_to_what_is_seen_of_a_change() {
    let line = format!("+earth = 1{}; import os; os.system(\"x\")", " ".repeat(150));
    let dialog = Dialog::question(question(true), Some(&line));
    insta::assert_snapshot!(drawn(&dialog, 60), @r#"
    ┌ write_file src/lexer.rs ─────────────────────────────────┐
    │because it overwrites                                     │
    │+earth = 1                                                │
    │  ; import os; os.system("x")                             │
    │Allow this change? y yes | a Always allow for this project│
    │n no | e no, and say what instead                         │
    │d never in this project                                   │
    │←→ Enter choose | Press Esc to cancel                     │
    └──────────────────────────────────────────────────────────┘
    "#);
}

#[test]
fn reasons_stay_visible_while_a_command_is_scrolled() {
    let subject = format!("echo hi{}rm -rf src", "\n".repeat(40));
    let question = Question {
        subject,
        reasons: vec!["deletes".to_owned()],
        ..question(false)
    };
    let mut dialog = Dialog::question(question, None);
    for code in [KeyCode::Home, KeyCode::PageDown, KeyCode::End] {
        dialog.key(key(code));
        for (width, height) in [(80, 14), (40, 6)] {
            assert!(drawn_in(&dialog, width, height).contains("because it deletes"));
        }
    }
}

#[test]
fn a_question_takes_what_the_screen_has() {
    let long: String = (1..=60).map(|nth| format!("+line {nth}\n")).collect();
    let dialog = Dialog::question(question(false), Some(&long));
    assert!(drawn(&dialog, 300).contains("+line 60"));
}

#[test]
fn long_change_can_be_scrolled() {
    let long: String = (1..=100).map(|nth| format!("+line {nth}\n")).collect();
    let mut dialog = Dialog::question(question(false), Some(&long));
    let seen = |dialog: &Dialog| drawn_in(dialog, 60, 12);
    assert!(seen(&dialog).contains("src/lexer.rs") && !seen(&dialog).contains("line 100"));
    dialog.key(key(KeyCode::End));
    assert!(seen(&dialog).contains("+line 100") && seen(&dialog).contains("y yes"));
    dialog.scroll(-3);
    assert!(!seen(&dialog).contains("+line 98"));
    dialog.key(key(KeyCode::PageUp));
    dialog.scroll(1);
    assert!(seen(&dialog).contains("+line 90"));
    dialog.key(key(KeyCode::Home));
    assert!(seen(&dialog).contains("src/lexer.rs"));
    // A command can be scrolled like the change that it would make.
    let subject = (1..=40).map(|nth| format!("echo {nth}\n")).collect();
    let mut dialog = Dialog::question(
        Question {
            subject,
            ..question(false)
        },
        None,
    );
    assert!(!seen(&dialog).contains("echo 40"));
    dialog.key(key(KeyCode::End));
    assert!(seen(&dialog).contains("echo 40"));
}

fn models() -> Dialog {
    let item = |name: &str, note: &str| (name.to_owned(), note.to_owned());
    Dialog::menu(Menu {
        title: "Model".to_owned(),
        items: vec![
            item("claude-opus-5-5", "1M tokens, $5 and $25"),
            item("claude-sonnet-5-5", "1M tokens, $3 and $15"),
            item("claude-haiku-5-5", "1M tokens, $1 and $5"),
        ],
        at: 1,
        is_unasked: false,
    })
}

#[test]
fn one_of_a_menu_is_chosen() {
    insta::assert_snapshot!(drawn(&models(), 40), @r"
    ┌ Model ───────────────────────────────┐
    │type to filter                        │
    │  claude-opus-5-5    1M tokens, $5 and│
    │> claude-sonnet-5-5  1M tokens, $3 and│
    │  claude-haiku-5-5   1M tokens, $1 and│
    │Enter chooses | Press Esc to cancel   │
    └──────────────────────────────────────┘
    ");
    insta::assert_snapshot!(drawn(&models(), 100), @r"
    ┌ Model ───────────────────────────────────────────────────────────────────────────────────────────┐
    │type to filter                                                                                    │
    │  claude-opus-5-5    1M tokens, $5 and $25                                                        │
    │> claude-sonnet-5-5  1M tokens, $3 and $15                                                        │
    │  claude-haiku-5-5   1M tokens, $1 and $5                                                         │
    │Enter chooses | Press Esc to cancel                                                               │
    └──────────────────────────────────────────────────────────────────────────────────────────────────┘
    ");
    for height in 3..8 {
        let shown = drawn_in(&models(), 40, height);
        assert!(shown.contains("> claude-sonnet-5-5"), "{shown}");
        assert_eq!(shown.contains("type to filter"), height > 4, "{shown}");
    }
    for (keys, expected) in [
        (&[KeyCode::Enter][..], Some(1)),
        (&[KeyCode::Down, KeyCode::Enter], Some(2)),
        (&[KeyCode::Down, KeyCode::Down, KeyCode::Enter], Some(0)),
        (&[KeyCode::Home, KeyCode::Up, KeyCode::Enter], Some(2)),
        (
            &[KeyCode::Char('h'), KeyCode::Char('k'), KeyCode::Enter],
            Some(2),
        ),
        (
            &[KeyCode::Char('h'), KeyCode::Backspace, KeyCode::Enter],
            Some(0),
        ),
        (&[KeyCode::Esc], None),
    ] {
        let mut dialog = models();
        let (last, before) = keys.split_last().unwrap();
        for code in before {
            assert_eq!(dialog.key(key(*code)), None);
        }
        assert_eq!(
            dialog.key(key(*last)),
            Some(FromScreen::Chosen(expected)),
            "{keys:?}"
        );
    }
    let mut dialog = models();
    dialog.paste("zzz");
    assert_eq!(dialog.key(key(KeyCode::Enter)), None);
    assert!(drawn(&dialog, 60).contains("nothing matches"));
}

#[test]
fn a_line_is_typed_in_the_input() {
    let mut dialog = Dialog::Line("API key".to_owned(), true);
    insta::assert_snapshot!(drawn(&dialog, 40), @r"
    ┌ API key ─────────────────────────────┐
    │Enter sends it | Press Esc to cancel  │
    └──────────────────────────────────────┘
    ");
    let long = Dialog::Line(
        "Does this summary look correct? (yes/no/edit): ".to_owned(),
        false,
    );
    insta::assert_snapshot!(drawn(&long, 40), @r"
    ┌ Question ────────────────────────────┐
    │Does this summary look correct?       │
    │(yes/no/edit):                        │
    │Enter sends it | Esc skips it         │
    └──────────────────────────────────────┘
    ");
    assert!(dialog.wants_text());
    assert_eq!(dialog.key(letter('x')), None);
    let typed = FromScreen::Typed(Some("sk-ant-kx".to_owned()));
    assert_eq!(dialog.typed("sk-ant-kx".to_owned()), typed);
    assert_eq!(dialog.key(key(KeyCode::Esc)), Some(FromScreen::Typed(None)));
}

proptest! {
    #[test]
    fn dialogs_of_any_size_stay_in_their_place(
        width in 0..120u16, height in 0..40u16, text in "[a\u{1b}\t你\u{202e}\n ]{0,200}", keys in "[ea\u{e000}-\u{e006}]{0,12}"
    ) {
        let question = Question { subject: text.clone(), sentence: text.clone(), tool: text.clone(), ..question(true) };
        let items = text.lines().map(|line| (line.to_owned(), line.to_owned())).collect();
        for mut dialog in [
            Dialog::question(question.clone(), Some(&text)),
            Dialog::menu(Menu { title: text.clone(), items, at: 7, is_unasked: false }),
            Dialog::Line(text.clone(), false),
        ] {
            for c in keys.chars() {
                let code = match c {
                    '\u{e000}' => KeyCode::Up,
                    '\u{e001}' => KeyCode::Down,
                    '\u{e002}' => KeyCode::PageDown,
                    '\u{e003}' => KeyCode::End,
                    '\u{e004}' => KeyCode::Backspace,
                    '\u{e005}' => KeyCode::PageUp,
                    '\u{e006}' => KeyCode::Enter,
                    c => KeyCode::Char(c),
                };
                if dialog.key(key(code)).is_some() {
                    break;
                }
                dialog.paste("你x");
            }
            prop_assert!(dialog.height(width) >= BORDER);
            let screen = Rect::new(0, 0, 130, 45);
            let area = Rect::new(2, 1, width, height);
            let mut buf = Buffer::empty(screen);
            dialog.render(area, &mut buf);
            for position in screen.positions().filter(|at| !area.contains(*at)) {
                prop_assert_eq!(buf[position].symbol(), " ");
            }
            prop_assert!(!buf.content.iter().any(|cell| cell.symbol().contains(crate::sys::text::is_deceptive)));
        }
    }
}

#[test]
fn answer_is_chosen_by_an_arrow_and_then_enter() {
    let yes = |is_for_good| Verdict {
        answer: Answer::Yes,
        is_for_good,
    };
    let no = Verdict {
        answer: Answer::No,
        is_for_good: true,
    };
    for (keys, expected) in [
        (&[KeyCode::Right][..], yes(false)),
        (&[KeyCode::Down, KeyCode::Down], yes(true)),
        (&[KeyCode::Left], no.clone()),
        (&[KeyCode::Down, KeyCode::Up], no),
        (&[KeyCode::Up, KeyCode::Right], yes(false)),
    ] {
        let mut dialog = asked(true);
        assert_eq!(dialog.key(key(KeyCode::Enter)), None);
        for code in keys {
            assert_eq!(dialog.key(key(*code)), None);
        }
        let answered = dialog.key(key(KeyCode::Enter));
        assert_eq!(answered, Some(FromScreen::Answered(expected)), "{keys:?}");
    }
}

#[test]
fn reason_for_asking_comes_first_in_a_long_command() {
    let command = format!("echo hi{}rm -rf src", "\n".repeat(40));
    let question = |subject: &str| Question {
        subject: subject.to_owned(),
        asks: "Allow this command?",
        cause: vec!["rm -rf src".to_owned()],
        reasons: vec!["deletes".to_owned()],
        ..Question::default()
    };
    let long = drawn_in(&Dialog::question(question(&command), None), 60, 10);
    assert!(long.contains("│because it deletes: rm -rf src"), "{long}");
    assert!(long.contains("Allow this command? y yes | n no"), "{long}");
    let first = format!("rm -rf src{}echo hi", "\n".repeat(40));
    let first = drawn_in(&Dialog::question(question(&first), None), 60, 10);
    assert_eq!(first.matches("rm -rf src").count(), 1, "{first}");
    let short = drawn(&Dialog::question(question("rm -rf src"), None), 60);
    assert_eq!(short.matches("rm -rf src").count(), 1, "{short}");
}

#[test]
fn invisible_characters_are_made_visible() {
    let command = "echo a\u{200b}b\u{a0}c\u{3164}\u{1b}[2J\u{ad} 👩\u{200d}👩\u{200d}👧 ❤\u{fe0f} e\u{301} x\u{200d}";
    let question = Question {
        subject: command.to_owned(),
        ..Question::default()
    };
    let shown = drawn(&Dialog::question(question, None), 100);
    assert!(
        shown
            .contains("echo a<U+200B>b<U+00A0>c<U+3164><U+001B>[2J<U+00AD> 👩\u{200d}👩\u{200d}👧"),
        "{shown}"
    );
    assert!(shown.contains("e\u{301} x<U+200D>"), "{shown}");
}

#[test]
fn a_change_that_does_not_fit_has_less_around_it() {
    let around = |from: usize, to: usize| {
        (from..=to)
            .map(|at| format!(" line {at}\n"))
            .collect::<String>()
    };
    let diff = format!(
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n{}-old\n+new\n{}-gone\n+come\n{}",
        around(1, 2),
        around(4, 7),
        around(9, 9)
    );
    let dialog = Dialog::question(question(false), Some(&diff));
    insta::assert_snapshot!(drawn_in(&dialog, 60, 20), @r"
    ┌ write_file src/lexer.rs (+2 -2) ─────────────────────────┐
    │because it overwrites                                     │
    │3 -old                                                    │
    │3 +new                                                    │
    │4  line 4                                                 │
    │5  line 5                                                 │
    │6  line 6                                                 │
    │7  line 7                                                 │
    │8 -gone                                                   │
    │8 +come                                                   │
    │9  line 9                                                 │
    │                                                          │
    │                                                          │
    │                                                          │
    │                                                          │
    │                                                          │
    │Allow this change? y yes | n no                           │
    │e no, and say what instead | d never in this project      │
    │←→ Enter choose | Press Esc to cancel                     │
    └──────────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(drawn_in(&dialog, 60, 13), @r"
    ┌ write_file src/lexer.rs (+2 -2) ─────────────────────────┐
    │because it overwrites                                     │
    │3 -old                                                    │
    │3 +new                                                    │
    │4  line 4                                                 │
    │⋮                                                         │
    │7  line 7                                                 │
    │8 -gone                                                   │
    │8 +come                                                   │
    │Allow this change? y yes | n no                           │
    │e no, and say what instead | d never in this project      │
    │←→ Enter choose | Press Esc to cancel                     │
    └─────────────────────────────────────────── 1-7 of 8 Pg↑↓ ┘
    ");
}
