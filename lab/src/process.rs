//! The rack's processes: p4rack's own subcommands, and servers of other projects, each in its namespace; none outlives `up`.
//!
//! Their output goes to memory files, so that a chatty process never waits for a reader and nothing is left
//! on disk. Start processes from a thread that lives as long as they should, because the kernel ends them
//! with it.

use crate::error::LabError;
use crate::sys;
use p4rack_netdev::NetNs;
use std::ffi::OsString;
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Interval of polling.
pub(crate) const POLL: Duration = Duration::from_millis(5);
/// How long a process may take to start on a busy machine.
pub(crate) const START: Duration = Duration::from_secs(20);
/// How long a process may take to end after SIGTERM.
pub const GRACE: Duration = Duration::from_secs(2);
/// Maximum output read from a process.
const OUTPUT_MAX: u64 = 16 << 20;
/// Lines of standard error that an error message shows.
pub(crate) const SAID_LINES: usize = 12;

/// A command that runs this binary again, even if its file was replaced.
pub fn own_binary() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("p4rack").stdin(Stdio::null());
    command
}

/// Path of a program on PATH, or among the system's.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let sbin = [Path::new("/usr/sbin"), Path::new("/sbin")].map(Path::to_path_buf);
    std::env::split_paths(&folders).chain(sbin).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Looks at other processes while one is waited for. Fails if one of them has ended.
pub type Others<'a> = &'a mut dyn FnMut() -> Result<(), LabError>;

/// A running child.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    out: File,
    err: File,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts `p4rack ARGS…` in the namespace. `name` appears in messages.
    pub fn start<I, A>(name: &str, ns: &NetNs, args: I) -> Result<Process, LabError>
    where
        I: IntoIterator<Item = A>,
        A: Into<OsString>,
    {
        let mut command = own_binary();
        command.args(args.into_iter().map(Into::into));
        Process::start_program(name, ns, command)
    }

    /// Starts another program in the namespace.
    pub fn start_program(name: &str, ns: &NetNs, mut command: Command) -> Result<Process, LabError> {
        let file = || sys::memory_file("p4rack-output").map_err(LabError::system("memory for output"));
        let (out, err) = (file()?, file()?);
        let share = |file: &File| file.try_clone().map_err(LabError::system("copying a descriptor"));
        command
            .stdout(share(&out)?)
            .stderr(share(&err)?)
            // Ctrl-C reaches only `up`, which ends its children in order.
            .process_group(0);
        ns.command(&mut command, true)?;
        let child = command.spawn().map_err(|source| LabError::Process {
            name: name.to_owned(),
            what: format!("could not be started: {source}"),
            said: None,
        })?;
        Ok(Process { name: name.to_owned(), child, out, err, status: None })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Its standard output so far.
    pub fn output(&self) -> String {
        contents(&self.out)
    }

    /// Waits for a line of output that starts with `word`.
    pub fn wait_for_line(&mut self, word: &str, limit: Duration) -> Result<(), LabError> {
        self.wait_for_line_beside(word, limit, &mut || Ok(()))
    }

    /// Waits for a line of output that starts with `word`, as long as `others` are in order.
    pub fn wait_for_line_beside(
        &mut self,
        word: &str,
        limit: Duration,
        others: Others<'_>,
    ) -> Result<(), LabError> {
        let has_said = |process: &Process| process.output().lines().any(|line| line.starts_with(word));
        self.wait_until(has_said, limit, others)
    }

    /// Waits until it accepts connections at an address of its namespace.
    pub fn wait_for_address(
        &mut self,
        ns: &NetNs,
        addr: SocketAddr,
        limit: Duration,
    ) -> Result<(), LabError> {
        let accepts = |_: &Process| ns.run(|| TcpStream::connect(addr).is_ok()).unwrap_or(false);
        self.wait_until(accepts, limit, &mut || Ok(()))
    }

    fn wait_until(
        &mut self,
        is_ready: impl Fn(&Process) -> bool,
        limit: Duration,
        others: Others<'_>,
    ) -> Result<(), LabError> {
        let until_ns = sys::monotonic_ns() + limit.as_nanos() as u64;
        loop {
            if is_ready(self) {
                return Ok(());
            }
            others()?;
            if let Some(status) = self.ended() {
                return Err(self.failure(&format!("ended early, {}", in_words(status))));
            }
            if sys::monotonic_ns() >= until_ns {
                return Err(self.failure(&format!("was not ready after {} s", limit.as_secs())));
            }
            pause(POLL)?;
        }
    }

    /// Waits until it exits. Any status but success is an error.
    pub fn finish(&mut self, limit: Duration) -> Result<String, LabError> {
        self.finish_beside(limit, &mut || Ok(()))
    }

    /// Waits until it ends, as long as `others` are in order. Anything but success is an error; that of
    /// `others` comes first, because it may be the cause.
    pub fn finish_beside(&mut self, limit: Duration, others: Others<'_>) -> Result<String, LabError> {
        let until_ns = sys::monotonic_ns() + limit.as_nanos() as u64;
        loop {
            if self.ended().is_none_or(|status| !status.success()) {
                others()?;
            }
            match self.ended() {
                Some(status) if status.success() => return Ok(self.output()),
                Some(status) => return Err(self.failure(&format!("failed, {}", in_words(status)))),
                None if sys::monotonic_ns() >= until_ns => {
                    return Err(self.failure(&format!("did not end within {} s", limit.as_secs())));
                }
                None => pause(POLL)?,
            }
        }
    }

    /// Fails if it has ended although it should run.
    pub fn check_running(&mut self) -> Result<(), LabError> {
        match self.ended() {
            None => Ok(()),
            Some(status) => {
                Err(self.failure(&format!("ended in the middle of the run, {}", in_words(status))))
            }
        }
    }

    /// Fails unless it has ended with success.
    pub fn check_succeeded(&mut self) -> Result<(), LabError> {
        match self.ended() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(self.failure(&format!("failed at its end, {}", in_words(status)))),
            None => Err(self.failure("has not ended")),
        }
    }

    /// Fails if it has ended without success.
    pub fn check_not_failed(&mut self) -> Result<(), LabError> {
        match self.ended() {
            Some(status) if !status.success() => self.check_running(),
            _ => Ok(()),
        }
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: i32) {
        if self.ended().is_none() {
            // It has just ended, which is just as well.
            let _ = sys::kill(self.child.id(), signal);
        }
    }

    /// Kills it immediately.
    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        self.status = self.child.wait().ok().or(self.status);
    }

    /// An error about this process, with the end of its standard error.
    pub fn failure(&self, what: &str) -> LabError {
        let text = contents(&self.err);
        // The first lines of a panic say more than its stack.
        let lines: Vec<&str> = text.lines().take_while(|line| *line != "stack backtrace:").collect();
        let said = lines[lines.len().saturating_sub(SAID_LINES)..].join("\n");
        LabError::Process {
            name: self.name.clone(),
            what: what.to_owned(),
            said: (!said.is_empty()).then_some(said),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill();
        }
    }
}

/// Ends processes together: SIGTERM to all, then SIGKILL to those that remain after a grace period.
pub fn stop<'a>(processes: impl IntoIterator<Item = &'a mut Process>) {
    let mut processes: Vec<&mut Process> = processes.into_iter().collect();
    for process in &mut processes {
        process.signal(libc::SIGTERM);
    }
    let until_ns = sys::monotonic_ns() + GRACE.as_nanos() as u64;
    while sys::monotonic_ns() < until_ns && processes.iter_mut().any(|process| process.ended().is_none()) {
        // An interruption does not stop the cleanup.
        std::thread::sleep(POLL);
    }
    for process in processes {
        if process.ended().is_none() {
            process.kill();
        }
    }
}

/// Sleeps. Fails if the user interrupts.
pub fn pause(time: Duration) -> Result<(), LabError> {
    pause_until(sys::monotonic_ns() + time.as_nanos() as u64)
}

/// Sleeps until a time of the monotonic clock. Fails if the user interrupts.
pub fn pause_until(at_ns: u64) -> Result<(), LabError> {
    loop {
        if sys::interrupted() {
            return Err(LabError::Interrupted);
        }
        let now_ns = sys::monotonic_ns();
        if now_ns >= at_ns {
            return Ok(());
        }
        sys::sleep_until(at_ns.min(now_ns + 20_000_000));
    }
}

pub(crate) fn contents(file: &File) -> String {
    let length = file.metadata().map_or(0, |meta| meta.len()).min(OUTPUT_MAX);
    let mut bytes = vec![0; length as usize];
    let read = file.read_at(&mut bytes, 0).unwrap_or(0);
    bytes.truncate(read);
    String::from_utf8_lossy(&bytes).into_owned()
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "reason unknown".to_owned(),
    }
}
