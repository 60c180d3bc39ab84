//! The switch's ports on network interfaces.

use p4rack_netdev::carrier::CarrierNews;
use p4rack_netdev::link::LinkInfo;
use p4rack_netdev::packet::{self, Io, Receiver, Sender};
use p4rack_netdev::{Capture, Error, Links, PacketSocket, clock};
use p4rack_wire::Nanos;
use serde::Serialize;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use thiserror::Error;

/// Maximum port number: `standard_metadata` has nine bits for it.
const PORT_MAX: u16 = 511;
/// Minimum MTU of links: full frames with tag and shim, and some room.
const LINK_MTU: u32 = 1530;
/// Interval at which captures are flushed to disk.
const CAPTURE_FLUSH: Nanos = Nanos::from_millis(100);

/// A port and its interface, written as `PORT@INTERFACE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Port number in the P4 program.
    pub number: u16,
    /// Name of the interface.
    pub interface: String,
}

impl FromStr for PortSpec {
    type Err = String;
    fn from_str(text: &str) -> Result<PortSpec, String> {
        let expected =
            || format!("`{text}` is not PORT@INTERFACE such as 1@veth1, with a port from 0 to {PORT_MAX}");
        let (number, interface) = text.split_once('@').ok_or_else(expected)?;
        let number = number.parse().ok().filter(|number| *number <= PORT_MAX).ok_or_else(expected)?;
        if interface.is_empty() {
            return Err(expected());
        }
        Ok(PortSpec { number, interface: interface.to_owned() })
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.number, self.interface)
    }
}

/// Which kind of I/O to use for ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoChoice {
    /// The best kind that works on every interface, with a fallback if the kernel rejects it.
    #[default]
    Auto,
    /// This kind, without fallback.
    Only(Io),
}

impl IoChoice {
    /// Kinds to try, best first.
    fn kinds(self) -> &'static [Io] {
        match self {
            IoChoice::Auto => &[Io::Ring, Io::Packet],
            IoChoice::Only(Io::Packet) => &[Io::Packet],
            IoChoice::Only(Io::Ring) => &[Io::Ring],
            IoChoice::Only(Io::Xdp) => &[Io::Xdp],
        }
    }
}

impl FromStr for IoChoice {
    type Err = String;
    fn from_str(text: &str) -> Result<IoChoice, String> {
        match text {
            "auto" => Ok(IoChoice::Auto),
            _ => text.parse().map(IoChoice::Only).map_err(|error: String| format!("{error}, nor auto")),
        }
    }
}

/// Why the ports could not be opened.
#[derive(Debug, Error)]
pub enum DriverError {
    /// Two ports have the same number.
    #[error("port {0} is given twice: each -i needs a port number of its own")]
    NumberTwice(u16),
    /// Two ports use the same interface.
    #[error("interface `{0}` is given twice: each -i needs an interface of its own")]
    InterfaceTwice(String),
    /// The number is reserved.
    #[error("port {0} is the {1} port: give the interface another number, or choose another with --{1}-port")]
    Special(u16, &'static str),
    /// An interface could not be opened.
    #[error("port {port}: {source}")]
    Device {
        /// Number of the port.
        port: u16,
        /// Error of the device.
        source: Error,
    },
}

/// Checks a list of ports without accessing the system.
pub fn check(ports: &[PortSpec], cpu_port: Option<u16>, drop_port: u16) -> Result<(), DriverError> {
    for (i, port) in ports.iter().enumerate() {
        if Some(port.number) == cpu_port {
            return Err(DriverError::Special(port.number, "cpu"));
        }
        if port.number == drop_port {
            return Err(DriverError::Special(port.number, "drop"));
        }
        if ports[..i].iter().any(|other| other.number == port.number) {
            return Err(DriverError::NumberTwice(port.number));
        }
        if ports[..i].iter().any(|other| other.interface == port.interface) {
            return Err(DriverError::InterfaceTwice(port.interface.clone()));
        }
    }
    Ok(())
}

/// Statistics of a port.
#[derive(Clone, Debug, Serialize)]
pub struct PortReport {
    /// Port number.
    pub port: u16,
    /// Name of the interface.
    pub interface: String,
    /// Kind of I/O.
    pub io: Io,
    /// Counters of its socket.
    pub socket: packet::Stats,
    /// The kernel's statistics of the interface. Its `rx_dropped` includes tagged frames that only this
    /// socket wanted.
    pub kernel: Option<LinkInfo>,
    /// Size of the receive buffer that the kernel granted.
    pub receive_buffer_bytes: usize,
    /// Captured frames that could not be written.
    pub capture_errors: u64,
}

/// A capture that ends too early.
#[derive(Debug, Error)]
#[error("--pcap: {}: {source}; {frames} frames or more are missing", path.display())]
pub struct CaptureError {
    /// The file.
    path: PathBuf,
    /// Frames that came after the first one that could not be written.
    frames: u64,
    /// Error of the system.
    source: io::Error,
}

/// A capture file for one direction of a port. It ends at the first error: frames behind a gap would be read as
/// if they followed those before it.
#[derive(Debug)]
struct Captured {
    path: PathBuf,
    file: Result<Capture, io::Error>,
    errors: u64,
}

impl Captured {
    #[inline]
    fn write(captured: &mut Option<Captured>, frame: &[u8], at: Nanos) {
        if let Some(captured) = captured {
            captured.attempt(|file| file.write(frame, at));
        }
    }

    fn flush(captured: &mut Option<Captured>) {
        if let Some(captured) = captured.as_mut().filter(|captured| captured.file.is_ok()) {
            captured.attempt(Capture::flush);
        }
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Capture) -> io::Result<()>) {
        let Ok(file) = &mut self.file else {
            self.errors += 1;
            return;
        };
        if let Err(error) = write(file) {
            tracing::error!(path = %self.path.display(), %error, "the capture ends here");
            self.errors += 1;
            self.file = Err(error);
        }
    }

    fn errors(captured: &Option<Captured>) -> u64 {
        captured.as_ref().map_or(0, |captured| captured.errors)
    }

    /// Completes the file.
    fn finish(mut captured: Option<Captured>) -> Result<(), CaptureError> {
        Captured::flush(&mut captured);
        match captured {
            Some(Captured { path, file: Err(source), errors: frames }) => {
                Err(CaptureError { path, frames, source })
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Input {
    number: u16,
    /// Index of the interface.
    index: i32,
    receiver: Receiver,
    captured: Option<Captured>,
    read_errors: u64,
}

#[derive(Debug)]
struct Output {
    sender: Sender,
    captured: Option<Captured>,
}

/// The sending halves of the ports.
#[derive(Debug)]
pub struct Outputs {
    outputs: Vec<Output>,
    /// Position in `outputs`, by port number.
    position: Vec<Option<usize>>,
}

impl Outputs {
    /// Adds a frame to the port's batch and leaves `frame` empty.
    #[inline]
    pub fn send(&mut self, number: u16, frame: &mut Vec<u8>, now: Nanos) {
        let position = self.position.get(usize::from(number)).copied().flatten();
        // The switch only sends to its configured ports, which are the same as these.
        let Some(output) = position.and_then(|position| self.outputs.get_mut(position)) else { return };
        Captured::write(&mut output.captured, frame, now);
        output.sender.send(frame);
    }
}

/// The open ports of a switch.
#[derive(Debug)]
pub struct Driver {
    inputs: Vec<Input>,
    outputs: Outputs,
    captures_flushed: Nanos,
    news: Option<CarrierNews>,
}

impl Driver {
    /// Opens all ports in the calling thread's network namespace. Captures go to the folder `captures`.
    pub fn open(ports: &[PortSpec], io: IoChoice, captures: Option<&Path>) -> Result<Driver, DriverError> {
        let mut driver = Driver {
            inputs: Vec::with_capacity(ports.len()),
            outputs: Outputs {
                outputs: Vec::with_capacity(ports.len()),
                position: vec![None; usize::from(PORT_MAX) + 1],
            },
            captures_flushed: clock::now(),
            news: None,
        };
        if !ports.is_empty() {
            let news = CarrierNews::open();
            // Only needed for watched ports.
            driver.news = news.inspect_err(|error| tracing::warn!(%error, "ports count as up")).ok();
        }
        for spec in ports {
            let (input, output) = open(spec, io, captures)
                .map_err(|source| DriverError::Device { port: spec.number, source })?;
            driver.outputs.position[usize::from(spec.number)] = Some(driver.inputs.len());
            driver.inputs.push(input);
            driver.outputs.outputs.push(output);
        }
        Ok(driver)
    }

    /// Number of ports. Positions are below this.
    pub fn len(&self) -> usize {
        self.inputs.len()
    }

    /// Whether there are no ports.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Descriptor of the port at a position, to wait for.
    pub fn descriptor(&self, position: usize) -> BorrowedFd<'_> {
        self.inputs[position].receiver.as_fd()
    }

    /// Descriptor on which the kernel reports changes of interfaces.
    pub fn news(&self) -> Option<BorrowedFd<'_>> {
        self.news.as_ref().map(CarrierNews::as_fd)
    }

    /// Reads reported changes. Calls `changed` with the port number and whether the port can send.
    pub fn read_news(&self, mut changed: impl FnMut(u16, bool)) {
        let Some(news) = &self.news else { return };
        let read = news.read(|index, carries| {
            for port in self.inputs.iter().filter(|port| port.index == index) {
                changed(port.number, carries);
            }
        });
        if read.is_err() {
            self.look(changed);
        }
    }

    /// Calls `changed` for all ports.
    pub fn look(&self, mut changed: impl FnMut(u16, bool)) {
        let Ok(mut links) = Links::open() else { return };
        for port in &self.inputs {
            let carries = links.get(port.receiver.interface()).is_ok_and(|link| link.carries);
            changed(port.number, carries);
        }
    }

    /// Reads one batch from the port at a position. Calls `frame` with the port number, the frame, its time
    /// of arrival and the ports to send to. Reads nothing if the interface is down.
    pub fn receive(&mut self, position: usize, mut frame: impl FnMut(u16, &[u8], Nanos, &mut Outputs)) {
        let Input { number, receiver, captured, .. } = &mut self.inputs[position];
        let result = receiver.receive(|bytes, at| {
            Captured::write(captured, bytes, at);
            frame(*number, bytes, at, &mut self.outputs);
        });
        if let Err(error) = result {
            report_down(&mut self.inputs[position], &error);
        }
    }

    /// Adds a frame to the port's batch and leaves `frame` empty.
    pub fn send(&mut self, number: u16, frame: &mut Vec<u8>, now: Nanos) {
        self.outputs.send(number, frame, now);
    }

    /// Passes all batches to the kernel, and flushes captures to disk now and then.
    pub fn flush(&mut self, now: Nanos) {
        for output in &mut self.outputs.outputs {
            output.sender.flush();
        }
        if now.saturating_sub(self.captures_flushed) >= CAPTURE_FLUSH {
            self.captures_flushed = now;
            self.flush_captures();
        }
    }

    fn flush_captures(&mut self) {
        self.inputs.iter_mut().for_each(|input| Captured::flush(&mut input.captured));
        self.outputs.outputs.iter_mut().for_each(|output| Captured::flush(&mut output.captured));
    }

    /// Time at which captures have to be flushed if no packet arrives.
    pub fn next_timeout(&self) -> Option<Nanos> {
        let captures = self.inputs.iter().any(|input| input.captured.is_some());
        captures.then(|| self.captures_flushed + CAPTURE_FLUSH)
    }

    /// Completes all captures. Errors: the first one that lacks frames.
    pub fn finish_captures(&mut self) -> Result<(), CaptureError> {
        let inputs = self.inputs.iter_mut().map(|input| input.captured.take());
        let outputs = self.outputs.outputs.iter_mut().map(|output| output.captured.take());
        inputs.chain(outputs).map(Captured::finish).fold(Ok(()), Result::and)
    }

    /// Statistics of all ports.
    pub fn report(&mut self) -> Vec<PortReport> {
        self.flush_captures();
        let mut links = Links::open().ok();
        let report = |(input, output): (&mut Input, &Output)| PortReport {
            port: input.number,
            interface: input.receiver.interface().to_owned(),
            io: input.receiver.io(),
            socket: input.receiver.stats() + output.sender.stats(),
            kernel: links.as_mut().and_then(|links| links.get(input.receiver.interface()).ok()),
            receive_buffer_bytes: input.receiver.receive_buffer_bytes(),
            capture_errors: Captured::errors(&input.captured) + Captured::errors(&output.captured),
        };
        self.inputs.iter_mut().zip(&self.outputs.outputs).map(report).collect()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.flush_captures();
    }
}

fn open(spec: &PortSpec, io: IoChoice, captures: Option<&Path>) -> Result<(Input, Output), Error> {
    let stayed = Links::open()?.make_pipe(&spec.interface, LINK_MTU)?;
    if !stayed.is_empty() {
        tracing::warn!(interface = spec.interface, ?stayed, "offloads that could not be switched off");
    }
    let capture = |direction: &str| -> Result<Option<Captured>, Error> {
        let path = captures.map(|folder| folder.join(format!("{}_{direction}.pcap", spec.interface)));
        let created = |path: PathBuf| Ok(Captured { file: Ok(Capture::create(&path)?), path, errors: 0 });
        path.map(created).transpose()
    };
    let (input, output) = (capture("in")?, capture("out")?);
    let index = Links::open()?.get(&spec.interface)?.index;
    let (receiver, sender) = open_socket(&spec.interface, io)?.split();
    Ok((
        Input { number: spec.number, index, receiver, captured: input, read_errors: 0 },
        Output { sender, captured: output },
    ))
}

/// Opens a socket with the first kind that the kernel accepts.
fn open_socket(interface: &str, io: IoChoice) -> Result<PacketSocket, Error> {
    let mut kinds = io.kinds().iter();
    loop {
        let io = kinds.next().copied().unwrap_or_default();
        match PacketSocket::open(interface, &packet::Options { io, ..packet::Options::default() }) {
            Err(error) if !kinds.as_slice().is_empty() => {
                tracing::warn!(interface, %io, %error, "this kind of I/O is not available, trying the next one");
            }
            result => return result,
        }
    }
}

fn report_down(port: &mut Input, error: &io::Error) {
    port.read_errors += 1;
    // Log once: the kernel repeats it as long as the interface is down.
    if port.read_errors == 1 {
        tracing::warn!(port = port.number, interface = port.receiver.interface(), %error, "port is down");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(texts: &[&str]) -> Vec<PortSpec> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_port_is_number_and_interface() {
        let port: PortSpec = "12@veth1@if3".parse().unwrap();
        assert_eq!(port, PortSpec { number: 12, interface: "veth1@if3".to_owned() });
        assert_eq!(port.to_string(), "12@veth1@if3");
        for bad in ["", "1", "@x", "x@y", "512@x", "-1@x", "1@"] {
            assert!(bad.parse::<PortSpec>().unwrap_err().contains("PORT@INTERFACE"), "{bad}");
        }
    }

    #[test]
    fn doubled_and_special_ports_are_refused_by_name() {
        let refused = |texts: &[&str]| check(&ports(texts), Some(510), 511).unwrap_err().to_string();
        assert!(refused(&["1@a", "2@b", "1@c"]).contains("port 1 is given twice"));
        assert!(refused(&["1@a", "2@a"]).contains("`a` is given twice"));
        assert!(refused(&["510@a"]).contains("--cpu-port"));
        assert!(refused(&["511@a"]).contains("--drop-port"));
        assert!(check(&ports(&["1@a", "2@b"]), None, 511).is_ok());
        assert!(check(&[], Some(510), 511).is_ok(), "for programs and entries alone");
    }
}
