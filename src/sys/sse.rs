//! Server-sent events, as the vendors stream their answers. Pure.
//!
//! After the HTML standard's event stream format, less what no vendor uses: event types, ids and
//! retry times are passed over.

use super::text::without_mark;

/// Takes events out of a stream of bytes, however it is cut into pieces.
#[derive(Debug, Default)]
pub struct Events {
    /// The line that has not ended yet.
    line: Vec<u8>,
    /// The data of the event that has not ended yet.
    data: Option<Vec<u8>>,
    /// Whether anything has come: a byte order mark at the very beginning is passed over.
    begun: bool,
    /// Whether the last byte was a `\r`, which a `\n` may follow as part of the same line end.
    after_return: bool,
}

impl Events {
    /// Reads the next bytes, and hands the data of every event that they end to `event`.
    ///
    /// # Errors
    /// The first error of `event`, at once.
    pub fn read<E>(
        &mut self,
        bytes: &[u8],
        mut event: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for &byte in bytes {
            let after_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    // Some servers keep the connection alive by events of nothing.
                    if let Some(data) = self.end_line().filter(|data| !data.trim_ascii().is_empty())
                    {
                        event(&data)?;
                    }
                }
                byte => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// The event's data, where the line that has come to its end ends an event.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) {
            let mark = line.len() - without_mark(&line).len();
            line.drain(..mark);
        }
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (&line[..], &[][..]),
        };
        if field == b"data" {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            }
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
            let read = reader.read(piece, |data| {
                found.push(String::from_utf8_lossy(data).into_owned());
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
