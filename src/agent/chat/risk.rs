//! What a shell command may do: whether it may delete, overwrite or commit.

/// What a command may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Risk {
    /// Why it is asked about, each in a few words; none: it is plain.
    pub reasons: Vec<&'static str>,
}

/// What this command may do, as far as its words tell; in doubt there is a reason.
#[must_use]
pub fn judge(_command: &str) -> Risk {
    Risk {
        reasons: vec!["cannot be judged"],
    }
}
