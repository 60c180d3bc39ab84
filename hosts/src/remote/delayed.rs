//! A way that delivers ends late: for tests, and as the smallest example of a wrapper.

use super::{
    Abilities, Attachment, Held, Local, Opened, Operation, Outcome, Remote, RemoteError, Shape, Status,
};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::collections::VecDeque;

/// Delay of ends in the way of [`open`].
const DELAY: Nanos = Nanos::from_micros(20);

/// A delayed end.
#[derive(Debug)]
enum Late {
    Read(Vec<u8>),
    Written,
    Word(u64),
    Failed(Status),
}

/// A [`Remote`] around another. Operations take effect on time and end later.
#[derive(Debug)]
pub struct Delayed<R> {
    inner: R,
    delay: Nanos,
    late: VecDeque<(Nanos, u64, Late)>,
}

impl<R: Remote> Delayed<R> {
    /// Wraps a way.
    pub fn new(inner: R, delay: Nanos) -> Delayed<R> {
        Delayed { inner, delay, late: VecDeque::new() }
    }
}

impl<R: Remote> Remote for Delayed<R> {
    fn abilities(&self) -> &Abilities {
        self.inner.abilities()
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.inner.submit(tag, operation)
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        let due = clock::now() + self.delay;
        let late = &mut self.late;
        // Do not wait while an end is due.
        let wait = late.front().map_or(until, |(at, ..)| until.min(*at));
        self.inner.poll(wait, &mut |tag, outcome| {
            let end = match outcome {
                Outcome::Read(bytes) => Late::Read(bytes.to_vec()),
                Outcome::Written => Late::Written,
                Outcome::Word(word) => Late::Word(word),
                Outcome::Failed(status) => Late::Failed(status),
            };
            late.push_back((due, tag, end));
        })?;
        while let Some((at, tag, end)) = self.late.front()
            && *at <= clock::now()
        {
            let outcome = match end {
                Late::Read(bytes) => Outcome::Read(bytes),
                Late::Written => Outcome::Written,
                Late::Word(word) => Outcome::Word(*word),
                Late::Failed(status) => Outcome::Failed(*status),
            };
            ended(*tag, outcome);
            self.late.pop_front();
        }
        Ok(())
    }

    fn losses(&self) -> u64 {
        self.inner.losses()
    }
}

/// Opens fresh memory of this process with delayed ends.
pub(super) fn open(_attachment: Attachment, shape: Shape) -> Result<Opened, RemoteError> {
    Ok((Box::new(Delayed::new(Local::new(shape.region_bytes), DELAY)), Held(None)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_comes_late_and_unchanged() {
        let mut delayed = Delayed::new(Local::new(64), Nanos::from_millis(2));
        let start = clock::now();
        delayed.submit(4, Operation::Write { at: 8, bytes: &[7; 4] }).unwrap();
        delayed.submit(5, Operation::Read { at: 6, bytes: 4 }).unwrap();
        let mut ends = Vec::new();
        while ends.len() < 2 {
            let until = clock::now() + Nanos::from_millis(50);
            delayed.poll(until, &mut |tag, outcome| ends.push((tag, format!("{outcome:?}")))).unwrap();
        }
        assert!(clock::now() >= start + Nanos::from_millis(2));
        assert_eq!(ends, [(4, "Written".to_owned()), (5, "Read([0, 0, 7, 7])".to_owned())]);
    }
}
