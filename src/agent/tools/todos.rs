//! `update_todos`: what is to be done, as the user sees it.
