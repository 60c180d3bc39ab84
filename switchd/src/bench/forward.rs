//! Frames a second through one switch or several in a row, beside a loop that only reads and writes the same sockets.
//!
//! ```text
//! sender ─ send ══ p1 │ switch or loop │ p2 ══ p1 │ the next one │ p2 ══ far ─ counted by the kernel
//!             (veth)                      (veth)                     (veth)
//! ```
//!
//! The sender and each forwarder have a thread, or forwarders are processes; the far end costs nothing but the kernel's counter.

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
pub const PROGRAM: &str = include_str!("forward.p4");

/// The TNA counterpart: parses Ethernet, looks up the destination, and counts in ingress and egress.
pub const TNA_PROGRAM: &str = include_str!("../../../examples/tna-forward.p4");

/// Rate of one way of forwarding.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Rate {
    /// Frames per second that reached the far end.
    pub frames_per_s: f64,
    /// Processor time of all forwarding threads per frame, kernel included.
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
    /// Switches in a row.
    pub hops: usize,
    /// Length of the frames, with FCS.
    pub frame_bytes: usize,
    /// Duration of each measurement in seconds.
    pub seconds: f64,
    /// Frames per second offered to both; `None`: as many as possible.
    pub pace: Option<u64>,
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

/// What is sent, through how many switches, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Switches in a row, 1 to [`HOPS_MAX`].
    pub hops: usize,
    /// Length of the frames, with FCS.
    pub frame_bytes: usize,
    /// Duration of a measurement in seconds.
    pub seconds: f64,
    /// Measurements of each kind; the median counts.
    pub rounds: usize,
    /// Whether several paces are offered, and that at which the switch forwards most counts; otherwise as many frames as possible.
    /// Switches in a row that share cores forward less when the first ones have more than the others take.
    pub finds_pace: bool,
}

/// Most switches in a row.
pub const HOPS_MAX: usize = 8;

impl Load {
    fn span(&self) -> Nanos {
        Nanos((self.seconds.clamp(0.05, 60.0) * 1e9) as u64)
    }

    fn rounds(&self) -> usize {
        self.rounds.clamp(1, 100)
    }

    fn paces(&self) -> &'static [u64] {
        if self.finds_pace { &PACES } else { &PACES[..1] }
    }
}

/// Measures the switch with a program and the loop in turn with one kind of I/O, under the same load.
pub fn run(program: &str, io: Io, load: Load) -> Result<Forward, BenchError> {
    let mut best: Option<(u64, Rate, Rate)> = None;
    for pace in load.paces() {
        let (mut switch, mut empty) = (Vec::new(), Vec::new());
        for _ in 0..load.rounds() {
            switch.push(measure_switch(program, IoChoice::Only(io), load, *pace)?);
            empty.push(measure(load, *pace, |signs| timed(|| through_loop(io, signs)))?);
        }
        let switch = median(switch);
        if best.is_none_or(|(_, best, _)| switch.frames_per_s > best.frames_per_s) {
            best = Some((*pace, switch, median(empty)));
        }
    }
    let forwards =
        |(_, switch, empty): &(u64, Rate, Rate)| switch.frames_per_s > 0.0 && empty.frames_per_s > 0.0;
    let (pace, switch, empty_loop) = best.filter(forwards).ok_or_else(|| {
        BenchError::Other(
            "no frame reached the far end: nothing was measured; measure for longer with --seconds"
                .to_owned(),
        )
    })?;
    let ratio = switch.frames_per_s / empty_loop.frames_per_s.max(1.0);
    let cpu_ratio = empty_loop.cpu_ns_per_frame / switch.cpu_ns_per_frame.max(1.0);
    let (Load { hops, frame_bytes, .. }, seconds) = (load, load.span().as_secs_f64());
    let pace = (pace != u64::MAX).then_some(pace);
    Ok(Forward { io, hops, frame_bytes, seconds, pace, switch, empty_loop, ratio, cpu_ratio })
}

/// Results for another switch and this one under the same load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Beside {
    /// Switches in a row.
    pub hops: usize,
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
pub fn run_beside(other: &Other, io: IoChoice, load: Load) -> Result<Beside, BenchError> {
    let mut best: Option<Beside> = None;
    for pace in PACES {
        let (mut others, mut switch) = (Vec::new(), Vec::new());
        for _ in 0..load.rounds() {
            others.push(measure(load, pace, |signs| other.forward(signs))?);
            switch.push(measure_switch(PROGRAM, io, load, pace)?);
        }
        let Load { hops, frame_bytes, .. } = load;
        let beside = Beside { hops, frame_bytes, other: median(others), switch: median(switch) };
        if best.is_none_or(|best| beside.other.frames_per_s > best.other.frames_per_s) {
            best = Some(beside);
        }
    }
    best.filter(|best| best.other.frames_per_s > 0.0).ok_or_else(|| {
        let program = other.program.display();
        BenchError::Other(format!("{program} ran, but forwarded none of the frames: nothing was measured"))
    })
}

fn median(mut rates: Vec<Rate>) -> Rate {
    rates.sort_by(|a, b| a.frames_per_s.total_cmp(&b.frames_per_s));
    quantiles::of_sorted(&rates, 0.5).unwrap_or_default()
}

/// Ends the measurement when a forwarder ends, whatever the reason.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Offers `pace` frames per second to one way of forwarding, or as many as possible. Each hop runs on a thread in a fresh
/// namespace and returns its processor time.
fn measure(
    load: Load,
    pace: u64,
    forward: impl Fn(&Signs) -> Result<Nanos, BenchError> + Sync,
) -> Result<Rate, BenchError> {
    let outside = NetNs::create()?;
    let hops = (0..load.hops.clamp(1, HOPS_MAX)).map(|_| NetNs::create()).collect::<Result<Vec<_>, _>>()?;
    let mut from = (&outside, "send");
    let ends = hops.iter().map(|hop| ((hop, "p1"), (hop, "p2")));
    for (to, next) in ends.chain([((&outside, "far"), (&outside, "far"))]) {
        let end = |(ns, name)| VethEnd { name, ns, mac: None };
        Links::add_veth(end(from), end(to))?;
        for (ns, name) in [from, to] {
            ns.run(|| Links::open()?.make_pipe(name, 1530))??;
        }
        from = next;
    }
    let mut links = Links::open_in(&outside)?;
    let mut sender = outside.run(|| PacketSocket::open("send", &Options::default()))??;
    let stop = AtomicBool::new(false);
    let (ready, is_ready) = mpsc::channel();
    std::thread::scope(|scope| {
        let forward = &forward;
        let forwarders: Vec<_> = hops
            .iter()
            .map(|hop| {
                let signs = Signs { ready: ready.clone(), stop: &stop };
                scope.spawn(move || {
                    // Once it has ended, nothing arrives: the others need not go on.
                    let _ended = Ended(signs.stop);
                    hop.run(|| forward(&signs))?
                })
            })
            .collect();
        drop(ready);
        let are_ready = hops.iter().all(|_| is_ready.recv().is_ok());
        let flood = scope.spawn(|| flood(&mut sender, load.frame_bytes, pace, &stop));
        // If one has ended, its error follows.
        let counted = if are_ready { count(&mut links, load.span()) } else { Ok((0, 0, Nanos(1))) };
        stop.store(true, Ordering::Relaxed);
        let mut cpu = Nanos::ZERO;
        for forwarder in forwarders {
            cpu += forwarder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
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
fn measure_switch(program: &str, io: IoChoice, load: Load, pace: u64) -> Result<Rate, BenchError> {
    let compiled = p4rack_p4::compile(program, "bench.p4", &p4rack_p4::Options::default())
        .map_err(|errors| BenchError::Program(errors.render(false)))?;
    let pipeline =
        Pipeline::compile(&compiled.program).map_err(|error| BenchError::Program(error.to_string()))?;
    measure(load, pace, |signs| timed(|| through_switch(io, pipeline.clone(), signs)))
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
            let load = Load { hops: 1, frame_bytes: LENGTHS[0], seconds: 0.1, rounds: 1, finds_pace: false };
            let result = run(program, io, load).unwrap();
            for rate in [&result.switch, &result.empty_loop] {
                assert!(rate.frames_per_s > 0.0 && rate.offered_per_s > 0.0, "{result:?}");
                assert!(rate.cpu_ns_per_frame.is_finite() && rate.cpu_ns_per_frame > 0.0, "{result:?}");
            }
            let ratio = result.switch.frames_per_s / result.empty_loop.frames_per_s.max(1.0);
            assert!((result.ratio - ratio).abs() < 0.01, "{result:?}");
        }
    }

    #[test]
    fn frames_pass_several_switches_and_a_hop_that_fails_ends_the_measurement() {
        if NetNs::create().is_err() {
            let _ = writeln!(
                std::io::stderr(),
                "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
            );
            return;
        }
        let load = Load { hops: 3, frame_bytes: 1_500, seconds: 0.1, rounds: 1, finds_pace: true };
        let result = run(PROGRAM, Io::Packet, load).unwrap();
        assert!(result.hops == 3 && result.switch.frames_per_s > 0.0, "{result:?}");
        let hops = std::sync::atomic::AtomicUsize::new(0);
        let failed = measure(load, 1_000, |signs| match hops.fetch_add(1, Ordering::Relaxed) {
            1 => Err(BenchError::Other("the second one fails".to_owned())),
            _ => timed(|| through_loop(Io::Packet, signs)),
        });
        assert_eq!(failed.unwrap_err().to_string(), "the second one fails");
    }
}
