//! The page about all runs: how many did what they were to, what that took, by day; and a list. Pure.

use chrono::NaiveDate;
use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::chart::{self, Bar};
use super::days::{Days, REPAIRS, Sum};
use super::elements::{columns, fact, numbers, unseen_column};
use super::shell;
use super::text::HtmlEscaper;
use super::words::{self, count, percent, seconds};
use crate::project::LOGS;
use crate::record::RunRecord;
use crate::review::figures::Figures;
use crate::review::history::PastRun;
use crate::secret::Redactor;
use crate::sys::numbers::grouped;

/// How many runs are listed; the latest.
const ROWS: usize = 2000;
/// How many days have a row; the latest.
const DAYS: usize = 400;
/// How many days the charts show; the latest.
const CHARTED: u64 = 90;

/// What may stand in a link as it is. A folder's name could be anything, `javascript:` too.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// The page.
#[must_use]
pub fn page(runs: &[PastRun], has_page: impl Fn(&PastRun) -> bool, redactor: &Redactor) -> String {
    let escaper = HtmlEscaper::new(redactor);
    let days = Days::of(runs);
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
            @if !runs.is_empty() { (list(escaper, runs, has_page)) }
        }
        footer {
            p { "Written by code-commit " (env!("CARGO_PKG_VERSION")) " from " code { (LOGS) }
                ". This page loads nothing and runs no script." }
        }
    };
    shell("code-commit: all runs", &body)
}

fn headline(runs: &[PastRun], days: &Days) -> String {
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
    let some = |count: u64, before: &str, behind: &str| {
        (count > 0).then(|| format!("{before}{}{behind}", grouped(count)))
    };
    let of = format!("{} of {}", grouped(all.good), grouped(all.ended()));
    let open = some(all.open, "", " of them not finished");
    let unknown = some(all.cost_unknown, "not known of ", " runs");
    let out = format!("{} out", grouped(all.tokens_out));
    html! {
        section aria-label="In numbers" { dl.facts {
            (fact("Success", &success(all), Some(of)))
            (fact("Runs", &grouped(all.runs()), open))
            (fact("Repairs", &repairs_on_average(all), Some("a change, on average".to_owned())))
            (fact("Cost", &all.cost.to_string(), unknown))
            (fact("Tokens in", &grouped(all.tokens_in), Some(out)))
            (fact("Time", &median(all), Some("median of a run".to_owned())))
        } }
    }
}

fn success(sum: &Sum) -> String {
    match sum.ended() {
        0 => "\u{2013}".to_owned(),
        ended => format!("{}\u{a0}%", percent(sum.good, ended)),
    }
}

fn repairs_on_average(sum: &Sum) -> String {
    let average = sum.repairs_on_average();
    average.map_or("\u{2013}".to_owned(), |hundredths| {
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    })
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
                (figure("Runs", &charted, &grouped(most(&charted, Sum::runs)), runs_bar, &html! {
                    span.key.good {} " succeeded  " span.key.bad {} " failed, above  "
                    span.key.open {} " not finished"
                }))
                (figure("Cost", &charted, &most(&charted, |sum| sum.cost).to_string(), cost_bar, &html! {
                    span.key.cost {} " cost, as far as it is known"
                }))
            }
            details open[days.days.len() <= 14] {
                summary { "The days as a table" }
                div.scroll { table {
                    thead { tr {
                        (columns(&["day"], &["runs", "success", "failed", "repairs", "cost", "tokens in", "out", "median"]))
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

fn most<T: PartialOrd + Default>(days: &[(NaiveDate, Sum)], of: impl Fn(&Sum) -> T) -> T {
    let larger = |most, value| if value > most { value } else { most };
    days.iter()
        .map(|(_, sum)| of(sum))
        .fold(T::default(), larger)
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
    let cells = [
        grouped(sum.runs()),
        success(sum),
        grouped(sum.bad),
        repairs_on_average(sum),
        sum.cost.to_string(),
        grouped(sum.tokens_in),
        grouped(sum.tokens_out),
        median(sum),
    ];
    html! { tr { th scope="row" { (day) } (numbers(cells)) } }
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
                    (columns(&["repairs"], &["changes", "passed", "share"])) (unseen_column())
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
                            (numbers([grouped(*count), grouped(*passed), percent(*count, built) + "\u{a0}%"]))
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
fn list(escaper: HtmlEscaper<'_>, runs: &[PastRun], has_page: impl Fn(&PastRun) -> bool) -> Markup {
    let left_out = runs.len().saturating_sub(ROWS);
    html! {
        section {
            h2 { "The runs" }
            div.scroll { table.runs {
                thead { tr {
                    (columns(
                        &["run", "result", "model"],
                        &["repairs", "files", "cost", "tokens in", "out", "took"]
                    ))
                } }
                tbody { @for run in runs.iter().rev().take(ROWS) { (row(escaper, run, has_page(run))) } }
            } }
            @if left_out > 0 {
                p.left-out { (grouped(left_out as u64)) " earlier runs are left out: see " code { "code-commit log" } "." }
            }
        }
    }
}

fn row(escaper: HtmlEscaper<'_>, run: &PastRun, has_page: bool) -> Markup {
    let name = html! { code { (escaper.name(&run.name)) } };
    let link = format!("./{}/report.html", utf8_percent_encode(&run.name, PLAIN));
    let status = words::status(run);
    let result = run
        .record
        .as_ref()
        .map_or("unfinished", |record| &record.exit.name);
    html! {
        tr {
            th scope="row" { @if has_page { a href=(link) { (name) } } @else { (name) } }
            td { (status.badge(&escaper.name(result))) }
            @match &run.record {
                Some(record) => (cells(escaper, record)),
                None => { @for _ in 0..7 { td {} } }
            }
        }
    }
}

fn cells(escaper: HtmlEscaper<'_>, record: &RunRecord) -> Markup {
    let figures = Figures::of(record);
    let files = record.stat.map(|stat| grouped(stat.files));
    let took = seconds(record.seconds.0);
    html! {
        td { (escaper.name(record.model.as_deref().unwrap_or_default())) }
        (numbers([figures.repairs, files.unwrap_or_default(), figures.cost]))
        (numbers([figures.tokens_in, figures.tokens_out, took]))
    }
}
