//! Tests of errors' messages, and of the properties derived from errors. Pure.

use super::*;
use crate::model::KeySource;

fn status(status: u16, code: &str, message: &str) -> ModelError {
    let vendor = VendorError {
        code: Some(code.to_owned()),
        message: Some(message.to_owned()),
        ..VendorError::default()
    };
    ModelError::Status {
        status,
        model: "m".to_owned(),
        vendor: vendor.with_status(status),
        tries: 1,
        answer: Box::default(),
        setup: Setup::default(),
    }
}

#[test]
fn the_hint_for_a_rejected_key_names_its_place() {
    let file = KeySource::File("openai-key.txt".to_owned());
    let variable = KeySource::Variable("OPENAI_API_KEY");
    for (key, is_keyless, hint, in_dev) in [
        (
            Some(file),
            false,
            "into `agent-config/openai-key.txt`",
            false,
        ),
        (
            Some(variable),
            false,
            "set `OPENAI_API_KEY` to a valid one",
            false,
        ),
        (None, true, "check the base URL", false),
        (None, false, "the model's key file in `agent-config`", true),
    ] {
        let successor = None;
        let error = status(401, "", "").with_setup(Setup {
            key,
            is_keyless,
            successor,
        });
        assert!(error.hint().contains(hint), "{}", error.hint());
        let told = error.hint_with_config();
        assert_eq!(
            told.contains("`apiKey` of the agent's `config.json`"),
            in_dev,
            "{told}"
        );
    }
}

#[test]
fn permanent_failures_are_not_transient() {
    for (number, code, message, reason, hint) in [
        (
            429,
            "rate_limit_exceeded",
            "Request too large for gpt-5 on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.",
            "window",
            "too large",
        ),
        (
            400,
            "invalid_prompt",
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
            "refused",
            "reword the request",
        ),
        (
            400,
            "content_policy_violation",
            "It was rejected.",
            "refused",
            "reword the request",
        ),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            "quota",
            "the quota is spent",
        ),
        (
            429,
            "rate_limit_exceeded",
            "Rate limit reached for gpt-5.",
            "busy",
            "wait a while",
        ),
        (
            400,
            "",
            "registry.ollama.ai/library/gemma:2b does not support tools",
            "server",
            "ask another with `--model`",
        ),
        (
            404,
            "",
            "No endpoints found that support tool use.",
            "server",
            "ask another with `--model`",
        ),
    ] {
        let error = status(number, code, message);
        assert_eq!(error.reason(), reason, "{error}");
        assert!(error.hint().contains(hint), "{error}: {}", error.hint());
    }
}

#[test]
fn a_flagged_prompt_is_a_refusal_whatever_the_status() {
    for (number, code, expected) in [
        (400, "content_filter", true),
        (403, "content_filter", true),
        (403, "permission_error", false),
        (401, "content_filter", true),
    ] {
        let error = status(number, code, "no");
        assert_eq!(error.is_refusal(), expected, "{number} {code}");
        assert_eq!(error.refuses_key(), number == 401 || !expected);
    }
}

#[test]
fn a_prompt_that_does_not_fit_is_known_by_the_vendors_words() {
    for (number, code, message, expected) in [
        (
            400,
            "context_length_exceeded",
            "Your input exceeds it.",
            true,
        ),
        (
            400,
            "invalid_request_error",
            "This model's maximum context length is 4096 tokens. However, you requested 5000.",
            true,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            true,
        ),
        (
            400,
            "exceed_context_size_error",
            "the request exceeds the available context size, try increasing it",
            true,
        ),
        (
            413,
            "request_too_large",
            "prompt is too long: 201000 tokens > 200000 maximum",
            true,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 990000 + 32000 > 1000000",
            true,
        ),
        (
            413,
            "request_too_large",
            "Request exceeds the maximum size",
            true,
        ),
        (
            400,
            "invalid_request_error",
            "Unknown parameter: 'max_context'.",
            false,
        ),
        (429, "rate_limit", "maximum context length", false),
        (500, "oops", "maximum context length", false),
    ] {
        let error = status(number, code, message);
        assert_eq!(error.is_context_exceeded(), expected, "{error}");
        let recorded = ModelError::Recorded {
            message: error.to_string(),
            hint: String::new(),
            reason: String::new(),
            is_free: false,
        };
        assert!(!expected || recorded.is_context_exceeded(), "{recorded}");
    }
}

#[test]
fn no_hint_for_an_agent_names_what_only_a_commit_has() {
    let bad = || status(400, "invalid_request_error", "No.");
    let refused = status(400, "content_policy_violation", "It was rejected.");
    for error in [bad(), refused, ModelError::TooLarge] {
        for hint in [error.hint_for_agent(), error.hint_with_config()] {
            for word in ["rollup", "query", "--reply-format"] {
                assert!(!hint.contains(word), "{error}: {hint}");
            }
        }
    }
    assert!(bad().hint().contains("rollup"));
    assert!(!bad().hint_for_agent().contains("config.json"));
}
