//! Messages in the form used in a session file. The file is written after each step, and a step adds few messages, so
//! the JSON text of the others is cached. Pure.

use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::redacted::redacted_message;
use crate::agent::conversation::HistoryMessage;
use crate::secret::Redactor;

/// The indentation of a message in the file.
const INDENT: &str = "\n    ";

/// A message in a session file.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct WrittenMessage {
    pub(super) message: HistoryMessage,
    /// The JSON with keys removed; `None` until the message is first written.
    #[serde(skip)]
    json: Option<Box<RawValue>>,
}

impl Serialize for WrittenMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = self.json.as_ref();
        json.ok_or_else(|| S::Error::custom("a message that may hold keys is not written"))?
            .serialize(serializer)
    }
}

/// Brings `written` up to date with `messages`, and returns the number of messages that had to be serialized.
pub(super) fn update(
    written: &mut Vec<WrittenMessage>,
    messages: &[HistoryMessage],
    redactor: &Redactor,
) -> usize {
    let is_same = |(known, message): &(&WrittenMessage, &HistoryMessage)| {
        known.json.is_some() && known.message == **message
    };
    let same = written.iter().zip(messages).take_while(is_same).count();
    written.truncate(same);
    let new = messages.get(same..).unwrap_or_default();
    written.extend(new.iter().map(|message| WrittenMessage {
        json: json(&redacted_message(message, redactor)),
        message: message.clone(),
    }));
    new.len()
}

fn json(message: &HistoryMessage) -> Option<Box<RawValue>> {
    let json = serde_json::to_string_pretty(message).ok()?;
    // JSON strings contain no raw line breaks.
    RawValue::from_string(json.replace('\n', INDENT)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_writes_its_own_messages_alone_however_long_the_history_is() {
        let redactor = Redactor::new(["sekret-key-1"]);
        let mut written = Vec::new();
        let mut messages: Vec<_> = (0..1000)
            .map(|step| HistoryMessage::of_agent(format!("step {step}\nsekret-key-1")))
            .collect();
        assert_eq!(update(&mut written, &messages, &redactor), 1000);
        messages.extend([HistoryMessage::note("a"), HistoryMessage::note("b")]);
        assert_eq!(update(&mut written, &messages, &redactor), 2);
        assert_eq!(update(&mut written, &messages, &redactor), 0);
        // After a change, all later messages are serialized again.
        messages[998].content = "step 998\nsekret-key-1!".into();
        messages.pop();
        assert_eq!(update(&mut written, &messages, &redactor), 3);
        let json = serde_json::to_string_pretty(&written).unwrap();
        assert!(!json.contains("sekret") && json.contains("step 998\\n[REDACTED]-1!"));
        let read: Vec<WrittenMessage> = serde_json::from_str(&json).unwrap();
        assert_eq!(read.len(), 1001);
        // Messages that were only read may contain keys.
        assert!(serde_json::to_string(&read).is_err());
    }
}
