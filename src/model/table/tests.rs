//! What `models.json` may say, and what each mistake in it is told as. Pure.

use super::*;

fn today() -> NaiveDate {
    "2026-11-23".parse().unwrap()
}

fn problem(json: &str) -> String {
    ModelTable::parse(json, today()).unwrap_err().to_string()
}

#[test]
fn without_rules_the_first_built_in_model_is_asked() {
    let table = ModelTable::parse("{}", today()).unwrap();
    assert_eq!(table, ModelTable::built_in());
    for purpose in [Purpose::INITIAL, Purpose::REPAIR, Purpose::REPORT] {
        assert_eq!(table.chosen(&purpose).name, "gemini-2.5-pro");
    }
    assert_eq!(table.key_files(), ["gemini-key.txt", "openai-key.txt"]);
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
    assert!((gpt.price.unwrap().output.dollars() - 8.0).abs() < 1e-9);
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
        let table = format!(
            r#"{{"models": {{"x": {{"provider": "ollama", "tools": "native", "numCtx": 16384, "keepAlive": {json}}}}}}}"#
        );
        let table = ModelTable::parse(&table, today());
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
fn a_mistake_is_told_with_its_place() {
    for (json, expected) in [
        ("", "line 1, column 1: EOF"),
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
            "line 2, column 12: there is no model `gpt-6`: known are gemini-2.5-pro, gpt-5",
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
fn a_mistake_in_what_is_ollamas_or_for_people_is_told() {
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
            "{\"models\": {\"x\": {\"provider\": \"gemini\", \"tools\": \"native\"}}}",
            "is for the providers `openai`, `azure`, `anthropic` and `ollama`",
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
