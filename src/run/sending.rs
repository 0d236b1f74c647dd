//! Checks before sending: the code base matches the project, the prompt fits the model's context window, and the call
//! stays within the cost limit.

use std::path::Path;

use super::context::{Freshness, ModelChoice};
use super::parts::{Parts, PartsEstimate};
use super::shown::Shown;
use crate::model::estimate::{self, Fit, LARGEST};
use crate::model::price::Usd;
use crate::model::prompt::{Inputs, Prompt};
use crate::model::tokens::Size;
use crate::model::{ModelSpec, Provider, Purpose};
use crate::project::home::FRUGAL;
use crate::project::rollup::{self, RollupFile, RollupState};
use crate::sys::numbers::{grouped, percent};
use crate::sys::text::first_lines;

/// Maximum number of files named.
const NAMED: usize = 100;

/// Reasons that a prompt is not sent.
#[derive(Debug, Clone, PartialEq, thiserror::Error, miette::Diagnostic)]
pub enum SendingProblem {
    /// The rollup does not match the disk.
    #[error("the code base in `agent-config/codeRollup.txt` differs from the files on disk: {0}")]
    #[diagnostic(
        code("/stale"),
        help(
            "roll up with `--rollup` or `code-commit rollup`; `--allow-stale` sends it as it is; after a run that has left \
             edits, `code-commit --resume last` goes on with it"
        )
    )]
    Stale(String),
    /// The rollup cannot be compared with the disk.
    #[error("`agent-config/codeRollup.txt` has no file after a line like `--- src/main.rs ---`")]
    #[diagnostic(
        code("/stale"),
        help("roll up again, with `code-commit rollup` or `./codeRollup.sh`")
    )]
    NoFiles,
    /// The prompt exceeds the model's context window.
    #[error("the prompt does not fit the context window of `{model}`: {}{}", share(.size, *.window), breakdown(.size, .files))]
    #[diagnostic(
        code("/window"),
        help(
            "{}{}leave files out of the rollup, which `--rollup` would make anew: `code-commit rollup --budget TOKENS` says which; or {}use a model with a larger window (one of Ollama's is loaded with its entry's `numCtx`); or let `code-commit {}` do it, which reads only what it needs",
            in_parts(*parts),
            a_directory(.size, .files, *.window),
            a_part(*may_be_part, *window),
            FRUGAL.command
        )
    )]
    TooLarge {
        /// The model's name, as given to `--model`.
        model: String,
        /// The model's context window, in tokens.
        window: u64,
        /// The prompt's size.
        size: Size,
        /// All files, with their tokens, the largest first.
        files: Vec<(String, u64)>,
        /// The calls of a report by parts, if that is possible.
        parts: Option<PartsEstimate>,
        /// True if a part of the code base could be sent.
        may_be_part: bool,
    },
    /// The first call, or all of a report by parts, may exceed the cost limit.
    #[error("{calls} would exceed `--max-cost` {limit}: {why}")]
    #[diagnostic(
        code("/budget"),
        help("raise `--max-cost`, or leave files out of the rollup; `--dry-run` shows the costs")
    )]
    TooExpensive {
        calls: &'static str,
        limit: Usd,
        why: String,
    },
    /// A cost limit is set, but the model has no price.
    #[error("`--max-cost` cannot be enforced: the price of `{model}` is not known")]
    #[diagnostic(
        code("/budget"),
        help("give `{model}` a `price` in {table}; a local one costs 0")
    )]
    NoPrice { model: String, table: String },
}

/// Describes the files of the rollup that differ from the disk.
fn stale(sections: &[RollupFile<'_>]) -> Option<SendingProblem> {
    let differing = sections.iter().filter_map(|section| {
        let what = match section.state {
            RollupState::Same => return None,
            RollupState::Gone => "is not there",
            RollupState::Changed => "has changed",
        };
        Some(format!("`{}` {what}", section.path.escape_debug()))
    });
    let named = first_lines(differing, NAMED);
    (!named.is_empty()).then(|| SendingProblem::Stale(named.join(", ")))
}

/// Compares `rollup` with the code base below `root`. Returns the difference, if any, and the model's view of the
/// files. With `may_be_stale`, replies may replace files despite a difference.
pub fn compare(rollup: &str, root: &Path, may_be_stale: bool) -> (Option<SendingProblem>, Shown) {
    let sections = rollup::comparable(rollup, root);
    let known = sections.as_deref();
    let problem = known.map_or(Some(SendingProblem::NoFiles), stale);
    (problem, Shown::of(known, root, may_be_stale))
}

/// Examines the first query. Returns the problems that prevent sending it, and warnings.
pub fn examine(
    root: &Path,
    choice: &ModelChoice,
    purpose: &Purpose,
    (inputs, outdated, parts): (&Inputs, Option<SendingProblem>, Option<&Parts>),
    spec: &ModelSpec,
) -> (Vec<SendingProblem>, Vec<String>) {
    let (mut problems, mut warnings) = (Vec::new(), Vec::new());
    let freshness = choice.inputs.freshness;
    match outdated {
        Some(form @ SendingProblem::NoFiles) if freshness != Freshness::Required => {
            warnings.push(format!(
                "{form}: it is sent as it is, and was not compared with the disk"
            ));
        }
        Some(stale) if freshness == Freshness::Stale => {
            warnings.push(format!("{stale}; it is sent as it is"));
        }
        outdated => problems.extend(outdated),
    }
    let prompt = prompt(purpose, inputs, spec);
    if choice.max_cost.is_none() && estimate::fits_in_any_case(prompt.bytes(), spec) {
        return (problems, warnings);
    }
    let size = estimate::measure(&prompt);
    let parts = parts.map(|parts| parts.estimate);
    let by_parts = parts.filter(|_| choice.inputs.by_parts);
    match estimate::fit(&size, spec) {
        Fit::TooLarge { .. } if by_parts.is_some() => {}
        Fit::Fits => {}
        Fit::Doubtful { window } => warnings.push(format!(
            "the prompt may not fit into the window of `{}`: {}",
            spec.name,
            share(&size, window)
        )),
        Fit::TooLarge { window } => problems.push(SendingProblem::TooLarge {
            model: spec.name.clone(),
            window,
            files: counted(&rollup::sections(&inputs.rollup, root)),
            size: size.clone(),
            parts,
            may_be_part: *purpose != Purpose::REPORT && !inputs.is_part,
        }),
    }
    problems.extend(without_price(choice, spec));
    let limit = choice.max_cost;
    problems.extend(limit.and_then(|limit| too_expensive(limit, spec, &size, by_parts)));
    (problems, warnings)
}

/// Returns a problem if a cost limit is set but the model has no price.
pub fn without_price(choice: &ModelChoice, spec: &ModelSpec) -> Option<SendingProblem> {
    let unkept = choice.max_cost.is_some() && spec.price.is_none();
    // A deployment that the environment names has no entry yet, and is asked by its entry only if that is named.
    let is_variables = spec.provider == Provider::Azure && spec.file.is_none();
    let named = is_variables.then_some(", and name it by `--model`");
    unkept.then(|| SendingProblem::NoPrice {
        model: spec.name.clone(),
        table: format!("`{}`{}", spec.table(), named.unwrap_or_default()),
    })
}

fn too_expensive(
    limit: Usd,
    spec: &ModelSpec,
    size: &Size,
    by_parts: Option<PartsEstimate>,
) -> Option<SendingProblem> {
    let price = &spec.price?;
    let (is_within, calls, why) = if let Some(parts) = by_parts {
        let is_within = parts.cost.is_none_or(|cost| cost.least <= limit);
        (is_within, "a report by parts", parts.to_string())
    } else {
        let answer = estimate::affordable_answer(size, spec, price, limit);
        let least = estimate::likely(size, spec, price, 0);
        let size = size.text();
        let why =
            format!("the prompt has {size}, which alone cost {least}, and the answer comes on top");
        (answer.is_some(), "the first call", why)
    };
    (!is_within).then_some(SendingProblem::TooExpensive { calls, limit, why })
}

/// Builds the first query.
pub fn prompt<'i>(purpose: &Purpose, inputs: &'i Inputs, spec: &ModelSpec) -> Prompt<'i> {
    if *purpose == Purpose::REPORT {
        Prompt::consistency(inputs, spec.prompt_order)
    } else {
        Prompt::initial(inputs, spec.prompt_order, spec.reply_format)
    }
}

/// Returns the files of the rollup with their tokens, the largest first.
pub fn counted(sections: &[RollupFile<'_>]) -> Vec<(String, u64)> {
    let files = sections
        .iter()
        .map(|section| (section.path, section.content));
    let counted = estimate::counted(files).into_iter();
    counted
        .map(|(path, tokens)| (path.to_owned(), tokens))
        .collect()
}

/// Formats a prompt's share of a context window.
pub fn share(size: &Size, window: u64) -> String {
    let share = percent(size.tokens, window);
    format!("{}, {share} % of {}", size.text(), grouped(window))
}

/// Suggests a report by parts, if that is possible.
fn in_parts(parts: Option<PartsEstimate>) -> String {
    parts.map_or_else(String::new, |parts| {
        format!("`--parts` reads it by parts, in {parts}; or ")
    })
}

/// Suggests a part of the code base that fits into the window, if it may be sent.
fn a_part(may_be: bool, window: u64) -> String {
    let thousands = (window / 2_000).clamp(1, 40);
    let hint = format!("`--context {thousands}k` sends what ranks first for the query; or ");
    if may_be { hint } else { String::new() }
}

/// Suggests the largest directory that fits into the window by itself; empty if none does.
fn a_directory(size: &Size, files: &[(String, u64)], window: u64) -> String {
    let all: u64 = files.iter().map(|(_, tokens)| tokens).sum();
    let with = |tokens| Size {
        tokens: size.tokens.saturating_sub(all) + tokens,
        parts: Vec::new(),
    };
    let mut directories = estimate::directories(files).into_iter();
    let fitting = directories.find(|(_, tokens)| with(*tokens).at_most() <= window);
    fitting.map_or_else(String::new, |(path, tokens)| {
        let (path, prompt) = (path.escape_debug(), with(tokens).text());
        format!("`code-commit rollup {path}` makes it {prompt}; or ")
    })
}

fn breakdown(size: &Size, files: &[(String, u64)]) -> String {
    let directories: Vec<_> = estimate::directories(files)
        .iter()
        .map(|(path, tokens)| (format!("{path}/"), *tokens))
        .collect();
    listed("", &size.parts)
        + &listed("\n    the largest files of the code base:", files)
        + &listed("\n    its largest directories:", &directories)
}

/// Lists the first few of these, with their tokens.
fn listed(title: &str, all: &[(impl AsRef<str>, u64)]) -> String {
    let lines = all.iter().take(LARGEST).map(|(name, tokens)| {
        let name = name.as_ref().escape_debug();
        format!("\n    {:>11}  {name}", grouped(*tokens))
    });
    title.to_owned() + &lines.collect::<String>()
}
