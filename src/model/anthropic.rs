//! Anthropic's Messages wire. Pure.
