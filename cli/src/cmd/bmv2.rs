//! BMv2's `simple_switch_grpc` as a process, for what compares with it.

use super::bench_p4runtime::free_addr;
use super::doctor;
use p4rack_switchd::bench::other::Other;
use std::fs::Permissions;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = "simple_switch_grpc";
/// How long it may take to listen.
const START: Duration = Duration::from_secs(20);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Port of the controller's packets, as the embedded switch has it.
const CPU_PORT: &str = "510";

/// What runs, or how to get it.
fn program() -> Result<PathBuf, String> {
    doctor::on_path(PROGRAM)
        .ok_or_else(|| format!("{PROGRAM} is not on PATH; `p4rack doctor` tells how to get it"))
}

/// A folder of this user's alone, under a name that nobody could foresee; it goes with the value.
pub(super) fn private_folder() -> Result<TempDir, String> {
    let private = Permissions::from_mode(0o700);
    let made = tempfile::Builder::new().prefix("p4rack-").permissions(private).tempdir();
    made.map_err(|error| format!("a temporary folder: {error}"))
}

/// Where a switch tells its news, in a folder.
fn news(folder: &Path) -> String {
    format!("ipc://{}", folder.join("news.ipc").display())
}

/// One that forwards between `p1` and `p2` by a compiled program, in whose folder it tells its news.
pub(super) fn forwarder(json: &Path) -> Result<Other, String> {
    let addr = free_addr()?;
    let news = news(json.parent().unwrap_or(Path::new(".")));
    let args = ["-i", "1@p1", "-i", "2@p2", "--notifications-addr", &news, &json.display().to_string()];
    let args = args.into_iter().chain(["--", "--grpc-server-addr", &addr]);
    Ok(Other {
        program: program()?,
        args: args.map(str::to_owned).collect(),
        addr: addr.parse().map_err(|error| format!("{addr}: {error}"))?,
    })
}

/// One without ports, ended when dropped.
pub(super) struct Bmv2 {
    process: Child,
    addr: String,
    _folder: TempDir,
}

impl Bmv2 {
    /// Starts one on free addresses and waits until P4Runtime answers.
    pub fn start(device_id: u64) -> Result<Bmv2, String> {
        let program = program()?;
        let folder = private_folder()?;
        let (addr, thrift) = (free_addr()?, free_addr()?);
        let thrift_port = thrift.rsplit(':').next().unwrap_or_default();
        let process = Command::new(&program)
            .args(["--no-p4", "--device-id", &device_id.to_string(), "--thrift-port", thrift_port])
            .args(["--notifications-addr", &news(folder.path())])
            .args(["--", "--grpc-server-addr", &addr, "--cpu-port", CPU_PORT])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| format!("starting {}: {error}", program.display()))?;
        let mut switch = Bmv2 { process, addr, _folder: folder };
        let started = Instant::now();
        while TcpStream::connect(&switch.addr).is_err() {
            if let Ok(Some(status)) = switch.process.try_wait() {
                return Err(format!("{PROGRAM} ended at once: {status}"));
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

    /// Where it serves P4Runtime.
    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Bmv2 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
