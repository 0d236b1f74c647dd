//! Flags shared by several commands, without any actions.

pub(crate) mod agent;
pub(crate) mod build;
pub(crate) mod consistency;
pub(crate) mod gate;
pub(crate) mod inputs;
pub(crate) mod replies;
pub(crate) mod values;
