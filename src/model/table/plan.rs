//! The plan agent's table: its own `models.json`, and over it the project's. Pure.
//!
//! Guarantees that a default made for commits selects no model for a plan.

use std::path::Path;

use chrono::NaiveDate;

use super::{ModelTable, TableProblem, TaskType};
use crate::model::ModelSpec;
use crate::sys::positions;

/// Neither a rule nor a default selects a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no model is selected for `{}`: known are {known}", .task.word())]
pub struct Unselected {
    /// The task without a model.
    pub task: TaskType,
    /// The models that there are.
    pub known: String,
}

impl ModelTable {
    /// What the plan agent's own table begins with: `spec/plan-prompts.md`, 5.1.
    pub const PLAN_DEFAULTS: &str = include_str!("../../../prompts/plan_models.json");

    /// The plan agent's table: its own file, which is the content of `path`, and over it the project's `models.json`,
    /// but for its default, since that is made for commits; at the prices of `today`.
    ///
    /// # Errors
    /// When there is a mistake in either.
    pub fn for_plan(
        path: &Path,
        own: &[u8],
        project: Option<&str>,
        today: NaiveDate,
    ) -> Result<Self, TableProblem> {
        let mut table = Self::built_in();
        let default = positions::text(own).and_then(|own| table.merge(own, today, |_| true));
        table.default = default.map_err(TableProblem::of(path.display().to_string()))?;
        if let Some(project) = project {
            let merged = table.merge(project, today, |_| true);
            merged.map_err(TableProblem::of(Self::FILE))?;
        }
        Ok(table)
    }

    /// The model that the plan agent's table selects for a task of its own.
    ///
    /// # Errors
    /// When there is neither a rule for it nor a default.
    pub fn for_task(&self, task: TaskType) -> Result<&ModelSpec, Unselected> {
        let name = self.by_task.get(&task).or(self.default.as_ref());
        let named = name.and_then(|name| self.named(name));
        named.ok_or_else(|| Unselected {
            task,
            known: self.names(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Origin, Provider, Purpose};

    fn merged(own: &str, project: Option<&str>) -> Result<ModelTable, TableProblem> {
        let today = "2026-11-23".parse().unwrap();
        ModelTable::for_plan(
            Path::new("/home/x/models.json"),
            own.as_bytes(),
            project,
            today,
        )
    }

    /// Who plans, works and sums up.
    fn asked(table: &ModelTable) -> [&str; 3] {
        [
            TaskType::Planning,
            TaskType::Coding,
            TaskType::Summarization,
        ]
        .map(|task| &*table.for_task(task).unwrap().name)
    }

    #[test]
    fn the_specifications_file_has_three_models_and_their_tasks() {
        let table = merged(ModelTable::PLAN_DEFAULTS, None).unwrap();
        assert_eq!(
            table.names(),
            "gemini-2.5-pro, gpt-5, qwen2.5-coder:7b, qwen2.5-coder:32b, llama3.1:8b"
        );
        let coder = "qwen2.5-coder:7b";
        assert_eq!(asked(&table), ["llama3.1:8b", coder, coder]);
        for task in [TaskType::Architecture, TaskType::Refactoring] {
            assert_eq!(table.for_task(task).unwrap().name, "qwen2.5-coder:32b");
        }
        let llama = table.named("llama3.1:8b").unwrap();
        assert_eq!(llama.provider, Provider::Ollama);
        assert_eq!(llama.display_name.as_deref(), Some("Llama 3.1 8B"));
        assert_eq!(llama.capabilities, ["general", "reasoning", "tools"]);
        assert_eq!(
            llama.recommended_for,
            ["planning", "documentation", "analysis"]
        );
        assert_eq!(
            (llama.context_window, llama.key_file.as_deref()),
            (Some(128_000), None)
        );
        let prompt = llama.prompt.as_deref().unwrap();
        assert!(prompt.starts_with(
            "You are Llama 3.1, a helpful assistant. When working on tasks:\n- Think"
        ));
    }

    #[test]
    fn the_projects_rules_win_and_its_default_does_not_count() {
        let coder = "qwen2.5-coder:7b";
        for (rules, expected) in [
            (r#"{"default": "gpt-5"}"#, ["llama3.1:8b", coder, coder]),
            (
                r#"{"default": "gpt-5", "byTaskType": {"planning": "qwen2.5-coder:32b"}}"#,
                ["qwen2.5-coder:32b", coder, coder],
            ),
            (
                r#"{"byTaskType": {"commit": "gpt-5", "coding": "a", "summarization": "gpt-5"}}"#,
                ["llama3.1:8b", "a", "gpt-5"],
            ),
        ] {
            let project = format!(
                r#"{{"models": {{"a": {{"provider": "ollama"}}}}, "selectionRules": {rules}}}"#
            );
            let table = merged(ModelTable::PLAN_DEFAULTS, Some(&project)).unwrap();
            assert_eq!(asked(&table), expected, "{rules}");
        }
    }

    #[test]
    fn the_projects_entries_win_as_a_whole_and_change_the_built_in_ones_by_field() {
        let own = r#"{"models": {
            "a": {"provider": "ollama", "numCtx": 4096, "keepAlive": "1h", "prompt": "Be brief."},
            "b": {"provider": "ollama"},
            "gpt-5": {"maxOutputTokens": 9, "temperature": 1}
        }, "selectionRules": {"default": "a"}}"#;
        let project = r#"{"models": {
            "a": {"provider": "openai", "baseUrl": "http://127.0.0.1:8080/v1"},
            "gpt-5": {"temperature": 0.5}
        }}"#;
        let table = merged(own, Some(project)).unwrap();
        assert_eq!(table.names(), "gemini-2.5-pro, gpt-5, a, b");
        let a = ModelSpec {
            base_url: Some("http://127.0.0.1:8080/v1".to_owned()),
            origin: Origin::Added,
            ..ModelSpec::new("a", Provider::OpenAi)
        };
        assert_eq!(table.for_task(TaskType::Planning), Ok(&a));
        let gpt = table.named("gpt-5").unwrap();
        assert_eq!(
            (gpt.max_output_tokens, gpt.temperature),
            (Some(9), Some(0.5))
        );
        assert_eq!(gpt.origin, Origin::Overridden);
    }

    #[test]
    fn a_plan_without_a_rule_has_no_model() {
        let table = merged(
            r#"{"models": {"a": {"provider": "ollama"}}}"#,
            Some(r#"{"selectionRules": {"default": "gpt-5"}}"#),
        );
        assert_eq!(
            table
                .unwrap()
                .for_task(TaskType::Coding)
                .unwrap_err()
                .to_string(),
            "no model is selected for `coding`: known are gemini-2.5-pro, gpt-5, a"
        );
    }

    #[test]
    fn a_mistake_is_told_with_its_file_and_place() {
        let own = r#"{"models": {"a": {"provider": "ollama", "fallback": "b"}, "b": {"provider": "ollama"}}}"#;
        for (own, project, expected) in [
            (
                "{\"models\": {\n \"a\": {\"provider\": \"olama\"}}}",
                None,
                "`/home/x/models.json` is invalid: line 2, column ",
            ),
            (
                "{\"selectionRules\": {\"byTaskType\": {\"architecture\": \"a\"}}}",
                None,
                "`/home/x/models.json` is invalid: line 1, column 52: there is no model `a`: known are",
            ),
            (
                own,
                Some("{\n\"selectionRules\": {\"byTaskType\": {\"coding\": \"c\"}}}"),
                "`agent-config/models.json` is invalid: line 2, column 45: there is no model `c`: known are",
            ),
            (
                own,
                Some("{\"models\": {\"b\": {}}}"),
                "`agent-config/models.json` is invalid: line 1, column 18: `b` has no `provider`",
            ),
            (
                own,
                Some("{\"models\": {\"b\": {\"provider\": \"ollama\", \"fallback\": \"gpt-5\"}}}"),
                "`b`, the `fallback` of `a`, has a `fallback` itself",
            ),
        ] {
            let problem = merged(own, project).unwrap_err().to_string();
            assert!(problem.contains(expected), "{problem}");
        }
        let today = "2026-11-23".parse().unwrap();
        let binary = ModelTable::for_plan(Path::new("m"), b"{\n\xff", None, today);
        assert_eq!(
            binary.unwrap_err().to_string(),
            "`m` is invalid: line 2, column 1: this is not UTF-8"
        );
    }

    #[test]
    fn the_plan_agents_rules_choose_nothing_for_others() {
        let project = r#"{"models": {"a": {"provider": "ollama"}}, "selectionRules": {"byTaskType":
            {"planning": "a", "coding": "a", "summarization": "llama3.1:8b", "refactoring": "a"}}}"#;
        let table = ModelTable::parse(project, "2026-11-23".parse().unwrap()).unwrap();
        for purpose in [
            Purpose::INITIAL,
            Purpose::REPAIR,
            Purpose::REPORT,
            Purpose::STEP,
            Purpose::PLAN,
            Purpose::SUMMARY,
        ] {
            assert_eq!(table.chosen(&purpose).name, "gemini-2.5-pro");
        }
        let tasks: Vec<&str> = table.tasks("a").map(TaskType::word).collect();
        assert_eq!(tasks, ["planning", "coding", "refactoring"]);
    }
}
