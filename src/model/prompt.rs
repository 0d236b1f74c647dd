//! The prompts: the specification's system prompts, and the sections that follow them.
//!
//! Pure. The order of the sections is the specification's; each is introduced by a line of its own.

use std::borrow::Cow;
use std::fmt;

use crate::model::Form;
use crate::model::message::{Message, Part as MessagePart, Role, Text};

/// The system prompt of a commit's first query.
pub const COMMIT_INITIAL: &str = include_str!("../../prompts/commit_initial.txt");
/// The system prompt of a repair query.
pub const COMMIT_REPAIR: &str = include_str!("../../prompts/commit_repair.txt");
/// The system prompt of the consistency report.
pub const CONSISTENCY: &str = include_str!("../../prompts/consistency.txt");

/// What the user wrote: the query, and the rolled-up code base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// `agent-config/query.txt`.
    pub query: String,
    /// `agent-config/codeRollup.txt`.
    pub rollup: String,
}

/// The state that earlier replies left a file in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement<'a> {
    /// The file's whole content.
    Written(&'a str),
    /// The file was removed.
    Removed,
}

/// A query: the system prompt, and the conversation that follows it; of the commit workflow one user
/// message. Its `Display` is what the run log keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt<'a> {
    system: Cow<'a, str>,
    conversation: Vec<Message<'a>>,
    form: Form,
    /// The conversation's sections: their names, and the pieces of the text that they begin with.
    sections: Vec<(&'static str, usize)>,
    logged: Logged,
}

/// What of a prompt the run log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logged {
    /// All of it, as it is sent.
    Whole,
    /// The conversation from this message on, with who says it: what is before is in the log already.
    From(usize),
}

/// A part of a prompt, for whoever wants to know how large it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<'p> {
    /// `system`, or the section's name.
    pub name: &'static str,
    /// Its text, piece by piece.
    pub pieces: Vec<Cow<'p, str>>,
}

impl<'a> Prompt<'a> {
    fn new(system: &'static str) -> Self {
        Self {
            system: Cow::Borrowed(system),
            conversation: vec![Message::text(Role::User, Text::default())],
            form: Form::default(),
            sections: Vec::new(),
            logged: Logged::Whole,
        }
    }

    /// The query of an agent. The first `known` messages are in the run log already, and with them the
    /// system prompt.
    #[must_use]
    pub fn of_agent(
        system: impl Into<Cow<'a, str>>,
        conversation: Vec<Message<'a>>,
        known: usize,
    ) -> Self {
        Self {
            system: system.into(),
            conversation,
            form: Form::default(),
            sections: vec![("conversation", 0)],
            logged: Logged::From(known),
        }
    }

    /// The query that asks for a change: system prompt, query, code base.
    #[must_use]
    pub fn initial(inputs: &'a Inputs) -> Self {
        let mut prompt = Self::new(COMMIT_INITIAL);
        prompt.inputs(inputs);
        prompt
    }

    /// The query that asks for a repair: system prompt, build output, query, code base, and the
    /// latest state of each file that was replaced, in the order given.
    #[must_use]
    pub fn repair(
        build_output: impl Into<Cow<'a, str>>,
        inputs: &'a Inputs,
        replacements: impl IntoIterator<Item = (&'a str, Replacement<'a>)>,
    ) -> Self {
        let mut prompt = Self::new(COMMIT_REPAIR);
        prompt.section("build.sh output", build_output);
        prompt.inputs(inputs);
        prompt.section("file replacements", "");
        for (path, replacement) in replacements {
            match replacement {
                Replacement::Written(content) => {
                    prompt.line(format!("--- FILE REPLACEMENT {path} ---"));
                    prompt.push(content);
                }
                Replacement::Removed => prompt.line(format!("--- FILE REMOVED {path} ---")),
            }
        }
        prompt.end_line();
        prompt
    }

    /// The query that asks for a consistency report: system prompt, query, code base.
    #[must_use]
    pub fn consistency(inputs: &'a Inputs) -> Self {
        let mut prompt = Self::new(CONSISTENCY);
        prompt.inputs(inputs);
        prompt
    }

    /// The same prompt with what the conversation is made of changed by `change`.
    #[must_use]
    pub fn map(self, change: impl Fn(Cow<'a, str>) -> Cow<'a, str>) -> Self {
        let changed = self
            .conversation
            .into_iter()
            .map(|message| message.map(&change));
        Self {
            conversation: changed.collect(),
            ..self
        }
    }

    /// The same prompt for an answer of this form.
    #[must_use]
    pub fn with_form(self, form: Form) -> Self {
        Self { form, ..self }
    }

    /// What the answer is to be besides words.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// The conversation to send.
    #[must_use]
    pub fn messages(self) -> Vec<Message<'a>> {
        let mut system = Text::default();
        system.push(self.system);
        let system = Message::text(Role::System, system);
        std::iter::once(system).chain(self.conversation).collect()
    }

    fn inputs(&mut self, inputs: &'a Inputs) {
        self.section("query", inputs.query.as_str());
        self.section("codebase", inputs.rollup.as_str());
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let conversation: usize = self.pieces().map(|piece| piece.len()).sum();
        (self.system.len() + conversation) as u64
    }

    /// What the prompt is made of.
    #[must_use]
    pub fn parts(&self) -> Vec<Part<'_>> {
        let pieces: Vec<Cow<'_, str>> = self.pieces().collect();
        let mut parts = vec![Part {
            name: "system",
            pieces: vec![Cow::Borrowed(&self.system)],
        }];
        for (at, (name, from)) in self.sections.iter().enumerate() {
            let to = self
                .sections
                .get(at + 1)
                .map_or(pieces.len(), |next| next.1);
            parts.push(Part {
                name,
                pieces: pieces[*from..to].to_vec(),
            });
        }
        parts
    }

    fn pieces(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.conversation.iter().flat_map(Message::pieces)
    }

    fn section(&mut self, name: &'static str, content: impl Into<Cow<'a, str>>) {
        self.end_line();
        self.sections.push((name, self.pieces().count()));
        self.line(format!("[{name}]"));
        self.push(content);
    }

    fn last_part(&mut self) -> Option<&mut MessagePart<'a>> {
        self.conversation.last_mut()?.parts.last_mut()
    }

    fn push(&mut self, piece: impl Into<Cow<'a, str>>) {
        if let Some(MessagePart::Text(text)) = self.last_part() {
            text.push(piece);
        }
    }

    /// A line of its own, whatever stood before it.
    fn line(&mut self, line: String) {
        self.end_line();
        self.push(line);
        self.push("\n");
    }

    fn end_line(&mut self) {
        if let Some(MessagePart::Text(text)) = self.last_part()
            && !text.ends_line()
        {
            text.push("\n");
        }
    }
}

impl fmt::Display for Prompt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.logged {
            Logged::Whole => {
                write!(f, "{}", self.system)?;
                let mut messages = self.conversation.iter();
                messages.try_for_each(|message| write!(f, "{message}"))
            }
            Logged::From(known) => {
                match known {
                    0 => write!(f, "[system]\n{}", self.system)?,
                    known => writeln!(f, "[system prompt and {known} messages as before]")?,
                }
                let mut new = self.conversation.iter().skip(known);
                new.try_for_each(|message| {
                    let line_end = if message.ends_line() { "" } else { "\n" };
                    write!(f, "[{}]\n{message}{line_end}", message.role.name())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Inputs {
        Inputs {
            query: "add a flag".into(),
            rollup: "--- a ---\nx\n".into(),
        }
    }

    #[test]
    fn the_initial_query_is_system_prompt_query_and_code_base() {
        let inputs = inputs();
        let logged = Prompt::initial(&inputs).to_string();
        let user = "[query]\nadd a flag\n[codebase]\n--- a ---\nx\n";
        assert_eq!(logged, format!("{COMMIT_INITIAL}{user}"));
        let messages = Prompt::initial(&inputs).messages();
        assert_eq!(messages[0].to_string(), COMMIT_INITIAL);
        assert_eq!(messages[1].to_string(), user);
    }

    #[test]
    fn a_repair_query_has_its_sections_in_the_specified_order() {
        let inputs = inputs();
        let replacements = [
            ("a.rs", Replacement::Written("no newline")),
            ("b.rs", Replacement::Removed),
        ];
        let prompt = Prompt::repair("error[E0001]", &inputs, replacements);
        let expected = "[build.sh output]\nerror[E0001]\n[query]\nadd a flag\n[codebase]\n\
            --- a ---\nx\n[file replacements]\n--- FILE REPLACEMENT a.rs ---\nno newline\n\
            --- FILE REMOVED b.rs ---\n";
        assert_eq!(prompt.messages()[1].to_string(), expected);
    }

    #[test]
    fn the_parts_make_up_the_prompt() {
        let inputs = inputs();
        let replacements = [("a.rs", Replacement::Written("x"))];
        let prompt = Prompt::repair("failed", &inputs, replacements);
        let parts = prompt.parts();
        let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
        assert_eq!(
            names,
            [
                "system",
                "build.sh output",
                "query",
                "codebase",
                "file replacements"
            ]
        );
        let joined: String = parts.iter().flat_map(|part| part.pieces.clone()).collect();
        assert_eq!(joined, prompt.to_string());
        assert_eq!(parts[3].pieces.concat(), "[codebase]\n--- a ---\nx\n");
    }

    #[test]
    fn an_empty_query_still_has_its_line() {
        let inputs = Inputs {
            query: String::new(),
            rollup: "x".into(),
        };
        let prompt = Prompt::consistency(&inputs);
        assert_eq!(prompt.messages()[1].to_string(), "[query]\n[codebase]\nx");
    }
}
