//! Captures the control channel: traffic on the loopback of the switch's namespace.
//!
//! The switch itself captures the links (`switch run --pcap`). This adds the gRPC traffic, which Wireshark
//! can decode (decode the port as HTTP/2).

use crate::error::LabError;
use p4rack_netdev::capture::Capture;
use p4rack_netdev::link::Links;
use p4rack_netdev::packet::{BATCH, Options, PacketSocket};
use p4rack_netdev::signal::{Signal, Signals};
use p4rack_netdev::wait::Poller;
use p4rack_netdev::{clock, ethtool};
use p4rack_wire::Nanos;
use std::io::{self, Write};
use std::path::Path;

/// MTU of the loopback during the capture: its default of 64 KiB exceeds the maximum frame.
const MTU_BYTES: u32 = 1500;
/// Interval at which captured frames are flushed for readers.
const FLUSH: Nanos = Nanos(50_000_000);

/// Captures the loopback to `file` until SIGTERM. Prints `ready` once it does.
pub fn loopback(file: &Path) -> Result<(), LabError> {
    let signals = Signals::take()?;
    Links::open()?.set_mtu("lo", MTU_BYTES)?;
    ethtool::offloads_off("lo")?;
    let options = Options { promiscuous: false, bypass_qdisc: false, ..Options::default() };
    let mut socket = PacketSocket::open("lo", &options)?;
    let mut capture = Capture::create(file)?;
    let mut poller = Poller::new();
    let signal = poller.add(&signals).map_err(LabError::system("waiting for signals"))?;
    poller.add(&socket).map_err(LabError::system("waiting for frames"))?;
    let mut output = std::io::stdout();
    writeln!(output, "ready").and_then(|()| output.flush()).map_err(LabError::system("saying ready"))?;
    loop {
        poller.wait(Some(clock::now() + FLUSH)).map_err(LabError::system("waiting for frames"))?;
        let mut failed = None;
        loop {
            let count = socket.receive(|frame, at| failed = capture.write(frame, at).err().or(failed.take()));
            match failed {
                Some(error) => return Err(cut(file, error)),
                None if count.map_err(LabError::system("reading the loopback"))? < BATCH => break,
                None => {}
            }
        }
        capture.flush().map_err(|error| cut(file, error))?;
        if poller.ready(signal) && matches!(signals.next(), Some(Signal::End)) {
            return Ok(());
        }
    }
}

/// A capture that ends too early.
fn cut(file: &Path, error: io::Error) -> LabError {
    LabError::measurement(format!("--pcap: {}", file.display()), error)
}
