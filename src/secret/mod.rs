//! API keys, the redactor that everything leaving the process passes through, and the search for credentials. Pure.

pub mod credentials;
pub(crate) mod escapes;
mod redactor;

pub use redactor::{ApiKey, KeyProblem, RedactingWriter, Redactor, SHORTEST_KEY, SecretKind};
