//! Prompts: the specification's system prompts, and the sections that follow them.
//!
//! Pure. Sections come in the specification's order, or in one that gives a repair the same beginning as the first
//! query; each is introduced by a line of its own.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::model::message::{Message, Part, Role, Text};
use crate::model::{Form, ReplyFormat};
use crate::secret::Redactor;
use crate::sys::text;

/// The system prompt of a commit's first query.
pub const COMMIT_INITIAL: &str = include_str!("../../prompts/commit_initial.txt");
/// The system prompt of a repair query.
pub const COMMIT_REPAIR: &str = include_str!("../../prompts/commit_repair.txt");
/// The instructions about a code base that is only partly sent.
const COMMIT_CONTEXT: &str = include_str!("../../prompts/commit_context.txt");
/// The system prompt of a commit's first query if the reply may edit parts of files.
pub const COMMIT_EDITS: &str = include_str!("../../prompts/commit_edits.txt");
/// The system prompt of a repair query if the reply may edit parts of files.
pub const COMMIT_EDITS_REPAIR: &str = include_str!("../../prompts/commit_edits_repair.txt");
/// The system prompt of the consistency report.
pub const CONSISTENCY: &str = include_str!("../../prompts/consistency.txt");
/// The system prompt of a part's findings, for a report by parts.
pub const CONSISTENCY_PART: &str = include_str!("../../prompts/consistency_part.txt");
/// The system prompt that joins the findings of all parts to a report.
pub const CONSISTENCY_JOIN: &str = include_str!("../../prompts/consistency_join.txt");
/// The system prompt that turns a report into findings as data.
pub const CONSISTENCY_FINDINGS: &str = include_str!("../../prompts/consistency_findings.txt");

/// The request that follows the mistakes of a rejected reply.
const ASK_AGAIN: &str = "Nothing of your reply was applied. Answer the request above again, as a whole and without these faults.";

/// The user's input: the query, and the code base as a rollup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// The content of `agent-config/query.txt`: the requested change.
    pub query: String,
    /// The content of `agent-config/codeRollup.txt`: the code base.
    pub rollup: String,
    /// True if the rollup is only part of the code base, and the model may ask for more.
    pub is_part: bool,
}

/// The order of a prompt's sections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptOrder {
    /// The order in the specification.
    #[default]
    Specified,
    /// The code base before the query, and a repair's additions after both, so that vendors find the beginning of a
    /// repair in their caches.
    Cached,
}

/// The state of a file after earlier replies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replacement<'a> {
    /// The file's whole content.
    Written(&'a str),
    /// Regions of the file's content, as lines from 0 on, that include everything that the reply did not write.
    Regions(&'a str, &'a [Range<usize>]),
    /// The file was removed.
    Removed,
}

/// Formats the text of the regions, each after a line with its position.
fn text_of(now: &str, regions: &[Range<usize>]) -> String {
    let lines: Vec<&str> = now.split_inclusive('\n').collect();
    let shown = regions.iter().map(|region| {
        let (first, last, of) = (region.start + 1, region.end, lines.len());
        let text = lines[region.clone()].concat();
        let end = text::line_end(&text);
        format!("[lines {first} to {last} of {of}]\n{text}{end}")
    });
    shown.collect()
}

/// A query: the system prompt and the conversation after it, which in the commit workflow is a single user message. Its
/// `Display` is the text in the run log.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt<'a> {
    /// The system prompt, one message per element.
    system: Vec<Cow<'a, str>>,
    conversation: Vec<Message<'a>>,
    /// The form of the answer.
    pub form: Form,
    /// The conversation's sections: their names, and the index of the piece that each begins with.
    sections: Vec<(&'static str, usize)>,
    /// The number of messages that the run log already has, along with the system prompt; `None`: the log stores the
    /// whole prompt, as it is sent.
    known: Option<usize>,
}

impl<'a> Prompt<'a> {
    fn new(system: &'static str, edits: Option<ReplyFormat>) -> Self {
        let conversation = vec![Message::text(Role::User, Text::default())];
        let form = Form {
            edits,
            ..Form::default()
        };
        Self {
            form,
            sections: Vec::new(),
            known: None,
            ..Self::of_agent([system], conversation, 0)
        }
    }

    /// Creates the query of an agent. The run log already has the first `known` messages and, if there are any, the
    /// system prompt.
    pub fn of_agent(
        system: impl IntoIterator<Item = impl Into<Cow<'a, str>>>,
        conversation: Vec<Message<'a>>,
        known: usize,
    ) -> Self {
        Self {
            system: system.into_iter().map(Into::into).collect(),
            conversation,
            form: Form::default(),
            sections: vec![("conversation", 0)],
            known: Some(known),
        }
    }

    /// Creates the query for a change: system prompt, query, code base.
    pub fn initial(inputs: &'a Inputs, order: PromptOrder, format: ReplyFormat) -> Self {
        let system = match format {
            ReplyFormat::Whole => COMMIT_INITIAL,
            ReplyFormat::Edits => COMMIT_EDITS,
        };
        let mut prompt = Self::new(system, Some(format));
        prompt.inputs(inputs, order);
        if order == PromptOrder::Cached {
            prompt.mark();
        }
        prompt
    }

    /// Creates the query for a repair: system prompt, build output, query, code base, and the latest state of each
    /// replaced file, in the given order. In the cached order, it is the first query, followed by the repair's system
    /// prompt and the new sections.
    pub fn repair(
        build_output: impl Into<Cow<'a, str>>,
        inputs: &'a Inputs,
        replacements: impl IntoIterator<Item = (&'a str, Replacement<'a>)>,
        order: PromptOrder,
        format: ReplyFormat,
    ) -> Self {
        let system = match format {
            ReplyFormat::Whole => COMMIT_REPAIR,
            ReplyFormat::Edits => COMMIT_EDITS_REPAIR,
        };
        let mut prompt = match order {
            PromptOrder::Specified => Self::new(system, Some(format)),
            PromptOrder::Cached => Self::initial(inputs, order, format).followed_by(system),
        };
        prompt.section("build.sh output", build_output);
        if order == PromptOrder::Specified {
            prompt.inputs(inputs, order);
        }
        prompt.section("file replacements", "");
        for (path, replacement) in replacements {
            match replacement {
                Replacement::Regions(now, regions) => {
                    prompt.line(format!("--- CHANGED REGIONS {path} ---"));
                    prompt.push(text_of(now, regions));
                }
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

    /// Appends a section, unless it is empty.
    pub fn with(mut self, name: &'static str, content: impl Into<Cow<'a, str>>) -> Self {
        let content = content.into();
        if !content.is_empty() {
            self.section(name, content);
            self.end_line();
        }
        self
    }

    /// Appends the reason that the reply to this query was rejected.
    pub fn after_rejection(mut self, why: &str) -> Self {
        self.section("rejected reply", format!("{why}\n\n{ASK_AGAIN}\n"));
        self
    }

    /// Creates the query for a consistency report: system prompt, query, code base. No later request shares its
    /// beginning.
    pub fn consistency(inputs: &'a Inputs, order: PromptOrder) -> Self {
        let mut prompt = Self::new(CONSISTENCY, None);
        prompt.inputs(inputs, order);
        prompt
    }

    /// Creates a query of a system prompt and these sections, each with its name.
    pub fn of_sections(
        system: &'static str,
        sections: impl IntoIterator<Item = (&'static str, Cow<'a, str>)>,
    ) -> Self {
        let mut prompt = Self::new(system, None);
        for (name, content) in sections {
            prompt.section(name, content);
        }
        prompt
    }

    /// Returns whether the conversation continues, in which case the next request begins with all of it; otherwise, the
    /// prompt is complete.
    pub fn continues(&self) -> bool {
        self.known.is_some()
    }

    /// Redacts secrets in all text of the conversation.
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let messages = self.conversation.into_iter();
        let redacted = messages.map(|message| message.redacted(redactor));
        Self {
            conversation: redacted.collect(),
            ..self
        }
    }

    /// Returns the messages to send.
    pub fn messages(self) -> Vec<Message<'a>> {
        let message = |text| Message::text(Role::System, text);
        let system = self.system.into_iter().map(message);
        system.chain(self.conversation).collect()
    }

    fn inputs(&mut self, inputs: &'a Inputs, order: PromptOrder) {
        if inputs.is_part {
            self.system.push(COMMIT_CONTEXT.into());
            self.form.takes_requests = true;
        }
        let mut sections = [("query", &*inputs.query), ("codebase", &*inputs.rollup)];
        if order == PromptOrder::Cached {
            sections.reverse();
        }
        for (name, content) in sections {
            self.section(name, content);
        }
    }

    /// Ends the prefix that later requests share. It ends a line first, so that added text leaves the prefix unchanged.
    fn mark(&mut self) {
        self.end_line();
        if let Some(Part::Text(text)) = self.last_part() {
            text.is_marked = true;
        }
    }

    /// Appends further instructions.
    fn followed_by(mut self, instructions: &'static str) -> Self {
        self.sections.push(("repair", self.pieces().count()));
        self.push(instructions);
        self
    }

    /// Returns the prompt's length in bytes.
    pub fn bytes(&self) -> u64 {
        let conversation: usize = self.pieces().map(|piece| piece.len()).sum();
        let system: usize = self.system.iter().map(|text| text.len()).sum();
        (system + conversation) as u64
    }

    /// Returns the prompt's sections, `system` first, each with its text in pieces.
    pub fn sections(&self) -> Vec<(&'static str, Vec<Cow<'_, str>>)> {
        let mut pieces: Vec<Cow<'_, str>> = self.pieces().collect();
        let system = self.system.iter().map(|text| Cow::Borrowed(&**text));
        let mut sections = vec![("system", system.collect())];
        for (name, from) in self.sections.iter().rev() {
            sections.insert(1, (*name, pieces.split_off(*from)));
        }
        sections
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

    fn last_part(&mut self) -> Option<&mut Part<'a>> {
        self.conversation.last_mut()?.parts.last_mut()
    }

    fn push(&mut self, piece: impl Into<Cow<'a, str>>) {
        match self.last_part() {
            Some(Part::Text(text)) if !text.is_marked => text.push(piece),
            // After a cache mark, a new part begins.
            _ => {
                if let Some(message) = self.conversation.last_mut() {
                    message.parts.push(Part::Text(Text::from(piece)));
                }
            }
        }
    }

    /// Appends a line of its own, whatever precedes it.
    fn line(&mut self, line: String) {
        self.end_line();
        self.push(line);
        self.push("\n");
    }

    fn end_line(&mut self) {
        if let Some(Part::Text(text)) = self.last_part()
            && !text.ends_line()
        {
            text.push("\n");
        }
    }
}

impl fmt::Display for Prompt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known {
            None => {
                self.system.iter().try_for_each(|text| f.write_str(text))?;
                let mut messages = self.conversation.iter();
                messages.try_for_each(|message| write!(f, "{message}"))
            }
            Some(known) => {
                match known {
                    0 => {
                        let mut system = self.system.iter();
                        system.try_for_each(|words| {
                            write!(f, "[system]\n{words}{}", text::line_end(words))
                        })?;
                    }
                    known => writeln!(f, "[system prompt and {known} messages as before]")?,
                }
                let mut new = self.conversation.iter().skip(known);
                new.try_for_each(|message| {
                    let (role, words) = (message.role, message.to_string());
                    write!(f, "[{role}]\n{words}{}", text::line_end(&words))
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PromptOrder::{Cached, Specified};
    use super::*;
    use crate::model::ReplyFormat::{Edits, Whole};

    fn inputs() -> Inputs {
        Inputs {
            query: "add a flag".into(),
            rollup: "--- a ---\nx\n".into(),
            is_part: false,
        }
    }

    #[test]
    fn the_initial_query_is_system_prompt_query_and_code_base() {
        let inputs = inputs();
        let logged = Prompt::initial(&inputs, Specified, Whole).to_string();
        let user = "[query]\nadd a flag\n[codebase]\n--- a ---\nx\n";
        assert_eq!(logged, format!("{COMMIT_INITIAL}{user}"));
        let messages = Prompt::initial(&inputs, Specified, Whole).messages();
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
        let prompt = Prompt::repair("error[E0001]", &inputs, replacements, Specified, Whole);
        let expected = "[build.sh output]\nerror[E0001]\n[query]\nadd a flag\n[codebase]\n\
            --- a ---\nx\n[file replacements]\n--- FILE REPLACEMENT a.rs ---\nno newline\n\
            --- FILE REMOVED b.rs ---\n";
        assert_eq!(prompt.messages()[1].to_string(), expected);
    }

    #[test]
    fn a_rejection_stands_behind_the_same_query() {
        let inputs = inputs();
        for order in [PromptOrder::Specified, PromptOrder::Cached] {
            let prompt = Prompt::initial(&inputs, order, Whole).to_string();
            let again = Prompt::initial(&inputs, order, Whole).after_rejection("line 1: no");
            let whole = again.to_string();
            let behind = whole.strip_prefix(&prompt).unwrap();
            assert_eq!(
                behind,
                format!("[rejected reply]\nline 1: no\n\n{ASK_AGAIN}\n")
            );
            let (last, pieces) = again.sections().pop().unwrap();
            assert_eq!((last, pieces.concat().as_str()), ("rejected reply", behind));
        }
    }

    #[test]
    fn the_parts_make_up_the_prompt() {
        let inputs = inputs();
        let replacements = [("a.rs", Replacement::Written("x"))];
        let prompt = Prompt::repair("failed", &inputs, replacements, Specified, Whole);
        let parts = prompt.sections();
        let names: Vec<&str> = parts.iter().map(|part| part.0).collect();
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
        let joined: String = parts.iter().flat_map(|part| part.1.clone()).collect();
        assert_eq!(joined, prompt.to_string());
        assert_eq!(parts[3].1.concat(), "[codebase]\n--- a ---\nx\n");
    }

    #[test]
    fn in_the_cached_order_a_repair_is_the_first_query_with_what_is_new_behind_it() {
        let inputs = inputs();
        let replacements = [("a.rs", Replacement::Written("x"))];
        let first = Prompt::initial(&inputs, Cached, Whole);
        let repair = Prompt::repair("failed", &inputs, replacements, Cached, Whole);
        let shared = format!("{COMMIT_INITIAL}[codebase]\n--- a ---\nx\n[query]\nadd a flag\n");
        assert_eq!(first.to_string(), shared);
        let new =
            "[build.sh output]\nfailed\n[file replacements]\n--- FILE REPLACEMENT a.rs ---\nx\n";
        assert_eq!(repair.to_string(), format!("{shared}{COMMIT_REPAIR}{new}"));
        let parts = repair.sections();
        let joined: String = parts.iter().flat_map(|part| part.1.clone()).collect();
        assert_eq!(joined, repair.to_string());
        let names: Vec<&str> = parts.iter().map(|part| part.0).collect();
        assert_eq!(
            names,
            [
                "system",
                "codebase",
                "query",
                "repair",
                "build.sh output",
                "file replacements"
            ]
        );
        let [system, user] = &*repair.messages() else {
            panic!("a message of the system's, and one of the user's")
        };
        assert_eq!(*system, first.clone().messages()[0]);
        assert!(user.parts.starts_with(&first.messages()[1].parts));
        let report = Prompt::consistency(&inputs, Cached).messages();
        assert!(!report[1].is_marked());
        assert_eq!(
            report[1].to_string(),
            "[codebase]\n--- a ---\nx\n[query]\nadd a flag"
        );
    }

    #[test]
    fn an_empty_query_still_has_its_line() {
        let inputs = Inputs {
            query: String::new(),
            rollup: "x".into(),
            is_part: false,
        };
        let prompt = Prompt::consistency(&inputs, Specified);
        assert_eq!(prompt.messages()[1].to_string(), "[query]\n[codebase]\nx");
    }

    #[test]
    fn edits_have_prompts_of_their_own_with_an_example_that_ends() {
        let inputs = inputs();
        for order in [Specified, Cached] {
            let prompt = Prompt::initial(&inputs, order, Edits);
            assert_eq!(prompt.form.edits, Some(Edits));
            assert!(prompt.to_string().starts_with(COMMIT_EDITS));
            let repair = Prompt::repair("failed", &inputs, [], order, Edits);
            assert!(repair.to_string().contains(COMMIT_EDITS_REPAIR));
        }
        assert_eq!(Prompt::consistency(&inputs, Specified).form.edits, None);
        // Instructions that also apply here use the words of the specified prompts.
        for (specified, own) in [
            (COMMIT_INITIAL, COMMIT_EDITS),
            (COMMIT_REPAIR, COMMIT_EDITS_REPAIR),
        ] {
            let part = |text: &str, from: &str, to: &str| {
                let from = text.find(from).unwrap();
                let end = text[from..].find(to).unwrap();
                text[from..from + end].to_owned()
            };
            for (from, to) in [
                ("You are taking", "The automated"),
                ("As you write code", "specified in the .gitignore file"),
            ] {
                assert_eq!(part(own, from, to), part(specified, from, to));
            }
        }
    }

    #[test]
    fn the_regions_of_a_file_stand_below_lines_with_their_places() {
        let inputs = inputs();
        let shown = |state| {
            let repair = Prompt::repair("failed", &inputs, [("a.rs", state)], Specified, Edits);
            let text = repair.messages()[1].to_string();
            let (_, shown) = text.split_once("[file replacements]\n").unwrap();
            shown.to_owned()
        };
        let now = "a\n\tb\nc\nd";
        assert_eq!(
            shown(Replacement::Written(now)),
            "--- FILE REPLACEMENT a.rs ---\na\n\tb\nc\nd\n"
        );
        assert_eq!(
            shown(Replacement::Regions(now, &[0..2, 3..4])),
            "--- CHANGED REGIONS a.rs ---\n[lines 1 to 2 of 4]\na\n\tb\n[lines 4 to 4 of 4]\nd\n"
        );
    }
}
