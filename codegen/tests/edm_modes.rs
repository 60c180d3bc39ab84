//! Behaviour of the generated programs of `matched` and `calendar` on the embedded switch; edm_calendars.rs tests the
//! rest of `calendar`.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::edm::*;
use common::{Built, Rig};
use p4rack_codegen::scheme::edm::{DESTINATION_FREE, RIGHTS, STALLED_COUNTER};
use p4rack_codegen::{Rack, Scheme};
use p4rack_switch::PortConfig;
use p4rack_wire::Nanos;
use p4rack_wire::edm::{self, GRANTED_LATER, Kind, Target};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

const FULL: u32 = WINDOW;

/// Without shares a whole window is granted, and its first chunk asks for the next one.
const WINDOWS: &str = "shares = false";

fn matched() -> Vec<Net> {
    built(Scheme::EDM_MATCHED, "ahead = 2\nshares = false").iter().map(Net::new).collect()
}

/// Whether demands wait for the link.
fn anybody_waits(net: &Net, link: u16) -> bool {
    match net.rig.built.rack.switch.arch.is_tofino() {
        true => net.rig.register("RackIngress.edm.waiting", link) != 0,
        false => net.rig.register(DESTINATION_FREE, link) & 0xffff_ffff != 0,
    }
}

/// Checks the counts of copies that looked, which v1model alone has, and of notifications that waited.
fn looked_and_waited(net: &Net, looked: u64, waited: u64) {
    assert_eq!(net.demoted(), [0, 0]);
    let looked = if net.rig.built.rack.switch.arch.is_tofino() { 0 } else { looked };
    assert_eq!(["edm_looked", "edm_waits"].map(|reason| net.rig.drops(reason)), [looked, waited]);
}

#[test]
fn demands_wait_in_rings_and_the_shortest_rest_comes_first() {
    for mut net in matched() {
        let time = net.time(u64::from(FULL));
        assert_eq!(net.notify(1, 3, 0, FULL).unwrap().wait, 0);
        assert_eq!(u64::from(net.notify(2, 3, 0, FULL).unwrap().wait), time);
        // Two windows are reserved ahead, so these demands wait, and all later ones wait behind them.
        assert_eq!(net.notify(4, 3, 0, 100_000), None);
        assert_eq!(net.notify(1, 3, 1, FULL), None);
        assert_eq!(net.notify(2, 3, 1, 100_000), None);
        assert_eq!(net.notify(1, 4, 0, 64).unwrap().wait, 0, "another destination");
        looked_and_waited(&net, 0, 3);
        assert_eq!(chunk(&mut net, (1, 3), 0, FULL, 0), [], "there is no room yet");
        net.wait(time);
        let grant =
            |port, id, bytes, wait| Grant { port, peer: 3, answer: false, id, offset: 0, bytes, wait };
        assert_eq!(chunk(&mut net, (1, 3), 0, FULL, CHUNK), [grant(1, 1, FULL, time as u32)]);
        net.wait(time);
        assert_eq!(chunk(&mut net, (2, 3), 0, FULL, 0), [grant(4, 0, FULL, time as u32)]);
        // A new demand comes behind those that wait, but there is room now, so it has one of them granted.
        net.wait(time);
        let frame = net.frame(4, 3, edm::PCP_CONTROL, &notification(1, 64));
        let last = grant(2, 1, FULL, (time + net.time(64)) as u32);
        assert_eq!(net.send(4, &frame).grants, [grant(4, 1, 64, time as u32), last], "room for two");
        assert_eq!(chunk(&mut net, (2, 3), 0, FULL, CHUNK), []);
        // Each that looked and found something sent another one, and the last of these found no room.
        looked_and_waited(&net, 3, 4);
        assert!(!anybody_waits(&net, 3));
    }
}

#[test]
fn the_first_chunk_of_a_window_asks_for_the_next_one() {
    for scheme in [Scheme::EDM_MATCHED, Scheme::EDM_CALENDAR] {
        for built in built(scheme, WINDOWS) {
            let mut net = Net::new(&built);
            let total = 3 * FULL + 100;
            assert_eq!(net.notify(1, 3, 0, total).unwrap().bytes, FULL);
            let mut granted = vec![];
            for offset in (0..total).step_by(CHUNK as usize) {
                net.wait(1_000_000);
                granted.extend(chunk(&mut net, (1, 3), 0, total, offset));
            }
            let granted: Vec<_> =
                granted.iter().map(|grant| (grant.port, grant.offset, grant.bytes)).collect();
            assert_eq!(granted, [(1, FULL, FULL), (1, 2 * FULL, FULL), (1, 3 * FULL, 100)]);
            assert!(net.notify(1, 3, 0, 64).is_some(), "the lane is free");
            assert_eq!(net.rig.all_drops(), []);
        }
    }
}

#[test]
fn who_asks_again_and_again_holds_two_windows() {
    for scheme in [Scheme::EDM_MATCHED, Scheme::EDM_CALENDAR] {
        for built in built(scheme, WINDOWS) {
            let mut net = Net::new(&built);
            net.notify(1, 3, 0, FULL).unwrap();
            let cell = edm_of(&built).cell(&built.rack, 0, 2, false, 0).unwrap();
            let mut most = 0;
            for _ in 0..100 {
                net.write(1, 3, 0, 100_000, 0, CHUNK as u16);
                most = most.max(net.rig.register(RIGHTS, cell as u16));
                net.wait(100_000);
            }
            assert_eq!(most, u64::from(2 * FULL - CHUNK), "{scheme}");
        }
    }
}

#[test]
fn a_request_whose_answer_has_to_wait_goes_on_without_a_grant() {
    for mut net in matched() {
        let time = net.time(u64::from(FULL));
        assert_eq!(net.request(1, 3, 0, FULL), Some(0));
        assert_eq!(net.request(1, 4, 0, FULL), Some(time as u32));
        assert_eq!(net.request(1, 3, 1, 8), Some(GRANTED_LATER));
        net.wait(time);
        let answer = net.frame(3, 1, edm::PCP_DATA, &message(Kind::Rres, 0, FULL, 0, CHUNK as u16));
        let seen = net.send(3, &answer);
        let grant = Grant { port: 3, peer: 1, answer: true, id: 1, offset: 0, bytes: 8, wait: time as u32 };
        assert_eq!((seen.grants, seen.arrived), (vec![grant], vec![(1, 0)]));
        // Grants of waiting demands carry no bytes of the frame that triggered them.
        assert_eq!(net.request(2, 3, 0, FULL), Some(0));
        assert_eq!(net.rig.drops("edm_waits"), 0, "requests go on");
    }
}

/// The controller has no link, so Tofino's rings, which are numbered by links of hosts, are not its.
#[test]
fn what_the_controller_asks_for_waits_in_no_hosts_ring() {
    for mut net in matched().into_iter().filter(|net| net.rig.built.rack.switch.arch.is_tofino()) {
        let mut request = |id: u16| {
            let asked = net.frame(1, 3, edm::PCP_CONTROL, &message(Kind::Rreq, id, FULL, 0, 0));
            let packet_out = [&[0, 0], &asked[..]].concat();
            let seen = net.send(net.rig.built.rack.switch.cpu_port, &packet_out);
            (seen.arrived.first().map(|arrived| arrived.1), net.rig.drops("edm_no_time"))
        };
        assert_eq!(request(0), (Some(0), 0));
        let (wait, _) = request(1);
        // There is no time for the third one. It leaves nothing behind, so the next one is refused for the same reason.
        assert_eq!((request(2), request(2)), ((None, 1), (None, 2)));
        assert_eq!(wait, Some(net.time(FULL.into()) as u32));
        for ring in 0..24 {
            assert_eq!(net.rig.register("RackIngress.edm.ring_count", ring), 0);
        }
        assert!(!anybody_waits(&net, 1));
    }
}

#[test]
fn what_no_ring_has_room_for_is_refused_and_counted() {
    for built in built(Scheme::EDM_MATCHED, "classes = 1\nshares = false") {
        let mut net = Net::new(&built);
        // Messages that stop and are replaced leave their demands behind, while the clock is far ahead.
        let (expiry, horizon) =
            (edm_of(&built).expiry(&built.rack).0, edm_of(&built).horizon_units(&built.rack));
        let mut rounds = 0;
        while net.rig.drops("edm_no_time") == 0 {
            assert!(rounds < 10, "9 demands each");
            net.manage(Kind::MgmtWrite, Target::Destination as u8, 3, horizon as u32 - 1).unwrap();
            for (from, id) in [1, 2, 4].into_iter().flat_map(|from| (0..DEMANDS).map(move |id| (from, id))) {
                let frame = net.frame(from, 3, edm::PCP_CONTROL, &notification(id, FULL));
                assert_eq!(net.send(from, &frame), Seen::default());
            }
            net.wait(expiry + 1);
            rounds += 1;
        }
        let places = u64::from(DEMANDS) * 6;
        assert_eq!(net.rig.drops("edm_waits"), places.next_power_of_two());
        assert_eq!(net.rig.counter(STALLED_COUNTER, 0).packets, 0);
    }
}

/// A demand without a grant gets no right to a window and no lane.
#[test]
fn what_finds_no_time_holds_nothing() {
    for built in built(Scheme::EDM_MATCHED, "classes = 1\nshares = false") {
        let mut net = Net::new(&built);
        let lane = |asks| edm_of(&built).cell(&built.rack, asks, 2, false, 0).unwrap();
        let (goes_on, asks) = (lane(0), lane(1));
        let total = 100_000;
        assert_eq!(net.notify(1, 3, 0, total).unwrap().bytes, FULL);
        // Demands that the controller takes back stay in the ring while the clock is far ahead.
        let far = edm_of(&built).horizon_units(&built.rack) as u32 - 1;
        net.manage(Kind::MgmtWrite, Target::Destination as u8, 3, far).unwrap();
        let places = (u64::from(DEMANDS) * 6).next_power_of_two();
        for _ in 0..places {
            assert_eq!(net.notify(2, 3, 0, FULL), None);
            assert_eq!(net.manage(Kind::MgmtReset, Target::Rights as u8, asks, 0), Some(FULL));
        }
        assert_eq!(net.rig.all_drops(), [("edm_waits", places)]);
        assert_eq!(net.notify(2, 3, 0, FULL), None);
        assert_eq!(net.rig.drops("edm_no_time"), 1);
        assert_eq!(net.rig.register(RIGHTS, asks as u16), 0);
        assert_eq!(net.write(2, 3, 0, FULL, 0, CHUNK as u16), Fate::Demoted("uncovered"));
        // A chunk that asks for another window has the earlier grant, and no more.
        assert_eq!(chunk(&mut net, (1, 3), 0, total, 0), []);
        assert_eq!(net.rig.counter(STALLED_COUNTER, 0).packets, 1);
        assert_eq!(net.rig.register(RIGHTS, goes_on as u16), u64::from(FULL - CHUNK));
        assert_eq!(chunk(&mut net, (1, 3), 0, total, CHUNK), []);
        assert_eq!(net.write(1, 3, 0, total, FULL, CHUNK as u16), Fate::Demoted("uncovered"));
        assert_eq!(net.notify(1, 3, 0, FULL), None);
        assert_eq!(net.rig.drops("edm_no_time"), 2, "its lane is free, so it asks again");
    }
}

/// A copy that looks for demands reserves a whole window. The next copy gives back the rest, unless the time behind it
/// was granted in between.
#[test]
fn what_is_granted_between_two_looks_does_not_overlap() {
    let built = built(Scheme::EDM_MATCHED, "ahead = 2\nshares = false").remove(0);
    // Frames that leave by port 1 take time there, so copies wait behind them.
    let rig = Rig::with_config(&built, |config| config.ports[0] = PortConfig::new(1, 100_000_000));
    let mut net = Net { rig };
    let time = net.time(u64::from(FULL));
    assert_eq!(net.notify(1, 3, 0, FULL).unwrap().wait, 0);
    assert_eq!(u64::from(net.notify(2, 3, 0, FULL).unwrap().wait), time);
    assert_eq!(net.notify(4, 3, 0, 64), None, "it waits");
    net.wait(time + 10_000);
    let data = net.frame(1, 3, edm::PCP_DATA, &message(Kind::Wreq, 0, FULL, 0, CHUNK as u16));
    let elsewhere = net.frame(1, 4, edm::PCP_CONTROL, &notification(1, 64));
    for frame in [data, elsewhere] {
        net.rig.switch.handle_frame(1, &frame, net.rig.now);
    }
    // The first copy finds the demand that waits; the second one is behind the other demand's grant.
    let mut out = Vec::new();
    while net.rig.register(DESTINATION_FREE, 3) & 0xffff_ffff > 0 {
        assert!(net.rig.switch.poll_transmit(net.rig.now, &mut out).is_some());
    }
    let frame = net.frame(2, 3, edm::PCP_CONTROL, &notification(1, FULL));
    let grants = net.send(2, &frame).grants;
    let wait = u64::from(grants.iter().find(|grant| grant.port == 2).unwrap().wait);
    assert_eq!(wait, 2 * time - 10_000, "behind all of the window");
    let over = net.rig.now.0 + wait + time;
    net.wait(50_000);
    net.rig.drain();
    looked_and_waited(&net, 1, 1);
    let last = net.notify(4, 3, 1, FULL).unwrap();
    assert_eq!(net.rig.now.0 + u64::from(last.wait), over);
}

/// Rings are numbered by links, however few of these there are.
#[test]
fn rings_that_a_switch_has_no_room_for_are_refused() {
    let described = |last: u16| {
        let host = |n: u16| {
            let port = if n == 32 { last } else { n };
            format!(
                "[[host]]\nname = \"h{n}\"\nport = {port}\nmac = \"02:00:00:00:00:{n:02x}\"\nip = \"10.0.0.{n}/24\"\n"
            )
        };
        let (hosts, names): (String, Vec<String>) = (1..=32).map(|n| (host(n), format!("\"h{n}\""))).unzip();
        let text = format!(
            "name = \"r\"\n[switch]\nport_rate = \"100 Gb/s\"\n[edm]\nmode = \"matched\"\nmemory = [{}]\n\
             demands = 64\nclasses = 8\n{hosts}",
            names.join(", ")
        );
        Rack::parse(&text, "r.toml").map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(described(32), Ok(()));
    let error = described(500).unwrap_err();
    let wanted = "r.toml:7: edm.demands: the rings of 512 links have 16777216 places, more than 4194304";
    assert!(error.starts_with(wanted), "{error}");
}

/// A message of an honest host that is on its way.
#[derive(Clone, Debug)]
struct Sending {
    total: u32,
    granted: u32,
    sent: u32,
}

/// Requester, responder, whether it is an answer, id.
type Key = (u16, u16, bool, u16);

/// Honest hosts, as far as a program sees them: chunks leave when grants say.
struct Honest {
    net: Net,
    ids: BTreeMap<(u16, u16, bool), u16>,
    active: BTreeMap<Key, Sending>,
    /// Chunks by the time at which they leave, in order of grants.
    chunks: BTreeMap<(u64, u64), (Key, u32, u32)>,
    came: u64,
    /// Grants to each destination, and to each source: begin, end.
    to: BTreeMap<u16, Vec<(u64, u64)>>,
    from: BTreeMap<u16, Vec<(u64, u64)>>,
    /// Demands that wait for each destination: the ring and the key, in order.
    waiting: BTreeMap<u16, VecDeque<(usize, Key)>>,
    is_matched: bool,
    /// Whether a message has one chunk at a time at a link that is granted further ahead. The order of those that wait is not
    /// followed then.
    shares: bool,
}

/// Source and destination of a message's data.
fn way((asks, asked, answer, _): Key) -> (u16, u16) {
    if answer { (asked, asks) } else { (asks, asked) }
}

impl Honest {
    fn new(built: &Built) -> Honest {
        Honest {
            net: Net::new(built),
            ids: BTreeMap::new(),
            active: BTreeMap::new(),
            chunks: BTreeMap::new(),
            came: 0,
            to: BTreeMap::new(),
            from: BTreeMap::new(),
            waiting: BTreeMap::new(),
            is_matched: built.scheme == Scheme::EDM_MATCHED,
            shares: edm_of(built).shares && !built.rack.switch.arch.is_tofino(),
        }
    }

    fn granted(&mut self, key: Key, offset: u32, bytes: u32, wait: u32) {
        let start = self.net.rig.now.0 + u64::from(wait);
        let time = self.net.time(bytes.into());
        let (source, destination) = way(key);
        if let Some(at) = self.waiting.entry(destination).or_default().iter().position(|(_, one)| *one == key)
        {
            let waiting = self.waiting.get_mut(&destination).unwrap();
            let first = waiting.iter().enumerate().min_by_key(|(nth, (class, _))| (*class, *nth)).unwrap().0;
            assert_eq!(at, first, "the shortest rest comes first, and of these the first: {waiting:?}");
            waiting.remove(at);
        }
        self.to.entry(destination).or_default().push((start, start + time));
        self.from.entry(source).or_default().push((start, start + time));
        let sending = self.active.get_mut(&key).unwrap();
        assert_eq!(offset, sending.granted, "{key:?}");
        sending.granted += bytes;
        assert!(sending.granted <= sending.total);
        for from in (offset..offset + bytes).step_by(CHUNK as usize) {
            let chunk = CHUNK.min(offset + bytes - from);
            // Links have a rate.
            let tail = start + self.net.time((from + chunk - offset).into());
            self.came += 1;
            self.chunks.insert((tail, self.came), (key, from, chunk));
        }
    }

    fn waits(&mut self, key: Key, rest: u32) {
        if self.shares {
            return;
        }
        let class = (0..5).find(|n| rest <= FULL << (2 * n)).unwrap_or(5);
        self.waiting.entry(way(key).1).or_default().push_back((class, key));
    }

    fn take(&mut self, grants: Vec<Grant>) {
        for Grant { port, peer, answer, id, offset, bytes, wait } in grants {
            let key = if answer { (peer, port, true, id) } else { (port, peer, false, id) };
            self.granted(key, offset, bytes, wait);
        }
    }

    fn ask(&mut self, asks: u16, asked: u16, answer: bool, total: u32) {
        let lanes = edm_of(&self.net.rig.built).lanes() as u16;
        let next = self.ids.entry((asks, asked, answer)).or_default();
        let held: BTreeSet<u16> = self
            .active
            .range((asks, asked, answer, 0)..=(asks, asked, answer, u16::MAX))
            .map(|(key, _)| key.3 % lanes)
            .collect();
        let Some(id) =
            (*next..*next + lanes).find(|id| id % lanes < DEMANDS && !held.contains(&(id % lanes)))
        else {
            return;
        };
        *next = id + 1;
        let key = (asks, asked, answer, id);
        self.active.insert(key, Sending { total, granted: 0, sent: 0 });
        let bytes = if answer { message(Kind::Rreq, id, total, 0, 0) } else { notification(id, total) };
        let frame = self.net.frame(asks, asked, edm::PCP_CONTROL, &bytes);
        let mut seen = self.net.send(asks, &frame);
        let own =
            seen.grants.iter().position(|grant| (grant.port, grant.id, grant.answer) == (asks, id, false));
        if answer {
            assert_eq!(seen.arrived.len(), 1);
            match seen.arrived[0].1 {
                GRANTED_LATER => self.waits(key, total),
                wait => {
                    let granted = Some(u32::from(seen.bytes[0])).filter(|_| self.shares).unwrap_or(FULL);
                    self.granted(key, 0, total.min(granted), wait);
                }
            }
        } else if let Some(own) =
            own.filter(|_| seen.grants.len() == 1 && self.waiting.get(&asked).is_none_or(VecDeque::is_empty))
        {
            let grant = seen.grants.remove(own);
            self.granted(key, grant.offset, grant.bytes, grant.wait);
        } else {
            self.waits(key, total);
        }
        self.take(seen.grants);
    }

    /// Sends the next chunk. False if there is none.
    fn go_on(&mut self) -> bool {
        let Some(((at, _), (key, offset, bytes))) = self.chunks.pop_first() else { return false };
        self.net.rig.now = Nanos(self.net.rig.now.0.max(at));
        let (source, destination) = way(key);
        let sending = self.active.get_mut(&key).unwrap();
        assert_eq!(offset, sending.sent);
        sending.sent += bytes;
        let (total, done) = (sending.total, sending.sent == sending.total);
        let kind = if key.2 { Kind::Rres } else { Kind::Wreq };
        let frame = self.net.frame(
            source,
            destination,
            edm::PCP_DATA,
            &message(kind, key.3, total, offset, bytes as u16),
        );
        let seen = self.net.send(source, &frame);
        let asks = offset % FULL == 0 && bytes == CHUNK && total > offset + FULL;
        let own = seen
            .grants
            .iter()
            .any(|grant| grant.id == key.3 && grant.offset == offset + FULL && grant.port == source);
        if asks && self.is_matched && !(own && self.waiting.get(&destination).is_none_or(VecDeque::is_empty))
        {
            self.waits(key, total - offset - FULL);
        }
        if done {
            self.active.remove(&key);
        }
        self.take(seen.grants);
        true
    }

    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.active.len(), 0, "all messages end: {:?}", self.active);
        prop_assert_eq!(self.net.demoted(), [0, 0]);
        let drops = self.net.rig.all_drops();
        prop_assert!(
            drops.iter().all(|(reason, _)| ["edm_waits", "edm_looked"].contains(reason)),
            "{drops:?}"
        );
        let sides = if self.is_matched { vec![&self.to] } else { vec![&self.to, &self.from] };
        for (port, spans) in sides.into_iter().flatten() {
            let mut spans = spans.clone();
            spans.sort_unstable();
            for pair in spans.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].0, "port {port}: {pair:?}");
            }
        }
        Ok(())
    }
}

/// Both modes without shares, on all architectures, and with them where programs keep them.
static ALL: LazyLock<Vec<Built>> = LazyLock::new(|| {
    let both = [Scheme::EDM_MATCHED, Scheme::EDM_CALENDAR];
    let with = both.into_iter().map(|scheme| built(scheme, "").remove(0));
    both.into_iter().flat_map(|scheme| built(scheme, WINDOWS)).chain(with).collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// All demands of honest hosts are granted once and in full, never twice at the same time towards a destination,
    /// nor, with calendars, from a source; waiting demands come out in order.
    #[test]
    fn all_that_honest_hosts_ask_for_is_granted_once(
        asks in prop::collection::vec(
            ((1..=4u16, 3..=4u16), any::<bool>(), prop_oneof![1..=64u32, 200..=600u32, Just(256), 1_000..40_000u32], 0..3u8),
            1..60,
        )
    ) {
        for built in ALL.iter() {
            let mut honest = Honest::new(built);
            for ((asks, asked), answer, bytes, chunks) in &asks {
                if asks != asked {
                    honest.ask(*asks, *asked, *answer, *bytes);
                }
                for _ in 0..*chunks {
                    honest.go_on();
                }
            }
            while honest.go_on() {}
            honest.check()?;
        }
    }
}
