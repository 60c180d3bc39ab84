//! `p4rack doctor`: checks which requirements are met, and how to get the missing ones.

use super::finding::Finding;
use super::sde;
use super::settings::RackSettings;
use p4rack_codegen::{Arch, Rack};
use p4rack_lab::process::on_path;
use p4rack_lab::rows::Rows;
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::netns::{self, NetNs};
use p4rack_netdev::packet::{self, Io};
use p4rack_netdev::{Links, Tap, sched};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to print its version.
const ANSWER: Duration = Duration::from_secs(5);

/// Arguments of `p4rack doctor`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Also check whether this rack can run on Tofino, with the software of SDE and SDE_INSTALL
    #[arg(long, value_name = "FILE")]
    rack: Option<PathBuf>,
    #[command(flatten)]
    settings: RackSettings,
    /// Architecture of the rack's program: tna or t2na [default: as described]
    #[arg(long, requires = "rack")]
    arch: Option<Arch>,
    /// Also check whether the board has the rack's ports: its ports, as `bfshell -e 'ucli; pm; show -a'` prints them
    #[arg(long, value_name = "FILE", requires = "rack")]
    board: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A program that can print its version.
struct Tool {
    program: &'static str,
    args: &'static [&'static str],
    purpose: &'static str,
    get_it_by: &'static str,
}

const TOOLS: &[Tool] = &[
    tool("ping", &["-V"], "ping tests", "sudo apt-get install iputils-ping"),
    tool("iperf3", &["--version"], "throughput by hand, iperf3 test", "sudo apt-get install iperf3"),
    tool("memcached", &["-V"], "memcached beside other stores", "sudo apt-get install memcached"),
    tool("redis-server", &["--version"], "Redis beside other stores", "sudo apt-get install redis-server"),
    tool("etcd", &["--version"], "several controllers with shared state", "sudo apt-get install etcd-server"),
    tool("ip", &["-V"], "PTF suite, Mininet", "sudo apt-get install iproute2"),
    tool("mn", &["--version"], "p4rack mininet", "sudo apt-get install --no-install-recommends mininet"),
    tool("simple_switch_grpc", &["--version"], "deploy --to bmv2", BUILD_BMV2),
    tool("p4c-bm2-ss", &["--version"], "deploy --compiler p4c, comparisons with BMv2", BUILD_P4C),
    tool("p4c", &["--version"], "other targets", BUILD_P4C),
    tool("bf_switchd", &[], "Tofino's model", BUILD_SDE),
    tool("tofino-model", &[], "Tofino's model", BUILD_SDE),
    tool("python3", &["--version"], "PTF suite, Python clients", "sudo apt-get install python3 python3-venv"),
];

const BUILD_BMV2: &str =
    "building https://github.com/p4lang/behavioral-model with targets/simple_switch_grpc";
const BUILD_P4C: &str = "building https://github.com/p4lang/p4c";
const BUILD_SDE: &str = "building https://github.com/p4lang/open-p4studio";
const PACKAGES: &str = "python3 -m venv .venv && .venv/bin/pip install -r ptf-tests/requirements.txt";

const fn tool(
    program: &'static str,
    args: &'static [&'static str],
    purpose: &'static str,
    get_it_by: &'static str,
) -> Tool {
    Tool { program, args, purpose, get_it_by }
}

/// Runs it: 0 if everything is available that the embedded target requires or, with a rack, that the rack requires on Tofino.
pub fn run(args: Args) -> ExitCode {
    let mut findings = kernel();
    findings.extend(TOOLS.iter().map(look_for));
    findings.push(python_packages());
    let is_fine = |findings: &[Finding]| findings.iter().all(|finding| finding.ok || !finding.needed);
    let embedded = is_fine(&findings);
    let of_tofino = findings.len();
    findings.extend(sde::software(args.rack.is_some()));
    if let Some(file) = &args.rack {
        let rack = match Rack::load_set(file, &args.settings.set) {
            Ok(rack) => rack,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(1);
            }
        };
        findings.extend(sde::rack(&rack.on(args.arch.unwrap_or(rack.switch.arch)), args.board.as_deref()));
    }
    let tofino = args.rack.is_some().then(|| is_fine(&findings[of_tofino..]));
    if args.json {
        let json = serde_json::json!({
            "embedded_target": embedded, "tofino_target": tofino, "findings": findings
        });
        println!("{json:#}");
    } else {
        print(&findings, embedded, tofino);
    }
    if tofino.unwrap_or(embedded) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn print(findings: &[Finding], embedded: bool, tofino: Option<bool>) {
    let mut rows = Rows::new(&["", "what", "found", "for"]);
    for finding in findings {
        let mark = match (finding.ok, finding.needed) {
            (true, _) => "✓",
            (false, true) => "✗",
            (false, false) => "·",
        };
        let get = finding.get_it_by.as_ref().map_or(String::new(), |get| format!("; get it by: {get}"));
        rows.push(vec![
            mark.to_owned(),
            finding.name.to_owned(),
            finding.found.clone(),
            format!("{}{get}", finding.purpose),
        ]);
    }
    print!("{}", rows.text());
    println!();
    let missing = findings.iter().filter(|finding| !finding.ok).count();
    match tofino {
        Some(true) => println!("everything that the rack requires on Tofino is available"),
        Some(false) => println!("the rack can't run on Tofino here"),
        None => {}
    }
    let embedded = match embedded {
        true => "everything the embedded target requires is available",
        false => "the embedded target can't run here",
    };
    println!("{embedded}; {missing} of {} missing", findings.len());
}

/// Kernel features that the embedded target uses, tried in a namespace of its own.
fn kernel() -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |name, purpose, needed, tried: Result<String, String>, get_it_by: &str| {
        let (ok, found) = match tried {
            Ok(found) => (true, found),
            Err(why) => (false, why),
        };
        findings.push(Finding {
            name,
            purpose,
            needed,
            ok,
            found,
            get_it_by: (!ok).then(|| get_it_by.to_owned()),
        });
    };
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    add("Linux", "everything", true, Ok(release.trim().to_owned()), "");
    let root =
        "running as root, or sysctl -w kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000";
    let privilege = netns::acquire().map(|privilege| format!("{privilege:?}").to_lowercase());
    add("namespaces", "racks on one machine", true, privilege.map_err(|error| error.to_string()), root);
    add("TAP", "hosts' agents", true, in_namespace(tap), "sudo modprobe tun");
    add("veth", "links between namespaces", true, in_namespace(veth), "sudo modprobe veth");
    let io = |io| packet::probe(io).map(|()| "works".to_owned()).map_err(|error| error.source.to_string());
    add("AF_PACKET", "the switch's ports, --io packet", true, io(Io::Packet), "sudo modprobe af_packet");
    add(
        "AF_PACKET rings",
        "the switch's ports, --io ring",
        false,
        io(Io::Ring),
        "a kernel with CONFIG_PACKET",
    );
    let xdp = "root outside of user namespaces, and a kernel with CONFIG_XDP_SOCKETS and CONFIG_BPF_SYSCALL";
    add("AF_XDP", "the switch's ports, --io xdp", false, io(Io::Xdp), xdp);
    add(
        "SCHED_FIFO",
        "keeping the schedule under load",
        false,
        real_time(),
        "running as root, or ulimit -r 50",
    );
    findings
}

fn in_namespace(work: fn() -> Result<(), p4rack_netdev::Error>) -> Result<String, String> {
    let tried = NetNs::create().and_then(|ns| ns.run(work)).and_then(|done| done);
    tried.map(|()| "works".to_owned()).map_err(|error| error.to_string())
}

fn tap() -> Result<(), p4rack_netdev::Error> {
    Tap::create("doctor0").map(|_| ())
}

fn veth() -> Result<(), p4rack_netdev::Error> {
    let ns = NetNs::current()?;
    let end = |name| VethEnd { name, ns: &ns, mac: None };
    Links::add_veth(end("doctor1"), end("doctor2"))
}

/// Tried in a thread, because the priority would remain.
fn real_time() -> Result<String, String> {
    let granted = std::thread::spawn(|| sched::prompt(sched::SWITCH_PRIORITY)).join();
    match granted {
        Ok(granted) if granted.fifo_priority.is_some() => Ok("granted".to_owned()),
        _ => Err("refused".to_owned()),
    }
}

fn look_for(tool: &Tool) -> Finding {
    let path = on_path(tool.program);
    let found = match &path {
        Some(_) if tool.args.is_empty() => "there".to_owned(),
        Some(path) => version(path, tool.args).unwrap_or_else(|| "there".to_owned()),
        None => "missing".to_owned(),
    };
    Finding {
        name: tool.program,
        purpose: tool.purpose,
        needed: false,
        ok: path.is_some(),
        found,
        get_it_by: path.is_none().then(|| tool.get_it_by.to_owned()),
    }
}

/// Packages for PTF and P4Runtime, in the tests' environment or the system's Python.
fn python_packages() -> Finding {
    let pythons = [PathBuf::from(".venv/bin/python"), PathBuf::from("python3")];
    let imports = ["-c", "import ptf, scapy, p4.v1.p4runtime_pb2; print(ptf.__version__)"];
    let found = pythons.iter().find_map(|python| version(python, &imports));
    Finding {
        name: "PTF packages",
        purpose: "PTF suite",
        needed: false,
        ok: found.is_some(),
        get_it_by: found.is_none().then(|| PACKAGES.to_owned()),
        found: found.map_or_else(|| "missing".to_owned(), |version| format!("ptf {version}")),
    }
}

/// The first dotted number in a program's output; `None` if it fails or takes too long.
fn version(program: &Path, args: &[&str]) -> Option<String> {
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let asked = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if asked.elapsed() > ANSWER {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    number(&String::from_utf8_lossy(&said)).filter(|_| output.status.success())
}

fn number(text: &str) -> Option<String> {
    let words = text.split(|c: char| c.is_whitespace() || "(),:;".contains(c));
    words
        .map(|word| word.trim_start_matches(['v', 'V', '-']).trim_end_matches('.'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with("iproute2-"))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn versions_are_found_in_what_programs_say() {
        let cases = [
            ("iperf 3.12 (cJSON 1.7.15)\nLinux …", "3.12"),
            ("memcached 1.6.18", "1.6.18"),
            ("Python 3.11.7", "3.11.7"),
            ("p4c-bm2-ss\nVersion 1.2.5.16 (SHA: f00 BUILD: Release)", "1.2.5.16"),
            ("1.15.0-9674187", "1.15.0-9674187"),
            ("etcd Version: 3.4.23\nGit SHA: …", "3.4.23"),
            ("ip utility, iproute2-6.1.0, libbpf 1.1.0", "iproute2-6.1.0"),
        ];
        for (said, version) in cases {
            assert_eq!(number(said).as_deref(), Some(version), "{said}");
        }
        assert_eq!(number("usage: bf_switchd"), None);
    }
}
