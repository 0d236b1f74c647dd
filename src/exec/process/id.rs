//! The names of commands in the background. Pure.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

/// What an id is made of, and of how many.
const DIGITS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH: u32 = 6;

/// The name of a command whose output is in this file. The file's directory has the time in it, and does not
/// count. Each turn gives another.
pub(super) fn nth_id(command: &str, output_file: &Path, turn: u64) -> String {
    let file = output_file.file_name().unwrap_or_default();
    let words = [
        command.as_bytes(),
        file.as_encoded_bytes(),
        &turn.to_be_bytes(),
    ];
    let mut rest = xxh3_64(&words.join(&0));
    let base = DIGITS.len() as u64;
    let digits = (0..ID_LENGTH).map(|_| {
        let digit = usize::try_from(rest % base).unwrap_or_default();
        rest /= base;
        char::from(DIGITS[digit])
    });
    format!("proc_{}", digits.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_of_one_form_and_depend_on_what_is_run_alone() {
        let id = |command, file, turn| nth_id(command, Path::new(file), turn);
        let known = "proc_okr80b";
        assert_eq!(id("npm start", "logs/1/0001-step-output.txt", 0), known);
        assert_eq!(id("npm start", "logs/2/0001-step-output.txt", 0), known);
        for other in [
            id("npm test", "logs/1/0001-step-output.txt", 0),
            id("npm start", "logs/1/0002-step-output.txt", 0),
            id("npm start", "logs/1/0001-step-output.txt", 1),
        ] {
            assert_ne!(other, known);
        }
        for turn in 0..1000 {
            let id = id("x", "y", turn);
            let digits = id.strip_prefix("proc_").unwrap();
            assert_eq!(digits.len(), 6);
            assert!(digits.bytes().all(|digit| DIGITS.contains(&digit)), "{id}");
        }
    }
}
