//! Servers that are measured: a server of bytes, and Redis with near memory, far memory, or a limit and swap.

use super::swap::Swap;
use super::{Moved, PAGE_BYTES};
use crate::cmd::far::top;
use p4rack_lab::process::{on_path, own_binary};
use p4rack_lab::state::{Pid, Runtime};
use p4rack_lab::store::fixed::{self, Done, Load};
use p4rack_memory::far::{self, Figures};
use p4rack_netdev::clock;
use p4rack_netdev::signal::{Relay, Relayed};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The rack whose second host has the far memory.
const RACK: &str = include_str!("../../../../../examples/two-hosts.toml");
/// The way's port.
const MEMORY_PORT: u16 = 7_004;
const REDIS_PORT: u16 = 6_379;
/// Time for a server to start or to end.
const LIMIT: Duration = Duration::from_secs(60);
/// Time for a server whose connection has closed to end.
const ENDS: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// What a region says that has too little local memory for its blocks.
const NO_ROOM: &str = "blocks of local memory leave";
/// Between the load and the operations, of all systems: more than far memory takes to write new figures.
const PAUSE: Duration = Duration::from_millis(500);
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

/// Why a server was not measured.
#[derive(Debug)]
pub(super) enum Failed {
    /// It has no room: it did not start, or the kernel ended it.
    Room(String),
    /// Anything else.
    Other(String),
}

impl From<String> for Failed {
    fn from(why: String) -> Failed {
        Failed::Other(why)
    }
}

impl From<Failed> for String {
    fn from((Failed::Room(why) | Failed::Other(why)): Failed) -> String {
        why
    }
}

/// A server that is ended when dropped.
struct Server {
    child: Child,
    said: PathBuf,
}

impl Server {
    /// Ends it in order.
    fn stop(mut self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("ending a server: {error}");
        Pid::of(self.child.id()).and_then(|pid| pid.signal(SIGTERM)).map_err(failed)?;
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().map_err(failed)? {
                break status;
            }
            if begun.elapsed() > LIMIT {
                return Err(format!("a server did not end within {} s: {}", LIMIT.as_secs(), self.said()));
            }
            std::thread::sleep(POLL);
        };
        match status.success() {
            true => Ok(()),
            false => Err(format!("a server ended with {status}: {}", self.said())),
        }
    }

    /// Whether the kernel has ended it, as where a cgroup has no memory left. Its connections close before it has ended.
    fn is_killed(&mut self) -> bool {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) if begun.elapsed() < ENDS => std::thread::sleep(POLL),
                ended => return matches!(ended, Ok(Some(status)) if status.signal() == Some(SIGKILL)),
            }
        }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default().trim().to_owned()
    }

    /// Waits until it answers at an address.
    fn wait_for(&mut self, at: SocketAddr) -> Result<(), String> {
        let begun = Instant::now();
        while let Err(error) = TcpStream::connect(at) {
            let ended = self.child.try_wait().ok().flatten();
            if ended.is_some() || begun.elapsed() > LIMIT {
                return Err(format!("the server at {at} did not start: {error}\n{}", self.said()));
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `far run` passes this on. If it were killed, its program would go on, and answer in the next one's place.
        let _ = Pid::of(self.child.id()).and_then(|pid| pid.signal(SIGTERM));
        let begun = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && begun.elapsed() < LIMIT {
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The current server, which a signal to this command ends; its measurement then fails and all is removed.
#[derive(Default)]
struct Current {
    server: Option<Pid>,
    /// Whether there was a signal: no other server starts.
    is_over: bool,
}

/// State that all measurements use.
pub(super) struct Servers {
    folder: tempfile::TempDir,
    ip: Ipv4Addr,
    policy: String,
    signals: Arc<Relay>,
    current: Arc<Mutex<Current>>,
    memory: Option<Server>,
}

impl Servers {
    /// Starts the server of bytes.
    pub(super) fn start(bytes: u64, policy: &str) -> Result<Servers, String> {
        if on_path("redis-server").is_none() {
            return Err("needs redis-server, get it by: sudo apt-get install redis-server".to_owned());
        }
        let signals = Arc::new(Relay::take().map_err(|error| error.to_string())?);
        let current = Arc::default();
        watch(&signals, &current)?;
        let folder = tempfile::tempdir().map_err(|error| format!("a folder for files: {error}"))?;
        // An address of this process's own, so that all ports are free.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let ip = Ipv4Addr::new(127, 64 | high, middle, low);
        let mut servers = Servers { folder, ip, policy: policy.to_owned(), signals, current, memory: None };
        fs::write(servers.rack(), RACK).map_err(|error| format!("{}: {error}", servers.rack().display()))?;
        let mut serve = own_binary();
        serve.args(["memory", "serve"]).arg(servers.rack()).args([
            "--name",
            "h2",
            "--way",
            "tcp",
            "--insecure",
        ]);
        serve.args(["--bind", &ip.to_string(), "--bytes", &bytes.to_string()]);
        let mut memory = servers.server("memory", &mut serve)?;
        memory.wait_for((ip, MEMORY_PORT).into())?;
        servers.memory = Some(memory);
        Ok(servers)
    }

    /// Description of the rack.
    pub(super) fn rack(&self) -> PathBuf {
        self.folder.path().join("rack.toml")
    }

    /// Address of the server of bytes.
    pub(super) fn memory(&self) -> String {
        format!("{}:{MEMORY_PORT}", self.ip)
    }

    /// Starts a server, whose messages go to a file of this name.
    fn server(&self, name: &str, command: &mut Command) -> Result<Server, String> {
        let said = self.folder.path().join(name);
        let file = File::create(&said).map_err(|error| format!("{}: {error}", said.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        self.signals.restore_in(command);
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_over {
            return Err("interrupted".to_owned());
        }
        let program = command.get_program().display().to_string();
        let child = command.spawn().map_err(|error| format!("{program}: {error}"))?;
        current.server = Pid::of(child.id()).ok();
        Ok(Server { child, said })
    }

    /// A server that keeps nothing on disk.
    fn redis(&self) -> Command {
        let mut redis = Command::new("redis-server");
        redis.args(["--bind", &self.ip.to_string(), "--port", &REDIS_PORT.to_string()]);
        redis.args(["--save", "", "--appendonly", "no"]).arg("--dir").arg(self.folder.path());
        redis
    }

    /// Runs the load on a server. Has `look` look at it when all records were written, and before it ends.
    fn measure<T>(
        &self,
        command: &mut Command,
        load: &Load,
        look: impl Fn(u32) -> Result<T, String>,
    ) -> Result<(Done, [T; 2]), Failed> {
        let at = (self.ip, REDIS_PORT).into();
        if TcpStream::connect(at).is_ok() {
            return Err(Failed::Other(format!("another server has {at}")));
        }
        let mut server = self.server("redis", command)?;
        if let Err(why) = server.wait_for(at) {
            let has_no_room = server.is_killed() || why.contains(NO_ROOM);
            return Err(if has_no_room { Failed::Room(why) } else { Failed::Other(why) });
        }
        let pid = server.child.id();
        let mut loaded = None;
        let done = fixed::on_redis(at, load, LIMIT, || {
            loaded = Some(paused(|| look(pid))?);
            Ok(())
        });
        let done = done.map_err(|error| {
            let why = format!("{error}\n{}", server.said());
            if server.is_killed() { Failed::Room(why) } else { Failed::Other(why) }
        })?;
        let loaded = loaded.ok_or_else(|| "no record was written".to_owned())?;
        let looked = look(pid)?;
        server.stop()?;
        Ok((done, [loaded, looked]))
    }

    /// In near memory. Returns also the bytes of memory that the server has then.
    pub(super) fn near(&self, load: &Load) -> Result<(Done, u64), Failed> {
        let measured = self.measure(&mut self.redis(), load, |pid| {
            let path = format!("/proc/{pid}/status");
            let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
            let kilobytes =
                text.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"));
            let kilobytes: Option<u64> = kilobytes.and_then(|number| number.trim().parse().ok());
            kilobytes.map(|kilobytes| kilobytes << 10).ok_or_else(|| format!("{path}: has no RssAnon in kB"))
        });
        measured.map(|(done, [_, bytes])| (done, bytes))
    }

    /// In far memory of which this part is local. Returns also the most bytes that were in use.
    pub(super) fn far(&self, load: &Load, local_bytes: u64) -> Result<(Done, Moved, u64), Failed> {
        let redis = self.redis();
        let mut far = own_binary();
        far.args(["far", "run"]).arg(self.rack()).args([
            "--at",
            "h2",
            "--way",
            "tcp",
            "--policy",
            &self.policy,
        ]);
        far.args(["--memory", &self.memory(), "--local", &local_bytes.to_string()]);
        far.arg("--").arg(redis.get_program()).args(redis.get_args());
        let (done, [loaded, all]) = self.measure(&mut far, load, figures)?;
        let moved = |figures: &Figures| [figures.fetched_bytes, figures.written_bytes];
        Ok((done, Moved { load: moved(&loaded), all: moved(&all) }, all.in_use_max_bytes))
    }

    /// With a limit and swap. Bytes that moved came back from swap, and went there.
    pub(super) fn swapped(&self, load: &Load, swap: &Swap) -> Result<(Done, Moved), Failed> {
        let before = swap.pages()?;
        let (done, looked) = self.measure(&mut swap.limits(&self.redis()), load, |_| swap.pages())?;
        let [load, all] = looked.map(|pages| [0, 1].map(|way| (pages[way] - before[way]) * PAGE_BYTES));
        Ok((done, Moved { load, all }))
    }
}

/// Looks at a system when all records were written. It takes as long whatever the system: pages, blocks and processor caches have the same
/// rest before the operations.
pub(super) fn paused<T>(look: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let begun = Instant::now();
    let looked = look()?;
    std::thread::sleep(PAUSE.saturating_sub(begun.elapsed()));
    Ok(looked)
}

/// What the program of a `far run` has moved by now: waits for figures of this time.
fn figures(pid: u32) -> Result<Figures, String> {
    let (path, now) = (top::file(Runtime::locate().folder(), pid), clock::now());
    let begun = Instant::now();
    loop {
        let (_, figures) = far::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if figures.at_ns >= now.0 {
            return Ok(figures);
        }
        if begun.elapsed() > LIMIT {
            return Err(format!("{}: no new figures for {} s", path.display(), LIMIT.as_secs()));
        }
        std::thread::sleep(POLL);
    }
}

/// Ends the current server when this command is to end.
fn watch(signals: &Arc<Relay>, current: &Arc<Mutex<Current>>) -> Result<(), String> {
    let (signals, current) = (Arc::clone(signals), Arc::clone(current));
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        while let Ok(signal) = signals.wait() {
            if let Relayed::Signal(_) = signal {
                let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
                current.is_over = true;
                // A server that has ended already is fine.
                let _ = current.server.map(|pid| pid.signal(SIGTERM));
            }
        }
    });
    thread.map(drop).map_err(|error| format!("starting a thread: {error}"))
}
