//! `replace_in_files`: replaces a pattern in many files.
