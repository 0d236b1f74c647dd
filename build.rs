//! Links the programs without what they do not need: identical functions are merged, and the tables for unwinding are
//! dropped, because a panic aborts the process. Uses the linker that ships with Rust; if it is missing, or another one
//! is configured, the programs are linked as usual, and are larger. Programs built for tests are linked to start
//! quickly.
//!
//! Writes what `--version` prints; in a release, that includes the commit and the target.
//!
//! Picks the syntaxes that the program colours, a fifth of those in two-face.

#![expect(
    clippy::disallowed_methods,
    reason = "Cargo tells a build script all by its environment, and where to write"
)]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::{Value, json};
use syntect::dumps::dump_to_uncompressed_file;
use syntect::parsing::{SyntaxSet, SyntaxSetBuilder};

const WITHOUT_TABLES: &str =
    "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.eh_frame_hdr) *(.gcc_except_table*) } }
INSERT AFTER .rodata;
";

/// Names of the syntaxes that are kept, including the hidden ones that they embed.
#[rustfmt::skip]
const SYNTAXES: [&str; 58] = [
    PLAIN, "Batch File", "Bourne Again Shell (bash)", "C", "C#", "C++", "CSS", "Clojure", "Dart", "Diff",
    "Dockerfile", "Elixir", "F#", "Fish", "Go", "GraphQL", "Groovy", "HTML", "Haskell", "INI", "JSON", "Java",
    "JavaScript", "Javadoc", "Kotlin", "Lua", "Makefile", "Markdown", "Nix", "PHP", "PHP Source", "Perl",
    "Protocol Buffer", "Protocol Buffer (TEXT)", "Python", "R", "Regular Expression",
    "Regular Expressions (Javascript)", "Regular Expressions (PHP)", "Regular Expressions (Python)", "Ruby", "Rust",
    "SCSS", "SQL", "Sass", "Scala", "Shell-Unix-Generic", "Svelte", "Swift", "TOML", "Terraform", "TypeScript",
    "TypeScriptReact", "Vue Component", "XML", "YAML", "Zig", "commands-builtin-shell-bash",
];
const PLAIN: &str = "Plain Text";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_for = |name, value| env::var(name).is_ok_and(|is| is == value);
    let is_release = is_for("PROFILE", "release");
    let mut version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    if is_release {
        version.extend(commit());
        version += &format!("\ntarget: {}", env::var("TARGET").unwrap_or_default());
    }
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let told = fs::write(folder.join("version.txt"), version);
    assert!(told.is_ok(), "the version cannot be written");
    let picked = syntaxes().map(|set| dump_to_uncompressed_file(&set, folder.join("syntaxes.bin")));
    assert!(
        matches!(picked, Some(Ok(()))),
        "the syntaxes cannot be picked"
    );
    if is_release && is_for("CARGO_CFG_TARGET_OS", "linux") {
        for argument in arguments().unwrap_or_default() {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    } else if is_for("CARGO_CFG_TARGET_ENV", "gnu") && env::var_os("RUSTC_LINKER").is_none() {
        // Tests start the programs thousands of times, and each start would relocate megabytes.
        println!("cargo::rustc-link-arg=-no-pie");
    }
}

/// Returns the set of syntaxes that are kept; `None` if one is missing.
fn syntaxes() -> Option<SyntaxSet> {
    let builder = two_face::syntax::extra_newlines().into_builder();
    let all = builder.syntaxes();
    let is_kept = |name: &str| SYNTAXES.contains(&name);
    let kept: Vec<_> = all.iter().filter(|it| is_kept(&it.name)).collect();
    let index = |name: &str| kept.iter().position(|syntax| syntax.name == name);
    let indexes: Vec<_> = all.iter().map(|syntax| index(&syntax.name)).collect();
    let plain = kept.get(index(PLAIN)?)?;
    let before_main = plain.contexts.keys().filter(|name| name.as_str() < "main");
    let nothing = json!({"syntax_index": index(PLAIN)?, "context_index": before_main.count()});
    let mut few = SyntaxSetBuilder::new();
    for syntax in &kept {
        let mut value = serde_json::to_value(syntax).ok()?;
        relink(&mut value, &indexes, &nothing)?;
        few.add(serde_json::from_value(value).ok()?);
    }
    (kept.len() == SYNTAXES.len()).then(|| few.build())
}

/// Points each reference to a context at the same context in the syntaxes that are kept, or at `nothing` if it was
/// dropped. References are indexes into the list of all syntaxes; `indexes` maps these to the new list.
fn relink(value: &mut Value, indexes: &[Option<usize>], nothing: &Value) -> Option<()> {
    let relink = |value| relink(value, indexes, nothing);
    match value {
        Value::Array(values) => values.iter_mut().try_for_each(relink),
        Value::Object(fields) => {
            let Some(index) = fields.get_mut("syntax_index") else {
                return fields.values_mut().try_for_each(relink);
            };
            match indexes.get(usize::try_from(index.as_u64()?).ok()?)? {
                Some(new) => *index = json!(new),
                None => *value = nothing.clone(),
            }
            Some(())
        }
        _ => Some(()),
    }
}

/// Returns the line that names the commit, if the sources are a git clone.
fn commit() -> Option<String> {
    let moves = Path::new(".git/logs/HEAD");
    moves
        .exists()
        .then(|| println!("cargo::rerun-if-changed={}", moves.display()))?;
    let line = output("git", &["log", "-1", "--format=commit: %H (%cs)"])?;
    Some(format!("\n{line}"))
}

/// Returns the arguments for the linker that ships with Rust, in the form for the C compiler that starts it or, if
/// rustc is configured to start it, for rustc; `None` if it is missing, or another linker is configured.
fn arguments() -> Option<Vec<String>> {
    let script = Path::new(&env::var_os("OUT_DIR")?).join("without-tables.ld");
    fs::write(&script, WITHOUT_TABLES).ok()?;
    let mut options = vec![
        "--icf=all".to_owned(),
        "--no-eh-frame-hdr".to_owned(),
        format!("--script={}", script.display()),
    ];
    if packs_relocations() {
        options.extend(["-z".to_owned(), "pack-relative-relocs".to_owned()]);
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        return (linker == "rust-lld").then_some(options);
    }
    let host = env::var("HOST").ok()?;
    let linker = sysroot()?.join("lib/rustlib").join(host).join("bin/gcc-ld");
    let of_compiler = [format!("-B{}", linker.display()), "-fuse-ld=lld".to_owned()];
    let passed = options.iter().map(|option| format!("-Wl,{option}"));
    let all = of_compiler.into_iter().chain(passed).collect();
    linker.join("ld.lld").exists().then_some(all)
}

/// Returns whether the loader of the program accepts packed relocations, which take a tenth of the space: this
/// machine's glibc from 2.36 on, or musl from 1.2.4 on, which is linked statically and ships with Rust from 1.93 on.
fn packs_relocations() -> bool {
    let is_static = env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|libc| libc == "musl");
    if is_static {
        let asked = env::var_os("RUSTC").and_then(|rustc| output(rustc, &["--version"]));
        return asked.and_then(|version| minor(&version, "rustc 1.")) >= Some(93);
    }
    let asked = output("getconf", &["GNU_LIBC_VERSION"]);
    let minor = asked.and_then(|version| minor(&version, "glibc 2."));
    env::var("HOST") == env::var("TARGET") && minor >= Some(36)
}

/// Returns the number that follows the prefix `beginning` in a version.
fn minor(version: &str, beginning: &str) -> Option<u32> {
    let rest = version.strip_prefix(beginning)?;
    let end = rest.find(|character: char| !character.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// Returns the directory of the Rust toolchain.
fn sysroot() -> Option<PathBuf> {
    let path = output(env::var_os("RUSTC")?, &["--print", "sysroot"])?;
    Some(path.into())
}

/// Runs a command and returns its output without trailing white space; `None` if it fails.
fn output(program: impl AsRef<OsStr>, arguments: &[&str]) -> Option<String> {
    let asked = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(asked.stdout).ok()?;
    asked.status.success().then(|| text.trim_end().to_owned())
}
