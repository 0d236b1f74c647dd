//! Measures the stages that process every byte: parsing, redaction, reading an answer, and searching for credentials.
//! Goals: at least 300 MB/s for each of these, and 200 MB/s for the findings in a build's output; 10 ms to read, change
//! and write a plan document of 1,000 log entries; 2 ms to draw a frame of a chat, both at the end of 10,000 lines and
//! while text streams; and 50 ms to open such a session.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark may panic like a test, and reads its own source"
)]

use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use code_commit::Redactor;
use code_commit::measured::{
    App, Composer, ComposerOptions, Entry, Event, LogEntry, Message, PlanDocument, ReplyFormat,
    Role, Sent, SharedMode, ToScreen, ToolEnd, ToolUse, Usd, find, read, read_findings,
};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const SIZE: usize = 32 << 20;

/// Returns text that resembles source code: lines of 10 to 80 bytes.
fn source(size: usize) -> String {
    let line = "    let value = compute(&input, index + 1)?; // and so on";
    let mut text = String::with_capacity(size + 100);
    for n in 0.. {
        if text.len() >= size {
            break;
        }
        text.push_str(&line[..10 + (n * 7) % (line.len() - 10)]);
        text.push('\n');
    }
    text
}

fn parsing(criterion: &mut Criterion) {
    let body = source(5 << 10);
    let reply: String = (0..SIZE / body.len())
        .map(|n| format!("^^^src/f{n}\n{body}^^^end\n"))
        .collect();
    let parse = |reply: &str| read(reply, ReplyFormat::Whole, &|_| Sent::Missing);
    let mut group = criterion.benchmark_group("parse");
    group
        .throughput(Throughput::Bytes(reply.len() as u64))
        .sample_size(20);
    group.bench_function("many files", |bench| {
        bench.iter(|| parse(black_box(&reply)));
    });
    let one = format!("^^^big\n{}^^^end\n", source(SIZE));
    group.bench_function("one file", |bench| {
        bench.iter(|| parse(black_box(&one)));
    });
}

fn redaction(criterion: &mut Criterion) {
    let keys = [
        "AIzaSyGeminiBenchKey_0123456789-Zz",
        "sk-proj-OpenAiBenchKey/0123456789+Yy",
    ];
    let redactor = Redactor::new(keys);
    let text = source(SIZE);
    let mut group = criterion.benchmark_group("redact");
    group
        .throughput(Throughput::Bytes(text.len() as u64))
        .sample_size(20);
    group.bench_function("text", |bench| {
        bench.iter(|| redactor.text(black_box(&text)));
    });
    group.bench_function("stream", |bench| {
        bench.iter(|| {
            let mut writer = redactor.writer(std::io::sink());
            for chunk in text.as_bytes().chunks(64 << 10) {
                writer.write_all(chunk).unwrap();
            }
            writer.finish().unwrap();
        });
    });
}

fn escaping(criterion: &mut Criterion) {
    let source = source(SIZE);
    let message = Message::text(Role::User, source.as_str());
    let mut group = criterion.benchmark_group("send");
    group
        .throughput(Throughput::Bytes(source.len() as u64))
        .sample_size(20);
    group.bench_function("escape", |bench| {
        bench.iter(|| serde_json::to_writer(std::io::sink(), black_box(&message.words())).unwrap());
    });
}

fn credentials(criterion: &mut Criterion) {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/secret/mod.rs")).unwrap();
    let text = text.repeat(SIZE / text.len());
    let redactor = Redactor::new(["AIzaSyGeminiBenchKey_0123456789-Zz"]);
    let mut group = criterion.benchmark_group("search");
    group
        .throughput(Throughput::Bytes(text.len() as u64))
        .sample_size(20);
    group.bench_function("credentials", |bench| {
        bench.iter(|| find("query.txt", black_box(&text), &redactor));
    });
}

fn findings(criterion: &mut Criterion) {
    let passed = |at: usize| format!("test module::that_has_tests::and_names_number_{at} ... ok\n");
    let mut output: String = (0..SIZE / 60).map(passed).collect();
    output += "error[E0308]: mismatched types\n --> src/a.rs:1:2\n";
    let mut group = criterion.benchmark_group("build output");
    group
        .throughput(Throughput::Bytes(output.len() as u64))
        .sample_size(20);
    group.bench_function("findings", |bench| {
        bench.iter(|| read_findings(black_box(&output), Path::new("/project")));
    });
}

fn plan(criterion: &mut Criterion) {
    let entry = LogEntry {
        action: "Updated README.md with recent changes".to_owned(),
        details: "Added documentation for the new authentication flow, and removed old steps"
            .to_owned(),
        result: "\u{2713} README.md now reflects all work completed in this session".to_owned(),
        tools_used: ["read_file", "write_file"].map(str::to_owned).to_vec(),
        ..LogEntry::default()
    };
    let mut document = PlanDocument::empty(1);
    document.edit(|plan| plan.execution_log = vec![entry.clone(); 1000]);
    let bytes = document.text().into_bytes();
    criterion.bench_function("plan/1,000 entries", |bench| {
        bench.iter(|| {
            let mut document = PlanDocument::parse(black_box(&bytes)).unwrap();
            assert_eq!(document.plan().execution_log.len(), 1000);
            document.edit(|plan| plan.execution_log.push(entry.clone()));
            document.save(1).unwrap();
            document.text()
        });
    });
}

/// Returns the entries of a chat of about this many lines: requests, replies in Markdown with code, and tool calls.
fn chat_of(lines: usize) -> Vec<Entry> {
    let reply =
        "Some *words* about `this`.\n\n- one\n- another\n\n```rust\nlet x = 1;\n```\n\n".repeat(4);
    let end = ToolEnd {
        text: "fn main() {}\n".repeat(10),
        ..ToolEnd::default()
    };
    let tool = Entry::Tool(Box::new(ToolUse {
        name: "read_file".to_owned(),
        subject: "src/main.rs".to_owned(),
        result: Some(end),
        ..ToolUse::default()
    }));
    let each = [Entry::user("Go on."), Entry::Agent(reply), tool];
    let each_lines = 40;
    each.iter()
        .cycle()
        .take(each.len() * lines / each_lines)
        .cloned()
        .collect()
}

/// The screen of a chat, and the frame that was last drawn.
struct BenchScreen {
    app: App,
    shown: Buffer,
}

impl BenchScreen {
    fn showing(entries: Vec<Entry>) -> Self {
        let composer = Composer::new(ComposerOptions::default());
        let mut screen = Self {
            app: App::new(Some(SharedMode::default()), composer),
            shown: Buffer::empty(Rect::new(0, 0, 120, 40)),
        };
        screen.tell(ToScreen::Transcript(entries));
        screen.draw();
        screen
    }

    fn tell(&mut self, message: ToScreen) {
        self.app.handle(message, Duration::ZERO);
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.app.key(KeyEvent::new(code, modifiers), Duration::ZERO);
    }

    fn draw(&mut self) {
        self.app.tick(Duration::ZERO);
        let mut next = Buffer::empty(self.shown.area);
        self.app.draw(&mut next);
        black_box(self.shown.diff(&next));
        self.shown = next;
    }
}

fn chat(criterion: &mut Criterion) {
    let entries = chat_of(10_000);
    let mut group = criterion.benchmark_group("chat");
    group.sample_size(20);
    group.bench_function("opening 10,000 lines", |bench| {
        bench.iter(|| BenchScreen::showing(entries.clone()));
    });
    let mut screen = BenchScreen::showing(entries.clone());
    let letter = |screen: &mut BenchScreen| {
        screen.key(KeyCode::Char('x'), KeyModifiers::NONE);
        screen.draw();
        screen.key(KeyCode::Backspace, KeyModifiers::NONE);
    };
    group.bench_function("a key at their end", |bench| {
        bench.iter(|| letter(&mut screen));
    });
    group.bench_function("a page up, and down", |bench| {
        bench.iter(|| {
            for page in [KeyCode::PageUp, KeyCode::PageDown] {
                screen.key(page, KeyModifiers::NONE);
                screen.draw();
            }
        });
    });
    group.bench_function("all of it unfolded, and folded", |bench| {
        bench.iter(|| {
            for _ in 0..2 {
                screen.key(KeyCode::Char('o'), KeyModifiers::CONTROL);
                screen.draw();
            }
        });
    });
    // A code block grows longer than any other block. Each piece stands for the 33 deltas that arrive between two
    // frames.
    let mut nth = 0;
    group.bench_function("a key while code streams", |bench| {
        bench.iter(|| {
            nth += 1;
            let piece = if nth % 1000 == 1 {
                "\n```\n\n```rust\n".to_owned()
            } else {
                "let x = 1; // and so on\n".repeat(5)
            };
            screen.tell(ToScreen::Event(Event::Receiving {
                piece,
                is_thought: false,
                output_tokens: 0,
                thought_tokens: 0,
                spent: Usd::ZERO,
            }));
            letter(&mut screen);
        });
    });
}

criterion_group!(
    benches,
    parsing,
    redaction,
    escaping,
    credentials,
    findings,
    plan,
    chat
);
criterion_main!(benches);
