//! Tests of keys that stop the work, and of typing that does not answer a question.

use super::*;
use crate::sys::interrupt::Signal;

#[test]
fn escape_closes_then_warns_then_stops() {
    let mut app = at_work();
    assert_eq!(press(&mut app, KeyCode::Esc, 10_000), []);
    assert!(shown(&mut app, 60, 24).contains("(esc again to stop)"));
    app.tick(at(12_000));
    assert!(!shown(&mut app, 60, 24).contains("(esc again to stop)"));
    assert_eq!(press(&mut app, KeyCode::Esc, 12_100), []);
    assert_eq!(press(&mut app, KeyCode::Esc, 12_200), [ScreenEffect::Stop]);
    // An open question is closed, and nothing is stopped.
    let mut app = at_work();
    let refused = answered_with(Answer::No, false);
    app.handle(question(), at(12_900));
    assert_eq!(
        press(&mut app, KeyCode::Esc, 13_000),
        std::slice::from_ref(&refused)
    );
    assert!(shown(&mut app, 60, 24).contains("(esc again to stop)"));
    // The second one stops the work, whatever has appeared since.
    assert_eq!(press(&mut app, KeyCode::Esc, 13_050), [ScreenEffect::Stop]);
    // A question that the agent asks before it has stopped is closed at once.
    assert_eq!(app.handle(question(), at(13_060)), [refused]);
    assert_eq!(press(&mut app, KeyCode::Esc, 13_100), []);
    assert_eq!(press(&mut app, KeyCode::Char('x'), 13_200), []);
    assert_eq!(
        press(&mut app, KeyCode::Esc, 13_300),
        [],
        "another key was between"
    );
    // When nothing is running, there is nothing to stop.
    app.queue.clear();
    app.handle(ToScreen::Settled, at(14_000));
    for now in [14_100, 14_200, 14_300] {
        assert_eq!(press(&mut app, KeyCode::Esc, now), []);
    }
    app.handle(
        ToScreen::Choose(Menu {
            title: "Which?".to_owned(),
            items: vec![("a".to_owned(), String::new())],
            at: 0,
            is_unasked: false,
        }),
        at(15_000),
    );
    assert!(shown(&mut app, 60, 24).contains("Press Esc to cancel"));
    let none = ScreenEffect::Send(FromScreen::Chosen(None));
    assert_eq!(press(&mut app, KeyCode::Esc, 15_000), [none]);
}

#[test]
fn text_typed_during_a_menu_that_opened_by_itself_chooses_nothing() {
    let mut app = at_work();
    app.composer.set_text("the draft");
    let items = ["Carry it out", "Go on"].map(|item| (item.to_owned(), String::new()));
    app.handle(
        ToScreen::Choose(Menu {
            title: "The plan ends".to_owned(),
            items: items.into(),
            at: 1,
            is_unasked: true,
        }),
        at(1000),
    );
    for letter in " out".chars() {
        assert_eq!(press(&mut app, KeyCode::Char(letter), 2000), []);
    }
    assert_eq!(app.composer.text(), "the draft out");
    app.composer.clear();
    for code in [
        KeyCode::Char(' '),
        KeyCode::Backspace,
        KeyCode::Home,
        KeyCode::PageUp,
    ] {
        assert_eq!(press(&mut app, code, 2500), []);
    }
    app.composer.set_text("the draft");
    let default = ScreenEffect::Send(FromScreen::Chosen(Some(1)));
    assert_eq!(press(&mut app, KeyCode::Enter, 3000), [default]);
    assert_eq!(app.composer.text(), "the draft");
}

#[test]
fn text_typed_during_a_question_does_not_answer_it() {
    for text in ["cat\r", "a\r", "no", "yy", "echo ", "ea"] {
        let mut app = at_work();
        app.handle(question(), at(5000));
        for (now, letter) in (6000..).step_by(190).zip(text.chars()) {
            let code = match letter {
                '\r' => KeyCode::Enter,
                letter => KeyCode::Char(letter),
            };
            assert_eq!(app.unfollowed(at(now)), []);
            assert_eq!(press(&mut app, code, now), [], "{text}");
        }
        assert_eq!(app.unfollowed(at(9000)), [], "{text}");
        assert!(shown(&mut app, 60, 24).contains("y yes"), "{text}");
        assert_eq!(app.composer.text(), text.trim_end_matches('\r'));
        // While the draft has text, letters go there.
        assert_eq!(press_alone(&mut app, 'y', 9000), []);
        app.composer.clear();
        let yes = answered_with(Answer::Yes, false);
        assert_eq!(press_alone(&mut app, 'y', 9500), [yes]);
    }
    // This holds however slowly the text is typed.
    for text in ["maybe", "cyan", "is it a way"] {
        let mut app = at_work();
        app.handle(question(), at(5000));
        for (now, letter) in (6000..).step_by(500).zip(text.chars()) {
            assert_eq!(press_alone(&mut app, letter, now), [], "{text}");
        }
        assert_eq!(app.composer.text(), text);
        let screen = shown(&mut app, 60, 24);
        assert!(screen.contains(&format!("> {text}")), "{screen}");
        // An answer selected by an arrow is given nevertheless, and the draft stays.
        assert_eq!(press(&mut app, KeyCode::Enter, 20_000), []);
        press(&mut app, KeyCode::Right, 20_000);
        let yes = answered_with(Answer::Yes, false);
        assert_eq!(press(&mut app, KeyCode::Enter, 20_000), [yes]);
        assert_eq!(app.composer.text(), text);
    }
    // The wait ends at that time, but a key that comes later still counts as following.
    let mut app = at_work();
    app.handle(question(), at(5000));
    press(&mut app, KeyCode::Char('y'), 6000);
    assert_eq!(app.next_tick(at(6100)), Some(at(100)));
    assert_eq!(press(&mut app, KeyCode::Char('e'), 6201), []);
    assert_eq!(app.unfollowed(at(9000)), []);
    // A letter answers only the question at which it was pressed.
    press(&mut app, KeyCode::Char('y'), 9000);
    app.handle(question(), at(9001));
    assert_eq!(app.unfollowed(at(9999)), []);
}

#[test]
fn control_c_at_a_question_stops() {
    let mut app = at_work();
    app.handle(question(), at(0));
    let stopped = [ScreenEffect::Stop, answered_with(Answer::No, false)];
    assert_eq!(control(&mut app, 'c'), stopped);
    assert!(shown(&mut app, 60, 24).contains("Stopping..."));
    // A draft is cleared first, and Up brings it back.
    let mut app = at_work();
    app.handle(question(), at(0));
    for (now, letter) in (0..).step_by(10).zip("maybe".chars()) {
        press(&mut app, KeyCode::Char(letter), now);
    }
    assert_eq!(control(&mut app, 'c'), []);
    assert_eq!(app.composer.text(), "");
    assert!(shown(&mut app, 60, 24).contains("y yes"));
    assert_eq!(control(&mut app, 'c'), stopped);
    app.queue.clear();
    press(&mut app, KeyCode::Up, 0);
    assert_eq!(app.composer.text(), "maybe");
}

#[test]
fn control_c_clears_then_stops_then_leaves() {
    let mut app = at_work();
    press(&mut app, KeyCode::Char('x'), 0);
    assert_eq!(control(&mut app, 'c'), []);
    assert!(app.composer.is_empty());
    // Up takes back the queued submission.
    app.queue.clear();
    press(&mut app, KeyCode::Up, 0);
    assert_eq!(app.composer.text(), "x");
    app.composer.clear();
    assert_eq!(control(&mut app, 'c'), [ScreenEffect::Stop]);
    app.queue.clear();
    app.handle(ToScreen::Settled, at(0));
    let leave = [ScreenEffect::Send(FromScreen::Leave(Signal::Int))];
    assert_eq!(control(&mut app, 'c'), []);
    assert!(shown(&mut app, 60, 24).contains("ctrl+c again to quit"));
    assert_eq!(control(&mut app, 'c'), leave);
    // Another key, or time, comes in between.
    control(&mut app, 'c');
    press(&mut app, KeyCode::PageUp, 0);
    assert_eq!(control(&mut app, 'c'), []);
    app.tick(at(5000));
    let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.key(key, at(5000)), []);
    assert_eq!(control(&mut app, 'd'), leave);
    press(&mut app, KeyCode::Char('x'), 0);
    assert_eq!(control(&mut app, 'd'), []);
}

#[test]
fn a_stop_is_reported_until_it_is_done() {
    let mut app = at_work();
    control(&mut app, 'c');
    assert!(shown(&mut app, 60, 24).contains("Stopping..."));
    app.handle(ToScreen::Settled, at(0));
    assert!(!shown(&mut app, 60, 24).contains("Stopping..."));
    app.handle(ToScreen::Copy("x".to_owned()), at(0));
    app.handle(ToScreen::Settled, at(0));
    assert!(shown(&mut app, 60, 24).contains("Copied"));
}

#[test]
fn a_paste_answers_no_question_and_is_not_lost() {
    let mut app = app();
    app.handle(question(), at(0));
    app.paste("yes\ny");
    assert_eq!(press(&mut app, KeyCode::Esc, 9000).len(), 1);
    assert!(shown(&mut app, 40, 12).contains("> yes"));
}

#[test]
fn requested_line_is_typed_in_the_input_and_the_draft_restored() {
    let mut app = app();
    app.typed_ahead("my draft");
    let is_secret = true;
    let prompt = "API key".to_owned();
    app.handle(ToScreen::Type { prompt, is_secret }, at(0));
    // Text typed before the question appeared.
    app.typed_ahead(" here");
    assert_eq!(press(&mut app, KeyCode::Enter, 0), []);
    app.paste("sk-ant-k\r\nrest");
    press(&mut app, KeyCode::Char('z'), 0);
    press(&mut app, KeyCode::Backspace, 0);
    press(&mut app, KeyCode::Up, 0);
    let screen = shown(&mut app, 60, 12);
    assert!(
        screen.contains("API key") && screen.contains("> ••••••••\n"),
        "{screen}"
    );
    let typed = FromScreen::Typed(Some("sk-ant-k".to_owned()));
    assert_eq!(
        press(&mut app, KeyCode::Enter, 0),
        [ScreenEffect::Send(typed)]
    );
    assert_eq!(app.composer.text(), "my draft here");
    app.composer.clear();
    press(&mut app, KeyCode::Up, 0);
    assert_eq!(app.composer.text(), "", "a key is no entry of the history");
    let prompt = "Name".to_owned();
    app.handle(
        ToScreen::Type {
            prompt,
            is_secret: false,
        },
        at(0),
    );
    app.paste("w\u{1b}[2Jork");
    assert!(shown(&mut app, 60, 12).contains("> w␛[2Jork"));
    let none = [ScreenEffect::Send(FromScreen::Typed(None))];
    assert_eq!(press(&mut app, KeyCode::Esc, 0), none);
    assert!(app.composer.is_empty());
    let (prompt, is_secret) = ("Name".to_owned(), false);
    app.handle(ToScreen::Type { prompt, is_secret }, at(0));
    assert_eq!(control(&mut app, 'd'), none);
}

#[test]
fn alternative_instruction_is_typed_in_the_input() {
    let mut app = at_work();
    app.handle(question(), at(0));
    assert_eq!(press_alone(&mut app, 'e', 1000), []);
    assert!(shown(&mut app, 60, 24).contains("Enter sends it"));
    let instead = Answer::Instead("only list it".to_owned());
    assert_eq!(
        typed(&mut app, "only list it"),
        [answered_with(instead, false)]
    );
    assert!(app.composer.is_empty());
    // Escape goes back to the question.
    app.handle(question(), at(2000));
    press_alone(&mut app, 'e', 3000);
    assert_eq!(press(&mut app, KeyCode::Esc, 4000), []);
    assert!(shown(&mut app, 60, 24).contains("y yes"));
}

#[test]
fn enter_with_a_draft_says_what_answers_and_exit_leaves() {
    let mut app = at_work();
    app.handle(question(), at(0));
    assert_eq!(typed(&mut app, "use it"), []);
    assert!(shown(&mut app, 60, 24).contains("Ctrl-C clears your draft"));
    app.composer.clear();
    let left = [
        ScreenEffect::Send(FromScreen::Leave(Signal::Int)),
        ScreenEffect::Stop,
    ];
    assert_eq!(typed(&mut app, "/exit"), left);
}

#[test]
fn an_agent_of_one_task_keeps_what_it_does_not_read_in_the_input() {
    let mut app = at_work();
    app.queue.clear();
    let status = Status {
        is_one_task: true,
        ..Status::default()
    };
    app.handle(ToScreen::Status(status), at(0));
    assert_eq!(typed(&mut app, "make it blue"), []);
    assert_eq!(app.composer.text(), "make it blue");
    assert!(app.queue.is_empty());
    assert!(shown(&mut app, 60, 24).contains("nothing is read until the agent asks"));
    app.composer.clear();
    let left = [
        ScreenEffect::Send(FromScreen::Leave(Signal::Int)),
        ScreenEffect::Stop,
    ];
    assert_eq!(typed(&mut app, "/quit"), left);
}

#[test]
fn the_bar_says_what_control_d_does_at_a_question() {
    let composer = Composer::new(ComposerOptions::default());
    let mut app = App::new(None, composer);
    assert!(shown(&mut app, 100, 24).contains("ctrl+d: quit"));
    let (prompt, is_secret) = ("Which flag?".to_owned(), false);
    app.handle(ToScreen::Type { prompt, is_secret }, at(0));
    let asked = shown(&mut app, 100, 24);
    assert!(asked.contains("ctrl+d: no answer") && !asked.contains("quit"));
    let unanswered = ScreenEffect::Send(FromScreen::Typed(None));
    assert_eq!(control(&mut app, 'd'), [unanswered]);
    assert!(shown(&mut app, 100, 24).contains("ctrl+d: quit"));
}

#[test]
fn work_that_is_resumed_without_a_submission_can_be_stopped() {
    let composer = Composer::new(ComposerOptions::default());
    let mut app = App::new(None, composer);
    app.handle(ToScreen::Event(asking()), at(0));
    assert_eq!(press(&mut app, KeyCode::Esc, 100), []);
    assert_eq!(press(&mut app, KeyCode::Esc, 200), [ScreenEffect::Stop]);
}
