//! The page about all runs: how many did what they were to, what that took, by day; and a list. Pure.

use chrono::NaiveDate;
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::chart::{self, Bar};
use super::days::{Days, REPAIRS, Sum};
use super::text::Ink;
use super::words::{self, count, percent, seconds};
use super::{ListedRun, shell};
use crate::model::usage::Usage;
use crate::project::LOGS;
use crate::record::RunRecord;
use crate::secret::Redactor;
use crate::sys::numbers::grouped;

/// How many runs are listed; the latest.
pub const ROWS: usize = 2000;
/// How many days have a row; the latest.
const DAYS: usize = 400;
/// How many days the charts show; the latest.
const CHARTED: u64 = 90;

/// What may stand in a link as it is. A folder's name could be anything, `javascript:` too.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The page.
#[must_use]
pub fn page(runs: &[ListedRun<'_>], redactor: &Redactor) -> String {
    let ink = Ink::new(redactor);
    let days = Days::of(runs.iter().map(|listed| listed.run));
    let body = html! {
        header {
            p.kicker { "code-commit \u{b7} all runs" }
            h1 { (headline(runs, &days)) }
            p.sub { (span(&days)) }
        }
        main {
            @if days.all.runs() > 0 {
                (facts(&days.all))
                (by_day(&days))
                (repairs(&days.all))
            }
            @if !runs.is_empty() { (list(ink, runs)) }
        }
        footer {
            p { "Written by code-commit " (env!("CARGO_PKG_VERSION")) " from " code { (LOGS) }
                ". This page loads nothing and runs no script." }
        }
    };
    shell("code-commit: all runs", &body)
}

fn headline(runs: &[ListedRun<'_>], days: &Days) -> String {
    let all = &days.all;
    match (runs.len(), all.ended()) {
        (0, _) => "There is no run yet".to_owned(),
        (some, 0) => format!("{}, none of a model that has ended", count(some, "run")),
        (_, ended) => format!("{} of {} runs succeeded", grouped(all.good), grouped(ended)),
    }
}

fn span(days: &Days) -> String {
    let ends = days.days.first_key_value().zip(days.days.last_key_value());
    match ends {
        Some(((first, _), (last, _))) if first != last => {
            format!("{} to {}", long(*first), long(*last))
        }
        Some(((only, _), _)) => long(*only),
        None => String::new(),
    }
}

fn long(day: NaiveDate) -> String {
    day.format("%-d %B %Y").to_string()
}

fn facts(all: &Sum) -> Markup {
    let unknown = match all.cost_unknown {
        0 => String::new(),
        some => format!("not known of {} runs", grouped(some)),
    };
    let open = match all.open {
        0 => String::new(),
        some => format!("{} of them not finished", grouped(some)),
    };
    let repairs = all
        .repairs_on_average()
        .map_or("\u{2013}".to_owned(), hundredths);
    let facts = [
        (
            "Success",
            success(all),
            format!("{} of {}", grouped(all.good), grouped(all.ended())),
        ),
        ("Runs", grouped(all.runs()), open),
        ("Repairs", repairs, "a change, on average".to_owned()),
        ("Cost", all.cost.to_string(), unknown),
        (
            "Tokens in",
            grouped(all.tokens_in),
            format!("{} out", grouped(all.tokens_out)),
        ),
        ("Time", median(all), "median of a run".to_owned()),
    ];
    html! {
        section aria-label="In numbers" { dl.facts {
            @for (name, value, more) in &facts {
                div { dt { (name) } dd { (value) @if !more.is_empty() { small { (more) } } } }
            }
        } }
    }
}

fn success(sum: &Sum) -> String {
    match sum.ended() {
        0 => "\u{2013}".to_owned(),
        ended => format!("{}\u{a0}%", percent(sum.good, ended)),
    }
}

fn hundredths(number: u64) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

fn median(sum: &Sum) -> String {
    let median = sum.median_millis();
    median.map_or("\u{2013}".to_owned(), |millis| {
        seconds(std::time::Duration::from_millis(millis))
    })
}

fn by_day(days: &Days) -> Markup {
    let charted = charted(days);
    let hidden = days.days.len().saturating_sub(DAYS);
    html! {
        section {
            h2 { "By day" }
            div.charts {
                (figure("Runs", &charted, &most_runs(&charted), runs_bar, &html! {
                    span.key.good {} " succeeded  " span.key.bad {} " failed, above  "
                    span.key.open {} " not finished"
                }))
                (figure("Cost", &charted, &most_cost(&charted), cost_bar, &html! {
                    span.key.cost {} " cost, as far as it is known"
                }))
            }
            details open[days.days.len() <= 14] {
                summary { "The days as a table" }
                div.scroll { table {
                    thead { tr {
                        th scope="col" { "day" }
                        @for name in ["runs", "success", "failed", "repairs", "cost", "tokens in", "out", "median"] {
                            th.n scope="col" { (name) }
                        }
                    } }
                    tbody { @for (day, sum) in days.days.iter().rev().take(DAYS) { (day_row(*day, sum)) } }
                } }
                @if hidden > 0 { p.left-out { (grouped(hidden as u64)) " earlier days are left out." } }
            }
        }
    }
}

/// The last days, those without a run too.
fn charted(days: &Days) -> Vec<(NaiveDate, Sum)> {
    let ends = days.days.first_key_value().zip(days.days.last_key_value());
    let Some(((first, _), (last, _))) = ends else {
        return Vec::new();
    };
    let from = last.checked_sub_days(chrono::Days::new(CHARTED - 1));
    let from = from.unwrap_or(*first);
    let from = from.max(*first);
    from.iter_days()
        .take_while(|day| day <= last)
        .map(|day| (day, days.days.get(&day).cloned().unwrap_or_default()))
        .collect()
}

fn figure(
    name: &str,
    days: &[(NaiveDate, Sum)],
    most: &str,
    bar: fn(NaiveDate, &Sum) -> Bar,
    key: &Markup,
) -> Markup {
    let bars: Vec<Bar> = days.iter().map(|(day, sum)| bar(*day, sum)).collect();
    let ends = days.first().zip(days.last());
    let ends = ends.map(|((first, _), (last, _))| (first.to_string(), last.to_string()));
    let label = format!("{name} by day, up to {most} a day; the table below says the same.");
    html! {
        figure {
            h3 { (name) " " span.quiet { "up to " (most) " a day" } }
            (chart::bars(&label, &bars))
            @if let Some((first, last)) = ends {
                p.ends { span { (first) } @if first != last { span { (last) } } }
            }
            figcaption { (key) }
        }
    }
}

fn most_runs(days: &[(NaiveDate, Sum)]) -> String {
    let most = days.iter().map(|(_, sum)| sum.runs()).max();
    grouped(most.unwrap_or(0))
}

fn most_cost(days: &[(NaiveDate, Sum)]) -> String {
    let costs = days.iter().map(|(_, sum)| sum.cost);
    let most = costs.reduce(|most, cost| if cost > most { cost } else { most });
    most.unwrap_or_default().to_string()
}

fn runs_bar(day: NaiveDate, sum: &Sum) -> Bar {
    #[expect(
        clippy::cast_precision_loss,
        reason = "nobody has that many runs, and it is a picture"
    )]
    let height = |count: u64| count as f64;
    Bar {
        parts: vec![
            ("good", height(sum.good)),
            ("bad", height(sum.bad)),
            ("open", height(sum.open)),
        ],
        title: format!("{day}: {} succeeded, {} failed", sum.good, sum.bad),
    }
}

fn cost_bar(day: NaiveDate, sum: &Sum) -> Bar {
    Bar {
        parts: vec![("cost", sum.cost.dollars())],
        title: format!("{day}: {}", sum.cost),
    }
}

fn day_row(day: NaiveDate, sum: &Sum) -> Markup {
    html! {
        tr {
            th scope="row" { (day) }
            td.n { (grouped(sum.runs())) }
            td.n { (success(sum)) }
            td.n { (grouped(sum.bad)) }
            td.n { (sum.repairs_on_average().map_or("\u{2013}".to_owned(), hundredths)) }
            td.n { (sum.cost) }
            td.n { (grouped(sum.tokens_in)) }
            td.n { (grouped(sum.tokens_out)) }
            td.n { (median(sum)) }
        }
    }
}

/// How many repairs the changes took.
fn repairs(all: &Sum) -> Markup {
    let built: u64 = all.repairs.iter().map(|(count, _)| count).sum();
    if built == 0 {
        return html! {};
    }
    html! {
        section {
            h2 { "Repairs" }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "repairs" }
                    th.n scope="col" { "changes" }
                    th.n scope="col" { "passed" }
                    th.n scope="col" { "share" }
                    th scope="col" { span.unseen { "in proportion" } }
                } }
                tbody {
                    @for (repairs, (count, passed)) in all.repairs.iter().enumerate() {
                        tr {
                            th scope="row" {
                                @match repairs {
                                    0 => "none",
                                    many if many + 1 == REPAIRS => { (many) " or more" }
                                    some => (some),
                                }
                            }
                            td.n { (grouped(*count)) }
                            td.n { (grouped(*passed)) }
                            td.n { (percent(*count, built)) "\u{a0}%" }
                            td { (proportion(*passed, *count, built)) }
                        }
                    }
                }
            } }
        }
    }
}

fn proportion(passed: u64, count: u64, of: u64) -> Markup {
    html! {
        span.bar.long aria-hidden="true" {
            b style={ "width:" (percent(passed, of)) "%" } {}
            s style={ "width:" (percent(count - passed, of)) "%" } {}
        }
    }
}

/// The runs, the latest first.
fn list(ink: Ink<'_>, runs: &[ListedRun<'_>]) -> Markup {
    let left_out = runs.len().saturating_sub(ROWS);
    html! {
        section {
            h2 { "The runs" }
            div.scroll { table.runs {
                thead { tr {
                    th scope="col" { "run" }
                    th scope="col" { "result" }
                    th scope="col" { "model" }
                    th.n scope="col" { "repairs" }
                    th.n scope="col" { "files" }
                    th.n scope="col" { "cost" }
                    th.n scope="col" { "tokens in" }
                    th.n scope="col" { "out" }
                    th.n scope="col" { "took" }
                } }
                tbody { @for run in runs.iter().rev().take(ROWS) { (row(ink, run)) } }
            } }
            @if left_out > 0 {
                p.left-out { (grouped(left_out as u64)) " earlier runs are left out: see " code { "code-commit log" } "." }
            }
        }
    }
}

fn row(ink: Ink<'_>, listed: &ListedRun<'_>) -> Markup {
    let run = listed.run;
    let name = html! { code { (ink.name(&run.name)) } };
    let link = format!("./{}/report.html", utf8_percent_encode(&run.name, PLAIN));
    let sign = words::sign(run);
    let result = run
        .record
        .as_ref()
        .map_or("unfinished", |record| &record.exit.name);
    html! {
        tr {
            th scope="row" { @if listed.has_page { a href=(link) { (name) } } @else { (name) } }
            td { span class={ "ended " (sign.class()) } { (sign.mark()) " " (ink.name(result)) } }
            @match &run.record {
                Some(record) => (cells(ink, record)),
                None => { @for _ in 0..7 { td {} } }
            }
        }
    }
}

fn cells(ink: Ink<'_>, record: &RunRecord) -> Markup {
    // An undo asks nobody.
    let asked = !record.attempts.is_empty();
    // An agent does not repair: it goes on.
    let repairs = record.agent.is_none().then(|| record.repairs().to_string());
    let only = |text: String| if asked { text } else { String::new() };
    let cost = record.cost.map_or("?".to_owned(), |cost| cost.to_string());
    let tokens = |of: fn(Usage) -> u64| {
        only(
            record
                .usage()
                .map_or("?".to_owned(), |usage| grouped(of(usage))),
        )
    };
    let files = record.stat.map(|stat| grouped(stat.files));
    html! {
        td { (ink.name(record.model.as_deref().unwrap_or_default())) }
        td.n { (only(repairs.unwrap_or_default())) }
        td.n { (files.unwrap_or_default()) }
        td.n { (only(cost)) }
        td.n { (tokens(|usage| usage.input_tokens)) }
        td.n { (tokens(|usage| usage.answered())) }
        td.n { (seconds(record.seconds.0)) }
    }
}
