//! Tests of a text's colours, and of the limits on highlighting.

use std::collections::BTreeSet;

use syntect::parsing::syntax_definition::Pattern;

use super::*;

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Returns the line, in which each piece is followed by its class.
fn told(line: &str, pieces: &Pieces) -> String {
    let mut from = 0;
    let mut text = String::new();
    for (to, class) in pieces {
        text += &line[from..*to];
        if let Some(class) = class {
            text += &format!("<{class}>");
        }
        from = *to;
    }
    text
}

#[test]
fn the_common_languages_are_distinguished_and_coloured() {
    let elapsed = || Duration::ZERO;
    let mut colors = Highlighter::new(&elapsed);
    for (path, text, expected) in [
        (
            "a.rs",
            "fn main() { \"x\"; }",
            "fn<k> main<f>()<p> {<p> \"x\"<s>;<p> }<p>",
        ),
        ("b/c.py", "x = 12  # why", "x =<p> 12<n>  # why<c>"),
        ("x.sh", "echo 'a' # b", "echo<f> 'a'<s> # b<c>"),
        ("run", "#!/bin/sh\necho 'a'", "#!/bin/sh<c>"),
        ("Cargo.toml", "name = \"x\"", "name<k> =<p> \"x\"<s>"),
        (
            "a.ts",
            "let a: string = 1",
            "let<k> a:<p> string<t> =<p> 1<n>",
        ),
        ("a.md", "# Title", "# Title<h>"),
    ] {
        let text = lines(text);
        let [_, after] = colors.of(path, [&[], &text]).unwrap();
        assert_eq!(told(&text[0], &after[0]), expected, "{path}");
    }
    assert!(colors.of("notes.txt", [&[], &lines("if x")]).is_none());
}

#[test]
fn code_is_coloured_by_the_name_of_its_language() {
    let elapsed = || Duration::ZERO;
    let colors = Highlighter::new(&elapsed);
    for language in ["rust", "rs", "Rust"] {
        let pieces = colors.code(language, "\nfn main() {}").unwrap();
        assert_eq!(
            told("fn main() {}", &pieces[1]),
            "fn<k> main<f>()<p> {}<p>",
            "{language}"
        );
    }
    assert!(colors.code("no-language", "x").is_none());
    assert!(colors.code("rust", &"x".repeat(FILE + 1)).is_none());
}

#[test]
fn a_comment_continues_in_the_next_line() {
    let elapsed = || Duration::ZERO;
    let text = lines("/* a\nb */ let c");
    let [_, after] = Highlighter::new(&elapsed).of("x.rs", [&[], &text]).unwrap();
    assert_eq!(told(&text[1], &after[1]), "b */<c> let<k> c");
}

#[test]
fn large_text_is_not_highlighted() {
    let elapsed = || Duration::ZERO;
    let line = vec!["let x = 1;".repeat(20); 400];
    let mut colors = Highlighter::new(&elapsed);
    assert!(colors.of("x.rs", [&line, &line]).is_none());
    let coloured = (0..9).filter(|_| colors.of("x.rs", [&[], &line]).is_some());
    assert_eq!(coloured.count(), ALL / (400 * 201));
}

#[test]
fn slow_highlighting_is_abandoned() {
    let seconds = std::cell::Cell::new(0);
    let elapsed = || {
        seconds.set(seconds.get() + 1);
        Duration::from_secs(seconds.get())
    };
    let text = lines("a\nb\nc\nd\ne");
    let mut colors = Highlighter::new(&elapsed);
    let [_, after] = colors.of("x.rs", [&[], &text]).unwrap();
    assert_eq!(after.len(), 2);
    assert!(colors.of("x.rs", [&[], &text]).is_none());
}

/// The release build cannot catch panics, and an invalid pattern would cause one.
#[test]
fn the_patterns_of_all_languages_compile() {
    let builder = SYNTAXES.clone().into_builder();
    let reference = regex::Regex::new(r"\\\d").unwrap();
    let mut patterns = BTreeSet::new();
    let syntaxes = builder.syntaxes().iter();
    let contexts = syntaxes.flat_map(|syntax| syntax.contexts.values());
    for pattern in contexts.flat_map(|context| &context.patterns) {
        if let Pattern::Match(found) = pattern {
            let regex = found.regex.regex_str();
            // References to groups of an outer pattern are replaced once its match is known.
            let filled = reference.replace_all(regex, "x");
            let references = found.has_captures;
            patterns.insert(if references { filled } else { regex.into() });
        }
    }
    assert!(patterns.len() > 2000, "{}", patterns.len());
    for regex in patterns {
        let error = syntect::parsing::Regex::try_compile(&regex);
        assert!(error.is_none(), "{regex}");
    }
}

/// Code in an embedded language that is not available is plain, up to its end.
#[test]
fn missing_embedded_language_is_plain_until_it_ends() {
    let mut syntaxes = SYNTAXES.syntaxes().iter();
    let plain = syntaxes.position(|syntax| syntax.name == "Plain Text");
    let nowhere = format!("ContextId {{ syntax_index: {},", plain.unwrap());
    let builder = SYNTAXES.clone().into_builder();
    let mut found = 0;
    let syntaxes = builder.syntaxes().iter();
    for syntax in syntaxes.filter(|syntax| syntax.name != "Plain Text") {
        let contexts = syntax.contexts.values();
        for pattern in contexts.flat_map(|context| &context.patterns) {
            if let Pattern::Match(rule) = pattern
                && format!("{:?}", rule.operation).contains(&nowhere)
            {
                assert!(rule.with_prototype.is_some(), "{}", syntax.name);
                found += 1;
            }
        }
    }
    assert!(found > 5, "{found}");
}
