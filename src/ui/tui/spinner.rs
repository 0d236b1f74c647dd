//! What is waited for.
