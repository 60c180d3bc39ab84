//! The load that was offered and that was carried.

use crate::memory::message::{Message, Operation, Shown, Times};

/// Payload as a share of all links' rate.
pub(super) fn offered_load(messages: &[Message], nodes: u16, rate_bps: u64) -> f64 {
    let bits = messages.iter().map(|message| f64::from(message.bytes) * 8.0).sum::<f64>();
    let span_s = messages.last().map_or(0, |last| last.at_ps) as f64 / 1e12;
    if span_s == 0.0 { 0.0 } else { bits / span_s / f64::from(nodes) / rate_bps as f64 }
}

/// Messages of any kind that ended while the measured ones began.
pub(super) struct Carried {
    operations: u64,
    bytes: u64,
    span_s: f64,
}

impl Carried {
    /// `None`: no time is between the first and the last one.
    pub fn of(messages: &[Message], shown: &Shown, measured: std::ops::Range<usize>) -> Option<Carried> {
        let begun = messages.get(measured)?.iter().map(|message| message.at_ps);
        let (first_ps, last_ps) = (begun.clone().min()?, begun.max()?);
        let is_then =
            |times: &&Times| times.done_ps.is_some_and(|at_ps| (first_ps..last_ps).contains(&at_ps));
        let done = messages.iter().zip(&shown.times).filter(|(_, times)| is_then(times));
        let (operations, bytes) =
            done.fold((0, 0), |(count, bytes), (one, _)| (count + 1, bytes + u64::from(one.bytes)));
        (last_ps > first_ps).then(|| Carried {
            operations,
            bytes,
            span_s: (last_ps - first_ps) as f64 / 1e12,
        })
    }

    /// Payload as a share of all links' rate.
    pub fn load(&self, nodes: u16, rate_bps: u64) -> f64 {
        self.bytes as f64 * 8.0 / self.span_s / f64::from(nodes) / rate_bps as f64
    }

    /// Operations in millions per second.
    pub fn mops(&self) -> f64 {
        self.operations as f64 / self.span_s / 1e6
    }
}

/// See [`MemoryOutcome::published_mops`](super::MemoryOutcome::published_mops); the first `asking` nodes ask. `None`: they sent nothing.
pub(super) fn published_mops(messages: &[Message], shown: &Shown, asking: u16) -> Option<f64> {
    let busy_ps: u64 = shown.sent_ps.iter().take(asking.into()).sum();
    let is_write = |(message, times): &(&Message, &Times)| {
        message.operation == Operation::Write && !message.is_local() && times.done_ps.is_some()
    };
    let writes = messages.iter().zip(&shown.times).filter(is_write).count();
    (busy_ps > 0).then(|| writes as f64 * 1e6 / busy_ps as f64 * f64::from(asking))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryOutcome;

    #[test]
    fn a_load_that_was_not_measured_is_missing() {
        let message =
            |at_ps| Message { at_ps, operation: Operation::Write, compute: 0, memory: 1, bytes: 100 };
        let carried = |messages: &[Message]| {
            let carried = Carried::of(messages, &Shown::default(), 0..messages.len())?;
            Some((carried.load(2, 1_000_000), carried.mops()))
        };
        assert_eq!((carried(&[]), carried(&[message(7)])), (None, None));
        assert_eq!(carried(&[message(7), message(8)]), Some((0.0, 0.0)));
        // Results from before there was the figure.
        let mut older = serde_json::to_value(MemoryOutcome::default()).unwrap();
        older.as_object_mut().unwrap().remove("carried_load");
        assert_eq!(serde_json::from_value::<MemoryOutcome>(older).unwrap().carried_load, None);
    }
}
