//! API keys, the redactor for everything that leaves the process, and the search for credentials. Pure.

pub mod credentials;
pub(crate) mod escapes;
mod redactor;

pub use redactor::{
    ANY_MARK, ApiKey, KeyProblem, MARK, RedactingWriter, Redactor, SHORTEST_KEY, SecretKind, bare,
};
