//! The agent at the terminal, `chat`.

mod login;
mod models;
