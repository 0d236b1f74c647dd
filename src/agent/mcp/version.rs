//! Protocol versions and their negotiation. Pure.
//!
//! As the specification requires, a client offers the newest version it knows and accepts the one that the server
//! names. The version of 2026 has no handshake; a server that supports nothing else refuses the handshake and says so.

use serde_json::{Value, json};

/// The method of the handshake request.
pub const HANDSHAKE: &str = "initialize";
/// The versions with a handshake, newest first.
const WITH_HANDSHAKE: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The version without a handshake.
const WITHOUT_HANDSHAKE: &str = "2026-07-28";
/// The error code of a server that does not support a version.
const UNSUPPORTED: i64 = -32022;

/// A version supported by both client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(&'static str);

impl Version {
    /// Returns the version that a server named in the handshake, if this client supports it. The version without a
    /// handshake is accepted as well.
    pub fn named(name: &str) -> Option<Self> {
        let mut known = WITH_HANDSHAKE.into_iter().chain([WITHOUT_HANDSHAKE]);
        known.find(|known| *known == name).map(Self)
    }

    /// Returns the version without a handshake, if a server refuses the handshake and names that version.
    pub fn after_refusal(code: i64, data: &Value) -> Option<Self> {
        let mut named = supported(code, data)?.iter();
        named
            .any(|name| name == WITHOUT_HANDSHAKE)
            .then_some(Self(WITHOUT_HANDSHAKE))
    }

    /// Returns the version's name on the wire.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// Returns whether each request is self-contained: no handshake, no session, and all client information in the
    /// request.
    pub fn is_stateless(self) -> bool {
        self.0 == WITHOUT_HANDSHAKE
    }

    /// Adds to a request's parameters the client information that a server without sessions needs.
    pub fn complete(self, params: Value) -> Value {
        let Value::Object(mut params) = params else {
            return params;
        };
        if self.is_stateless() {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            for (name, value) in [
                ("protocolVersion", json!(self.0)),
                ("clientInfo", client_info()),
                ("clientCapabilities", json!({})),
            ] {
                meta[format!("io.modelcontextprotocol/{name}")] = value;
            }
        }
        Value::Object(params)
    }
}

/// Returns the versions that a server names when it refuses a handshake because of its version.
pub fn supported(code: i64, data: &Value) -> Option<&Vec<Value>> {
    data["supported"].as_array().filter(|_| code == UNSUPPORTED)
}

/// Returns the parameters of the handshake.
pub fn offer() -> Value {
    let [newest, ..] = WITH_HANDSHAKE;
    json!({"protocolVersion": newest, "capabilities": {}, "clientInfo": client_info()})
}

fn client_info() -> Value {
    json!({"name": "code-commit", "version": env!("CARGO_PKG_VERSION")})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_names_one_of_the_known_versions() {
        for (name, is_known) in [
            ("2024-11-05", true),
            ("2025-03-26", true),
            ("2025-06-18", true),
            ("2025-11-25", true),
            ("2024-10-07", false),
            ("", false),
        ] {
            let version = Version::named(name);
            assert_eq!(version.is_some(), is_known, "{name}");
            assert!(
                version.is_none_or(|version| version.name() == name && !version.is_stateless())
            );
        }
        assert!(Version::named("2026-07-28").unwrap().is_stateless());
        assert_eq!(offer()["protocolVersion"], "2025-11-25");
    }

    #[test]
    fn only_a_refusal_that_names_it_leads_to_the_version_without_handshake() {
        let supported = json!({"supported": ["2026-07-28"], "requested": "2025-11-25"});
        for (code, data, expected) in [
            (-32022, supported.clone(), true),
            (-32022, json!({"supported": ["2027-01-01"]}), false),
            (-32022, Value::Null, false),
            (-32022, json!({"requested": "2026-07-28"}), false),
            (-32602, supported, false),
        ] {
            let version = Version::after_refusal(code, &data);
            assert_eq!(
                version.is_some_and(Version::is_stateless),
                expected,
                "{code} {data}"
            );
        }
    }

    #[test]
    fn without_a_handshake_each_request_reports_the_client() {
        let params = json!({"name": "a"});
        assert_eq!(Version("2025-11-25").complete(params.clone()), params);
        let complete = Version(WITHOUT_HANDSHAKE).complete(params);
        assert_eq!(complete["name"], "a");
        let meta = &complete["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientInfo"]["name"],
            "code-commit"
        );
        assert_eq!(
            meta["io.modelcontextprotocol/clientCapabilities"],
            json!({})
        );
    }
}
