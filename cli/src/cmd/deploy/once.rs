//! `p4rack deploy` without `--watch`: deploys to all switches in parallel, once.

use super::args::Args;
use super::step::line;
use crate::cmd::connect;
use p4rack_codegen::Rack;
use p4rack_codegen::topology::{self, Switch, Topology};
use p4rack_ctrl::deploy::{Desired, Extent, Step, deploy};
use p4rack_ctrl::items::Item;
use p4rack_ctrl::provision;
use p4rack_ctrl::reconcile::Changes;
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol};
use p4rack_p4rt::p4::v1::update;
use p4rack_p4rt::schema::Schema;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Instant;

/// Maximum changes listed individually.
const SHOWN: usize = 50;

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    if crate::cmd::topology::is_topology(&args.rack) {
        return run_topology(&args);
    }
    let rack = match Rack::load_set(&args.rack, &args.settings.set) {
        Ok(rack) => rack,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(1);
        }
    };
    let desired = match args.desired(&rack) {
        Ok(desired) => desired,
        Err(error) => return connect::fail(&error, args.json),
    };
    let scheme = args.scheme.unwrap_or_else(|| rack.scheme());
    if !args.json {
        let bytes = desired.config.p4_device_config.len();
        let entries = desired.entities.len();
        println!("✓ generated {scheme} for {}: {bytes} bytes of program, {entries} entries", rack.name);
    }
    let targets = args.targets(&rack);
    let several = targets.len() > 1;
    let job = |target: ConnectOptions| {
        let prefix = if several { format!("{}: ", target.addr) } else { String::new() };
        Job { prefix, desired: &desired, target }
    };
    let (reports, code) = all(&args, targets.into_iter().map(job).collect());
    if args.json {
        let report = json!({ "rack": rack.name, "scheme": scheme, "switches": reports });
        println!("{report:#}");
    }
    code
}

/// Deploys to all switches of a topology that have a program.
fn run_topology(args: &Args) -> ExitCode {
    let given = [
        ("--set", !args.settings.set.is_empty()),
        ("--scheme", args.scheme.is_some()),
        ("--arch", args.arch.is_some()),
        ("--to", args.to.is_some()),
        ("--device-config", args.device_config.is_some()),
        ("--compiler", args.compiler.is_some()),
        ("--device-id", args.identity.has_device_id()),
        ("--grpc-addr", !args.grpc_addr.is_empty()),
        ("--bfrt-addr", !args.bfrt_addr.is_empty()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        let message = format!("{option} is for racks: a topology describes its switches, so leave it out");
        return connect::fail(&CtrlError::Input(message), args.json);
    }
    let topology = match Topology::load(&args.rack) {
        Ok(topology) => topology,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(1);
        }
    };
    if topology.switches.iter().any(|switch| switch.target == topology::Target::Tofino) {
        args.identity.refuse_p4runtimes();
    }
    let (mut desired, mut refused) = (Vec::new(), Vec::new());
    for switch in &topology.switches {
        match provision::desired(switch) {
            Ok(Some(wanted)) => desired.push((switch, wanted)),
            Ok(None) => {}
            Err(error) => refused.push(error.to_string()),
        }
    }
    if !refused.is_empty() {
        return connect::fail(&CtrlError::Input(refused.join("\n")), args.json);
    }
    let job = |(switch, desired)| {
        let (switch, desired): (&Switch, &Desired) = (switch, desired);
        let protocol = match switch.target {
            topology::Target::Tofino => Protocol::BfRuntime,
            topology::Target::Embedded | topology::Target::Bmv2 => Protocol::P4Runtime,
        };
        let target = args.identity.at(switch.grpc_addr.to_string(), None);
        let target = ConnectOptions { protocol, device_id: switch.device_id, ..target };
        Job { prefix: format!("{}: ", switch.name), desired, target }
    };
    let jobs = desired.iter().map(|(switch, desired)| job((*switch, desired)));
    let (reports, code) = all(args, jobs.collect());
    if args.json {
        let report = json!({ "topology": topology.name, "switches": reports });
        println!("{report:#}");
    }
    code
}

/// What to deploy to a switch.
struct Job<'d> {
    /// What its lines begin with.
    prefix: String,
    desired: &'d Desired,
    target: ConnectOptions,
}

/// Deploys to all switches in parallel: each takes its own time. Returns their reports.
fn all(args: &Args, jobs: Vec<Job<'_>>) -> (Vec<Value>, ExitCode) {
    let (mut reports, mut code) = (Vec::new(), ExitCode::SUCCESS);
    let one = |Job { prefix, desired, target }: Job<'_>| {
        let (report, differs, error) = one(args, desired, target, &prefix);
        (report, differs, error.map(|error| format!("{prefix}{error}")))
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = jobs.into_iter().map(|job| scope.spawn(|| one(job))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for outcome in outcomes {
        let (report, differs, error) = match outcome {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Some(error) = error {
            eprintln!("{error}");
            code = ExitCode::from(1);
        } else if differs && args.dry_run {
            code = ExitCode::from(1);
        }
        reports.push(report);
    }
    (reports, code)
}

/// Deploys to one switch. Returns its report, whether anything differed, and the error if there was one.
fn one(
    args: &Args,
    desired: &Desired,
    target: ConnectOptions,
    prefix: &str,
) -> (Value, bool, Option<CtrlError>) {
    let started = Instant::now();
    let mut report = match target.protocol {
        Protocol::P4Runtime => json!({ "grpc_addr": target.addr, "device_id": target.device_id }),
        Protocol::BfRuntime => json!({ "bfrt_addr": target.addr }),
    };
    let mut differs = false;
    let connected = match target.protocol {
        Protocol::P4Runtime => format!("connected to device {} at {}", target.device_id, target.addr),
        Protocol::BfRuntime => format!("connected to {} over BFRuntime", target.addr),
    };
    let extent = if args.dry_run { Extent::DryRun } else { Extent::All };
    let done = |step: Step| {
        let ms = started.elapsed().as_millis();
        if let Step::Compared { found, changes } = &step {
            differs |= !changes.is_empty();
            report["found"] = json!(found);
            report["changes"] = changes_json(&desired.schema, changes);
            if args.dry_run && !args.json {
                print!("{}", changes_text(&desired.schema, changes));
            }
        }
        if let Step::Ports { changes, .. } = &step {
            differs |= !changes.is_empty();
            let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
            if args.dry_run && !args.json {
                lines.iter().for_each(|line| println!("  {line}"));
            }
            report["ports"] = json!(lines);
        }
        if let Step::Installed = step {
            report["installed"] = true.into();
        }
        if !args.json {
            println!("✓ {prefix}{} ({ms} ms)", line(&step, &connected));
        }
    };
    let result = connect::block_on(deploy(desired, target, extent, done));
    report["entries"] = desired.entities.len().into();
    report["elapsed_ms"] = (started.elapsed().as_millis() as u64).into();
    if let Err(error) = &result {
        report["error"] = error.to_string().into();
    }
    (report, differs, result.err())
}

/// Sign and text of each change.
fn described(schema: &Schema, changes: &Changes) -> Vec<(&'static str, String)> {
    let describe = |update: &p4rack_p4rt::p4::v1::Update| {
        let sign = match update.r#type() {
            update::Type::Insert => "+",
            update::Type::Delete => "-",
            _ => "~",
        };
        let text = update.entity.as_ref().map(|entity| match Item::of(schema, entity) {
            Ok(item) => item.to_string(),
            Err(_) => p4rack_ctrl::client::name(schema, entity),
        });
        (sign, text.unwrap_or_default())
    };
    changes.iter().map(describe).collect()
}

fn changes_text(schema: &Schema, changes: &Changes) -> String {
    let lines = described(schema, changes);
    let mut text: String =
        lines.iter().take(SHOWN).map(|(sign, what)| format!("  {sign} {what}\n")).collect();
    if lines.len() > SHOWN {
        text += &format!("  and {} more\n", lines.len() - SHOWN);
    }
    text
}

fn changes_json(schema: &Schema, changes: &Changes) -> Value {
    let row = |(sign, what): (&str, String)| json!({ "change": sign, "what": what });
    described(schema, changes).into_iter().map(row).collect()
}
