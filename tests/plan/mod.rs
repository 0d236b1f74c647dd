//! The agent that works by a plan, against a scripted Ollama server.

mod chat;
mod documents;
mod facts;
mod protocol;
mod reliability;
mod replays;
mod requests;
mod safety;
mod sessions;
mod stages;
mod steps;
mod summary;
mod tools;
mod windows;
