//! Processes of benchmarks.

use std::process::Child;

/// A process of the benchmark's own, ended when dropped.
pub(super) struct OwnSwitch(pub(super) Child);

impl OwnSwitch {
    /// Process id of the switch.
    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for OwnSwitch {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
