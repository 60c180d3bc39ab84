//! Another switch, in a process of its own, measured like this one.

use super::signs::{BenchError, Signs};
use p4rack_netdev::{Links, clock, process};
use p4rack_wire::Nanos;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long it may take to listen.
const START: Nanos = Nanos::from_millis(20_000);
/// Interval between checks whether it listens, and whether to stop.
const LOOK: Duration = Duration::from_millis(5);
/// Maximum bytes of its output that are kept.
const MOST_SAID: usize = 1 << 16;

/// A process that forwards from the interface `p1`, its port 1, to `p2`, its port 2.
#[derive(Clone, Debug)]
pub struct Other {
    /// Path of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Address, in a namespace of its own, on which it listens once it forwards.
    pub addr: SocketAddr,
}

/// A child process that ends with its owner, with its output.
#[derive(Debug)]
pub struct Running {
    process: Child,
    said: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the command without input.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        let (mut output, input) = io::pipe()?;
        command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        let process = command.spawn();
        // The command would keep the pipe open.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = process?;
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&said);
        let listener = std::thread::spawn(move || {
            let mut some = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut some) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST_SAID.saturating_sub(kept.len());
                kept.extend(&some[..count.min(room)]);
            }
        });
        Ok(Running { process, said, listener: Some(listener) })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// If it has ended: its exit status and the end of its output.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.process.try_wait().ok()??;
        // The pipe has ended with it.
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let said = String::from_utf8_lossy(&said);
        Some(format!("{status}\n{}", said.trim_end()).trim_end().to_owned())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Other {
    /// Runs it in this thread's namespace. Returns its processor time since it was ready.
    pub(super) fn forward(&self, signs: &Signs) -> Result<Nanos, BenchError> {
        Links::open()?.set_up("lo")?;
        let name = self.program.display();
        let failed = |what: String| BenchError::Other(format!("{name} {what}"));
        let mut command = Command::new(&self.program);
        let mut running = Running::start(command.args(&self.args))
            .map_err(|error| failed(format!("did not start: {error}")))?;
        let pid = running.pid();
        let started = clock::now();
        while TcpStream::connect(self.addr).is_err() {
            if let Some(how) = running.ended() {
                return Err(failed(format!("ended immediately: {how}")));
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
        let cpu = || process::cpu(pid).map_err(|error| failed(format!("has no processor time: {error}")));
        let before = cpu()?;
        signs.ready();
        while !signs.stop() {
            std::thread::sleep(LOOK);
        }
        match running.ended() {
            Some(how) => Err(failed(format!("ended under load: {how}"))),
            None => Ok(cpu()?.saturating_sub(before)),
        }
    }
}
