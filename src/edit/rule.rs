//! The rules of the path policy, and how users are told of them. Plain data.

/// A rule that a path breaks; said as a sentence about paths, or about the one that stands before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Rule {
    /// It is, or leads through, `.git`.
    #[error("`.git` may not be changed")]
    ProtectedGit,
    /// It is one of the protected files.
    #[error("this file is protected")]
    ProtectedFile,
    /// It is, or lies in, one of the protected directories.
    #[error("this directory is protected")]
    ProtectedDirectory,
    /// It is the program that is running.
    #[error("the running program may not be changed")]
    ProtectedProgram,
    /// git would ignore it.
    #[error("git ignores this path, so a change to it could not be reviewed")]
    Ignored,
    /// It begins with a slash.
    #[error("a path must be relative to the project's root")]
    Absolute,
    /// It begins with a tilde.
    #[error("a path may not begin with `~`")]
    Tilde,
    /// It has a `.` or `..` for a name.
    #[error("a path may not have `.` or `..` in it")]
    DotComponent,
    /// It has an empty name: `a//b`, `a/`.
    #[error("a path may not have `//` in it, or end with `/`")]
    EmptyComponent,
    /// It has a backslash.
    #[error("a path may not have a backslash in it")]
    Backslash,
    /// It has a colon: a drive, or an alternate data stream.
    #[error("a path may not have a colon in it")]
    Colon,
    /// It has a control character.
    #[error("a path may not have control characters in it")]
    Control,
    /// It has a character that is invisible, turns the text around, or passes for another.
    #[error("a path may not have characters that are invisible or look like others")]
    Unicode,
    /// It is not in Unicode's composed form (NFC).
    #[error("a path must be in Unicode's composed form (NFC)")]
    NotNfc,
    /// It has a character that Windows takes in no name.
    #[error("a path may not have any of `<>\"|?*` in it")]
    BadChar,
    /// A name ends with a dot or a blank.
    #[error("a name may not end with a dot or a space")]
    TrailingDotSpace,
    /// A name begins with a blank.
    #[error("a name may not begin with a space")]
    LeadingSpace,
    /// It has a name that Windows keeps for a device.
    #[error("Windows keeps this name for a device")]
    Reserved,
    /// A name has more than 255 bytes, or the path more than 4,000.
    #[error("the path, or a name in it, is too long")]
    NameTooLong,
    /// A symbolic link is in the way.
    #[error("a path may not lead to or through a symbolic link")]
    Symlink,
    /// A directory is to be made where a file is.
    #[error("the path leads through something that is not a directory")]
    NotDirectory,
    /// The entry there is no regular file.
    #[error("there is something here that is not a regular file")]
    NotRegular,
    /// A nested repository or a submodule is in the way.
    #[error("the path lies in another git repository")]
    NestedRepo,
    /// It would be in a directory that git takes for a repository, with a configuration that names programs.
    #[error(
        "the path lies in a directory that git would take for a repository: `HEAD` beside `objects`, `refs` or `commondir`"
    )]
    MadeRepo,
    /// A mount point is in the way.
    #[error("the path lies beyond a mount point")]
    CrossDevice,
    /// Another file's name differs in letter case only.
    #[error("another path differs from this one in letter case only")]
    CaseCollision,
}
