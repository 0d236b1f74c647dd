//! What was sent before.
