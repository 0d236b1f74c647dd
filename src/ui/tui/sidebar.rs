//! The list of what is to be done.
