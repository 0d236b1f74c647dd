//! Tests of arguments checked against a tool's schema.

use super::*;

#[test]
fn arguments_are_held_against_the_schema_before_anything_runs() {
    const PARAMETERS: &[Parameter] = &[
        Parameter::path("path", ""),
        Parameter::new("tasks", ParameterKind::Tasks, ""),
    ];
    let own = ToolSpec::new("WRITE", "", PARAMETERS, Effect::Writes);
    let came = ToolSpec {
        schema: Some(json!({"type": "object", "properties": {"count": {"type": "integer"}}})),
        ..ToolSpec::new("server.count", "", &[], Effect::Runs)
    };
    for (spec, input, expected) in [
        (&own, json!({"path": "a"}), None),
        (&own, json!({"path": "a", "tasks": "[x] b"}), None),
        (&own, json!({}), Some("WRITE needs `path`")),
        (
            &own,
            json!({"path": 1}),
            Some("`path` of WRITE must be a JSON string"),
        ),
        (
            &own,
            json!({"path": "a", "b": 1}),
            Some("WRITE takes no `b`"),
        ),
        (
            &own,
            json!("{\"path\": "),
            Some("WRITE must be given its arguments as a JSON object"),
        ),
        (&came, json!({}), None),
        (&came, json!({"count": 3, "more": {}}), None),
        (
            &came,
            json!({"count": 3.5}),
            Some("`count` of server.count must be a JSON integer"),
        ),
    ] {
        let problem = spec.check(&input).err();
        assert_eq!(problem.as_deref(), expected, "{input}");
    }
}
#[test]
fn missing_arguments_get_defaults_and_given_ones_are_type_checked() {
    const LIST: &str = r#"{"type": "array", "items": {"type": "string"}}"#;
    const PARAMETERS: &[Parameter] = &[
        Parameter::path("path", "").or("."),
        Parameter::new("deep", ParameterKind::Flag, "").or("true"),
        Parameter::new("names", ParameterKind::Json(LIST), "").or("[]"),
        Parameter::text("note", "").optional(),
    ];
    let spec = ToolSpec::new("list", "", PARAMETERS, Effect::Reads);
    assert_eq!(
        spec.schema(),
        json!({"type": "object", "required": [], "additionalProperties": false, "properties": {
            "path": {"type": "string", "description": ""}, "deep": {"type": "boolean", "description": ""},
            "names": {"type": "array", "items": {"type": "string"}, "description": ""},
            "note": {"type": "string", "description": ""}}})
    );
    let arguments = spec.check(&json!({})).unwrap();
    assert_eq!(
        arguments.to_value(),
        json!({"path": ".", "deep": true, "names": []})
    );
    assert!(arguments.is_set("deep") && !arguments.is_set("note"));
    let arguments = spec.check(&json!({"deep": false, "names": ["a"]})).unwrap();
    assert!(!arguments.is_set("deep"));
    for (input, expected) in [
        (
            json!({"deep": "true"}),
            "`deep` of list must be a JSON boolean",
        ),
        (
            json!({"names": "a"}),
            "`names` of list must be a JSON array",
        ),
        (
            json!({"names": ["a", 1]}),
            "`names[1]` must be a JSON string, for list",
        ),
        (
            json!({"name": ["a"]}),
            "list takes no `name`: did you mean `names`?",
        ),
        (
            json!({"note": null}),
            "`note` of list must be a JSON string",
        ),
    ] {
        assert_eq!(spec.check(&input).unwrap_err(), expected);
    }
}
