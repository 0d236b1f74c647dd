//! Tests of likely credentials, of text that only resembles them, and of the reported positions. Pure.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn kinds(text: &str) -> Vec<String> {
    let findings = find("query.txt", text, &Redactor::default());
    let kinds = findings.iter().map(|finding| finding.kind.to_string());
    kinds.collect()
}

/// The body of a private key.
const BODY: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";

/// Joins a token from parts, so that no scanner mistakes this file for one with credentials.
fn token(prefix: &str, rest: &str, times: usize) -> String {
    format!("{prefix}{}", rest.repeat(times))
}

#[expect(clippy::too_many_lines, reason = "it is a table")]
#[test]
fn every_shape_is_found_by_its_kind_alone() {
    assert!(ANY_SHAPE.is_some());
    for (kind, text) in [
        (
            "a private key",
            token("-----BEGIN RSA PRIVATE", " KEY-----\n", 1) + BODY,
        ),
        (
            "a private key",
            token("-----BEGIN PRIVATE", " KEY-----\\n", 1) + BODY,
        ),
        (
            "a private key",
            token("-----BEGIN PGP PRIVATE", " KEY BLOCK-----\r\n\r\n", 1) + BODY,
        ),
        (
            "a private key",
            token("---- BEGIN SSH2 ENCRYPTED PRIVATE", " KEY ----", 1),
        ),
        (
            "a private key",
            token("PuTTY-User-Key-File-", "2: ssh-rsa", 1),
        ),
        ("an age secret key", token("AGE-SECRET-KEY-1", "Q", 58)),
        ("an AWS access key", token("AKIA", "Q7", 8)),
        ("an AWS access key", token("AKIA", "IOSFODNN7EXAMPLE", 1)),
        (
            "an AWS secret key",
            token("aws_secret_access_key = ", "a0/+", 10),
        ),
        ("a Google API key", token("AIza", "Sy_-x", 7)),
        ("a Google OAuth token", token("ya29.", "a0", 12)),
        ("a Google refresh token", token("1//0", "a0", 24)),
        ("a Google OAuth client secret", token("GOCSPX-", "a0", 14)),
        (
            "an Azure storage key",
            token("AccountKey=", "a0", 43) + "==",
        ),
        ("an OpenAI key", token("sk-proj-", "a0", 20)),
        ("an OpenAI key", token("sk-", "a0", 24)),
        ("an Anthropic key", token("sk-ant-api03-", "a0", 20)),
        ("an OpenRouter key", token("sk-or-v1-", "a0", 32)),
        ("a Groq key", token("gsk_", "a0", 26)),
        ("an xAI key", token("xai-", "a0", 40)),
        ("a Perplexity key", token("pplx-", "a0", 24)),
        ("a Replicate token", token("r8_", "a", 37)),
        ("a Hugging Face token", token("hf_", "a0", 17)),
        ("a GitHub token", token("ghp_", "a0", 18)),
        ("a GitHub token", token("github_pat_", "a0", 41)),
        ("a GitLab token", token("glpat-", "a0", 10)),
        ("a GitLab token", token("glrt-", "a0", 10)),
        ("a Slack token", token("xoxb-", "12", 10)),
        ("a Slack token", token("xapp-", "1-A0", 10)),
        (
            "a Slack webhook",
            token("https://hooks.slack.com/services/T0/B0/", "a0", 12),
        ),
        (
            "a Discord webhook",
            token(
                "https://discord.com/api/webhooks/123456789012345678/",
                "a0",
                34,
            ),
        ),
        ("a Telegram bot's token", token("123456789:AA", "a-0", 11)),
        ("a Stripe key", token("sk_live_", "a0", 12)),
        ("a Stripe key", token("whsec_", "a0", 16)),
        ("a Square token", token("sq0csp-", "a0", 20)),
        (
            "a SendGrid key",
            token("SG.", "a0", 11) + &token(".", "a", 43),
        ),
        ("a Twilio key", token("SK", "a0", 16)),
        ("a Shopify token", token("shpat_", "a0", 16)),
        ("a DigitalOcean token", token("dop_v1_", "a0", 32)),
        ("a Databricks token", token("dapi", "a0", 16)),
        ("a HashiCorp Vault token", token("hvs.", "a0", 12)),
        (
            "a Terraform token",
            token("", "a0", 7) + &token(".atlasv1.", "a0", 33),
        ),
        ("a Pulumi token", token("pul-", "a0", 20)),
        ("a Doppler token", token("dp.pt.", "a0", 22)),
        ("a Grafana token", token("glsa_", "a0", 16) + "_01234567"),
        ("a New Relic key", token("NRAK-", "A0B", 9)),
        ("a Sentry token", token("sntrys_", "a0", 30)),
        ("an Atlassian token", token("ATATT3x", "a0", 60)),
        ("a Linear key", token("lin_api_", "a0", 20)),
        (
            "a Postman key",
            token("PMAK-", "a0", 12) + &token("-", "a0", 17),
        ),
        ("a PlanetScale token", token("pscale_tkn_", "a0", 20)),
        ("a Supabase token", token("sbp_", "a0", 20)),
        ("a Netlify token", token("nfp_", "a0", 20)),
        ("a Fly.io token", token("FlyV1 fm2_", "a0", 30)),
        ("a Docker Hub token", token("dckr_pat_", "a-0", 9)),
        ("a 1Password token", token("ops_eyJ", "a0", 60)),
        ("an npm token", token("npm_", "a0", 18)),
        (
            "an npm token",
            token(
                "//x/:_authToken=",
                "01234567-0123-0123-0123-0123456789ab",
                1,
            ),
        ),
        ("a PyPI token", token("pypi-AgEIcHlwaS5vcmc", "a0", 30)),
        ("a RubyGems key", token("rubygems_", "a0", 24)),
        ("a crates.io token", token("cio", "a0", 16)),
        ("a Bitbucket token", token("ATBB", "a0", 16)),
    ] {
        for text in [
            text.clone(),
            format!("key = \"{text}\n\";"),
            format!("\u{fc}_{text}\n"),
            format!("\u{1b}[32m{text}\u{1b}[0m"),
            format!("\\u001b[0;1m{text}"),
            format!("\u{1b}(B\u{1b}[m{text}"),
            format!("\"a\\n{text}\\n\""),
            format!("a\\\\t{text}\\\\n"),
            format!("token%3D{text}%0A"),
            format!("token%253d{text}"),
            format!("a\\u003d{text}\\u0026"),
            format!("a\\x3d{text}"),
            format!("\\033[0m{text}"),
            format!("a\\012{text}"),
        ] {
            assert_eq!(kinds(&text), [kind], "{text}");
        }
    }
}

#[test]
fn text_that_only_resembles_a_credential_is_not_found() {
    for text in [
        String::new(),
        token("ghp_", "x", 36),
        token("sk-ant-api03-", "your-key-goes-here-", 2),
        token("hf_", "ModelForConditionalGenerationOutputs", 1),
        token("cio", "AbstractStreamFactoryImplementation", 1),
        token("sk-admin-", "dashboard-header-navigation", 1),
        format!(
            "s.starts_with(\"{}\")",
            token("-----BEGIN RSA PRIVATE", " KEY-----", 1)
        ),
        token("-----BEGIN PRIVATE", " KEY-----\ntest parses ... ok\n", 2),
        token("AKIA", "x7", 8),
        token("AKIA", "Q7", 9),
        token("sk-", "short", 1),
        "fn ghp_token() {}".to_owned(),
        token("-----BEGIN PUBLIC", " KEY-----", 1),
        token("xAIza", "Sy_-x", 7),
    ] {
        assert_eq!(kinds(&text), [""; 0], "{text}");
    }
}

#[test]
fn a_finding_shows_the_file_and_the_line_but_not_the_value() {
    let redactor = Redactor::new(["own-key-0123456789"]);
    let secret = token("ghp_", "a0", 18);
    let rollup = format!(
        "--- a.rs ---\nfn a() {{}}\n--- b.rs ---\n\nlet k = \"own-key-0123456789\";\n{secret}{secret}\n"
    );
    let findings = find("agent-config/codeRollup.txt", &rollup, &redactor);
    let told: Vec<String> = findings.iter().map(Finding::to_string).collect();
    assert_eq!(
        told,
        [
            "`agent-config/codeRollup.txt`, line 5 (`b.rs`, line 2): an API key of this project",
            "`agent-config/codeRollup.txt`, line 6 (`b.rs`, line 3): a GitHub token",
        ]
    );
}

#[test]
fn a_large_code_base_has_the_same_findings_as_its_parts() {
    let secret = token("ghp_", "a1", 20);
    let key = "own-key-0123456789";
    let redactor = Redactor::new([key]);
    let filler = "let words = [\"some\"];\n".repeat(LARGE / 40);
    let text = format!("--- a.rs ---\n{secret}\n{filler}--- b.rs ---\n{key}\n{filler}{secret}\n");
    assert!(text.len() >= LARGE);
    let findings = find("codeRollup.txt", &text, &redactor);
    let places: Vec<_> = findings.iter().map(|found| found.within.clone()).collect();
    let last = filler.lines().count() + 2;
    let expected = [("a.rs", 1), ("b.rs", 1), ("b.rs", last)];
    assert_eq!(
        places,
        expected.map(|(file, line)| Some((file.to_owned(), line)))
    );
}

#[test]
fn these_files_can_be_sent() {
    for text in [
        include_str!("../search.rs"),
        include_str!("../censor.rs"),
        include_str!("../private_key.rs"),
        include_str!("tests.rs"),
    ] {
        assert_eq!(kinds(text), [""; 0]);
    }
}

#[test]
fn heading_that_is_a_credential_is_not_shown() {
    let secret = token("ghp_", "a0", 18);
    let findings = find(
        "query.txt",
        &format!("--- {secret} ---\n{secret}\n"),
        &Redactor::default(),
    );
    assert_eq!(findings.len(), 2);
    assert!(
        findings
            .iter()
            .all(|finding| !finding.to_string().contains("ghp_"))
    );
}

#[test]
fn a_key_that_has_the_shape_of_one_is_reported_once() {
    let own = token("ghp_", "a0", 18);
    let findings = find("query.txt", &own, &Redactor::new([own.as_str()]));
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].kind, OWN_KEY);
}

#[test]
fn a_token_that_no_word_begins_like_is_found_within_one() {
    for text in [token("Bearerghp_", "a0", 18), token("xnpm_", "a0", 18)] {
        assert_eq!(kinds(&text).len(), 1, "{text}");
    }
}

proptest! {
    #[test]
    fn around_the_words_is_found_what_the_pattern_finds_everywhere(parts in vec(0..PARTS.len(), 0..60)) {
        let text: String = parts.into_iter().map(|part| PARTS[part]).collect();
        let shapes = ANY_SHAPE.as_ref().unwrap();
        let everywhere = shapes.captures_iter(text.as_bytes()).filter_map(|found| which(&found));
        prop_assert_eq!(
            Shaped::new(text.as_bytes(), 0).collect::<Vec<_>>(),
            everywhere.collect::<Vec<_>>()
        );
    }
}

/// Parts of tokens, and text between and within them.
const PARTS: [&str; 26] = [
    "ghp_",
    "gh",
    "sk-",
    "sk-proj-",
    "SK",
    "cio",
    "AKIA",
    ":AA",
    "xox",
    "xoxapp-",
    "1//0",
    "SG.",
    "0123456789abcdef",
    "0123456789abcdef0123456789abcdef",
    "A7A7A7A7A7A7A7A7",
    "0123456789",
    " ",
    "\n",
    "\\n",
    "=20",
    "_",
    ".",
    "-----BEGIN ",
    "PRIVATE",
    " KEY-----",
    "https://discord.com/api/webhooks/",
];
