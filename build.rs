//! Has the programs linked without what they do not need: functions that are the same as others, and the tables for
//! unwinding, as a panic ends the process. Takes the linker that comes with Rust; where that is not there, they are
//! linked as usual, and larger.

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
    if is_for("PROFILE", "release") && is_for("CARGO_CFG_TARGET_OS", "linux") {
        for argument in arguments().unwrap_or_default() {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}

/// The arguments of the linker, if it is there.
fn arguments() -> Option<Vec<String>> {
    let host = env::var("HOST").ok()?;
    let linker = sysroot()?.join("lib/rustlib").join(host).join("bin/gcc-ld");
    let script = Path::new(&env::var_os("OUT_DIR")?).join("without-tables.ld");
    fs::write(&script, WITHOUT_TABLES).ok()?;
    let mut arguments = vec![
        format!("-B{}", linker.display()),
        "-fuse-ld=lld".to_owned(),
        "-Wl,--icf=all".to_owned(),
        "-Wl,--no-eh-frame-hdr".to_owned(),
        format!("-Wl,-T,{}", script.display()),
    ];
    if packs_relocations() {
        arguments.push("-Wl,-z,pack-relative-relocs".to_owned());
    }
    linker.join("ld.lld").exists().then_some(arguments)
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
