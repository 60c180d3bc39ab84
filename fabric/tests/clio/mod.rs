//! Boards of Clio as their drivers use them.

mod allocation;
mod artifact;
mod client;
mod fill;
