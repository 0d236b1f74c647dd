//! The program as a whole, run as users run it, with one file per concern.
//!
//! Every test has its own project and server. None needs the network, a key, or another test.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "that is how a test fails, and it opens the files that it has made"
)]

mod support;

mod architecture;
mod asking_again;
mod attempts;
mod attempts_together;
mod attest;
mod attributes;
mod azure;
mod baseline;
mod builds;
mod chat;
mod code_context;
mod commit;
mod compatible;
mod confinement;
mod consistency;
mod context;
mod demo;
mod dependencies;
mod dev;
mod docs;
mod edits;
mod examples;
mod findings;
mod fleet;
mod full_disk;
mod gate;
mod gate_replies;
mod gate_silenced;
mod gate_verdict;
mod hostile;
mod hostile_project;
mod hosts;
mod inputs;
mod itself;
mod keys;
mod machine;
mod mcp;
mod models;
mod odd_files;
mod ollama;
mod orchestrate;
mod order;
mod packages;
mod page;
mod past;
mod past_attempts;
mod past_orchestrations;
mod places;
mod plan;
mod plan_docs;
mod plan_model;
mod preparing;
mod printing;
mod processes;
mod project_gate;
mod proof;
mod readiness;
mod reasons;
mod redaction;
mod replay;
mod replies;
mod repositories;
mod resume;
mod sandbox;
mod scratch;
mod scratch_runs;
mod screen;
mod search;
mod secrets;
mod sending;
mod served;
mod services;
mod signals;
mod staged;
mod steps;
mod streaming;
mod table;
mod telemetry;
mod tiers;
mod trial;
mod undo;
mod usage;
mod vendors;
