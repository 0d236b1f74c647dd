//! An agent's settings: `config.json` and the variables that override it.
//!
//! Reads the file, and writes it once, where it is missing. Guarantees that every value makes sense, that a mistake is
//! told with its place and what is expected there, and that no error shows the key, nor any other value.

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::model::endpoint::{Endpoint, EndpointProblem};
use crate::secret::ApiKey;
use crate::sys::atomic_file;
use crate::sys::environment::Environment;
use crate::sys::files::{IfThere as _, read_regular};
use crate::sys::positions::{self, Entries, Misplaced, Positions};

/// The settings' file, in an agent's home.
pub const FILE: &str = "config.json";
/// The variables that override fields.
const VARIABLES: [(&str, &str); 3] = [
    ("DEV_AGENT_API_URL", "apiUrl"),
    ("DEV_AGENT_API_KEY", "apiKey"),
    ("DEV_AGENT_MODEL", "model"),
];

/// The specification's default configuration. The file is made with these bytes, and what a file leaves out is as it
/// stands here: see [`Settings::default`].
const DEFAULT: &str = r#"{
  "apiUrl": "http://localhost:8005/v1",
  "apiKey": "",
  "model": "devstral-small-2507",
  "maxContextTokens": 131072,
  "commandTimeout": 30,
  "maxRetries": 3,
  "maxRetriesAutomated": 10,
  "maxLoops": 1000,
  "sessionRetentionDays": 30
}
"#;

/// What an agent works with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The base URL of an OpenAI-compatible API; `None`: [`model`](Self::model) names an entry of the table of models.
    pub api_url: Option<String>,
    /// The key for it; `None`: it needs none.
    pub api_key: Option<ApiKey>,
    /// The model to ask.
    pub model: String,
    /// A conversation that reaches this many tokens is compressed.
    pub max_context_tokens: u64,
    /// A command that takes longer goes on in the background.
    pub command_timeout: Duration,
    /// So many failures in a row end the work, with a user at hand; 0 counts as 1.
    pub max_retries: u32,
    /// The same without one.
    pub max_retries_automated: u32,
    /// How many calls to the model a run may make; those of audits and compressions count.
    pub max_loops: u16,
    /// For how many days a session is kept after its last change; 0: for ever.
    pub session_retention_days: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            api_url: Some("http://localhost:8005/v1".to_owned()),
            api_key: None,
            model: "devstral-small-2507".to_owned(),
            max_context_tokens: 131_072,
            command_timeout: Duration::from_secs(30),
            max_retries: 3,
            max_retries_automated: 10,
            max_loops: 1000,
            session_retention_days: 30,
        }
    }
}

/// Why the settings cannot be used. Holds none of their values.
#[derive(Debug, thiserror::Error)]
pub enum SettingsProblem {
    /// The file cannot be read.
    #[error("`{}` cannot be read: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The file is missing and cannot be made.
    #[error("`{}` cannot be made: {source}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// There is a mistake in the file.
    #[error("`{}`, {mistake}", .path.display())]
    Mistake {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        mistake: Misplaced,
    },
    /// A variable's value cannot be used.
    #[error("`{variable}` {reason}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// What it must be.
        reason: String,
    },
}

impl SettingsProblem {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => format!("make `{}` a readable file", path.display()),
            Self::Unwritable { .. } => {
                "make its directory writable, or set `DEV_AGENT_HOME` to one that is".to_owned()
            }
            Self::Mistake { .. } => {
                "mend it there, or remove the file: it is then made anew with the defaults"
                    .to_owned()
            }
            Self::Variable { variable, .. } => format!("correct `{variable}`, or unset it"),
        }
    }
}

/// The key that the settings hold, as far as they can be read: to be kept out of sight, whatever else is
/// wrong with them. What the environment holds is another's concern.
#[must_use]
pub fn key_in_file(environment: &Environment) -> Option<ApiKey> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Keyed {
        api_key: String,
    }
    let home = super::home::directory(environment, super::home::System::current()).ok()?;
    let content = read(&home.join(FILE)).ok()??;
    let keyed: Keyed = serde_json::from_str(positions::text(&content).ok()?).ok()?;
    ApiKey::parse(keyed.api_key.as_bytes()).ok()
}

impl Settings {
    /// The settings of the agent whose home that is. Where the file is missing it is made with the defaults, and its
    /// path is given. Fields that are not known are passed over; those that are missing have their defaults.
    ///
    /// # Errors
    /// When the file cannot be read or made, or when there is a mistake in it or in a variable.
    pub fn load(
        home: &Path,
        environment: &Environment,
    ) -> Result<(Self, Option<PathBuf>), SettingsProblem> {
        let path = home.join(FILE);
        let (content, is_new) = match read(&path)? {
            Some(content) => (content, false),
            None => create(&path)?,
        };
        let settings = Self::parse(&content);
        let mut settings = settings.map_err(|mistake| SettingsProblem::Mistake {
            path: path.clone(),
            mistake,
        })?;
        settings.override_by(environment)?;
        Ok((settings, is_new.then_some(path)))
    }

    /// The settings that the content of a file stands for.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn parse(content: &[u8]) -> Result<Self, Misplaced> {
        let json = positions::text(content)?;
        let at = Positions(json);
        let entries: Entries<'_> = at.object(json)?;
        let mut settings = Self::default();
        for (name, value) in &entries.0 {
            let set = settings.set(name, value.get());
            set.map_err(|expected| at.problem(value.get(), format!("`{name}` {expected}")))?;
        }
        Ok(settings)
    }

    /// Sets a field by its name in the file. The error says what is expected; the name stands before it.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "apiUrl" | "apiKey" | "model" => self.set_text(name, &text(value)?)?,
            "maxContextTokens" => {
                self.max_context_tokens = number(value, "tokens", 1024, 1_000_000_000)?;
            }
            "commandTimeout" => {
                self.command_timeout = Duration::from_secs(number(value, "seconds", 1, 86_400)?);
            }
            "maxRetries" => self.max_retries = number(value, "retries", 0, 1000)?,
            "maxRetriesAutomated" => {
                self.max_retries_automated = number(value, "retries", 0, 1000)?;
            }
            "maxLoops" => self.max_loops = number(value, "calls", 1, u16::MAX)?,
            "sessionRetentionDays" => {
                self.session_retention_days = number(value, "days", 0, 36_500)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets a field that is text, likewise.
    fn set_text(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "apiUrl" => self.api_url = url(value)?,
            "apiKey" => self.api_key = key(value)?,
            _ => self.model = model(value)?,
        }
        Ok(())
    }

    fn override_by(&mut self, environment: &Environment) -> Result<(), SettingsProblem> {
        for (variable, name) in VARIABLES {
            let Some(value) = environment.os(variable) else {
                continue;
            };
            let value = value.to_str().ok_or_else(|| "is not UTF-8".to_owned());
            let set = value.and_then(|value| self.set_text(name, value));
            set.map_err(|reason| SettingsProblem::Variable { variable, reason })?;
        }
        Ok(())
    }
}

/// The file's content; `None` where it is missing.
fn read(path: &Path) -> Result<Option<Vec<u8>>, SettingsProblem> {
    let read = read_regular(path).if_there();
    read.map_err(|source| SettingsProblem::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Makes the file, and says whether it was this process that did.
fn create(path: &Path) -> Result<(Vec<u8>, bool), SettingsProblem> {
    let directory = path.parent().unwrap_or(path);
    let made = atomic_file::private_directory(directory).and_then(|()| {
        atomic_file::create_private(path, |file| file.write_all(DEFAULT.as_bytes()))
    });
    let unwritable = |source| SettingsProblem::Unwritable {
        path: path.to_owned(),
        source,
    };
    match made {
        Ok(()) => Ok((DEFAULT.into(), true)),
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let content = read(path)?.ok_or_else(|| unwritable(error))?;
            Ok((content, false))
        }
        Err(source) => Err(unwritable(source)),
    }
}

fn text(json: &str) -> Result<String, String> {
    // Not by serde's error: that would show the value.
    serde_json::from_str(json).map_err(|_| "must be a string, in quotes".to_owned())
}

fn number<T>(json: &str, unit: &str, least: T, most: T) -> Result<T, String>
where
    T: DeserializeOwned + PartialOrd + Display + Copy,
{
    let number: Option<T> = serde_json::from_str(json).ok();
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("must be a whole number of {unit}, from {least} to {most}"))
}

fn url(value: &str) -> Result<Option<String>, String> {
    let value = value.trim();
    if value.is_empty() {
        return Ok(None);
    }
    match Endpoint::parse("apiUrl", value) {
        Ok(_) => Ok(Some(value.to_owned())),
        // Without the value: some put a password or a key into a URL.
        Err(EndpointProblem::Insecure { .. }) => Err(
            "must be https, or http to `localhost` or another loopback host: the key travels in a header".to_owned(),
        ),
        Err(_) => Err(
            "must be the plain URL of a server, like `https://host/v1`, without user, query and `#`".to_owned(),
        ),
    }
}

fn key(value: &str) -> Result<Option<ApiKey>, String> {
    if value.trim().is_empty() {
        return Ok(None);
    }
    let key = ApiKey::parse(value.as_bytes());
    key.map(Some)
        .map_err(|problem| format!("{problem}, which no key has"))
}

fn model(value: &str) -> Result<String, String> {
    let value = value.trim();
    if value.is_empty() || value.len() > 200 || value.contains(char::is_control) {
        return Err("must be a model's name, of 200 bytes at the most".to_owned());
    }
    Ok(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn mistake(json: &str) -> String {
        Settings::parse(json.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_default_file_stands_for_the_defaults() {
        assert_eq!(Settings::parse(DEFAULT.as_bytes()), Ok(Settings::default()));
        assert_eq!(Settings::parse(b"{}"), Ok(Settings::default()));
    }

    #[test]
    fn a_missing_file_is_made_once_and_is_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("config/dev-agent");
        let (settings, made) = Settings::load(&home, &Environment::default()).unwrap();
        assert_eq!(settings, Settings::default());
        let path = home.join("config.json");
        assert_eq!(made.as_ref(), Some(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), DEFAULT);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&home)), (0o600, 0o700));

        let own = r#"{"model": "mine", "mine": [1, {"x": null}]}"#;
        fs::write(&path, own).unwrap();
        let (settings, made) = Settings::load(&home, &Environment::default()).unwrap();
        assert_eq!((settings.model.as_str(), made), ("mine", None));
        assert_eq!(fs::read_to_string(&path).unwrap(), own);
    }

    #[test]
    fn every_field_is_read() {
        let settings = Settings::parse(
            b"\xef\xbb\xbf{\"apiUrl\": \" https://host.test/v1 \", \"apiKey\": \" sekret-key \", \"model\": \"a@b c\",
            \"maxContextTokens\": 1024, \"commandTimeout\": 1, \"maxRetries\": 0, \"maxRetriesAutomated\": 1000,
            \"maxLoops\": 1, \"sessionRetentionDays\": 0, \"theme\": \"dark\"}",
        );
        let expected = Settings {
            api_url: Some("https://host.test/v1".to_owned()),
            api_key: Some(ApiKey::parse(b"sekret-key").unwrap()),
            model: "a@b c".to_owned(),
            max_context_tokens: 1024,
            command_timeout: Duration::from_secs(1),
            max_retries: 0,
            max_retries_automated: 1000,
            max_loops: 1,
            session_retention_days: 0,
        };
        assert!(!format!("{settings:?}").contains("sekret"));
        assert_eq!(settings, Ok(expected));
        let by_table = Settings::parse(br#"{"apiUrl": " "}"#).unwrap();
        assert_eq!(by_table.api_url, None);
    }

    #[test]
    fn a_mistake_is_told_with_its_place_and_what_is_expected() {
        let seconds = "`commandTimeout` must be a whole number of seconds, from 1 to 86400";
        for (json, expected) in [
            ("", "line 1, column 1: EOF while parsing a value".to_owned()),
            ("[]", "line 1, column 1: an object is expected here, in `{` and `}`".to_owned()),
            ("{\n  \"maxLoops\": }", "line 2, column 15: expected value".to_owned()),
            ("{\n  \"model\": \"a\",\n}", "line 3, column 1: trailing comma".to_owned()),
            (r#"{"commandTimeout": 0}"#, format!("line 1, column 20: {seconds}")),
            (r#"{"commandTimeout": -1}"#, format!("line 1, column 20: {seconds}")),
            ("{\n \"commandTimeout\":\n  1.5}", format!("line 3, column 3: {seconds}")),
            (r#"{"commandTimeout": "30"}"#, format!("line 1, column 20: {seconds}")),
            (r#"{"commandTimeout": null}"#, format!("line 1, column 20: {seconds}")),
            (r#"{"commandTimeout": 86401}"#, format!("line 1, column 20: {seconds}")),
            (
                r#"{"maxContextTokens": 1023}"#,
                "line 1, column 22: `maxContextTokens` must be a whole number of tokens, from 1024 to 1000000000"
                    .to_owned(),
            ),
            (
                r#"{"maxLoops": 0}"#,
                "line 1, column 14: `maxLoops` must be a whole number of calls, from 1 to 65535".to_owned(),
            ),
            (
                r#"{"maxRetries": 99999999999999999999}"#,
                "line 1, column 16: `maxRetries` must be a whole number of retries, from 0 to 1000".to_owned(),
            ),
            (r#"{"model": 7}"#, "line 1, column 11: `model` must be a string, in quotes".to_owned()),
            (
                r#"{"model": " "}"#,
                "line 1, column 11: `model` must be a model's name, of 200 bytes at the most".to_owned(),
            ),
        ] {
            assert_eq!(mistake(json), expected, "{json}");
        }
        let twice = mistake(r#"{"model": "a", "model": "b"}"#);
        assert!(twice.ends_with("`model` is there twice"), "{twice}");
        assert!(mistake(r#"{"apiUrl": "http://host.test"}"#).contains("must be https"));
        for url in ["ftp://host.test", "localhost:80", "https://host.test/?x=1"] {
            let mistake = mistake(&format!(r#"{{"apiUrl": "{url}"}}"#));
            assert!(
                mistake.contains("`apiUrl` must be the plain URL"),
                "{mistake}"
            );
        }
    }

    #[test]
    fn no_mistake_shows_a_key() {
        for json in [
            r#"{"apiKey": "sekret key"}"#,
            r#"{"apiKey": "sekret\nkey"}"#,
            r#"{"apiKey": ["sekret"]}"#,
            r#"{"apiKey": "sekret}"#,
            r#"{"apiKey": sekret}"#,
            r#"{"apiUrl": "https://user:sekret@host.test"}"#,
            r#"{"apiUrl": "https://host.test/?key=sekret"}"#,
            r#"{"maxLoops": "sekret"}"#,
            r#""sekret""#,
        ] {
            let mistake = mistake(json);
            assert!(!mistake.contains("sekret"), "{mistake}");
            assert!(mistake.starts_with("line 1, column "), "{mistake}");
        }
    }

    #[test]
    fn variables_win_over_the_file_and_their_mistakes_name_them() {
        let dir = tempfile::tempdir().unwrap();
        let load =
            |variables: &[(&str, &str)]| Settings::load(dir.path(), &Environment::of(variables));
        let (settings, _) = load(&[
            ("DEV_AGENT_API_URL", "https://host.test"),
            ("DEV_AGENT_API_KEY", "sekret-key"),
            ("DEV_AGENT_MODEL", "other"),
        ])
        .unwrap();
        assert_eq!(settings.api_url.as_deref(), Some("https://host.test"));
        assert_eq!(settings.api_key.unwrap().expose(), "sekret-key");
        assert_eq!(settings.model, "other");
        for (variable, value) in [
            ("DEV_AGENT_API_URL", "http://sekret.test"),
            ("DEV_AGENT_API_KEY", "two sekrets"),
            ("DEV_AGENT_MODEL", "sekret\u{7}"),
        ] {
            let problem = load(&[(variable, value)]).unwrap_err();
            assert!(problem.to_string().starts_with(&format!("`{variable}` ")));
            assert!(!problem.to_string().contains("sekret"), "{problem}");
            assert!(problem.hint().contains(variable));
        }
    }

    #[test]
    fn what_is_no_readable_file_is_an_error_with_its_path() {
        let dir = tempfile::tempdir().unwrap();
        let load = |home: &Path| Settings::load(home, &Environment::default()).unwrap_err();
        let path = dir.path().join(FILE);
        fs::create_dir(&path).unwrap();
        assert!(
            matches!(load(dir.path()), SettingsProblem::Unreadable { path: at, .. } if at == path)
        );
        fs::remove_dir(&path).unwrap();
        symlink("nowhere", &path).unwrap();
        assert!(matches!(
            load(dir.path()),
            SettingsProblem::Unwritable { .. }
        ));
        fs::remove_file(&path).unwrap();
        fs::write(&path, "{\n\"model\": \"\u{e9}\",\n\"maxLoops\": 0}").unwrap();
        let problem = load(dir.path());
        let expected = format!(
            "`{}`, line 3, column 13: `maxLoops` must be",
            path.display()
        );
        assert!(problem.to_string().starts_with(&expected), "{problem}");
        fs::write(&path, b"{\n \xff}").unwrap();
        assert!(
            load(dir.path())
                .to_string()
                .ends_with("line 2, column 2: this is not UTF-8")
        );
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_settings_or_a_mistake(content in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..64)) {
            let _ = Settings::parse(&content);
        }
    }
}
