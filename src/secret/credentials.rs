//! What looks like a credential: found in a text that is about to travel, taken out of a stream, told by a file's name.
//! Pure.

mod censor;
mod places;
mod private_key;
mod search;

pub use censor::Censor;
pub use places::{SECRET_PLACES, is_secret_file};
pub use search::{Finding, find, kinds};
