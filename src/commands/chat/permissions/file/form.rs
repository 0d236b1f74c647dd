//! The content of `permissions.json`. Pure.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::agent::judge::LOOKS;
use crate::sys::positions::{self, Entries, Misplaced, Positions};
use crate::sys::text::one_line;

/// Length to which unknown names are cut, in characters.
const LONGEST_NAME: usize = 64;
/// The one version of the form that there is.
const VERSION: u64 = 1;

/// The permissions where there is no file.
const DEFAULTS: [(&str, PermissionAction); 5] = [
    ("read_file", PermissionAction::Always),
    ("list_files", PermissionAction::Always),
    ("write_file", PermissionAction::Ask),
    ("edit_file", PermissionAction::Ask),
    ("execute_command", PermissionAction::Ask),
];

/// The tools that are not asked about.
const UNASKED: [&str; 2] = ["update_todos", "spawn_agent"];

/// The tools that may be listed: all that there are.
pub(crate) const TOOLS: [&str; 13] = [
    "read_file",
    "list_files",
    "search_project",
    "write_file",
    "edit_file",
    "replace_in_files",
    "delete_file",
    "execute_command",
    "read_background",
    "list_background",
    "kill_background",
    "update_todos",
    "spawn_agent",
];

/// A permanent choice of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// This becomes of the calls of a tool.
    Tool(String, PermissionAction),
    /// Commands that begin so are carried out: prefixes.
    Commands(Vec<String>),
}

/// Handling of calls; the more an action forbids, the greater it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermissionAction {
    /// Carries them out, except calls that are always asked about.
    Always,
    /// The user decides each time.
    Ask,
    /// Refuses them.
    Never,
}

impl PermissionAction {
    const ALL: [Self; 3] = [Self::Always, Self::Ask, Self::Never];

    /// Its name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Ask => "ask",
            Self::Never => "never",
        }
    }
}

/// Actions by the tool's name.
pub(crate) type Actions = HashMap<String, PermissionAction>;

/// A rule for commands that begin with these words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandRule {
    /// The words, as a shell reads them, or [`LOOKS`].
    pub prefix: String,
    /// Handling of such a command.
    pub action: PermissionAction,
}

impl CommandRule {
    pub(crate) fn always(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
            action: PermissionAction::Always,
        }
    }
}

/// All that is in the file.
#[derive(Debug, Clone)]
pub(crate) struct PermissionForm {
    /// The whole file: unknown fields stay.
    json: Value,
    actions: Actions,
    rules: Vec<CommandRule>,
}

impl Default for PermissionForm {
    fn default() -> Self {
        let entry = |(tool, action): &(&str, PermissionAction)| json!({"tool": tool, "action": action.name()});
        let entries: Vec<Value> = DEFAULTS.iter().map(entry).collect();
        Self {
            json: json!({"version": VERSION, "permissions": entries}),
            actions: DEFAULTS
                .map(|(tool, action)| (tool.to_owned(), action))
                .into(),
            rules: Vec::new(),
        }
    }
}

impl PermissionForm {
    /// Reads the content of a file.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(content: &[u8]) -> Result<Self, Misplaced> {
        let text = positions::text(content)?;
        let at = Positions(text);
        let fields: Entries<'_> = at.object(text)?;
        let field = |name: &str| {
            let found = fields.0.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.get())
        };
        let missing = |name: &str| at.problem(text.trim_start(), format!("`{name}` is missing"));
        let version = field("version").ok_or_else(|| missing("version"))?;
        if serde_json::from_str(version).ok() != Some(VERSION) {
            return Err(at.problem(version, format!("`version` must be {VERSION}")));
        }
        if let Some(timestamp) = field("timestamp")
            && string(timestamp).is_none()
        {
            return Err(at.problem(timestamp, "`timestamp` must be a string, in quotes"));
        }
        let permissions = field("permissions").ok_or_else(|| missing("permissions"))?;
        let mut actions = Actions::new();
        for entry in list(&at, permissions, "permissions")? {
            let (tool, action) = parse_tool(&at, entry.get())?;
            let known = actions.insert(tool.clone(), action);
            if known.is_some_and(|known| known != action) {
                let reason = format!("`{}` is there twice, with two actions", tool.escape_debug());
                return Err(at.problem(entry.get(), reason));
            }
        }
        let commands = field("commands").map(|commands| list(&at, commands, "commands"));
        let commands = commands.transpose()?.unwrap_or_default();
        let rules = commands.iter().map(|entry| parse_rule(&at, entry.get()));
        Ok(Self {
            json: at.parse(text)?,
            actions,
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// The part in effect: all if it is trusted; else what allows no more than the defaults do.
    pub fn holding(&self, is_trusted: bool) -> (Actions, Vec<CommandRule>) {
        let mut actions = self.actions.clone();
        for (tool, action) in &mut actions {
            if !is_trusted && allows_more(tool, *action) {
                *action = PermissionAction::Ask;
            }
        }
        let rules = self.rules.iter();
        let rules = rules.filter(|rule| is_trusted || rule.action != PermissionAction::Always);
        (actions, rules.cloned().collect())
    }

    /// Permissions beyond the defaults, as phrases.
    pub fn allowed(&self) -> Vec<String> {
        let tools = self.tools().filter_map(|tool| {
            let action = *self.actions.get(tool)?;
            allows_more(tool, action).then(|| match tool {
                "execute_command" => "every command".to_owned(),
                tool => format!("`{tool}`"),
            })
        });
        let rules = self
            .rules
            .iter()
            .filter(|rule| rule.action == PermissionAction::Always);
        tools
            .chain(rules.map(|rule| rule_words(&rule.prefix)))
            .collect()
    }

    /// The tools that are listed, in the file's order.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        let entries = self.json["permissions"].as_array();
        let tools = entries.into_iter().flatten();
        tools.filter_map(|entry| entry["tool"].as_str())
    }

    /// Puts a choice into it.
    pub fn set(&mut self, choice: &Choice) {
        match choice {
            Choice::Tool(tool, action) => {
                self.actions.insert(tool.clone(), *action);
                self.put("permissions", "tool", tool, *action);
            }
            Choice::Commands(prefixes) => {
                for prefix in prefixes {
                    self.rules.retain(|rule| rule.prefix != *prefix);
                    self.rules.push(CommandRule::always(prefix));
                    self.put("commands", "prefix", prefix, PermissionAction::Always);
                }
            }
        }
    }

    /// Sets the action of the entries of a list that have this name, of which there is one then.
    fn put(&mut self, list: &str, key: &str, name: &str, action: PermissionAction) {
        if self.json[list].is_null() {
            self.json[list] = json!([]);
        }
        let Some(entries) = self.json[list].as_array_mut() else {
            return;
        };
        let mut is_listed = false;
        for entry in entries.iter_mut().filter(|entry| entry[key] == name) {
            entry["action"] = action.name().into();
            is_listed = true;
        }
        if !is_listed {
            entries.push(json!({key: name, "action": action.name()}));
        }
    }

    /// The bytes of the file, as of this time.
    pub fn content(&mut self, timestamp: &str) -> Vec<u8> {
        self.json["timestamp"] = timestamp.into();
        format!("{:#}\n", self.json).into_bytes()
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

/// Tests if an action allows more than the defaults do.
fn allows_more(tool: &str, action: PermissionAction) -> bool {
    let is_free = DEFAULTS.contains(&(tool, action)) || UNASKED.contains(&tool);
    action == PermissionAction::Always && !is_free
}

fn list<'t>(
    at: &Positions<'_>,
    value: &'t str,
    name: &str,
) -> Result<Vec<&'t RawValue>, Misplaced> {
    if !value.starts_with('[') {
        return Err(at.problem(value, format!("`{name}` must be a list, in `[` and `]`")));
    }
    at.parse(value)
}

fn parse_tool(at: &Positions<'_>, entry: &str) -> Result<(String, PermissionAction), Misplaced> {
    let (tool, action) = parse_entry(at, entry, "tool")?;
    let Some(name) = string(tool).filter(|name| !name.trim().is_empty()) else {
        return Err(at.problem(tool, "`tool` must be the name of a tool, in quotes"));
    };
    let action = parse_action(at, action)?;
    // One that is misspelt would forbid nothing.
    if !TOOLS.contains(&&*name) {
        let name = one_line(&name, LONGEST_NAME);
        let reason = format!("there is no tool `{name}`: known are {}", TOOLS.join(", "));
        return Err(at.problem(tool, reason));
    }
    Ok((name, action))
}

fn parse_rule(at: &Positions<'_>, entry: &str) -> Result<CommandRule, Misplaced> {
    let (prefix, action) = parse_entry(at, entry, "prefix")?;
    let is_prefix = |text: &String| {
        let words = shlex::split(text).unwrap_or_default();
        text == LOOKS || words.first().is_some_and(|first| !first.starts_with('@'))
    };
    let Some(text) = string(prefix).filter(is_prefix) else {
        let expected =
            format!("`prefix` must be the first words of a command, in quotes, or `\"{LOOKS}\"`");
        return Err(at.problem(prefix, expected));
    };
    let action = parse_action(at, action)?;
    Ok(CommandRule {
        prefix: text,
        action,
    })
}

/// The texts of an entry's `key` and of its action.
fn parse_entry<'t>(
    at: &Positions<'_>,
    entry: &'t str,
    key: &str,
) -> Result<(&'t str, &'t str), Misplaced> {
    let fields: Entries<'t> = at.object(entry)?;
    let field = |name: &str| {
        let found = fields.0.iter().find(|(known, _)| known == name);
        let value = found.map(|(_, value)| value.get());
        value.ok_or_else(|| at.problem(entry, format!("`{name}` is missing")))
    };
    Ok((field(key)?, field("action")?))
}

fn parse_action(at: &Positions<'_>, action: &str) -> Result<PermissionAction, Misplaced> {
    let written = string(action);
    let mut known = PermissionAction::ALL.into_iter();
    let known = known.find(|known| written.as_deref() == Some(known.name()));
    let expected = "`action` must be `\"always\"`, `\"ask\"` or `\"never\"`";
    known.ok_or_else(|| at.problem(action, expected))
}

fn string(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}
