//! A rack with hosts in all pipes, and its switch.

use crate::common::edm::{Fate as Sent, Net};
use crate::common::{Built, Rig};
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::Nanos;
use p4rack_wire::edm::Kind;

/// Three hosts in the first pipe, and one in each of the others.
pub const PORTS: [u16; 6] = [1, 2, 131, 260, 389, 6];
/// Those with memory.
pub const MEMORY: [u16; 3] = [1, 131, 260];
pub const CHIPS: [Arch; 2] = [Arch::Tna, Arch::T2na];
pub const RATE_BPS: u64 = 100_000_000_000;
pub const CHUNK: u32 = 1024;
pub const WINDOW: u32 = 4 * CHUNK;
/// A pass by a port that comes back takes some 76 ns at this rate.
pub const SLOW_BPS: u64 = 10_000_000_000;

pub fn built(shares: bool, arch: Arch) -> Built {
    let hosts: String = PORTS
        .iter()
        .zip(1..)
        .map(|(port, n)| {
            format!(
                "[[host]]\nname = \"h{n}\"\nport = {port}\nmac = \"02:00:00:00:00:0{n}\"\nip = \"10.0.0.{n}/24\"\n"
            )
        })
        .collect();
    let text = format!(
        "name = \"test\"\n[switch]\nport_rate = \"100 Gb/s\"\n[edm]\nmode = \"timed-dst\"\nmemory = [\"h1\", \"h3\", \"h4\"]\n\
         chunk_bytes = {CHUNK}\nwindow = 4\ncontrol_percent = 100\nshares = {shares}\n{hosts}"
    );
    let rack = Rack::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    Built::on(rack, Scheme::EDM_TIMED_DST, arch)
}

pub fn all() -> impl Iterator<Item = (bool, Built)> {
    [false, true].into_iter().flat_map(|shares| CHIPS.map(|arch| (shares, built(shares, arch))))
}

/// A switch whose passes from pipe to pipe take time.
pub fn slow(built: &Built, rate_bps: u64) -> Net {
    // The first port that no host has in any pipe. Ports make up for no time in which they had nothing to send.
    let mut rig = Rig::with_config(built, |config| config.catch_up = Nanos::ZERO);
    let local = if built.rack.switch.arch == Arch::Tna { 68 } else { 7 };
    for pipe in 0..4 {
        rig.switch.set_port_rate(128 * pipe + local, rate_bps).unwrap();
    }
    Net { rig }
}

/// Frames that came back so far.
pub fn crossings(net: &Net) -> u64 {
    net.rig.switch.stats(net.rig.now).recirculations
}

/// The program with this instead of that.
pub fn wrong(built: &Built, from: &str, to: &str) -> Built {
    built.changed(&[(from, to)])
}

/// Lets time pass in which frames cross.
pub fn pass(net: &mut Net, time: u64) {
    for _ in 0..time / 100 {
        net.wait(100);
        net.rig.drain();
    }
}

/// A message of two windows in a lane, with all that it asks for; its last chunk came.
pub fn runs(net: &mut Net, (from, to): (u16, u16), reads: bool, id: u16) -> bool {
    let total = 2 * WINDOW;
    let (way, kind) = if reads { ((to, from), Kind::Rres) } else { ((from, to), Kind::Wreq) };
    let granted = match reads {
        true => net.request(from, to, id, total),
        false => net.notify(from, to, id, total).map(|grant| grant.wait),
    };
    let Some(wait) = granted else { return false };
    let (mut offset, mut until) = (0, WINDOW);
    net.wait(wait.into());
    while offset < until {
        let Sent::Scheduled(grant) = net.chunk(kind, way, id, total, offset, CHUNK as u16) else {
            return false;
        };
        offset += CHUNK;
        if let Some(grant) = grant {
            until = until.max(grant.offset + grant.bytes);
            net.wait(grant.wait.into());
        }
        net.wait(100);
    }
    offset == total
}
