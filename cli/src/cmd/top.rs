//! `p4rack top`: live view of a switch's ports, queues, reservations and drops.

mod view;

use super::connect;
use super::topology::is_topology;
use crate::output;
use p4rack_codegen::scheme::{PROTOCOLS, Reservations, l2};
use p4rack_codegen::topology::Topology;
use p4rack_codegen::{Arch, Rack};
use p4rack_ctrl::items::{CounterItem, Item, RegisterItem};
use p4rack_ctrl::telemetry::Telemetry;
use p4rack_ctrl::{CtrlError, Link, Protocol, bfrt};
use p4rack_lab::network::port_bytes;
use p4rack_lab::{keep, sys};
use p4rack_p4rt::p4rack::telemetry::v1::{GetStatsResponse, PortStats};
use p4rack_p4rt::schema::Schema;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use view::View;

/// Bits of v1model's clock in nanoseconds; registers with counts have others.
const CLOCK_BITS: u32 = 48;
/// Bits of Tofino's, whose registers are signed.
const SHORT_CLOCK_BITS: u32 = 32;

/// BFRuntime's only reason for drops.
const NO_ROOM: &str = "no_room";

/// Arguments of `p4rack top`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The rack description, for the names of hosts; or with --switch a topology that `up --keep` left running
    #[arg(value_name = "RACK|TOPOLOGY")]
    rack: Option<PathBuf>,
    /// Interval in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = crate::cmd::finite)]
    every: f64,
    /// Measure once, over one interval, print a table and exit; the default if the output is not a terminal
    #[arg(long)]
    once: bool,
    /// Print JSON; includes --once
    #[arg(long)]
    json: bool,
    /// Watch this switch of a topology or rack that `up --keep` left running
    #[arg(long, value_name = "NAME", conflicts_with_all = ["grpc_addr", "bfrt_addr", "device_id"])]
    switch: Option<String>,
    /// Name of the topology or rack, if several are running
    #[arg(long = "of", value_name = "NAME", requires = "switch")]
    of: Option<String>,
    /// Interfaces of the switch, if it has no statistics, are NAME-ethPORT here; --switch adds this
    #[arg(long, value_name = "NAME", hide = true)]
    beside: Option<String>,
    #[command(flatten)]
    target: connect::Either,
}

/// State of a switch at one time.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Statistics of ports and queues, and drops.
    pub stats: GetStatsResponse,
    /// Reservations by port, as source and as destination, in the program's units.
    pub reserved: BTreeMap<u32, (String, String)>,
    /// Frames dropped by the program, by cell of its counter.
    pub program_drops: Vec<i64>,
    /// Whether the switch says nothing of its queues, and of what it drops there.
    pub hides_queues: bool,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let file = args.rack.as_deref();
    if let Some(topology) = file.filter(|file| is_topology(file)) {
        return of_topology(&args, topology);
    }
    if let Some(name) = &args.switch {
        let example = file.unwrap_or(Path::new("examples/pl2-incast.toml")).display().to_string();
        return super::refused(keep::top(args.of.as_deref(), name, &own_words(None), &example));
    }
    let rack = match args.rack.as_ref().map(Rack::load).transpose() {
        Ok(rack) => rack,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(1);
        }
    };
    match connect::block_on(watch(&args, rack.as_ref())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => connect::fail(&error, args.json),
    }
}

/// Watches a switch of a topology, which the file names; that it runs is another matter.
fn of_topology(args: &Args, file: &Path) -> ExitCode {
    let topology = match Topology::load(file) {
        Ok(topology) => topology,
        Err(error) => return super::refused(error),
    };
    let (path, names): (_, Vec<&str>) =
        (file.display().to_string(), topology.switches.iter().map(|switch| switch.name.as_str()).collect());
    let Some(name) = args.switch.as_deref().filter(|name| names.contains(name)) else {
        let what =
            args.switch.as_ref().map_or("is a topology".to_owned(), |name| format!("has no switch `{name}`"));
        return super::refused(format!(
            "{path}: {what}; while it runs (p4rack up {path} --keep), name one of its switches with --switch: {}",
            names.join(", ")
        ));
    };
    let of = args.of.as_deref().unwrap_or(&topology.name);
    super::refused(keep::top(Some(of), name, &own_words(Some(file)), &path))
}

/// The command's own arguments, without the switch's name and the file of its topology: what runs beside the switch gets its
/// address instead.
fn own_words(topology: Option<&Path>) -> Vec<OsString> {
    let mut words = std::env::args_os().skip(1);
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        match ["--switch", "--of"].into_iter().find(|option| text.starts_with(option)) {
            Some(option) if text == option => drop(words.next()),
            Some(option) if text[option.len()..].starts_with('=') => {}
            _ if topology.is_some_and(|file| file.as_os_str() == word) => {}
            _ => kept.push(word),
        }
    }
    kept
}

async fn watch(args: &Args, rack: Option<&Rack>) -> Result<(), CtrlError> {
    let target = args.target.for_switch(rack.map(|rack| &rack.switch));
    let mut statistics = match target.protocol {
        Protocol::P4Runtime => {
            let mut telemetry = Telemetry::connect(&target).await?;
            match &args.beside {
                Some(switch) if !telemetry.is_served().await? => Statistics::Interfaces(switch.clone()),
                _ => Statistics::Telemetry(Box::new(telemetry)),
            }
        }
        Protocol::BfRuntime => Statistics::Tables(Instant::now(), Box::default()),
    };
    let mut client = Link::to_read(target.clone()).await?;
    let title = match target.protocol {
        Protocol::P4Runtime => format!("device {} at {}", target.device_id, target.addr),
        Protocol::BfRuntime => format!("{} over BFRuntime", target.addr),
    };
    let live = std::io::stdout().is_terminal() && !args.once && !args.json;
    let pause = Duration::from_secs_f64(args.every.clamp(0.05, 3600.0));
    let mut before = look(&mut statistics, &mut client, rack).await?;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
        let now = look(&mut statistics, &mut client, rack).await?;
        let view = View::new(&before, &now, rack);
        if args.json {
            println!("{}", serde_json::to_string_pretty(&view).expect("numbers and names are JSON"));
            return Ok(());
        }
        let text = view.text(&title);
        if !live {
            print!("{text}");
            return Ok(());
        }
        print!("\x1b[2J\x1b[H{text}\nCtrl-C ends\n");
        output::flush();
        before = now;
    }
}

/// Where statistics come from.
enum Statistics {
    /// The embedded switch's own service.
    Telemetry(Box<Telemetry>),
    /// The kernel's counters of the interfaces of this switch, which has no statistics.
    Interfaces(String),
    /// The device's tables, which do not tell the time: it is that since then; and the names of the program.
    Tables(Instant, Box<Option<Schema>>),
}

/// Counters of the device's tables.
async fn counted(link: &mut bfrt::Link, since: Instant) -> Result<GetStatsResponse, CtrlError> {
    let ports = link.port_stats().await?;
    let now_ns = since.elapsed().as_nanos() as u64;
    let (buffer_bytes, buffer_max_bytes) = link.buffered().await?;
    let dropped: u64 = ports.iter().map(|port| port.drops).sum();
    let one = |port: bfrt::PortStat| PortStats {
        port: port.number,
        rx_bytes: port.rx_bytes,
        tx_bytes: port.tx_bytes,
        queue_bytes: port.queue_bytes,
        queue_max_bytes: port.queue_max_bytes,
        drops: [(NO_ROOM.to_owned(), port.drops)].into(),
        ..Default::default()
    };
    Ok(GetStatsResponse {
        now_ns,
        buffer_bytes,
        buffer_max_bytes,
        drops: [(NO_ROOM.to_owned(), dropped)].into(),
        ports: ports.into_iter().map(one).collect(),
        ..Default::default()
    })
}

/// Counters of a switch's interfaces.
fn of_interfaces(switch: &str) -> Result<GetStatsResponse, CtrlError> {
    let read = port_bytes(switch).map_err(|error| CtrlError::Input(error.to_string()))?;
    let one = |(port, [rx_bytes, tx_bytes]): (u16, [u64; 2])| PortStats {
        port: port.into(),
        rx_bytes,
        tx_bytes,
        ..Default::default()
    };
    let ports = read.into_iter().map(one).collect();
    Ok(GetStatsResponse { now_ns: sys::monotonic_ns(), ports, ..Default::default() })
}

async fn look(
    statistics: &mut Statistics,
    client: &mut Link,
    rack: Option<&Rack>,
) -> Result<Look, CtrlError> {
    let hides_queues = matches!(statistics, Statistics::Interfaces(_));
    let (stats, schema) = match (statistics, &mut *client) {
        (Statistics::Interfaces(switch), _) => (of_interfaces(switch)?, client.schema().await.ok()),
        // A switch without a program, or without reservations, still has ports.
        (Statistics::Telemetry(telemetry), _) => (telemetry.stats().await?, client.schema().await.ok()),
        (Statistics::Tables(since, names), Link::Bfrt(link)) => {
            // The schema is the only source of the names of the device's tables.
            if let Some(new) = link.schema_if_new().await? {
                **names = Some(new);
            }
            (counted(link, *since).await?, names.as_ref().clone())
        }
        (Statistics::Tables(..), _) => Default::default(),
    };
    let Some(schema) = schema else { return Ok(Look { stats, hides_queues, ..Look::default() }) };
    let has_registers = |registers: &Reservations| schema.register(registers.sources).is_ok();
    let registers = PROTOCOLS.iter().find_map(|protocol| protocol.reservations().filter(has_registers));
    let [sources, destinations] = match registers {
        None => Default::default(),
        Some(of) => [
            reservations(client, &schema, (&of, of.sources), stats.now_ns, rack).await,
            reservations(client, &schema, (&of, of.destinations), stats.now_ns, rack).await,
        ],
    };
    let mut reserved: BTreeMap<u32, (String, String)> = BTreeMap::new();
    for port in stats.ports.iter().map(|port| port.port) {
        let of = |cells: &BTreeMap<u32, String>| cells.get(&port).cloned().unwrap_or("-".into());
        reserved.insert(port, (of(&sources), of(&destinations)));
    }
    let program_drops = drops(client, &schema).await;
    Ok(Look { stats, reserved, program_drops, hides_queues })
}

/// Cells of a register as text; empty if the program has no such register or the switch cannot read it.
async fn reservations(
    client: &mut Link,
    schema: &Schema,
    (registers, name): (&Reservations, &str),
    now_ns: u64,
    rack: Option<&Rack>,
) -> BTreeMap<u32, String> {
    let item = Item::Register(RegisterItem { register: name.into(), ..Default::default() });
    let Ok(entity) = item.entity(schema) else { return BTreeMap::new() };
    let Ok(found) = client.read(vec![entity]).await else { return BTreeMap::new() };
    let items = found.iter().filter_map(|entity| Item::of(schema, entity).ok());
    let clock_bits = clock_bits(schema, name);
    // BFRuntime reports no time of the switch to compare with. It reports only the width of a register: 16
    // bits hold counts.
    if matches!(client, Link::Bfrt(_)) && !holds_counts(schema, name) {
        return BTreeMap::new();
    }
    let horizon = horizon(registers, clock_bits, rack);
    let mut cells = BTreeMap::new();
    for item in items {
        if let Item::Register(RegisterItem { index: Some(index), value: Some(value), .. }) = item
            && let (Ok(port), Ok(value)) = (u32::try_from(index), value.parse::<i64>())
        {
            let text = match clock_bits {
                Some(bits) => ahead(value as u64, now_ns, bits, horizon),
                None => format!("{value} slots"),
            };
            cells.insert(port, text);
        }
    }
    cells
}

/// Bits of the times that the register holds; `None` if it holds slots.
fn clock_bits(schema: &Schema, name: &str) -> Option<u32> {
    use p4rack_p4rt::p4::config::v1::{p4_bitstring_like_type_spec::TypeSpec, p4_data_type_spec};
    let spec = schema.register(name).ok().and_then(|register| register.type_spec.clone());
    match spec.and_then(|spec| spec.type_spec) {
        Some(p4_data_type_spec::TypeSpec::Bitstring(bits)) => match bits.type_spec {
            Some(TypeSpec::Bit(bit)) if bit.bitwidth as u32 == CLOCK_BITS => Some(CLOCK_BITS),
            Some(TypeSpec::Int(int)) if int.bitwidth as u32 == SHORT_CLOCK_BITS => Some(SHORT_CLOCK_BITS),
            _ => None,
        },
        _ => None,
    }
}

/// Whether the register, as BFRuntime's schema describes it, holds slots.
fn holds_counts(schema: &Schema, name: &str) -> bool {
    use p4rack_p4rt::p4::config::v1::{p4_bitstring_like_type_spec::TypeSpec, p4_data_type_spec};
    let spec = schema.register(name).ok().and_then(|register| register.type_spec.clone());
    matches!(spec.and_then(|spec| spec.type_spec), Some(p4_data_type_spec::TypeSpec::Bitstring(bits))
        if matches!(&bits.type_spec, Some(TypeSpec::Bit(bit)) if bit.bitwidth == 16))
}

/// How far ahead a time may be; a time further ahead is in the past, and the port is idle.
fn horizon(registers: &Reservations, clock_bits: Option<u32>, rack: Option<&Rack>) -> u64 {
    if clock_bits != Some(SHORT_CLOCK_BITS) {
        return registers.horizon_units;
    }
    let rack = rack.map(|rack| rack.on(Arch::Tna));
    let of =
        |rack: &Rack| rack.protocols.iter().find_map(|protocol| protocol.reservation_horizon_units(rack));
    rack.as_ref().and_then(of).unwrap_or(registers.short_horizon_units)
}

/// How far ahead a port is reserved: its register holds the time at which it is free.
fn ahead(free: u64, now_ns: u64, clock_bits: u32, horizon: u64) -> String {
    let ahead = free.wrapping_sub(now_ns) % (1 << clock_bits);
    if ahead == 0 || ahead >= horizon { "free".into() } else { format!("{:.1} µs", ahead as f64 / 1e3) }
}

async fn drops(client: &mut Link, schema: &Schema) -> Vec<i64> {
    let item = Item::Counter(CounterItem { counter: l2::DROPS.into(), ..Default::default() });
    let Ok(entity) = item.entity(schema) else { return Vec::new() };
    let Ok(found) = client.read(vec![entity]).await else { return Vec::new() };
    let packets = |entity| match Item::of(schema, entity) {
        Ok(Item::Counter(counter)) => counter.counts.map(|counts| counts.packets),
        _ => None,
    };
    found.iter().filter_map(packets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_in_the_past_is_none_across_the_wrap_too() {
        let registers = PROTOCOLS.iter().find_map(|protocol| protocol.reservations()).unwrap();
        let long =
            |free, now_ns| ahead(free, now_ns, CLOCK_BITS, horizon(&registers, Some(CLOCK_BITS), None));
        let short_horizon = horizon(&registers, Some(SHORT_CLOCK_BITS), None);
        assert_eq!(long(5_000, 1_000), "4.0 µs");
        assert_eq!(long(1_000, 5_000), "free");
        assert_eq!(long(500, (1 << 48) - 500), "1.0 µs");
        // A register of 32 bits that was read as a negative number.
        let short = |free: i64, now_ns| ahead(free as u64, now_ns, SHORT_CLOCK_BITS, short_horizon);
        assert_eq!(short(-500, (1 << 40) - 1_500), "1.0 µs");
        assert_eq!(short(500, (3 << 32) - 500), "1.0 µs");
        assert_eq!(short(1 << 25, 3 << 32), "free");
    }
}
