//! Commands on hosts.

use super::wiring::Wiring;
use crate::error::LabError;
use p4rack_codegen::topology::Topology;
use p4rack_netdev::{NetNs, netns};
use serde::Serialize;
use std::process::{Command, Stdio};

/// A host's command that has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    /// Name of the host.
    pub host: String,
    /// The command, as described.
    pub command: String,
    /// Its exit code; `None`: a signal ended it.
    pub code: Option<i32>,
    /// Its output and errors.
    pub output: String,
}

impl Done {
    /// Whether it succeeded.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// What went wrong, in a sentence.
    pub fn failure(&self) -> String {
        let code = self.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        let said = self.output.trim();
        let colon = if said.is_empty() { "" } else { ": " };
        format!("{}: `{}` failed, {code}{colon}{said}", self.host, self.command)
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

/// Runs the commands of all hosts, each host's in order.
pub(super) fn run_commands(topology: &Topology, wiring: &Wiring) -> Result<Vec<Done>, LabError> {
    let mut all = Vec::new();
    for (host, ns) in topology.hosts.iter().zip(&wiring.hosts) {
        for command in &host.commands {
            // Into a file, because a command may leave a server behind that holds its output open.
            let output =
                crate::sys::memory_file("p4rack-output").map_err(LabError::system("memory for output"))?;
            let copy = || output.try_clone().map_err(LabError::system("copying a descriptor"));
            let status = shell(ns, command)?
                .stdin(Stdio::null())
                .stdout(copy()?)
                .stderr(copy()?)
                .status()
                .map_err(LabError::system("starting a shell"))?;
            all.push(Done {
                host: host.name.clone(),
                command: command.clone(),
                code: status.code(),
                output: crate::process::contents(&output),
            });
        }
    }
    Ok(all)
}
