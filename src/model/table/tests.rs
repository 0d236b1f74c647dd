//! Tests of the syntax of `models.json`, and of the message for each mistake in it. Pure.

use super::*;
use crate::model::ToolForm;
use crate::model::price::Usd;
use crate::model::usage::Usage;

fn today() -> NaiveDate {
    "2026-11-23".parse().unwrap()
}

fn problem(json: &str) -> String {
    ModelTable::parse(json, today()).unwrap_err().to_string()
}

/// The path of the table in the home directory.
const HOMES: &str = "/home/x/.agent/models.json";

/// Reads the table with this file in the home directory.
fn homes(home: &str) -> Result<ModelTable, TableProblem> {
    let home = TableFile {
        place: Place::Home,
        path: HOMES,
        content: home.as_bytes(),
    };
    ModelTable::read([home], today())
}

/// Reads the table of the agent `plan`.
fn merged(own: &str, project: Option<&str>) -> Result<ModelTable, TableProblem> {
    let plan = TableFile {
        place: Place::Plan,
        path: "/home/x/models.json",
        content: own.as_bytes(),
    };
    let project = project.map(|json| TableFile {
        place: Place::Project,
        path: ModelTable::FILE,
        content: json.as_bytes(),
    });
    ModelTable::read(std::iter::once(plan).chain(project), today())
}

#[test]
fn the_built_in_files_have_no_mistake() {
    for json in [super::BUILT_IN, CHAT_MODELS] {
        ModelTable::parse(json, today()).unwrap();
    }
    let table = ModelTable::built_in();
    let [gemini, gpt] = ["gemini-2.5-pro", "gpt-5"].map(|name| table.named(name).unwrap());
    let price = gemini.price.unwrap();
    let long = price.long_prompt.unwrap();
    assert_eq!(
        (long.above, long.rates.cache_write),
        (200_000, long.rates.input)
    );
    assert_eq!(
        Some(price.rates.cached_input),
        gpt.price.map(|price| price.rates.cached_input)
    );
    assert_eq!((gemini.tools, gpt.origin), (None, Origin::BuiltIn));
}

#[test]
fn a_home_names_keys_by_vendor_unless_an_entry_has_a_server_of_its_own() {
    let json = r#"{"models": {"g": {"provider": "gemini"}, "o": {"provider": "openai", "keyFile": null},
        "local": {"provider": "openai", "baseUrl": "http://127.0.0.1:1/v1"}}}"#;
    let table = homes(json).unwrap();
    let file = |name| table.named(name).unwrap().key_file.as_deref();
    assert_eq!(
        [file("g"), file("o"), file("local")],
        [Some("gemini-key.txt"), None, None]
    );
    let table = ModelTable::parse(json, today()).unwrap();
    assert_eq!(table.named("g").unwrap().key_file, None);
}

#[test]
fn without_rules_the_first_built_in_model_is_asked() {
    let table = ModelTable::parse("{}", today()).unwrap();
    assert_eq!(table, ModelTable::built_in());
    for purpose in [Purpose::INITIAL, Purpose::REPAIR, Purpose::REPORT] {
        assert_eq!(table.chosen(&purpose).name, "gemini-2.5-pro");
    }
    let vendors = [
        "anthropic-key.txt",
        "azure-key.txt",
        "gemini-key.txt",
        "openai-key.txt",
    ];
    assert_eq!(ModelTable::all_key_files(None), vendors);
    assert_eq!(ModelTable::all_key_files(Some(&table)), vendors);
    let named = ["anthropic-key.txt", "gemini-key.txt", "openai-key.txt"];
    assert!(table.key_files().into_iter().eq(named));
}

#[test]
fn an_entry_adds_a_model_or_overrides_what_it_names_of_one() {
    let table = ModelTable::parse(
        r#"{"models": {
            "local": {"provider": "openai", "id": "qwen:7b", "baseUrl": "http://127.0.0.1:8080/v1",
                "contextWindow": 8192, "maxOutputTokens": 2048, "reasoningEffort": "low", "price": {"input": 0, "output": 0}},
            "gpt-5": {"id": "gpt-5.5", "keyFile": "agent-config/other.txt", "price": {"input": 2, "output": 8}}
        }}"#,
        today(),
    )
    .unwrap();
    let local = table.named("local").unwrap();
    assert_eq!(
        (local.id.as_str(), local.key_file.as_deref()),
        ("qwen:7b", None)
    );
    assert_eq!(local.context_window, Some(8192));
    assert_eq!(local.origin, Origin::Added);
    let gpt = table.named("gpt-5").unwrap();
    assert_eq!(
        (gpt.id.as_str(), gpt.key_file.as_deref()),
        ("gpt-5.5", Some("other.txt"))
    );
    assert_eq!(gpt.context_window, Some(272_000));
    assert!((gpt.price.unwrap().rates.output.dollars() - 8.0).abs() < 1e-9);
    assert_eq!(gpt.origin, Origin::Overridden);
}

#[test]
fn anthropics_entries_have_a_key_file_and_a_limit_unless_they_say_otherwise() {
    let json = r#"{"models": {"a": {"provider": "anthropic"},
        "b": {"provider": "anthropic", "keyFile": null, "maxOutputTokens": 9, "thinking": "adaptive", "temperature": 1,
            "tools": "native"}}}"#;
    let table = ModelTable::parse(json, today()).unwrap();
    let known = |name: &str| {
        let spec = table.named(name).unwrap();
        let thinks = spec.thinking.is_some();
        (spec.key_file.clone(), spec.max_output_tokens, thinks)
    };
    let file = Some("anthropic-key.txt".to_owned());
    assert_eq!(known("a"), (file, Some(32_000), false));
    assert_eq!(known("b"), (None, Some(9), true));
}

#[test]
fn ollamas_entries_say_how_it_is_to_load_them() {
    for (json, expected) in [
        ("5", true),
        ("-1", true),
        ("0", true),
        ("1.5", true),
        ("\"10m\"", true),
        ("\"1h30m\"", true),
        ("\"-1m\"", true),
        ("\"0\"", true),
        ("null", true),
        ("\"1\"", false),
        ("\"\"", false),
        ("\"10 m\"", false),
        ("\"for ever\"", false),
        ("true", false),
        ("[5]", false),
    ] {
        let text = format!(
            r#"{{"models": {{"x": {{"provider": "ollama", "tools": "native", "numCtx": 16384, "keepAlive": {json}}}}}}}"#
        );
        let table = ModelTable::parse(&text, today());
        assert_eq!(table.is_ok(), expected, "{json}");
        if let Ok(table) = table {
            let model = table.named("x").unwrap();
            let keep_alive = Some(json).filter(|json| *json != "null");
            assert_eq!(model.num_ctx, Some(16_384));
            assert_eq!(
                model
                    .keep_alive
                    .as_ref()
                    .map(ToString::to_string)
                    .as_deref(),
                keep_alive
            );
        }
    }
}

#[test]
fn rules_say_who_is_asked_for_what() {
    let rules = |rules: &str| {
        let json = format!(
            r#"{{"models": {{"a": {{"provider": "openai"}}, "b": {{"provider": "openai"}}}}, "selectionRules": {rules}}}"#
        );
        let table = ModelTable::parse(&json, today()).unwrap();
        [Purpose::INITIAL, Purpose::REPAIR, Purpose::REPORT]
            .map(|purpose| table.chosen(&purpose).name.clone())
    };
    let standard = "gemini-2.5-pro";
    for (json, expected) in [
        ("{}", [standard; 3]),
        (r#"{"default": "a"}"#, ["a"; 3]),
        (r#"{"byTaskType": {"commit": "a"}}"#, ["a", "a", standard]),
        (
            r#"{"default": "a", "byTaskType": {"repair": "b"}}"#,
            ["a", "b", "a"],
        ),
        (
            r#"{"default": "a", "byTaskType": {"consistency": "b"}}"#,
            ["a", "a", "b"],
        ),
    ] {
        assert_eq!(rules(json), expected, "{json}");
    }
}

#[test]
fn a_mistake_is_reported_with_its_position() {
    for (json, expected) in [
        ("", "line 1, column 1: the file is empty"),
        (
            "{\n  \"models\": [\n}",
            "line 2, column 12: invalid type: sequence",
        ),
        (
            "{\"modles\": {}}",
            "line 1, column 9: unknown field `modles`",
        ),
        (
            "{\"models\": {\n  \"x\": {\"provider\": \"openai\",\n    \"windw\": 1}}}",
            "line 3, column 11: unknown field `windw`",
        ),
        (
            "{\"models\": {\n  \"x\": {}}}",
            "line 2, column 8: `x` has no `provider`",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"bedrock\"}}}",
            "unknown variant `bedrock`",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"contextWindow\": 0}}}",
            "`0` is not a number of tokens, a whole number from 1 on",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"contextTokens\": 999}}}",
            "`contextTokens` is at least 1000",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"price\": {\"input\": -1, \"output\": 1}}}}",
            "an amount of dollars is a number from 0",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"baseUrl\": \"http://10.0.0.1/v1\", \"keyFile\": \"k.txt\"}}}",
            "plain http is taken for loopback hosts only",
        ),
        (
            "{\"models\": {\"gpt-5\": {\"baseUrl\": \"http://10.0.0.1/v1\"}}}",
            "plain http is taken for loopback hosts only",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"baseUrl\": \"http://example.com/v1\"}}}",
            "plain http is taken for loopback hosts only, and for private addresses",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"baseUrl\": \"nowhere\"}}}",
            "not a plain URL",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"id\": \"a?b\"}}}",
            "which `a?b` is not",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"keyFile\": \"../key\"}}}",
            "plain name of a file in `agent-config`",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\"}, \"x\": {\"provider\": \"openai\"}}}",
            "`x` is there twice",
        ),
        (
            "{\"models\": {\"gpt-5\": {\"provider\": \"gemini\"}}}",
            "built in with another provider",
        ),
        (
            "{\"models\": {\" \": {\"provider\": \"gemini\"}}}",
            "a model's name is made of",
        ),
        (
            "{\"selectionRules\": {\n\"default\": \"gpt-6\"}}",
            "line 2, column 12: there is no model `gpt-6`; known: gemini-2.5-pro, gpt-5",
        ),
        (
            "{\"selectionRules\": {\n\"byTaskType\": {\"repair\": 5}}}",
            "line 2, column 26: invalid type: integer",
        ),
        (
            "{\"selectionRules\": {\"byTaskType\": {\"fix\": \"gpt-5\"}}}",
            "unknown field `fix`",
        ),
    ] {
        let problem = problem(json);
        assert!(problem.contains(expected), "{json}\n{problem}");
    }
}

#[test]
fn a_mistake_in_what_is_ollamas_or_for_people_is_reported() {
    for (json, expected) in [
        (
            "{\"models\": {\"x\": {\"provider\": \"ollama\", \"numCtx\": 0.5}}}",
            "`0.5` is not a number of tokens",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"ollama\", \"keepAlive\": \"10\"}}}",
            "a duration like \"10m\", which `\"10\"` is not",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"keepAlive\": 60}}}",
            "`numCtx` and `keepAlive` are for the provider `ollama`",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"ollama\", \"displayName\": \"a\\nb\"}}}",
            "a `displayName` is one line of text",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"ollama\", \"capabilities\": \"code\"}}}",
            "expected a sequence",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"apiVersion\": \"1\"}}}",
            "`apiVersion` is for the provider `azure`",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"openai\", \"thinking\": \"adaptive\"}}}",
            "`thinking` is for the provider `anthropic`",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"anthropic\", \"thinking\": \"enabled\"}}}",
            "unknown variant `enabled`, expected `adaptive`",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"anthropic\", \"reasoningEffort\": \"minimal\"}}}",
            "does not take the `reasoningEffort` `minimal`",
        ),
        (
            "{\"models\": {\"x\": {\"provider\": \"anthropic\", \"serviceTier\": \"flex\"}}}",
            "`serviceTier` is not for the provider `anthropic`",
        ),
        (
            "{\"models\": {\"a:b\": {\"provider\": \"azure\"}}}",
            "`a:b` is not the name of a deployment",
        ),
    ] {
        let problem = problem(json);
        assert!(problem.contains(expected), "{json}\n{problem}");
    }
}

#[test]
fn a_key_in_the_place_of_its_file_is_not_shown() {
    for key in [
        "sk-proj-0123456789",
        "gsk_0123456789abcdef0123456789abcdef",
        "AIza0123456789",
    ] {
        let json =
            format!(r#"{{"models": {{"x": {{"provider": "openai", "keyFile": "{key}"}}}}}}"#);
        assert!(!problem(&json).contains(key));
    }
}

const CLAUDES: &str = "claude-fable-5-1, claude-opus-5-5, claude-sonnet-5-5, claude-haiku-5-5";

#[test]
fn a_temperature_takes_the_place_of_thinking() {
    for (entry, thinks) in [
        ("{}", true),
        (r#"{"temperature": 0.5}"#, false),
        (r#"{"temperature": 1, "thinking": "adaptive"}"#, true),
    ] {
        let own = format!(r#"{{"models": {{"claude-opus-5-5": {entry}}}}}"#);
        let table = homes(&own).unwrap();
        let spec = table.named("claude-opus-5-5").unwrap();
        assert_eq!(spec.thinking.is_some(), thinks, "{entry}");
    }
}

#[test]
fn the_vendors_four_are_built_in_with_their_windows_and_prices() {
    let table = homes(CHAT_MODELS).unwrap();
    assert_eq!(table.names(), format!("gemini-2.5-pro, gpt-5, {CLAUDES}"));
    assert_eq!(table.chat_default().name, "claude-sonnet-5-5");
    for (name, million_in, million_out) in [
        ("claude-fable-5-1", 10.0, 50.0),
        ("claude-opus-5-5", 4.0, 20.0),
        ("claude-sonnet-5-5", 2.0, 10.0),
        ("claude-haiku-5-5", 0.5, 2.5),
    ] {
        let spec = table.named(name).unwrap();
        assert_eq!(spec.provider, Provider::Anthropic);
        assert_eq!(spec.context_window, Some(1_000_000));
        assert_eq!(spec.max_output_tokens, Some(128_000));
        assert_eq!(spec.tools, Some(ToolForm::Native));
        assert_eq!(spec.key_file.as_deref(), Some("anthropic-key.txt"));
        assert_eq!(spec.origin, Origin::BuiltIn);
        let price = spec.price.unwrap();
        let million = 1_000_000;
        let all = price.of(Usage::plain(million, million));
        assert_eq!(
            all,
            Usd::try_from(million_in + million_out).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn an_own_file_changes_adds_and_chooses() {
    let names = homes("{}").unwrap().names();
    assert_eq!(names, format!("gemini-2.5-pro, gpt-5, {CLAUDES}"));
    let own = r#"{"models": {
        "claude-sonnet-5-5": {"maxOutputTokens": 9},
        "mine": {"provider": "anthropic", "id": "claude-x", "baseUrl": "https://proxy.test"}
    }, "selectionRules": {"default": "mine"}}"#;
    let table = homes(own).unwrap();
    assert_eq!(
        table.names(),
        "gemini-2.5-pro, gpt-5, claude-sonnet-5-5, mine, claude-fable-5-1, claude-opus-5-5, claude-haiku-5-5"
    );
    assert_eq!(table.chat_default().name, "mine");
    let sonnet = table.named("claude-sonnet-5-5").unwrap();
    assert_eq!(sonnet.max_output_tokens, Some(9));
    assert_eq!(sonnet.context_window, Some(1_000_000));
    let mine = table.named("mine").unwrap();
    assert_eq!((&*mine.id, mine.base_url_from), ("claude-x", Place::Home));
    let tables =
        ["mine", "claude-sonnet-5-5", "gpt-5"].map(|name| table.named(name).unwrap().table());
    assert_eq!(tables, [HOMES, HOMES, ModelTable::FILE]);
    // The other files' defaults do not apply to the home directory's.
    assert_eq!(table.chosen(&Purpose::INITIAL).name, "gemini-2.5-pro");
}

#[test]
fn a_mistake_in_the_homes_table_is_reported_with_its_position() {
    for (own, expected) in [
        ("", "line 1, column 1: the file is empty"),
        ("[]", "line 1, column 1: an object is expected here"),
        (
            "{\"models\": {\"a\": {\"provider\": \"antropic\"}}}",
            "line 1, column ",
        ),
        (
            "{\"selectionRules\": {\"default\": \"gpt-6\"}}",
            "line 1, column 32: there is no model `gpt-6`; known: gemini-",
        ),
        (
            "{\"selectionRules\": {\"default\": \"claude-3-opus\"}}",
            "line 1, column 32: the model `claude-3-opus` is retired: `claude-opus-5-5` is its successor",
        ),
        (
            "{\"models\": {\"claude-opus-5-5\": {\"contextWindow\": \"1M\"}}}",
            "line 1, column ",
        ),
    ] {
        let problem = homes(own).unwrap_err().to_string();
        let expected = format!("`/home/x/.agent/models.json` is invalid: {expected}");
        assert!(problem.starts_with(&expected), "{problem}");
    }
}

#[test]
fn listed_models_are_added_once() {
    let listed = |id: &str, window| ListedModel {
        id: id.to_owned(),
        display_name: String::new(),
        max_input_tokens: window,
        max_tokens: Some(64_000),
    };
    let mut table = homes("{}").unwrap();
    let list = [
        listed("claude-sonnet-5-5-20260901", None),
        listed("claude-haiku-5-5", None),
        listed("claude-next", Some(2_000_000)),
    ];
    for _ in 0..2 {
        table.add_listed(Provider::Anthropic, &list);
    }
    assert_eq!(
        table.names(),
        format!("gemini-2.5-pro, gpt-5, {CLAUDES}, claude-next")
    );
    let next = table.named("claude-next").unwrap();
    assert_eq!(next.context_window, Some(2_000_000));
    assert_eq!(next.max_output_tokens, Some(64_000));
    assert_eq!(next.price, None);
}

/// Returns the models for planning, coding and summarizing.
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
        format!(
            "gemini-2.5-pro, gpt-5, qwen2.5-coder:7b, qwen2.5-coder:32b, llama3.1:8b, {CLAUDES}"
        )
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
    assert!(
        prompt
            .starts_with("You are Llama 3.1, a helpful assistant. When working on tasks:\n- Think")
    );
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
    assert_eq!(
        table.names(),
        format!("gemini-2.5-pro, gpt-5, a, b, {CLAUDES}")
    );
    let a = ModelSpec {
        base_url: Some("http://127.0.0.1:8080/v1".to_owned()),
        base_url_from: Place::Project,
        origin: Origin::Added,
        file: Some(ModelTable::FILE.to_owned()),
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
        format!("no model is selected for `coding`; known: gemini-2.5-pro, gpt-5, a, {CLAUDES}")
    );
}

#[test]
fn a_mistake_in_plans_table_is_reported_with_its_file_and_place() {
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
            "`/home/x/models.json` is invalid: line 1, column 52: there is no model `a`; known: ",
        ),
        (
            own,
            Some("{\n\"selectionRules\": {\"byTaskType\": {\"coding\": \"c\"}}}"),
            "`agent-config/models.json` is invalid: line 2, column 45: there is no model `c`; known: ",
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
    let binary = TableFile {
        place: Place::Plan,
        path: "m",
        content: b"{\n\xff",
    };
    assert_eq!(
        ModelTable::read([binary], today()).unwrap_err().to_string(),
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
