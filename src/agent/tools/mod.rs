//! The implementations of the tools, and the parts they share.

pub mod background;
pub mod command;
pub mod delete;
pub mod diff;
pub mod edit;
pub mod files;
pub mod list;
pub mod notes;
pub mod place;
pub mod read;
pub mod replace;
pub mod replace_all;
pub mod search;
pub mod spawn;
pub mod todos;
pub mod worded;
pub mod write;
