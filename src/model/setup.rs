//! The parts of the configuration that hints depend on. Plain data.

use std::fmt;

/// The place where a key was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A file in `agent-config`, by its name.
    File(String),
    /// An environment variable.
    Variable(&'static str),
    /// One of the user's accounts, by its name.
    Account(String),
}

impl KeySource {
    /// Returns whether the key comes from somewhere other than the project's key files.
    pub fn is_elsewhere(&self) -> bool {
        !matches!(self, Self::File(_))
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(name) => write!(f, "agent-config/{name}"),
            Self::Variable(name) => f.write_str(name),
            Self::Account(name) => write!(f, "account {name}"),
        }
    }
}

/// The parts of the configuration that hints depend on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Setup {
    /// The source of the key; `None` if there is no key, or the agent's own settings have it.
    pub key: Option<KeySource>,
    /// True if the model is a local one that needs no key.
    pub is_keyless: bool,
    /// The successor that the vendor names, by its name in the table; `None` if it is not there.
    pub successor: Option<Box<str>>,
}

impl Setup {
    /// Returns the advice for a call whose key was rejected.
    pub(super) fn key_hint(&self) -> String {
        let way = match &self.key {
            Some(KeySource::Variable(name)) => format!("set `{name}` to a valid one"),
            Some(KeySource::Account(name)) => format!("store another for the account `{name}`"),
            Some(file) => format!("put a valid one into `{file}`"),
            None if self.is_keyless => {
                return "the model needs no key, and none was sent: check the base URL and the proxy"
                    .to_owned();
            }
            None => "put a valid one into the model's key file in `agent-config`".to_owned(),
        };
        format!("the vendor does not accept the key: {way}")
    }
}
