//! `p4rack rack fat-tree`: writes the topology of a fat tree (Al-Fares et al., SIGCOMM 2008), its routes, and an experiment.
//!
//! ```text
//!  core   c1 … (k/2)²                 core k/2·j + e: to aggregation j of each pod
//!  pod    aP-1 … aP-k/2               one for each host of an edge switch
//!         eP-1 … eP-k/2               k/2 hosts each
//! ```
//!
//! A destination has one way down: host h of edge switch e is reached by the pod's aggregation switch h, and that by core switch
//! e of its group. So flows to different hosts share no link towards them.

use crate::output::OutputFile;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Program of all switches.
const PROGRAM: &str = include_str!("../../../examples/pod/route.p4");

/// Arguments of `p4rack rack fat-tree`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  p4rack rack fat-tree 6 --out-dir /tmp/fat-tree
  p4rack sim run /tmp/fat-tree/load.toml --threads 2")]
pub struct FatTreeArgs {
    /// Ports of a switch, k: an even number; there are k pods, 5k²/4 switches and k³/4 hosts
    #[arg(value_parser = even)]
    ports: usize,
    /// Folder for topology.toml, route.p4, entries and load.toml
    #[arg(long, value_name = "DIR")]
    out_dir: PathBuf,
    /// Rate of all links
    #[arg(long, default_value = "1 Gb/s", value_parser = rate)]
    rate: String,
    /// Delay of all links
    #[arg(long, default_value = "10 us", value_parser = delay)]
    delay: String,
}

fn even(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(ports) if (2..=16).contains(&ports) && ports % 2 == 0 => Ok(ports),
        _ => Err("write an even number from 2 to 16".to_owned()),
    }
}

fn rate(text: &str) -> Result<String, String> {
    p4rack_codegen::rack::units::parse_rate(text).map(|_| text.to_owned())
}

fn delay(text: &str) -> Result<String, String> {
    p4rack_codegen::rack::units::parse_time(text).map(|_| text.to_owned())
}

/// Writes all files.
pub fn run(args: &FatTreeArgs) -> Result<(), String> {
    crate::output::folder("--out-dir", &args.out_dir)?;
    let folder = args.out_dir.join("entries");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let tree = Tree { half: args.ports / 2, rate: args.rate.clone(), delay: args.delay.clone() };
    let keep = |path: &Path, text: &str| OutputFile::open("--out-dir", path)?.write(text.as_bytes());
    keep(&args.out_dir.join("route.p4"), PROGRAM)?;
    keep(&args.out_dir.join("topology.toml"), &tree.topology())?;
    keep(&args.out_dir.join("load.toml"), &tree.experiment())?;
    let switches = tree.switches();
    for (name, entries) in &switches {
        keep(&folder.join(format!("{name}.entries")), entries)?;
    }
    let (folder, count) = (args.out_dir.display(), switches.len());
    println!(
        "wrote {folder}/topology.toml: {count} switches, {} hosts; next: p4rack sim run {folder}/load.toml",
        tree.hosts()
    );
    Ok(())
}

struct Tree {
    /// Half of a switch's ports.
    half: usize,
    rate: String,
    delay: String,
}

/// MAC address of a switch of a layer.
fn mac(layer: u8, group: usize, member: usize) -> String {
    format!("02:00:00:{layer:02x}:{group:02x}:{member:02x}")
}

impl Tree {
    fn pods(&self) -> usize {
        2 * self.half
    }

    fn hosts(&self) -> usize {
        self.pods() * self.half * self.half
    }

    /// Positions of edge switches: pod and number.
    fn edges(&self) -> impl Iterator<Item = (usize, usize)> {
        let half = self.half;
        (0..self.pods()).flat_map(move |pod| (0..half).map(move |edge| (pod, edge)))
    }

    /// Number of a host, from 1.
    fn host(&self, pod: usize, edge: usize, host: usize) -> usize {
        (pod * self.half + edge) * self.half + host + 1
    }

    /// Name and entries of each switch.
    fn switches(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (group, member) in
            (0..self.half).flat_map(|group| (0..self.half).map(move |member| (group, member)))
        {
            let mut entries = String::new();
            for pod in 0..self.pods() {
                route(&mut entries, &format!("10.{pod}.0.0/16"), &mac(2, pod, group), pod + 1);
            }
            all.push((format!("c{}", group * self.half + member + 1), entries));
        }
        for (pod, member) in self.edges() {
            let mut entries = String::new();
            for (to, edge) in self.edges() {
                let (next, port) = match to == pod {
                    true => (mac(1, pod, edge), edge + 1),
                    false => (mac(3, member, edge), self.half + edge + 1),
                };
                route(&mut entries, &format!("10.{to}.{edge}.0/24"), &next, port);
            }
            all.push((format!("a{}-{}", pod + 1, member + 1), entries));
        }
        for (pod, edge) in self.edges() {
            let mut entries = String::new();
            for (to, at) in self.edges() {
                for host in 0..self.half {
                    let number = self.host(to, at, host);
                    let (next, port) = match (to, at) == (pod, edge) {
                        true => (format!("02:00:00:00:{:02x}:{:02x}", number >> 8, number & 255), host + 1),
                        false => (mac(2, pod, host), self.half + host + 1),
                    };
                    route(&mut entries, &format!("10.{to}.{at}.{}/32", host + 1), &next, port);
                }
            }
            all.push((format!("e{}-{}", pod + 1, edge + 1), entries));
        }
        all
    }

    fn topology(&self) -> String {
        let mut text = format!(
            "# A fat tree of switches with {} ports, by p4rack rack fat-tree.\nname = \"fat-tree-{0}\"\n",
            self.pods()
        );
        for (name, _) in self.switches() {
            put(
                &mut text,
                format_args!(
                    "\n[[switch]]\nname    = \"{name}\"\nprogram = \"route.p4\"\nentries = \"entries/{name}.entries\"\n"
                ),
            );
        }
        for (pod, edge) in self.edges() {
            for host in 0..self.half {
                let number = self.host(pod, edge, host);
                put(
                    &mut text,
                    format_args!(
                        "\n[[host]]\nname        = \"h{number}\"\nip          = \"10.{pod}.{edge}.{}/24\"\n\
                         gateway     = \"10.{pod}.{edge}.254\"\ngateway_mac = \"{}\"\n",
                        host + 1,
                        mac(1, pod, edge)
                    ),
                );
            }
        }
        let mut link = |a: String, b: String| {
            put(
                &mut text,
                format_args!(
                    "\n[[link]]\nends  = [\"{a}\", \"{b}\"]\nrate  = \"{}\"\ndelay = \"{}\"\n",
                    self.rate, self.delay
                ),
            );
        };
        for (pod, edge) in self.edges() {
            let own = format!("e{}-{}", pod + 1, edge + 1);
            for other in 0..self.half {
                link(format!("h{}", self.host(pod, edge, other)), format!("{own}:{}", other + 1));
                link(
                    format!("{own}:{}", self.half + other + 1),
                    format!("a{}-{}:{}", pod + 1, other + 1, edge + 1),
                );
            }
        }
        for (pod, group) in self.edges() {
            for member in 0..self.half {
                let own = format!("a{}-{}:{}", pod + 1, group + 1, self.half + member + 1);
                link(own, format!("c{}:{}", group * self.half + member + 1, pod + 1));
            }
        }
        text
    }

    /// Each host sends to one other host at random times.
    fn experiment(&self) -> String {
        format!(
            "# Each host sends frames of 1000 bytes to another host, half of its link's rate.\nname        = \"fat-tree-{}\"\n\
             kind        = \"topology\"\ntopology    = \"topology.toml\"\nduration_us = 100000\nwarmup_us   = 1000\n\n\
             [[traffic]]\nname    = \"permutation\"\nsend    = \"poisson\"\npattern = \"permutation\"\nsize    = 1000\n\
             rate    = \"{} Mb/s\"\n",
            self.pods(),
            self.load_mbps()
        )
    }

    /// Half of the links' rate, less what headers take.
    fn load_mbps(&self) -> u64 {
        let rate_bps = p4rack_codegen::rack::units::parse_rate(&self.rate).unwrap_or(0);
        (rate_bps / 2_132_000).max(1)
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = out.write_fmt(text);
}

fn route(entries: &mut String, to: &str, next: &str, port: usize) {
    put(entries, format_args!("routes dst={to} --action to next_hop={next} port={port}\n"));
}
