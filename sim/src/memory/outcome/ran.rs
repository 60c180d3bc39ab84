//! Runs messages through the simulator of their scheme.

use crate::memory::exact::Exact;
use crate::memory::experiment::{Isolated, MemoryExperiment, kind_of};
use crate::memory::message::{Message, Operation, Shown};
use crate::memory::packets::Run;
use crate::memory::pipeline::Pipeline;
use crate::memory::published::{Published, slowdown_of};
use crate::memory::spec::MemoryScheme;
use std::collections::BTreeSet;

/// Time between messages that are alone, beside a hundred times their own.
const ALONE_PS: u64 = 1_000_000_000;

/// Runs messages between this many nodes, with `in_flight` as a closed loop. Messages that are alone are measured on links with
/// their least delay and without faults.
pub(super) fn simulate(
    experiment: &MemoryExperiment,
    messages: &[Message],
    nodes: u16,
    in_flight: Option<u32>,
    is_alone: bool,
) -> Result<Shown, String> {
    if let Some(packets) = experiment.packets(nodes) {
        return Ok(Run::new(&packets, messages, in_flight).run());
    }
    if let Some(params) = experiment.pipeline(nodes, is_alone) {
        return Ok(Pipeline::new(&params, messages, in_flight)?.run());
    }
    match experiment.spec.scheme {
        MemoryScheme::EdmPublished => Ok(Published::new(nodes.into(), messages).run()),
        _ => Ok(Exact::new(&experiment.params(nodes), messages, in_flight)?.run()),
    }
}

/// Times of messages alone, where one run after another would take too long: each would generate and translate a program.
pub(super) fn isolated(experiment: &MemoryExperiment, messages: &[Message]) -> Result<Isolated, String> {
    if experiment.pipeline(2, true).is_none() {
        return Ok(Isolated::default());
    }
    let kinds: BTreeSet<_> = messages.iter().map(kind_of).collect();
    let mut at_ps = 0;
    let apart = |(operation, bytes, is_local): (Operation, u32, bool)| {
        let message = Message { at_ps, operation, compute: 0, memory: u16::from(!is_local), bytes };
        at_ps += ALONE_PS + 100 * 8_000_000_000_000 / experiment.rate_bps * u64::from(bytes);
        message
    };
    let one: Vec<Message> = kinds.into_iter().map(apart).collect();
    let shown = simulate(experiment, &one, 2, None, true)?;
    Ok(one
        .iter()
        .zip(&shown.times)
        .map(|(message, times)| (*message, times.completion_ps(message)))
        .collect())
}

/// The authors' normalisation. Errors: it does not apply to the messages.
pub(super) fn published(
    experiment: &MemoryExperiment,
    messages: &[Message],
    shown: &Shown,
) -> Result<f64, String> {
    match experiment.spec.scheme {
        MemoryScheme::EdmPublished => Published::new(experiment.spec.nodes.into(), messages).slowdown(),
        _ => slowdown_of(messages, &shown.times),
    }
}
