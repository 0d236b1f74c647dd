//! Tests of the decision on a call in each mode, from permissions and the call's effect.

use super::*;
use crate::agent::tool::{Arguments, Parameter, ToolSpec};
use crate::sys::error::Problem as _;

const PATH: &[Parameter] = &[Parameter::path("path", "")];
const PATTERN_AND_PATH: &[Parameter] =
    &[Parameter::text("pattern", ""), Parameter::path("path", "")];
const COMMAND: &[Parameter] = &[Parameter::new("command", ParameterKind::Command, "")];

fn call(name: &'static str, subject: &str) -> ToolCall {
    let (parameters, effect) = match name {
        "execute_command" => (COMMAND, Effect::Runs),
        "write_file" | "delete_file" => (PATH, Effect::Writes),
        "replace_in_files" => (PATTERN_AND_PATH, Effect::Writes),
        "update_todos" => (&[][..], Effect::Notes),
        "spawn_agent" => (&[][..], Effect::Delegates),
        _ => (PATH, Effect::Reads),
    };
    let mut arguments = Arguments::default();
    if let Some(last) = parameters.last() {
        arguments.set(last.name, subject);
    }
    ToolCall {
        tool: ToolSpec::new(name, "", parameters, effect),
        arguments,
        hazards: match name {
            "delete_file" => vec!["deletes"],
            "write_file" if subject == "there" => vec!["overwrites"],
            _ => Vec::new(),
        },
    }
}

/// Opens the permissions of the project at `root`, with the user's home inside it, and an empty briefing.
fn world(root: &Path) -> (RefCell<PermissionFile>, RefCell<Briefing>) {
    let file = PermissionFile::open(&root.join("home"), root).unwrap();
    (
        RefCell::new(file),
        RefCell::new(Briefing::load(root, root, &serde_json::Value::Null)),
    )
}

/// Formats the decision on a call: the answer to `asks` can be made permanent, the answer to `asks once` cannot.
fn decided(permissions: &ChatPermissions<'_>, call: &ToolCall) -> String {
    match permissions.decide(call) {
        Permission::Allowed => "allowed".to_owned(),
        Permission::Refused(_) => "refused".to_owned(),
        Permission::Ask(question) if question.may_be_permanent => "asks".to_owned(),
        Permission::Ask(question) => format!("asks once: {}", question.reasons.join(", ")),
    }
}

#[test]
fn decision_depends_on_mode_file_and_harm() {
    let dir = tempfile::tempdir().unwrap();
    let (file, briefing) = world(dir.path());
    let mode = SharedMode::default();
    let permissions = ChatPermissions {
        mode: &mode,
        file: &file,
        counts: true,
        root: dir.path(),
        briefing: &briefing,
        headless: None,
    };
    let by_action = |tool: &'static str, subject: &str| {
        let call = call(tool, subject);
        let actions = [
            PermissionAction::Always,
            PermissionAction::Ask,
            PermissionAction::Never,
        ];
        actions.map(|action| {
            let now = chrono::DateTime::UNIX_EPOCH.fixed_offset();
            let choice = Choice::Tool(tool.to_owned(), action);
            file.borrow_mut().remember(&choice, now).unwrap();
            decided(&permissions, &call)
        })
    };
    for (tool, subject, expected) in [
        ("read_file", "a", ["allowed", "asks", "refused"]),
        ("write_file", "new", ["allowed", "asks", "refused"]),
        (
            "write_file",
            "there",
            ["asks once: overwrites", "asks once: overwrites", "refused"],
        ),
        (
            "delete_file",
            "a",
            ["asks once: deletes", "asks once: deletes", "refused"],
        ),
        (
            "execute_command",
            "cargo test",
            ["allowed", "asks", "refused"],
        ),
        (
            "execute_command",
            "rm -rf ~",
            ["asks once: deletes", "asks once: deletes", "refused"],
        ),
        ("update_todos", "", ["allowed", "allowed", "refused"]),
        ("spawn_agent", "", ["allowed", "allowed", "refused"]),
    ] {
        mode.set(Mode::Regular);
        assert_eq!(by_action(tool, subject), expected, "{tool} {subject}");
        mode.set(Mode::AutoPilot);
        assert_eq!(
            by_action(tool, subject),
            ["allowed", "allowed", "refused"],
            "{tool}"
        );
        mode.set(Mode::Planning);
        assert_eq!(by_action(tool, subject), ["refused"; 3], "{tool}");
    }
}

#[test]
fn a_question_says_what_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let (file, briefing) = world(dir.path());
    let permissions = ChatPermissions {
        mode: &SharedMode::default(),
        file: &file,
        counts: true,
        root: dir.path(),
        briefing: &briefing,
        headless: None,
    };
    let long = format!("rm {}\nls\u{1b}[2J", "x".repeat(300));
    for (tool, subject, sentence) in [
        (
            "execute_command",
            "make",
            "The agent wants to run `make`. May it?",
        ),
        (
            "execute_command",
            "rm x",
            "The agent wants to run `rm x` (deletes). May it?",
        ),
        (
            "execute_command",
            "echo ok\nrm x\n# done",
            "The agent wants to run `echo ok\\nrm x\\n# done` (deletes). May it?",
        ),
        (
            "delete_file",
            "a",
            "The agent wants to change `a` (deletes). May it?",
        ),
        (
            "search_project",
            "a",
            "The agent wants to use search_project on `a`. May it?",
        ),
        (
            "search_project",
            "",
            "The agent wants to use search_project. May it?",
        ),
    ] {
        let asked = permissions.decide(&call(tool, subject));
        let Permission::Ask(question) = asked else {
            panic!("{tool} {subject}: {asked:?}");
        };
        assert_eq!(question.sentence, sentence);
        assert_eq!(
            (question.tool.as_str(), question.subject.as_str()),
            (tool, subject)
        );
    }
    let mut search = call("replace_in_files", "src");
    let spec = ToolSpec::new("search_project", "", PATTERN_AND_PATH, Effect::Reads);
    search.tool = spec.of_category(Category::Search);
    search.arguments.set("pattern", "TODO");
    let Permission::Ask(question) = permissions.decide(&search) else {
        panic!();
    };
    assert_eq!(question.subject, "TODO in src");
    let Permission::Ask(question) = permissions.decide(&call("execute_command", &long)) else {
        panic!();
    };
    assert_eq!(question.subject, long);
    // The cause is found even if the command cannot be analysed as a whole.
    for (command, cause) in [
        ("make", &[][..]),
        ("ls; rm -rf a && ls", &["rm -rf a"]),
        ("echo $(date)\nls\nrm x", &["echo $(date)", "rm x"]),
    ] {
        let asked = permissions.decide(&call("execute_command", command));
        let Permission::Ask(question) = asked else {
            panic!("{asked:?}");
        };
        assert_eq!(question.cause, cause, "{command}");
    }
    assert!(question.sentence.len() < 300 && !question.sentence.contains(char::is_control));
}

#[test]
fn calls_are_refused_and_noted_when_nobody_can_be_asked() {
    let dir = tempfile::tempdir().unwrap();
    let (file, briefing) = world(dir.path());
    let refused = RefCell::default();
    let permissions = ChatPermissions {
        mode: &SharedMode::default(),
        file: &file,
        counts: true,
        root: dir.path(),
        briefing: &briefing,
        headless: Some(&refused),
    };
    for (tool, subject) in [
        ("read_file", "a"),
        ("execute_command", "rm x"),
        ("write_file", "b"),
    ] {
        let expected = if tool == "read_file" {
            "allowed"
        } else {
            "refused"
        };
        assert_eq!(decided(&permissions, &call(tool, subject)), expected);
    }
    let told = "2 calls not permitted: nobody was there to allow execute_command `rm x` (deletes), write_file `b`";
    assert_eq!(refused.borrow().to_string(), told);
    assert!(
        refused
            .borrow()
            .hint()
            .unwrap()
            .contains("always asked about")
    );
    assert!(NotPermitted::default().hint().unwrap().contains(FILE));
}

#[test]
fn only_permanent_verdicts_are_remembered() {
    let tool = |action| Choice::Tool("edit_file".to_owned(), action);
    let always = || tool(PermissionAction::Always);
    let never = || tool(PermissionAction::Never);
    for (answer, is_for_good, (may_be_permanent, may_forbid), expected) in [
        (Answer::Yes, true, (true, true), Some(always())),
        (Answer::Yes, true, (false, true), None),
        (Answer::No, true, (true, true), Some(never())),
        (Answer::No, true, (false, true), Some(never())),
        (Answer::No, true, (false, false), None),
        (Answer::Yes, false, (true, true), None),
        (Answer::Instead("x".to_owned()), false, (true, true), None),
    ] {
        let question = Question {
            may_be_permanent,
            may_forbid,
            tool: "edit_file".to_owned(),
            ..Question::default()
        };
        let verdict = Verdict {
            answer,
            is_for_good,
        };
        assert_eq!(remembered(&question, &verdict), expected);
    }
}

#[test]
fn permanent_yes_to_a_command_covers_its_programs_not_the_tool() {
    let dir = tempfile::tempdir().unwrap();
    let (file, briefing) = world(dir.path());
    let permissions = ChatPermissions {
        mode: &SharedMode::default(),
        file: &file,
        counts: true,
        root: dir.path(),
        briefing: &briefing,
        headless: None,
    };
    let asks = |command: &str| match permissions.decide(&call("execute_command", command)) {
        Permission::Ask(question) => Some(question),
        _ => None,
    };
    let question = asks("cargo test remove_user | tail -5").unwrap();
    assert_eq!(question.rules, ["cargo test", "@looking"]);
    assert_eq!(
        question.lasting,
        "commands that begin with `cargo test`; commands that only look"
    );
    let verdict = Verdict {
        answer: Answer::Yes,
        is_for_good: true,
    };
    let choice = remembered(&question, &verdict).unwrap();
    let now = chrono::DateTime::UNIX_EPOCH.fixed_offset();
    file.borrow_mut().remember(&choice, now).unwrap();
    for (command, rules) in [
        ("cargo test x", None),
        ("ls; cargo test", None),
        ("cargo build", Some(&["cargo build"][..])),
        ("cargo build && cargo test", Some(&["cargo build"])),
        // These contain programs that no rule can allow.
        ("cargo test > x", Some(&[])),
        ("cargo test; rm x", Some(&["rm x"])),
    ] {
        let asked = asks(command).map(|question| question.rules);
        let rules = rules.map(|rules| rules.iter().map(|&rule| rule.to_owned()).collect());
        assert_eq!(asked, rules, "{command}");
    }
    assert!(!asks("cargo test; rm x").unwrap().may_be_permanent);
}

#[test]
fn a_script_that_the_session_has_written_is_asked_about_whatever_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for (name, content) in [("old.sh", ""), ("new.sh", ""), ("evil.sh", "")] {
        std::fs::write(root.join(name), content).unwrap();
    }
    std::os::unix::fs::symlink("evil.sh", root.join("link.sh")).unwrap();
    for arguments in [
        &["init", "-q"][..],
        &["add", "old.sh", "evil.sh", "link.sh"],
    ] {
        duct::cmd("git", arguments).dir(&root).run().unwrap();
    }
    let (file, briefing) = world(&root);
    let choice = Choice::Tool("execute_command".to_owned(), PermissionAction::Always);
    let now = chrono::DateTime::UNIX_EPOCH.fixed_offset();
    file.borrow_mut().remember(&choice, now).unwrap();
    briefing.borrow_mut().wrote(&["evil.sh".to_owned()]);
    let permissions = ChatPermissions {
        mode: &SharedMode::default(),
        file: &file,
        counts: true,
        root: &root,
        briefing: &briefing,
        headless: None,
    };
    for (command, is_asked) in [
        ("sh old.sh", false),
        ("sh ./old.sh && make", false),
        ("sh new.sh", true),
        ("sh evil.sh", true),
        ("sh link.sh", true),
        ("./evil.sh", true),
        ("./new.sh", false),
        ("sh /bin/x.sh", true),
        ("sh ../x.sh", true),
    ] {
        let decided = permissions.decide(&call("execute_command", command));
        assert_eq!(decided != Permission::Allowed, is_asked, "{command}");
    }
}
