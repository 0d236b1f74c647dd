//! Colours by what they mean, and none where the user wants none. Pure.
//!
//! Guarantees that without colours everything is still told apart: by bold, dim, underlined and reversed text.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the screen, by meaning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    /// Text.
    pub plain: Style,
    /// Secondary text.
    pub dim: Style,
    /// Text that should catch the eye: the prompt, names.
    pub accent: Style,
    /// Success.
    pub success: Style,
    /// Warnings.
    pub warning: Style,
    /// Errors.
    pub error: Style,
    /// A line that a change adds.
    pub added: Style,
    /// A line that it takes away.
    pub removed: Style,
    /// A heading.
    pub heading: Style,
    /// Code within a sentence.
    pub code: Style,
    /// Lines around things.
    pub border: Style,
    /// The one of a list that is marked.
    pub selected: Style,
    /// True if there are colours.
    is_colored: bool,
}

impl Theme {
    /// The sixteen colours of the terminal, whose user has chosen how they look; none of them if `no_color`.
    #[must_use]
    pub fn new(no_color: bool) -> Self {
        let plain = Style::new();
        let color = |color: Color| {
            if no_color { plain } else { plain.fg(color) }
        };
        Self {
            plain,
            dim: plain.add_modifier(Modifier::DIM),
            accent: color(Color::Cyan),
            success: color(Color::Green),
            warning: color(Color::Yellow),
            error: color(Color::Red),
            added: color(Color::Green),
            removed: color(Color::Red),
            heading: plain.add_modifier(Modifier::BOLD),
            code: if no_color {
                plain.add_modifier(Modifier::UNDERLINED)
            } else {
                plain.fg(Color::Cyan)
            },
            border: if no_color {
                plain.add_modifier(Modifier::DIM)
            } else {
                plain.fg(Color::DarkGray)
            },
            selected: plain.add_modifier(Modifier::REVERSED),
            is_colored: !no_color,
        }
    }

    /// A style in which something is painted on any terminal; without its colour, where there are none.
    #[must_use]
    pub fn adapted(&self, style: Style) -> Style {
        match style.fg {
            Some(_) if self.is_colored => style,
            // Inline code is to be told from words.
            Some(Color::Cyan) => Style { fg: None, ..style }.add_modifier(Modifier::UNDERLINED),
            _ => Style { fg: None, ..style },
        }
    }

    /// Text in this colour; as it is, where there are none.
    #[must_use]
    pub fn color(&self, color: Color) -> Style {
        if self.is_colored {
            self.plain.fg(color)
        } else {
            self.plain
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_there_are_none() {
        let theme = Theme::new(true);
        let styles = [
            theme.plain,
            theme.dim,
            theme.accent,
            theme.success,
            theme.warning,
            theme.error,
            theme.added,
            theme.removed,
            theme.heading,
            theme.code,
            theme.border,
            theme.selected,
            theme.color(Color::Blue),
        ];
        for style in styles {
            assert_eq!((style.fg, style.bg), (None, None), "{style:?}");
        }
        assert_eq!(Theme::new(false).color(Color::Blue).fg, Some(Color::Blue));
    }
}
