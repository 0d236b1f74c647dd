//! Tests that locate replacements, and of faults that name the nearest lines.

use super::*;
use crate::edit::parse::incomplete;
use proptest::prelude::*;

/// Returns the new text of the file `f`, which was sent as `text`, or the faults.
fn applied(text: &str, reply: &str) -> Result<String, Vec<String>> {
    let sent = |path: &str| match path {
        "f" => Sent::Text(text.to_owned()),
        "hidden" => Sent::NotShown,
        _ => Sent::Missing,
    };
    let parsed = read(reply, ReplyFormat::Edits, &sent);
    if !parsed.faults.is_empty() {
        return Err(parsed.faults.iter().map(ToString::to_string).collect());
    }
    match &parsed.edits[..] {
        [edit] => match &edit.kind {
            EditKind::Write(text) => Ok(text.clone()),
            EditKind::Remove => panic!("the file is written"),
        },
        other => panic!("one edit: {other:?}"),
    }
}

/// Returns a reply that replaces these lines of `f`.
fn reply(parts: &[(&str, &str)]) -> String {
    let edits: String = parts
        .iter()
        .map(|(find, put)| format!("^^^find\n{find}^^^put\n{put}"))
        .collect();
    format!("^^^f\n{edits}^^^end\n^^^done 1\n")
}

#[test]
fn lines_are_replaced_where_they_stand() {
    for (text, parts, expected) in [
        ("a\nb\nc\n", &[("b\n", "x\ny\n")][..], "a\nx\ny\nc\n"),
        ("a\nb\nc\n", &[("b\n", "")], "a\nc\n"),
        ("a\nb\nc\n", &[("a\nb\nc\n", "")], ""),
        // Replacements may come in any order, and be adjacent.
        ("a\nb\nc\n", &[("c\n", "3\n"), ("a\n", "1\n")], "1\nb\n3\n"),
        ("a\nb\nc\n", &[("b\n", "2\n"), ("a\n", "1\n")], "1\n2\nc\n"),
        // Lines inserted by another replacement are not found.
        ("a\nb\n", &[("a\n", "b\n"), ("b\n", "a\n")], "b\na\n"),
        // Parts of lines do not match.
        ("xb\nb\nbx\n", &[("b\n", "2\n")], "xb\n2\nbx\n"),
        ("a\n\nb\n", &[("\n", "-\n")], "a\n-\nb\n"),
        // The last line keeps its line ending, or the lack of one.
        ("a\nb", &[("b\n", "x\ny\n")], "a\nx\ny"),
        ("b", &[("b\n", "x\n")], "x"),
        ("a\nb", &[("a\nb\n", "x\n")], "x"),
        ("a\nb", &[("b\n", "")], "a\n"),
        ("a\nb", &[("a\n", "x\n")], "x\nb"),
        // CRLF is kept from the file whatever the reply uses; mixed line endings are matched byte by byte.
        (
            "a\r\nb\r\nc\r\n",
            &[("b\n", "x\ny\n")],
            "a\r\nx\r\ny\r\nc\r\n",
        ),
        ("a\r\nb\r\n", &[("b\r\n", "x\r\n")], "a\r\nx\r\n"),
        ("a\r\nb", &[("b\n", "x\ny\n")], "a\r\nx\r\ny"),
        ("a\r\nb\nc\n", &[("a\r\n", "x\r\n")], "x\r\nb\nc\n"),
        ("a\r\nb\nc\n", &[("b\n", "x\n")], "a\r\nx\nc\n"),
        ("one", &[("one\r\n", "two\r\n")], "two"),
    ] {
        assert_eq!(
            applied(text, &reply(parts)).as_deref(),
            Ok(expected),
            "{text:?} {parts:?}"
        );
    }
}

#[test]
fn longer_fences_hold_marks() {
    let edit = "^^^^f\n^^^^find\n^^^find\n^^^^put\n^^^put\n^^^end\n^^^^end\n^^^done 1\n";
    assert_eq!(
        applied("a\n^^^find\n", edit).as_deref(),
        Ok("a\n^^^put\n^^^end\n")
    );
}

#[test]
fn every_fault_is_reported_with_its_position() {
    let text = "fn one() {\n    step();\n}\n\nfn two() {\n    step();\n}\n";
    for (parts, expected) in [
        (
            &[("    stop();\n", "x\n")][..],
            &[
                "line 2: `f`: there is no line `    stop();` in the file as it was sent; the nearest is line 2: `    step();`",
            ][..],
        ),
        (
            &[("fn one() {\n\tstep();\n", "x\n")],
            &[
                "line 2: `f`: there is no line `\\tstep();` in the file as it was sent; the nearest is line 2 (other blanks): `    step();`",
            ],
        ),
        (
            &[("}\nfn two() {\n", "x\n")],
            &["line 2: `f`: the lines are not in the file as it was sent, in a row"],
        ),
        (
            &[("}\n}\n", "x\n")],
            &["line 2: `f`: the lines are not in the file as it was sent, in a row"],
        ),
        (
            &[("    step();\n}\n", "x\n")],
            &[
                "line 2: `f`: the lines are in the file 2 times, on lines 2, 6: add lines around them until they are there once",
            ],
        ),
        (
            &[
                ("fn one() {\n    step();\n", "x\n"),
                ("    step();\n}\n\n", "y\n"),
            ],
            &[
                "line 7: `f`: the lines overlap those of the `^^^find` on line 2, from line 2 of the file on: join the two",
            ],
        ),
        (
            &[("fn one() {\n", "fn one() {\n")],
            &["line 2: `f`: the `^^^put` is the same as the `^^^find`"],
        ),
        (&[("", "x\n")], &["line 2: `f`: the `^^^find` has no line"]),
        (
            &[
                ("一\n", "x\n"),
                ("fn two() {\n", "fn two() {\n"),
                ("\n", ""),
            ],
            &[
                "line 2: `f`: there is no line `一` in the file as it was sent",
                "line 6: `f`: the `^^^put` is the same as the `^^^find`",
            ],
        ),
    ] {
        let expected: Vec<String> = expected.iter().map(|fault| (*fault).to_owned()).collect();
        assert_eq!(applied(text, &reply(parts)), Err(expected), "{parts:?}");
    }
    for (path, expected) in [
        (
            "hidden",
            "line 1: `hidden`: the file was not shown, so nothing can be found in it",
        ),
        (
            "gone",
            "line 1: `gone`: the file does not exist: to create it, write it as a whole",
        ),
    ] {
        let reply = reply(&[("a\n", "b\n")]).replace("^^^f\n", &format!("^^^{path}\n"));
        assert_eq!(applied("", &reply), Err(vec![expected.to_owned()]));
    }
}

#[test]
fn lines_that_look_alike_are_distinguished() {
    for (text, find, how) in [
        (
            "caf\u{e9}\n",
            "cafe\u{301}\n",
            " (another normal form of Unicode)",
        ),
        ("alpha\r\nb\nc\n", "alpha\n", " (another line end)"),
        ("a  b\n", "a b\n", " (other blanks)"),
        ("a b \n", "a b\n", " (other blanks)"),
        ("}\r\nb\nc\n", "}\n", " (another line end)"),
        (" }\n", "}\n", " (other blanks)"),
        ("\u{feff}a\n", "a\n", " (a byte order mark)"),
    ] {
        let faults = applied(text, &reply(&[(find, "x\n")])).unwrap_err();
        assert!(
            faults[0].contains(&format!("the nearest is line 1{how}: ")),
            "{faults:?}"
        );
    }
}

#[test]
fn only_lines_that_were_shown_are_replaced_and_all_count() {
    let text = "a\nb\nc\nb\nd\n";
    for (find, expected) in [
        ("c\n", Ok("a\nb\nx\nb\nd\n")),
        ("c\nb\n", Ok("a\nb\nx\nd\n")),
        (
            "d\n",
            Err(
                "line 2: `f`: the lines, from line 5 of the file on, are not among those that were shown",
            ),
        ),
        (
            "b\nd\n",
            Err(
                "line 2: `f`: the lines, from line 4 of the file on, are not among those that were shown",
            ),
        ),
        (
            "b\n",
            Err(
                "line 2: `f`: the lines are in the file 2 times, on lines 2, 4: add lines around them until they are there once",
            ),
        ),
    ] {
        let sent = |_: &str| Sent::Excerpts(text.to_owned(), vec![2..3, 3..4]);
        let parsed = read(&reply(&[(find, "x\n")]), ReplyFormat::Edits, &sent);
        let fault = parsed.faults.first().map(ToString::to_string);
        let new = parsed.edits.first().map(|edit| &edit.kind);
        match expected {
            Ok(text) => assert_eq!(new, Some(&EditKind::Write(text.to_owned()))),
            Err(expected) => assert_eq!(fault.as_deref(), Some(expected)),
        }
    }
}

#[test]
fn occurrences_that_overlap_each_other_are_several() {
    for (text, find, expected) in [
        ("a\na\na\n", "a\na\n", "2 times, on lines 1, 2:"),
        ("a\na\na", "a\na\n", "2 times, on lines 1, 2:"),
        ("\n\n\n", "\n\n", "2 times, on lines 1, 2:"),
        (
            &"\n".repeat(2000),
            "\n",
            "more than 100 times, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …:",
        ),
    ] {
        let faults = applied(text, &reply(&[(find, "x\n")])).unwrap_err();
        assert!(faults[0].contains(expected), "{faults:?}");
    }
}

#[test]
fn a_large_file_is_searched_at_once() {
    let text: String = (0..1_300_000)
        .map(|n| format!("    let value_{n} = compute({n});\n"))
        .collect();
    assert!(text.len() > 40 << 20);
    let edit = reply(&[
        ("    let value_900000 = compute(900000);\n", "x\n"),
        ("    let value_7 = compute(7);\n", ""),
    ]);
    let new = applied(&text, &edit).unwrap();
    assert!(new.contains("\nx\n    let value_900001 ") && !new.contains("compute(7);"));
    let near = applied(
        &text,
        &reply(&[("    let value_12 = compute(12)\n", "x\n")]),
    )
    .unwrap_err();
    assert!(
        near[0].contains("the nearest is line 13: `    let value_12 = compute(12);`"),
        "{near:?}"
    );
}

#[test]
fn few_of_the_lines_that_are_missing_are_explained() {
    let long: String = (0..100_000)
        .map(|n: u32| format!("{:0200}\n", u128::from(n.wrapping_mul(2_654_435_761))))
        .collect();
    for (text, find, expected) in [
        (
            format!("b\n{}", "a\n".repeat(1_000_000)),
            format!("{}b\n", "a\n".repeat(5000)),
            "in a row",
        ),
        (long, format!("{:0200}\n", 1), "the nearest is line "),
    ] {
        let parts = [(find.as_str(), "x\n"); 10];
        let faults = applied(&text, &reply(&parts)).unwrap_err();
        assert!(faults[2].contains(expected), "{faults:?}");
        assert!(faults[3].contains("in a row"), "{faults:?}");
    }
}

#[test]
fn a_limited_number_of_lines_is_compared() {
    // These lines have the same letters as the one that is sought, so each is compared.
    let other = "bacdefghijklmnopqrstuvwxzy\n";
    for (others, expected) in [(DISTANCES - 1, DISTANCES), (DISTANCES, 1)] {
        let text = format!("{}abcdefghijklmnopqrstuvwxy!\n", other.repeat(others));
        let find = reply(&[("abcdefghijklmnopqrstuvwxyz\n", "x\n")]);
        let faults = applied(&text, &find).unwrap_err();
        let nearest = format!("the nearest is line {expected}: ");
        assert!(faults[0].contains(&nearest), "{faults:?}");
    }
}

#[test]
fn the_nearest_line_is_one_that_was_shown() {
    let sent = |_: &str| Sent::Excerpts("secret = 12\nsecret = x\n".to_owned(), vec![1..2, 3..4]);
    let reply = reply(&[("secret = 1\n", "x\n")]);
    let fault = read(&reply, ReplyFormat::Edits, &sent).faults[0].to_string();
    assert!(
        fault.ends_with("the nearest is line 2: `secret = x`"),
        "{fault}"
    );
}

/// Returns the positions of these lines in a text.
fn places(text: &[String], find: &[String]) -> Vec<usize> {
    let windows = text.windows(find.len()).enumerate();
    windows
        .filter(|(_, window)| *window == find)
        .map(|(at, _)| at)
        .collect()
}

/// A text of short lines; and replacements, each as the start and length of lines to find, and the new lines.
type Case = (Vec<String>, Vec<(usize, usize, Vec<String>)>);

fn case() -> impl Strategy<Value = Case> {
    let line = "[ab]{0,2}|[cd]{6}|\u{e9}|\\^{1,2}x|\\^{3}end";
    let text = prop::collection::vec(line, 1..30);
    let parts = prop::collection::vec(
        (0..30_usize, 1..4_usize, prop::collection::vec(line, 0..3)),
        1..4,
    );
    (text, parts)
}

proptest! {
    #[test]
    fn only_unique_matches_are_replaced((text, parts) in case(), has_crlf: bool, is_bare: bool) {
        let mut parts: Vec<_> = parts
            .into_iter()
            .filter(|(start, length, _)| start + length <= text.len())
            .map(|(start, length, put)| (start, text[start..start + length].to_vec(), put))
            .collect();
        prop_assume!(!parts.is_empty());
        // An empty last line without a line ending is not a line.
        prop_assume!(!(is_bare && text.last().is_some_and(String::is_empty)));
        let joined = |lines: &[String], end: &str| lines.iter().map(|line| format!("{line}{end}")).collect::<String>();
        let end = if has_crlf { "\r\n" } else { "\n" };
        let mut file = joined(&text, end);
        if is_bare {
            file.truncate(file.len() - end.len());
        }
        let marks = parts.iter().map(|(_, find, put)| {
            format!("^^^^find\n{}^^^^put\n{}", joined(find, "\n"), joined(put, "\n"))
        });
        let edit = format!("^^^^f\n{}^^^^end\n^^^done 1", marks.collect::<String>());
        let is_clear = parts.iter().all(|(_, find, put)| find != put && places(&text, find).len() == 1);
        parts.sort_by_key(|(start, ..)| *start);
        let is_apart = parts.windows(2).all(|pair| pair[0].0 + pair[0].1.len() <= pair[1].0);
        let result = applied(&file, &edit);
        if !(is_clear && is_apart) {
            prop_assert!(result.is_err(), "{edit}");
            return Ok(());
        }
        let mut new: Vec<String> = text.clone();
        for (start, find, put) in parts.iter().rev() {
            new.splice(*start..*start + find.len(), put.clone());
        }
        let mut expected = joined(&new, end);
        let keeps_last = parts.last().is_none_or(|(start, find, put)| start + find.len() < text.len() || !put.is_empty());
        if is_bare && keeps_last {
            expected.truncate(expected.len() - end.len());
        }
        // A file of one line has no line ending to copy.
        if has_crlf && is_bare && text.len() == 1 {
            expected = expected.replace("\r\n", "\n");
        }
        prop_assert_eq!(result, Ok(expected));
        for cut in (0..edit.len()).filter(|cut| edit.is_char_boundary(*cut)) {
            prop_assert!(incomplete(&edit[..cut], ReplyFormat::Edits).is_some(), "{}", &edit[..cut]);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ab\r\n]*", reply in "(\\^\\^\\^|\\^|f|find|put|end|delete|done 1|a|b|\r|\n)*") {
        let _ = applied_or_other(&text, &reply);
    }
}

fn applied_or_other(text: &str, reply: &str) -> ParsedReply {
    read(reply, ReplyFormat::Edits, &|_| Sent::Text(text.to_owned()))
}
