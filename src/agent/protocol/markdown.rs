//! The protocol of `# Agent Response`. Pure.

use super::{Fault, Protocol, Turn};
use crate::agent::tool::Toolbox;
use crate::model::Reply;

/// Replies in Markdown sections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Markdown;

impl Protocol for Markdown {
    fn instructions(&self, _tools: &Toolbox<'_>) -> String {
        String::new()
    }

    fn read(&self, _reply: &Reply, _tools: &Toolbox<'_>) -> Result<Turn, Fault> {
        Ok(Turn::default())
    }
}
