//! Switches as processes of their own, and commands on them.

use super::{p4rack, stderr, stdout};
use std::io::Read;
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// How long a process may take to say something.
const LIMIT: Duration = Duration::from_secs(120);

/// An unused address, with a different port for each call. The port lies below the kernel's range of ephemeral
/// ports, so no connection takes it before the listener does.
pub fn free_addr() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(64);
    loop {
        let number = start.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed));
        let addr = format!("127.0.0.1:{}", 12_000 + number % 20_000);
        if TcpListener::bind(&addr).is_ok() {
            return addr;
        }
    }
}

/// A process that is ended when dropped.
pub struct Running(pub Child);

impl Running {
    /// Starts it; its output is read with `until`.
    pub fn start(command: &mut Command) -> Running {
        Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts"))
    }

    /// Lines of its output until one holds `wanted`. A process that doesn't say it in [`LIMIT`] is killed.
    pub fn until(&mut self, wanted: &str) -> String {
        let (_said, waits) = mpsc::channel::<()>();
        let pid = self.0.id().to_string();
        std::thread::spawn(move || {
            if waits.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-9", &pid]).status();
            }
        });
        let out = self.0.stdout.as_mut().expect("piped");
        // Byte by byte, so that no later bytes are lost.
        let (mut said, mut byte) = (String::new(), [0]);
        loop {
            let start = said.rfind('\n').map_or(0, |end| end + 1);
            assert_eq!(out.read(&mut byte).expect("readable"), 1, "it has not said `{wanted}`:\n{said}");
            if byte[0] == b'\n' && said[start..].contains(wanted) {
                return said[start..].to_owned();
            }
            said.push(char::from(byte[0]));
        }
    }

    /// Ends it as by `kill -9`.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An embedded switch without program.
pub fn switch(addr: &str, more: &[&str]) -> Running {
    switch_with("--no-p4", addr, more)
}

/// An embedded switch with a program.
pub fn switch_with(program: &str, addr: &str, more: &[&str]) -> Running {
    let mut command = p4rack();
    command.args(["switch", "run", program, "--grpc-server-addr", addr]).args(more);
    let mut switch = Running::start(&mut command);
    switch.until("ready");
    switch
}

/// Runs a command on the switch at an address.
pub fn run(addr: &str, words: &[&str]) -> Output {
    p4rack().args(words).args(["--grpc-addr", addr]).output().expect("p4rack starts")
}

/// The same, which succeeds; its output.
pub fn fine(addr: &str, words: &[&str]) -> String {
    let output = run(addr, words);
    assert!(output.status.success(), "{words:?}: {}", stderr(&output));
    stdout(&output)
}
