//! Permissions of the terminal agent, determined by its mode, the user's permanent choices, and the possible harm of a
//! call.
//!
//! Decides on calls, and records those that no user was present to allow. Guarantees that outside Auto-Pilot nothing
//! that may delete, overwrite or commit happens without asking, and that in Planning nothing is executed.

pub mod file;
pub mod untrusted;

use std::cell::RefCell;
use std::path::Path;

use self::file::{Choice, FILE, PermissionAction, PermissionFile, rule_words};
use super::briefing::Briefing;
use crate::agent::judge::{JudgedCommand, ScriptState, judge};
use crate::agent::permissions::{Permission, Permissions, asks};
use crate::agent::tool::{Effect, ParameterKind, ToolCall};
use crate::agent::tools::resolved_path::{quoted, resolved};
use crate::project::index::TrackedPaths;
use crate::record::mode::{Mode, SharedMode};
use crate::record::question::{Answer, Question, Verdict};
use crate::record::tool::Category;
use crate::sys::numbers::counted;
use crate::sys::text::cut;

/// Maximum length of a command or path in a sentence, in characters; the question contains all of it.
const IN_SENTENCE: usize = 200;

/// Answer to every call in Planning.
const PLANNING: &str = "this is Planning mode: nothing is executed, not even a tool that looks; describe in the plan \
                        what is to be done";

/// Permissions of the terminal agent.
#[derive(Clone, Copy)]
pub struct ChatPermissions<'a> {
    /// The mode, which the user may change at any time.
    pub mode: &'a SharedMode,
    /// Permanent permissions in the project.
    pub file: &'a RefCell<PermissionFile>,
    /// `true` if permissions in the file apply; otherwise the calls that it allows are asked about.
    pub counts: bool,
    /// The project's root, links resolved, in which commands run.
    pub root: &'a Path,
    /// Provides the files that the session has written.
    pub briefing: &'a RefCell<Briefing>,
    /// Calls refused because there is no user to ask; `None` if there is one.
    pub headless: Option<&'a RefCell<NotPermitted>>,
}

/// The calls refused because no user was present to allow them.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("{} not permitted: nobody was there to allow {}", counted(.calls.len() as u64, "call"), .calls.join(", "))]
#[diagnostic(code("not-permitted"), help("{}; `--auto-pilot` lets the agent do everything", self.way_out()))]
pub struct NotPermitted {
    /// Tool, subject and reasons for asking of each call, each on one line.
    pub calls: Vec<String>,
    /// `true` if one of the calls is asked about regardless of permissions.
    pub is_asked_always: bool,
}

impl NotPermitted {
    fn way_out(&self) -> String {
        if self.is_asked_always {
            "commands that delete, overwrite or commit, and unclear ones, are always asked about"
                .to_owned()
        } else {
            format!(
                "allow the tools in `{FILE}`, or commands by a prefix, and run `code-commit chat trust`"
            )
        }
    }
}

impl Permissions for ChatPermissions<'_> {
    fn decide(&self, call: &ToolCall) -> Permission {
        let mode = self.mode.get();
        if mode == Mode::Planning {
            return Permission::Refused(PLANNING.to_owned());
        }
        let tool = &*call.tool.name;
        let judged = self.judged(call);
        let of_tool = self.file.borrow().action(tool);
        let on = |command: &JudgedCommand| self.file.borrow().action_on(tool, command);
        let action = judged.as_ref().map_or(of_tool, on);
        if action == PermissionAction::Never {
            let what = if of_tool == action {
                tool
            } else {
                "this command"
            };
            return Permission::Refused(format!(
                "the user never allows {what} in this project; do it another way, or say what is needed from them"
            ));
        }
        if mode == Mode::AutoPilot || !call.tool.requires_approval() {
            return Permission::Allowed;
        }
        let reasons = reasons(call, judged.as_ref());
        if action == PermissionAction::Always && self.counts && reasons.is_empty() {
            return Permission::Allowed;
        }
        let Some(refused) = self.headless else {
            let mut question = question(call, &reasons);
            if let Some(command) = judged {
                question.rules = self.new_rules(&command);
                question.lasting = words_of(&Choice::Commands(question.rules.clone()));
                question.cause = command.cause;
                if question.cause.is_empty() {
                    // Without a cause for the whole command, judge its lines.
                    let is_asked = |line: &&str| !self.judge(line).reasons.is_empty();
                    let lines = question.subject.lines().map(str::trim);
                    question.cause = lines.filter(is_asked).map(str::to_owned).collect();
                }
            }
            return Permission::Ask(question);
        };
        let described = described(call, &reasons);
        let refusal = format!(
            "nobody is there to allow {described}; do it another way, or go on without it and say that it was not done"
        );
        let mut refused = refused.borrow_mut();
        refused.calls.push(described);
        refused.is_asked_always |= !reasons.is_empty();
        Permission::Refused(refusal)
    }
}

impl ChatPermissions<'_> {
    /// Returns the assessed command that a call runs; `None` if the call runs none.
    fn judged(&self, call: &ToolCall) -> Option<JudgedCommand> {
        Some(self.judge(call.of_kind(ParameterKind::Command).next()?))
    }

    fn judge(&self, command: &str) -> JudgedCommand {
        judge(command, &|path| self.state_of(path))
    }

    fn state_of(&self, script: &Path) -> ScriptState {
        let path = resolved(&self.root.join(script));
        if self.briefing.borrow().has_written(&path) {
            return ScriptState::Written;
        }
        let inside = path.strip_prefix(self.root).ok().and_then(Path::to_str);
        match TrackedPaths::below(self.root) {
            Ok(tracked) if inside.is_some_and(|inside| tracked.find(inside) == Some(inside)) => {
                ScriptState::Tracked
            }
            _ => ScriptState::Untracked,
        }
    }

    /// Returns the prefixes to allow so that the whole command is allowed, except those allowed already.
    fn new_rules(&self, command: &JudgedCommand) -> Vec<String> {
        let file = self.file.borrow();
        let mut rules = Vec::new();
        for program in &command.programs {
            let prefix = program.prefix();
            if file.rule(program) != Some(PermissionAction::Always) && !rules.contains(&prefix) {
                rules.push(prefix);
            }
        }
        rules
    }
}

/// Returns the reasons for asking about a call regardless of permissions.
fn reasons(call: &ToolCall, command: Option<&JudgedCommand>) -> Vec<&'static str> {
    let mut reasons = call.hazards.clone();
    let judged = command.iter().flat_map(|command| &command.reasons);
    reasons.extend(judged.filter(|reason| !call.hazards.contains(reason)));
    reasons
}

/// Returns the command or path that a call is about, with the pattern if the call is a search, or else the tool's first
/// argument.
fn subject(call: &ToolCall) -> String {
    let mut commands = call.of_kind(ParameterKind::Command);
    let mut paths = call.of_kind(ParameterKind::Path);
    let is_search = call.tool.category == Category::Search && call.tool.effect == Effect::Reads;
    match (commands.next(), paths.next()) {
        (None, Some(path)) if is_search => format!("{} in {path}", call.subject()),
        (Some(about), _) | (None, Some(about)) => about.to_owned(),
        (None, None) => call.subject().to_owned(),
    }
}

fn question(call: &ToolCall, reasons: &[&'static str]) -> Question {
    let tool = call.tool.name.clone().into_owned();
    let subject = subject(call);
    let shown = quoted(&cut(subject.trim(), IN_SENTENCE));
    let about = match call.tool.effect {
        _ if subject.is_empty() => format!("use {tool}"),
        Effect::Runs if call.tool.takes(ParameterKind::Command) => format!("run {shown}"),
        Effect::Writes => format!("change {shown}"),
        _ => format!("use {tool} on {shown}"),
    };
    Question {
        sentence: format!("The agent wants to {about}{}. May it?", why(reasons)),
        subject,
        tool,
        reasons: reasons.iter().map(|reason| (*reason).to_owned()).collect(),
        may_be_permanent: reasons.is_empty(),
        asks: asks(call),
        may_forbid: true,
        may_redirect: true,
        ..Question::default()
    }
}

/// Formats a call on one line, such as ``execute_command `rm x` (deletes)``.
fn described(call: &ToolCall, reasons: &[&'static str]) -> String {
    let shown = match &*subject(call) {
        "" => String::new(),
        subject => format!(" {}", quoted(&cut(subject.trim(), IN_SENTENCE))),
    };
    format!("{}{shown}{}", call.tool.name, why(reasons))
}

/// Formats the reasons for asking, such as ` (deletes)`, to follow a call.
fn why(reasons: &[&'static str]) -> String {
    match reasons {
        [] => String::new(),
        reasons => format!(" ({})", reasons.join(", ")),
    }
}

/// Describes the tool or the commands that a choice is about.
pub fn words_of(choice: &Choice) -> String {
    match choice {
        Choice::Tool(tool, _) => format!("`{tool}`"),
        Choice::Commands(rules) => {
            let words: Vec<_> = rules.iter().map(|rule| rule_words(rule)).collect();
            words.join("; ")
        }
    }
}

/// Returns the permanent choice in a verdict; `None` if it applies only once.
pub fn remembered(question: &Question, verdict: &Verdict) -> Option<Choice> {
    let (action, may_be_permanent) = match verdict.answer {
        Answer::Yes => (PermissionAction::Always, question.may_be_permanent),
        Answer::No | Answer::Instead(_) => (PermissionAction::Never, question.may_forbid),
    };
    let choice = match (action, &*question.rules) {
        (PermissionAction::Always, [_, ..]) => Choice::Commands(question.rules.clone()),
        _ => Choice::Tool(question.tool.clone(), action),
    };
    (verdict.is_for_good && may_be_permanent).then_some(choice)
}

#[cfg(test)]
mod tests;
