//! Finds the files that differ from git's index or are not in it, which `git status` lists as changed or untracked.
//!
//! Reads the index, ignore rules and files without starting git. Considers only regular files below the root, and a
//! limited number of them. Staged changes, which are in the index, are listed by git itself.

use std::collections::{BTreeSet, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path};

use bstr::ByteSlice as _;
use gix_index::Entry;
use gix_index::entry::{Flags, Mode};
use gix_index::hash::{Kind, ObjectId, hasher};

use super::index::for_each_below;
use super::problem::ProjectProblem;
use super::repository::{DOT_GIT, Repository};
use super::walk::{self, EntryKind};
use crate::sys::files::{self, Links, MIB};
use crate::sys::git::{Git, listing};
use crate::sys::interrupt::Interrupt;

/// Maximum number of bytes of git's output.
const LARGEST_OUTPUT: usize = 64 << 20;
/// Maximum size in bytes of a file whose content is compared. Larger files are judged by size and time only.
const LARGEST: u64 = 64 * MIB;

/// Lists the files below `root`, a path with links resolved, that differ from git's index or are untracked, formatted
/// like `git status --short` and sorted by path.
///
/// # Errors
/// Fails if there is no repository or its index cannot be read.
pub fn dirty(root: &Path) -> Result<Vec<String>, ProjectProblem> {
    let (mut tracked, mut found) = (HashSet::new(), Vec::new());
    let has_modes = has_modes(root);
    for_each_below(root, |path, entry, kind| {
        if let Some(mark) = difference(root, &path, entry, kind, has_modes) {
            found.push((path.clone(), mark));
        }
        tracked.insert(path);
    })?;
    let untracked = untracked(root, &tracked).into_iter();
    found.extend(untracked.map(|path| (path, "??")));
    // A file in conflict has several entries.
    found.sort();
    found.dedup();
    let line = |(path, mark)| format!("{mark} {path}");
    Ok(found.into_iter().map(line).collect())
}

/// Returns the `paths` below `root`, a path with links resolved, whose tracked files differ from git's index, or whose
/// index entries differ from the last commit. Without git, or before the first commit, only the index is compared.
///
/// # Errors
/// Fails if there is no repository or its index cannot be read.
pub fn changed(
    root: &Path,
    paths: &BTreeSet<&str>,
    git: Option<&Git>,
    interrupt: &Interrupt,
) -> Result<Vec<String>, ProjectProblem> {
    let mut found = BTreeSet::new();
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let has_modes = has_modes(root);
    for_each_below(root, |path, entry, kind| {
        let differs = || difference(root, &path, entry, kind, has_modes).is_some();
        if paths.contains(&*path) && differs() {
            found.insert(path);
        }
    })?;
    for line in staged(root, git, Some("HEAD"), interrupt).unwrap_or_default() {
        let path = line.split_once("  ").map(|(_, path)| path);
        found.extend(path.filter(|path| paths.contains(path)).map(str::to_owned));
    }
    Ok(found.into_iter().collect())
}

/// Lists the files below `root` whose entries in git's index differ from `commit`, by default the last one, or all
/// entries before the first commit. They are formatted like `git status --short`. Git starts no filters for this.
///
/// # Errors
/// Fails with a message if git cannot be run or fails, or a signal arrives.
pub fn staged(
    root: &Path,
    git: Option<&Git>,
    commit: Option<&str>,
    interrupt: &Interrupt,
) -> Result<Vec<String>, String> {
    let repository = Repository::of(root).map_err(|error| error.to_string())?;
    let readable = repository.map_or(Ok(()), |repository| repository.check_readable());
    readable.map_err(|error| error.to_string())?;
    let options = "diff --cached --relative --name-status --no-renames --no-ext-diff -z";
    let words: Vec<&str> = options.split(' ').chain(commit).collect();
    let git = git.ok_or("git is not installed")?;
    let output = listing(git.command(root, &words), LARGEST_OUTPUT, interrupt);
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output);
    let fields: Vec<&str> = text.split_terminator('\0').collect();
    Ok(fields.chunks(2).map(|pair| pair.join("  ")).collect())
}

/// Returns the status mark of a tracked file or a nested repository; `None` if it is unchanged.
fn difference(
    root: &Path,
    path: &str,
    entry: &Entry,
    kind: Kind,
    has_modes: bool,
) -> Option<&'static str> {
    let is_file = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE);
    let is_repository = entry.mode == Mode::COMMIT;
    let is_left_out = entry
        .flags
        .intersects(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID);
    let mut names = Path::new(path).components();
    // Paths in an index are not validated.
    let is_plain = names.all(|name| matches!(name, Component::Normal(_)));
    if !(is_file || is_repository) || is_left_out || !is_plain {
        return None;
    }
    let file = root.join(path);
    let parent = file.parent().and_then(|parent| parent.canonicalize().ok());
    let is_inside = parent.is_some_and(|parent| parent.starts_with(root));
    match file.symlink_metadata() {
        Ok(found) if is_repository && found.is_dir() && is_inside => {
            // A repository that was not fetched is an empty directory.
            file.join(DOT_GIT).symlink_metadata().ok()?;
            let head = Repository::at(&file).ok().and_then(|inner| inner.head());
            if head != Some(entry.id.to_string()) {
                return Some(" M");
            }
            let is_clean = dirty(&file).is_ok_and(|files| files.is_empty());
            (!is_clean).then_some(" m")
        }
        Ok(found) if is_file && found.is_file() && is_inside => {
            let is_program = found.mode() & 0o100 != 0;
            let has_mode = !has_modes || is_program == (entry.mode == Mode::FILE_EXECUTABLE);
            let is_same = is_same(&found, entry) || has_content(&file, &found, &entry.id, kind);
            (!is_same || !has_mode).then_some(" M")
        }
        Ok(_) => Some(" M"),
        Err(_) => Some(" D"),
    }
}

/// Returns whether git compares the files' modes: it does unless `core.fileMode` says no.
fn has_modes(root: &Path) -> bool {
    let repository = Repository::of(root).ok().flatten();
    let config = repository.and_then(|repository| repository.config().ok());
    let says = config.and_then(|config| config.boolean("core.fileMode").ok()?);
    says.unwrap_or(true)
}

/// Returns whether a file's time and size match the index, which stores only the low bits of each.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "git truncates them, too"
)]
fn is_same(found: &Metadata, entry: &Entry) -> bool {
    let time = entry.stat.mtime;
    found.len() as u32 == entry.stat.size
        && found.mtime() as u32 == time.secs
        && (time.nsecs == 0 || found.mtime_nsec() as u32 == time.nsecs)
}

/// Returns whether the file has the content recorded in the index, which may have `\n` where a text has `\r\n`: git's
/// conversion of line ends can be set in files outside the repository. Content that a filter has changed counts as
/// different.
fn has_content(file: &Path, found: &Metadata, id: &ObjectId, kind: Kind) -> bool {
    let read = || files::read(file, Links::Refused, LARGEST).ok();
    let Some(content) = (found.len() <= LARGEST).then(read).flatten() else {
        return false;
    };
    let is_recorded = |content: &[u8]| {
        let mut hasher = hasher(kind);
        hasher.update(format!("blob {}\0", content.len()).as_bytes());
        hasher.update(content);
        hasher.try_finalize().is_ok_and(|hash| hash == *id)
    };
    let may_be_converted = content.contains_str("\r\n") && !content.contains(&0);
    is_recorded(&content) || may_be_converted && is_recorded(&content.replace("\r\n", "\n"))
}

/// Returns the files that git neither tracks nor ignores.
fn untracked(root: &Path, tracked: &HashSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    walk::each_in_project(root, |path, kind| {
        let is_new = !tracked.contains(&path);
        if kind != EntryKind::Directory {
            found.extend(Some(path).filter(|_| is_new));
            return false;
        }
        // A nested repository is listed as a single entry.
        let is_another = root.join(&path).join(DOT_GIT).symlink_metadata().is_ok();
        if is_new && is_another {
            found.push(path + "/");
        }
        is_new && !is_another
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use duct::cmd;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn git(root: &Path, arguments: &[&str]) {
        cmd("git", arguments)
            .dir(root)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .run()
            .unwrap();
    }

    fn commit(root: &Path, options: &[&str]) {
        let fixed = "-c user.name=a -c user.email=a@b commit -qm a".split(' ');
        git(
            root,
            &fixed.chain(options.iter().copied()).collect::<Vec<_>>(),
        );
    }

    #[test]
    fn changes_against_the_index_are_found_without_git() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("project");
        assert!(matches!(dirty(&top), Err(ProjectProblem::NoRepository)));
        fs::create_dir_all(root.join("src")).unwrap();
        for path in [
            "same", "changed", "longer", "gone", "touched", "link", "src/a",
        ] {
            fs::write(root.join(path), "one\n").unwrap();
        }
        fs::write(root.join(".gitignore"), "*.log\n/target/\n").unwrap();
        git(&top, &["init", "-q"]);
        git(&top, &["add", "--all"]);
        assert_eq!(dirty(&root).unwrap(), [""; 0]);
        let later = std::time::SystemTime::now() + std::time::Duration::from_mins(1);
        let write = |path: &str, content: &str| {
            fs::write(root.join(path), content).unwrap();
            let file = fs::File::options().append(true).open(root.join(path));
            file.unwrap().set_modified(later).unwrap();
        };
        write("changed", "two\n");
        write("longer", "three\n");
        write("touched", "one\n");
        write("src/new", "x");
        write("a.log", "x");
        fs::remove_file(root.join("gone")).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        std::os::unix::fs::symlink("same", root.join("link")).unwrap();
        fs::create_dir_all(root.join("target/x")).unwrap();
        fs::write(root.join("target/x/y"), "x").unwrap();
        fs::create_dir_all(root.join("nested/.git")).unwrap();
        assert_eq!(
            dirty(&root).unwrap(),
            [
                " M changed",
                " D gone",
                " M link",
                " M longer",
                "?? nested/",
                "?? src/new"
            ]
        );
        let asked = ["changed", "gone", "same", "src/new", "touched"].into();
        assert_eq!(
            changed(&root, &asked, None, Interrupt::leaked()).unwrap(),
            ["changed", "gone"]
        );
        let path = std::env::var_os("PATH");
        let found = Git::find(path.as_deref(), &root);
        let finds = || changed(&root, &asked, found.as_ref(), Interrupt::leaked()).unwrap();
        assert_eq!(finds(), ["changed", "gone"], "there is no commit");
        commit(&top, &[]);
        git(&root, &["add", "changed", "src/new"]);
        assert_eq!(finds(), ["changed", "gone", "src/new"]);
    }

    #[test]
    fn converted_line_ends_count_as_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let file = root.join("a.txt");
        let rewrite = |content: &str, secs: u64| {
            fs::write(&file, content).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(secs);
            let opened = fs::File::options().append(true).open(&file);
            opened.unwrap().set_modified(time).unwrap();
        };
        git(&root, &["init", "-q"]);
        fs::write(root.join(".gitattributes"), "*.txt eol=crlf\n").unwrap();
        rewrite("a\r\nb\r\n", 1);
        git(&root, &["add", "--all"]);
        rewrite("a\r\nb\r\n", 2);
        assert_eq!(dirty(&root).unwrap(), [""; 0]);
        rewrite("a\r\nc\r\n", 3);
        assert_eq!(dirty(&root).unwrap(), [" M a.txt"]);
    }

    #[test]
    fn a_mode_and_another_repositorys_content_count_as_for_git() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let inner = root.join("inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(root.join("a"), "one\n").unwrap();
        fs::write(inner.join("b"), "one\n").unwrap();
        for top in [&inner, &root] {
            git(top, &["init", "-q"]);
            git(top, &["-c", "advice.addEmbeddedRepo=false", "add", "--all"]);
            commit(top, &[]);
        }
        assert_eq!(dirty(&root).unwrap(), [""; 0]);
        let mode = |bits| fs::set_permissions(root.join("a"), fs::Permissions::from_mode(bits));
        mode(0o755).unwrap();
        fs::write(inner.join("b"), "other\n").unwrap();
        assert_eq!(dirty(&root).unwrap(), [" M a", " m inner"]);
        fs::write(inner.join("b"), "one\n").unwrap();
        commit(&inner, &["--allow-empty"]);
        for pack in [
            &["status"][..],
            &["pack-refs", "--all"],
            &["checkout", "-q", "--detach"],
        ] {
            git(&inner, pack);
            assert_eq!(dirty(&root).unwrap(), [" M a", " M inner"], "{pack:?}");
        }
        git(&inner, &["checkout", "-q", "HEAD~"]);
        assert_eq!(dirty(&root).unwrap(), [" M a"]);
        fs::write(inner.join(".git/index"), "none").unwrap();
        assert_eq!(dirty(&root).unwrap(), [" M a", " m inner"]);
        git(&root, &["config", "core.fileMode", "false"]);
        fs::remove_dir_all(&inner).unwrap();
        assert_eq!(dirty(&root).unwrap(), [" D inner"]);
    }
}
