//! `p4rack deploy --watch`: keeps switches in the state that a description defines.

use super::args::Args;
use super::step::line;
use crate::cmd::connect;
use crate::cmd::saved::Files;
use crate::output;
use p4rack_codegen::Rack;
use p4rack_codegen::text;
use p4rack_ctrl::deploy::{Desired, Step};
use p4rack_ctrl::etcd::{Access, Etcd};
use p4rack_ctrl::watch::{Change, watch};
use p4rack_ctrl::{ConnectOptions, Protocol};
use p4rack_netdev::exporter::{self, Exposition};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

/// Delay before retrying etcd after an error.
const ETCD_RETRY: Duration = Duration::from_secs(1);

/// Events of a switch since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    primary: bool,
    installs: u64,
    comparisons: u64,
    changes: u64,
    failures: u64,
    in_order: bool,
}

/// Events by address of the switch.
pub(super) type Board = Arc<Mutex<BTreeMap<String, Counts>>>;

/// Runs until SIGINT or SIGTERM.
pub fn run(args: Args) -> ExitCode {
    let board = Board::default();
    // Before it is read: a later save counts.
    let files = Files::of([args.rack.clone()]);
    let text = match text::read(&args.rack) {
        Ok(text) => text,
        Err(error) => {
            let error = text::fault(&error, "a rack description");
            return fail(format!("reading {}: {error}", args.rack.display()));
        }
    };
    let (rack, desired) = match make(&args, &text) {
        Ok(made) => made,
        Err(error) => return fail(error),
    };
    let etcd = match args.etcd.as_deref().map(|addr| args.etcd_access.at(addr)).transpose() {
        Ok(etcd) => etcd,
        Err(error) => return fail(error),
    };
    if let Err(error) = serve_metrics(&args, &board) {
        return fail(error);
    }
    connect::block_on(keep(args, etcd, (rack, text, desired), files, board))
}

/// Reports why nothing is kept, and returns the exit code.
pub(super) fn fail(error: String) -> ExitCode {
    tell(&format!("error: {error}"));
    ExitCode::from(1)
}

/// Serves the board as metrics, if that is asked for.
pub(super) fn serve_metrics(args: &Args, board: &Board) -> Result<(), String> {
    let Some(addr) = args.metrics_addr else { return Ok(()) };
    let board = board.clone();
    let served = exporter::serve(addr, move || Some(exposition(&board)));
    served.map(|_| ()).map_err(|error| format!("serving metrics at {addr}: {error}"))
}

/// Replaces the desired state if it differs.
pub(super) fn renew(sender: &channel::Sender<Arc<Desired>>, desired: Desired, origin: &str) {
    sender.send_if_modified(|current| {
        let same_contents = current.entities == desired.entities && current.bfrt == desired.bfrt;
        let differs = current.config != desired.config || !same_contents;
        if differs {
            tracing::info!(origin, "new description");
            *current = Arc::new(desired);
        }
        differs
    });
}

/// Notes and reports what happens to a switch, by its name if it has one.
pub(super) fn reporter(
    board: &Board,
    name: Option<String>,
    target: &ConnectOptions,
    as_json: bool,
) -> impl FnMut(Change) + Send + use<> {
    let (board, switch, json) = (board.clone(), target.clone(), as_json || output::json_lines());
    let mut last = String::new();
    move |change: Change| {
        // A repeated failure is reported once.
        let failure = match &change {
            Change::Failed(error) => error.to_string(),
            Change::Step(Step::Verified { .. }) => String::new(),
            _ => last.clone(),
        };
        let repeated = !failure.is_empty() && failure == last && matches!(change, Change::Failed(_));
        last = failure;
        let (before, now) = note(&board, &switch.addr, &change);
        if !repeated {
            say((name.as_deref(), &switch), &change, now.comparisons, before.in_order, json);
        }
    }
}

fn make(args: &Args, text: &str) -> Result<(Rack, Desired), String> {
    let file = args.rack.display().to_string();
    let rack = Rack::parse_set(text, &file, &args.settings.set).map_err(|error| error.to_string())?;
    let desired = args.desired(&rack).map_err(|error| error.to_string())?;
    Ok((rack, desired))
}

async fn keep(
    args: Args,
    etcd: Option<Access>,
    (rack, text, mut desired): (Rack, String, Desired),
    files: Files,
    board: Board,
) -> ExitCode {
    let args = Arc::new(args);
    if let Some(access) = &etcd {
        // Before the switches change: the shared description counts, not this file.
        let shared = agree(access, &key(&rack.name), &text, args.publish).await;
        desired = match make(&args, &shared) {
            Ok((_, desired)) => desired,
            Err(error) => {
                tell(&format!("the description in etcd at {}:\n{error}", access.addr));
                return ExitCode::from(1);
            }
        };
    }
    let (sender, receiver) = channel::channel(Arc::new(desired));
    let mut tasks = JoinSet::new();
    for target in args.targets(&rack) {
        let report = reporter(&board, None, &target, args.json);
        tasks.spawn(watch(target, receiver.clone(), args.interval(), report));
    }
    match etcd {
        Some(access) => tasks.spawn(follow_etcd(args.clone(), access, key(&rack.name), sender)),
        None => tasks.spawn(follow_file(args.clone(), files, sender)),
    };
    connect::until_signalled(async move {
        let _ = tasks.join_next().await;
    })
    .await
}

/// Reports a problem, as a line of the log if that is JSON.
pub(super) fn tell(what: &str) {
    match output::json_lines() {
        true => tracing::error!("{what}"),
        false => eprintln!("{what}"),
    }
}

/// Applies a new description. Reports an invalid one and keeps the previous one.
fn take(args: &Args, text: &str, sender: &channel::Sender<Arc<Desired>>, origin: &str) {
    match make(args, text) {
        Ok((_, desired)) => renew(sender, desired, origin),
        Err(error) => tell(&format!("{origin}: the new description is not used:\n{error}")),
    }
}

async fn follow_file(args: Arc<Args>, mut files: Files, sender: channel::Sender<Arc<Desired>>) {
    loop {
        files.saved().await;
        if let Ok(text) = text::read(&args.rack) {
            take(&args, &text, &sender, &args.rack.display().to_string());
        }
    }
}

/// Key of a rack's description in etcd.
fn key(rack: &str) -> String {
    format!("/p4rack/racks/{rack}")
}

/// Stores the file if there is no description yet or if it is to be published, and returns the stored one.
/// Retries until etcd responds.
async fn agree(access: &Access, key: &str, text: &str, publish: bool) -> String {
    loop {
        let attempt = async {
            let mut etcd = Etcd::connect(access).await?;
            if publish {
                etcd.put(key, text).await?;
            } else {
                etcd.put_if_absent(key, text).await?;
            }
            etcd.get(key).await
        };
        match attempt.await {
            Ok(Some(shared)) => return shared,
            Ok(None) => {}
            Err(error) => tell(&format!("{error}; retrying, switches are not changed until then")),
        }
        tokio::time::sleep(ETCD_RETRY).await;
    }
}

/// Applies descriptions from etcd, forever.
async fn follow_etcd(args: Arc<Args>, access: Access, key: String, sender: channel::Sender<Arc<Desired>>) {
    loop {
        let attempt = async {
            let mut etcd = Etcd::connect(&access).await?;
            let origin = format!("etcd {} {key}", access.addr);
            etcd.follow(&key, |shared| take(&args, shared, &sender, &origin)).await
        };
        if let Err(error) = attempt.await {
            tell(&format!("{error}; retrying, switches stay as they are"));
        }
        tokio::time::sleep(ETCD_RETRY).await;
    }
}

/// Records an event; returns the state before and after it.
fn note(board: &Board, addr: &str, change: &Change) -> (Counts, Counts) {
    let mut board = board.lock().unwrap_or_else(PoisonError::into_inner);
    let counts = board.entry(addr.to_owned()).or_default();
    let before = *counts;
    match change {
        Change::Primary => counts.primary = true,
        Change::Standby => counts.primary = false,
        Change::Failed(_) => {
            counts.failures += 1;
            counts.in_order = false;
        }
        Change::Step(Step::Installed) => counts.installs += 1,
        Change::Step(Step::Compared { changes, .. }) => {
            counts.comparisons += 1;
            counts.changes += changes.len() as u64;
            counts.in_order &= changes.is_empty();
        }
        Change::Step(Step::Ports { changes, .. }) => {
            counts.changes += changes.len() as u64;
            counts.in_order &= changes.is_empty();
        }
        Change::Step(Step::Verified { .. }) => counts.in_order = true,
        Change::Step(_) => {}
    }
    (before, *counts)
}

/// Reports changes; reports recovery only after a failure.
fn say(
    (name, switch): (Option<&str>, &ConnectOptions),
    change: &Change,
    comparisons: u64,
    was_in_order: bool,
    as_json: bool,
) {
    let (addr, device_id) = (&switch.addr, switch.device_id);
    let text = match (change, switch.protocol) {
        (Change::Primary, Protocol::P4Runtime) => format!("primary of device {device_id}"),
        (Change::Standby, Protocol::P4Runtime) => "standby: another controller is primary".into(),
        (Change::Primary, Protocol::BfRuntime) => "no other client is bound to the program".into(),
        (Change::Standby, Protocol::BfRuntime) => "standby: another client is bound to the program".into(),
        (Change::Failed(error), _) => {
            tracing::warn!(addr, %error, "failed");
            format!("failed, will retry: {error}")
        }
        (Change::Step(step), _) => match step {
            Step::Compared { changes, .. } if changes.is_empty() && comparisons > 1 => return,
            Step::Ports { changes, .. } if changes.is_empty() => return,
            Step::Kept => return,
            Step::Verified { .. } if was_in_order => return,
            step => line(step, "connected"),
        },
    };
    tracing::info!(addr, device_id, "{text}");
    if !as_json {
        println!("{}: {text}", name.unwrap_or(addr));
        return;
    }
    let mut line = match switch.protocol {
        Protocol::P4Runtime => json!({ "grpc_addr": addr, "device_id": device_id, "event": text }),
        Protocol::BfRuntime => json!({ "bfrt_addr": addr, "event": text }),
    };
    if let Some(name) = name {
        line["switch"] = name.into();
    }
    println!("{line}");
}

fn exposition(board: &Board) -> String {
    let board = board.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = Exposition::default();
    let mut add = |name, help, kind, value: fn(&Counts) -> u64| {
        text.family(name, help, kind);
        for (addr, counts) in board.iter() {
            text.sample(name, &[("switch", addr)], value(counts) as f64);
        }
    };
    add("p4rack_controller_primary", "Whether this controller is primary", "gauge", |c| c.primary.into());
    add(
        "p4rack_controller_in_order",
        "Whether the switch was in its desired state at the last check",
        "gauge",
        |c| c.in_order.into(),
    );
    add("p4rack_controller_installs_total", "Programs installed", "counter", |c| c.installs);
    add("p4rack_controller_comparisons_total", "Comparisons with the switch", "counter", |c| c.comparisons);
    add("p4rack_controller_changes_total", "Changes found necessary", "counter", |c| c.changes);
    add("p4rack_controller_failures_total", "Attempts that failed", "counter", |c| c.failures);
    text.into_string()
}
