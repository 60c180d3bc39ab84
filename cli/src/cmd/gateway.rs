//! `p4rack gateway`.

use super::adapter::{runtime, text};
use crate::output;
use p4rack_codegen::{Arch, Rack};
use p4rack_ctrl::deploy::{BfrtProgram, CompiledProgram};
use p4rack_ctrl::gateway::{self, Compiler, CpuPort, GatewayConfig};
use p4rack_ctrl::{ConnectOptions, Protocol};
use p4rack_entities::Candidate;
use p4rack_netdev::packet::Options as SocketOptions;
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_netdev::{PacketSocket, Poller, clock};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::schema::{NAMELESS, program_name};
use p4rack_wire::Nanos;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Frames from the switch that wait. Further ones are lost.
const WAITING: usize = 4096;
/// How often the end of the process is looked for.
const LOOK: Nanos = Nanos::from_millis(50);

/// Arguments of `p4rack gateway`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Address of the switch's BFRuntime server, HOST:PORT
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:50052")]
    bfrt_addr: String,
    /// Address at which to serve P4Runtime
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9559", value_parser = crate::cmd::values::addr)]
    grpc_server_addr: SocketAddr,
    /// P4Runtime device id to serve
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::numbers::number::<u64>)]
    device_id: u64,
    /// Interface of the CPU port, by which packet-outs reach the program and packet-ins leave it [default: no packets]
    #[arg(long, value_name = "INTERFACE")]
    cpu_interface: Option<String>,
    /// Rack description whose ports are added once a program was installed [default: ports are left alone]
    #[arg(long, value_name = "FILE")]
    rack: Option<PathBuf>,
    /// Program for the driver: the output folder of p4c's backend, with the program's text in program.p4, as
    /// bf-sde/build.sh leaves it [default: the text itself, for the embedded switch]
    #[arg(long, value_name = "DIR")]
    device_config: Option<PathBuf>,
    /// Serve at an address other than loopback: anyone who reaches it controls the switch
    #[arg(long)]
    insecure: bool,
}

/// Runs the command.
pub fn run(args: Args) -> ExitCode {
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(args: Args) -> Result<(), String> {
    let addr = args.grpc_server_addr;
    if !(args.insecure || addr.ip().is_loopback()) {
        return Err(format!(
            "--grpc-server-addr {addr} is reached from other machines, and everyone who connects controls the switch: \
             serve on loopback, or confirm with --insecure"
        ));
    }
    let rack = args.rack.as_deref().map(Rack::load).transpose().map_err(text)?;
    let signals = Signals::take().map_err(text)?;
    let cpu_port = args.cpu_interface.as_deref().map(open).transpose()?;
    let switch = ConnectOptions { protocol: Protocol::BfRuntime, ..ConnectOptions::new(args.bfrt_addr, 0) };
    let compiler = Box::new(Programs { compiled: args.device_config, rack });
    let config = GatewayConfig { switch, device_id: args.device_id, compiler, cpu_port };
    runtime()?.block_on(async {
        let listener = TcpListener::bind(addr).await.map_err(|error| {
            format!("can't listen on {addr}: {error}; choose another address or end the program that uses it")
        })?;
        let addr = listener.local_addr().map_err(text)?;
        output::announce(&format!("ready: P4Runtime at {addr}"));
        let ended = async {
            while signals.next() != Some(Signal::End) {
                tokio::time::sleep(Duration::from_nanos(LOOK.0)).await;
            }
        };
        gateway::serve(listener, config, ended).await.map_err(text)
    })
}

/// Opens the CPU port's interface; a thread of its own receives.
fn open(interface: &str) -> Result<CpuPort, String> {
    let socket = PacketSocket::open(interface, &SocketOptions::default()).map_err(text)?;
    let (mut receiver, sender) = socket.split();
    let mut poller = Poller::new();
    poller.add(&receiver).map_err(text)?;
    let (frames, received) = mpsc::channel(WAITING);
    let name = interface.to_owned();
    std::thread::spawn(move || {
        while !frames.is_closed() {
            let waited = poller.wait(Some(clock::now() + LOOK));
            let read = waited.and_then(|()| {
                receiver.receive(|frame, _| {
                    if frames.try_send(frame.to_vec()).is_err() {
                        tracing::debug!(bytes = frame.len(), "frame of the CPU port lost: too many wait");
                    }
                })
            });
            if let Err(error) = read {
                tracing::error!("{name}: {error}; no packet-ins until it is up again");
                std::thread::sleep(Duration::from_secs(1));
            }
        }
    });
    let (sender, name) = (Mutex::new(sender), interface.to_owned());
    let send = move |mut frame: Vec<u8>| {
        let mut sender = sender.lock().map_err(text)?;
        let refused = |sender: &p4rack_netdev::packet::Sender| {
            let stats = sender.stats();
            stats.send_full + stats.send_refused
        };
        let before = refused(&sender);
        sender.send(&mut frame);
        sender.flush();
        match refused(&sender) == before {
            true => Ok(()),
            false => Err(format!("{name} does not take the frame: is it up, and the frame within its MTU?")),
        }
    };
    Ok(CpuPort { send: Box::new(send), received })
}

/// Programs of controllers as BFRuntime's.
#[derive(Debug)]
struct Programs {
    /// A compiler's output folder.
    compiled: Option<PathBuf>,
    /// Whose ports are added.
    rack: Option<Rack>,
}

impl Compiler for Programs {
    fn compile(&self, info: &P4Info, device_config: &[u8]) -> Result<(BfrtProgram, Vec<u8>), String> {
        let package = info.pkg_info.clone().unwrap_or_default();
        let arch = package.arch.parse().ok().filter(|arch: &Arch| arch.is_tofino()).ok_or_else(|| {
            format!("P4Info's pkg_info.arch is `{}`; programs for Tofino have `tna` or `t2na`", package.arch)
        })?;
        let source = std::str::from_utf8(device_config)
            .map_err(|_| "p4_device_config is no text; it takes the P4 program".to_owned())?;
        let name = program_name(info).unwrap_or_else(|| NAMELESS.to_owned());
        let (program, binary) = match &self.compiled {
            None => {
                let bf_rt = Candidate::received(source, NAMELESS)?.program.bf_rt;
                let bf_rt = bf_rt.ok_or("the program is not for Tofino")?;
                (BfrtProgram { name, bf_rt, ..Default::default() }, device_config.to_vec())
            }
            Some(folder) => {
                let path = folder.join("program.p4");
                let own =
                    std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
                if own != source {
                    return Err(format!(
                        "{} was compiled from another text than p4_device_config: compile that, by bf-sde/build.sh",
                        folder.display()
                    ));
                }
                let CompiledProgram { bf_rt, context, binary } =
                    CompiledProgram::read(folder, arch).map_err(text)?;
                (BfrtProgram { name, bf_rt, context, ..Default::default() }, binary)
            }
        };
        Ok(match &self.rack {
            Some(rack) => (program.with_ports_of(&rack.on(arch)), binary),
            None => (program, binary),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::config::v1::PkgInfo;

    /// As `p4rack p4 info` writes it of a program that has no `@pkginfo`.
    #[test]
    fn a_program_without_a_name_is_called_as_the_embedded_switch_calls_it() {
        let text =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/tna-forward.p4"));
        let text = text.expect("an example").into_bytes();
        let info = |name: &str| {
            let pkg_info = PkgInfo { name: name.to_owned(), arch: "tna".to_owned(), ..Default::default() };
            P4Info { pkg_info: Some(pkg_info), ..Default::default() }
        };
        let programs = Programs { compiled: None, rack: None };
        let name = |given: &str| programs.compile(&info(given), &text).expect("it compiles").0.name;
        assert_eq!((name(""), name("my-program")), ("p4_device_config".to_owned(), "my_program".to_owned()));
    }
}
