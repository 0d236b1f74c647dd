//! Tests of an export's settings from the environment.

use super::*;

const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

#[test]
fn nothing_is_exported_unless_a_variable_names_the_collector() {
    for (variables, expected) in [
        (&[][..], false),
        (&[ENDPOINT], true),
        (
            &[(
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "http://127.0.0.1:4318/x",
            )],
            true,
        ),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "")], false),
        (&[("OTEL_SERVICE_NAME", "x")], false),
        (&[ENDPOINT, ("OTEL_SDK_DISABLED", "True")], false),
        (&[ENDPOINT, ("OTEL_SDK_DISABLED", "false")], true),
        (&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")], false),
        (&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "otlp")], true),
    ] {
        let environment = Environment::of(variables);
        let telemetry = Telemetry::of(&environment, 1);
        assert_eq!(telemetry.is_some(), expected, "{variables:?}");
    }
}

#[test]
fn the_parent_is_taken_over_if_it_is_one() {
    for (value, expected) in [
        (format!("00-{TRACE}-{SPAN}-01"), Some(true)),
        (format!("00-{TRACE}-{SPAN}-00"), Some(false)),
        (format!("00-{TRACE}-{SPAN}-03"), Some(true)),
        (format!("01-{TRACE}-{SPAN}-01"), None),
        (format!("00-{TRACE}-{SPAN}-01-more"), None),
        (format!("00-{TRACE}-{SPAN}-01-ab"), None),
        (format!("ff-{TRACE}-{SPAN}-01"), None),
        (format!("00-{}-{SPAN}-01", "0".repeat(32)), None),
        (format!("00-{TRACE}-{}-01", "0".repeat(16)), None),
        (format!("00-{}-{SPAN}-01", TRACE.to_uppercase()), None),
        (format!("00-{TRACE}-+{}-01", &SPAN[1..]), None),
        (format!("00-{TRACE}-{SPAN}"), None),
        (format!("00-{TRACE}-{SPAN}-1"), None),
        ("nonsense".to_owned(), None),
    ] {
        let environment = Environment::of(&[ENDPOINT, ("TRACEPARENT", &value)]);
        let found = parent(&environment);
        assert_eq!(
            found.map(|(.., is_sampled)| is_sampled),
            expected,
            "{value}"
        );
        // A run is not exported if the trace that started it is not sampled.
        let telemetry = Telemetry::of(&environment, 1);
        assert_eq!(telemetry.is_some(), expected != Some(false), "{value}");
        if let Some(ids) = telemetry.map(|telemetry| telemetry.ids("logs/x")) {
            let parent = ids.parent.map(|parent| format!("{parent:016x}"));
            assert_eq!(parent.as_deref(), expected.map(|_| SPAN), "{value}");
            let is_its = format!("{:032x}", ids.trace) == TRACE;
            assert_eq!(is_its, expected.is_some(), "{value}");
        }
    }
}

#[test]
fn each_run_has_ids_of_its_own() {
    let environment = Environment::of(&[ENDPOINT]);
    let ids = |seed, folder| Telemetry::of(&environment, seed).unwrap().ids(folder).trace;
    assert_eq!(ids(1, "logs/a"), ids(1, "logs/a"));
    assert_ne!(ids(1, "logs/a"), ids(1, "logs/b"));
    assert_ne!(ids(1, "logs/a"), ids(2, "logs/a"));
}

#[test]
fn lists_have_escapes_and_what_is_not_a_list_is_named_by_its_variable() {
    for (list, expected) in [
        ("", Some(&[][..])),
        ("a=1", Some(&[("a", "1")])),
        (" a = 1 ,b=x%20y%3D, ", Some(&[("a", "1"), ("b", "x y=")])),
        (
            "authorization=Basic dXNlcg==",
            Some(&[("authorization", "Basic dXNlcg==")]),
        ),
        ("a=", Some(&[("a", "")])),
        ("a", None),
        ("=1", None),
        ("a=%ff", None),
    ] {
        let found = pairs("V", list);
        let told = found.as_ref().err().map(ToString::to_string);
        assert_eq!(told.is_some(), expected.is_none(), "{list}");
        assert!(told.is_none_or(|told| told == "`V` is not a list of `name=value`"));
        let owned = found.unwrap_or_default();
        let pairs: Vec<_> = owned
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(pairs, expected.unwrap_or_default(), "{list}");
    }
}

#[test]
fn a_variable_for_traces_comes_first_and_headers_are_secrets() {
    let environment = Environment::of(&[
        ENDPOINT,
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2"),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "api-key=one%2Btwo,authorization=Bearer three",
        ),
    ]);
    let (variable, value) = setting(&environment, "TIMEOUT");
    assert_eq!(
        (&*variable, value),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", Some("1"))
    );
    let (variable, _) = setting(&environment, "ENDPOINT");
    assert_eq!(variable, ENDPOINT.0);
    let secrets = header_secrets(&environment);
    for secret in ["one+two", "Bearer three", "three"] {
        assert!(secrets.iter().any(|found| found == secret), "{secret}");
    }
}

#[test]
fn the_resource_is_the_program_as_the_environment_names_it() {
    for (variables, expected) in [
        (&[][..], "code-commit"),
        (&[(RESOURCE, "service.name=a,team=x")], "a"),
        (
            &[(RESOURCE, "service.name=a"), ("OTEL_SERVICE_NAME", "b")],
            "b",
        ),
    ] {
        let environment = Environment::of(&[&[ENDPOINT], variables].concat());
        let resource = Telemetry::of(&environment, 1).unwrap().resource().unwrap();
        assert_eq!(resource["service.name"], expected);
        assert_eq!(resource["service.version"], env!("CARGO_PKG_VERSION"));
    }
}
