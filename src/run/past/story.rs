//! The story of a run: its content, wording and order.
//!
//! A story is data, which is rendered as text, HTML or Markdown. It quotes other texts unchanged: redaction, escaping
//! and size limits are up to the renderer.

pub(crate) mod attempts;
pub(crate) mod block;
mod overview;
pub(crate) mod sources;
mod steps;

use self::block::Story;
use self::sources::Sources;
use super::history::PastRun;
use super::words;

/// Tells the story of a run.
pub fn tell<'a>(run: &'a PastRun, sources: &'a Sources) -> Story<'a> {
    let record = run.record.as_ref();
    let parts = record.and_then(|record| record.sections.as_deref());
    let step = |past| steps::section(past, parts.unwrap_or_default());
    Story {
        folder: run.relative(),
        headline: words::headline(run, sources.state),
        is_good: words::status(run),
        about: overview::about(run),
        facts: record.map(overview::facts).unwrap_or_default(),
        sections: overview::sections(run, sources.request.as_deref()),
        calls: steps::calls(&sources.steps),
        changes: overview::changes(sources),
        steps: sources.steps.iter().map(step).collect(),
    }
}
