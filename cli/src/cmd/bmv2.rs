//! BMv2's `simple_switch_grpc` as a process, for comparisons.

use p4rack_lab::bmv2::{self as lab, PROGRAM};
use p4rack_switchd::bench::other::{Other, Running};
use std::fs::Permissions;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to listen.
const START: Duration = Duration::from_secs(20);
/// Interval between checks whether it listens.
const LOOK: Duration = Duration::from_millis(20);
/// CPU port, the same as the embedded switch's.
const CPU_PORT: &str = "510";

/// A TCP port without a listener.
fn free_port() -> Result<u16, String> {
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    free.map(|addr| addr.port()).map_err(|error| format!("looking for a free port: {error}"))
}

/// HOST:PORT of such a port.
pub(super) fn free_addr() -> Result<String, String> {
    free_port().map(|port| format!("127.0.0.1:{port}"))
}

/// A private folder with an unpredictable name, removed together with the value.
pub(super) fn private_folder() -> Result<TempDir, String> {
    let private = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().prefix("p4rack-").permissions(private).tempdir();
    made.map_err(|error| format!("a temporary folder: {error}"))
}

/// Its path, and arguments that keep it from interfering with other instances.
fn apart() -> Result<(PathBuf, Vec<String>), String> {
    let installed = lab::Bmv2::find().map_err(|error| error.to_string())?;
    let args = installed.apart(free_port()?);
    Ok((installed.path, args))
}

/// A process that forwards between `p1` and `p2` with a compiled program.
pub(super) fn forwarder(json: &Path) -> Result<Other, String> {
    let (program, mut args) = apart()?;
    let addr = free_addr()?;
    let json = json.display().to_string();
    args.extend(["-i", "1@p1", "-i", "2@p2", &json, "--", "--grpc-server-addr", &addr].map(str::to_owned));
    Ok(Other { program, args, addr: addr.parse().map_err(|error| format!("{addr}: {error}"))? })
}

/// A process without interfaces, ended when dropped.
pub(super) struct Bmv2 {
    process: Running,
    addr: String,
    packets_addr: Option<String>,
}

impl Bmv2 {
    /// Starts a process without ports at free addresses and waits until P4Runtime responds.
    pub fn start(device_id: u64) -> Result<Bmv2, String> {
        Bmv2::start_with(device_id, None, &["--cpu-port", CPU_PORT])
    }

    /// Starts a process whose ports are accessed over gRPC; none of them is the CPU port.
    pub fn start_for_packets(device_id: u64) -> Result<Bmv2, String> {
        let addr = free_addr()?;
        Bmv2::start_with(device_id, Some(addr.clone()), &["--dp-grpc-server-addr", &addr])
    }

    fn start_with(device_id: u64, packets_addr: Option<String>, words: &[&str]) -> Result<Bmv2, String> {
        let (program, apart) = apart()?;
        let addr = free_addr()?;
        let mut command = Command::new(&program);
        command.args(["--no-p4", "--device-id", &device_id.to_string()]);
        command.args(apart).args(["--", "--grpc-server-addr", &addr]).args(words);
        let process = Running::start(&mut command)
            .map_err(|error| format!("starting {}: {error}", program.display()))?;
        let mut switch = Bmv2 { process, addr, packets_addr };
        let started = Instant::now();
        let listens = |addr: &str| TcpStream::connect(addr).is_ok();
        while !listens(&switch.addr) || !switch.packets_addr.as_deref().is_none_or(listens) {
            if let Some(how) = switch.process.ended() {
                return Err(format!("{PROGRAM} ended immediately: {how}"));
            }
            if started.elapsed() > START {
                return Err(format!(
                    "{PROGRAM} does not listen on {} after {} s",
                    switch.addr,
                    START.as_secs()
                ));
            }
            std::thread::sleep(LOOK);
        }
        Ok(switch)
    }

    /// Address of its P4Runtime server.
    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// Address for access to its ports over gRPC, if enabled.
    pub fn packets_addr(&self) -> Option<&str> {
        self.packets_addr.as_deref()
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// If it has ended: its exit status and the end of its output.
    pub fn ended(&mut self) -> Option<String> {
        self.process.ended()
    }
}
