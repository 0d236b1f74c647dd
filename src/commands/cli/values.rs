//! Parsers for the values of flags. Pure.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::model::FEWEST_TOKENS;
use crate::model::price::Usd;
use crate::run::keys::key_variables;

/// The program's name.
pub(crate) const PROGRAM: &str = "code-commit";

/// The heading for flags that most users never need.
pub(crate) const SELDOM: &str = "Advanced options";

/// Parses an amount such as `0.50` or `$2`.
pub(crate) fn parse_dollars(text: &str) -> Result<Usd, String> {
    let number = text.strip_prefix('$').unwrap_or(text).parse::<f64>().ok();
    let amount = number.and_then(|number| Usd::try_from(number).ok());
    amount.ok_or_else(|| "write it like `0.50`".to_owned())
}

/// Parses a whole number of 0 or more.
pub(crate) fn parse_number<N: FromStr>(text: &str) -> Result<N, String> {
    let wrong = |_| "write a whole number of 0 or more, like `4`".to_owned();
    text.parse().map_err(wrong)
}

/// Parses a number that is not 0.
pub(crate) fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    let wrong = |_| "write a whole number above 0, like `4`".to_owned();
    text.parse().map_err(wrong)
}

/// Parses free text. Rejects a single word that looks like a flag: the text was forgotten, or a script's variable is
/// empty.
pub(crate) fn parse_text(text: &str) -> Result<String, String> {
    let name = text.strip_prefix('-').unwrap_or_default();
    let begins = name.starts_with(|c: char| c == '-' || c.is_ascii_alphabetic());
    if begins && !text.contains(char::is_whitespace) {
        let problem =
            "the text is missing: this looks like a flag; put a blank in front if it is meant";
        return Err(problem.to_owned());
    }
    Ok(text.to_owned())
}

/// Parses a number of tokens such as `16000` or `40k`.
pub(crate) fn parse_tokens(text: &str) -> Result<u64, String> {
    let thousands = text.strip_suffix(['k', 'K']);
    let (number, factor) = thousands.map_or((text, 1), |number| (number, 1000));
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: Option<u64> = number.parse().ok().filter(|_| digits);
    let tokens = number.and_then(|number| number.checked_mul(factor));
    let enough = tokens.filter(|tokens| *tokens >= FEWEST_TOKENS);
    enough.ok_or_else(|| format!("write at least {FEWEST_TOKENS} tokens, like `16000` or `40k`"))
}

/// Converts flags from a file to command-line arguments, each with the name of its flag.
///
/// # Errors
/// Describes the first flag that cannot be converted.
pub(crate) fn flag_words(flags: Map<String, Value>) -> Result<Vec<(String, OsString)>, String> {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let mut words = Vec::new();
    for (name, value) in flags {
        if name.is_empty() || !name.bytes().all(is_part) {
            return Err(format!("`{}` is no name of a flag", name.escape_debug()));
        }
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let word = match value {
                Value::Bool(false) => continue,
                Value::Bool(true) => format!("--{name}"),
                Value::String(text) => format!("--{name}={text}"),
                Value::Number(number) => format!("--{name}={number}"),
                _ => return Err(format!("`{name}` has a value that no flag takes")),
            };
            words.push((name.clone(), word.into()));
        }
    }
    Ok(words)
}

/// Parses the name of an environment variable that may be passed on.
pub(crate) fn parse_variable(name: &str) -> Result<String, String> {
    if key_variables().any(|variable| variable == name) {
        return Err("it holds a key of this program's own, which is never passed".to_owned());
    }
    let is_name = !name.is_empty() && !name.contains('=');
    let named = is_name.then(|| name.to_owned());
    named.ok_or_else(|| "name the variable alone, like `NPM_TOKEN`".to_owned())
}

/// Parses an absolute path.
pub(crate) fn parse_absolute(path: &str) -> Result<PathBuf, String> {
    let found = path.starts_with('/').then(|| PathBuf::from(path));
    found.ok_or_else(|| "write the whole path, from `/` on".to_owned())
}

/// Parses a duration such as `90s`, `30m` or `1h`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    const LONGEST: u64 = 30 * 24 * 3600;
    let form = || "write it like `90s`, `30m` or `1h`".to_owned();
    let mut units = [("s", 1), ("m", 60), ("h", 3600)].into_iter();
    let found = units.find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
    let (number, unit) = found.ok_or_else(form)?;
    // Reject a sign, which `parse` would accept.
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| digits).ok_or_else(form)?;
    match number.checked_mul(unit) {
        Some(0) => Err("it must be longer than nothing".to_owned()),
        Some(seconds) if seconds <= LONGEST => Ok(Duration::from_secs(seconds)),
        _ => Err("it must be at most 30 days, `720h`".to_owned()),
    }
}
