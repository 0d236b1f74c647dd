//! The criteria of a plan: those that a model brings, and those that it says hold. Pure.

use super::document::PlanDocument;
use super::forms::WrittenCriterion;
use super::types::Criterion;

/// Criteria of which none holds yet.
#[must_use]
pub fn open_criteria(descriptions: &[String]) -> Vec<Criterion> {
    let criteria = descriptions.iter().map(|description| Criterion {
        description: description.clone(),
        ..Criterion::default()
    });
    criteria.collect()
}

/// Ticks the criteria that are said to hold, but those that a command decides on; what is to be said of the others.
pub fn tick(document: &mut PlanDocument, said: &[WrittenCriterion]) -> Vec<String> {
    let mut untold = Vec::new();
    for written in said.iter().filter(|written| written.completed) {
        match objection(&document.plan().acceptance_criteria, written) {
            Some(objection) => untold.push(objection),
            None => {
                document.tick(&written.description);
            }
        }
    }
    untold
}

/// Why a criterion that is said to hold is not ticked, if it is not; `known` are those that there are.
#[must_use]
pub fn objection(known: &[Criterion], written: &WrittenCriterion) -> Option<String> {
    let mut known = known.iter();
    let Some(known) = known.find(|criterion| criterion.is(&written.description)) else {
        return Some(format!("there is no criterion `{}`", written.description));
    };
    known.check().map(|command| {
        format!(
            "`{}` is decided by its command, `{command}`",
            written.description
        )
    })
}
