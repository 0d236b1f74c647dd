//! Storage of an agent's conversation and progress in a session.

use std::cell::RefCell;
use std::path::Path;

use chrono::SubsecRound as _;

use super::sessions;
use crate::agent::Compressed;
use crate::agent::conversation::Conversation;
use crate::agent::session::{
    Compression, Session, SessionError, SessionFile, SessionForm, SessionState, SessionStore,
    SessionSummary,
};
use crate::agent::tool::Effect;
use crate::model::Purpose;
use crate::model::usage::Usage;
use crate::record::event::Event;
use crate::record::step::Action;
use crate::run::context::Context;
use crate::run::outcome::Failure;
use crate::sys::environment::Clock;
use crate::sys::error::Error;

/// Choice of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChoice {
    /// Starts a new session.
    New,
    /// Resumes the last session of the directory.
    Last,
    /// Resumes the session with this id, or creates it if it does not exist.
    Named(String),
}

impl SessionChoice {
    /// Returns the session with this id, if given; otherwise the last one if `resumes`, else a new one.
    pub fn of(id: Option<impl ToString>, resumes: bool) -> Self {
        match id {
            Some(id) => Self::Named(id.to_string()),
            None if resumes => Self::Last,
            None => Self::New,
        }
    }

    /// Opens the session of `directory`; `None` for a new session.
    ///
    /// # Errors
    /// Fails if the session does not exist, belongs to another directory, or cannot be used.
    pub fn open<F: SessionForm>(
        &self,
        store: &SessionStore<'_, F>,
        directory: &Path,
    ) -> Result<Option<Session<F>>, SessionError> {
        let id = match self {
            Self::Last => store.last_in(directory)?,
            // Only the program names sessions that are folders, so a missing one is an error.
            Self::Named(id) if F::IS_FOLDER || store.has(id) => id.clone(),
            Self::New | Self::Named(_) => return Ok(None),
        };
        let session = store.open(&id)?;
        store.check_directory(&session, directory)?;
        Ok(Some(session))
    }
}

/// Stores the conversation and the progress of a run.
pub trait SessionLog {
    /// Returns the session's id.
    fn id(&self) -> String;

    /// Returns the conversation so far.
    fn conversation(&self) -> Conversation;

    /// Returns the index of the current request's first message; 0 if the profile does not need it.
    fn from(&self) -> usize {
        0
    }

    /// Prepares for a new request, so that a finished request is not resumed.
    fn settle(&self);

    /// Records the progress of the work.
    ///
    /// # Errors
    /// Fails if the session cannot be saved.
    fn note_state(&self, state: SessionState) -> Result<(), Error>;

    /// Saves the conversation of an agent with this purpose.
    ///
    /// # Errors
    /// Fails if the session cannot be saved.
    fn save(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error>;

    /// Records that the changes of a scratch tree to these files were applied to the project.
    ///
    /// # Errors
    /// Fails if the session cannot be saved.
    fn applied(&self, _paths: &[String]) -> Result<(), Error> {
        let conversation = Conversation {
            is_unapplied: false,
            ..self.conversation()
        };
        self.save(&Purpose::STEP, &conversation)
    }

    /// Records the usage that the vendor reports for a call by an agent with this purpose.
    fn answered(&self, _purpose: &Purpose, _usage: &Usage) {}

    /// Records a tool use, executed or only attempted; `effect` is the tool's, if an agent called one.
    fn acted(&self, _action: &Action, _effect: Option<Effect>) {}

    /// Records that the agents' tools changed these files, given by their paths relative to the root.
    fn wrote(&self, _paths: &[String]) {}

    /// Records the number of tokens of a call by an agent with this purpose.
    fn count(&self, _purpose: &Purpose, _tokens: u64) {}

    /// Records that the conversation was compressed.
    fn compressed(&self, _purpose: &Purpose, _compressed: Compressed) {}
}

/// The session in which a run's conversation is stored.
pub struct StoredSession<'s, F: SessionForm = SessionFile> {
    /// The conversation, which grows as the agent works.
    pub session: RefCell<Session<F>>,
    /// The store to which the session belongs.
    pub store: SessionStore<'s, F>,
    /// Clock for the times of saves.
    pub clock: &'s dyn Clock,
}

impl<F: SessionForm> StoredSession<'_, F> {
    /// Changes the session and saves it.
    ///
    /// # Errors
    /// Fails if the session cannot be saved.
    pub fn change(&self, change: impl FnOnce(&mut Session<F>)) -> Result<(), Error> {
        let mut session = self.session.borrow_mut();
        change(&mut session);
        Ok(self.store.save(&mut session, self.clock.now().to_utc())?)
    }

    /// Returns the other sessions of this directory that have a request, newest first, each with its id and a one-line
    /// description.
    ///
    /// # Errors
    /// Fails if the sessions cannot be read.
    pub fn others(&self, directory: &Path) -> Result<Vec<(String, String)>, Failure> {
        let (own, zone) = (self.session.borrow().id(), *self.clock.now().offset());
        let mut others = self.store.list_in(directory)?;
        others.retain(|other| other.id != own && other.is_begun());
        let line = |other: &SessionSummary| (other.id.clone(), sessions::line::<F>(other, zone));
        Ok(others.iter().map(line).collect())
    }
}

impl SessionLog for StoredSession<'_> {
    fn id(&self) -> String {
        self.session.borrow().id.to_string()
    }

    fn conversation(&self) -> Conversation {
        self.session.borrow().conversation.clone()
    }

    fn settle(&self) {
        let mut session = self.session.borrow_mut();
        if matches!(
            session.state,
            SessionState::Complete | SessionState::Interrupted
        ) {
            session.conversation.settle();
        }
    }

    fn note_state(&self, state: SessionState) -> Result<(), Error> {
        self.change(|session| session.file.state = state)
    }

    fn save(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error> {
        // Conversations of auditors and helpers are recorded only in the run's folder.
        if *purpose != Purpose::STEP {
            return Ok(());
        }
        self.change(|session| session.conversation.follow(conversation))
    }

    fn count(&self, _purpose: &Purpose, tokens: u64) {
        let file = &mut self.session.borrow_mut().file;
        file.total_tokens = file.total_tokens.saturating_add(tokens);
    }

    fn compressed(&self, purpose: &Purpose, compressed: Compressed) {
        if *purpose != Purpose::STEP {
            return;
        }
        self.session.borrow_mut().compressed(Compression {
            timestamp: self.clock.now().to_utc().trunc_subsecs(3),
            tokens_before: compressed.tokens_before,
            tokens_after: compressed.tokens_after,
        });
    }
}

/// Tells the user which session is used.
pub fn report_session(context: &Context<'_>, session: &Session<impl SessionForm>, resumed: bool) {
    let id = session.id();
    context.reporter.event(&Event::Session { id, resumed });
}
