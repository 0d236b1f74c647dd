//! Detection of likely credentials: in texts to be sent, in streams, and by file name. Pure.

mod censor;
mod places;
mod private_key;
mod search;

pub use censor::{Censor, marks};
pub use places::{SECRET_PLACES, is_secret_file};
pub use search::{Finding, find, is_in, kinds};
