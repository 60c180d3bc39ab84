//! Modelled times. Defaults model the paper's testbed (§7): two Xeon Silver 4110 at 2.1 GHz, ConnectX-5 adapters, links
//! of 100 Gb/s, a Tofino. The paper has no table of such times, so each default names its source.

use serde::{Deserialize, Serialize};

/// `[cpu]`: costs of a thread of the compute node, or of the pool's servers.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct CpuSpec {
    /// A probe's own work: hashing, comparing, the loop. Assumed: 60 cycles.
    pub compute_ns: u32,
    /// Before each batch, a thread rests for a random time, uniform between 0 and this. Otherwise a thread that waits for each
    /// request would always ask at the same phase of the engine's turns or probes.
    pub think_ns: u32,
    /// A random access to a table of gigabytes. 90 ns of memory (LMBench on Skylake-SP, AnandTech 2017), and as much for the
    /// walk to its page of 4 KB, which is assumed. Data written by an adapter costs the same, although it may be in the
    /// cache.
    pub access_ns: u32,
    /// Each further line of a record. Assumed: a core streams 8 GB/s.
    pub line_ns: u32,
    /// Building an RDMA request: `ibv_post_send` without its doorbell. 175 ns together (Zambre et al., Breaking Band, ICPP 2019,
    /// Table 1).
    pub request_ns: u32,
    /// Ringing the doorbell: the store across PCIe. From the same table.
    pub doorbell_ns: u32,
    /// RDMA requests that share a doorbell.
    pub requests_per_doorbell: u32,
    /// Taking a completion: `ibv_poll_cq`. From the same table.
    pub completion_ns: u32,
    /// Posting a receive. From the same table: preparing a descriptor.
    pub receive_ns: u32,
    /// Polling a queue: a line that the adapter may have written, so one from the last-level cache (AnandTech 2017).
    pub look_ns: u32,
    /// Cowbird: issuing. With `fetch_ns`, 1.6 times the result of `p4rack cowbird bench` on a faster processor.
    pub issue_ns: u32,
    /// Cowbird: fetching a completed request, without reading its data.
    pub fetch_ns: u32,
    /// Two-sided RDMA: threads of the pool that serve requests.
    pub servers: u16,
}

impl Default for CpuSpec {
    fn default() -> CpuSpec {
        CpuSpec {
            compute_ns: 30,
            think_ns: 0,
            access_ns: 180,
            line_ns: 8,
            request_ns: 81,
            doorbell_ns: 94,
            requests_per_doorbell: 1,
            completion_ns: 62,
            receive_ns: 28,
            look_ns: 25,
            issue_ns: 10,
            fetch_ns: 10,
            servers: 16,
        }
    }
}

impl CpuSpec {
    /// Reading or writing a record that is anywhere in memory.
    pub(super) fn record_ns(&self, bytes: u32) -> u32 {
        self.access_ns + (bytes.div_ceil(64) - 1) * self.line_ns
    }
}

/// `[nic]`: adapters.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct NicSpec {
    /// A packet's way through an adapter. Assumed: a READ of 64 bytes then takes 2.3 µs with posting and polling.
    pub packet_ns: u32,
    /// From one packet to the next, in each direction: 200 million a second (ConnectX-5's data sheet).
    pub gap_ns: u32,
    /// Across PCIe and the root complex, one way: half of a read (Neugebauer et al., SIGCOMM 2018: about 500 ns).
    pub pcie_ns: u32,
    /// Maximum payload posted inline with its request; more is read from memory. Mellanox's usual limit.
    pub inline_bytes: u32,
    /// READs of a queue pair in flight: `max_qp_rd_atom` of ConnectX-5.
    pub reads_max: u16,
    /// Timeout after which a queue pair retransmits.
    pub timeout_us: u32,
    /// A cable with both ends' MAC and coding, one way. Assumed.
    pub link_ns: u32,
    /// The switch's pipeline (PL2's paper, §5, on the same chip).
    pub switch_ns: u32,
    /// Maximum bytes that an adapter prepares ahead of its link; it chooses the next frame when its buffer has room.
    /// Without a number, every frame joins the queue as soon as windows permit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ahead_bytes: Option<u32>,
}

impl Default for NicSpec {
    fn default() -> NicSpec {
        NicSpec {
            packet_ns: 50,
            gap_ns: 5,
            pcie_ns: 250,
            inline_bytes: 220,
            reads_max: 16,
            timeout_us: 500,
            link_ns: 50,
            switch_ns: 347,
            ahead_bytes: None,
        }
    }
}

/// `[spot]`: the engine on a spare host. Its loop takes completions and posts the requests that follow from them.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpotSpec {
    /// Cores, each with an engine for its share of the threads. The paper has at most one (§8.4).
    pub cores: u16,
    /// Building an RDMA request. Assumed: 40 cycles, in a loop that writes them into the queue itself.
    pub request_ns: u32,
    /// A doorbell: one for each queue pair that a round posts to. From the same table as a thread's.
    pub doorbell_ns: u32,
    /// Taking a completion. Assumed: 20 cycles.
    pub outcome_ns: u32,
    /// Reading and checking an entry. Assumed: 10 cycles.
    pub entry_ns: u32,
    /// Queue pairs to the pool for each set, each with `nic.reads_max` READs in flight. More queue pairs also mean more doorbells.
    pub pairs: u16,
    /// BATCH_SIZE (§6).
    pub batch_reads: u16,
    /// Entries read along with a probe of a set that has no request in flight.
    pub guess_entries: u16,
    /// Maximum probes of a set in flight.
    pub probes: u16,
    /// From one probe of a busy set to the next (§5.2: one each 2 µs).
    pub probe_ns: u32,
    /// Maximum interval of an idle set: each probe that finds nothing doubles the interval.
    pub probe_max_ns: u32,
}

impl Default for SpotSpec {
    fn default() -> SpotSpec {
        SpotSpec {
            cores: 1,
            request_ns: 20,
            doorbell_ns: 94,
            outcome_ns: 10,
            entry_ns: 5,
            pairs: 1,
            batch_reads: 16,
            guess_entries: 8,
            probes: 1,
            probe_ns: 2_000,
            probe_max_ns: 2_000,
        }
    }
}

/// `[redy]`: I/O threads of the compute node, which carry requests of its other threads to servers of the pool in batches.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedySpec {
    /// I/O threads, each with a queue pair and a server of its own, and a core to itself.
    pub io_threads: u16,
    /// Maximum requests in a message; fewer if no more wait.
    pub batch: u16,
    /// Maximum messages of an I/O thread in flight.
    pub messages: u16,
    /// Taking a request out of a thread's queue into a message. Assumed: 40 cycles, as the engine on a spare host.
    pub request_ns: u32,
    /// Giving an answer to a thread. Assumed to cost the same.
    pub answer_ns: u32,
}

impl Default for RedySpec {
    fn default() -> RedySpec {
        RedySpec { io_threads: 1, batch: 64, messages: 16, request_ns: 20, answer_ns: 20 }
    }
}

/// `[p4]`: the engine in the switch.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct P4Spec {
    /// Requests of a set in flight, a power of two: the number of READs that an adapter accepts per queue pair.
    pub in_flight: u32,
    /// From one turn of a set to the next (§5.2: one probe each 2 µs).
    pub turn_ns: u32,
    /// An idle set uses one turn in this many: a power of two.
    pub rest_turns: u32,
    /// Time without an answer after which a set restarts from its last completed request.
    pub timeout_us: u32,
}

impl Default for P4Spec {
    fn default() -> P4Spec {
        P4Spec { in_flight: 16, turn_ns: 2_000, rest_turns: 64, timeout_us: 500 }
    }
}
