//! The agent at the terminal, against a server that judges its requests as Anthropic's API does.

mod judge;
mod terminal;
