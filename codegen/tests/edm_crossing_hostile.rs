//! Hosts that break EDM's rules between pipes of a chip: the ports between the pipes have a rate, and honest hosts keep theirs.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::edm::{Net, message, notification};
use common::*;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{self, Control, Kind, Message};
use std::collections::HashMap;

/// Three hosts in the first pipe, and one in each of the others.
const PORTS: [u16; 6] = [1, 2, 131, 260, 389, 6];
/// Those that break rules, each in a pipe of its own; both attack the first host.
const HOSTILE: [u16; 2] = [260, 389];
/// The host that asks, the one with memory, whether it reads: to and from the attacked host, and past it.
const HONEST: [(u16, u16, bool); 4] = [(131, 1, true), (131, 1, false), (2, 131, false), (6, 131, true)];
const CHIPS: [Arch; 2] = [Arch::Tna, Arch::T2na];
const RATE_BPS: u64 = 100_000_000_000;
const CHUNK: u32 = 1024;
const LANES: u16 = 3;
/// A step of time, in which a link carries three of the shortest frames.
const STEP_NS: u64 = 20;
const STEPS: u64 = 6_000;
/// When an honest host asks again.
const RETRY_NS: u64 = 20_000;

/// What a host does that breaks rules.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Attack {
    /// Nothing.
    None,
    /// Reads at its link's rate, in lanes that are taken.
    ReadFlood,
    /// Asks to write at its link's rate, and never sends data.
    NotifyFlood,
    /// Asks to write a window, and sends bytes.
    Bytewise,
    /// Writes long messages, and sends data as soon as it has asked.
    Early,
}

impl Attack {
    /// The n-th frame of a host: its bytes and its class.
    fn frame(self, n: u64) -> Option<(Vec<u8>, u8)> {
        let id = (n / 8) as u16 % LANES;
        let write = |bytes: u16| message(Kind::Wreq, id, 4 * CHUNK, 0, bytes);
        Some(match self {
            Attack::None => return None,
            Attack::ReadFlood => (message(Kind::Rreq, id, CHUNK, 0, 0), edm::PCP_CONTROL),
            Attack::NotifyFlood => (notification(id, 900 << 10), edm::PCP_CONTROL),
            Attack::Bytewise if n.is_multiple_of(2) => (notification(id, 4 * CHUNK), edm::PCP_CONTROL),
            Attack::Bytewise => (write(1), edm::PCP_DATA),
            Attack::Early if n.is_multiple_of(8) => (notification(id, 4 * CHUNK), edm::PCP_CONTROL),
            Attack::Early => (write(if n % 8 == 1 { CHUNK as u16 } else { 1 }), edm::PCP_DATA),
        })
    }
}

fn built(arch: Arch) -> Built {
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
        "name = \"test\"\n[switch]\nport_rate = \"100 Gb/s\"\n[edm]\nmode = \"timed-dst\"\nmemory = [\"h1\", \"h3\"]\n{hosts}"
    );
    let rack = Rack::parse(&text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    Built::on(rack, Scheme::EDM_TIMED_DST, arch)
}

/// A message's asking host, the host that is asked, whether it is read, its lane.
type Name = (u16, u16, bool, u16);

/// What the honest hosts finished, in the order of [`HONEST`], with hosts that attack.
fn done(built: &Built, attack: Attack) -> [u64; 4] {
    let rig = Rig::with_config(built, |config| config.catch_up = Nanos(STEP_NS));
    let mut net = Net { rig };
    let local = if built.rack.switch.arch == Arch::Tna { 68 } else { 7 };
    for pipe in 0..4 {
        net.rig.switch.set_port_rate(128 * pipe + local, RATE_BPS).unwrap();
    }
    let mut done = [0; 4];
    let mut asked: HashMap<Name, u64> = HashMap::new();
    let mut parts: Vec<(u64, Name)> = Vec::new();
    let mut sent = 0;
    for _ in 0..STEPS {
        net.wait(STEP_NS);
        let now = net.rig.now.0;
        let mut out = Vec::new();
        for (asks, memory, reads) in HONEST {
            for id in 0..LANES {
                let name = (asks, memory, reads, id);
                if asked.get(&name).is_none_or(|at| now > at + RETRY_NS) {
                    asked.insert(name, now);
                    let bytes =
                        if reads { message(Kind::Rreq, id, CHUNK, 0, 0) } else { notification(id, CHUNK) };
                    out.push((asks, net.frame(asks, memory, edm::PCP_CONTROL, &bytes)));
                }
            }
        }
        let due: Vec<Name> = parts.extract_if(.., |(at, _)| *at <= now).map(|(_, name)| name).collect();
        for (asks, memory, reads, id) in due {
            let (from, to, kind) =
                if reads { (memory, asks, Kind::Rres) } else { (asks, memory, Kind::Wreq) };
            let bytes = message(kind, id, CHUNK, 0, CHUNK as u16);
            out.push((from, net.frame(from, to, edm::PCP_DATA, &bytes)));
        }
        for _ in 0..3 {
            for from in HOSTILE {
                let frame = attack.frame(sent / 2);
                sent += 1;
                out.extend(frame.map(|(bytes, pcp)| (from, net.frame(from, 1, pcp, &bytes))));
            }
        }
        for (port, frame) in out {
            net.rig.switch.handle_frame(port, &frame, net.rig.now);
        }
        for (port, frame) in net.rig.drain() {
            let peer = built.rack.hosts.iter().find(|host| host.mac.0 == frame[6..12]).unwrap().port;
            if HOSTILE.contains(&port) || HOSTILE.contains(&peer) {
                continue;
            }
            match Kind::of(frame[18]).unwrap() {
                Kind::Grant => {
                    let grant = Control::parse(&frame[18..]).unwrap();
                    parts.push((now + u64::from(grant.wait), (port, peer, false, grant.id)));
                }
                Kind::Rreq => {
                    let request = Message::parse(&frame[18..]).unwrap();
                    parts.push((now + u64::from(request.offset), (peer, port, true, request.id)));
                }
                kind => {
                    let id = Message::parse(&frame[18..]).unwrap().id;
                    let reads = kind == Kind::Rres;
                    let (asks, memory) = if reads { (port, peer) } else { (peer, port) };
                    let of = HONEST.iter().position(|pair| *pair == (asks, memory, reads)).unwrap();
                    done[of] += 1;
                    asked.remove(&(asks, memory, reads, id));
                }
            }
        }
    }
    done
}

/// The same in percent of what they finish beside hosts that do nothing.
fn kept(built: &Built, alone: &[u64; 4], attack: Attack) -> [u64; 4] {
    let done = done(built, attack);
    println!("{}: {attack:?}: {done:?} of {alone:?}", built.rack.switch.arch);
    std::array::from_fn(|n| 100 * done[n] / alone[n])
}

#[test]
fn honest_hosts_keep_their_share() {
    for arch in CHIPS {
        let built = built(arch);
        let alone = done(&built, Attack::None);
        assert!(alone.iter().all(|done| *done > 500), "{alone:?}");
        for attack in [Attack::ReadFlood, Attack::NotifyFlood] {
            let kept = kept(&built, &alone, attack);
            assert!(kept.iter().all(|percent| *percent >= 90), "{attack:?}: {kept:?}");
        }
        // With three hosts that write to the attacked one, the honest one has a third of its link.
        for attack in [Attack::Bytewise, Attack::Early] {
            let kept = kept(&built, &alone, attack);
            let least = [90, 32, 90, 90];
            assert!(kept.iter().zip(least).all(|(kept, least)| *kept >= least), "{attack:?}: {kept:?}");
        }
    }
}

/// Without the requests' meter, a flood starves reads of that pipe's memory, and fills the buffer. In the queue of what has time, it
/// starves all that crosses to that pipe or comes back to it.
#[test]
fn without_meter_and_queues_a_flood_of_requests_starves_others() {
    let right = built(Arch::Tna);
    let unmetered = ("|| crossing_color == MeterColor_t.RED", "");
    let one_queue = ("ig_tm_md.qid = PRIORITY_BEST_EFFORT;\nhdr.again.pass", "hdr.again.pass");
    let alone = done(&right, Attack::None);
    let kept_with = |changes: &[(&str, &str)]| kept(&right.changed(changes), &alone, Attack::ReadFlood);
    let [behind, among] = [kept_with(&[unmetered]), kept_with(&[unmetered, one_queue])];
    assert!(behind[0] < 10 && behind[1..].iter().all(|kept| *kept < 60), "{behind:?}");
    assert!(among.iter().all(|kept| *kept < 10), "{among:?}");
}
