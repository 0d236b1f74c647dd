//! The dry run: performs every step that needs no model. Sends and writes nothing.

use serde_json::{Value, json};

use super::command_line::Cli;
use super::models::rates::Rates;
use crate::model::estimate::{self, CostRange, LARGEST};
use crate::model::price::Usd;
use crate::model::prompt::Inputs;
use crate::model::tokens::Size;
use crate::model::usage::Usage;
use crate::model::{ModelSpec, Purpose, REPAIRS, Tier};
use crate::project::rollup;
use crate::run::context::{Context, ModelChoice};
use crate::run::outcome::{Failure, Outcome};
use crate::run::parts::Parts;
use crate::run::past::history::latest;
use crate::run::ready::Survey;
use crate::run::selection::Models;
use crate::run::sending::share;
use crate::run::{ready, selection, sending};
use crate::sys::error::Error;
use crate::sys::numbers::grouped;

/// The number of the project's latest runs from whose answers the likely cost is estimated.
const RUNS: usize = 50;
/// The number of tokens in a likely answer, including thinking, for a project without earlier answers.
const USUAL: u64 = 8192;

/// Checks that a run could start, and reports what it would send and what it may cost.
///
/// # Errors
/// Fails if the project is not ready; even then, an estimate is shown if possible.
pub fn dry_run(context: &Context<'_>, cli: &Cli, choice: &ModelChoice) -> Result<Outcome, Failure> {
    // A consistency report has no build.
    let build = (!cli.consistency_check).then(|| cli.build.options());
    let purpose = build.map_or(Purpose::REPORT, |_| Purpose::INITIAL);
    let survey = ready::survey(context, choice, build)?;
    let mut warnings = survey.warnings.clone();
    warnings.extend(selection::near_ends(context, &survey.specs));
    warnings.extend(survey.models.iter().flat_map(Models::exposed));
    let rates = Rates::read(&context.project);
    let low = |rates: Rates| {
        let spec = survey.specs.first()?;
        rates.warning(&spec.name, choice.reply_format.unwrap_or(spec.reply_format))
    };
    let is_change = build.is_some();
    warnings.extend(rates.ok().filter(|_| is_change).and_then(low));
    let outcome = match (&survey.inputs, &*survey.specs) {
        (Some(inputs), [spec, repair @ ..]) => {
            let models = (spec, repair.first());
            let mut estimate = Estimate::new(context, &purpose, &survey, inputs, models);
            if cli.report.findings.is_some() {
                estimate.findings = estimate.of_findings();
            }
            estimate.tier = choice.tier.unwrap_or(spec.tier);
            estimate.add_attempts(context, &purpose);
            let (mut text, mut json) = (estimate.text(), estimate.json(&warnings));
            if !choice.others.is_empty() {
                let attempts = choice.others.len() + 1;
                text = format!("{text}\nattempts  {attempts}, all of them in the cost");
                json["attempts"] = attempts.into();
            }
            if let Some(code) = &survey.code {
                let (files, choice) = super::context::choice(code);
                text = format!("{text}\n\n{files}");
                json["context"] = choice;
            }
            Outcome::shown(text, json)
        }
        _ => Outcome::default(),
    };
    let ready = survey.ready().map_err(Error::from);
    let baseline = build.filter(|_| cli.build.baseline);
    let passed = ready.and_then(|_held| baseline.map(|it| it.prove(context)).transpose());
    match passed {
        Ok(passed) => {
            warnings.extend(passed.unwrap_or_default().warnings);
            Ok(Outcome {
                summary: "done: the project is ready; nothing was sent".to_owned(),
                warnings,
                ..outcome
            })
        }
        Err(problem) => Err(Failure::from(problem).with_text(outcome.output.text)),
    }
}

/// The size of a run's prompt, and the possible cost of its calls.
struct Estimate<'e> {
    survey: &'e Survey<'e>,
    spec: &'e ModelSpec,
    size: Size,
    /// All files with their numbers of tokens, largest first.
    files: Vec<(String, u64)>,
    /// The cost of the first call with an answer of the usual length.
    likely: Option<Usd>,
    first: Option<CostRange>,
    all: Option<CostRange>,
    /// The cost of the call for a report's findings.
    findings: Option<CostRange>,
    /// The service tier to request.
    tier: Tier,
}

impl<'e> Estimate<'e> {
    fn new(
        context: &Context<'_>,
        purpose: &Purpose,
        survey: &'e Survey<'e>,
        inputs: &'e Inputs,
        (spec, repair): (&'e ModelSpec, Option<&ModelSpec>),
    ) -> Self {
        let size = estimate::measure(&sending::prompt(purpose, inputs, spec));
        let sections = rollup::sections(&inputs.rollup, context.project.root());
        let price = spec.price.as_ref();
        // A report has no repairs. If the repair model's price is unknown, so is the total.
        let known = repair.is_none_or(|repair| repair.price.is_some());
        let with_repairs = price.filter(|_| *purpose == Purpose::INITIAL && known);
        Self {
            survey,
            spec,
            files: sending::counted(&sections),
            likely: price.map(|price| {
                let answer = usual_answer(context, purpose);
                estimate::likely(&size, spec, price, answer)
            }),
            first: price.map(|price| estimate::first_call(&size, spec, price)),
            all: with_repairs.map(|price| {
                let repair = repair.and_then(|repair| Some((repair, repair.price?)));
                estimate::with_repairs(&size, (spec, *price), repair.unwrap_or((spec, *price)))
            }),
            size,
            findings: None,
            tier: spec.tier,
        }
    }

    /// Adds the first calls of the other attempts, each at its model's price.
    fn add_attempts(&mut self, context: &Context<'_>, purpose: &Purpose) {
        for spec in self.survey.others.iter().map(|models| &models.first.spec) {
            let price = spec.price.as_ref();
            let first = price.map(|price| estimate::first_call(&self.size, spec, price));
            let likely = price.map(|price| {
                let answer = usual_answer(context, purpose);
                estimate::likely(&self.size, spec, price, answer)
            });
            let added = |range: Option<CostRange>| Some(range? + first?);
            (self.first, self.all) = (added(self.first), added(self.all));
            self.likely = self.likely.zip(likely).map(|(sum, one)| sum + one);
        }
    }

    /// Estimates the cost of the call that sends a report and the files that it names, from none to all of them.
    fn of_findings(&self) -> Option<CostRange> {
        let price = self.spec.price.as_ref()?;
        let call = |tokens| {
            let parts = Vec::new();
            estimate::first_call(&Size { parts, tokens }, self.spec, price)
        };
        let longest = self.spec.max_output_tokens.map_or(USUAL, u64::from);
        Some(CostRange {
            least: call(USUAL).least,
            most: call(self.size.tokens + longest).most,
        })
    }

    fn text(&self) -> String {
        let mut lines = Vec::new();
        let mut line = |label: &str, text: String| lines.push(format!("{label:<9} {text}"));
        line("model", self.spec.name.clone());
        for (model, url) in self.survey.base_urls() {
            line("server", format!("{url} for {model}, not its vendor's"));
        }
        for (model, source) in self.survey.key_sources() {
            let whose = if model == self.spec.name {
                String::new()
            } else {
                format!(" for {model}")
            };
            line("key", format!("{source}{whose}"));
        }
        let known = self.spec.prompt_window();
        let window = known.map(|window| share(&self.size, window));
        let unknown = || self.size.text() + "; the model's context window is unknown";
        line("prompt", window.unwrap_or_else(unknown));
        for (part, tokens) in &self.size.parts {
            line("", format!("{:>9}  {part}", grouped(*tokens)));
        }
        for (at, (path, tokens)) in self.files.iter().take(LARGEST).enumerate() {
            let label = if at == 0 { "largest" } else { "" };
            let path = path.escape_debug();
            line(label, format!("{:>9}  {path}", grouped(*tokens)));
        }
        if self.files.len() > LARGEST {
            let more = self.files.len() - LARGEST;
            line("", format!("           and {more} more files"));
        }
        let by_parts = self.survey.parts.as_ref();
        let parts = by_parts.map(Parts::listed);
        for (at, part) in parts.into_iter().flatten().enumerate() {
            line(if at == 0 { "parts" } else { "" }, part);
        }
        let calls = match &*self.survey.others {
            [] => "call",
            _ => "calls",
        };
        match self.first {
            _ if let Some(parts) = by_parts => line("cost", parts.estimate.to_string()),
            None => line("cost", "unknown: the model's entry has no price".to_owned()),
            Some(CostRange {
                least,
                most: Some(most),
            }) if let Some(likely) = self.likely
                && most != least =>
            {
                let text = format!("likely {likely}, at most {most} for the first {calls}");
                line("cost", text);
            }
            Some(first) => line("cost", format!("{first} for the first {calls}")),
        }
        if let Some(all) = self.all {
            line("", format!("{all} with {REPAIRS} repairs"));
        }
        if let Some(findings) = self.findings {
            line("", format!("{findings} for the call for the findings"));
        }
        if self.tier == Tier::Flex {
            let flex = "flex, at half of this cost if the vendor has room";
            line("tier", flex.to_owned());
        }
        lines.join("\n")
    }

    fn json(&self, warnings: &[String]) -> Value {
        let sections = self.size.parts.iter();
        let parts = sections.map(|(part, tokens)| json!({"part": part, "tokens": tokens}));
        let largest = self.files.iter().take(LARGEST);
        let files = largest.map(|(path, tokens)| json!({"path": path, "tokens": tokens}));
        let cost = |range: CostRange| json!({"least": range.least, "most": range.most});
        json!({
            "schema": 1,
            "model": self.spec.name,
            "tier": self.tier,
            "base_urls": self.survey.base_urls(),
            "keys": self.survey.key_sources(),
            "prompt": {"tokens": self.size.tokens, "exact": false, "parts": parts.collect::<Vec<_>>()},
            "context_window": self.spec.prompt_window(),
            "files": self.files.len(),
            "largest": files.collect::<Vec<_>>(),
            "cost": {"likely": self.likely, "first": self.first.map(cost), "with_repairs": self.all.map(cost), "findings": self.findings.map(cost)},
            "by_parts": self.survey.parts.as_ref().map(|it| json!({"calls": it.estimate.calls, "cost": it.estimate.cost.map(cost)})),
            "warnings": warnings,
        })
    }
}

/// Returns the usual length of an answer, in tokens: the median of the project's latest runs, if there are any.
fn usual_answer(context: &Context<'_>, purpose: &Purpose) -> u64 {
    let runs = latest(&context.project).into_iter().flatten().take(RUNS);
    let mut answers: Vec<u64> = runs
        .filter_map(|run| {
            let steps = run.record?.steps;
            let first = steps.iter().find(|step| step.purpose == *purpose)?;
            first.usage.as_ref().map(Usage::answered)
        })
        .collect();
    answers.sort_unstable();
    answers.get(answers.len() / 2).copied().unwrap_or(USUAL)
}
