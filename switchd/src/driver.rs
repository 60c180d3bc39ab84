//! The switch's ports on network interfaces.

use p4rack_netdev::carrier::CarrierNews;
use p4rack_netdev::link::LinkInfo;
use p4rack_netdev::{Capture, Error, Links, PacketSocket, clock, packet};
use p4rack_wire::Nanos;
use serde::Serialize;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::str::FromStr;
use thiserror::Error;

/// Highest port number: `standard_metadata` has nine bits for it.
const PORT_MAX: u16 = 511;
/// What links carry after the Ethernet header at least: full frames with tag and shim, and room.
const LINK_MTU: u32 = 1530;
/// Captures reach the disk after this long.
const CAPTURE_FLUSH: Nanos = Nanos::from_millis(100);

/// A port and its interface, written `PORT@INTERFACE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Number in the P4 program.
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

/// Why ports were not opened.
#[derive(Debug, Error)]
pub enum DriverError {
    /// Two ports of one number.
    #[error("port {0} is given twice: each -i needs a port number of its own")]
    NumberTwice(u16),
    /// Two ports on one interface.
    #[error("interface `{0}` is given twice: each -i needs an interface of its own")]
    InterfaceTwice(String),
    /// A number that means something else.
    #[error("port {0} is the {1} port: give the interface another number, or choose another with --{1}-port")]
    Special(u16, &'static str),
    /// An interface was refused.
    #[error("port {port}: {source}")]
    Device {
        /// The port.
        port: u16,
        /// What was refused.
        source: Error,
    },
}

/// Checks a list of ports without touching the system.
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

/// What happened on one port.
#[derive(Clone, Debug, Serialize)]
pub struct PortReport {
    /// Port number.
    pub port: u16,
    /// Interface.
    pub interface: String,
    /// Counters of its socket.
    pub socket: packet::Stats,
    /// What the kernel says about the interface. Its `rx_dropped` counts tagged frames that only this
    /// socket wanted.
    pub kernel: Option<LinkInfo>,
    /// Receive buffer that the kernel granted.
    pub receive_buffer_bytes: usize,
    /// Captured frames that could not be written.
    pub capture_errors: u64,
}

/// Captures of what comes in and what goes out.
#[derive(Debug)]
struct Captures {
    input: Capture,
    output: Capture,
}

#[derive(Debug)]
struct Port {
    number: u16,
    /// The interface's index.
    index: i32,
    socket: PacketSocket,
    captures: Option<Captures>,
    capture_errors: u64,
    read_errors: u64,
}

/// Open ports.
#[derive(Debug)]
pub struct Driver {
    ports: Vec<Port>,
    /// Position in `ports` by port number.
    position: Vec<Option<usize>>,
    captures_flushed: Nanos,
    news: Option<CarrierNews>,
}

impl Driver {
    /// Opens all ports, in the calling thread's network namespace; captures go to the folder `captures`.
    pub fn open(ports: &[PortSpec], captures: Option<&Path>) -> Result<Driver, DriverError> {
        let mut driver = Driver {
            ports: Vec::with_capacity(ports.len()),
            position: vec![None; usize::from(PORT_MAX) + 1],
            captures_flushed: clock::now(),
            news: None,
        };
        if !ports.is_empty() {
            let news = CarrierNews::open();
            // Only those who watch ports miss it.
            driver.news = news.inspect_err(|error| tracing::warn!(%error, "ports count as up")).ok();
        }
        for spec in ports {
            let port =
                open(spec, captures).map_err(|source| DriverError::Device { port: spec.number, source })?;
            driver.position[usize::from(spec.number)] = Some(driver.ports.len());
            driver.ports.push(port);
        }
        Ok(driver)
    }

    /// How many ports there are; their positions are below.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Descriptor of the port at a position, to wait on.
    pub fn descriptor(&self, position: usize) -> BorrowedFd<'_> {
        self.ports[position].socket.as_fd()
    }

    /// Descriptor on which the kernel tells of interfaces.
    pub fn news(&self) -> Option<BorrowedFd<'_>> {
        self.news.as_ref().map(CarrierNews::as_fd)
    }

    /// Takes the news: calls `changed` with port number and whether it can send.
    pub fn read_news(&self, mut changed: impl FnMut(u16, bool)) {
        let Some(news) = &self.news else { return };
        let read = news.read(|index, carries| {
            for port in self.ports.iter().filter(|port| port.index == index) {
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
        for port in &self.ports {
            let carries = links.get(port.socket.interface()).is_ok_and(|link| link.carries);
            changed(port.number, carries);
        }
    }

    /// Reads one batch from the port at a position; calls `frame` with port number and frame.
    /// An interface that is down has nothing.
    pub fn receive(&mut self, position: usize, mut frame: impl FnMut(u16, &[u8])) {
        let port = &mut self.ports[position];
        let number = port.number;
        let (captures, errors) = (&mut port.captures, &mut port.capture_errors);
        let result = port.socket.receive(|bytes, at| {
            if let Some(captures) = captures {
                *errors += u64::from(captures.input.write(bytes, at).is_err());
            }
            frame(number, bytes);
        });
        if let Err(error) = result {
            report_down(port, &error);
        }
    }

    /// Puts a frame into the port's next batch; `frame` is left empty.
    pub fn send(&mut self, number: u16, frame: &mut Vec<u8>, now: Nanos) {
        let position = self.position.get(usize::from(number)).copied().flatten();
        // The switch only sends to ports it was configured with, the same as these.
        let Some(port) = position.and_then(|position| self.ports.get_mut(position)) else { return };
        if let Some(captures) = &mut port.captures {
            port.capture_errors += u64::from(captures.output.write(frame, now).is_err());
        }
        port.socket.send(frame);
    }

    /// Gives all batches to the kernel; brings captures to the disk now and then.
    pub fn flush(&mut self, now: Nanos) {
        for port in &mut self.ports {
            port.socket.flush();
        }
        if now.saturating_sub(self.captures_flushed) >= CAPTURE_FLUSH {
            self.captures_flushed = now;
            self.flush_captures();
        }
    }

    fn flush_captures(&mut self) {
        for port in &mut self.ports {
            if let Some(captures) = &mut port.captures {
                let flushed = captures.input.flush().and(captures.output.flush());
                port.capture_errors += u64::from(flushed.is_err());
            }
        }
    }

    /// When the captures want to be flushed although no packet comes.
    pub fn next_timeout(&self) -> Option<Nanos> {
        let captures = self.ports.iter().any(|port| port.captures.is_some());
        captures.then(|| self.captures_flushed + CAPTURE_FLUSH)
    }

    /// What happened so far.
    pub fn report(&mut self) -> Vec<PortReport> {
        let mut links = Links::open().ok();
        let report = |port: &mut Port| PortReport {
            port: port.number,
            interface: port.socket.interface().to_owned(),
            socket: port.socket.stats(),
            kernel: links.as_mut().and_then(|links| links.get(port.socket.interface()).ok()),
            receive_buffer_bytes: port.socket.receive_buffer_bytes(),
            capture_errors: port.capture_errors,
        };
        self.ports.iter_mut().map(report).collect()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.flush_captures();
    }
}

fn open(spec: &PortSpec, captures: Option<&Path>) -> Result<Port, Error> {
    let stayed = Links::open()?.make_pipe(&spec.interface, LINK_MTU)?;
    if !stayed.is_empty() {
        tracing::warn!(interface = spec.interface, ?stayed, "offloads that could not be switched off");
    }
    let capture = |folder: &Path, direction: &str| {
        Capture::create(&folder.join(format!("{}_{direction}.pcap", spec.interface)))
    };
    let captures = match captures {
        Some(folder) => Some(Captures { input: capture(folder, "in")?, output: capture(folder, "out")? }),
        None => None,
    };
    Ok(Port {
        number: spec.number,
        index: Links::open()?.get(&spec.interface)?.index,
        socket: PacketSocket::open(&spec.interface, &packet::Options::default())?,
        captures,
        capture_errors: 0,
        read_errors: 0,
    })
}

fn report_down(port: &mut Port, error: &io::Error) {
    port.read_errors += 1;
    // Once: the kernel repeats it for as long as the interface is down.
    if port.read_errors == 1 {
        tracing::warn!(port = port.number, interface = port.socket.interface(), %error, "port is down");
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
