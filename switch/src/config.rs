//! Configuration of a switch, independent of the program.

use p4rack_wire::Nanos;

/// Configuration of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Port number, 0 to 511.
    pub port: u16,
    /// Rate in bits per second on the wire, preamble and gap included; 0 is no limit. The port sends no
    /// faster. Of frames that arrive faster, the excess is dropped ([`Config::arrival_burst`]).
    pub rate_bps: u64,
    /// Limit of each of its eight queues, in bytes with FCS. `None`: only the shared buffer limits them.
    pub queue_limit_bytes: Option<u64>,
}

impl PortConfig {
    /// A port without a limit per queue.
    pub fn new(port: u16, rate_bps: u64) -> PortConfig {
        PortConfig { port, rate_bps, queue_limit_bytes: None }
    }
}

/// The order of frames in a queue of a front-panel port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queueing {
    /// In order of arrival.
    #[default]
    Fifo,
    /// The ingress ports take turns of a full frame's bytes, and frames from one hold at most as much of the buffer in
    /// a queue as is free.
    Fair,
}

/// Configuration of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The front-panel ports.
    pub ports: Vec<PortConfig>,
    /// Pipes with entries and cells of their own, 1 to 4, for architectures that have several. The switch has as many as
    /// the numbers of its ports need, if that is more.
    pub pipes: usize,
    /// Pipes without front-panel ports, for architectures that have several: frames that leave them come in again at
    /// the same port.
    pub internal_pipes: Vec<usize>,
    /// Size of the buffer that all queues share, in bytes (frames with FCS).
    pub buffer_bytes: u64,
    /// Part of the buffer that frames with a priority below [`Config::scheduled_priority`] cannot use. If
    /// there is such a part, frames below that priority at one port may use no more than they leave free for
    /// other ports.
    pub reserved_bytes: u64,
    /// The lowest priority that may use the reserved part.
    pub scheduled_priority: u8,
    /// Dynamic thresholds (Choudhury and Hahne, 1998): a queue may hold this percentage of the free part of
    /// the shared buffer. `None`: no thresholds.
    pub dynamic_percent: Option<u32>,
    /// The order of frames in the queues of front-panel ports.
    pub queueing: Queueing,
    /// Port for packet-in and packet-out.
    pub cpu_port: Option<u16>,
    /// Maximum frames that wait for [`crate::Switch::poll_cpu`].
    pub cpu_queue_frames: usize,
    /// The port that means "drop" for programs.
    pub drop_port: u16,
    /// Nanoseconds per unit of the timestamps that programs see.
    pub time_unit_ns: u64,
    /// Time at which clocks of programs show 0, in architectures whose clock begins with the switch.
    pub clock_zero: Nanos,
    /// Seed of `random` and of the random hash.
    pub seed: u64,
    /// Maximum length of a frame, in bytes without FCS.
    pub max_frame_bytes: usize,
    /// Maximum number of times that a frame is recirculated, resubmitted or cloned from a clone.
    pub recirculation_limit: u32,
    /// Delay of a resubmitted or recirculated frame until its next pass begins, unless the architecture has ports for
    /// that.
    pub pass_delay: Nanos,
    /// Maximum digests that wait for [`crate::Switch::poll_digest`].
    pub digest_queue: usize,
    /// How much lost time a port that is polled late makes up for.
    pub catch_up: Nanos,
    /// How far arriving frames may be ahead of their port's rate, and at least 16 full frames. The excess is
    /// dropped at the port, because no wire of that rate would carry it. `Nanos::MAX` disables the limit, for
    /// real wires.
    pub arrival_burst: Nanos,
    /// Interval of the depth samples.
    pub sample_interval: Nanos,
    /// Maximum depth samples per port.
    pub samples: usize,
    /// Maximum stored log messages of the program. With 0, messages are only counted.
    pub log_messages: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            ports: Vec::new(),
            pipes: 1,
            internal_pipes: Vec::new(),
            buffer_bytes: 256 * 1024,
            reserved_bytes: 0,
            scheduled_priority: 4,
            dynamic_percent: None,
            queueing: Queueing::Fifo,
            cpu_port: Some(510),
            cpu_queue_frames: 1024,
            drop_port: 511,
            time_unit_ns: 1,
            clock_zero: Nanos::ZERO,
            seed: 1,
            max_frame_bytes: 9216,
            recirculation_limit: 64,
            pass_delay: Nanos::ZERO,
            digest_queue: 1024,
            catch_up: Nanos::from_millis(10),
            arrival_burst: Nanos::from_millis(10),
            sample_interval: Nanos::from_millis(1),
            samples: 16 * 1024,
            log_messages: 0,
        }
    }
}
