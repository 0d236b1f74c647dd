//! The loop by itself: a script in the place of a model, a protocol of words, tools that do nothing.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use super::audit::work_until_passed;
use super::memory::Compress;
use super::permissions::Everything;
use super::*;
use crate::sys::environment::SystemClock;

/// A tool of each effect. `breaks` fails.
fn tools() -> [ToolSpec; 4] {
    let of = |name, effect| ToolSpec {
        name,
        summary: "",
        parameters: &[],
        effect,
    };
    [
        of("look", Effect::Reads),
        of("run", Effect::Runs),
        of("breaks", Effect::Reads),
        of("stop", Effect::Ends),
    ]
}

/// The same for good, as tools' descriptions are.
fn spec(name: &str) -> &'static ToolSpec {
    static TOOLS: std::sync::LazyLock<[ToolSpec; 4]> = std::sync::LazyLock::new(tools);
    TOOLS.iter().find(|spec| spec.name == name).unwrap()
}

struct Named(&'static ToolSpec);

impl tool::Tool for Named {
    fn spec(&self) -> &'static ToolSpec {
        self.0
    }

    fn run(&self, _arguments: &tool::Arguments) -> Result<ToolOutput, ToolError> {
        match self.0.name {
            "breaks" => Err(ToolError::Failed("it broke".to_owned())),
            name => Ok(ToolOutput {
                text: format!("{name} done"),
                is_end: self.0.effect == Effect::Ends,
            }),
        }
    }
}

/// A reply is the names of tools, or an answer in quotes.
struct Words;

impl Protocol for Words {
    fn instructions(&self, _tools: &Toolbox<'_>) -> String {
        String::new()
    }

    fn read(&self, reply: &Reply, tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        let said = reply.text.as_str();
        let call = |name: &str| {
            let spec = tools.specs().find(|spec| spec.name == name);
            spec.map(|tool| ToolCall {
                tool,
                arguments: tool::Arguments::default(),
                shown: String::new(),
            })
        };
        let calls: Option<Vec<ToolCall>> = said.split(' ').map(call).collect();
        let decision = match (said.strip_prefix('"'), calls.map(VecDeque::from)) {
            (Some(answer), _) => Decision::Answer(answer.trim_end_matches('"').to_owned()),
            (None, Some(mut calls)) => Decision::Use(calls.pop_front().unwrap(), calls.into()),
            (None, None) => {
                let problem = format!("`{said}` names no tools");
                return Err(Fault::at(1, problem));
            }
        };
        Ok(Turn {
            thoughts: String::new(),
            tasks: None,
            decision,
            remembered: said.to_owned(),
            note: None,
        })
    }
}

/// Answers by a script, and keeps what it is told.
#[derive(Default)]
struct Script {
    replies: RefCell<VecDeque<&'static str>>,
    /// The tools that were used, and whether they failed.
    used: RefCell<Vec<(&'static str, bool)>>,
    /// What was kept last.
    kept: RefCell<Conversation>,
    /// From this many keeps on, they fail, as if the process were gone.
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

fn interrupted() -> Error {
    let signal = crate::sys::interrupt::Signal::Term;
    Interrupted { signal }.into()
}

impl Host for Script {
    fn ask(&self, _purpose: &Purpose, _prompt: Prompt<'_>) -> Result<Reply, Error> {
        let reply = self.replies.borrow_mut().pop_front();
        Ok(Reply {
            text: reply.expect("the script goes on").to_owned().into(),
            finish: "stop".to_owned(),
            usage: None,
            model_version: None,
        })
    }

    fn used(&self, used: &Used<'_>) -> Result<(), Error> {
        let mut list = self.used.borrow_mut();
        list.push((used.call.tool.name, used.failed));
        Ok(())
    }

    fn keep(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error> {
        match self.gone_after.get() {
            Some(0) => return Err(interrupted()),
            left => self.gone_after.set(left.map(|left| left - 1)),
        }
        if *purpose == Purpose::STEP {
            self.kept.borrow_mut().clone_from(conversation);
        }
        Ok(())
    }

    fn compressed(&self, _purpose: &Purpose, _compressed: Compressed) {}

    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

struct Silent;

impl Reporter for Silent {
    fn event(&self, _event: Event<'_>) {}

    fn is_live(&self) -> bool {
        false
    }
}

fn agent<'a>(host: &'a Script, clock: &'a SystemClock, redactor: &'a Redactor) -> Agent<'a> {
    let toolbox = ["look", "run", "breaks", "stop"];
    Agent {
        purpose: Purpose::STEP,
        instructions: "",
        protocol: &Words,
        tools: toolbox
            .iter()
            .fold(Toolbox::new(), |tools, name| tools.with(Named(spec(name)))),
        permissions: &Everything,
        memory: &Compress {
            limit: u64::MAX,
            instructions: "",
        },
        ending: &|_| Ok(()),
        tries: 3,
        surroundings: Surroundings {
            host,
            reporter: &Silent,
            clock,
            redactor,
        },
    }
}

/// Works with an agent whose model answers so.
fn work(
    host: &Script,
    conversation: &mut Conversation,
    request: Option<&str>,
) -> Result<Ended, Error> {
    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    agent(host, &clock, &redactor).work_on(conversation, request)
}

/// The history, a word each.
fn told(conversation: &Conversation) -> Vec<String> {
    let short = |remark: &Remark| match (&remark.tool, remark.content.as_str()) {
        (Some(tool), CUT_SHORT) => format!("{tool}: cut short"),
        (Some(tool), content) => format!("{tool}: {content}"),
        (None, CUT_SHORT) => "cut short".to_owned(),
        (None, content) => content.lines().next().unwrap_or_default().to_owned(),
    };
    conversation.history.iter().map(short).collect()
}

fn failure(result: Result<Ended, Error>) -> AgentError {
    match result {
        Err(Error::Agent(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_works_until_it_says_that_it_is_done() {
    for (last, words, by) in [
        ("stop", "stop done", Some(spec("stop"))),
        ("\"all of it\"", "all of it", None),
    ] {
        let host = Script::new(&["look", last]);
        let mut conversation = Conversation::default();
        let ended = work(&host, &mut conversation, Some("go")).unwrap();
        let words = words.to_owned();
        assert_eq!(ended, Ended { words, by });
        assert_eq!(told(&conversation), ["go", "look", "look: look done", last]);
        assert_eq!(*host.kept.borrow(), conversation);
    }
}

#[test]
fn tools_named_together_are_used_in_order_whether_they_fail_or_not_and_none_after_the_end() {
    let host = Script::new(&["look breaks run", "run stop look"]);
    work(&host, &mut Conversation::default(), Some("go")).unwrap();
    let (well, failed) = (false, true);
    assert_eq!(
        *host.used.borrow(),
        [
            ("look", well),
            ("breaks", failed),
            ("run", well),
            ("run", well),
            ("stop", well)
        ]
    );
}

#[test]
fn what_was_cut_short_is_done_again_only_where_that_does_no_harm() {
    for (said, results, request, expected) in [
        // Of several, those are left of which nothing was heard.
        (
            "look run",
            0,
            None,
            &["look: look done", "run: cut short"][..],
        ),
        ("look run", 1, None, &["run: cut short"]),
        ("run look", 1, None, &["look: look done"]),
        ("look run", 2, None, &[]),
        ("look", 0, Some("else"), &["look: cut short", "else"]),
        // What cannot be read any more.
        ("gone", 0, None, &["cut short"]),
        ("gone", 1, None, &[]),
        // Who was done is not told that it was not.
        ("stop", 0, Some("else"), &["else"]),
    ] {
        let mut conversation = Conversation::default();
        conversation.request("go");
        conversation.say(Remark::of_agent(said));
        for tool in said.split(' ').take(results) {
            conversation.say(Remark::of_tool(tool, "x"));
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
        ("stop", "stop done", Some(spec("stop"))),
        ("\"all of it\"", "all of it", None),
    ] {
        let mut conversation = Conversation::default();
        conversation.request("go");
        conversation.say(Remark::of_agent(said));
        let ended = work(&Script::new(&[]), &mut conversation, None).unwrap();
        let words = words.to_owned();
        assert_eq!(ended, Ended { words, by });
        assert_eq!(told(&conversation), ["go", said]);
    }
}

#[test]
fn a_process_that_ends_at_any_moment_repeats_no_command_and_tells_of_each() {
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
        let runs = used.iter().filter(|(name, _)| *name == "run").count();
        assert!(runs <= 2, "{moment}: {used:?}");
        let told = told(&conversation);
        let is_batch = |said: &&String| matches!(said.as_str(), "run look" | "look run");
        let named = told.iter().filter(is_batch);
        let heard = told.iter().filter(|said| said.starts_with("run: "));
        assert_eq!(named.count(), heard.count(), "{moment}: {told:?}");
    }
}

#[test]
fn failures_in_a_row_end_the_work_and_success_starts_the_count_anew() {
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
fn last_words_that_are_not_what_they_should_be_are_asked_for_again() {
    let host = Script::new(&["stop", "\"no\"", "\"yes\""]);
    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    let picky = Agent {
        ending: &|words| match words {
            "yes" => Ok(()),
            other => Err(format!("`{other}` is not yes")),
        },
        ..agent(&host, &clock, &redactor)
    };
    let mut conversation = Conversation::default();
    let ended = picky.work_on(&mut conversation, Some("go")).unwrap();
    assert_eq!(ended.words, "yes");
    // It is so too where the end was cut short.
    let host = Script::new(&["\"yes\""]);
    let picky = Agent {
        ending: &|words| (words == "yes").then_some(()).ok_or_else(String::new),
        ..agent(&host, &clock, &redactor)
    };
    let mut conversation = Conversation::default();
    conversation.request("go");
    conversation.say(Remark::of_agent("stop"));
    assert_eq!(picky.work_on(&mut conversation, None).unwrap().words, "yes");
}

#[test]
fn the_worker_is_told_the_verdict_as_what_came_of_its_end() {
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
        work_until_passed(&worker, auditor, &mut conversation, Some("go")).unwrap();
        assert_eq!(told(&conversation)[2], expected);
    }
}
