//! Which lines of a shell command are commands, and which are text: in quotes, or in here-documents. Pure.
//!
//! Guarantees that no line is taken for text that the shell takes for a command. A document is seen where `<<`
//! announces it outside of quotes, comments and sums. Where that cannot be told for sure, as behind backticks,
//! there are none from there on.

use std::collections::HashSet;
use std::iter::Peekable;
use std::str::Chars;

use super::lines::Line;

/// What a shell takes a line for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A command.
    Command,
    /// It begins between single quotes.
    Quoted,
    /// It begins between double quotes: what stands between backticks is run.
    DoublyQuoted,
    /// Text as it is: a document whose word is quoted.
    Document,
    /// A document whose word is not quoted: what stands between backticks in it is run.
    Expanded,
}

/// What a shell takes each line for. A document that never ends is none.
pub fn places(lines: &[Line<'_>]) -> Vec<Place> {
    let mut shell = Shell::default();
    let mut places = Vec::with_capacity(lines.len());
    while let Some(line) = lines.get(places.len()) {
        places.push(shell.place());
        for document in shell.read(line.text()) {
            let rest = lines.get(places.len()..).unwrap_or_default();
            let Some(length) = document.length(rest) else {
                shell.is_lost = true;
                break;
            };
            let place = if document.is_expanded {
                Place::Expanded
            } else {
                Place::Document
            };
            places.extend(std::iter::repeat_n(place, length));
            // The line that ends it.
            places.push(Place::Document);
        }
    }
    places
}

/// Whether a here-document that seems to be announced in these lines seems not to have ended in them. It may be no
/// document: this asks less than [`places`] does.
pub fn may_be_within(lines: &[Line<'_>]) -> bool {
    let mut behind = HashSet::new();
    lines.iter().rev().any(|line| {
        let mut words = line.text().split("<<").skip(1).filter_map(word);
        let never_ends = words.any(|word| !behind.contains(word));
        behind.insert(line.text().trim_start_matches('\t'));
        never_ends
    })
}

/// The word right behind a `<<`.
fn word(behind: &str) -> Option<&str> {
    let text = behind.strip_prefix('-').unwrap_or(behind);
    let text = text.trim_start_matches([' ', '\t']);
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let text = text.strip_prefix(['\'', '"', '\\']).unwrap_or(text);
    let is_over = |c: char| match quote {
        Some(quote) => c == quote,
        None => !(c.is_alphanumeric() || "_.-!".contains(c)),
    };
    let end = text.find(is_over).unwrap_or(text.len());
    text.get(..end).filter(|word| !word.is_empty())
}

/// A here-document that a line announces.
struct Document {
    /// The line that ends it.
    end: String,
    /// Whether tabs may stand before that.
    is_indented: bool,
    /// Whether the shell looks for something to run in it.
    is_expanded: bool,
}

impl Document {
    /// How many of the lines that follow are in it; `None` where that cannot be told.
    fn length(&self, lines: &[Line<'_>]) -> Option<usize> {
        let end = lines.iter().position(|line| self.ends_with(line.text()))?;
        // Some shells join such lines before they look for the end.
        let is_joined = |line: &Line<'_>| self.is_expanded && line.text().ends_with('\\');
        (!lines.iter().take(end).any(is_joined)).then_some(end)
    }

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
    /// `$(…)`
    Command,
    /// `(…)`
    Subshell,
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
            Self::Command | Self::Subshell | Self::Sum | Self::Group => c == ')',
        }
    }
}

/// What is announced deeper than this is no document. It bounds the work.
const DEEPEST: usize = 16;

/// How far a shell has read.
#[derive(Debug, Default)]
struct Shell {
    /// What the text is in, the innermost last.
    within: Vec<Within>,
    /// Whether what follows cannot be told.
    is_lost: bool,
    /// The last sign of a line that goes on in the next.
    goes_on_behind: Option<char>,
}

impl Shell {
    /// What the next line is, unless it is a document's.
    fn place(&self) -> Place {
        match self.within.last() {
            Some(Within::Single) if !self.is_lost => Place::Quoted,
            Some(Within::Double) if !self.is_lost => Place::DoublyQuoted,
            _ => Place::Command,
        }
    }

    /// Reads a line that is in no document, and gives those that it announces.
    fn read(&mut self, line: &str) -> Vec<Document> {
        let mut documents = Vec::new();
        let mut announced = None;
        let mut rest = line.chars().peekable();
        let mut before = self.goes_on_behind.take().unwrap_or(' ');
        while let Some(c) = rest.next().filter(|_| !self.is_lost) {
            let within = self.within.last().copied();
            let depth = self.within.len();
            self.is_lost |= depth > DEEPEST;
            match (within, c) {
                (Some(within), c) if within.ends_with(c) => {
                    self.within.pop();
                    if within == Within::Sum {
                        // The other one of the two.
                        rest.next_if_eq(&')');
                    }
                }
                (Some(Within::Single), _) => {}
                (_, '\\') if rest.next().is_some() => {}
                (_, '\\') => self.goes_on_behind = Some(before),
                (_, '$') => self.expand(&mut rest),
                (Some(Within::Sum | Within::Group), '(') => self.within.push(Within::Group),
                // What ends where is not read alike by all shells.
                (_, '`') | (Some(Within::Sum | Within::Group), '\'' | '"') => self.is_lost = true,
                (Some(Within::Double | Within::Sum | Within::Group), _) => {}
                (_, '\'') => self.within.push(Within::Single),
                (_, '"') => self.within.push(Within::Double),
                (_, '#') if " \t;&|()".contains(before) => break,
                // A sum, or a subshell in a subshell.
                (_, '(') if rest.peek() == Some(&'(') => self.is_lost = true,
                (_, '(') => self.within.push(Within::Subshell),
                (_, '<') if rest.next_if_eq(&'<').is_some() => {
                    documents.extend(self.document(&mut rest));
                    let here = self.commands();
                    self.is_lost |= *announced.get_or_insert(here.clone()) != here;
                }
                _ => {}
            }
            before = match (within, c) {
                // What stands right behind is a part of the same word.
                (Some(Within::Command | Within::Sum), ')') => '$',
                // What stands right behind is another command.
                (_, '$') if self.within.len() > depth => '(',
                _ => c,
            };
        }
        // The `)` of a case's pattern is not that of a command.
        self.is_lost |= self.within.contains(&Within::Command) && line.contains("case");
        self.is_lost |= line.contains("$(") && line.contains("case");
        if documents.is_empty() {
            return documents;
        }
        // A document begins where the line of its command ends, which may not be here.
        let ends_here = self.goes_on_behind.is_none() && announced == Some(self.commands());
        if self.is_lost || !ends_here {
            self.is_lost = true;
            documents.clear();
        }
        documents
    }

    /// What the text is in that lines are read in for themselves.
    fn commands(&self) -> Vec<Within> {
        let within = self.within.iter().copied();
        within
            .filter(|within| *within != Within::Subshell)
            .collect()
    }

    /// What stands behind a `$`.
    fn expand(&mut self, rest: &mut Peekable<Chars<'_>>) {
        match rest.peek() {
            Some('(') => {
                rest.next();
                let is_sum = rest.next_if_eq(&'(').is_some();
                self.within
                    .push(if is_sum { Within::Sum } else { Within::Command });
            }
            Some('\'') if self.within.last() != Some(&Within::Double) => self.skip_quoted(rest),
            Some('{') => self.skip_braces(rest),
            _ => {}
        }
    }

    /// Passes over `$'…'`, where all shells see its end in the same place.
    fn skip_quoted(&mut self, rest: &mut Peekable<Chars<'_>>) {
        rest.next();
        loop {
            match rest.next() {
                Some('\'') => return,
                Some('\\') if rest.peek() != Some(&'\'') => {}
                Some('\\') | None => {
                    self.is_lost = true;
                    return;
                }
                Some(_) => {}
            }
        }
    }

    /// Passes over `${NAME}` and `${NAME:-word}`, where nothing in it has a meaning of its own.
    fn skip_braces(&mut self, rest: &mut Peekable<Chars<'_>>) {
        rest.next();
        let is_plain = |c: &char| c.is_alphanumeric() || "_:=+?%/.#*@![],-^~".contains(*c);
        while rest.next_if(is_plain).is_some() {}
        if rest.next_if_eq(&'}').is_none() {
            self.is_lost = true;
        }
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
        let may_be_in_it = |c: &char| match quote {
            Some('\'') => *c != '\'',
            Some('"') => !"\"\\$`".contains(*c),
            _ => c.is_ascii_alphanumeric() || "_.-".contains(*c),
        };
        let mut end = String::new();
        while let Some(c) = rest.next_if(may_be_in_it) {
            end.push(c);
        }
        let is_whole = match quote {
            Some(quote @ ('\'' | '"')) => rest.next_if_eq(&quote).is_some(),
            _ => true,
        };
        let is_over = rest.peek().is_none_or(|c| " \t;&|<>()".contains(*c));
        if end.is_empty() || !is_whole || !is_over {
            self.is_lost = true;
            return None;
        }
        Some(Document {
            end,
            is_indented,
            is_expanded: quote.is_none(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::lines::lines;
    use super::*;

    /// What is left of a command, its documents taken out, but for the lines that end them.
    fn outside(text: &str) -> String {
        let lines = lines(text);
        let places = places(&lines);
        assert_eq!(lines.len(), places.len());
        let is_outside = |place: &Place| !matches!(place, Place::Document | Place::Expanded);
        let lines = lines.iter().zip(places);
        lines
            .filter(|(_, place)| is_outside(place))
            .map(|(line, _)| line.raw)
            .collect()
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
            (
                "cat <<'END OF $FILE'\na\nEND OF $FILE\nls",
                "cat <<'END OF $FILE'\nls",
            ),
            (
                "a=${D:-x}${X%/*} cat <<'}'\na\n}\nls",
                "a=${D:-x}${X%/*} cat <<'}'\nls",
            ),
            ("IFS=$'a\\n' cat <<A\na\nA\nls", "IFS=$'a\\n' cat <<A\nls"),
            ("3<<EOF cat\na\nEOF\n", "3<<EOF cat\n"),
            (
                "curl \\\n  -d @- <<EOF\na\nEOF\nls",
                "curl \\\n  -d @- <<EOF\nls",
            ),
            ("a\\\n#b <<EOF\na\nEOF\nls", "a\\\n#b <<EOF\nls"),
            (
                "git commit -m \"$(cat <<'EOF'\nWhy \"so\"?\nEOF\n)\" && cat <<A\n1\nA\nls",
                "git commit -m \"$(cat <<'EOF'\n)\" && cat <<A\nls",
            ),
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
            "$(# <<EOF\n)\nrm x\nEOF",
            "echo $(ls)#' <<EOF'\nrm x\nEOF",
            "echo $((1 << n))\nrm x\nn",
            "echo $(( (1) << n ))\nrm x\nn",
            "((x << n))\nrm x\nn",
            "cat <<<EOF\nrm x\nEOF",
            "echo \\<<EOF\\'\nrm x\nEOF\\'",
            "echo \"a\\\" << x\"\nrm x\nx",
            // What some shells read so, and others so.
            "echo $'\\'' <<EOF\nrm x\nEOF",
            "echo ${a:-'} <<EOF\nrm x\nEOF",
            "echo $((1))#'\ncat <<EOF\n'\necho RAN\nEOF",
            "echo a\\\n#'\ncat <<EOF\n'\necho RAN\nEOF",
            "echo a\u{a0}#'\ncat <<EOF\n'\necho RAN\nEOF",
            "echo a\r#'\ncat <<EOF\n'\necho RAN\nEOF",
            "cat <<EOF\u{a0}\nEOF\u{a0}\necho RAN\nEOF",
            "x=$(#'\necho)\necho '; cat <<EOF\n'\necho RAN\nEOF",
            "x=`#'`\necho '; cat <<EOF\n'\necho RAN\nEOF",
            "((echo ')) <<EOF '))\necho RAN\nEOF",
            "x=\"$(case x in a) echo \" <<EOF \";; esac)\"\necho RAN\nEOF",
            "cat <<EOF >x\na\\\nEOF\ncat <<B >x\nEOF\necho RAN\nB",
            "cat <<EOF\nEO\\\nF\necho RAN\nEOF",
            "x=`echo 'a`\necho '; cat <<EOF\n'\necho RAN\nEOF",
            "cat <<E\"O\"F\nrm x\nE\"O\"F",
            "cat <<E$F\nrm x\nE",
            // It begins further down.
            "cat <<A && \\\necho ran\nbody\nA\n",
            "cat <<A; echo \"x\n\"; echo ran; : \"\nA\n\"\nA",
            "cat <<A $(ls\nrm x\n)\nA\n",
            "echo $(cat <<A)\"\n\"; rm x\nA\n",
            "cat <<A $(cat <<B\n1\nA\n",
            "`<<A((`\nrm x\nA",
            "`'<<A`\nrm x\nA\n'",
            "x=`cat <<EOF\na\nEOF\n`",
            // It never ends.
            "cat <<EOF\nrm x\ncat <<A\n1\nA\n",
        ] {
            assert_eq!(outside(text), text);
        }
    }

    fn pieces(most: usize) -> impl Strategy<Value = String> {
        let piece = prop::sample::select(&[
            "<<",
            "A",
            " ",
            "'",
            "\"",
            "\\",
            "#",
            "$(",
            "((",
            "))",
            ")",
            "(",
            "`",
            "$",
            "-",
            ";",
            "&&",
            "\n",
            "\nA\n",
            "\\\n",
            "<",
            "x",
            "echo ran-2",
        ]);
        prop::collection::vec(piece, 0..most).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        /// A shell tells of each line that it runs: none of them is taken for a document's.
        #[test]
        fn a_shell_runs_no_line_of_a_document(
            before in pieces(4), behind in pieces(6), between in pieces(6),
        ) {
            let command = format!("{before}<<A{behind}\n{between}\necho ran-2\nA\n");
            let kept = outside(&command);
            let output = std::process::Command::new("/bin/sh")
                .args(["-c", &command])
                .env_clear()
                .env("PATH", "/nowhere")
                .stdin(std::process::Stdio::null())
                .output()
                .unwrap();
            let ran = String::from_utf8_lossy(&output.stdout).contains("ran-2");
            prop_assert!(!ran || kept.contains("echo ran-2"), "{command}");
        }
    }
}
