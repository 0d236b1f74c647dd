//! Quotes paths as git does, if they contain control characters or invisible ones. Pure.

use crate::sys::text::is_deceptive;

/// Formats `path` as git does with `core.quotePath=false`: letters of all scripts stay as they are.
pub fn quoted(path: &str) -> String {
    quoted_behind("", path)
}

/// Formats `path` after `a/` or `b/`; if quotes are needed, they enclose the prefix, too.
pub fn quoted_behind(prefix: &str, path: &str) -> String {
    if path.chars().all(is_plain) {
        return format!("{prefix}{path}");
    }
    let escaped: String = path.chars().map(escape).collect();
    format!("\"{prefix}{escaped}\"")
}

fn is_plain(c: char) -> bool {
    !is_deceptive(c) && !matches!(c, '"' | '\\')
}

fn escape(c: char) -> String {
    let letter = match c {
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '"' | '\\' => c,
        _ if is_plain(c) => return c.to_string(),
        _ => {
            let bytes = c.to_string().into_bytes().into_iter();
            return bytes.map(|byte| format!("\\{byte:03o}")).collect();
        }
    };
    format!("\\{letter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_git_quotes_it() {
        for (path, expected) in [
            ("src/a b.rs", "src/a b.rs"),
            ("a'b", "a'b"),
            ("a\"b", r#""a\"b""#),
            ("a\\b", r#""a\\b""#),
            ("tab\tnl\n", r#""tab\tnl\n""#),
            ("\u{1}\u{7f}", r#""\001\177""#),
            ("é/\u{4f60} x", "é/\u{4f60} x"),
            ("é\u{202e}x", r#""é\342\200\256x""#),
        ] {
            assert_eq!(quoted(path), expected);
        }
        assert_eq!(quoted_behind("a/", "x"), "a/x");
        assert_eq!(quoted_behind("b/", "\"é"), r#""b/\"é""#);
    }
}
