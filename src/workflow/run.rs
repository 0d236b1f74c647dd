//! A run that is under way: it asks the model, and keeps log and record of what happens.

use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use super::ready::Ready;
use super::{Context, Failure, Outcome};
use crate::error::{Error, Exit};
use crate::model::{Listener, Model, ModelError, Reply, Request};
use crate::prompt::Prompt;
use crate::record::{self, Attempt, AttemptRecord, ErrorRecord, RunRecord, Seconds, TreeState};
use crate::report::{Event, Reporter};
use crate::run_log::{LogError, RunLog};

/// A workflow's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// In `result.json`.
    pub record: &'static str,
    /// In the folder's name.
    pub folder: &'static str,
}

/// A run that has its folder.
pub struct Run<'c> {
    context: &'c Context<'c>,
    /// The run's folder.
    pub log: RunLog<'c>,
    /// What `result.json` will hold.
    pub record: RunRecord,
    began: Duration,
}

impl<'c> Run<'c> {
    /// Makes the run's folder.
    pub fn start(context: &'c Context<'c>, names: Names) -> Result<Self, Error> {
        let started = context.clock.now();
        let root = context.project.root();
        let log = RunLog::create(root, started, names.folder, context.redactor)?;
        context.reporter.event(Event::Started { log: log.name() });
        Ok(Self {
            context,
            log,
            record: RunRecord {
                schema: record::SCHEMA,
                version: env!("CARGO_PKG_VERSION"),
                workflow: names.record,
                exit: Exit::Done.record(),
                tree: TreeState::Unchanged,
                model: None,
                model_version: None,
                started,
                seconds: Seconds::default(),
                attempts: Vec::new(),
                sections: None,
                warnings: Vec::new(),
                error: None,
            },
            began: context.clock.elapsed(),
        })
    }

    /// Tells the supervisor what was noticed before the run had its folder.
    pub fn begin(&mut self, ready: &Ready<'_>) {
        self.record.model = Some(ready.spec.name.to_owned());
        for warning in &ready.warnings {
            self.warn(warning.clone());
        }
    }

    /// Tells the supervisor something that is no error.
    pub fn warn(&mut self, text: String) {
        self.context.reporter.event(Event::Warning(&text));
        self.record.warnings.push(text);
    }

    /// Changes the record of the attempt that is under way.
    pub fn note(&mut self, change: impl FnOnce(&mut AttemptRecord)) {
        if let Some(attempt) = self.record.attempts.last_mut() {
            change(attempt);
        }
    }

    /// Logs the query, asks the model, and logs the reply or the error in its place.
    /// `examine` looks at the reply while it is being logged.
    pub fn ask<T>(
        &mut self,
        ready: &Ready<'_>,
        attempt: Attempt,
        prompt: Prompt<'_>,
        examine: impl FnOnce(&Reply) -> T,
    ) -> Result<(Reply, T), Error> {
        self.context.interrupt.check()?;
        // What the log shows is what is sent.
        let prompt = prompt.map(|piece| self.context.redactor.piece(piece));
        self.record.attempts.push(AttemptRecord::new(attempt));
        self.log.query(attempt, &prompt)?;
        let reporter = self.context.reporter;
        reporter.event(Event::Asking {
            attempt,
            model: ready.spec.name,
        });
        let before = self.context.clock.elapsed();
        let request = Request {
            attempt,
            messages: prompt.messages(),
        };
        let answer = ready.model.ask(&request, &ReportingListener { reporter });
        let took = self.context.clock.elapsed().saturating_sub(before);
        self.note(|record| record.seconds = Seconds(took));
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(self.without_reply(attempt, error)),
        };
        let (reply, examined) = match self.read(&*ready.model, attempt, answer, examine)? {
            Ok(read) => read,
            Err(error) => return Err(self.without_reply(attempt, error)),
        };
        let usage = reply.usage;
        reporter.event(Event::Answered {
            model: ready.spec.name,
            usage,
            took,
        });
        self.note(|record| {
            record.finish = Some(reply.finish.clone());
            record.usage = usage;
        });
        self.record.model_version.clone_from(&reply.model_version);
        Ok((reply, examined))
    }

    /// Reads the answer while it is being logged, and examines the reply while that is.
    fn read<T>(
        &self,
        model: &dyn Model,
        attempt: Attempt,
        answer: Vec<u8>,
        examine: impl FnOnce(&Reply) -> T,
    ) -> Result<Result<(Reply, T), ModelError>, LogError> {
        let log = &self.log;
        // Shared, so that it is gone as soon as both are done with it: it may be large.
        let answer = Arc::new(answer);
        thread::scope(|scope| {
            let logged = Arc::clone(&answer);
            let logging = log.in_background(scope, move |log| log.answer(attempt, &logged))?;
            let listener = ReportingListener {
                reporter: self.context.reporter,
            };
            let reply = model.read(attempt, &answer, &listener);
            drop(answer);
            let read = match reply {
                Ok(reply) => {
                    let text = Arc::clone(&reply.text);
                    let logging = log.in_background(scope, move |log| log.reply(attempt, &text))?;
                    let examined = examine(&reply);
                    joined(logging)?;
                    Ok((reply, examined))
                }
                Err(error) => Err(error),
            };
            joined(logging)?;
            Ok(read)
        })
    }

    /// Logs an error in the place of the reply. The error is the news: that it could not be logged
    /// is a warning beside it.
    fn without_reply(&mut self, attempt: Attempt, error: ModelError) -> Error {
        if let Some((finish, spent)) = error.spent() {
            self.note(|record| {
                record.finish = Some(finish.to_owned());
                record.usage = spent.usage;
            });
            self.record.model_version.clone_from(&spent.model_version);
        }
        let answered = error
            .answer()
            .map_or(Ok(()), |answer| self.log.answer(attempt, answer));
        let logged = self.log.reply_error(attempt, &error, &error.hint());
        for unlogged in [answered, logged].into_iter().filter_map(Result::err) {
            self.warn(unlogged.to_string());
        }
        error.into()
    }

    /// Writes the record, and says how the run ended. What the run has done must not stand without its
    /// record: where that cannot be written, `put_back` is called.
    pub fn finish(
        mut self,
        result: Result<String, Error>,
        put_back: impl FnOnce(&mut Self),
    ) -> Result<Outcome, Failure> {
        self.record.seconds = Seconds(self.context.clock.elapsed().saturating_sub(self.began));
        if let Err(error) = &result {
            self.record.exit = error.exit().record();
            self.record.error = Some(ErrorRecord {
                message: error.to_string(),
                hint: record::hint(error.hint(), self.record.tree),
            });
        }
        let logged = self.log.result(&self.record);
        let log = self.log.name().to_owned();
        match (result, logged) {
            (Ok(summary), Ok(())) => Ok(Outcome {
                summary,
                log: Some(log),
                next: None,
            }),
            (Ok(_), Err(unlogged)) => {
                put_back(&mut self);
                Err(Failure {
                    error: unlogged.into(),
                    tree: self.record.tree,
                    log: Some(log),
                })
            }
            (Err(error), logged) => {
                if let Err(unlogged) = logged {
                    self.context
                        .reporter
                        .event(Event::Warning(&unlogged.to_string()));
                }
                Err(Failure {
                    error,
                    tree: self.record.tree,
                    log: Some(log),
                })
            }
        }
    }
}

/// What a thread has come to. A panic there goes on here; nothing in it panics.
pub fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Passes on what happens during a call.
struct ReportingListener<'c> {
    reporter: &'c dyn Reporter,
}

impl Listener for ReportingListener<'_> {
    fn retrying(&self, next_try: u32, wait: Duration, reason: &str) {
        self.reporter.event(Event::Retrying {
            next_try,
            wait,
            reason,
        });
    }

    // What the text comes to is told when it is whole.
    fn text(&self, _piece: &str) {}
}
