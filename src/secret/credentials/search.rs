//! Finds likely credentials in a text that is about to be sent. Pure.
//!
//! Recognizes the formats that vendors document for secret scanners: a fixed prefix and a length. Guarantees that a
//! finding reveals only the kind and the position of a credential.

use std::ops::Range;
use std::sync::LazyLock;
use std::{fmt, thread};

use aho_corasick::packed::{MatchKind, Searcher};
use aho_corasick::{AhoCorasick, Input, Match};
use memchr::memmem;
use regex::bytes::{Captures, Regex};

use super::private_key;
use crate::secret::{Redactor, SecretKind};

/// Name of the only kind of credential that spans several lines.
pub(super) const PRIVATE_KEY: &str = "a private key";

/// Row of [`SHAPES`].
type Shape = (&'static str, &'static [&'static str], &'static str);

/// Kinds of credentials, each with its full pattern and words at least one of which is in every match. All
/// are taken from the vendors' documentation of their tokens or of secret scanning. A `\b` at the beginning becomes
/// [`BEFORE`]; it excludes longer words that end in the same way.
#[rustfmt::skip]
const SHAPES: [Shape; 56] = [
    (PRIVATE_KEY, &["PRIVATE KEY"], private_key::BEGIN),
    (PRIVATE_KEY, &["BEGIN SSH2"], r"---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----"),
    (PRIVATE_KEY, &["PuTTY-User-Key-File"], r"PuTTY-User-Key-File-[0-9]: "),
    ("an age secret key", &["AGE-SECRET-KEY-1"], r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("an AWS access key", &["AKIA", "ASIA"], r"(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("an AWS secret key", &["aws_secret_access_key", "AWS_SECRET_ACCESS_KEY"], r#"(?i:aws_secret_access_key)["']?\s*[=:]\s*["']?[0-9A-Za-z/+]{40}(?:[^0-9A-Za-z/+=]|$)"#),
    ("a Google API key", &["AIza"], r"\bAIza[0-9A-Za-z_-]{35}"),
    ("a Google OAuth token", &["ya29."], r"\bya29\.[0-9A-Za-z_-]{20,}"),
    ("a Google refresh token", &["1//0"], r"\b1//0[0-9A-Za-z_-]{40,}"),
    ("a Google OAuth client secret", &["GOCSPX-"], r"GOCSPX-[0-9A-Za-z_-]{28}"),
    ("an Azure storage key", &["AccountKey="], r"AccountKey=[0-9A-Za-z+/]{86}=="),
    ("an OpenAI key", &["sk-proj-", "sk-svcacct-", "sk-admin-"], r"\bsk-(?:proj|svcacct|admin)-[0-9A-Za-z_-]{20,}"),
    ("an OpenAI key", &["sk-"], r"\bsk-[0-9A-Za-z]{48}\b"),
    ("an Anthropic key", &["sk-ant-"], r"sk-ant-[0-9a-z]+-[0-9A-Za-z_-]{20,}"),
    ("an OpenRouter key", &["sk-or-v1-"], r"sk-or-v1-[0-9a-f]{64}"),
    ("a Groq key", &["gsk_"], r"gsk_[0-9A-Za-z]{40,}"),
    ("an xAI key", &["xai-"], r"\bxai-[0-9A-Za-z]{40,}"),
    ("a Perplexity key", &["pplx-"], r"\bpplx-[0-9A-Za-z]{40,}"),
    ("a Replicate token", &["r8_"], r"\br8_[0-9A-Za-z]{37}"),
    ("a Hugging Face token", &["hf_"], r"\bhf_[0-9A-Za-z]{34,}"),
    ("a GitHub token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[pousr]_[0-9A-Za-z]{36,}"),
    ("a GitHub token", &["github_pat_"], r"github_pat_[0-9A-Za-z_]{22,}"),
    ("a GitLab token", &["glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "gloas-"], r"\bgl(?:pat|rt|dt|ptt|cbt|oas)-[0-9A-Za-z_-]{20,}"),
    ("a Slack token", &["xox", "xapp-"], r"\b(?:xox[abeoprs]|xapp)-[0-9A-Za-z-]{10,}"),
    ("a Slack webhook", &["hooks.slack.com"], r"https://hooks\.slack\.com/services/T[0-9A-Z]+/B[0-9A-Z]+/[0-9A-Za-z]{20,}"),
    ("a Discord webhook", &["/api/webhooks/"], r"https://(?:[a-z]+\.)?discord(?:app)?\.com/api/webhooks/[0-9]{17,}/[0-9A-Za-z_-]{60,}"),
    ("a Telegram bot's token", &[":AA"], r"\b[0-9]{8,10}:AA[0-9A-Za-z_-]{33}\b"),
    ("a Stripe key", &["k_live_", "whsec_"], r"(?:[rs]k_live_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z]{32,})"),
    ("a Square token", &["sq0csp-", "sq0atp-"], r"sq0(?:csp|atp)-[0-9A-Za-z_-]{22,}"),
    ("a SendGrid key", &["SG."], r"\bSG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}"),
    ("a Twilio key", &["SK"], r"\bSK[0-9a-f]{32}\b"),
    ("a Shopify token", &["shpat_", "shpca_", "shppa_", "shpss_"], r"shp(?:at|ca|pa|ss)_[0-9a-f]{32}"),
    ("a DigitalOcean token", &["doo_v1_", "dop_v1_", "dor_v1_"], r"do[opr]_v1_[0-9a-f]{64}"),
    ("a Databricks token", &["dapi"], r"\bdapi[0-9a-f]{32}"),
    ("a HashiCorp Vault token", &["hvs.", "hvb."], r"\bhv[sb]\.[0-9A-Za-z_-]{24,}"),
    ("a Terraform token", &[".atlasv1."], r"\b[0-9A-Za-z]{14}\.atlasv1\.[0-9A-Za-z_-]{60,}"),
    ("a Pulumi token", &["pul-"], r"\bpul-[0-9a-f]{40}"),
    ("a Doppler token", &["dp.pt.", "dp.st."], r"\bdp\.[ps]t\.[0-9A-Za-z._-]{40,}"),
    ("a Grafana token", &["glsa_", "glc_eyJ"], r"(?:glsa_[0-9A-Za-z]{32}_|glc_eyJ[0-9A-Za-z+/]{32})"),
    ("a New Relic key", &["NRAK-"], r"NRAK-[0-9A-Z]{27}"),
    ("a Sentry token", &["sntrys_", "sntryu_"], r"sntry[su]_[0-9A-Za-z_+/=-]{40,}"),
    ("an Atlassian token", &["ATATT3x"], r"ATATT3x[0-9A-Za-z_=-]{60,}"),
    ("a Linear key", &["lin_api_"], r"lin_api_[0-9A-Za-z]{32,}"),
    ("a Postman key", &["PMAK-"], r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    ("a PlanetScale token", &["pscale_"], r"pscale_(?:tkn|oauth|pw)_[0-9A-Za-z_.-]{32,}"),
    ("a Supabase token", &["sbp_"], r"sbp_[0-9a-f]{40}"),
    ("a Netlify token", &["nfp_"], r"nfp_[0-9A-Za-z]{36,}"),
    ("a Fly.io token", &["FlyV1 fm", "fo1_"], r"(?:FlyV1 fm[12][ar]?_[0-9A-Za-z+/=]{40,}|\bfo1_[0-9A-Za-z_-]{40,})"),
    ("a Docker Hub token", &["dckr_pat_", "dckr_oat_"], r"dckr_[po]at_[0-9A-Za-z_-]{27,}"),
    ("a 1Password token", &["ops_eyJ"], r"ops_eyJ[0-9A-Za-z+/_-]{100,}"),
    ("an npm token", &["npm_"], r"npm_[0-9A-Za-z]{36}"),
    ("an npm token", &["_authToken="], r"_authToken=[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("a PyPI token", &["pypi-AgEIcHlwaS5vcmc"], r"pypi-AgEIcHlwaS5vcmc[0-9A-Za-z_-]{50,}"),
    ("a RubyGems key", &["rubygems_"], r"rubygems_[0-9a-f]{48}"),
    ("a crates.io token", &["cio"], r"\bcio[0-9A-Za-z]{32}\b"),
    ("a Bitbucket token", &["ATBB", "ATCTT3x"], r"\b(?:ATBB[0-9A-Za-z]{32}|ATCTT3x[0-9A-Za-z_=-]{60,})"),
];

/// Returns the names of the kinds of credentials that are recognized by their format.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    SHAPES.into_iter().map(|(kind, ..)| kind)
}

/// Minimum size in bytes of a code base that is searched in two halves at the same time.
const LARGE: usize = 1 << 20;

/// Words that occur in placeholders.
const PLACEHOLDERS: [&str; 4] = ["your", "xxxx", "example-", "placeholder"];

/// Pattern before a token, not part of it: a word boundary, or the last character of a terminal's escape sequence, of
/// an escape in a string, or of an encoded byte.
const BEFORE: &str = r"\b|_|\[[0-9;?]*[A-Za-z]|\\(?:[A-Za-z]|[0-7]{1,3}|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})|[%=](?:25)*[0-9A-Fa-f]{2}";

/// All formats as one pattern with a group for each, so that a single pass finds any of them.
static ANY_SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let groups = |bounded| {
        let shapes = shapes(bounded).map(|(.., shape)| shape.trim_start_matches(r"\b"));
        shapes.collect::<Vec<_>>().join(")|(")
    };
    let all = format!("(?:{BEFORE})(?:({}))|({})", groups(true), groups(false));
    // Matching bytes is faster. The patterns are constants, and a test checks that they compile.
    Regex::new(&all.replace(r"\b", r"(?-u:\b)")).ok()
});

/// Returns the formats that must follow [`BEFORE`], or the others.
fn shapes(bounded: bool) -> impl Iterator<Item = Shape> {
    let shapes = SHAPES.into_iter();
    shapes.filter(move |(.., shape)| shape.starts_with(r"\b") == bounded)
}

/// Maximum length in bytes of a short word; longer words rarely occur in ordinary text.
const SHORT_WORD: usize = 4;
/// Minimum number of bytes of a token that follow a short word.
const SHORTEST_REST: usize = 11;
/// Maximum distance in bytes from the beginning of a token to its word.
const BEFORE_WORD: usize = 256;
/// Number of bytes after the word that are enough to recognize a token.
const BEHIND_WORD: usize = 512;

/// The words of all formats, with the short ones in a separate set: a search with vector instructions handles about
/// sixty words. Most texts contain none, and need no search for the pattern.
pub(super) static WORDS: LazyLock<[Words; 2]> = LazyLock::new(|| [true, false].map(Words::new));

/// A set of words to search for.
pub(super) enum Words {
    /// A searcher with vector instructions, which needs no automaton: building one takes longer than most searches.
    Vector(Searcher),
    /// An automaton, for processors without them; never `None`, as the words are too few to exceed a limit.
    Automaton(Option<AhoCorasick>),
}

impl Words {
    fn new(is_short: bool) -> Self {
        let words = SHAPES
            .iter()
            .flat_map(|(_, words, _)| words.iter())
            .filter(|word| (word.len() <= SHORT_WORD) == is_short);
        let mut config = Searcher::config();
        let mut vector = config.match_kind(MatchKind::LeftmostFirst).builder();
        if let Some(searcher) = vector.extend(words.clone()).build() {
            return Self::Vector(searcher);
        }
        let mut automaton = AhoCorasick::builder();
        automaton.match_kind(aho_corasick::MatchKind::LeftmostFirst);
        Self::Automaton(automaton.build(words).ok())
    }

    /// Returns the first of the words at or after `from`.
    pub(super) fn find(&self, bytes: &[u8], from: usize) -> Option<Match> {
        match self {
            Self::Vector(searcher) => searcher.find_in(bytes, (from..bytes.len()).into()),
            Self::Automaton(automaton) => automaton.as_ref()?.find(Input::new(bytes).range(from..)),
        }
    }
}

/// Returns the position of the next of these words, at or after `from`, that may belong to a credential.
fn next_word(words: &Words, bytes: &[u8], mut from: usize) -> Option<usize> {
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_+/=.".contains(byte);
    loop {
        let word = words.find(bytes, from)?;
        let rest = &bytes[word.end()..];
        let may_follow = || {
            rest.get(..SHORTEST_REST)
                .is_some_and(|rest| rest.iter().all(is_token))
        };
        if word.len() > SHORT_WORD || may_follow() {
            return Some(word.start());
        }
        from = word.start() + 1;
    }
}

/// Iterator over the credential-like parts of a text, in order and without overlaps.
struct Shaped<'b> {
    bytes: &'b [u8],
    from: usize,
    /// Position of the next word in each set.
    words: [Option<usize>; 2],
}

impl<'b> Shaped<'b> {
    fn new(bytes: &'b [u8], from: usize) -> Self {
        let words = WORDS.each_ref().map(|words| next_word(words, bytes, from));
        Self { bytes, from, words }
    }

    /// Takes the first remaining word.
    fn take_word(&mut self) -> Option<usize> {
        let word = self.words.into_iter().flatten().min()?;
        for (next, words) in self.words.iter_mut().zip(&*WORDS) {
            if *next == Some(word) {
                *next = next_word(words, self.bytes, word + 1);
            }
        }
        Some(word)
    }
}

impl Iterator for Shaped<'_> {
    type Item = (Range<usize>, &'static str);

    fn next(&mut self) -> Option<Self::Item> {
        let whole = self.bytes;
        while let Some(word) = self.take_word() {
            if word < self.from {
                continue;
            }
            let start = self.from.max(word.saturating_sub(BEFORE_WORD));
            let part = &whole[..whole.len().min(word + BEHIND_WORD)];
            let find = |bytes| which(&ANY_SHAPE.as_ref()?.captures_at(bytes, start)?);
            let found = match find(part) {
                // The match may extend beyond the part.
                Some((place, _)) if place.end == part.len() => find(whole),
                found => found,
            };
            if let Some((place, kind)) = found {
                self.from = place.end;
                return Some((place, kind));
            }
        }
        None
    }
}

/// Name of the kind for the project's own keys.
const OWN_KEY: &str = "an API key of this project";
/// Name of the kind for values of other secret variables.
const VARIABLE: &str = "the value of a secret environment variable";

/// A likely credential in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Kind of credential, as a phrase.
    pub kind: &'static str,
    /// File that contains it, relative to the root.
    pub file: &'static str,
    /// Line in that file, counted from 1.
    pub line: usize,
    /// Rolled-up file and the line in it, if this is a code base.
    pub within: Option<(String, usize)>,
}

impl Finding {
    /// Returns whether this is one of the project's own keys.
    pub fn is_own_key(&self) -> bool {
        self.kind == OWN_KEY
    }

    /// Returns whether the redactor knows this credential and therefore removes it from everything that is sent.
    pub fn is_redacted(&self) -> bool {
        self.is_own_key() || self.kind == VARIABLE
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, line {}", self.file, self.line)?;
        if let Some((file, line)) = &self.within {
            write!(f, " (`{}`, line {line})", file.escape_debug())?;
        }
        write!(f, ": {}", self.kind)
    }
}

/// Finds everything in `text`, the content of `file`, that looks like a credential or is one of the secrets that
/// `redactor` knows.
pub fn find(file: &'static str, text: &str, redactor: &Redactor) -> Vec<Finding> {
    // No credential extends over a file's heading.
    let middle = text.len() / 2;
    let find = || memmem::find(&text.as_bytes()[middle..], b"\n--- ");
    let heading = (text.len() >= LARGE).then(find).flatten();
    let (first, second) = text.split_at(heading.map_or(0, |heading| middle + heading + 1));
    let search = |part| places(part, redactor);
    let (mut places, rest) = thread::scope(|scope| {
        let is_split = !first.is_empty();
        let spawn = || thread::Builder::new().spawn_scoped(scope, || search(first));
        let thread = is_split.then(spawn);
        let rest = search(second);
        // If no thread could be started, or it panicked, this thread does all the work.
        let places = thread.and_then(|thread| thread.ok()?.join().ok());
        (places.unwrap_or_else(|| search(first)), rest)
    });
    let behind = |(place, kind)| (first.len() + place, kind);
    places.extend(rest.into_iter().map(behind));
    if places.is_empty() {
        return Vec::new();
    }
    let is_secret = |name: &str| {
        let is_shaped = |shapes: &Regex| shapes.is_match(name.as_bytes());
        ANY_SHAPE.as_ref().is_some_and(is_shaped) || redactor.find(name).next().is_some()
    };
    let mut findings = located(file, text, places, is_secret);
    findings.dedup();
    findings
}

/// Converts sorted positions in a text to findings. A file whose name is itself a secret is not named.
fn located(
    file: &'static str,
    text: &str,
    places: Vec<(usize, &'static str)>,
    is_secret: impl Fn(&str) -> bool,
) -> Vec<Finding> {
    let mut places = places.into_iter().peekable();
    let mut findings = Vec::new();
    let (mut end, mut part) = (0, None);
    for (line, content) in (1..).zip(text.split_inclusive('\n')) {
        end += content.len();
        if let Some(name) = heading(content) {
            part = Some((name, line)).filter(|_| !is_secret(name));
        }
        while let Some((_, kind)) = places.next_if(|(place, _)| *place < end) {
            let within = part.filter(|(_, heading)| *heading < line);
            findings.push(Finding {
                kind,
                file,
                line,
                within: within.map(|(name, heading): (&str, _)| (name.to_owned(), line - heading)),
            });
        }
    }
    findings
}

/// Returns the positions of likely credentials in `text`, in order.
fn places(text: &str, redactor: &Redactor) -> Vec<(usize, &'static str)> {
    let name = |kind| match kind {
        SecretKind::Key => OWN_KEY,
        SecretKind::Variable => VARIABLE,
    };
    let (own, mut places): (Vec<Range<usize>>, Vec<(usize, &'static str)>) = redactor
        .find(text)
        .map(|(place, kind)| (place.clone(), (place.start, name(kind))))
        .unzip();
    for (place, kind) in Shaped::new(text.as_bytes(), 0) {
        let next = own.partition_point(|own| own.end <= place.start);
        let known = own.get(next).is_some_and(|own| own.start < place.end);
        if !known && is_credential(text.as_bytes(), &place, kind) {
            places.push((place.start, kind));
        }
    }
    places.sort_unstable_by_key(|(place, _)| *place);
    places
}

/// Returns whether `bytes` have a likely credential, recognized by its format.
pub fn is_in(bytes: &[u8]) -> bool {
    next_credential(bytes, 0).is_some()
}

/// Returns the position and kind of the next credential in `bytes` at or after `from`. The position covers only the
/// token, without surrounding characters.
pub(super) fn next_credential(bytes: &[u8], from: usize) -> Option<(Range<usize>, &'static str)> {
    let mut shaped = Shaped::new(bytes, from);
    let (place, kind) = shaped.find(|(place, kind)| is_credential(bytes, place, kind))?;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_+/=".contains(byte);
    let last = bytes[place.clone()].iter().rposition(is_part);
    let end = last.map_or(place.end, |last| place.start + last + 1);
    Some((place.start..end, kind))
}

/// Returns the position and kind of the format that matched.
fn which(found: &Captures<'_>) -> Option<(Range<usize>, &'static str)> {
    let mut groups = found.iter().skip(1).zip(shapes(true).chain(shapes(false)));
    groups.find_map(|(group, (name, ..))| Some((group?.range(), name)))
}

/// Returns whether a token in a credential's format may be a real one. `bytes` must be the whole text.
fn is_credential(bytes: &[u8], place: &Range<usize>, kind: &str) -> bool {
    let (token, behind) = (&bytes[place.clone()], &bytes[place.end..]);
    is_plausible(token)
        && (kind != PRIVATE_KEY || private_key::is_key(token, behind).unwrap_or(false))
}

/// Returns whether a token may be a real one, and neither a documentation example nor a long name in code.
fn is_plausible(token: &[u8]) -> bool {
    let lower = String::from_utf8_lossy(token).to_ascii_lowercase();
    let mut prefixes = ["hf_", "cio", "sk-admin-"].iter();
    let like_a_name = prefixes.any(|prefix| lower.starts_with(prefix));
    let has_digit = lower.bytes().any(|byte| byte.is_ascii_digit());
    !PLACEHOLDERS.iter().any(|word| lower.contains(word)) && (has_digit || !like_a_name)
}

/// Parses the path in a heading such as `--- src/main.rs ---`.
fn heading(line: &str) -> Option<&str> {
    /// Maximum length of a path in bytes.
    const LONGEST: usize = 4096;
    let name = line
        .trim_start_matches('\u{feff}')
        .trim_end_matches(['\r', '\n'])
        .strip_prefix("--- ")?
        .strip_suffix(" ---")?;
    (name.len() <= LONGEST).then_some(name)
}

#[cfg(test)]
mod tests;
