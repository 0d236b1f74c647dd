//! Estimates for a prompt before it is sent: tokens, share of the model's context window, dollars. Pure.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Add;

use crate::model::price::{Price, Usd};
use crate::model::prompt::{Prompt, PromptOrder};
use crate::model::tokens::{self, Size};
use crate::model::usage::Usage;
use crate::model::{ModelSpec, REPAIRS};
use crate::sys::excerpt::Excerpt;
use crate::sys::numbers::grouped;

/// Number of the rollup's largest files and directories that are listed.
pub const LARGEST: usize = 10;
/// Tokens that a conversation of two messages takes besides its text, according to OpenAI's description of its format.
pub const FRAMING: u64 = 3 + 2 * 3;
/// Low estimate of the number of bytes of program text per token, for any vendor's tokenizer.
const BYTES_A_TOKEN: u64 = 3;
/// Minimum number of answer tokens that a call must be able to pay for: a model that thinks needs them before it
/// answers.
const LEAST_ANSWER: u64 = 8192;
/// Upper limit on the tokens of any model's answer.
const LONGEST_ANSWER: u64 = 128_000;

/// Estimates the tokens of `prompt`, part by part.
pub fn measure(prompt: &Prompt<'_>) -> Size {
    let tokens = |pieces: &[Cow<'_, str>]| pieces.iter().map(|piece| tokens::count(piece)).sum();
    let part = |(name, pieces): (_, Vec<_>)| (name, tokens(&pieces));
    let parts: Vec<(_, u64)> = prompt.sections().into_iter().map(part).collect();
    Size {
        tokens: parts.iter().map(|part| part.1).sum::<u64>() + FRAMING,
        parts,
    }
}

/// Compares a prompt of this size with the model's context window.
pub fn fit(size: &Size, spec: &ModelSpec) -> Fit {
    match spec.prompt_window() {
        Some(window) if size.tokens > window => Fit::TooLarge { window },
        Some(window) if size.at_most() > window => Fit::Doubtful { window },
        _ => Fit::Fits,
    }
}

/// Returns how many tokens of the model's context window the prompt leaves free.
pub fn room(prompt: &Prompt<'_>, spec: &ModelSpec) -> u64 {
    let room = |window: u64| window.saturating_sub(measure(prompt).tokens);
    spec.prompt_window().map_or(u64::MAX, room)
}

/// The result of comparing a prompt with the model's context window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The prompt fits, or the window is unknown.
    Fits,
    /// The prompt fits by the estimate, which may be too low.
    Doubtful { window: u64 },
    /// The prompt does not fit.
    TooLarge { window: u64 },
}

/// Returns whether a text of `bytes` bytes is certain to fit: no token is shorter than a byte.
pub fn fits_in_any_case(bytes: u64, spec: &ModelSpec) -> bool {
    spec.prompt_window()
        .is_none_or(|window| bytes.saturating_add(FRAMING) <= window)
}

/// Counts the tokens of all files, and returns them with the largest first.
pub fn counted<'t>(files: impl IntoIterator<Item = (&'t str, &'t str)>) -> Vec<(&'t str, u64)> {
    let counted = files
        .into_iter()
        .map(|(path, content)| (path, tokens::count(content)));
    largest_first(counted)
}

/// Returns all directories of these files, each with the tokens of all files below it, the largest first.
pub fn directories(files: &[(String, u64)]) -> Vec<(&str, u64)> {
    let mut sums = BTreeMap::new();
    for (path, tokens) in files {
        for (at, _) in path.match_indices('/') {
            *sums.entry(&path[..at]).or_default() += tokens;
        }
    }
    largest_first(sums)
}

fn largest_first<'t>(all: impl IntoIterator<Item = (&'t str, u64)>) -> Vec<(&'t str, u64)> {
    let mut all = Vec::from_iter(all);
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    all
}

/// The range of a run's cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CostRange {
    /// The cost with empty answers.
    pub least: Usd,
    /// The cost with answers of maximum length; `None` if the model's table does not say how long that is.
    pub most: Option<Usd>,
}

impl Add for CostRange {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let most = self.most.zip(other.most);
        Self {
            least: self.least + other.least,
            most: most.map(|(one, other)| one + other),
        }
    }
}

impl fmt::Display for CostRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.least, self.most) {
            (least, Some(most)) if most == least => write!(f, "{least}"),
            (least, Some(most)) => write!(f, "{least} to {most}"),
            (least, None) => write!(f, "at least {least}"),
        }
    }
}

/// Estimates the cost of the first call.
pub fn first_call(size: &Size, spec: &ModelSpec, price: &Price) -> CostRange {
    CostRange {
        least: likely(size, spec, price, 0),
        most: spec
            .max_output_tokens
            .map(|output| at_most(size, spec, price, Some(output))),
    }
}

/// Returns the maximum cost of a call whose answer has this limit.
pub fn at_most(size: &Size, spec: &ModelSpec, price: &Price, answer: Option<u32>) -> Usd {
    let window = spec.prompt_window().unwrap_or(u64::MAX);
    let answer = answer.map_or(LONGEST_ANSWER, u64::from);
    let usage = Usage::plain(size.at_most().min(window), answer);
    price.at_most().of(usage)
}

/// Returns the cost of the first call if its answer has this many tokens.
pub fn likely(size: &Size, spec: &ModelSpec, price: &Price, answer: u64) -> Usd {
    let window = spec.prompt_window().unwrap_or(u64::MAX);
    let longest = spec.max_output_tokens.map_or(u64::MAX, u64::from);
    price.of(Usage::plain(size.tokens.min(window), answer.min(longest)))
}

/// Returns the maximum cost of a call, for calls whose cost is not reported.
pub fn dearest(size: &Size, spec: &ModelSpec) -> Usd {
    spec.price.map_or(Usd::ZERO, |price| {
        let range = first_call(size, spec, &price);
        range.most.unwrap_or(range.least)
    })
}

/// Estimates the cost of the first call and all repairs, each at its model's price. A repair sends the first prompt
/// again (in the cached order, from the vendor's cache) and, at most, a build's output up to its limit and all earlier
/// answers.
pub fn with_repairs(
    size: &Size,
    (spec, price): (&ModelSpec, Price),
    (repair, repair_price): (&ModelSpec, Price),
) -> CostRange {
    let first = first_call(size, spec, &price);
    let window = repair.prompt_window().unwrap_or(u64::MAX);
    let tokens = size.tokens.min(window);
    let again = repair_price.of(Usage {
        cached_tokens: match repair.prompt_order {
            PromptOrder::Specified => 0,
            PromptOrder::Cached => tokens,
        },
        ..Usage::plain(tokens, 0)
    });
    let outputs = spec.max_output_tokens.zip(repair.max_output_tokens);
    let most = outputs.map(|(output, repair_output)| {
        let (output, repair_output) = (u64::from(output), u64::from(repair_output));
        let build = Excerpt::LIMIT as u64 / BYTES_A_TOKEN;
        let call = |number: u64| {
            let answered = output + (number - 1) * repair_output;
            let input_tokens = size.at_most().saturating_add(build + answered);
            let usage = Usage::plain(input_tokens.min(window), repair_output);
            repair_price.at_most().of(usage)
        };
        first.most.unwrap_or_default() + (1..=u64::from(REPAIRS)).map(call).sum()
    });
    CostRange {
        least: first.least + (0..REPAIRS).map(|_| again).sum(),
        most,
    }
}

/// Errors from a call that may cost more than is left.
#[derive(Debug, Clone, PartialEq, thiserror::Error, miette::Diagnostic)]
#[diagnostic(code("build-failed/budget"))]
pub enum OverBudget {
    /// The prompt leaves too little of the budget for an answer.
    #[error(
        "the next call may cost more than is left: {spent} of {limit} is spent, and the prompt alone has about {} tokens",
        grouped(*.prompt_tokens)
    )]
    #[diagnostic(help(
        "raise `--max-cost`, and {}",
        if *spent == Usd::ZERO { "run again" } else { "go on with `--resume`, which pays for nothing twice" }
    ))]
    TooLittle {
        /// The cost of the run so far.
        spent: Usd,
        /// The limit on the cost.
        limit: Usd,
        /// The prompt's size.
        prompt_tokens: u64,
    },
    /// The price of the model that answers is unknown.
    #[error(
        "the next call may cost more than is left: `{asked}` was answered by `{served}`, whose price is not known"
    )]
    #[diagnostic(help(
        "give the model that answers an entry with a `price` in `{table}`, or ask another, and run again"
    ))]
    Unpriced {
        asked: String,
        served: String,
        /// The file with the entry.
        table: String,
    },
}

impl OverBudget {
    /// Returns whether the rejected call is the first of a run.
    pub fn is_at_once(&self) -> bool {
        matches!(self, Self::TooLittle { spent, .. } if *spent == Usd::ZERO)
    }
}

/// The limit on an answer's tokens with which the call costs at most `money`: the outer `None` if that is too little
/// for an answer, the inner one if no limit is needed.
#[expect(
    clippy::option_option,
    reason = "whether an answer can be paid for, and whether it has a limit"
)]
pub fn affordable_answer(
    size: &Size,
    spec: &ModelSpec,
    price: &Price,
    money: Usd,
) -> Option<Option<u32>> {
    let affordable = price.at_most().affordable_output(money, size.at_most());
    let wanted = spec.max_output_tokens.map(u64::from);
    if affordable < wanted.unwrap_or(LEAST_ANSWER).min(LEAST_ANSWER) {
        return None;
    }
    let allowed = wanted.map_or(affordable, |wanted| wanted.min(affordable));
    // No server accepts a larger number, so without a limit in the table, none is sent.
    let is_limit = wanted.is_some() || allowed < LONGEST_ANSWER;
    Some(u32::try_from(allowed).ok().filter(|_| is_limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelTable;
    use crate::model::ReplyFormat;
    use crate::model::prompt::{Inputs, PromptOrder};

    fn spec(name: &str) -> ModelSpec {
        ModelTable::built_in().named(name).unwrap().clone()
    }

    fn size(tokens: u64) -> Size {
        Size {
            parts: Vec::new(),
            tokens,
        }
    }

    fn usd(dollars: f64) -> Usd {
        Usd::try_from(dollars).unwrap()
    }

    #[test]
    fn a_prompt_is_counted_part_by_part() {
        let inputs = Inputs {
            query: "hello world".into(),
            rollup: "--- a ---\nhello world\n".into(),
            is_part: false,
        };
        let size = measure(&Prompt::initial(
            &inputs,
            PromptOrder::Specified,
            ReplyFormat::Whole,
        ));
        let names: Vec<&str> = size.parts.iter().map(|part| part.0).collect();
        assert_eq!(names, ["system", "query", "codebase"]);
        let sum: u64 = size.parts.iter().map(|part| part.1).sum();
        assert_eq!(size.tokens, sum + FRAMING);
        assert!(size.text().starts_with("about "));
    }

    #[test]
    fn a_prompt_fits_by_its_tokens_and_doubtfully_within_the_margin() {
        let gpt = spec("gpt-5");
        let window = 272_000;
        for (tokens, expected) in [
            (217_600, Fit::Fits),
            (217_610, Fit::Doubtful { window }),
            (272_000, Fit::Doubtful { window }),
            (272_001, Fit::TooLarge { window }),
        ] {
            assert_eq!(fit(&size(tokens), &gpt), expected, "{tokens}");
        }
        assert!(fits_in_any_case(271_900, &gpt) && !fits_in_any_case(272_000, &gpt));
    }

    #[test]
    fn costs_run_from_no_answer_to_the_longest() {
        let gpt = spec("gpt-5");
        let price = gpt.price.unwrap();
        let first = first_call(&size(100_000), &gpt, &price);
        assert!((first.least.dollars() - 0.125).abs() < 1e-9);
        assert!((first.most.unwrap().dollars() - 1.43625).abs() < 1e-9);
        let all = with_repairs(&size(100_000), (&gpt, price), (&gpt, price));
        assert!((all.least.dollars() - 0.5).abs() < 1e-9);
        // Three more answers, after prompts that fill the window.
        assert!((all.most.unwrap().dollars() - (1.43625 + 3.0 * (0.34 + 1.28))).abs() < 1e-9);
    }

    #[test]
    fn an_answer_is_cut_to_what_is_affordable_and_not_below_what_makes_sense() {
        let gpt = spec("gpt-5");
        let price = gpt.price.unwrap();
        let answer = |money| affordable_answer(&size(100_000), &gpt, &price, usd(money));
        assert_eq!(answer(0.1), None);
        assert_eq!(answer(0.15625), None);
        assert_eq!(answer(0.356_255), Some(Some(20_000)));
        assert_eq!(answer(50.0), Some(Some(128_000)));
    }
}
