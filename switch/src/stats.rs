//! Counters of the switch itself, apart from the program's.

use p4rack_wire::Nanos;

/// Why a frame ended without being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// No program is loaded.
    NoProgram,
    /// The frame came from a port that is not configured.
    UnknownIngressPort,
    /// Its port took in more than the port's rate carries.
    OverRate,
    /// Longer than the longest frame taken.
    FrameTooLong,
    /// The parser or a loop ran beyond its limit.
    LoopLimit,
    /// An `assert` or `assume` of the program did not hold.
    AssertFailed,
    /// The program's ingress dropped it.
    IngressDrop,
    /// The program's egress dropped it.
    EgressDrop,
    /// The program, a replica or a clone session names a port that is not configured.
    NoSuchPort,
    /// Multicast to a group without members.
    EmptyGroup,
    /// Clone to a session that is not configured.
    NoCloneSession,
    /// The shared buffer is full.
    BufferFull,
    /// Best effort used up all it may take of the shared buffer.
    BestEffortFull,
    /// Best effort to this port holds as much of the shared buffer as it leaves free to best effort to others.
    BestEffortShare,
    /// The queue reached its own limit.
    QueueLimit,
    /// Recirculated, resubmitted or cloned too often.
    RecirculationLimit,
    /// The controller did not fetch its frames in time.
    CpuQueueFull,
    /// A new program was loaded while it waited in a queue.
    ProgramReplaced,
}

impl DropReason {
    /// All reasons, in the order of their declaration.
    pub const ALL: [DropReason; 18] = [
        DropReason::NoProgram,
        DropReason::UnknownIngressPort,
        DropReason::OverRate,
        DropReason::FrameTooLong,
        DropReason::LoopLimit,
        DropReason::AssertFailed,
        DropReason::IngressDrop,
        DropReason::EgressDrop,
        DropReason::NoSuchPort,
        DropReason::EmptyGroup,
        DropReason::NoCloneSession,
        DropReason::BufferFull,
        DropReason::BestEffortFull,
        DropReason::BestEffortShare,
        DropReason::QueueLimit,
        DropReason::RecirculationLimit,
        DropReason::CpuQueueFull,
        DropReason::ProgramReplaced,
    ];

    /// Name for reports and telemetry.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::NoProgram => "no_program",
            DropReason::UnknownIngressPort => "unknown_ingress_port",
            DropReason::OverRate => "over_rate",
            DropReason::FrameTooLong => "frame_too_long",
            DropReason::LoopLimit => "loop_limit",
            DropReason::AssertFailed => "assert_failed",
            DropReason::IngressDrop => "ingress_drop",
            DropReason::EgressDrop => "egress_drop",
            DropReason::NoSuchPort => "no_such_port",
            DropReason::EmptyGroup => "empty_group",
            DropReason::NoCloneSession => "no_clone_session",
            DropReason::BufferFull => "buffer_full",
            DropReason::BestEffortFull => "best_effort_full",
            DropReason::BestEffortShare => "best_effort_share",
            DropReason::QueueLimit => "queue_limit",
            DropReason::RecirculationLimit => "recirculation_limit",
            DropReason::CpuQueueFull => "cpu_queue_full",
            DropReason::ProgramReplaced => "program_replaced",
        }
    }
}

/// How long a port's queues held so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthTime {
    /// At most this many bytes (with FCS), and more than the bin before; the first is exactly 0.
    pub depth_bytes: u64,
    /// For how long, summed up.
    pub nanos: u64,
}

/// The largest depth within one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthSample {
    /// Start of the interval.
    pub time: Nanos,
    /// Bytes with FCS.
    pub depth_bytes: u64,
}

/// One of a port's eight queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Bytes (with FCS) now.
    pub bytes: u64,
    /// Frames now.
    pub frames: u64,
    /// Most bytes since the last reset.
    pub max_bytes: u64,
}

/// One port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Its number.
    pub port: u16,
    /// Its rate; 0 is no limit.
    pub rate_bps: u64,
    /// Frames that came in, those dropped at once too.
    pub rx_frames: u64,
    /// Bytes that came in, without FCS.
    pub rx_bytes: u64,
    /// Frames given out.
    pub tx_frames: u64,
    /// Bytes given out, without FCS.
    pub tx_bytes: u64,
    /// Bytes (with FCS) in all its queues now.
    pub queue_bytes: u64,
    /// The most of them since the last reset.
    pub queue_max_bytes: u64,
    /// By priority, 0 (lowest) to 7.
    pub queues: [QueueStats; 8],
    /// Time-weighted histogram of `queue_bytes`; only bins that were reached.
    pub histogram: Vec<DepthTime>,
    /// Maximum of each interval; intervals between two samples of 0 are left out.
    pub samples: Vec<DepthSample>,
    /// Frames dropped that were meant for this port, and those over its rate that came from it, by reason; only reasons that
    /// occurred.
    pub drops: Vec<(DropReason, u64)>,
}

/// The whole switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Ports in order of configuration; the CPU port last.
    pub ports: Vec<PortStats>,
    /// All drops by reason, those of ports too; only reasons that occurred.
    pub drops: Vec<(DropReason, u64)>,
    /// Bytes (with FCS) in the shared buffer now.
    pub buffer_bytes: u64,
    /// The most of them since the last reset.
    pub buffer_max_bytes: u64,
    /// Copies made by cloning.
    pub clones: u64,
    /// Copies made by multicast (all replicas).
    pub replicas: u64,
    /// Passes by `resubmit`.
    pub resubmits: u64,
    /// Passes by `recirculate`.
    pub recirculations: u64,
    /// Digests lost because the queue was full.
    pub digests_lost: u64,
    /// Messages that the program logged.
    pub log_messages: u64,
}
