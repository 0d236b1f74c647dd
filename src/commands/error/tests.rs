//! Compares each error's message, exit code and hint with a golden list.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use miette::MietteDiagnostic;
use serde_json::Value;

use super::*;
use crate::agent::AgentError;
use crate::agent::mcp::McpError;
use crate::agent::protocol::Fault;
use crate::agent::session::SessionError;
use crate::commands::attest::StatementError;
use crate::commands::chat::error::{ChatError, hint_in_chat};
use crate::commands::chat::permissions::NotPermitted;
use crate::commands::chat::permissions::file::PermissionsProblem;
use crate::commands::dev::settings::SettingsProblem;
use crate::commands::fleet::error::FleetError;
use crate::commands::mcp::NoToken;
use crate::commands::mcp_server::NoSuchTool;
use crate::commands::orchestrate::command::advice;
use crate::commands::orchestrate::error::OrchestrateError;
use crate::commands::plan::document::PlanDocumentError;
use crate::commands::plan::error::PlanError;
use crate::commands::plan::file::PlanFileError;
use crate::commands::plan::instructions::InstructionsProblem;
use crate::edit::error::ApplyError;
use crate::edit::undo::UndoError;
use crate::edit::undo_log::UndoLogError;
use crate::edit::{FaultKind, ReplyFault, Rule, VerifyError};
use crate::exec::process::{ProcessError, ScriptProblem};
use crate::exec::sandbox::SandboxProblem;
use crate::model::estimate::OverBudget;
use crate::model::price::Usd;
use crate::model::{
    End, EndpointProblem, FailureKind, KeySource, ModelError, Provider, ServerProblem, Setup,
    Spent, TableProblem, TaskType, Unselected, VendorError,
};
use crate::project::ProjectProblem;
use crate::project::home::{CHAT, DEV, PLAN};
use crate::record::replay::RecordingProblem;
use crate::run::accounts::NoAccount;
use crate::run::context::ModelsProblem;
use crate::run::error::{DoesNotFit, RunError};
use crate::run::keys::NoKey;
use crate::run::not_ready::NotReady;
use crate::run::past::recomputation::NotRecomputed;
use crate::run::sending::SendingProblem;
use crate::secret::KeyProblem;
use crate::secret::credentials::Finding;
use crate::sys::dotenv::DotenvProblem;
use crate::sys::error::{Error, Problem as _};
use crate::sys::files::PathError;
use crate::sys::home_file::HomeFileProblem;
use crate::sys::interrupt::{Interrupted, Signal};
use crate::sys::positions::Misplaced;
use crate::sys::reason::{REASONS, Reason};
use crate::ui::editor::EditorProblem;
use crate::ui::input::InputError;
use crate::ui::tui::attachment::ImageProblem;

/// The expected list.
const GOLDEN: &str = include_str!("golden.txt");

/// Errors with their texts, in order.
#[derive(Default)]
struct Told(String);

impl Told {
    fn heading(&mut self, title: &str) {
        let _ = writeln!(self.0, "## {title}\n");
    }

    /// Adds an error that ends a command.
    fn error(&mut self, error: impl Into<Error>) {
        let error: Error = error.into();
        let exit = error.exit();
        let reason = reason(&error);
        let _ = writeln!(
            self.0,
            "{error}\n  exit: {} {} ({reason})",
            exit.code(),
            exit.name()
        );
        let hint = error.hint();
        let mut hints = vec![("hint", hint.clone())];
        let others = [
            ("in chat", hint_in_chat(&error)),
            ("with a report", advice(&error)),
        ];
        hints.extend(others.into_iter().filter(|(_, other)| *other != hint));
        for (name, hint) in hints {
            let _ = writeln!(self.0, "  {name}: {}", hint.as_deref().unwrap_or("none"));
        }
        self.0.push('\n');
    }

    /// Adds an error that keeps a project from being ready.
    fn problem(&mut self, problem: impl Into<Error>) {
        let problem: Error = problem.into();
        let hint = problem.hint().unwrap_or_default();
        let _ = write!(self.0, "{problem}\n  hint: {hint}\n");
        let reason = reason(&NotReady::of(problem).into());
        let _ = writeln!(self.0, "  reason: {reason}\n");
    }
}

/// Formats an error's reason for programs. The schema must list it.
fn reason(error: &Error) -> String {
    let problems = error.related().into_iter().flatten();
    let codes = problems.map(miette::Diagnostic::code).chain([error.code()]);
    for code in codes.flatten().map(|code| code.to_string()) {
        let named = code.split_once('/');
        assert!(
            named.is_none_or(|(_, name)| Reason::parse(name).is_some()),
            "{code}"
        );
    }
    let reason = error.reason();
    let later = if reason.retryable { ", later" } else { "" };
    let code = reason.http_status;
    let status = code.map_or(String::new(), |code| format!(", {code}"));
    format!("{}{status}{later}", reason.name)
}

#[test]
fn the_reasons_are_those_of_the_schema() {
    let text = include_str!("../../../fixtures/schema/result.schema.json");
    let schema: Value = serde_json::from_str(text).unwrap();
    let listed = &schema["properties"]["error"]["anyOf"][0]["properties"]["reason"]["enum"];
    let names: Vec<&str> = REASONS.split(' ').collect();
    assert_eq!(*listed, serde_json::json!(names));
}

fn s(text: &str) -> String {
    text.to_owned()
}

fn p(path: &str) -> PathBuf {
    path.into()
}

fn denied() -> io::Error {
    io::ErrorKind::PermissionDenied.into()
}

fn large() -> io::Error {
    io::ErrorKind::FileTooLarge.into()
}

fn path_error(action: &'static str) -> PathError {
    PathError::of(action, "some/path")(denied())
}

fn mistake() -> Misplaced {
    Misplaced {
        line: 3,
        column: 7,
        reason: s("something is wrong"),
    }
}

fn interrupted() -> Interrupted {
    Interrupted {
        signal: Signal::Term,
    }
}

fn status(status: u16, vendor: VendorError, key_variable: Option<&'static str>) -> ModelError {
    let successor = key_variable.map(|_| "gpt-5".into());
    ModelError::Status {
        status,
        vendor,
        model: s("gpt-4"),
        tries: 2,
        answer: Box::default(),
        setup: Setup {
            key: key_variable.map(KeySource::Variable),
            is_keyless: false,
            successor,
        },
    }
}

fn cut_short(end: End) -> ModelError {
    ModelError::CutShort {
        finish: s("FINISH"),
        end,
        message: Some(s("so it says")),
        spent: Box::default(),
    }
}

fn connection() -> ModelError {
    ModelError::Connection {
        host: s("host"),
        reason: s("it broke"),
        tries: 3,
        is_sent: true,
    }
}

fn model_errors() -> Vec<ModelError> {
    let mut bad_key = VendorError::default();
    bad_key.bad_key = true;
    let mut invalid = VendorError::default();
    invalid.code = Some(s("invalid_request_error"));
    invalid.failure = FailureKind::BadRequest;
    invalid.message = Some(s("the request is wrong"));
    let spent = Box::<Spent>::default;
    let mut errors: Vec<ModelError> = [400, 401, 403, 404, 413, 429, 500, 529]
        .map(|code| status(code, VendorError::default(), None))
        .into();
    errors.extend([
        status(404, VendorError::default(), Some("OPENAI_API_KEY")),
        status(401, VendorError::default(), Some("OPENAI_API_KEY")),
        status(400, bad_key, None),
        ModelError::Redirect {
            status: 302,
            location: s("https://elsewhere"),
        },
        connection(),
        ModelError::NobodyListens {
            url: s("http://localhost:1"),
            reason: s("refused"),
        },
        ModelError::Tls {
            host: s("host"),
            reason: s("expired"),
        },
        ModelError::Protocol {
            host: s("host"),
            reason: s("no HTTP"),
        },
        ModelError::TimedOut(Duration::from_secs(90)),
        ModelError::NoTimeLeft {
            error: Box::new(connection()),
            wait: Duration::from_mins(1),
        },
        ModelError::NoTimeLeft {
            error: Box::new(status(429, VendorError::default(), None)),
            wait: Duration::from_mins(1),
        },
        ModelError::TooLarge,
        ModelError::NoBody,
        ModelError::Malformed(s("is an array")),
        ModelError::NotJson {
            snippet: s("<html>"),
            source: serde_json::from_str::<Value>("<html>").unwrap_err(),
        },
        ModelError::ErrorInAnswer(VendorError::default()),
        ModelError::ErrorInAnswer(invalid),
        ModelError::Blocked {
            finish: s("SAFETY"),
            spent: Box::default(),
        },
        ModelError::Refused {
            message: s("no"),
            finish: s("stop"),
            spent: spent(),
        },
        ModelError::Empty {
            finish: s("STOP"),
            spent: spent(),
        },
        ModelError::OtherModel {
            asked: s("gpt-5"),
            served: s("gpt-5-mini"),
            finish: s("stop"),
            spent: spent(),
        },
        ModelError::Unfinished,
        ModelError::Recorded {
            message: s("a recorded error"),
            hint: s("a recorded hint"),
            reason: s("busy/503"),
            is_free: false,
        },
        ModelError::NotRecorded(s("0001-step-response.json")),
        ModelError::Unreadable {
            path: p("some/path"),
            source: denied(),
        },
        ModelError::Interrupted(interrupted()),
    ]);
    let ends = [End::MaxTokens, End::ToolCalls, End::Refused, End::Other];
    errors.extend(ends.map(cut_short));
    errors
}

fn over_budgets() -> [OverBudget; 3] {
    let limit = Usd::try_from(2.0).unwrap();
    let too_little = |spent| OverBudget::TooLittle {
        spent,
        limit,
        prompt_tokens: 12_345,
    };
    [
        too_little(Usd::ZERO),
        too_little(Usd::try_from(1.5).unwrap()),
        OverBudget::Unpriced {
            asked: s("gpt-5"),
            served: s("gpt-5-mini"),
            table: s("agent-config/models.json"),
        },
    ]
}

fn recover_errors() -> Vec<ApplyError> {
    vec![
        ApplyError::Changed(vec![s("`a`"), s("`b`")]),
        ApplyError::NotRecovered(path_error("read")),
        ApplyError::EarlierJournal(path_error("read")),
    ]
}

fn apply_errors() -> Vec<ApplyError> {
    let error = Box::new(ApplyError::RolledBack(path_error("write")));
    let mut errors = vec![
        ApplyError::RolledBack(path_error("write")),
        ApplyError::NotRolledBack {
            error,
            obstacle: Box::new(ApplyError::NotRecovered(path_error("read"))),
        },
    ];
    errors.extend(recover_errors());
    errors
}

fn rejection(kind: FaultKind) -> Rejection {
    let faults = vec![ReplyFault { line: 4, kind }];
    Rejection { faults }
}

fn elided() -> FaultKind {
    FaultKind::Elided {
        path: s("src/a.rs"),
        line: 9,
        lost: 40,
    }
}

fn redacted() -> FaultKind {
    FaultKind::Redacted {
        path: s("src/a.rs"),
        mark: s("[REDACTED]Zz"),
    }
}

fn sandbox_problems() -> Vec<SandboxProblem> {
    vec![
        SandboxProblem::NotInstalled,
        SandboxProblem::Unusable(s("no user namespaces")),
        SandboxProblem::Moved(p("/some/path")),
        SandboxProblem::Io(denied()),
    ]
}

fn mcp_errors() -> Vec<McpError> {
    let server = || s("https://host/mcp");
    let timed_out = || McpError::TimedOut {
        server: server(),
        limit: Duration::from_secs(5),
    };
    let status = |status| McpError::Status {
        server: server(),
        status,
        words: s("some words"),
        tries: 2,
    };
    let program = |was_started| McpError::Program {
        program: s("npx"),
        reason: s("has ended"),
        output: s("some output"),
        was_started,
    };
    let mut errors = vec![
        McpError::Interrupted(interrupted()),
        McpError::NoAnswer {
            server: server(),
            reason: s("it broke"),
            tries: 2,
        },
        timed_out(),
        McpError::Protocol {
            server: server(),
            problem: s("no JSON"),
        },
        McpError::Version {
            server: server(),
            versions: s("1999-01-01"),
        },
        McpError::NoTimeLeft {
            source: Box::new(timed_out()),
            wait: Duration::from_secs(9),
        },
        McpError::TooLarge(server()),
        McpError::Tool(s("the tool says no")),
        McpError::Doubtful(Box::new(timed_out())),
        program(true),
        program(false),
        McpError::NotRecorded {
            asked: s("a"),
            recorded: Some(s("b")),
        },
        McpError::Replayed {
            message: s("it said so"),
            is_lost: true,
        },
    ];
    errors.extend([401, 404, 429, 503].map(status));
    errors
}

fn agent_errors() -> Vec<AgentError> {
    let too_long = |larger: Option<&str>| AgentError::TooLong {
        tokens: 123_456,
        window: 100_000,
        answer: if larger.is_some() { 20_000 } else { 0 },
        larger: larger.map(s),
    };
    let mut errors = vec![
        AgentError::NotUnderstood {
            tries: 3,
            fault: Fault::at(2, "no fence"),
        },
        AgentError::ToolsFailed {
            tries: 3,
            tool: s("READ_FILE"),
            problem: s("there is none"),
        },
        AgentError::AuditFailed {
            audits: 3,
            feedback: s("not done"),
        },
        AgentError::LoopLimit(1000),
        AgentError::NotCompressed {
            before: 200_000,
            after: 190_000,
            limit: 131_072,
        },
        too_long(None),
        too_long(Some("gpt-5")),
        too_long(None).at_once(),
        AgentError::Rejected(s("Delete all?")),
        AgentError::Left,
        PlanError::GateFailed {
            step: 2,
            status: s("exit code: 1"),
            log: s("logs/x/build.txt"),
        }
        .into(),
        PlanError::StepFailed {
            step: 2,
            reason: s("the file is gone"),
        }
        .into(),
        OrchestrateError::IterationLimit(3).into(),
        OrchestrateError::BranchTimeout {
            branch: s("b-1"),
            agent: "claude_code",
            waited: Duration::from_hours(1),
        }
        .into(),
        OrchestrateError::PublishFailed(s("no token")).into(),
        OrchestrateError::NotReviewed(s("no run has succeeded")).into(),
        OrchestrateError::MayBePublished.into(),
        AgentError::Interrupted(interrupted()),
        AgentError::Host(CommandError::NothingAsked.into()),
    ];
    errors.extend(over_budgets().map(AgentError::from));
    errors.extend(mcp_errors().into_iter().map(AgentError::from));
    errors.extend(process_errors().into_iter().map(AgentError::Process));
    errors
}

fn process_errors() -> Vec<ProcessError> {
    let mut errors = vec![
        ProcessError::NotStarted {
            program: s("cargo"),
            source: denied(),
        },
        ProcessError::NoSupervisor,
        ProcessError::ForeignProc,
        ProcessError::Io(denied()),
        ProcessError::Output(path_error("write")),
        ProcessError::Interrupted(interrupted()),
    ];
    errors.extend(sandbox_problems().into_iter().map(ProcessError::Sandbox));
    errors
}

fn script_problems() -> Vec<ScriptProblem> {
    vec![
        ScriptProblem::Missing,
        ScriptProblem::NotAFile,
        ScriptProblem::Unreadable(s("denied")),
        ScriptProblem::NotExecutable,
        ScriptProblem::Placeholder,
        ScriptProblem::NoShebang,
        ScriptProblem::CrlfShebang,
        ScriptProblem::NoInterpreter(s("/bin/none")),
    ]
}

fn statements(told: &mut Told) {
    for error in [
        NotRecomputed::NoRecord(s("logs/x")),
        NotRecomputed::NoModel(s("logs/x")),
        NotRecomputed::Missing(s("logs/x/result.json")),
        NotRecomputed::Rejected {
            path: s("logs/x/initial-query-response.txt"),
            rejection: rejection(FaultKind::NoPath),
        },
        NotRecomputed::Redacted {
            path: s("src/a.rs"),
            reply: s("logs/x/initial-query-response.txt"),
        },
        NotRecomputed::Other {
            path: s("src/a.rs"),
            folder: s("logs/x"),
        },
        NotRecomputed::NoDigest(s("src/a.rs")),
    ] {
        told.error(error);
    }
    for error in [
        StatementError::NotSigned(s("`ssh-keygen` is not installed")),
        StatementError::Missing(p("a.json")),
        StatementError::NoStatement(p("a.json")),
        StatementError::Differs {
            run: s("logs/x"),
            differences: vec![s("/predicate/cost: 1 is recorded, not 2"); 21],
        },
        StatementError::BadSignature(s("no key")),
    ] {
        told.error(error);
    }
}

fn commands_own(told: &mut Told) {
    told.heading("commands");
    for name in ["nothing", "claude-sonnet-5"] {
        told.error(RunError::UnknownModel {
            name: s(name),
            known: s("`a`, `b`"),
        });
    }
    told.error(CommandError::NotInCatalogue {
        name: s("c"),
        known: s("`a`, `b`"),
    });
    told.error(CommandError::ModelIsThere(s("a")));
    told.error(CommandError::CommandLine {
        message: s("unexpected argument '--a' found"),
        hint: s("see `code-commit --help`"),
    });
    told.error(CommandError::WarningsDenied {
        warnings: vec![
            DeniedWarning(s("`a.rs` skips a test")),
            DeniedWarning(s("`b` has changed")),
        ],
    });
    statements(told);
    told.error(RunError::GateWeakened {
        files: s("`tests/a.rs`"),
        log: s("logs/x/old-gate-build.txt"),
    });
    told.error(RunError::NoText {
        path: s("a"),
        folder: s("logs/x"),
    });
    told.error(RunError::NotProven {
        log: s("logs/x/new-tests-build.txt"),
    });
    told.error(DoesNotFit {
        model: s("a"),
        prompt_tokens: 200_000,
        window: 100_000,
    });
    told.error(CommandError::DemoNotEmpty(p("demo")));
    for kind in [FaultKind::NoPath, elided(), redacted()] {
        told.error(CommandError::Rejected {
            rejection: rejection(kind),
            run: s("logs/x"),
        });
    }
    told.error(CommandError::NoEdits);
    told.error(CommandError::NothingChanged);
    told.error(CommandError::Findings {
        counts: s("1 error, 2 warnings and 0 notes"),
        limit: "warning",
    });
    told.error(CommandError::NoFindings(s("the reply needs `findings`")));
    told.error(CommandError::Unproven {
        status: s("exit code: 1"),
        log: s("logs/x/0003-proof-tool.txt"),
    });
    told.error(CommandError::NoProof(ScriptProblem::Missing));
    told.error(CommandError::OutputFile {
        what: "summary",
        path: p("build.sh"),
        why: Rule::ProtectedFile.to_string(),
    });
    told.error(CommandError::NoRoot {
        path: p("nowhere"),
        source: denied(),
    });
    told.error(CommandError::NoSuchCommand(s("fly")));
    code_base(told);
    told.error(CommandError::BuildFailed {
        repairs: 3,
        status: s("exit code: 1"),
        log: s("logs/x/build.txt"),
        can_go_on: true,
    });
    told.error(CommandError::Unreliable {
        percent: 60,
        at_least: 90,
    });
    told.error(PlanFileError::Outside(p("../a")));
    told.error(PlanFileError::Elsewhere {
        path: p("a"),
        known: p("b"),
    });
    told.error(PlanFileError::NoPlan(p("a")));
    told.error(CommandError::NothingAsked);
    for command in ["/login", "/logout", "!", "/model"] {
        told.error(CommandError::PromptCommand(s(command)));
    }
    told.error(CommandError::NoSlashCommand(s("fly")));
    told.error(CommandError::SearchOnEdits);
    told.error(CommandError::ToolArguments(s("it is a list")));
    told.error(interrupted());
    for signal in [Signal::Int, Signal::Hup] {
        told.error(Interrupted { signal });
    }
    let problem = ProjectProblem::NoGitignore;
    told.error(NotReady::of(problem));
}

fn code_base(told: &mut Told) {
    told.error(RunError::NoIndex(ProjectProblem::NoRepository));
    told.error(RunError::StagedUnreadable(s("git does not have `a`")));
    told.error(RunError::NoIndex(ProjectProblem::DamagedIndex {
        path: p(".git/index"),
        cause: s("short"),
    }));
    told.error(RunError::NotTracked(p("a")));
    told.error(RunError::NotSent {
        path: s("a"),
        reason: "secret",
    });
    told.error(RunError::NothingToRollUp(s("2 files")));
}

fn not_ready(id: &str) -> MietteDiagnostic {
    MietteDiagnostic::new(format!("{id}: not ready: not found"))
}

fn fleet(told: &mut Told) {
    told.heading("fleet");
    let (id, dollars) = (|| s("web"), |amount| Usd::try_from(amount).unwrap());
    let mistake = |line| Misplaced {
        line,
        column: 8,
        reason: s("the query is empty"),
    };
    let (path, repository) = (|| p("tasks.jsonl"), || s("../web"));
    let (action, problem) = ("clone", || s("not found"));
    told.error(FleetError::Manifest {
        path: path(),
        mistakes: (1..=21).map(mistake).collect(),
    });
    told.error(FleetError::Secrets {
        path: path(),
        found: s("\n  line 1: a key of OpenAI"),
    });
    for error in [
        FleetError::NoManifest(path()),
        FleetError::NoTask {
            path: path(),
            index: 7,
            count: 3,
        },
        FleetError::Differs {
            lock: p("tasks.jsonl.lock"),
            what: s("query of `web`"),
        },
        FleetError::OtherTask {
            id: id(),
            folder: p("out/web"),
        },
        FleetError::Taken {
            id: id(),
            folder: p("out/web"),
        },
        FleetError::Held(id()),
        FleetError::NoKey {
            id: id(),
            variable: s("TEAM_KEY"),
        },
        FleetError::NoKeyVariable {
            id: id(),
            model: s("own"),
        },
        FleetError::NoModel {
            id: id(),
            model: s("own"),
        },
        FleetError::NoDirectory {
            id: id(),
            name: "logs",
        },
        FleetError::Repository {
            action,
            repository: repository(),
            problem: problem(),
        },
        FleetError::Remote {
            action,
            repository: repository(),
            problem: problem(),
        },
        FleetError::NoLimit(id()),
        FleetError::OverBudget {
            id: id(),
            needed: dollars(0.2),
            spent: dollars(0.9),
            limit: dollars(1.0),
        },
        FleetError::UsedUp {
            id: id(),
            spent: dollars(1.0),
            cut_off: dollars(0.9),
            limit: dollars(1.0),
        },
        FleetError::Unsafe {
            id: id(),
            problem: problem(),
        },
        FleetError::Killed(id()),
        FleetError::NotReady {
            problems: vec![not_ready("web"), not_ready("b")],
            count: 3,
        },
        FleetError::DryRun(s("`build.sh` does not exist")),
        FleetError::Failed {
            failed: 2,
            count: 3,
        },
        FleetError::Stopped {
            failed: 2,
            first: 5,
            percent: 20,
        },
    ] {
        told.error(error);
    }
}

fn chat(told: &mut Told) {
    told.heading("chat");
    told.error(RunError::RetiredModel {
        name: s("c"),
        successor: "d",
    });
    told.error(ChatError::NoNativeTools("c".to_owned()));
    told.error(ChatError::NoTiers("Anthropic"));
    told.error(ChatError::Account(NoAccount::NotAName));
    told.error(ChatError::Account(NoAccount::Unknown {
        known: vec![s("home")],
    }));
    told.error(ChatError::NotAKey(KeyProblem::Empty));
    told.error(ChatError::KeyAsArgument);
    told.error(ChatError::KeyRefused(s("invalid")));
    for is_asked_always in [true, false] {
        told.error(ChatError::NotPermitted(NotPermitted {
            calls: vec![s("write `a`")],
            is_asked_always,
        }));
    }
    told.error(ChatError::Image(ImageProblem {
        path: p("a.png"),
        problem: s("it is larger than 5 MB; make it smaller first"),
    }));
    told.error(ChatError::UnknownCommand(s("fly")));
    told.error(ChatError::NotExpanded {
        name: s("mine"),
        problem: s("it runs `rm`"),
    });
    told.error(ChatError::NoTerminal(
        "`TERM` is unset or names a dumb terminal",
    ));
}

fn below(told: &mut Told) {
    told.heading("files");
    for (action, source) in [
        ("read", denied()),
        ("write", denied()),
        ("read", large()),
        ("write", io::Error::other("a refusal")),
    ] {
        told.error(PathError::of(action, "some/path")(source));
    }
    told.heading("model");
    for error in model_errors() {
        told.error(error);
    }
    for error in over_budgets() {
        told.error(error);
    }
    told.heading("replay");
    for problem in [
        RecordingProblem::Missing(p("logs/x")),
        RecordingProblem::NoOrchestration(p("logs/x")),
        RecordingProblem::OtherModel {
            folder: p("logs/x"),
            recorded: s("a"),
            asked: s("b"),
        },
        RecordingProblem::UnknownModel {
            folder: p("logs/x"),
            recorded: s("a"),
        },
    ] {
        told.error(problem);
    }
    for problem in [
        RunError::NoSuchRun(p("x")),
        RunError::AmbiguousRun {
            named: s("2026"),
            names: vec![s("2026-a"), s("2026-b")],
        },
        RunError::NoRun("changed anything"),
        RunError::RunsUnreadable(path_error("read")),
    ] {
        told.error(problem);
    }
    told.heading("edit");
    told.error(VerifyError::Rejected(rejection(elided())));
    told.error(VerifyError::Io(path_error("read")));
    told.error(VerifyError::Io(PathError::of("read", "a")(large())));
    for error in apply_errors() {
        told.error(error);
    }
    for error in recover_errors() {
        told.error(error);
    }
    told.error(UndoLogError::from(path_error("read")));
    told.error(UndoError::Changed(vec![s("`a`")]));
    told.error(UndoError::Io(path_error("read")));
    for error in apply_errors() {
        told.error(UndoError::Apply(error));
    }
    for error in recover_errors() {
        told.error(UndoError::Apply(error));
    }
    told.heading("exec");
    for problem in script_problems() {
        told.error(ProcessError::Script(problem));
    }
    told.error(ProcessError::Build(PathError {
        path: p("build.sh"),
        ..path_error("run")
    }));
    told.error(ProcessError::Log(denied()));
    for problem in sandbox_problems() {
        told.error(ProcessError::Sandbox(problem));
    }
    told.error(ProcessError::Interrupted(interrupted()));
    for error in process_errors() {
        told.error(error);
    }
    told.heading("ui");
    for error in [
        InputError::Interrupted(interrupted()),
        InputError::Io(denied()),
        InputError::NotUtf8(3),
        InputError::LineTooLong(3),
        InputError::TooLong,
        InputError::Blank,
    ] {
        told.error(error);
    }
    told.error(EditorProblem::NotSet);
    told.error(EditorProblem::NoCommand(s("'vi")));
    told.error(EditorProblem::NotStarted {
        command: s("vi"),
        source: denied(),
    });
}

fn agents(told: &mut Told) {
    told.heading("agent");
    for error in agent_errors() {
        told.error(error);
    }
    told.heading("an agent's model");
    for error in model_errors() {
        told.error(AgentError::Model(error));
    }
    told.heading("MCP");
    for error in mcp_errors() {
        told.error(error);
    }
    let url = EndpointProblem::BadProxy {
        variable: s("HTTPS_PROXY"),
    };
    told.error(McpError::Url(url));
    told.error(McpError::Query(s("https://host")));
    told.error(McpError::Command(s("'npx")));
    told.heading("session");
    for home in [&CHAT, &PLAN] {
        for error in [
            SessionError::Missing { id: s("x"), home },
            SessionError::Exists(s("x")),
            SessionError::NoneIn {
                directory: s("/a"),
                home,
            },
            SessionError::Elsewhere {
                id: s("x"),
                directory: s("/a"),
                here: s("/b"),
            },
            SessionError::InUse {
                id: s("x"),
                process: Some(7),
            },
            SessionError::Damaged {
                path: p("/a/x"),
                mistake: s("line 1"),
            },
            SessionError::Unlockable {
                path: p("/a/x"),
                home,
                source: denied(),
            },
            SessionError::Io {
                what: "written",
                path: p("/a/x"),
                home,
                source: denied(),
            },
        ] {
            told.error(error);
        }
    }
    told.heading("plan");
    told.error(PlanFileError::File(path_error("read")));
    told.error(plan_unreadable());
}

fn plan_unreadable() -> PlanFileError {
    PlanFileError::Unreadable {
        path: p("plan.md"),
        source: PlanDocumentError::NoHeading,
    }
}

fn project_problems() -> Vec<ProjectProblem> {
    let unreadable = |path: &str, source| ProjectProblem::Unreadable {
        path: s(path),
        source,
    };
    vec![
        ProjectProblem::NoGitignore,
        ProjectProblem::NotIgnored,
        ProjectProblem::LinkNotIgnored {
            path: s("agent-config/gemini-key.txt"),
            target: s("cfg/gemini-key.txt"),
        },
        ProjectProblem::Missing(s("agent-config/query.txt")),
        ProjectProblem::Missing(s("agent-config/codeRollup.txt")),
        ProjectProblem::Missing(s("agent-config/gemini-key.txt")),
        unreadable("a", large()),
        unreadable("a/.git", denied()),
        unreadable("a", denied()),
        ProjectProblem::NotAFile(s("a")),
        ProjectProblem::NotADirectory(s("a")),
        ProjectProblem::NotUtf8 {
            path: s("a"),
            offset: 7,
        },
        ProjectProblem::EmptyQuery,
        ProjectProblem::ExampleQuery,
        ProjectProblem::Key {
            path: s("agent-config/gemini-key.txt"),
            problem: KeyProblem::MultiLine,
        },
        ProjectProblem::Tracked {
            path: s("agent-config/models.json"),
            tracked: s("agent-config"),
        },
        ProjectProblem::Index {
            path: s("a"),
            problem: s("no index"),
        },
        ProjectProblem::NotWritable(s("a")),
        ProjectProblem::Held { process: Some(7) },
        ProjectProblem::Unlockable(denied()),
    ]
}

fn readiness(told: &mut Told) {
    told.heading("not ready: run");
    for error in project_problems() {
        told.problem(error);
    }
    let missing = || ProjectProblem::Missing(s("agent-config/gemini-key.txt"));
    for variable in [Some("GEMINI_API_KEY"), None] {
        told.problem(NoKey::Missing {
            problem: missing().to_string(),
            hint: missing().hint().unwrap(),
            variable,
            is_empty: variable,
        });
    }
    told.problem(NoKey::Unusable {
        problem: missing().to_string(),
        hint: missing().hint().unwrap(),
    });
    told.problem(NoKey::Variable {
        variable: "GEMINI_API_KEY",
        problem: KeyProblem::NotVisibleAscii,
    });
    for error in script_problems() {
        told.problem(error);
    }
    told.problem(RunError::BaselineFails {
        status: s("exit code: 1"),
        end: s("\n    error"),
    });
    told.problem(RunError::BaselineChangesGate(s("`a` was changed")));
    told.problem(RunError::OtherWorkflow(s("logs/x"), "a change"));
    told.problem(RunError::OtherInputs(s("logs/x")));
    told.problem(RunError::NothingToResume(s("logs/x")));
    told.problem(RunError::NoQuery(s("logs/x")));
    told.problem(RunError::Lost(s("logs/x/replaced/1")));
    told.problem(RunError::OtherTree {
        folder: s("logs/x"),
        files: vec![s("`a`")],
    });
    let sandbox = sandbox_problems().into_iter().map(RunError::NotSandboxed);
    for problem in sandbox {
        told.problem(problem);
    }
    let finding = Finding {
        kind: "a private key",
        file: "agent-config/query.txt",
        line: 3,
        within: None,
    };
    told.problem(RunError::SecretsFound(vec![finding; 21]));
    readiness_of_models(told);
}

fn readiness_of_models(told: &mut Told) {
    let variable = || s("OPENAI_BASE_URL");
    told.problem(EndpointProblem::NotAUrl {
        variable: variable(),
        value: s("https://me@host"),
        example: "https://host/path",
    });
    for has_key in [true, false] {
        told.problem(EndpointProblem::Insecure {
            has_key,
            variable: variable(),
            value: s("http://host"),
        });
    }
    told.problem(EndpointProblem::Unset {
        variable: variable(),
        example: "https://host/path",
    });
    told.problem(EndpointProblem::BadProxy {
        variable: variable(),
    });
    let url = || s("http://localhost:11434");
    told.problem(ServerProblem::NotThere {
        url: url(),
        reason: s("refused"),
    });
    told.problem(ServerProblem::NotOllama {
        url: url(),
        reason: s("404"),
    });
    told.problem(ServerProblem::NotInstalled {
        model: s("qwen3"),
        url: url(),
        installed: vec![s("a")],
    });
    told.problem(ServerProblem::NotPulled {
        model: s("qwen3"),
        reason: s("no room"),
    });
    told.problem(ServerProblem::Interrupted(interrupted()));
    told.problem(ModelsProblem::Unreadable(s("`models.json` is a link")));
    told.problem(ModelsProblem::NotUsers {
        problem: s("git tracks it"),
        hint: s("remove it"),
    });
    told.problem(ModelsProblem::Mistake(TableProblem {
        file: s("agent-config/models.json"),
        mistake: mistake(),
    }));
    told.problem(ModelsProblem::Unselected(Unselected {
        task: TaskType::Coding,
        known: s("`a`"),
    }));
    told.problem(SendingProblem::Stale(s("`a` has changed")));
    told.problem(SendingProblem::NoFiles);
    told.problem(SendingProblem::NoPrice {
        model: s("a"),
        table: s("`agent-config/models.json`"),
    });
    told.problem(SendingProblem::TooExpensive {
        calls: "a report by parts",
        limit: Usd::ZERO,
        why: s("3 calls, at an unknown price"),
    });
    told.problem(DotenvProblem::Unreadable {
        path: p(".env"),
        cause: s("denied"),
    });
    told.problem(DotenvProblem::Tracked);
    told.problem(DotenvProblem::Malformed(2));
    told.problem(DotenvProblem::Dollar(2));
    told.problem(HomeFileProblem::NoPlace {
        variable: "HOME",
        own: "AGENT_HOME",
    });
    told.problem(HomeFileProblem::NotAbsolute {
        variable: "HOME",
        value: s("here"),
        own: "AGENT_HOME",
    });
}

fn readiness_of_agents(told: &mut Told) {
    told.heading("not ready: agents");
    told.problem(InstructionsProblem {
        path: p("AGENTS.md"),
        reason: s("it is not UTF-8"),
    });
    told.problem(plan_unreadable());
    told.problem(NoToken("MCP_BEARER_TOKEN", KeyProblem::Empty));
    let path = || p("/home/a/config.json");
    told.problem(HomeFileProblem::NotMade {
        own: DEV.variable,
        problem: path_error("make"),
    });
    told.problem(SettingsProblem::Variable {
        variable: "DEV_AGENT_MODEL",
        reason: s("is empty"),
    });
    told.problem(SettingsProblem::NoModel(s("mine")));
    for source in [large(), denied()] {
        told.problem(HomeFileProblem::Unreadable {
            path: path(),
            source,
        });
    }
    told.problem(HomeFileProblem::Mistake {
        path: path(),
        mistake: mistake(),
        without: "nothing is lost",
    });
    let signed_out = || NoKey::SignedOut(Provider::Anthropic);
    told.problem(signed_out());
    told.problem(NoKey::Variable {
        variable: "ANTHROPIC_API_KEY",
        problem: KeyProblem::Empty,
    });
    told.problem(NoKey::Ambiguous {
        provider: Provider::OpenAi,
        accounts: vec![s("home"), s("work")],
    });
    told.problem(NoKey::ByCommand(s("home")));
    told.problem(NoKey::Command {
        account: s("home"),
        program: s("pass"),
        reason: s("did not end within 60 s"),
        variable: "ANTHROPIC_API_KEY",
    });
    told.error(signed_out().ending());
    told.error(NoKey::Interrupted(interrupted()).ending());
    told.problem(NoSuchTool {
        server: s("https://host/mcp"),
        missing: s("push"),
        known: s("`pull`"),
    });
    let without = "nothing is lost";
    let trust = || HomeFileProblem::Mistake {
        path: path(),
        mistake: mistake(),
        without,
    };
    for wanted in ["regular file", "directory"] {
        let path = path();
        told.problem(PermissionsProblem::NoFile { path, wanted });
    }
    told.problem(PermissionsProblem::Unwritable(path_error("write")));
    told.problem(PermissionsProblem::Untrusted(trust()));
    told.problem(PermissionsProblem::Changed(path()));
    told.problem(trust());
    told.problem(HomeFileProblem::Unwritable(path_error("write")));
}

/// If this test fails, the new list is in `target/golden.txt`.
#[test]
fn every_error_is_reported_as_before() {
    let mut told = Told::default();
    commands_own(&mut told);
    fleet(&mut told);
    chat(&mut told);
    below(&mut told);
    agents(&mut told);
    readiness(&mut told);
    readiness_of_agents(&mut told);
    if told.0 != GOLDEN {
        std::fs::write("target/golden.txt", &told.0).unwrap();
        let changed = told.0.lines().zip(GOLDEN.lines());
        let first = changed.enumerate().find(|(_, (now, then))| now != then);
        panic!("golden.txt says something else: {first:?}");
    }
}

#[test]
fn errors_with_a_report_say_how_to_continue() {
    for error in [
        AgentError::Interrupted(interrupted()),
        AgentError::LoopLimit(500),
    ] {
        let error = Error::from(error);
        assert!(error.hint().unwrap().contains("`--resume`"));
        assert_eq!(
            advice(&error).unwrap(),
            "the report's `instructions` say how to go on"
        );
    }
    let hint = advice(&AgentError::Model(connection()).into()).unwrap();
    assert!(!hint.contains("config.json"), "{hint}");
}

#[test]
fn no_hint_of_a_chat_reports_settings_that_it_does_not_read() {
    let status = |code| AgentError::Model(status(code, VendorError::default(), None));
    let mut invalid = VendorError::default();
    invalid.code = Some(s("invalid_request_error"));
    invalid.failure = FailureKind::BadRequest;
    for (error, way_out) in [
        (status(401), "`/login`"),
        (status(400), "`/compact`"),
        (status(404), "`/model`"),
        (
            AgentError::Model(ModelError::ErrorInAnswer(invalid)),
            "`/compact`",
        ),
        (AgentError::LoopLimit(500), "`--resume`"),
    ] {
        let hint = hint_in_chat(&error.into()).unwrap();
        assert!(hint.contains(way_out), "{hint}");
        for word in ["config.json", "agent-config", "maxLoops", "later"] {
            assert!(!hint.contains(word), "{hint}");
        }
    }
}

#[test]
fn a_chat_names_the_key_that_goes_before_what_is_stored() {
    let rejected = |key, is_keyless| {
        let error = status(401, VendorError::default(), None).with_setup(Setup {
            key,
            is_keyless,
            successor: None,
        });
        hint_in_chat(&AgentError::Model(error).into()).unwrap()
    };
    let hint = rejected(Some(KeySource::File(s("x.txt"))), false);
    assert!(hint.ends_with("`agent-config/x.txt` goes before what is stored"));
    let hint = rejected(Some(KeySource::Account(s("work"))), false);
    assert!(hint.ends_with("stores another"), "{hint}");
    assert!(!rejected(None, true).contains("/login"));
}
