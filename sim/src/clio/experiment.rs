//! Experiments with boards of Clio, checked.

use super::costs::{BoardCosts, ComputeCosts, Profile, RdmaCosts, SlowCosts};
use super::memory::SimMemory;
use super::spec::{ClioScheme, ClioSpec, KIND, Load, NetworkScheme, Order};
use crate::experiment::{Check, ExperimentError, parse_toml};
use p4rack_codegen::rack::units::{parse_rate, parse_size};
use p4rack_fabric::clio::board::{Index, Replacement};
use p4rack_wire::clio::PageSize;

/// Maximum hosts.
const HOSTS_MAX: u64 = 64;
/// Maximum threads in all.
const THREADS_MAX: u64 = 1 << 16;
/// Maximum operations under way in a process.
const WINDOW_MAX: u64 = 1 << 12;
/// Maximum processes of a node that share a library, times boards.
const SEATS_MAX: u64 = 1 << 15;
/// Most frames of a memory.
const FRAMES_MAX: u64 = 1 << 24;
/// Bytes of a key of the store.
pub(super) const KEY_BYTES: u32 = 8;
/// Bytes of a call's arguments before key and value.
const CALL_BYTES: u32 = 16;

/// A checked experiment.
#[derive(Clone, Debug)]
pub struct ClioExperiment {
    /// As in the file.
    pub spec: ClioSpec,
    /// Rate of boards' links.
    pub rate_bps: u64,
    /// Rate of compute nodes' links.
    pub compute_bps: u64,
    /// The switch's buffer.
    pub buffer_bytes: u64,
    /// Size of pages.
    pub page_size: PageSize,
    /// How a page's bucket is chosen.
    pub index: Index,
    /// Which entry of the TLB goes.
    pub replacement: Replacement,
    /// Costs of a compute node.
    pub compute: ComputeCosts,
    /// Costs of the fast path.
    pub board: BoardCosts,
    /// Costs of the slow path.
    pub slow: SlowCosts,
    /// Costs of the baselines.
    pub rdma: RdmaCosts,
    /// Whether threads issue requests from outside only, and none of their own.
    pub(super) is_outside: bool,
}

/// The entry of that name, or a mistake.
fn named<T: Copy>(check: &mut Check<'_>, key: &str, name: &str, all: &[(T, &'static str)]) -> Option<T> {
    let found = all.iter().find(|(_, one)| *one == name).map(|(value, _)| *value);
    if found.is_none() {
        let names: Vec<&str> = all.iter().map(|(_, name)| *name).collect();
        check.problem("table", 0, key, format!("there is no `{name}`; write one of {}", names.join(", ")));
    }
    found
}

fn rate(check: &mut Check<'_>, key: &str, text: Option<&String>, default_bps: u64) -> u64 {
    let Some(text) = text else { return default_bps };
    match parse_rate(text) {
        Ok(bps) if (100_000_000..=1_000_000_000_000).contains(&bps) => bps,
        Ok(_) => {
            let message = format!("{text} is out of range; write 100 Mb/s to 1 Tb/s");
            check.problem("network", 0, key, message);
            default_bps
        }
        Err(error) => {
            check.problem("network", 0, key, error);
            default_bps
        }
    }
}

impl ClioExperiment {
    /// Reads and checks an experiment; `file` names it in errors.
    pub fn parse(text: &str, file: &str) -> Result<ClioExperiment, ExperimentError> {
        let spec: ClioSpec = parse_toml(text, file, "docs/clio.md lists the fields")?;
        let mut check = Check { text, file, problems: Vec::new() };
        if spec.kind != KIND {
            check.problem("", 0, "kind", format!("`{}`: write \"{KIND}\"", spec.kind));
        }
        let gbps = 1_000_000_000;
        let [board_bps, compute_bps] = match spec.profile {
            Profile::Fpga => [10 * gbps, 40 * gbps],
            Profile::Asic => [100 * gbps, 100 * gbps],
        };
        let rate_bps = rate(&mut check, "rate", spec.network.rate.as_ref(), board_bps);
        let compute_bps = rate(&mut check, "compute_rate", spec.network.compute_rate.as_ref(), compute_bps);
        let buffer_bytes = parse_size(&spec.network.buffer).unwrap_or_else(|error| {
            check.problem("network", 0, "buffer", error);
            0
        });
        let page_size = named(&mut check, "page_size", &spec.table.page_size, &PageSize::ALL);
        let index = named(&mut check, "index", &spec.table.index, &Index::WITH_ARTIFACT);
        let replacement = named(&mut check, "replacement", &spec.table.replacement, &Replacement::ALL);
        let profile = spec.profile;
        let experiment = ClioExperiment {
            rate_bps,
            compute_bps,
            buffer_bytes,
            page_size: page_size.unwrap_or(PageSize::M4),
            index: index.unwrap_or_default(),
            replacement: replacement.unwrap_or_default(),
            compute: spec.compute.with(profile),
            board: spec.board.with(profile),
            slow: spec.slow.with(profile),
            rdma: spec.rdma.with(profile),
            is_outside: false,
            spec,
        };
        experiment.check(&mut check);
        if check.problems.is_empty() { Ok(experiment) } else { Err(ExperimentError(check.problems)) }
    }

    fn check(&self, check: &mut Check<'_>) {
        let spec = &self.spec;
        let mut range = |table: &str, key: &str, value: u64, least: u64, most: u64| {
            if !(least..=most).contains(&value) {
                check.problem(table, 0, key, format!("{value} is out of range; write {least} to {most}"));
            }
        };
        let (nodes, boards) = (u64::from(spec.compute_nodes), u64::from(spec.boards));
        range("", "compute_nodes", nodes, 1, HOSTS_MAX - 1);
        range("", "boards", boards, 1, HOSTS_MAX.saturating_sub(nodes).max(1));
        range("", "processes", spec.processes.into(), 1, (THREADS_MAX / nodes.max(1)).clamp(1, 1 << 14));
        let threads_max = THREADS_MAX / (nodes * u64::from(spec.processes)).clamp(1, THREADS_MAX);
        range("", "threads", spec.threads.into(), 1, threads_max.min(WINDOW_MAX));
        range("", "window", spec.window.into(), 1, WINDOW_MAX / u64::from(spec.threads).clamp(1, WINDOW_MAX));
        range("", "operations", spec.operations, 1, 100_000_000);
        range("", "warmup", spec.warmup, 0, 100_000_000);
        let most = match spec.load {
            Load::Accesses => self.page_size.bytes().min(1 << 24),
            Load::Kv => (spec.network.packet_bytes.saturating_sub(CALL_BYTES + KEY_BYTES)).into(),
            Load::Allocations | Load::Fill => 1 << 44,
        };
        range("", "bytes", spec.bytes, if spec.load == Load::Kv { 8 } else { 1 }, most);
        let processes = nodes * u64::from(spec.processes);
        let pages_max = FRAMES_MAX / processes.max(1);
        range("", "pages", spec.pages, 1, pages_max.clamp(1, self.page_size.pages_max()));
        range("", "regions", spec.regions, 0, 1 << 32);
        range("", "keys", spec.keys.into(), 1, 1 << 24);
        range(
            "network",
            "packet_bytes",
            spec.network.packet_bytes.into(),
            64,
            if spec.network.direct { 65_000 } else { 1_424 },
        );
        range("table", "spare_percent", spec.table.spare_percent.into(), 0, 100);
        range("table", "tlb_entries", spec.table.tlb_entries.into(), 0, 1 << 20);
        range("table", "free_pages", spec.table.free_pages.into(), 1, 1 << 16);
        range("clib", "timeout_us", spec.clib.timeout_us.into(), 1, 1_000_000);
        range("clib", "timeout_max_us", spec.clib.timeout_max_us.into(), 1, 1_000_000);
        range("clib", "slow_timeout_us", spec.clib.slow_timeout_us.into(), 1, 1_000_000);
        range("clib", "retries", spec.clib.retries.into(), 0, 16);
        range("clib", "target_us", spec.clib.target_us.into(), 0, 10_000_000);
        range("clib", "cwnd_start", spec.clib.cwnd_start.into(), 1, spec.clib.cwnd_max.max(1).into());
        range("clib", "cwnd_max", spec.clib.cwnd_max.into(), 1, 1 << 20);
        range("fill", "frames", spec.fill.frames.into(), 1, FRAMES_MAX);
        range("fill", "pages", spec.fill.pages.into(), 1, spec.fill.frames.max(1).into());
        range("fill", "processes", spec.fill.processes.into(), 1, 1 << 10);
        range("fill", "percent", spec.fill.percent.into(), 1, 100);
        range("fill", "churn", spec.fill.churn.into(), 0, 10_000_000);
        range("fill", "boards", spec.fill.boards.into(), 1, 1_000);
        for (table, costs) in [
            ("compute", self.compute.ranges()),
            ("board", self.board.ranges()),
            ("slow", self.slow.ranges()),
            ("rdma", self.rdma.ranges()),
        ] {
            costs.into_iter().for_each(|(key, value, least, most)| range(table, key, value, least, most));
        }
        if ![4, 8, 16].contains(&spec.table.bucket_slots) {
            let message = format!("{} is no size of a bucket; write 4, 8 or 16", spec.table.bucket_slots);
            check.problem("table", 0, "bucket_slots", message);
        }
        if !(0.0..=100.0).contains(&spec.write_percent) {
            check.problem(
                "",
                0,
                "write_percent",
                format!("{} is out of range; write 0 to 100", spec.write_percent),
            );
        }
        if !(0.0..1.0).contains(&spec.zipf) {
            check.problem("", 0, "zipf", format!("{} is out of range; write 0 to 0.999", spec.zipf));
        }
        // A library has this many requests, and as many seats.
        let together = u64::from(self.processes_together());
        let requests = together * u64::from(spec.threads) * u64::from(spec.window);
        if together > 1 && (requests > WINDOW_MAX || together * boards > SEATS_MAX) {
            let message = format!(
                "has a node's {together} processes share a library of {WINDOW_MAX} requests and {SEATS_MAX} processes × boards: have fewer, or write shared = false"
            );
            check.problem("clib", 0, "shared", message);
        }
        if spec.order != Order::Together && spec.window > 1 {
            check.problem("", 0, "order", "lets one operation of a node be under way: leave window out");
        }
        if spec.scheme == ClioScheme::Clio && spec.load != Load::Fill {
            self.check_memory(check);
        }
        if spec.load == Load::Fill && spec.scheme != ClioScheme::Clio {
            check.problem("", 0, "load", "fills the table of a board: leave scheme out");
        }
        if spec.network.direct && (nodes, boards) != (1, 1) {
            check.problem(
                "network",
                0,
                "direct",
                "joins one compute node and one board: leave compute_nodes and boards out",
            );
        }
        if spec.network.direct && spec.network.scheme != NetworkScheme::L2 {
            check.problem("network", 0, "direct", "has no network: leave scheme out");
        }
        let named = self.hosts().min(HOSTS_MAX as usize);
        let names: Vec<String> = (0..named).map(|host| self.name_of(host)).collect();
        check.link(&spec.link, 0.1, |name| {
            let is_known = names.iter().any(|known| known == name);
            (!is_known).then(|| format!("`{name}` is no host; there are {}", names.join(", ")))
        });
    }

    /// Checks that a board's memory suffices for a run.
    fn check_memory(&self, check: &mut Check<'_>) {
        let frames = self.frames();
        if frames > FRAMES_MAX {
            let (key, help) = match self.spec.load {
                Load::Kv => ("keys", "write fewer, or smaller values, or let pages be larger"),
                _ => ("operations", "write fewer, or a smaller warmup or bytes, or let pages be larger"),
            };
            check.problem(
                "",
                0,
                key,
                format!("take {frames} pages of a board, which has at most {FRAMES_MAX}; {help}"),
            );
        } else if self.spec.load == Load::Kv && !SimMemory::keeps(frames * self.page_size.bytes()) {
            let message =
                "take more memory than a run keeps the contents of; write fewer, smaller values or pages";
            check.problem("", 0, "keys", message);
        }
    }

    /// Number of hosts: first the compute nodes, then the boards.
    pub(super) fn hosts(&self) -> usize {
        usize::from(self.spec.compute_nodes) + usize::from(self.spec.boards)
    }

    /// A host's name: c1, c2, … for compute nodes, m1, m2, … for boards.
    pub(super) fn name_of(&self, host: usize) -> String {
        match host.checked_sub(self.spec.compute_nodes.into()) {
            None => format!("c{}", host + 1),
            Some(board) => format!("m{}", board + 1),
        }
    }

    /// Processes that use one library, and so have its windows together.
    pub(super) fn processes_together(&self) -> u16 {
        match self.spec.scheme {
            ClioScheme::Clio if self.spec.clib.shared => self.spec.processes,
            _ => 1,
        }
    }

    /// Memory regions of a process of a baseline, or of the store that all processes share.
    pub(super) fn regions(&self) -> u64 {
        match self.spec.regions {
            0 if self.spec.load == Load::Kv => self.model_store_pages(),
            0 => self.spec.pages,
            regions => regions,
        }
    }

    /// Memory regions of a memory node of a baseline.
    pub(super) fn all_regions(&self) -> u64 {
        let processes = u64::from(self.spec.compute_nodes) * u64::from(self.spec.processes);
        if self.spec.load == Load::Kv { self.regions() } else { processes * self.regions() }
    }

    /// Pages of a baseline's store.
    pub(super) fn model_store_pages(&self) -> u64 {
        (u64::from(self.spec.keys) * self.spec.bytes).div_ceil(self.rdma.page_bytes)
    }

    /// Rate of a host's link.
    pub(super) fn rate_of(&self, host: usize) -> u64 {
        if host < usize::from(self.spec.compute_nodes) { self.compute_bps } else { self.rate_bps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &str) -> Result<ClioExperiment, String> {
        let text = format!("name = \"c\"\nkind = \"clio\"\n{lines}");
        ClioExperiment::parse(&text, "c.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn a_profile_gives_rates_and_costs() {
        let fpga = parse("").unwrap();
        assert_eq!(
            (fpga.rate_bps, fpga.compute_bps, fpga.board.clock_ps),
            (10_000_000_000, 40_000_000_000, 4_000)
        );
        let asic =
            parse("profile = \"asic\"\n[network]\nrate = \"50 Gb/s\"\n[board]\nclock_ps = 700").unwrap();
        assert_eq!(
            (asic.rate_bps, asic.compute_bps, asic.board.clock_ps),
            (50_000_000_000, 100_000_000_000, 700)
        );
        assert_eq!((asic.name_of(0), asic.name_of(1)), ("c1".to_owned(), "m1".to_owned()));
    }

    #[test]
    fn mistakes_name_the_field() {
        for (lines, says) in [
            ("compute_nodes = 60000\nboards = 60000", "compute_nodes: 60000 is out of range; write 1 to 63"),
            ("compute_nodes = 0", "c.toml:3: compute_nodes: 0 is out of range; write 1 to 63"),
            ("boards = 80", "boards: 80 is out of range; write 1 to 63"),
            ("window = 5000", "window: 5000 is out of range"),
            ("threads = 4097", "threads: 4097 is out of range; write 1 to 4096"),
            ("threads = 64\nwindow = 65", "window: 65 is out of range; write 1 to 64"),
            ("compute_nodes = 63\nprocesses = 16384", "processes: 16384 is out of range; write 1 to 1040"),
            (
                "processes = 1024\nwindow = 5",
                "[clib] shared: has a node's 1024 processes share a library of 4096 requests and 32768 processes × boards: have fewer",
            ),
            (
                "order = \"turns\"\nwindow = 2",
                "order: lets one operation of a node be under way: leave window out",
            ),
            (
                "load = \"allocations\"\nbytes = 1073741824\n[table]\npage_size = \"4K\"",
                "operations: take 5505286144 pages of a board, which has at most 16777216; write fewer",
            ),
            (
                "load = \"kv\"\nkeys = 16777216\nbytes = 1024",
                "keys: take more memory than a run keeps the contents of",
            ),
            ("[rdma]\nregister_page_ns = 1000001", "[rdma] register_page_ns: 1000001 is out of range"),
            ("[board]\noffload_units = 0", "[board] offload_units: 0 is out of range; write 1 to 1024"),
            ("bytes = 0", "bytes: 0 is out of range"),
            ("load = \"kv\"\nbytes = 1500", "bytes: 1500 is out of range; write 8 to 1400"),
            ("write_percent = 101.0", "write_percent: 101 is out of range"),
            ("zipf = 1.0", "zipf: 1 is out of range"),
            ("pages = 20000000", "pages: 20000000 is out of range"),
            (
                "profile = \"gpu\"",
                "unknown variant `gpu`, expected `fpga` or `asic`; docs/clio.md lists the fields",
            ),
            ("[network]\nrate = \"10 GB\"", "c.toml:4: [network] rate: "),
            ("[network]\nrate = \"1 b/s\"", "[network] rate: 1 b/s is out of range"),
            (
                "[network]\npacket_bytes = 2000",
                "[network] packet_bytes: 2000 is out of range; write 64 to 1424",
            ),
            ("boards = 2\n[network]\ndirect = true", "[network] direct: joins one compute node"),
            ("[table]\nbucket_slots = 5", "[table] bucket_slots: 5 is no size of a bucket; write 4, 8 or 16"),
            ("[table]\npage_size = \"3M\"", "[table] page_size: there is no `3M`; write one of 4K, "),
            ("[table]\nindex = \"hash\"", "[table] index: there is no `hash`; write one of mixed, salted"),
            ("[board]\nclock_ps = 1", "[board] clock_ps: 1 is out of range; write 100 to 1000000"),
            ("[board]\nclock_ns = 1", "unknown field `clock_ns`"),
            ("[slow]\nstep_ns = 0", "[slow] step_ns: 0 is out of range"),
            ("[rdma]\ncores = 0", "[rdma] cores: 0 is out of range; write 1 to 256"),
            ("[clib]\ncwnd_start = 9\ncwnd_max = 8", "[clib] cwnd_start: 9 is out of range; write 1 to 8"),
            ("[fill]\npercent = 0", "[fill] percent: 0 is out of range"),
            ("load = \"fill\"\nscheme = \"rdma\"", "load: fills the table of a board"),
            ("[link]\nhosts = [\"h1\"]\nloss = 0.01", "`h1` is no host; there are c1, m1"),
        ] {
            let error = parse(lines).map(|_| ()).unwrap_err();
            assert!(error.contains(says), "{lines}: {error}");
        }
    }
}
