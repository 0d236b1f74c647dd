//! Attests a run in an in-toto statement, signed on request, and verifies such a statement.
//! Reads the run's folder, and writes only the statement and its signature. ssh-keygen makes and checks the signatures.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::{last, output_file};
use crate::project::LOGS;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::past::history::PastRun;
use crate::run::past::recomputation::NotRecomputed;
use crate::run::past::statement::{PREDICATE, STATEMENT, Statement, program_digest};
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError, is_no_file};
use crate::sys::numbers::counted;
use crate::sys::programs::program_outside;
use crate::sys::text::{below, escaped, first_lines, one_line};
use crate::ui::lent;

#[derive(Debug, Clone, Args)]
pub struct AttestArgs {
    /// Run, named as for `log` [default: the last run with changes]
    #[arg(allow_negative_numbers = true)]
    pub run: Option<PathBuf>,

    /// File to write [default: standard output]
    #[arg(short, long = "output", value_name = "FILE")]
    pub output_file: Option<PathBuf>,

    /// Sign the statement with this SSH key, by ssh-keygen, into FILE.sig
    #[arg(long, value_name = "KEY", requires = "output_file")]
    pub sign: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// File that `attest` has written
    pub statement: PathBuf,

    /// Check the signature, too: in STATEMENT.sig, by a key that FILE lists for `code-commit`, as
    /// git's gpg.ssh.allowedSignersFile
    #[arg(long, value_name = "FILE")]
    pub allowed_signers: Option<PathBuf>,
}

/// The namespace of signatures.
const NAMESPACE: &str = "code-commit";
/// The extension of a signature's file, after the statement's own.
const SIGNATURE: &str = "sig";
/// The warnings of a verification.
const REPLACED: &str = "the program was replaced after the run: its digest is not checked";
const UNCHECKED: &str =
    "the signature is not checked: name the keys that you trust with `--allowed-signers`";
/// Maximum size of a statement, in bytes.
const LARGEST: u64 = 64 * MIB;
/// Maximum number of differences shown.
const NAMED: usize = 20;
/// Maximum length of a difference, in characters.
const LONGEST: usize = 300;

/// Errors from signatures and invalid statements.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum StatementError {
    /// The statement cannot be signed.
    #[error("the statement is not signed: {0}")]
    #[diagnostic(
        code("not-ready/settings"),
        help(
            "install OpenSSH, and name a private key, or a public one whose key the agent holds; nothing was written"
        )
    )]
    NotSigned(String),
    /// The file does not exist.
    #[error("there is no file `{0}`")]
    #[diagnostic(
        code("usage"),
        help("name a file that `code-commit attest` has written")
    )]
    Missing(PathBuf),
    /// The file is not a statement by this program.
    #[error("`{0}` is not a code-commit statement")]
    #[diagnostic(
        code("not-proven"),
        help("name a file that `code-commit attest` has written")
    )]
    NoStatement(PathBuf),
    /// The statement differs from the run.
    #[error("the statement is not what `{run}` says:{}", below(first_lines(differences.clone(), NAMED)))]
    #[diagnostic(
        code("not-proven"),
        help("the statement or the run's folder was changed, and proves nothing")
    )]
    Differs {
        /// The run's folder.
        run: String,
        /// The differing fields, one sentence each.
        differences: Vec<String>,
    },
    /// The signature is not valid.
    #[error("the signature is invalid: {0}")]
    #[diagnostic(
        code("not-proven"),
        help(
            "`--allowed-signers` names a file with lines like `NAME namespaces=\"code-commit\" ssh-ed25519 KEY`"
        )
    )]
    BadSignature(String),
}

/// Checks that a file at this path, if there is one, is an earlier statement or signature, which may be replaced.
fn check_earlier(path: &Path) -> io::Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let there = files::read(path, Links::Followed, LARGEST)?;
    let statement: Value = serde_json::from_slice(&there).unwrap_or_default();
    let is_signature = there.starts_with(b"-----BEGIN SSH SIGNATURE-----");
    if there.is_empty() || is_signature || statement["predicateType"] == PREDICATE {
        return Ok(());
    }
    let problem = "there is a file that is neither a run's statement nor a signature";
    Err(io::Error::other(problem))
}

/// Writes the statement about a run.
///
/// # Errors
/// Fails if the run's record is incomplete, or the statement cannot be signed or written.
pub fn attest(context: &Context<'_>, arguments: &AttestArgs) -> Result<Outcome, Failure> {
    let project = &context.project;
    let folder = last::folder(context, arguments.run.as_deref())?;
    let run = PastRun::at(project, &folder);
    let record = run.record.as_ref();
    let program = record.and_then(|record| program_digest(context.sandbox.program, record));
    let is_known = program.is_some();
    let statement = Statement::of(project, &run, program)?;
    let text = statement.text();
    let mut outcome = match &arguments.output_file {
        None => Outcome::shown(text, statement.value),
        Some(path) => {
            let by_key = |key: &Path| sign(context, key, &text);
            let signature = arguments.sign.as_deref().map(by_key).transpose()?;
            let signed =
                signature.map(|signature| (path.with_added_extension(SIGNATURE), signature));
            let files: Vec<_> = [(path.clone(), text)].into_iter().chain(signed).collect();
            for (path, _) in &files {
                check_earlier(&project.root().join(path)).map_err(PathError::of("write", path))?;
            }
            let mut written = Vec::new();
            for (path, text) in files {
                output_file::write(project, &path, &text)?;
                written.push(path.display().to_string());
            }
            let said = format!("done: {folder} is attested in {}", written.join(", "));
            Outcome::new(said).with_data(json!({"schema": 1, "run": folder, "files": written}))
        }
    };
    if !is_known {
        let warning = "the program was replaced after the run: its digest is not in the statement";
        outcome.warnings.push(warning.to_owned());
    }
    Ok(outcome)
}

/// Recreates a statement from the run that it names, and compares it byte for byte.
///
/// # Errors
/// Fails if the statements differ, the run's record is incomplete, or the signature is not valid.
pub fn verify(context: &Context<'_>, arguments: &VerifyArgs) -> Result<Outcome, Failure> {
    let project = &context.project;
    let path = project.root().join(&arguments.statement);
    let claimed = match files::read(&path, Links::Followed, LARGEST) {
        Err(error) if is_no_file(&error) => Ok(None),
        read => read.if_there(),
    };
    let claimed = claimed
        .map_err(PathError::of("read", &path))?
        .ok_or_else(|| StatementError::Missing(arguments.statement.clone()))?;
    let none = || StatementError::NoStatement(arguments.statement.clone());
    let value: Value = serde_json::from_slice(&claimed).map_err(|_| none())?;
    let predicate = &value["predicate"];
    let folder = predicate["run"].as_str().unwrap_or_default();
    let named = folder
        .strip_prefix(LOGS)
        .and_then(|name| name.strip_prefix('/'))
        .filter(|name| !name.contains('/') && !name.starts_with('.'));
    let is_ours = value["_type"] == STATEMENT && value["predicateType"] == PREDICATE;
    let name = named.filter(|_| is_ours).ok_or_else(none)?;
    let run = PastRun::read(project, name);
    let no_record = || NotRecomputed::NoRecord(escaped(folder));
    let record = run.record.as_ref().ok_or_else(no_record)?;
    let program = program_digest(context.sandbox.program, record);
    let said = predicate["program"]["digest"]["sha256"].as_str();
    let is_replaced = program.is_none() && said.is_some();
    let statement = Statement::of(project, &run, program.or_else(|| said.map(str::to_owned)))?;
    if statement.text().as_bytes() != claimed {
        let mut differences = Vec::new();
        compare("", Some(&value), Some(&statement.value), &mut differences);
        if differences.is_empty() {
            differences.push("the same values, in other bytes than `attest` writes".to_owned());
        }
        let run = run.relative();
        return Err(StatementError::Differs { run, differences }.into());
    }
    let signature = path.with_added_extension(SIGNATURE);
    let find = |allowed: &Path| signer_of(context, allowed, &signature, &claimed);
    let signer = arguments.allowed_signers.as_deref().map(find).transpose()?;
    let files = counted(statement.files as u64, "file");
    let replies = match statement.replies {
        0 => "no reply is applied again".to_owned(),
        1 => "made again from its reply".to_owned(),
        replies => format!("made again from {replies} replies"),
    };
    let signed = |name: &String| format!("; signed by {name}");
    let by = signer.as_ref().map_or_else(String::new, signed);
    let replaced = is_replaced.then_some(REPLACED);
    let unchecked = (signer.is_none() && signature.is_file()).then_some(UNCHECKED);
    let warnings = replaced.into_iter().chain(unchecked);
    let data = json!({"schema": 1, "run": folder, "verified": true, "files": statement.files,
        "replies": statement.replies, "signer": signer});
    Ok(Outcome {
        data: Some(data),
        warnings: warnings.map(str::to_owned).collect(),
        ..Outcome::new(format!("verified: {folder}, {files}, {replies}{by}"))
    })
}

/// Lists the fields in which a statement differs from the recorded one. A null field counts as present.
fn compare(at: &str, claimed: Option<&Value>, recorded: Option<&Value>, found: &mut Vec<String>) {
    match (claimed, recorded) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let more = other.keys().filter(|key| !one.contains_key(*key));
            for key in one.keys().chain(more) {
                compare(&format!("{at}/{key}"), one.get(key), other.get(key), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for nth in 0..one.len().max(other.len()) {
                compare(&format!("{at}/{nth}"), one.get(nth), other.get(nth), found);
            }
        }
        _ if claimed == recorded => {}
        _ => {
            let [recorded, claimed] = [recorded, claimed]
                .map(|value| value.map_or_else(|| "nothing".to_owned(), Value::to_string));
            let line = format!("{at}: {recorded} is recorded, not {claimed}");
            found.push(one_line(&escaped(&line), LONGEST));
        }
    }
}

/// Returns the signature of a statement.
fn sign(context: &Context<'_>, key: &Path, text: &str) -> Result<String, Error> {
    let key = context.project.root().join(key);
    let flags = ["-Y", "sign", "-n", NAMESPACE, "-f"].map(OsStr::new);
    let words = flags.into_iter().chain([key.as_os_str()]);
    Ok(keygen(context, words, text.as_bytes()).map_err(StatementError::NotSigned)?)
}

/// Returns the name of the allowed signer who has signed a statement.
fn signer_of(
    context: &Context<'_>,
    allowed: &Path,
    signature: &Path,
    statement: &[u8],
) -> Result<String, Error> {
    let allowed = context.project.root().join(allowed);
    let by = ["-n", NAMESPACE, "-f"].map(OsStr::new).into_iter().chain([
        allowed.as_os_str(),
        OsStr::new("-s"),
        signature.as_os_str(),
    ]);
    let find = ["-Y", "find-principals"].map(OsStr::new).into_iter();
    let names =
        keygen(context, find.chain(by.clone()), b"").map_err(StatementError::BadSignature)?;
    let name = names.lines().next().unwrap_or_default();
    let verify = ["-Y", "verify", "-I", name].map(OsStr::new).into_iter();
    keygen(context, verify.chain(by), statement).map_err(StatementError::BadSignature)?;
    Ok(escaped(name))
}

/// Runs ssh-keygen, which may ask for a passphrase at the terminal, and returns its output.
///
/// # Errors
/// Returns a sentence that describes the failure.
fn keygen<'w>(
    context: &Context<'_>,
    words: impl Iterator<Item = &'w OsStr>,
    input: &[u8],
) -> Result<String, String> {
    let root = context.project.root();
    let path = context.environment.os("PATH");
    let found = path.and_then(|path| program_outside("ssh-keygen", path, root));
    let program = found.ok_or("`ssh-keygen` is not installed")?;
    let ended = lent::piped(&program, words, root, input, context.interrupt);
    match ended.map_err(|error| error.to_string())? {
        (status, output, _) if status.success() => Ok(output),
        (_, output, problem) => Err(one_line(&format!("{problem} {output}"), LONGEST)),
    }
}
