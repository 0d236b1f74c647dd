//! Which models a run asks, and the way to them.
//!
//! Reads the table of models, the run that is to be replayed, and key files. Sends nothing.

use std::collections::BTreeMap;
use std::path::Path;

use super::context::{Context, ModelChoice};
use super::not_ready::NotReady;
use super::sending;
use crate::agent::settings::Settings;
use crate::model::price::Usd;
use crate::model::{
    Endpoint, EndpointProblem, HttpModel, Model, ModelSpec, ModelTable, Origin, Provider, Proxies,
    Purpose, Route,
};
use crate::record::replay::{Recording, RecordingProblem, ReplayModel};
use crate::review::history::{self, NoSuchRun};
use crate::secret::ApiKey;
use crate::workflow::error::Error;

/// The models that a run asks, and what that may cost.
pub struct Models<'a> {
    /// What the run may cost.
    pub max_cost: Option<Usd>,
    /// Whether nothing is sent, because replies are replayed.
    pub is_replay: bool,
    /// The one for every query, unless `repair` is set.
    pub first: SelectedModel<'a>,
    /// The one for repairs, where that is another.
    pub repair: Option<SelectedModel<'a>>,
}

impl Models<'_> {
    /// The model for a query.
    pub fn model(&self, purpose: &Purpose) -> &SelectedModel<'_> {
        match &self.repair {
            Some(repair) if *purpose == Purpose::REPAIR => repair,
            _ => &self.first,
        }
    }

    /// The servers that are not the vendors', by the names of the models.
    pub fn base_urls(&self) -> BTreeMap<String, String> {
        let models = [Some(&self.first), self.repair.as_ref()];
        let named = |model: &SelectedModel<'_>| {
            let base_url = model.base_url.clone()?;
            Some((model.spec.name.clone(), base_url))
        };
        models.into_iter().flatten().filter_map(named).collect()
    }

    /// Tells the user of them, if anything is sent.
    pub fn tell_base_urls(&self, context: &Context<'_>) {
        if self.is_replay {
            return;
        }
        for (model, url) in self.base_urls() {
            context.notice(format!(
                "`{model}` is asked at {url}, not at its vendor's server"
            ));
        }
    }
}

/// A model that is to be asked.
pub struct SelectedModel<'a> {
    /// Its entry in the table.
    pub spec: ModelSpec,
    /// The way to ask it, or its recorded replies.
    pub model: Box<dyn Model + 'a>,
    /// Its server, where that is not its vendor's: keys and code go there, or went there when replies were recorded.
    pub base_url: Option<String>,
}

impl<'a> SelectedModel<'a> {
    /// One whose replies were recorded.
    pub fn replayed(spec: ModelSpec, recording: &Recording) -> Self {
        Self {
            model: Box::new(ReplayModel::new(recording, spec.clone())),
            base_url: recording.base_url(&spec.name).map(str::to_owned),
            spec,
        }
    }

    /// One behind its server. Without `own_key`, the key is read from the project's file, if it needs one.
    /// What is missing is noted.
    pub fn vendors(
        context: &Context<'a>,
        choice: &ModelChoice,
        spec: ModelSpec,
        own_key: Option<ApiKey>,
        missing: &mut NotReady,
    ) -> Option<Self> {
        let key = match (&spec.key_file, own_key) {
            (Some(file), None) => missing.note(context.project.key(file)).map(Some),
            (_, own_key) => Some(own_key),
        };
        let route = missing.note(route(context, &spec))?;
        let base_url = route.endpoint.differing(spec.provider);
        let base_url = base_url.map(str::to_owned);
        let route = Route { key: key?, ..route };
        let model = HttpModel::new(
            spec.clone(),
            route,
            choice.delivery,
            choice.timeout,
            context.clock,
            context.interrupt.clone(),
        );
        Some(Self {
            spec,
            model: Box::new(model),
            base_url,
        })
    }
}

/// The models of the first query and, where that is another, of the repairs. None, where the table of
/// models cannot be read and what is asked for may be in it.
///
/// # Errors
/// When there is no such model, or the replies of another were recorded.
pub fn choose(
    context: &Context<'_>,
    choice: &ModelChoice,
    purpose: &Purpose,
    recording: Option<&Recording>,
) -> Result<Vec<ModelSpec>, Error> {
    let Ok(table) = &context.models else {
        return Ok(Vec::new());
    };
    let choose = |purpose: &Purpose| -> Result<ModelSpec, Error> {
        let asked = choice.model.as_deref();
        if let Some(recording) = recording
            && let Some(recorded) = recording.model(purpose, asked, table)?
        {
            return Ok(recorded.clone());
        }
        let Some(asked) = asked else {
            return Ok(table.chosen(purpose).clone());
        };
        named(table, asked)
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

/// The table's entry of that name.
fn named(table: &ModelTable, name: &str) -> Result<ModelSpec, Error> {
    let unknown = || Error::UnknownModel {
        name: name.to_owned(),
        known: table.names(),
    };
    table.named(name).cloned().ok_or_else(unknown)
}

/// The run that is to be replayed, if any.
///
/// # Errors
/// When there is no such run.
pub fn find_recording(
    context: &Context<'_>,
    choice: &ModelChoice,
) -> Result<Option<Recording>, Error> {
    let project = &context.project;
    let at = |run: &Path| Recording::find(project.root(), &project.logs(), run);
    let find = |run: &Path| match at(run) {
        Err(RecordingProblem::Missing(path)) => {
            match history::find(project, run, context.today()) {
                Ok(name) => Ok(at(Path::new(&name))?),
                Err(NoSuchRun::Missing(_)) => Err(RecordingProblem::Missing(path).into()),
                Err(other) => Err(Error::from(other)),
            }
        }
        found => Ok(found?),
    };
    choice.replay.as_deref().map(find).transpose()
}

/// The model that an agent asks: the one that `--model` names, or the recorded one, or else the user's own, with
/// its server and key; where the user has no server, the table's entry of that name.
///
/// # Errors
/// When there is no such model, or it lacks something.
pub fn agent_model<'a>(
    context: &Context<'a>,
    choice: &ModelChoice,
    own: &Settings,
) -> Result<Models<'a>, Error> {
    let recording = find_recording(context, choice)?;
    let is_replay = recording.is_some();
    let table = context.models.as_ref();
    let table = table.map_err(|problem| NotReady::from(problem.clone()))?;
    let recorded = recording.as_ref().and_then(Recording::first_model);
    let recorded = recorded.filter(|name| table.named(name).is_some());
    let (spec, key) = match (choice.model.as_deref().or(recorded), &own.api_url) {
        (Some(name), _) => (named(table, name)?, None),
        (None, Some(url)) => (own_spec(&own.model, url, table), own.api_key.clone()),
        (None, None) => (named(table, &own.model)?, None),
    };
    let mut missing = NotReady::default();
    let first = if let Some(recording) = &recording {
        Some(SelectedModel::replayed(spec, recording))
    } else {
        missing.extend(sending::without_price(choice, &spec));
        SelectedModel::vendors(context, choice, spec, key, &mut missing)
    };
    match first {
        Some(first) if missing.problems.is_empty() => Ok(Models {
            max_cost: choice.max_cost.filter(|_| !is_replay),
            is_replay,
            first,
            repair: None,
        }),
        _ => Err(missing.into()),
    }
}

/// A model behind the user's own server, which is compatible with OpenAI's. The table may have more to say of
/// it, like its price.
fn own_spec(name: &str, url: &str, table: &ModelTable) -> ModelSpec {
    let known = table.named(name);
    let known = known.filter(|spec| spec.provider == Provider::OpenAi);
    let new = || ModelSpec::new(name, Provider::OpenAi);
    ModelSpec {
        base_url: Some(url.to_owned()),
        key_file: None,
        origin: Origin::Added,
        ..known.cloned().unwrap_or_else(new)
    }
}

/// The model's server, and the proxies on the way there; without a key.
///
/// # Errors
/// When an address is none, or one that keys do not go to.
pub fn route(context: &Context<'_>, spec: &ModelSpec) -> Result<Route, EndpointProblem> {
    let endpoint = Endpoint::of(spec, context.environment)?;
    // Calls to this machine go straight there, whatever proxy is named.
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
