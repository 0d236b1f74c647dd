//! Tests of the loop by itself, with a scripted model, a protocol of single words and tools that do nothing.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::*;
use crate::agent::audit::work_until_passed;
use crate::agent::conversation::CUT_SHORT;
use crate::agent::host::Host;
use crate::agent::memory::{Frame, View};
use crate::agent::permissions::Everything;
use crate::agent::protocol::Offer;
use crate::agent::tool::{Arguments, Effect, Parameter, ToolSpec};
use crate::model::Reply;
use crate::model::prompt::Prompt;
use crate::record::event::Reporter;
use crate::secret::Redactor;
use crate::sys::environment::SystemClock;

/// Returns one tool per effect; `breaks` fails.
fn tools() -> [ToolSpec; 4] {
    let of = |name, effect| ToolSpec::new(name, "", &[], effect);
    [
        of("look", Effect::Reads),
        of("run", Effect::Runs),
        of("breaks", Effect::Reads),
        of("stop", Effect::Ends),
    ]
}

/// Finds a tool's description and gives it a static lifetime.
fn spec(name: &str) -> &'static ToolSpec {
    static TOOLS: std::sync::LazyLock<[ToolSpec; 4]> = std::sync::LazyLock::new(tools);
    TOOLS.iter().find(|spec| spec.name == name).unwrap()
}

struct Named(&'static ToolSpec);

impl Tool for Named {
    fn run(&self, _arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        match &*self.0.name {
            "breaks" => Err(ToolError::from("it broke".to_owned())),
            name => Ok(ToolOutput {
                text: format!("{name} done"),
                is_end: self.0.effect == Effect::Ends,
                ..ToolOutput::default()
            }),
        }
    }
}

/// A protocol whose replies are tool names, or an answer in quotes.
struct Words;

impl Protocol for Words {
    fn offer(&self, _tools: &Toolbox<'_>) -> Offer {
        Offer::default()
    }

    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let said = reply.text.as_str();
        let call = |(name, number): (&str, usize)| {
            tools.named(name).map(|_| Call {
                id: format!("call-{number}"),
                name: name.to_owned(),
                input: serde_json::json!({}),
                ..Call::default()
            })
        };
        let calls: Option<Vec<Call>> = said.split(' ').zip(1..).map(call).collect();
        let decision = match (said.strip_prefix('"'), calls) {
            (Some(answer), _) => Decision::Answer(answer.trim_end_matches('"').to_owned()),
            (None, Some(calls)) => Decision::Use(calls),
            (None, None) => {
                let problem = format!("`{said}` names no tools");
                return Err(Fault::at(1, problem));
            }
        };
        Ok(Turn {
            parts: Vec::new(),
            outside: String::new(),
            thoughts: String::new(),
            tasks: None,
            decision,
            note: None,
            remembered: said.to_owned(),
        })
    }
}

/// A memory that sends the whole conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::agent) struct All;

impl Memory for All {
    fn view(&self, frame: Frame<'_>, conversation: &mut Conversation) -> Result<View, AgentError> {
        Ok(View {
            messages: frame.protocol.render(&conversation.history),
            system: None,
            compressed: None,
        })
    }
}

/// A host that answers from a script and records its calls.
#[derive(Default)]
struct Script {
    replies: RefCell<VecDeque<&'static str>>,
    /// The tools that were used, and whether they failed.
    used: RefCell<Vec<(String, bool)>>,
    /// The conversation saved last.
    kept: RefCell<Conversation>,
    /// The number of saves after which saving fails, as if the process had died.
    gone_after: Cell<Option<usize>>,
}

impl Script {
    fn new(replies: &[&'static str]) -> Self {
        Self {
            replies: RefCell::new(replies.iter().copied().collect()),
            ..Self::default()
        }
    }
}

fn interrupted() -> AgentError {
    let signal = crate::sys::interrupt::Signal::Term;
    crate::sys::interrupt::Interrupted { signal }.into()
}

impl Host for Script {
    fn ask(&self, _purpose: &Purpose, _prompt: Prompt<'_>) -> Result<Reply, AgentError> {
        let reply = self.replies.borrow_mut().pop_front();
        Ok(Reply::of_text(reply.expect("the script goes on")))
    }

    fn note(&self, note: Note<'_>) -> Result<(), AgentError> {
        if let Note::Acted(action, _) = note {
            let mut list = self.used.borrow_mut();
            list.push((action.tool.into_owned(), action.failed));
        }
        Ok(())
    }

    fn save(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), AgentError> {
        match self.gone_after.get() {
            Some(0) => return Err(interrupted()),
            left => self.gone_after.set(left.map(|left| left - 1)),
        }
        if *purpose == Purpose::STEP {
            self.kept.borrow_mut().clone_from(conversation);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), AgentError> {
        Ok(())
    }
}

struct Silent;

impl Reporter for Silent {
    fn event(&self, _event: &Event) {}

    fn is_live(&self) -> bool {
        false
    }
}

fn brief<'a>() -> Brief<'a> {
    let names = ["look", "run", "breaks", "stop"];
    let tools = names.iter();
    Brief {
        instructions: String::new(),
        tools: tools.fold(Toolbox::default(), |tools, name| {
            tools.with(spec(name), Named(spec(name)))
        }),
        ..Brief::default()
    }
}

fn agent<'a>(host: &'a Script, clock: &'a SystemClock, redactor: &'a Redactor) -> Agent<'a> {
    Agent {
        purpose: Purpose::STEP,
        brief: &brief,
        protocol: &Words,
        permissions: &Everything,
        memory: &All,
        ending: &|_, _| Ok(()),
        tries: 3,
        tool_tries: ToolTries::AsReplies,
        calls: None,
        temperature: None,
        env: Env {
            host,
            reporter: &Silent,
            clock,
            redactor,
            censor: None,
        },
    }
}

/// Runs an agent whose model gives these answers.
fn work(
    host: &Script,
    conversation: &mut Conversation,
    request: Option<&str>,
) -> Result<Ended, AgentError> {
    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    agent(host, &clock, &redactor).work_on(conversation, request)
}

/// Returns the history, one word per message.
fn told(conversation: &Conversation) -> Vec<String> {
    let short = |message: &HistoryMessage| match (&message.tool, &*message.content) {
        (Some(tool), CUT_SHORT) => format!("{tool}: cut short"),
        (Some(tool), NOT_BEGUN) => format!("{tool}: not begun"),
        (Some(tool), content) => format!("{tool}: {content}"),
        (None, CUT_SHORT) => "cut short".to_owned(),
        (None, content) => content.lines().next().unwrap_or_default().to_owned(),
    };
    conversation.history.iter().map(short).collect()
}

fn failure(result: Result<Ended, AgentError>) -> AgentError {
    result.expect_err("it does not get there")
}

#[test]
fn an_agent_works_until_it_says_that_it_is_done() {
    for (last, words, by) in [
        ("stop", "stop done", Some("stop")),
        ("\"all of it\"", "all of it", None),
    ] {
        let host = Script::new(&["look", last]);
        let mut conversation = Conversation::default();
        let ended = work(&host, &mut conversation, Some("go")).unwrap();
        assert_eq!(
            (
                ended.words.as_str(),
                ended.by.as_ref().map(|by| by.0.as_str())
            ),
            (words, by)
        );
        assert_eq!(told(&conversation), ["go", "look", "look: look done", last]);
        assert_eq!(*host.kept.borrow(), conversation);
    }
}

#[test]
fn tools_named_together_are_used_in_order_whether_they_fail_or_not_and_none_after_the_end() {
    let host = Script::new(&["look breaks run", "run stop look"]);
    work(&host, &mut Conversation::default(), Some("go")).unwrap();
    let (well, failed) = (false, true);
    let taken = host.used.take();
    let used: Vec<(&str, bool)> = taken
        .iter()
        .map(|(name, failed)| (name.as_str(), *failed))
        .collect();
    assert_eq!(
        used,
        [
            ("look", well),
            ("breaks", failed),
            ("run", well),
            ("run", well),
            ("stop", well)
        ]
    );
}

/// A reporter that records the verbs of calls.
#[derive(Default)]
struct Verbs(RefCell<Vec<Verb>>);

impl Reporter for Verbs {
    fn event(&self, event: &Event) {
        if let Event::Tool { verb, .. } = event {
            self.0.borrow_mut().push(*verb);
        }
    }

    fn is_live(&self) -> bool {
        false
    }
}

#[test]
fn a_call_that_is_not_valid_is_reported_by_its_verb() {
    static EDIT: ToolSpec = ToolSpec::new(
        "edit",
        "",
        &[Parameter::path("path", "A file")],
        Effect::Writes,
    )
    .doing(Verb::Edit);
    let host = Script::new(&["edit", "\"done\""]);
    let (clock, redactor, verbs) = (SystemClock::start(), Redactor::default(), Verbs::default());
    let mut agent = agent(&host, &clock, &redactor);
    agent.env.reporter = &verbs;
    agent.brief = &|| Brief {
        tools: Toolbox::default().with(&EDIT, Named(&EDIT)),
        ..Brief::default()
    };
    agent
        .work_on(&mut Conversation::default(), Some("go"))
        .unwrap();
    assert_eq!(host.used.take(), [("edit".to_owned(), true)]);
    assert_eq!(verbs.0.take(), [Verb::Edit]);
}

#[test]
fn the_calls_beyond_the_hundredth_have_one_result() {
    let many = vec!["look"; 600].join(" ").leak();
    let host = Script::new(&[many, "\"done\""]);
    let mut conversation = Conversation::default();
    work(&host, &mut conversation, Some("go")).unwrap();
    assert_eq!(host.used.take().len(), 100);
    let told = told(&conversation);
    assert_eq!(told.len(), 2 + 100 + 1 + 1);
    assert!(told[102].contains("at most 100 calls"), "{}", told[102]);
}

#[test]
fn interrupted_calls_are_repeated_only_if_harmless() {
    for (said, results, request, expected) in [
        // Of several calls, those without a result remain.
        (
            "look run",
            0,
            None,
            &["look: look done", "run: not begun"][..],
        ),
        ("look run", 1, None, &["run: cut short"]),
        // Calls are carried out one after the other.
        ("run run", 0, None, &["run: cut short", "run: not begun"]),
        ("run look", 1, None, &["look: look done"]),
        ("look run", 2, None, &[]),
        ("look", 0, Some("else"), &["look: cut short", "else"]),
        // A call that can no longer be parsed.
        ("gone", 0, None, &["cut short"]),
        ("gone", 1, None, &[]),
        // Finished work is not reported as unfinished.
        ("stop", 0, Some("else"), &["else"]),
    ] {
        let mut conversation = Conversation::default();
        conversation.request("go");
        conversation.say(HistoryMessage::of_agent(said));
        for (tool, number) in said.split(' ').zip(1..).take(results) {
            conversation.say(HistoryMessage::of_tool(
                tool,
                &format!("call-{number}"),
                "x",
            ));
        }
        let before = conversation.history.len();
        work(&Script::new(&["stop"]), &mut conversation, request).unwrap();
        let told = told(&conversation);
        assert_eq!(told[before..told.len() - 1], *expected, "{said} {results}");
    }
}

#[test]
fn an_end_that_was_cut_short_is_an_end() {
    for (said, words, by) in [
        ("stop", "stop done", Some("stop")),
        ("\"all of it\"", "all of it", None),
    ] {
        let mut conversation = Conversation::default();
        conversation.request("go");
        conversation.say(HistoryMessage::of_agent(said));
        let ended = work(&Script::new(&[]), &mut conversation, None).unwrap();
        assert_eq!(
            (
                ended.words.as_str(),
                ended.by.as_ref().map(|by| by.0.as_str())
            ),
            (words, by)
        );
        assert_eq!(told(&conversation), ["go", said]);
    }
}

#[test]
fn a_process_that_ends_at_any_moment_repeats_no_command_and_reports_each() {
    for moment in 0.. {
        let host = Script::new(&["run look", "look run", "stop", "stop"]);
        host.gone_after.set(Some(moment));
        if work(&host, &mut Conversation::default(), Some("go")).is_ok() {
            assert!(moment > 3, "it has ended before");
            return;
        }
        host.gone_after.set(None);
        let mut conversation = host.kept.take();
        work(&host, &mut conversation, None).unwrap();
        let used = host.used.borrow();
        let runs = used.iter().filter(|(name, _)| name == "run").count();
        assert!(runs <= 2, "{moment}: {used:?}");
        let told = told(&conversation);
        let is_batch = |said: &&String| matches!(said.as_str(), "run look" | "look run");
        let named = told.iter().filter(is_batch);
        let heard = told.iter().filter(|said| said.starts_with("run: "));
        assert_eq!(named.count(), heard.count(), "{moment}: {told:?}");
    }
}

#[test]
fn a_conversation_is_saved_before_each_call_unless_all_of_a_reply_only_read() {
    // At the beginning, before `stop` and after each reply.
    for (said, saves) in [("look look", 4), ("look run", 6), ("run", 5)] {
        let host = Script::new(&[said, "stop"]);
        host.gone_after.set(Some(100));
        work(&host, &mut Conversation::default(), Some("go")).unwrap();
        assert_eq!(host.gone_after.get(), Some(100 - saves), "{said}");
    }
}

#[test]
fn failures_in_a_row_end_the_work_and_success_starts_the_count_again() {
    let host = Script::new(&["breaks", "what?", "look", "breaks", "what?", "breaks"]);
    let mut conversation = Conversation::default();
    let error = failure(work(&host, &mut conversation, Some("go")));
    assert!(
        matches!(error, AgentError::ToolsFailed { tries: 3, .. }),
        "{error}"
    );
    assert!(host.replies.borrow().is_empty());

    let host = Script::new(&["breaks", "breaks", "what?"]);
    let error = failure(work(&host, &mut Conversation::default(), Some("go")));
    assert!(
        matches!(error, AgentError::NotUnderstood { tries: 3, .. }),
        "{error}"
    );
}

#[test]
fn malformed_last_words_are_requested_again() {
    let host = Script::new(&["stop", "\"no\"", "\"yes\""]);
    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    let picky = Agent {
        ending: &|ended, _| match ended.words.as_str() {
            "yes" => Ok(()),
            other => Err(format!("`{other}` is not yes").into()),
        },
        ..agent(&host, &clock, &redactor)
    };
    let mut conversation = Conversation::default();
    let ended = picky.work_on(&mut conversation, Some("go")).unwrap();
    assert_eq!(ended.words, "yes");
    // The same holds if the ending was interrupted.
    let host = Script::new(&["\"yes\""]);
    let picky = Agent {
        ending: &|ended, _| {
            Ok((ended.words == "yes")
                .then_some(())
                .ok_or_else(String::new)?)
        },
        ..agent(&host, &clock, &redactor)
    };
    let mut conversation = Conversation::default();
    conversation.request("go");
    conversation.say(HistoryMessage::of_agent("stop"));
    assert_eq!(picky.work_on(&mut conversation, None).unwrap().words, "yes");
}

#[test]
fn worker_gets_the_verdict_as_the_result_of_its_last_call() {
    for (end, expected) in [
        ("stop", "stop: Audit: FAIL\n\nMend it."),
        ("\"done\"", "Audit: FAIL"),
    ] {
        let verdicts = ["\"Overall: FAIL\nFeedback: Mend it.\"", "\"Overall: PASS\""];
        let host = Script::new(&[end, verdicts[0], "stop", verdicts[1]]);
        let (clock, redactor) = (SystemClock::start(), Redactor::default());
        let (worker, auditor) = (
            agent(&host, &clock, &redactor),
            agent(&host, &clock, &redactor),
        );
        let mut conversation = Conversation::default();
        work_until_passed(&worker, &auditor, &mut conversation, Some("go")).unwrap();
        assert_eq!(told(&conversation)[2], expected);
    }
}

#[test]
fn a_helper_works_apart_and_leaves_nothing_but_its_last_words() {
    let host = Script::new(&["look", "\"found it\""]);
    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    let helper = Agent {
        purpose: Purpose::new("helper"),
        ..agent(&host, &clock, &redactor)
    };
    assert_eq!(helper.work_apart("go").unwrap(), "found it");
    assert_eq!(host.used.take(), [("look".to_owned(), false)]);
    assert_eq!(*host.kept.borrow(), Conversation::default());
}

#[test]
fn results_and_failures_are_censored_for_the_model() {
    let host = Script::new(&["look breaks", "\"bye\""]);
    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    let censor = |text: &str| text.replace("done", "***").replace("broke", "***");
    let mut agent = agent(&host, &clock, &redactor);
    agent.env.censor = Some(&censor);
    let mut conversation = Conversation::default();
    agent.work_on(&mut conversation, Some("go")).unwrap();
    assert_eq!(
        told(&conversation),
        [
            "go",
            "look breaks",
            "look: look ***",
            "breaks: ERROR: it ***",
            "\"bye\""
        ]
    );
}

#[test]
fn forbidden_calls_do_not_count_as_tool_failures() {
    struct Nothing;

    impl Permissions for Nothing {
        fn decide(&self, _: &ToolCall) -> Permission {
            Permission::Refused("no".to_owned())
        }
    }

    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    let replies = ["look", "look", "look", "look", "\"done\""];
    for (tool_tries, is_done) in [(ToolTries::UpTo(3), true), (ToolTries::AsReplies, false)] {
        let host = Script::new(&replies);
        let agent = Agent {
            permissions: &Nothing,
            tool_tries,
            ..agent(&host, &clock, &redactor)
        };
        let done = agent.work_on(&mut Conversation::default(), Some("go"));
        assert_eq!(done.is_ok(), is_done);
    }
}
