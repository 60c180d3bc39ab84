//! Threads of the caller: the simulator itself starts none.

/// Workers that share the work on one run. The results depend neither on their number nor on the division of the
/// work.
pub trait Crew: Sync {
    /// Number of workers, at least one.
    fn size(&self) -> usize;

    /// Calls `part` with each number below [`size`](Crew::size), all at the same time; returns when all calls have.
    fn work(&self, part: &(dyn Fn(usize) + Sync));

    /// Each worker calls this from its part, as often as the others; it returns when all have called it. Earlier
    /// writes of each are visible to all afterwards.
    fn meet(&self);

    /// Returns once `is_done`, which another worker's part brings about.
    fn wait(&self, is_done: &dyn Fn() -> bool);
}

/// The calling thread alone.
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

    fn wait(&self, _is_done: &dyn Fn() -> bool) {}
}
