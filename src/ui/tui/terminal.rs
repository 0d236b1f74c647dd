//! The terminal: set up, given back however the program ends, and what it can.
