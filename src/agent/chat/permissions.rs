//! What the agent at the terminal may do: by its mode, by what the user has allowed for good, and by what harm a call
//! may do.
//!
//! Reads what it is given, and decides; notes what nobody was there to allow. Guarantees that outside of Auto-Pilot
//! nothing that may delete, overwrite or commit is done unasked, and that in Planning nothing is done at all.

pub mod file;

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use self::file::{FILE, PermissionAction, PermissionFile};
use super::commands::COMMANDS;
use super::context::AGENT_FOLDER;
use crate::agent::judge;
use crate::agent::permissions::{Permission, Permissions};
use crate::agent::tool::{Effect, ParameterKind, ToolCall};
use crate::agent::tools::place::{quoted, resolved};
use crate::model::Category;
use crate::project::mode::{Mode, SharedMode};
use crate::sys::numbers::counted;
use crate::sys::text::one_line;
use crate::ui::question::{Answer, Question};
use crate::ui::tui::Verdict;

/// How much of a command or path stands in a sentence, in characters; the question has it whole.
const IN_SENTENCE: usize = 200;

/// What the model is told of every call in Planning.
const PLANNING: &str = "this is Planning mode: nothing is executed, not even a tool that looks; describe in the plan \
                        what is to be done";

/// The paths that no file tool reaches, links resolved: what is allowed in the project, the user's own commands there,
/// which run commands, and the agent's home with its keys.
#[must_use]
pub fn closed_paths(root: &Path, home: &Path) -> Vec<PathBuf> {
    let paths = [
        root.join(FILE),
        root.join(AGENT_FOLDER).join(COMMANDS),
        home.to_owned(),
    ];
    paths.map(|path| resolved(&path)).to_vec()
}

/// What the agent at the terminal may do.
#[derive(Clone, Copy)]
pub struct ChatPermissions<'a> {
    /// The mode, which the user may change at any time.
    pub mode: &'a SharedMode,
    /// What is allowed for good in the project.
    pub file: &'a RefCell<PermissionFile>,
    /// Whether nobody is there to be asked; these calls were refused for it.
    pub headless: Option<&'a RefCell<NotPermitted>>,
}

/// The calls that nobody was there to allow.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{} not permitted: nobody was there to allow {}", counted(.calls.len() as u64, "call"), .calls.join(", "))]
pub struct NotPermitted {
    /// Each as its tool, what it was about, and why it would have been asked about, on one line.
    pub calls: Vec<String>,
    /// Whether one of them would have been asked about whatever is allowed.
    pub is_asked_always: bool,
}

impl NotPermitted {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let auto_pilot = "`--auto-pilot` lets the agent do everything";
        if self.is_asked_always {
            format!("what deletes, overwrites or commits is asked about always; {auto_pilot}")
        } else {
            format!("allow the tools in `{FILE}`; {auto_pilot}")
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
        let action = self.file.borrow().action(tool);
        if action == PermissionAction::Never {
            return Permission::Refused(format!(
                "the user never allows {tool} in this project; do it another way, or say what is needed from them"
            ));
        }
        if mode == Mode::AutoPilot || !call.tool.requires_approval() {
            return Permission::Allowed;
        }
        let reasons = reasons(call);
        if action == PermissionAction::Always && reasons.is_empty() {
            return Permission::Allowed;
        }
        let Some(refused) = self.headless else {
            return Permission::Ask(question(call, &reasons));
        };
        let told = told(call, &reasons);
        let refusal = format!(
            "nobody is there to allow {told}; do it another way, or go on without it and say that it was not done"
        );
        let mut refused = refused.borrow_mut();
        refused.calls.push(told);
        refused.is_asked_always |= !reasons.is_empty();
        Permission::Refused(refusal)
    }
}

/// Why a call is asked about whatever is allowed.
fn reasons(call: &ToolCall) -> Vec<&'static str> {
    let mut reasons = call.hazards.clone();
    for command in call.of_kind(ParameterKind::Command) {
        let judged = judge::judge(command, &|_| judge::ScriptState::Tracked).reasons;
        reasons.extend(
            judged
                .into_iter()
                .filter(|reason| !call.hazards.contains(reason)),
        );
    }
    reasons
}

/// The command or the path that a call is about, and what is searched for there; else the first thing that the tool
/// takes.
fn subject(call: &ToolCall) -> String {
    let mut commands = call.of_kind(ParameterKind::Command);
    let mut paths = call.of_kind(ParameterKind::Path);
    let is_search = call.tool.category == Category::Search && call.tool.effect == Effect::Reads;
    match (commands.next(), paths.next()) {
        (None, Some(path)) if is_search => {
            format!("{} in {path}", call.subject())
        }
        (Some(about), _) | (None, Some(about)) => about.to_owned(),
        (None, None) => call.subject().to_owned(),
    }
}

fn question(call: &ToolCall, reasons: &[&'static str]) -> Question {
    let tool = call.tool.name.clone().into_owned();
    let subject = subject(call);
    let shown = quoted(&one_line(&subject, IN_SENTENCE));
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
        may_last: reasons.is_empty(),
        may_forbid: true,
        may_redirect: true,
    }
}

/// A call on one line: ``execute_command `rm x` (deletes)``.
fn told(call: &ToolCall, reasons: &[&'static str]) -> String {
    let tool = &call.tool.name;
    let shown = match &*subject(call) {
        "" => String::new(),
        subject => format!(" {}", quoted(&one_line(subject, IN_SENTENCE))),
    };
    format!("{tool}{shown}{}", why(reasons))
}

/// The reasons behind a call: ` (deletes)`.
fn why(reasons: &[&'static str]) -> String {
    match reasons {
        [] => String::new(),
        reasons => format!(" ({})", reasons.join(", ")),
    }
}

/// What is to be remembered of a verdict; `None`: it holds but once.
#[must_use]
pub fn remembered(question: &Question, verdict: &Verdict) -> Option<PermissionAction> {
    let (action, may_last) = match verdict.answer {
        Answer::Yes => (PermissionAction::Always, question.may_last),
        Answer::No | Answer::Instead(_) => (PermissionAction::Never, question.may_forbid),
    };
    (verdict.is_for_good && may_last).then_some(action)
}

#[cfg(test)]
mod tests;
