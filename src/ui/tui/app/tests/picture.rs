//! The image of the screen in the README: the demo's recorded chat, at the question before its last edit.

use std::fmt::Write as _;
use std::fs;

use ratatui::buffer::Cell;
use ratatui::style::Modifier;

use super::*;

/// The size of the screen, in characters.
const SIZE: (u16, u16) = (110, 42);
/// The size of a character, in pixels.
const CELL: (f32, f32) = (8.4, 18.0);
/// The space around the screen.
const MARGIN: f32 = 12.0;
/// The edit that the question is about, and the one before it.
const DIFFS: [&str; 2] = [
    "diff --git a/test.sh b/test.sh\n--- a/test.sh\n+++ b/test.sh\n@@ -15,5 +15,7 @@ check() { # WANTED TEXT\n \n \
     check hello 'Hello'\n check hello-world 'Hello World'\n+check hello-world 'Hello   World'\n\
     +check hello '  Hello '\n \n exit \"$failures\"\n",
    "diff --git a/slug.sh b/slug.sh\n--- a/slug.sh\n+++ b/slug.sh\n@@ -1,4 +1,4 @@\n # slug TEXT...: TEXT as the last \
     part of a web address.\n slug() {\n-    printf '%s' \"$*\" | tr 'A-Z ' 'a-z-'\n\
     +    printf '%s' \"$*\" | tr 'A-Z ' 'a-z-' | tr -s '-' | sed 's/^-//; s/-$//'\n }\n",
];

/// The output of build.sh between the two.
const OUTPUT: &str = "ok: 'Hello' -> 'hello'\nok: 'Hello World' -> 'hello-world'\n\
                      FAILED: 'Hello   World' -> 'hello---world', \
                      wanted 'hello-world'\nFAILED: '  Hello ' -> '--hello-', wanted 'hello'\n";

/// Returns the text of the n-th recorded reply, and the todos that it sets.
fn recorded(number: usize) -> (String, Vec<Todo>) {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/fixtures/chat-demo/000{number}-step-response.json");
    let reply: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let blocks = reply["content"].as_array().unwrap();
    let text = blocks.iter().find_map(|block| block["text"].as_str());
    let input = blocks.iter().find_map(|block| block["input"].get("todos"));
    let todos = input.map(|todos| serde_json::from_value(todos.clone()).unwrap());
    (text.unwrap().to_owned(), todos.unwrap_or_default())
}

/// Returns the result of a tool; "" if its changes are sufficient.
fn ended(name: &str, told: &str) -> Event {
    let mut ended = result(name, told);
    if let Event::ToolResult { end, .. } = &mut ended {
        end.brief = end.brief.take().filter(|brief| !brief.is_empty());
        end.failed = told == "exit code: 2";
        OUTPUT.clone_into(&mut end.text);
    }
    ended
}

/// Returns the chat up to the question.
fn asked() -> App {
    let mut app = app();
    let status = Status {
        model: "claude-sonnet-5-5".to_owned(),
        used: 7_324,
        window: 1_000_000,
        ..Status::default()
    };
    app.handle(ToScreen::Status(status), at(0));
    typed(
        &mut app,
        "Make slug() tidier: no two hyphens in a row, and none at either end.",
    );
    let mut tell = |event| app.handle(ToScreen::Event(event), at(0));
    let ran = [
        vec![
            ("read_file", "slug.sh", "4 lines"),
            ("read_file", "test.sh", "19 lines"),
        ],
        vec![
            ("update_todos", "", "0 of 3 todos done"),
            ("edit_file", "test.sh", ""),
            ("execute_command", "./build.sh", "exit code: 2"),
        ],
        vec![("update_todos", "", "1 of 3 todos done")],
    ];
    for (number, tools) in (1..).zip(ran) {
        let (text, todos) = recorded(number);
        tell(asking());
        tell(piece(&text));
        tell(answered(2));
        for (name, subject, brief) in tools {
            tell(tool(name, subject));
            if name == "edit_file" {
                let diff = DIFFS[0].to_owned();
                tell(Event::Changed { diff });
            }
            tell(ended(name, brief));
        }
        tell(Event::Todos(todos));
    }
    tell(tool("edit_file", "slug.sh"));
    let question = Question {
        sentence: "The agent wants to change `slug.sh`. May it?".to_owned(),
        tool: "edit_file".to_owned(),
        subject: "slug.sh".to_owned(),
        reasons: Vec::new(),
        may_be_permanent: true,
        may_forbid: true,
        may_redirect: true,
        ..Question::default()
    };
    let preview = Some(DIFFS[1].to_owned());
    app.handle(ToScreen::Ask { question, preview }, at(0));
    app
}

fn hex(color: Color) -> &'static str {
    match color {
        Color::Red => "#e06c75",
        Color::Green => "#7ec86e",
        Color::Yellow => "#e5c07b",
        Color::Blue => "#61afef",
        Color::Cyan => "#56b6c2",
        Color::DarkGray => "#6b7280",
        Color::Reset => "#d7dae0",
        other => panic!("{other:?} is not on the picture"),
    }
}

/// Returns a cell's style as attributes.
fn look(cell: &Cell) -> String {
    let mut look = format!("fill=\"{}\"", hex(cell.fg));
    for (modifier, attribute) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, " opacity=\"0.65\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ] {
        if cell.modifier.contains(modifier) {
            look.push_str(attribute);
        }
    }
    look
}

/// Returns the screen as an SVG image. Each run of equally styled cells is one text, whose width does not depend on the
/// font.
fn svg(buf: &Buffer) -> String {
    let (columns, rows) = (buf.area.width, buf.area.height);
    let width = f32::from(columns).mul_add(CELL.0, 2.0 * MARGIN);
    let height = f32::from(rows).mul_add(CELL.1, 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" role=\"img\" \
         aria-label=\"A chat that asks about an edit\" font-size=\"14\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1e2127\"/>\n"
    );
    for y in 0..rows {
        let cells: Vec<&Cell> = (0..columns).map(|x| &buf[(x, y)]).collect();
        let mut x = 0;
        for piece in cells.chunk_by(|one, other| look(one) == look(other)) {
            let symbols: String = piece.iter().map(|cell| cell.symbol()).collect();
            let text = symbols.trim_end();
            if !text.is_empty() {
                let left = f32::from(x).mul_add(CELL.0, MARGIN);
                let base = (f32::from(y) + 0.75).mul_add(CELL.1, MARGIN);
                let wide = f32::from(u16::try_from(text.chars().count()).unwrap()) * CELL.0;
                let look = look(piece[0]);
                let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
                let place = format!("x=\"{left:.1}\" y=\"{base:.1}\" textLength=\"{wide:.1}\"");
                // SVG viewers merge breaking spaces.
                let text = escaped.replace(' ', "\u{a0}");
                writeln!(svg, "<text {place} {look}>{text}</text>").unwrap();
            }
            x += u16::try_from(piece.len()).unwrap();
        }
    }
    svg + "</svg>\n"
}

#[test]
fn the_readmes_picture_is_the_screen() {
    let root = env!("CARGO_MANIFEST_DIR");
    let drawn = svg(&drawn(&mut asked(), SIZE.0, SIZE.1));
    let shown = fs::read_to_string(format!("{root}/docs/chat.svg")).unwrap_or_default();
    if drawn != shown {
        let made = format!("{root}/target/chat.svg");
        fs::write(&made, drawn).unwrap();
        panic!("the screen is another one: look at {made}, and copy it to docs/chat.svg");
    }
}
