//! The budget of a campaign: the cost of each task, and the possible further cost of unfinished tasks.
//!
//! Accesses only the ledger's file, which has a line for each reservation and settlement. Guarantees that processes
//! sharing it never reserve more than its limit, to the millionth of a dollar, and that each account belongs to one
//! task.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::FleetError;
use super::manifest::Task;
use super::pins::TaskPin;
use super::records::Records;
use crate::model::price::Usd;
use crate::sys::error::Error;
use crate::sys::files::PathError;

/// Name of the ledger in the directory of the results.
pub const LEDGER: &str = "ledger.jsonl";

/// The account of a task; its last line in the ledger applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// The task's id.
    pub task: String,
    /// The cost of the task's calls so far; an interrupted call counts with its maximum cost.
    pub spent: Usd,
    /// The amount that the task may still cost; 0 once it has ended.
    pub reserved: Usd,
    /// The code and name of the exit, once the task has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<(u8, String)>,
    /// The digest of the task's work; only in the account's first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// `true` if an amount was reserved or settled for the task.
    #[serde(skip)]
    pub is_begun: bool,
}

/// The accounts of tasks, by their ids.
pub type Accounts = BTreeMap<String, Account>;

/// The ledger of a campaign.
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// Returns the ledger in the directory of the results.
    pub fn of(out: &Path) -> Self {
        let path = out.join(LEDGER);
        Self { path }
    }

    /// Returns `true` if the ledger's file exists.
    pub fn is_there(&self) -> bool {
        self.path.is_file()
    }

    /// Reads all accounts.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub fn accounts(&self) -> Result<Accounts, PathError> {
        read(&mut Records::lock(&self.path)?)
    }

    /// Returns the cost of all calls.
    ///
    /// # Errors
    /// Fails if the ledger cannot be read.
    pub fn spent(&self) -> Result<Usd, PathError> {
        Ok(spent(&self.accounts()?))
    }

    /// Opens accounts for tasks without one, and returns all that existed before.
    ///
    /// # Errors
    /// Fails if an id's account belongs to another task, a task's folder existed before its account, or the ledger
    /// cannot be read or written.
    pub fn claim(
        &self,
        tasks: &[&Task],
        pins: &[Result<TaskPin, FleetError>],
    ) -> Result<Accounts, Error> {
        let mut records = Records::lock(&self.path)?;
        let accounts = read(&mut records)?;
        let mut opened = Vec::new();
        for (task, pin) in tasks.iter().zip(pins) {
            // A task without a pin does not begin but still has a result, so its account is open to any task.
            let digest = pin.as_ref().map_or(String::new(), TaskPin::digest);
            let (id, folder) = (task.id.clone(), self.path.with_file_name(&task.id));
            match accounts.get(&id).map(|account| account.digest.as_deref()) {
                None if is_taken(&folder) => return Err(FleetError::Taken { id, folder }.into()),
                Some(None) => {}
                Some(Some(own)) if own == digest || digest.is_empty() => {}
                Some(Some(own)) if !own.is_empty() => {
                    return Err(FleetError::OtherTask { id, folder }.into());
                }
                None | Some(Some(_)) => opened.push(Account {
                    task: id,
                    digest: Some(digest),
                    ..Account::default()
                }),
            }
        }
        if !opened.is_empty() {
            records.append(&opened)?;
        }
        Ok(accounts)
    }

    /// Reserves the amount that a task may still cost: its `limit` less the amount `spent` by its runs.
    ///
    /// # Errors
    /// Fails if the reservation would exceed the limit of all tasks.
    pub fn reserve(
        &self,
        task: &str,
        limit: Option<Usd>,
        spent: Usd,
        all: Option<Usd>,
    ) -> Result<Usd, Error> {
        let mut records = Records::lock(&self.path)?;
        let mut accounts = read(&mut records)?;
        accounts.remove(task);
        let account = Account {
            task: task.to_owned(),
            spent,
            reserved: limit.unwrap_or_default().less(spent).rounded(),
            ..Account::default()
        };
        let others = accounts.values().map(|other| other.spent + other.reserved);
        let taken = others.sum::<Usd>() + spent;
        let too_much = all.filter(|all| (taken + account.reserved).rounded() > all.rounded());
        if let Some(limit) = too_much {
            return Err(FleetError::OverBudget {
                id: task.to_owned(),
                needed: account.reserved,
                spent: taken,
                limit,
            }
            .into());
        }
        let reserved = account.reserved;
        records.append(&[account])?;
        Ok(reserved)
    }

    /// Replaces a task's reservation with its cost. If the task has not ended, the line is not synced to disk: without
    /// it, the reservation remains.
    ///
    /// # Errors
    /// Fails if the ledger cannot be written.
    pub fn settle(
        &self,
        task: &str,
        spent: Usd,
        exit: Option<(u8, String)>,
    ) -> Result<(), PathError> {
        let account = [Account {
            task: task.to_owned(),
            spent,
            exit,
            ..Account::default()
        }];
        let mut records = Records::lock(&self.path)?;
        match account[0].exit {
            Some(_) => records.append(&account),
            None => records.note(&account),
        }
    }
}

/// Returns the cost of all calls in these accounts.
pub fn spent(accounts: &Accounts) -> Usd {
    accounts.values().map(|account| account.spent).sum()
}

/// Returns `true` if there is anything at the path except an empty directory.
fn is_taken(folder: &Path) -> bool {
    match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => folder.symlink_metadata().is_ok(),
    }
}

fn read(records: &mut Records) -> Result<Accounts, PathError> {
    let mut accounts = Accounts::new();
    for mut account in records.read::<Account>()? {
        account.is_begun = account.digest.is_none();
        let earlier = accounts.remove(&account.task);
        let known = earlier.and_then(|it| it.digest);
        account.digest = known.filter(|it| !it.is_empty()).or(account.digest);
        accounts.insert(account.task.clone(), account);
    }
    Ok(accounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(dollars: f64) -> Usd {
        Usd::try_from(dollars).unwrap()
    }

    const NOTHING: Usd = Usd::ZERO;

    #[test]
    fn task_does_not_start_unless_its_budget_is_covered() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::of(dir.path());
        let all = Some(usd(0.3));
        for task in ["a", "b", "c"] {
            // As floating-point numbers, three times 0.1 would exceed 0.3.
            let reserved = ledger.reserve(task, all.map(|_| usd(0.1)), NOTHING, all);
            assert_eq!(reserved.unwrap(), usd(0.1));
        }
        let refused = ledger
            .reserve("d", Some(usd(0.000_001)), NOTHING, all)
            .unwrap_err();
        assert_eq!(refused.exit().name(), "over-budget");
        ledger
            .settle("a", usd(0.04), Some((0, "done".into())))
            .unwrap();
        assert!(
            ledger
                .reserve("d", Some(usd(0.060_001)), NOTHING, all)
                .is_err()
        );
        assert!(ledger.reserve("d", Some(usd(0.06)), NOTHING, all).is_ok());
    }

    #[test]
    fn all_tries_of_a_task_together_may_cost_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Ledger::of(dir.path());
        let (limit, all) = (Some(usd(1.0)), Some(usd(1.0)));
        ledger.reserve("a", limit, NOTHING, all).unwrap();
        let left = ledger.reserve("a", limit, usd(0.4), all).unwrap();
        assert_eq!(left, usd(0.6));
        assert_eq!(ledger.spent().unwrap(), usd(0.4));
        // Money that has been spent cannot be reserved again.
        let left = ledger.reserve("a", limit, usd(1.0), None).unwrap();
        assert_eq!(left, NOTHING);
        ledger.settle("a", usd(0.7), None).unwrap();
        assert!(ledger.reserve("b", Some(usd(0.4)), NOTHING, all).is_err());
        assert!(ledger.reserve("b", Some(usd(0.3)), NOTHING, all).is_ok());
    }

    #[test]
    fn eight_at_once_reserve_no_cent_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let begun = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for process in 0..8 {
                let (dir, begun) = (dir.path(), &begun);
                scope.spawn(move || {
                    for task in 0..10 {
                        let id = format!("{process}-{task}");
                        let ledger = Ledger::of(dir);
                        let all = Some(usd(1.0));
                        if ledger.reserve(&id, Some(usd(0.07)), NOTHING, all).is_ok() {
                            begun.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        assert_eq!(begun.into_inner(), 14);
    }
}
