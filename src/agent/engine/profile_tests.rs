//! Tests of the engine with a throw-away profile: its own protocol and tools, permissions that ask and change their
//! mode, a screen on another thread, and no session, settings, log or lock. The engine needs no changes for it.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::json;

use super::tests::All;
use super::*;
use crate::agent::host::Host;
use crate::agent::permissions::{Permission, Permissions};
use crate::agent::protocol::Offer;
use crate::agent::tool::{Arguments, Effect, ToolSpec};
use crate::model::Reply;
use crate::model::prompt::Prompt;
use crate::record::event::Reporter;
use crate::record::question::Question;
use crate::secret::Redactor;
use crate::sys::environment::{RecordedClock, SystemClock};
use crate::sys::interrupt::{Interrupt, Interrupted, Signal};

/// A protocol of `CALL tool text`; anything else is the answer.
struct Lines;

impl Protocol for Lines {
    fn offer(&self, tools: &Toolbox<'_>) -> Offer {
        let names: Vec<&str> = tools.specs().map(|spec| &*spec.name).collect();
        Offer {
            instructions: format!("Reply with `CALL tool text`; tools: {}", names.join(", ")),
            ..Offer::default()
        }
    }

    fn read(&self, reply: &Reply, _tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let mut words = reply.text.splitn(3, ' ');
        let decision = match (words.next(), words.next(), words.next()) {
            (Some("CALL"), Some(tool), Some(text)) => Decision::Use(vec![Call {
                id: "1".to_owned(),
                name: tool.to_owned(),
                input: json!({ "text": text }),
                ..Call::default()
            }]),
            _ => Decision::Answer(reply.text.to_string()),
        };
        Ok(Turn {
            parts: Vec::new(),
            outside: String::new(),
            thoughts: String::new(),
            tasks: None,
            decision,
            note: None,
            remembered: reply.text.to_string(),
        })
    }
}

/// A tool registered at run time, with its own schema and a preview.
#[derive(Default)]
struct Post(Cell<u32>);

static POST: std::sync::LazyLock<ToolSpec> = std::sync::LazyLock::new(|| ToolSpec {
    schema: Some(
        json!({"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}),
    ),
    ..ToolSpec::new("post", "Posts a text.", &[], Effect::Writes)
});

impl Tool for Post {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(format!(
            "posted {}",
            arguments.get("text")
        )))
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        match arguments.get("text") {
            "nothing" => Err(ToolError::from("there is nothing to post".to_owned())),
            // Someone else keeps posting.
            "last" => {
                self.0.set(self.0.get() + 1);
                Ok(Some(format!("+ last, behind {}", self.0.get())))
            }
            text => Ok(Some(format!("+ {text}"))),
        }
    }
}

/// Asks before the first write, and allows the rest.
struct AskOnce(Cell<bool>);

impl Permissions for AskOnce {
    fn decide(&self, call: &ToolCall) -> Permission {
        if self.0.replace(true) {
            return Permission::Allowed;
        }
        Permission::Ask(format!("{} may write?", call.tool.name).into())
    }
}

/// The engine's handle to the screen's thread.
struct Screen<'c> {
    clock: &'c RecordedClock<'c>,
    events: Sender<Event>,
    answers: Receiver<Answer>,
    stop: Interrupt,
    replies: Cell<&'static [&'static str]>,
}

impl Reporter for Screen<'_> {
    fn event(&self, event: &Event) {
        self.events.send(event.clone()).unwrap();
    }

    fn is_live(&self) -> bool {
        true
    }
}

impl Host for Screen<'_> {
    fn ask(&self, _purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, AgentError> {
        let system = prompt.sections()[0].1.concat();
        assert!(system.contains("tools: post"), "{system}");
        let [reply, rest @ ..] = self.replies.get() else {
            panic!("the script goes on");
        };
        self.replies.set(rest);
        Ok(Reply::of_text(*reply))
    }

    fn note(&self, _note: Note<'_>) -> Result<(), AgentError> {
        Ok(())
    }

    fn confirm(&self, question: &Question, preview: Option<&str>) -> Result<Answer, AgentError> {
        let asked = format!("{} {}", question.sentence, preview.unwrap_or_default());
        self.event(&Event::Notice(asked));
        // The user takes an hour to answer.
        self.clock.set(Duration::from_hours(1));
        // A user who closes the screen stops the agent.
        let signal = Signal::Int;
        self.answers
            .recv()
            .map_err(|_| Interrupted { signal }.into())
    }

    fn check(&self) -> Result<(), AgentError> {
        Ok(self.stop.check()?)
    }
}

/// Runs the engine on a thread of its own; `act` is the screen.
fn run(
    replies: &'static [&'static str],
    act: impl FnOnce(&Receiver<Event>, Sender<Answer>, &Interrupt),
) -> Result<String, AgentError> {
    let (events, shown) = channel();
    let (answer, answers) = channel();
    let stop = Interrupt::never().unwrap();
    let raised = stop.clone();
    let engine = thread::spawn(move || {
        let replies = Cell::new(replies);
        let (system, redactor) = (SystemClock::start(), Redactor::default());
        let clock = RecordedClock::new(&system);
        clock.set(Duration::ZERO);
        let screen = Screen {
            clock: &clock,
            events,
            answers,
            stop,
            replies,
        };
        let agent = Agent {
            purpose: Purpose::new("chat"),
            brief: &|| Brief {
                instructions: "Chat.".to_owned(),
                tools: Toolbox::default().with(&POST, Post::default()),
                ..Brief::default()
            },
            protocol: &Lines,
            permissions: &AskOnce(Cell::new(false)),
            memory: &All,
            ending: &|_, _| Ok(()),
            tries: 2,
            tool_tries: ToolTries::AsReplies,
            calls: None,
            temperature: None,
            env: Env {
                host: &screen,
                reporter: &screen,
                clock: &clock,
                redactor: &redactor,
                censor: None,
            },
        };
        let ended = agent.work_on(&mut Conversation::default(), Some("hello"))?;
        Ok(ended.words)
    });
    act(&shown, answer, &raised);
    engine.join().unwrap()
}

#[test]
fn a_profile_of_its_own_asks_shows_and_ends() {
    let replies = &["CALL post one", "CALL post two", "CALL post", "bye"];
    for (allowed, first, brief) in [
        (true, "posted one", None),
        (
            false,
            "the user does not allow this; ask, or do it another way",
            Some("not allowed"),
        ),
    ] {
        let mut told = Vec::new();
        let words = run(replies, |shown, answer, _| {
            for event in shown {
                match event {
                    Event::Notice(asked) => {
                        assert_eq!(asked, "post may write? + one");
                        answer
                            .send(if allowed { Answer::Yes } else { Answer::No })
                            .unwrap();
                    }
                    Event::ToolResult { end, .. } => told.push((end.text, end.brief, end.took)),
                    _ => {}
                }
            }
        });
        assert_eq!(words.unwrap(), "CALL post");
        // The time that the user takes to answer does not count as the tool's.
        let expected = [(first, brief), ("posted two", None)];
        assert_eq!(
            told,
            expected.map(|(text, brief): (&str, Option<&str>)| (
                text.to_owned(),
                brief.map(str::to_owned),
                Duration::ZERO
            ))
        );
    }
}

#[test]
fn nothing_that_would_fail_is_asked_about() {
    let mut told = Vec::new();
    let replies = &["CALL post nothing", "CALL post two", "CALL post", "bye"];
    let words = run(replies, |shown, _answer, _| {
        for event in shown {
            match event {
                Event::Notice(asked) => panic!("{asked}"),
                Event::ToolResult { end, .. } => told.push(end.text),
                _ => {}
            }
        }
    });
    words.unwrap();
    assert_eq!(told, ["there is nothing to post", "posted two"]);
}

#[test]
fn call_whose_effect_changed_after_consent_is_not_run() {
    let mut told = Vec::new();
    let replies = &["CALL post last", "CALL post two", "CALL post", "bye"];
    let words = run(replies, |shown, answer, _| {
        for event in shown {
            match event {
                Event::Notice(asked) => {
                    assert_eq!(asked, "post may write? + last, behind 1");
                    answer.send(Answer::Yes).unwrap();
                }
                Event::ToolResult { end, .. } => told.push(end.text),
                _ => {}
            }
        }
    });
    words.unwrap();
    assert!(told[0].contains("nothing was done"), "{told:?}");
    assert_eq!(told[1], "posted two");
}

#[test]
fn a_stop_from_the_screen_ends_the_work_between_two_steps() {
    let stopped = run(
        &["CALL post one", "CALL post two"],
        |shown, answer, stop| {
            for event in shown {
                if matches!(event, Event::Notice(_)) {
                    stop.raise();
                    answer.send(Answer::Yes).unwrap();
                }
            }
        },
    );
    assert!(
        matches!(stopped, Err(AgentError::Interrupted(_))),
        "{stopped:?}"
    );
}
