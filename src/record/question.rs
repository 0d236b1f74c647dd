//! A question to the user before an agent acts, and the user's answer. Plain data: it can cross to another thread.

/// A request for permission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// All of it in a sentence.
    pub sentence: String,
    /// The tool that is to be used.
    pub tool: String,
    /// The path or the command that it is about; "" where there is none.
    pub subject: String,
    /// The reasons for asking, each in a word or two: `overwrites`, `deletes`.
    pub reasons: Vec<String>,
    /// True if a yes may be for good: what is asked about always is allowed but once.
    pub may_last: bool,
    /// Of a command, the prefixes of the rules that a yes for good writes; none: it is for the tool.
    pub rules: Vec<String>,
    /// The same in words; "": there are none.
    pub lasting: String,
    /// True if a no may be for good, too: the tool is never used in this project then.
    pub may_forbid: bool,
    /// True if somebody is there who can be told what to do instead.
    pub may_redirect: bool,
}

impl From<String> for Question {
    /// A question that is nothing but a sentence.
    fn from(sentence: String) -> Self {
        Self {
            sentence,
            ..Self::default()
        }
    }
}

/// The user's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It may be done.
    Yes,
    /// It may not.
    No,
    /// It may not, and this is to be done instead.
    Instead(String),
}

/// The prefix of a written answer that says what to do instead.
const INSTEAD: &str = "no: ";

impl Answer {
    /// The answer that somebody has written; what is none is no.
    pub fn read(written: &str) -> Self {
        match written.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Self::Yes,
            _ => written
                .strip_prefix(INSTEAD)
                .map_or(Self::No, |words| Self::Instead(words.to_owned())),
        }
    }

    /// The same as [`read`](Self::read) reads it.
    pub fn written(&self) -> String {
        match self {
            Self::Yes => "yes".to_owned(),
            Self::No => "no".to_owned(),
            Self::Instead(words) => format!("{INSTEAD}{words}"),
        }
    }
}

/// The user's decision on a request for permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// True if it may be done now.
    pub answer: Answer,
    /// True if that holds for the tool in this project from now on.
    pub is_for_good: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        let instead = Answer::Instead("use trash".to_owned());
        for answer in [Answer::Yes, Answer::No, instead] {
            assert_eq!(Answer::read(&answer.written()), answer);
        }
        assert_eq!(Answer::read(" Y "), Answer::Yes);
        assert_eq!(Answer::read("sure"), Answer::No);
    }
}
