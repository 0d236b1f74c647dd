//! The modules and layers of `src`, and the imports allowed between them.
//!
//! Reads the tokens of each source file, so that comments and strings do not count; code for tests alone does not count
//! either. An import is a `use`, or a path in the code that begins with `crate`, `super`, `self` or the name of a
//! child; re-exported names lead to their definitions. Within a module, a child may use its parents, of which it is a
//! part. A parent imports a child if it uses the child, even by a name that it re-exports; declaring a child or
//! re-exporting its names is not an import.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;
use std::fs;
use std::iter;
use std::path::Path;
use std::sync::LazyLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The rooms by floor, highest first; the files beside the rooms in `src` have floors too.
const FLOORS: [(u8, &[&str]); 8] = [
    (8, &["main.rs", "bin"]),
    (7, &["lib.rs"]),
    (6, &["commands"]),
    (5, &["agent"]),
    (4, &["run", "ui"]),
    (3, &["record", "edit"]),
    (2, &["project", "model", "exec"]),
    (1, &["secret", "sys"]),
];
const BESIDE_ROOMS: [&str; 3] = ["main.rs", "bin", "lib.rs"];

#[test]
fn every_import_leads_to_a_floor_below() {
    let mut files = BTreeMap::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    collect(&src, "src", &mut files);
    let found = faults(&files);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn there_are_at_most_eight_floors_and_eleven_rooms() {
    let rooms = FLOORS.iter().flat_map(|(_, names)| names.iter());
    let rooms = rooms.filter(|name| !BESIDE_ROOMS.contains(name));
    assert!(FLOORS.len() <= 8 && rooms.count() <= 11);
    assert!(FLOORS.is_sorted_by(|(above, _), (below, _)| above > below));
}

#[test]
fn each_fault_is_reported_by_its_file() {
    for (files, expected) in [
        (
            &[(
                "src/model/x.rs",
                "use crate::{sys::git, record::{Run, a::B}};",
            )][..],
            &["src/model/x.rs imports record, which is above it"][..],
        ),
        (
            &[(
                "src/exec/mod.rs",
                "fn f() { crate::model::ask(|| super::start()) }",
            )],
            &[
                "src/exec/mod.rs imports lib.rs, which is above it",
                "src/exec/mod.rs imports model, which is beside it",
            ],
        ),
        (
            &[(
                "src/sys/a.rs",
                "// crate::ui\nconst A: &str = \"crate::ui\"; #[cfg(test)] mod tests { use crate::ui::X; }",
            )],
            &[],
        ),
        (
            &[("src/lib.rs", "use commands::X;"), ("src/helpers.rs", "")],
            &["src/helpers.rs stands in no room"],
        ),
        (
            &[
                ("src/edit/mod.rs", "mod a; mod b; mod c; pub use c::C;"),
                ("src/edit/a.rs", "use super::b::B;"),
                ("src/edit/b.rs", "use super::C;"),
                ("src/edit/c.rs", "fn c() { crate::edit::a::f() }"),
            ],
            &["circle: src/edit/a.rs -> src/edit/b.rs -> src/edit/c.rs -> src/edit/a.rs"],
        ),
        (
            &[
                ("src/ui/mod.rs", "mod a; mod b; fn f() { a::f() } struct X;"),
                (
                    "src/ui/a.rs",
                    "use super::X; mod part { use super::super::b; }",
                ),
                ("src/ui/b.rs", "use crate::ui::X; #[cfg(test)] mod tests;"),
                (
                    "src/ui/b/tests.rs",
                    "use crate::ui::a; use crate::commands::Y;",
                ),
            ],
            &[],
        ),
        (
            &[
                ("src/ui/a.rs", "mod below; use below::X;"),
                ("src/ui/a/below.rs", "use super::super::b;"),
                ("src/ui/b.rs", "use super::a;"),
            ],
            &["circle: src/ui/a.rs -> src/ui/a/below.rs -> src/ui/b.rs -> src/ui/a.rs"],
        ),
    ] {
        let files = files
            .iter()
            .map(|&(path, text)| (path.to_owned(), text.to_owned()));
        let expected = expected.iter().map(|&fault| fault.to_owned());
        assert_eq!(faults(&files.collect()), expected.collect());
    }
}

/// Collects the sources below `directory`, by their path from the project's root.
fn collect(directory: &Path, name: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{name}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &name, files);
        } else if Path::new(&name).extension().is_some_and(|end| end == "rs") {
            files.insert(name, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

/// Returns the violations in these sources.
fn faults(files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let house = House::of(files);
    let mut faults = BTreeSet::new();
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, source) in &house.sources {
        let room = room(path);
        let Some(own) = floor(room) else {
            faults.insert(format!("{path} stands in no room"));
            continue;
        };
        for import in &source.imports {
            let (to, at) = house.find(&import.path);
            if let Some(other) = floor(to).filter(|&other| to != room && other >= own) {
                let relation = if other == own { "beside" } else { "above" };
                faults.insert(format!("{path} imports {to}, which is {relation} it"));
            }
            // A circle through several rooms has an import that leads upward.
            let Some((target, other)) = at.filter(|_| to == room) else {
                continue;
            };
            let from_below = source.module.starts_with(&other.module);
            let hands_on = import.is_public && other.module.starts_with(&source.module);
            if !from_below && !hands_on {
                arrows.entry(path).or_default().insert(target);
            }
        }
    }
    faults.extend(circles(&arrows));
    faults
}

/// Returns the room of a file, or the file's own name if it is beside the rooms.
fn room(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

fn floor(room: &str) -> Option<u8> {
    let found = FLOORS.iter().find(|(_, names)| names.contains(&room));
    found.map(|(floor, _)| *floor)
}

/// Finds the shortest circle through each file that comes first in its circles.
fn circles(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<String> {
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut circles = Vec::new();
    for start in arrows.keys() {
        if told.contains(start) {
            continue;
        }
        if let Some(circle) = shortest_circle(arrows, start) {
            circles.push(format!("circle: {}", circle.join(" -> ")));
            told.extend(circle);
        }
    }
    circles
}

fn shortest_circle<'a>(
    arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>,
    start: &'a str,
) -> Option<Vec<&'a str>> {
    let mut ways = VecDeque::from([vec![start]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for &next in arrows.get(way.last()?).into_iter().flatten() {
            let longer = [way.as_slice(), &[next]].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    None
}

/// A path of names, from the crate's root.
type Names = Vec<String>;

/// An import of a file.
struct Import {
    path: Names,
    /// True if the import is only re-exported, not used in the file itself.
    is_public: bool,
}

/// A source file.
#[derive(Default)]
struct Source {
    /// The module that the file defines.
    module: Names,
    imports: Vec<Import>,
    /// Names defined elsewhere, with their definitions.
    names: BTreeMap<String, Names>,
    /// The words that paths in the file begin with.
    words: BTreeSet<String>,
    /// Child modules that are compiled for tests only.
    tests: Vec<Names>,
}

/// All sources.
struct House {
    sources: BTreeMap<String, Source>,
    modules: BTreeMap<Names, String>,
}

impl House {
    fn of(files: &BTreeMap<String, String>) -> Self {
        let modules: BTreeMap<Names, String> = files
            .keys()
            .map(|path| (module(path), path.clone()))
            .collect();
        let mut sources: BTreeMap<String, Source> = BTreeMap::new();
        for (path, text) in files {
            let tokens: TokenStream = text.parse().unwrap_or_else(|_| panic!("{path} is no Rust"));
            let mut reader = Reader {
                source: Source {
                    module: module(path),
                    ..Source::default()
                },
                at: module(path),
                modules: &modules,
            };
            reader.read(tokens);
            let mut source = reader.source;
            let used = source.words.iter();
            let used: BTreeSet<_> = used.filter_map(|word| source.names.get(word)).collect();
            for import in &mut source.imports {
                import.is_public &= !used.contains(&import.path);
            }
            sources.insert(path.clone(), source);
        }
        let tests: Vec<Names> = sources
            .values()
            .flat_map(|source| source.tests.clone())
            .collect();
        sources.retain(|_, source| !tests.iter().any(|test| source.module.starts_with(test)));
        Self { sources, modules }
    }

    /// Returns the room that a path leads to, and its file.
    fn find<'h>(&'h self, path: &[String]) -> (&'h str, Option<(&'h str, &'h Source)>) {
        let mut path = path.to_vec();
        // A re-exported name leads to another one; the limit guards against circles.
        for _ in 0..8 {
            let (length, file) = self.file(&path);
            let Some(next) = file
                .and_then(|file| self.sources.get(file))
                .and_then(|source| source.names.get(path.get(length)?))
                .filter(|next| !path.starts_with(next))
            else {
                break;
            };
            path = [next.as_slice(), &path[length + 1..]].concat();
        }
        let (_, file) = self.file(&path);
        let known = FLOORS.iter().flat_map(|(_, names)| names.iter());
        let room = known
            .into_iter()
            .find(|room| path.first().is_some_and(|name| name == *room));
        let at = file.and_then(|file| self.sources.get_key_value(file));
        let at = at.map(|(path, source)| (path.as_str(), source));
        (room.map_or("lib.rs", |room| *room), at)
    }

    /// Returns the file of the innermost module of a path, and how many names lead there.
    fn file(&self, path: &[String]) -> (usize, Option<&str>) {
        let lengths = (0..=path.len()).rev();
        let mut files = lengths.map(|length| (length, self.modules.get(&path[..length])));
        let found = files.find(|(_, file)| file.is_some());
        found.map_or((0, None), |(length, file)| {
            (length, file.map(String::as_str))
        })
    }
}

/// Returns the module that a file defines.
fn module(path: &str) -> Names {
    let names = path.trim_start_matches("src/").trim_end_matches(".rs");
    let names = names
        .split('/')
        .filter(|name| !matches!(*name, "mod" | "lib"));
    names.map(str::to_owned).collect()
}

/// A reader of a file's tokens.
struct Reader<'m> {
    source: Source,
    /// The module being read: the file's own, or an inline one.
    at: Names,
    modules: &'m BTreeMap<Names, String>,
}

impl Reader<'_> {
    fn read(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut next = 0;
        while next < tokens.len() {
            let rest = &tokens[next..];
            next += match (word(rest, 0).as_deref(), &rest[0]) {
                _ if is_for_tests(rest) => self.skip(rest),
                (Some("use"), _) => self.import(rest, next > 0 && is_public(&tokens[..next])),
                (Some("mod"), _) if matches!(rest.get(2), Some(TokenTree::Group(_))) => {
                    self.at.extend(word(rest, 1));
                    self.read_group(&rest[2]);
                    self.at.pop();
                    3
                }
                (Some(_), _) => self.path(rest, next == 0 || begins_path(&tokens[next - 1])),
                (None, group @ TokenTree::Group(_)) => {
                    self.read_group(group);
                    1
                }
                // A word after `::` does not begin a path.
                (None, _) if is_separator(rest) => 2 + usize::from(word(rest, 2).is_some()),
                _ => 1,
            };
        }
    }

    fn read_group(&mut self, group: &TokenTree) {
        if let TokenTree::Group(group) = group {
            self.read(group.stream());
        }
    }

    /// Skips an item that is compiled for tests only.
    fn skip(&mut self, tokens: &[TokenTree]) -> usize {
        let length = item_length(tokens);
        let item = &tokens[..length];
        if let Some(at) = (0..item.len()).find(|at| word(item, *at).as_deref() == Some("mod")) {
            let child = word(item, at + 1);
            self.source
                .tests
                .push(self.at.iter().cloned().chain(child).collect());
        }
        length
    }

    /// Reads a `use` declaration.
    fn import(&mut self, tokens: &[TokenTree], is_public: bool) -> usize {
        let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ';');
        let length = tokens.iter().position(is_end).unwrap_or(tokens.len());
        let mut leaves = Vec::new();
        tree(&tokens[1..length], &[], &mut leaves);
        for (names, name) in leaves {
            if let Some(path) = self.absolute(&names) {
                self.source.names.insert(name, path.clone());
                self.source.imports.push(Import { path, is_public });
            }
        }
        length
    }

    /// Reads a path in the code.
    fn path(&mut self, tokens: &[TokenTree], begins: bool) -> usize {
        let mut names = Vec::new();
        let mut length = 0;
        while let Some(name) = word(tokens, length) {
            names.push(name);
            length += 1;
            if !is_separator(&tokens[length..]) || word(tokens, length + 2).is_none() {
                break;
            }
            length += 2;
        }
        if begins {
            self.source.words.insert(names[0].clone());
        }
        if names.len() > 1
            && let Some(path) = self.absolute(&names)
        {
            self.source.imports.push(Import {
                path,
                is_public: false,
            });
        }
        length
    }

    /// Returns the path from the crate's root, if it leads into the crate.
    fn absolute(&self, names: &[String]) -> Option<Names> {
        let child = |name: &str| {
            let child: Names = self
                .source
                .module
                .iter()
                .cloned()
                .chain([name.to_owned()])
                .collect();
            self.modules.contains_key(&child).then_some(child)
        };
        let (first, rest) = names.split_first()?;
        let (mut path, mut rest) = match first.as_str() {
            "crate" => (Names::new(), rest),
            "self" => (self.at.clone(), rest),
            "super" => (self.at.clone(), names),
            name => (child(name)?, rest),
        };
        while rest.first().is_some_and(|name| name == "super") {
            path.pop();
            rest = &rest[1..];
        }
        path.extend(rest.iter().filter(|name| *name != "self").cloned());
        Some(path)
    }
}

/// Collects the paths of a `use`, each with the name that it introduces.
fn tree(tokens: &[TokenTree], before: &[String], leaves: &mut Vec<(Names, String)>) {
    let mut path = before.to_vec();
    let mut at = 0;
    let mut name = None;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Ident(ident) if ident == "as" => {
                name = word(tokens, at + 1);
                at += 1;
            }
            TokenTree::Ident(ident) => path.push(ident.to_string()),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma =
                    |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
                let parts = inner.split(is_comma).filter(|part| !part.is_empty());
                parts.for_each(|part| tree(part, &path, leaves));
                return;
            }
            _ => {}
        }
        at += 1;
    }
    let last = path.iter().rfind(|name| *name != "self").cloned();
    leaves.extend(name.or(last).map(|name| (path, name)));
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

fn is_separator(tokens: &[TokenTree]) -> bool {
    let colon = |at| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(0) && colon(1)
}

/// Returns whether a path can follow this token; methods, fields, and names being defined are not paths.
fn begins_path(before: &TokenTree) -> bool {
    match before {
        TokenTree::Punct(punct) => punct.as_char() != '.',
        TokenTree::Ident(ident) => ident != "fn" && ident != "mod",
        _ => true,
    }
}

/// Returns whether `pub` comes right before, with or without a restriction.
fn is_public(before: &[TokenTree]) -> bool {
    let bounds = matches!(before.last(), Some(TokenTree::Group(_)));
    let at = before.len().checked_sub(1 + usize::from(bounds));
    at.is_some_and(|at| word(before, at).as_deref() == Some("pub"))
}

/// Returns whether these tokens begin with an attribute like `#[cfg(test)]`.
fn is_for_tests(tokens: &[TokenTree]) -> bool {
    match tokens {
        [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] if hash.as_char() == '#' => {
            let attribute = attribute.stream().to_string().replace(' ', "");
            attribute.starts_with("cfg(test") || attribute.starts_with("cfg(all(test")
        }
        _ => false,
    }
}

/// Returns the number of tokens in the first item.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_use = (0..tokens.len().min(8)).any(|at| word(tokens, at).as_deref() == Some("use"));
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(punct) => punct.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !is_use,
        _ => false,
    };
    let end = tokens.iter().position(ends);
    end.map_or(tokens.len(), |end| end + 1)
}

/// Clippy's list of methods does not apply to the tests as a whole, since they open files.
#[test]
fn nobody_changes_the_current_directory() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeMap::new();
    for folder in ["src", "tests", "benches"] {
        collect(&root.join(folder), folder, &mut files);
    }
    let changing = concat!("set_current", "_dir");
    let found = files.iter().filter(|(_, text)| text.contains(changing));
    assert_eq!(found.map(|(path, _)| path).collect::<Vec<_>>(), [""; 0]);
}

/// The programs that are started, and who chooses them, are listed in `docs/safety.md`.
#[test]
fn programs_are_started_where_the_documents_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeMap::new();
    collect(&root.join("src"), "src", &mut files);
    let starts = |text: &str| {
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let waits = [".output()", ".status()"]
            .iter()
            .any(|call| code.contains(call));
        code.contains(concat!("Command", "::new("))
            || code.contains(".spawn()")
            || code.contains(".command(") && waits
    };
    let is_test = |path: &str| path.contains("/tests/") || path.ends_with("tests.rs");
    let started = files
        .iter()
        .filter(|(path, text)| !is_test(path) && starts(text));
    let started: BTreeSet<&str> = started.map(|(path, _)| path.as_str()).collect();
    let page = fs::read_to_string(root.join("docs/safety.md")).unwrap();
    let rows = page
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(", in `src/"));
    let told = rows.flat_map(|row| row.split('`').filter(|word| word.starts_with("src/")));
    assert_eq!(told.collect::<BTreeSet<_>>(), started);
}

/// All files of `src`.
static FILES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let mut files = BTreeMap::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    collect(&src, "src", &mut files);
    files
});
static HOUSE: LazyLock<House> = LazyLock::new(|| House::of(&FILES));

/// The maximum number of lines of code in `src`. A commit that raises it says why.
const MAX_LINES: usize = 81_946;

#[test]
fn the_house_has_no_more_lines_than_it_may() {
    let paths = HOUSE.sources.keys();
    let lines: usize = paths.map(|path| lines_of_code(&FILES[path])).sum();
    assert!(lines <= MAX_LINES, "{lines} lines of code in `src`");
}

/// Words that make an indirect question of a doc comment, which begins with a noun or a verb.
const QUESTIONS: [&str; 4] = ["What", "Whether", "Whose", "How"];

#[test]
fn a_doc_comment_begins_with_no_question() {
    let found: Vec<_> = FILES
        .iter()
        .flat_map(|(path, text)| {
            let questions = questions(text).into_iter();
            questions.map(move |line| format!("{path}: {line}"))
        })
        .collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// Modules that are imported by modules below them, and import some of these. Entries are removed once fixed, and
/// none is added.
const BOTH_WAYS: &[&str] = &[];

#[test]
fn a_module_is_imported_by_its_children_or_imports_them() {
    assert_known(&both_ways(&HOUSE), BOTH_WAYS, &());
}

/// Folders in which files or folders form a circle. No entry is added.
const FOLDERS_WITH_CIRCLES: &[&str] = &[];

#[test]
fn no_folders_form_a_circle() {
    let found = folder_circles(&HOUSE);
    let folders = found.keys().cloned().collect();
    assert_known(&folders, FOLDERS_WITH_CIRCLES, &found);
}

/// Rooms and files that may name `ui`.
const MAY_NAME_UI: [&str; 4] = ["ui", "commands", "lib.rs", "main.rs"];
/// Files elsewhere that name `ui`. No entry is added.
const NAMING_UI: &[&str] = &[];

#[test]
fn nothing_but_commands_names_the_screen() {
    assert_known(&naming_ui(&HOUSE), NAMING_UI, &());
}

/// The folders of `commands` that are systems: those with flags beside an action.
static SYSTEMS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
    let folder =
        |path: &'static String| path.strip_prefix("src/commands/")?.strip_suffix("/args.rs");
    let folders = FILES.keys().filter_map(folder);
    let is_system = |name: &&str| FILES.contains_key(&format!("src/commands/{name}/command.rs"));
    folders.filter(is_system).collect()
});
/// The stems of other words for them.
const STEMS: [&str; 3] = ["fleet", "orchestrat", "planner"];
/// The rooms that must not name any of them.
const SHARED_ROOMS: [&str; 2] = ["agent", "run"];
/// Folders and files of these rooms that name a system. No entry is added. The story of a run shows two fields of
/// `result.json` that the contract calls `orchestration`: the report and the settings.
const NAMING_SYSTEMS: &[&str] = &["src/run/past/story/overview.rs"];

#[test]
fn shared_rooms_name_no_system() {
    let sources = HOUSE.sources.keys();
    let found = sources.filter_map(|path| naming_system(path, &FILES[path]));
    assert_known(&found.collect(), NAMING_SYSTEMS, &());
}

/// Files that know a system from outside its folder. A sixth system has to change the first and the third, and
/// `project/home.rs`, where the homes of all are.
const KNOWING_SYSTEMS: &[&str] = &[
    "src/commands/command.rs",
    "src/commands/command_line.rs",
    "src/commands/dispatch.rs",
    "src/commands/fleet/check.rs",
];

#[test]
fn a_system_is_known_by_few_files_outside_its_folder() {
    let system = |path: &str| {
        let folder = path.strip_prefix("src/commands/")?.split('/').next()?;
        SYSTEMS.get(folder).copied()
    };
    let arrows = HOUSE.arrows().into_iter();
    let known = arrows.filter(|(from, to)| system(to).is_some() && system(from) != system(to));
    let found = known.map(|(from, _)| from.to_owned()).collect();
    assert_known(&found, KNOWING_SYSTEMS, &());
}

/// Fails if there is a fault that is not listed, or a listed one has been fixed; `more` is shown then.
fn assert_known(found: &BTreeSet<String>, known: &[&str], more: &impl Debug) {
    let known = names(known);
    let new: Vec<_> = found.difference(&known).collect();
    let mended: Vec<_> = known.difference(found).collect();
    assert!(
        new.is_empty() && mended.is_empty(),
        "new: {new:#?}\nmended, so take them from the list: {mended:#?}\n{more:#?}"
    );
}

#[test]
fn imports_of_children_and_of_parents_are_distinguished() {
    for (files, expected) in [
        (
            &[
                ("src/ui/mod.rs", "mod a; mod b; pub use a::A; use b::B;"),
                ("src/ui/a.rs", ""),
                ("src/ui/b.rs", "use super::A;"),
            ][..],
            &[][..],
        ),
        (
            &[
                (
                    "src/ui/mod.rs",
                    "mod a; pub use a::{A, b}; fn b() { x.b() } struct X;",
                ),
                ("src/ui/a.rs", "use super::X;"),
            ],
            &[],
        ),
        (
            &[
                (
                    "src/ui/mod.rs",
                    "mod a; pub use a::A; fn f() { A::new() } struct X;",
                ),
                ("src/ui/a.rs", "use super::X;"),
            ],
            &["src/ui/mod.rs"],
        ),
        (
            &[
                ("src/ui/mod.rs", "mod a; mod b; fn f() { a::f() }"),
                ("src/ui/a.rs", ""),
                ("src/ui/b.rs", "mod c;"),
                ("src/ui/b/c.rs", "use crate::ui::f;"),
            ],
            &["src/ui/mod.rs"],
        ),
        (
            &[
                ("src/ui/a.rs", "mod b; use b::B; struct A;"),
                ("src/ui/a/b.rs", "#[cfg(test)] mod tests;"),
                ("src/ui/a/b/tests.rs", "use crate::ui::a::A;"),
            ],
            &[],
        ),
    ] {
        assert_eq!(both_ways(&house(files)), names(expected));
    }
}

#[test]
fn circles_of_folders_are_found_where_no_files_form_any() {
    let mut files = vec![
        ("src/ui/mod.rs", "mod a; mod b;"),
        ("src/ui/a.rs", "mod one; mod two;"),
        ("src/ui/a/one.rs", "use crate::ui::b::three::C;"),
        ("src/ui/a/two.rs", ""),
        ("src/ui/b.rs", "mod three; mod four;"),
        ("src/ui/b/three.rs", ""),
        ("src/ui/b/four.rs", ""),
    ];
    assert_eq!(folder_circles(&house(&files)), BTreeMap::new());
    files[6].1 = "use crate::ui::a::two::B;";
    let expected = [("src/ui".to_owned(), vec!["circle: a -> b -> a".to_owned()])];
    assert_eq!(folder_circles(&house(&files)), expected.into());
    assert_eq!(faults(&texts(&files)), names(&[]));
}

#[test]
fn the_screen_is_named_by_a_path() {
    let files = [
        ("src/ui/mod.rs", "pub fn paint() {}"),
        ("src/record/mod.rs", "fn ui() { let ui = \"crate::ui\"; }"),
        ("src/agent/mod.rs", "fn f() { crate::ui::paint() }"),
        ("src/commands/mod.rs", "use crate::ui;"),
    ];
    assert_eq!(naming_ui(&house(&files)), names(&["src/agent/mod.rs"]));
}

#[test]
fn a_system_is_named_by_a_file_a_word_or_a_text() {
    for (path, text, expected) in [
        (
            "src/agent/a.rs",
            "fn planned() { \"/dev/null\" } // chat",
            None,
        ),
        (
            "src/agent/a.rs",
            "const A: &str = \"the plan: `less /dev/null` in a chat, DEVELOP_MODE\";",
            None,
        ),
        (
            "src/agent/a.rs",
            "const A: &str = \"see `code-commit chat login`\";",
            Some("src/agent/a.rs"),
        ),
        (
            "src/agent/a.rs",
            "const A: &str = \"run code-commit dev\";",
            Some("src/agent/a.rs"),
        ),
        (
            "src/run/a.rs",
            "fn f() { g(\"unset DEV_AGENT_KEY\") }",
            Some("src/run/a.rs"),
        ),
        ("src/agent/a.rs", "#[cfg(test)] fn chat() {}", None),
        (
            "src/agent/a.rs",
            "struct ChatStore;",
            Some("src/agent/a.rs"),
        ),
        ("src/agent/a.rs", "fn of_plan() {}", Some("src/agent/a.rs")),
        ("src/run/a.rs", "x.orchestration", Some("src/run/a.rs")),
        ("src/run/a.rs", "struct FleetLog;", Some("src/run/a.rs")),
        ("src/run/planners.rs", "", Some("src/run/planners.rs")),
        (
            "src/run/a.rs",
            "const A: &str = \"dev\";",
            Some("src/run/a.rs"),
        ),
        ("src/run/dev/b/c.rs", "", Some("src/run/dev")),
        ("src/run/plan.rs", "", Some("src/run/plan.rs")),
        ("src/commands/plan.rs", "fn chat() {}", None),
    ] {
        let expected = expected.map(str::to_owned);
        assert_eq!(naming_system(path, text), expected, "{path}: {text}");
    }
}

#[test]
fn lines_of_code_are_those_with_a_token_of_the_program() {
    for (text, expected) in [
        ("", 0),
        ("// a\n\n/* b\nc */\n", 0),
        ("//! a\n\n/// b\nstruct A; // c\n", 1),
        ("#[doc = \"a\"]\n#[must_use]\nfn f() {\n\n}\n", 3),
        ("const A: &str = \"a\n\n// b\";\n", 2),
        (
            "fn f() {}\n#[cfg(test)]\nuse a::{\n    b,\n};\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn f() {}\n}\n",
            1,
        ),
    ] {
        assert_eq!(lines_of_code(text), expected, "{text}");
    }
}

/// Builds a house of these files.
fn house(files: &[(&str, &str)]) -> House {
    House::of(&texts(files))
}

fn texts(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let files = files.iter();
    files
        .map(|&(path, text)| (path.to_owned(), text.to_owned()))
        .collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

impl House {
    /// Returns the imports between files, without those that are only re-exported.
    fn arrows(&self) -> BTreeSet<(&str, &str)> {
        let mut arrows = BTreeSet::new();
        for (path, source) in &self.sources {
            for import in &source.imports {
                let Some((target, other)) = self.find(&import.path).1 else {
                    continue;
                };
                let hands_on = import.is_public && other.module.starts_with(&source.module);
                if target != path && !hands_on {
                    arrows.insert((path.as_str(), target));
                }
            }
        }
        arrows
    }

    fn is_below(&self, path: &str, above: &str) -> bool {
        let module = |path| &self.sources[path].module;
        module(path).starts_with(module(above))
    }
}

/// Returns the files that import modules below them and are imported by such modules.
fn both_ways(house: &House) -> BTreeSet<String> {
    let arrows = house.arrows();
    let imported = arrows.iter().filter(|(from, to)| house.is_below(from, to));
    let imported: BTreeSet<&str> = imported.map(|(_, to)| *to).collect();
    let importing = arrows.iter().filter(|(from, to)| house.is_below(to, from));
    let both = importing.filter(|(from, _)| imported.contains(from));
    both.map(|(from, _)| (*from).to_owned()).collect()
}

/// Returns the circles among the entries of each folder: files, and folders with all their contents.
fn folder_circles(house: &House) -> BTreeMap<String, Vec<String>> {
    let mut folders: BTreeMap<&[String], BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (from, to) in house.arrows() {
        let (from, to) = (&house.sources[from].module, &house.sources[to].module);
        let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
        if let (Some(one), Some(other)) = (from.get(shared), to.get(shared)) {
            let arrows = folders.entry(&from[..shared]).or_default();
            arrows.entry(one).or_default().insert(other);
        }
    }
    let found = folders.iter().map(|(folder, arrows)| {
        let path: Vec<&str> = ["src"]
            .into_iter()
            .chain(folder.iter().map(String::as_str))
            .collect();
        (path.join("/"), circles(arrows))
    });
    found.filter(|(_, circles)| !circles.is_empty()).collect()
}

/// Returns the files outside of [`MAY_NAME_UI`] that import `ui`.
fn naming_ui(house: &House) -> BTreeSet<String> {
    let others = house
        .sources
        .iter()
        .filter(|(path, _)| !MAY_NAME_UI.contains(&room(path)));
    let naming = others.filter(|(_, source)| {
        let mut imports = source.imports.iter();
        imports.any(|import| house.find(&import.path).0 == "ui")
    });
    naming.map(|(path, _)| path.clone()).collect()
}

/// Returns the folder or file of a shared room if it names a system: by its own name, an identifier, or a string.
fn naming_system(path: &str, text: &str) -> Option<String> {
    if !SHARED_ROOMS.contains(&room(path)) {
        return None;
    }
    let parts: Vec<&str> = path.split('/').collect();
    let is_system =
        |name: &str| SYSTEMS.contains(name) || STEMS.iter().any(|stem| name.starts_with(stem));
    if let Some(at) = (2..parts.len()).find(|at| is_system(parts[*at].trim_end_matches(".rs"))) {
        return Some(parts[..=at].join("/"));
    }
    let mut names_one = false;
    each_token(text.parse().unwrap(), &mut |token| match token {
        TokenTree::Ident(ident) => {
            names_one |= words(&ident.to_string()).any(|word| is_system(&word));
        }
        TokenTree::Literal(literal) => {
            names_one |= texts_code(&literal.to_string()).any(|word| is_system(&word));
        }
        _ => {}
    });
    names_one.then(|| path.to_owned())
}

/// Returns the words of a literal that are code, not English: the whole literal, words in backticks, the word after
/// `code-commit`, and the parts of variables' names.
fn texts_code(literal: &str) -> impl Iterator<Item = String> {
    let whole = [literal.trim_matches('"')].into_iter();
    let in_backticks = literal.split('`').skip(1).step_by(2);
    let commands = literal.split("code-commit ").skip(1);
    let commands =
        commands.filter_map(|rest| rest.split(|letter: char| !letter.is_alphanumeric()).next());
    let is_in_name = |letter: char| letter.is_ascii_uppercase() || letter == '_';
    let variables = literal.split(move |letter| !is_in_name(letter));
    let variables = variables.filter(|name| name.contains('_')).flat_map(words);
    let code = whole
        .chain(in_backticks.flat_map(str::split_whitespace))
        .chain(commands);
    code.map(str::to_owned).chain(variables)
}

/// Splits an identifier in any case into words in lower case.
fn words(identifier: &str) -> impl Iterator<Item = String> {
    let mut spaced = String::new();
    for (at, letter) in identifier.char_indices() {
        let before = identifier[..at].chars().next_back();
        if letter.is_uppercase() && before.is_some_and(char::is_lowercase) {
            spaced.push('_');
        }
        spaced.extend(letter.to_lowercase());
    }
    let words: Vec<String> = spaced.split('_').map(str::to_owned).collect();
    words.into_iter()
}

/// Returns the doc comments that begin with a question; a flag's help, which is shown on the command line, may do so.
fn questions(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = iter::once("")
        .chain(text.lines().map(str::trim_start))
        .collect();
    let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let asks = |line: &str| {
        let first = line[3..].split_whitespace().next();
        first.is_some_and(|word| QUESTIONS.contains(&word))
    };
    let is_help = |at: usize| {
        let item = lines[at..].iter().find(|line| !is_doc(line));
        item.is_some_and(|line| line.starts_with("#[arg("))
    };
    let first_lines = (1..lines.len()).filter(|at| is_doc(lines[*at]) && !is_doc(lines[at - 1]));
    let found = first_lines.filter(|at| asks(lines[*at]) && !is_help(*at));
    found.map(|at| lines[at]).collect()
}

#[test]
fn a_question_is_found_where_a_comment_begins() {
    let text = "//! What it does.\n//! How.\n\n    /// Whether it is.\n    /// More.\n    is: bool,\n\
                /// What to do\n#[arg(long)]\n/// Whatever. How is this?\n// What now?\nfn f() {}\n";
    assert_eq!(questions(text), ["//! What it does.", "/// Whether it is."]);
}

/// Counts the lines of code, without comments, blank lines and anything compiled for tests only.
fn lines_of_code(text: &str) -> usize {
    let mut marked = BTreeSet::new();
    each_token(text.parse().unwrap(), &mut |token| {
        let ends = match token {
            TokenTree::Group(group) => [group.span_open(), group.span_close()],
            token => [token.span(); 2],
        };
        for span in ends {
            marked.extend(span.start().line..=span.end().line);
        }
    });
    let lines = (1..).zip(text.lines());
    let code = lines.filter(|(at, line)| marked.contains(at) && !line.trim().is_empty());
    code.count()
}

/// Visits the program's tokens, without comments and anything compiled for tests only.
fn each_token(tokens: TokenStream, visit: &mut impl FnMut(&TokenTree)) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut next = 0;
    while let Some(token) = tokens.get(next) {
        let rest = &tokens[next..];
        if is_for_tests(rest) {
            next += item_length(rest);
        } else if let Some(length) = doc_comment_length(rest) {
            next += length;
        } else {
            visit(token);
            if let TokenTree::Group(group) = token {
                each_token(group.stream(), visit);
            }
            next += 1;
        }
    }
}

/// Returns the number of tokens of the doc comment that begins here, which the compiler treats as an attribute.
fn doc_comment_length(tokens: &[TokenTree]) -> Option<usize> {
    let is_mark = |at: usize, mark| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == mark);
    let at = 1 + usize::from(is_mark(1, '!'));
    let is_doc = match tokens.get(at) {
        Some(TokenTree::Group(attribute)) => {
            let inner: Vec<TokenTree> = attribute.stream().into_iter().collect();
            word(&inner, 0).as_deref() == Some("doc") && inner.len() == 3
        }
        _ => false,
    };
    (is_mark(0, '#') && is_doc).then_some(at + 1)
}
