//! Tests of a run whose agents change no project file: the files it leaves, and that nothing else is touched.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::agent::tools::files::Files as _;
use crate::edit::{Allowances, EditKind};
use crate::model::message::{Message, Role};
use crate::model::{Delivery, ModelTable, Provider};
use crate::project::Project;
use crate::record::branches::{BranchRecord, Lineage};
use crate::record::event::Reporter;
use crate::record::orchestration::Polling;
use crate::record::replay::Recording;
use crate::record::run_files::{LINEAGE, MCP, RESULT, STEPS};
use crate::record::seconds::Seconds;
use crate::run::agent_models::recorded_model;
use crate::run::context::{InputOptions, ModelChoice, SandboxSetup};
use crate::run::env_file::EnvFile;
use crate::secret::Redactor;
use crate::sys::environment::{Environment, SystemClock};
use crate::sys::interrupt::Interrupt;

const TOKEN: &str = "ghp_0123456789abcdef";

struct Silent;

impl Reporter for Silent {
    fn event(&self, _: &Event) {}

    fn is_live(&self) -> bool {
        false
    }
}

fn settings() -> OrchestrationSettings {
    OrchestrationSettings {
        asks_parents: true,
        begun: None,
        model: "deployed".to_owned(),
        names_model: false,
        provider: Provider::OpenAi,
        parent_branch_id: "start".to_owned(),
        project_name: "proj".to_owned(),
        workspace_dir: "/home/pan/workspace".to_owned(),
        publishes: true,
        polling: Polling {
            initial: Seconds::default(),
            max: Seconds::default(),
            timeout: Seconds::default(),
            factor: 2.0,
        },
    }
}

fn recorded<'c>(
    context: &Context<'c>,
    choice: &ModelChoice,
    recording: &Recording,
) -> Result<Models<'c>, Error> {
    let settings = settings();
    recorded_model(
        context,
        choice,
        recording,
        &settings.model,
        settings.provider,
    )
}

fn choice(model: Option<&str>) -> ModelChoice {
    ModelChoice {
        model: model.map(str::to_owned),
        replay: None,
        resume: None,
        others: Vec::new(),
        timeout: Duration::ZERO,
        delivery: Delivery::Whole,
        require_clean: false,
        allow_secrets: false,
        inputs: InputOptions::default(),
        require_model: false,
        tier: None,
        max_cost: None,
        reply_format: None,
    }
}

fn limits() -> LimitsRecord {
    LimitsRecord {
        max_context_tokens: None,
        max_retries: 3,
        max_retries_automated: 3,
        max_loops: 1,
        command_timeout: None,
    }
}

/// Does `work` in a project without git that contains the record of a run killed after its first reply.
fn in_project(work: impl FnOnce(&Context<'_>, &Recording)) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("logs/2026-01-01-00-00-00-orchestrate");
    fs::create_dir_all(&folder).unwrap();
    let answer = json!({"model": "deployed", "choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]});
    fs::write(folder.join("0001-step-response.json"), answer.to_string()).unwrap();
    let record = AgentRecord {
        session: None,
        request: Some("Mend it.".to_owned()),
        interactive: false,
        answers: Vec::new(),
        questions: Vec::new(),
        answer: None,
        limits: limits(),
        conventions: None,
        from: 0,
        orchestration: Some(settings()),
        mode: None,
    };
    let about = serde_json::to_string(&record).unwrap();
    fs::write(folder.join(AGENT), about).unwrap();
    let project = Project::new(root.path(), root.path());
    let (environment, clock) = (Environment::default(), SystemClock::start());
    let interrupt = Interrupt::never().unwrap();
    let (redactor, env_file) = (Redactor::new([TOKEN]), EnvFile::default());
    let models = Ok(ModelTable::built_in());
    let context: Context<'_> = Context {
        environment: &environment,
        env_file: &env_file,
        clock: &clock,
        interrupt: &interrupt,
        redactor: &redactor,
        reporter: &Silent,
        scratch: None,
        sandbox: SandboxSetup {
            program: None,
            document: None,
            hidden: Vec::new(),
            passed: &[],
            allowed_sockets: &[],
        },
        protection: &crate::edit::protection::Protection::default(),
        telemetry: None,
        models: &models,
        project,
    };
    let found = Recording::find(root.path(), &root.path().join("logs"), &folder).unwrap();
    work(&context, &found);
    let entries = fs::read_dir(root.path()).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["logs"]);
}

fn start<'c>(context: &'c Context<'c>, models: &'c Models<'c>) -> AgentRun<'c> {
    AgentRun::start(context, setup(models), Some("Mend it.")).unwrap()
}

fn setup<'c>(models: &'c Models<'c>) -> AgentSetup<'c> {
    AgentSetup {
        advice: Error::hint,
        name: "orchestrate",
        models,
        limits: limits(),
        session: None,
        answers: AnswerSource::Nowhere,
        warnings: Vec::new(),
        conventions: None,
        stops_at_no: false,
        changes: None,
        orchestration: Some(settings()),
        mode: None,
        proof: None,
    }
}

fn ask(run: &AgentRun<'_>) -> Result<Reply, AgentError> {
    let hello = Message::text(Role::User, "Hello?");
    Host::ask(
        run,
        &Purpose::STEP,
        Prompt::of_agent(["Answer."], vec![hello], 0),
    )
}

#[test]
fn a_run_without_the_projects_files_writes_its_own_folder_and_nothing_else() {
    in_project(|context, recording| {
        let told = recording.agent().and_then(|agent| agent.orchestration);
        assert_eq!(told, Some(settings()));
        let models = recorded(context, &choice(None), recording).unwrap();
        let (run, other) = (start(context, &models), start(context, &models));
        let folder = |run: &AgentRun<'_>| run.with(|run| run.log.name().to_owned());
        assert_ne!(folder(&run), folder(&other));
        assert_eq!(&*ask(&run).unwrap().text, "Hello.");
        assert!(matches!(
            run.apply(vec![("a.txt".to_owned(), EditKind::Write("x".to_owned()))]),
            Err(ToolError::Failed(_))
        ));
        let input = json!({"prompt": format!("push with {TOKEN}")});
        let step = (Purpose::PUBLISH, ("execute_agent", input));
        let publish = || Ok(ToolOutput::text(format!("pushed with {TOKEN}")));
        let published = run.own_step(step.0, step.1, publish).unwrap();
        assert!(published.failure.is_none() && !published.text.contains(TOKEN));
        run.with(|run| run.log.clone())
            .line(MCP, &json!({"method": TOKEN}))
            .unwrap();
        run.with(|run| run.log.clone())
            .line(MCP, &json!({"method": "2"}))
            .unwrap();
        let lineage = Lineage {
            branches: vec![BranchRecord {
                id: "b-1".to_owned(),
                parent: "start".to_owned(),
                agent: "codex".to_owned(),
                status: TOKEN.to_owned(),
                seconds: Seconds::default(),
                verdict: None,
            }],
            ..Lineage::default()
        };
        run.with(|run| run.log.json(LINEAGE, &lineage)).unwrap();
        let folder = context
            .project
            .root()
            .join(run.with(|run| run.log.name().to_owned()));
        let outcome = run.finish(Ok("done".to_owned())).unwrap();
        assert!(outcome.output.record.unwrap().stat.is_none());
        left_behind(&folder);
    });
}

/// Checks the folder of the run above against its actions.
fn left_behind(folder: &Path) {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(TOKEN), "{}", path.display());
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(
        names,
        [
            ".gitignore",
            "0001-step-response.json",
            "0001-step-response.txt",
            "0001-step.txt",
            "0002-publish-tool.txt",
            AGENT,
            LINEAGE,
            MCP,
            RESULT,
            STEPS,
        ]
    );
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!(read(MCP).lines().count(), 2);
    let result: serde_json::Value = serde_json::from_str(&read(RESULT)).unwrap();
    let steps = &result["attempts"];
    assert_eq!(steps[0]["kind"], "step");
    assert_eq!(
        (&steps[1]["kind"], &steps[1]["number"]),
        (&"publish".into(), &2.into())
    );
    assert_eq!(
        steps[1]["tools"],
        json!([{"name": "execute_agent", "failed": false}])
    );
    let last: serde_json::Value =
        serde_json::from_str(read(STEPS).lines().last().unwrap()).unwrap();
    assert_eq!(
        last["tools"][0]["input"]["prompt"],
        "push with [REDACTED]ef"
    );
    assert_eq!(last["model"], serde_json::Value::Null);
}

#[test]
fn another_model_is_not_replayed_and_a_call_beyond_the_limit_not_made() {
    in_project(|context, recording| {
        let other = choice(Some("other"));
        assert!(recorded(context, &other, recording).is_err());
        let models = recorded(context, &choice(None), recording).unwrap();
        let run = start(context, &models);
        ask(&run).unwrap();
        assert!(matches!(ask(&run), Err(AgentError::LoopLimit(1))));
    });
}

#[test]
fn several_files_are_changed_together_or_none_is() {
    in_project(|context, recording| {
        let models = recorded(context, &choice(None), recording).unwrap();
        let setup = AgentSetup {
            advice: Error::hint,
            changes: Some(Allowances::default()),
            ..setup(&models)
        };
        let run = AgentRun::start(context, setup, Some("Mend it.")).unwrap();
        let root = context.project.root();
        let apply = |edits: &[(&str, Option<&str>)]| {
            let edits = edits.iter().map(|(path, content)| {
                let content = content.map(str::to_owned);
                let kind = content.map_or(EditKind::Remove, EditKind::Write);
                ((*path).to_owned(), kind)
            });
            run.apply(edits.collect())
        };
        let read = |path: &str| fs::read_to_string(root.join(path)).ok();
        apply(&[("b", Some("1\n")), ("a", Some("2\n"))]).unwrap();
        let refused = apply(&[("a", Some("3\n")), ("b", None), (".git/x", Some("4"))]);
        let Err(ToolError::Failed(failure)) = refused else {
            panic!("`.git` is not changed");
        };
        assert!(failure.message.contains("`.git`"), "{failure}");
        assert_eq!(
            (read("a").as_deref(), read("b").as_deref()),
            (Some("2\n"), Some("1\n"))
        );
        apply(&[("b", None), ("a", Some("3\n"))]).unwrap();
        assert_eq!((read("a").as_deref(), read("b")), (Some("3\n"), None));
        let worktree = run.worktree.as_ref().unwrap();
        let diff = worktree.diff.take().unwrap();
        for line in ["-2\n", "+3\n", "deleted file mode 100644\n", "-1\n"] {
            assert!(diff.contains(line), "{diff}");
        }
        let written: Vec<String> = worktree.written.borrow().keys().cloned().collect();
        assert_eq!(written, ["a", "b"]);
        // Files that a part has written or removed are restored.
        run.begin_part();
        apply(&[("c", Some("5\n")), ("a", None)]).unwrap();
        run.revert_part().unwrap();
        assert_eq!((read("a").as_deref(), read("c")), (Some("3\n"), None));
        apply(&[("a", None)]).unwrap();
        run.finish(Ok("done".to_owned())).unwrap();
    });
}
