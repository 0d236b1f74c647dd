//! Pages about runs, for a browser: one file each, that loads nothing and, unless it is asked for, runs no script.
//! Pure.
//!
//! Guarantees that whatever was written by others is text on the page and nothing else: [`maud`] escapes
//! it, after `text::HtmlEscaper` has taken out the keys and what is not to be seen. A policy in the page keeps
//! browsers from running or loading anything all the same; of an interactive page, it names the one script, which
//! searches and copies, by its hash. Each page is bounded, however much there was
//! to show.

mod changes;
mod elements;
mod orchestration;
mod output;
mod overview;
mod reply;
mod run;
mod steps;
mod text;
mod words;

#[cfg(test)]
mod tests;

pub use overview::page as overview;
pub use run::page as run;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::run::past::history::{PastRun, PastStep, RunChanges};
use crate::secret::Redactor;

/// The style sheet of the pages; a constant, and the only thing that is not escaped.
const STYLE: &str = include_str!("page/style.css");

/// The script of interactive pages; a constant, too.
const SCRIPT: &str = include_str!("page/script.js");

/// The content security policy of a page: a browser may only show it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// The script of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scripting {
    /// No script.
    None,
    /// The page's own script alone, which searches and copies.
    Interactive,
}

impl Scripting {
    /// Returns the content security policy of the page.
    fn policy(self) -> String {
        match self {
            Self::None => POLICY.to_owned(),
            Self::Interactive => {
                let hash = STANDARD.encode(Sha256::digest(SCRIPT));
                format!("{POLICY}; script-src 'sha256-{hash}'")
            }
        }
    }

    /// Returns the page's statement about itself.
    fn promise(self) -> &'static str {
        match self {
            Self::None => ". This page loads nothing and runs no script.",
            Self::Interactive => {
                ". This page loads nothing, and runs its own script alone, which searches and copies."
            }
        }
    }
}

/// The beginning of every page.
pub const BEGINNING: &str = "<!DOCTYPE html>";

/// The contents of a page about a run.
#[derive(Clone, Copy)]
pub struct RunPage<'a> {
    /// The run that the page is about.
    pub run: &'a PastRun,
    /// The query; an agent's run has its request in the record.
    pub query: Option<&'a str>,
    /// The steps in their order.
    pub steps: &'a [PastStep],
    /// The total changes of the run, where its steps do not tell.
    pub changes: Option<&'a RunChanges>,
    /// Redacts the keys.
    pub redactor: &'a Redactor,
    /// True if it has a script.
    pub scripting: Scripting,
    /// The time since some fixed point: colouring ends when it has taken too long.
    pub elapsed: &'a dyn Fn() -> Duration,
}

/// A whole page around its content.
fn shell(title: &str, body: &Markup, scripting: Scripting) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(scripting.policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                @if scripting == Scripting::Interactive { script { (PreEscaped(SCRIPT)) } }
            }
        }
    };
    page.into_string()
}
