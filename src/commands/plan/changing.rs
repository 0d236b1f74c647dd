//! Notes which calls of a step may change the project's files.

use std::cell::Cell;

use crate::agent::permissions::{Permission, Permissions};
use crate::agent::tool::{Effect, ParameterKind, ToolCall};

/// Records tool calls that may change files.
pub struct NoteChanges<'a> {
    pub permissions: &'a dyn Permissions,
    pub is_harmless: &'a dyn Fn(&str) -> bool,
    pub may_have_changed: &'a Cell<bool>,
}

impl Permissions for NoteChanges<'_> {
    fn decide(&self, call: &ToolCall) -> Permission {
        let decided = self.permissions.decide(call);
        let changes = match call.tool.effect {
            // Tools that update the plan take no path: they do not change the project's files.
            Effect::Writes => call.tool.takes(ParameterKind::Path),
            Effect::Runs => {
                let mut commands = call.of_kind(ParameterKind::Command);
                commands.any(|command| !(self.is_harmless)(command))
            }
            _ => false,
        };
        if changes && !matches!(decided, Permission::Refused(_)) {
            self.may_have_changed.set(true);
        }
        decided
    }
}
