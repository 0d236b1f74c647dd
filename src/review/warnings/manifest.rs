//! The dependencies that manifests name. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::pattern::pattern;
use serde_json::Value as Json;
use toml::{Table, Value as Toml};

/// What kind of manifest a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Rust's `Cargo.toml`.
    Cargo,
    /// `package.json`.
    Npm,
    /// Python's `pyproject.toml`, of whatever tool.
    Pyproject,
    /// pip's `requirements.txt`, and others that are called so.
    Requirements,
    /// `go.mod`.
    Go,
    /// Ruby's `Gemfile`.
    Gemfile,
}

impl Format {
    /// The format of a file, by its name.
    pub fn of(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next()?;
        let is_text = name.rsplit('.').next() == Some("txt");
        Some(match name {
            "Cargo.toml" => Self::Cargo,
            "package.json" => Self::Npm,
            "pyproject.toml" => Self::Pyproject,
            "go.mod" => Self::Go,
            "Gemfile" => Self::Gemfile,
            _ if is_text && name.contains("requirements") => Self::Requirements,
            _ if is_text && path.contains("requirements/") => Self::Requirements,
            _ => return None,
        })
    }
}

/// By their names, and for each from where else than its registry it comes: a directory, a
/// repository, an address.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Dependencies(pub BTreeMap<String, BTreeSet<String>>);

impl Dependencies {
    fn add(&mut self, name: &str, from: Option<&str>) {
        let places = self.0.entry(name.to_owned()).or_default();
        places.extend(from.map(without_user));
    }
}

/// An address less the name and password that may be in it.
fn without_user(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else {
        return address.to_owned();
    };
    let host = rest.find('/').unwrap_or(rest.len());
    let user = rest[..host].rfind('@').map_or(0, |at| at + 1);
    format!("{scheme}://{}", &rest[user..])
}

/// What a manifest depends on. `None` where it cannot be read.
pub fn read(format: Format, text: &str) -> Option<Dependencies> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = Dependencies::default();
    match format {
        Format::Cargo => cargo(&toml::from_str(text).ok()?, &mut found),
        Format::Npm => npm(&serde_json::from_str(text).ok()?, &mut found),
        Format::Pyproject => pyproject(&toml::from_str(text).ok()?, &mut found),
        Format::Requirements => requirements(text, &mut found),
        Format::Go => go(text, &mut found),
        Format::Gemfile => gemfile(text, &mut found),
    }
    Some(found)
}

fn cargo(root: &Table, to: &mut Dependencies) {
    let targets = tables(root.get("target"));
    let workspace = root.get("workspace").and_then(Toml::as_table);
    for holder in [root].into_iter().chain(workspace).chain(targets) {
        for section in [
            "dependencies",
            "dev-dependencies",
            "dev_dependencies",
            "build-dependencies",
            "build_dependencies",
        ] {
            cargo_section(holder.get(section), to);
        }
    }
    // These take a dependency of whomever from elsewhere.
    let patches = root.get("patch").and_then(Toml::as_table);
    for (_, section) in patches.into_iter().flatten() {
        cargo_section(Some(section), to);
    }
    cargo_section(root.get("replace"), to);
}

fn cargo_section(section: Option<&Toml>, to: &mut Dependencies) {
    for (key, value) in section.and_then(Toml::as_table).into_iter().flatten() {
        let text = |name: &str| value.get(name).and_then(Toml::as_str);
        // The keys of `replace` have versions behind the name.
        let name = text("package").unwrap_or(key);
        let name = name.split(':').next().unwrap_or(name);
        let places = ["git", "path", "registry", "registry-index"];
        to.add(name, places.into_iter().find_map(text));
    }
}

/// The tables in a table.
fn tables(of: Option<&Toml>) -> impl Iterator<Item = &Table> {
    let entries = of.and_then(Toml::as_table).into_iter().flatten();
    entries.filter_map(|(_, value)| value.as_table())
}

fn npm(root: &Json, to: &mut Dependencies) {
    for section in [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
    ] {
        let entries = root.get(section).and_then(Json::as_object);
        for (name, version) in entries.into_iter().flatten() {
            let version = version.as_str().unwrap_or_default();
            match version.strip_prefix("npm:") {
                // Another package goes by this name.
                Some(alias) => to.add(without_version(alias), None),
                None => to.add(name, is_place(version).then_some(version)),
            }
        }
    }
}

/// `@scope/name` of `@scope/name@1.2`.
fn without_version(package: &str) -> &str {
    match package.rfind('@') {
        Some(at) if at > 0 => &package[..at],
        _ => package,
    }
}

/// Whether what stands for a version is none, but a directory, an address, or `user/repository`.
fn is_place(version: &str) -> bool {
    let is_version = ["workspace:", "catalog:"]
        .iter()
        .any(|sign| version.starts_with(sign));
    !is_version && version.contains(['/', ':'])
}

fn pyproject(root: &Table, to: &mut Dependencies) {
    let lists = |value: Option<&Toml>, to: &mut Dependencies| {
        for (_, list) in value.and_then(Toml::as_table).into_iter().flatten() {
            python_list(Some(list), to);
        }
    };
    python_list(
        root.get("build-system")
            .and_then(|build| build.get("requires")),
        to,
    );
    if let Some(project) = root.get("project") {
        python_list(project.get("dependencies"), to);
        lists(project.get("optional-dependencies"), to);
    }
    lists(root.get("dependency-groups"), to);
    let Some(tool) = root.get("tool") else { return };
    if let Some(uv) = tool.get("uv") {
        python_list(uv.get("dev-dependencies"), to);
        python_table(uv.get("sources"), to);
    }
    if let Some(poetry) = tool.get("poetry") {
        let groups = tables(poetry.get("group")).map(|group| group.get("dependencies"));
        let own = ["dependencies", "dev-dependencies"].map(|section| poetry.get(section));
        own.into_iter()
            .chain(groups)
            .for_each(|section| python_table(section, to));
    }
}

fn python_list(list: Option<&Toml>, to: &mut Dependencies) {
    let entries = list.and_then(Toml::as_array).into_iter().flatten();
    entries
        .filter_map(Toml::as_str)
        .for_each(|entry| python_requirement(entry, to));
}

/// Names with versions, or tables that say more; several of them, if the platform decides.
fn python_table(table: Option<&Toml>, to: &mut Dependencies) {
    for (name, value) in table.and_then(Toml::as_table).into_iter().flatten() {
        if name == "python" {
            continue;
        }
        let values = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        let mut places = values.iter().filter_map(|value| {
            let text = |key: &str| value.get(key).and_then(Toml::as_str);
            ["git", "path", "url"].into_iter().find_map(text)
        });
        let name = python_name(name);
        to.add(&name, places.next());
        places.for_each(|place| to.add(&name, Some(place)));
    }
}

/// A name, perhaps extras, perhaps an address.
static REQUIREMENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*(?:@\s*(\S+)|[<>=!~;(,]|$)",
    )
});

fn python_requirement(text: &str, to: &mut Dependencies) {
    if let Some(found) = REQUIREMENT.captures(text) {
        to.add(
            &python_name(&found[1]),
            found.get(2).map(|place| place.as_str()),
        );
    }
}

/// Python takes names for equal that differ in case and in these signs.
fn python_name(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

fn requirements(text: &str, to: &mut Dependencies) {
    for line in text.lines() {
        let line = line.split(" #").next().unwrap_or(line).trim();
        let editable = line
            .strip_prefix("-e ")
            .or_else(|| line.strip_prefix("--editable "));
        let place = editable.unwrap_or(line).trim();
        if line.starts_with('#') || (editable.is_none() && line.starts_with('-')) {
            continue;
        }
        if editable.is_some() || place.starts_with(['.', '/']) || is_address(place) {
            let name = place.split_once("#egg=").map(|(_, name)| python_name(name));
            let place = without_user(place);
            to.add(name.as_deref().unwrap_or(&place), Some(&place));
        } else {
            // What is behind the version: hashes, and options for pip.
            python_requirement(place.split(" --").next().unwrap_or(place), to);
        }
    }
}

/// Whether a line begins with an address: not with a name that is taken from one.
fn is_address(line: &str) -> bool {
    let scheme = line.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    })
}

fn go(text: &str, to: &mut Dependencies) {
    let mut block = None;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or(line).trim();
        let (first, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        let (directive, entry) = match block {
            Some(_) if line == ")" => {
                block = None;
                continue;
            }
            Some(directive) => (directive, line),
            None if rest.trim() == "(" => {
                block = Some(first);
                continue;
            }
            None => (first, rest),
        };
        go_entry(directive, entry, to);
    }
}

fn go_entry(directive: &str, entry: &str, to: &mut Dependencies) {
    let Some(name) = entry.split_ascii_whitespace().next() else {
        return;
    };
    match directive {
        "require" => to.add(name, None),
        "replace" => {
            let place = entry.split_once("=>").map(|(_, place)| place.trim());
            to.add(
                name,
                place.and_then(|place| place.split_ascii_whitespace().next()),
            );
        }
        _ => {}
    }
}

static GEM: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^\s*gem[\s(]\s*["']([^"']+)["']"#));

static GEM_PLACE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r#"\b(?:git|path|github|gitlab|bitbucket|gist|source)(?::|["']?\s*=>)\s*["']([^"']+)["']"#,
    )
});

fn gemfile(text: &str, to: &mut Dependencies) {
    for line in text.lines() {
        if let Some(gem) = GEM.captures(line) {
            let place = GEM_PLACE.captures(line);
            let place = place.as_ref().and_then(|place| place.get(1));
            to.add(&gem[1], place.map(|place| place.as_str()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The dependencies as `name` or `name<place`.
    fn names(path: &str, text: &str) -> Vec<String> {
        let found = read(Format::of(path).unwrap(), text).unwrap();
        let show = |(name, places): (String, BTreeSet<String>)| {
            let places = places.iter().map(|place| format!("<{place}"));
            name + &places.collect::<String>()
        };
        found.0.into_iter().map(show).collect()
    }

    #[test]
    fn each_section_of_each_format_is_read() {
        for (path, text, expected) in [
            (
                "a/Cargo.toml",
                r#"
                dependencies.a = "1"
                dependencies.b = { version = "1", package = "real" }
                [dev-dependencies]
                c = { git = "https://x.org/c" }
                [build-dependencies.d]
                path = "../d"
                [target.'cfg(unix)'.dependencies]
                e = { workspace = true }
                [workspace.dependencies]
                f = { version = "1", registry = "own" }
                [patch.crates-io]
                a = { path = "vendor/a" }
                [replace]
                "g:1.0.0" = { git = "https://x.org/g" }
                "#,
                "a<vendor/a c<https://x.org/c d<../d e f<own g<https://x.org/g real",
            ),
            (
                "package.json",
                r#"{"name": "x", "dependencies": {"a": "^1", "b": "npm:@s/real@2", "c": "workspace:*"},
                    "devDependencies": {"d": "github:u/d"}, "peerDependencies": {"e": "1 - 2"},
                    "optionalDependencies": {"f": "file:../f", "g": "u/g", "h": 1}}"#,
                "@s/real a c d<github:u/d e f<file:../f g<u/g h",
            ),
            (
                "pyproject.toml",
                r#"
                [build-system]
                requires = ["setuptools>=1"]
                [project]
                dependencies = ["A_b.c[x,y] >=1,<2; python_version < '3'", "d @ git+https://x.org/d"]
                [project.optional-dependencies]
                x = ["e"]
                [dependency-groups]
                dev = ["f", { include-group = "x" }]
                [tool.uv.sources]
                e = { git = "https://x.org/e" }
                [tool.poetry.dependencies]
                python = "^3"
                g = "^1"
                h = [{ version = "1" }, { url = "https://x.org/h" }]
                [tool.poetry.group.dev.dependencies]
                i = { path = "../i" }
                "#,
                "a-b-c d<git+https://x.org/d e<https://x.org/e f g h<https://x.org/h i<../i setuptools",
            ),
            (
                "dev-requirements.txt",
                "# x\n-r other.txt\n--index-url https://x.org\na==1 # why\nB[c]>=2 --hash=sha256:0\n-e git+https://x.org/d#egg=d\nhttps://x.org/e.whl\n./local\n\n",
                "./local<./local a b d<git+https://x.org/d#egg=d https://x.org/e.whl<https://x.org/e.whl",
            ),
            ("requirements/base.txt", "a\n", "a"),
            (
                "go.mod",
                "module m\n\ngo 1.22\n\nrequire x.org/a v1.0.0\nrequire (\n\tx.org/b v1.0.0 // indirect\n\t// x.org/c v1\n)\nreplace x.org/a => ../a\nreplace (\n\tx.org/b v1.0.0 => y.org/b v1.1.0\n)\n",
                "x.org/a<../a x.org/b<y.org/b",
            ),
            (
                "Gemfile",
                "source 'https://rubygems.org'\ngem 'a'\n  gem \"b\", '~> 1', git: 'https://x.org/b'\n# gem 'c'\ngem('d', :path => '../d')\n",
                "a b<https://x.org/b d<../d",
            ),
        ] {
            assert_eq!(names(path, text).join(" "), expected, "{path}");
        }
    }

    #[test]
    fn what_is_no_manifest_or_broken_is_not_read() {
        for path in [
            "cargo.toml",
            "Cargo.lock",
            "x.txt",
            "requirements.in",
            "",
            "Gemfile.lock",
        ] {
            assert_eq!(Format::of(path), None, "{path}");
        }
        for format in [Format::Cargo, Format::Npm, Format::Pyproject] {
            assert_eq!(read(format, "{["), None);
        }
        // Well-formed, but not what it should be.
        for text in [
            "dependencies = 1",
            "[dependencies]\na = 1",
            "[target]\nx = 1",
            "[tool]\npoetry = 1",
        ] {
            assert!(read(Format::Cargo, text).is_some());
            assert!(read(Format::Pyproject, text).is_some());
        }
        assert!(read(Format::Npm, "[1]").is_some());
    }

    #[test]
    fn no_password_is_told() {
        for (address, expected) in [
            ("https://me:pass@x.org/a@b", "https://x.org/a@b"),
            ("ssh://git@x.org", "ssh://x.org"),
            ("git@x.org:a/b", "git@x.org:a/b"),
            ("../a", "../a"),
        ] {
            assert_eq!(without_user(address), expected);
        }
    }
}
