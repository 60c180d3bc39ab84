//! The daemon around the embedded switch: P4Runtime and telemetry servers, port drivers, clock.

pub mod core;
pub mod driver;
pub mod plane;
