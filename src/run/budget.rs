//! The budget of a run, shared by parallel calls: the maximum cost of each is reserved before it is sent.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::model::price::Usd;

/// The cost of a run so far, and the maximum costs of pending calls.
#[derive(Debug, Clone, Default)]
pub struct Budget(Arc<(Mutex<Money>, Condvar)>);

#[derive(Debug, Default)]
struct Money {
    spent: Usd,
    /// The maximum cost of each pending call.
    reserved: Vec<Usd>,
}

/// The maximum cost of a call, reserved until its cost is known.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    /// The maximum cost.
    pub most: Usd,
}

impl Budget {
    fn money(&self) -> MutexGuard<'_, Money> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cost of the calls so far.
    pub fn spent(&self) -> Usd {
        self.money().spent
    }

    /// Adds the cost of a call.
    pub fn spend(&self, cost: Usd) {
        let mut money = self.money();
        money.spent = money.spent + cost;
    }

    /// Reserves the maximum cost of a call. `afford` receives the amount that is left, and returns that cost with the
    /// limit on the answer. While too little is left, waits for other calls, which may cost less than their maximum.
    ///
    /// # Errors
    /// The cost so far, if too little is left and no other call is pending.
    pub fn reserve<T>(
        &self,
        limit: Usd,
        afford: impl Fn(Usd) -> Option<(T, Usd)>,
    ) -> Result<(T, Reserved), Usd> {
        let mut money = self.money();
        loop {
            let reserved = money.reserved.iter().copied().sum::<Usd>();
            if let Some((answer, most)) = afford(limit.less(money.spent + reserved)) {
                money.reserved.push(most);
                let budget = self.clone();
                return Ok((answer, Reserved { budget, most }));
            }
            if money.reserved.is_empty() {
                return Err(money.spent);
            }
            money = self.0.1.wait(money).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut money = self.budget.money();
        if let Some(at) = money.reserved.iter().position(|most| *most == self.most) {
            money.reserved.swap_remove(at);
        }
        drop(money);
        self.budget.0.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn usd(dollars: f64) -> Usd {
        Usd::try_from(dollars).unwrap()
    }

    #[test]
    fn reserved_money_is_unavailable_until_released() {
        let budget = Budget::default();
        budget.spend(usd(1.0));
        let most =
            |wanted: f64| move |left: Usd| (left >= usd(wanted)).then_some(((), usd(wanted)));
        let ((), first) = budget.reserve(usd(4.0), most(2.0)).unwrap();
        let ((), second) = budget.reserve(usd(4.0), most(1.0)).unwrap();
        thread::scope(|scope| {
            let third = scope.spawn(|| budget.reserve(usd(4.0), most(2.0)).is_ok());
            budget.spend(usd(0.5));
            drop(second);
            drop(first);
            assert!(third.join().unwrap());
        });
        assert_eq!(budget.reserve(usd(4.0), most(3.0)).unwrap_err(), usd(1.5));
    }
}
