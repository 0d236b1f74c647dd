//! Sources of answers to an agent's questions, and the recorded run to replay.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::agent::conversation::Conversation;
use crate::agent::session;
use crate::commands::error::CommandError;
use crate::record::question::{Answer, Question};
use crate::record::replay::Recording;
use crate::record::result::AgentRecord;
use crate::record::run_files::CONVERSATION;
use crate::run::context::{Context, ModelChoice};
use crate::run::selection;
use crate::sys::error::Error;
use crate::sys::files::{self, Links};
use crate::ui::input::User;

/// Asks the user for permission, showing a preview if given; fails when the run is over.
pub type Ask<'a> = &'a dyn Fn(&Question, Option<&str>) -> Result<Answer, Error>;

/// Source of answers to an agent's questions.
pub enum AnswerSource<'i> {
    /// The user at the terminal.
    Typed(&'i User),
    /// The user, who is asked only for permissions.
    Permissions(Ask<'i>),
    /// A recorded run.
    Recorded(RefCell<RecordedAnswers>),
    /// Nobody can answer, since the run is headless.
    Nowhere,
}

/// Recorded questions, where known, and their answers, except for those already used.
pub struct RecordedAnswers(VecDeque<(Option<String>, Option<String>)>);

impl RecordedAnswers {
    /// Takes the recorded answer to this question; `None` if the run did not ask it, since other answers do not apply.
    pub fn to(&mut self, question: &str) -> Option<String> {
        let is_it = |asked: &Option<String>| asked.as_deref().is_none_or(|asked| asked == question);
        let at = self.0.iter().position(|(asked, _)| is_it(asked))?;
        // Skip earlier questions, since the replay took a different path there.
        self.0.drain(..=at).next_back()?.1
    }
}

impl AnswerSource<'_> {
    /// Creates a source with a recorded run's answers.
    pub fn recorded(record: &AgentRecord) -> Self {
        if !record.interactive {
            return Self::Nowhere;
        }
        let asked = record.asked().map(|(question, answer)| {
            let [question, answer] = [question, answer].map(|text| text.map(str::to_owned));
            (question, answer)
        });
        Self::Recorded(RefCell::new(RecordedAnswers(asked.collect())))
    }

    /// Returns `true` if the agent may ask questions.
    pub fn can_answer(&self) -> bool {
        !matches!(self, Self::Nowhere)
    }
}

/// The initial state of a replayed run.
pub struct Recorded {
    /// The recording of the run.
    pub recording: Recording,
    /// The request, the limits and the answers.
    pub record: AgentRecord,
    /// The conversation before the run.
    pub conversation: Conversation,
}

/// Finds the run to replay, if any.
///
/// # Errors
/// Fails if the run does not exist or contains no request.
pub fn recorded(context: &Context<'_>, choice: &ModelChoice) -> Result<Option<Recorded>, Error> {
    let Some(recording) = selection::find_recording(context, choice.replay.as_deref())? else {
        return Ok(None);
    };
    let record = recording.agent().ok_or(CommandError::NothingAsked)?;
    // The file is missing if the run began a session; it may be as large as a session.
    let path = recording.folder().join(CONVERSATION);
    let conversation = files::read(&path, Links::Refused, session::LARGEST)
        .ok()
        .and_then(|content| serde_json::from_slice(&content).ok())
        .unwrap_or_default();
    Ok(Some(Recorded {
        recording,
        record,
        conversation,
    }))
}
