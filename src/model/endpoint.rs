//! Selects the server for a model: the one in the model's entry, the one in the environment, or the vendor's own. Pure.

mod ollama_host;

use super::{ModelSpec, Provider};
use crate::sys::environment::Environment;
use crate::sys::http::endpoint::{Endpoint, EndpointProblem};

/// Returns the model's own endpoint, the one that the environment names, or the vendor's; `has_key` says whether calls
/// carry a key.
///
/// # Errors
/// Fails if the base URL cannot be used.
pub fn of(
    spec: &ModelSpec,
    environment: &Environment,
    has_key: bool,
) -> Result<Endpoint, EndpointProblem> {
    if let Some(url) = &spec.base_url {
        return Endpoint::parse("baseUrl", url, has_key);
    }
    let vendor = spec.provider.vendor();
    let variable = vendor.url_variable;
    let value = environment.get(variable).or(vendor.url);
    let value = value.ok_or_else(|| EndpointProblem::Unset {
        variable: variable.to_owned(),
        example: "https://NAME.openai.azure.com",
    })?;
    if !vendor.is_local {
        return Endpoint::parse(variable, value, has_key);
    }
    let url = ollama_host::base_url(value).ok_or_else(|| EndpointProblem::NotAUrl {
        variable: variable.to_owned(),
        value: value.to_owned(),
        example: "127.0.0.1:11434",
    })?;
    Endpoint::parse(variable, &url, has_key)
}

/// Returns the base URL, unless it is the provider's own service, or Ollama on this machine.
pub fn differing(endpoint: &Endpoint, provider: Provider) -> Option<&str> {
    let vendor = provider.vendor();
    let is_usual = vendor.is_local && endpoint.is_this_machine();
    (Some(endpoint.base()) != vendor.url && !is_usual).then_some(endpoint.base())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::error::Problem as _;

    #[test]
    fn a_server_that_is_not_the_vendors_is_reported() {
        let gemini = ModelSpec::new("x", Provider::Gemini);
        let at = |url: &str| ModelSpec {
            base_url: Some(url.to_owned()),
            ..gemini.clone()
        };
        let variable = [("GOOGLE_GEMINI_BASE_URL", "https://proxy.test/g/")];
        let none = Environment::of(&[]);
        let set = Environment::of(&variable);
        for (spec, environment, expected) in [
            (&gemini, &none, None),
            (&gemini, &set, Some("https://proxy.test/g")),
            (&at("https://a.test"), &set, Some("https://a.test")),
            (
                &at("https://generativelanguage.googleapis.com/"),
                &set,
                None,
            ),
        ] {
            let endpoint = of(spec, environment, true).unwrap();
            assert_eq!(differing(&endpoint, spec.provider), expected);
        }
    }

    #[test]
    fn anthropics_server_is_its_own_or_the_variables() {
        let anthropic = ModelSpec::new("x", Provider::Anthropic);
        let set = Environment::of(&[("ANTHROPIC_BASE_URL", "http://127.0.0.1:8080/")]);
        for (environment, expected) in [
            (
                Environment::of(&[]),
                "https://api.anthropic.com/v1/messages",
            ),
            (set, "http://127.0.0.1:8080/v1/messages"),
        ] {
            let endpoint = of(&anthropic, &environment, true).unwrap();
            assert_eq!(endpoint.url("/v1/messages"), expected);
        }
    }

    #[test]
    fn azures_server_is_the_users_and_named_by_an_entry_or_the_variable() {
        let azure = ModelSpec::new("x", Provider::Azure);
        let own = ModelSpec {
            base_url: Some("https://a.test".to_owned()),
            ..azure.clone()
        };
        let none = Environment::of(&[]);
        let set = Environment::of(&[("AZURE_OPENAI_BASE_URL", "https://b.test/")]);
        for (spec, expected) in [(&own, "https://a.test"), (&azure, "https://b.test")] {
            let endpoint = of(spec, &set, true).unwrap();
            assert_eq!(differing(&endpoint, Provider::Azure), Some(expected));
        }
        let problem = of(&azure, &none, true).unwrap_err();
        for told in [problem.to_string(), problem.hint().unwrap()] {
            assert!(told.contains("`AZURE_OPENAI_BASE_URL`"), "{told}");
        }
    }

    #[test]
    fn ollamas_server_is_the_entrys_or_the_variables_in_its_spellings() {
        let ollama = ModelSpec::new("x", Provider::Ollama);
        let own = ModelSpec {
            base_url: Some("http://10.0.0.2:80".to_owned()),
            ..ollama.clone()
        };
        let set = |value| Environment::of(&[("OLLAMA_HOST", value)]);
        for (spec, value, expected) in [
            (&ollama, "", "http://127.0.0.1:11434/api/tags"),
            (&ollama, "gpu:8080", "http://gpu:8080/api/tags"),
            (&ollama, "0.0.0.0", "http://127.0.0.1:11434/api/tags"),
            (&own, "gpu:8080", "http://10.0.0.2:80/api/tags"),
        ] {
            let endpoint = of(spec, &set(value), false).unwrap();
            assert_eq!(endpoint.url("/api/tags"), expected);
        }
        for (value, expected) in [
            (
                ":99999",
                "`OLLAMA_HOST` is `:99999`, which is not a plain URL",
            ),
            (
                "example.com",
                "`OLLAMA_HOST` is `http://example.com:11434`: plain http",
            ),
        ] {
            let problem = of(&ollama, &set(value), false).unwrap_err();
            assert!(problem.to_string().starts_with(expected), "{problem}");
        }
    }
}
