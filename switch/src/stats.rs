//! Counters of the switch itself, independent of the program.

use p4rack_wire::Nanos;

/// Why a frame was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// No program is loaded.
    NoProgram,
    /// The frame arrived at an unknown port.
    UnknownIngressPort,
    /// The port received more than its rate allows.
    OverRate,
    /// Longer than the maximum frame.
    FrameTooLong,
    /// The parser or a loop exceeded its limit.
    LoopLimit,
    /// An `assert` or `assume` of the program failed.
    AssertFailed,
    /// The program's parser rejected it.
    ParserReject,
    /// The program's ingress dropped it.
    IngressDrop,
    /// The program's egress dropped it.
    EgressDrop,
    /// Sent to a port that does not exist; where egress runs per port, after it.
    NoSuchPort,
    /// Multicast to a group without members.
    EmptyGroup,
    /// Multicast makes no more copies of one packet.
    CopyLimit,
    /// Clone to a session that is not configured.
    NoCloneSession,
    /// The shared buffer is full.
    BufferFull,
    /// Best effort has used up its part of the shared buffer.
    BestEffortFull,
    /// Best effort to this port holds as much of the shared buffer as it leaves free for best effort to other
    /// ports.
    BestEffortShare,
    /// With fair queueing: frames from its ingress port hold as much of the buffer at this queue as is free.
    IngressShare,
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
    /// All reasons, in the order of declaration.
    pub const ALL: [DropReason; 21] = [
        DropReason::NoProgram,
        DropReason::UnknownIngressPort,
        DropReason::OverRate,
        DropReason::FrameTooLong,
        DropReason::LoopLimit,
        DropReason::AssertFailed,
        DropReason::ParserReject,
        DropReason::IngressDrop,
        DropReason::EgressDrop,
        DropReason::NoSuchPort,
        DropReason::EmptyGroup,
        DropReason::CopyLimit,
        DropReason::NoCloneSession,
        DropReason::BufferFull,
        DropReason::BestEffortFull,
        DropReason::BestEffortShare,
        DropReason::IngressShare,
        DropReason::QueueLimit,
        DropReason::RecirculationLimit,
        DropReason::CpuQueueFull,
        DropReason::ProgramReplaced,
    ];

    /// The reason's name in reports and telemetry.
    pub fn name(self) -> &'static str {
        match self {
            DropReason::NoProgram => "no_program",
            DropReason::UnknownIngressPort => "unknown_ingress_port",
            DropReason::OverRate => "over_rate",
            DropReason::FrameTooLong => "frame_too_long",
            DropReason::LoopLimit => "loop_limit",
            DropReason::AssertFailed => "assert_failed",
            DropReason::ParserReject => "parser_reject",
            DropReason::IngressDrop => "ingress_drop",
            DropReason::EgressDrop => "egress_drop",
            DropReason::NoSuchPort => "no_such_port",
            DropReason::EmptyGroup => "empty_group",
            DropReason::CopyLimit => "copy_limit",
            DropReason::NoCloneSession => "no_clone_session",
            DropReason::BufferFull => "buffer_full",
            DropReason::BestEffortFull => "best_effort_full",
            DropReason::BestEffortShare => "best_effort_share",
            DropReason::IngressShare => "ingress_share",
            DropReason::QueueLimit => "queue_limit",
            DropReason::RecirculationLimit => "recirculation_limit",
            DropReason::CpuQueueFull => "cpu_queue_full",
            DropReason::ProgramReplaced => "program_replaced",
        }
    }
}

/// How long a port's queues held a given depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthTime {
    /// Upper bound of the bin in bytes (with FCS); the first bin is exactly 0.
    pub depth_bytes: u64,
    /// Total time in nanoseconds.
    pub nanos: u64,
}

/// The maximum depth within one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthSample {
    /// Start of the interval.
    pub time: Nanos,
    /// Maximum depth, in bytes with FCS.
    pub depth_bytes: u64,
}

/// Counters of one of a port's eight queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Bytes (with FCS) now.
    pub bytes: u64,
    /// Frames now.
    pub frames: u64,
    /// Maximum bytes since the last reset.
    pub max_bytes: u64,
    /// Frames that found no room since the last reset.
    pub drops: u64,
}

/// Counters of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Port number.
    pub port: u16,
    /// Rate in bits per second; 0 is no limit.
    pub rate_bps: u64,
    /// Frames received, including those that were dropped immediately.
    pub rx_frames: u64,
    /// Bytes received, without FCS.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent, without FCS.
    pub tx_bytes: u64,
    /// Bytes (with FCS) in all its queues now.
    pub queue_bytes: u64,
    /// Maximum of `queue_bytes` since the last reset.
    pub queue_max_bytes: u64,
    /// Queues by priority, 0 (lowest) to 7.
    pub queues: [QueueStats; 8],
    /// Time-weighted histogram of `queue_bytes`; non-empty bins only.
    pub histogram: Vec<DepthTime>,
    /// Maximum depth of each interval. Intervals between two samples of 0 are omitted.
    pub samples: Vec<DepthSample>,
    /// Dropped frames by reason, reasons that occurred only: frames meant for this port, and frames from it
    /// that exceeded its rate.
    pub drops: Vec<(DropReason, u64)>,
}

/// Counters of the whole switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Ports in order of configuration; the CPU port is last.
    pub ports: Vec<PortStats>,
    /// All drops by reason, including those of ports; reasons that occurred only.
    pub drops: Vec<(DropReason, u64)>,
    /// Frames for ports that do not exist that wait for egress now.
    pub nowhere_frames: u64,
    /// Bytes (with FCS) in the shared buffer now.
    pub buffer_bytes: u64,
    /// Maximum of `buffer_bytes` since the last reset.
    pub buffer_max_bytes: u64,
    /// Clones made.
    pub clones: u64,
    /// Copies made by multicast, counting all replicas.
    pub replicas: u64,
    /// Packets copied from others, for whatever reason, those included that were dropped later: each clone of a packet that goes on
    /// itself, and all but one of a packet's replicas.
    pub copies: u64,
    /// Passes by `resubmit`.
    pub resubmits: u64,
    /// Passes by `recirculate`.
    pub recirculations: u64,
    /// Digests lost because the queue was full.
    pub digests_lost: u64,
    /// Log messages of the program.
    pub log_messages: u64,
}
