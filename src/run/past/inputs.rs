//! The query and the code base that a run has sent, from its log. Reads the run's folder.

use std::collections::BTreeMap;

use super::history::PastRun;
use crate::model::prompt::Inputs;
use crate::record::run_files::Artifact;
use crate::record::step::Step;

/// Extracts the inputs sent with the first query from its file, by the recorded sizes of its parts.
pub fn sent(run: &PastRun, first: &Step) -> Option<Inputs> {
    let text = run.text(&first.id(), Artifact::Query)?;
    let mut rest = text.as_str();
    let mut parts = BTreeMap::new();
    for part in &first.prompt {
        let (content, behind) = rest.split_at_checked(usize::try_from(part.bytes).ok()?)?;
        parts.insert(part.part.as_ref(), content);
        rest = behind;
    }
    let part = |name: &str| {
        let content = parts.get(name)?.strip_prefix(&format!("[{name}]\n"))?;
        Some(content.to_owned())
    };
    let (query, rollup) = (part("query")?, part("codebase")?);
    rest.is_empty().then_some(Inputs {
        query,
        rollup,
        is_part: false,
    })
}
