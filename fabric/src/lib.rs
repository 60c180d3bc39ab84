//! The protocols' state machines, without input or output: bytes and `now` go in, bytes and the
//! next timeout come out. No sockets, no clock, no threads, no randomness but from a seed.
//!
//! Every machine has one shape: `handle_*` takes an event in, `poll_*` yields output until there
//! is none, `next_timeout` says when to call `handle_timeout`. Drain fully after each event.

pub mod hostile;
pub mod pl2;
