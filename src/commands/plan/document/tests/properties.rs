//! Property tests of plans, of arbitrary bytes, and of edits to documents that the user has changed.

use super::*;
use crate::commands::plan::types::{Criterion, LogEntry, PlanDecision, PlanTask};
use proptest::prelude::*;
use strum::VariantArray as _;

/// Joins a text into one line, in the form of a document.
fn one_line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace("-->", "-- >")
}

/// Pieces of generated texts: words, and everything that can be structure in a document.
const PIECES: [&str; 52] = [
    "word",
    "Wort",
    "字",
    "🚧",
    " ",
    " ",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\t",
    "\u{a0}",
    "\0",
    "\\",
    "\\",
    "*",
    "**",
    "*(",
    ")*",
    "(",
    ")",
    "[",
    "]",
    "[x] ",
    "- ",
    "- [ ] ",
    "1. ",
    "10) [x] ",
    "+ ",
    ",",
    ", ",
    ":",
    "`",
    "```",
    "~~~ a",
    "# ",
    "## ",
    "## Goal",
    "### ",
    "**Result:** ",
    "**Tool:** ",
    "**Status:** failed",
    "---",
    "<!--",
    "-->",
    "--\\>",
    "<<<<<<< HEAD",
    ">>>>>>> b",
    "[No decisions yet]",
    "[User will provide goal]",
    "1970-01-01 00:00 - ",
];

fn text() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..8);
    pieces.prop_map(|pieces| {
        let text = pieces
            .concat()
            .replace("\r\n", "\n")
            .replace('\r', "\n")
            .replace('\0', "");
        let lines: Vec<_> = text.split('\n').map(str::trim_end).collect();
        lines.join("\n").trim().to_owned()
    })
}

/// Generates a line in the form of a document.
fn line() -> impl Strategy<Value = String> {
    text().prop_map(|text| one_line(&text))
}

fn named() -> impl Strategy<Value = String> {
    line().prop_map(|line| format!("a {line}").trim_end().to_owned())
}

/// Generates an entry of a comma-separated list.
fn listed() -> impl Strategy<Value = String> {
    named()
        .prop_map(|text| text.replace(['(', '[', '{', ',', ')', ']', '}'], ""))
        .prop_map(|text| one_line(&text))
}

/// Generates a criterion's description or notes, without characters that would split it.
fn unsplit() -> impl Strategy<Value = String> {
    named().prop_map(|text| one_line(&text.replace(['*', '\\'], "")))
}

fn time() -> impl Strategy<Value = i64> {
    (0_i64..4_000_000_000).prop_map(|minutes| minutes * 60_000)
}

fn decisions() -> impl Strategy<Value = Vec<PlanDecision>> {
    let alternatives = prop::collection::vec(listed(), 0..3);
    let fields = (named(), line(), alternatives, time());
    let decision = fields.prop_map(|(title, rationale, alternatives, timestamp)| PlanDecision {
        title,
        rationale,
        alternatives,
        timestamp,
    });
    prop::collection::vec(decision, 0..3)
}

fn log() -> impl Strategy<Value = Vec<LogEntry>> {
    let tools = prop::collection::vec(listed(), 0..3);
    let fields = (time(), named(), line(), line(), tools);
    let entry = fields.prop_map(
        |(timestamp, action, details, result, tools_used)| LogEntry {
            timestamp,
            action,
            details,
            result,
            tools_used,
        },
    );
    prop::collection::vec(entry, 0..3)
}

fn criteria() -> impl Strategy<Value = Vec<Criterion>> {
    let fields = (unsplit(), any::<bool>(), unsplit());
    let criterion = fields.prop_map(|(description, completed, notes)| Criterion {
        description,
        completed,
        notes,
    });
    prop::collection::vec(criterion, 0..4).prop_map(|criteria| {
        let mut different: Vec<Criterion> = Vec::new();
        for criterion in criteria {
            if !different
                .iter()
                .any(|other| other.is(&criterion.description))
            {
                different.push(criterion);
            }
        }
        different
    })
}

fn tasks() -> impl Strategy<Value = Vec<PlanTask>> {
    let statuses = ["todo", "active", "done", "failed", "skipped"];
    let params = prop::collection::btree_map(line(), line(), 0..3);
    let task = (
        named(),
        "[a-z_]{1,9}",
        params,
        prop::sample::select(statuses.to_vec()),
    );
    prop::collection::vec(task, 0..12).prop_map(|tasks| {
        let tasks = (1..)
            .zip(tasks)
            .map(|(step, (description, tool, params, status))| PlanTask {
                step,
                description,
                tool,
                params: params
                    .into_iter()
                    .map(|(name, value)| (name, value.into()))
                    .collect(),
                status: serde_json::from_value(status.into()).unwrap(),
            });
        tasks.collect()
    })
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let status = prop::sample::select(PlanStatus::VARIANTS);
    let fields = (time(), time(), 1_u64..9);
    let metadata = fields.prop_map(|(created_at, updated_at, version)| PlanMetadata {
        created_at,
        updated_at,
        version,
    });
    let goal = text().prop_map(|goal| {
        let harmless = goal.replace("-->", "-- >");
        let lines: Vec<_> = harmless.lines().map(str::trim_end).collect();
        lines.join("\n").trim().to_owned()
    });
    let lists = (criteria(), decisions(), decisions(), tasks(), log());
    (status, goal, lists, metadata).prop_map(|(status, goal, lists, metadata)| Plan {
        status,
        goal,
        acceptance_criteria: lists.0,
        decisions_made: lists.1,
        decisions_rejected: lists.2,
        tasks: lists.3,
        execution_log: lists.4,
        metadata,
    })
}

/// Generates lines such as people, models and merges leave behind, with any line endings.
fn any_document() -> impl Strategy<Value = String> {
    let headings = PlanPart::VARIANTS
        .iter()
        .map(|part| format!("\n{}\n", part.heading()));
    let piece = prop_oneof![
        3 => prop::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
        2 => prop::sample::select(headings.collect::<Vec<_>>()),
        1 => Just("\n- [ ] item\n".to_owned()),
        1 => Just("\n---\n".to_owned()),
        1 => Just("\nversion: 3\n".to_owned()),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_plan_survives_write_and_read(plan in any_plan()) {
        let written = super::written(&plan);
        prop_assert_eq!(written.plan(), plan.clone());
        prop_assert_eq!(document(&written.text()).plan(), plan);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), text in any_document()) {
        for bytes in [&bytes[..], text.as_bytes()] {
            if let Ok(document) = PlanDocument::parse(bytes) {
                let text = document.text();
                prop_assert_eq!(text.as_bytes(), bytes);
                prop_assert_eq!(&document.recent(usize::MAX), &text);
                prop_assert!(document.recent(0).len() <= text.len() + "[No actions taken yet]\n".len());
                prop_assert!(serde_json::to_string(&document.plan()).is_ok());
            }
        }
    }

    #[test]
    fn any_document_takes_any_edit(text in any_document(), wanted in any_plan()) {
        let Ok(mut document) = PlanDocument::parse(text.as_bytes()) else { return Ok(()) };
        let before = document.plan();
        document.edit(|plan| {
            plan.status = wanted.status;
            plan.goal.clone_from(&wanted.goal);
            plan.acceptance_criteria.extend(wanted.acceptance_criteria.clone());
            plan.decisions_made.extend(wanted.decisions_made.clone());
            plan.decisions_rejected.extend(wanted.decisions_rejected.clone());
            plan.tasks.clone_from(&wanted.tasks);
            plan.execution_log.extend(wanted.execution_log.clone());
        });
        document.save(5).unwrap();
        let saved = document.text();
        let mut document = self::document(&saved);
        let after = document.plan();
        prop_assert_eq!((after.status, &after.goal, &after.tasks), (wanted.status, &wanted.goal, &wanted.tasks), "{}", saved);
        for criterion in &wanted.acceptance_criteria {
            prop_assert!(after.acceptance_criteria.iter().any(|other| other.is(&criterion.description)), "{}", saved);
        }
        prop_assert!(after.acceptance_criteria.starts_with(&before.acceptance_criteria), "{}", saved);
        prop_assert!(after.decisions_made.ends_with(&wanted.decisions_made), "{}", saved);
        prop_assert!(after.decisions_rejected.ends_with(&wanted.decisions_rejected), "{}", saved);
        prop_assert!(after.execution_log.ends_with(&wanted.execution_log), "{}", saved);
        prop_assert_eq!(after.metadata.version, before.metadata.version + 1);

        document.save(5).unwrap();
        let lines = |text: &str| text.matches(['\r', '\n']).count();
        prop_assert_eq!(lines(&document.text()), lines(&saved), "a save adds nothing twice: {}", saved);
    }

    #[test]
    fn an_edit_keeps_every_line_that_it_does_not_own(
        first in any_plan(),
        second in any_plan(),
        own in prop::collection::vec((any::<prop::sample::Index>(), 0..6_usize, 0..3_usize), 0..12),
    ) {
        let mut lines: Vec<String> = super::written(&first).text().lines().map(str::to_owned).collect();
        let goal = |lines: &[String]| {
            let at = |heading: &str| lines.iter().position(|line| line == heading).unwrap();
            at("## Goal") + 1..=at("## Acceptance Criteria")
        };
        for (number, (index, kind, end)) in own.into_iter().enumerate() {
            let blocks = [
                format!("Mine {number}"),
                format!("<!-- Mine {number} -->"),
                format!("<!--\n## Goal Mine {number}\n-->"),
                format!("```\n## Goal Mine {number}\n```"),
                format!("### Mine {number}"),
                format!("## Mine {number}"),
            ];
            // A line added to the front matter needs a key; in the goal, only a comment is not part of the goal.
            let at = index.index(lines.len() + 1);
            let block = match at {
                0 => continue,
                1..=5 => format!("Mine{number}: 1"),
                at if goal(&lines).contains(&at) => blocks[1].clone(),
                _ => blocks[kind].clone(),
            };
            lines.insert(at, block + ["", " ", "\r"][end]);
        }
        let text = lines.join("\n");
        let own = |text: &str| {
            let lines = text.split_inclusive('\n').map(|line| line.strip_suffix('\n').unwrap_or(line).to_owned());
            lines.filter(|line| line.contains("Mine")).collect::<Vec<_>>()
        };
        let mut document = document(&text);
        document.edit(|plan| {
            plan.acceptance_criteria.iter_mut().for_each(|known| known.completed = true);
            plan.status = second.status;
            plan.goal = second.goal;
            plan.acceptance_criteria.extend(second.acceptance_criteria);
            plan.decisions_made.extend(second.decisions_made);
            plan.decisions_rejected.extend(second.decisions_rejected);
            plan.tasks = second.tasks;
            plan.execution_log.extend(second.execution_log);
        });
        document.save(5).unwrap();
        prop_assert_eq!(own(&document.text()), own(&text));
    }
}
