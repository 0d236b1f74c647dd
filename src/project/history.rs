//! The messages of earlier commits, with the paths that each touched.
//!
//! Runs git in such a way that it starts no program named by the repository. If git fails, or the repository configures
//! filters or includes other settings, there are no commits.

use std::ffi::OsStr;
use std::path::Path;

use super::ranking::PastCommit;
use super::repository::Repository;
use crate::sys::git::{Git, listing};
use crate::sys::interrupt::{Interrupt, Interrupted};

/// The arguments of git. A commit without parents, such as the last one of a shallow clone, would list all paths, and
/// therefore lists none.
const LOG: &str = "-c log.showRoot=false log --max-count=1000 --no-merges --no-notes --encoding=UTF-8 \
    --format=%x00%B%x00 --name-only -z --no-renames --no-ext-diff --relative";
/// Maximum number of bytes of git's output that are read.
const LARGEST: usize = 64 << 20;

/// Returns the last commits of the repository that contains `root`, without merges, the newest first. Paths are
/// relative to `root`; those outside are left out. `path` is a list of directories in which to look for git.
///
/// # Errors
/// Fails if a signal arrives.
pub fn past_commits(
    root: &Path,
    path: Option<&OsStr>,
    interrupt: &Interrupt,
) -> Result<Vec<PastCommit>, Interrupted> {
    let log = log(root, path, interrupt).unwrap_or_default();
    interrupt.check()?;
    Ok(parse(&log))
}

fn log(root: &Path, path: Option<&OsStr>, interrupt: &Interrupt) -> Option<Vec<u8>> {
    let repository = Repository::of(root).ok()??;
    repository.check_readable().ok()?;
    if repository.may_filter().ok()? {
        return None;
    }
    let command = Git::find(path, root)?.command(root, &LOG.split(' ').collect::<Vec<_>>());
    listing(command, LARGEST, interrupt).ok()
}

/// Parses git's output. Neither messages nor paths have NUL bytes.
fn parse(output: &[u8]) -> Vec<PastCommit> {
    let mut tokens = output.split(|&byte| byte == 0).peekable();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let mut commits = Vec::new();
    // An empty token precedes each message, another one its paths.
    while let (Some(_), Some(message), Some(_)) = (tokens.next(), tokens.next(), tokens.next()) {
        let mut paths = Vec::new();
        while let Some(path) = tokens.next_if(|token| !token.is_empty()) {
            // A line end precedes the first path.
            paths.push(text(&path[usize::from(paths.is_empty())..]));
        }
        let message = text(message);
        commits.push(PastCommit { message, paths });
    }
    commits
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::fs;

    fn path() -> Option<OsString> {
        std::env::var_os("PATH")
    }

    fn run(root: &Path, arguments: &[&str]) {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
        let arguments = [&identity[..], arguments].concat();
        let git = Git::find(path().as_deref(), Path::new("/nowhere")).unwrap();
        let mut command = git.command(root, &arguments);
        assert!(command.status().unwrap().success(), "{arguments:?}");
    }

    fn commit(root: &Path, message: &str, files: &[&str]) {
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, message).unwrap();
        }
        run(root, &["add", "--all"]);
        run(
            root,
            &[
                "commit",
                "--quiet",
                "--allow-empty",
                "--allow-empty-message",
                "-m",
                message,
            ],
        );
    }

    fn found(root: &Path) -> Vec<(String, String)> {
        let commits = past_commits(root, path().as_deref(), Interrupt::leaked());
        let commits = commits.unwrap().into_iter();
        commits
            .map(|commit| (commit.message, commit.paths.join(" ")))
            .collect()
    }

    #[test]
    fn commits_have_their_messages_and_paths() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert!(found(&root).is_empty());
        run(&root, &["init", "--quiet"]);
        assert!(found(&root).is_empty());
        commit(&root, "First", &["a", "sub/b"]);
        commit(&root, "", &["a", "sub/ä"]);
        commit(&root, "Nothing\n\nIn two parts.", &[]);
        commit(&root, "Deep", &["sub/b", "sub/deep/c", "a"]);
        let pairs = |expected: &[(&str, &str)]| {
            let owned = |(message, paths): &(&str, &str)| (message.to_string(), paths.to_string());
            expected.iter().map(owned).collect::<Vec<_>>()
        };
        let all = [
            ("Deep\n", "a sub/b sub/deep/c"),
            ("Nothing\n\nIn two parts.\n", ""),
            ("", "a sub/ä"),
            ("First\n", ""),
        ];
        assert_eq!(found(&root), pairs(&all));
        let below = [
            ("Deep\n", "b deep/c"),
            ("Nothing\n\nIn two parts.\n", ""),
            ("", "ä"),
            ("First\n", ""),
        ];
        assert_eq!(found(&root.join("sub")), pairs(&below));
        let none = past_commits(&root, None, Interrupt::leaked()).unwrap();
        assert!(none.is_empty());
    }

    #[test]
    fn settings_of_the_repository_change_nothing_and_start_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        run(&root, &["init", "--quiet"]);
        commit(&root, "First", &["a.x"]);
        commit(&root, "Second", &["a.x", "b.x"]);
        let expected = found(&root);
        let marker = root.join("started");
        let program = format!("touch {}", marker.display());
        let attributes = "*.x diff=evil \n";
        fs::write(root.join(".gitattributes"), attributes).unwrap();
        let keys = "diff.evil.command diff.evil.textconv diff.external core.pager pager.log core.fsmonitor gpg.program core.sshCommand core.alternateRefsCommand";
        for key in keys.split_whitespace() {
            run(&root, &["config", key, &program]);
        }
        let others = "log.showSignature=true log.showRoot=true log.follow=true log.decorate=full log.diffMerges=on \
            diff.noprefix=true diff.relative=true diff.renames=copies diff.orderFile=.git/pipe format.pretty=oneline \
            i18n.logOutputEncoding=UTF-16 core.quotePath=true log.mailmap=true notes.displayRef=* log.date=human";
        for setting in others.split_whitespace() {
            let (key, value) = setting.split_once('=').unwrap();
            run(&root, &["config", key, value]);
        }
        assert_eq!(found(&root), expected);
        run(&root, &["config", "filter.evil.clean", &program]);
        assert!(found(&root).is_empty());
        assert!(!marker.exists());
    }

    #[test]
    fn of_a_shallow_clone_the_last_commit_touches_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        run(&root, &["init", "--quiet"]);
        for message in ["First", "Second", "Third"] {
            commit(&root, message, &[message]);
        }
        let third = fs::read_to_string(root.join(".git/refs/heads/master"))
            .or_else(|_| fs::read_to_string(root.join(".git/refs/heads/main")))
            .unwrap();
        fs::write(root.join(".git/shallow"), third).unwrap();
        assert_eq!(found(&root), [("Third\n".to_owned(), String::new())]);
        // A repository that git cannot read has no history.
        fs::write(root.join(".git/shallow"), "nonsense\n").unwrap();
        assert!(found(&root).is_empty());
    }
}
