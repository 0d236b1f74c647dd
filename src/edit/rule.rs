//! The rules of the path policy, by name. Plain data.

use std::fmt;

/// A rule that a path breaks. [`Rule::name`] is what tests, logs and other programs go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// It is, or leads through, `.git`.
    ProtectedGit,
    /// It is one of the protected files.
    ProtectedFile,
    /// It is, or lies in, one of the protected directories.
    ProtectedDirectory,
    /// It is the program that is running.
    ProtectedProgram,
    /// git would ignore it.
    Ignored,
    /// It begins with a slash.
    Absolute,
    /// It begins with a tilde.
    Tilde,
    /// It has a `.` or `..` for a name.
    DotComponent,
    /// It has an empty name: `a//b`, `a/`.
    EmptyComponent,
    /// It has a backslash.
    Backslash,
    /// It has a colon: a drive, or an alternate data stream.
    Colon,
    /// It has a control character.
    Control,
    /// It has a character that is invisible, turns the text around, or passes for another.
    Unicode,
    /// It is not in Unicode's composed form (NFC).
    NotNfc,
    /// It has a character that Windows takes in no name.
    BadChar,
    /// A name ends with a dot or a blank.
    TrailingDotSpace,
    /// A name begins with a blank.
    LeadingSpace,
    /// It has a name that Windows keeps for a device.
    Reserved,
    /// A name has more than 255 bytes, or the path more than 4,000.
    NameTooLong,
    /// A symbolic link is in the way.
    Symlink,
    /// A directory is to be made where a file is.
    NotDirectory,
    /// What is there is no regular file.
    NotRegular,
    /// A nested repository or a submodule is in the way.
    NestedRepo,
    /// A mount point is in the way.
    CrossDevice,
    /// Another file's name differs in letter case only.
    CaseCollision,
}

impl Rule {
    /// The rule's name, which does not change.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ProtectedGit => "ProtectedGit",
            Self::ProtectedFile => "ProtectedFile",
            Self::ProtectedDirectory => "ProtectedDirectory",
            Self::ProtectedProgram => "ProtectedProgram",
            Self::Ignored => "Ignored",
            Self::Absolute => "Absolute",
            Self::Tilde => "Tilde",
            Self::DotComponent => "DotComponent",
            Self::EmptyComponent => "EmptyComponent",
            Self::Backslash => "Backslash",
            Self::Colon => "Colon",
            Self::Control => "Control",
            Self::Unicode => "Unicode",
            Self::NotNfc => "NotNFC",
            Self::BadChar => "BadChar",
            Self::TrailingDotSpace => "TrailingDotSpace",
            Self::LeadingSpace => "LeadingSpace",
            Self::Reserved => "Reserved",
            Self::NameTooLong => "NameTooLong",
            Self::Symlink => "Symlink",
            Self::NotDirectory => "NotDirectory",
            Self::NotRegular => "NotRegular",
            Self::NestedRepo => "NestedRepo",
            Self::CrossDevice => "CrossDevice",
            Self::CaseCollision => "CaseCollision",
        }
    }
}

impl fmt::Display for Rule {
    /// The end of a sentence whose subject is the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProtectedGit => "leads into `.git`",
            Self::ProtectedFile => "is a protected file",
            Self::ProtectedDirectory => "lies in a protected directory",
            Self::ProtectedProgram => "is the running program",
            Self::Ignored => "is ignored by git, so a change to it could not be reviewed",
            Self::Absolute => "is absolute",
            Self::Tilde => "begins with `~`",
            Self::DotComponent => "has `.` or `..` for a name",
            Self::EmptyComponent => "has an empty name (`//`, or `/` at the end)",
            Self::Backslash => "has a backslash",
            Self::Colon => "has a colon",
            Self::Control => "has a control character",
            Self::Unicode => "has a character that is invisible or passes for another",
            Self::NotNfc => "is not in Unicode's composed form",
            Self::BadChar => "has a character that some systems take in no name",
            Self::TrailingDotSpace => "has a name that ends with a dot or a blank",
            Self::LeadingSpace => "has a name that begins with a blank",
            Self::Reserved => "has a name that some systems keep for a device",
            Self::NameTooLong => "is too long",
            Self::Symlink => "leads through or to a symbolic link",
            Self::NotDirectory => "leads through something that is no directory",
            Self::NotRegular => "is there, but no regular file",
            Self::NestedRepo => "lies in a nested repository",
            Self::CrossDevice => "lies beyond a mount point",
            Self::CaseCollision => "differs from another path in letter case only",
        })
    }
}
