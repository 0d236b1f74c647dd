//! A question to the user before an agent acts, and the user's answer. Plain data that can be sent to another thread.

/// A request for permission.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// The whole question, as a sentence.
    pub sentence: String,
    /// The tool that the agent wants to use.
    pub tool: String,
    /// The path or command concerned; may be empty.
    pub subject: String,
    /// The question for a user who sees the subject: `Allow this command?`; "" for a general one.
    pub asks: &'static str,
    /// The parts of a command that are the reason for asking.
    pub cause: Vec<String>,
    /// The reasons for asking, each in a word or two: `overwrites`, `deletes`.
    pub reasons: Vec<String>,
    /// True if a yes may be permanent; actions that are always asked about are allowed only once.
    pub may_be_permanent: bool,
    /// For a command, the prefixes of the rules that a permanent yes adds; without any, it applies to the tool.
    pub rules: Vec<String>,
    /// The rules in words; empty if there are none.
    pub lasting: String,
    /// True if a no may be permanent too, and forbid the tool in this project.
    pub may_forbid: bool,
    /// True if a user is present who can say what to do instead.
    pub may_redirect: bool,
}

impl From<String> for Question {
    /// Creates a question that consists of a single sentence.
    fn from(sentence: String) -> Self {
        Self {
            sentence,
            ..Self::default()
        }
    }
}

impl Question {
    /// Returns the prompt for a written answer, with the words that [`verdict`](Self::verdict) understands.
    pub fn prompt(&self) -> String {
        let always = match &*self.lasting {
            "" => "always".to_owned(),
            lasting => format!("always ({lasting})"),
        };
        let words = [
            ("yes", true),
            (&always, self.may_be_permanent),
            ("no", true),
            ("never", self.may_forbid),
        ];
        let there: Vec<&str> = words
            .into_iter()
            .filter(|(_, is_there)| *is_there)
            .map(|(word, _)| word)
            .collect();
        let instead = if self.may_redirect {
            ", or no: WHAT INSTEAD"
        } else {
            ""
        };
        format!("{}{instead}> ", there.join("/"))
    }

    /// Parses a written answer as [`Answer::read`] does; `always` and `never` are permanent, where the question allows
    /// it.
    pub fn verdict(&self, written: &str) -> Verdict {
        let (answer, is_for_good) = match written.trim().to_ascii_lowercase().as_str() {
            "a" | "always" if self.may_be_permanent => (Answer::Yes, true),
            "d" | "never" if self.may_forbid => (Answer::No, true),
            _ => (Answer::read(written), false),
        };
        Verdict {
            answer,
            is_for_good,
        }
    }
}

/// The user's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The action is allowed.
    Yes,
    /// The action is not allowed.
    No,
    /// The action is not allowed, and the text says what to do instead.
    Instead(String),
}

/// The prefix of a written answer that says what to do instead.
const INSTEAD: &str = "no: ";

impl Answer {
    /// Parses a written answer; anything unrecognized means No.
    pub fn read(written: &str) -> Self {
        match written.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Self::Yes,
            _ => written
                .strip_prefix(INSTEAD)
                .map_or(Self::No, |words| Self::Instead(words.to_owned())),
        }
    }

    /// Formats the answer the way [`read`](Self::read) parses it.
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
    /// The answer for this time.
    pub answer: Answer,
    /// True if the answer applies to the tool in this project from now on.
    pub is_for_good: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_for_good_only_where_that_is_offered() {
        let question = Question {
            may_be_permanent: true,
            may_forbid: true,
            may_redirect: true,
            lasting: "`ls`".to_owned(),
            ..Question::default()
        };
        assert_eq!(
            question.prompt(),
            "yes/always (`ls`)/no/never, or no: WHAT INSTEAD> "
        );
        assert_eq!(Question::default().prompt(), "yes/no> ");
        for (written, answer, is_for_good) in [
            ("y", Answer::Yes, false),
            ("Always", Answer::Yes, true),
            ("never ", Answer::No, true),
            ("", Answer::No, false),
            ("no: use b", Answer::Instead("use b".to_owned()), false),
        ] {
            let verdict = question.verdict(written);
            assert_eq!((verdict.answer, verdict.is_for_good), (answer, is_for_good));
        }
        let once = Question::default();
        for written in ["always", "never"] {
            let verdict = once.verdict(written);
            assert_eq!((verdict.answer, verdict.is_for_good), (Answer::No, false));
        }
    }

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
