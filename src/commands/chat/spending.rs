//! Spending of the terminal agent's accounts: the totals are in `spent.json` in the agent's home.
//!
//! Reads and writes that file, which is private to its user and identifies accounts without containing their keys.
//! Guarantees that runs which end at the same time are all counted.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::place::ChatPlace;
use crate::commands::spent::{Spent, spent_in};
use crate::commands::stored_session::SessionLog as _;
use crate::record::result::RunRecord;
use crate::run::not_ready::NotReady;
use crate::sys::error::Error;
use crate::sys::file_lock::FileLock;
use crate::sys::home_file::{self, HomeFileProblem};

/// The file, in the agent's home.
pub const FILE: &str = "spent.json";
/// Lock held while the file is written.
const LOCK: &str = "spent.lock";
/// Consequence of removing the file, for error messages.
const WITHOUT: &str = "they begin at nothing then";

/// The totals of all accounts.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Sums {
    accounts: BTreeMap<String, Spent>,
}

/// Records the spending of a run, unless its replies were replayed.
pub fn count(place: &ChatPlace<'_>, record: &RunRecord) {
    let spent = Spent::on(&record.steps);
    let account = place.account().filter(|_| !place.base.models.is_replay);
    if let Some(account) = account.filter(|_| spent != Spent::default())
        && let Err(problem) = add(&place.home, &account, spent)
    {
        place
            .context
            .warn(format!("what was spent is not noted: {problem}"));
    }
}

/// Describes the spending of the session and of the account.
///
/// # Errors
/// Fails if the totals cannot be read.
pub fn summary(place: &ChatPlace<'_>) -> Result<String, Error> {
    let session = Spent {
        tokens: place.base.stored.session.borrow().file.total_tokens,
        ..spent_in(place.context, &place.id())?
    };
    let spent = place.account().map(|account| by(&place.home, &account));
    let account = spent.transpose().map_err(NotReady::of)?;
    Ok(format!(
        "this session: {session}\n\nthis account: {}",
        account.unwrap_or_default()
    ))
}

/// Returns the spending of the account with this identity.
fn by(home: &Path, account: &str) -> Result<Spent, HomeFileProblem> {
    let sums = load(home)?;
    Ok(sums.accounts.get(account).copied().unwrap_or_default())
}

/// Adds to the spending of the account with this identity. Fails without changes if the file is invalid.
fn add(home: &Path, account: &str, spent: Spent) -> Result<(), Box<dyn std::error::Error>> {
    let lock = FileLock::wait(&home.join(LOCK))?;
    let mut sums = load(home)?;
    let sum = sums.accounts.entry(account.to_owned()).or_default();
    *sum = sum.plus(spent);
    home_file::save_json(&home.join(FILE), &sums)?;
    Ok(lock.remove()?)
}

fn load(home: &Path) -> Result<Sums, HomeFileProblem> {
    home_file::load_json(&home.join(FILE), WITHOUT)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::model::usage::Usage;
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
            steps: vec![step(99, Some(0.25)), step(0, Some(0.0)), step(9, None)],
            ..RunRecord::default()
        };
        let spent = Spent::on(&record.steps);
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
