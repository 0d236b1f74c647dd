//! Tests of variables' values, and of the messages about missing or wrong ones.

use super::*;
use crate::sys::error::Problem;

const COMPLETE: [(&str, &str); 5] = [
    (AZURE_KEY, "azure-key-0123"),
    (AZURE_URL, "https://res.openai.azure.com/"),
    (AZURE_DEPLOYMENT, "gpt-4.1_mini"),
    (PROJECT, " demo "),
    (GITHUB_TOKEN, "ghp_0123456789"),
];

/// Reads a complete configuration in which these variables replace the usual ones.
fn read(changed: &[(&str, &str)]) -> Result<AgentConfig, Vec<ConfigProblem>> {
    read_with(changed, &OrchestrateArgs::default())
}

fn read_with(
    changed: &[(&str, &str)],
    flags: &OrchestrateArgs,
) -> Result<AgentConfig, Vec<ConfigProblem>> {
    let complete = Environment::of(&COMPLETE);
    let changed = changed
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    let all = COMPLETE.map(|(name, _)| (name.into(), complete.os(name).unwrap().to_owned()));
    AgentConfig::read(&all.into_iter().chain(changed).collect(), flags)
}

#[test]
fn unset_variables_have_defaults() {
    let config = read(&[]).unwrap();
    let azure = config.azure.as_ref().unwrap();
    assert_eq!(
        azure.spec.base_url.as_deref(),
        Some("https://res.openai.azure.com")
    );
    assert_eq!(azure.spec.id, "gpt-4.1_mini");
    assert_eq!(azure.spec.api_version, None);
    let (mcp, token) = &config.mcp;
    assert_eq!(mcp.url(), "http://localhost:8000/mcp/sse");
    assert_eq!(*token, None);
    let polling = Polling {
        initial: Seconds(Duration::from_secs(2)),
        max: Seconds(Duration::from_secs(30)),
        timeout: Seconds(Duration::from_hours(3)),
        factor: 2.0,
    };
    assert_eq!(config.polling, polling);
    assert_eq!(config.project, "demo");
    assert_eq!(config.workspace, "/home/pan/workspace");
    let publishing = config.publishing.unwrap();
    assert_eq!(publishing.token.unwrap().expose(), "ghp_0123456789");
    let author = (publishing.author_name, publishing.author_email);
    assert_eq!(author, (None, None));
}

#[test]
fn set_variables_are_normalized() {
    let config = read(&[
        (AZURE_URL, " https://res.openai.azure.com/openai/v1// "),
        (AZURE_VERSION, "2025-01-01-preview"),
        (MCP_URL, "https://mcp.test/sse//?code=s3cret"),
        (MCP_TOKEN, " bearer-0123 "),
        (POLL_INITIAL, "0.5"),
        (POLL_MAX, " 1e1 "),
        (POLL_TIMEOUT, "60"),
        (POLL_FACTOR, "1.5"),
        (WORKSPACE, "/srv/work//"),
        (AUTHOR_NAME, "A. Uthor"),
        (AUTHOR_EMAIL, "a@example.com"),
    ])
    .unwrap();
    let azure = config.azure.as_ref().unwrap();
    assert_eq!(
        azure.spec.base_url.as_deref(),
        Some("https://res.openai.azure.com/openai/v1")
    );
    assert_eq!(
        azure.spec.api_version.as_deref(),
        Some("2025-01-01-preview")
    );
    let (mcp, token) = &config.mcp;
    assert_eq!(mcp.url(), "https://mcp.test/sse?code=s3cret");
    assert_eq!(token.as_ref().unwrap().expose(), "bearer-0123");
    assert_eq!(config.polling.initial.0, Duration::from_millis(500));
    assert_eq!(config.polling.max.0, Duration::from_secs(10));
    let publishing = config.publishing.unwrap();
    assert_eq!(publishing.author_name.as_deref(), Some("A. Uthor"));
    let at_top = read(&[(WORKSPACE, "//")]).unwrap();
    assert_eq!(at_top.workspace, "/");
}

#[test]
fn invalid_variables_are_reported_without_their_values() {
    for (variable, values) in [
        (
            AZURE_KEY,
            &["", "  ", "two words-s3cret", "größe-s3cret"][..],
        ),
        (
            AZURE_URL,
            &[
                "",
                "res.openai.azure.com/s3cret",
                "https://user:s3cret@host",
                "https://host/?key=s3cret",
                "http://example.com/s3cret",
                "ftp://localhost",
            ],
        ),
        (
            AZURE_DEPLOYMENT,
            &["", "a/s3cret", "a b", "..", "a?b", "größe", "a%2fb"],
        ),
        (AZURE_VERSION, &["2024&s3cret", "2024 10", "."]),
        (
            MCP_URL,
            &[
                "nonsense-s3cret",
                "http://example.com/sse?s3cret",
                "http://10.0.0.1/sse",
                "https://user:s3cret@host/sse",
                "https://host/sse#s3cret",
                "https://host/sse?a#s3cret",
                "https://host/sse?two words-s3cret",
                // A file in the current directory is not started as a command.
                "stdio:s3cret",
            ],
        ),
        (MCP_TOKEN, &["two words-s3cret", "größe-s3cret"]),
        (
            POLL_INITIAL,
            &["0", "-1", "nan", "inf", "soon-s3cret", "2s", "1e10", "1e-9"],
        ),
        (POLL_MAX, &["0", "-1", "NaN", "1_000"]),
        (POLL_TIMEOUT, &["0", "1e400", "never"]),
        (POLL_FACTOR, &["1", "0.5", "-2", "inf", "nan", "twice"]),
        (PROJECT, &["", " \t"]),
        (GITHUB_TOKEN, &["", "two words-s3cret"]),
        (WORKSPACE, &["workspace-s3cret", "~/workspace", "./a"]),
    ] {
        for value in values {
            let problems = read(&[(variable, value)]).unwrap_err();
            let [problem] = problems.as_slice() else {
                panic!("{variable}={value}: {problems:?}");
            };
            let said = format!("{problem} {}", problem.hint().unwrap());
            assert!(said.contains(&format!("`{variable}`")), "{value}: {said}");
            assert!(!said.contains("s3cret"), "{value}: {said}");
        }
    }
}

#[test]
fn waits_grow_towards_the_end_of_an_agents_time() {
    for (initial, max, timeout, expected) in [
        ("2", "30", "31", vec![]),
        ("2", "2", "60", vec![(POLL_INITIAL, POLL_MAX)]),
        ("", "1", "60", vec![(POLL_INITIAL, POLL_MAX)]),
        ("50", "", "60", vec![(POLL_INITIAL, POLL_MAX)]),
        ("2", "", "30", vec![(POLL_MAX, POLL_TIMEOUT)]),
        ("2", "20000", "", vec![(POLL_MAX, POLL_TIMEOUT)]),
        (
            "3",
            "2",
            "1",
            vec![(POLL_INITIAL, POLL_MAX), (POLL_MAX, POLL_TIMEOUT)],
        ),
    ] {
        let set = [
            (POLL_INITIAL, initial),
            (POLL_MAX, max),
            (POLL_TIMEOUT, timeout),
        ];
        let problems = read(&set).err().unwrap_or_default();
        let found: Vec<_> = problems.iter().filter_map(Problem::hint).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(variable, limit)| format!("lower `{variable}`, or raise `{limit}`"))
            .collect();
        assert_eq!(found, expected, "{initial} {max} {timeout}");
    }
    let told = read(&[(POLL_INITIAL, "50")]).unwrap_err()[0].to_string();
    assert_eq!(
        told,
        "`MCP_POLL_INITIAL_SECONDS` (50) is not below `MCP_POLL_MAX_SECONDS` (30)"
    );
}

#[test]
fn all_is_reported_at_once() {
    let problems = AgentConfig::read(
        &Environment::of(&[
            (AZURE_URL, "nonsense"),
            (GITHUB_TOKEN, ""),
            (MCP_URL, "http://example.com"),
            (POLL_FACTOR, "1"),
            (WORKSPACE, "here"),
        ]),
        &OrchestrateArgs::default(),
    );
    let problems = problems.unwrap_err();
    let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "`AZURE_OPENAI_API_KEY` is not set",
            "`AZURE_OPENAI_BASE_URL` is not a plain URL of a server",
            "`AZURE_OPENAI_DEPLOYMENT` is not set",
            "`MCP_BASE_URL` is plain http, which is taken for loopback hosts only",
            "`MCP_POLL_BACKOFF_FACTOR` is not a number above 1",
            "`PROJECT_NAME` is not set",
            "`WORKSPACE_DIR` is not an absolute path",
            "`GITHUB_TOKEN` is empty",
        ]
    );
}

#[test]
fn flags_say_what_is_not_needed() {
    let none = Environment::default();
    let flags = OrchestrateArgs::default();
    let all = AgentConfig::read(&none, &flags).unwrap_err();
    assert_eq!(all.len(), 5, "{all:?}");
    let named = OrchestrateArgs {
        project_name: Some(" mine ".to_owned()),
        ..flags.clone()
    };
    let unnamed = AgentConfig::read(&none, &named).unwrap_err();
    assert_eq!(unnamed.len(), 4);
    assert_eq!(read_with(&[], &named).unwrap().project, "mine");
    let unnamed = OrchestrateArgs {
        project_name: Some(" ".to_owned()),
        ..flags.clone()
    };
    assert_eq!(read_with(&[], &unnamed).unwrap().project, "demo");
    let unpublished = OrchestrateArgs {
        no_publish: true,
        ..named
    };
    assert_eq!(read_with(&[], &unpublished).unwrap().publishing, None);
    let of_other_model = OrchestrateArgs {
        model: Some("gpt-5".to_owned()),
        ..unpublished
    };
    let config = AgentConfig::read(&none, &of_other_model).unwrap();
    assert!(config.azure.is_none());
}
