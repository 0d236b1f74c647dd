//! What the user has set in `settings.json`.
