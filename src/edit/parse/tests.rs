//! Tests of the blocks of a reply, and of faults with their lines.

use super::*;
use proptest::prelude::*;

/// Returns the edits as `path=content`, removals as `path!`; or the faults.
fn summary(reply: &str) -> Result<Vec<String>, Vec<String>> {
    let parsed = parse(reply);
    if !parsed.faults.is_empty() {
        return Err(parsed.faults.iter().map(ToString::to_string).collect());
    }
    Ok(parsed
        .edits
        .iter()
        .map(|edit| match &edit.kind {
            EditKind::Write(content) => format!("{}={}", edit.path, content),
            EditKind::Remove => format!("{}!", edit.path),
        })
        .collect())
}

#[test]
fn a_reply_writes_and_removes_files() {
    let reply = "Done.\n^^^src/lib.rs\npub mod cli;\n^^^end\n^^^src/old.rs\n^^^delete\n";
    assert_eq!(
        summary(reply),
        Ok(vec![
            "src/lib.rs=pub mod cli;\n".to_owned(),
            "src/old.rs!".to_owned()
        ])
    );
}

#[test]
fn blocks_in_thoughts_are_no_edits() {
    let draft = "Delete it?\n^^^a\n^^^delete\nNo.\n";
    let reply = format!("\n<think>\n{draft}</think>\n\n^^^c\nnew\n^^^end\n");
    assert_eq!(summary(&reply), Ok(vec!["c=new\n".to_owned()]));
    assert_eq!(parse(&reply).edits[0].line, 9);
    let endless = format!("<think>\n{draft}");
    let parsed = incomplete(&endless, ReplyFormat::Whole).unwrap();
    assert!(parsed.edits.is_empty() && parsed.incomplete.is_some());
    // Without its beginning, it cannot be told which blocks are meant.
    for reply in [
        format!("{draft}</think>\n^^^c\nnew\n^^^end\n"),
        format!("{draft}So be it.</thinking>\n"),
    ] {
        let fault = "this ends a thought, and blocks stand before it: put all blocks behind it";
        let faults = summary(&reply).unwrap_err();
        assert!(
            faults.len() == 1 && faults[0].ends_with(fault),
            "{faults:?}"
        );
    }
    let reply = "<think>^^^a\nx</think>^^^b\ny\n^^^end\nIt strips all up to </think>\n";
    assert_eq!(summary(reply), Ok(vec!["b=y\n".to_owned()]));
    let plain = "Thinking is over.\n</think>\n^^^a\n</think>\n^^^end\n";
    assert_eq!(summary(plain), Ok(vec!["a=</think>\n".to_owned()]));
}

#[test]
fn text_outside_blocks_is_prose() {
    let reply = "Before.\n\n^^^a\nbody\n^^^end\nBetween.\n^^^b\n^^^delete\nBehind.";
    assert_eq!(parse(reply).prose, "Before.\n\nBetween.\nBehind.");
    assert_eq!(parse("^^^a\nnot closed\n").prose, "");
}

#[test]
fn files_are_what_a_reply_with_their_blocks_asks_for() {
    let content = "x\r\n^^^end\n";
    let write = |content: &str| EditKind::Write(content.to_owned());
    let parsed = ParsedReply::of_files(vec![("a/b".to_owned(), write(content))]);
    let EditKind::Write(written) = &parsed.edits[0].kind else {
        panic!("a file is written");
    };
    assert_eq!(written, content);
    let reply = parse("^^^b\n^^^delete\n^^^a/b\nx\n^^^end\n");
    let edits = [("b", EditKind::Remove), ("a/b", write("x\n"))];
    let parsed = ParsedReply::of_files(edits.map(|(path, kind)| (path.to_owned(), kind)).to_vec());
    let named = |parsed: &ParsedReply| -> Vec<(String, EditKind)> {
        let edits = parsed.edits.iter();
        edits
            .map(|edit| (edit.path.clone(), edit.kind.clone()))
            .collect()
    };
    assert_eq!(named(&parsed), named(&reply));
    assert_eq!((parsed.edits[0].line, parsed.faults.len()), (1, 0));
}

#[test]
fn a_block_is_taken_byte_by_byte() {
    for (reply, expected) in [
        ("^^^a\nx\n^^^end\n", vec!["a=x\n"]),
        ("^^^a\nx\n^^^end", vec!["a=x\n"]),
        (
            "prose\n^^^a\n\n  x\t \n\n^^^end\nmore prose",
            vec!["a=\n  x\t \n\n"],
        ),
        ("^^^a\n^^^end\n", vec!["a="]),
        ("^^^a\n\n^^^end\n", vec!["a=\n"]),
        ("^^^a\n^^^delete\n", vec!["a!"]),
        (
            "^^^a\n^^^delete \t\r\n^^^b\nx\n^^^end \n",
            vec!["a!", "b=x\n"],
        ),
        ("^^^b\n1\n^^^end\n^^^a\n2\n^^^end", vec!["a=2\n", "b=1\n"]),
        (" ^^^a\n ^^^end\n", vec![]),
        ("just prose, no ^^^a fences\n^^ nor these", vec![]),
        ("", vec![]),
        ("^^^a\nx^^^end\n^^^end", vec!["a=x^^^end\n"]),
        (
            "^^^a\n\u{1F600}\0\r\n\u{feff}\n^^^end",
            vec!["a=\u{1F600}\0\r\n\u{feff}\n"],
        ),
        ("^^^a\nstray \r here\r\n^^^end", vec!["a=stray \r here\r\n"]),
    ] {
        assert_eq!(summary(reply).unwrap(), expected, "{reply:?}");
    }
}

#[test]
fn crlf_belongs_to_the_path_unless_every_fence_line_ends_so() {
    assert_eq!(summary("^^^a\r\nx\r\n^^^end\r\n").unwrap(), ["a=x\r\n"]);
    assert_eq!(
        summary("^^^a\r\n^^^delete\r\n^^^b\r\nx\n^^^end\r\n").unwrap(),
        ["a!", "b=x\n"]
    );
    // The last line has no line ending, so it does not count.
    assert_eq!(summary("^^^a\r\nx\r\n^^^end").unwrap(), ["a=x\r\n"]);
    assert_eq!(summary("^^^a\r\nx\n^^^end\n").unwrap(), ["a\r=x\n"]);
    assert_eq!(summary("^^^a\r\r\nx\n^^^end\r\n").unwrap(), ["a\r=x\n"]);
    assert_eq!(summary("^^^a \nx\n^^^end\n").unwrap(), ["a =x\n"]);
}

#[test]
fn a_longer_fence_holds_shorter_ones() {
    for (reply, expected) in [
        ("^^^^a\n^^^b\n^^^end\n^^^^end", vec!["a=^^^b\n^^^end\n"]),
        ("^^^^a\n^^^delete\n^^^^end", vec!["a=^^^delete\n"]),
        (
            "^^^^^^a\n^^^^^x\n^^^^^^end\n^^^b\n^^^end",
            vec!["a=^^^^^x\n", "b="],
        ),
        ("^^^^a\n^^^^delete", vec!["a!"]),
    ] {
        assert_eq!(summary(reply).unwrap(), expected, "{reply:?}");
    }
}

#[test]
fn every_fault_is_named_with_its_line() {
    for (reply, expected) in [
        ("^^^\nx\n^^^end", vec!["line 1: `^^^` without a path"]),
        ("^^^ \t\r\n^^^end", vec!["line 1: `^^^` without a path"]),
        ("x\n^^^end", vec!["line 2: `^^^end` outside a block"]),
        ("^^^^end", vec!["line 1: `^^^end` outside a block"]),
        (
            "^^^delete",
            vec!["line 1: `^^^delete` that is not right under its `^^^path` line"],
        ),
        (
            "^^^a\n^^^delete\n^^^end",
            vec!["line 3: `^^^end` outside a block"],
        ),
        ("^^^a\nx", vec!["line 1: the block of `a` has no `^^^end`"]),
        (
            "^^^a\nx\n^^^end\n^^^done\n",
            vec![
                "line 4: the block of `done` has no `^^^end`: only a list of edits ends with `^^^done`, and then with `^^^done N`",
            ],
        ),
        (
            "^^^a\nx\n^^^ end",
            vec![
                "line 3: `^^^ end` inside the block of `a` from line 1, whose `^^^end` is missing",
                "line 3: the block of ` end` has no `^^^end`",
            ],
        ),
        (
            "^^^a\nx\n^^^b\ny\n^^^end",
            vec!["line 3: `^^^b` inside the block of `a` from line 1, whose `^^^end` is missing"],
        ),
        (
            "^^^a\nx\n^^^delete\n",
            vec![
                "line 3: `^^^delete` inside the block of `a` from line 1, whose `^^^end` is missing",
            ],
        ),
        (
            "^^^a\nx\n^^^^end\n",
            vec![
                "line 3: `^^^^end` inside the block of `a` from line 1, whose `^^^end` is missing",
            ],
        ),
        (
            "^^^^a\nx\n^^^end\n",
            vec!["line 1: the block of `a` has no `^^^^end`"],
        ),
        (
            "^^^^a\nx\n^^^^^b\n^^^^^end\n",
            vec![
                "line 3: `^^^^^b` inside the block of `a` from line 1, whose `^^^^end` is missing",
            ],
        ),
        (
            "^^^a/b\n^^^end\n^^^a\n^^^end\n",
            vec!["line 1: `a` is to be a file, but `a/b` is written too"],
        ),
        (
            "^^^end\n^^^\n^^^end\n^^^x",
            vec![
                "line 1: `^^^end` outside a block",
                "line 2: `^^^` without a path",
                "line 4: the block of `x` has no `^^^end`",
            ],
        ),
    ] {
        assert_eq!(summary(reply).unwrap_err(), expected, "{reply:?}");
    }
}

#[test]
fn the_later_block_of_a_path_counts() {
    let parsed = parse("^^^a\n1\n^^^end\n^^^a\n^^^delete\n^^^a\n2\n^^^end");
    assert_eq!(parsed.repeated, ["a"]);
    assert_eq!(parsed.edits.len(), 1);
    assert_eq!(parsed.edits[0].line, 6);
    // The grammar lets a removed file make way for a directory of the same name.
    assert!(summary("^^^a\n^^^delete\n^^^a/b\n^^^end").is_ok());
}

proptest! {
    #[test]
    fn any_bodies_come_back_as_they_went_in(
        bodies in prop::collection::btree_map("[a-z]{1,4}[.][a-z]", "([^^\n][^\n]{0,9}|\\^{0,2}[a-z ]?|)(\n([^^\n][^\n]{0,9}|))*\n|", 0..6),
        prose in "([^^\n][^\n]{0,20}\n)?",
    ) {
        let reply: String = bodies.iter()
            .map(|(path, body)| format!("{prose}^^^{path}\n{body}^^^end\n")).collect();
        let expected: Vec<String> = bodies.iter().map(|(path, body)| format!("{path}={body}")).collect();
        prop_assert_eq!(summary(&reply).unwrap(), expected);
    }

    #[test]
    fn no_text_makes_it_panic(reply in "([\\^ab/\r\n ]|\\^\\^\\^|end|delete|\n)*") {
        let parsed = parse(&reply);
        for edit in &parsed.edits {
            prop_assert!(!edit.path.is_empty() && !edit.path.contains('\n'));
        }
    }
}

/// Returns the paths with the number of their replacements, and the faults, of a reply in the edit format.
fn edits(reply: &str) -> (Vec<String>, Vec<String>, Option<String>) {
    let parsed = parse_as(reply, ReplyFormat::Edits);
    let edits = parsed.edits.iter();
    let paths = edits.map(|edit| format!("{} {}", edit.path, edit.parts.len()));
    let faults = parsed.faults.iter().map(ToString::to_string);
    (paths.collect(), faults.collect(), parsed.incomplete)
}

const NOT_DONE: &str = "it does not end with `^^^done N`, N being the number of its files";
const EDIT: &str = "^^^a\n^^^find\n1\n^^^put\n2\n^^^find\n3\n^^^put\n^^^end\n";

#[test]
fn edits_whole_files_and_removals_stand_in_one_reply() {
    let reply = format!(
        "Here it is.\n{EDIT}^^^b\nwhole\n^^^end\n^^^c\n^^^delete\n^^^done 3\nThat is all.\n"
    );
    let paths = ["a 2", "b 0", "c 0"].map(str::to_owned).to_vec();
    assert_eq!(edits(&reply), (paths.clone(), vec![], None));
    // Trailing blanks and CRLF are ignored after marks.
    let crlf = reply.replace('\n', "\r\n");
    assert_eq!(edits(&crlf), (paths.clone(), vec![], None));
    let blanks = reply
        .replace("find\n", "find \t\n")
        .replace("put\n", "put \n");
    assert_eq!(edits(&blanks), (paths, vec![], None));
    let parts = parse_as(&reply, ReplyFormat::Edits).edits[0].parts.clone();
    let part = |line, find: &str, put: &str| Replacement {
        line,
        find: find.to_owned(),
        put: put.to_owned(),
    };
    assert_eq!(parts, [part(3, "1\n", "2\n"), part(7, "3\n", "")]);
    assert_eq!(parts[0].put_line(), 5);
}

#[test]
fn a_reply_of_edits_ends_with_the_number_of_its_files() {
    for (reply, expected) in [
        (format!("{EDIT}^^^done 1\n"), None),
        (format!("{EDIT}^^^done 1"), None),
        (format!("{EDIT}^^^done 1 \r\nprose\n"), None),
        ("There is nothing to do.\n^^^done 0\n".to_owned(), None),
        (EDIT.to_owned(), Some(NOT_DONE)),
        (String::new(), Some(NOT_DONE)),
        (format!("{EDIT}^^^done\n"), Some(NOT_DONE)),
        (format!("{EDIT}^^^done one\n"), Some(NOT_DONE)),
        (format!("{EDIT} ^^^done 1\n"), Some(NOT_DONE)),
        (
            format!("{EDIT}^^^done 2\n"),
            Some("it says `^^^done 2`, and names 1 file"),
        ),
        (
            format!("{EDIT}^^^done 1\n^^^b\n^^^delete\n"),
            Some("there is more after its `^^^done`, on line 11"),
        ),
        (
            format!("{EDIT}^^^done 1\n^^^done 1\n"),
            Some("there is more after its `^^^done`, on line 11"),
        ),
    ] {
        assert_eq!(
            parse_as(&reply, ReplyFormat::Edits).incomplete.as_deref(),
            expected,
            "{reply}"
        );
    }
}

const OUT_OF_PLACE: &str = "out of place: right below its path, a block has `^^^find` and `^^^put` by turns, then `^^^end`";

#[test]
fn faults_of_edits_are_named_with_their_lines() {
    for (reply, expected) in [
        (
            "^^^a\n\n^^^find\n1\n^^^put\n^^^end\n",
            &[format!("line 3: `a`: `^^^find` {OUT_OF_PLACE}")][..],
        ),
        (
            "^^^a\n^^^find\n1\n^^^end\n",
            &[format!("line 4: `a`: `^^^end` {OUT_OF_PLACE}")],
        ),
        (
            "^^^a\n^^^find\n1\n^^^find\n2\n^^^put\n^^^end\n",
            &[format!("line 4: `a`: `^^^find` {OUT_OF_PLACE}")],
        ),
        (
            "^^^a\n^^^put\n2\n^^^end\n",
            &[format!("line 2: `a`: `^^^put` {OUT_OF_PLACE}")],
        ),
        (
            "^^^a\n^^^find\n1\n^^^put\n2\n^^^put\n3\n^^^end\n",
            &[format!("line 6: `a`: `^^^put` {OUT_OF_PLACE}")],
        ),
        (
            "^^^find\n1\n",
            &["line 1: `^^^find` outside a block".to_owned()],
        ),
        (
            "^^^a\n^^^find\n1\n^^^put\n^^^end\n^^^a\n^^^delete\n",
            &["line 6: `a` has a block on line 1 already: put all of a file into one block".to_owned()],
        ),
        (
            "^^^a\n^^^find\n1\n^^^put\n2\n^^^done 1\n",
            &["line 6: `^^^done 1` inside the block of `a` from line 1, whose `^^^end` is missing".to_owned()],
        ),
        (
            "^^^a\n^^^find\n1\n^^^put\n2\n^^^delete\n",
            &["line 6: `^^^delete` inside the block of `a` from line 1, whose `^^^end` is missing".to_owned()],
        ),
        (
            "^^^a\n^^^find\n1\n^^^put\n",
            &["line 1: the block of `a` has no `^^^end`".to_owned()],
        ),
        (
            "^^^a\n^^^find\n1\n^^^put\n^^^^end\n",
            &["line 5: `^^^^end` inside the block of `a` from line 1, whose `^^^end` is missing".to_owned()],
        ),
    ] {
        assert_eq!(edits(reply).1, expected, "{reply}");
    }
}

#[test]
fn replies_of_whole_files_may_end_with_their_number_and_have_such_paths() {
    let whole =
        |reply: &str| incomplete(reply, ReplyFormat::Whole).and_then(|parsed| parsed.incomplete);
    let reply = "^^^a\nx\n^^^end\n^^^done 1\nprose\n";
    assert_eq!(
        (summary(reply), whole(reply)),
        (Ok(vec!["a=x\n".to_owned()]), None)
    );
    assert_eq!(parse(reply).prose, "prose\n");
    assert_eq!(
        whole("^^^a\nx\n^^^end\n^^^done 2\n").as_deref(),
        Some("it says `^^^done 2`, and names 1 file")
    );
    for (reply, expected) in [
        ("^^^done 3\nx\n^^^end\n", "done 3=x\n"),
        ("^^^done 3\n^^^delete\n", "done 3!"),
        ("^^^find\nx\n^^^end\n", "find=x\n"),
        ("^^^put\n^^^end\n", "put="),
        ("^^^need\na\n^^^end\n", "need=a\n"),
    ] {
        assert_eq!(
            (summary(reply), whole(reply)),
            (Ok(vec![expected.to_owned()]), None)
        );
    }
    assert!(summary("^^^a\n^^^find\n1\n^^^put\n2\n^^^end\n").is_err());
}
