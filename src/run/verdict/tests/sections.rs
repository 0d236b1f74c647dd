//! Tests of the gate in files of sections and keys, in whatever spelling.

use super::change;
use crate::record::gate::GateChange;
use crate::run::verdict::changed::Changed;

#[test]
fn the_spelling_of_a_key_does_not_hide_that_it_is_the_gates() {
    for (path, after) in [
        ("Cargo.toml", "lib.test = false\n"),
        ("Cargo.toml", "\"lib\" . 'test' = false\n"),
        ("Cargo.toml", "package.autotests = false\n"),
        ("Cargo.toml", "[package]\nautotests = false\n"),
        ("Cargo.toml", "[ lib ]\ntest = false\n"),
        ("Cargo.toml", "[workspace]\nlints.rust.a = \"allow\"\n"),
        (
            "Cargo.toml",
            "[workspace]\nlints = { rust.a = \"allow\" }\n",
        ),
        ("Cargo.toml", "[profile]\ntest = { opt-level = 1 }\n"),
        ("pyproject.toml", "[tool . pytest . ini_options]\na = 1\n"),
        ("pyproject.toml", "[tool.'pytest'.ini_options]\na = 1\n"),
        ("pyproject.toml", "tool . pytest.ini_options.a = 1\n"),
        ("pyproject.toml", "[tool]\npytest = { ini_options = {} }\n"),
        ("pyproject.toml", "[tool.pdm]\nscripts = { a = \"b\" }\n"),
        ("setup.cfg", "[DEFAULT]\nmax-line-length = 1000\n"),
        (".npmrc", "ignore-scripts\n"),
        (".npmrc", "a=b\n script-shell ; = /bin/true\n"),
        (".npmrc", "'script-shell' = /bin/true\n"),
    ] {
        let changes = [change(path, "", after)];
        let changed = Changed::of(&changes, "");
        assert!(changed.has_gate() && !changed.is_unclear(), "{after}");
    }
}

#[test]
fn a_file_that_may_be_read_in_two_ways_is_unclear() {
    for (path, after) in [
        ("Cargo.toml", "lib = { test = false }\n"),
        ("Cargo.toml", "bin = [{ name = \"a\", test = false }]\n"),
        ("Cargo.toml", "package = { autotests = false }\n"),
        ("Cargo.toml", "[lib]\n\"t\\u0065st\" = false\n"),
        ("Cargo.toml", "[\"l\\u0069b\"]\ntest = false\n"),
        ("Cargo.toml", "  [lib]\ntest = false\n"),
        ("Cargo.toml", "[lib]\na = '''\n[b]\n'''\ntest = false\n"),
        ("Cargo.toml", "[lib]\na = [\n[true]\n]\ntest = false\n"),
        ("Cargo.toml", "[lib]\na = [\n[\"b\"]\n]\ntest = false\n"),
        ("pyproject.toml", "['tool'.pytest.ini_options]\na = 1\n"),
        ("pyproject.toml", "tool = { pytest = { a = 1 } }\n"),
        ("pyproject.toml", "[tool]\nhatch = { envs = { a = 1 } }\n"),
        ("setup.cfg", "[metadata]\nname = a\r[flake8]\rignore = E\n"),
        ("setup.cfg", "[metadata]\n[flake8] a\nignore = E\n"),
        ("setup.cfg", "[flake8]\na =\n  [b]\nignore = E\n"),
        (".npmrc", "fund=false\rscript-shell=/bin/true\n"),
        (".npmrc", "\"script\\u002dshell\" = /bin/true\n"),
        (".npmrc", "script${A?}-shell = /bin/true\n"),
        (".npmrc", "a=b\n\u{feff}script-shell=/bin/true\n"),
        ("pnpm-workspace.yaml", "? packages\n: [a]\n"),
        ("pnpm-workspace.yaml", "{packages: [a]}\n"),
        ("pnpm-workspace.yaml", "--- {packages: [a]}\n"),
        ("pnpm-workspace.yaml", " ? packages\n: [a]\n"),
    ] {
        let changes = [change(path, "", after)];
        let changed = Changed::of(&changes, "");
        assert!(changed.is_unclear(), "{after}");
    }
}

#[test]
fn a_common_manifest_is_clear() {
    const CARGO: &str = r#"# A [comment] with `lib = {`, \u0041 and $a.
[package]
name = "a" # [lib]
version.workspace = true
"edition" = "2024"
description = """
A tool: it does [this], and $that. Don't = panic.
* fast
  "quoted\\d"
"""
exclude = [
  "a/*",
"b",
]

[[bin]]
name = "a"

[target."cfg(target_os = \"unix\")".dependencies]
[target.'cfg(any(unix, windows))'.dependencies]
rustix = { version = "1", features = ["fs"] }

[dependencies]
serde = { version = "1", features = [
  "derive",
] }
tokio.workspace = true
[dependencies.regex]
version = "1"

[features]
default = ["std"]
bench = []
full = [
  "std",
  "more"
]

[profile.release]
lto = true
package = { a = 1 }

[lints]
workspace = true
"#;
    const PYTHON: &str = r#"[build-system]
requires = ["hatchling"]

[project]
name = "a"
authors = [
    { name = "A", email = "a@b.c" },
]
dependencies = [
"a>=1",
    "b==2; python_version < '3'",
]
[project.optional-dependencies]
dev = ["pytest"]
[project.scripts]
a = "a:main"
[tool.poetry]
packages = [{ include = "a" }]
[tool.poetry.dependencies]
a = { version = "^1" }
pytest = "*"
[tool.setuptools.packages.find]
where = ["src"]
[tool.black]
exclude = '''
/(
    \.git
  | [ab]
)/
'''
[tool.pylint."messages control"]
disable = ["a"]
[[tool.mypy.overrides]]
module = ["a.*"]
"#;
    const SETUP: &str = "[metadata]\nname = a\nversion: 1\n# b\n; c\n\n[options]\ninstall_requires =\n    mypy\n    a[b]\n    isort>=1\n[options.extras_require]\nmypy = a\ndev =\n    flake8\n[mypy-a.*,b.*]\nignore_missing_imports = True\n";
    const NPM: &str =
        "; a\n# b\n@a:registry=https://b\n//b/:_authToken=${TOKEN}\nsave-exact=true\n";
    const PNPM: &str = "packages:\n  - 'a/*'\n- b\n\ncatalog:\n  \"@a/b\": ^1\ncatalogs: {}\n";
    for (path, text, old, new) in [
        ("Cargo.toml", CARGO, "version = \"1\"", "version = \"2\""),
        ("pyproject.toml", PYTHON, "b==2", "b==3"),
        ("setup.cfg", SETUP, "isort>=1", "isort>=2"),
        (".npmrc", NPM, "https://b", "https://c"),
        ("pnpm-workspace.yaml", PNPM, "^1", "^2"),
    ] {
        for [text, old, new] in [
            [text, old, new].map(str::to_owned),
            [text, old, new].map(|it| it.replace('\n', "\r\n")),
        ] {
            let changes = [change(path, &text, &text.replace(&old, &new))];
            let changed = Changed::of(&changes, "");
            assert!(changed.has_code() && !changed.is_unclear(), "{path}");
            assert_eq!(changed.gate_change(), GateChange::None, "{path}");
        }
    }
}
