//! The authors' figure: the divisor of each flow's time, and which flows count.

use super::{CHUNK_BYTES, HOP_SLOTS, REQUEST_BYTES, SLOT_PS};
use crate::memory::message::{Message, Operation, Times};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Response,
    Write,
}

/// The time by which the authors divide that of a flow, in slots, for a message of `bytes`.
pub(super) fn expected_slots(kind: Kind, bytes: u64) -> u64 {
    let (hop, long) = (HOP_SLOTS, bytes > CHUNK_BYTES as u64);
    let request = REQUEST_BYTES as u64 / 8 + 4 * hop + if long { bytes / 8 + 4 * hop } else { 0 };
    match kind {
        Kind::Request => request,
        Kind::Write => bytes / 8 + 4 * hop + bytes.min(1_024) / 8 + if long { 4 * hop } else { 0 },
        Kind::Response if long => 2 * hop + (bytes / 256 + 1) * 32 + request,
        Kind::Response => bytes / 8 + 2 * hop,
    }
}

/// A flow: kind, bytes, times of creation, start and end.
type FlowTimes = (Kind, u64, u64, Option<u64>, Option<u64>);

/// The mean of this many ratios.
pub(super) fn mean(sum: f64, count: u32) -> Result<f64, String> {
    match count {
        0 => Err("published normalisation: no flow is finished when the last one starts".to_owned()),
        _ => Ok(sum / f64::from(count)),
    }
}

/// The authors' figure for a run of another scheme, with their stop rule and normalisation. An error if no flow has ended
/// by then.
pub fn slowdown_of(messages: &[Message], times: &[Times]) -> Result<f64, String> {
    let mut flows: Vec<FlowTimes> = Vec::new();
    for (message, times) in messages.iter().zip(times) {
        let bytes = u64::from(message.bytes);
        match message.operation {
            Operation::Write => flows.push((Kind::Write, bytes, message.at_ps, times.sent_ps, times.done_ps)),
            Operation::Read => {
                flows.push((Kind::Request, bytes, message.at_ps, times.asked_ps, times.reached_ps));
                if let Some(reached_ps) = times.reached_ps {
                    flows.push((Kind::Response, bytes, reached_ps, times.sent_ps, times.done_ps));
                }
            }
        }
    }
    let stop_ps = stop_ps(&flows);
    let (mut sum, mut count) = (0.0, 0u32);
    for (kind, bytes, created_ps, _, done_ps) in flows {
        if let Some(done_ps) = done_ps.filter(|done_ps| *done_ps <= stop_ps) {
            let expected_ps = expected_slots(kind, bytes) * SLOT_PS;
            sum += ((done_ps - created_ps) as f64 / expected_ps as f64).max(1.0);
            count += 1;
        }
    }
    mean(sum, count)
}

/// The time at which all existing flows have started. An answer exists from the time of its request, all others from the
/// beginning.
fn stop_ps(flows: &[FlowTimes]) -> u64 {
    let started = |first: bool| {
        let of = flows.iter().filter(move |flow| (flow.0 != Kind::Response) == first);
        of.map(|flow| (flow.2, flow.3.unwrap_or(u64::MAX)))
    };
    let mut stop_ps = started(true).map(|(_, started_ps)| started_ps).max().unwrap_or(0);
    // Answers that exist by then but have not started delay it, and so do those created in the meantime.
    let mut answers: Vec<(u64, u64)> = started(false).collect();
    answers.sort_unstable();
    for (created_ps, started_ps) in answers {
        if created_ps > stop_ps {
            break;
        }
        stop_ps = stop_ps.max(started_ps);
    }
    stop_ps
}
