//! An agent that works by a plan.
//!
//! Pure, but for [`tools`], which is a choice of the engine's.

pub mod stages;
pub mod tools;
