//! P4Runtime messages.
