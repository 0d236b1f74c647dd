//! Selection of the models that a run asks, and of their servers and keys.
//!
//! Reads the table of models, the run to be replayed, and key files. Sends nothing.

pub mod installed;
#[cfg(test)]
mod tests;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use super::context::{Context, ModelChoice, ModelsProblem};
use super::error::RunError;
use super::keys::{self, FoundKey};
use super::not_ready::NotReady;
use super::sending;
use crate::model::price::Usd;
use crate::model::{
    EndpointProblem, HttpModel, KeySource, Model, ModelSpec, ModelTable, Provider, Proxies,
    Purpose, REPAIRS, ReplyFormat, Route, ServerProblem, Setup, StepId, Tier, VendorServer,
    catalogue, endpoint, retired,
};
use crate::record::replay::{Recording, RecordingProblem, ReplayModel};
use crate::run::past::history::records_of;
use crate::run::past::naming;
use crate::secret::ApiKey;
use crate::sys::error::Error;
use crate::sys::http::transport::PlainAddresses;
use crate::sys::interrupt::Interrupted;

/// The models that a run asks, and the limit on their cost.
pub struct Models<'a> {
    /// Maximum cost of the run.
    pub max_cost: Option<Usd>,
    /// True if a reply from a model other than the one requested is rejected.
    pub require_model: bool,
    /// True in a replay, which sends nothing.
    pub is_replay: bool,
    /// The number of queries that the replayed run asked again because their replies were rejected.
    pub reasks: usize,
    /// The number of the last repair allowed.
    pub repairs: u16,
    /// The time on the clock at which all calls end; `None`: each has its own time limit.
    pub deadline: Option<Duration>,
    /// The replies of the run being resumed.
    pub recorded: Option<RecordedReplies<'a>>,
    /// The default model.
    pub first: SelectedModel<'a>,
    /// The models for particular purposes, if different from the default.
    pub others: Vec<(Purpose, SelectedModel<'a>)>,
}

impl<'a> Models<'a> {
    /// Creates the models of a run without recorded replies: `first` as the default, and `others` for their purposes.
    pub fn new(
        choice: &ModelChoice,
        is_replay: bool,
        first: SelectedModel<'a>,
        others: Vec<(Purpose, SelectedModel<'a>)>,
    ) -> Self {
        Self {
            max_cost: choice.max_cost.filter(|_| !is_replay),
            require_model: choice.require_model,
            is_replay,
            reasks: 0,
            repairs: REPAIRS,
            deadline: None,
            recorded: None,
            first,
            others,
        }
    }
}

impl Models<'_> {
    /// Returns the model for a query.
    pub fn model(&self, step: &StepId) -> &SelectedModel<'_> {
        if let Some(recorded) = self.recorded.as_ref().and_then(|replies| replies.of(step)) {
            return recorded;
        }
        let selected = self.of(&step.purpose);
        let recorded = selected
            .fallback
            .as_deref()
            .filter(|fallback| fallback.has_recorded(step));
        recorded.unwrap_or(selected)
    }

    /// Returns the model for queries with this purpose.
    pub fn of(&self, purpose: &Purpose) -> &SelectedModel<'_> {
        let other = self.others.iter().find(|(of, _)| of == purpose);
        other.map_or(&self.first, |(_, other)| other)
    }

    /// Returns the model for a query that follows an answer from the model `before`: repairs of a fallback's reply go
    /// to the same fallback.
    pub fn model_after(&self, before: Option<&str>, step: &StepId) -> &SelectedModel<'_> {
        let selected = self.model(step);
        if step.purpose == Purpose::CONTEXT && self.recorded_in(step).is_none() {
            // The files go to the model that asked for them.
            let asked = self.all().find(|model| Some(&*model.spec.name) == before);
            return asked.unwrap_or(selected);
        }
        let is_asked = !self.is_replay && self.recorded_in(step).is_none();
        let is_by_fallback = |fallback: &&SelectedModel<'_>| {
            let name = Some(&*fallback.spec.name);
            is_asked
                && step.purpose == Purpose::REPAIR
                && before == name
                && name != Some(&*self.first.spec.name)
        };
        let fallback = selected.fallback.as_deref().filter(is_by_fallback);
        fallback.unwrap_or(selected)
    }

    /// Returns the folder of the resumed run from which a step's reply is taken, if any: that reply is already paid
    /// for.
    pub fn recorded_in(&self, step: &StepId) -> Option<&str> {
        let replies = self.recorded.as_ref()?;
        replies.of(step).map(|_| replies.folder.as_str())
    }

    /// Returns whether the reply to a query is taken from a recorded run.
    pub fn has_recorded(&self, step: &StepId) -> bool {
        let is_replayed = || self.is_replay && self.all().any(|model| model.has_recorded(step));
        self.recorded_in(step).is_some() || is_replayed()
    }

    /// Returns all models, fallbacks included.
    fn all(&self) -> impl Iterator<Item = &SelectedModel<'_>> {
        let models = std::iter::once(&self.first).chain(self.others.iter().map(|(_, other)| other));
        models.flat_map(|model| std::iter::once(model).chain(model.fallback.as_deref()))
    }

    /// Adds a problem for each model that an Ollama server lacks and is not allowed to pull, and for each server that
    /// does not respond. Replays ask nothing.
    ///
    /// # Errors
    /// Fails if a signal interrupts the check.
    pub fn note_missing(
        &self,
        context: &Context<'_>,
        noted: &mut NotReady,
        may_pull: &dyn Fn(&str) -> Result<bool, Interrupted>,
    ) -> Result<(), Interrupted> {
        let on_servers = self
            .all()
            .filter_map(|model| Some((&model.spec, model.server.as_ref()?)));
        for (model, problem) in installed::missing(on_servers)? {
            match installed::pulled(context, model, problem, may_pull) {
                Err(ServerProblem::Interrupted(interrupted)) => return Err(interrupted),
                pulled => noted.note(pulled),
            };
        }
        Ok(())
    }

    /// Returns the servers that are not the vendors' own, by model name.
    pub fn base_urls(&self) -> BTreeMap<String, String> {
        let named = self.all().filter_map(SelectedModel::elsewhere);
        let owned = |(name, url): (&str, &str)| (name.to_owned(), url.to_owned());
        named.map(owned).collect()
    }

    /// Returns the sources of the models' keys, by model name.
    pub fn key_sources(&self) -> BTreeMap<String, String> {
        let sources = self.all().filter_map(|model| {
            let source = model.key_source.as_ref()?;
            Some((model.spec.name.clone(), source.to_string()))
        });
        sources.collect()
    }

    /// Shows the user the servers that are not the vendors' own, unless this is a replay.
    pub fn report_base_urls(&self, context: &Context<'_>) {
        if self.is_replay {
            return;
        }
        // Without a usual server, users always name one.
        let notices = self
            .all()
            .filter(|model| model.spec.provider.vendor().url.is_some())
            .filter_map(|model| {
                let (name, url) = model.elsewhere()?;
                // A server in the model's own entry is its usual one.
                let than = match model.spec.base_url {
                    Some(_) => "",
                    None => ", not at the usual server",
                };
                Some(format!("`{name}` is asked at {url}{than}"))
            });
        for notice in notices.collect::<BTreeSet<_>>() {
            context.notice(notice);
        }
    }

    /// Shows the user the servers that are not the vendors' own, and the [warnings](Self::warnings), which are returned
    /// for the run's record.
    pub fn report(&self, context: &Context<'_>) -> Vec<String> {
        self.report_base_urls(context);
        let warnings = self.warnings(context);
        for warning in &warnings {
            context.warn(warning.clone());
        }
        warnings
    }

    /// Returns warnings about unencrypted connections to models.
    pub fn exposed(&self) -> impl Iterator<Item = String> {
        self.all().filter(|model| model.is_exposed).map(|model| {
            let url = model.base_url.as_deref().unwrap_or_default();
            let name = &model.spec.name;
            format!("`{name}` is asked at {url} by plain http: the code travels unencrypted")
        })
    }

    /// Returns the warnings for the run's record: about models that their vendors will retire soon, and about
    /// unencrypted connections. Models asked at other servers, which may keep them longer, only cause a notice to the
    /// user.
    pub fn warnings(&self, context: &Context<'_>) -> Vec<String> {
        if self.is_replay {
            return Vec::new();
        }
        let (mut elsewhere, mut vendors): (Vec<_>, Vec<_>) =
            self.all().partition(|model| model.base_url.is_some());
        let today = context.today();
        let is_answered =
            |model: &&SelectedModel<'_>| catalogue::answering(&model.spec.id, today).is_some();
        // A successor that answers is reported with its replies or, if asked at another server, in a notice once a day.
        vendors.retain(|model| !is_answered(model));
        let has_run_today = LazyCell::new(|| records_of(&context.project, today).next().is_some());
        elsewhere.retain(|model| !(is_answered(model) && *has_run_today));
        let ends = |models: Vec<&SelectedModel<'_>>| {
            near_ends(context, models.into_iter().map(|model| &model.spec))
        };
        for end in ends(elsewhere) {
            context.notice(end);
        }
        let mut warnings = ends(vendors);
        warnings.extend(self.exposed());
        warnings
    }
}

/// The recorded replies of a run being resumed.
pub struct RecordedReplies<'a> {
    /// The run's folder, relative to the root.
    folder: String,
    steps: BTreeSet<StepId>,
    models: Vec<SelectedModel<'a>>,
}

impl<'a> RecordedReplies<'a> {
    /// Reads the models that gave the replies to these steps of the run in `folder`.
    ///
    /// # Errors
    /// Fails if the run does not exist, or one of its models is unknown.
    pub fn new(
        context: &Context<'a>,
        folder: &str,
        steps: BTreeSet<StepId>,
    ) -> Result<Self, Error> {
        let project = &context.project;
        let recording = Recording::find(project.home(), &project.logs(), Path::new(folder))?;
        let table = table_of(context.models)?;
        let model = |name: &str| {
            let spec = named(table, name)?;
            Ok(SelectedModel::replayed(context, spec, &recording))
        };
        let models = recording.models().into_iter().map(model);
        Ok(Self {
            folder: folder.to_owned(),
            steps,
            models: models.collect::<Result<_, Error>>()?,
        })
    }

    fn of(&self, step: &StepId) -> Option<&SelectedModel<'a>> {
        let is_of = |model: &&SelectedModel<'_>| model.has_recorded(step);
        let mut models = self.models.iter();
        models.find(is_of).filter(|_| self.steps.contains(step))
    }
}

/// The key to use for a model.
#[derive(Debug, Clone, Default)]
pub enum ModelKey {
    /// The key found by [`keys::find`].
    #[default]
    ByRule,
    /// An explicit key; `None` if the model needs none.
    Given(Option<ApiKey>, Option<KeySource>),
}

/// Returns the key and its source.
pub fn key_of(found: Option<FoundKey>) -> (Option<ApiKey>, Option<KeySource>) {
    found.map(|found| (found.key, found.source)).unzip()
}

/// A model selected for a run.
pub struct SelectedModel<'a> {
    /// The model's entry in the table.
    pub spec: ModelSpec,
    /// The client for the model, or its recorded replies.
    pub model: Box<dyn Model + Send + 'a>,
    /// The model to ask if this one is overloaded.
    pub fallback: Option<Box<SelectedModel<'a>>>,
    /// The model's server, if it is Ollama's and this is not a replay.
    pub server: Option<VendorServer>,
    /// True if data travels unencrypted to another machine.
    is_exposed: bool,
    /// The steps that it answered in the run being replayed or resumed, with the formats of its replies.
    recorded: Vec<(StepId, ReplyFormat)>,
    /// The source of the key, if a key is needed and this is not a replay.
    pub key_source: Option<KeySource>,
    /// The key's fingerprint and the model's name. Thoughts of a model are not sent to another, or with another key.
    pub thinker: String,
    /// The server, if not the vendor's own: keys and code are sent there, or were when replies were recorded.
    pub base_url: Option<String>,
}

impl<'a> SelectedModel<'a> {
    /// Returns the details of the setup that error messages refer to.
    pub fn setup(&self, models: &Result<ModelTable, ModelsProblem>) -> Setup {
        let table = models.as_ref().ok();
        let successor = table.and_then(|table| table.successor(&self.spec.id));
        Setup {
            key: self.key_source.clone(),
            is_keyless: self.spec.provider.vendor().is_local && self.spec.key_file.is_none(),
            successor: successor.map(Box::from),
        }
    }

    fn has_recorded(&self, step: &StepId) -> bool {
        self.recorded.iter().any(|(recorded, _)| recorded == step)
    }

    /// Returns the format of its reply to a query: the recorded one, or else its entry's.
    pub fn reply_format(&self, step: &StepId) -> ReplyFormat {
        let recorded = self.recorded.iter().find(|(recorded, _)| recorded == step);
        recorded.map_or(self.spec.reply_format, |(_, format)| *format)
    }

    /// Returns the model's name and server, if the server is not the vendor's own.
    fn elsewhere(&self) -> Option<(&str, &str)> {
        Some((&self.spec.name, self.base_url.as_deref()?))
    }

    /// Creates a model that answers from recorded replies.
    pub fn replayed(context: &Context<'_>, mut spec: ModelSpec, recording: &Recording) -> Self {
        // No tier is requested; the tiers that served the calls are on record.
        spec.tier = Tier::Standard;
        let fallback = fallback(context.models, &spec);
        Self {
            server: None,
            is_exposed: false,
            recorded: recording.steps_of(&spec.name),
            fallback: fallback.map(|spec| Box::new(Self::replayed(context, spec, recording))),
            model: Box::new(ReplayModel::new(recording, spec.clone())),
            base_url: recording.base_url(&spec.name).map(str::to_owned),
            key_source: None,
            thinker: spec.name.clone(),
            spec,
        }
    }

    /// Creates a model that is asked at its server. Anything missing is noted.
    pub fn vendors(
        context: &Context<'a>,
        choice: &ModelChoice,
        mut spec: ModelSpec,
        key: ModelKey,
        missing: &mut NotReady,
    ) -> Option<Self> {
        spec.tier = choice.tier.unwrap_or(spec.tier);
        let has_key = spec.key_file.is_some() || matches!(key, ModelKey::Given(Some(_), _));
        let fallback = fallback(context.models, &spec).and_then(|fallback| {
            missing.extend(sending::without_price(choice, &fallback));
            let is_same_server =
                (fallback.provider, &fallback.base_url) == (spec.provider, &spec.base_url);
            // A key must reach no server but its own.
            let key = if is_same_server {
                key.clone()
            } else {
                ModelKey::ByRule
            };
            Self::vendors(context, choice, fallback, key, missing)
        });
        let found = match key {
            ModelKey::ByRule => missing.note(keys::find(context, &spec)).map(key_of),
            ModelKey::Given(key, source) => Some((key, source)),
        };
        let route = missing.note(route(context, &spec, has_key))?;
        let is_exposed = route.endpoint.plain() == Some(PlainAddresses::Private);
        let base_url = endpoint::differing(&route.endpoint, spec.provider).map(str::to_owned);
        let (key, key_source) = found?;
        let with_key = |key| format!("{} {}", keys::identity(key), spec.name);
        let thinker = key.as_ref().map_or_else(|| spec.name.clone(), with_key);
        let route = Route { key, ..route };
        let is_local = spec.provider.vendor().is_local;
        let server =
            is_local.then(|| VendorServer::new(spec.provider, route.clone(), context.interrupt));
        let model = HttpModel::new(
            spec.clone(),
            route,
            choice.delivery,
            choice.timeout,
            context.clock,
            context.interrupt.clone(),
        )
        .paced(context.pace().as_deref());
        Some(Self {
            spec,
            model: Box::new(model),
            fallback: fallback.map(Box::new),
            server,
            is_exposed,
            recorded: Vec::new(),
            key_source,
            thinker,
            base_url,
        })
    }
}

/// Returns notices about models that their vendors will retire soon.
pub fn near_ends<'s>(
    context: &Context<'_>,
    specs: impl IntoIterator<Item = &'s ModelSpec>,
) -> Vec<String> {
    let vendors = specs.into_iter().filter(|spec| spec.base_url.is_none());
    let notices = vendors.filter_map(|spec| {
        let id = spec.vendors_name()?;
        let table = context.models.as_ref().ok();
        let successor = table.and_then(|table| table.successor(id));
        let end = catalogue::near_end(id, context.today(), successor)?;
        Some(format!("`{}`: {end}", spec.name))
    });
    notices.collect()
}

/// Returns the entry of the model to ask if this one is overloaded.
fn fallback(models: &Result<ModelTable, ModelsProblem>, spec: &ModelSpec) -> Option<ModelSpec> {
    let table = models.as_ref().ok()?;
    table.named(spec.fallback.as_deref()?).cloned()
}

/// Chooses the model of the first query and, if different, that of the repairs. Empty if the table of models cannot be
/// read.
///
/// # Errors
/// Fails if the model does not exist, or the recorded replies come from another one.
pub fn choose(
    models: &Result<ModelTable, ModelsProblem>,
    choice: &ModelChoice,
    purpose: &Purpose,
    recording: Option<&Recording>,
) -> Result<Vec<ModelSpec>, Error> {
    let Ok(table) = models else {
        return Ok(Vec::new());
    };
    let recorded_format = || recording.and_then(Recording::reply_format);
    let format = choice.reply_format.or_else(recorded_format);
    let choose = |purpose: &Purpose| -> Result<ModelSpec, Error> {
        let asked = choice.model.as_deref();
        let recorded = recording.map(|recording| recording.model(purpose, asked, table));
        let mut spec = match (recorded.transpose()?.flatten(), asked) {
            (Some(recorded), _) => recorded.clone(),
            (None, Some(asked)) => named(table, asked)?,
            (None, None) => table.chosen(purpose).clone(),
        };
        spec.reply_format = format.unwrap_or(spec.reply_format);
        Ok(spec)
    };
    let mut specs = vec![choose(purpose)?];
    if *purpose == Purpose::INITIAL {
        let repair = choose(&Purpose::REPAIR)?;
        if repair != specs[0] {
            specs.push(repair);
        }
    }
    Ok(specs)
}

/// Returns the table's entry of that name.
///
/// # Errors
/// Fails if there is no such entry.
pub fn named(table: &ModelTable, name: &str) -> Result<ModelSpec, Error> {
    let unknown = || {
        let (name, known) = (name.to_owned(), table.names());
        match retired(&name) {
            Some(successor) => RunError::RetiredModel { name, successor },
            None => RunError::UnknownModel { name, known },
        }
    };
    Ok(table.named(name).cloned().ok_or_else(unknown)?)
}

/// Returns the table's entry of that name or, failing that, one for the model of that name on the Ollama server.
///
/// # Errors
/// Fails if there is neither; for a name with a tag, with the reason that the server gives.
pub fn named_or_installed(
    context: &Context<'_>,
    table: &ModelTable,
    name: &str,
) -> Result<ModelSpec, Error> {
    named(table, name).or_else(|unknown| {
        let installed = installed_model(context, name);
        context.interrupt.check()?;
        // Ollama's names have a tag; other vendors' have more colons, or none.
        let is_ollamas = name.matches(':').count() == 1;
        installed.map_err(|problem| if is_ollamas { problem.into() } else { unknown })
    })
}

/// Returns the model of that name on the Ollama server of the environment.
///
/// # Errors
/// Fails if no server answers, or it does not have the model.
fn installed_model(context: &Context<'_>, name: &str) -> Result<ModelSpec, NotReady> {
    let mut spec = ModelSpec::new(name, Provider::LOCAL);
    let route = route(context, &spec, false).map_err(NotReady::of)?;
    let server = VendorServer::new(spec.provider, route, context.interrupt);
    let installed = server.installed().map_err(NotReady::of)?;
    if let Some(problem) = server.lack(name, &installed) {
        return Err(NotReady::of(problem));
    }
    spec.context_window = server.context_length(name);
    Ok(spec)
}

/// Finds the run of this name or in this folder, if one is given.
///
/// # Errors
/// Fails if there is no such run.
pub fn find_recording(
    context: &Context<'_>,
    run: Option<&Path>,
) -> Result<Option<Recording>, Error> {
    let project = &context.project;
    let at = |run: &Path| Recording::find(project.home(), &project.logs(), run);
    let find = |run: &Path| match at(run) {
        Err(RecordingProblem::Missing(path)) => {
            match naming::find_asked(project, run, context.today()) {
                Ok(name) => Ok(at(Path::new(&name))?),
                Err(RunError::NoSuchRun(_)) => Err(RecordingProblem::Missing(path).into()),
                Err(other) => Err(Error::from(other)),
            }
        }
        found => Ok(found?),
    };
    run.map(find).transpose()
}

/// Returns the table of models.
pub fn table_of(models: &Result<ModelTable, ModelsProblem>) -> Result<&ModelTable, Error> {
    let table = models.as_ref();
    Ok(table.map_err(|problem| NotReady::of(problem.clone()))?)
}

/// Returns the model's server and the proxies to reach it, without the key.
///
/// # Errors
/// Fails if an address is invalid, or keys may not be sent to it.
pub fn route(
    context: &Context<'_>,
    spec: &ModelSpec,
    has_key: bool,
) -> Result<Route, EndpointProblem> {
    let endpoint = endpoint::of(spec, context.environment, has_key)?;
    // Local calls bypass any configured proxy.
    let proxies = if endpoint.is_secure() {
        Proxies::from_environment(context.environment)?
    } else {
        Proxies::default()
    };
    Ok(Route {
        endpoint,
        proxies,
        key: None,
    })
}
