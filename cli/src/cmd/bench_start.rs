//! `p4rack bench start`: how long topologies take to run and to be gone, and what memory they take.
//!
//! Every leaf has a link to every spine. Host N has the subnet 10.0.N.0/24, and each leaf reaches it by the same spine.

use super::bmv2;
use p4rack_codegen::topology::Target;
use p4rack_lab::bmv2::Bmv2;
use p4rack_lab::process::own_binary;
use p4rack_lab::results::load;
use p4rack_lab::rows::Rows;
use p4rack_lab::state::{KeptRack, Runtime};
use p4rack_lab::sys;
use p4rack_netdev::process;
use p4rack_wire::quantiles;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

/// The program of all switches.
const ROUTE: &str = include_str!("../../../examples/pod/route.p4");
/// Name of the topology.
const NAME: &str = "start";

/// Arguments of `p4rack bench start`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Size of a topology: its leaves, spines and hosts, for example 2,2,6; may be repeated
    #[arg(long, value_name = "LEAVES,SPINES,HOSTS", default_values = ["2,2,6", "4,4,16", "16,4,16"])]
    size: Vec<Size>,
    /// Times that each is started; medians are reported
    #[arg(long, default_value_t = 5, value_parser = crate::numbers::within::<usize>(1..=1000))]
    rounds: usize,
    /// Also start the same topologies with BMv2's simple_switch_grpc, in turn; it must be on PATH
    #[arg(long)]
    beside_bmv2: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Numbers of leaves, spines and hosts.
#[derive(Clone, Copy, Debug, Serialize)]
struct Size {
    leaves: usize,
    spines: usize,
    hosts: usize,
}

impl FromStr for Size {
    type Err = String;
    fn from_str(text: &str) -> Result<Size, String> {
        let numbers: Option<Vec<usize>> = text.split(',').map(|number| number.parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[leaves @ 1..=64, spines @ 1..=64, hosts @ 1..=200]) => Ok(Size { leaves, spines, hosts }),
            _ => Err(
                "write LEAVES,SPINES,HOSTS: up to 64 leaves, 64 spines and 200 hosts, at least one of each"
                    .to_owned(),
            ),
        }
    }
}

/// Figures of a size with one kind of switch.
#[derive(Debug, Serialize)]
struct Figures {
    #[serde(flatten)]
    size: Size,
    switch: Target,
    /// Seconds until everything runs: least, median, most.
    up_s: [f64; 3],
    /// Seconds to take it down: least, median, most.
    down_s: [f64; 3],
    /// Proportional set size of all switches and the supervisor: least, median, most.
    memory_bytes: [u64; 3],
}

/// Figures of one start.
struct Once {
    up_s: f64,
    down_s: f64,
    memory_bytes: u64,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    match measure_all(args) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure_all(args: &Args) -> Result<String, String> {
    let mut kinds = vec![Target::Embedded];
    if args.beside_bmv2 {
        Bmv2::find().map_err(|error| error.to_string())?;
        kinds.push(Target::Bmv2);
    }
    // What runs is taken down, also after Ctrl-C.
    sys::catch_interrupts();
    let before = load();
    let mut all = Vec::new();
    for &size in &args.size {
        let mut found: Vec<Vec<Once>> = kinds.iter().map(|_| Vec::new()).collect();
        for _ in 0..args.rounds {
            for (kind, found) in kinds.iter().zip(&mut found) {
                if sys::interrupted() {
                    return Err("interrupted; nothing is left running".to_owned());
                }
                found.push(once(size, *kind)?);
            }
        }
        all.extend(kinds.iter().zip(&found).map(|(kind, found)| Figures {
            size,
            switch: *kind,
            up_s: spread(found, |once| once.up_s),
            down_s: spread(found, |once| once.down_s),
            memory_bytes: spread(found, |once| once.memory_bytes),
        }));
    }
    let load = [before, load()];
    if args.json {
        let json = serde_json::json!({ "start": all, "load": load, "rounds": args.rounds });
        return Ok(serde_json::to_string_pretty(&json).expect("numbers and names are JSON"));
    }
    let [before, after] = load.map(|load| load.map_or("unknown".to_owned(), |load| format!("{load:.1}")));
    let rounds = args.rounds;
    Ok(format!("{}\n({rounds} rounds; load average {before} before, {after} after)", table(&all).text()))
}

/// Least, median and most.
fn spread<T: Copy + PartialOrd>(found: &[Once], of: impl Fn(&Once) -> T) -> [T; 3] {
    let mut values: Vec<T> = found.iter().map(of).collect();
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    [0.0, 0.5, 1.0].map(|share| quantiles::of_sorted(&values, share).expect("there is a round"))
}

fn table(all: &[Figures]) -> Rows {
    let mut rows = Rows::new(&["topology", "switch", ">up, s", ">least", ">most", ">down, s", ">MB"]);
    for Figures { size, switch, up_s, down_s, memory_bytes } in all {
        let Size { leaves, spines, hosts } = *size;
        let links = leaves * spines + hosts;
        let [least, median, most] = up_s.map(|s| format!("{s:.2}"));
        rows.push(vec![
            format!("{} switches, {hosts} hosts, {links} links", leaves + spines),
            switch.to_string(),
            median,
            least,
            most,
            format!("{:.2}", down_s[1]),
            format!("{:.0}", memory_bytes[1] as f64 / 1e6),
        ]);
    }
    rows
}

/// Starts a topology, measures it, and takes it down.
fn once(size: Size, kind: Target) -> Result<Once, String> {
    let folder = bmv2::private_folder()?;
    let at = |name: &str| folder.path().join(name);
    for (name, text) in size.files(kind) {
        std::fs::write(at(&name), text).map_err(|error| format!("{}: {error}", at(&name).display()))?;
    }
    let _taken_down = TakenDown(folder.path());
    let started = Instant::now();
    p4rack(folder.path(), &["up", "--keep", "--quiet", &at("topology.toml").display().to_string()])?;
    let up_s = started.elapsed().as_secs_f64();
    let kept = Runtime::at(at("p4rack")).find(Some(NAME)).map_err(|error| error.to_string())?;
    let memory_bytes = memory_bytes(&kept)?;
    let started = Instant::now();
    p4rack(folder.path(), &["down"])?;
    let down_s = started.elapsed().as_secs_f64();
    Ok(Once { up_s, down_s, memory_bytes })
}

/// Takes down what a round that fails has left.
struct TakenDown<'f>(&'f Path);

impl Drop for TakenDown<'_> {
    fn drop(&mut self) {
        let _ = p4rack(self.0, &["down", "--all"]);
    }
}

/// Runs a command of p4rack whose racks are in this folder.
fn p4rack(folder: &Path, words: &[&str]) -> Result<(), String> {
    let output = own_binary().args(words).env("XDG_RUNTIME_DIR", folder).output();
    let output = output.map_err(|error| format!("starting p4rack: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!("`p4rack {}` failed, {}: {}", words.join(" "), output.status, said.trim_end()))
        }
    }
}

fn memory_bytes(kept: &KeptRack) -> Result<u64, String> {
    let switches = kept.switches.iter().map(|switch| switch.process.pid);
    let each = std::iter::once(kept.supervisor.pid).chain(switches).map(process::proportional_bytes);
    each.sum::<Result<u64, _>>().map_err(|error| format!("memory of a switch: {error}"))
}

impl Size {
    /// The topology's files, each with its name.
    fn files(self, kind: Target) -> Vec<(String, String)> {
        let Size { leaves, spines, hosts } = self;
        let mut topology = format!("name = \"{NAME}\"\n");
        let mut files = vec![("route.p4".to_owned(), ROUTE.to_owned())];
        for switch in 0..leaves + spines {
            let name = format!("s{}", switch + 1);
            let _ = writeln!(
                topology,
                "[[switch]]\nname = \"{name}\"\nprogram = \"route.p4\"\nentries = \"{name}.entries\"\ntarget = \"{kind}\""
            );
            files.push((format!("{name}.entries"), self.entries(switch)));
        }
        for host in 0..hosts {
            let (number, leaf, port) = (host + 1, self.leaf(host) + 1, self.port(host));
            let _ = writeln!(
                topology,
                "[[host]]\nname = \"h{number}\"\nip = \"10.0.{number}.1/24\"\nmac = \"{}\"\ngateway = \"10.0.{number}.254\"\n\
                 gateway_mac = \"02:00:00:00:01:00\"\n[[link]]\nends = [\"h{number}\", \"s{leaf}:{port}\"]",
                mac(host)
            );
        }
        for leaf in 0..leaves {
            for spine in 0..spines {
                let (up, down) = (self.uplink(spine), leaf + 1);
                let [leaf, spine] = [leaf + 1, leaves + spine + 1];
                let _ = writeln!(topology, "[[link]]\nends = [\"s{leaf}:{up}\", \"s{spine}:{down}\"]");
            }
        }
        files.push(("topology.toml".to_owned(), topology));
        files
    }

    /// Routes of a switch; leaves come first.
    fn entries(self, switch: usize) -> String {
        let mut entries = String::new();
        for host in 0..self.hosts {
            let port = match switch {
                leaf if leaf == self.leaf(host) => self.port(host),
                leaf if leaf < self.leaves => self.uplink(host % self.spines),
                _ => self.leaf(host) + 1,
            };
            let number = host + 1;
            let _ = writeln!(
                entries,
                "routes dst=10.0.{number}.0/24 --action to next_hop={} port={port}",
                mac(host)
            );
        }
        entries
    }

    fn leaf(self, host: usize) -> usize {
        host % self.leaves
    }

    /// A host's port at its leaf.
    fn port(self, host: usize) -> usize {
        host / self.leaves + 1
    }

    /// A leaf's port to a spine, behind those of hosts.
    fn uplink(self, spine: usize) -> usize {
        self.hosts.div_ceil(self.leaves) + spine + 1
    }
}

fn mac(host: usize) -> String {
    format!("02:00:00:00:00:{:02x}", host + 1)
}
