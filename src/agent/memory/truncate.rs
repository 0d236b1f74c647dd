//! Keeps the beginning and the end of a conversation, and forgets the middle.
