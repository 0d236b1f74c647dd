//! Tests that truncation keeps calls with their results, and keeps the last request.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;
use crate::agent::host::Host;
use crate::agent::permissions::Everything;
use crate::agent::protocol::native::{Native, tests::check};
use crate::agent::{Agent, Brief, Env, Note, ToolTries};
use crate::model::message::{Call, Message};
use crate::model::prompt::Prompt;
use crate::model::{Purpose, Reply};
use crate::record::event::{Event, Reporter};
use crate::secret::Redactor;
use crate::sys::environment::SystemClock;

/// A model that answers with these words; a truncation asks no model.
struct Says(&'static str);

impl Host for Says {
    fn ask(&self, purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, AgentError> {
        assert_eq!(*purpose, Purpose::COMPRESSION);
        assert!(prompt.form.tools.is_empty());
        assert!(!self.0.is_empty(), "no model is asked");
        Ok(Reply::of_text(self.0))
    }

    fn note(&self, _: Note<'_>) -> Result<(), AgentError> {
        Ok(())
    }

    fn check(&self) -> Result<(), AgentError> {
        Ok(())
    }
}

/// Makes the agent read a file of this many characters.
fn reads(conversation: &mut Conversation, characters: usize) {
    let id = format!("call-{}", conversation.history.len());
    conversation.say(HistoryMessage {
        calls: vec![Call {
            id: id.clone(),
            name: "read_file".to_owned(),
            input: serde_json::json!({"path": "a"}),
            ..Call::default()
        }],
        ..HistoryMessage::of_agent("I look.")
    });
    let content = "line of text\n".repeat(characters / 13);
    conversation.say(HistoryMessage::of_tool("read_file", &id, content));
}

fn answers(conversation: &mut Conversation) {
    conversation.say(HistoryMessage::of_agent("Done."));
}

fn frame<'f>(host: &'f dyn Host, system: &'f [String], protocol: &'f Native) -> Frame<'f> {
    Frame {
        host,
        system,
        protocol,
    }
}

/// Returns the messages that are sent next, and the extent of the compression.
fn next(
    truncate: &Truncate<'_>,
    conversation: &mut Conversation,
) -> Result<(Vec<Message<'static>>, Option<Compressed>), AgentError> {
    let native = Native::default();
    let system = ["system".to_owned()];
    let view = truncate.view(frame(&Says(""), &system, &native), conversation)?;
    Ok((view.messages, view.compressed))
}

fn words(messages: &[Message<'_>]) -> Vec<String> {
    messages.iter().map(ToString::to_string).collect()
}

#[test]
fn the_first_request_a_notice_and_the_last_twenty_messages_are_left() {
    let meter = Meter::default();
    let truncate = Truncate {
        window: 10_000,
        threshold: 80,
        meter: &meter,
    };
    let mut conversation = Conversation::default();
    conversation.request("the first request");
    let (sent, compressed) = next(&truncate, &mut conversation).unwrap();
    assert_eq!((sent.len(), compressed), (1, None));
    while tokens_of(&conversation.history) < 8000 {
        assert_eq!(next(&truncate, &mut conversation).unwrap().1, None);
        reads(&mut conversation, 1000);
    }
    let whole = conversation.clone();
    let (sent, compressed) = next(&truncate, &mut conversation).unwrap();
    let compressed = compressed.unwrap();
    assert!(compressed.tokens_before >= 8000 && compressed.tokens_after < 4000);
    assert_eq!(check(&sent), Ok(()));
    let told = words(&sent);
    assert!(told[0].contains("the first request"), "{}", told[0]);
    assert_eq!(
        told[1],
        "<context_truncated>Older messages removed to save space</context_truncated>"
    );
    assert_eq!(told.len(), 2 + 20);
    // The whole history is kept, and messages that were sent are sent again unchanged.
    assert_eq!(conversation.history, whole.history);
    reads(&mut conversation, 1000);
    let (more, compressed) = next(&truncate, &mut conversation).unwrap();
    assert_eq!((&more[..sent.len()], compressed), (&sent[..], None));
}

#[test]
fn the_last_twenty_messages_are_kept_wherever_they_fit_below_the_threshold() {
    // Ten replies and their results take 76 per cent, whether whole or shortened.
    for characters in [3000, 30_000] {
        let truncate = Truncate {
            window: 10_000,
            threshold: 80,
            meter: &Meter::default(),
        };
        let mut conversation = Conversation::default();
        conversation.request("the first request");
        for nth in 0..12 {
            reads(&mut conversation, characters);
            let words = "word ".repeat(if characters > 3000 { 540 } else { 0 });
            let content = &mut conversation.history[2 * nth + 1].content;
            *content = format!("{content}{words}").into();
        }
        let (sent, compressed) = next(&truncate, &mut conversation).unwrap();
        let after = compressed.unwrap().tokens_after;
        assert!((7000..8000).contains(&after), "{after}");
        assert_eq!(words(&sent).len(), 2 + 20);
        let is_shortened = words(&sent)
            .iter()
            .any(|told| told.contains(" left out ...]"));
        assert_eq!(is_shortened, characters > 3000);
    }
}

#[test]
fn truncation_uses_the_vendors_count() {
    let meter = Meter::default();
    let truncate = Truncate {
        window: 10_000,
        threshold: 80,
        meter: &meter,
    };
    let mut conversation = Conversation::default();
    conversation.request("x");
    assert_eq!(meter.used(&conversation), 0);
    for _ in 0..15 {
        next(&truncate, &mut conversation).unwrap();
        reads(&mut conversation, 130);
    }
    // Messages after the reply are estimated from their characters.
    meter.answered(&Usage::plain(7900, 60));
    assert_eq!(meter.used(&conversation), 7960 + 130 / 4 + 1);
    assert_eq!(next(&truncate, &mut conversation).unwrap().1, None);
    meter.answered(&Usage::plain(7990, 10));
    let compressed = next(&truncate, &mut conversation).unwrap().1.unwrap();
    assert_eq!(compressed.tokens_before, 8000);
    assert!(
        (4500..7000).contains(&compressed.tokens_after),
        "{compressed:?}"
    );
    assert_eq!(meter.used(&conversation), compressed.tokens_after);
}

#[test]
fn long_results_lose_their_middles_the_old_ones_first() {
    let meter = Meter::default();
    let truncate = Truncate {
        window: 20_000,
        threshold: 80,
        meter: &meter,
    };
    let mut conversation = Conversation::default();
    conversation.request(&"first ".repeat(100));
    for _ in 0..5 {
        reads(&mut conversation, 16_000);
    }
    let (sent, compressed) = next(&truncate, &mut conversation).unwrap();
    assert!(compressed.is_some());
    let told = words(&sent);
    assert_eq!(sent.len(), 11);
    assert!(told[0].contains(&"first ".repeat(100)));
    for old in [2, 4, 6, 8] {
        assert!(told[old].contains(" left out ...]"), "{}", told[old]);
    }
    assert!(!told[10].contains(" left out ...]"));
    // If results are very long, even the last one is shortened.
    reads(&mut conversation, 100_000);
    let (sent, compressed) = next(&truncate, &mut conversation).unwrap();
    assert!(compressed.is_some());
    assert!(words(&sent).last().unwrap().contains(" left out ...]"));
}

#[test]
fn the_last_request_is_sent_whole_or_nothing_is() {
    let meter = Meter::default();
    let truncate = Truncate {
        window: 10_000,
        threshold: 80,
        meter: &meter,
    };
    let mut conversation = Conversation::default();
    conversation.request("the first request");
    answers(&mut conversation);
    conversation.request("the second request");
    for _ in 0..40 {
        reads(&mut conversation, 1000);
    }
    let told = words(&next(&truncate, &mut conversation).unwrap().0);
    assert!(told[0].contains("the first") && told[2].contains("the second"));
    assert_eq!(told.len(), 3 + 20);
    // A request that almost fills the window leaves no room for anything else, but is not truncated over and over.
    let long = "word ".repeat(7000);
    conversation.request(&long);
    let (sent, compressed) = next(&truncate, &mut conversation).unwrap();
    assert!(compressed.is_some());
    assert!(words(&sent).last().unwrap().contains(&long));
    reads(&mut conversation, 100);
    assert_eq!(next(&truncate, &mut conversation).unwrap().1, None);
    let before = conversation.clone();
    conversation.request(&"word ".repeat(8001));
    let error = next(&truncate, &mut conversation).unwrap_err();
    assert!(matches!(error, AgentError::TooLong { window: 10_000, .. }));
    assert_eq!(conversation.truncation, before.truncation);
}

#[test]
fn rejected_history_is_halved() {
    let meter = Meter::default();
    let truncate = Truncate {
        window: 1_000_000,
        threshold: 80,
        meter: &meter,
    };
    let mut conversation = Conversation::default();
    conversation.request("x");
    assert_eq!(shorten(&truncate, &mut conversation), None);
    for _ in 0..40 {
        reads(&mut conversation, 1000);
    }
    let compressed = shorten(&truncate, &mut conversation).unwrap();
    assert!(compressed.tokens_after <= compressed.tokens_before / 2);
}

fn shorten(truncate: &Truncate<'_>, conversation: &mut Conversation) -> Option<Compressed> {
    let native = Native::default();
    truncate
        .shorten(frame(&Says(""), &[], &native), conversation)
        .unwrap()
}

#[test]
fn a_summary_takes_the_place_of_all_or_nothing_changes() {
    let meter = Meter::default();
    let mut conversation = Conversation::default();
    conversation.request("the first request");
    for _ in 0..3 {
        reads(&mut conversation, 1000);
    }
    answers(&mut conversation);
    let before = conversation.clone();
    let long: &'static str = Box::leak("sum ".repeat(2000).into_boxed_str());
    let native = Native::default();
    let summarize = |says, conversation: &mut Conversation| {
        summarize(
            frame(&Says(says), &[], &native),
            &meter,
            100_000,
            ("Sum up.", "the tests"),
            conversation,
        )
    };
    let error = summarize(long, &mut conversation).unwrap_err();
    assert!(matches!(error, AgentError::NotCompressed { .. }), "{error}");
    assert_eq!(conversation, before);
    let compressed = summarize("It was read.", &mut conversation).unwrap();
    assert!(compressed.tokens_after < compressed.tokens_before);
    assert_eq!(conversation.earlier, before.history);
    assert_eq!(conversation.history.len(), 1);
    assert!(conversation.history[0].is_summary());
    assert_eq!(meter.used(&conversation), compressed.tokens_after);
}

/// An event in a session.
#[derive(Debug, Clone)]
enum Happens {
    /// A request of this length, with this many attached files.
    Request(usize, usize),
    /// The agent reads files of these sizes; the last ones get no result.
    Reads(Vec<usize>, usize),
    Answers,
    Reminder,
    Refused,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        1 => (1usize..3000, 0usize..3).prop_map(|(length, files)| Happens::Request(length, files)),
        6 => (prop::collection::vec(0usize..6000, 1..5), 0usize..2).prop_map(|(sizes, lost)| Happens::Reads(sizes, lost)),
        1 => Just(Happens::Answers),
        1 => Just(Happens::Reminder),
        1 => Just(Happens::Refused),
    ]
}

fn happen(what: &Happens, conversation: &mut Conversation) {
    match what {
        Happens::Request(length, files) => {
            conversation.request(&format!(
                "{} {}",
                conversation.requests.len(),
                "w".repeat(*length)
            ));
            let file = || HistoryMessage::tagged(format!("<file>\n{}\n</file>", "x\n".repeat(500)));
            conversation.history.extend((0..*files).map(|_| file()));
        }
        Happens::Reads(sizes, lost) => {
            let call = |at: usize| Call {
                id: format!("call-{at}"),
                name: "read_file".to_owned(),
                input: serde_json::json!({}),
                ..Call::default()
            };
            let calls: Vec<Call> = (0..sizes.len()).map(call).collect();
            let heard = sizes.len() - lost.min(&sizes.len());
            conversation.say(HistoryMessage {
                calls: calls.clone(),
                ..HistoryMessage::of_agent("I look.")
            });
            for (call, size) in calls.iter().zip(sizes).take(heard) {
                let result = HistoryMessage::of_tool("read_file", &call.id, "r".repeat(*size));
                conversation.say(result);
            }
        }
        Happens::Answers => answers(conversation),
        Happens::Reminder => conversation.say(HistoryMessage::reminder("the mode")),
        Happens::Refused => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_history_keeps_the_last_request_and_all_results(
        all in prop::collection::vec(happens(), 0..40)
    ) {
        let meter = Meter::default();
        let truncate = Truncate { window: 6000, threshold: 60, meter: &meter };
        let mut conversation = Conversation::default();
        conversation.request("0 the first request");
        let mut sent: Vec<Message<'static>> = Vec::new();
        for what in &all {
            happen(what, &mut conversation);
            let shortened = match what {
                Happens::Refused => shorten(&truncate, &mut conversation),
                _ => None,
            };
            let (now, compressed) = next(&truncate, &mut conversation).unwrap();
            prop_assert_eq!(check(&now), Ok(()));
            let told = words(&now);
            let last = conversation.requests.last().unwrap();
            prop_assert!(told.iter().any(|message| message.contains(last)), "{last}");
            prop_assert!(told[0].contains("0 the first request"));
            let tokens = estimate(&["system".to_owned()], &super::sent(&conversation));
            prop_assert!(tokens <= 6000, "{tokens}");
            // Only compression changes messages that were sent, and those left open by an interruption.
            if compressed.is_none() && shortened.is_none() {
                let same = sent.iter().zip(&now).take_while(|(then, now)| then == now).count();
                prop_assert!(same + 2 >= sent.len(), "{same} of {}", sent.len());
            }
            sent = now;
        }
    }
}

/// A host that answers, and records what it receives.
#[derive(Default)]
struct Told {
    events: RefCell<Vec<Event>>,
    asked: Cell<usize>,
}

impl Host for Told {
    fn ask(&self, _: &Purpose, _: Prompt<'_>) -> Result<Reply, AgentError> {
        self.asked.set(self.asked.get() + 1);
        Ok(Reply::of_text("Done."))
    }

    fn note(&self, _: Note<'_>) -> Result<(), AgentError> {
        Ok(())
    }

    fn check(&self) -> Result<(), AgentError> {
        Ok(())
    }
}

impl Reporter for Told {
    fn event(&self, event: &Event) {
        self.events.borrow_mut().push(event.clone());
    }

    fn is_live(&self) -> bool {
        false
    }
}

#[test]
fn user_is_informed_once_and_no_model_is_called() {
    let meter = Meter::default();
    let told = Told::default();
    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    let agent = Agent {
        purpose: Purpose::STEP,
        brief: &Brief::default,
        protocol: &Native::default(),
        permissions: &Everything,
        memory: &Truncate {
            window: 10_000,
            threshold: 80,
            meter: &meter,
        },
        ending: &|_, _| Ok(()),
        tries: 1,
        tool_tries: ToolTries::Unlimited,
        calls: None,
        temperature: None,
        env: Env {
            host: &told,
            reporter: &told,
            clock: &clock,
            redactor: &redactor,
            censor: None,
        },
    };
    let mut conversation = Conversation::default();
    conversation.request("x");
    for _ in 0..40 {
        reads(&mut conversation, 1000);
    }
    for asked in 1..3 {
        agent.work_on(&mut conversation, Some("more")).unwrap();
        assert_eq!(told.asked.get(), asked);
        let events = told.events.borrow();
        let is_told = |event: &&Event| matches!(event, Event::Notice(text) if text == "Auto-compacting conversation...");
        assert_eq!(events.iter().filter(is_told).count(), 1);
    }
}
