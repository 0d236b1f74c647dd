//! What the tests share: a project to run in, and a server that plays the vendors.

mod project;
mod server;

pub use project::{Finished, GEMINI_KEY, OPENAI_KEY, TestProject};
pub use server::{Answer, ModelServer, gemini, openai};
