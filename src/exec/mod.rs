//! Running other programs: processes, the sandbox around them, and `build.sh`.

pub mod build_script;
pub mod process;
pub mod sandbox;
