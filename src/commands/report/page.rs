//! Pages about runs for a browser: self-contained files that load nothing and, unless requested, run no script.
//! Pure.
//!
//! Guarantees that untrusted text appears on the page only as text: [`maud`] escapes it after
//! `text::HtmlEscaper` has redacted keys and removed invisible characters. In addition, a content security
//! policy keeps browsers from running or loading anything; for an interactive page, it allows the one script
//! for searching and copying, by its hash. The size of each page is bounded, however much there is to show.

mod blocks;
mod changes;
mod elements;
mod output;
mod overview;
mod run;
pub(crate) mod tables;
mod text;

#[cfg(test)]
mod tests;

pub use overview::page as overview;
pub use run::page as run;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

/// The style sheet of the pages. Like [`SCRIPT`], a constant that is not escaped.
const STYLE: &str = include_str!("page/style.css");

/// The script of interactive pages.
const SCRIPT: &str = include_str!("page/script.js");

/// The content security policy of a static page, which allows only display.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// Returns the content security policy of a page.
fn policy(interactive: bool) -> String {
    if !interactive {
        return POLICY.to_owned();
    }
    let hash = STANDARD.encode(Sha256::digest(SCRIPT));
    format!("{POLICY}; script-src 'sha256-{hash}'")
}

/// Returns the page's statement about what it loads and runs.
fn promise(interactive: bool) -> &'static str {
    if interactive {
        ". This page loads nothing, and runs its own script alone, which searches and copies."
    } else {
        ". This page loads nothing and runs no script."
    }
}

/// The beginning of every page.
pub const BEGINNING: &str = "<!DOCTYPE html>";

/// Wraps content in a complete page, with the page's own script if it is `interactive`.
fn shell(title: &str, body: &Markup, interactive: bool) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(interactive));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                @if interactive { script { (PreEscaped(SCRIPT)) } }
            }
        }
    };
    page.into_string()
}
