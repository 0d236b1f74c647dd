//! `edit_file`: replaces one place in a file, or all of them.
