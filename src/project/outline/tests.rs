use super::*;

/// A text and the signatures expected of it.
type Case = (&'static str, &'static str, &'static [&'static str]);

fn told(path: &str, text: &str) -> Vec<String> {
    let signatures = signatures(path, text).into_iter();
    signatures
        .map(|signature| signature.text.into_owned())
        .collect()
}

fn assert_signatures(cases: &[Case]) {
    for (path, text, expected) in cases {
        assert_eq!(told(path, text), *expected, "{path}:\n{text}");
    }
}

#[test]
fn rust() {
    assert_signatures(&[
        (
            "a.rs",
            "pub fn a(x: u8) -> u8 { x }\nfn b() {}\npub(crate) struct C<'a>(&'a str);\npub async unsafe fn d(\n    x: u8,\n    y: u8,\n) -> u8\nwhere\n    u8: Copy,\n{\n}\n",
            &[
                "pub fn a(x: u8) -> u8",
                "pub(crate) struct C<'a>(&'a str)",
                "pub async unsafe fn d(x: u8, y: u8) -> u8",
            ],
        ),
        (
            "a.rs",
            "pub trait T {}\nimpl T for U {\n    fn x() {}\n}\npub trait V {\n    type W;\n    fn x(&self) {\n        fn y() {}\n    }\n}\nimpl V for U {\n    fn x(&self) {}\n    pub const N: u8 = 1;\n}\n",
            &[
                "pub trait T",
                "pub trait V",
                "type W",
                "fn x(&self)",
                "pub const N: u8 = 1",
            ],
        ),
        (
            "a.rs",
            "pub use a::{\n    B, C,\n};\nmacro_rules! m {\n}\n#[cfg(test)]\nmod tests {\n    pub fn helper() {}\n}\n",
            &["pub use a::{ B, C}", "macro_rules! m"],
        ),
    ]);
}

#[test]
fn any_other() {
    assert_signatures(&[
        ("a.txt", "pub fn a()\n", &[]),
        ("run", "#!/bin/bash -e\nf() {\n", &["f()"]),
    ]);
}

/// Counts words and line ends.
fn measure(text: &str) -> u64 {
    text.split_inclusive(['\n', ' ']).count() as u64
}

#[test]
fn files_are_grouped_by_directory_and_the_first_ranks_are_signed() {
    let files = [
        ("src/b.rs", "pub fn b();\npub fn c();\n"),
        ("src/deep/a.rs", "pub fn a();\n"),
        ("run", "no signatures\n"),
        ("src/a.rs", "pub struct A;\n"),
        ("--- x ---", ""),
    ];
    let told = |limit| {
        let outline = outline(&files, &measure, limit);
        assert!(measure(&outline.text) <= limit, "{limit}: {}", outline.text);
        (outline.text, outline.listed, outline.signed)
    };
    let all = "./\n --- x ---\n run\nsrc/\n a.rs\n  pub struct A\n b.rs\n  pub fn b()\n  pub fn c()\n\
        src/deep/\n a.rs\n  pub fn a()\n";
    assert_eq!(told(1000), (all.to_owned(), 5, 3));
    let some = "src/\n b.rs\nsrc/deep/\n a.rs\nand 3 more files in 2 folders\n";
    assert_eq!(told(14), (some.to_owned(), 2, 0));
    assert_eq!(told(6).0, "");
    assert_eq!(told(0).0, "");
    for limit in 0..100 {
        told(limit);
    }
}

#[test]
fn no_line_looks_like_the_header_of_a_file() {
    let files = [("--- a ---", ""), ("--- b ---/--- c ---", "")];
    let text = outline(&files, &measure, 100).text;
    assert_eq!(text, "--- b ---/\n --- c ---\n./\n --- a ---\n");
}

#[test]
fn a_huge_file_takes_linear_time() {
    for line in [
        "pub fn a(",
        "class A {",
        "\tB (",
        "(((((",
        "int a b c d e f g ",
    ] {
        for line in [
            line.repeat((1 << 20) / line.len()),
            format!("{line}\n").repeat(20_000),
        ] {
            for extension in [
                "rs", "py", "ts", "go", "java", "c", "h", "rb", "cs", "php", "sh",
            ] {
                signatures(&format!("a.{extension}"), &line);
            }
        }
    }
}
