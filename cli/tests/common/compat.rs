//! p4c's and BMv2's commands, installed, and a switch for `simple_switch_CLI`.

use super::switch::{Running, free_addr};
use super::{p4rack, repo, stderr, stdout};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder with the installed commands, and one for files.
pub struct Installed {
    /// The folder.
    pub folder: tempfile::TempDir,
}

impl Installed {
    /// Installs them.
    pub fn new() -> Installed {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let done =
            p4rack().args(["compat", "install"]).arg(folder.path().join("bin")).output().expect("it starts");
        assert!(done.status.success(), "{}", stderr(&done));
        Installed { folder }
    }

    /// The place of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// One of the commands, in the folder for files.
    pub fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.path("bin").join(name));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    /// Runs one of the commands.
    pub fn run(&self, name: &str, words: &[&str]) -> Output {
        self.command(name).args(words).output().expect("it starts")
    }

    /// The test's program as BMv2's JSON.
    pub fn compiled(&self) -> PathBuf {
        let program = repo("cli/tests/compat.p4");
        let words = ["--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "-o", "build"];
        let info = ["--p4runtime-files", "info.txtpb,info.bin"];
        let done = self.command("p4c").args(words).args(info).arg(program).output().expect("it starts");
        assert!(done.status.success(), "{}", stderr(&done));
        self.path("build/compat.json")
    }
}

/// Port of an address.
pub fn port(addr: &str) -> &str {
    addr.rsplit(':').next().expect("an address with a port")
}

/// `simple_switch_CLI` with these lines; what it prints after each.
pub fn lines(installed: &Installed, thrift: &str, lines: &str) -> String {
    let mut command = installed.command("simple_switch_CLI");
    command
        .args(["--thrift-port", thrift])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("ours");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// A switch without ports and its commands.
pub struct Cli {
    /// The commands.
    pub installed: Installed,
    /// The --thrift-port.
    pub thrift: String,
    /// Address of P4Runtime.
    pub grpc: String,
    _switch: Running,
}

impl Cli {
    /// Starts the switch.
    pub fn new() -> Cli {
        let installed = Installed::new();
        let json = installed.compiled();
        let (thrift, grpc) = (free_addr(), free_addr());
        let mut command = installed.command("simple_switch_grpc");
        command.arg(json).args([
            "--thrift-port",
            port(&thrift),
            "--log-file",
            "log",
            "--nanolog",
            "ipc:///x",
        ]);
        command.args(["--", "--grpc-server-addr", &grpc, "--priority-queues", "1"]);
        let mut switch = Running::start(&mut command);
        switch.until("ready");
        let thrift = port(&thrift).to_owned();
        Cli { installed, thrift, grpc, _switch: switch }
    }

    /// What `simple_switch_CLI` prints for these lines.
    pub fn say(&self, text: &str) -> String {
        lines(&self.installed, &self.thrift, text)
    }

    /// Each command prints what stands behind it, among other things; with `""` nothing.
    pub fn expect(&self, all: &[(&str, &[&str])]) {
        let text: String = all.iter().map(|(line, _)| format!("{line}\n")).collect();
        let said = self.say(&text);
        let answers: Vec<&str> = said.split("RuntimeCmd: ").skip(1).collect();
        for ((line, wanted), answer) in all.iter().zip(&answers) {
            for wanted in *wanted {
                let fits = if wanted.is_empty() { answer.is_empty() } else { answer.contains(wanted) };
                assert!(fits, "{line}: expected `{wanted}`: {answer}");
            }
        }
        assert_eq!(answers.len(), all.len() + 1, "{said}");
    }
}
