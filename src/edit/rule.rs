//! The rules of the path policy, with their messages. Plain data.

/// A rule broken by a path. The message is a sentence about paths in general, or about the path that precedes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Rule {
    /// The path is, or leads through, `.git`.
    #[error("`.git` may not be changed")]
    ProtectedGit,
    /// The path is a protected file.
    #[error("this file is protected")]
    ProtectedFile,
    /// The path is, or lies in, a protected directory.
    #[error("this directory is protected")]
    ProtectedDirectory,
    /// The project protects the path.
    #[error("`--protect`, or the project's `.code-commit.json`, protects this file")]
    ProtectedByProject,
    /// The prompt does not show the whole file.
    #[error("the prompt does not show this file in whole: ask for it by `^^^need`")]
    NotShown,
    /// The model asks for a file that is not in the code base.
    #[error("the code base has no such file, or none that may be sent")]
    NotListed,
    /// The model asks for a file that it has.
    #[error("the prompt shows this file in whole already")]
    AlreadyShown,
    /// The path is the running program.
    #[error("the running program may not be changed")]
    ProtectedProgram,
    /// The path is ignored by git.
    #[error("git ignores this path, so a change to it could not be reviewed")]
    Ignored,
    /// The path begins with a slash.
    #[error("a path must be relative to the project's root")]
    Absolute,
    /// The path begins with a tilde.
    #[error("a path may not begin with `~`")]
    Tilde,
    /// The path contains `.` or `..` as a name.
    #[error("a path may not have `.` or `..` in it")]
    DotComponent,
    /// The path contains an empty name: `a//b`, `a/`.
    #[error("a path may not have `//` in it, or end with `/`")]
    EmptyComponent,
    /// The path contains a backslash.
    #[error("a path may not have a backslash in it")]
    Backslash,
    /// The path contains a colon, as for a drive or an alternate data stream.
    #[error("a path may not have a colon in it")]
    Colon,
    /// The path contains a control character.
    #[error("a path may not have control characters in it")]
    Control,
    /// The path contains a character that is invisible, changes the text direction, or resembles another.
    #[error("a path may not have characters that are invisible or look like others")]
    Unicode,
    /// The path is not in Unicode's composed form (NFC).
    #[error("a path must be in Unicode's composed form (NFC)")]
    NotNfc,
    /// The path contains a character that Windows does not allow in names.
    #[error("a path may not have any of `<>\"|?*` in it")]
    BadChar,
    /// A name ends with a dot or a space.
    #[error("a name may not end with a dot or a space")]
    TrailingDotSpace,
    /// A name begins with a space.
    #[error("a name may not begin with a space")]
    LeadingSpace,
    /// The path contains a name that Windows reserves for a device.
    #[error("Windows keeps this name for a device")]
    Reserved,
    /// A name is longer than 255 bytes, or the path longer than 4,000.
    #[error("the path, or a name in it, is too long")]
    NameTooLong,
    /// The path leads to or through a symbolic link.
    #[error("a path may not lead to or through a symbolic link")]
    Symlink,
    /// A directory is needed where a file exists.
    #[error("the path leads through something that is not a directory")]
    NotDirectory,
    /// The entry at the path is not a regular file.
    #[error("there is something here that is not a regular file")]
    NotRegular,
    /// The path lies in a nested repository or a submodule.
    #[error("the path lies in another git repository")]
    NestedRepo,
    /// A sparse checkout leaves out the path, or what is above or below it.
    #[error("a sparse checkout leaves this path out, so nobody has seen what git has there")]
    NotCheckedOut,
    /// The file would make git take its directory for a repository, whose configuration may name programs.
    #[error(
        "the path lies in a directory that git would take for a repository: `HEAD` beside `objects`, `refs` or `commondir`"
    )]
    MadeRepo,
    /// The path lies beyond a mount point.
    #[error("the path lies beyond a mount point")]
    CrossDevice,
    /// The name differs from another only in letter case.
    #[error("another path differs from this one in letter case only")]
    CaseCollision,
}
