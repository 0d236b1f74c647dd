//! Looking back: the runs that were, what a reviewer should look at, and the pages that show it.

pub mod figures;
pub mod history;
pub mod page;
pub mod warnings;
