//! What a path or a command that is being typed may become.
