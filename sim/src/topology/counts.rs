//! Counters of hosts, summed over a group.

use super::memory::Operated;
use super::plan::Plan;
use super::spec::SendKind;
use p4rack_wire::Histogram;

/// Counters of a traffic.
#[derive(Clone, Debug)]
pub(super) struct TrafficCounts {
    /// Latency of frames, of requests with their answers, or of TCP's messages.
    pub latency: Histogram,
    /// Frames sent, payload bytes included.
    pub sent: u64,
    /// Frames that arrived at their flow's other end, each once.
    pub received: u64,
    /// Payload bytes that arrived in the measured time, each once.
    pub bytes: u64,
    /// Frames that arrived again, after a later one, or changed.
    pub twice: u64,
    pub reordered: u64,
    pub damaged: u64,
    /// Operations on remote memory. Then `sent` counts operations, and their frames count in none of the others.
    pub operations: Option<Box<Operated>>,
}

/// Counters of the hosts of a group.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    pub traffic: Vec<TrafficCounts>,
    /// Frames that hosts gave to their links, and frames dropped because too many waited there.
    pub sent: u64,
    pub queue_full: u64,
    /// Frames that arrived at a host.
    pub arrived: u64,
    /// Of these: frames of flows that end elsewhere, and frames of no flow.
    pub elsewhere: u64,
    pub others: u64,
    /// Frames that hosts' agents have kept.
    pub agents: u64,
    /// Frames of remote memory.
    pub memory: u64,
}

impl Counts {
    pub fn new(plan: &Plan) -> Counts {
        let one = TrafficCounts {
            latency: Histogram::new(),
            sent: 0,
            received: 0,
            bytes: 0,
            twice: 0,
            reordered: 0,
            damaged: 0,
            operations: None,
        };
        let of = |send: SendKind| TrafficCounts {
            operations: (send == SendKind::Memory).then(|| Box::new(Operated::new())),
            ..one.clone()
        };
        Counts {
            traffic: plan.traffic.iter().map(|traffic| of(traffic.spec.send)).collect(),
            sent: 0,
            queue_full: 0,
            arrived: 0,
            elsewhere: 0,
            others: 0,
            agents: 0,
            memory: 0,
        }
    }

    /// Adds another group's counters.
    pub fn add(&mut self, other: &Counts) {
        for (own, other) in self.traffic.iter_mut().zip(&other.traffic) {
            own.latency.add(&other.latency);
            own.sent += other.sent;
            own.received += other.received;
            own.bytes += other.bytes;
            own.twice += other.twice;
            own.reordered += other.reordered;
            own.damaged += other.damaged;
            if let (Some(own), Some(other)) = (&mut own.operations, &other.operations) {
                own.add(other);
            }
        }
        self.sent += other.sent;
        self.queue_full += other.queue_full;
        self.arrived += other.arrived;
        self.elsewhere += other.elsewhere;
        self.others += other.others;
        self.agents += other.agents;
        self.memory += other.memory;
    }
}
