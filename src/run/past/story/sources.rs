//! The data shown about a run in addition to its record. Reads the run's folder and the files that it changed.

use crate::project::Project;
use crate::run::past::history::{PastRun, RunChanges, UnrecordedState};
use crate::run::past::past_step::PastStep;
use crate::sys::diff::FileChange;

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

/// Returns whether the final content differs from that in the steps' replies, because a build has changed the files.
fn differs(changes: &[FileChange], steps: &[PastStep]) -> bool {
    let content = |change: &FileChange| (change.path.clone(), change.after().to_vec());
    let of_steps = steps.iter().flat_map(|past| &past.changes);
    !changes.iter().map(content).eq(of_steps.map(content))
}

impl Sources {
    /// Reads the folder of a run.
    pub fn read(run: &PastRun, project: &Project) -> Self {
        let steps = run.steps(project);
        let are_agents = steps.iter().all(|past| past.step.is_agents());
        let applied = steps.iter().filter(|past| past.step.edits.is_some());
        let is_resumed = steps.iter().any(|past| past.step.is_on_disk);
        // The steps of an agent, or of an undo, do not record their changes.
        let is_whole = are_agents || is_resumed || applied.count() > 1;
        // Changes that can no longer be read are not shown.
        let changes = run.changes(project).unwrap_or_default();
        let is_shown = is_whole || differs(&changes.files, &steps);
        Self {
            steps,
            // Reverted edits are not changes of the run.
            changes: Some(changes).filter(|changes| is_shown && *changes != RunChanges::default()),
            request: run.request(),
            state: run.state(project),
        }
    }
}
