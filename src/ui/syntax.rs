//! Colours program text by its syntax.
