//! Patterns of the lines that declare names, by language. Pure.
//!
//! No language is parsed: a line is judged by itself, and its indentation tells what it stands in.

use std::sync::OnceLock;

use regex::RegexSet;

use self::Rule::{Closed, Group, Hide, Item, List, Local, Member, Open, Show};

/// Effect of a line that matches a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A type whose members are public unless they say otherwise.
    Open,
    /// A type whose members are public only if they say so.
    Closed,
    /// Like `Open`, but not listed itself.
    Group,
    /// A public name, unless it stands in something that has no public names.
    Item,
    /// Like `Item`; its braces list names.
    List,
    /// A public name if it stands directly in a type or a group, where that is open.
    Member,
    /// A private name: neither it nor what stands in it is listed.
    Local,
    /// The members that follow are private.
    Hide,
    /// The members that follow are public.
    Show,
}

/// The patterns of a language.
pub struct Language {
    /// Extensions of its files, and names of its interpreters.
    names: &'static str,
    /// The first pattern that matches a line decides.
    rules: &'static [(Rule, &'static str)],
    patterns: OnceLock<RegexSet>,
}

impl Language {
    const fn new(names: &'static str, rules: &'static [(Rule, &'static str)]) -> Self {
        Self {
            names,
            rules,
            patterns: OnceLock::new(),
        }
    }

    /// Returns the language of a file by its extension, or if it has none, by the interpreter in its first line.
    pub fn of(path: &str, text: &str) -> Option<&'static Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let first = text.lines().next().filter(|line| line.starts_with("#!"));
        let mut words = match name.rsplit_once('.') {
            Some((_, extension)) => extension,
            None => first?,
        }
        .split(['/', ' ']);
        words.find_map(|word| {
            let word = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let is_of = |language: &&Self| language.names.split(' ').any(|name| name == word);
            LANGUAGES.iter().find(is_of)
        })
    }

    /// Returns the rule of the first pattern that matches the line.
    pub fn rule(&self, line: &str) -> Option<Rule> {
        let patterns = self.rules.iter().map(|(_, pattern)| pattern);
        #[expect(clippy::expect_used, reason = "constants, which the tests compile")]
        let set = || RegexSet::new(patterns).expect("valid patterns");
        let matches = self.patterns.get_or_init(set).matches(line);
        matches.iter().next().map(|first| self.rules[first].0)
    }
}

/// A C or C++ function at the beginning of a line.
const C_FUNCTION: &str = r#"^(?:template\s*<.*>\s*)?(?:[A-Za-z_][\w:<>,*&\s\[\]()"]*[\s*&>])?(?:[\w:]*operator\s*\S+?|[\w:~]+)\s*\("#;
/// A C or C++ type with its body, or with the body in the next line.
const C_CLOSED: &str = r"^\s*(?:template\s*<.*>\s*)?class\s[^(;=]*(?:\{.*\}\s*;)?$";
const C_OPEN: &str =
    r"^\s*(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:struct|union)\b[^(;=]*(?:\{.*\}\s*\w*;)?$";
const C_ENUM: &str = r"^\s*(?:typedef\s+)?enum\b[^(;=]*(?:\{.*\}\s*\w*;)?$";
const C_STATEMENT: &str = r"^\s*(?:(?:return|if|else|for|while|switch|do|goto|case|default|delete|throw|static_assert)\b|template\s*<(?:[^>]*|.*>\s*)$|[A-Z][A-Z0-9_]*\s*(?:\(|$))";
const C_HIDE: &str = r"^\s*(?:private|protected)(?:\s+slots)?\s*:";
const C_SHOW: &str = r"^\s*(?:public(?:\s+slots)?|signals)\s*:";

static LANGUAGES: [Language; 11] = [
    Language::new(
        "rs",
        &[
            (Local, r"^\s*mod\s+tests?\b"),
            (
                Open,
                r"^\s*pub(?:\([^)]*\))?\s+(?:unsafe\s+|auto\s+)*trait\s",
            ),
            (List, r"^\s*pub(?:\([^)]*\))?\s+use\s"),
            (
                Item,
                r#"^\s*pub(?:\([^)]*\))?\s+(?:(?:default|const|async|unsafe|safe|extern(?:\s+"[^"]*")?)\s+)*(?:fn|struct|enum|union|type|const|static)\s"#,
            ),
            (Item, r"^\s*macro_rules!\s"),
            (
                Member,
                r"^\s+(?:(?:const|async|unsafe)\s+)*(?:fn|type|const)\s",
            ),
        ],
    ),
    Language::new(
        "py pyi pyw python",
        &[
            (Open, r"^\s*class\s+[A-Za-z]\w*\s*[(:\[]"),
            (
                Item,
                r"^\s*(?:async\s+)?def\s+(?:[A-Za-z]\w*|__init__)\s*[(\[]",
            ),
            (Local, r"^\s*(?:async\s+)?(?:def|class)\s"),
            (Group, r"^\s*(?:if|elif|else|try|except|finally|with)\b.*:"),
            (Item, r"^[A-Z]\w*\s*(?::[^=]+)?=[^=]"),
            (Item, r"^type\s+[A-Z]"),
        ],
    ),
    Language::new(
        "js jsx mjs cjs ts tsx mts cts node",
        &[
            (
                Open,
                r"^\s*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?class\b",
            ),
            (
                List,
                r"^\s*(?:export\s+(?:type\s+)?[{*]|(?:module\.)?exports\s*=\s*\{)",
            ),
            (Item, r"^\s*(?:export|(?:module\.)?exports)\b"),
            (Item, r"^(?:declare\s+|async\s+)*function\b"),
            (
                Item,
                r"^(?:const|let|var)\s+[\w$]+\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function\b|\([^)]*\)\s*(?::[^=]+)?=>|[\w$]+\s*=>|(?:<.*>\s*)?\([^)]*$)",
            ),
            (
                Item,
                r"^[A-Za-z_$][\w$]*(?:\.[\w$]+)+\s*=\s*(?:async\s*)?(?:function\b|\(|[\w$]+\s*=>)",
            ),
            (
                Item,
                r"^(?:declare\s+)?(?:interface|(?:const\s+)?enum|type|namespace|module|global|const)\s+[A-Z]\w*\b",
            ),
            (
                Local,
                r"^\s+(?:(?:static|readonly|async|override|get|set)\s+)*(?:private\b|protected\b|[#_])",
            ),
            (
                Local,
                r"^\s+(?:if|for|while|switch|return|catch|function|super|await|throw|else|do|try|with|new|typeof|yield|case)\b",
            ),
            (
                Member,
                r"^\s+(?:(?:public|static|async|override|readonly|abstract|get|set|declare)\s+)*\*?[A-Za-z$][\w$]*[?!]?\s*(?:=\s*(?:async\s*)?)?(?:<.*>)?\(",
            ),
        ],
    ),
    Language::new(
        "go",
        &[
            (Item, r"^func\s+(?:\([^)]*\)\s*)?[A-Z]"),
            (Open, r"^type\s+[A-Z]\w*(?:\[.*\])?\s+interface\b"),
            (Item, r"^(?:type|const|var)\s+[A-Z]"),
            (Group, r"^(?:type|const|var)\s*\("),
            (Local, r"^(?:func|type|const|var)\b"),
            (Member, r"^\t[A-Z]\w*(?:\(|\s|,|$)"),
            (Local, r"^\t\w+\s+(?:struct|interface)\b"),
        ],
    ),
    Language::new(
        "java",
        &[
            (Local, r"^\s*(?:@\w+\s+)*private\b"),
            (
                Open,
                r"^\s*(?:@\w+\s+)*(?:(?:public|protected|abstract|static|sealed|non-sealed|strictfp)\s+)*@?interface\s",
            ),
            (
                Closed,
                r"^\s*(?:@\w+\s+)*(?:(?:public|protected|abstract|final|static|sealed|non-sealed|strictfp)\s+)*(?:class|enum|record)\s+\w",
            ),
            (
                Item,
                r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*(?:public|protected)\s",
            ),
            (
                Member,
                r"^\s+(?:@\w+\s+)*(?:(?:default|static|abstract|final)\s+)*(?:<.*>\s+)?[\w.]+(?:<.*>)?(?:\[\])*\s+\w+\s*(?:\(|=)",
            ),
        ],
    ),
    Language::new(
        "cs",
        &[
            (Local, r"^\s*(?:\[[^\]]*\]\s*)*private\b"),
            (
                Open,
                r"^\s*(?:(?:public|internal|protected|partial|unsafe|file|new)\s+)*interface\s",
            ),
            (
                Closed,
                r"^\s*(?:(?:public|internal|protected|static|abstract|sealed|partial|readonly|unsafe|ref|file|new)\s+)*(?:class|struct|record|enum)\s+\w",
            ),
            (
                Item,
                r"^\s*(?:\[[^\]]*\]\s*)*(?:public|protected|internal)\s",
            ),
            (
                Member,
                r"^\s+(?:(?:static|abstract|virtual|event|new)\s+)*[\w.?]+(?:<.*>)?(?:\[\])?\??\s+\w+(?:<.*>)?\s*(?:\(|\{|;|$)",
            ),
        ],
    ),
    // Definitions only: others see the declarations of the headers.
    Language::new(
        "c cc cpp cxx c++ m mm",
        &[
            (Local, C_STATEMENT),
            (
                Local,
                r#"^(?:static|using|namespace)\b|^\S.*;\s*$|^extern\s+"C"\s*\{"#,
            ),
            (Open, C_OPEN),
            (Closed, C_CLOSED),
            (Item, C_ENUM),
            (Hide, C_HIDE),
            (Show, C_SHOW),
            (Item, C_FUNCTION),
        ],
    ),
    Language::new(
        "h hh hpp hxx h++ inl ipp tcc",
        &[
            (Local, C_STATEMENT),
            (Item, r"^\s*#\s*define\s+[A-Za-z]\w*(?:\(|\s+\S)"),
            (Group, r"^\s*(?:inline\s+)?namespace\b"),
            (Hide, C_HIDE),
            (Show, C_SHOW),
            (Open, C_OPEN),
            (Closed, C_CLOSED),
            (Item, C_ENUM),
            (
                Item,
                r"^(?:typedef|extern)\s.*;|^\s*using\s+\w+\s*=|^\}\s*\*?\w+\s*;",
            ),
            (Local, r"^\s*(?:using|typedef|extern|friend)\b"),
            (Item, C_FUNCTION),
            (
                Member,
                r"^\s+(?:template\s*<.*>\s*)?(?:[A-Za-z_][\w:<>,*&\s\[\]()]*[\s*&>])?(?:operator\s*\S+?|~?\w+)\s*\(",
            ),
        ],
    ),
    Language::new(
        "rb rake gemspec ruby",
        &[
            (Group, r"^\s*class\s*<<"),
            (Open, r"^\s*(?:class|module)\s+[A-Z:]"),
            (Hide, r"^\s*(?:private|protected)\s*$"),
            (Show, r"^\s*public\s*$"),
            (
                Local,
                r"^\s*(?:private|protected|private_class_method)\s+def\b|^\s*def\s+(?:self\.)?_",
            ),
            (
                Member,
                r"^\s+(?:def\s|attr_(?:reader|writer|accessor)\s|alias(?:_method)?\s)",
            ),
            (Item, r"^def\s|^\s*[A-Z]\w*\s*=[^=~>]"),
        ],
    ),
    Language::new(
        "php phtml",
        &[
            (
                Open,
                r"^\s*(?:(?:abstract|final|readonly)\s+)*(?:class|interface|trait|enum)\s+\w",
            ),
            (Local, r"^\s*(?:(?:static|abstract|final)\s+)*private\b"),
            (
                Item,
                r"^\s*(?:(?:public|protected|static|abstract|final)\s+)*(?:function\s+&?\w|const\s+\w)|^define\s*\(",
            ),
        ],
    ),
    Language::new(
        "sh bash zsh ksh bats dash",
        &[
            (Item, r"^\s*function\s+[\w:.-]+|^\s*[\w:.-]+\s*\(\)"),
            (Item, r"^(?:export|readonly|declare\s+-[rx]+)\s+\w+="),
        ],
    ),
];
