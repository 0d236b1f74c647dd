//! The parts of a file in groups. Plain data.

use crate::edit::protection::covers;
use crate::project::gitignore::{Case, IgnoreFile};

/// A file in groups: sections, elements, top-level keys, blocks or items.
#[derive(Debug, Default)]
pub struct Parted {
    pub head: String,
    pub groups: Vec<Group>,
    pub tail: String,
    /// The text between groups, and between the pieces of a group.
    pub between: &'static str,
}

/// A part of a file, and its own parts.
#[derive(Debug, Default, Clone)]
pub struct Group {
    pub name: String,
    pub open: String,
    /// Names and texts.
    pub pieces: Vec<(String, String)>,
    pub close: String,
}

impl Group {
    pub fn new(name: &str, open: &str) -> Self {
        Self {
            name: name.to_owned(),
            open: open.to_owned(),
            ..Self::default()
        }
    }

    pub fn text(&self, between: &str) -> String {
        let pieces: Vec<&str> = self.pieces.iter().map(|(_, text)| text.as_str()).collect();
        format!("{}{}{}", self.open, pieces.join(between), self.close)
    }

    /// Returns the group with those of its pieces alone that are (not) the gate; `None` if it is all of the other
    /// kind.
    pub fn side(&self, gate: &IgnoreFile, is_gate: bool) -> Option<Self> {
        let is_kept = |path: &str| covers(gate, path, Case::Sensitive) == is_gate;
        let mut side = self.clone();
        side.pieces
            .retain(|(name, _)| is_kept(&format!("{}/{name}", self.name)));
        (is_kept(&self.name) || !side.pieces.is_empty()).then_some(side)
    }
}

impl Parted {
    pub fn sides(&self, gate: &IgnoreFile, is_gate: bool) -> impl Iterator<Item = Group> {
        let sides = self.groups.iter();
        sides.filter_map(move |group| group.side(gate, is_gate))
    }

    pub fn text(&self) -> String {
        let groups: Vec<String> = self.groups.iter().map(|it| it.text(self.between)).collect();
        format!("{}{}{}", self.head, groups.join(self.between), self.tail)
    }
}
