//! UDP ping-pongs between blocking sockets, which remote memory is compared with.

use super::{LatencyFigures, figures_of};
use crate::error::LabError;
use crate::sys;
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::{Links, NetNs, PacketSocket, Poller, clock, packet, sched};
use p4rack_wire::{Histogram, Nanos};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Names of the ends, and their addresses.
const ENDS: [(&str, Ipv4Addr); 2] =
    [("left", Ipv4Addr::new(192, 0, 2, 1)), ("right", Ipv4Addr::new(192, 0, 2, 2))];
const PREFIX: u8 = 30;
const PORT: u16 = 7_002;
/// Interfaces of the forwarder.
const BETWEEN: [&str; 2] = ["to_left", "to_right"];
const MTU: u32 = 1_500;
/// How long an end waits for the other, and how often it tries again at first.
const SILENCE: Duration = Duration::from_secs(1);
const TRIES: usize = 5;
/// How often what forwards looks whether it is over.
const LOOK: Nanos = Nanos::from_millis(20);

/// Connection of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// One veth pair.
    Link,
    /// Two, and a thread that passes frames from one to the other, as a switch without a program would: as many threads wake as
    /// for remote memory.
    Forwarded,
}

impl Between {
    /// Both.
    pub const ALL: [Between; 2] = [Between::Link, Between::Forwarded];

    fn name(self) -> &'static str {
        match self {
            Between::Link => "UDP ping-pong",
            Between::Forwarded => "UDP, forwarded",
        }
    }
}

/// A ping-pong between two namespaces of its own.
pub fn ping_pong(
    between: Between,
    payload_bytes: usize,
    for_time: Duration,
) -> Result<LatencyFigures, LabError> {
    let namespaces = [NetNs::create()?, NetNs::create()?];
    let end = |nth: usize| VethEnd { name: ENDS[nth].0, ns: &namespaces[nth], mac: None };
    let forwarder = match between {
        Between::Link => {
            Links::add_veth(end(0), end(1))?;
            None
        }
        Between::Forwarded => {
            let ns = NetNs::create()?;
            for (nth, name) in BETWEEN.into_iter().enumerate() {
                Links::add_veth(end(nth), VethEnd { name, ns: &ns, mac: None })?;
                ns.run(|| Links::open()?.make_pipe(name, MTU))??;
            }
            let open = |name| PacketSocket::open(name, &packet::Options::default());
            let [left, right] = ns.run(|| BETWEEN.map(open))?;
            Some([left?, right?])
        }
    };
    let [client, echo] = [socket(&namespaces[0], 0)?, socket(&namespaces[1], 1)?];
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut buffer = [0; 2048];
            while !over.load(Ordering::Relaxed) {
                if let Ok((length, from)) = echo.recv_from(&mut buffer) {
                    let _ = echo.send_to(&buffer[..length], from);
                }
            }
        });
        let forwarding = forwarder.map(|sockets| scope.spawn(|| forward(sockets, &over)));
        let asked = ask(&client, between, payload_bytes, for_time);
        over.store(true, Ordering::Relaxed);
        if let Some(Ok(ended)) = forwarding.map(thread::ScopedJoinHandle::join) {
            ended.map_err(LabError::system("forwarding the UDP ping-pong"))?;
        }
        asked.map_err(LabError::system("the UDP ping-pong"))
    })
}

/// The socket of an end.
fn socket(ns: &NetNs, nth: usize) -> Result<UdpSocket, LabError> {
    let (name, address) = ENDS[nth];
    ns.run(|| {
        let mut links = Links::open()?;
        links.set_up(name)?;
        links.add_address(name, address, PREFIX)?;
        let socket = UdpSocket::bind((address, PORT));
        let set = socket.and_then(|socket| socket.set_read_timeout(Some(SILENCE)).map(|()| socket));
        set.map_err(LabError::system("opening a UDP socket"))
    })?
}

/// Passes frames on, until it is over.
fn forward([mut left, mut right]: [PacketSocket; 2], over: &AtomicBool) -> io::Result<()> {
    sched::prompt(sched::SWITCH_PRIORITY);
    let mut poller = Poller::new();
    poller.add(&left)?;
    poller.add(&right)?;
    let mut copy = Vec::new();
    while !over.load(Ordering::Relaxed) {
        poller.wait(Some(clock::now().saturating_add(LOOK)))?;
        for _ in 0..2 {
            left.receive(|frame, _| {
                copy.clear();
                copy.extend_from_slice(frame);
                right.send(&mut copy);
            })?;
            right.flush();
            std::mem::swap(&mut left, &mut right);
        }
    }
    Ok(())
}

fn ask(
    client: &UdpSocket,
    between: Between,
    payload_bytes: usize,
    for_time: Duration,
) -> io::Result<LatencyFigures> {
    client.connect((ENDS[1].1, PORT))?;
    let (mut latencies, mut unknown) = (Histogram::new(), 0);
    let (payload, mut buffer) = (vec![0x5a; payload_bytes], [0; 2048]);
    // The first one waits for ARP, and for the kernel to see that the link is up.
    let mut tries = 0;
    loop {
        client.send(&payload)?;
        match client.recv(&mut buffer) {
            Ok(_) => break,
            Err(error) if late(&error) && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
    let end_ns = sys::monotonic_ns() + for_time.as_nanos() as u64;
    loop {
        let start_ns = sys::monotonic_ns();
        if start_ns >= end_ns && latencies.is_empty() {
            return Err(ErrorKind::TimedOut.into());
        }
        if start_ns >= end_ns {
            return Ok(figures_of(between.name(), &latencies, unknown));
        }
        client.send(&payload)?;
        match client.recv(&mut buffer) {
            Ok(_) => latencies.record(sys::monotonic_ns() - start_ns),
            Err(error) if late(&error) => unknown += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Whether a socket's time is over.
fn late(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn ping_pongs_give_latencies_in_order() {
        if NetNs::create().is_err() {
            // Past the harness, which hides what a passing test prints.
            let _ = writeln!(
                std::io::stderr(),
                "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
            );
            return;
        }
        for between in Between::ALL {
            let figures = ping_pong(between, 64, Duration::from_millis(200)).unwrap();
            assert!(figures.operations > 10 && figures.unknown == 0, "{figures:?}");
            let order = [figures.min_us, figures.p50_us, figures.p99_us, figures.p999_us];
            assert!(order[0] > 0.0 && order.is_sorted(), "{figures:?}");
        }
    }
}
