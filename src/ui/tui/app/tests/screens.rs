//! Tests of the screen at the usual sizes, as a user sees it.

use super::*;

#[test]
fn the_screen_at_the_usual_sizes() {
    insta::assert_snapshot!(shown(&mut at_work(), 40, 20), @r"
    > Fix the parser

    I'll look at src/parse.rs first.

    • read_file src/parse.rs (575 lines)
    ○ execute_command cargo test
        running 3 tests
        test a ... ok


    ◠ Executing execute_command
      (esc to interrupt) · cargo test
     ☒ Look
     ▶ Change it, now
     ☐ Test it
      waits: and the… (Up takes it back)
    > Ask for something, or / for commands
    ┌──────────────────────────────────────┐
    │ ● Regular Mode    45.0k/200.0k (23%) │
    └──────────────────────────────────────┘
    ");
    insta::assert_snapshot!(shown(&mut at_work(), 60, 24), @r"
    > Fix the parser

    I'll look at src/parse.rs first.

    • read_file src/parse.rs (575 lines)
    ○ execute_command cargo test
        running 3 tests
        test a ... ok






    ◠ Executing execute_command (esc to interrupt)
      cargo test
     ☒ Look
     ▶ Change it, now
     ☐ Test it
      waits: and the tests (Up takes it back)
    > Ask for something, or / for commands
    ┌──────────────────────────────────────────────────────────┐
    │ ● Regular Mode               Context: 45.0k/200.0k (23%) │
    └──────────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(shown(&mut at_work(), 100, 16), @r"
    > Fix the parser                                                      │ Todos 1/3
                                                                          │ ☒ Look
    I'll look at src/parse.rs first.                                      │ ▶ Change it, now
                                                                          │ ☐ Test it
    • read_file src/parse.rs (575 lines)                                  │
    ○ execute_command cargo test                                          │
        running 3 tests                                                   │
        test a ... ok                                                     │
                                                                          │
    ◠ Executing execute_command Still working... (esc to interrupt)
      cargo test
      waits: and the tests (Up takes it back)
    > Ask for something, or / for commands
    ┌──────────────────────────────────────────────────────────────────────────────────────────────────┐
    │ ● Regular Mode | claude-sonnet-5-5                                   Context: 45.0k/200.0k (23%) │
    └──────────────────────────────────────────────────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(shown(&mut at_work(), 200, 16), @r"
    > Fix the parser                                                                                                                                                │ Todos 1/3
                                                                                                                                                                    │ ☒ Look
    I'll look at src/parse.rs first.                                                                                                                                │ ▶ Change it, now
                                                                                                                                                                    │ ☐ Test it
    • read_file src/parse.rs (575 lines)                                                                                                                            │
    ○ execute_command cargo test                                                                                                                                    │
        running 3 tests                                                                                                                                             │
        test a ... ok                                                                                                                                               │
                                                                                                                                                                    │
    ◠ Executing execute_command Still working... (esc to interrupt)
      cargo test
      waits: and the tests (Up takes it back)
    > Ask for something, or / for commands
    ┌──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┐
    │ ● Regular Mode | claude-sonnet-5-5                                         Context: 45.0k/200.0k (23%)                                         shift+tab: cycle mode | esc×2: stop | /help: commands │
    └──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
    ");
}

#[test]
fn the_screen_with_a_question_and_with_nothing() {
    let mut asked = at_work();
    asked.handle(question(), at(5000));
    insta::assert_snapshot!(shown(&mut asked, 60, 24), @r"
    > Fix the parser

    I'll look at src/parse.rs first.

    • read_file src/parse.rs (575 lines)
    ○ execute_command cargo test
        running 3 tests
        test a ... ok



     ☒ Look
     ▶ Change it, now
     ☐ Test it
      waits: and the tests (until you have answered)
    ┌ execute_command ─────────────────────────────────────────┐
    │because it deletes                                        │
    │rm x                                                      │
    │Allow this? y yes | n no | e no, and say what instead     │
    │←→ Enter choose | Press Esc to cancel                     │
    └──────────────────────────────────────────────────────────┘
    ┌──────────────────────────────────────────────────────────┐
    │ ● Regular Mode               Context: 45.0k/200.0k (23%) │
    └──────────────────────────────────────────────────────────┘
    ");
    insta::assert_snapshot!(shown(&mut app(), 40, 10), @r"






    > Ask for something, or / for commands
    ┌──────────────────────────────────────┐
    │ ● Regular Mode                       │
    └──────────────────────────────────────┘
    ");
}

#[test]
fn the_least_screen_shows_what_is_asked() {
    // Drops the transcript's line, which is above the question.
    let low = |app: &mut App| shown(app, 40, 10).split_once('\n').unwrap().1.to_owned();
    let mut app = at_work();
    let question = Question {
        tool: "write_file".to_owned(),
        subject: "src/lexer.rs".to_owned(),
        may_be_permanent: true,
        may_forbid: true,
        may_redirect: true,
        ..Question::default()
    };
    let preview = Some("+a\n+b\n+c\n".to_owned());
    app.handle(ToScreen::Ask { question, preview }, at(5000));
    insta::assert_snapshot!(low(&mut app), @r"
    ┌ write_file src/lexer.rs ─────────────┐
    │+a                                    │
    │+b                                    │
    │Allow this? y yes  a always  n no     │
    │e else  d never                       │
    └ Press Esc to cancel ── 1-2 of 3 Pg↑↓ ┘
    ┌──────────────────────────────────────┐
    │ ● Regular Mode    45.0k/200.0k (23%) │
    └──────────────────────────────────────┘
    ");
    press(&mut app, KeyCode::PageDown, 5100);
    assert!(low(&mut app).contains("│+c "));
    press_alone(&mut app, 'n', 5300);
    let item = |name: &str| (name.to_owned(), String::new());
    let menu = Menu {
        title: "Which?".to_owned(),
        items: ["one", "two", "three"].map(item).into(),
        at: 2,
        is_unasked: false,
    };
    app.handle(ToScreen::Choose(menu), at(6000));
    insta::assert_snapshot!(low(&mut app), @r"
    ┌ Which? ──────────────────────────────┐
    │type to filter                        │
    │  two                                 │
    │> three                               │
    │Enter chooses | Press Esc to cancel   │
    └──────────────────────────────────────┘
    ┌──────────────────────────────────────┐
    │ ● Regular Mode    45.0k/200.0k (23%) │
    └──────────────────────────────────────┘
    ");
}

#[test]
fn queued_input_waits_for_enter_after_a_stop() {
    let mut app = app();
    typed(&mut app, "first");
    for waiting in ["second", "third"] {
        assert_eq!(typed(&mut app, waiting), []);
    }
    assert_eq!(press(&mut app, KeyCode::Enter, 0), []);
    press(&mut app, KeyCode::Esc, 1000);
    assert_eq!(press(&mut app, KeyCode::Esc, 1100), [ScreenEffect::Stop]);
    assert_eq!(app.handle(ToScreen::Settled, at(1200)), []);
    let screen = shown(&mut app, 60, 24);
    assert!(
        screen.contains("waits: second (Enter sends it, Up takes it back)"),
        "{screen}"
    );
    assert_eq!(press(&mut app, KeyCode::Enter, 2000), [line("second")]);
    assert_eq!(app.handle(ToScreen::Settled, at(3000)), [line("third")]);
}

#[test]
fn input_after_a_stop_goes_to_the_end_of_the_queue() {
    let mut app = app();
    for text in ["first", "second"] {
        typed(&mut app, text);
    }
    control(&mut app, 'c');
    assert_eq!(app.handle(ToScreen::Settled, at(0)), []);
    assert_eq!(typed(&mut app, "third"), [line("second")]);
    assert_eq!(app.handle(ToScreen::Settled, at(0)), [line("third")]);
}

#[test]
fn input_after_a_stop_is_sent_once_the_agent_has_ended() {
    let mut app = app();
    typed(&mut app, "first");
    control(&mut app, 'c');
    assert_eq!(typed(&mut app, "second"), []);
    assert_eq!(app.handle(ToScreen::Settled, at(0)), [line("second")]);
}

#[test]
fn a_long_paste_is_one_piece_in_the_transcript_too() {
    let mut app = app();
    app.typed_ahead(&"a line\n".repeat(300));
    let [ScreenEffect::Send(FromScreen::Line(sent))] = &typed(&mut app, " fix")[..] else {
        panic!("nothing is sent");
    };
    assert_eq!(sent.text.lines().count(), 301);
    let screen = shown(&mut app, 60, 24);
    assert!(
        screen.contains("> [Pasted text #1 +300 lines] fix"),
        "{screen}"
    );
    control(&mut app, 'o');
    assert!(shown(&mut app, 60, 24).contains("  a line"));
}

#[test]
fn while_the_engine_is_set_up_escape_stops_nothing() {
    let composer = Composer::new(ComposerOptions::default());
    let mut app = App::new(Some(SharedMode::default()), composer);
    for now in [0, 100, 200] {
        assert_eq!(press(&mut app, KeyCode::Esc, now), []);
    }
    // Submissions sent meanwhile are queued.
    assert_eq!(typed(&mut app, "first"), []);
    assert_eq!(press(&mut app, KeyCode::Esc, 300), []);
    assert_eq!(app.handle(ToScreen::Settled, at(400)), [line("first")]);
    press(&mut app, KeyCode::Esc, 500);
    assert_eq!(press(&mut app, KeyCode::Esc, 600), [ScreenEffect::Stop]);
    // The same holds during a new setup, even if the first one came earlier.
    app.handle(ToScreen::Settled, at(700));
    typed(&mut app, "/login work");
    press(&mut app, KeyCode::Esc, 800);
    app.handle(ToScreen::SettingUp, at(900));
    for now in [1000, 1100] {
        assert_eq!(press(&mut app, KeyCode::Esc, now), []);
    }
}

#[test]
fn a_build_is_shown_while_it_runs_and_when_it_has_ended() {
    let mut app = at_work();
    app.handle(ToScreen::Event(Event::Building { spent: Usd::ZERO }), at(0));
    assert!(shown(&mut app, 60, 24).contains("build.sh"));
    let built = Event::Built {
        status: "exit code: 1".to_owned(),
        passed: false,
        reasons: Vec::new(),
        took: Duration::from_secs(4),
    };
    app.handle(ToScreen::Event(built), at(4000));
    let screen = shown(&mut app, 60, 24);
    assert!(screen.contains("exit code: 1"), "{screen}");
}
