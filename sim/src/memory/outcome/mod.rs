//! Runs an experiment on a memory rack and collects its results.

mod load;
mod ran;
mod samples;

use super::experiment::MemoryExperiment;
use super::hostile::{but_attackers, others};
use super::measure::{Mean, TimesNs, grows};
use super::message::{Message, Operation, Shown};
use crate::hostile::OthersOutcome;
use crate::outcome::{Compared, compared, concerns};
use load::{Carried, offered_load, published_mops};
use ran::{isolated, published, simulate};
use samples::{Sample, p99, part};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Results of a run. They contain three measures, which must not be compared with each other.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct MemoryOutcome {
    /// Name of the experiment.
    pub name: String,
    /// Scheme.
    pub scheme: String,
    /// Seed.
    pub seed: u64,
    /// All messages of the run, including those that only keep it busy.
    pub messages: usize,
    /// Measured messages: those that the figures are of.
    pub measured: usize,
    /// Messages that were to be measured and were never completed.
    pub lost: usize,
    /// Messages refused because their node's queue was full.
    pub refused: u64,
    /// Packets dropped by full queues in the switch.
    pub dropped: u64,
    /// Packets that were sent again.
    pub again: u64,
    /// Maximum bytes of data that waited for one port of the switch.
    pub queue_max_bytes: u64,
    /// Offered payload as a share of all links' rate.
    pub offered_load: f64,
    /// Payload that was carried between the first and the last measured message's creation, as a share of all links' rate.
    /// `None`: no time is between them, or the result is older than the figure.
    #[serde(default)]
    pub carried_load: Option<f64>,
    /// Operations that ended in that time, in millions per second.
    #[serde(default)]
    pub mops: Option<f64>,
    /// The authors' figure for a key-value store (Figure 6), where some nodes ask and others have the memory: writes over the
    /// time that links from the former to the switch are busy, in millions per second. Answers to reads are left out.
    #[serde(default)]
    pub published_mops: Option<f64>,
    /// Whether latency grows during the run. Then the scheme does not carry this load, and the other figures depend on the
    /// length of the run.
    pub grows: bool,
    /// First measure, for traces: the published normalisation with its stop rule. It is of short ways: through a pipeline, the
    /// short traces end before their first message.
    pub published_slowdown: Option<f64>,
    /// The published figure, if there is one.
    pub golden: Option<f64>,
    /// Second measure: completion time divided by that of the message alone, mean.
    pub slowdown: Mean,
    /// Its 99th percentile.
    pub slowdown_p99: f64,
    /// Third measure: completion time, and by how much it exceeds that without load.
    pub latency_ns: TimesNs,
    /// See `latency_ns`.
    pub added_ns: TimesNs,
    /// Mean completion time of the messages when alone.
    pub alone_ns: f64,
    /// Reads and writes separately, if there are both.
    pub operations: BTreeMap<String, OperationOutcome>,
    /// Counters of the scheme.
    pub counters: BTreeMap<String, u64>,
    /// Results of the nodes that are not in `[[hostile]]`, if it names some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersOutcome>,
    /// The paper's figures beside these.
    #[serde(default)]
    pub paper: Vec<Compared>,
    /// Checks that failed.
    pub problems: Vec<String>,
}

/// Results of one kind of operation.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct OperationOutcome {
    /// Number of messages.
    pub measured: usize,
    /// Completion time divided by that of the message alone, mean.
    pub slowdown: Mean,
    /// Completion time.
    pub latency_ns: TimesNs,
    /// By how much it exceeds that without load.
    pub added_ns: TimesNs,
}

/// Runs an experiment. The same experiment gives the same outcome.
pub fn run_memory(experiment: &MemoryExperiment) -> MemoryOutcome {
    let spec = &experiment.spec;
    let (messages, range) = experiment.messages();
    let (mut messages, range) = but_attackers(spec, messages, range);
    let ran = simulate(experiment, &messages, spec.nodes, spec.workload.in_flight, false)
        .and_then(|shown| Ok((shown, isolated(experiment, &messages)?)));
    let (shown, mut isolated) = match ran {
        Ok(ran) => ran,
        Err(problem) => {
            let (name, scheme) = (spec.name.clone(), spec.scheme.name().to_owned());
            let problems = vec![problem];
            return MemoryOutcome { name, scheme, seed: spec.seed, problems, ..MemoryOutcome::default() };
        }
    };
    // In a closed loop, they have their times only now.
    for (message, times) in messages.iter_mut().zip(&shown.times) {
        message.at_ps = times.begun_ps.unwrap_or(message.at_ps);
    }
    let mut alone = |message: &Message| {
        let measure = |one: &[Message]| {
            simulate(experiment, one, 2, None, true).ok()?.times.first()?.completion_ps(&one[0])
        };
        isolated.of(message, measure)
    };
    let mut samples = Vec::with_capacity(range.len());
    let others = others(spec, &messages, &shown, range.clone());
    let carried = Carried::of(&messages, &shown, range.clone());
    let (mut lost, mut problems) = (0, Vec::new());
    for (message, times) in messages[range.clone()].iter().zip(&shown.times[range]) {
        match (times.completion_ps(message), alone(message)) {
            (Some(took_ps), Some(alone_ps)) => samples.push(Sample { message: *message, took_ps, alone_ps }),
            (None, _) => lost += 1,
            (_, None) => {
                problems.push(format!("a message of {} bytes has no time when alone", message.bytes))
            }
        }
    }
    problems.dedup();
    let is_published = experiment.is_trace() && !experiment.is_pipeline();
    let published_slowdown = match is_published.then(|| published(experiment, &messages, &shown)) {
        Some(Err(problem)) => {
            problems.push(problem);
            None
        }
        figure => figure.and_then(Result::ok),
    };
    let whole = part(&samples.iter().collect::<Vec<_>>());
    let slowdowns: Vec<f64> = samples.iter().map(Sample::slowdown).collect();
    let mut outcome = MemoryOutcome {
        name: spec.name.clone(),
        scheme: spec.scheme.name().to_owned(),
        seed: spec.seed,
        messages: messages.len(),
        measured: samples.len(),
        lost,
        refused: shown.refused,
        dropped: shown.dropped,
        again: shown.again,
        queue_max_bytes: shown.queue_max_bytes,
        offered_load: offered_load(&messages, spec.nodes, experiment.rate_bps),
        carried_load: carried.as_ref().map(|carried| carried.load(spec.nodes, experiment.rate_bps)),
        mops: carried.as_ref().map(Carried::mops),
        published_mops: spec
            .workload
            .compute_nodes
            .and_then(|asking| published_mops(&messages, &shown, asking)),
        grows: !experiment.is_trace() && grows(&slowdowns),
        published_slowdown,
        golden: spec.golden.get(spec.scheme.published_name()).copied(),
        slowdown: whole.slowdown,
        slowdown_p99: p99(slowdowns),
        alone_ns: samples.iter().map(|sample| sample.alone_ps as f64 / 1e3).sum::<f64>()
            / samples.len().max(1) as f64,
        latency_ns: whole.latency_ns,
        added_ns: whole.added_ns,
        operations: BTreeMap::new(),
        counters: shown.counters.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        others,
        paper: Vec::new(),
        problems,
    };
    for (operation, name) in [(Operation::Read, "read"), (Operation::Write, "write")] {
        let of: Vec<&Sample> =
            samples.iter().filter(|sample| sample.message.operation == operation).collect();
        if !of.is_empty() && of.len() < samples.len() {
            outcome.operations.insert(name.to_owned(), part(&of));
        }
    }
    let more = self::problems(&outcome, &shown);
    outcome.problems.extend(more);
    let settings = serde_json::to_value(spec).unwrap_or_default();
    let papers = spec.paper.iter().filter(|paper| concerns(paper, spec.scheme.name(), &settings));
    outcome.paper = compared(&outcome, papers);
    outcome
}

fn problems(outcome: &MemoryOutcome, shown: &Shown) -> Vec<String> {
    let mut problems = Vec::new();
    let mut check = |bad: bool, what: String| problems.extend(bad.then_some(what));
    check(shown.strays > 0, format!("{} chunks or demands that no honest host sends", shown.strays));
    let missing = shown.times.iter().filter(|times| times.done_ps.is_none()).count() as u64;
    check(missing > shown.refused, format!("{missing} messages are missing, {} were refused", shown.refused));
    let (lost, measured) = (outcome.lost, outcome.measured);
    check(lost > 0, format!("{lost} messages were not carried: the figures are of the other {measured}"));
    check(measured == 0, "nothing was measured".into());
    // Slots and blocks round by less than that.
    check(measured > 0 && outcome.slowdown.mean < 0.99, "messages take less time than alone".into());
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::message::Times;

    /// Plants one fault for each check: the run reports that fault alone.
    #[test]
    fn each_fault_of_a_run_is_told_alone() {
        let mean = |mean| Mean { mean, within: None };
        let sound = MemoryOutcome { measured: 1, slowdown: mean(0.99), ..MemoryOutcome::default() };
        let missing = |refused| Shown { times: vec![Times::default(); 2], refused, ..Shown::default() };
        for (outcome, shown, told) in [
            (sound.clone(), Shown::default(), None),
            (sound.clone(), missing(2), None),
            (sound.clone(), missing(1), Some("2 messages are missing, 1 were refused")),
            (sound.clone(), Shown { strays: 1, ..Shown::default() }, Some("1 chunks or demands")),
            (
                MemoryOutcome { lost: 1, ..sound.clone() },
                Shown::default(),
                Some("1 messages were not carried"),
            ),
            (MemoryOutcome { measured: 0, ..sound.clone() }, Shown::default(), Some("nothing was measured")),
            (MemoryOutcome { slowdown: mean(0.98), ..sound }, Shown::default(), Some("less time than alone")),
        ] {
            let problems = problems(&outcome, &shown);
            assert_eq!(problems.len(), usize::from(told.is_some()), "{told:?}: {problems:?}");
            assert!(told.is_none_or(|told| problems[0].contains(told)), "{told:?}: {problems:?}");
        }
    }
}
