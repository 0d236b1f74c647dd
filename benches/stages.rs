//! How fast the stages are that see every byte: parsing, redaction, reading an answer, the search
//! for credentials. Goal: 300
//! MB/s or more each. A plan document of 1,000 log entries is read, changed and written within 10 ms.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a benchmark may panic like a test, and reads its own source"
)]

use std::hint::black_box;
use std::io::Write as _;

use code_commit::agent::plan::{LogEntry, PlanDocument};
use code_commit::edit;
use code_commit::model::message::{Message, Role};
use code_commit::secret::Redactor;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

const SIZE: usize = 32 << 20;

/// Text like source code: lines of 10 to 80 bytes.
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
    let mut group = criterion.benchmark_group("parse");
    group
        .throughput(Throughput::Bytes(reply.len() as u64))
        .sample_size(20);
    group.bench_function("many files", |bench| {
        bench.iter(|| edit::parse(black_box(&reply)));
    });
    let one = format!("^^^big\n{}^^^end\n", source(SIZE));
    group.bench_function("one file", |bench| {
        bench.iter(|| edit::parse(black_box(&one)));
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
        bench.iter(|| {
            code_commit::secret::credentials::find("query.txt", black_box(&text), &redactor)
        });
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
    document.add_log_entries(&vec![entry.clone(); 1000]);
    let bytes = document.text().into_bytes();
    criterion.bench_function("plan/1,000 entries", |bench| {
        bench.iter(|| {
            let mut document = PlanDocument::parse(black_box(&bytes)).unwrap();
            assert_eq!(document.plan().execution_log.len(), 1000);
            document.add_log_entries(std::slice::from_ref(&entry));
            document.save(1).unwrap();
            document.text()
        });
    });
}

criterion_group!(benches, parsing, redaction, escaping, credentials, plan);
criterion_main!(benches);
