//! The rack's processes: p4rack's own subcommands, each in its namespace, none outliving `up`.
//!
//! Output goes to memory files, so that a chatty process never waits for a reader and nothing is
//! left on disk. Processes must be started from a thread that lives as long as they should: the
//! kernel ends them with it.

use crate::error::LabError;
use crate::sys;
use p4rack_netdev::NetNs;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How often waiting looks again.
const POLL: Duration = Duration::from_millis(5);
/// How long a process may take to end after SIGTERM.
pub const GRACE: Duration = Duration::from_secs(2);
/// How much of what a process wrote is read at most.
const OUTPUT_MAX: u64 = 16 << 20;
/// How many lines of its standard error an error message shows.
const SAID_LINES: usize = 12;

/// The command that starts this binary again with other arguments, even if the file was replaced.
pub fn own_binary() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("p4rack").stdin(Stdio::null());
    command
}

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
    /// Starts `p4rack ARGS…` in the namespace. `name` is for messages.
    pub fn start<I, A>(name: &str, ns: &NetNs, args: I) -> Result<Process, LabError>
    where
        I: IntoIterator<Item = A>,
        A: Into<OsString>,
    {
        let file = || sys::memory_file("p4rack-output").map_err(LabError::system("memory for output"));
        let (out, err) = (file()?, file()?);
        let share = |file: &File| file.try_clone().map_err(LabError::system("copying a descriptor"));
        let mut command = own_binary();
        command
            .args(args.into_iter().map(Into::into))
            .stdout(share(&out)?)
            .stderr(share(&err)?)
            // Ctrl-C reaches `up` alone, which ends its children in order.
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

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// What it has written to standard output so far.
    pub fn output(&self) -> String {
        contents(&self.out)
    }

    /// Waits for a line of output that starts with `word`.
    pub fn wait_for_line(&mut self, word: &str, limit: Duration) -> Result<(), LabError> {
        let until_ns = sys::monotonic_ns() + limit.as_nanos() as u64;
        loop {
            if self.output().lines().any(|line| line.starts_with(word)) {
                return Ok(());
            }
            if let Some(status) = self.ended() {
                return Err(self.failure(&format!("ended early, {}", in_words(status))));
            }
            if sys::monotonic_ns() >= until_ns {
                return Err(self.failure(&format!("was not ready after {} s", limit.as_secs())));
            }
            pause(POLL)?;
        }
    }

    /// Waits until it has ended by itself; anything but success is an error.
    pub fn finish(&mut self, limit: Duration) -> Result<String, LabError> {
        let until_ns = sys::monotonic_ns() + limit.as_nanos() as u64;
        loop {
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

    /// An error if it has ended although it should run.
    pub fn check_running(&mut self) -> Result<(), LabError> {
        match self.ended() {
            None => Ok(()),
            Some(status) => {
                Err(self.failure(&format!("ended in the middle of the run, {}", in_words(status))))
            }
        }
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: i32) {
        if self.ended().is_none() {
            // Gone in this very moment: as good.
            let _ = sys::kill(self.child.id(), signal);
        }
    }

    /// Ends it at once, without a chance to tidy up.
    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        self.status = self.child.wait().ok().or(self.status);
    }

    /// An error about this process, with the end of what it said.
    pub fn failure(&self, what: &str) -> LabError {
        let text = contents(&self.err);
        // A panic's stack says less than its first lines.
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

/// Ends processes together: SIGTERM to all, and SIGKILL to those that are still there after a grace.
pub fn stop<'a>(processes: impl IntoIterator<Item = &'a mut Process>) {
    let mut processes: Vec<&mut Process> = processes.into_iter().collect();
    for process in &mut processes {
        process.signal(libc::SIGTERM);
    }
    let until_ns = sys::monotonic_ns() + GRACE.as_nanos() as u64;
    while sys::monotonic_ns() < until_ns && processes.iter_mut().any(|process| process.ended().is_none()) {
        // Being interrupted is no reason to stop stopping.
        std::thread::sleep(POLL);
    }
    for process in processes {
        if process.ended().is_none() {
            process.kill();
        }
    }
}

/// Sleeps; an error if the user wants to stop.
pub fn pause(time: Duration) -> Result<(), LabError> {
    pause_until(sys::monotonic_ns() + time.as_nanos() as u64)
}

/// Sleeps until a moment of the monotonic clock; an error if the user wants to stop.
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

fn contents(file: &File) -> String {
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
