//! The here-documents of a shell command: lines that are not commands, and may hold anything. Pure.
//!
//! Guarantees that no line is taken for one of a document that the shell takes for a command. `<<` announces a
//! document outside of quotes, comments and sums only. Where that cannot be told, there are none.

use std::iter::Peekable;
use std::str::Chars;

use super::lines::Line;

/// The lines that are in no here-document. One that never ends is none.
pub fn outside_of_documents<'a, 'r>(lines: &'a [Line<'r>]) -> impl Iterator<Item = &'a Line<'r>> {
    let mut shell = Shell::default();
    let mut at = 0;
    std::iter::from_fn(move || {
        let line = lines.get(at)?;
        at += 1;
        for document in shell.read(line.text()) {
            let rest = lines.get(at..).unwrap_or_default();
            match rest.iter().position(|line| document.ends_with(line.text())) {
                Some(end) => at += end + 1,
                None => shell.is_lost = true,
            }
        }
        Some(line)
    })
}

/// A here-document that a line announces.
struct Document {
    /// The line that ends it.
    end: String,
    /// Whether tabs may stand before that.
    is_indented: bool,
}

impl Document {
    fn ends_with(&self, line: &str) -> bool {
        let line = if self.is_indented {
            line.trim_start_matches('\t')
        } else {
            line
        };
        line == self.end
    }
}

/// What the text is in, as a shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// `'…'`
    Single,
    /// `"…"`
    Double,
    /// `$(…)`, or `(…)`
    Command,
    /// The same between backticks.
    Backticks,
    /// `$((…))`
    Sum,
    /// A `(…)` of a sum.
    Group,
}

impl Within {
    fn ends_with(self, c: char) -> bool {
        match self {
            Self::Single => c == '\'',
            Self::Double => c == '"',
            Self::Backticks => c == '`',
            Self::Command | Self::Sum | Self::Group => c == ')',
        }
    }
}

/// How far a shell has read.
#[derive(Debug, Default)]
struct Shell {
    /// What the text is in, the innermost last.
    within: Vec<Within>,
    /// Whether what follows cannot be told.
    is_lost: bool,
}

impl Shell {
    /// Reads a line that is in no document, and gives those that it announces.
    fn read(&mut self, line: &str) -> Vec<Document> {
        let mut documents = Vec::new();
        let mut rest = line.chars().peekable();
        let mut before = ' ';
        while let Some(c) = rest.next().filter(|_| !self.is_lost) {
            match (self.within.last().copied(), c) {
                (Some(within), c) if within.ends_with(c) => {
                    self.within.pop();
                    if within == Within::Sum {
                        // The other one of the two.
                        rest.next_if_eq(&')');
                    }
                }
                (Some(Within::Single), _) => {}
                (_, '\\') => drop(rest.next()),
                (_, '$') => self.expand(&mut rest),
                (_, '`') => self.within.push(Within::Backticks),
                (Some(Within::Sum | Within::Group), '(') => self.within.push(Within::Group),
                (Some(Within::Double | Within::Sum | Within::Group), _) => {}
                (_, '\'') => self.within.push(Within::Single),
                (_, '"') => self.within.push(Within::Double),
                (_, '#') if before.is_whitespace() || ";&|()".contains(before) => break,
                (_, '(') => self.open(&mut rest),
                (_, '<') if rest.next_if_eq(&'<').is_some() => {
                    documents.extend(self.document(&mut rest));
                }
                _ => {}
            }
            before = c;
        }
        documents
    }

    /// What stands behind a `$`.
    fn expand(&mut self, rest: &mut Peekable<Chars<'_>>) {
        match rest.peek() {
            Some('(') => {
                rest.next();
                self.open(rest);
            }
            // Not every shell knows this kind of quotes, and `${…}` may hold words with a meaning of their own.
            Some('\'') if self.within.last() != Some(&Within::Double) => self.is_lost = true,
            Some('{') => self.skip_braces(rest),
            _ => {}
        }
    }

    /// Passes over `${NAME}`, where it is no more than that.
    fn skip_braces(&mut self, rest: &mut Peekable<Chars<'_>>) {
        rest.next();
        while rest.next_if(|c| c.is_alphanumeric() || *c == '_').is_some() {}
        if rest.next_if_eq(&'}').is_none() {
            self.is_lost = true;
        }
    }

    /// What a `(` opens.
    fn open(&mut self, rest: &mut Peekable<Chars<'_>>) {
        let is_sum = rest.next_if_eq(&'(').is_some();
        self.within
            .push(if is_sum { Within::Sum } else { Within::Command });
    }

    /// What a `<<` announces.
    fn document(&mut self, rest: &mut Peekable<Chars<'_>>) -> Option<Document> {
        if rest.next_if_eq(&'<').is_some() {
            // A word, not a document.
            return None;
        }
        let is_indented = rest.next_if_eq(&'-').is_some();
        while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let quote = rest.next_if(|c| matches!(c, '\'' | '"' | '\\'));
        let mut end = String::new();
        while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || "_.-".contains(*c)) {
            end.push(c);
        }
        let is_whole = match quote {
            Some(quote @ ('\'' | '"')) => rest.next_if_eq(&quote).is_some(),
            _ => true,
        };
        let is_over = rest
            .peek()
            .is_none_or(|c| c.is_whitespace() || ";&|<>()".contains(*c));
        if end.is_empty() || !is_whole || !is_over {
            self.is_lost = true;
            return None;
        }
        Some(Document { end, is_indented })
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::lines;
    use super::*;

    /// What is left of a command, its documents taken out.
    fn outside(text: &str) -> String {
        let lines = lines(text);
        outside_of_documents(&lines).map(|line| line.raw).collect()
    }

    #[test]
    fn a_document_goes_from_behind_its_line_to_its_word() {
        for (text, expected) in [
            ("cat <<EOF\n```\nEOF\nls", "cat <<EOF\nls"),
            ("cat <<'E.O-F' > x\n'\nE.O-F\nls", "cat <<'E.O-F' > x\nls"),
            ("cat << \"EOF\"\na\nEOF", "cat << \"EOF\"\n"),
            ("cat <<\\EOF\na\nEOF", "cat <<\\EOF\n"),
            ("cat <<-EOF\n\ta\n\tEOF\nls", "cat <<-EOF\nls"),
            ("cat <<EOF\n\tEOF\nEOF\nls", "cat <<EOF\nls"),
            ("cat <<A; cat <<B\n1\nA\n2\nB\nls", "cat <<A; cat <<B\nls"),
            ("3<<EOF cat\na\nEOF\n", "3<<EOF cat\n"),
            (
                "git commit -m \"$(cat <<'EOF'\nWhy \"so\"?\nEOF\n)\" && cat <<A\n1\nA\nls",
                "git commit -m \"$(cat <<'EOF'\n)\" && cat <<A\nls",
            ),
            ("x=`cat <<EOF\na\nEOF\n`", "x=`cat <<EOF\n`"),
            ("(cat <<EOF) | wc\na\nEOF\nls", "(cat <<EOF) | wc\nls"),
            (
                "echo \"${A} $((1 << 2))\" <<EOF\na\nEOF\nls",
                "echo \"${A} $((1 << 2))\" <<EOF\nls",
            ),
            (
                "echo it\\'s a#b <<EOF\na\nEOF\nls",
                "echo it\\'s a#b <<EOF\nls",
            ),
        ] {
            assert_eq!(outside(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        for text in [
            "grep 'cout << x' .\nx\n",
            "grep \"cout << x\" .\nx\n",
            "echo 'a\nb << x\n'\nx\n",
            "ls # <<EOF\nrm x\nEOF",
            "echo $((1 << n))\nrm x\nn",
            "echo $(( (1) << n ))\nrm x\nn",
            "((x << n))\nrm x\nn",
            "cat <<<EOF\nrm x\nEOF",
            "echo \\<<EOF\\'\nrm x\nEOF\\'",
            "echo \"a\\\" << x\"\nrm x\nx",
            // What some shells read so, and others so.
            "echo $'\\'' <<EOF\nrm x\nEOF",
            "echo ${a:-'} <<EOF\nrm x\nEOF",
            "cat <<E\"O\"F\nrm x\nE\"O\"F",
            "cat <<E$F\nrm x\nE",
            // It never ends.
            "cat <<EOF\nrm x\ncat <<A\n1\nA\n",
        ] {
            assert_eq!(outside(text), text);
        }
    }

    #[test]
    fn many_that_never_end_take_no_longer_than_few() {
        let text = "cat <<EO cat <<EO\n".repeat(200_000);
        assert_eq!(outside(&text).len(), text.len());
    }

    proptest::proptest! {
        /// A shell tells of each line that it runs: none of them is taken for a document's.
        #[test]
        fn a_shell_runs_no_line_of_a_document(
            pieces in proptest::collection::vec(
                proptest::sample::select(&[
                    "<<", "A", " ", "'", "\"", "\\", "#", "$(", "((", "))", ")", "(", "`", "$", "-", ";", "\n",
                    "\nA\n", "<", "x",
                ]),
                0..12,
            ),
        ) {
            let command = format!("{}\necho ran-2\nA\n", pieces.concat());
            let kept = outside(&command);
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &command])
                .env_clear()
                .env("PATH", "/nowhere")
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            let ran = String::from_utf8_lossy(&output.stdout).contains("ran-2");
            proptest::prop_assert!(!ran || kept.contains("echo ran-2"), "{command}");
        }
    }
}
