//! What a switch is like before any program runs on it.

use p4rack_wire::Nanos;

/// One port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Its number, 0 to 511.
    pub port: u16,
    /// Bits a second on the wire, preamble and gap counted; 0 is no limit. It sends no faster, and of what comes in faster
    /// the excess is dropped ([`Config::arrival_burst`]).
    pub rate_bps: u64,
    /// Most bytes (with FCS) that one of its eight queues may hold; `None`: only the shared buffer limits it.
    pub queue_limit_bytes: Option<u64>,
}

impl PortConfig {
    /// A port without a limit of its own a queue.
    pub fn new(port: u16, rate_bps: u64) -> PortConfig {
        PortConfig { port, rate_bps, queue_limit_bytes: None }
    }
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The front-panel ports.
    pub ports: Vec<PortConfig>,
    /// Buffer that all queues share, in bytes (frames with FCS).
    pub buffer_bytes: u64,
    /// Part of the buffer that frames of a priority below [`Config::scheduled_priority`] can't take. If there is one, those
    /// of them that wait at one port take no more than they leave free to those at others.
    pub reserved_bytes: u64,
    /// The lowest priority that may use the reserved part.
    pub scheduled_priority: u8,
    /// Dynamic thresholds (Choudhury and Hahne, 1998): a queue may hold this share, in percent, of what is
    /// free of the shared buffer. `None`: the buffer alone limits.
    pub dynamic_percent: Option<u32>,
    /// Port of packet-in and packet-out.
    pub cpu_port: Option<u16>,
    /// Most frames that wait for [`crate::Switch::poll_cpu`].
    pub cpu_queue_frames: usize,
    /// The port to which a program sends what is to be dropped.
    pub drop_port: u16,
    /// Nanoseconds a unit of the timestamps that programs see.
    pub time_unit_ns: u64,
    /// Seed of `random` and of the `random` hash.
    pub seed: u64,
    /// Longest frame taken, in bytes without FCS.
    pub max_frame_bytes: usize,
    /// How often one frame may be recirculated, resubmitted or cloned from a clone.
    pub recirculation_limit: u32,
    /// Most digests that wait for [`crate::Switch::poll_digest`].
    pub digest_queue: usize,
    /// How far a port that is polled late makes up for lost time.
    pub catch_up: Nanos,
    /// How far ahead of its port's rate what comes in may be, and 16 full frames at least. What is beyond is dropped at the
    /// port: no wire of that rate would carry it. `Nanos::MAX`: real wires see to it.
    pub arrival_burst: Nanos,
    /// Interval of the depth samples.
    pub sample_interval: Nanos,
    /// Most depth samples kept a port.
    pub samples: usize,
    /// Most messages kept that the program logs; 0 only counts them.
    pub log_messages: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            ports: Vec::new(),
            buffer_bytes: 256 * 1024,
            reserved_bytes: 0,
            scheduled_priority: 4,
            dynamic_percent: None,
            cpu_port: Some(510),
            cpu_queue_frames: 1024,
            drop_port: 511,
            time_unit_ns: 1,
            seed: 1,
            max_frame_bytes: 9216,
            recirculation_limit: 64,
            digest_queue: 1024,
            catch_up: Nanos::from_millis(10),
            arrival_burst: Nanos::from_millis(10),
            sample_interval: Nanos::from_millis(1),
            samples: 16 * 1024,
            log_messages: 0,
        }
    }
}
