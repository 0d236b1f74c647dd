//! Tests of keys in every known form: whole, split into chunks, and adjacent. Pure.

use super::*;
use base64::Engine as _;
use proptest::prelude::*;

const KEY: &str = "sk-proj/Ab+9_\"x\\Z=Qw";

fn stream(redactor: &Redactor, chunks: &[&[u8]]) -> Vec<u8> {
    let mut writer = redactor.writer(Vec::new());
    for chunk in chunks {
        writer.write_all(chunk).unwrap();
    }
    writer.finish().unwrap()
}

#[test]
fn misformatted_key_is_reported() {
    for (content, expected) in [
        (&b"\"sk-abc\""[..], Err(KeyProblem::Quoted)),
        (b"'sk-abc'\n", Err(KeyProblem::Quoted)),
        (b"OPENAI_API_KEY=sk-abc", Err(KeyProblem::Assigned)),
        (b"export KEY=\"sk-abc\"", Err(KeyProblem::Assigned)),
        (b"YOUR_API_KEY", Err(KeyProblem::Placeholder)),
        (b"<your key>", Err(KeyProblem::Placeholder)),
        (b"sk-...", Err(KeyProblem::Placeholder)),
        (b"xxxxxxxx", Err(KeyProblem::Placeholder)),
        (b"AIza-PASTE-YOURS-HERE", Err(KeyProblem::Placeholder)),
        (b"sk-PASTE-YOURS-HERE", Err(KeyProblem::Placeholder)),
        (b"PASTE_KEY_HERE", Err(KeyProblem::Placeholder)),
        (b"REPLACE_ME", Err(KeyProblem::Placeholder)),
        (b"TODO", Err(KeyProblem::Placeholder)),
        (b"dummy", Err(KeyProblem::Placeholder)),
        (b"changeme", Err(KeyProblem::Placeholder)),
        (b"$GEMINI_API_KEY", Err(KeyProblem::Placeholder)),
        (b"${GEMINI_API_KEY}", Err(KeyProblem::Placeholder)),
        (b"AIzaXXXXXXXXXXXX", Err(KeyProblem::Placeholder)),
        (b"[REDACTED]", Err(KeyProblem::Placeholder)),
        (b"(key)", Err(KeyProblem::Placeholder)),
        (b"{\"key\":\"sk-abc\"}", Err(KeyProblem::Object)),
        (b"{\n\"key\": \"a\"\n}", Err(KeyProblem::Object)),
        (b"a\nb", Err(KeyProblem::MultiLine)),
        (b"", Err(KeyProblem::Empty)),
        (b"AQ.Key-1_x=", Ok("AQ.Key-1_x=")),
        (
            b"AIzaSyGeminiTestKey_0123456789-Zz",
            Ok("AIzaSyGeminiTestKey_0123456789-Zz"),
        ),
        (
            b"sk-todo1-examplesPASTEd_z",
            Ok("sk-todo1-examplesPASTEd_z"),
        ),
        (b"x", Ok("x")),
    ] {
        let key = ApiKey::of_file(content);
        let parsed = key.as_ref().map(ApiKey::expose).map_err(|e| *e);
        assert_eq!(parsed, expected, "{content:?}");
    }
}

#[test]
fn a_key_file_holds_one_line_of_visible_ascii() {
    for (content, expected) in [
        (&b" abc-1 \r\n"[..], Ok("abc-1")),
        (b"", Err(KeyProblem::Empty)),
        (b" \n\t", Err(KeyProblem::Empty)),
        (b"a\nb", Err(KeyProblem::MultiLine)),
        (b"a\rb", Err(KeyProblem::MultiLine)),
        (b"a b", Err(KeyProblem::NotVisibleAscii)),
        (b"a\0b", Err(KeyProblem::NotVisibleAscii)),
        ("schlüssel".as_bytes(), Err(KeyProblem::NotVisibleAscii)),
        (b"\xff\xfe", Err(KeyProblem::NotVisibleAscii)),
    ] {
        let parsed = ApiKey::parse(content);
        assert_eq!(
            parsed.as_ref().map(ApiKey::expose).map_err(|e| *e),
            expected,
            "{content:?}"
        );
    }
}

#[test]
fn a_key_does_not_print() {
    let key = ApiKey::parse(KEY.as_bytes()).unwrap();
    assert_eq!(
        format!("{key} {key:?}"),
        "[REDACTED]Qw ApiKey([REDACTED]Qw)"
    );
}

#[test]
fn a_key_with_colours_within_is_found() {
    let key = "azkey-SECRET-1234";
    let redactor = Redactor::new([key]);
    for (text, expected) in [
        (
            "\u{1b}[1mazkey\u{1b}[0m-SECRET-1234",
            "\u{1b}[1m[REDACTED]34",
        ),
        (
            "a \u{1b}[01;31m\u{1b}[Kazkey\u{1b}[m\u{1b}[K-SECRET-1234 b\n\u{1b}[1mc",
            "a \u{1b}[01;31m\u{1b}[K[REDACTED]34 b\n\u{1b}[1mc",
        ),
        ("azkey-\u{1b}(B\u{1b}[mSECRET-1234!", "[REDACTED]34!"),
        ("azkey-\u{9b}1mSECRET-1234", "[REDACTED]34"),
        // An escape sequence may end within the key.
        ("\u{1b}[azkey-SECRET-1234", "\u{1b}[[REDACTED]34"),
        (
            "azkey-SECRET-1234 \u{1b}[1mazkey\u{1b}[m-SECRET-1234",
            "[REDACTED]34 \u{1b}[1m[REDACTED]34",
        ),
        ("azkey\u{1b}[1m", "azkey\u{1b}[1m"),
    ] {
        assert_eq!(redactor.text(text), expected, "{text:?}");
    }
}

#[test]
fn every_form_of_a_key_is_found() {
    let redactor = Redactor::new([KEY]);
    let in_base64 = |prefix: &str| STANDARD_NO_PAD.encode(format!("{prefix}{KEY}tail"));
    let in_base64url = |prefix: &str| URL_SAFE_NO_PAD.encode(format!("{prefix}{KEY}tail"));
    let each = |form: fn(u8) -> String| KEY.bytes().map(form).collect::<String>();
    for text in [
        KEY.to_owned(),
        serde_json::to_string(KEY).unwrap(),
        serde_json::to_string(KEY).unwrap().replace('/', "\\/"),
        r"sk-proj/Ab\u002b9_\u0022x\\Z=Qw".to_owned(),
        r#"sk-proj/Ab+9_\"x\\Z\u003DQw"#.to_owned(),
        each(|byte| format!("\\u{byte:04x}")),
        each(|byte| format!("\\u{byte:04X}")),
        "sk%2Dproj%2FAb%2B9%5F%22x%5CZ%3DQw".to_owned(),
        "sk-proj%2FAb%2B9_%22x%5CZ%3DQw".to_owned(),
        "sk-proj%2fAb%2b9_%22x%5cZ%3dQw".to_owned(),
        "sk-proj/Ab%2B9_%22x%5CZ%3DQw".to_owned(),
        "sk-proj%2FAb+9_%22x%5CZ%3DQw".to_owned(),
        r#"sk-proj\u002fAb+9_\"x\\Z=Qw"#.to_owned(),
        serde_json::to_string(&each(|byte| format!("\\u{byte:04x}"))).unwrap(),
        each(|byte| format!("%{byte:02x}")),
        in_base64(""),
        in_base64("a"),
        in_base64("ab"),
        in_base64url(""),
        in_base64url("a"),
        in_base64url("ab"),
        each(|byte| format!("{byte:02x}")),
        each(|byte| format!("{byte:02X}")),
    ] {
        assert!(redactor.text(&text).contains("[REDACTED]Qw"), "{text}");
    }
}

#[test]
fn the_longer_of_two_keys_wins_and_short_keys_are_passed_over() {
    let redactor = Redactor::new(["abcdefgh", "abcdefghIJKL", "", "xy", "dummy"]);
    assert_eq!(
        redactor.text("abcdefghIJKL xy dummy abcdefgh"),
        "[REDACTED]KL xy dummy [REDACTED]gh"
    );
}

#[test]
fn without_keys_nothing_changes() {
    let redactor = Redactor::new([]);
    assert_eq!(redactor.text("text"), "text");
    assert_eq!(stream(&redactor, &[b"te", b"xt"]), b"text");
}

#[test]
fn a_redactor_does_not_print_its_keys() {
    let printed = format!("{:?}", Redactor::new([KEY]));
    assert!(printed.starts_with("Redactor("), "{printed}");
    assert!(!printed.contains(KEY));
}

#[test]
fn text_that_cannot_become_a_key_is_released() {
    let redactor = Redactor::new(["secretkey1", "secretkey1longer"]);
    for (written, shown) in [
        ("a prompt> ", "a prompt> "),
        ("half a secretke", "half a "),
        // A longer key may still follow.
        ("secretkey1", ""),
        ("secretkey1x", "[REDACTED]y1x"),
        ("secretkey1longer", "[REDACTED]er"),
        ("secretkeysecret", "secretkey"),
    ] {
        let mut writer = redactor.writer(Vec::new());
        writer.write_all(written.as_bytes()).unwrap();
        writer.release().unwrap();
        let now = String::from_utf8_lossy(&writer.inner).into_owned();
        assert_eq!(now, shown, "{written}");
        let all = writer.finish().unwrap();
        assert_eq!(String::from_utf8(all).unwrap(), redactor.text(written));
    }
}

proptest! {
    #[test]
    fn a_stream_is_redacted_as_the_whole_text_is(
        parts in prop::collection::vec(prop_oneof![
            Just("secretkey1".to_owned()), Just("secretkey1longer".to_owned()), "[a-z1 ]{0,60}",
            Just(STANDARD_NO_PAD.encode("..secretkey1..")),
        ], 0..12),
        cuts in prop::collection::vec(0usize..300, 0..6),
    ) {
        let redactor = Redactor::new(["secretkey1", "secretkey1longer"]);
        let text = parts.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        cuts.push(text.len());
        let mut from = 0;
        let chunks: Vec<&[u8]> = cuts.iter().map(|&to| { let c = &text.as_bytes()[from..to]; from = to; c }).collect();
        let streamed = stream(&redactor, &chunks);
        prop_assert_eq!(String::from_utf8(streamed).unwrap(), redactor.text(&text));
        // The same holds for output shown live.
        let mut writer = redactor.writer(Vec::new());
        for chunk in &chunks {
            writer.write_all(chunk).unwrap();
            writer.release().unwrap();
        }
        prop_assert_eq!(String::from_utf8(writer.finish().unwrap()).unwrap(), redactor.text(&text));
    }
}
