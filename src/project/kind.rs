//! Kinds of projects, detected by the files in their root: how to build and test them, and which products git should
//! ignore.
//!
//! Reads file names and manifests. Guarantees that the generated text is this program's own, except for the names of
//! manifests, and that tests are run only if there are any.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sys::excerpt::lossy;
use crate::sys::files::{self, Links, MIB};

/// A kind of project.
pub struct ProjectKind {
    /// Files in the root that identify the kind; the first existing one is reported. `*.py` matches any such name.
    signs: &'static str,
    /// Products of building and testing, as lines of `.gitignore`.
    leaves: &'static str,
    /// Commands that build and test the project.
    commands: fn(&Path) -> String,
}

const fn kind(
    signs: &'static str,
    leaves: &'static str,
    commands: fn(&Path) -> String,
) -> ProjectKind {
    ProjectKind {
        signs,
        leaves,
        commands,
    }
}

/// All kinds. If several match a project, the first determines how it is built.
static KINDS: [ProjectKind; 8] = [
    kind("Cargo.toml", "/target", |_| {
        "cargo build --all-targets\ncargo test".to_owned()
    }),
    // The build does not leave an executable in the root.
    kind("go.mod", "", |_| {
        "go vet ./...\ngo build -o /dev/null ./...\ngo test ./...".to_owned()
    }),
    kind("pom.xml", "/target", |_| {
        "mvn --batch-mode verify".to_owned()
    }),
    kind(
        "gradlew build.gradle build.gradle.kts",
        ".gradle build",
        |root| {
            let is_there = root.join("gradlew").is_file();
            format!("{} build", if is_there { "./gradlew" } else { "gradle" })
        },
    ),
    kind("package.json", "node_modules dist", node),
    kind(
        "pyproject.toml setup.py setup.cfg requirements.txt *.py",
        "__pycache__ .venv .pytest_cache *.egg-info /dist",
        python,
    ),
    kind("CMakeLists.txt", "/build", |_| {
        "cmake -S . -B build\ncmake --build build\nctest --test-dir build --output-on-failure"
            .to_owned()
    }),
    kind("Makefile makefile GNUmakefile", "*.o", make),
];

impl ProjectKind {
    /// Detects the kinds of the project in `root`, each with the name that identifies it.
    pub fn of(root: &Path) -> Vec<(&'static Self, &'static str)> {
        let is_there = |sign: &&str| match sign.strip_prefix('*') {
            Some(end) => {
                files::names(root).is_ok_and(|names| names.iter().any(|name| name.ends_with(end)))
            }
            None => root.join(sign).is_file(),
        };
        let kinds = KINDS
            .iter()
            .filter_map(|kind| Some((kind, kind.signs.split(' ').find(is_there)?)));
        kinds.collect()
    }

    /// Returns the products of building and testing, as lines of `.gitignore`.
    pub fn leaves(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.leaves.split_ascii_whitespace()
    }

    /// Returns the lines of `.gitignore` for the paths that builds of any kind are known to create.
    pub fn ignoring(paths: &BTreeSet<String>) -> impl Iterator<Item = &'static str> {
        let is_for = |line: &str, path: &String| {
            let name = path.rsplit('/').next().unwrap_or_default();
            match (line.strip_prefix('/'), line.strip_prefix('*')) {
                (Some(at_top), _) => path == at_top,
                (None, Some(end)) => name.ends_with(end),
                (None, None) => name == line,
            }
        };
        let leaves = KINDS.iter().flat_map(Self::leaves);
        leaves.filter(move |line| paths.iter().any(|path| is_for(line, path)))
    }

    /// Returns the commands that build and test the project in `root`, as lines of a shell script that stops at the
    /// first failure.
    pub fn commands(&self, root: &Path) -> String {
        (self.commands)(root)
    }
}

/// Runs the scripts in `package.json`, if any; otherwise checks the syntax of all files.
fn node(root: &Path) -> String {
    let json = text(&root.join("package.json"));
    let manifest: Value = serde_json::from_str(&json).unwrap_or_default();
    let script = |name: &str| manifest["scripts"][name].as_str();
    // The test script that `npm init` writes always fails and tests nothing.
    let test = script("test").filter(|test| !test.contains("no test specified"));
    let build = script("build").map(|_| "npm run build");
    let scripts: Vec<&str> = build.into_iter().chain(test.map(|_| "npm test")).collect();
    if scripts.is_empty() {
        return "find . -name node_modules -prune -o -name '*.js' -print0 | xargs -0 -r -n 1 node --check"
            .to_owned();
    }
    scripts.join("\n")
}

/// Checks the syntax of all files and runs the tests, with pytest if they are written for it.
fn python(root: &Path) -> String {
    let mut lines = Vec::new();
    if root.join("src").is_dir() {
        lines.push("export PYTHONPATH=src");
    }
    lines.push("python3 -m compileall -q -x '/(\\.venv|venv|node_modules)/' .");
    let tests = python_tests(root);
    let configured = [
        ("pytest.ini", ""),
        ("pyproject.toml", "[tool.pytest"),
        ("setup.cfg", "[tool:pytest]"),
        ("tox.ini", "[pytest]"),
    ];
    let is_configured = configured.iter().any(|(file, section)| {
        let path = root.join(file);
        path.is_file() && text(&path).contains(section)
    });
    let is_for_pytest = |test: &PathBuf| {
        let is_sign =
            |line: &str| line.starts_with("def test_") || line.starts_with("import pytest");
        text(test).lines().any(is_sign)
    };
    let is_package = |folder: &str| root.join(folder).join("__init__.py").is_file();
    if !tests.is_empty() && (is_configured || tests.iter().any(is_for_pytest)) {
        lines.push("python3 -m pytest");
    } else if let Some(test) = tests.first() {
        // `unittest` does not find tests from the root in a folder that is not a package.
        lines.push(match test.parent().and_then(|folder| folder.file_name()) {
            Some(name) if name == "tests" && !is_package("tests") => {
                "python3 -m unittest discover -s tests"
            }
            Some(name) if name == "test" && !is_package("test") => {
                "python3 -m unittest discover -s test"
            }
            _ => "python3 -m unittest discover",
        });
    }
    lines.join("\n")
}

/// Returns the test files in the root, in `tests` and in `test`.
fn python_tests(root: &Path) -> Vec<PathBuf> {
    let is_test = |name: &String| {
        let stem = name.strip_suffix(".py");
        stem.is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
    };
    let folders = ["", "tests", "test"].map(|folder| root.join(folder));
    let tests = folders.iter().flat_map(|folder| {
        let names = files::names(folder).unwrap_or_default().into_iter();
        names.filter(is_test).map(|name| folder.join(name))
    });
    tests.collect()
}

/// Runs `make`, and its test target if it has one.
fn make(root: &Path) -> String {
    let files = ["GNUmakefile", "makefile", "Makefile"].map(|name| root.join(name));
    let makefile = files.iter().find(|file| file.is_file());
    let rules = makefile.map(|file| text(file)).unwrap_or_default();
    let has = |target: &str| {
        rules.lines().any(|line| match line.split_once(':') {
            // No recipe, comment or variable.
            Some((targets, rest)) if !line.starts_with([' ', '\t']) => {
                let is_rule = !targets.contains(['#', '=', '$']) && !rest.starts_with('=');
                is_rule && targets.split_whitespace().any(|it| it == target)
            }
            _ => false,
        })
    };
    let target = ["test", "check"].into_iter().find(|target| has(target));
    target.map_or("make".to_owned(), |target| format!("make\nmake {target}"))
}

/// Returns a file's text; empty if it cannot be read.
fn text(path: &Path) -> String {
    lossy(files::read(path, Links::Refused, MIB).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_project_is_built_by_what_is_there() {
        let npm_init = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        let compile = "python3 -m compileall -q -x '/(\\.venv|venv|node_modules)/' .";
        for (given, sign, expected) in [
            (
                &[("Cargo.toml", ""), ("Makefile", "")][..],
                "Cargo.toml",
                "cargo build --all-targets\ncargo test".to_owned(),
            ),
            (
                &[("build.gradle", "")],
                "build.gradle",
                "gradle build".into(),
            ),
            (&[("gradlew", "")], "gradlew", "./gradlew build".into()),
            (
                &[("package.json", r#"{"scripts": {"test": "mocha"}}"#)],
                "package.json",
                "npm test".into(),
            ),
            (
                &[(
                    "package.json",
                    r#"{"scripts": {"build": "tsc", "test": "x"}}"#,
                )],
                "package.json",
                "npm run build\nnpm test".into(),
            ),
            (
                &[("package.json", npm_init)],
                "package.json",
                node(Path::new("/nowhere")),
            ),
            (
                &[("pyproject.toml", "[tool.pytest.ini_options]")],
                "pyproject.toml",
                compile.to_owned(),
            ),
            (
                &[("main.py", ""), ("test_main.py", "import unittest\n")],
                "*.py",
                format!("{compile}\npython3 -m unittest discover"),
            ),
            (
                &[
                    ("setup.py", ""),
                    ("src/x.py", ""),
                    ("tests/test_x.py", "class X:\n    pass\n"),
                ],
                "setup.py",
                format!("export PYTHONPATH=src\n{compile}\npython3 -m unittest discover -s tests"),
            ),
            (
                &[
                    ("setup.py", ""),
                    ("tests/__init__.py", ""),
                    ("tests/x_test.py", ""),
                ],
                "setup.py",
                format!("{compile}\npython3 -m unittest discover"),
            ),
            (
                &[("setup.py", ""), ("tests/test_x.py", "def test_x():\n")],
                "setup.py",
                format!("{compile}\npython3 -m pytest"),
            ),
            (
                &[
                    ("setup.py", ""),
                    ("pytest.ini", ""),
                    ("tests/test_x.py", ""),
                ],
                "setup.py",
                format!("{compile}\npython3 -m pytest"),
            ),
            (
                &[("Makefile", "tests := a\nall:\n")],
                "Makefile",
                "make".into(),
            ),
            (
                &[(
                    "Makefile",
                    "all: test\n\ttest: x\n# run test: x\nA = test : x\nx check y: all\n",
                )],
                "Makefile",
                "make\nmake check".into(),
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            for (path, content) in given {
                let path = dir.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            let kinds = ProjectKind::of(dir.path());
            let (kind, found) = kinds[0];
            assert_eq!(found, sign);
            assert_eq!(kind.commands(dir.path()), expected, "{given:?}");
        }
        assert!(ProjectKind::of(Path::new("/nowhere")).is_empty());
    }
}
