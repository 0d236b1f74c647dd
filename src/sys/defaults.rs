//! The condition by which records leave fields out. Pure.

/// Returns whether a value is its type's default.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
