//! A wall clock that stands still, as programs under test see it.

use std::process::Command;

use tempfile::TempDir;

use super::skipped;

/// A library for `LD_PRELOAD`.
pub struct StoppedClock {
    dir: TempDir,
}

impl StoppedClock {
    /// Creates a clock that shows this time, in seconds since 1970; `None` if it cannot be built.
    pub fn at(seconds: i64) -> Option<Self> {
        let clock = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let source = clock.dir.path().join("clock.c");
        let code = format!(
            "#define _GNU_SOURCE\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
            int clock_gettime(clockid_t clock, struct timespec *time) {{\n\
            long done = syscall(SYS_clock_gettime, clock, time);\n\
            if (clock == CLOCK_REALTIME) time->tv_sec = {seconds};\n\
            return done; }}\n"
        );
        std::fs::write(&source, code).unwrap();
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o", &clock.library()])
            .arg(&source)
            .status();
        if !compiled.is_ok_and(|status| status.success()) {
            skipped("no C compiler makes a library here");
            return None;
        }
        Some(clock)
    }

    /// Returns the library's path.
    pub fn library(&self) -> String {
        let library = self.dir.path().join("clock.so");
        library.into_os_string().into_string().unwrap()
    }
}
