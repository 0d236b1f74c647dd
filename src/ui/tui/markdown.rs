//! Markdown that is still coming, as styled lines.
