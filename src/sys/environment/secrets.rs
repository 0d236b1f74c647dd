//! Decides which variables hold a secret, and which texts to search for to find it. Pure.
//!
//! One rule covers names, by their last words, and one covers values that are URLs with a password. Guarantees that
//! the texts are unlikely to occur by chance, and that their size is limited.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Endings of the last word in a secret's name: `NPM_TOKEN`, `PGPASSWORD`, `npm_config__authToken`.
const ENDINGS: &str = "TOKEN SECRET PASSWORD PASSWD PASSPHRASE CREDENTIAL APIKEY AUTHKEY SECRETKEY PRIVATEKEY ACCESSKEY";
/// Complete last words of a secret's name. As endings, they would match other words: `KEY` would match `MONKEY`.
const WORDS: [&str; 3] = ["KEY", "AUTH", "PASS"];
/// Last word that counts only after another word: `MYSQL_PWD`, unlike `PWD`.
const LATER_WORD: &str = "PWD";
/// Words that may follow, because they name the secret's form: `DOCKER_AUTH_CONFIG`, `SECRET_KEY_BASE`.
const FORMS: [&str; 7] = ["CONFIG", "JSON", "BASE64", "B64", "PEM", "BASE", "VALUE"];

/// Minimum length in bytes of a value to search for. Shorter ones would occur by chance.
pub const SHORTEST_SECRET: usize = 8;
/// Minimum length of a value that consists only of letters and may be a word: `password`, `production`.
const SHORTEST_OF_LETTERS: usize = 12;
/// Minimum length of a part of a value, which may be anything.
const SHORTEST_PART: usize = 16;
/// Maximum length of a value that is searched for as a whole. No token is longer, and longer texts cost memory.
const LONGEST_SECRET: usize = 4096;
/// Length in bytes of the beginning of a value from which parts are taken.
const LONGEST_IN_PARTS: usize = 8192;

/// Returns the texts to search for if the whole query of a URL is secret, whatever its fields are called: the query,
/// and the value of each field.
pub fn query_secrets(url: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let fields = query.split('&').filter_map(|field| field.split_once('='));
    let values = fields.flat_map(|(_, value)| {
        std::iter::once(Cow::Borrowed(value)).chain(percent_decode_str(value).decode_utf8().ok())
    });
    let all = std::iter::once(Cow::Borrowed(query)).chain(values);
    all.filter(|secret| is_distinctive(secret))
}

/// Returns whether a variable holds a secret.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    is_secret_name(name) || password(value).is_some()
}

/// Returns the texts to search for to find such a variable's value: the whole value, its password if it is a URL, and
/// its parts if it has several, like the lines of a private key or the fields of a service account's JSON.
pub(super) fn searched(value: &str) -> Vec<Cow<'_, str>> {
    let value = value.trim();
    let mut found = vec![Cow::Borrowed(value)];
    if let Some(password) = password(value) {
        found.push(Cow::Borrowed(password));
        found.extend(percent_decode_str(password).decode_utf8());
    }
    found.retain(|secret| is_distinctive(secret));
    found.extend(parts(value).map(Cow::Borrowed));
    found
}

fn is_secret_name(name: &str) -> bool {
    // Names a git setting; the value is in another variable.
    if name.starts_with("GIT_CONFIG_KEY_") {
        return false;
    }
    let words = words(name);
    let is_form = |word: &&String| FORMS.contains(&word.as_str());
    let behind = words.iter().rev().take_while(is_form).count();
    let Some((last, before)) = words[..words.len() - behind].split_last() else {
        return false;
    };
    ENDINGS.split(' ').any(|ending| last.ends_with(ending))
        || WORDS.contains(&last.as_str())
        || last == LATER_WORD && !before.is_empty()
}

/// Splits a name into words, in capitals, singular and without trailing digits.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut after_small = false;
    for c in name.chars() {
        if after_small && c.is_ascii_uppercase() {
            spaced.push(' ');
        }
        after_small = c.is_ascii_lowercase();
        spaced.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    let capitals = spaced.to_ascii_uppercase();
    let word = |word: &str| {
        if FORMS.contains(&word) || WORDS.contains(&word) {
            return word.to_owned();
        }
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        word.strip_suffix('S').unwrap_or(word).to_owned()
    };
    let words = capitals.split_whitespace().map(word);
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the password of a value that is a URL, found after the user name or in the query.
fn password(value: &str) -> Option<&str> {
    let (scheme, rest) = value.trim().split_once("://")?;
    if scheme.is_empty() || value.trim().contains(char::is_whitespace) {
        return None;
    }
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split(['/', '#']).next().unwrap_or_default();
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let behind_user = user.and_then(|user| user.split_once(':'));
    let mut fields = query
        .split(['&', '#'])
        .filter_map(|field| field.split_once('='));
    let in_query = || fields.find(|(name, _)| is_secret_name(name));
    let found = behind_user.or_else(in_query).map(|(_, password)| password);
    found.filter(|password| !password.is_empty())
}

/// Returns the distinctive parts of a composite value, excluding words, plain numbers and URLs, which are not secret.
fn parts(value: &str) -> impl Iterator<Item = &str> {
    let is_telling = move |part: &&str| {
        part.len() >= SHORTEST_PART
            && part.len() < value.len()
            && part.bytes().any(|byte| byte.is_ascii_digit())
            && part.bytes().any(|byte| byte.is_ascii_alphabetic())
            && !part.contains("://")
    };
    // JSON writes a line end as two characters.
    let lines = value[..value.floor_char_boundary(LONGEST_IN_PARTS)].split("\\n");
    let parts = lines.flat_map(|line| line.split([' ', '\t', '\r', '\n', '"', '\'', ',', ';']));
    parts.filter(is_telling)
}

/// Returns whether a value is unlikely to occur by chance.
fn is_distinctive(value: &str) -> bool {
    let shortest = if value.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        SHORTEST_OF_LETTERS
    } else {
        SHORTEST_SECRET
    };
    (shortest..=LONGEST_SECRET).contains(&value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_reported_by_the_last_words_of_its_variables_name() {
        for name in [
            "TOKEN",
            "NPM_TOKEN",
            "GITHUB_TOKENS",
            "TOKEN_2",
            "TOKEN2",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PWD",
            "db_passwd",
            "DB_PASS",
            "GPG_PASSPHRASE",
            "X_SECRET",
            "SSH_KEY",
            "SIGNING_KEY_BASE64",
            "apiKey",
            "AWS_CREDENTIALS",
            "GCP_CREDENTIALS_JSON",
            "DOCKER_AUTH_CONFIG",
            "SECRET_KEY_BASE",
            "X_SECRETKEY",
            "X_PRIVATEKEY",
            "X_ACCESSKEY",
            "TOKEN_VALUE",
            "npm_config__auth",
            "npm_config__authToken",
            "npm_config_//registry.example/:_authToken",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "SSH_AUTH_SOCK",
            "SSH_ASKPASS",
            "GIT_CONFIG_KEY_0",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD",
            "MONKEY",
            "MONKEYS",
            "TOKEN_URL",
            "DATABASE",
            "API_BASE",
            "VALUE",
            "GPG_TTY",
            "PATH",
            "PWD",
            "OLDPWD",
            "COMPASS",
            "AUTHOR",
            "CONFIG",
            "2",
            "",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_url_with_a_password_is_a_secret_and_so_is_the_password() {
        for (value, expected) in [
            ("postgres://app:s%40cret-1@db:5432/x", Some("s%40cret-1")),
            ("redis://:only-1-password@cache", Some("only-1-password")),
            (
                "jdbc:mysql://db/x?user=a&password=p4ssw0rd&ssl=1",
                Some("p4ssw0rd"),
            ),
            ("http://host:8080/@scope/pkg", None),
            ("https://example.com/?q=a:b@c", None),
            ("https://user@example.com/", None),
            ("see http://a:b@c", None),
            ("a:b@c", None),
        ] {
            assert_eq!(password(value), expected, "{value}");
            assert_eq!(is_secret("DATABASE_URL", value), expected.is_some());
        }
        let value = "postgres://app:s%40cret-1@db:5432/x";
        assert_eq!(searched(value), [value, "s%40cret-1", "s@cret-1"]);
    }

    #[test]
    fn a_query_is_looked_for_as_a_whole_and_by_its_values() {
        for (url, expected) in [
            ("https://host/sse", &[][..]),
            ("https://host/sse?a=1", &[]),
            (
                "https://host/sse?code=s%40cret-1&mode=fast",
                &["code=s%40cret-1&mode=fast", "s%40cret-1", "s@cret-1"],
            ),
        ] {
            let mut found: Vec<_> = query_secrets(url).collect();
            found.dedup();
            assert_eq!(found, expected, "{url}");
        }
    }

    #[test]
    fn common_words_are_not_secrets() {
        let long = "a".repeat(LONGEST_SECRET + 1);
        for (value, expected) in [
            ("true", false),
            ("1", false),
            ("password", false),
            ("production", false),
            ("hunter2", false),
            ("hunter22", true),
            ("correcthorsebattery", true),
            (" a-b-c-d-e \n", true),
            (long.as_str(), false),
        ] {
            let found = searched(value);
            assert_eq!(found == [value.trim()], expected, "{value}");
            assert_eq!(found.len(), usize::from(expected));
        }
    }

    #[test]
    fn of_several_lines_each_is_looked_for_that_shows_something() {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
        let end = "short1==";
        let key = format!("-----BEGIN X-----\n{line}\r\n{end}\n-----END X-----\n");
        assert_eq!(searched(&key)[1..], [line]);
        let json = format!(
            "{{\n \"type\": \"service_account\", \"id\": \"{}\",\n \"uri\": \"https://oauth2.example.com/v1/certs\",\n \"key\": \"a\\n{line}\\nb\"}}",
            "0".repeat(20)
        );
        assert_eq!(searched(&json)[1..], [line]);
        let long = format!("{line}\n").repeat(10_000);
        let bytes: usize = searched(&long).iter().map(|part| part.len()).sum();
        assert!(bytes <= LONGEST_IN_PARTS, "{bytes}");
    }
}
