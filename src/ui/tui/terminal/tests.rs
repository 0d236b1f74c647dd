//! Tests of the loop on a socket in place of a terminal, with the screen interpreted as a terminal would.

use super::*;
use std::num::NonZero;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::{fs, thread};

use crate::model::price::Usd;
use crate::record::event::Event;
use crate::record::question::{Answer, Question, Verdict};
use crate::sys::environment::SystemClock;
use crate::ui::tui::channel::{ScreenSender, channel as screen_channel};

/// A limit that nothing exceeds unless it hangs.
const LONG: Duration = Duration::from_secs(20);

/// A writer that forwards each write to a channel.
struct Written(Sender<Vec<u8>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Both ends of a running screen.
struct Stage {
    engine: ScreenSender,
    heard: Receiver<FromScreen>,
    keyboard: UnixStream,
    written: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    interrupt: Interrupt,
    writes: usize,
}

impl Stage {
    fn press(&mut self, bytes: &str) {
        self.keyboard.write_all(bytes.as_bytes()).unwrap();
    }

    /// Waits until this text is on the screen.
    fn see(&mut self, text: &str) {
        while !self.screen.screen().contents().contains(text) {
            let written = self.written.recv_timeout(LONG);
            let missing = |_| panic!("{text}\n{}", self.screen.screen().contents());
            let bytes = written.unwrap_or_else(missing);
            self.writes += 1;
            self.screen.process(&bytes);
        }
    }

    fn hear(&self) -> FromScreen {
        self.heard.recv_timeout(LONG).unwrap()
    }

    fn end(&self) {
        let farewell = "bye".to_owned();
        self.engine.send(ToScreen::End(farewell));
    }
}

fn size() -> Size {
    Size::new(60, 16)
}

fn options(clock: &SystemClock) -> ScreenOptions<'_> {
    ScreenOptions {
        mode: Some(SharedMode::default()),
        first: None,
        clock,
        no_color: true,
        mouse: true,
        notify: true,
        root: PathBuf::from("/no/such/project"),
        history: None,
        editor: None,
        draft: PathBuf::from("/no/such/draft"),
        pager: None,
        clipboard: Clipboard::default(),
    }
}

/// Runs a screen; `prepare` acts before it appears, `play` afterwards. Returns the screen's farewell.
fn on_stage(prepare: impl FnOnce(&mut Stage), play: impl FnOnce(&mut Stage)) -> String {
    staged(PAUSE, prepare, play).0
}

/// Like [`on_stage`], with the pause after which a question counts as seen; also returns the signal that ended it.
fn staged(
    pause: Duration,
    prepare: impl FnOnce(&mut Stage),
    play: impl FnOnce(&mut Stage),
) -> (String, Option<Signal>) {
    let (engine, receiver) = screen_channel().unwrap();
    let (sender, heard) = channel();
    let (keyboard, keys) = UnixStream::pair().unwrap();
    let (writes, written) = channel();
    let interrupt = Interrupt::never().unwrap();
    let length = |length| NonZero::new(length).unwrap();
    let screen = vt100::Parser::new(length(size().height), length(size().width), 0);
    let mut stage = Stage {
        engine,
        heard,
        keyboard,
        written,
        screen,
        interrupt: interrupt.clone(),
        writes: 0,
    };
    prepare(&mut stage);
    stage.engine.send(ToScreen::Settled);
    let clock = SystemClock::start();
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            let options = options(&clock);
            let terminal = Terminal {
                keys: keys.as_fd(),
                output: Written(writes),
                size,
                taken: None,
                is_elsewhere: false,
            };
            let interrupt = StopAtEnd(interrupt);
            let mut screen = ScreenLoop::new(options, terminal, receiver, sender, interrupt);
            screen.pause = pause;
            let farewell = screen
                .run(&Signals::new(Arc::default(), Arc::default()).unwrap())
                .unwrap();
            (farewell, screen.ended_by.map(|by| by.signal))
        });
        play(&mut stage);
        drop(stage);
        running.join().unwrap()
    })
}

fn question() -> ToScreen {
    ToScreen::Ask {
        question: Question {
            sentence: "May I?".to_owned(),
            tool: "execute_command".to_owned(),
            subject: "rm x".to_owned(),
            reasons: vec!["deletes".to_owned()],
            may_be_permanent: true,
            may_forbid: true,
            may_redirect: true,
            ..Question::default()
        },
        preview: None,
    }
}

fn answered(answer: Answer) -> FromScreen {
    FromScreen::Answered(Verdict {
        answer,
        is_for_good: false,
    })
}

#[test]
fn input_is_sent_and_reply_is_shown() {
    let farewell = on_stage(
        |_| {},
        |stage| {
            stage.press("Hello\x1b[200~ \x1b[A\ry\x1b[201~\r");
            let FromScreen::Line(submission) = stage.hear() else {
                panic!()
            };
            assert_eq!(submission.text, "Hello \x1b[A\ny");
            for piece in ["Hi ", "there"] {
                stage.engine.send(ToScreen::Event(Event::Receiving {
                    piece: piece.to_owned(),
                    is_thought: false,
                    output_tokens: 1,
                    thought_tokens: 0,
                    spent: Usd::ZERO,
                }));
            }
            stage.see("Hi there");
            stage.end();
        },
    );
    assert_eq!(farewell, "bye");
}

#[test]
fn typeahead_does_not_answer_a_question() {
    staged(
        LONG,
        |stage| {
            // A paste that is incomplete when the question appears.
            stage.press("y\r\x1b[200~y");
            stage.engine.send(question());
        },
        |stage| {
            stage.see("because it deletes");
            // Keys that work at any time still do, without extending the typing; keys that would answer do not.
            stage.press("a\x1b[201~\r\x1b[Z");
            stage.see("Auto-Pilot");
            stage.press("n\x1b[5~");
            stage.see("> yyan");
            // The first Ctrl-C clears the draft.
            stage.press("\x03\x03");
            assert_eq!(stage.hear(), answered(Answer::No));
            stage.end();
        },
    );
    staged(
        LONG,
        |stage| {
            stage.press("y\x1b[Z\x03");
            stage.engine.send(question());
        },
        |stage| {
            stage.see("because it deletes");
            stage.see("Auto-Pilot");
            stage.press("\x1b");
            assert_eq!(stage.hear(), answered(Answer::No));
            stage.end();
        },
    );
    staged(
        Duration::ZERO,
        |stage| stage.engine.send(question()),
        |stage| {
            stage.see("because it deletes");
            // Text typed while the question is open is not an answer either; an Escape is, and so is a lone letter.
            stage.press("cat\r\x1b");
            assert_eq!(stage.hear(), answered(Answer::No));
            stage.engine.send(question());
            // Sent after the question: when this is visible, the question has been handled.
            stage.engine.send(ToScreen::Said("Again".to_owned()));
            stage.see("Again");
            // The draft has the typed text and letters; an arrow and Enter answer.
            stage.press("y\x1b[C\r");
            assert_eq!(stage.hear(), answered(Answer::Yes));
            stage.see("> caty");
            stage.end();
        },
    );
}

#[test]
fn unfocused_terminal_is_notified_of_a_question() {
    for (focus, is_told) in [("\x1b[O", true), ("\x1b[O\x1b[I", false), ("", false)] {
        on_stage(
            |_| {},
            |stage| {
                stage.press(&format!("{focus}x"));
                stage.see("> x");
                stage.engine.send(question());
                let mut bytes = Vec::new();
                while !stage.screen.screen().contents().contains("because it") {
                    let drawn = stage.written.recv_timeout(LONG).unwrap();
                    stage.screen.process(&drawn);
                    bytes.extend(drawn);
                }
                let told = b"\x07\x1b]9;code-commit waits for your answer\x07";
                let is_there = bytes.windows(told.len()).any(|window| window == told);
                assert_eq!(is_there, is_told, "{focus:?}");
                stage.end();
            },
        );
    }
}

#[test]
fn a_paste_whose_end_is_lost_is_ended_by_ctrl_c() {
    for ctrl_c in ["\x03", "\x1b[99;5u"] {
        on_stage(
            |_| {},
            |stage| {
                stage.press("\x1b[200~lost\x1b[Z");
                // Input is read between two frames.
                for said in ["first", "second"] {
                    stage.engine.send(ToScreen::Said(said.to_owned()));
                    stage.see(said);
                }
                stage.press(ctrl_c);
                stage.see("> lost");
                stage.press("\r");
                let FromScreen::Line(submission) = stage.hear() else {
                    panic!()
                };
                assert_eq!(submission.text, "lost\x1b[Z");
                stage.end();
            },
        );
    }
}

#[test]
fn two_escapes_that_arrive_together_stop() {
    on_stage(
        |_| {},
        |stage| {
            stage.press("go\r");
            stage.hear();
            stage.press("\x1b\x1b");
            stage.see("Stopping...");
            assert_eq!(stage.interrupt.take(), 1);
            // The screen continues, even while a stop has not been handled.
            stage.interrupt.raise();
            stage.press("next");
            stage.see("> next");
            stage.end();
        },
    );
}

#[test]
fn stop_counts_only_if_it_follows_the_submission() {
    on_stage(
        |_| {},
        |stage| {
            stage.interrupt.raise();
            stage.press("go\r");
            stage.hear();
            assert_eq!(stage.interrupt.take(), 0);
            stage.engine.send(ToScreen::Settled);
            stage.engine.send(ToScreen::Said("That was it.".to_owned()));
            stage.see("That was it.");
            stage.press("again\r\x03");
            stage.see("Stopping...");
            stage.hear();
            assert_eq!(stage.interrupt.take(), 1);
            stage.end();
        },
    );
}

#[test]
fn nothing_is_written_while_nothing_changes() {
    on_stage(
        |_| {},
        |stage| {
            stage.see("Ask for something");
            let first = stage.writes;
            for _ in 0..3 {
                stage.engine.send(ToScreen::Todos(Vec::new()));
                stage.press("\x1b[99~");
            }
            stage.press("x");
            stage.see("> x");
            assert_eq!(stage.writes, first + 1);
            stage.end();
        },
    );
}

#[test]
fn a_key_is_seen_at_once_and_no_second_has_more_than_sixty_frames() {
    /// A function that returns whether a key is pressed in this millisecond, and the longest allowed wait for a frame.
    type Typing = (fn(u32) -> bool, u32);
    let cases: [Typing; 5] = [
        (|_| false, 0),
        (|at| at % 33 == 7, 0),
        (|at| at % 18 == 1, 0),
        (|_| true, 18),
        (|at| at % 400 < 70, 18),
    ];
    for (is_typed, longest) in cases {
        let (mut next, mut drawn, mut typed) = (Duration::ZERO, Vec::new(), None);
        for at in 0..4000 {
            let now = Duration::from_millis(at.into());
            if is_typed(at) {
                typed.get_or_insert(at);
            }
            // Text streams all the time.
            if due_in(next, typed.is_some(), now).is_zero() {
                assert!(at - typed.take().unwrap_or(at) <= longest);
                next = frame_after(next, now);
                drawn.push(at);
            }
        }
        for from in 0..3000 {
            let within = drawn.iter().filter(|at| (from..from + 1000).contains(*at));
            assert!((50..=60).contains(&within.count()));
        }
    }
}

#[test]
fn a_signal_or_the_terminals_end_ends_it() {
    for signal in [Signal::Term, Signal::Hup] {
        let (farewell, ended_by) = staged(
            PAUSE,
            |_| {},
            |stage| {
                stage.see("Ask for something");
                stage.interrupt.simulate(signal);
                assert_eq!(stage.hear(), FromScreen::Leave(signal));
                stage.end();
            },
        );
        assert_eq!(farewell, "bye");
        assert_eq!(ended_by, Some(signal));
    }
    let (_, ended_by) = staged(
        PAUSE,
        |_| {},
        |stage| {
            stage.keyboard.shutdown(std::net::Shutdown::Both).unwrap();
            // The engine is stopped without waiting for a message.
            assert!(stage.interrupt.sleep(LONG).is_err());
            assert_eq!(stage.hear(), FromScreen::Leave(Signal::Hup));
        },
    );
    assert_eq!(ended_by, Some(Signal::Hup));
    // The engine is gone.
    assert_eq!(on_stage(|_| {}, |stage| stage.see("Ask for something")), "");
}

#[test]
fn a_stop_from_elsewhere_closes_the_question_that_it_meets() {
    on_stage(
        |_| {},
        |stage| {
            stage.engine.send(question());
            stage.see("Allow this?");
            stage.interrupt.raise();
            assert_eq!(stage.hear(), answered(Answer::No));
            stage.end();
        },
    );
}

#[test]
fn a_screen_that_fails_stops_the_engine() {
    let (_engine, receiver) = screen_channel().unwrap();
    let interrupt = Interrupt::never().unwrap();
    let clock = SystemClock::start();
    // The input is not a terminal.
    let directory = fs::File::open("/").unwrap();
    let terminal = Terminal {
        keys: directory.as_fd(),
        output: io::sink(),
        size,
        taken: None,
        is_elsewhere: false,
    };
    let stop = StopAtEnd(interrupt.clone());
    let sender = channel().0;
    let mut screen = ScreenLoop::new(options(&clock), terminal, receiver, sender, stop);
    assert!(
        screen
            .run(&Signals::new(Arc::default(), Arc::default()).unwrap())
            .is_err()
    );
    drop(screen);
    assert_eq!(interrupt.take(), 1);
}

#[test]
fn a_text_is_copied_by_the_terminal() {
    on_stage(
        |_| {},
        |stage| {
            stage.engine.send(ToScreen::Copy("ä\x1b".to_owned()));
            loop {
                let bytes = stage.written.recv_timeout(LONG).unwrap();
                if bytes == b"\x1b]52;c;w6Qb\x07" {
                    break;
                }
            }
            stage.end();
        },
    );
}

#[test]
fn a_draft_is_edited_and_left_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let draft = dir.path().join("draft.md");
    let interrupt = Interrupt::never().unwrap();
    let edited =
        |command: &str, draft: &Path, text: &str| editor::edited(command, draft, text, &interrupt);
    assert_eq!(
        edited("sed -i s/old/new/", &draft, "an old text").unwrap(),
        "an new text"
    );
    assert!(!draft.exists());
    for (command, expected) in [
        ("false", "failed"),
        ("no-such-editor-here", "cannot start"),
        ("sh -c 'printf \\\\377 > $0'", "not UTF-8"),
        ("rm", "No such file"),
    ] {
        let problem = edited(command, &draft, "text").unwrap_err();
        assert!(problem.contains(expected), "{problem}");
        assert!(!draft.exists());
    }
}

#[test]
fn frames_are_what_has_changed() {
    let mut painter = Painter::default();
    let size = Size::new(10, 2);
    let draw = |text: &'static str, cursor: Option<(u16, u16)>| {
        move |buf: &mut ratatui::buffer::Buffer| {
            buf.set_string(0, 0, text, ratatui::style::Style::new());
            cursor.map(Into::into)
        }
    };
    let mut frame = |text, cursor| {
        let bytes = painter.frame(size, draw(text, cursor)).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let first = frame("hello", Some((5, 0)));
    assert!(
        first.starts_with("\x1b[?2026h\x1b[?25l")
            && first.ends_with("\x1b[1;6H\x1b[?25h\x1b[?2026l")
    );
    assert!(first.contains("hello"));
    assert_eq!(frame("hello", Some((5, 0))), "");
    assert_eq!(
        frame("hello", Some((4, 0))),
        "\x1b[?2026h\x1b[?25l\x1b[1;5H\x1b[?25h\x1b[?2026l"
    );
    let changed = frame("hallo", Some((4, 0)));
    assert!(changed.contains('a') && !changed.contains("hallo"));
    assert_eq!(frame("hallo", None), "\x1b[?2026h\x1b[?25l\x1b[?2026l");
    painter.forget();
    let whole = painter.frame(size, draw("hallo", None)).unwrap();
    assert!(String::from_utf8(whole).unwrap().contains("\x1b[2J"));
    let smaller = painter.frame(Size::new(4, 1), draw("hallo", None));
    let smaller = smaller.unwrap();
    assert!(String::from_utf8(smaller).unwrap().contains("hall"));
}
