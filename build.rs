//! Has the programs linked without what they do not need: functions that are the same as others, and the tables for
//! unwinding, as a panic ends the process. Takes the linker that comes with Rust; where that is not there, or another
//! one is asked for, they are linked as usual, and larger.
//!
//! Tells a release what `--version` says of it: the commit, and the target.

#![expect(
    clippy::disallowed_methods,
    reason = "Cargo tells a build script all by its environment, and where to write"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const WITHOUT_TABLES: &str =
    "SECTIONS { /DISCARD/ : { *(.eh_frame) *(.eh_frame_hdr) *(.gcc_except_table*) } }
INSERT AFTER .rodata;
";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_for = |name, value| env::var(name).is_ok_and(|is| is == value);
    let is_release = is_for("PROFILE", "release");
    let mut version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    if is_release {
        version.extend(commit());
        version += &format!("\ntarget: {}", env::var("TARGET").unwrap_or_default());
    }
    let told = env::var_os("OUT_DIR")
        .map(|folder| fs::write(Path::new(&folder).join("version.txt"), version));
    assert!(
        matches!(told, Some(Ok(()))),
        "the version cannot be written"
    );
    if is_release && is_for("CARGO_CFG_TARGET_OS", "linux") {
        for argument in arguments().unwrap_or_default() {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}

/// A line that names the commit, if the sources are a clone of their own.
fn commit() -> Option<String> {
    let moves = Path::new(".git/logs/HEAD");
    moves
        .exists()
        .then(|| println!("cargo::rerun-if-changed={}", moves.display()))?;
    let asked = Command::new("git")
        .args(["log", "-1", "--format=%ncommit: %H (%cs)"])
        .output();
    let asked = asked.ok().filter(|asked| asked.status.success())?;
    Some(String::from_utf8_lossy(&asked.stdout).trim_end().to_owned())
}

/// The arguments of the linker that comes with Rust, started by the C compiler or, where it is configured, by rustc;
/// `None` where it is not there, or another one is configured.
fn arguments() -> Option<Vec<String>> {
    let script = Path::new(&env::var_os("OUT_DIR")?).join("without-tables.ld");
    fs::write(&script, WITHOUT_TABLES).ok()?;
    let mut options = vec![
        "--icf=all".to_owned(),
        "--no-eh-frame-hdr".to_owned(),
        format!("--script={}", script.display()),
    ];
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        return (linker == "rust-lld").then_some(options);
    }
    let host = env::var("HOST").ok()?;
    let linker = sysroot()?.join("lib/rustlib").join(host).join("bin/gcc-ld");
    if packs_relocations() {
        options.extend(["-z".to_owned(), "pack-relative-relocs".to_owned()]);
    }
    let of_compiler = [format!("-B{}", linker.display()), "-fuse-ld=lld".to_owned()];
    let passed = options.iter().map(|option| format!("-Wl,{option}"));
    let all = of_compiler.into_iter().chain(passed).collect();
    linker.join("ld.lld").exists().then_some(all)
}

/// Returns whether the program is for this machine, and its loader takes packed relocations, as glibc does from 2.36 on:
/// a tenth of the program's size.
fn packs_relocations() -> bool {
    let asked = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let version = asked.map_or(Vec::new(), |asked| asked.stdout);
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let minor = version.strip_prefix("glibc 2.").map(str::parse::<u32>);
    env::var("HOST") == env::var("TARGET") && matches!(minor, Some(Ok(36..)))
}

/// The folder of the Rust toolchain.
fn sysroot() -> Option<PathBuf> {
    let asked = Command::new(env::var_os("RUSTC")?)
        .args(["--print", "sysroot"])
        .output();
    let path = String::from_utf8(asked.ok()?.stdout).ok()?;
    Some(path.trim_end().into())
}
