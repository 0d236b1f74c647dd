//! Questions and menus.
