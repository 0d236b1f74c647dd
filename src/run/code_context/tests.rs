//! Tests of the selection under a limit, of models' requests for more, and of the locations in a build's output.

use std::fs;
use std::ops::Range;

use super::*;
use crate::edit::parse;
use crate::model::ReplyFormat::Edits;
use crate::run::code_base::LeftOut;

fn code_base(files: &[(&str, &str)]) -> CodeBase {
    let rolled =
        |(path, content): &(&str, &str)| Rolled::of((*path).to_owned(), (*content).to_owned());
    CodeBase {
        files: files.iter().map(rolled).collect(),
        left_out: Vec::<LeftOut>::new(),
    }
}

fn selected(files: &[(&str, &str)], query: &str, limit: &CodeLimit) -> CodeContext {
    CodeContext::select(code_base(files), query, &[], limit).unwrap()
}

fn within(tokens: u64) -> CodeLimit {
    CodeLimit {
        tokens: Some(tokens),
        ..CodeLimit::default()
    }
}

const FILES: [(&str, &str); 3] = [
    ("src/alpha.rs", "pub fn alpha() {}\n"),
    ("src/beta.rs", "pub fn beta() {}\n"),
    ("src/gamma.rs", "pub fn gamma() {}"),
];

#[test]
fn the_outline_comes_first_then_whole_files_in_the_form_of_a_rollup() {
    let code = selected(&FILES, "beta", &within(4000));
    let text = code.text();
    let (outline, files) = text.split_once("--- ").unwrap();
    for (path, _) in FILES {
        assert!(
            outline.contains(path.rsplit('/').next().unwrap()),
            "{outline}"
        );
    }
    assert_eq!(files, "src/beta.rs ---\npub fn beta() {}\n");
    assert_eq!(code.sight.whole, ["src/beta.rs".to_owned()].into());
}

#[test]
fn files_that_the_user_names_come_first() {
    let query = "beta, as in @src/gamma.rs";
    let include = vec!["src/alpha.rs".into()];
    let limit = CodeLimit {
        include,
        ..within(4000)
    };
    let code = selected(&FILES, query, &limit);
    let shown = code.shown.iter();
    let mut paths: Vec<_> = shown.map(|shown| FILES[shown.index].0).collect();
    assert_eq!(paths.pop(), Some("src/beta.rs"));
    paths.sort_unstable();
    assert_eq!(paths, ["src/alpha.rs", "src/gamma.rs"]);
}

#[test]
fn excluded_files_are_never_sent() {
    let exclude = vec!["src/beta.rs".into()];
    let limit = CodeLimit {
        exclude,
        ..within(4000)
    };
    let text = selected(&FILES, "beta", &limit).text();
    assert!(!text.contains("beta"), "{text}");
}

#[test]
fn a_path_to_choose_that_does_not_exist_is_an_error() {
    let include = vec!["src/delta.rs".into()];
    let limit = CodeLimit {
        include,
        ..within(4000)
    };
    let error = CodeContext::select(code_base(&FILES), "", &[], &limit)
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "`src/delta.rs` names no tracked file");
}

#[test]
fn a_query_names_a_file_by_its_whole_path() {
    for (query, path, expected) in [
        ("change src/a.rs.", "src/a.rs", true),
        ("change `src/a.rs`: it", "src/a.rs", true),
        ("./src/a.rs", "src/a.rs", true),
        ("src/a.rs and lib/src/a.rs", "src/a.rs", true),
        ("lib/src/a.rs", "src/a.rs", false),
        ("src/a.rst", "src/a.rs", false),
        ("src/a.rs.bak", "src/a.rs", false),
        ("the license", "license", false),
        ("the @license", "license", true),
        ("a Makefile.am", "Makefile", false),
    ] {
        assert_eq!(words(query).contains(path), expected, "{query:?} {path}");
    }
}

#[test]
fn a_large_file_is_shown_in_excerpts_that_say_which_lines_they_are() {
    let mut large: String = (0..2000)
        .map(|at| format!("let other{at} = {at};\n"))
        .collect();
    large += "fn beta() {}\n";
    let code = selected(&[("a.rs", &large), FILES[0]], "beta", &within(4000));
    let text = code.text();
    let title = text
        .lines()
        .find(|line| line.starts_with("--- a.rs (lines "))
        .unwrap();
    assert!(title.ends_with(" of 2001) ---"), "{title}");
    assert!(
        text.contains("2001\tfn beta() {}") || !text.contains("beta"),
        "{text}"
    );
    assert!(tokens::count(&text) <= 4000);
    assert!(code.sight.whole.is_empty() && code.sight.parts.contains_key("a.rs"));
}

/// Returns the faults of the requests in these replies, granted in turn.
fn granted(code: &mut CodeContext, replies: &[&str]) -> Vec<String> {
    let grant = |reply: &&str| {
        let parsed = parse(reply);
        let request = parsed.request().unwrap();
        let faults = code
            .grant(&parsed, request, false, 1000)
            .err()
            .unwrap_or_default();
        faults.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    replies.iter().flat_map(grant).collect()
}

#[test]
fn a_request_is_granted_whole_or_not_at_all() {
    for (list, expected) in [
        ("src/alpha.rs\n\nsrc/alpha.rs\n", None),
        ("", Some("line 1: a request for files names at least one")),
        (
            "src/beta.rs\n",
            Some("line 2: `src/beta.rs`: the prompt shows this file in whole already"),
        ),
        (
            "src/alpha.rs\n../x\n",
            Some("line 3: `../x`: the code base has no such file, or none that may be sent"),
        ),
        (
            "/etc/passwd\n",
            Some("line 2: `/etc/passwd`: the code base has no such file, or none that may be sent"),
        ),
    ] {
        let mut code = selected(&FILES, "beta", &within(4000));
        let reply = format!("^^^need\n{list}^^^end\n");
        let faults = granted(&mut code, &[&reply]);
        assert_eq!(faults.first().map(String::as_str), expected, "{list:?}");
        let needed = if expected.is_none() {
            "--- src/alpha.rs ---\npub fn alpha() {}\n"
        } else {
            ""
        };
        assert_eq!(code.needed(), needed);
    }
}

#[test]
fn a_request_stands_alone() {
    for reply in [
        "^^^need\nsrc/alpha.rs\n^^^end\n^^^a\nx\n^^^end\n",
        "^^^need\nsrc/alpha.rs\n^^^end\n^^^end\n",
    ] {
        let mut code = selected(&FILES, "beta", &within(4000));
        let expected = "line 1: a request for files stands alone, without edits";
        assert_eq!(granted(&mut code, &[reply]), [expected], "{reply}");
    }
    let mut code = selected(&FILES, "beta", &within(4000));
    let expected = "line 1: a request for files lists them, one path a line";
    assert_eq!(granted(&mut code, &["^^^need\n^^^delete\n"]), [expected]);
}

#[test]
fn a_fourth_request_is_refused() {
    let paths = ["f0.rs", "f1.rs", "f2.rs", "f3.rs"];
    let mut code = selected(&paths.map(|path| (path, "x\n")), "beta", &within(4000));
    let asked = paths.map(|path| format!("^^^need\n{path}\n^^^end\n"));
    let requests = asked.each_ref().map(String::as_str);
    let expected = "line 1: no more files are sent: answer with edits";
    assert_eq!(granted(&mut code, &requests), [expected]);
    assert_eq!(code.rounds(), 3);
}

#[test]
fn the_places_that_a_build_names_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let numbered: String = (1..=60).map(|at| format!("line {at}\n")).collect();
    let files = [("src/a.py", &*numbered), ("src/beta.rs", "beta\n")];
    let root = dir.path().display();
    for (output, expected) in [
        ("src/a.py:20: error", vec!["5-34"]),
        ("  File \"src/a.py\", line 3, in f", vec!["1-17"]),
        (&format!("{root}/src/a.py:20:5: bad"), vec!["5-34"]),
        (
            "./src/a.py:5: x\nsrc/a.py(20,1): y\nsrc/a.py:58: z",
            vec!["1-34", "43-60"],
        ),
        ("src/a.py:999: gone", vec![]),
        ("src/a.py:0: none", vec![]),
        ("a.py:20: error", vec!["5-34"]),
        ("\tsrc/a.py:[20,8] error", vec!["5-34"]),
        ("in src/a.py on line 20", vec!["5-34"]),
        // Not in the code base; seen in whole; outside of the project.
        (
            "other.py:3: x\nsrc/beta.rs:3: x\n../src/a.py:3: x\nlib/a.py:3: x",
            vec![],
        ),
        ("99999999999999999999999:1", vec![]),
    ] {
        let mut code = selected(&files, "beta", &within(4000));
        let text = code.places(output, dir.path());
        let title = text.lines().next().unwrap_or_default();
        let lines = expected.join(", ");
        let title_expected = format!("--- src/a.py (lines {lines} of 60) ---");
        assert_eq!(
            title == title_expected,
            !expected.is_empty(),
            "{output}: {text}"
        );
    }
}

#[test]
fn a_place_in_a_file_that_now_holds_a_credential_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    let token = format!("ghp_{}", "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2");
    fs::write(dir.path().join("a.py"), format!("a = \"{token}\"\n")).unwrap();
    for (search, expected) in [(Some(&Redactor::default()), false), (None, true)] {
        let mut code = selected(&[("a.py", "a = 1\n")], "beta", &within(4000));
        let changed = vec!["a.py".to_owned()];
        let looked = code.read_again(vec![], changed, Edits, (dir.path(), search));
        assert_eq!(looked.unwrap(), []);
        let text = code.places("a.py:1: no", dir.path());
        assert_eq!(text.contains(&token), expected);
    }
}

/// Re-reads a file of this many lines, some of which were shown, after its text has become `now`.
fn looked_again(lines: usize, now: &str, is_own: bool) -> (Vec<PresentFile>, Sent) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.py"), now).unwrap();
    let was: String = (1..=lines).map(|line| format!("{line}\n")).collect();
    let mut code = selected(&[("a.py", &was)], "beta", &within(4000));
    code.first
        .parts
        .insert("a.py".to_owned(), vec![0..3, 9..12]);
    let (mut own, changed) = (vec![], vec!["a.py".to_owned()]);
    if is_own {
        own.push(PresentFile::of(
            "a.py".to_owned(),
            Some(&was),
            Some(now.to_owned()),
        ));
    }
    // Reading the files again gives the same result.
    for _ in 0..2 {
        let now = (dir.path(), None);
        let looked = code.read_again(own.clone(), changed.clone(), Edits, now);
        own = looked.unwrap().into_iter().filter(|_| is_own).collect();
    }
    let looked = code.read_again(own, vec![], Edits, (dir.path(), None));
    (looked.unwrap(), code.sent("a.py", Sent::NotShown))
}

#[test]
fn excerpt_changed_by_a_build_is_shown_in_its_current_state() {
    let text =
        |lines: &[usize]| -> String { lines.iter().map(|line| format!("{line}\n")).collect() };
    let of = |lines| (1..=lines).collect::<Vec<usize>>();
    let (small, large) = (of(20), of(300));
    let with = |lines: &[usize], at, new| {
        let mut lines = lines.to_vec();
        lines.insert(at, new);
        text(&lines)
    };
    let excerpts = |now: &str, lines: Vec<Range<usize>>| Sent::Excerpts(now.to_owned(), lines);
    for (lines, now, is_own, expected, known) in [
        // The lines that were shown have not changed, but may have moved.
        (300, with(&large, 200, 0), false, vec![], vec![0..3, 9..12]),
        (300, with(&large, 5, 0), false, vec![], vec![0..3, 10..13]),
        (20, with(&small, 5, 0), false, vec![], vec![0..3, 10..13]),
        (
            300,
            with(&large, 1, 0),
            false,
            vec![Some(vec![0..4])],
            vec![0..4, 10..13, 0..4],
        ),
        (20, with(&small, 1, 0), false, vec![None], vec![]),
        // All changes by the run itself are shown.
        (
            300,
            with(&large, 200, 0),
            true,
            vec![Some(vec![168..235])],
            vec![0..3, 9..12, 168..235],
        ),
        (20, with(&small, 15, 0), true, vec![None], vec![]),
    ] {
        let (present, sent) = looked_again(lines, &now, is_own);
        let shown: Vec<_> = present.into_iter().map(|file| file.lines).collect();
        assert_eq!(shown, expected, "{lines} {is_own}");
        let whole = Sent::Text(now.clone());
        let known = if known.is_empty() {
            whole
        } else {
            excerpts(&now, known)
        };
        assert_eq!(sent, known, "{lines} {is_own}");
    }
}

#[test]
fn a_file_that_is_gone_is_known_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let mut code = selected(&FILES, "beta", &within(4000));
    let changed = vec!["src/beta.rs".to_owned()];
    let looked = code.read_again(vec![], changed, Edits, (dir.path(), None));
    assert_eq!(looked.unwrap(), []);
    assert_eq!(
        code.sent("src/beta.rs", Sent::Text("beta".to_owned())),
        Sent::NotShown
    );
}

#[test]
fn no_more_is_sent_than_the_limit_says() {
    let line = |at| format!("fn f{at}() {{ beta({at}) }}\n\n");
    let contents: Vec<(String, String)> = (0..60)
        .map(|file| {
            (
                format!("src/f{file}.rs"),
                (0..40 + file * 7).map(line).collect(),
            )
        })
        .collect();
    let files: Vec<(&str, &str)> = contents
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    for tokens in [1000, 2500, 4000, 9000] {
        let code = selected(&files, "let beta be", &within(tokens));
        assert!(tokens::count(&code.text()) <= tokens, "{tokens}");
        assert!(!code.shown.is_empty());
    }
}
