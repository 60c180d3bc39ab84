//! Experiments with boards of Clio: the fields of the file.

use super::costs::{BoardSpec, ComputeSpec, Profile, RdmaSpec, SlowSpec};
use crate::experiment::{LinkSpec, PaperSpec};
use serde::{Deserialize, Serialize};

/// `kind` of such a file.
pub const KIND: &str = "clio";

/// Fields of the file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ClioSpec {
    /// Name of the experiment.
    pub name: String,
    /// `clio`.
    pub kind: String,
    /// How compute nodes reach memory.
    #[serde(default)]
    pub scheme: ClioScheme,
    /// Default times.
    #[serde(default)]
    pub profile: Profile,
    /// The load.
    #[serde(default)]
    pub load: Load,
    /// Seed of addresses, keys and losses.
    #[serde(default = "one")]
    pub seed: u64,
    /// Compute nodes.
    #[serde(default = "one_u16")]
    pub compute_nodes: u16,
    /// Boards, or memory nodes of a baseline. Operations of a thread go to them in turn.
    #[serde(default = "one_u16")]
    pub boards: u16,
    /// Processes of a compute node, each with an address space of its own, or queue pairs.
    #[serde(default = "one_u16")]
    pub processes: u16,
    /// Threads of a process.
    #[serde(default = "one_u16")]
    pub threads: u16,
    /// Operations of a thread under way.
    #[serde(default = "one_u16")]
    pub window: u16,
    /// Which threads of a compute node act.
    #[serde(default)]
    pub order: Order,
    /// Operations that write, in percent; the others read.
    #[serde(default)]
    pub write_percent: f64,
    /// Bytes of an access, a value, or an allocation.
    #[serde(default = "sixteen")]
    pub bytes: u64,
    /// Pages of each process at each board, from which accesses draw.
    #[serde(default = "one")]
    pub pages: u64,
    /// Baselines: memory regions of each process, over which its pages are spread; 0: one for each page.
    #[serde(default = "one")]
    pub regions: u64,
    /// How accesses choose their page.
    #[serde(default)]
    pub walk: Walk,
    /// Whether pages have memory before the run. Otherwise the first access to each is a page fault.
    #[serde(default = "yes")]
    pub touched: bool,
    /// Operations before measuring.
    #[serde(default = "warmup")]
    pub warmup: u64,
    /// Operations that are measured.
    #[serde(default = "operations")]
    pub operations: u64,
    /// With `load = "kv"`: keys.
    #[serde(default = "keys")]
    pub keys: u32,
    /// With `load = "kv"`: exponent of the keys' popularity.
    #[serde(default = "zipf")]
    pub zipf: f64,
    /// Links and the switch.
    #[serde(default)]
    pub network: NetworkSpec,
    /// Delays and faults of links.
    #[serde(default, skip_serializing_if = "LinkSpec::is_plain")]
    pub link: LinkSpec,
    /// Page table and TLB.
    #[serde(default)]
    pub table: TableSpec,
    /// The client library.
    #[serde(default)]
    pub clib: ClibSpec,
    /// With `load = "fill"`: how a memory fills.
    #[serde(default)]
    pub fill: FillSpec,
    /// Costs of a compute node.
    #[serde(default)]
    pub compute: ComputeSpec,
    /// Costs of the fast path.
    #[serde(default)]
    pub board: BoardSpec,
    /// Costs of the slow path.
    #[serde(default)]
    pub slow: SlowSpec,
    /// Costs of the baselines.
    #[serde(default)]
    pub rdma: RdmaSpec,
    /// The paper's figures.
    #[serde(default)]
    pub paper: Vec<PaperSpec>,
}

/// How compute nodes reach memory.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ClioScheme {
    /// Clio: the board and the client library that run on hosts.
    #[default]
    Clio,
    /// One-sided RDMA, modelled.
    Rdma,
    /// Two-sided RDMA, modelled: cores of the memory node serve requests, as HERD's.
    RdmaTwoSided,
    /// One-sided RDMA whose writes take two round trips, modelled, as Clover's.
    TwoRoundTrips,
}

impl ClioScheme {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            ClioScheme::Clio => "clio",
            ClioScheme::Rdma => "rdma",
            ClioScheme::RdmaTwoSided => "rdma-two-sided",
            ClioScheme::TwoRoundTrips => "two-round-trips",
        }
    }
}

/// The load.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Reads and writes.
    #[default]
    Accesses,
    /// Allocations, or registrations of memory regions.
    Allocations,
    /// Allocations until a board's memory is full; no rack, no time.
    Fill,
    /// Reads and updates of a key-value store: of Clio-KV at the board.
    Kv,
}

/// Which threads of a compute node act.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All at the same time.
    #[default]
    Together,
    /// One after the other, each as many operations in a row as its share.
    Turns,
    /// One at a time, another one at random for each operation.
    Random,
}

/// How accesses choose their page.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Walk {
    /// Uniformly at random.
    #[default]
    Random,
    /// Each the next one.
    Sequential,
}

/// `[network]`: links and the switch.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSpec {
    /// The protocol of hosts and switch: `l2`, `pl2-clock` or `pl2-counter`.
    pub scheme: NetworkScheme,
    /// Rate of boards' links. Default: 10 Gb/s for `fpga` (paper §5), 100 Gb/s for `asic`.
    pub rate: Option<String>,
    /// Rate of compute nodes' links. Default: 40 Gb/s for `fpga` (paper §7: ConnectX-3), 100 Gb/s for `asic`.
    pub compute_rate: Option<String>,
    /// A cable, one way. Assumed: 2 m.
    pub link_ns: u32,
    /// The switch's pipeline. Assumed: as switches of that time.
    pub switch_ns: u32,
    /// The switch's shared buffer.
    pub buffer: String,
    /// Data bytes of a packet.
    pub packet_bytes: u32,
    /// No links and no switch: requests enter the board as fast as it takes them.
    pub direct: bool,
}

impl Default for NetworkSpec {
    fn default() -> NetworkSpec {
        NetworkSpec {
            scheme: NetworkScheme::L2,
            rate: None,
            compute_rate: None,
            link_ns: 10,
            switch_ns: 220,
            buffer: "2 MiB".into(),
            packet_bytes: p4rack_wire::clio::packet::DATA_BYTES_MAX,
            direct: false,
        }
    }
}

/// The protocol of hosts and switch.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkScheme {
    /// Plain Ethernet.
    #[default]
    L2,
    /// PL2 with clocks.
    Pl2Clock,
    /// PL2 with counters.
    Pl2Counter,
}

/// `[table]`: page table and TLB.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TableSpec {
    /// Size of pages: 4K, 64K, 2M, 4M, 16M, 64M, 1G.
    pub page_size: String,
    /// Slots of a bucket: 4, 8 or 16.
    pub bucket_slots: u32,
    /// Slots beyond one per frame, in percent.
    pub spare_percent: u32,
    /// How a page's bucket is chosen: `mixed` (the paper's) or `salted`.
    pub index: String,
    /// Entries of the TLB (artifact: 64).
    pub tlb_entries: u32,
    /// Which entry goes: `lru` (the paper's) or `fifo` (the artifact's).
    pub replacement: String,
    /// Frames that are zeroed ahead (artifact: a FIFO of 32).
    pub free_pages: u32,
}

impl Default for TableSpec {
    fn default() -> TableSpec {
        TableSpec {
            page_size: "4M".into(),
            bucket_slots: 16,
            spare_percent: 100,
            index: "salted".into(),
            tlb_entries: 64,
            replacement: "lru".into(),
            free_pages: 32,
        }
    }
}

/// `[clib]`: the client library.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClibSpec {
    /// TIMEOUT; 4 mean delays if that is longer (paper §4.5: 8 µs).
    pub timeout_us: u32,
    /// The longest TIMEOUT. Assumed: windows let 5 µs of queues build up per node, so it has to be far above.
    pub timeout_max_us: u32,
    /// TIMEOUT of calls of the slow path. Assumed: several times the time of one.
    pub slow_timeout_us: u32,
    /// Retries after losses (paper: 2).
    pub retries: u8,
    /// Delay in queues up to which the congestion window grows (artifact: 5 µs).
    pub target_us: u32,
    /// The first congestion window, in packets.
    pub cwnd_start: u32,
    /// The largest congestion window, in packets (artifact: 4096).
    pub cwnd_max: u32,
    /// Whether the incast window limits the bytes of answers that are expected.
    pub incast: bool,
    /// Whether operations depend on each other by bytes instead of by pages.
    pub by_bytes: bool,
    /// Whether the processes of a node share its windows (paper §4.4: a window for each node and board); otherwise each has its own.
    pub shared: bool,
}

impl Default for ClibSpec {
    fn default() -> ClibSpec {
        ClibSpec {
            timeout_us: 8,
            timeout_max_us: 200,
            slow_timeout_us: 400,
            retries: 2,
            target_us: 5,
            cwnd_start: 1,
            cwnd_max: 4_096,
            incast: true,
            by_bytes: false,
            shared: true,
        }
    }
}

/// `[fill]`: allocations until a memory is full.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct FillSpec {
    /// Frames of the memory (paper: 1 TB in pages of 4 MB).
    pub frames: u32,
    /// Pages of an allocation.
    pub pages: u32,
    /// Processes that allocate in turn.
    pub processes: u16,
    /// How much of the memory is allocated.
    pub percent: u32,
    /// Ranges that are freed and allocated again at the end.
    pub churn: u32,
    /// Boards that are filled, each with another hash; results are their means.
    pub boards: u16,
}

impl Default for FillSpec {
    fn default() -> FillSpec {
        FillSpec { frames: 1 << 18, pages: 1, processes: 1, percent: 100, churn: 0, boards: 1 }
    }
}

fn one() -> u64 {
    1
}
fn one_u16() -> u16 {
    1
}
fn sixteen() -> u64 {
    16
}
fn yes() -> bool {
    true
}
fn warmup() -> u64 {
    1_000
}
fn operations() -> u64 {
    20_000
}
fn keys() -> u32 {
    100_000
}
fn zipf() -> f64 {
    0.99
}
