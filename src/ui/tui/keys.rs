//! Bytes of a terminal as keys.
