//! Hosts in several pipes of a chip under EDM: what asks for time in another pipe visits the clock there, and the lane of its
//! message in the pipe by which data comes in.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

mod common;

use common::edm::{Fate as Sent, Net, edm_of, message, notification};
use common::random::Random;
use common::*;
use p4rack_codegen::{Arch, Rack, Scheme};
use p4rack_wire::Nanos;
use p4rack_wire::edm::{self, Control, Kind, Message, Target};
use p4rack_wire::ethernet::overhead;
use std::collections::{HashMap, HashSet};

/// Three hosts in the first pipe, and one in each of the others.
const PORTS: [u16; 6] = [1, 2, 131, 260, 389, 6];
/// Those with memory.
const MEMORY: [u16; 3] = [1, 131, 260];
const CHIPS: [Arch; 2] = [Arch::Tna, Arch::T2na];
const RATE_BPS: u64 = 100_000_000_000;
const CHUNK: u32 = 1024;
const WINDOW: u32 = 4 * CHUNK;
/// For how long data waits at its destination's port: for eight chunks.
const QUEUED_NS: u64 = 750;
/// A pass by a port that comes back takes some 76 ns at this rate.
const SLOW_BPS: u64 = 10_000_000_000;

fn built(shares: bool, arch: Arch) -> Built {
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

fn all() -> impl Iterator<Item = (bool, Built)> {
    [false, true].into_iter().flat_map(|shares| CHIPS.map(|arch| (shares, built(shares, arch))))
}

/// A switch whose passes from pipe to pipe take time.
fn slow(built: &Built, rate_bps: u64) -> Net {
    // The first port that no host has in any pipe. Ports make up for no time in which they had nothing to send.
    let mut rig = Rig::with_config(built, |config| config.catch_up = Nanos::ZERO);
    let local = if built.rack.switch.arch == Arch::Tna { 68 } else { 7 };
    for pipe in 0..4 {
        rig.switch.set_port_rate(128 * pipe + local, rate_bps).unwrap();
    }
    Net { rig }
}

/// Frames that came back so far.
fn crossings(net: &Net) -> u64 {
    net.rig.switch.stats(net.rig.now).recirculations
}

#[test]
fn demands_and_heads_that_ask_cross_and_other_data_does_not() {
    for (shares, built) in all() {
        let mut net = Net::new(&built);
        let more = u64::from(shares);
        let mut crossed = |what: &str, expected: u64, act: &mut dyn FnMut(&mut Net)| {
            let before = crossings(&net);
            act(&mut net);
            assert_eq!(crossings(&net) - before, expected, "{what}, shares: {shares}");
            net.wait(1_000);
        };
        crossed("a write within a pipe", 0, &mut |net| assert!(net.notify(2, 1, 0, 100).is_some()));
        crossed("its data", 0, &mut |net| assert_eq!(net.write(2, 1, 0, 100, 0, 100), Sent::Scheduled(None)));
        crossed("a read within a pipe", 0, &mut |net| assert!(net.request(2, 1, 0, 100).is_some()));
        crossed("a write to another pipe", 1 + more, &mut |net| {
            assert!(net.notify(1, 131, 0, 100).is_some())
        });
        crossed("its data", 0, &mut |net| {
            assert_eq!(net.write(1, 131, 0, 100, 0, 100), Sent::Scheduled(None))
        });
        crossed("a refused write", 0, &mut |net| assert!(net.notify(1, 389, 0, 100).is_none()));
        crossed("a read from another pipe", 2 + more, &mut |net| {
            assert!(net.request(1, 131, 1, 100).is_some())
        });
        crossed("another one in its lane", 1, &mut |net| assert!(net.request(1, 131, 1, 100).is_none()));
        // The first chunk of a message with two windows, or the last one of its first window.
        crossed("a longer write", 1 + more, &mut |net| {
            assert!(net.notify(389, 131, 2, 2 * WINDOW).is_some())
        });
        let mut asked = 0;
        for offset in (0..WINDOW).step_by(CHUNK as usize) {
            let before = crossings(&net);
            let fate = net.write(389, 131, 2, 2 * WINDOW, offset, CHUNK as u16);
            let Sent::Scheduled(grant) = fate else { panic!("{fate:?}") };
            assert_eq!(crossings(&net) - before, grant.as_ref().map_or(0, |_| 1 + more));
            asked += u32::from(grant.is_some());
            net.wait(30);
        }
        assert_eq!(asked, if shares { 1 } else { 4 }, "shares: {shares}");
    }
}

#[test]
fn each_pipe_has_the_registers_of_its_own_ports() {
    for (shares, built) in all() {
        let mut net = Net::new(&built);
        net.notify(1, 131, 0, 2 * WINDOW).unwrap();
        net.request(389, 260, 1, 100).unwrap();
        let mut clock = |port: u16| -> Vec<bool> {
            (0..4)
                .map(|pipe| net.rig.register_in(pipe, "RackIngress.edm.destination_free", port) != 0)
                .collect()
        };
        assert_eq!(clock(131), [false, true, false, false], "{shares}");
        assert_eq!(clock(389), [false, false, false, true], "{shares}");
        let lane = |asks: usize, asked: usize, answer: bool, id: u16| {
            edm_of(&built).cell(&built.rack, asks, asked, answer, id).unwrap() as u16
        };
        let (write, read) = (lane(0, 2, false, 0), lane(4, 3, true, 1));
        let mut rights = |cell: u16| -> Vec<u64> {
            (0..4).map(|pipe| net.rig.register_in(pipe, "RackIngress.edm.rights", cell)).collect()
        };
        assert_eq!(rights(write), [u64::from(WINDOW), 0, 0, 0], "{shares}");
        assert_eq!(rights(read), [0, 0, 100, 0], "{shares}");
    }
}

/// A message of a host's, on its way.
struct Part {
    at: Nanos,
    from: u16,
    to: u16,
    kind: Kind,
    id: u16,
    total: u32,
    offset: u32,
}

impl Part {
    fn name(&self) -> Name {
        (self.from, self.to, self.kind == Kind::Rres, self.id)
    }
}

/// A message: where its data comes from and where it goes, whether it is an answer, its id.
type Name = (u16, u16, bool, u16);

/// What came of random messages.
#[derive(Default)]
struct Seen {
    grants: usize,
    crossed: usize,
    done: usize,
    /// Granted times: the data's destination, begin and end.
    times: Vec<(u16, u64, u64)>,
    demoted: [u64; 2],
    /// Grants of what was not asked for, or of a message that is over.
    unasked: usize,
    /// When all data that came to each port is on its wire, if it sends as fast as it can.
    sent_by: HashMap<u16, u64>,
    /// The longest for which data waited there.
    queued_ns: u64,
    /// How long all of it waited, and its frames.
    queued: (u64, u64),
}

impl Seen {
    /// How often a grant begins before another one towards the same link ends.
    fn overlaps(&mut self) -> usize {
        self.times.sort_unstable();
        self.times.windows(2).filter(|two| two[0].0 == two[1].0 && two[1].1 < two[0].2).count()
    }
}

/// Hosts of all pipes that read and write, mostly what one of them has, and send what they are granted in its time.
struct Hosts {
    net: Net,
    random: Random,
    totals: HashMap<Name, u32>,
    /// From which offsets on something is to be granted.
    asked: HashSet<(Name, u32)>,
    parts: Vec<Part>,
    busy: HashSet<Name>,
    seen: Seen,
    shares: bool,
    /// Whether grants say when data may leave, not how long it has to wait from their arrival on ([`absolute`]).
    absolute: bool,
}

impl Hosts {
    fn begin(&mut self) {
        let port = |random: &mut Random| PORTS[random.below(6) as usize];
        let asks = port(&mut self.random);
        let memory = match self.random.below(3) {
            0 => MEMORY[self.random.below(3) as usize],
            _ => 131,
        };
        let answer = self.random.below(2) == 0;
        let name = if answer { (memory, asks, true, 0) } else { (asks, memory, false, 0) };
        let name = Name::from((name.0, name.1, name.2, self.random.below(3) as u16));
        if asks == memory || !self.busy.insert(name) {
            return;
        }
        let is_atomic = answer && self.random.below(8) == 0;
        let total = if is_atomic { 8 } else { 1 + self.random.below(3 * u64::from(WINDOW)) as u32 };
        self.totals.insert(name, total);
        self.asked.insert((name, 0));
        let bytes = match answer {
            true if is_atomic => message(Kind::Rmwreq, name.3, total, 0, 8),
            true => message(Kind::Rreq, name.3, total, 0, 0),
            false => notification(name.3, total),
        };
        let frame = self.net.frame(asks, memory, edm::PCP_CONTROL, &bytes);
        self.send(asks, &frame);
    }

    fn send(&mut self, port: u16, frame: &[u8]) {
        let sent = self.net.rig.send(port, frame);
        self.got(sent);
    }

    /// What came out of the switch.
    fn got(&mut self, sent: Vec<(u16, Vec<u8>)>) {
        for (port, frame) in sent {
            let peer =
                self.net.rig.built.rack.hosts.iter().find(|host| host.mac.0 == frame[6..12]).unwrap().port;
            match Kind::of(frame[18]).unwrap() {
                Kind::Grant => {
                    let grant = Control::parse(&frame[18..]).unwrap();
                    self.granted(
                        (port, peer, grant.answer == 1, grant.id),
                        grant.offset,
                        grant.bytes,
                        grant.wait,
                    );
                }
                Kind::Rreq | Kind::Rmwreq => {
                    let request = Message::parse(&frame[18..]).unwrap();
                    let bytes = if self.shares { request.bytes.into() } else { WINDOW.min(request.total) };
                    self.granted((port, peer, true, request.id), 0, bytes, request.offset);
                }
                _ => self.arrived(port, frame.len() as u64),
            }
        }
    }

    /// Data at its destination's port.
    fn arrived(&mut self, port: u16, bytes: u64) {
        let now = self.net.rig.now.0;
        let sent_by = self.seen.sent_by.entry(port).or_default();
        let begins = now.max(*sent_by);
        *sent_by = begins + overhead::wire_bytes(bytes) * 8_000_000_000 / RATE_BPS;
        self.seen.queued_ns = self.seen.queued_ns.max(begins - now);
        self.seen.queued = (self.seen.queued.0 + begins - now, self.seen.queued.1 + 1);
    }

    fn granted(&mut self, name: Name, offset: u32, bytes: u32, wait: u32) {
        let (from, to, answer, id) = name;
        let rack = &self.net.rig.built.rack;
        let edm = edm_of(&self.net.rig.built);
        if !self.asked.remove(&(name, offset)) {
            self.seen.unasked += 1;
            return;
        }
        let begins = if self.absolute { wait.into() } else { self.net.rig.now.0 + u64::from(wait) };
        self.seen.times.push((to, begins, begins + edm.grant_units(rack, bytes.into(), RATE_BPS)));
        self.seen.grants += 1;
        self.seen.crossed += usize::from(from / 128 != to / 128);
        let (total, chunk_ns) = (self.totals[&name], edm.grant_units(rack, CHUNK.into(), RATE_BPS));
        let kind = if answer { Kind::Rres } else { Kind::Wreq };
        for (n, offset) in (offset..offset + bytes).step_by(CHUNK as usize).enumerate() {
            let at = Nanos(begins + n as u64 * chunk_ns);
            self.parts.push(Part { at, from, to, kind, id, total, offset });
        }
    }

    fn send_due(&mut self) {
        let now = self.net.rig.now;
        let (mut due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.parts).into_iter().partition(|part| part.at <= now);
        self.parts = later;
        due.sort_by_key(|part| (part.at, part.offset));
        let mut over = HashSet::new();
        for Part { from, to, kind, id, total, offset, .. } in due {
            if over.contains(&(from, to, kind == Kind::Rres, id)) {
                continue;
            }
            let name = (from, to, kind == Kind::Rres, id);
            let is_refused = kind == Kind::Rres && offset == 0 && self.random.below(8) == 0;
            let bytes = if is_refused { 0 } else { CHUNK.min(total - offset) };
            // The NULL response ends its message.
            let total = if is_refused { 0 } else { total };
            if bytes == CHUNK {
                let step = if self.shares { CHUNK } else { WINDOW };
                self.asked.insert((name, offset + step));
            }
            if offset + bytes == total {
                self.busy.remove(&name);
                self.asked.retain(|(of, _)| *of != name);
                self.parts.retain(|part| !is_refused || part.name() != name);
                over.extend(is_refused.then_some(name));
                self.seen.done += 1;
            }
            let bytes = message(kind, id, total, offset, bytes as u16);
            let frame = self.net.frame(from, to, edm::PCP_DATA, &bytes);
            self.send(from, &frame);
        }
    }
}

/// Grants overlap if the program, whose grants say when data may leave, lets them.
fn at_random(built: &Built, shares: bool, steps: u64) -> Seen {
    run(built, (shares, true), (SLOW_BPS, 16), steps)
}

/// What hosts do with or without shares, and with grants that say when data may leave or how long it has to wait.
fn run(built: &Built, (shares, absolute): (bool, bool), (rate_bps, each): (u64, u64), steps: u64) -> Seen {
    let mut hosts = Hosts {
        net: slow(built, rate_bps),
        random: Random::new(7),
        totals: HashMap::new(),
        asked: HashSet::new(),
        parts: Vec::new(),
        busy: HashSet::new(),
        seen: Seen::default(),
        shares,
        absolute,
    };
    for step in 0..steps {
        let time = hosts.random.below(80);
        hosts.net.wait(time);
        let sent = hosts.net.rig.drain();
        hosts.got(sent);
        hosts.send_due();
        if step % each == 0 {
            hosts.begin();
        }
    }
    hosts.seen.demoted = hosts.net.demoted();
    hosts.seen
}

#[test]
fn grants_from_different_pipes_never_overlap() {
    for (shares, built) in all() {
        let mut seen = at_random(&built.changed(&[ABSOLUTE]), shares, 20_000);
        let what = format!("shares: {shares}, {}", built.rack.switch.arch);
        assert!(seen.grants > 1_000 && seen.crossed > 600, "{what}: {} and {}", seen.grants, seen.crossed);
        assert!(seen.done > 300, "{what}: {}", seen.done);
        assert_eq!(seen.overlaps(), 0, "{what}");
        assert_eq!((seen.demoted, seen.unasked), ([0, 0], 0), "{what}: all came in its time");
    }
}

/// The program with this instead of that.
fn wrong(built: &Built, from: &str, to: &str) -> Built {
    built.changed(&[(from, to)])
}

/// Grants that say when data may leave.
const ABSOLUTE: (&str, &str) =
    ("(bit<32>) meta.edm.to_wait |-| meta.edm.crossed", "meta.edm.earliest + (bit<32>) meta.edm.to_wait");

/// A grant's wait counts from its arrival, however long it crossed, so data comes to its destination as granted.
#[test]
fn data_that_crosses_late_is_not_later_by_that() {
    for (shares, right) in all() {
        let queued = |built: &Built| {
            let seen = run(built, (shares, false), (SLOW_BPS / 4, 6), 20_000);
            assert!(seen.grants > 1_000 && seen.crossed > 600 && seen.done > 300);
            (seen.queued_ns, seen.queued.0 / seen.queued.1, seen.demoted)
        };
        let (most, mean, demoted) = queued(&right);
        let (later, longer, _) = queued(&wrong(&right, "|-| meta.edm.crossed", "|-| 0"));
        println!(
            "shares: {shares}: {most} ns at most, {mean} on average; with the crossings {later} and {longer}"
        );
        assert!(most < QUEUED_NS && later > QUEUED_NS && 3 * mean < 2 * longer, "shares: {shares}");
        assert_eq!(demoted, [0, 0]);
    }
}

/// The test above notices programs in which the pipes share registers that they don't have.
#[test]
fn without_its_crossing_a_program_grants_time_twice() {
    for (shares, right) in all() {
        for (from, to) in [
            ("meta.edm.home != meta.edm.away", "meta.edm.home != meta.edm.home"),
            (
                "ig_tm_md.ucast_egress_port = meta.edm.clock_way;",
                "ig_tm_md.ucast_egress_port = meta.edm.lane_way;",
            ),
        ] {
            let mut seen = at_random(&right.changed(&[ABSOLUTE, (from, to)]), shares, 5_000);
            assert!(seen.overlaps() > 0, "{to} changes nothing");
        }
    }
}

/// Demands in front of another one, so that it is still on its way.
fn on_its_way(net: &mut Net) {
    for from in [2, 6, 1] {
        let frame = net.frame(from, 131, edm::PCP_CONTROL, &notification(0, 100));
        net.rig.send(from, &frame);
    }
    assert_eq!(crossings(net), 2, "of six");
}

#[test]
fn until_its_grant_is_back_data_is_early() {
    for arch in CHIPS {
        let right = built(true, arch);
        let mut net = slow(&right, SLOW_BPS / 100);
        on_its_way(&mut net);
        assert_eq!(net.write(1, 131, 0, 100, 0, 100), Sent::Demoted("uncovered"));
        // Its lane is held.
        assert_eq!(net.notify(1, 131, 0, 100), None);
        assert_eq!(net.rig.drops("edm_lane_taken"), 1);
        // If it held a right that is due from when it left, data would be in time.
        let early = [
            ("EDM_RIGHT_PENDING = 0x80000000", "EDM_RIGHT_PENDING = 100"),
            ("EDM_PENDING = EDM_HORIZON - 1", "EDM_PENDING = 0"),
        ];
        let mut net = slow(&right.changed(&early), SLOW_BPS / 100);
        on_its_way(&mut net);
        assert_eq!(net.write(1, 131, 0, 100, 0, 100), Sent::Scheduled(None));
    }
}

/// How far ahead the clock of a link is after a host has asked for its time many times, with a byte of data between, as fast as its
/// link carries that. Passes that a chip resubmits a frame for take time.
fn claimed_by_asking_again(built: &Built, from: u16, to: u16, settles: u64) -> u64 {
    let mut net = slow(built, SLOW_BPS);
    let send = |net: &mut Net, bytes: &[u8], pcp| {
        let frame = net.frame(from, to, pcp, bytes);
        net.rig.send(from, &frame);
        net.wait(7);
    };
    let mut most = 0;
    for n in 0..500 {
        send(&mut net, &notification(0, 8 * WINDOW), edm::PCP_CONTROL);
        if n == 0 {
            pass(&mut net, settles);
        }
        send(&mut net, &message(Kind::Wreq, 0, 100, 0, 1), edm::PCP_DATA);
        let free = net.rig.register_in(usize::from(to / 128), "RackIngress.edm.destination_free", to);
        most = most.max(free.saturating_sub(net.rig.now.0));
    }
    most
}

#[test]
fn a_host_that_asks_again_before_its_data_is_due_has_one_grant() {
    // Second passes of early chunks that are on their way all the time.
    let on_their_way = [
        ("(1, 0, 1, _) : come_again();", "(1, 0, 1, _) : NoAction();"),
        ("grant_head;\n@defaultonly NoAction;", "grant_head;\nNoAction;"),
    ];
    // A demand that takes its lane whatever is due, and a right that a chunk can use while the grant is on its way.
    let unseen = ("meta.edm.op == EDM_OP_NOTIFY && meta.edm.amount[0:0] == 0", "meta.edm.op == EDM_OP_NONE");
    let usable = ("EDM_RIGHT_PENDING = 0x80000000", "EDM_RIGHT_PENDING = 1024");
    for arch in CHIPS {
        let right = built(true, arch);
        let [window, chunk] =
            [WINDOW, CHUNK].map(|bytes| edm_of(&right).grant_units(&right.rack, bytes.into(), RATE_BPS));
        // To another pipe before and after the first grant is back, and within the pipe.
        for (from, to, settles) in [(1, 131, 0), (1, 131, 600), (2, 1, 0)] {
            let ahead = |more: &[(&str, &str)]| {
                let built = right.changed(&[&on_their_way[..], more].concat());
                claimed_by_asking_again(&built, from, to, settles)
            };
            let (with, without) = (ahead(&[]), ahead(&[unseen, usable]));
            // Data may be early by a chunk, and so may the next demand.
            assert!(
                with <= window + chunk && without > 3 * window,
                "{from} {to}: {with} and {without} ns ahead"
            );
        }
    }
}

/// A frame that was under way for as long as any finds a clock that is as far ahead as any.
#[test]
fn a_clock_is_ahead_of_the_frame_that_crossed_longest() {
    const FREE: &str = "RackIngress.edm.destination_free";
    for (shares, right) in all() {
        // All that the buffer holds, in two queues: frames of 71 bytes there, of 91 on the wire.
        let (buffer, edm) = (right.rack.switch.buffer_bytes, edm_of(&right));
        let longest_ns = 2 * buffer * 91 / 71 * 8 / 100;
        let reach_ns = edm.grant_units(&right.rack, WINDOW.into(), RATE_BPS) * 9 * 3;
        let horizon = edm.horizon_units(&right.rack);
        assert!((longest_ns + reach_ns..2 * (longest_ns + reach_ns)).contains(&horizon), "{horizon}");
        let moved = |built: &Built| {
            let mut net = slow(built, 91 * 8 * 1_000_000_000 / longest_ns);
            let frame = net.frame(1, 131, edm::PCP_CONTROL, &notification(0, CHUNK));
            // The port is idle, so the first frame has it.
            net.rig.send(1, &frame);
            let frame = net.frame(1, 131, edm::PCP_CONTROL, &notification(1, CHUNK));
            net.rig.send(1, &frame);
            net.wait(longest_ns);
            let free = net.rig.now.0 + reach_ns - 200;
            net.rig.set_register_in(1, FREE, 131, free);
            net.rig.drain();
            net.rig.register_in(1, FREE, 131) as i64 - free as i64
        };
        let chunk_ns = edm.grant_units(&right.rack, CHUNK.into(), RATE_BPS) as i64;
        assert_eq!(moved(&right), chunk_ns, "shares: {shares}");
        let [right_text, short] = [horizon, horizon / 2].map(|horizon| format!("EDM_HORIZON = {horizon};"));
        assert!(moved(&wrong(&right, &right_text, &short)) < 0, "{shares}: it looks past");
    }
}

/// Lets time pass in which frames cross.
fn pass(net: &mut Net, time: u64) {
    for _ in 0..time / 100 {
        net.wait(100);
        net.rig.drain();
    }
}

/// A request that came before a frame of its lane's message, but crosses until after it, does not find the lane abandoned.
#[test]
fn an_old_request_leaves_a_lane_to_its_message() {
    for (shares, right) in all() {
        let taken = |built: &Built| {
            let mut net = slow(built, SLOW_BPS / 100);
            let asks = |net: &mut Net, from: u16, id: u16| {
                let bytes = message(Kind::Rreq, id, 2 * WINDOW, 0, 0);
                let frame = net.frame(from, 131, edm::PCP_CONTROL, &bytes);
                net.rig.send(from, &frame);
            };
            asks(&mut net, 1, 0);
            pass(&mut net, 20_000);
            // Others are in front of the second one for the lane.
            asks(&mut net, 2, 0);
            asks(&mut net, 6, 0);
            asks(&mut net, 1, 0);
            net.wait(1);
            let bytes = message(Kind::Rres, 0, 2 * WINDOW, 0, CHUNK as u16);
            let frame = net.frame(131, 1, edm::PCP_DATA, &bytes);
            net.rig.send(131, &frame);
            // And what settles passes all of them.
            pass(&mut net, 60_000);
            net.rig.drops("edm_lane_taken")
        };
        assert_eq!(taken(&right), 1, "{shares}");
        let (now, before) = ("now = ig_prsr_md.global_tstamp[31:0]", "now = hdr.came.arrived");
        assert_eq!(taken(&wrong(&right, now, before)), 0, "{shares}");
    }
}

#[test]
fn a_lane_whose_demand_is_lost_is_free_after_its_expiry() {
    for (shares, right) in all() {
        let to = "ig_tm_md.ucast_egress_port = meta.edm.clock_way;";
        let mut net = Net::new(&wrong(&right, to, "ig_tm_md.ucast_egress_port = 300;"));
        assert_eq!(net.notify(1, 131, 0, 100), None);
        assert_eq!(net.notify(1, 131, 0, 100), None);
        assert_eq!(net.rig.drops("edm_lane_taken"), 1, "{shares}");
        net.wait(edm_of(&right).expiry(&right.rack).0 + 1);
        assert_eq!(net.notify(1, 131, 0, 100), None, "asked for again, and lost again");
        assert_eq!(net.rig.drops("edm_lane_taken"), 1, "{shares}");
    }
}

/// A message of two windows in a lane, with all that it asks for; its last chunk came.
fn runs(net: &mut Net, (from, to): (u16, u16), reads: bool, id: u16) -> bool {
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

/// What crosses with the highest bit of its message's id is lost: on its way to its lane or clock, back, or as a head. A lane is free
/// after its expiry, and its next message comes through.
#[test]
fn after_a_lost_crossing_the_lanes_next_message_runs() {
    const LOST: &str = "meta.edm.id[15:15] == 1 ? 9w300 :";
    let sent = |pass: &str, way: &str| {
        format!(
            "hdr.again.pass = {pass};\nmeta.again = 1;\nhdr.packet_in.setInvalid();\nig_tm_md.bypass_egress = 1;\n\
             ig_tm_md.ucast_egress_port = {way};"
        )
    };
    let losing = |pass: &str, way: &str| (sent(pass, way), sent(pass, &format!("{LOST} {way}")));
    let head = "meta.head_session = meta.edm.head_way;";
    for (shares, right) in all() {
        let mut all = vec![
            ("a", true, losing("EDM_AT_LANE", "meta.edm.lane_way")),
            ("b", true, losing("EDM_AT_CLOCK", "meta.edm.clock_way")),
            ("b", false, losing("EDM_AT_CLOCK", "meta.edm.clock_way")),
            (
                "a head",
                false,
                (head.to_owned(), head.replace("= ", "= meta.edm.id[15:15] == 1 ? (MirrorId_t) 0 : ")),
            ),
        ];
        if shares {
            let back = losing("meta.edm.to_near | EDM_SETTLES", "meta.edm.lane_way");
            all.extend([("c", true, back.clone()), ("c", false, back)]);
        }
        for (step, reads, (from, to)) in all {
            let what = format!("{step}, reads: {reads}, shares: {shares}, {}", right.rack.switch.arch);
            let mut net = Net::new(&wrong(&right, &from, &to));
            assert!(!runs(&mut net, (1, 131), reads, 1 << 15), "{what} is lost");
            // A request that did not come to its lane left it free.
            assert_eq!(runs(&mut net, (1, 131), reads, 0), step == "a", "{what}");
            net.wait(edm_of(&right).expiry(&right.rack).0 + 1);
            assert!(runs(&mut net, (1, 131), reads, 0), "{what}");
        }
    }
}

/// The same of a port whose queue is full, which counts what it loses.
#[test]
fn after_a_full_port_between_pipes_lanes_run() {
    for (shares, right) in all() {
        let mut rig = Rig::with_config(&right, |config| {
            config.catch_up = Nanos::ZERO;
            config.buffer_bytes = 2_000;
        });
        let local = if right.rack.switch.arch == Arch::Tna { 68 } else { 7 };
        rig.switch.set_port_rate(128 + local, SLOW_BPS).unwrap();
        let mut net = Net { rig };
        for from in [1, 2, 6] {
            for id in 0..3 {
                // Longer than it has to be, so that few fill the buffer.
                let long = [notification(id, 100), vec![0; 500]].concat();
                let frame = net.frame(from, 131, edm::PCP_CONTROL, &long);
                net.rig.send(from, &frame);
            }
        }
        pass(&mut net, 5_000);
        let stats = net.rig.switch.stats(net.rig.now);
        let port = stats.ports.iter().find(|port| port.port == 128 + local).unwrap();
        let lost: u64 = port.queues.iter().map(|queue| queue.drops).sum();
        assert!((3..9).contains(&lost), "{shares}: {lost} of nine");
        net.rig.switch.set_port_rate(128 + local, 0).unwrap();
        net.wait(edm_of(&right).expiry(&right.rack).0 + 1);
        for id in 0..3 {
            assert!(runs(&mut net, (1, 131), false, id), "{shares}");
        }
    }
}

#[test]
fn the_controller_reads_and_sets_registers_of_all_pipes() {
    for (shares, built) in all() {
        let mut net = Net::new(&built);
        let mut check = |target: Target, index: u32| {
            let mut manage = |kind: Kind, value: u32| net.manage(kind, target as u8, index, value);
            assert_eq!(manage(Kind::MgmtRead, 0), Some(0), "{target:?} {index}, shares: {shares}");
            assert_eq!(manage(Kind::MgmtWrite, 500), Some(0));
            assert_eq!(manage(Kind::MgmtRead, 0), Some(500));
            assert_eq!(manage(Kind::MgmtReset, 0), Some(500));
            assert_eq!(manage(Kind::MgmtRead, 0), Some(0));
        };
        for port in PORTS {
            check(Target::Destination, port.into());
        }
        let edm = edm_of(&built);
        for (asks, asked) in [(0, 2), (4, 3), (3, 0), (5, 2)] {
            for answer in [false, true] {
                check(Target::Rights, edm.cell(&built.rack, asks, asked, answer, 2).unwrap());
            }
        }
        // What a host's lane holds, in the pipe where its data comes in.
        net.notify(389, 131, 1, 77).unwrap();
        net.request(389, 131, 2, 88).unwrap();
        for (answer, id, expected) in [(false, 1, 77), (true, 2, 88)] {
            let cell = edm.cell(&built.rack, 4, 2, answer, id).unwrap();
            assert_eq!(net.manage(Kind::MgmtRead, Target::Rights as u8, cell, 0), Some(expected));
        }
    }
}

/// A frame to a port between the pipes would come back as one that crossed, with a pass of the controller's choice.
#[test]
fn the_controller_sends_nothing_by_the_ports_between_pipes() {
    for (shares, built) in all() {
        let mut net = Net::new(&built);
        let local = if built.rack.switch.arch == Arch::Tna { 68 } else { 7 };
        for pipe in 0..4 {
            let port: u16 = 128 * pipe + local;
            let mut packet_out = port.to_be_bytes().to_vec();
            packet_out.extend(net.frame(1, 131, edm::PCP_CONTROL, &notification(0, 100)));
            assert_eq!(net.rig.send(built.rack.switch.cpu_port, &packet_out), [], "{shares}");
        }
        assert_eq!((crossings(&net), net.rig.drops("unknown_destination")), (0, 4), "{shares}");
    }
}
