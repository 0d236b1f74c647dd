//! Tests of captured output, in memory and in its file. Writes only to temporary directories.

use super::*;
use std::os::unix::fs::PermissionsExt as _;

/// Captures these chunks to the end; returns the output and its file.
fn captured(chunks: &[&[u8]]) -> (CapturedOutput, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output.txt");
    let mut output = CapturedOutput::create(&path).unwrap();
    for chunk in chunks {
        output.write_all(chunk).unwrap();
    }
    let before = output.text();
    output.lock().finish();
    let on_disk = std::fs::read(path).unwrap();
    assert_eq!(output.text(), lossy(on_disk.clone()));
    assert_eq!(output.text(), before);
    assert!(output.lock().excerpt.is_none());
    (output, on_disk)
}

#[test]
fn a_short_output_is_the_files_content() {
    let (output, on_disk) = captured(&[b"one\n", b"", b"two \xff"]);
    assert_eq!(output.text(), "one\ntwo \u{fffd}");
    assert_eq!(on_disk, b"one\ntwo \xff");
}

#[test]
fn a_file_that_is_there_is_not_touched_and_a_new_one_is_the_users_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output.txt");
    let mut output = CapturedOutput::create(&path).unwrap();
    output.write_all(b"x").unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = CapturedOutput::create(&path).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(path).unwrap(), b"x");
}

#[test]
fn a_long_output_keeps_both_ends_however_it_comes() {
    let lines: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    let (limit, bytes) = (1 << 20, lines.as_bytes());
    for cuts in [
        vec![],
        vec![1, 2, limit / 2, limit / 2 + 1],
        vec![limit - 1, limit + 1],
        vec![limit],
    ] {
        let ends = cuts.iter().copied().chain([bytes.len()]);
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let chunks: Vec<&[u8]> = starts
            .zip(ends)
            .map(|(from, to)| &bytes[from..to])
            .collect();
        let (output, _) = captured(&chunks);
        let text = output.text();
        assert!(text.starts_with("0\n1\n") && text.ends_with("\n299998\n299999\n"));
        let (_, notice) = text.split_once("\n[... ").unwrap();
        let (left_out, _) = notice.split_once(" bytes left out ...]\n").unwrap();
        assert_eq!(left_out.parse::<usize>().unwrap(), bytes.len() - limit);
    }
}

#[test]
fn no_character_is_torn() {
    let (output, _) = captured(&[format!("x{}", "é".repeat(1 << 20)).as_bytes()]);
    assert!(!output.text().contains('\u{fffd}'));
}

#[test]
fn output_is_drained_and_the_error_reported_when_it_cannot_be_written() {
    let output = CapturedOutput::new(File::open("/dev/null").unwrap());
    let (reader, mut writer) = io::pipe().unwrap();
    let (pump, handle) = Pump::new(reader).unwrap();
    let clone = output.clone();
    let filling = std::thread::spawn(move || {
        clone.fill(
            pump,
            &Redactor::default(),
            Some(&CredentialKinds::default()),
        );
    });
    // More than the pipe can hold.
    writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
    drop(writer);
    assert!(handle.drain(Duration::from_mins(1), || false));
    filling.join().unwrap();
    let text = output.text();
    let told = "x\n[the output could not be kept in its file: Bad file descriptor (os error 9)]\n";
    assert!(text.ends_with(told), "{}", &text[text.len() - 100..]);
}

#[test]
fn pipe_held_by_another_process_is_not_waited_for() {
    let (reader, mut held) = io::pipe().unwrap();
    let (mut pump, handle) = Pump::new(reader).unwrap();
    held.write_all(b"x").unwrap();
    let mut read = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pump.run(|chunk, _| {
                read.extend_from_slice(chunk);
                Ok(())
            })
        });
        assert!(!handle.drain(Duration::from_millis(100), || false));
        drop(handle);
    });
    assert_eq!(read, b"x");
}
