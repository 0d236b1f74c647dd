//! Slash commands that users write: Markdown files with frontmatter, and what becomes of their arguments.
