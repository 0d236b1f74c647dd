//! A model as the table has it, and its vendor. Plain data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::price::Price;
use super::prompt::PromptOrder;
use super::tier::Tier;

/// A model of the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelSpec {
    /// The name that `--model` takes.
    pub name: String,
    /// The provider whose wire format it speaks.
    pub provider: Provider,
    /// The vendor's name for it.
    pub id: String,
    /// The server to ask; `None`: the vendor's, or the one that the environment names.
    pub base_url: Option<String>,
    /// The file that names the server.
    pub base_url_from: Place,
    /// The version of Azure's API in which it is asked; `None`: the usual one.
    pub api_version: Option<String>,
    /// The name of its key file in `agent-config`; `None`: it needs no key.
    pub key_file: Option<String>,
    /// The limit on a prompt's tokens, or `None` if unknown.
    pub context_window: Option<u64>,
    /// The number of tokens an answer may have, thoughts included; `None`: the server decides.
    pub max_output_tokens: Option<u32>,
    /// The reasoning effort; `None`: the server decides.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// The mode of thinking, for Anthropic; `None`: not at all.
    pub thinking: Option<Thinking>,
    /// The sampling temperature; `None`: the server decides, since many models reject one.
    pub temperature: Option<f64>,
    /// The form in which it calls an agent's tools; `None`: the agent's own choice.
    pub tools: Option<ToolForm>,
    /// The tier of service in which it is to answer.
    pub tier: Tier,
    /// The order of its prompts, but an agent's.
    pub prompt_order: PromptOrder,
    /// Its price, or `None` if unknown.
    pub price: Option<Price>,
    /// The entry that is asked where this one is overloaded.
    pub fallback: Option<String>,
    /// The name shown to people; `None`: its name.
    pub display_name: Option<String>,
    /// Its strengths, in its entry's words.
    pub capabilities: Vec<String>,
    /// The tasks that it is recommended for, in its entry's words.
    pub recommended_for: Vec<String>,
    /// A prompt for this model alone, after an agent's instructions; `None`: nothing.
    pub prompt: Option<String>,
    /// The number of tokens of context that Ollama loads it with; `None`: its window, within limits.
    pub num_ctx: Option<u32>,
    /// The time Ollama is to keep it loaded, in Ollama's words: a duration or a number of seconds.
    pub keep_alive: Option<Value>,
    /// Where the entry comes from.
    pub origin: Origin,
}

impl ModelSpec {
    /// A model of which nothing but this is known.
    pub fn new(name: &str, provider: Provider) -> Self {
        Self {
            name: name.to_owned(),
            provider,
            id: name.to_owned(),
            ..Self::default()
        }
    }

    /// The vendor's name of the model; `None` where the id is the user's name for a deployment, which says nothing of it.
    pub fn vendors_name(&self) -> Option<&str> {
        (self.provider != Provider::Azure).then_some(&*self.id)
    }

    /// Returns whether it is one of OpenAI's own models, by its name: those take what is new in its API.
    pub fn is_openais_own(&self) -> bool {
        let id = self.id.rsplit('/').next().unwrap_or_default();
        let families = ["gpt-", "o1", "o3", "o4"];
        self.provider == Provider::OpenAi
            && families.iter().any(|family| id.starts_with(family))
            && !id.starts_with("gpt-oss")
    }
}

/// The form in which a model calls an agent's tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolForm {
    /// By headings in Markdown, which every model can write.
    #[default]
    Markdown,
    /// By a JSON object as the whole reply, which many servers can hold a model to.
    Json,
    /// By the vendor's own tool calls.
    Native,
}

/// Where an entry of the table comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The specification, as it came with the program.
    #[default]
    BuiltIn,
    /// The specification, changed by `models.json`.
    Overridden,
    /// `models.json` alone: the specification has no such model.
    Added,
}

/// The reasoning effort, in OpenAI's words.
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
    /// The word for it.
    pub fn word(self) -> String {
        format!("{self:?}").to_ascii_lowercase()
    }
}

/// The mode of thinking of Anthropic's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thinking {
    /// As far as it sees fit.
    Adaptive,
}

/// A vendor, that is: a wire format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// Google's Gemini API.
    #[default]
    Gemini,
    /// OpenAI's chat completions, and what is compatible with them.
    OpenAi,
    /// Ollama's own API, on the user's machine.
    Ollama,
    /// Chat completions of a deployment of the user's in Azure.
    Azure,
    /// Anthropic's messages.
    Anthropic,
}

/// The facts of a vendor that are no matter of its wire format.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The provider, in files.
    pub word: &'static str,
    /// The vendor's name, for people.
    pub name: &'static str,
    /// The usual key file in `agent-config`; `None`: it needs no key.
    pub key_file: Option<&'static str>,
    /// The variables that the vendor's own tools read a key from, the first one first.
    pub key_variables: &'static [&'static str],
    /// The variable that names another server.
    pub url_variable: &'static str,
    /// The base URL of its own server; `None`: its users have servers of their own.
    pub url: Option<&'static str>,
}

/// A file of models, by where it stands. Later ones win.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the program.
    #[default]
    BuiltIn,
    /// In the home of the agent `chat`: the user's, for every agent.
    Home,
    /// In the home of the agent `plan`, for that agent alone.
    Plan,
    /// In the project.
    Project,
}
