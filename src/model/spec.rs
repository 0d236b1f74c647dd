//! A model's entry in the table, and its vendor. Plain data.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields;
use super::price::Price;
use super::prompt::PromptOrder;
use super::request::ReplyFormat;
use super::tier::Tier;

/// A model in the table. Deserialized from its entry in `models.json`, whose fields are all optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelSpec {
    /// The name that `--model` takes.
    #[serde(skip_deserializing)]
    pub name: String,
    /// The provider whose wire format its server speaks.
    #[serde(deserialize_with = "fields::or_default")]
    pub provider: Provider,
    /// The vendor's name for the model.
    #[serde(deserialize_with = "fields::id")]
    pub id: String,
    /// The server's base URL; `None`: the one in the environment, or else the vendor's.
    #[serde(deserialize_with = "fields::base_url")]
    pub base_url: Option<String>,
    /// The file that sets the base URL.
    #[serde(skip)]
    pub base_url_from: Place,
    /// The version of Azure's API; `None`: the default.
    pub api_version: Option<String>,
    /// The name of its key file in `agent-config`; `None` if it needs no key.
    #[serde(deserialize_with = "fields::key_file")]
    pub key_file: Option<String>,
    /// The maximum number of tokens in a prompt; `None` if unknown.
    #[serde(deserialize_with = "fields::tokens")]
    pub context_window: Option<u64>,
    /// The maximum number of tokens in an answer, thinking included; `None`: the server decides.
    #[serde(deserialize_with = "fields::tokens")]
    pub max_output_tokens: Option<u32>,
    /// The reasoning effort; `None`: the server decides.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The thinking mode of Anthropic's models; `None`: off.
    pub thinking: Option<Thinking>,
    /// The sampling temperature; `None`: the query or the server decides, since many models reject one.
    #[serde(deserialize_with = "fields::temperature")]
    pub temperature: Option<f64>,
    /// The form of its tool calls; `None`: the agent's own choice.
    pub tools: Option<ToolForm>,
    /// The service tier to request.
    #[serde(rename = "serviceTier", deserialize_with = "fields::or_default")]
    pub tier: Tier,
    /// The maximum number of tokens of the code base that a commit sends; `None`: all of it.
    #[serde(deserialize_with = "fields::context_tokens")]
    pub context_tokens: Option<u64>,
    /// The order of its prompts' sections; agents' prompts have an order of their own.
    #[serde(deserialize_with = "fields::or_default")]
    pub prompt_order: PromptOrder,
    /// The format of its replies with edits.
    #[serde(deserialize_with = "fields::or_default")]
    pub reply_format: ReplyFormat,
    /// Default flags for commits: `gate`, `scratch` and `strategy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Value>,
    /// The model's price; `None` if unknown.
    pub price: Option<Price>,
    /// The name of the model to ask when this one is overloaded.
    pub fallback: Option<String>,
    /// The name shown to users; `None`: `name`.
    #[serde(deserialize_with = "fields::display_name")]
    pub display_name: Option<String>,
    /// The model's strengths, as the entry describes them.
    #[serde(deserialize_with = "fields::or_default")]
    pub capabilities: Vec<String>,
    /// The tasks that it is recommended for, as the entry describes them.
    #[serde(deserialize_with = "fields::or_default")]
    pub recommended_for: Vec<String>,
    /// A prompt for this model only, appended to an agent's instructions.
    pub prompt: Option<String>,
    /// The size of the context that Ollama loads it with, in tokens; `None`: its context window, within limits.
    #[serde(deserialize_with = "fields::tokens")]
    pub num_ctx: Option<u32>,
    /// The time that Ollama keeps it loaded, in Ollama's format: a duration or a number of seconds.
    #[serde(deserialize_with = "fields::keep_alive")]
    pub keep_alive: Option<Value>,
    /// The origin of the entry.
    #[serde(skip_deserializing)]
    pub origin: Origin,
    /// The path of the file with its entry, as shown in messages; `None` if no file has one.
    #[serde(skip)]
    pub file: Option<String>,
}

impl ModelSpec {
    /// Creates an entry with nothing but a name and a provider.
    pub fn new(name: &str, provider: Provider) -> Self {
        Self {
            name: name.to_owned(),
            provider,
            id: name.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the entry's flags for commits, by their names.
    pub fn flags(&self) -> Map<String, Value> {
        let flags = [
            ("gate", &self.gate),
            ("scratch", &self.scratch),
            ("strategy", &self.strategy),
        ];
        let is_set = |(name, flag): (&str, &Option<Value>)| Some((name.to_owned(), flag.clone()?));
        flags.into_iter().filter_map(is_set).collect()
    }

    /// Returns the vendor's name for the model; `None` if the id is the user's own name for a deployment.
    pub fn vendors_name(&self) -> Option<&str> {
        self.provider.vendor().url.map(|_| &*self.id)
    }

    /// Returns whether it is one of OpenAI's own models, judging by its name; those accept the API's newer fields.
    pub fn is_openais_own(&self) -> bool {
        let id = self.id.rsplit('/').next().unwrap_or_default();
        let families = ["gpt-", "o1", "o3", "o4"];
        self.provider == Provider::OpenAi
            && families.iter().any(|family| id.starts_with(family))
            && !id.starts_with("gpt-oss")
    }
}

/// The form of a model's tool calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolForm {
    /// Headings in Markdown, which every model can write.
    #[default]
    Markdown,
    /// A JSON object as the whole reply, which many servers can enforce.
    Json,
    /// The vendor's native tool calls.
    Native,
}

/// The origin of an entry in the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Built into the program.
    #[default]
    BuiltIn,
    /// Built into the program, and changed by `models.json`.
    Overridden,
    /// Not built in: from `models.json` or a server's list.
    Added,
}

/// The reasoning effort, in OpenAI's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    XHigh,
    Max,
}

impl ReasoningEffort {
    /// Returns the effort's name in requests and files.
    pub fn word(self) -> String {
        format!("{self:?}").to_ascii_lowercase()
    }
}

/// The thinking mode of Anthropic's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// The model decides how much to think.
    Adaptive,
}

/// A vendor, identified by its wire format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Google's Gemini API.
    #[default]
    Gemini,
    /// OpenAI's chat completions, and servers compatible with them.
    OpenAi,
    /// Ollama's own API, usually on the user's machine.
    Ollama,
    /// Chat completions of a deployment in the user's Azure resource.
    Azure,
    /// Anthropic's Messages API.
    Anthropic,
}

/// The location of a file of models. Later ones take precedence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The program itself.
    #[default]
    BuiltIn,
    /// The home directory of the agent `chat`; the file applies to every agent.
    Home,
    /// The home directory of the agent `plan`; the file applies only to that agent.
    Plan,
    /// The project's `agent-config`.
    Project,
}
