//! The rules of the path policy, and how users are told of them. Plain data.

use std::fmt;

/// A rule that a path breaks.
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

impl fmt::Display for Rule {
    /// A sentence about paths, or about the one that stands before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ProtectedGit => "`.git` may not be changed",
            Self::ProtectedFile => "this file is protected",
            Self::ProtectedDirectory => "this directory is protected",
            Self::ProtectedProgram => "the running program may not be changed",
            Self::Ignored => "git ignores this path, so a change to it could not be reviewed",
            Self::Absolute => "a path must be relative to the project's root",
            Self::Tilde => "a path may not begin with `~`",
            Self::DotComponent => "a path may not have `.` or `..` in it",
            Self::EmptyComponent => "a path may not have `//` in it, or end with `/`",
            Self::Backslash => "a path may not have a backslash in it",
            Self::Colon => "a path may not have a colon in it",
            Self::Control => "a path may not have control characters in it",
            Self::Unicode => {
                "a path may not have characters that are invisible or look like others"
            }
            Self::NotNfc => "a path must be in Unicode's composed form (NFC)",
            Self::BadChar => "a path may not have any of `<>\"|?*` in it",
            Self::TrailingDotSpace => "a name may not end with a dot or a space",
            Self::LeadingSpace => "a name may not begin with a space",
            Self::Reserved => "Windows keeps this name for a device",
            Self::NameTooLong => "the path, or a name in it, is too long",
            Self::Symlink => "a path may not lead to or through a symbolic link",
            Self::NotDirectory => "the path leads through something that is not a directory",
            Self::NotRegular => "there is something here that is not a regular file",
            Self::NestedRepo => "the path lies in another git repository",
            Self::CrossDevice => "the path lies beyond a mount point",
            Self::CaseCollision => "another path differs from this one in letter case only",
        })
    }
}
