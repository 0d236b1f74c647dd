//! What the model is told of how things stand: reminders, when they change.
