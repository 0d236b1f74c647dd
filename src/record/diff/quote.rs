//! Paths as git prints them: between quotes where they hold what is not plain ASCII. Pure.

/// `path` as git prints it by default (`core.quotePath`).
pub fn quoted(path: &str) -> String {
    quoted_behind("", path)
}

/// The same behind `a/` or `b/`, which goes between the quotes, too.
pub fn quoted_behind(prefix: &str, path: &str) -> String {
    if path.bytes().all(is_plain) {
        return format!("{prefix}{path}");
    }
    let escaped: String = path.bytes().map(escape).collect();
    format!("\"{prefix}{escaped}\"")
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}

fn escape(byte: u8) -> String {
    let letter = match byte {
        0x07 => 'a',
        0x08 => 'b',
        b'\t' => 't',
        b'\n' => 'n',
        0x0b => 'v',
        0x0c => 'f',
        b'\r' => 'r',
        b'"' | b'\\' => char::from(byte),
        _ if is_plain(byte) => return char::from(byte).to_string(),
        _ => return format!("\\{byte:03o}"),
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
            ("é/x", r#""\303\251/x""#),
        ] {
            assert_eq!(quoted(path), expected);
        }
        assert_eq!(quoted_behind("a/", "x"), "a/x");
        assert_eq!(quoted_behind("b/", "é"), r#""b/\303\251""#);
    }
}
