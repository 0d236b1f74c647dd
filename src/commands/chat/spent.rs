//! Spending: of a run, a session, an account. The accounts' sums are in `spent.json` in the agent's home.
//!
//! Reads and writes that file, which is its user's alone and knows an account only by what tells its key from others.
//! Guarantees that programs which end runs at the same instant are all counted.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::commands::last::Spent;
use crate::sys::file_lock::FileLock;
use crate::sys::files::PathError;
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::positions::{self, Positions};

/// The file, in the agent's home.
pub const FILE: &str = "spent.json";
/// Locked while it is written.
const LOCK: &str = "spent.lock";
/// The consequence of removing the file with the sums.
const WITHOUT: &str = "they begin at nothing then";

/// The sums of all accounts.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Sums {
    accounts: BTreeMap<String, Spent>,
}

/// Returns the spending of the account with this identity.
///
/// # Errors
/// When the file cannot be read, or there is a mistake in it.
pub fn by(home: &Path, account: &str) -> Result<Spent, HomeFileProblem> {
    let sums = load(home)?;
    Ok(sums.accounts.get(account).copied().unwrap_or_default())
}

/// The account of this identity has spent this, too.
///
/// # Errors
/// When the file cannot be read or written, or there is a mistake in it: it stays as it is then.
pub fn add(home: &Path, account: &str, spent: Spent) -> Result<(), SpentProblem> {
    let path = home.join(LOCK);
    let lock = FileLock::wait(&path).map_err(PathError::of("lock", &path))?;
    let mut sums = load(home)?;
    let sum = sums.accounts.entry(account.to_owned()).or_default();
    *sum = sum.plus(spent);
    let content = serde_json::to_string_pretty(&sums).unwrap_or_default();
    home_file::save(&home.join(FILE), content.as_bytes())?;
    lock.remove().map_err(PathError::of("remove", &path))?;
    Ok(())
}

/// Errors from recording what was spent.
#[derive(Debug, thiserror::Error)]
pub enum SpentProblem {
    /// The file cannot be used.
    #[error("what was spent is not noted: {0}")]
    Unusable(#[from] HomeFileProblem),
    /// The file cannot be written.
    #[error("what was spent is not noted: {0}")]
    Unwritten(#[from] PathError),
}

fn load(home: &Path) -> Result<Sums, HomeFileProblem> {
    let loaded = home_file::load(&home.join(FILE), WITHOUT, |content| {
        let json = positions::text(content)?;
        Positions(json).object::<Sums>(json)
    });
    Ok(loaded?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::model::usage::Usage;
    use crate::record::result::RunRecord;
    use crate::record::step::Step;

    fn step(tokens: u64, cost: Option<f64>) -> Step {
        Step {
            usage: (tokens > 0).then(|| Usage::plain(tokens, 1)),
            cost: cost.map(|cost| cost.try_into().unwrap()),
            ..Step::default()
        }
    }

    #[test]
    fn accounts_are_summed_up_each_for_itself() {
        let home = tempfile::tempdir().unwrap();
        let record = RunRecord {
            steps: vec![step(99, Some(0.25)), step(0, None), step(9, None)],
            ..RunRecord::default()
        };
        let spent = Spent::in_run(&record);
        let told = "110 tokens, $0.25 and 1 call at an unknown price";
        assert_eq!(spent.to_string(), told);
        for account in ["a", "b", "a"] {
            add(home.path(), account, spent).unwrap();
        }
        assert_eq!(by(home.path(), "a").unwrap(), spent.plus(spent));
        assert_eq!(by(home.path(), "b").unwrap(), spent);
        assert_eq!(by(home.path(), "c").unwrap(), Spent::default());
        let mode = fs::metadata(home.path().join(FILE)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }

    #[test]
    fn everybody_is_counted() {
        let home = tempfile::tempdir().unwrap();
        let call = Spent {
            tokens: 1,
            ..Spent::default()
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10).for_each(|_| add(home.path(), "a", call).unwrap()));
            }
        });
        assert_eq!(by(home.path(), "a").unwrap().tokens, 40);
    }

    #[test]
    fn a_broken_file_stays_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(FILE);
        for broken in [
            "",
            "{\n\"accounts\": 1}",
            "[]",
            r#"{"accounts": {"a": {"tokens": -1}}}"#,
        ] {
            fs::write(&path, broken).unwrap();
            let problem = add(home.path(), "a", Spent::default()).unwrap_err();
            assert!(problem.to_string().contains("column"), "{problem}");
            assert_eq!(fs::read_to_string(&path).unwrap(), broken);
        }
    }
}
