//! Tools that do not touch the project: the task list, questions to the user, and the end of the work.

use crate::agent::AgentError;
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::record::tool::Verb;

/// The description of `UPDATE_TASK_LIST`.
pub static UPDATE_TASK_LIST: ToolSpec = ToolSpec::new(
    "UPDATE_TASK_LIST",
    "Does nothing but note the task list of this response.",
    &[Parameter::new(
        "tasks",
        ParameterKind::Tasks,
        "the whole task list, a task a line: `[ ]` pending, `[~]` in progress, `[x]` complete",
    )],
    Effect::Notes,
)
.doing(Verb::Note);

/// The description of `DONE`.
pub static DONE: ToolSpec = ToolSpec::new(
    "DONE",
    "Says that all that was asked for is done.",
    &[Parameter::text("summary", "what was done; where the user asked a question, the answer")
    .example(
        "Completed refactoring the auth module:\n- Migrated from sessions to JWT\n- Added refresh token support\n\
         - Updated all route handlers\n- All tests passing",
    )],
    Effect::Ends,
)
.doing(Verb::Finish);

/// The description of `DONE` for an auditor, who may also give the verdict in plain words.
pub static VERDICT: ToolSpec = ToolSpec::new(
    "DONE",
    "Ends the audit with your verdict, as a reply without a tool does.",
    &[Parameter::text("summary", "what you found, and at its end the lines `Overall: ...` and `Feedback: ...`")
    .example(
        "src/auth.ts exists, but 2 tests fail in auth.spec.ts.\n\nOverall: FAIL\nFeedback: Tests are failing. Please \
         fix the failing tests in auth.spec.ts before completing.",
    )],
    Effect::Ends,
)
.doing(Verb::Finish);

/// The description of `ASK_USER`.
pub static ASK_USER: ToolSpec = ToolSpec::new(
    "ASK_USER",
    "Asks the user a question, and waits for the answer.",
    &[Parameter::text("question", "the question")
        .example("What authentication method would you prefer: JWT or session-based?")],
    Effect::Asks,
);

/// Acknowledges the task list, which the protocol has already read.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpdateTaskList;

impl Tool for UpdateTaskList {
    fn run(&self, _arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("task list updated"))
    }
}

/// Ends the work: [`DONE`], or the auditor's [`VERDICT`].
#[derive(Debug, Clone, Copy)]
pub struct Done;

impl Tool for Done {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput {
            text: arguments.get("summary").to_owned(),
            is_end: true,
            ..ToolOutput::default()
        })
    }
}

/// Answers an agent's questions.
pub trait User {
    /// Asks the user and returns the answer; `None` if no user is present.
    ///
    /// # Errors
    /// Fails if the run must end, because of a signal or because the terminal is gone.
    fn ask(&self, question: &str) -> Result<Option<String>, AgentError>;
}

/// Asks the user a question.
pub struct AskUser<'a>(pub &'a dyn User);

impl Tool for AskUser<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        match self.0.ask(arguments.get("question"))? {
            Some(answer) if answer.trim().is_empty() => Ok(ToolOutput::text("(no answer)")),
            Some(answer) => Ok(ToolOutput::text(answer)),
            None => Err("nobody answers; go on by your own judgement"
                .to_owned()
                .into()),
        }
    }
}

/// The description of `request_approval`.
pub static REQUEST_APPROVAL: ToolSpec = ToolSpec::new(
    "request_approval",
    "Ask the user whether to go on, and wait for yes or no. Use this before anything that is hard to take back. With \
     no, the work stops.",
    &[
        Parameter::text("question", "What is to be approved, as a question")
            .example("Shall I delete the old migration files?"),
    ],
    Effect::Asks,
);

/// Asks the user for approval, and stops the work if it is refused.
pub struct RequestApproval<'a>(pub &'a dyn User);

impl Tool for RequestApproval<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let typed = self.0.ask(arguments.get("question"))?;
        let answer = typed.as_deref().map(str::trim);
        match answer.map(str::to_lowercase).as_deref() {
            Some("yes" | "y") => Ok(ToolOutput::text("the user says yes")),
            Some("no" | "n") => {
                Err(AgentError::Rejected(arguments.get("question").to_owned()).into())
            }
            Some("") | None => Err("nobody has approved it: do not do it".to_owned().into()),
            Some(_) => Err(format!(
                "the user has not approved it yet, and says: {}",
                answer.unwrap_or_default()
            )
            .into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::interrupt::Interrupted;

    struct Answers(Option<&'static str>);

    impl User for Answers {
        fn ask(&self, question: &str) -> Result<Option<String>, AgentError> {
            assert_eq!(question, "JWT or sessions?");
            Ok(self.0.map(str::to_owned))
        }
    }

    fn ask(answer: Option<&'static str>) -> Result<ToolOutput, ToolError> {
        let mut arguments = Arguments::default();
        arguments.set("question", "JWT or sessions?".to_owned());
        let user = Answers(answer);
        AskUser(&user).run(&arguments)
    }

    #[test]
    fn an_answer_is_passed_on_and_a_missing_one_is_reported() {
        for (answer, expected) in [("JWT", "JWT"), ("", "(no answer)"), (" \n", "(no answer)")] {
            assert_eq!(ask(Some(answer)).unwrap().text, expected);
        }
        let Err(ToolError::Failed(reason)) = ask(None) else {
            panic!("nobody is there");
        };
        assert!(reason.message.contains("your own judgement"));
    }

    #[test]
    fn a_signal_at_the_question_ends_the_run() {
        struct Interrupts;
        impl User for Interrupts {
            fn ask(&self, _question: &str) -> Result<Option<String>, AgentError> {
                Err(AgentError::from(Interrupted::CTRL_C))
            }
        }
        let asked = AskUser(&Interrupts).run(&Arguments::default());
        assert!(matches!(asked, Err(ToolError::Fatal(_))));
    }

    #[test]
    fn an_approval_is_a_yes_and_a_no_stops_the_work() {
        let ask = |answer| {
            let mut arguments = Arguments::default();
            arguments.set("question", "JWT or sessions?");
            let user = Answers(answer);
            RequestApproval(&user).run(&arguments)
        };
        for yes in ["yes", " Y\n", "YES"] {
            assert_eq!(ask(Some(yes)).unwrap().text, "the user says yes");
        }
        for no in ["no", "N "] {
            let asked = ask(Some(no));
            assert!(matches!(
                asked,
                Err(ToolError::Fatal(AgentError::Rejected(_)))
            ));
        }
        for (answer, told) in [
            (None, "nobody has approved it"),
            (Some(""), "nobody has approved it"),
            (Some("only B, please"), "and says: only B, please"),
        ] {
            let Err(ToolError::Failed(reason)) = ask(answer) else {
                panic!("{answer:?} is no approval");
            };
            assert!(reason.message.contains(told), "{reason}");
        }
    }

    #[test]
    fn done_ends_with_its_summary_and_the_task_list_does_not() {
        let mut arguments = Arguments::default();
        arguments.set("summary", "All of it.".to_owned());
        let output = Done.run(&arguments).unwrap();
        assert_eq!((output.text.as_str(), output.is_end), ("All of it.", true));
        let output = UpdateTaskList.run(&Arguments::default()).unwrap();
        assert_eq!(
            (output.text.as_str(), output.is_end),
            ("task list updated", false)
        );
    }
}
