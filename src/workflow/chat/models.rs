//! The models that the agent at the terminal can ask.
