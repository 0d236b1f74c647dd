//! What a shell command may do: whether it may delete, overwrite or commit.
