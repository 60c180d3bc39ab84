//! Results of a run, as `up` prints them.

use crate::workload::Timeline;
use crate::workload::rpc::ValueReport;
use p4rack_codegen::rack::{Cache, Log, Run, WorkloadKind};
use p4rack_codegen::scheme::PROTOCOLS;
use p4rack_codegen::{Arch, Scheme};
use p4rack_fabric::remote::Way;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod cached;

pub use cached::{CacheResult, Takeover};

/// Version of the JSON format.
pub const VERSION: u32 = 1;

/// Results of a whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Version of the format, [`VERSION`].
    pub version: u32,
    /// Name of the rack.
    pub rack: String,
    /// Seed of the run.
    pub seed: u64,
    /// Duration of the measured window.
    pub duration_s: f64,
    /// TCP congestion control in the hosts' namespaces.
    pub tcp: String,
    /// Results per scheme, in the order in which they ran.
    pub schemes: Vec<SchemeResult>,
    /// Runs that did not take place, because a program is missing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub skipped: Vec<Skipped>,
    /// The same rack and workload in virtual time, if asked for: results per scheme.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub simulated: Vec<SchemeResult>,
    /// Broken promises, in words.
    pub failures: Vec<String>,
    /// All promises with the measured figures.
    pub promises: Vec<Promise>,
    /// Parameters to which the figures relate.
    pub setting: Setting,
    /// The machine.
    pub machine: Machine,
    /// The command that repeats the run.
    pub command: String,
}

impl Results {
    /// Results with the names of their columns: each scheme's, and beside it the simulated ones.
    pub fn columns(&self) -> Vec<(String, &SchemeResult)> {
        let mut columns = Vec::new();
        for scheme in &self.schemes {
            columns.push((scheme.name.clone(), scheme));
            let simulated = self.simulated.iter().filter(|simulated| simulated.name == scheme.name);
            columns.extend(simulated.map(|simulated| ("simulated".to_owned(), simulated)));
        }
        columns
    }

    /// Conditions of the figures beside the rack, in words.
    pub fn context(&self) -> String {
        let mut context = self.machine.context();
        if self.setting.icrc_ignored {
            context.push_str("; no adapter checked iCRCs, which a switch that rewrites frames can't compute");
        }
        context
    }

    /// The figures as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers, strings and maps with string keys")
    }
}

/// A run that did not take place, because a program is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Name of the run.
    pub name: String,
    /// The program.
    pub needs: String,
    /// A command that installs it.
    pub get_it_by: String,
}

impl Skipped {
    /// In words.
    pub fn sentence(&self) -> String {
        format!("{} skipped: needs {}, get it by: {}", self.name, self.needs, self.get_it_by)
    }
}

/// Parameters of the rack and the workload that promises and plots need.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// Shape of the workload.
    pub kind: WorkloadKind,
    /// Rate of the link that all traffic shares.
    pub port_rate_bps: u64,
    /// A full frame in a queue: with VLAN tag, FCS, and shim if enabled.
    pub mtu_frame_bytes: u64,
    /// Size of the switch's shared buffer.
    pub buffer_bytes: u64,
    /// Architecture of the switch's program.
    #[serde(default)]
    pub arch: Arch,
    /// Maximum slots of a reservation.
    pub k: u32,
    /// The host whose link all traffic shares: the incast's receiver, the outcast's sender, the store's server.
    pub one: String,
    /// The others: the incast's senders, the outcast's receivers, the store's clients.
    pub many: Vec<String>,
    /// Bulk traffic beside the store's clients, if there is some.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bulk: Option<Bulk>,
    /// Host of the client that reads values, if one does.
    #[serde(default)]
    pub client: Option<String>,
    /// Offered load, in percent of the port rate.
    pub load_percent: u32,
    /// Time before the window, which is not measured.
    pub warm_up_s: f64,
    /// Whether RDMA's adapters accept frames with any iCRC, in all runs alike.
    #[serde(default)]
    pub icrc_ignored: bool,
    /// Operations of a store's client under way, where more than one may be.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<u32>,
    /// Parameters of a log store.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub log: Option<Log>,
    /// Parameters of cached regions for stores.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cache: Option<Cache>,
    /// Number of switches, each with a link to each host.
    #[serde(skip_serializing_if = "is_one", default = "one")]
    pub tors: u16,
}

fn one() -> u16 {
    1
}

fn is_one(tors: &u16) -> bool {
    *tors == 1
}

/// Bulk traffic beside a store's clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bulk {
    /// Host that writes.
    pub host: String,
    /// Full frames that the programs have under way towards the server at most: an operation of each client, and the bulk
    /// host's writes.
    pub frames_under_way: u64,
}

/// The machine on which it ran.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Number of CPUs that the run could use.
    pub cpus: usize,
    /// Model of the CPUs.
    pub cpu_model: String,
    /// Load average of the last minute, before the run and after it; `None` if the kernel did not say. The run's own
    /// load is included.
    #[serde(default)]
    pub load: [Option<f64>; 2],
    /// Cargo's profile of this program: `release`, or a slower profile.
    #[serde(default)]
    pub profile: String,
}

impl Machine {
    /// Describes this machine before a run.
    pub fn here() -> Machine {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let cpu_info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu_info.lines().find(|line| line.starts_with("model name"));
        Machine {
            kernel: kernel.trim().to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            cpu_model: model.and_then(|line| line.split_once(": ")).map_or("", |(_, name)| name).to_owned(),
            load: [load(); 2],
            profile: env!("P4RACK_PROFILE").to_owned(),
        }
    }

    /// Adds what it is like after the run.
    pub fn after(self) -> Machine {
        Machine { load: [self.load[0], load()], ..self }
    }

    /// Conditions of the figures beside the rack: all of its parties share the machine.
    pub fn context(&self) -> String {
        let cores = if self.cpus == 1 { "1 core".to_owned() } else { format!("{} cores", self.cpus) };
        let [before, after] =
            self.load.map(|load| load.map_or_else(|| "unknown".to_owned(), |load| format!("{load:.1}")));
        format!(
            "switch, hosts and programs shared {cores}; load average {before} before, {after} after; {} build",
            self.profile
        )
    }
}

/// Load average of the last minute, if the kernel says it.
pub fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Figures of a scheme.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SchemeResult {
    /// The scheme's name, or with a log store that of the way to older records.
    pub name: String,
    /// Ethernet payload that the senders offered.
    pub offered_bps: u64,
    /// Ethernet payload that the receivers' applications got from their agents.
    pub goodput_bps: u64,
    /// Maximum that the scheme could deliver.
    pub goodput_ceiling_bps: u64,
    /// Frames lost in switch and links, except unsolicited ones over t or T.
    pub fabric_drops: u64,
    /// Unsolicited frames dropped: the waits of their own reservation exceeded t, or reservations for their
    /// destination exceeded T.
    pub unsolicited_drops: u64,
    /// Frames lost in the hosts: agents' queues, TAP queues, sockets.
    pub host_drops: u64,
    /// All lost frames by place and reason, without zeros.
    pub drops: BTreeMap<String, u64>,
    /// Frames that went from pipe to pipe of a chip, from the start of the window on; absent where hosts are in one pipe.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub crossings: Option<u64>,
    /// Maximum depth of the fullest receiver's queue in the switch, with FCS.
    pub queue_max_bytes: u64,
    /// Depth not exceeded for 99.9 % of the time.
    pub queue_p999_bytes: u64,
    /// Latencies of requests to the congested host, by value size.
    pub rpc: Vec<ValueReport>,
    /// Figures of the store, if that is the workload.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub store: Option<StoreResult>,
    /// Goodput of the incast by sender, of the outcast by receiver.
    pub goodput_by_host_bps: BTreeMap<String, u64>,
    /// Figures of the kill of a sender.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub host_kill: Option<HostKill>,
    /// Figures of the kill of one of two switches.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tor_kill: Option<TorKill>,
    /// Congestion control of the request connections, as the kernel reports it.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub tcp: String,
    /// Series for the plots.
    #[serde(skip)]
    pub series: Series,
}

impl SchemeResult {
    /// The way to a store's remote memory, if it has one.
    pub fn way(&self) -> Option<Way> {
        let run: Run = self.name.parse().ok()?;
        run.way.or_else(|| run.scheme.way())
    }

    /// Figures of the store under the mix with this label.
    pub fn mix_of(&self, label: &str) -> Option<&MixResult> {
        self.store.as_ref()?.mixes.iter().find(|figures| figures.label() == label)
    }

    /// Figures of one value size.
    pub fn rpc_of(&self, value_bytes: u32) -> Option<&ValueReport> {
        self.rpc.iter().find(|value| value.value_bytes == value_bytes)
    }

    /// Whether the switch schedules anything.
    pub fn is_scheduled(&self) -> bool {
        let mut scheduling = PROTOCOLS.iter().filter(|protocol| protocol.schedules());
        self.name.parse::<Scheme>().is_ok_and(|scheme| scheduling.any(|protocol| scheme.runs(*protocol)))
    }

    /// Whether applications' frames have reserved time.
    pub fn reserves_for_frames(&self) -> bool {
        let mut reserving = PROTOCOLS.iter().filter(|protocol| protocol.reserves_for_frames());
        self.name.parse::<Scheme>().is_ok_and(|scheme| reserving.any(|protocol| scheme.runs(*protocol)))
    }
}

/// Figures of a store, of all clients together.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StoreResult {
    /// Operations per second that ended well.
    pub ops_per_s: f64,
    /// 50th percentile of their latency.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Reads of remote memory for each operation, of a log store.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cold_share: Option<f64>,
    /// Processor time of a client's thread for each operation, kernel included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread_cpu_ns: Option<f64>,
    /// The servers' processor time per operation, kernel included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_cpu_ns: Option<f64>,
    /// Its resident memory after the first quarter of the window, and at its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server_resident_bytes: Option<[u64; 2]>,
    /// Rate at which bulk traffic beside the clients left its host, if there was some.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bulk_bps: Option<u64>,
    /// Operations without an answer, and confirmed writes that were not there at the end or that another one had replaced
    /// unseen.
    pub lost: u64,
    /// Answers and records that were never written, and answers older than what the same client had seen before.
    pub wrong: u64,
    /// Figures of the kill of a client whose extents another client could get.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub takeover: Option<Takeover>,
    /// The same by mix, and in cached regions by local memory and mix.
    pub mixes: Vec<MixResult>,
}

/// Figures of a store under one mix of operations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MixResult {
    /// YCSB's name of the mix.
    pub mix: String,
    /// Operations per second that ended well.
    pub ops_per_s: f64,
    /// 50th percentile of their latency.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Reads of remote memory for each operation, of a log store.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cold_share: Option<f64>,
    /// Processor time of a client's thread for each operation, kernel included.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub thread_cpu_ns: Option<f64>,
    /// Operations without an answer.
    pub lost: u64,
    /// Wrong answers.
    pub wrong: u64,
    /// Counters of the regions, for stores in cached regions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cache: Option<CacheResult>,
    /// Points of the latency's distribution: µs, share of operations at or below it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub cdf: Vec<(f64, f64)>,
}

impl MixResult {
    /// The mix, and the local memory where there are several: `B`, or `B, 50 %`.
    pub fn label(&self) -> String {
        match &self.cache {
            Some(cache) => format!("{}, {} %", self.mix, cache.local_percent),
            None => self.mix.clone(),
        }
    }
}

/// Effects on the others after a sender was killed with unused grants.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HostKill {
    /// Name of the killed host.
    pub host: String,
    /// Goodput of the other senders in the two seconds before.
    pub others_before_bps: u64,
    /// Mean from the kill to the end of the run.
    pub others_after_bps: u64,
    /// Minimum mean over 300 ms from the kill on, up to the reset if there is one.
    pub others_min_bps: u64,
    /// Time from the kill to the reset of the scheduler's state.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reset_after_ms: Option<u64>,
    /// Time from the reset until the others had 80 % of their goodput again; `None` if never.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recovered_after_ms: Option<u64>,
    /// Frames lost in the fabric from the kill to the end, except unsolicited ones over t or T.
    pub fabric_drops: u64,
    /// The same by reason, without zeros.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
}

/// Effects of the kill of one of two switches while the workload ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TorKill {
    /// The switch, from 1.
    pub tor: u16,
    /// Time from the start of the window to the kill.
    pub after_ms: u64,
    /// Longest time without progress in the whole run: of a store, the longest operation of a client; else the longest time
    /// between two frames from one sender, or from its last one to the end.
    pub longest_ms: f64,
    /// Frames that applications got twice; `None` where EDM's nodes, not the agents, exchange the data.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub doubled: Option<u64>,
}

/// Series over time for the plots. Times are relative to the start of the traffic.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Depth of the congested queue in bytes over nanoseconds.
    pub queue: Vec<(u64, u64)>,
    /// Goodput by sender.
    pub goodput: BTreeMap<String, Timeline>,
    /// Start and end of the measured window.
    pub window_ns: (u64, u64),
    /// When a host was killed.
    pub kill_ns: Option<u64>,
    /// When the scheduler's state was reset.
    pub reset_ns: Option<u64>,
}

/// A promise and its result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Promise {
    /// Scheme that it is about.
    pub scheme: String,
    /// The promise.
    pub what: String,
    /// The limit, in words.
    pub promised: String,
    /// The figure, in words.
    pub measured: String,
    /// Whether it was kept.
    pub holds: bool,
}

impl Promise {
    /// The promise as a sentence for `failures`.
    pub fn sentence(&self) -> String {
        format!("{}: {}: measured {}, promised {}", self.scheme, self.what, self.measured, self.promised)
    }
}

#[cfg(test)]
pub(crate) mod tests;
