//! Another switch, a process, measured as this one is.

use super::forward::{BenchError, Signs};
use p4rack_netdev::{Links, clock};
use p4rack_wire::Nanos;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long it may take to listen.
const START: Nanos = Nanos::from_millis(20_000);
/// How often that is looked at, and whether it is to stop.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes of what it says that are shown. Nobody reads it before it ends; a pipe holds as much.
const MOST_SAID: u64 = 1 << 16;

/// A process that forwards from the interface `p1`, its port 1, to `p2`, its port 2.
#[derive(Clone, Debug)]
pub struct Other {
    /// What runs.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// It listens here once it forwards, in a namespace of its own.
    pub addr: SocketAddr,
}

/// Ends with its owner.
struct Running(Child);

impl Running {
    /// What a process that has ended said of it.
    fn said(&mut self) -> String {
        let mut said = Vec::new();
        if let Some(output) = self.0.stderr.take() {
            let _ = output.take(MOST_SAID).read_to_end(&mut said);
        }
        format!("\n{}", String::from_utf8_lossy(&said).trim_end())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Other {
    /// Runs it in this thread's namespace, and tells what processor time it took from when it was ready.
    pub(super) fn forward(&self, signs: &Signs) -> Result<Nanos, BenchError> {
        Links::open()?.set_up("lo")?;
        let name = self.program.display();
        let failed = |what: String| BenchError::Other(format!("{name} {what}"));
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process =
            Running(command.spawn().map_err(|error| failed(format!("did not start: {error}")))?);
        let started = clock::now();
        while TcpStream::connect(self.addr).is_err() {
            if let Ok(Some(status)) = process.0.try_wait() {
                return Err(failed(format!("ended at once: {status}{}", process.said())));
            }
            if clock::now() - started > START {
                return Err(failed(format!(
                    "does not listen on {} after {} s",
                    self.addr,
                    START.as_secs_f64()
                )));
            }
            std::thread::sleep(LOOK);
        }
        let before = cpu(process.0.id());
        signs.ready();
        while !signs.stop() {
            std::thread::sleep(LOOK);
        }
        match process.0.try_wait() {
            Ok(Some(status)) => Err(failed(format!("ended under load: {status}{}", process.said()))),
            _ => Ok(Nanos(cpu(process.0.id()).0.saturating_sub(before.0))),
        }
    }
}

/// Processor time of a process's living threads.
fn cpu(pid: u32) -> Nanos {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |path: PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    Nanos(threads.filter_map(|thread| of(thread.path())).sum())
}
