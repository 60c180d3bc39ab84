//! Results of a run.

mod collect;
mod judge;
mod papers;

use crate::check::Verdict;
use crate::crew::{Alone, Crew};
use crate::experiment::Experiment;
use crate::hostile::OthersOutcome;
use crate::latency::Latency;
use crate::record::Recorder;
use crate::switch::Model;
use crate::world::{FrameWorld, Planted, SimError};
pub(crate) use collect::depth_quantile;
use p4rack_wire::Nanos;
pub use papers::{Compared, figure};
pub(crate) use papers::{compared, concerns};
use serde::Serialize;
use std::collections::BTreeMap;

/// The results of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The experiment's name.
    pub name: String,
    /// Its scheme.
    pub scheme: String,
    /// Its seed.
    pub seed: u64,
    /// Simulated time that was measured, seconds.
    pub measured_s: f64,
    /// Payload that arrived at all hosts in that time.
    pub goodput_gbps: f64,
    /// The same at the host that received the most.
    pub goodput_max_host_gbps: f64,
    /// Maximum payload rate of a host's link towards the host; see docs/sim.md.
    pub ceiling_receive_gbps: f64,
    /// The same in the other direction.
    pub ceiling_send_gbps: f64,
    /// Results per traffic.
    pub traffic: Vec<TrafficOutcome>,
    /// From an RSV's start on the wire to its grant's arrival.
    pub rsv_grt_ns: Latency,
    /// Control frames of the protocol.
    pub control: ControlOutcome,
    /// The switch.
    pub switch: SwitchOutcome,
    /// Frames that the hosts dropped, by reason; only reasons that occurred.
    pub host_drops: BTreeMap<String, u64>,
    /// Sums of the counters of the hosts' machines, without those that are zero.
    pub host_counters: BTreeMap<String, u64>,
    /// Reservations of silent senders that the controller took back: microseconds, sender, destination.
    pub resets: Vec<(f64, String, String)>,
    /// Frames lost on links.
    pub link_losses: u64,
    /// Frames lost anywhere over the whole run, without unsolicited ones that are sent again in their slots.
    pub frames_dropped: u64,
    /// Findings of the checks.
    pub checks: Verdict,
    /// Failed checks; empty if all passed.
    pub problems: Vec<String>,
    /// Figures compared with those of a paper.
    pub paper: Vec<Compared>,
    /// Checksum of everything that happened. The same file and seed give the same digest.
    pub digest: String,
    /// Frames that passed the switch.
    pub frame_hops: u64,
    /// If hosts may be hostile: results of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersOutcome>,
}

/// Results of one traffic.
#[derive(Clone, Debug, Serialize)]
pub struct TrafficOutcome {
    /// Its name.
    pub name: String,
    /// Messages created since the warm-up.
    pub made: u64,
    /// Those of them that arrived completely.
    pub done: u64,
    /// Messages that lost a frame.
    pub lost: u64,
    /// Messages refused because too many waited.
    pub refused: u64,
    /// Payload that arrived.
    pub goodput_gbps: f64,
    /// Retransmissions over the whole run.
    pub retransmissions: u64,
    /// Timeouts of the transport.
    pub timeouts: u64,
    /// Unit that `latency` measures: a message, a request with its answer, or a round.
    pub of: &'static str,
    /// Latency.
    pub latency_ns: Latency,
    /// By message size, if sizes differ.
    pub deciles: Vec<Decile>,
}

/// A tenth of the messages by size.
#[derive(Clone, Debug, Serialize)]
pub struct Decile {
    /// Maximum size in it, bytes; none for the last tenth.
    pub up_to_bytes: Option<u64>,
    /// Latency.
    pub latency_ns: Latency,
}

/// Results of the switch.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchOutcome {
    /// Maximum bytes in one port's queues since the warm-up.
    pub queue_max_bytes: u64,
    /// 99.9 % of the time the fullest port held no more than this.
    pub queue_p999_bytes: u64,
    /// Maximum bytes in the shared buffer.
    pub buffer_max_bytes: u64,
    /// Pauses sent to hosts.
    pub pauses: u64,
    /// Drops by the switch itself over the whole run, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Drops by the program over the whole run, by reason.
    pub program_drops: BTreeMap<String, u64>,
    /// Frames sent as best effort because no reservation covers them, over the whole run, by reason.
    pub demoted: BTreeMap<String, u64>,
    /// RSVs answered with "not now" over the whole run, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Depth of the fullest port over time: microseconds, maximum bytes in that interval.
    pub queue_series: Vec<(f64, u64)>,
}

/// Control frames: RSVs towards the switch, grants and their copies towards hosts.
#[derive(Clone, Debug, Serialize)]
pub struct ControlOutcome {
    /// Frames per second from all hosts.
    pub sent_per_s: f64,
    /// The same towards hosts.
    pub received_per_s: f64,
    /// Share of the hosts' links towards the switch that they use.
    pub sent_share: f64,
    /// The same towards hosts.
    pub received_share: f64,
}

/// Runs an experiment on one thread, with an optional recorder.
pub fn run(
    experiment: &Experiment,
    recorder: Option<Recorder>,
) -> Result<(Outcome, Option<Recorder>), SimError> {
    run_with_crew(experiment, recorder, &Alone)
}

/// The same with a crew, if the experiment allows it. Experiments with rounds and recorded ones
/// run on one thread.
pub fn run_with_crew(
    experiment: &Experiment,
    recorder: Option<Recorder>,
    crew: &dyn Crew,
) -> Result<(Outcome, Option<Recorder>), SimError> {
    run_with(experiment, recorder, crew, None)
}

pub(crate) fn run_with(
    experiment: &Experiment,
    recorder: Option<Recorder>,
    crew: &dyn Crew,
    planted: Option<Planted>,
) -> Result<(Outcome, Option<Recorder>), SimError> {
    let mut world = FrameWorld::new(experiment.clone(), crew, recorder, planted)?;
    world.run_until(world.plan.sources_end, crew);
    let measured = world.tor.model.stats(world.now);
    let drain = world.plan.sources_end + Nanos::from_micros(experiment.spec.drain_us);
    world.run_until(drain, crew);
    let checks = judge::judge(&mut world, crew);
    let recorder = world.recorder.take().map(|recorder| *recorder);
    let outcome = collect::outcome(&world, measured, checks);
    Ok((outcome, recorder))
}
