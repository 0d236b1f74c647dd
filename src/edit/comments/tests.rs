//! Tests of lines and comments in each kind of language.

use super::*;

fn kinds(path: &str, text: &str) -> String {
    let kinds = Language::of(path).lines(text).into_iter();
    let letters = kinds.map(|kind| match kind {
        LineKind::Blank => '.',
        LineKind::Code => 'x',
        LineKind::Comment => 'c',
        LineKind::Doc => 'd',
    });
    letters.collect()
}

#[test]
fn lines_are_reported_by_the_marks_of_the_language() {
    for (path, text, expected) in [
        (
            "a.rs",
            "//! a\n\n/// b\n// c\n#[d]\nfn e() {} // f\n",
            "d.dcxx",
        ),
        (
            "a/b.js",
            "/* a\n b\n\n*/\nc();\n/** d\n * e */\nf\n",
            "ccccxddx",
        ),
        ("a.ts", "/* a */ b();\n/**/\nc/* d\n", "xcx"),
        ("a.tsx", "{/* a */}\n{/*\n a\n*/}\n<b/>\n", "ccccx"),
        ("a.py", "#!/bin/python\n# a\n\"\"\"b\"\"\"\n// c\n", "ccxx"),
        ("Makefile", "# a\nb: c\n", "cx"),
        ("a.sql", "-- a\nselect 1;\n", "cx"),
        ("a.css", "#a { }\n/* b */\n", "xc"),
        ("a.html", "<!-- a\n-->\n<p>\n// b\n", "ccxc"),
        ("a.md", "# a\n<!-- b -->\n-- c\n", "xcx"),
        ("a.el", "; a\n#'b\n", "cx"),
        ("a.tex", "% a\nb\n", "cx"),
        ("a.odd", "; a\n% b\n-- c\n# d\n// e\nf\n", "cccccx"),
        // An unterminated comment is a pattern.
        (".gitignored", "/*\n!a\n", "cx"),
    ] {
        assert_eq!(kinds(path, text), expected, "{path}: {text}");
    }
}

#[test]
fn comment_after_code_follows_a_blank_outside_quotes() {
    for (path, line, expected) in [
        ("a.js", "foo(); // a", Some("// a")),
        ("a.js", "foo(); /* a */ bar();", Some("/* a ")),
        ("a.js", "get('http://a // b');", None),
        ("a.js", "get(`a // b`, \"\\\" // c\");", None),
        ("a.js", "https://a.b/c", None),
        ("a.js", "it's // a", Some("// a")),
        ("a.rs", "fn a<'a>(b: &'a str) { // c", Some("// c")),
        ("a.rs", "fn a() {} /// b", None),
        ("a.py", "a = '# b'  # c", Some("# c")),
        ("a.jsx", "<p> {/* a */} </p>", Some("{/* a ")),
        ("a.odd", "a -- b // c", None),
    ] {
        let comment = Language::of(path).comment(line, LineKind::Code);
        assert_eq!(comment, expected, "{line}");
    }
}
