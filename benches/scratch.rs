//! Measures a scratch tree over a project of 20,000 files: made and removed as an overlay, and with a build in it that
//! does nothing. Goal: 20 ms for the overlay.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark may panic like a test"
)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use code_commit::measured::{BuildScript, ChildEnv, Scratch, ScratchPlace};
use code_commit::{Interrupt, SystemClock};
use criterion::{Criterion, criterion_group, criterion_main};

const FILES: usize = 20_000;

fn scratch(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("project");
    for number in 0..FILES {
        let directory = project.join(format!("{}", number % 200));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(format!("{number}.rs")), "fn main() {}\n").unwrap();
    }
    let script = project.join("build.sh");
    fs::write(&script, "#!/bin/sh\n").unwrap();
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let base: PathBuf = dir.path().join("base");
    fs::create_dir(&base).unwrap();
    let (clock, interrupt) = (SystemClock::start(), Interrupt::never().unwrap());
    let program = PathBuf::from(env!("CARGO_BIN_EXE_code-commit"));
    let place = ScratchPlace {
        program: Some(&program),
        bases: &[base],
        excluded: &["agent-config", "logs"],
        interrupt: &interrupt,
    };
    let mut group = criterion.benchmark_group("scratch");
    group.bench_function("overlay over 20,000 files", |bench| {
        bench.iter(|| Scratch::new(&project, &place).unwrap());
    });
    let (tree, env) = (Scratch::new(&project, &place).unwrap(), ChildEnv::default());
    let build = BuildScript {
        root: &project,
        path: None,
        timeout: Duration::from_mins(1),
        clock: &clock,
        interrupt: &interrupt,
        env: &env,
        sandbox: None,
        scratch: Some(&tree),
    };
    group.bench_function("an empty build in it", |bench| {
        bench.iter(|| build.run(&mut Vec::new()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, scratch);
criterion_main!(benches);
