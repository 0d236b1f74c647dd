//! Calls to the model during a run, within the limits on tokens and cost, and to the fallback model if the first one is
//! overloaded.
//!
//! Touches the network through the model, and the run's log. Guarantees that each call is logged before it is made, and
//! its reply or error afterwards.

use std::cell::Cell;
use std::time::Duration;

use super::Run;
use crate::model::estimate::{self, Fit, OverBudget};
use crate::model::message::Message;
use crate::model::price::{Price, Usd};
use crate::model::prompt::Prompt;
use crate::model::served::is_same;
use crate::model::tokens::Size;
use crate::model::usage::Usage;
use crate::model::{
    Answer, Model, ModelError, ModelSpec, ModelTable, Reply, Request, Spent, StepId, Tier,
    catalogue,
};
use crate::record::event::Event;
use crate::record::result::RunRecord;
use crate::record::run_log::LogError;
use crate::record::seconds::Seconds;
use crate::record::step::{PartRecord, Step};
use crate::run::counting::CountingListener;
use crate::run::error::DoesNotFit;
use crate::run::past::history::records_of;
use crate::run::selection::{Models, SelectedModel};
use crate::run::served::{
    Served, expected_price, of_model, with_all_edits, without_calls_unless_offered,
};
use crate::sys::error::Error;
use crate::sys::numbers::counted;
use crate::sys::parallel::{MUCH_TEXT, side_by_side};

impl Run<'_> {
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
        let last = self.record.steps.last();
        let selected = models.model_after(last.and_then(|step| step.model.as_deref()), step);
        // The log must show exactly what is sent.
        let prompt = prompt.redacted(self.context.redactor);
        let sections = prompt.sections().into_iter();
        let parts = sections
            .map(|(name, pieces)| PartRecord {
                part: name.into(),
                bytes: pieces.iter().map(|piece| piece.len() as u64).sum(),
            })
            .collect();
        let recorded = models.recorded_in(step);
        let is_new = recorded.is_none();
        let (size, allowed) = if is_new {
            let size = self.size(models, selected, &prompt)?;
            let allowed = self.allowed(models, &selected.spec, size.as_ref())?;
            (size, allowed)
        } else {
            (None, Allowed::default())
        };
        self.begin_step(Step {
            provider: Some(selected.spec.provider),
            recorded: recorded.map(str::to_owned),
            reply_format: prompt.form.edits.unwrap_or_default(),
            at_most: allowed.cost,
            ..Step::new(step.clone(), &selected.spec.name, parts)
        })?;
        // The step is logged first, to record what an interrupted call may have cost.
        self.log_step()?;
        self.log.query(step, &prompt)?;
        let mut request = Request {
            step: step.clone(),
            form: prompt.form.clone(),
            // Long conversations are worth caching as a whole, as vendors do on their own.
            cached_by_marks: !prompt.continues(),
            messages: prompt.messages(),
            max_output_tokens: None,
            tier: Tier::Standard,
            // The cost of a call that broke off is unknown, and a retry would add to it.
            once: models.max_cost.is_some(),
            deadline: models.deadline,
        };
        let asked = &selected.spec.name;
        let (selected, answer) =
            self.answer(models, selected, &mut request, allowed, size.as_ref())?;
        let is_fallback = selected.spec.name != *asked;
        let SelectedModel { spec, model, .. } = selected;
        let answer = answer.map_err(|error| error.with_setup(selected.setup(self.context.models)));
        let required = spec
            .vendors_name()
            .filter(|_| models.require_model && is_new);
        let tier = answer.as_ref().ok().and_then(|answer| answer.tier);
        let read = match answer {
            Ok(answer) => {
                let expected = (required, is_fallback);
                self.read(&**model, &request, expected, answer.json, examine)?
            }
            Err(error) => Err(error),
        };
        let (reply, examined) =
            read.map_err(|error| self.without_reply(step, (spec, tier), error))?;
        let usage = reply.spent.usage.filter(|_| is_new);
        let cost = self.charge((spec, tier), &reply.spent, size.as_ref());
        self.note_reply(&reply, (&spec.name, usage, cost));
        self.log_step()?;
        Ok((reply, examined))
    }

    /// Sends the request to the selected model: again at the standard tier if its own is not to be had, and to its
    /// fallback if it is overloaded. Returns the model that was asked last.
    fn answer<'m>(
        &mut self,
        models: &Models<'_>,
        mut selected: &'m SelectedModel<'m>,
        request: &mut Request<'_>,
        mut allowed: Allowed,
        size: Option<&Size>,
    ) -> Result<(&'m SelectedModel<'m>, Result<Answer, ModelError>), Error> {
        loop {
            request.max_output_tokens = allowed.answer;
            request.tier = self.tier(&selected.spec);
            let answer = self.send(selected, request, size);
            let Err(error) = &answer else {
                return Ok((selected, answer));
            };
            if self.falls_back_to_standard(&selected.spec, error) {
                continue;
            }
            // An overloaded server may have charged for what it had already generated.
            let is_last = request.once && !error.costs_nothing();
            let other = (!is_last).then(|| self.fallback(models, selected, error, size));
            let Some((fallback, its)) = other.flatten() else {
                return Ok((selected, answer));
            };
            self.fall_back(selected, fallback, error);
            request.messages.iter_mut().for_each(Message::drop_thoughts);
            request.messages.retain(|message| !message.parts.is_empty());
            (selected, allowed) = (fallback, its);
            self.note(|record| record.at_most = allowed.cost);
            self.log_step()?;
        }
    }

    /// Shows and records that the model has replied.
    fn note_reply(
        &mut self,
        reply: &Reply,
        (model, usage, cost): (&str, Option<Usage>, Option<Usd>),
    ) {
        let step = self.record.steps.last();
        self.context.reporter.event(&Event::Answered {
            model: model.to_owned(),
            usage,
            cost,
            tier: step.and_then(|step| step.tier),
            took: step.map_or(Duration::ZERO, |step| step.seconds.0),
        });
        self.note(|record| {
            record.finish = Some(reply.finish.clone());
            record.reply = PartRecord::of_reply(reply);
            record.is_redacted = reply.is_redacted;
        });
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
            received: Cell::default(),
            has_begun: Cell::default(),
            broken: Cell::default(),
        };
        let answer = model.ask(request, &counting);
        let took = self.context.clock.elapsed().saturating_sub(before);
        self.note(|record| record.seconds = Seconds(record.seconds.0 + took));
        let broken = counting.broken.get();
        let is_paid = spec
            .price
            .is_some_and(|price| price.rates.output != Usd::ZERO);
        if broken > 0 && is_paid {
            let (calls, name) = (counted(broken, "call"), &spec.name);
            self.warn(format!(
                "{calls} to `{name}` broke off midway; the cost is unknown and not included in the totals"
            ));
        }
        answer
    }

    /// Returns the model to ask after this error, and the limits of that call; `None` if no fallback applies, the
    /// prompt exceeds its context window, or the remaining budget does not cover it.
    fn fallback<'m>(
        &mut self,
        models: &Models<'_>,
        selected: &'m SelectedModel<'m>,
        error: &ModelError,
        size: Option<&Size>,
    ) -> Option<(&'m SelectedModel<'m>, Allowed)> {
        let fallback = selected.fallback.as_deref();
        let fallback = fallback.filter(|_| error.is_overload())?;
        let fit = size.map_or(Fit::Fits, |size| estimate::fit(size, &fallback.spec));
        if matches!(fit, Fit::TooLarge { .. }) {
            return None;
        }
        let allowed = self.allowed(models, &fallback.spec, size).ok()?;
        Some((fallback, allowed))
    }

    /// Switches to the fallback model because the first one is overloaded.
    fn fall_back(&mut self, first: &SelectedModel<'_>, to: &SelectedModel<'_>, error: &ModelError) {
        let (name, provider) = (to.spec.name.clone(), to.spec.provider);
        self.warn(format!(
            "{error}: `{name}` is asked in place of `{}`, as its entry says",
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
            self.report_served(spec, &served);
        }
        self.served.insert(spec.name.clone(), served);
        price
    }

    /// Warns that another model answers; only once a day if the vendor has announced it.
    fn report_served(&mut self, spec: &ModelSpec, served: &Served) {
        let (project, today) = (&self.context.project, self.context.today());
        // An entry may have the name of the model that answers.
        let is_same_name = spec.name == served.name;
        let warning = served.warning(if is_same_name { &spec.id } else { &spec.name });
        let is_announced = catalogue::answering(&spec.id, today)
            .is_some_and(|announced| is_same(announced, &served.name));
        let has_warned = |record: RunRecord| record.warnings.contains(&warning);
        if !(is_announced && records_of(project, today).any(has_warned)) {
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
            let models = self.context.models.as_ref().ok();
            let entry = models.and_then(|table| table.entry_of(spec.provider, name));
            let unpriced = OverBudget::Unpriced {
                asked: spec.name.clone(),
                served: name.clone(),
                table: entry.map_or(ModelTable::FILE, ModelSpec::table).to_owned(),
            };
            return Err(unpriced.into());
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
            Some((answer, estimate::at_most(size, spec, price, answer)))
        };
        let reserved = self.budget.reserve(limit, afford);
        let (answer, reserved) = reserved.map_err(|spent| OverBudget::TooLittle {
            spent,
            limit,
            prompt_tokens: size.tokens,
        })?;
        let cost = Some(self.reserved.insert(reserved).most);
        Ok(Allowed { answer, cost })
    }

    /// Records the tier, the model and the usage of a call, and returns its cost.
    fn charge(
        &mut self,
        (spec, tier): (&ModelSpec, Option<Tier>),
        spent: &Spent,
        size: Option<&Size>,
    ) -> Option<Usd> {
        let tier = self.note_tier(spec, tier.or(spent.tier));
        let served = self.note_served(spec, spent.model_version.as_deref());
        let price = served.map(|price| tier.price(price));
        self.record.model_version.clone_from(&spent.model_version);
        // Some servers report zeros only.
        let reported = spent.usage.filter(|usage| usage.input_tokens > 0);
        let is_recorded = |step: &Step| step.recorded.is_some();
        if self.record.steps.last().is_some_and(is_recorded) {
            self.note(|record| record.cost = Some(Usd::ZERO));
            return Some(Usd::ZERO);
        }
        let cost = reported.zip(price).map(|(usage, price)| price.of(usage));
        let reserved = self.reserved.as_ref().map(|reserved| reserved.most);
        let at_most = || reserved.or_else(|| size.map(|size| estimate::dearest(size, spec)));
        self.budget.spend(cost.or_else(at_most).unwrap_or_default());
        self.reserved = None;
        self.note(|record| {
            (record.usage, record.cost) = (spent.usage, cost);
            record.at_most = record.at_most.filter(|_| cost.is_none());
        });
        cost
    }

    /// Parses the answer while it is being logged, and examines the reply while the reply is being logged.
    fn read<T>(
        &self,
        model: &dyn Model,
        request: &Request<'_>,
        (required, is_fallback): (Option<&str>, bool),
        answer: Vec<u8>,
        examine: impl FnOnce(&Reply) -> T,
    ) -> Result<Result<(Reply, T), ModelError>, LogError> {
        let (log, step) = (&self.log, &request.step);
        let (logged, reply) = side_by_side(
            answer.len() >= MUCH_TEXT,
            || log.answer(step, &answer),
            || {
                model
                    .read(step, &answer)
                    .and_then(|reply| without_calls_unless_offered(reply, request))
                    .and_then(|reply| of_model(reply, required))
                    .and_then(|reply| with_all_edits(reply, request))
            },
        );
        // It may be large.
        drop(answer);
        logged?;
        let mut reply = match reply {
            Ok(reply) => reply,
            Err(error) => return Ok(Err(error)),
        };
        // A conversation goes on with the first model, to which another's thoughts mean nothing.
        reply
            .parts
            .retain(|part| !(is_fallback && part.is_thought()));
        let (is_redacted, examined) = side_by_side(
            reply.text.len() >= MUCH_TEXT,
            || log.reply(step, &reply.text),
            || examine(&reply),
        );
        reply.is_redacted |= is_redacted?;
        Ok(Ok((reply, examined)))
    }

    /// Logs an error in place of the reply. If logging fails, that becomes a warning.
    fn without_reply(
        &mut self,
        step: &StepId,
        (spec, tier): (&ModelSpec, Option<Tier>),
        error: ModelError,
    ) -> Error {
        let is_free = error.costs_nothing();
        self.reserved.take_if(|_| is_free);
        if let Some((finish, spent)) = error.spent() {
            self.note(|record| record.finish = Some(finish.to_owned()));
            self.charge((spec, tier), spent, None);
        }
        if is_free {
            self.note(|record| (record.cost, record.at_most) = (Some(Usd::ZERO), None));
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
}

/// The maximum length of a call's answer, in tokens, and the maximum cost of the call under a limit on the run's cost.
#[derive(Debug, Clone, Copy, Default)]
struct Allowed {
    answer: Option<u32>,
    cost: Option<Usd>,
}
