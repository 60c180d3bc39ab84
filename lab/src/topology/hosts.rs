//! Commands on hosts.

use super::wiring::Wiring;
use crate::error::LabError;
use crate::process::{self, Others, POLL, SAID_LINES};
use crate::sys;
use p4rack_codegen::topology::Topology;
use p4rack_netdev::{NetNs, netns};
use serde::Serialize;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a host's command may take.
pub(super) const LIMIT: Duration = Duration::from_secs(300);
/// Bytes of a command's output that are kept; the rest is counted.
const OUTPUT_MAX: usize = 1 << 20;

/// A host's command that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// Name of the host.
    pub host: String,
    /// The command, as described.
    pub command: String,
    /// Its exit code; `None`: a signal ended it.
    pub code: Option<i32>,
    /// Whether it was killed because it took longer than a command may.
    pub is_late: bool,
    /// The first MiB of its output and errors.
    pub output: String,
    /// Bytes of output beyond that.
    pub output_dropped_bytes: u64,
}

impl Done {
    /// Whether it succeeded.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// What went wrong, in a sentence.
    pub fn failure(&self) -> String {
        let how = match self.code {
            _ if self.is_late => format!(
                "it did not end within {} s; a command that ends in & goes on in the background",
                LIMIT.as_secs()
            ),
            Some(code) => format!("exit code {code}"),
            None => "a signal ended it".to_owned(),
        };
        let lines: Vec<&str> = self.output.trim().lines().collect();
        let said = lines[lines.len().saturating_sub(SAID_LINES)..].join("\n");
        let colon = if said.is_empty() { "" } else { ": " };
        format!("{}: `{}` failed, {how}{colon}{said}", self.host, self.command)
    }
}

/// A shell in a namespace that runs a command line.
pub(super) fn shell(ns: &NetNs, line: &str) -> Result<Command, LabError> {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    ns.command(&mut command, true)?;
    netns::show_own_interfaces(&mut command);
    Ok(command)
}

/// Runs the commands of all hosts, each host's in order, as long as `others` are in order.
pub(super) fn run_commands(
    topology: &Topology,
    wiring: &Wiring,
    others: Others<'_>,
) -> Result<Vec<Done>, LabError> {
    let mut all = Vec::new();
    for (host, ns) in topology.hosts.iter().zip(&wiring.hosts) {
        for line in &host.commands {
            let (status, output) = run(shell(ns, line)?, LIMIT, others)?;
            all.push(Done {
                host: host.name.clone(),
                command: line.clone(),
                code: status.and_then(|status| status.code()),
                is_late: status.is_none(),
                output: String::from_utf8_lossy(&output.kept).into_owned(),
                output_dropped_bytes: output.dropped_bytes,
            });
        }
    }
    Ok(all)
}

/// Runs a shell until it ends; `None`: it was killed at the limit. What it leaves in the background goes on.
fn run(
    mut command: Command,
    limit: Duration,
    others: Others<'_>,
) -> Result<(Option<ExitStatus>, Output), LabError> {
    let pipe = || {
        let (reader, writer) = io::pipe()?;
        sys::set_nonblocking(&reader, true)?;
        Ok((reader, writer.try_clone()?, writer))
    };
    let (reader, out, err) = pipe().map_err(LabError::system("a pipe for output"))?;
    // A group of its own: it is killed with the commands that it waits for.
    command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    let mut group = Group(command.spawn().map_err(LabError::system("starting a shell"))?);
    // It has the writing ends of the pipe.
    drop(command);
    let mut output = Output { reader, kept: Vec::new(), dropped_bytes: 0 };
    let until_ns = sys::monotonic_ns() + limit.as_nanos() as u64;
    loop {
        let ended = group.0.try_wait().map_err(LabError::system("waiting for a shell"))?;
        let is_open = output.read()?;
        if ended.is_some() {
            // Background commands hold the pipe, and must neither wait nor end because of it.
            if is_open {
                output.discard_rest()?;
            }
            return Ok((ended, output));
        }
        if sys::monotonic_ns() >= until_ns {
            return Ok((None, output));
        }
        others()?;
        process::pause(POLL)?;
    }
}

/// Output of a shell: the beginning, and the length of the rest.
struct Output {
    reader: PipeReader,
    kept: Vec<u8>,
    dropped_bytes: u64,
}

impl Output {
    /// Reads available output. Returns whether more may follow.
    fn read(&mut self) -> Result<bool, LabError> {
        let mut piece = [0; 16 << 10];
        // A command that never stops writing must not keep us from looking at the time.
        for _ in 0..64 {
            match self.reader.read(&mut piece) {
                Ok(0) => return Ok(false),
                Ok(n) => {
                    let kept = n.min(OUTPUT_MAX - self.kept.len());
                    self.kept.extend_from_slice(&piece[..kept]);
                    self.dropped_bytes += (n - kept) as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(LabError::system("reading a command's output")(error)),
            }
        }
        Ok(true)
    }

    /// Reads on, until all writers have ended, and keeps nothing.
    fn discard_rest(&self) -> Result<(), LabError> {
        let rest = || {
            let mut reader = self.reader.try_clone()?;
            sys::set_nonblocking(&reader, false)?;
            let discard = move || io::copy(&mut reader, &mut io::sink());
            std::thread::Builder::new().name("output".to_owned()).spawn(discard)
        };
        rest().map(drop).map_err(LabError::system("reading a command's output"))
    }
}

/// A process group, killed with this value if its leader has not ended.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = sys::kill_group(self.0.id(), libc::SIGKILL);
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENEROUS: Duration = Duration::from_secs(60);

    fn sh(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn a_command_that_does_not_end_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let line = format!("sleep 1000 & echo $! > {}; wait", file.display());
        let has_begun = || std::fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'));
        // `others` fail as soon as it runs.
        let mut fail = || if has_begun() { Err(LabError::Interrupted) } else { Ok(()) };
        assert!(matches!(run(sh(&line), GENEROUS, &mut fail), Err(LabError::Interrupted)));
        let pid = std::fs::read_to_string(&file).unwrap();
        // The kernel ends it some time after the signal, and its reaper may be slow.
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        let is_gone = |stat: &str| stat.is_empty() || stat.contains(") Z") || stat.contains(") X");
        let until = std::time::Instant::now() + GENEROUS;
        while !is_gone(&stat()) {
            assert!(std::time::Instant::now() < until, "{}", stat());
            process::pause(POLL).unwrap();
        }
        let (status, _) = run(sh("sleep 1000"), Duration::from_millis(1), &mut || Ok(())).unwrap();
        assert_eq!(status, None);
    }

    #[test]
    fn output_is_bounded_and_commands_in_the_background_go_on() {
        let line = "sleep 1000 & echo $!; head -c 3000000 /dev/zero";
        let (status, output) = run(sh(line), GENEROUS, &mut || Ok(())).unwrap();
        assert!(status.unwrap().success());
        let length = output.kept.len() as u64 + output.dropped_bytes;
        assert_eq!(output.kept.len(), OUTPUT_MAX);
        let pid = String::from_utf8_lossy(&output.kept).lines().next().unwrap().to_owned();
        assert_eq!(length, 3_000_000 + pid.len() as u64 + 1);
        assert!(std::path::Path::new("/proc").join(&pid).exists());
        sys::kill(pid.parse().unwrap(), libc::SIGKILL).unwrap();
    }
}
