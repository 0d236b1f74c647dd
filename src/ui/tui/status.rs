//! The status bar.
