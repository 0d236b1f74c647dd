//! Trees over a project: builds in them, and their effects on the project.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use code_commit::measured::{
    BuildScript, BuildStatus, ChildEnv, Sandbox, SandboxMode, SandboxPolicy, Scratch,
    ScratchChange, ScratchKind, ScratchPlace,
};
use code_commit::{Exit, Interrupt, SystemClock};

use crate::support::{bubblewrap_works, for_every_user, open_directory, skipped};

/// The variable with the path at which a user without rights may start the program.
const PROGRAM: &str = "PROGRAM_FOR_EVERY_USER";
const EXCLUDED: &[&str] = &["agent-config", "logs"];
/// A link to itself cannot be a mount point, so that nothing is mounted.
const UNMOUNTABLE: &[&str] = &["agent-config", "logs", "loop"];

/// A project, and a directory for the trees over it. Its path contains characters with a meaning in mount options.
struct Place {
    dir: tempfile::TempDir,
    clock: SystemClock,
    interrupt: Interrupt,
}

impl Place {
    fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    fn within(base: &Path) -> Self {
        let dir = tempfile::tempdir_in(base).unwrap();
        let place = Self {
            dir,
            clock: SystemClock::start(),
            interrupt: Interrupt::never().unwrap(),
        };
        for (path, content) in [
            ("a/b/one.txt", "one\n"),
            ("a/b/two.txt", "two\n"),
            ("c/three.txt", "three\n"),
            ("agent-config/key.txt", "key\n"),
            ("logs/log.txt", "log\n"),
        ] {
            let path = place.project().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        symlink("loop", place.project().join("loop")).unwrap();
        fs::create_dir(place.base()).unwrap();
        place.build("true");
        place
    }

    fn project(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(r"a,b:c\d e")
    }

    fn base(&self) -> PathBuf {
        self.dir.path().join("base:,")
    }

    fn build(&self, body: &str) {
        let script = self.project().join("build.sh");
        fs::write(&script, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn scratch(&self, excluded: &'static [&'static str]) -> Scratch {
        let program = program();
        let place = ScratchPlace {
            program: Some(&program),
            bases: &[self.base()],
            excluded,
            interrupt: &self.interrupt,
        };
        Scratch::new(&self.project(), &place).unwrap()
    }

    /// Creates a tree of each kind that is possible here.
    fn trees(&self) -> [Scratch; 2] {
        let trees = [self.scratch(EXCLUDED), self.scratch(UNMOUNTABLE)];
        if trees[0].kind() != ScratchKind::Overlay {
            skipped("no overlay can be mounted here");
        }
        trees
    }

    /// Runs the script in a tree; returns whether it passed, and its output.
    fn run(&self, scratch: &Scratch, sandbox: Option<&Sandbox>) -> (bool, String) {
        let (root, env) = (self.project(), ChildEnv::default());
        let script = BuildScript {
            root: &root,
            path: None,
            timeout: Duration::from_mins(1),
            clock: &self.clock,
            interrupt: &self.interrupt,
            env: &env,
            sandbox,
            scratch: Some(scratch),
        };
        let mut output = Vec::new();
        let report = script.run(&mut output).unwrap();
        let passed = report.status == BuildStatus::Exited(0);
        (passed, String::from_utf8(output).unwrap())
    }

    /// Returns all files of the project, with their modes and times.
    fn state(&self) -> BTreeMap<PathBuf, (u32, SystemTime, Vec<u8>)> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.project()];
        while let Some(directory) = left.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let metadata = path.symlink_metadata().unwrap();
                if metadata.is_dir() {
                    left.push(path);
                } else if metadata.is_file() {
                    let content = fs::read(&path).unwrap();
                    found.insert(
                        path,
                        (metadata.mode(), metadata.modified().unwrap(), content),
                    );
                }
            }
        }
        found
    }
}

fn changes(scratch: &Scratch) -> String {
    let changes = scratch.changes().unwrap();
    let lines = changes.iter().map(|change| {
        let sign = if change.is_gone { '-' } else { '+' };
        format!("{sign}{}", change.path.display())
    });
    lines.collect::<Vec<_>>().join(" ")
}

fn program() -> PathBuf {
    let program = std::env::var_os(PROGRAM);
    program.map_or(env!("CARGO_BIN_EXE_code-commit").into(), PathBuf::from)
}

/// Runs a test of this file again, as a user without rights.
fn as_user(test: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = open_directory();
    let tests = for_every_user(&std::env::current_exe().unwrap(), place.path());
    let run = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(tests)
        .args(["--exact", "--nocapture", test])
        .current_dir(place.path())
        .env(PROGRAM, for_every_user(&program(), place.path()))
        .env("TMPDIR", "/tmp")
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(
        run.status.success() && output.contains("1 passed"),
        "{run:?}"
    );
}

#[test]
fn writes_in_a_tree_leave_the_project_unchanged() {
    as_user("scratch::writes_in_a_tree_leave_the_project_unchanged");
    for place in [Place::new(), Place::within(Path::new("/dev/shm"))] {
        place.build("echo; pwd; cat c/three.txt; rm -r a; mkdir a; echo new > a/new; chmod 700 c/three.txt; ln -s x link");
        let before = place.state();
        for tree in place.trees() {
            assert_eq!(changes(&tree), "");
            let root = tree.working_directory().to_str().unwrap().to_owned();
            let (passed, output) = place.run(&tree, None);
            assert!(passed, "{output}");
            assert_eq!(output, format!("\n{root}\nthree\n"));
            let overlay = tree.kind() == ScratchKind::Overlay;
            assert_eq!(overlay, root == place.project().to_str().unwrap());
            assert_eq!(
                changes(&tree),
                "-a/b/one.txt -a/b/two.txt +a/new +c/three.txt +link"
            );
            assert_eq!(tree.read("a/new").unwrap().unwrap(), b"new\n");
            assert_eq!(tree.read("a/b/one.txt").unwrap(), None);
            assert_eq!(place.state(), before);
        }
        assert_eq!(fs::read_dir(place.base()).unwrap().count(), 0);
    }
}

#[test]
fn files_are_written_and_removed_in_a_tree() {
    as_user("scratch::files_are_written_and_removed_in_a_tree");
    let place = Place::new();
    fs::set_permissions(
        place.project().join("c/three.txt"),
        fs::Permissions::from_mode(0o750),
    )
    .unwrap();
    let outside = place.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    place.build("ls -l c/three.txt | cut -c1-10; cat c/three.txt d/e/new.txt; test ! -e a/b/one.txt; ln -s ../outside out");
    let before = place.state();
    for tree in place.trees() {
        tree.write("c/three.txt", b"changed\n", None).unwrap();
        tree.write("d/e/new.txt", b"new\n", Some(0o600)).unwrap();
        tree.remove("a/b/one.txt").unwrap();
        tree.remove("a/missing/x").unwrap();
        assert_eq!(changes(&tree), "-a/b/one.txt +c/three.txt +d/e/new.txt");
        assert_eq!(tree.read("c/three.txt").unwrap().unwrap(), b"changed\n");
        let expected = (true, "-rwxr-x---\nchanged\nnew\n".to_owned());
        assert_eq!(place.run(&tree, None), expected);
        tree.write("a/b/one.txt", b"again\n", None).unwrap();
        assert_eq!(tree.read("a/b/one.txt").unwrap().unwrap(), b"again\n");
        // A link created by a build is not followed.
        assert!(tree.write("out/x", b"", None).is_err());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert_eq!(place.state(), before);
    }
}

#[test]
fn a_fork_begins_as_its_tree_is_and_leaves_it_so() {
    as_user("scratch::a_fork_begins_as_its_tree_is_and_leaves_it_so");
    let place = Place::new();
    place.build("cat a/b/one.txt; rm c/three.txt; echo built > a/b/two.txt");
    for tree in place.trees() {
        tree.write("a/b/one.txt", b"first\n", None).unwrap();
        tree.remove("a/b/two.txt").unwrap();
        let fork = tree.fork().unwrap();
        assert_eq!(fork.kind(), tree.kind());
        let again = fork.fork().unwrap();
        again.write("a/b/one.txt", b"second\n", None).unwrap();
        assert_eq!(place.run(&again, None), (true, "second\n".to_owned()));
        assert_eq!(place.run(&fork, None), (true, "first\n".to_owned()));
        assert_eq!(changes(&tree), "+a/b/one.txt -a/b/two.txt");
        assert_eq!(changes(&fork), "+a/b/one.txt +a/b/two.txt -c/three.txt");
        // Trees may be dropped in any order.
        drop(tree);
        assert_eq!(fork.read("a/b/one.txt").unwrap().unwrap(), b"first\n");
    }
    assert_eq!(fs::read_dir(place.base()).unwrap().count(), 0);
}

#[test]
fn changes_to_the_project_are_not_changes_of_a_tree() {
    as_user("scratch::changes_to_the_project_are_not_changes_of_a_tree");
    let place = Place::new();
    place.build("test ! -e a/later.txt");
    for tree in place.trees() {
        // The tree remembers that the file is missing.
        assert!(place.run(&tree, None).0);
        let later = place.project().join("a/later.txt");
        fs::write(&later, "theirs\n").unwrap();
        fs::write(place.project().join("c/three.txt"), "theirs\n").unwrap();
        fs::remove_file(place.project().join("a/b/two.txt")).unwrap();
        assert_eq!(changes(&tree), "", "{:?}", tree.kind());
        fs::remove_file(later).unwrap();
        fs::write(place.project().join("a/b/two.txt"), "two\n").unwrap();
    }
}

#[test]
fn links_to_directories_are_links() {
    as_user("scratch::links_to_directories_are_links");
    let place = Place::new();
    place.build("rm -r a; ln -s c a; ln -s . c/up; mv c/three.txt c/four.txt");
    for tree in place.trees() {
        assert!(place.run(&tree, None).0);
        assert_eq!(
            changes(&tree),
            "+a -a/b/one.txt -a/b/two.txt +c/four.txt -c/three.txt +c/up",
            "{:?}",
            tree.kind()
        );
    }
}

#[test]
fn applied_file_replaces_nothing_but_a_file() {
    as_user("scratch::applied_file_replaces_nothing_but_a_file");
    let place = Place::new();
    place.build("echo changed > c/three.txt; ln -s x c/link; mkfifo c/pipe; mkdir -p c/full; echo x > c/full/x; echo x > c/zero.txt");
    for tree in place.trees() {
        let theirs = place.project().join("c/.scratch.three.txt");
        fs::write(&theirs, "theirs\n").unwrap();
        // A directory where the tree has a file.
        fs::create_dir_all(place.project().join("c/zero.txt/full")).unwrap();
        assert!(place.run(&tree, None).0 || tree.kind() == ScratchKind::Overlay);
        let failed = |change: &ScratchChange| tree.bring(change).is_err();
        let failures = tree.changes().unwrap();
        let failures: Vec<_> = failures.into_iter().filter(failed).collect();
        assert!(
            failures
                .iter()
                .all(|change| change.path == Path::new("c/zero.txt"))
        );
        let mut names: Vec<_> = fs::read_dir(place.project().join("c"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            [
                ".scratch.three.txt",
                "full",
                "link",
                "three.txt",
                "zero.txt"
            ]
        );
        assert_eq!(fs::read_to_string(theirs).unwrap(), "theirs\n");
        let brought = fs::read_to_string(place.project().join("c/three.txt")).unwrap();
        assert_eq!(brought, "changed\n");
        fs::remove_dir_all(place.project().join("c")).unwrap();
        fs::create_dir(place.project().join("c")).unwrap();
        fs::write(place.project().join("c/three.txt"), "three\n").unwrap();
    }
}

#[test]
fn a_signal_ends_the_copy_of_a_fork() {
    let place = Place::new();
    let [_, copy] = place.trees();
    place.interrupt.raise();
    let error = copy.fork().unwrap_err();
    assert!(matches!(error.exit(), Exit::Interrupted(_)), "{error}");
}

#[test]
fn a_tree_can_be_kept_beyond_its_end() {
    as_user("scratch::a_tree_can_be_kept_beyond_its_end");
    let place = Place::new();
    for tree in place.trees() {
        tree.write("c/three.txt", b"changed\n", None).unwrap();
        let kept = tree.keep().unwrap();
        drop(tree);
        drop(place.scratch(EXCLUDED));
        assert_eq!(
            fs::read_to_string(kept.join("c/three.txt")).unwrap(),
            "changed\n"
        );
    }
}

#[test]
fn keys_and_logs_are_the_projects_own_where_a_tree_is_mounted() {
    as_user("scratch::keys_and_logs_are_the_projects_own_where_a_tree_is_mounted");
    let place = Place::new();
    place.build("echo more >> logs/log.txt; cat agent-config/key.txt");
    let [mounted, copy] = place.trees();
    assert_eq!(place.run(&mounted, None), (true, "key\n".to_owned()));
    assert_eq!(changes(&mounted), "");
    let log = place.project().join("logs/log.txt");
    assert_eq!(fs::read_to_string(&log).unwrap(), "log\nmore\n");
    assert!(!place.run(&copy, None).0);
    assert_eq!(fs::read_to_string(&log).unwrap(), "log\nmore\n");
}

#[test]
fn a_build_is_sandboxed_in_a_tree_as_in_the_project() {
    if !bubblewrap_works() {
        return;
    }
    as_user("scratch::a_build_is_sandboxed_in_a_tree_as_in_the_project");
    let place = Place::new();
    place.build("pwd; cat agent-config/key.txt 2>/dev/null; echo x > c/three.txt; ls '../base:,'/*; test $PPID = 1");
    let before = place.state();
    for mode in [SandboxMode::Auto, SandboxMode::Strict] {
        for tree in place.trees() {
            let policy = SandboxPolicy {
                root: place.project(),
                keys: place.project().join("agent-config"),
                git: place.project().join(".git"),
                ..SandboxPolicy::default()
            };
            let path = std::env::var_os("PATH");
            let sandbox = Sandbox::find(path.as_deref(), &program(), policy, mode).unwrap();
            let (passed, output) = place.run(&tree, Some(&sandbox));
            assert!(passed, "{output}");
            let expected = format!("{}\n", place.project().display());
            assert!(
                output.starts_with(&expected) && !output.contains("upper"),
                "{mode:?} {output}"
            );
            assert_eq!(changes(&tree), "+c/three.txt");
            assert_eq!(place.state(), before);
        }
    }
}

#[test]
fn a_second_build_in_a_tree_finds_the_times_that_the_first_has_left() {
    let place = Place::new();
    // As with cargo and make, targets newer than their sources are not rebuilt.
    place.build("if [ ! out -nt c/three.txt ]; then echo made; cp c/three.txt out; fi");
    let old = File::options()
        .write(true)
        .open(place.project().join("c/three.txt"))
        .unwrap();
    old.set_modified(SystemTime::now() - Duration::from_mins(1))
        .unwrap();
    for tree in place.trees() {
        for expected in ["made\n", "", ""] {
            assert_eq!(place.run(&tree, None), (true, expected.to_owned()));
        }
        let fork = tree.fork().unwrap();
        assert_eq!(place.run(&fork, None), (true, String::new()));
    }
}

#[test]
fn leftovers_of_a_killed_program_are_removed() {
    let place = Place::new();
    let left = place.base().join("code-commit-scratch.abc/work/work");
    fs::create_dir_all(&left).unwrap();
    fs::set_permissions(&left, fs::Permissions::from_mode(0o0)).unwrap();
    symlink("/", place.base().join("code-commit-scratch.link")).unwrap();
    let [first, second] = place.trees();
    assert!(!left.exists());
    // The tree that is in use is kept.
    assert!(
        first.read("c/three.txt").unwrap().is_some()
            && second.read("c/three.txt").unwrap().is_some()
    );
    drop((first, second));
    assert_eq!(fs::read_dir(place.base()).unwrap().count(), 1);
}
