//! Tests of placeholder comments in various languages and positions, and of legitimate changes that resemble them.

use super::*;

/// Phrases that models write in place of code.
const SAID: [&str; 37] = [
    "... rest of the code unchanged",
    "... keep all other functions as they were",
    "... rest of your existing code remains the same",
    "... existing imports ...",
    "(rest of the file stays as it is)",
    "[unchanged]",
    "... 其余代码保持不变",
    "其余代码保持不变。。。",
    "…… 其余部分不变",
    "此处省略其他代码……",
    "（其余代码保持不变）",
    "【其余代码同上】",
    "[其他函数不变]",
    "... resto del código",
    "... el resto del archivo permanece igual",
    "… las demás funciones sin cambios",
    "(el resto del código no cambia)",
    "[código existente]",
    "... aquí va el código existente ...",
    "... остальной код без изменений",
    "остальная часть файла без изменений…",
    "... здесь остаются прежние функции ...",
    "(остальной код не изменился)",
    "[существующий код]",
    "<остальное как раньше>",
    "... le reste du code reste inchangé",
    "… le reste de l'application ne change pas",
    "code existant ...",
    "(le reste du fichier est identique)",
    "[fonctions existantes]",
    "<suite du code>",
    "... restante do código permanece igual",
    "… o resto do arquivo não muda",
    "código existente ...",
    "(o restante do código continua igual)",
    "[demais funções inalteradas]",
    "<resto do código>",
];

/// Files of several languages, with the markers of a line comment and, if the language has one, of a block comment.
const LANGUAGES: [(&str, [&str; 2], [&str; 3]); 21] = [
    ("src/a.js", ["// ", ""], ["/*", " * ", " */"]),
    ("src/a.rs", ["// ", ""], ["//", "// ", "//"]),
    ("a.tsx", ["{/* ", " */}"], ["{/*", "  ", "*/}"]),
    ("a.py", ["# ", ""], ["#", "# ", "#"]),
    ("a.sql", ["-- ", ""], ["--", "-- ", "--"]),
    ("a.html", ["<!-- ", " -->"], ["<!--", "  ", "-->"]),
    ("a.lisp", [";; ", ""], [";;", ";; ", ";;"]),
    ("a.tex", ["% ", ""], ["%", "% ", "%"]),
    ("a.hs", ["{- ", " -}"], ["{-", "  ", "-}"]),
    ("a.blade.php", ["{{-- ", " --}}"], ["{{--", "  ", "--}}"]),
    ("a.ps1", ["<# ", " #>"], ["<#", "  ", "#>"]),
    ("a.psm1", ["# ", ""], ["#", "# ", "#"]),
    ("a.lisp", ["#| ", " |#"], ["#|", "  ", "|#"]),
    ("a.ml", ["(* ", " *)"], ["(*", "  ", "*)"]),
    ("a.fs", ["// ", ""], ["(*", "  ", "*)"]),
    ("a.twig", ["{# ", " #}"], ["{#", "  ", "#}"]),
    ("a.hbs", ["{{!-- ", " --}}"], ["{{!--", "  ", "--}}"]),
    ("a.cshtml", ["@* ", " *@"], ["@*", "  ", "*@"]),
    ("a.jsp", ["<%-- ", " --%>"], ["<%--", "  ", "--%>"]),
    ("a.vb", ["' ", ""], ["'", "' ", "'"]),
    ("a.f90", ["! ", ""], ["!", "! ", "!"]),
];

fn old() -> String {
    (0..20).map(|n| format!("line {n};\n")).collect()
}

/// Returns the old text, with all lines except the first and the last replaced by `comment`.
fn cut(comment: &str) -> String {
    format!("line 0;\n{comment}\nline 19;\n")
}

#[test]
fn comment_in_place_of_code_is_found_anywhere() {
    for (path, [mark, end], [above, beside, below]) in LANGUAGES {
        for said in SAID {
            let alone = cut(&format!("  {mark}{said}{end}"));
            let behind = cut(&format!("new(\"http://a\"); {mark}{said}{end}"));
            let over_three = cut(&format!("{above}\n{beside}{said}\n{below}"));
            for (text, place) in [(alone, 2..=2), (behind, 2..=2), (over_three, 2..=4)] {
                let found = elisions(path, &old(), &text);
                let [
                    Elision {
                        line,
                        lost,
                        is_explicit: true,
                    },
                ] = found.as_slice()
                else {
                    panic!("{path}: {text}: {found:?}");
                };
                assert!(
                    place.contains(line) && *lost >= 17,
                    "{path}: {text}: {found:?}"
                );
            }
        }
    }
}

#[test]
fn a_hash_is_a_comment_of_php_and_sql_at_the_beginning_of_a_line() {
    for path in ["a.php", "a.sql"] {
        let found = elisions(path, &old(), &cut("  # ... rest of the code unchanged"));
        assert!(
            matches!(
                found[..],
                [Elision {
                    is_explicit: true,
                    ..
                }]
            ),
            "{path}"
        );
    }
}

#[test]
fn a_text_over_three_lines_is_one_comment() {
    let text = cut("// (остальной код\n// остаётся\n// прежним)");
    let said = elisions("a.js", &old(), &text);
    assert!(
        matches!(
            said[..],
            [Elision {
                line: 2,
                is_explicit: true,
                ..
            }]
        ),
        "{said:?}"
    );
}

#[test]
fn a_bare_comment_in_place_of_code_is_only_warned_of() {
    for (comment, expected) in [
        ("// as before", Some(2)),
        ("// das Übrige\n// wie bisher", Some(2)),
        ("/*\n * as before\n */", Some(3)),
        ("// one\n// two\n// three", None),
        ("// as before\ncall();", None),
        ("call(); // as before", None),
        ("/// Documents the last line.", None),
        ("", None),
    ] {
        let found = elisions("a.js", &old(), &cut(comment));
        assert!(
            found.iter().all(|elision| !elision.is_explicit),
            "{comment}"
        );
        let line = found.first().map(|elision| elision.line);
        assert_eq!(line, expected, "{comment}");
    }
}

#[test]
fn an_honest_change_passes() {
    let commented_out =
        |text: &str| -> String { text.lines().map(|line| format!("// {line}\n")).collect() };
    let spread = "call(...rest);\n".repeat(9);
    let indented = format!(
        "if (a) {{\n{}  // and so on ...\n}}\n",
        "  call();\n".repeat(9)
    );
    for (path, old, new) in [
        // Code, strings and prose that contain dots.
        ("a.js", old(), cut("const all = [first, ...rest];")),
        ("a.js", old(), cut("show('// ...');")),
        ("a.py", old(), cut("def a(): ...")),
        ("a.py", old(), cut("print('loading # ...')")),
        ("a.rs", old(), cut("/// Counts 1, 2, ...")),
        ("a.js", old(), cut("/**\n * Counts 1, 2, ...\n */")),
        ("a.md", old(), cut("# Loading ...")),
        ("a.vb", old(), cut("Show(\"loading ' ...\")")),
        ("a.f90", old(), cut("print *, 'loading ! ...'")),
        ("a.f90", old(), cut("!$omp parallel do private(a, ...)")),
        ("a.hs", old(), cut("{-# LANGUAGE A, B, ... #-}")),
        (
            "a.sql",
            old(),
            cut("select a # b from t where c like 'x ...';"),
        ),
        ("a.php", old(), cut("<p>Item # 3 loading ...</p>")),
        (
            "a.fs",
            old(),
            cut("List.reduce (*) xs |> report \"loading ...\""),
        ),
        ("a.ml", old(), cut("(** Counts 1, 2, ... *)")),
        ("a.hs", old(), cut("{-| Counts 1, 2, ... -}")),
        // Brackets that belong to the marks of a comment, to an attribute or to a template's block.
        ("a.ml", old(), cut("(* Adds two numbers. *)")),
        ("a.ps1", old(), cut("<# Adds two numbers. #>")),
        ("a.php", old(), cut("#[Test]")),
        ("a.svelte", old(), cut("{#each [...all] as one}")),
        ("a.html", old(), cut("{#title}Please wait ...{/title}")),
        ("a.ml", old(), cut("let p = root // \"...\" // x")),
        ("a.hbs", old(), cut("{{#each (all ...)}}")),
        // Fewer than five lines of code, and comments, which do not count.
        ("a.js", "a\nb\nc\nd\n".to_owned(), "// ...\n".to_owned()),
        ("a.js", "// a\n".repeat(9), "// ...\n".to_owned()),
        ("a.js", old(), format!("// ...\n{}", old())),
        // Code that becomes a comment, and a comment that moves with its code.
        ("a.js", spread.clone(), commented_out(&spread)),
        ("a.js", indented, "call();\n// and so on ...\n".to_owned()),
    ] {
        let found = elisions(path, &old, &new);
        assert!(
            found.iter().all(|elision| !elision.is_explicit),
            "{path}: {new}: {found:?}"
        );
    }
}

#[test]
fn a_file_shrinks_where_a_third_of_more_than_forty_lines_is_left() {
    let text = |lines: usize| "line\n".repeat(lines);
    for (before, after, expected) in [
        (180, 5, Some((180, 5))),
        (42, 14, Some((42, 14))),
        (42, 15, None),
        (41, 0, Some((41, 0))),
        (40, 0, None),
    ] {
        assert_eq!(shrinkage(&text(before), &text(after)), expected, "{before}");
    }
}

#[test]
fn lines_that_stand_elsewhere_have_moved() {
    let old = "a\nb\nc\nd\n\n\n";
    for (others, expected) in [
        (&["  a\n"][..], false),
        (&["  a\n", "b\n"], true),
        (&["d\n"], false),
        (&[], false),
    ] {
        assert_eq!(
            is_moved(old, "d\n", others.iter().copied()),
            expected,
            "{others:?}"
        );
    }
}

#[test]
fn a_query_names_a_file_by_its_path_or_its_name() {
    for (query, expected) in [
        ("Shorten src/long.rs.", true),
        ("`long.rs` has too much in it", true),
        ("oblong.rs is another", false),
        ("long.rst, too", false),
        ("it is too long", false),
    ] {
        assert_eq!(names(query, "src/long.rs"), expected, "{query}");
    }
}
