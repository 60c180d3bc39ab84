//! `p4rack up` of a topology, and `p4rack lab`.

use super::{exercise, refused};
use crate::output;
use p4rack_codegen::kind::Kind;
use p4rack_codegen::text;
use p4rack_codegen::topology::{Host, Link, Runs, Topology};
use p4rack_ctrl::provision;
use p4rack_lab::rows::Rows;
use p4rack_lab::sys;
use p4rack_lab::topology::{Options, Outcome, Traffic, Use};
use p4rack_report::text::count;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments of `p4rack lab`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  p4rack lab examples/pod/pod.toml
  p4rack lab pod-topo/topology.json --solution      in an exercise of the P4 tutorials
  p4rack lab topology.json --program s1=mine.p4 --test steps.txt")]
pub struct LabArgs {
    /// The topology: a topology.json of the P4 tutorials, or TOML
    topology: PathBuf,
    #[command(flatten)]
    choice: exercise::Choice,
    /// Run the lines of a file instead of the prompt; exit code 1 if one fails
    #[arg(long, value_name = "SCRIPT")]
    test: Option<PathBuf>,
    /// Write captures of all ports to a folder per switch, and of the control channel
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// With --test: print addresses, commands with exit codes and failures as JSON; what lines print goes to standard error
    #[arg(long, requires = "test")]
    json: bool,
    /// Do not show progress
    #[arg(short, long)]
    quiet: bool,
}

/// Runs `p4rack lab`.
pub fn lab(args: LabArgs) -> ExitCode {
    if let Err(error) = args.pcap.as_deref().map_or(Ok(()), |folder| output::folder("--pcap", folder)) {
        return refused(error);
    }
    let exercise = match args.choice.of(&args.topology) {
        Ok(exercise) => exercise,
        Err(error) => return refused(error),
    };
    let options = Options {
        path: args.topology,
        exercise,
        commands_may_fail: true,
        captures: args.pcap,
        quiet: args.quiet,
    };
    if args.json {
        return up(&options, args.test, true);
    }
    let how = args.test.map_or(Use::Prompt, Use::Script);
    match options.run(&how) {
        Ok(outcome) => concluded(&outcome),
        Err(error) => refused(error),
    }
}

/// Whether the file describes a topology, or might: what can't be read is reported where it is read.
pub(crate) fn is_topology(path: &Path) -> bool {
    let text = text::read(path).unwrap_or_default();
    matches!(Kind::of_file(&text, path), Some(Kind::Topology | Kind::Json))
}

/// Runs `p4rack up` for a topology. `as_json` prints the outcome.
pub(super) fn up(options: &Options, test: Option<PathBuf>, as_json: bool) -> ExitCode {
    // The script's commands print, too.
    let json_output = match as_json.then(sys::print_to_stderr).transpose() {
        Ok(output) => output,
        Err(error) => return refused(error),
    };
    match options.run(&test.map_or(Use::Commands, Use::Script)) {
        Ok(outcome) => {
            if let Some(mut output) = json_output {
                if let Err(error) = writeln!(output, "{:#}", json!(outcome)) {
                    return refused(error);
                }
            } else {
                for done in &outcome.commands {
                    println!("{}$ {}", done.host, done.command);
                    print!("{}", done.output);
                    if done.output_dropped_bytes > 0 {
                        println!("({} more bytes)", done.output_dropped_bytes);
                    }
                }
                if let Some(traffic) = &outcome.traffic {
                    print!("{}", traffic_text(traffic));
                }
            }
            concluded(&outcome)
        }
        Err(error) => refused(error),
    }
}

/// Tables of what a workload showed.
fn traffic_text(traffic: &Traffic) -> String {
    let mut flows = Rows::new(&[
        "datagrams",
        ">Mb/s offered",
        ">arrived",
        ">sent",
        ">arrived",
        ">lost",
        ">twice",
        ">not sent",
    ]);
    for flow in &traffic.udp {
        let rate = |bps: f64| format!("{:.1}", bps / 1e6);
        let counts = [flow.sent, flow.arrived, flow.lost(), flow.repeated, flow.not_sent].map(count);
        let first = [format!("{}–{}", flow.from, flow.to), rate(flow.offered_bps), rate(flow.arrived_bps)];
        flows.push([&first[..], &counts[..]].concat());
    }
    let mut values = Rows::new(&["requests", ">bytes", ">answered", ">p50 µs", ">p99", ">p99.9"]);
    for (client, value) in traffic.rpc.iter().flat_map(|one| one.values.iter().map(move |value| (one, value)))
    {
        let of = [value.p50_us, value.p99_us, value.p999_us];
        let of = of.map(|us| if value.completed == 0 { "–".to_owned() } else { format!("{us:.1}") });
        let first =
            [format!("{}–{}", client.from, client.to), value.value_bytes.to_string(), count(value.completed)];
        values.push([&first[..], &of[..]].concat());
    }
    let tables = [flows, values].into_iter().filter(|rows| !rows.is_empty());
    tables.map(|rows| rows.text()).collect::<Vec<_>>().join("\n")
}

/// Runs `p4rack rack check` for a topology: its nodes and links, with what the switches would hold.
pub(super) fn check(file: &Path, as_json: bool) -> ExitCode {
    let topology = match Topology::load(file) {
        Ok(topology) => topology,
        Err(error) if as_json => {
            println!("{:#}", json!({ "errors": error.errors }));
            return ExitCode::from(1);
        }
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(1);
        }
    };
    let (mut switches, mut rows, mut refused) = (Vec::new(), Rows::new(&SWITCH_COLUMNS), Vec::new());
    let all = topology.switches.iter().zip(provision::desired_of_all(&topology));
    for (at, (switch, desired)) in all.enumerate() {
        let desired = match desired {
            Ok(desired) => desired,
            Err(error) => {
                refused.push(error.to_string());
                continue;
            }
        };
        let program = match &switch.runs {
            Runs::Nothing => "none".to_owned(),
            Runs::Program(path) | Runs::Rack(path, _) => path.display().to_string(),
        };
        let info = desired.as_ref().and_then(|desired| desired.config.p4info.as_ref()?.pkg_info.as_ref());
        let arch = info.map_or("-", |info| info.arch.as_str()).to_owned();
        let entries = desired.as_ref().map_or(0, |desired| desired.entities.len());
        let ports = topology.ports(at).count();
        rows.push(vec![
            switch.name.clone(),
            program.clone(),
            arch.clone(),
            entries.to_string(),
            ports.to_string(),
            switch.grpc_addr.to_string(),
        ]);
        switches.push(json!({
            "name": switch.name, "program": program, "arch": arch, "entries": entries, "ports": ports,
            "target": switch.target, "grpc_addr": switch.grpc_addr, "device_id": switch.device_id,
        }));
    }
    if !refused.is_empty() {
        match as_json {
            true => println!("{:#}", json!({ "errors": refused })),
            false => eprintln!("{}", refused.join("\n")),
        }
        return ExitCode::from(1);
    }
    let ends = |link: &Link| link.ends.map(|end| topology.end_name(end));
    // Valid all the same: its switches may run elsewhere.
    let local = topology.check_local();
    if as_json {
        let links: Vec<Value> = topology
            .links
            .iter()
            .map(|link| {
                json!({ "ends": ends(link), "rate_bps": link.rate_bps, "delay_ns": link.delay.0, "loss_ppm": link.loss_ppm })
            })
            .collect();
        let host = |host: &Host| {
            let gateway = host.gateway.map(|gateway| gateway.to_string());
            json!({
                "name": host.name, "mac": host.mac.to_string(), "ip": host.ip, "prefix": host.prefix,
                "gateway": gateway, "commands": host.commands,
            })
        };
        let (name, hosts) = (&topology.name, topology.hosts.iter().map(host).collect::<Vec<_>>());
        let not_local = local.err().map_or_else(Vec::new, |error| error.errors);
        println!(
            "{:#}",
            json!({ "name": name, "switches": switches, "hosts": hosts, "links": links, "not_local": not_local })
        );
        return ExitCode::SUCCESS;
    }
    let mut hosts = Rows::new(&HOST_COLUMNS);
    for (at, host) in topology.hosts.iter().enumerate() {
        let link = topology.attachment(at).map(|(link, _, _)| ends(link)[0].clone()).unwrap_or_default();
        let gateway = host.gateway.map_or("-".to_owned(), |gateway| gateway.to_string());
        let address = format!("{}/{}", host.ip, host.prefix);
        hosts.push(vec![host.name.clone(), address, host.mac.to_string(), link, gateway]);
    }
    print!("topology {}\n\n{}\n{}", topology.name, rows.text(), hosts.text());
    if let Err(error) = local {
        println!("\n`p4rack up` can't run it on this machine:\n{error}");
    }
    ExitCode::SUCCESS
}

const SWITCH_COLUMNS: [&str; 6] = ["switch", "program", "arch", "entries", "ports", "P4Runtime"];
const HOST_COLUMNS: [&str; 5] = ["host", "ip", "mac", "at", "gateway"];

fn concluded(outcome: &Outcome) -> ExitCode {
    outcome.failures.iter().fold(ExitCode::SUCCESS, |_, failure| refused(failure))
}
