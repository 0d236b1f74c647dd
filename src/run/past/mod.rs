//! Looking back: the runs that were, what a reviewer should look at, and the pages that show it.

pub(crate) mod figures;
pub(crate) mod findings;
pub(crate) mod history;
pub(crate) mod naming;
pub(crate) mod story;
pub(crate) mod warnings;
