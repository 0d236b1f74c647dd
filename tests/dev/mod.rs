//! The agent that works through tools, against a scripted model over the real wire.

mod audit;
mod limits;
pub mod model;
mod native;
mod prompt;
mod protocol;
mod safety;
mod screen;
mod sessions;
mod settings;
mod terminal;
mod tools;
