//! Tests of keys, pastes and attachments in the input. All pictures are the tests' own files.

use super::*;
use crate::secret::Redactor;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::fs;

fn composer() -> Composer {
    Composer::new(ComposerOptions::default())
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn control(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
}

fn type_in(composer: &mut Composer, text: &str) {
    for c in text.chars() {
        composer.key(key(KeyCode::Char(c)));
    }
}

/// Returns the drawn input, with a `▏` where the cursor is.
fn drawn(composer: &Composer, width: u16) -> String {
    drawn_in(composer, width, composer.height(width))
}

fn drawn_in(composer: &Composer, width: u16, height: u16) -> String {
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    let cursor = composer.render(area, &mut buf);
    let mut lines = Vec::new();
    for y in 0..area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < area.width {
            if cursor.is_some_and(|cursor| (cursor.x, cursor.y) == (x, y)) {
                line.push('▏');
            }
            let symbol = buf[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(unicode_width::UnicodeWidthStr::width(symbol))
                .unwrap()
                .max(1);
        }
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

fn sent(composer: &mut Composer) -> Submission {
    match composer.key(key(KeyCode::Enter)) {
        ComposerAction::Send(submission) => submission,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_looks_like_this() {
    let mut composer = composer();
    insta::assert_snapshot!(drawn(&composer, 40), @"> ▏Ask for something, or / for commands");
    type_in(
        &mut composer,
        "Explain the lexer, and then 你好 write a parser for it",
    );
    insta::assert_snapshot!(drawn(&composer, 40), @r"
    > Explain the lexer, and then 你好
      write a parser for it▏
    ");
    insta::assert_snapshot!(drawn(&composer, 100), @"> Explain the lexer, and then 你好 write a parser for it▏");
    composer.set_text("!cargo test");
    composer.key(key(KeyCode::Home));
    insta::assert_snapshot!(drawn(&composer, 40), @"! ▏!cargo test");
}

#[test]
fn only_a_bare_enter_sends() {
    let shift = KeyEvent::new(KeyCode::Enter, KeyModifiers::SHIFT);
    let alt = KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT);
    let mut composer = composer();
    assert_eq!(composer.key(key(KeyCode::Enter)), ComposerAction::None);
    for newline in [control('j'), shift, alt] {
        type_in(&mut composer, "x");
        assert_eq!(composer.key(newline), ComposerAction::Changed);
    }
    type_in(&mut composer, "y\\");
    assert_eq!(composer.key(key(KeyCode::Enter)), ComposerAction::Changed);
    type_in(&mut composer, "z");
    assert_eq!(sent(&mut composer).text, "x\nx\nx\ny\nz");
    assert!(composer.is_empty());
    assert_eq!(composer.key(control('d')), ComposerAction::Leave);
    type_in(&mut composer, "x");
    assert_eq!(composer.key(control('d')), ComposerAction::None);
    assert_eq!(composer.key(control('g')), ComposerAction::OpenEditor);
}

#[test]
fn a_paste_is_one_piece_and_is_sent_whole() {
    let mut composer = composer();
    type_in(&mut composer, "see ");
    composer.paste("a\r\nb\rc\n");
    assert_eq!(composer.text(), "see a\nb\nc\n");
    composer.clear();
    let long: String = (1..=300).map(|nth| format!("line {nth}\r\n")).collect();
    type_in(&mut composer, "fix ");
    composer.paste(&long);
    composer.paste(&"x".repeat(1001));
    type_in(&mut composer, " now");
    insta::assert_snapshot!(drawn(&composer, 100), @"> fix [Pasted text #1 +300 lines][Pasted text #2 +1 lines] now▏");
    // The placeholder is deleted like a letter.
    for _ in 0..5 {
        composer.key(key(KeyCode::Backspace));
    }
    insta::assert_snapshot!(drawn(&composer, 40), @"> fix [Pasted text #1 +300 lines]▏");
    let whole = format!("fix {}", long.replace("\r\n", "\n"));
    assert_eq!(composer.text(), whole);
    assert_eq!(sent(&mut composer).text, whole);
}

#[test]
fn pasted_control_characters_are_text() {
    let mut composer = composer();
    composer.paste("a\u{1b}[2Jb\u{202e}c\u{F0000}\n");
    insta::assert_snapshot!(drawn(&composer, 40), @r"
    > a␛[2Jb�c�
      ▏
    ");
    assert_eq!(sent(&mut composer).text, "a\u{1b}[2Jb\u{202e}c\u{fffd}\n");
    composer.set_text("edited\r\nelsewhere");
    assert_eq!(sent(&mut composer).text, "edited\nelsewhere");
}

#[test]
fn argument_of_login_is_masked() {
    let mut composer = composer();
    type_in(&mut composer, "/login sk-ant-");
    composer.paste(&"k".repeat(20));
    insta::assert_snapshot!(drawn(&composer, 60), @"> /login •••••••••••••••••••••••••••▏");
    assert_eq!(composer.editable_text(), None);
    composer.key(control('w'));
    composer.key(control('u'));
    composer.key(control('y'));
    assert_eq!(composer.text(), "/login ");
    type_in(&mut composer, "sk-ant-x");
    assert_eq!(sent(&mut composer).text, "/login sk-ant-x");
    assert_eq!(composer.key(key(KeyCode::Up)), ComposerAction::Unhandled);
}

#[test]
fn up_and_down_go_through_the_text_and_then_the_history() {
    let home = tempfile::tempdir().unwrap();
    let history = || {
        Some(History::of(
            home.path().join("history.jsonl"),
            &Redactor::new([]),
        ))
    };
    let options = || ComposerOptions {
        history: history(),
        ..ComposerOptions::default()
    };
    let mut composer = Composer::new(options());
    for text in ["first", "second\nline"] {
        composer.set_text(text);
        sent(&mut composer);
    }
    let mut composer = Composer::new(options());
    type_in(&mut composer, "draft");
    composer.key(key(KeyCode::Up));
    assert_eq!(composer.text(), "second\nline");
    composer.key(key(KeyCode::Up));
    assert_eq!(composer.text(), "second\nline");
    composer.key(key(KeyCode::Up));
    assert_eq!(composer.text(), "first");
    assert_eq!(composer.key(key(KeyCode::Up)), ComposerAction::Unhandled);
    for _ in 0..2 {
        composer.key(key(KeyCode::Down));
    }
    assert_eq!(composer.text(), "draft");
}

#[test]
fn history_restores_input_as_it_was_typed() {
    let home = tempfile::tempdir().unwrap();
    let path = || home.path().join("history.jsonl");
    let options = || ComposerOptions {
        history: Some(History::of(path(), &Redactor::new([]))),
        ..ComposerOptions::default()
    };
    let mut composer = Composer::new(options());
    type_in(&mut composer, "see ");
    composer.paste(&"line\n".repeat(300));
    let with_paste = sent(&mut composer);
    assert_eq!(
        with_paste.shown.as_deref(),
        Some("see [Pasted text #1 +300 lines]")
    );
    type_in(&mut composer, "and ");
    composer.attach_image(Image {
        media_type: "image/png".to_owned(),
        data: "iVBORw0KGgo=".to_owned(),
    });
    let with_image = sent(&mut composer);
    type_in(&mut composer, "draft");
    composer.key(key(KeyCode::Up));
    insta::assert_snapshot!(drawn(&composer, 40), @"> and [Image #1]▏");
    composer.key(key(KeyCode::Up));
    insta::assert_snapshot!(drawn(&composer, 40), @"> see [Pasted text #1 +300 lines]▏");
    composer.key(key(KeyCode::Down));
    assert_eq!(sent(&mut composer), with_image);
    composer.take_back(with_paste);
    insta::assert_snapshot!(drawn(&composer, 40), @"> see [Pasted text #1 +300 lines]▏");
    // A long entry from an earlier session becomes a single attachment.
    let mut composer = Composer::new(options());
    for _ in 0..2 {
        composer.key(key(KeyCode::Up));
    }
    insta::assert_snapshot!(drawn(&composer, 40), @"> [Pasted text #1 +300 lines]▏");
}

#[test]
fn a_search_shows_the_line_that_has_what_is_looked_for() {
    let mut composer = composer();
    composer.set_text(&format!("fix\n{} the LEXER now", "x".repeat(50)));
    sent(&mut composer);
    composer.key(control('r'));
    type_in(&mut composer, "lexer");
    insta::assert_snapshot!(drawn(&composer, 40), @r"
    search: lexer▏
    …xxxxxxxxxxxxxxx the LEXER now
    ");
}

#[test]
fn a_search_takes_what_it_finds_and_sends_nothing() {
    let mut composer = composer();
    for text in ["fix the lexer", "run the tests", "fix it"] {
        composer.set_text(text);
        sent(&mut composer);
    }
    composer.key(control('r'));
    type_in(&mut composer, "fix");
    insta::assert_snapshot!(drawn(&composer, 40), @r"
    search: fix▏
    fix it
    ");
    composer.key(control('r'));
    assert_eq!(composer.key(key(KeyCode::Enter)), ComposerAction::Changed);
    assert_eq!(composer.text(), "fix the lexer");
    composer.key(control('r'));
    type_in(&mut composer, "nowhere");
    insta::assert_snapshot!(drawn(&composer, 40), @"no such entry: nowhere▏");
    composer.key(key(KeyCode::Esc));
    assert_eq!(composer.text(), "fix the lexer");
    assert_eq!(composer.key(key(KeyCode::Esc)), ComposerAction::Unhandled);
    // Ctrl-C ends the search first, and then clears.
    composer.key(control('r'));
    composer.cancel();
    assert_eq!(composer.text(), "fix the lexer");
    composer.cancel();
    assert!(composer.is_empty());
}

fn hint(name: &str, argument: &str, description: &str) -> CommandHint {
    CommandHint {
        name: name.to_owned(),
        argument: argument.to_owned(),
        description: description.to_owned(),
    }
}

#[test]
fn a_partly_visible_list_shows_its_range() {
    let mut composer = composer();
    let names = (1..=20).map(|nth| format!("c{nth:02}"));
    composer.set_commands(names.map(|name| hint(&name, "", "")).collect());
    type_in(&mut composer, "/");
    assert_eq!(composer.height(40), 17);
    insta::assert_snapshot!(drawn_in(&composer, 30, 4), @r"
      c01
      c02
      c03             1-3 of 20 ↑↓
    > /▏
    ");
    composer.key(key(KeyCode::Up));
    insta::assert_snapshot!(drawn_in(&composer, 30, 4), @r"
      c18
      c19
      c20           18-20 of 20 ↑↓
    > /▏
    ");
    assert!(drawn(&composer, 30).contains(" 5-20 of 20 ↑↓"));
}

#[test]
fn a_request_that_ends_in_a_directory_is_sent_by_enter() {
    let project = tempfile::tempdir().unwrap();
    fs::create_dir(project.path().join("src")).unwrap();
    fs::write(project.path().join("src/lib.rs"), "").unwrap();
    let mut composer = Composer::new(ComposerOptions {
        root: project.path().to_owned(),
        ..ComposerOptions::default()
    });
    type_in(&mut composer, "look at @sr");
    while composer.paths.listed().is_empty() {
        std::thread::yield_now();
    }
    composer.key(key(KeyCode::Tab));
    assert_eq!(composer.text(), "look at @src/");
    assert_eq!(sent(&mut composer).text, "look at @src/");
}

#[test]
fn commands_are_completed_with_what_they_do() {
    let mut composer = composer();
    composer.set_commands(vec![
        hint("clear", "", "begins a new session"),
        hint("model", "[NAME]", "chooses a model"),
        hint("mode", "NAME", "changes the mode"),
    ]);
    type_in(&mut composer, "/mo");
    insta::assert_snapshot!(drawn(&composer, 60), @r"
      model  [NAME]  chooses a model
      mode   NAME  changes the mode
    > /mo▏
    ");
    composer.key(key(KeyCode::Down));
    // An incomplete name is completed, and not sent.
    assert_eq!(composer.key(key(KeyCode::Enter)), ComposerAction::Changed);
    assert_eq!(composer.text(), "/mode ");
    // One that takes no argument is sent at once; one that only resembles it is sent as typed.
    for (typed, text) in [("/c", "/clear "), ("/moel", "/moel"), ("/clr", "/clr")] {
        composer.set_text("");
        type_in(&mut composer, typed);
        assert_eq!(sent(&mut composer).text, text);
    }
    // Nothing is run that was not meant.
    for typed in ["/", "/mo"] {
        composer.set_text("");
        type_in(&mut composer, typed);
        assert_eq!(composer.key(key(KeyCode::Enter)), ComposerAction::Changed);
    }
    composer.set_text("/model");
    assert_eq!(sent(&mut composer).text, "/model");
    composer.set_text("/unknown");
    assert_eq!(sent(&mut composer).text, "/unknown");
    composer.set_text("/cl");
    composer.key(key(KeyCode::Esc));
    assert_eq!(composer.key(key(KeyCode::Esc)), ComposerAction::Unhandled);
    assert_eq!(sent(&mut composer).text, "/cl");
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

#[test]
fn pictures_go_next_to_the_text() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::write(root.join("shot.png"), PNG).unwrap();
    fs::write(root.join("two words.gif"), "GIF89a").unwrap();
    fs::write(root.join("text.png"), "text").unwrap();
    fs::write(root.join("large.png"), [PNG, &vec![0; 5 << 20]].concat()).unwrap();
    let new = || {
        Composer::new(ComposerOptions {
            root: root.to_owned(),
            ..ComposerOptions::default()
        })
    };
    let mut composer = new();
    type_in(&mut composer, "see ");
    // Pasted as by a terminal when a file is dropped on it.
    composer.paste(&format!("'{}'", root.join("two words.gif").display()));
    composer.paste(" and @shot.png @lib.rs");
    insta::assert_snapshot!(drawn(&composer, 60), @"> see [Image #1] and @shot.png @lib.rs▏");
    let submission = sent(&mut composer);
    assert_eq!(submission.text, "see [Image #1] and [Image #2] @lib.rs");
    let mut composer = new();
    // Text typed without an `@` stays, and anything but a picture is text.
    type_in(
        &mut composer,
        "is shot.png, or @\"two words.gif\", as large as text.png and large.png?",
    );
    let typed = sent(&mut composer);
    assert_eq!(
        typed.text,
        "is shot.png [Image #1], or [Image #2], as large as text.png and large.png?"
    );
    assert_eq!(typed.images.len(), 2);
    let kinds: Vec<_> = submission
        .images
        .iter()
        .map(|image| image.media_type.as_str())
        .collect();
    assert_eq!(kinds, ["image/gif", "image/png"]);
    for (text, expected) in [
        ("@text.png", "it is no PNG, JPEG, GIF or WebP"),
        ("@large.png", "larger than 5 MB"),
        ("@missing.png", "No such file"),
    ] {
        let mut composer = new();
        composer.set_text(text);
        composer.key(key(KeyCode::Esc));
        let ComposerAction::Refused(reason) = composer.key(key(KeyCode::Enter)) else {
            panic!("{text}");
        };
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(composer.text(), text);
    }
    // An agent that takes no pictures is sent the path.
    let mut composer = Composer::new(ComposerOptions {
        root: root.to_owned(),
        is_text_only: true,
        ..ComposerOptions::default()
    });
    composer.set_text("@shot.png or ");
    composer.paste("shot.png");
    let submission = sent(&mut composer);
    assert_eq!(submission, "@shot.png or shot.png".to_owned().into());
    let pasted = composer.key(KeyEvent::new(KeyCode::Char('v'), KeyModifiers::CONTROL));
    assert!(matches!(pasted, ComposerAction::Refused(_)), "{pasted:?}");
    // A path to anything but a picture is text, and so is a picture's path within other text.
    let mut composer = new();
    composer.paste("shot.txt");
    composer.paste(" shot.png too");
    assert_eq!(composer.text(), "shot.txt shot.png too");
}

fn keys() -> impl Strategy<Value = Vec<KeyEvent>> {
    let code = prop_oneof![
        prop::sample::select(vec![
            KeyCode::Enter,
            KeyCode::Up,
            KeyCode::Down,
            KeyCode::Left,
            KeyCode::Right,
            KeyCode::Tab,
            KeyCode::Esc,
            KeyCode::Home,
            KeyCode::End,
            KeyCode::Backspace,
            KeyCode::Delete,
            KeyCode::BackTab,
            KeyCode::PageUp,
        ]),
        prop::sample::select(
            "abdefghjknpruwy/@!\\ \u{301}你👧\u{1b}\u{F0000}"
                .chars()
                .collect::<Vec<_>>()
        )
        .prop_map(KeyCode::Char),
    ];
    let modifiers = prop::sample::select(vec![
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::ALT,
        KeyModifiers::SHIFT,
    ]);
    prop::collection::vec(
        (code, modifiers).prop_map(|(code, modifiers)| KeyEvent::new(code, modifiers)),
        0..60,
    )
}

proptest! {
    #[test]
    fn no_keys_break_it_and_nothing_is_drawn_outside(
        keys in keys(), pastes in prop::collection::vec("[a\n\u{1b}你]{0,30}", 0..3), width in 1..50u16, height in 0..8u16
    ) {
        let mut composer = composer();
        composer.set_commands(vec![hint("a", "", ""), hint("bad", "X", "")]);
        let mut pastes = pastes.into_iter();
        for (nth, key) in keys.into_iter().enumerate() {
            if nth % 7 == 3 && let Some(text) = pastes.next() {
                composer.paste(&text);
            }
            composer.key(key);
            let screen = Rect::new(0, 0, 60, 12);
            let mut buf = Buffer::empty(screen);
            let area = Rect::new(3, 2, width, height.min(composer.height(width)));
            let cursor = composer.render(area, &mut buf);
            prop_assert!(cursor.is_none_or(|at| area.contains(at)));
            for position in screen.positions().filter(|at| !area.contains(*at)) {
                // A wide character at the edge may be cut, but must not reach beyond it.
                prop_assert_eq!(buf[position].symbol(), " ");
            }
            let shown: String = buf.content.iter().map(ratatui::buffer::Cell::symbol).collect();
            prop_assert!(!shown.contains(char::is_control));
        }
    }
}
