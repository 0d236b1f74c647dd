//! The program as a whole, run as its users run it: one file a concern.
//!
//! Every test has a project and a server of its own. None needs the network, a key, or another test.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "that is how a test fails"
)]

mod support;

mod architecture;
mod attributes;
mod builds;
mod commit;
mod consistency;
mod demo;
mod dev;
mod docs;
mod examples;
mod hostile;
mod hostile_project;
mod machine;
mod models;
mod page;
mod past;
mod preparing;
mod processes;
mod readiness;
mod redaction;
mod replay;
mod replies;
mod sandbox;
mod sending;
mod signals;
mod steps;
mod streaming;
mod table;
mod undo;
mod usage;
