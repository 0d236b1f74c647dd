//! A run in progress: writes the log and the record, and asks the model (`asking`).

mod asking;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;
use std::time::Duration;
use std::{fs, iter};

use crate::model::price::Usd;
use crate::record::event::Event;
use crate::record::result::{RunRecord, ScratchRecord};
use crate::record::run_files::{self, RESULT};
use crate::record::run_log::{LogError, RunLog};
use crate::record::seconds::Seconds;
use crate::record::step::Step;
use crate::run::budget::{Budget, Reserved};
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::run::outcome::{Advice, Failure, Outcome, ended};
use crate::run::ready::Ready;
use crate::run::selection::Models;
use crate::run::served::Served;
use crate::sys::error::Error;
use crate::sys::exit::Exit;
use crate::sys::identity::Fingerprint;

/// A run in progress, with its folder.
pub struct Run<'c> {
    context: &'c Context<'c>,
    /// The run's folder.
    pub log: RunLog<'c>,
    /// The content for `result.json`.
    pub record: RunRecord,
    /// The index of the step to which an agent has returned after a helper's work; `None` if the last step is current.
    returned: Option<usize>,
    /// The disk space that is reserved for `result.json`.
    room: Option<File>,
    began: Duration,
    /// The function that finds the hint for an error that ends the run.
    pub advice: Advice,
    /// Cost of the calls so far; approximate where the vendor does not report tokens.
    budget: Budget,
    /// The amount reserved for the call in progress.
    reserved: Option<Reserved>,
    /// Models that answered in place of others, by the name of the requested model.
    served: BTreeMap<String, Served>,
    /// Models whose servers have rejected any tier but the standard one.
    pub(crate) without_tier: BTreeSet<String>,
}

impl<'c> Run<'c> {
    /// Creates the run's folder. Its name ends with the name of the `workflow`'s folders.
    pub fn start(context: &'c Context<'c>, workflow: &'static str) -> Result<Self, Error> {
        let folder = run_files::folder(workflow);
        let started = context.clock.now();
        let writable = context.project.check_writable(&context.project.logs());
        writable.map_err(NotReady::of)?;
        let log = RunLog::create(context.project.home(), started, folder, context.redactor)?;
        let room = Some(log.reserve()?);
        context.reporter.event(&Event::Started {
            log: log.name().to_owned(),
        });
        let mut record = RunRecord::new(workflow, Exit::Done, started);
        record.log = Some(log.name().to_owned());
        let program = context.sandbox.program.map(Path::metadata);
        record.program = program.and_then(Result::ok).as_ref().map(Fingerprint::from);
        let scratch = context.scratch.map(|run| run.scratch.kind());
        record.scratch = scratch.map(|how| ScratchRecord { how });
        Ok(Self {
            record,
            returned: None,
            room,
            ..Self::part(context, (log, Budget::default()))
        })
    }

    /// Creates a part of a run for another thread, which shares its folder and its budget.
    pub fn part(context: &'c Context<'c>, (log, budget): (RunLog<'c>, Budget)) -> Self {
        Self {
            context,
            log,
            record: RunRecord::default(),
            returned: None,
            room: None,
            began: context.clock.elapsed(),
            advice: Error::hint,
            budget,
            reserved: None,
            served: BTreeMap::new(),
            without_tier: BTreeSet::new(),
        }
    }

    /// Returns the log and the budget, which the parts of a run share.
    pub fn shared(&self) -> (RunLog<'c>, Budget) {
        (self.log.clone(), self.budget.clone())
    }

    /// Takes over the steps and warnings of a part, which has reported them.
    pub fn join(&mut self, part: &mut RunRecord) {
        self.record.steps.append(&mut part.steps);
        let known = &mut self.record.warnings;
        for warning in part.warnings.drain(..) {
            if !known.contains(&warning) {
                known.push(warning);
            }
        }
    }

    /// Returns the cost of the calls so far.
    pub fn spent(&self) -> Usd {
        self.budget.spent()
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
        let mut seen = BTreeSet::new();
        for models in iter::once(&ready.models).chain(&ready.others) {
            if seen.insert(&models.first.spec.name) {
                models.report_base_urls(self.context);
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

    /// Returns the current step; `None` before the first one.
    pub fn current(&self) -> Option<&Step> {
        let returned = self.returned.and_then(|at| self.record.steps.get(at));
        returned.or(self.record.steps.last())
    }

    /// Logs the current step, and makes an earlier one, given in full, the current one again.
    pub fn return_to(&mut self, step: Step) -> Result<(), LogError> {
        self.log_step()?;
        self.note(Step::shorten);
        let id = step.id();
        let place = self.record.steps.iter().position(|one| one.id() == id);
        if let Some(at) = place {
            self.record.steps[at] = step;
            self.returned = Some(at);
        }
        Ok(())
    }

    /// Writes the progress of the current step to the log.
    pub fn log_step(&self) -> Result<(), LogError> {
        self.current().map_or(Ok(()), |step| self.log.step(step))
    }

    /// Logs the previous step and adds this one to the record.
    pub fn begin_step(&mut self, step: Step) -> Result<(), LogError> {
        // The inputs and results of many steps would take much space in the record.
        self.log_step()?;
        self.note(Step::shorten);
        self.returned = None;
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
        let last = self.record.steps.len().saturating_sub(1);
        if let Some(step) = self.record.steps.get_mut(self.returned.unwrap_or(last)) {
            change(step);
        }
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
        self.room = None;
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
