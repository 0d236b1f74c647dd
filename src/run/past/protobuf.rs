//! The protobuf form of a trace, transcribed from its JSON form by a table of OTLP's fields. Pure.

use std::slice;

use serde_json::Value;

/// A field: its name in JSON, its number, which is below 16, and its type.
struct Field(&'static str, u8, Kind);

enum Kind {
    Message(&'static [Field]),
    Text,
    /// Bytes that are hexadecimal in JSON.
    Id,
    Double,
    Fixed,
    Varint,
}

use Kind::{Double, Fixed, Id, Message, Text, Varint};

static RESOURCE_SPANS: [Field; 2] = [
    Field(
        "resource",
        1,
        Message(&[Field("attributes", 1, Message(&ATTRIBUTE))]),
    ),
    Field("scopeSpans", 2, Message(&SCOPE_SPANS)),
];
static SCOPE_SPANS: [Field; 2] = [
    Field("scope", 1, Message(&SCOPE)),
    Field("spans", 2, Message(&SPAN)),
];
static SCOPE: [Field; 2] = [Field("name", 1, Text), Field("version", 2, Text)];
static SPAN: [Field; 9] = [
    Field("traceId", 1, Id),
    Field("spanId", 2, Id),
    Field("parentSpanId", 4, Id),
    Field("name", 5, Text),
    Field("kind", 6, Varint),
    Field("startTimeUnixNano", 7, Fixed),
    Field("endTimeUnixNano", 8, Fixed),
    Field("attributes", 9, Message(&ATTRIBUTE)),
    Field("status", 15, Message(&[Field("code", 3, Varint)])),
];
static ATTRIBUTE: [Field; 2] = [Field("key", 1, Text), Field("value", 2, Message(&VALUE))];
static VALUE: [Field; 4] = [
    Field("stringValue", 1, Text),
    Field("intValue", 3, Varint),
    Field("doubleValue", 4, Double),
    Field("arrayValue", 5, Message(&VALUES)),
];
static VALUES: [Field; 1] = [Field("values", 1, Message(&VALUE))];

/// Returns a request to export a trace, given in JSON, as protobuf.
pub fn request(json: &Value) -> Vec<u8> {
    message(&[Field("resourceSpans", 1, Message(&RESOURCE_SPANS))], json)
}

fn message(fields: &[Field], json: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for Field(name, number, kind) in fields {
        let all = json[*name]
            .as_array()
            .map_or(slice::from_ref(&json[*name]), Vec::as_slice);
        for value in all.iter().filter(|value| !value.is_null()) {
            let text = value.as_str().unwrap_or_default();
            let (wire_type, bytes) = match kind {
                Varint => (0, varint(integer(value))),
                Fixed => (1, integer(value).to_le_bytes().to_vec()),
                Double => (1, value.as_f64().unwrap_or_default().to_le_bytes().to_vec()),
                Message(fields) => (2, message(fields, value)),
                Text => (2, text.as_bytes().to_vec()),
                Id => (2, from_hex(text)),
            };
            out.push(number << 3 | wire_type);
            if wire_type == 2 {
                out.extend(varint(bytes.len() as u64));
            }
            out.extend(bytes);
        }
    }
    out
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2));
    let byte = |digits: Option<&str>| u8::from_str_radix(digits?, 16).ok();
    digits.filter_map(byte).collect()
}

/// Returns an integer, which may be a string in the JSON; negative ones in two's complement.
fn integer(json: &Value) -> u64 {
    let text = json.as_str().and_then(|digits| digits.parse().ok());
    let number: Option<i64> = text.or_else(|| json.as_i64());
    number.unwrap_or_default().cast_unsigned()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while number >= 0x80 {
        // The lowest seven bits, with the mark that more follow.
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_texts_are_written_as_protobuf_has_them() {
        for (value, expected) in [
            (json!({"stringValue": "testing"}), "0a0774657374696e67"),
            (json!({"stringValue": ""}), "0a00"),
            (json!({"intValue": "150"}), "189601"),
            (json!({"intValue": "-1"}), "18ffffffffffffffffff01"),
            (json!({"doubleValue": 0.5}), "21000000000000e03f"),
            (
                json!({"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "a"}]}}),
                "2a090a0218010a030a0161",
            ),
            (json!({"arrayValue": {"values": []}}), "2a00"),
            (json!({}), ""),
        ] {
            let bytes = message(&VALUE, &value);
            let written: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(written, expected, "{value}");
        }
        let span =
            json!({"spanId": "00f1", "kind": 3, "startTimeUnixNano": "258", "status": {"code": 2}});
        let written = message(&SPAN, &span);
        let expected = [
            &[0x12, 2, 0, 0xf1][..],
            &[0x30, 3],
            &[0x39, 2, 1, 0, 0, 0, 0, 0, 0],
            &[0x7a, 2, 0x18, 2],
        ];
        assert_eq!(written, expected.concat());
    }
}
