//! The accounts of the vendor: keys in `auth.json`, and which of them is active.
