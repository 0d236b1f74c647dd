//! Changes to a plan's criteria: adding those that a model proposes, and ticking those that it reports as met. Pure.

use super::types::{Criterion, Plan};

/// Adds criteria as not yet met, skipping known ones.
pub fn add_open<'d>(plan: &mut Plan, descriptions: impl IntoIterator<Item = &'d String>) {
    let known = &mut plan.acceptance_criteria;
    for description in descriptions {
        if !known.iter().any(|criterion| criterion.is(description)) {
            known.push(Criterion {
                description: description.clone(),
                ..Criterion::default()
            });
        }
    }
}

/// Ticks the criteria reported as met, except those decided by a command. Returns the objections to ticking the others.
pub fn tick(plan: &mut Plan, reported: &[Criterion]) -> Vec<String> {
    let completed = reported.iter().filter(|written| written.completed);
    let objections = completed.filter_map(|written| {
        let objection = objection(&plan.acceptance_criteria, written);
        if objection.is_none() {
            set_completed(plan, &written.description, true);
        }
        objection
    });
    objections.collect()
}

/// Marks the criteria with this description as met or not met.
pub fn set_completed(plan: &mut Plan, description: &str, completed: bool) {
    let criteria = plan.acceptance_criteria.iter_mut();
    for criterion in criteria.filter(|criterion| criterion.is(description)) {
        criterion.completed = completed;
    }
}

/// Returns the objection to ticking a criterion that is reported as met; `known` are the plan's criteria.
pub fn objection(known: &[Criterion], written: &Criterion) -> Option<String> {
    let Some(criterion) = known.iter().find(|known| known.is(&written.description)) else {
        return Some(format!("there is no criterion `{}`", written.description));
    };
    criterion.check().map(|command| {
        format!(
            "`{}` is decided by its command, `{command}`",
            written.description
        )
    })
}
