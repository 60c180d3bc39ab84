//! A rack of this machine whose switch has the engine: the switch and its controller are processes of this program.

use crate::cmd::adapter::text;
use p4rack_hosts::remote::setting::Switch;
use p4rack_hosts::roce::setup::Server;
use p4rack_hosts::roce::star::Star;
use p4rack_netdev::process;
use p4rack_wire::Nanos;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Port of the engine's set-up service.
const PORT: u16 = 9_562;
/// How long the switch or its controller may take to start.
const START: Duration = Duration::from_secs(30);

/// A process, ended when this is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A switch and its controller. They end when this is dropped, the controller first: otherwise it would complain.
pub(super) struct InSwitch {
    _controller: Process,
    switch: Process,
    _folder: tempfile::TempDir,
}

impl InSwitch {
    /// Starts both for a star without bridge, whose first host is the pool and whose others are compute nodes.
    fn start(star: &Star) -> Result<InSwitch, String> {
        let folder = tempfile::tempdir().map_err(text)?;
        let rack = folder.path().join("rack.toml");
        std::fs::write(&rack, description(star)).map_err(text)?;
        let mut words = ["switch", "run", "--no-p4"].map(str::to_owned).to_vec();
        for host in 0..star.hosts() {
            words.extend(["-i".to_owned(), format!("{}@{}", host + 1, Star::port(host))]);
        }
        let switch = start(star, &words)?;
        let words = ["cowbird", "switch", &rack.display().to_string(), "--pool", "192.168.9.1:9561"];
        let addr = InSwitch::server().addr;
        let words = [&words[..], &["--grpc-server-addr", &addr, "--insecure"]].concat();
        let controller = start(star, &words)?;
        Ok(InSwitch { _controller: controller, switch, _folder: folder })
    }

    /// A pool's and a compute node's links, and the engine between them.
    pub(super) fn between_two() -> Result<Switch, String> {
        let star = Star::without_bridge(2).map_err(text)?;
        let running = InSwitch::start(&star)?;
        Ok(Switch { star, engine: InSwitch::server(), cpu: Box::new(move || running.cpu()) })
    }

    /// The engine's set-up service.
    fn server() -> Server {
        Server { addr: format!("{}:{PORT}", Star::hub_ip()), tls: None }
    }

    /// Processor time of the switch.
    fn cpu(&self) -> std::io::Result<Nanos> {
        process::cpu(self.switch.0.id())
    }
}

fn description(star: &Star) -> String {
    let host = |host: u8| {
        let (port, mac, ip) = (host + 1, Star::mac(host), Star::ip(host));
        format!("[[host]]\nname = \"h{host}\"\nport = {port}\nmac = \"{mac}\"\nip = \"{ip}/24\"\n")
    };
    let compute: Vec<String> = (1..star.hosts()).map(|host| format!("\"h{host}\"")).collect();
    let hosts: String = (0..star.hosts()).map(host).collect();
    format!(
        "name = \"offload\"\n[switch]\nport_rate = \"10 Gb/s\"\n[cowbird]\nip = \"10.0.0.254\"\npool = [\"h0\"]\n\
         message_bytes_max = 1048576\ncompute = [{}]\n{hosts}",
        compute.join(", ")
    )
}

/// Starts a command of this program where the links end, and waits until it is ready.
fn start<S: AsRef<std::ffi::OsStr>>(star: &Star, words: &[S]) -> Result<Process, String> {
    let mut command = Command::new(std::env::current_exe().map_err(text)?);
    command.args(words).stdout(Stdio::piped()).stdin(Stdio::null());
    star.hub().command(&mut command, true).map_err(text)?;
    let mut process = Process(command.spawn().map_err(text)?);
    let out = process.0.stdout.take().ok_or("a process has no output")?;
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if line.contains("ready") {
                // The receiver may be gone; keep draining output.
                let _ = tell.send(());
            }
        }
    });
    match told.recv_timeout(START) {
        Ok(()) => Ok(process),
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            Err("the switch or its controller did not start: see above".to_owned())
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            Err(format!("the switch or its controller was not ready within {} s", START.as_secs()))
        }
    }
}
