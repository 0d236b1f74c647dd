//! Colours, and none where the user wants none.
