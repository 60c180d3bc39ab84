//! Threads that somebody else has: the simulator itself starts none.

/// Workers that share the work on one run. The results don't depend on how many there are, nor on which does what.
pub trait Crew: Sync {
    /// How many they are, at least one.
    fn size(&self) -> usize;

    /// Calls `part` with each number below [`size`](Crew::size), all at the same time, and returns once all have returned.
    fn work(&self, part: &(dyn Fn(usize) + Sync));

    /// Each worker calls this from within its part, as often as all others: returns once all have called it. What they
    /// wrote before is seen by all afterwards.
    fn meet(&self);
}

/// Whoever calls, alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Crew for Alone {
    fn size(&self) -> usize {
        1
    }

    fn work(&self, part: &(dyn Fn(usize) + Sync)) {
        part(0);
    }

    fn meet(&self) {}
}
