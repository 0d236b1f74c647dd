//! The screen's loop: keys and events in, frames out.
