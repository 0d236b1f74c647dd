//! Rules for engines: the exit codes after which to restart a task, in each engine's own syntax. Pure.

use clap::ValueEnum;
use serde_json::json;

use crate::run::outcome::Outcome;
use crate::sys::exit::{Exit, REQUEUED};

/// Number of retries of a task that may succeed later.
pub const RETRIES: u32 = 2;

/// An engine that starts tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// Kubernetes, with an Indexed Job.
    Kubernetes,
    /// GitLab CI.
    Gitlab,
    /// GitHub Actions.
    Actions,
    /// Slurm, with a job array.
    Slurm,
}

/// Returns the rules for an engine, in the format of the engine's configuration.
pub fn policy(engine: Engine) -> Outcome {
    let mut last = Exit::failures();
    last.retain(|code| !REQUEUED.contains(code));
    let template = match engine {
        Engine::Kubernetes => include_str!("policy/kubernetes.txt"),
        Engine::Gitlab => include_str!("policy/gitlab.txt"),
        Engine::Actions => include_str!("policy/actions.txt"),
        Engine::Slurm => include_str!("policy/slurm.txt"),
    };
    let text = template
        .replace("@REQUEUED@", &joined(&REQUEUED, ", "))
        .replace("@PATTERN@", &joined(&REQUEUED, "|"))
        .replace("@FINAL@", &joined(&last, ", "))
        .replace("@RETRIES@", &RETRIES.to_string());
    let json = json!({"schema": 1, "requeued": REQUEUED, "final": last, "retries": RETRIES, "policy": text});
    Outcome::shown(text, json)
}

fn joined(codes: &[u8], by: &str) -> String {
    let codes: Vec<_> = codes.iter().map(u8::to_string).collect();
    codes.join(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_tries_the_same_codes_again_and_nothing_is_left_to_fill_in() {
        for (engine, rule) in [
            (Engine::Kubernetes, "values: [1, 2, 3, 5, 129, 130, 143]\n"),
            (Engine::Gitlab, "exit_codes: [4, 6]\n"),
            (Engine::Actions, "    4|6) ["),
            (Engine::Slurm, "  4|6)\n"),
        ] {
            let outcome = policy(engine);
            let text = outcome.output.text.unwrap();
            assert!(text.contains(rule), "{text}");
            let is_filled = |word: &str| !word.starts_with('@') || !word.ends_with('@');
            assert!(text.split([' ', '[', ']', '\n']).all(is_filled), "{text}");
            assert_eq!(outcome.data.unwrap()["requeued"], json!([4, 6]));
        }
    }
}
