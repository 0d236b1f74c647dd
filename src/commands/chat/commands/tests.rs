//! Tests that command files are found, read and expanded as documented, and that arguments stay plain text. Each test
//! uses separate folders.

use std::fs;
use std::os::unix::fs::symlink;

use proptest::prelude::*;

use super::*;

fn source() -> (String, String) {
    (".agent/commands/x.md".to_owned(), String::new())
}

fn command(template: &str) -> CommandFile {
    CommandFile::parse("test".to_owned(), Some(source()), template)
        .unwrap()
        .0
}

/// Formats the pieces of an expanded template: `(path)` for a file, `{command|arguments}` for a command.
fn expanded(template: &str, arguments: &str) -> String {
    let pieces = command(template).expand(arguments).into_iter();
    let texts = pieces.map(|piece| match piece {
        Piece::Text(text) => text,
        Piece::File(path) => format!("({path})"),
        Piece::Command { command, arguments } => format!("{{{command}|{arguments}}}"),
    });
    texts.collect()
}

#[test]
fn a_template_is_filled_and_names_files_and_commands() {
    for (template, arguments, expected) in [
        ("Fix $ARGUMENTS.", " issue 7 ", "Fix issue 7."),
        ("$1 then $2, not $3!", "a 'b c'", "a then b c, not !"),
        ("It costs $100 or $1", "x", "It costs $100 or x"),
        ("$ARGUMENTS_FILE $ARGUMENTS", "x", "$ARGUMENTS_FILE x"),
        ("$1$1", "a", "aa"),
        ("it's $1", "isn't it", "it's isn't"),
        ("Nothing", "", "Nothing"),
        ("Nothing", "more", "Nothing\n\nArguments: more"),
        (
            "See @src/main.rs, and @a.",
            "",
            "See (src/main.rs), and (a).",
        ),
        ("Look at (@$1)", "src/my file.rs", "Look at ((src/my))"),
        ("@$ARGUMENTS", "src/my file.rs", "(src/my file.rs)"),
        ("@$1 is gone", "", "@ is gone"),
        ("me@example.org @ me, `@x`", "", "me@example.org @ me, `@x`"),
        (
            "!`git diff $ARGUMENTS`",
            "; rm -rf /",
            "{git diff $ARGUMENTS|; rm -rf /}",
        ),
        ("Now: !`ls`\n!`pwd`", "", "Now: {ls|}\n{pwd|}"),
        ("no!`ls` !``", "", "no!`ls` !``"),
        // Placeholders in the arguments are plain text.
        (
            "Do $ARGUMENTS",
            "!`rm -rf /` @/etc/passwd $1",
            "Do !`rm -rf /` @/etc/passwd $1",
        ),
        ("Do $1", "$ARGUMENTS", "Do $ARGUMENTS"),
        ("!`x $1`", "a", "{x $1|a}\n\nArguments: a"),
    ] {
        assert_eq!(
            expanded(template, arguments),
            expected,
            "{template} {arguments}"
        );
    }
}

proptest! {
    #[test]
    fn arguments_name_no_file_and_no_command(arguments in "[!`@$1A/ \n'\"]{0,12}") {
        let template = "Do $ARGUMENTS and $1 by !`make $ARGUMENTS` with @Makefile now.";
        let pieces = command(template).expand(&arguments);
        let others: Vec<&Piece> = pieces.iter().filter(|piece| !matches!(piece, Piece::Text(_))).collect();
        let made = Piece::Command { command: "make $ARGUMENTS".to_owned(), arguments: arguments.trim().to_owned() };
        prop_assert_eq!(others, [&made, &Piece::File("Makefile".to_owned())]);
    }
}

#[test]
fn frontmatter_is_read_or_named() {
    let text = "---\r\ndescription: \"Fix: it\"\r\nargument-hint: [issue] [level]\r\n# why\r\n\r\nmodel: claude-opus-5-5\r\nmode: auto-pilot\r\n---\r\nFix $1\r\n";
    let command = command(text);
    assert_eq!(command.description, "Fix: it");
    assert_eq!(command.argument_hint, "[issue] [level]");
    assert_eq!(command.model.as_deref(), Some("claude-opus-5-5"));
    assert_eq!(command.mode, Some(Mode::AutoPilot));
    assert_eq!(command.template, "Fix $1");
    let plain = CommandFile::parse("x".to_owned(), None, "# Fix it\n\n---\nNow")
        .unwrap()
        .0;
    assert_eq!(
        (&*plain.description, &*plain.template),
        ("Fix it", "# Fix it\n\n---\nNow")
    );
    let odd = "---\nallowed-tools: Bash(git:*)\n---\nx";
    let (_, oddities) = CommandFile::parse("x".to_owned(), None, odd).unwrap();
    assert_eq!(
        oddities,
        ["`allowed-tools` in its frontmatter means nothing here"]
    );
    for (text, expected) in [
        ("---\ndescription: x\n", "its frontmatter does not end"),
        (
            "---\nmodel: x\n- Bash\n---\nx",
            "line 3 of its frontmatter is not `key: value`",
        ),
        ("---\nmode: yolo\n---\nx", "line 2: `yolo` is no mode"),
        ("---\nmodel: x\n---\n \n", "there is nothing in it but"),
    ] {
        let problem = CommandFile::parse("x".to_owned(), Some(source()), text).unwrap_err();
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn commands_are_the_projects_and_the_users_and_what_is_broken_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    let [root, home] = ["work", "home"].map(|name| base.join(name));
    let projects = root.join(".agent/commands");
    let put = |path: &Path, content: &[u8]| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    for (path, content) in [
        ("fix.md", &b"Fix it"[..]),
        ("git/commit.md", b"Commit it"),
        ("git/notes.txt", b"no command"),
        ("clear.md", b"Clear it"),
        ("latin.md", b"caf\xe9"),
        ("Upper.md", b"x"),
        ("broken.md", b"---\nx"),
        ("empty.md", b"\n"),
    ] {
        put(&projects.join(path), content);
    }
    put(&home.join("commands/fix.md"), b"My own fix");
    put(&home.join("commands/mine.md"), b"Mine");
    put(&base.join("elsewhere.md"), b"secret");
    put(&root.join("shared.md"), b"Shared");
    symlink(base.join("elsewhere.md"), projects.join("out.md")).unwrap();
    symlink("../../shared.md", projects.join("shared.md")).unwrap();
    symlink("..", projects.join("loop")).unwrap();
    symlink(base.join("elsewhere.md"), home.join("commands/linked.md")).unwrap();
    let (commands, warnings) = load(&root, &home);
    let told: Vec<_> = commands
        .iter()
        .map(|command| (&*command.name, &*command.description, command.is_projects()))
        .collect();
    assert_eq!(
        told,
        [
            ("fix", "Fix it", true),
            ("git:commit", "Commit it", true),
            ("linked", "secret", false),
            ("mine", "Mine", false),
            ("shared", "Shared", true),
        ]
    );
    let expected = [
        "Upper.md",
        "broken.md",
        "empty.md",
        "latin.md",
        "out.md",
        "/clear",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
    for (warning, expected) in warnings.iter().zip(expected) {
        assert!(
            warning.contains(expected) && warning.contains("is not used: "),
            "{warning}"
        );
    }
    assert!(warnings[4].ends_with("it is a link that leads out of the project"));
    let nothing = load(&base.join("nowhere"), &base.join("none"));
    assert_eq!(nothing, (Vec::new(), Vec::new()));
    // A linked folder that leads out of the project is not read either.
    let linked = base.join("linked");
    fs::create_dir(&linked).unwrap();
    symlink(root.join(".agent"), linked.join(".agent")).unwrap();
    let (commands, warnings) = load(&linked, &base.join("none"));
    assert_eq!((commands.len(), warnings.len()), (0, 1));
}

#[test]
fn a_name_is_a_file() {
    for (name, expected) in [
        ("fix", Some("fix.md")),
        ("git:commit-all_2", Some("git/commit-all_2.md")),
        ("", None),
        ("Fix", None),
        ("-x", None),
        ("a/b", None),
        ("..:x", None),
        ("git:", None),
        ("clear", None),
    ] {
        let expected = expected.map(|file| format!(".agent/commands/{file}"));
        assert_eq!(file_for(name), expected, "{name}");
    }
}

#[test]
fn a_fence_around_a_reply_is_taken_off() {
    for (reply, expected) in [
        ("---\nx\n---\ny", "---\nx\n---\ny\n"),
        ("\n```markdown\n---\nx\n---\n```\n", "---\nx\n---\n"),
        ("```\n```sh\nls\n```\n```", "```sh\nls\n```\n"),
        ("```sh\nls\n```", "```sh\nls\n```\n"),
        ("````md\nx\n```", "````md\nx\n```\n"),
    ] {
        assert_eq!(template(reply), expected, "{reply}");
    }
}

#[test]
fn the_examples_are_commands() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/commands");
    for name in ["refactor_component", "generate_tests"] {
        let text = fs::read_to_string(folder.join(format!("{name}.md"))).unwrap();
        let (command, oddities) = CommandFile::parse(name.to_owned(), None, &text).unwrap();
        assert_eq!(oddities, [""; 0]);
        assert!(!command.description.is_empty() && !command.argument_hint.is_empty());
        let pieces = command.expand("src/parser.rs");
        let [Piece::Text(words)] = pieces.as_slice() else {
            panic!("{pieces:?}");
        };
        assert!(words.contains("src/parser.rs") && !words.contains('$'));
    }
}
