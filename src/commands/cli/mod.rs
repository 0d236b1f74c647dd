//! Flags that several commands have, and nothing that acts.

pub(crate) mod agent;
pub(crate) mod build;
pub(crate) mod inputs;
pub(crate) mod replies;
pub(crate) mod values;
