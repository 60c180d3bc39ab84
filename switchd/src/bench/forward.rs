//! Frames a second through the switch, beside a loop that only reads and writes the same sockets.
//!
//! ```text
//! sender ─ out ══ in ─ port 1 │ switch or loop │ port 2 ─ in ══ out ─ counted by the kernel
//!          (veth)                                        (veth)
//! ```
//!
//! Sender and forwarder each have a thread, or the forwarder is a process; the far end costs nothing but the kernel's counter.

use super::other::Other;
pub use super::signs::BenchError;
use super::signs::Signs;
use crate::driver::{Driver, IoChoice, PortSpec};
use crate::plane::Plane;
use p4rack_netdev::link::VethEnd;
use p4rack_netdev::packet::{self, Io, Options};
use p4rack_netdev::{Error, Links, NetNs, PacketSocket, Poller, clock, sched};
use p4rack_switch::{Config, Pipeline, PortConfig, Switch};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::{EtherType, MacAddr, Nanos, quantiles};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Address that the program forwards to port 2.
const FAR: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
/// Maximum interval at which a forwarder checks whether to stop.
const LOOK: Nanos = Nanos::from_millis(5);
/// Warm-up time of the forwarder before counting.
const WARM_UP: Nanos = Nanos::from_millis(100);

/// The program measured: parses Ethernet, looks up the destination, counts, forwards.
pub const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> dstAddr; bit<48> srcAddr; bit<16> etherType; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t { }
parser ThisParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control Checks(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Sums(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Forward(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) forwarded;
    action forward(bit<9> port) { sm.egress_spec = port; forwarded.count(); }
    action drop() { mark_to_drop(sm); forwarded.count(); }
    table destinations {
        key = { hdr.ethernet.dstAddr: exact; }
        actions = { forward; drop; }
        const default_action = drop();
        const entries = {
            0x020000000001 : forward(1);
            0x020000000002 : forward(2);
        }
        counters = forwarded;
    }
    apply { destinations.apply(); }
}
control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t sm) { apply { } }
control ThisDeparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.ethernet); } }
V1Switch(ThisParser(), Checks(), Forward(), Leave(), Sums(), ThisDeparser()) main;
"#;

/// The TNA counterpart: parses Ethernet, looks up the destination, and counts in ingress and egress.
pub const TNA_PROGRAM: &str = include_str!("../../../examples/tna-forward.p4");

/// Rate of one way of forwarding.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Rate {
    /// Frames per second that reached the far end.
    pub frames_per_s: f64,
    /// Processor time of the forwarding thread per frame, kernel included.
    pub cpu_ns_per_frame: f64,
    /// Frames per second offered.
    pub offered_per_s: f64,
}

impl Rate {
    /// Whether nearly all frames offered arrived, so that the forwarder could have done more.
    pub fn sender_was_limit(&self) -> bool {
        self.frames_per_s > 0.97 * self.offered_per_s
    }
}

/// Results for the switch and for the empty loop.
#[derive(Clone, Debug, Serialize)]
pub struct Forward {
    /// Kind of I/O of both.
    pub io: Io,
    /// Length of the frames, with FCS.
    pub frame_bytes: usize,
    /// Duration of each measurement in seconds.
    pub seconds: f64,
    /// Rate of the switch: the round with the median rate.
    pub switch: Rate,
    /// Rate of the empty loop: the round with the median rate.
    pub empty_loop: Rate,
    /// Frames per second, switch divided by loop.
    pub ratio: f64,
    /// Processor time per frame, loop divided by switch. It compares them even if the sender was the limit.
    pub cpu_ratio: f64,
}

/// Frame lengths to measure, with FCS: minimum and full.
pub const LENGTHS: [usize; 2] = [overhead::MIN_FRAME as usize + FCS, 1500];
const FCS: usize = overhead::FCS as usize;

/// Measures the switch with a program and the loop in turn with one kind of I/O and one frame length, `rounds` times,
/// `seconds` each.
pub fn run(
    program: &str,
    io: Io,
    frame_bytes: usize,
    seconds: f64,
    rounds: usize,
) -> Result<Forward, BenchError> {
    let span = span(seconds);
    let (mut switch, mut empty) = (Vec::new(), Vec::new());
    for _ in 0..rounds.clamp(1, 100) {
        switch.push(measure_switch(program, IoChoice::Only(io), frame_bytes, u64::MAX, span)?);
        empty.push(measure(frame_bytes, u64::MAX, span, |signs| timed(|| through_loop(io, signs)))?);
    }
    let (switch, empty_loop) = (median(switch), median(empty));
    let ratio = switch.frames_per_s / empty_loop.frames_per_s.max(1.0);
    let cpu_ratio = empty_loop.cpu_ns_per_frame / switch.cpu_ns_per_frame.max(1.0);
    Ok(Forward { io, frame_bytes, seconds: span.as_secs_f64(), switch, empty_loop, ratio, cpu_ratio })
}

/// Results for another switch and this one under the same load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Beside {
    /// Length of the frames, with FCS.
    pub frame_bytes: usize,
    /// The other switch, at the pace at which it forwards most: the round with the median rate.
    pub other: Rate,
    /// This switch at that pace: the round with the median rate.
    pub switch: Rate,
}

/// Frames per second to offer, in turn. Frames that a switch receives and drops cost it time too, so the full
/// load need not be its best pace.
const PACES: [u64; 8] = [u64::MAX, 240_000, 160_000, 120_000, 80_000, 60_000, 40_000, 20_000];

/// Measures another switch and this one in turn under the same conditions, at the pace at which the other
/// forwards most.
pub fn run_beside(
    other: &Other,
    io: IoChoice,
    frame_bytes: usize,
    seconds: f64,
    rounds: usize,
) -> Result<Beside, BenchError> {
    let span = span(seconds);
    let mut best: Option<Beside> = None;
    for pace in PACES {
        let (mut others, mut switch) = (Vec::new(), Vec::new());
        for _ in 0..rounds.clamp(1, 100) {
            others.push(measure(frame_bytes, pace, span, |signs| other.forward(signs))?);
            switch.push(measure_switch(PROGRAM, io, frame_bytes, pace, span)?);
        }
        let beside = Beside { frame_bytes, other: median(others), switch: median(switch) };
        if best.is_none_or(|best| beside.other.frames_per_s > best.other.frames_per_s) {
            best = Some(beside);
        }
    }
    best.filter(|best| best.other.frames_per_s > 0.0).ok_or_else(|| {
        let program = other.program.display();
        BenchError::Other(format!("{program} ran, but forwarded none of the frames: nothing was measured"))
    })
}

fn span(seconds: f64) -> Nanos {
    Nanos((seconds.clamp(0.05, 60.0) * 1e9) as u64)
}

fn median(mut rates: Vec<Rate>) -> Rate {
    rates.sort_by(|a, b| a.frames_per_s.total_cmp(&b.frames_per_s));
    quantiles::of_sorted(&rates, 0.5).unwrap_or_default()
}

/// Offers `pace` frames per second to one way of forwarding, or as many as possible. It runs on a thread in a
/// fresh namespace and returns its processor time.
fn measure(
    frame_bytes: usize,
    pace: u64,
    span: Nanos,
    forward: impl FnOnce(&Signs) -> Result<Nanos, BenchError> + Send,
) -> Result<Rate, BenchError> {
    let (middle, outside) = (NetNs::create()?, NetNs::create()?);
    for (inner, outer) in [("p1", "send"), ("p2", "far")] {
        Links::add_veth(
            VethEnd { name: inner, ns: &middle, mac: None },
            VethEnd { name: outer, ns: &outside, mac: None },
        )?;
    }
    for (ns, name) in [(&middle, "p1"), (&middle, "p2"), (&outside, "send"), (&outside, "far")] {
        ns.run(|| Links::open()?.make_pipe(name, 1530))??;
    }
    let mut links = Links::open_in(&outside)?;
    let mut sender = outside.run(|| PacketSocket::open("send", &Options::default()))??;
    let stop = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::channel();
    let signs = Signs { ready, stop: &stop };
    std::thread::scope(|scope| {
        let forwarder = scope.spawn(|| middle.run(move || forward(&signs))?);
        if is_ready.recv().is_err() {
            // It has ended; its error follows.
            stop.store(true, Ordering::Relaxed);
        }
        let flood = scope.spawn(|| flood(&mut sender, frame_bytes, pace, &stop));
        let counted = count(&mut links, span);
        stop.store(true, Ordering::Relaxed);
        let cpu = forwarder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let sent = flood.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (frames, all, elapsed) = counted?;
        let elapsed_s = elapsed.as_secs_f64();
        Ok(Rate {
            frames_per_s: frames as f64 / elapsed_s,
            cpu_ns_per_frame: cpu.0 as f64 / all.max(1) as f64,
            offered_per_s: sent as f64 / (elapsed + WARM_UP).as_secs_f64(),
        })
    })
}

/// Offers `pace` frames per second to this switch with a program.
fn measure_switch(
    program: &str,
    io: IoChoice,
    frame_bytes: usize,
    pace: u64,
    span: Nanos,
) -> Result<Rate, BenchError> {
    let compiled = p4rack_p4::compile(program, "bench.p4", &p4rack_p4::Options::default())
        .map_err(|errors| BenchError::Program(errors.render(false)))?;
    let pipeline =
        Pipeline::compile(&compiled.program).map_err(|error| BenchError::Program(error.to_string()))?;
    measure(frame_bytes, pace, span, |signs| timed(|| through_switch(io, pipeline, signs)))
}

/// Processor time of `work` on this thread.
fn timed(work: impl FnOnce() -> Result<(), BenchError>) -> Result<Nanos, BenchError> {
    let before = clock::thread_cpu();
    work()?;
    Ok(clock::thread_cpu() - before)
}

/// Frames that arrive at the far end within `span`, frames since the start, and the actual duration.
fn count(links: &mut Links, span: Nanos) -> Result<(u64, u64, Nanos), Error> {
    let mut poller = Poller::new();
    let mut sleep = |span: Nanos| {
        let until = clock::now() + span;
        while clock::now() < until && poller.wait(Some(until)).is_ok() {}
    };
    sleep(WARM_UP);
    let (before, from) = (links.get("far")?.rx_frames, clock::now());
    sleep(span);
    let (after, to) = (links.get("far")?.rx_frames, clock::now());
    Ok((after - before, after, to - from))
}

fn flood(sender: &mut PacketSocket, frame_bytes: usize, pace: u64, stop: &AtomicBool) -> u64 {
    let mut frame = Vec::new();
    let mut due = clock::now();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..packet::BATCH {
            frame.clear();
            frame.extend(FAR.0);
            frame.extend([2, 0, 0, 0, 0, 1]);
            frame.extend(EtherType::PL2_DEFAULT.0.to_be_bytes());
            frame.resize(frame_bytes.max(LENGTHS[0]) - FCS, 0);
            sender.send(&mut frame);
        }
        due += Nanos(packet::BATCH as u64 * 1_000_000_000 / pace);
        std::thread::sleep(Duration::from_nanos(due.0.saturating_sub(clock::now().0)));
    }
    sender.stats().sent
}

fn through_switch(io: IoChoice, pipeline: Pipeline, signs: &Signs) -> Result<(), BenchError> {
    let ports = [1, 2].map(|number| PortSpec { number, interface: format!("p{number}") });
    let config = Config {
        ports: ports.iter().map(|port| PortConfig::new(port.number, 0)).collect(),
        ..Config::default()
    };
    let mut switch = Switch::new(config);
    switch.load(pipeline);
    let mut plane = Plane::new(switch, Driver::open(&ports, io, None)?)?;
    plane.take_thread();
    signs.ready();
    while !signs.stop() {
        plane.turn(Some(clock::now() + LOOK))?;
    }
    Ok(())
}

fn through_loop(io: Io, signs: &Signs) -> Result<(), BenchError> {
    let options = Options { io, ..Options::default() };
    let (mut from, mut to) = (PacketSocket::open("p1", &options)?, PacketSocket::open("p2", &options)?);
    let mut poller = Poller::new();
    poller.add(&from)?;
    sched::prompt(sched::SWITCH_PRIORITY);
    let mut copy = Vec::new();
    signs.ready();
    while !signs.stop() {
        poller.wait(Some(clock::now() + LOOK))?;
        from.receive(|frame, _| {
            copy.clear();
            copy.extend_from_slice(frame);
            to.send(&mut copy);
        })?;
        to.flush();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn both_ways_forward_and_are_compared() {
        if NetNs::create().is_err() {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
            );
            return;
        }
        let ios = Io::ALL.into_iter().filter(|io| packet::probe(*io).is_ok());
        for (io, program) in ios.flat_map(|io| [PROGRAM, TNA_PROGRAM].map(|program| (io, program))) {
            let result = run(program, io, LENGTHS[0], 0.1, 1).unwrap();
            for rate in [&result.switch, &result.empty_loop] {
                assert!(rate.frames_per_s > 0.0 && rate.offered_per_s > 0.0, "{result:?}");
                assert!(rate.cpu_ns_per_frame.is_finite() && rate.cpu_ns_per_frame > 0.0, "{result:?}");
            }
            let ratio = result.switch.frames_per_s / result.empty_loop.frames_per_s.max(1.0);
            assert!((result.ratio - ratio).abs() < 0.01, "{result:?}");
        }
    }
}
