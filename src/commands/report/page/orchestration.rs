//! The parts of a run's page specific to an orchestration: its branches and report. Pure.

use maud::{Markup, html};

use super::elements::{badge, columns, fact, left_out, numbers, prose};
use super::text::HtmlEscaper;
use super::words::{self, count};
use crate::record::orchestration::{BranchRecord, Lineage, OrchestrationRecord, ReviewVerdict};
use crate::run::past::history::PastRun;

/// The maximum number of branches listed.
const ROWS: usize = 200;
/// The limits of quoted text, in lines and bytes.
const TEXT: (usize, usize) = (100, 16 << 10);

/// Renders the final report.
pub fn report(escaper: HtmlEscaper<'_>, report: &OrchestrationRecord) -> Markup {
    let published = report.publish_pantheon_branch_id.as_deref();
    html! {
        section {
            h2 { "The result" }
            dl.facts {
                (fact("Status", report.status.word(), None))
                (fact("Reviews", &report.iterations.to_string(), None))
            }
            (prose(escaper, &report.summary, TEXT))
            @if let Some(words) = &report.publish_report {
                h3 { "Published" @if let Some(branch) = published { " from branch " code { (escaper.name(branch)) } } }
                (prose(escaper, words, TEXT))
            }
            @if let Some(error) = &report.publish_error { h3 { "Not published" } p { (escaper.passage(error)) } }
            h3 { "What to do now" }
            (prose(escaper, &report.instructions, TEXT))
        }
    }
}

/// Renders the branches in their order.
pub fn branches(escaper: HtmlEscaper<'_>, run: &PastRun, lineage: &Lineage) -> Markup {
    let all = &lineage.branches;
    let (start, latest) = (&lineage.start_branch_id, &lineage.latest_branch_id);
    html! {
        section {
            h2 { "Branches" }
            p.note {
                "From " code { (escaper.name(start)) } " to " code { (escaper.name(latest)) } ", the last one that succeeded, by "
                (count(all.len(), "branch")) "."
                @if let Some(waiting) = &lineage.waiting_for {
                    " Waiting for " code { (escaper.name(waiting)) } ", which may go on remotely."
                }
            }
            @if !all.is_empty() {
                div.scroll { table {
                    thead { tr { (columns(&["branch", "agent", "from", "status"], &["took"])) } }
                    tbody { @for branch in all.iter().take(ROWS) { (row(escaper, branch, latest)) } }
                } }
            }
            (left_out(all.len().saturating_sub(ROWS), "more branch", &run.relative()))
        }
    }
}

fn row(escaper: HtmlEscaper<'_>, branch: &BranchRecord, latest: &str) -> Markup {
    let is_clean = |verdict| Some(verdict == ReviewVerdict::Clean);
    let verdict = branch
        .verdict
        .map(|verdict| badge(is_clean(verdict), verdict.word()));
    html! {
        tr {
            th scope="row" { code { (escaper.name(&branch.id)) } @if branch.id == latest { " (the latest)" } }
            td { (escaper.name(&branch.agent)) }
            td { code { (escaper.name(&branch.parent)) } }
            td { (escaper.name(&branch.status)) @if let Some(verdict) = verdict { " " (verdict) } }
            (numbers([words::seconds(branch.seconds.0)]))
        }
    }
}
