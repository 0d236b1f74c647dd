//! What was said and done, as lines.
