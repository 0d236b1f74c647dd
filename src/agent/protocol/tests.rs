//! Runs one script through all three protocols, with the same calls, results and end.

use std::cell::RefCell;
use std::collections::VecDeque;

use serde_json::{Value, json};

use super::*;
use crate::agent::conversation::{Conversation, HistoryMessage};
use crate::agent::engine::tests::All;
use crate::agent::permissions::Everything;
use crate::agent::tool::{
    Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec, Toolbox,
};
use crate::agent::tools::notes::{DONE, Done, UPDATE_TASK_LIST, UpdateTaskList};
use crate::agent::{Agent, AgentError, Brief, Env, Host, Note, ToolTries};
use crate::model::message::{Call, Message, Part, Role};
use crate::model::prompt::Prompt;
use crate::model::{End, Purpose, Reply};
use crate::record::event::{Event, Reporter};
use crate::record::step::Action;
use crate::secret::Redactor;
use crate::sys::environment::SystemClock;

static READ: ToolSpec = ToolSpec::new(
    "READ_FILE",
    "Shows a file.",
    &[Parameter::path("path", "the file")],
    Effect::Reads,
);

struct Read;

impl Tool for Read {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        match arguments.get("path") {
            "a.txt" => Ok(ToolOutput::text("alpha")),
            path => Err(ToolError::from(format!("there is no `{path}`"))),
        }
    }
}

/// A model's words in a protocol.
struct Said {
    text: &'static str,
    calls: Value,
}

fn said(text: &'static str) -> Said {
    Said {
        text,
        calls: json!([]),
    }
}

/// A host that answers from a script, and records what was sent and done.
struct Script {
    replies: RefCell<VecDeque<Said>>,
    actions: RefCell<Vec<Action>>,
    sent: RefCell<Vec<Vec<Message<'static>>>>,
}

impl Host for Script {
    fn ask(&self, _purpose: &Purpose, prompt: Prompt<'_>) -> Result<Reply, AgentError> {
        let messages = prompt.messages().into_iter().skip(1).map(owned);
        self.sent.borrow_mut().push(messages.collect());
        let said = self
            .replies
            .borrow_mut()
            .pop_front()
            .expect("the script goes on");
        let calls: Vec<Call> = serde_json::from_value(said.calls).unwrap();
        Ok(Reply {
            end: if calls.is_empty() {
                End::Stop
            } else {
                End::ToolCalls
            },
            calls,
            ..Reply::of_text(said.text)
        })
    }

    fn note(&self, note: Note<'_>) -> Result<(), AgentError> {
        if let Note::Acted(action, _) = note {
            self.actions.borrow_mut().push(*action);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), AgentError> {
        Ok(())
    }
}

fn owned(message: Message<'_>) -> Message<'static> {
    let parts = message.parts.into_iter().map(|part| match part {
        Part::Text(text) => Part::Text(text.to_string().into()),
        Part::Call(call) => Part::Call(call),
        Part::Result(result) => Part::Result(result),
        Part::Thought(thought) => Part::Thought(thought),
        Part::Image(image) => Part::Image(image),
    });
    Message {
        role: message.role,
        parts: parts.collect(),
    }
}

struct Silent;

impl Reporter for Silent {
    fn event(&self, _event: &Event) {}

    fn is_live(&self) -> bool {
        false
    }
}

fn tools<'a>() -> Toolbox<'a> {
    Toolbox::default()
        .with(&READ, Read)
        .with(&UPDATE_TASK_LIST, UpdateTaskList)
        .with(&DONE, Done)
}

/// Works through the script; returns the summary, the actions and the last messages sent.
fn work(
    protocol: &dyn Protocol,
    replies: Vec<Said>,
) -> (String, Vec<Action>, Vec<Message<'static>>) {
    let mut conversation = Conversation::default();
    work_on(protocol, replies, &mut conversation, Some("Look."))
}

/// Like [`work`], but continues a conversation.
fn work_on(
    protocol: &dyn Protocol,
    replies: Vec<Said>,
    conversation: &mut Conversation,
    request: Option<&str>,
) -> (String, Vec<Action>, Vec<Message<'static>>) {
    let host = Script {
        replies: RefCell::new(replies.into()),
        actions: RefCell::default(),
        sent: RefCell::default(),
    };
    let (clock, redactor) = (SystemClock::start(), Redactor::default());
    let agent = Agent {
        purpose: Purpose::STEP,
        brief: &|| Brief {
            instructions: "Work.".to_owned(),
            tools: tools(),
            ..Brief::default()
        },
        protocol,
        permissions: &Everything,
        memory: &All,
        ending: &|_, _| Ok(()),
        tries: 3,
        tool_tries: ToolTries::AsReplies,
        calls: None,
        temperature: None,
        env: Env {
            host: &host,
            reporter: &Silent,
            clock: &clock,
            redactor: &redactor,
            censor: None,
        },
    };
    let ended = agent.work_on(conversation, request).unwrap();
    let sent = host.sent.take().pop().unwrap();
    (ended.words, host.actions.take(), sent)
}

fn markdown() -> Vec<Said> {
    let response = |tool: &str, input: &str| {
        let text = format!(
            "# Agent Response\n\n## Thoughts\nOn we go.\n\n## Task List\n[x] Look\n\n## Tool Choice\n{tool}\n\n\
             ## Tool Input\n{input}\n"
        );
        said(Box::leak(text.into_boxed_str()))
    };
    vec![
        response("READ_FILE", "\"a.txt\""),
        response("READ_FILE", "\"b.txt\""),
        response("DONE", "Looked."),
    ]
}

fn json_objects() -> Vec<Said> {
    vec![
        said(
            r#"{"thoughts": "On we go.", "calls": [{"tool": "READ_FILE", "input": {"path": "a.txt"}}]}"#,
        ),
        said(
            "```json\n{\"thoughts\": \"\", \"calls\": [{\"tool\": \"READ_FILE\", \"input\": {\"path\": \"b.txt\"}}]}\n```",
        ),
        said(r#"{"thoughts": null, "calls": [{"tool": "DONE", "input": {"summary": "Looked."}}]}"#),
    ]
}

fn native_calls() -> Vec<Said> {
    let call = |id: &str, name: &str, input: Value| Said {
        text: "",
        calls: json!([{"id": id, "name": name, "input": input}]),
    };
    vec![
        call("c1", "READ_FILE", json!({"path": "a.txt"})),
        call("c2", "READ_FILE", json!({"path": "b.txt"})),
        call("c3", "DONE", json!({"summary": "Looked."})),
    ]
}

#[test]
fn a_task_runs_alike_in_every_protocol() {
    let plain = PlainReplies::Refused;
    for (form, replies) in [
        (ToolForm::Markdown, markdown()),
        (ToolForm::Json, json_objects()),
        (ToolForm::Native, native_calls()),
    ] {
        let (summary, actions, _) = work(&*of(form, plain), replies);
        assert_eq!(summary, "Looked.", "{form:?}");
        let did: Vec<(&str, bool, &Value, &str)> = actions
            .iter()
            .map(|action| {
                let (input, result) = (&action.input, &action.result);
                (
                    &*action.tool,
                    action.failed,
                    input.as_ref().unwrap(),
                    result.as_deref().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            did,
            [
                ("READ_FILE", false, &json!({"path": "a.txt"}), "alpha"),
                (
                    "READ_FILE",
                    true,
                    &json!({"path": "b.txt"}),
                    "there is no `b.txt`"
                ),
                ("DONE", false, &json!({"summary": "Looked."}), "Looked."),
            ],
            "{form:?}"
        );
    }
}

#[test]
fn every_native_call_gets_one_result_even_if_invalid_or_after_the_end() {
    let several = Said {
        text: "Let me look.",
        calls: json!([
            {"id": "a", "name": "READ_FILE", "input": {"path": "a.txt"}},
            {"id": "b", "name": "NO_SUCH_TOOL", "input": {}},
            {"id": "c", "name": "READ_FILE", "input": "{\"path\": "},
            {"id": "d", "name": "UPDATE_TASK_LIST", "input": {"tasks": "[x] Look\n[ ] Tell"}},
        ]),
    };
    let (_, actions, sent) = work(&Native::default(), vec![several, said("All is told.")]);
    assert_eq!(actions.len(), 4);
    let [.., asked, results] = sent.as_slice() else {
        panic!("{sent:?}");
    };
    assert_eq!((asked.role, results.role), (Role::Assistant, Role::Tool));
    let told: Vec<(&str, &str)> = results
        .parts
        .iter()
        .map(|part| match part {
            Part::Result(result) => (result.id.as_str(), result.text.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            ("a", "alpha"),
            (
                "b",
                "ERROR: there is no tool `NO_SUCH_TOOL`: there are READ_FILE, UPDATE_TASK_LIST, DONE\nhint: \
                 call one of these"
            ),
            (
                "c",
                "ERROR: READ_FILE must be given its arguments as a JSON object"
            ),
            ("d", "task list updated"),
        ]
    );
}

#[test]
fn invalid_object_is_a_fault_with_its_reason() {
    let reply = |text: &str| Reply::of_text(text);
    for (text, expected) in [
        ("I will look.", "line 1: the reply does not begin with `{`"),
        ("{\"thoughts\": \"x\"}", "neither `calls` nor `answer`"),
        (
            "{\"calls\": [{\"tool\": \"DONE\", \"input\": {}}], \"answer\": \"x\"}",
            "both `calls` and `answer`",
        ),
        (
            "{\"calls\": [], \"tool\": \"DONE\"}",
            "the reply has `tool` beside `calls` or `answer`",
        ),
        (
            "{\"answer\": \"x\"} {\"answer\": \"y\"}",
            "a second JSON object follows the first",
        ),
    ] {
        let fault = tool_calls::JSON
            .read(&reply(text), &tools())
            .unwrap_err()
            .to_string();
        assert!(fault.contains(expected), "{text}: {fault}");
    }
}

#[test]
fn calls_that_a_stop_has_left_without_result_get_one_when_the_session_continues() {
    let call = |id: &str, name: &str, input: Value| Call {
        id: id.to_owned(),
        name: name.to_owned(),
        input,
        ..Call::default()
    };
    let mut conversation = Conversation::default();
    conversation.request("Look.");
    let mut asked = HistoryMessage::of_agent("");
    asked.calls = vec![
        call("a", "READ_FILE", json!({"path": "a.txt"})),
        call("b", "READ_FILE", json!({"path": "b.txt"})),
        call("c", "NO_SUCH_TOOL", json!({})),
    ];
    conversation.say(asked);
    conversation.say(HistoryMessage::of_tool("READ_FILE", "a", "alpha"));
    let (_, actions, sent) = work_on(
        &Native::default(),
        vec![said("Done.")],
        &mut conversation,
        None,
    );
    // A call with a known result is not repeated.
    assert_eq!(actions.len(), 1);
    let ids: Vec<&str> = sent
        .iter()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::Result(result) => Some(result.id.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
}

#[test]
fn thoughts_are_not_part_of_a_reply_in_any_protocol() {
    let tools = Toolbox::default().with(&READ, Read).with(&DONE, Done);
    let thought = "<think>\nWhat now? `{`\n</think>\n\n";
    for (form, reply) in [
        (ToolForm::Markdown, "It is well."),
        (ToolForm::Json, r#"{"answer":"It is well."}"#),
        (ToolForm::Native, "It is well."),
    ] {
        let protocol = of(form, PlainReplies::Taken);
        let read = protocol.read(&Reply::of_text(format!("{thought}{reply}")), &tools);
        let turn = read.unwrap();
        assert_eq!(turn.decision, Decision::Answer("It is well.".to_owned()));
        assert_eq!(turn.remembered, reply, "{form:?}");
        let alone = protocol.read(&Reply::of_text("<think>\nWhat now?"), &tools);
        assert!(alone.is_err(), "{form:?}: {alone:?}");
    }
}

#[test]
fn should_handle_tool_call_to_response_flow() {
    let protocol = tool_calls::ToolCalls {
        are_words_tagged: false,
        keys: &tool_calls::CLAUDE_CODE,
        format: "",
        examples: "",
        no_tools: &[],
    };
    let call = |path: &str| json!({"name": "READ_FILE", "parameters": {"path": path}});
    let replies = [
        json!({"tool_calls": [call("a.txt"), call("b.txt"), call("a.txt")]}),
        json!({"response": "File content is: alpha"}),
    ];
    let said = |reply: &Value| said(Box::leak(reply.to_string().into_boxed_str()));
    let (words, actions, sent) = work(&protocol, replies.iter().map(said).collect());
    assert_eq!(words, "File content is: alpha");
    // All calls are carried out, even after failures.
    let failed: Vec<bool> = actions.iter().map(|action| action.failed).collect();
    assert_eq!(failed, [false, true, false]);
    let told: Vec<(Role, String)> = sent
        .iter()
        .map(|message| (message.role, message.to_string()))
        .collect();
    let results = "Tool results:\n[0] ✓ alpha\n[1] ❌ Error: there is no `b.txt`\n[2] ✓ alpha";
    assert_eq!(
        told,
        [
            (Role::User, "Look.".to_owned()),
            (Role::Assistant, replies[0].to_string()),
            (Role::User, results.to_owned()),
        ]
    );
}

#[test]
fn a_reply_with_one_bad_call_is_not_done_at_all_and_is_gone_when_one_is_understood() {
    let protocol = tool_calls::ToolCalls {
        are_words_tagged: false,
        keys: &tool_calls::CLAUDE_CODE,
        format: "",
        examples: "",
        no_tools: &[],
    };
    let replies = vec![
        said(
            r#"{"tool_calls": [{"name": "READ_FILE", "parameters": {"path": "a.txt"}}, {"name": "READ", "parameters": {}}]}"#,
        ),
        said(r#"{"tool_calls": [{"name": "READ_FILE", "parameters": {"path": "a.txt"}}]}"#),
        said(r#"{"response": "Looked."}"#),
    ];
    let (words, actions, sent) = work(&protocol, replies);
    assert_eq!((words.as_str(), actions.len()), ("Looked.", 1));
    let told: String = sent.iter().map(ToString::to_string).collect();
    assert!(
        !told.contains("WRONG") && told.contains("[0] ✓ alpha"),
        "{told}"
    );
}

#[test]
fn calls_that_a_stop_has_left_without_result_are_reported_as_errors() {
    let mut conversation = Conversation::default();
    conversation.request("Look.");
    let call = |name: &str| json!({"name": name, "parameters": {"tasks": "[ ] a"}});
    let reply = json!({"tool_calls": [call("UPDATE_TASK_LIST"), call("UPDATE_TASK_LIST")]});
    conversation.say(HistoryMessage::of_agent(reply.to_string()));
    let protocol = tool_calls::ToolCalls {
        are_words_tagged: false,
        keys: &tool_calls::CLAUDE_CODE,
        format: "",
        examples: "",
        no_tools: &[],
    };
    let replies = vec![said(r#"{"response": "So."}"#)];
    let (_, actions, sent) = work_on(&protocol, replies, &mut conversation, Some("Go on."));
    assert!(actions.is_empty());
    let told = sent.last().unwrap().to_string();
    assert!(
        told.starts_with("Tool results:\n[0] ❌ Error: The session was interrupted"),
        "{told}"
    );
    assert!(
        told.contains("\n[1] ❌ Error: This was not done") && told.ends_with("\n\nGo on."),
        "{told}"
    );
}
