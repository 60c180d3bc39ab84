//! Configuration that every machine has, whatever the scheme.

use p4rack_wire::ethernet::overhead;
use p4rack_wire::{MacAddr, Nanos};
use std::fmt;

/// A host on its link: address, rate and limits. [`Station::new`] fills in defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Station {
    /// Address of this host.
    pub mac: MacAddr,
    /// Rate at which the NIC sends, bit/s; 0 sends without pacing.
    pub rate_bps: u64,
    /// How much a late driver may catch up: a frame that leaves late by less delays none behind it.
    pub catch_up: Nanos,
    /// Maximum frames waiting per known host; further ones are dropped.
    pub queue_limit_frames: usize,
    /// Maximum frames waiting for all hosts together.
    pub total_limit_frames: usize,
    /// Maximum frames waiting for unknown destinations, broadcasts included.
    pub best_effort_limit_frames: usize,
    /// Maximum received frames waiting for the application.
    pub app_limit_frames: usize,
    /// Maximum payload of an application's frame; the header adds 14 bytes.
    pub mtu: usize,
    /// Bytes stored of an application's frame, like a capture's snap length. Beyond them, whatever the buffer
    /// held is sent (zeros if it is new), and nothing is delivered. For simulations, which read no payloads.
    pub snap_bytes: usize,
}

/// Maximum payload that [`Station::check`] accepts.
pub(crate) const MTU_MAX: usize = 9000;
/// Rate on which times are based if the NIC is not paced.
const UNPACED_BPS: u64 = 1_000_000_000;

impl Station {
    /// Defaults for a host on a link of `rate_bps`: queues of hundreds of frames, an MTU of 1500 bytes, and a
    /// driver that may be late by a full frame.
    pub fn new(mac: MacAddr, rate_bps: u64) -> Self {
        Station {
            mac,
            rate_bps,
            catch_up: Nanos::on_wire(overhead::wire_bytes(overhead::MTU + 14), Station::timing_bps(rate_bps)),
            queue_limit_frames: 256,
            total_limit_frames: 2048,
            best_effort_limit_frames: 256,
            app_limit_frames: 4096,
            mtu: overhead::MTU as usize,
            snap_bytes: usize::MAX,
        }
    }

    /// Checks what types cannot express. `scheme` names the scheme in errors.
    pub(crate) fn check(&self, scheme: &'static str) -> Result<(), ConfigError> {
        let fail = |field, problem| Err(ConfigError { scheme, field, problem });
        if self.mac.is_group() {
            return fail("mac", "is a group address; a host needs one of its own");
        }
        if self.queue_limit_frames == 0 {
            return fail("queue_limit_frames", "is 0; nothing could be sent");
        }
        if self.mtu > MTU_MAX {
            return fail("mtu", "is over 9000 bytes");
        }
        Ok(())
    }

    /// The rate on which times are based: 1 Gb/s if the NIC is not paced.
    pub(crate) fn timing_bps(rate_bps: u64) -> u64 {
        if rate_bps == 0 { UNPACED_BPS } else { rate_bps }
    }
}

/// Why a configuration is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Name of the scheme.
    pub scheme: &'static str,
    /// Name of the field.
    pub field: &'static str,
    /// The problem, and what to do about it.
    pub problem: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.scheme, self.field, self.problem)
    }
}

impl std::error::Error for ConfigError {}
