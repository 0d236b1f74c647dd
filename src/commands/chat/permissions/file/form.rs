//! The content of `permissions.json`. Pure.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use strum::IntoStaticStr;

use crate::agent::judge::LOOKS;
use crate::agent::tool::ToolSpec;
use crate::commands::chat::tools;
use crate::sys::home_file::first_version;
use crate::sys::text::one_line;

/// Maximum length of unknown names in errors, in characters.
const LONGEST_NAME: usize = 64;

/// Permissions in effect if the file does not exist.
const DEFAULTS: [(&str, PermissionAction); 5] = [
    ("read_file", PermissionAction::Always),
    ("list_files", PermissionAction::Always),
    ("write_file", PermissionAction::Ask),
    ("edit_file", PermissionAction::Ask),
    ("execute_command", PermissionAction::Ask),
];

/// A permanent choice of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// Sets the action for all calls of a tool.
    Tool(String, PermissionAction),
    /// Allows commands that begin with these prefixes.
    Commands(Vec<String>),
}

/// The action for a call, from least to most restrictive.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase", const_into_str)]
pub enum PermissionAction {
    /// Allows the call, unless such calls are always asked about.
    Always,
    /// Asks the user each time.
    Ask,
    /// Refuses the call.
    Never,
}

/// The entry for a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolRule {
    #[serde(deserialize_with = "known_tool")]
    pub tool: String,
    #[serde(deserialize_with = "known_action")]
    pub action: PermissionAction,
    /// Unknown fields, which are preserved.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl ToolRule {
    fn new(tool: &str, action: PermissionAction) -> Self {
        Self {
            tool: tool.to_owned(),
            action,
            other: Map::new(),
        }
    }

    /// Returns `true` if the rule allows more than the defaults.
    fn allows_more(&self) -> bool {
        let tool = &*self.tool;
        let is_default = DEFAULTS.contains(&(tool, self.action));
        let is_asked = tools::named(tool).is_none_or(ToolSpec::requires_approval);
        self.action == PermissionAction::Always && !is_default && is_asked
    }
}

/// A rule for commands that begin with these words.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommandRule {
    /// The words, in shell syntax, or [`LOOKS`].
    #[serde(deserialize_with = "prefix")]
    pub prefix: String,
    /// Action for such a command.
    #[serde(deserialize_with = "known_action")]
    pub action: PermissionAction,
    /// Unknown fields, which are preserved.
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The complete content of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PermissionForm {
    #[serde(deserialize_with = "first_version")]
    version: u64,
    /// The entries of the listed tools.
    pub permissions: Vec<ToolRule>,
    /// The rules for commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRule>,
    /// Time when the program last wrote the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// Unknown fields, which are preserved.
    #[serde(flatten)]
    other: Map<String, Value>,
}

impl Default for PermissionForm {
    fn default() -> Self {
        Self {
            version: 1,
            permissions: DEFAULTS
                .map(|(tool, action)| ToolRule::new(tool, action))
                .into(),
            commands: Vec::new(),
            timestamp: None,
            other: Map::new(),
        }
    }
}

impl PermissionForm {
    /// Returns the part in effect: everything if the file is trusted, otherwise only what allows no more than the
    /// defaults.
    pub fn holding(&self, is_trusted: bool) -> Self {
        let mut holding = self.clone();
        if !is_trusted {
            for rule in &mut holding.permissions {
                if rule.allows_more() {
                    rule.action = PermissionAction::Ask;
                }
            }
            let narrows = |rule: &CommandRule| rule.action != PermissionAction::Always;
            holding.commands.retain(narrows);
        }
        holding
    }

    /// Returns the permissions beyond the defaults, as phrases.
    pub fn allowed(&self) -> Vec<String> {
        let tools = self.permissions.iter().filter(|rule| rule.allows_more());
        let named = tools.map(|rule| match &*rule.tool {
            "execute_command" => "every command".to_owned(),
            tool => format!("`{tool}`"),
        });
        let is_allowed = |rule: &&CommandRule| rule.action == PermissionAction::Always;
        let rules = self.commands.iter().filter(is_allowed);
        let described = rules.map(|rule| rule_words(&rule.prefix));
        named.chain(described).collect()
    }

    /// Returns the action for a tool's calls. A tool without an entry is asked about; if it has several entries, the
    /// most restrictive one applies.
    pub fn action(&self, tool: &str) -> PermissionAction {
        let entries = self.permissions.iter().filter(|rule| rule.tool == tool);
        let actions = entries.map(|rule| rule.action);
        actions.max().unwrap_or(PermissionAction::Ask)
    }

    /// Records a choice, replacing earlier ones about the same.
    pub fn set(&mut self, choice: &Choice) {
        match choice {
            Choice::Tool(tool, action) => {
                let rules = self.permissions.iter_mut();
                let mut entries = rules.filter(|rule| rule.tool == *tool).peekable();
                if entries.peek().is_none() {
                    self.permissions.push(ToolRule::new(tool, *action));
                } else {
                    entries.for_each(|rule| rule.action = *action);
                }
            }
            Choice::Commands(prefixes) => {
                let rules = &mut self.commands;
                rules.retain(|rule| !prefixes.contains(&rule.prefix));
                rules.extend(prefixes.iter().map(|prefix| CommandRule {
                    prefix: prefix.clone(),
                    action: PermissionAction::Always,
                    other: Map::new(),
                }));
            }
        }
    }
}

/// Describes the commands that a rule with this prefix covers.
pub(crate) fn rule_words(prefix: &str) -> String {
    match prefix {
        LOOKS => "commands that only look".to_owned(),
        prefix => format!(
            "commands that begin with `{}`",
            one_line(prefix, LONGEST_NAME)
        ),
    }
}

/// Deserializes the name of a tool. Unknown names are rejected, since a misspelt one would forbid nothing.
fn known_tool<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let name = String::deserialize(input)?;
    if tools::named(&name).is_some() {
        return Ok(name);
    }
    Err(D::Error::custom(format!(
        "there is no tool `{}`; known: {}",
        one_line(&name, LONGEST_NAME),
        tools::names().join(", ")
    )))
}

fn known_action<'de, D: Deserializer<'de>>(input: D) -> Result<PermissionAction, D::Error> {
    let expected = "`action` must be `\"always\"`, `\"ask\"` or `\"never\"`";
    PermissionAction::deserialize(input).map_err(|_| D::Error::custom(expected))
}

fn prefix<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let text = String::deserialize(input)?;
    let words = shlex::split(&text).unwrap_or_default();
    if text == LOOKS || words.first().is_some_and(|first| !first.starts_with('@')) {
        return Ok(text);
    }
    Err(D::Error::custom(format!(
        "`prefix` must be the first words of a command, in quotes, or `\"{LOOKS}\"`"
    )))
}
