//! Clio's client library with a plain board and the real one, in virtual time, over a network that loses, copies, reorders, damages and delays.

mod board;
mod calls;
mod faults;
mod plants;
mod real;
mod seats;
mod silence;
mod windows;
mod work;
mod world;
