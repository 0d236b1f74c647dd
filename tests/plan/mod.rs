//! The agent that works by a plan, against a scripted Ollama server.

mod protocol;
mod requests;
mod stages;
mod steps;
mod summary;
mod tools;
mod windows;
