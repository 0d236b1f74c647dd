//! Tests of the reader on real outputs, shortened where repetitive.

use super::*;

/// Outputs, each below its name, and their findings: file, line, tool and message.
const OUTPUTS: &str = include_str!("outputs.txt");

#[test]
fn the_findings_of_many_tools_are_read() {
    let mut wrong = String::new();
    for case in OUTPUTS.split("@@ ").skip(1) {
        let (name, case) = case.split_once('\n').unwrap();
        let (output, expected) = case.split_once("==>\n").unwrap();
        let found = read(output, Path::new("/work/p"));
        let told = found.iter().map(|found| {
            let line = found.line.map_or("-".to_owned(), |line| line.to_string());
            let file = found.file.as_deref().unwrap_or("-");
            format!("{file} {line} {} {}\n", found.tool, found.message)
        });
        let told: String = told.collect();
        if told != expected {
            wrong += &format!("{name}:\n{told}instead of\n{expected}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_thousand_findings_are_enough() {
    let output = |lines: usize| -> String {
        (0..lines)
            .map(|at| format!("a.c:{at}:1: error: no\n"))
            .collect()
    };
    assert_eq!(read(&output(999), Path::new("/")).len(), 999);
    assert_eq!(read(&output(20_000), Path::new("/")).len(), MOST);
}

#[test]
fn changing_numbers_are_normalized() {
    for (message, expected) in [
        ("no answer after 12 ms", "no answer after …"),
        ("took 3.25s at 0x7ffd12ab", "took … at …"),
        ("see src/a.rs:12:3 and E0308", "see src/a.rs and E0308"),
        ("2026-11-26 10:12:44.1 it broke", "… … it broke"),
        (
            "expected 2 arguments,  found 1",
            "expected 2 arguments, found 1",
        ),
    ] {
        let found = read(&format!("error: {message}"), Path::new("/work/p"));
        assert_eq!(found[0].message, expected);
    }
}
