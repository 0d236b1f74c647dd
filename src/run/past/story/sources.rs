//! The sources of a story, in addition to the run's record. Reads the run's folder.

use crate::project::Project;
use crate::run::past::history::{PastRun, RunChanges, UnrecordedState};
use crate::run::past::past_step::PastStep;
use crate::sys::diff::stat;

/// The texts and changes of a run.
#[derive(Debug)]
pub struct Sources {
    /// The steps, with their texts.
    pub steps: Vec<PastStep>,
    /// The changes of the whole run, unless those of its one step are the same.
    pub changes: Option<RunChanges>,
    /// The user's request.
    pub request: Option<String>,
    /// The state of a run without a record.
    pub state: UnrecordedState,
}

/// Returns whether the run's change is not the sum of its replies' changes, since a build has changed their files.
fn has_more(run: &PastRun, steps: &[PastStep]) -> bool {
    let Some(recorded) = run.record.as_ref().and_then(|record| record.stat) else {
        return false;
    };
    let of_steps = steps.iter().map(|past| stat(&past.changes));
    let (added, removed) = of_steps.fold((0, 0), |(added, removed), stat| {
        (added + stat.added(), removed + stat.removed())
    });
    (recorded.added, recorded.removed) != (added, removed)
}

impl Sources {
    /// Reads the folder of a run.
    pub fn read(run: &PastRun, project: &Project) -> Self {
        let steps = run.steps(project);
        let are_agents = steps.iter().all(|past| past.step.is_agents());
        let applied = steps.iter().filter(|past| past.step.edits.is_some());
        let is_resumed = steps.iter().any(|past| past.step.is_on_disk);
        // The steps of an agent, or of an undo, do not record their changes.
        let is_whole = are_agents || is_resumed || applied.count() > 1 || has_more(run, &steps);
        // Changes that can no longer be read are not shown.
        let changes = is_whole.then(|| run.changes(project).unwrap_or_default());
        Self {
            steps,
            // Reverted edits are not changes of the run.
            changes: changes.filter(|changes| !changes.files.is_empty()),
            request: run.request(),
            state: run.state(project),
        }
    }
}
