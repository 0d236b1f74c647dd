//! What a project's user has allowed for good: `.agent/permissions.json`.
