//! A run in progress: asks the model, and writes the log and the record.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, iter, thread};

use crate::model::estimate::{self, Fit, OverBudget};
use crate::model::price::{Price, Usd};
use crate::model::prompt::Prompt;
use crate::model::served::is_same;
use crate::model::tokens::Size;
use crate::model::usage::Usage;
use crate::model::{Answer, Model, ModelError, ModelSpec, Reply, Request, StepId, Tier, catalogue};
use crate::record::event::Event;
use crate::record::result::{RunRecord, ScratchRecord};
use crate::record::run_files::RESULT;
use crate::record::run_log::{LogError, RunLog};
use crate::record::seconds::Seconds;
use crate::record::step::{PartRecord, Step};
use crate::run::context::Context;
use crate::run::counting::CountingListener;
use crate::run::outcome::{Advice, Failure, Outcome, ended};
use crate::run::past::history::records_of;
use crate::run::problems::DoesNotFit;
use crate::run::purse::{Purse, Reserved};
use crate::run::ready::Ready;
use crate::run::selection::{Models, SelectedModel};
use crate::run::served::{
    Served, expected_price, of_model, with_all_edits, without_calls_unless_offered,
};
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::identity::Fingerprint;
use crate::sys::parallel::joined;

/// A run in progress, with its folder.
pub struct Run<'c> {
    context: &'c Context<'c>,
    /// The run's folder.
    pub log: RunLog<'c>,
    /// The content for `result.json`.
    pub record: RunRecord,
    began: Duration,
    /// Finds the hint for an error that ends the run.
    pub advice: Advice,
    /// Cost of the calls so far; approximate where the vendor does not report tokens.
    purse: Purse,
    /// The money reserved for the call in progress.
    reserved: Option<Reserved>,
    /// Models that answered in place of others, by the name of the requested model.
    served: BTreeMap<String, Served>,
    /// Models whose servers have rejected any tier but the standard one.
    pub(crate) without_tier: BTreeSet<String>,
}

impl<'c> Run<'c> {
    /// Creates the run's folder, with `folder` in its name. `result.json` records the run under `workflow`.
    pub fn start(
        context: &'c Context<'c>,
        workflow: &'static str,
        folder: &str,
    ) -> Result<Self, Error> {
        let started = context.clock.now();
        let log = RunLog::create(context.project.home(), started, folder, context.redactor)?;
        context.reporter.event(&Event::Started {
            log: log.name().to_owned(),
        });
        let mut record = RunRecord::new(workflow, Exit::Done, started);
        record.log = Some(log.name().to_owned());
        let program = context
            .sandbox
            .program
            .and_then(|path| path.metadata().ok());
        record.program = program.as_ref().map(Fingerprint::from);
        let scratch = context.scratch.map(|run| run.scratch.kind());
        record.scratch = scratch.map(|how| ScratchRecord { how });
        Ok(Self {
            record,
            ..Self::part(context, (log, Purse::default()))
        })
    }

    /// Creates a part of a run for another thread, which shares its folder and its budget.
    pub fn part(context: &'c Context<'c>, (log, purse): (RunLog<'c>, Purse)) -> Self {
        Self {
            context,
            log,
            record: RunRecord::default(),
            began: context.clock.elapsed(),
            advice: Error::hint,
            purse,
            reserved: None,
            served: BTreeMap::new(),
            without_tier: BTreeSet::new(),
        }
    }

    /// Returns the log and the purse, which the parts of a run share.
    pub fn shared(&self) -> (RunLog<'c>, Purse) {
        (self.log.clone(), self.purse.clone())
    }

    /// Adds the steps and warnings of a part, which has reported them.
    pub fn join(&mut self, part: RunRecord) {
        self.record.steps.extend(part.steps);
        let known = &mut self.record.warnings;
        for warning in part.warnings {
            if !known.contains(&warning) {
                known.push(warning);
            }
        }
    }

    /// Cost of the calls so far.
    pub fn spent(&self) -> Usd {
        self.purse.spent()
    }

    /// Records the models and reports the warnings from before the run had its folder.
    pub fn begin(&mut self, ready: &Ready<'_>) {
        self.note_models(&ready.models);
        for other in &ready.others {
            self.record.base_urls.extend(other.base_urls());
        }
        if let Some(draft) = &ready.draft {
            // The run's folder keeps a copy of what is sent.
            let _ = fs::remove_file(draft);
        }
        let mut told = BTreeSet::new();
        for models in iter::once(&ready.models).chain(&ready.others) {
            if told.insert(&models.first.spec.name) {
                models.tell_base_urls(self.context);
                self.warn_all(&models.warnings(self.context));
            }
        }
        self.warn_all(&ready.warnings);
    }

    /// Records which models the run asks, and at which base URLs.
    pub fn note_models(&mut self, models: &Models<'_>) {
        self.record.model = Some(models.first.spec.name.clone());
        self.record.base_urls = models.base_urls();
    }

    /// Shows the user a warning and records it, once per text.
    pub fn warn(&mut self, text: String) {
        // The same warning may recur with each repair.
        if !self.record.warnings.contains(&text) {
            self.context.warn(text.clone());
            self.record.warnings.push(text);
        }
    }

    /// Shows the user these warnings, and records them.
    pub fn warn_all(&mut self, texts: &[String]) {
        for text in texts {
            self.warn(text.clone());
        }
    }

    /// Writes the progress of the current step to the log.
    pub fn log_step(&self) -> Result<(), LogError> {
        let step = self.record.steps.last();
        step.map_or(Ok(()), |step| self.log.step(step))
    }

    /// Logs the previous step and adds this one to the record.
    pub fn begin_step(&mut self, step: Step) -> Result<(), LogError> {
        // The inputs and results of many steps would take much space in the record.
        self.log_step()?;
        self.note(Step::shorten);
        self.record.steps.push(Step {
            at: Some(self.elapsed()),
            ..step
        });
        Ok(())
    }

    /// Returns the time from the start of the run until now.
    pub fn elapsed(&self) -> Seconds {
        Seconds(self.context.clock.elapsed().saturating_sub(self.began))
    }

    /// Changes the record of the current step.
    pub fn note(&mut self, change: impl FnOnce(&mut Step)) {
        if let Some(step) = self.record.steps.last_mut() {
            change(step);
        }
    }

    /// Logs the query, asks the model, and logs the reply or the error. `examine` is called on the reply while it is
    /// being logged.
    pub fn ask<T>(
        &mut self,
        models: &Models<'_>,
        step: &StepId,
        prompt: Prompt<'_>,
        examine: impl FnOnce(&Reply) -> T,
    ) -> Result<(Reply, T), Error> {
        self.context.interrupt.check()?;
        let before = self
            .record
            .steps
            .last()
            .and_then(|step| step.model.as_deref());
        let mut selected = models.model_after(before, step);
        // The log must show exactly what is sent.
        let prompt = prompt.map(|piece| self.context.redactor.piece(piece));
        let sections = prompt.sections().into_iter();
        let parts = sections
            .map(|(name, pieces)| PartRecord {
                part: name.into(),
                bytes: pieces.iter().map(|piece| piece.len() as u64).sum(),
            })
            .collect();
        let recorded = models.recorded_in(step);
        let is_new = recorded.is_none();
        let (size, mut allowed) = if is_new {
            let size = self.size(models, selected, &prompt)?;
            let allowed = self.allowed(models, &selected.spec, size.as_ref())?;
            (size, allowed)
        } else {
            (None, Allowed::default())
        };
        let name = &selected.spec.name;
        self.begin_step(Step {
            provider: Some(selected.spec.provider),
            recorded: recorded.map(str::to_owned),
            reply_format: prompt.form.edits.unwrap_or_default(),
            at_most: allowed.cost,
            ..Step::new(step.clone(), name, parts)
        })?;
        // The step is logged first, to record what an interrupted call may have cost.
        self.log_step()?;
        self.log.query(step, &prompt)?;
        let mut request = Request {
            step: step.clone(),
            form: prompt.form.clone(),
            // Long conversations are worth caching as a whole, as vendors do on their own.
            cached_by_marks: !prompt.goes_on(),
            messages: prompt.messages(),
            max_output_tokens: None,
            tier: Tier::Standard,
            // The cost of a call that broke off is unknown, and a retry would add to it.
            once: models.max_cost.is_some(),
        };
        let answer = loop {
            request.max_output_tokens = allowed.answer;
            request.tier = self.tier(&selected.spec);
            let answer = self.send(selected, &request, size.as_ref());
            let Err(error) = &answer else { break answer };
            if self.falls_back_to_standard(&selected.spec, error) {
                continue;
            }
            let Some((fallback, its)) = self.fallback(models, selected, error, size.as_ref())
            else {
                break answer;
            };
            self.fall_back(selected, fallback, error);
            (selected, allowed) = (fallback, its);
            self.note(|record| record.at_most = allowed.cost);
            self.log_step()?;
        };
        let SelectedModel { spec, model, .. } = selected;
        let answer = answer.map_err(|error| error.with_setup(selected.setup(self.context.models)));
        let required = spec
            .vendors_name()
            .filter(|_| models.require_model && is_new);
        let tier = answer.as_ref().ok().and_then(|answer| answer.tier);
        let read = match answer {
            Ok(answer) => self.read(&**model, &request, required, answer.json, examine)?,
            Err(error) => Err(error),
        };
        let (reply, examined) =
            read.map_err(|error| self.without_reply(step, (spec, tier), error))?;
        let usage = reply.spent.usage.filter(|_| is_new);
        let tier = self.note_tier(spec, tier.or(reply.spent.tier));
        let price = self
            .note_served(spec, reply.spent.model_version.as_deref())
            .map(|price| tier.price(price));
        let cost = self.account((spec, price), usage, size.as_ref());
        let step = self.record.steps.last();
        self.context.reporter.event(&Event::Answered {
            model: spec.name.clone(),
            usage,
            cost,
            tier: step.and_then(|step| step.tier),
            took: step.map_or(Duration::ZERO, |step| step.seconds.0),
        });
        self.note(|record| {
            record.finish = Some(reply.finish.clone());
            record.reply = PartRecord::of_reply(&reply);
        });
        self.record
            .model_version
            .clone_from(&reply.spent.model_version);
        self.log_step()?;
        Ok((reply, examined))
    }

    /// Sends the request and waits for the answer.
    fn send(
        &mut self,
        SelectedModel { spec, model, .. }: &SelectedModel<'_>,
        request: &Request<'_>,
        size: Option<&Size>,
    ) -> Result<Answer, ModelError> {
        let reporter = self.context.reporter;
        reporter.event(&Event::Asking {
            step: request.step.clone(),
            model: spec.name.clone(),
            prompt: size.cloned(),
            spent: self.spent(),
        });
        let before = self.context.clock.elapsed();
        let counting = CountingListener {
            reporter,
            price: spec.price.map(|price| request.tier.price(price)),
            input_tokens: size.map_or(0, |size| size.tokens),
            spent: self.spent(),
            came: Cell::default(),
        };
        let answer = model.ask(request, &counting);
        let took = self.context.clock.elapsed().saturating_sub(before);
        self.note(|record| record.seconds = Seconds(record.seconds.0 + took));
        answer
    }

    /// The model to ask after this error, and the limits of that call; `None` if no fallback applies, the prompt
    /// exceeds its context window, or the remaining budget does not cover it.
    fn fallback<'m>(
        &mut self,
        models: &Models<'_>,
        selected: &'m SelectedModel<'m>,
        error: &ModelError,
        size: Option<&Size>,
    ) -> Option<(&'m SelectedModel<'m>, Allowed)> {
        let fallback = selected.fallback.as_deref()?;
        let spec = &fallback.spec;
        let fit = size.map_or(Fit::Fits, |size| estimate::fit(size, spec));
        let allowed = self.allowed(models, spec, size).ok()?;
        let can_be = error.is_overload() && !matches!(fit, Fit::TooLarge { .. });
        can_be.then_some((fallback, allowed))
    }

    /// Switches to the fallback model because the first one is overloaded.
    fn fall_back(&mut self, first: &SelectedModel<'_>, to: &SelectedModel<'_>, error: &ModelError) {
        let (name, provider) = (to.spec.name.clone(), to.spec.provider);
        self.warn(format!(
            "{error}: `{name}` is asked in the place of `{}`, as its entry says",
            first.spec.name
        ));
        self.note(|record| (record.model, record.provider) = (Some(name), Some(provider)));
    }

    /// Records which model answered, and returns the price of the call.
    fn note_served(&mut self, spec: &ModelSpec, version: Option<&str>) -> Option<Price> {
        self.note(|record| record.model_version = version.map(str::to_owned));
        let Some(served) = version.and_then(|version| Served::instead(self.context, spec, version))
        else {
            return spec.price;
        };
        let (name, price) = (served.name.clone(), served.price);
        self.note(|record| record.served = Some(name));
        let known = self.served.get(&spec.name);
        if known.is_none_or(|known| known.name != served.name) {
            self.tell_served(spec, &served);
        }
        self.served.insert(spec.name.clone(), served);
        price
    }

    /// Warns that another model answers; only once a day if the vendor has announced it.
    fn tell_served(&mut self, spec: &ModelSpec, served: &Served) {
        let (project, today) = (&self.context.project, self.context.today());
        let warning = served.warning(&spec.name);
        let is_announced = catalogue::answering(&spec.id, today)
            .is_some_and(|announced| is_same(announced, &served.name));
        let is_told = |record: RunRecord| record.warnings.contains(&warning);
        if !(is_announced && records_of(project, today).any(is_told)) {
            self.warn(warning);
        }
    }

    /// Measures the prompt if its size is needed; `None` if not. A prompt that does not fit the context window is an
    /// error.
    fn size(
        &self,
        models: &Models<'_>,
        SelectedModel { spec, fallback, .. }: &SelectedModel<'_>,
        prompt: &Prompt<'_>,
    ) -> Result<Option<Size>, Error> {
        let bytes = prompt.bytes();
        let mut specs = fallback.iter().map(|fallback| &fallback.spec).chain([spec]);
        let fits = models.is_replay || specs.all(|spec| estimate::fits_in_any_case(bytes, spec));
        if fits && models.max_cost.is_none() && !self.context.reporter.is_live() {
            return Ok(None);
        }
        let size = estimate::measure(prompt);
        match estimate::fit(&size, spec) {
            Fit::TooLarge { window } if !models.is_replay => Err(DoesNotFit {
                model: spec.name.clone(),
                prompt_tokens: size.tokens,
                window,
            }
            .into()),
            _ => Ok(Some(size)),
        }
    }

    /// Returns the limits that keep a call within the run's cost limit, and reserves its maximum cost.
    fn allowed(
        &mut self,
        models: &Models<'_>,
        spec: &ModelSpec,
        size: Option<&Size>,
    ) -> Result<Allowed, Error> {
        let served = self.served.get(&spec.name);
        if let (Some(_), Some(Served { name, price: None })) = (models.max_cost, served) {
            let (asked, served) = (spec.name.clone(), name.clone());
            return Err(OverBudget::Unpriced { asked, served }.into());
        }
        let expected = || expected_price(self.context, spec);
        let price = served.map_or_else(expected, |served| served.price);
        let (Some(limit), Some(size), Some(price)) = (models.max_cost, size, price.as_ref()) else {
            let answer = spec.max_output_tokens;
            return Ok(Allowed { answer, cost: None });
        };
        self.reserved = None;
        let afford = |left| {
            let answer = estimate::affordable_answer(size, spec, price, left)?;
            let cost = estimate::at_most(size, spec, price, answer);
            let allowed = Allowed {
                answer,
                cost: Some(cost),
            };
            Some((allowed, cost))
        };
        let reserved = self.purse.reserve(limit, afford);
        let (allowed, reserved) = reserved.map_err(|spent| OverBudget::TooLittle {
            spent,
            limit,
            prompt_tokens: size.tokens,
        })?;
        self.reserved = Some(reserved);
        Ok(allowed)
    }

    /// Records the usage of a call and returns its cost.
    fn account(
        &mut self,
        (spec, price): (&ModelSpec, Option<Price>),
        usage: Option<Usage>,
        size: Option<&Size>,
    ) -> Option<Usd> {
        // Some servers report zeros only.
        let told = usage.filter(|usage| usage.input_tokens > 0);
        let is_paid = |step: &Step| step.recorded.is_some();
        if self.record.steps.last().is_some_and(is_paid) {
            self.note(|record| record.cost = Some(Usd::ZERO));
            return Some(Usd::ZERO);
        }
        let cost = told.zip(price).map(|(usage, price)| price.of(usage));
        let at_most = || size.map(|size| estimate::dearest(size, spec));
        self.purse.spend(cost.or_else(at_most).unwrap_or_default());
        self.reserved = None;
        self.note(|record| {
            (record.usage, record.cost) = (usage, cost);
            record.at_most = record.at_most.filter(|_| cost.is_none());
        });
        cost
    }

    /// Parses the answer while it is being logged, and examines the reply while the reply is being logged.
    fn read<T>(
        &self,
        model: &dyn Model,
        request: &Request<'_>,
        required: Option<&str>,
        answer: Vec<u8>,
        examine: impl FnOnce(&Reply) -> T,
    ) -> Result<Result<(Reply, T), ModelError>, LogError> {
        let (log, step) = (&self.log, &request.step);
        // Shared so that it can be freed once both users are done with it: it may be large.
        let answer = Arc::new(answer);
        thread::scope(|scope| {
            let logged = Arc::clone(&answer);
            let write = move |log: &RunLog<'_>| log.answer(step, &logged);
            let logging = log.in_background(scope, answer.len(), write)?;
            let reply = model
                .read(step, &answer)
                .and_then(|reply| without_calls_unless_offered(reply, request))
                .and_then(|reply| of_model(reply, required))
                .and_then(|reply| with_all_edits(reply, request));
            drop(answer);
            let read = match reply {
                Ok(reply) => {
                    let text = Arc::clone(&reply.text);
                    let write = move |log: &RunLog<'_>| log.reply(step, &text);
                    let logging = log.in_background(scope, reply.text.len(), write)?;
                    let examined = examine(&reply);
                    logging.map_or(Ok(()), joined)?;
                    Ok((reply, examined))
                }
                Err(error) => Err(error),
            };
            logging.map_or(Ok(()), joined)?;
            Ok(read)
        })
    }

    /// Logs an error in place of the reply. If logging fails, that becomes a warning.
    fn without_reply(
        &mut self,
        step: &StepId,
        (spec, tier): (&ModelSpec, Option<Tier>),
        error: ModelError,
    ) -> Error {
        if let Some((finish, spent)) = error.spent() {
            self.note(|record| record.finish = Some(finish.to_owned()));
            let tier = self.note_tier(spec, tier.or(spent.tier));
            let price = self
                .note_served(spec, spent.model_version.as_deref())
                .map(|price| tier.price(price));
            self.account((spec, price), spent.usage, None);
            self.record.model_version.clone_from(&spent.model_version);
        }
        if error.costs_nothing() {
            self.note(|record| record.at_most = None);
        }
        self.reserved = None;
        let answer = error.answer();
        let hint = if step.purpose.is_workflows() {
            error.hint()
        } else {
            error.hint_for_agent()
        };
        let logged = [
            answer.map_or(Ok(()), |answer| self.log.answer(step, answer)),
            self.log.reply_error(step, &error, &hint),
            self.log_step(),
        ];
        for unlogged in logged.into_iter().filter_map(Result::err) {
            self.warn(unlogged.to_string());
        }
        error.into()
    }

    /// Writes the record and returns how the run ended. Changes must not outlive their record: if it cannot be written,
    /// `put_back` is called to revert them.
    pub fn finish(
        mut self,
        result: Result<String, Error>,
        put_back: impl FnOnce(&mut Self),
    ) -> Result<Outcome, Failure> {
        // An error is ignored: if nothing can be written, writing the record below reports it.
        let _ = self.log_step();
        self.record.cost = self.record.total_cost();
        self.record.seconds = self.elapsed();
        if let Err(error) = &result {
            self.end_with(error);
        }
        let result = match (result, self.log.json(RESULT, &self.record)) {
            (result, Ok(())) => result,
            (Ok(_), Err(unlogged)) => {
                put_back(&mut self);
                let error = unlogged.into();
                self.end_with(&error);
                Err(error)
            }
            (Err(error), Err(unlogged)) => {
                self.context.warn(unlogged.to_string());
                Err(error)
            }
        };
        self.export();
        let advice = self.advice;
        ended(result, self.record).map_err(|failure| Failure { advice, ..failure })
    }

    /// Exports the run if the environment asks for it, unless a signal has ended it. A failure is only a warning.
    fn export(&self) {
        let context = self.context;
        let task = context.task_folder().and_then(Path::file_name);
        let about = (&self.record, task.and_then(OsStr::to_str));
        if let (Some(telemetry), Ok(())) = (&context.telemetry, context.interrupt.check())
            && let Err(problem) = telemetry.export_run(&context.project, about, context.interrupt)
        {
            context.warn(format!("the run's trace was not exported: {problem}"));
        }
    }

    fn end_with(&mut self, error: &Error) {
        self.record.end_with(error, (self.advice)(error));
    }
}

/// The maximum length of a call's answer, in tokens, and the maximum cost of the call under a limit on the run's cost.
#[derive(Debug, Clone, Copy, Default)]
struct Allowed {
    answer: Option<u32>,
    cost: Option<Usd>,
}
