//! Tests of which part of a reply counts, and of its sections. Nothing else is ever carried out.

mod hostile;
mod inputs;
mod near_misses;

use proptest::prelude::*;

use super::instructions::TEMPLATE;
use super::*;
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::record::tasks::{Task, TaskStatus};

const fn parameter(name: &'static str, kind: ParameterKind, meaning: &'static str) -> Parameter {
    Parameter::new(name, kind, meaning)
}

const fn spec(name: &'static str, parameters: &'static [Parameter]) -> ToolSpec {
    ToolSpec::new(name, "Does something.", parameters, Effect::Reads)
}

const PATH: Parameter = parameter("path", ParameterKind::Path, "the file");

static READ: ToolSpec = spec("READ_FILE", &[PATH]);
static WRITE: ToolSpec = spec(
    "WRITE_FILE",
    &[
        PATH,
        parameter("content", ParameterKind::Block, "the whole content"),
    ],
);
static REPLACE: ToolSpec = spec(
    "FIND_AND_REPLACE_IN_FILE",
    &[
        PATH,
        parameter("find", ParameterKind::Block, "what is there"),
        parameter("replace", ParameterKind::Block, "what is to be there"),
    ],
);
static COMMAND: ToolSpec = ToolSpec::new(
    "COMMAND",
    "Does something.",
    &[parameter(
        "command",
        ParameterKind::Command,
        "a shell command",
    )],
    Effect::Runs,
);
static ASK: ToolSpec = spec(
    "ASK_USER",
    &[parameter("question", ParameterKind::Text, "a question")],
);
static DONE: ToolSpec = spec(
    "DONE",
    &[parameter("summary", ParameterKind::Text, "a summary")],
);
static NOTE: ToolSpec = spec("NOTE", &[parameter("words", ParameterKind::Text, "words")]);
static LIST: ToolSpec = spec("LIST_PROCESSES", &[]);
/// Combinations of parameters that no tool has yet.
static MOVE: ToolSpec = spec(
    "MOVE",
    &[PATH, parameter("to", ParameterKind::Path, "where to")],
);
static RUN_IN: ToolSpec = spec(
    "RUN_IN",
    &[
        PATH,
        parameter("command", ParameterKind::Command, "a command"),
    ],
);

static ALL: [&ToolSpec; 10] = [
    &READ, &WRITE, &REPLACE, &COMMAND, &NOTE, &LIST, &MOVE, &RUN_IN, &ASK, &DONE,
];

struct Fake;

impl Tool for Fake {
    fn run(&self, _arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

fn toolbox() -> Toolbox<'static> {
    ALL.into_iter()
        .fold(Toolbox::default(), |tools, spec| tools.with(spec, Fake))
}

fn reply(text: &str) -> Reply {
    Reply::of_text(text)
}

fn read_turn(text: &str) -> Result<Turn, Fault> {
    Markdown::default().read(&reply(text), &toolbox())
}

/// Returns the turn without its note, remembering only the response that counts.
fn without_note(turn: Turn) -> Turn {
    Turn {
        note: None,
        outside: String::new(),
        ..turn
    }
}

/// Returns the one tool that a reply uses.
fn only_call(turn: &Turn) -> &Call {
    match &turn.decision {
        Decision::Use(calls) if calls.len() == 1 => &calls[0],
        other => panic!("a reply uses one tool: {other:?}"),
    }
}

/// Returns the call in a reply with its arguments, as `NAME a=x b=y`; or the fault.
fn call(text: &str) -> Result<String, String> {
    let turn = read_turn(text).map_err(|fault| fault.message())?;
    let call = only_call(&turn);
    let mut told = call.name.clone();
    for (name, value) in call.input.as_object().unwrap() {
        told += &format!(" {name}={}", value.as_str().unwrap());
    }
    Ok(told)
}

/// Like [`call`], for a reply that consists of a tool and its input, which begins on line 5.
fn input(tool: &str, input: &str) -> Result<String, String> {
    call(&format!(
        "# Agent Response\n## Tool Choice\n{tool}\n## Tool Input\n{input}"
    ))
}

fn task(status: TaskStatus, text: &str) -> Task {
    Task {
        status,
        text: text.to_owned(),
    }
}

const WHOLE: &str = "\
Let me see.

# Agent Response

## Thoughts
The tests fail.

I look at them.

## Task List
[~] Look at the tests
[x] Run them
[ ] Repair them

## Tool Choice
READ_FILE

## Tool Input
\"src/a b.rs\"
";

#[test]
fn a_reply_in_the_form_of_the_template_is_read() {
    let turn = read_turn(WHOLE).unwrap();
    assert_eq!(turn.thoughts, "The tests fail.\n\nI look at them.");
    let tasks = vec![
        task(TaskStatus::InProgress, "Look at the tests"),
        task(TaskStatus::Complete, "Run them"),
        task(TaskStatus::Pending, "Repair them"),
    ];
    assert_eq!(turn.tasks, Some(tasks));
    let call = only_call(&turn);
    assert_eq!(call.name, READ.name);
    assert_eq!(call.input["path"], "src/a b.rs");
    let template = WHOLE.trim_start_matches("Let me see.\n\n").trim_end();
    assert_eq!(turn.remembered, template);
}

#[test]
fn a_task_list_is_read_with_and_without_bullets() {
    let tasks = |list: &str| {
        let text = format!(
            "# Agent Response\n## Task List\n{list}\n## Tool Choice\nLIST_PROCESSES\n## Tool Input\n"
        );
        read_turn(&text).unwrap().tasks
    };
    assert_eq!(
        tasks(
            "- [x] a\n* [X]  b \n1. [~] c\n\n  12) [ ] d\n[ ]e\r\nwords\n+ [ ] f [x]\n   goes on\n[ ]\n\
             - [\u{2713}] g\n[\u{2714}\u{fe0f}] h\n[ x ] i\n[-] j\n[!] k\n[l](m)\n[x](n)\n[no] o\n[1] p\n\
             [\u{2026}] q\n- [ ] (backend) r"
        ),
        Some(vec![
            task(TaskStatus::Complete, "a"),
            task(TaskStatus::Complete, "b"),
            task(TaskStatus::InProgress, "c"),
            task(TaskStatus::Pending, "d"),
            task(TaskStatus::Pending, "e"),
            task(TaskStatus::Pending, "f [x] goes on"),
            task(TaskStatus::Complete, "g"),
            task(TaskStatus::Complete, "h"),
            task(TaskStatus::Complete, "i"),
            task(TaskStatus::InProgress, "j"),
            task(TaskStatus::Pending, "k"),
            task(TaskStatus::Pending, "(backend) r"),
        ])
    );
    assert_eq!(tasks("unchanged"), None);
    assert_eq!(tasks(""), None);
    assert_eq!(
        read_turn("# Agent Response\n## Tool Choice\nLIST_PROCESSES")
            .unwrap()
            .tasks,
        None
    );
}

#[test]
fn a_tool_must_be_one_that_is_there() {
    for (text, expected) in [
        (
            "# Agent Response\n## Tool Choice\nDELETE\n## Tool Input\n",
            "line 3: there is no tool `DELETE`: there are READ_FILE, WRITE_FILE, FIND_AND_REPLACE_IN_FILE, \
             COMMAND, NOTE, LIST_PROCESSES, MOVE, RUN_IN, ASK_USER, DONE",
        ),
        (
            "x\n# Agent Response\n## Thoughts\nI am done.",
            "line 2: there is no `## Tool Choice` section",
        ),
        (
            "# Agent Response\n## Tool Input\na\n## Tool Choice\nREAD_FILE",
            "line 1: there is no `## Tool Choice` section before `## Tool Input`, which comes last",
        ),
        (
            "# Agent Response\n## Tool Choice\n\n## Tool Input\na",
            "line 2: no tool is named under `## Tool Choice`",
        ),
        (
            "# Agent Response\n## Tool Choice\nREAD_FILE\nCOMMAND\n## Tool Input\na",
            "line 4: `COMMAND` besides `READ_FILE`: a reply uses one tool",
        ),
        (
            "# Agent Response\n## Tool Choice\nREAD_FILE\n",
            "line 3: there is no `## Tool Input` section after it, which `READ_FILE` needs",
        ),
        (
            "I am done.",
            "line 1: there is no `# Agent Response` header: reply in the form of the template, and use a \
             tool",
        ),
    ] {
        assert_eq!(call(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn only_the_model_is_told_what_to_do() {
    let fault = read_turn("I am done.").unwrap_err();
    let shown = "line 1: there is no `# Agent Response` header";
    assert_eq!(fault.to_string(), shown);
    let told = format!("{shown}: reply in the form of the template, and use a tool");
    assert_eq!(fault.message(), told);
}

/// Returns a response that reads `path`, as a draft or the real one.
fn reads(path: &str) -> String {
    format!("# Agent Response\n\n## Tool Choice\nREAD_FILE\n\n## Tool Input\n\"{path}\"\n")
}

/// Returns a response that uses `tool` with this input.
fn uses(tool: &str, input: &str) -> String {
    format!("# Agent Response\n\n## Tool Choice\n{tool}\n\n## Tool Input\n{input}")
}

/// Returns a response that writes `content` to `a` between these fences.
fn writes(opening: &str, content: &str, closing: &str) -> String {
    format!(
        "# Agent Response\n\n## Tool Choice\nWRITE_FILE\n\n## Tool Input\n\"a\"\n\n{opening}\n{content}{closing}\n"
    )
}

#[test]
fn response_is_read_after_thoughts_without_a_beginning() {
    for thoughts in ["hm</think>", "hm\nso\n</think>\n", "hm\nso</think>\n\n"] {
        let text = format!("{thoughts}{}", reads("a"));
        let turn = Markdown::default().read(&reply(&text), &toolbox()).unwrap();
        assert!(matches!(turn.decision, Decision::Use(..)), "{text}");
    }
}

#[test]
fn agent_that_may_answer_does_so_in_words() {
    let auditor = Markdown {
        plain_replies: PlainReplies::Taken,
    };
    let read = |text: &str| auditor.read(&reply(text), &toolbox());
    let turn = read("<think>\n# Agent Response\n</think>\n\nOverall: PASS\n").unwrap();
    assert_eq!(turn.decision, Decision::Answer("Overall: PASS".to_owned()));
    assert_eq!(turn.remembered, "Overall: PASS");
    assert!(matches!(
        read(&reads("a")).unwrap().decision,
        Decision::Use(..)
    ));
    // A malformed response is not an answer.
    assert!(read("# Agent Response\nOverall: PASS").is_err());
    assert!(read("<think>\nx\n</think>").is_err());
}

#[test]
fn examples_in_the_instructions_parse() {
    let tools = toolbox();
    let told = Markdown::default().offer(&tools).instructions;
    assert!(told.contains(&format!("````markdown\n{TEMPLATE}````\n")));
    assert!(!told.contains("in plain words"));
    let auditor = Markdown {
        plain_replies: PlainReplies::Taken,
    };
    assert!(
        auditor
            .offer(&tools)
            .instructions
            .contains("in plain words")
    );
    let expected = [
        "READ_FILE path=[the file]",
        "WRITE_FILE path=[the file] content=[the whole content]\n",
        "FIND_AND_REPLACE_IN_FILE path=[the file] find=[what is there] replace=[what is to be there]",
        "COMMAND command=[a shell command]",
        "NOTE words=[words]",
        "LIST_PROCESSES",
        "MOVE path=[the file] to=[where to]",
        "RUN_IN path=[the file] command=[a command]",
        "ASK_USER question=[a question]",
        "DONE summary=[a summary]",
    ];
    let examples: Vec<&str> = told
        .split("````markdown\n")
        .skip(2)
        .filter_map(|rest| rest.split("````\n").next())
        .collect();
    assert_eq!(examples.len(), expected.len());
    for (example, expected) in examples.into_iter().zip(expected) {
        assert_eq!(
            call(&format!("# Agent Response\n\n{example}")).as_deref(),
            Ok(expected)
        );
    }
    for tool in tools.specs() {
        assert!(told.contains(&format!("### {}\n\nDoes something.\n", tool.name)));
    }
}

/// Generates a line, which may or may not mean something to the parser.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(
            &[
                "# Agent Response",
                "## Thoughts",
                "## Task List",
                "[x] done",
                "## Tool Choice",
                "## Tool Input",
                "```",
                "````",
                "```md",
                "```find",
                "```replace",
                "~~~",
                "\"a\"",
                "",
                "<think>",
                "</think>",
                "x</think>",
                "\r",
                "text",
            ][..]
        )
        .prop_map(str::to_owned),
        prop::sample::select(&ALL[..]).prop_map(|tool| tool.name.to_string()),
        "[ -~]{0,12}",
    ]
}

fn text(lines: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = String> {
    prop::collection::vec(line(), lines)
        .prop_map(|lines| lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Generates lines that include whole responses, fences and words: the hardest to parse.
fn text_with_responses() -> impl Strategy<Value = String> {
    let tools = prop::sample::select(&ALL[..]).prop_map(|tool| tool.name.to_string());
    let inputs = prop::sample::select(
        &[
            "a\n",
            "rm x\n",
            "\"a\"\n```\nx\n```\n",
            "```sh\nrm x\n```\n",
            "",
        ][..],
    );
    let piece = prop_oneof![
        2 => (tools, inputs).prop_map(|(tool, input)| uses(&tool, input)),
        3 => prop::sample::select(&["```\n", "```md\n", "````\n", "~~~\n"][..]).prop_map(str::to_owned),
        1 => prop::sample::select(&["\n", "text\n", "</think>\n", "<think>\n", "# T\n"][..]).prop_map(str::to_owned),
        1 => text(0..3),
    ];
    prop::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

/// Returns a fence of this character, longer than any in `content` and at least four characters long.
fn longer(mark: char, content: &str) -> String {
    let longest = content
        .split(|c| c != mark)
        .map(str::len)
        .max()
        .unwrap_or(0);
    mark.to_string().repeat(longest.max(3) + 1)
}

proptest! {
    #[test]
    fn no_reply_makes_it_panic(text in prop_oneof![text(0..40), any::<String>()], count in 0..ALL.len()) {
        let tools = ALL.into_iter().take(count).fold(Toolbox::default(), |tools, spec| tools.with(spec, Fake));
        for plain_replies in [PlainReplies::Taken, PlainReplies::Refused] {
            let lines = text.split('\n').count();
            match (Markdown { plain_replies }).read(&reply(&text), &tools) {
                Ok(turn) => prop_assert!(!matches!(turn.decision, Decision::Use(calls) if calls.len() > 1)),
                Err(fault) => prop_assert!(fault.line.is_some_and(|line| (1..=lines).contains(&line)), "{}", fault),
            }
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_written(
        thoughts in "[ -~&&[^#`~<]]{0,40}",
        draft in prop::option::of("[a-z \n]{0,20}"),
        path in "[a-zA-Z0-9/._ \\\\-]{0,20}[a-z]",
        content in text(0..20),
        mark in prop::sample::select(&['`', '~'][..]),
        label in prop::sample::select(&["", "md", "rust ignore"][..]),
    ) {
        let fence = longer(mark, &content);
        let draft = draft.map(|path| reads(&path)).unwrap_or_default();
        let text = format!(
            "{draft}# Agent Response\n\n## Thoughts\n{thoughts}\n\n## Task List\n[ ] x\n\n## Tool Choice\nWRITE_FILE\n\n\
             ## Tool Input\n\"{path}\"\n\n{fence}{label}\n{content}{fence}\n"
        );
        let turn = read_turn(&text).unwrap();
        prop_assert_eq!(&turn.thoughts, thoughts.trim());
        prop_assert_eq!(only_call(&turn).input["path"].as_str(), Some(&*path));
        prop_assert_eq!(only_call(&turn).input["content"].as_str(), Some(&*content));
        // The text stored in the history means the same.
        prop_assert_eq!(read_turn(&turn.remembered).unwrap(), without_note(turn));
    }

    #[test]
    fn a_replacement_is_read_as_it_was_written(
        find in text(0..8),
        replace in text(0..8),
        is_swapped in any::<bool>(),
    ) {
        let block = |label: &str, content: &str| {
            let fence = longer('`', content);
            format!("{fence}{label}\n{content}\n{fence}\n")
        };
        let mut blocks = [block("find", &find), block("replace", &replace)];
        if is_swapped {
            blocks.reverse();
        }
        let text = format!(
            "# Agent Response\n## Tool Choice\nFIND_AND_REPLACE_IN_FILE\n## Tool Input\n\"a\"\n{}",
            blocks.concat()
        );
        let turn = read_turn(&text).unwrap();
        prop_assert_eq!(only_call(&turn).input["find"].as_str(), Some(&*find));
        prop_assert_eq!(only_call(&turn).input["replace"].as_str(), Some(&*replace));
    }

    #[test]
    fn a_reply_that_writes_a_file_writes_that_file_or_nothing(
        opening in prop::sample::select(&["```", "```md", "````", "````md", "~~~"][..]),
        content in text_with_responses(),
        closing in prop::sample::select(&["", "```", "````", "~~~"][..]),
        wrapping in prop::sample::select(&["", "```markdown\n", "~~~\n"][..]),
        above in prop::sample::select(&["", "So:\n", "````\n", "<think>\nhm\n</think>\n"][..]),
        thoughts in prop::sample::select(&["", "## Thoughts\n```\nx\n", "## Thoughts\nhm\n"][..]),
        header in prop::sample::select(&["# Agent Response", "# Agent Reponse", "# Response", ""][..]),
    ) {
        let response = writes(opening, &content, closing)
            .replacen("# Agent Response", header, 1)
            .replacen("\"a\"", "\"outermost\"", 1)
            .replacen("\n## Tool", &format!("\n{thoughts}## Tool"), 1);
        let wrapped = wrapping.trim_end_matches("markdown\n");
        let text = format!("{above}{wrapping}{response}{wrapped}");
        if let Ok(turn) = read_turn(&text) {
            prop_assert_eq!(&only_call(&turn).name, "WRITE_FILE", "{}", text);
        }
    }

    #[test]
    fn remembered_turn_parses_the_same(text in text(0..40)) {
        if let Ok(turn) = read_turn(&format!("# Agent Response\n{text}")) {
            let again = read_turn(&turn.remembered).map_err(|fault| fault.to_string());
            prop_assert_eq!(again, Ok(without_note(turn)));
        }
    }
}
