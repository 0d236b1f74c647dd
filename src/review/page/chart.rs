//! Charts of days as SVG. Pure.
//!
//! A chart has no text of its own, so that it may be stretched to whatever width there is: a table says
//! the same, and each bar has a title.

use maud::{Markup, html};

/// The height of a chart, in pixels.
const HEIGHT: f64 = 120.0;
/// The width of a bar; a day's place is 10 wide.
const BAR: f64 = 8.0;

/// A day's bar: its parts from the bottom up, each with its CSS class, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// The parts.
    pub parts: Vec<(&'static str, f64)>,
    /// What it says.
    pub title: String,
}

/// The chart of these bars; `label` says what it shows.
#[must_use]
pub fn bars(label: &str, bars: &[Bar]) -> Markup {
    let heights = bars
        .iter()
        .map(|bar| bar.parts.iter().map(|(_, part)| part).sum::<f64>());
    let most = heights.fold(0.0, f64::max);
    let places = u32::try_from(bars.len().max(MIN_PLACES)).unwrap_or(u32::MAX);
    let width = f64::from(places) * 10.0;
    html! {
        svg.chart role="img" aria-label=(label) viewBox={ "0 0 " (width) " " (HEIGHT) }
            preserveAspectRatio="none" height=(HEIGHT) width="100%" {
            @for (at, bar) in (0_u32..).zip(bars) {
                g {
                    title { (bar.title) }
                    @for (class, y, height) in stacked(bar, most) {
                        rect class=(class) x=(format!("{:.1}", f64::from(at) * 10.0 + 1.0))
                            y=(format!("{y:.1}")) width=(BAR) height=(format!("{height:.1}")) {}
                    }
                }
            }
        }
    }
}

/// Few days do not become wide blocks.
const MIN_PLACES: usize = 30;

/// The parts with where they begin, from the top, and how high they are.
fn stacked(bar: &Bar, most: f64) -> Vec<(&'static str, f64, f64)> {
    let mut y = HEIGHT;
    let parts = bar
        .parts
        .iter()
        .filter(|(_, part)| *part > 0.0 && most > 0.0);
    parts
        .map(|(class, part)| {
            // The smallest part is still seen.
            let height = (part / most * (HEIGHT - 4.0)).max(1.5);
            y -= height;
            (*class, y.max(0.0), height)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_on_each_other_in_proportion() {
        let bar = |good, bad| Bar {
            parts: vec![("good", good), ("bad", bad)],
            title: format!("{good} & {bad}"),
        };
        assert_eq!(
            stacked(&bar(29.0, 29.0), 116.0),
            [("good", 91.0, 29.0), ("bad", 62.0, 29.0)]
        );
        assert_eq!(stacked(&bar(0.0, 0.0), 0.0), []);
        let chart = bars("Runs", &[bar(1.0, 0.0)]).into_string();
        assert!(chart.contains("<title>1 &amp; 0</title><rect class=\"good\" x=\"1.0\" y=\"4.0\""));
        assert!(!bars("Runs", &[]).into_string().contains("NaN"));
    }
}
