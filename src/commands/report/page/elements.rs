//! The elements common to all pages: badges, facts, table heads, quoted text. Pure.

use maud::{Markup, html};

use super::text::{HtmlEscaper, beginning};
use crate::run::past::words::{count, mark};
use crate::sys::fences::{FenceLine, FenceScanner};

/// Returns the symbol for an outcome, which does not rely on colour, and its CSS class.
pub fn mark_and_class(is_good: Option<bool>) -> (&'static str, &'static str) {
    let class = match is_good {
        Some(true) => "good",
        Some(false) => "bad",
        None => "open",
    };
    (mark(is_good), class)
}

/// Returns the name of the anchor with this prefix and index.
pub fn anchor(prefix: &str, index: usize) -> String {
    format!("{prefix}{}", index + 1)
}

/// Renders the words for an outcome after its symbol. Untrusted words must have passed through `HtmlEscaper`.
pub fn badge(is_good: Option<bool>, words: &str) -> Markup {
    let (mark, class) = mark_and_class(is_good);
    html! { span class={ "ended " (class) } { (mark) " " (words) } }
}

/// Renders a name and a value, with an optional note.
pub fn fact(name: &str, value: &str, more: Option<String>) -> Markup {
    html! { div { dt { (name) } dd { (value) @if let Some(more) = more { small { (more) } } } } }
}

/// Renders text written by others verbatim, with fenced code in a code font; `limit` is in lines and bytes.
pub fn prose(escaper: HtmlEscaper<'_>, text: &str, limit: (usize, usize)) -> Markup {
    let text = escaper.text(text);
    let (shown, is_all) = beginning(text.trim_matches('\n'), limit.0, limit.1);
    let pieces = fenced(shown.trim_end());
    html! {
        pre.prose {
            @for (piece, is_code) in pieces { @if is_code { code { (piece) } } @else { (piece) } }
            @if !is_all { "\n\u{2026}" }
        }
    }
}

/// Splits text into fenced blocks, fences included, and the text between them.
fn fenced(text: &str) -> Vec<(&str, bool)> {
    let mut scanner = FenceScanner::default();
    let (mut pieces, mut from, mut at, mut was_code) = (Vec::new(), 0, 0, false);
    for line in text.split_inclusive('\n') {
        let step = scanner.step(line);
        let is_code = step != FenceLine::Outside;
        if at > from && (is_code != was_code || step == FenceLine::Opening) {
            pieces.push((&text[from..at], was_code));
            from = at;
        }
        was_code = is_code;
        at += line.len();
    }
    pieces.push((&text[from..], was_code));
    pieces
}

/// Renders untrusted text entirely in a code font: a tool's input, or a reply meant for this program.
pub fn code(escaper: HtmlEscaper<'_>, text: &str, limit: (usize, usize)) -> Markup {
    let text = escaper.text(text);
    let (shown, is_all) = beginning(text.trim_matches('\n'), limit.0, limit.1);
    html! { pre.code tabindex="0" { (shown.trim_end()) @if !is_all { "\n\u{2026}" } } }
}

/// Renders the number of omitted items, if any, and where to find them.
pub fn left_out(number: usize, what: &str, elsewhere: &str) -> Markup {
    html! {
        @if number > 0 { p.left-out { (count(number, what)) " left out: see " code { (elsewhere) } "." } }
    }
}

/// Renders as many items as fit the budget, in bytes, and at least the first `least`. `make` receives the
/// item's index and the remaining budget; the last item may exceed it.
pub fn within<T>(
    mut budget: usize,
    least: usize,
    items: impl IntoIterator<Item = T>,
    mut make: impl FnMut(usize, T, usize) -> Markup,
) -> Vec<Markup> {
    let mut made = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        if budget == 0 && index >= least {
            break;
        }
        let markup = make(index, item, budget);
        budget = budget.saturating_sub(markup.0.len());
        made.push(markup);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Redactor;

    #[test]
    fn code_in_fences_is_in_a_code_font() {
        let redactor = Redactor::default();
        let shown = |text| prose(HtmlEscaper::new(&redactor), text, (99, 999)).into_string();
        for (text, expected) in [
            ("a\nb", "<pre class=\"prose\">a\nb</pre>"),
            (
                "a\n```rs\n<b>\n```\nc\n",
                "<pre class=\"prose\">a\n<code>```rs\n&lt;b&gt;\n```\n</code>c</pre>",
            ),
            (
                "```\n1\n```\n~~~\n2",
                "<pre class=\"prose\"><code>```\n1\n```\n</code><code>~~~\n2</code></pre>",
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
