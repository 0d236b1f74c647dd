//! Parses server-sent events, in which vendors and MCP servers stream their responses. Pure.
//!
//! Follows the event stream format of the HTML standard. The last ID and the retry time outlast their event and can be
//! queried. An event without data is not reported, but its ID counts.

use std::time::Duration;

use super::text::without_mark;

/// A complete event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Type of the event; empty if it has none, which the standard calls `message`.
    pub kind: String,
    /// Data lines, joined with `\n`.
    pub data: Vec<u8>,
}

/// An extractor of events from a stream of bytes, however it is split into pieces.
#[derive(Debug, Default)]
pub struct Events {
    /// Incomplete last line.
    line: Vec<u8>,
    /// Type of the incomplete event.
    kind: String,
    /// Data of the incomplete event.
    data: Option<Vec<u8>>,
    /// ID of the incomplete event.
    id: Option<String>,
    /// Last ID of a complete event.
    last_id: Option<String>,
    /// Time that the server asks clients to wait before they reconnect.
    retry: Option<Duration>,
    /// True once the first line has ended; a byte order mark is skipped only at its beginning.
    begun: bool,
    /// True if the last byte was a `\r`; a following `\n` belongs to the same line end.
    after_return: bool,
}

impl Events {
    /// Processes more bytes, and passes every completed event to `event`.
    ///
    /// # Errors
    /// Returns the first error of `event`, and stops there.
    pub fn read<E>(
        &mut self,
        bytes: &[u8],
        mut event: impl FnMut(Event) -> Result<(), E>,
    ) -> Result<(), E> {
        for &byte in bytes {
            let after_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    // Some servers send blank events to keep the connection alive.
                    if let Some(ended) = self
                        .end_line()
                        .filter(|event| !event.data.trim_ascii().is_empty())
                    {
                        event(ended)?;
                    }
                }
                byte => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// Returns the ID of the last complete event that had one, even if it had no data: the position at which to resume
    /// the stream.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns the last time that the server asked clients to wait before they reconnect.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the number of bytes buffered for the incomplete event.
    pub fn pending(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, Vec::len)
    }

    /// Ends a line, and returns the event if that completes one with data.
    fn end_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) {
            line.drain(..line.len() - without_mark(&line).len());
        }
        if line.is_empty() {
            self.last_id = self.id.take().or_else(|| self.last_id.take());
            let kind = std::mem::take(&mut self.kind);
            return self.data.take().map(|data| Event { kind, data });
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let name_end = colon.unwrap_or(line.len());
        let value_start = match colon {
            Some(colon) if line.get(colon + 1) == Some(&b' ') => colon + 2,
            Some(colon) => colon + 1,
            None => line.len(),
        };
        let value = &line[value_start..];
        let text = || String::from_utf8_lossy(value).into_owned();
        match &line[..name_end] {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                // The line's buffer is reused, so that a long line is not held twice.
                none => {
                    line.drain(..value_start);
                    *none = Some(line);
                }
            },
            b"event" => self.kind = text(),
            b"id" if !value.contains(&0) => self.id = Some(text()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let milliseconds = text().parse().ok().map(Duration::from_millis);
                self.retry = milliseconds.or(self.retry);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = Events::default();
        let mut found = Vec::new();
        for piece in pieces {
            let read = reader.read(piece, |event| {
                found.push(String::from_utf8_lossy(&event.data).into_owned());
                Ok::<(), ()>(())
            });
            assert_eq!(read, Ok(()));
        }
        found
    }

    #[test]
    fn an_event_is_the_data_up_to_a_blank_line() {
        for (stream, expected) in [
            ("data: a\n\n", &["a"][..]),
            ("data:a\r\n\r\ndata: b\r\r", &["a", "b"]),
            (
                ": ping\n\nevent: x\nid: 1\ndata:  a\ndata: b\n\n",
                &[" a\nb"],
            ),
            ("data\n\ndata:  \n\n", &[]),
            ("\u{feff}data: a\n\n", &["a"]),
            ("data: cut", &[]),
            ("data: cut\n", &[]),
            ("database: no\n\n", &[]),
        ] {
            assert_eq!(events(&[stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn types_stand_with_their_event_and_ids_and_retry_times_stay() {
        let end = |id: &str, retry| (Some(id.to_owned()), retry);
        for (stream, kinds, (id, retry)) in [
            (
                "event: endpoint\ndata: a\n\ndata: b\n\n",
                &["endpoint", ""][..],
                (None, None),
            ),
            ("id: 1\ndata: a\n\ndata: b\n\n", &["", ""], end("1", None)),
            ("id: 7\nretry: 500\ndata:\n\n", &[], end("7", Some(500))),
            ("id: 7\n\nid: 8\ndata: cut", &[], end("7", None)),
            ("id: 7\n\nid\n\n", &[], end("", None)),
            ("id: 7\n\nid: 8\0\n\n", &[], end("7", None)),
            (
                "retry: 5\nretry: soon\nretry: -1\nretry:\n",
                &[],
                (None, Some(5)),
            ),
        ] {
            let mut reader = Events::default();
            let mut found = Vec::new();
            let read = reader.read(stream.as_bytes(), |event| {
                found.push(event.kind);
                Ok::<(), ()>(())
            });
            assert_eq!(read, Ok(()));
            assert_eq!(found, kinds, "{stream:?}");
            assert_eq!(reader.last_id(), id.as_deref(), "{stream:?}");
            assert_eq!(
                reader.retry(),
                retry.map(Duration::from_millis),
                "{stream:?}"
            );
        }
    }

    #[test]
    fn pending_bytes_of_an_event_are_counted() {
        let mut reader = Events::default();
        let mut ignored = |_| Ok::<(), ()>(());
        reader.read(b"data: abc\nda", &mut ignored).unwrap();
        assert_eq!(reader.pending(), 5);
        reader.read(b"ta: d\n\n", &mut ignored).unwrap();
        assert_eq!(reader.pending(), 0);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_stream_is_cut(stream in "(data: ?[a-c:\u{e9}]{0,3}|:|x)?[\r\n]{0,3}(data: [ab]*\r\n\r\n){0,3}", cuts in proptest::collection::vec(0usize..40, 0..4)) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut from = 0;
            let pieces: Vec<&[u8]> = cuts.iter().map(|&to| { let piece = &bytes[from..to]; from = to; piece }).collect();
            prop_assert_eq!(events(&pieces), events(&[bytes]));
        }
    }
}
