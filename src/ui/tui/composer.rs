//! The input: lines, pastes, attachments.
