//! What a project tells its agents: `AGENTS.md` from the root down, and `.agent/context.md`.
