//! EDM's scheduler in the switch (§3.1) decides which source sends which chunk when. It is exact, and serves as the
//! reference for pipelines, which can only approximate it.
//!
//! ```text
//!   demands ── handle_demand ─▶ ┌───────────┐
//!                               │ Scheduler │ ── poll_grant ──▶ grants
//!         clock ◀─ next_timeout ┘           └
//! ```
//!
//! - **Demands** are explicit (/N/, before a write) or implicit (a read or atomic request is the demand for its
//!   answer). The queue of a destination holds at most X per source and kind; further ones are refused and counted.
//! - **Matching** is PIM with priorities: in an iteration of three cycles each free destination requests its best
//!   message whose source is free, each source grants the best request, and both become busy.
//! - **A grant** is for one chunk. Both ports are busy for the chunk's time on the link, l/B, and their next grants
//!   are that much later, so that chunks follow each other without gap or overlap (step 7 of §3.1.1).
//! - **Order**: messages of a (source, destination) pair are served in order. FCFS or SRPT decides among pairs.
//!
//! A host is trusted only as far as the port proves its identity: see [`Refusal`].

mod matching;
mod ports;
mod queues;
#[cfg(test)]
mod tests;

use super::blocks::{Content, Framing};
use matching::Matching;
use std::collections::VecDeque;

/// Order of the messages in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// First come, first served: for light-tailed sizes.
    Fcfs,
    /// Fewest remaining bytes first: for heavy-tailed sizes.
    Srpt,
}

/// Parameters of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Ports of the switch, at least 2.
    pub ports: u16,
    /// X: maximum demands of a pair in the queue, per kind.
    pub active_per_pair: u8,
    /// Maximum bytes per grant.
    pub chunk_bytes: u32,
    /// Maximum bytes per message.
    pub message_bytes_max: u32,
    /// Order of messages.
    pub policy: Policy,
    /// Length of the scheduler's clock cycle.
    pub cycle_ps: u64,
    /// Time of a block on each port's link; 0: links are infinitely fast.
    pub block_ps: u64,
    /// Bytes that a chunk's l/B covers.
    pub framing: Framing,
    /// Time before the end of a chunk at which its ports may be matched again. The next grant still leaves after the chunk, so
    /// this hides the time of the matching. 0 is the paper's rule.
    pub lookahead_ps: u64,
    /// Whether a port's next grant also waits for the notifications, requests and grants that share its link, so that no
    /// chunk waits at the switch. The paper's rule does not count them.
    pub room_for_short: bool,
}

impl Config {
    /// The paper's parameters (§4.1, §4.3): X = 3, chunks of 256 bytes, 3 GHz.
    pub fn new(ports: u16, rate_bps: u64) -> Config {
        Config {
            ports,
            active_per_pair: 3,
            chunk_bytes: 256,
            message_bytes_max: 1 << 24,
            policy: Policy::Fcfs,
            cycle_ps: 333,
            block_ps: super::blocks::block_ps(rate_bps),
            framing: Framing::Blocks,
            lookahead_ps: 0,
            room_for_short: false,
        }
    }

    /// The first error in the parameters, if any.
    pub fn problem(&self) -> Option<&'static str> {
        Some(match self {
            Config { ports: 0 | 1, .. } => "ports: a switch has at least 2",
            Config { active_per_pair: 0, .. } => "active_per_pair: with 0 no host may ask; write 1 or more",
            Config { chunk_bytes: 0, .. } => "chunk_bytes: a grant is for at least 1 byte",
            Config { message_bytes_max: 0, .. } => "message_bytes_max: a message has at least 1 byte",
            Config { cycle_ps: 0, .. } => "cycle_ps: a cycle takes time",
            _ => return None,
        })
    }
}

/// Origin of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// /N/ of a write.
    Write,
    /// A read request, which the scheduler holds back until the first grant.
    Read,
    /// An atomic request, treated in the same way.
    Modify,
}

impl Kind {
    /// Whether a request is the demand.
    pub const fn is_implicit(self) -> bool {
        !matches!(self, Kind::Write)
    }

    /// Length of its announcement on the requester's link, in blocks.
    const fn ask_blocks(self) -> u64 {
        match self {
            Kind::Write => 1,
            Kind::Read | Kind::Modify => Content::ReadRequest.blocks(),
        }
    }

    /// Form of a chunk of this many bytes on a link.
    pub const fn chunk(self, bytes: u32, first: bool) -> Content {
        match (self, first) {
            (Kind::Write, true) => Content::Write(bytes),
            _ => Content::Response(bytes),
        }
    }
}

/// A demand: a wish to send a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Port of the sender: the writer, or the memory node that answers.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// Id of the message, unique for the pair and kind.
    pub id: u8,
    /// Its origin.
    pub kind: Kind,
    /// Bytes of the message.
    pub bytes: u32,
    /// Chosen by the driver; returned with each grant.
    pub token: u32,
}

/// Why a demand is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Refusal {
    /// A port does not exist, or source and destination are the same.
    NoSuchPort,
    /// It arrived by a port other than the requester's, which is the source of a write and the destination of a read.
    Spoofed,
    /// The message is empty.
    Empty,
    /// The message is too long.
    TooLong,
    /// The pair has X demands of this kind.
    OverLimit,
    /// The pair has a demand with this id.
    IdInUse,
}

impl Refusal {
    /// All reasons, with the names of their counters.
    pub const ALL: [(Refusal, &'static str); 6] = [
        (Refusal::NoSuchPort, "no_such_port"),
        (Refusal::Spoofed, "spoofed"),
        (Refusal::Empty, "empty"),
        (Refusal::TooLong, "too_long"),
        (Refusal::OverLimit, "over_limit"),
        (Refusal::IdInUse, "id_in_use"),
    ];
}

/// A permission to send a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When it leaves the scheduler.
    pub at_ps: u64,
    /// The demand that it serves.
    pub demand: Demand,
    /// Offset of the chunk in the message.
    pub offset: u32,
    /// Length of the chunk in bytes.
    pub bytes: u32,
    /// Time for which both ports are busy with it.
    pub busy_ps: u64,
}

impl Grant {
    /// Whether it is the first of its message. For a read, the request itself is then sent to the memory node.
    pub fn is_first(&self) -> bool {
        self.offset == 0
    }

    /// Whether it is the last of its message.
    pub fn is_last(&self) -> bool {
        self.offset + self.bytes == self.demand.bytes
    }
}

/// Counters of a scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Demands that were admitted.
    pub demands: u64,
    /// Demands that were refused, in the order of [`Refusal::ALL`].
    pub refused: [u64; Refusal::ALL.len()],
    /// Demands that were discarded with their port.
    pub forgotten: u64,
    /// Grants.
    pub grants: u64,
    /// Bytes granted.
    pub granted_bytes: u64,
    /// Iterations of the matching.
    pub iterations: u64,
    /// Requests of destinations whose source granted another one.
    pub conflicts: u64,
    /// Maximum messages waiting for one destination.
    pub queue_max: u32,
}

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Scheduler {
    config: Config,
    matching: Matching,
    /// Demands on their way into the queues.
    entering: VecDeque<(u64, Demand)>,
    counters: Counters,
    now_ps: u64,
}

impl Scheduler {
    /// A scheduler without demands. Errors: see [`Config::problem`].
    pub fn new(config: Config) -> Result<Scheduler, &'static str> {
        match config.problem() {
            Some(problem) => Err(problem),
            None => Ok(Scheduler {
                matching: Matching::new(&config),
                entering: VecDeque::new(),
                counters: Counters::default(),
                now_ps: 0,
                config,
            }),
        }
    }

    /// Its parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Number of messages that wait for a destination.
    pub fn queue_length(&self, destination: u16) -> u32 {
        self.matching.queues.length(destination.into())
    }

    /// Accepts a demand that arrived by port `ingress`. Errors: it is refused and counted.
    pub fn handle_demand(&mut self, ingress: u16, demand: Demand, now_ps: u64) -> Result<(), Refusal> {
        self.now_ps = self.now_ps.max(now_ps);
        let admitted = self
            .check(ingress, &demand)
            .and_then(|()| self.matching.queues.admit(&demand, self.config.active_per_pair));
        match admitted {
            Ok(()) => {
                self.counters.demands += 1;
                self.entering
                    .push_back((self.now_ps + matching::INSERT_CYCLES * self.config.cycle_ps, demand));
                let length = self.matching.queues.length(demand.destination.into());
                self.counters.queue_max = self.counters.queue_max.max(length);
            }
            Err(refusal) => self.counters.refused[refusal as usize] += 1,
        }
        admitted
    }

    fn check(&self, ingress: u16, demand: &Demand) -> Result<(), Refusal> {
        let asks = if demand.kind.is_implicit() { demand.destination } else { demand.source };
        let (source, destination) = (demand.source, demand.destination);
        Err(match () {
            () if source.max(destination) >= self.config.ports || source == destination => {
                Refusal::NoSuchPort
            }
            () if asks != ingress => Refusal::Spoofed,
            () if demand.bytes == 0 => Refusal::Empty,
            () if demand.bytes > self.config.message_bytes_max => Refusal::TooLong,
            () => return Ok(()),
        })
    }

    /// The next grant that has left the scheduler by `now_ps`. Call until it returns `None`.
    pub fn poll_grant(&mut self, now_ps: u64) -> Option<Grant> {
        self.now_ps = self.now_ps.max(now_ps);
        loop {
            if let Some(grant) = self.matching.granted.front() {
                return if grant.at_ps <= self.now_ps { self.matching.granted.pop_front() } else { None };
            }
            let at_ps = self.next_iteration_ps()?;
            if at_ps > self.now_ps {
                return None;
            }
            while let Some((ready_ps, demand)) = self.entering.front().copied()
                && ready_ps <= at_ps
            {
                self.entering.pop_front();
                self.matching.enter(demand, at_ps, &self.config);
            }
            self.matching.iterate(at_ps, &self.config, &mut self.counters);
        }
    }

    /// When to call [`poll_grant`](Self::poll_grant) next, if nothing else happens.
    pub fn next_timeout(&self) -> Option<u64> {
        self.matching.granted.front().map(|grant| grant.at_ps).or_else(|| self.next_iteration_ps())
    }

    fn next_iteration_ps(&self) -> Option<u64> {
        let entry_ps = self.entering.front().map(|(ready_ps, _)| *ready_ps);
        let ready_ps = [entry_ps, self.matching.next_ready_ps()].into_iter().flatten().min()?;
        Some(ready_ps.max(self.matching.iterate_from_ps))
    }

    /// Discards all demands from and for a port, because its link is down.
    pub fn forget_port(&mut self, port: u16) {
        if port < self.config.ports {
            let (entering, queues) = (&mut self.entering, &mut self.matching.queues);
            let before = entering.len();
            entering.retain(|(_, demand)| {
                let stays = demand.source != port && demand.destination != port;
                if !stays {
                    queues.withdraw(demand);
                }
                stays
            });
            self.counters.forgotten +=
                (before - self.entering.len()) as u64 + self.matching.forget(port.into());
        }
    }
}
