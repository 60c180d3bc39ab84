//! `p4rack pl2`.

use super::connect;
use super::settings::{RackSettings, Settings};
use p4rack_codegen::Arch;
use p4rack_codegen::rack::{Host, Rack};
use p4rack_codegen::scheme::pl2::{Mode, Pl2};
use p4rack_ctrl::mgmt::{Cell, Described, Generated, Manager, Operation, Register};
use p4rack_ctrl::{CtrlError, Protocol, Session, bfrt};
use p4rack_lab::rows::Rows;
use p4rack_wire::EtherType;
use p4rack_wire::pl2::Side;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `p4rack pl2`.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Show reservations
    Read(Registers),
    /// Set registers to "nothing reserved" and show the previous values
    ///
    /// For tests and experts. In counter mode a register is the sum of the slots that hosts may still use.
    /// After a reset or write this no longer holds, and a port is overbooked as long as its hosts are busy.
    /// To take back a dead host's slots, use `forget`.
    Reset(Registers),
    /// Take back a dead host's reservations and show the amounts
    ///
    /// Takes exactly the slots that the host holds, at both ports, and frees its lanes; reservations of
    /// other hosts stay. In clock mode reservations expire; only the lanes need this, if the host is to
    /// reserve again immediately.
    Forget(Forget),
    /// Set registers to a value and show the previous values; see `reset`
    Write {
        /// Slots (counter mode) or time units from now (clock mode)
        #[arg(long, value_parser = crate::numbers::number::<u32>)]
        value: u32,
        #[command(flatten)]
        registers: Registers,
    },
}

#[derive(clap::Args, Debug)]
struct Forget {
    /// The rack description, TOML
    rack: PathBuf,
    #[command(flatten)]
    settings: Settings,
    /// Name of the dead host
    #[arg(long)]
    host: String,
    /// Only reservations towards this host [default: towards all]
    #[arg(long)]
    to: Option<String>,
    /// Architecture of the program that runs [default: the description's]
    #[arg(long)]
    arch: Option<Arch>,
    #[command(flatten)]
    switch: connect::Either,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Registers {
    /// The rack description, TOML; without it, ports have no names
    rack: Option<PathBuf>,
    #[command(flatten)]
    settings: RackSettings,
    /// Only the port of this host
    #[arg(long, conflicts_with_all = ["port", "all"], requires = "rack")]
    host: Option<String>,
    /// Only this port
    #[arg(long, conflicts_with = "all", value_parser = crate::numbers::number::<u16>)]
    port: Option<u16>,
    /// All ports for which the program has registers, not only those of hosts
    #[arg(long)]
    all: bool,
    /// Reservations of the port as a source (in), as a destination (out), or both
    #[arg(long, default_value = "both", value_parser = ["in", "out", "both"])]
    target: String,
    /// PL2's EtherType [default: the description's, or 0x88b5]
    #[arg(long, value_parser = parse_ether_type)]
    ether_type: Option<EtherType>,
    #[command(flatten)]
    switch: connect::Either,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn parse_ether_type(text: &str) -> Result<EtherType, String> {
    crate::numbers::number(text)
        .map(EtherType)
        .map_err(|_| format!("`{text}` is not an EtherType such as 0x88b5"))
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    let (operation, registers) = match args.command {
        Command::Read(registers) => (Operation::Read, registers),
        Command::Reset(registers) => (Operation::Reset, registers),
        Command::Write { value, registers } => (Operation::Write(value), registers),
        Command::Forget(args) => return forget(&args),
    };
    let rack =
        match registers.rack.as_ref().map(|rack| Rack::load_set(rack, &registers.settings.set)).transpose() {
            Ok(rack) => rack,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(1);
            }
        };
    if let Some(rack) = rack.as_ref().filter(|rack| rack.protocol::<Pl2>().is_none()) {
        eprintln!("rack {}: has no [pl2] table, so its switch keeps no reservations", rack.name);
        return ExitCode::from(1);
    }
    match connect::block_on(exchange(operation, &registers, rack.as_ref())) {
        Ok(rows) => print(&rows, rack.as_ref(), registers.json),
        Err(Failure::Usage(message)) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
        Err(Failure::Switch(error)) => return connect::fail(&error, registers.json),
    }
    ExitCode::SUCCESS
}

fn forget(args: &Forget) -> ExitCode {
    // Where cells are depends on the architecture.
    let rack = match Rack::load_set(&args.rack, &args.settings.set) {
        Ok(rack) => on_arch(&rack, args.arch, &args.switch),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(1);
        }
    };
    let (host, to) = (args.host.as_str(), args.to.as_deref());
    if let Some(missing) = [Some(host), to].into_iter().flatten().find(|name| rack.host(name).is_none()) {
        eprintln!("the rack has no host `{missing}`");
        return ExitCode::from(2);
    }
    let described = rack.protocol::<Pl2>();
    let cells = described.map(|pl2| cells(&rack, pl2, host, to)).unwrap_or_default();
    let ether_type = described.map_or(EtherType::PL2_DEFAULT, |pl2| pl2.ether_type);
    let target = args.switch.for_switch(Some(&rack.switch));
    let done = connect::block_on(async {
        match target.protocol {
            Protocol::P4Runtime => {
                let mut session = Session::beside(target).await?;
                Manager::new(&mut session, ether_type).await?.forget(&cells).await
            }
            Protocol::BfRuntime => {
                let mut link = bfrt::Link::bound_or_beside(target).await?;
                let mut manager = Generated::new(&mut link, ether_type, described_by(Some(&rack))).await?;
                manager.forget(&cells).await
            }
        }
    });
    match done {
        Ok(values) => {
            let held: u64 = values.into_iter().map(u64::from).sum();
            if args.json {
                println!("{:#}", json!({ "host": host, "to": to, "value": held }));
            } else {
                let unit = match described.map(|pl2| pl2.mode) {
                    Some(Mode::Counter) => "slots",
                    _ if rack.switch.arch.is_tofino() => "frames",
                    _ => "bytes",
                };
                println!("{host} had left {held} {unit} reserved towards {}", to.unwrap_or("all"));
            }
            ExitCode::SUCCESS
        }
        Err(error) => connect::fail(&error, args.json),
    }
}

/// The rack on the selected architecture: over BFRuntime one of Tofino's.
fn on_arch(rack: &Rack, arch: Option<Arch>, switch: &connect::Either) -> Rack {
    let over_bfrt = switch.for_switch(None).protocol == Protocol::BfRuntime;
    let described = match rack.switch.arch {
        arch if arch.is_tofino() || !over_bfrt => arch,
        _ => Arch::Tna,
    };
    rack.on(arch.unwrap_or(described))
}

/// A rack's facts about its program for Tofino.
fn described_by(rack: Option<&Rack>) -> Option<Described> {
    let rack = rack?;
    let pl2 = rack.protocol::<Pl2>()?;
    Some(Described { cpu_port: rack.switch.cpu_port, horizon_units: pl2.horizon_units(rack) })
}

/// Cells of a source towards one destination, or towards all.
fn cells(rack: &Rack, pl2: &Pl2, source: &str, to: Option<&str>) -> Vec<Cell> {
    let hosts = || rack.hosts.iter().enumerate();
    let sources = hosts().filter(|(_, host)| host.name == source);
    let pairs = sources.flat_map(|source| {
        let wanted = hosts().filter(|(_, host)| to.is_none_or(|to| host.name == to));
        wanted.map(move |destination| (source, destination))
    });
    let of_pair = |((source, from), (destination, to))| {
        let (from, to): (&Host, &Host) = (from, to);
        (0..pl2.cells_a_pair()).map(move |cell| {
            let number = pl2.cell_number(rack, source, destination, cell);
            let index = pl2.cell_index(rack, number) as u32;
            Cell { source: from.link, destination: to.link, number, index }
        })
    };
    pairs.flat_map(of_pair).collect()
}

enum Failure {
    Usage(String),
    Switch(CtrlError),
}

impl From<CtrlError> for Failure {
    fn from(error: CtrlError) -> Failure {
        Failure::Switch(error)
    }
}

/// Registers with their previous values.
async fn exchange(
    operation: Operation,
    args: &Registers,
    rack: Option<&Rack>,
) -> Result<Vec<(Register, u32)>, Failure> {
    let described = rack.and_then(|rack| rack.protocol::<Pl2>()).map(|pl2| pl2.ether_type);
    let ether_type = args.ether_type.or(described).unwrap_or(EtherType::PL2_DEFAULT);
    let target = args.switch.for_switch(rack.map(|rack| &rack.switch));
    match target.protocol {
        Protocol::P4Runtime => {
            let mut session = Session::beside(target).await?;
            let mut manager = Manager::new(&mut session, ether_type).await?;
            let registers = chosen(args, rack, manager.ports())?;
            let values = manager.exchange(operation, &registers).await?;
            Ok(registers.into_iter().zip(values).collect())
        }
        Protocol::BfRuntime => {
            let rack = rack.map(|rack| on_arch(rack, None, &args.switch));
            let mut link = bfrt::Link::bound_or_beside(target).await?;
            let mut manager = Generated::new(&mut link, ether_type, described_by(rack.as_ref())).await?;
            let registers = chosen(args, rack.as_ref(), manager.ports())?;
            let values = manager.exchange(operation, &registers).await?;
            Ok(registers.into_iter().zip(values).collect())
        }
    }
}

/// The registers that the options select, of a program that has `all` ports.
fn chosen(args: &Registers, rack: Option<&Rack>, all: u16) -> Result<Vec<Register>, Failure> {
    let ports: Vec<u16> = match (&args.host, args.port, rack) {
        (Some(name), _, Some(rack)) => {
            let host = rack.host(name);
            vec![host.ok_or_else(|| Failure::Usage(format!("the rack has no host `{name}`")))?.link]
        }
        (_, Some(port), _) => vec![port],
        (_, _, Some(rack)) if !args.all => rack.hosts.iter().map(|host| host.link).collect(),
        _ => (0..all).collect(),
    };
    let targets: &[Side] = match args.target.as_str() {
        "in" => &[Side::In],
        "out" => &[Side::Out],
        _ => &[Side::In, Side::Out],
    };
    let of_port = |port| targets.iter().map(move |target| Register { target: *target, port });
    Ok(ports.into_iter().flat_map(of_port).collect())
}

fn print(rows: &[(Register, u32)], rack: Option<&Rack>, as_json: bool) {
    let host = |port: u16| {
        let hosts = rack.map_or(&[][..], |rack| &rack.hosts);
        hosts.iter().find(|host| host.link == port).map(|host| host.name.as_str())
    };
    let target = |target: Side| match target {
        Side::In => "in",
        Side::Out => "out",
    };
    if as_json {
        let row = |(register, value): &(Register, u32)| {
            json!({
                "port": register.port, "host": host(register.port),
                "target": target(register.target), "value": value,
            })
        };
        println!("{:#}", Value::from(rows.iter().map(row).collect::<Vec<Value>>()));
        return;
    }
    let mut table = Rows::new(&[">port", "host", "target", ">reserved"]);
    for (register, value) in rows {
        let name = host(register.port).unwrap_or("-");
        table.push(vec![
            register.port.to_string(),
            name.to_owned(),
            target(register.target).to_owned(),
            value.to_string(),
        ]);
    }
    print!("{}", table.text());
}
