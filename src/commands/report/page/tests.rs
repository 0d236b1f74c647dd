//! Tests that pages are safe whatever they contain, that their size is bounded, and that their colours are
//! distinguishable.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use std::time::Duration;

use proptest::prelude::*;
use regex::Regex;
use serde_json::json;

use super::*;
use crate::model::{Purpose, StepId};
use crate::project::Project;
use crate::record::result::{AgentRecord, LimitsRecord, RunRecord};
use crate::record::seconds::Seconds;
use crate::record::step::{Action, Step};
use crate::run::past::history::{PastRun, RunChanges, UnrecordedState, query_of};
use crate::run::past::past_step::PastStep;
use crate::run::past::story::sources::Sources;
use crate::run::past::story::tell;
use crate::secret::Redactor;
use crate::sys::diff::{FileChange, FileState};

/// A redactor shared by all pages, since compiling its patterns takes longer than making a page.
static NO_KEYS: LazyLock<Redactor> = LazyLock::new(Redactor::default);

const NAME: &str = "2026-11-21-20-15-03-committing-code";

/// Texts that try to be markup or script.
const HOSTILE: [&str; 24] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "\" style=\"background:url(http://x)\" x=\"",
    "]]>",
    "-->",
    "<!--",
    "</pre>",
    "</title></style></textarea>",
    "<svg/onload=alert(1)>",
    "&lt;b&gt;",
    "&#60;script&#62;",
    "javascript:alert(1)",
    "{{7*7}}${7*7}",
    "\u{202e}cod.exe",
    "\0",
    "\u{1b}[31merror: red\u{1b}[0m",
    "\r\n",
    "\n\n",
    "`*_~|",
    "\u{feff}\u{2028}\u{85}",
    "error[E0001]: <b>",
    " --> <i>:1:2",
    "fn main() { /* \"<\" */ }",
];

fn record(text: &str, workflow: &str) -> RunRecord {
    let step = |kind: &str, number: u8| {
        json!({"kind": kind, "number": number, "model": text, "prompt": [{"part": text, "bytes": 7}, {"part": "query", "bytes": 9}],
            "seconds": 1.5, "finish": text, "usage": {"input_tokens": 9, "cached_tokens": 1, "thought_tokens": 2, "output_tokens": 3},
            "cost": 0.01, "edits": {"written": [text], "removed": [text]}, "build": {"code": 1, "signal": null, "seconds": 2.0}})
    };
    let report = workflow == "consistency";
    let attempts = if report {
        json!([step("report", 0)])
    } else {
        json!([step("initial", 0), step("repair", 1), step("repair", 2)])
    };
    let sections = json!([{"title": text, "first_line": 1, "last_line": 2}, {"title": text, "first_line": null, "last_line": null}]);
    let record = json!({"schema": 1, "version": text, "workflow": workflow, "exit": {"code": 1, "name": text}, "tree": "put-back",
        "model": text, "model_version": text, "started": "2026-11-21T20:15:03+01:00", "seconds": 9.5, "cost": 0.02,
        "stat": {"files": 1, "added": 2, "removed": 3}, "attempts": attempts, "sections": sections,
        "warnings": [text, text], "error": {"message": text, "hint": text}});
    serde_json::from_value(record).unwrap()
}

/// Builds the record of an agent's run, with this text in every field that can hold one.
fn agents_record(text: &str) -> RunRecord {
    let mut record = record(text, "dev");
    let kinds = [Purpose::STEP, Purpose::STEP, Purpose::AUDIT];
    for (step, kind) in record.steps.iter_mut().zip(kinds) {
        step.purpose = kind;
        step.build = None;
        let tool = |failed, known: Option<&str>| Action {
            tool: text.to_owned().into(),
            failed,
            input: known.map(|text| json!({"a": text})),
            result: known.map(str::to_owned),
            diff: known.map(|text| format!("--- a\n+++ b\n@@ -1 +1 @@\n-{text}\n+{text}\n")),
            ..Action::default()
        };
        step.actions = vec![tool(false, None), tool(true, Some(text))];
    }
    record.agent = Some(AgentRecord {
        conventions: None,
        session: Some(text.to_owned()),
        request: Some(text.to_owned()),
        interactive: true,
        answers: vec![Some(text.to_owned()), None],
        questions: vec![text.to_owned()],
        answer: None,
        limits: LimitsRecord {
            max_context_tokens: Some(131_072),
            max_retries: 3,
            max_retries_automated: 10,
            max_loops: 1000,
            command_timeout: Some(Seconds::default()),
        },
        from: 0,
        orchestration: None,
        mode: None,
    });
    record
}

fn past_run(name: &str, record: Option<RunRecord>) -> PastRun {
    let mut run = PastRun::read(
        &Project::new("/nowhere".as_ref(), "/nowhere".as_ref()),
        name,
    );
    run.record = record;
    run
}

fn change(path: &str, before: Option<&str>, after: Option<&str>) -> FileChange {
    let state = |text: &str| FileState {
        content: text.as_bytes().to_vec(),
        mode: 0o644,
    };
    FileChange {
        path: path.to_owned(),
        before: before.map(state),
        after: after.map(state),
    }
}

fn changes(text: &str) -> Vec<FileChange> {
    vec![
        change(&format!("{text}.rs"), None, Some(text)),
        change(text, Some("x\ny\n"), Some(&format!("x\n{text}\n"))),
        change("b.html", Some(text), Some(&format!("{text}\r\n{text}"))),
        change("gone", Some(text), None),
    ]
}

fn steps(text: &str, record: &RunRecord) -> Vec<PastStep> {
    let past = |(at, step): (usize, &Step)| PastStep {
        step: step.clone(),
        reply: match at {
            0 => Some(Ok(text.to_owned())),
            1 => Some(Err(text.to_owned())),
            _ => None,
        },
        log: Some(format!("{text}\n{text}\n{text}")),
        tools: Some(text.to_owned()),
        changes: changes(text),
        directs_agents: at % 2 == 0,
        is_cut_short: false,
        is_attempt: false,
    };
    record.steps.iter().enumerate().map(past).collect()
}

fn page(run: &PastRun, text: &str, steps: &[PastStep]) -> String {
    redacted(run, text, steps, &NO_KEYS, false)
}

fn redacted(
    run: &PastRun,
    text: &str,
    steps: &[PastStep],
    redactor: &Redactor,
    interactive: bool,
) -> String {
    let are_agents = steps.iter().all(|past| past.step.is_agents());
    let sources = Sources {
        steps: steps.to_vec(),
        changes: are_agents.then(|| RunChanges {
            files: changes(text),
            doubts: vec![text.to_owned()],
        }),
        request: Some(text.to_owned()),
        state: UnrecordedState::Killed,
    };
    super::run(&tell(run, &sources), redactor, interactive, &|| {
        Duration::ZERO
    })
}

/// Renders the page about all runs, without requests.
fn overview_of(runs: &[PastRun]) -> String {
    overview(runs, |_| true, |_| None, &NO_KEYS, false)
}

/// Renders all kinds of pages, with this text in every place that can hold one.
fn pages(text: &str) -> Vec<String> {
    let commit = record(text, "commit");
    let report = record(text, "consistency");
    let agents = agents_record(text);
    let mut undo = record(text, text);
    undo.steps.clear();
    let unfinished = PastStep {
        step: Step::new(StepId::INITIAL, text, Vec::new()),
        reply: Some(Ok(text.to_owned())),
        log: None,
        tools: None,
        changes: changes(text),
        directs_agents: true,
        is_cut_short: false,
        is_attempt: false,
    };
    let runs = [
        past_run(NAME, Some(commit.clone())),
        past_run(&format!("r{text}"), Some(report.clone())),
        past_run(NAME, Some(undo)),
        past_run(&format!("r{text}"), None),
        past_run(NAME, Some(agents.clone())),
    ];
    vec![
        page(&runs[0], text, &steps(text, &commit)),
        page(&runs[1], text, &steps(text, &report)),
        page(&runs[2], text, &[]),
        page(&runs[3], text, &[unfinished]),
        page(&runs[4], text, &steps(text, &agents)),
        overview(&runs, |_| true, |_| Some(text.to_owned()), &NO_KEYS, false),
    ]
}

const ELEMENTS: &str = "html head meta title style body header main section footer h1 h2 h3 h4 p span b s i em small \
    a code pre blockquote details summary div ul ol li dl dt dd table thead tbody tfoot tr th td";
const ATTRIBUTES: &str = "lang charset http-equiv content name class id href open style data-n scope tabindex aria-label aria-hidden title";

static TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"^<(/?)([a-z][a-z0-9]*)((?: [a-zA-Z-]+(?:="[^"<>]*")?)*)>"#).unwrap()
});
static ATTRIBUTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#" ([a-zA-Z-]+)(?:="([^"<>]*)")?"#).unwrap());
static ENTITY: LazyLock<Regex> = LazyLock::new(|| Regex::new("&(amp|lt|gt|quot);").unwrap());
static BESIDE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\./[A-Za-z0-9%._-]+/report\.html$").unwrap());
/// Parses a page as strictly as possible, and returns the texts on it. Panics at any markup but the page's own.
fn texts(page: &str) -> String {
    let (elements, attributes): (HashSet<_>, HashSet<_>) = (
        ELEMENTS.split_whitespace().collect(),
        ATTRIBUTES.split_whitespace().collect(),
    );
    let page = page.strip_prefix("<!DOCTYPE html>").unwrap();
    let rest = page
        .split_once(STYLE)
        .map(|(a, b)| format!("{a}{b}"))
        .unwrap();
    let (mut from, mut open, mut text) = (0, Vec::new(), String::new());
    let (mut ids, mut links) = (HashSet::new(), Vec::new());
    while let Some(at) = memchr::memchr(b'<', &rest.as_bytes()[from..]) {
        let at = from + at;
        text.push_str(&rest[from..at]);
        let shown: String = rest[at..].chars().take(80).collect();
        let found = TAG
            .captures(&rest[at..])
            .unwrap_or_else(|| panic!("no tag: {shown}"));
        let name = found[2].to_owned();
        assert!(elements.contains(name.as_str()), "{shown}");
        for found in ATTRIBUTE.captures_iter(&found[3]) {
            let value = found.get(2).map_or("", |value| value.as_str()).to_owned();
            assert!(attributes.contains(&found[1]), "{shown}");
            match &found[1] {
                "style" => assert!(
                    value
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || ":;%.- ".contains(c)),
                    "{shown}"
                ),
                "id" => assert!(ids.insert(value), "{shown}"),
                "href" => links.push(value),
                _ => {}
            }
        }
        if &found[1] == "/" {
            assert_eq!(open.pop(), Some(name), "{shown}");
        } else if name != "meta" {
            open.push(name);
        }
        from = at + found[0].len();
    }
    text.push_str(&rest[from..]);
    assert!(open.is_empty(), "{open:?}");
    for link in links {
        let leads = link
            .strip_prefix('#')
            .map_or_else(|| BESIDE.is_match(&link), |id| ids.contains(id));
        assert!(leads, "{link}");
    }
    assert!(
        !text.contains('>') && !ENTITY.replace_all(&text, "").contains('&'),
        "{text}"
    );
    let unseen = |c: &char| {
        c.is_control() && !matches!(c, '\n' | '\t') || ('\u{202a}'..='\u{202e}').contains(c)
    };
    assert_eq!(page.chars().find(unseen), None);
    let by_name = HashMap::from([("amp", "&"), ("lt", "<"), ("gt", ">"), ("quot", "\"")]);
    ENTITY
        .replace_all(&text, |found: &regex::Captures<'_>| by_name[&found[1]])
        .into_owned()
}

#[test]
fn hostile_texts_are_shown_as_the_texts_they_are() {
    for text in HOSTILE {
        let fit = text::HtmlEscaper::new(&NO_KEYS).text(text);
        for (at, page) in pages(text).iter().enumerate() {
            let shown = texts(page);
            for line in fit.lines() {
                assert!(
                    shown.contains(line.trim_end_matches('\u{fffd}')),
                    "{text:?} on page {at}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn no_text_becomes_anything_but_text(
        parts in prop::collection::vec(prop_oneof![prop::sample::select(&HOSTILE[..]).prop_map(str::to_owned), any::<String>()], 0..8)
    ) {
        for page in pages(&parts.concat()) {
            texts(&page);
        }
    }
}

#[test]
fn keys_are_on_no_page() {
    // The last key contains characters that are escaped in HTML.
    for key in ["sk-key-1234567890", "a<b&c\"d'e>f-1234567890"] {
        let redactor = Redactor::new([key]);
        let text = format!("fn x() {{ \"{key}\" }} // \u{1b}[1m{key}\n");
        let record = record(&text, "commit");
        let steps = steps(&text, &record);
        let run = past_run(key, Some(record));
        let page = redacted(&run, &text, &steps, &redactor, false);
        for page in [
            page,
            overview(&[run], |_| false, |_| Some(text.clone()), &redactor, false),
        ] {
            assert!(!texts(&page).contains(&key[..key.len() - 2]), "{key}");
            assert!(page.contains("[REDACTED]"));
        }
    }
}

#[test]
fn a_page_about_very_much_is_small_and_says_what_it_leaves_out() {
    let content = "\"<&>\" 'x' fn main() {}\n".repeat(90);
    let changes: Vec<_> = (0..5000)
        .map(|n| change(&format!("src/file_{n}.rs"), None, Some(&content)))
        .collect();
    let record = record("x", "commit");
    let mut steps = steps("x", &record);
    for step in &mut steps {
        step.reply = Some(Ok("prose \"\n".repeat(1 << 17)));
        step.log = Some(format!(
            "exit code: 1\n{}",
            "error: \"<\"\n".repeat(1 << 20)
        ));
        step.changes.clone_from(&changes);
    }
    let page = page(&past_run(NAME, Some(record)), &"\"".repeat(1 << 20), &steps);
    assert!(page.len() < 15_000_000, "{}", page.len());
    let text = texts(&page);
    assert!(text.contains("more files left out: see code-commit diff."));
    assert!(text.contains("src/file_4999.rs"));
}

#[test]
fn a_page_about_a_long_run_of_an_agent_is_small_and_says_what_it_leaves_out() {
    let mut record = agents_record("x");
    let one = record.steps[0].clone();
    record.steps = vec![one; 3000];
    let mut steps = steps("x", &record);
    for step in &mut steps {
        step.reply = Some(Ok("prose \"\n".repeat(1 << 8)));
        for action in &mut step.step.actions {
            action.result = Some("\"<\"\n".repeat(1 << 12));
        }
    }
    let run = past_run(NAME, Some(record));
    let page = page(&run, "", &steps);
    assert!(page.len() < 8_000_000, "{}", page.len());
    let text = texts(&page);
    assert!(text.contains("later calls left out: see logs/"), "{text}");
}

#[test]
fn a_page_about_very_many_runs_is_small() {
    let records: Vec<_> = (0..20_000)
        .map(|n| {
            let mut record = record("x", "commit");
            record.started += Duration::from_secs(86_400 * (n / 20));
            record.steps.truncate(1);
            past_run(&format!("{NAME}-{n}"), Some(record))
        })
        .collect();
    let page = overview_of(&records);
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(texts(&page).contains("18,000 earlier runs left out"));
}

#[test]
fn an_overview_sums_up_what_was() {
    let with = |workflow: &str, code: u8, repairs: usize| {
        let mut record = record("x", workflow);
        record.exit.code = code;
        record.steps.truncate(1 + repairs);
        past_run(workflow, Some(record))
    };
    let runs = [
        with("commit", 0, 0),
        with("plan", 0, 1),
        with("chat", 1, 2),
        past_run(NAME, None),
        past_run("2026-11-21-20-15-04-undo", None),
    ];
    let shown = texts(&overview_of(&runs));
    for part in [
        "2 of 3 runs succeeded",
        "66.7\u{a0}%",
        "1.00",
        "$0.06",
        "9.5\u{a0}s",
        "1 of them not finished",
        "unfinished",
    ] {
        assert!(shown.contains(part), "{part}");
    }
    assert!(texts(&overview_of(&[])).contains("There is no run yet"));
}

#[test]
fn unknown_cost_is_not_shown_as_zero() {
    let with = |costs: &[Option<f64>]| {
        let mut record = record("x", "commit");
        record.steps.truncate(costs.len());
        for (step, cost) in record.steps.iter_mut().zip(costs) {
            step.cost = cost.map(|cost| cost.try_into().unwrap());
        }
        record.cost = record.total_cost();
        record
    };
    for (costs, expected) in [
        (&[None][..], "unknown"),
        (&[Some(0.0), None], "unknown"),
        (&[Some(0.25), None], "at least $0.25"),
        (&[Some(0.0)], "$0"),
    ] {
        let record = with(costs);
        let steps = steps("x", &record);
        let run = past_run(NAME, Some(record));
        let fact = format!("<dt>Cost</dt><dd>{expected}<");
        assert!(page(&run, "x", &steps).contains(&fact), "{costs:?}");
        let all = overview_of(&[run]);
        assert!(all.contains(&fact), "{costs:?}");
        let row = format!("<td class=\"n\">{expected}</td>");
        assert_eq!(all.matches(&row).count(), 2, "{costs:?}: {all}");
    }
}

#[test]
fn a_day_has_a_row_with_its_sums() {
    let mut late = record("x", "commit");
    late.started += Duration::from_hours(240);
    let runs = [
        past_run("a", Some(record("x", "commit"))),
        past_run("b", Some(late)),
    ];
    let page = overview_of(&runs);
    for day in ["2026-12-01", "2026-11-21"] {
        assert!(page.contains(&format!(
            "<th scope=\"row\">{day}</th><td class=\"n\">1</td>"
        )));
    }
    assert!(texts(&page).contains("21 November 2026 to 1 December 2026"));
}

#[test]
fn the_query_is_the_section_of_the_prompt() {
    for (prompt, expected) in [
        (
            "Do.\n[query]\nadd a flag\n[codebase]\n--- a ---\n",
            Some("add a flag"),
        ),
        ("Do.\n[query]\na\n\nb", Some("a\n\nb")),
        ("Do.\n[query]\n[codebase]\n--- a ---\n", None),
        ("Do.\n", None),
    ] {
        assert_eq!(query_of(prompt), expected);
    }
}

/// Returns the variables of the light scheme, and the dark one's, which override some of them.
fn schemes() -> [HashMap<String, [f64; 3]>; 2] {
    let variable = Regex::new(r"--([a-z0-9-]+): #([0-9a-f]{6})").unwrap();
    let (light, dark) = STYLE.split_once("prefers-color-scheme: dark").unwrap();
    let read = |css: &str| -> HashMap<_, _> {
        let found = variable.captures_iter(css);
        found
            .map(|found| {
                let part =
                    |at| f64::from(u8::from_str_radix(&found[2][at..at + 2], 16).unwrap()) / 255.0;
                (found[1].to_owned(), [part(0), part(2), part(4)])
            })
            .collect()
    };
    [read(light), read(dark)]
}

/// Computes the contrast ratio defined by WCAG 2.
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let luminance = |color: [f64; 3]| {
        let [r, g, b] = color.map(|c| {
            if c <= 0.04045 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
    one.max(other) / one.min(other)
}

#[test]
fn text_stands_out_in_both_schemes() {
    for (scheme, colors) in schemes().iter().enumerate() {
        let on = |fronts: &str, backs: &str| {
            for front in fronts.split(' ') {
                for back in backs.split(' ') {
                    let contrast = contrast(colors[front], colors[back]);
                    assert!(
                        contrast >= 4.5,
                        "{front} on {back} in scheme {scheme}: {contrast:.2}"
                    );
                }
            }
        };
        on("text quiet link good bad", "bg card soft");
        on("text c s n k f t p h quiet", "card add remove");
        on("text quiet bad", "bad-bg");
        on("text quiet warn", "warn-bg");
        on("good", "good-bg");
        on("text quiet", "soft");
        on("card", "good bad quiet");
    }
}

#[test]
fn the_style_is_nothing_but_a_style() {
    for outside in ["</", "url(", "@import", "http", "expression"] {
        assert!(!STYLE.contains(outside), "{outside}");
    }
}

#[test]
fn an_interactive_page_has_its_own_script_and_a_policy_for_no_other() {
    let record = record("<script>", "commit");
    let steps = steps("<script>", &record);
    let run = past_run(NAME, Some(record));
    let plain = page(&run, "x", &steps);
    assert!(!plain.contains("<script") && !plain.contains("script-src"));
    let page = redacted(&run, "x", &steps, &NO_KEYS, true);
    let (before, behind) = page.split_once("<script>").unwrap();
    let (script, behind) = behind.split_once("</script>").unwrap();
    assert_eq!(script, SCRIPT);
    assert_eq!(behind, "</body></html>");
    assert!(!before.contains("<script"));
    let policy = Regex::new(
        "content=\"default-src 'none'; [^\"]*; script-src 'sha256-[A-Za-z0-9+/]{43}='\"",
    );
    assert!(policy.unwrap().is_match(before), "{before}");
    // The script requests nothing, and inserts found text only as text.
    for outside in ["http", "fetch", "import", "eval", "innerHTML", "</"] {
        assert!(!SCRIPT.contains(outside), "{outside}");
    }
}
