//! `spawn_agent`: another agent works on a part, and tells what it has found.
