//! The daemon around the embedded switch: P4Runtime, BFRuntime and telemetry servers, port drivers, clock.

pub mod bench;
pub mod bfruntime;
pub mod core;
pub mod daemon;
pub mod driver;
mod generator;
pub mod metrics;
mod p4runtime;
pub mod plane;
mod rest;
pub mod server;
pub mod telemetry;
mod trace;
pub mod wire;
