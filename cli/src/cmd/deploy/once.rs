//! `p4rack deploy` without `--watch`: deploys to all switches in parallel, once.

use super::args::Args;
use super::step::line;
use super::topology;
use crate::cmd::connect;
use p4rack_codegen::Rack;
use p4rack_ctrl::deploy::{Desired, Extent, Step, deploy};
use p4rack_ctrl::items::Item;
use p4rack_ctrl::reconcile::Changes;
use p4rack_ctrl::{ConnectOptions, CtrlError, Protocol};
use p4rack_p4rt::p4::v1::update;
use p4rack_p4rt::schema::Schema;
use p4rack_report::text::count;
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
            eprintln!("error: {error}");
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
        let [bytes, entries] = [bytes, entries].map(|number| count(number as u64));
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
    let (topology, members) = match topology::members(args) {
        Ok(found) => found,
        Err(error) => return connect::fail(&error, args.json),
    };
    let jobs = members.iter().map(|member| Job {
        prefix: format!("{}: ", member.name),
        desired: &member.desired,
        target: member.target.clone(),
    });
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
        (report, differs, error.map(|error| (connect::hint_of(&error), format!("error: {prefix}{error}"))))
    };
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = jobs.into_iter().map(|job| scope.spawn(|| one(job))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut hint = None;
    for outcome in outcomes {
        let (report, differs, error) = match outcome {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        if let Some((its_hint, error)) = error {
            eprintln!("{error}");
            hint = hint.or(its_hint);
            code = ExitCode::from(1);
        } else if differs && args.dry_run {
            code = ExitCode::from(1);
        }
        reports.push(report);
    }
    hint.iter().for_each(|hint| eprintln!("{hint}"));
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
        match step {
            Step::Installed => report["installed"] = true.into(),
            Step::Missing => {
                differs = true;
                report["would_install"] = true.into();
            }
            _ => {}
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
pub fn described(schema: &Schema, changes: &Changes) -> Vec<(&'static str, String)> {
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
