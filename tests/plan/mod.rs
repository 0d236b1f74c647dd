//! The agent that works by a plan, against a scripted Ollama server.

mod stages;
