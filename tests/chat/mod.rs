//! The agent at the terminal, against a server that judges its requests as Anthropic's API does.

mod context;
mod headless;
mod judge;
mod lines;
mod permissions;
mod screen;

mod sdk;
mod secrets;
mod sessions;
mod terminal;
mod tools;
mod trust;
