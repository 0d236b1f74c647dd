//! Who the agent is and how it works: the system prompt, a part for each mode.
