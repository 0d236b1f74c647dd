//! Tests of keys and messages at every screen size.

mod asked;
mod picture;
mod random;
mod screens;

use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Color;
use serde_json::Value;

use super::*;
use crate::model::message::Image;
use crate::model::price::Usd;
use crate::model::{Purpose, StepId};
use crate::record::mode::Mode;
use crate::record::question::{Answer, Question, Verdict};
use crate::record::tool::{Category, ToolEnd, Verb};
use crate::sys::counter::Counter;
use crate::sys::text::is_deceptive;
use crate::ui::tui::composer::ComposerOptions;
use crate::ui::tui::{CommandHint, Menu};

fn app() -> App {
    let composer = Composer::new(ComposerOptions::default());
    let mut app = App::new(Some(SharedMode::default()), composer);
    app.handle(ToScreen::Settled, at(0));
    app
}

fn at(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn drawn(app: &mut App, width: u16, height: u16) -> Buffer {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    app.draw(&mut buf);
    buf
}

fn shown(app: &mut App, width: u16, height: u16) -> String {
    let buf = drawn(app, width, height);
    let row = |y| (0..width).map(|x| buf[(x, y)].symbol()).collect::<String>();
    let rows = (0..height).map(|y| row(y).trim_end().to_owned());
    rows.collect::<Vec<_>>().join("\n")
}

fn press(app: &mut App, code: KeyCode, now: u64) -> Vec<ScreenEffect> {
    app.key(KeyEvent::new(code, KeyModifiers::NONE), at(now))
}

fn control(app: &mut App, letter: char) -> Vec<ScreenEffect> {
    let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    app.key(key, at(0))
}

fn typed(app: &mut App, text: &str) -> Vec<ScreenEffect> {
    for letter in text.chars() {
        press(app, KeyCode::Char(letter), 0);
    }
    press(app, KeyCode::Enter, 0)
}

/// Presses a letter and waits until it is handled.
fn press_alone(app: &mut App, letter: char, now: u64) -> Vec<ScreenEffect> {
    assert_eq!(press(app, KeyCode::Char(letter), now), []);
    app.unfollowed(at(now + 200))
}

fn answered_with(answer: Answer, is_for_good: bool) -> ScreenEffect {
    ScreenEffect::Send(FromScreen::Answered(Verdict {
        answer,
        is_for_good,
    }))
}

fn line(text: &str) -> ScreenEffect {
    ScreenEffect::Send(FromScreen::Line(Submission {
        text: text.to_owned(),
        ..Submission::default()
    }))
}

fn picture() -> Image {
    Image {
        media_type: "image/png".to_owned(),
        data: "iVBORw0KGgo=".to_owned(),
    }
}

fn asking() -> Event {
    Event::Asking {
        step: StepId::new(Purpose::STEP, 1),
        model: "claude-sonnet-5-5".to_owned(),
        prompt: None,
        spent: Usd::ZERO,
    }
}

fn piece(text: &str) -> Event {
    Event::Receiving {
        piece: text.to_owned(),
        is_thought: false,
        output_tokens: 0,
        thought_tokens: 0,
        spent: Usd::ZERO,
    }
}

fn answered(seconds: u64) -> Event {
    Event::Answered {
        model: "m".to_owned(),
        usage: None,
        cost: None,
        tier: None,
        took: Duration::from_secs(seconds),
    }
}

fn tool(name: &str, subject: &str) -> Event {
    Event::Tool {
        category: Some(match name {
            "execute_command" => Category::Shell,
            _ => Category::Edit,
        }),
        name: name.to_owned(),
        input: String::new(),
        arguments: Value::Null,
        subject: subject.to_owned(),
        asks: false,
        verb: Verb::Use,
    }
}

fn result(name: &str, brief: &str) -> Event {
    Event::ToolResult {
        name: name.to_owned(),
        end: ToolEnd {
            text: "text".to_owned(),
            brief: Some(brief.to_owned()),
            ..ToolEnd::default()
        },
        is_end: false,
    }
}

fn todos() -> ToScreen {
    let todo = |content: &str, status| Todo {
        content: content.to_owned(),
        status,
        active_form: Some(format!("{content}, now")),
    };
    ToScreen::Todos(vec![
        todo("Look", TodoStatus::Completed),
        todo("Change it", TodoStatus::InProgress),
        todo("Test it", TodoStatus::Pending),
    ])
}

fn question() -> ToScreen {
    ToScreen::Ask {
        question: Question {
            sentence: "Run `rm x`?".to_owned(),
            tool: "execute_command".to_owned(),
            subject: "rm x".to_owned(),
            reasons: vec!["deletes".to_owned()],
            may_be_permanent: false,
            may_forbid: false,
            may_redirect: true,
            ..Question::default()
        },
        preview: None,
    }
}

/// Returns a screen in the middle of some work.
fn at_work() -> App {
    let mut app = app();
    app.handle(
        ToScreen::Status(Status {
            model: "claude-sonnet-5-5".to_owned(),
            used: 45_000,
            window: 200_000,
            ..Status::default()
        }),
        at(0),
    );
    typed(&mut app, "Fix the parser");
    app.handle(todos(), at(0));
    for event in [
        asking(),
        piece("I'll look at **src/parse.rs** first."),
        answered(4),
        tool("read_file", "src/parse.rs"),
        result("read_file", "575 lines"),
        tool("execute_command", "cargo test"),
        Event::Printed("running 3 tests\ntest a ... ok\n".to_owned()),
    ] {
        app.handle(ToScreen::Event(event), at(1000));
    }
    typed(&mut app, "and the tests");
    app.tick(at(4100));
    app
}

#[test]
fn todos_are_shown_while_the_agent_is_at_work() {
    let mut app = app();
    typed(&mut app, "go");
    let ToScreen::Todos(todos) = todos() else {
        panic!("no todos");
    };
    app.handle(ToScreen::Event(Event::Todos(todos)), at(0));
    let shown = shown(&mut app, 100, 20);
    assert!(
        shown.contains("Todos 1/3") && shown.contains("Change it, now"),
        "{shown}"
    );
}

#[test]
fn status_line_follows_events() {
    let mut app = app();
    typed(&mut app, "go");
    let mut wait = |event: Option<Event>, now: u64| {
        if let Some(event) = event {
            app.handle(ToScreen::Event(event), at(now));
        }
        app.tick(at(now));
        let text = shown(&mut app, 80, 24);
        let rows: Vec<&str> = text.lines().collect();
        format!("{} |{}", rows[18].trim_end(), rows[19].trim_end())
    };
    let ask = |tokens| Event::Asking {
        step: StepId::new(Purpose::STEP, 1),
        model: "m".to_owned(),
        prompt: Some(crate::model::tokens::Size {
            parts: Vec::new(),
            tokens,
        }),
        spent: Usd::ZERO,
    };
    for (event, now, expected) in [
        (
            None,
            0,
            "⠋ Claude is thinking Starting... (esc to interrupt) |",
        ),
        (
            Some(ask(1000)),
            100,
            "[    ] Calling Anthropic API Starting... |  m",
        ),
        (
            Some(piece("abc")),
            200,
            "- Streaming response Starting... (esc to interrupt) |  3 bytes received",
        ),
        (
            Some(piece("de")),
            3200,
            "/ Streaming response Still working... (esc to interrupt) |  5 bytes received",
        ),
        (
            Some(Event::Retrying {
                next_try: 2,
                wait: Duration::from_secs(3),
                reason: "overloaded".to_owned(),
            }),
            3300,
            "[    ] Calling Anthropic API Starting... |  overloaded; try 2 in 3.0s",
        ),
        (
            Some(answered(8)),
            4000,
            "⠋ Claude is thinking Starting... (esc to interrupt) |",
        ),
        (
            Some(tool("write_file", "a.rs")),
            5000,
            "◜ Writing a.rs Starting... |",
        ),
        (
            Some(result("write_file", "")),
            5100,
            "⠋ Claude is thinking Starting... (esc to interrupt) |",
        ),
        (
            Some(ask(3000)),
            6000,
            "[    ] Calling Anthropic API Starting... |  m · 0s of about 16s",
        ),
    ] {
        assert_eq!(wait(event, now), expected);
    }
    app.handle(ToScreen::Settled, at(7000));
    assert!(app.next_tick(at(7000)).is_none());
    assert!(!shown(&mut app, 80, 24).contains("Calling"));
}

#[test]
fn an_idle_screen_has_nothing_to_draw() {
    let mut app = at_work();
    app.queue.clear();
    app.handle(ToScreen::Settled, at(5000));
    app.tick(at(5000));
    shown(&mut app, 80, 24);
    for now in (5000..60_000).step_by(500) {
        assert!(!app.tick(at(now)), "{now}");
        assert_eq!(app.next_tick(at(now)), None);
    }
    press(&mut app, KeyCode::Char('x'), 60_000);
    assert!(app.tick(at(60_000)));
}

#[test]
fn shift_tab_goes_round_the_modes_whatever_is_open() {
    let mut app = at_work();
    for (mode, shown_as) in [
        (Mode::AutoPilot, "Auto-Pilot Mode"),
        (Mode::Planning, "Planning Mode"),
        (Mode::Regular, "Regular Mode"),
    ] {
        assert_eq!(press(&mut app, KeyCode::BackTab, 0), []);
        assert_eq!(app.mode.as_ref().unwrap().get(), mode);
        assert!(shown(&mut app, 80, 24).contains(shown_as));
        app.handle(question(), at(0));
    }
}

#[test]
fn a_mode_is_switched_to_by_its_name_also_while_the_agent_works() {
    let mut app = at_work();
    assert_eq!(typed(&mut app, "/mode planning"), []);
    assert_eq!(app.mode.as_ref().unwrap().get(), Mode::Planning);
    // Without a name, the command shows the mode.
    assert_eq!(typed(&mut app, "/mode"), []);
    assert_eq!(app.mode.as_ref().unwrap().get(), Mode::Planning);
    typed(&mut app, "/mode none");
    assert!(shown(&mut app, 100, 24).contains("there is no mode `none`"));
    let waiting = app.queue.len();
    typed(&mut app, "/model");
    assert_eq!(app.queue.len(), waiting + 1);
}

#[test]
fn hint_is_shown_whole_and_displaces_the_status() {
    let mut app = at_work();
    press(&mut app, KeyCode::Esc, 4200);
    let screen = shown(&mut app, 60, 24);
    assert!(
        screen.contains(" Executing execute_command              (esc again to stop)"),
        "{screen}"
    );
    let hint = "there is no editor to open: neither `VISUAL` nor `EDITOR` is set; set one of them";
    for (width, mut app) in [(40, at_work()), (60, at_work()), (60, self::app())] {
        app.hint(hint, at(5000));
        let screen = shown(&mut app, width, 24).replace('\n', " ");
        let words: Vec<&str> = screen.split_whitespace().collect();
        assert!(words.join(" ").contains(hint), "{screen}");
    }
}

#[test]
fn input_is_queued_while_the_agent_works() {
    let mut app = app();
    assert_eq!(typed(&mut app, "first"), [line("first")]);
    assert_eq!(typed(&mut app, "second"), []);
    assert_eq!(typed(&mut app, "third"), []);
    assert_eq!(typed(&mut app, "fourth"), []);
    assert_eq!(typed(&mut app, "fifth"), []);
    let screen = shown(&mut app, 60, 24);
    assert!(screen.contains("waits: second (Up takes it back)"));
    assert!(screen.contains("… 2 more messages"));
    press(&mut app, KeyCode::Up, 0);
    assert_eq!(app.composer.text(), "fifth");
    control(&mut app, 'c');
    assert_eq!(app.handle(ToScreen::Settled, at(0)), [line("second")]);
    assert_eq!(app.handle(ToScreen::Settled, at(0)), [line("third")]);
    assert!(shown(&mut app, 60, 24).contains("> third"));
}

#[test]
fn queued_input_is_sent_as_edited_once_the_engine_is_ready() {
    let composer = Composer::new(ComposerOptions::default());
    let mut app = App::new(Some(SharedMode::default()), composer);
    app.send_first(Submission {
        text: "look at [Image #1]".to_owned(),
        images: vec![picture()],
        ..Submission::default()
    });
    assert_eq!(typed(&mut app, "two"), []);
    press(&mut app, KeyCode::Up, 0);
    assert_eq!(typed(&mut app, " and more"), []);
    press(&mut app, KeyCode::Up, 0);
    assert_eq!(app.composer.text(), "two and more");
    app.composer.clear();
    press(&mut app, KeyCode::Up, 0);
    assert_eq!(typed(&mut app, " now"), []);
    let submission = Submission {
        text: "look at [Image #1] now".to_owned(),
        images: vec![picture()],
        ..Submission::default()
    };
    let sent = ScreenEffect::Send(FromScreen::Line(submission));
    assert_eq!(app.handle(ToScreen::Settled, at(0)), [sent]);
}

#[test]
fn a_key_is_not_shown_and_what_was_done_goes_with_the_next_request() {
    let mut app = app();
    app.handle(todos(), at(0));
    typed(&mut app, "!true");
    typed(&mut app, "/login sk-ant-waiting");
    let screen = shown(&mut app, 60, 24);
    assert!(screen.contains("waits: /login") && !screen.contains("sk-ant"));
    app.queue.clear();
    app.handle(ToScreen::Settled, at(0));
    let sent = typed(&mut app, "/login sk-ant-secret");
    assert_eq!(sent, [line("/login sk-ant-secret")]);
    app.handle(ToScreen::Settled, at(0));
    let screen = shown(&mut app, 60, 24);
    assert!(screen.contains("> /login") && !screen.contains("sk-ant"));
    assert!(screen.contains("Look"));
    typed(&mut app, "go on");
    let screen = shown(&mut app, 60, 24);
    assert!(!screen.contains("Look") && screen.contains("Change it, now"));
}

#[test]
fn messages_of_the_engine_become_effects() {
    let mut app = app();
    let copy = ToScreen::Copy("x".to_owned());
    assert_eq!(
        app.handle(copy, at(0)),
        [ScreenEffect::Copy("x".to_owned())]
    );
    let page = ToScreen::Page("x".to_owned());
    assert_eq!(
        app.handle(page, at(0)),
        [ScreenEffect::Page("x".to_owned())]
    );
    let farewell = "bye".to_owned();
    assert_eq!(
        app.handle(ToScreen::End(farewell.clone()), at(0)),
        [ScreenEffect::Leave(farewell)]
    );
    let done = Counter::default();
    let progress = Event::Progress {
        message: "Taking back".to_owned(),
        done: done.clone(),
        total: 4,
    };
    app.handle(ToScreen::Event(progress), at(0));
    assert!(shown(&mut app, 60, 24).contains(" 0%"));
    done.add();
    assert!(app.tick(at(1000)));
    assert!(shown(&mut app, 60, 24).contains(" 25%"));
    app.handle(ToScreen::Settled, at(0));
    assert!(!shown(&mut app, 60, 24).contains("Taking back"));
    app.handle(ToScreen::Said("**Signed out**".to_owned()), at(0));
    app.handle(
        ToScreen::Transcript(vec![Entry::user("old".to_owned())]),
        at(0),
    );
    assert!(shown(&mut app, 60, 24).starts_with("> old\n\n\n"));
    assert_eq!(control(&mut app, 'l'), [ScreenEffect::Redraw]);
    app.edited("from the editor");
    assert_eq!(
        control(&mut app, 'g'),
        [ScreenEffect::Editor("from the editor".to_owned())]
    );
}

#[test]
fn keys_and_the_wheel_scroll() {
    let mut app = app();
    for at in 0..100 {
        app.transcript.add(Entry::notice(format!("line {at}")));
    }
    assert!(shown(&mut app, 60, 24).contains("line 99"));
    app.wheel(-1);
    assert!(!shown(&mut app, 60, 24).contains("line 99"));
    press(&mut app, KeyCode::Home, 0);
    assert!(shown(&mut app, 60, 24).starts_with("line 0\n"));
    press(&mut app, KeyCode::PageDown, 0);
    assert!(!shown(&mut app, 60, 24).contains("line 0\n"));
    press(&mut app, KeyCode::PageUp, 0);
    assert!(shown(&mut app, 60, 24).starts_with("line 0\n"));
    press(&mut app, KeyCode::End, 0);
    assert!(shown(&mut app, 60, 24).contains("line 99"));
    app.wheel(-1);
    assert_eq!(typed(&mut app, "go").len(), 1);
    assert!(
        shown(&mut app, 60, 24).contains("> go"),
        "who sends looks at the end"
    );
}

#[test]
fn without_colours_the_screen_has_none() {
    let mut app = at_work();
    app.is_plain = true;
    app.transcript
        .add(Entry::Agent("# A\n`b` [c](d)".to_owned()));
    for height in [10, 24] {
        for cell in drawn(&mut app, 120, height).content() {
            assert_eq!((cell.fg, cell.bg), (Color::Reset, Color::Reset), "{cell:?}");
        }
    }
}

fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        Just("\u{1b}[2J\u{9b}31m\u{202e}\r\n\t\u{200f}\u{e0041}宽👩\u{200d}👩".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_size_and_no_text_harm(
        text in hostile(),
        sizes in prop::collection::vec((1_u16..310, 1_u16..110), 1..4),
        parts in 0..32_u8,
    ) {
        let mut app = at_work();
        if parts & 1 > 0 { app.handle(question(), at(0)); }
        if parts & 2 > 0 { app.handle(ToScreen::Settled, at(0)); }
        if parts & 4 > 0 {
            app.handle(ToScreen::Ask {
                question: Question { subject: text.clone(), ..Question::from(text.clone()) },
                preview: Some(text.clone()),
            }, at(0));
        }
        app.handle(ToScreen::Status(Status { model: text.clone(), ..Status::default() }), at(0));
        app.handle(ToScreen::Said(text.clone()), at(0));
        app.handle(ToScreen::Todos(vec![Todo { content: text.clone(), ..Todo::default() }; usize::from(parts)]), at(0));
        app.handle(ToScreen::Commands(vec![CommandHint {
            name: text.clone(),
            argument: text.clone(),
            description: text.clone(),
        }]), at(0));
        app.handle(ToScreen::Event(tool(&text, &text)), at(0));
        if parts & 8 > 0 { app.typed_ahead(&text); }
        if parts & 16 > 0 { typed(&mut app, "/"); press(&mut app, KeyCode::Char('/'), 0); }
        app.hint(&text, at(0));
        for (width, height) in sizes {
            let buf = drawn(&mut app, width, height);
            for cell in buf.content() {
                prop_assert!(!cell.symbol().chars().any(is_deceptive), "{:?}", cell.symbol());
            }
            app.wheel(-9);
            press(&mut app, KeyCode::PageDown, 0);
        }
    }
}
