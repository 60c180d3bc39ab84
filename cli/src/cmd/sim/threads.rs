//! Threads that run one simulation together.

use p4rack_sim::{Alone, Crew, Experiment, Outcome, Recorder, run_with_crew};
use std::any::Any;
use std::hint;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Most threads of one run.
pub const THREADS_MAX: u64 = 64;
/// A thread checks this often whether the others have arrived, for about 50 µs, before it yields its
/// processor.
const SPINS: u32 = 2_000;

/// Threads that meet some million times a second: the first to arrive spins.
struct Threads {
    size: usize,
    /// Those that wait, and how often all have met.
    waiting: AtomicUsize,
    met: AtomicUsize,
    /// One of them has panicked, and will not come.
    broken: AtomicBool,
}

/// Marks the crew as broken if its thread panics, so that the others stop waiting.
struct Present<'t>(&'t Threads);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

impl Threads {
    fn new(size: usize) -> Threads {
        Threads { size, waiting: 0.into(), met: 0.into(), broken: false.into() }
    }

    fn give_up(&self, why: Box<dyn Any + Send>) -> ! {
        self.broken.store(true, Ordering::Relaxed);
        resume_unwind(why)
    }
}

impl Crew for Threads {
    fn size(&self) -> usize {
        self.size
    }

    fn work(&self, part: &(dyn Fn(usize) + Sync)) {
        let work = |worker: usize| {
            let _present = Present(self);
            part(worker);
        };
        thread::scope(|scope| {
            for worker in 1..self.size {
                let name = format!("sim {worker}");
                if let Err(error) =
                    thread::Builder::new().name(name).spawn_scoped(scope, move || work(worker))
                {
                    eprintln!("error: can't start a thread: {error}; give fewer with --threads");
                    self.give_up(Box::new("no thread"));
                }
            }
            work(0);
        });
    }

    fn meet(&self) {
        let met = self.met.load(Ordering::Relaxed);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.size {
            self.waiting.store(0, Ordering::Relaxed);
            self.met.store(met + 1, Ordering::Release);
            return;
        }
        self.wait(&|| self.met.load(Ordering::Acquire) != met);
    }

    fn wait(&self, is_done: &dyn Fn() -> bool) {
        let mut spins = 0;
        while !is_done() {
            if self.broken.load(Ordering::Relaxed) {
                self.give_up(Box::new("another thread panicked"));
            }
            spins += 1;
            if spins < SPINS {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
    }
}

/// Calls `run` with this many threads.
pub fn with<R>(threads: u64, run: impl FnOnce(&dyn Crew) -> R) -> R {
    match threads {
        0 | 1 => run(&Alone),
        _ => run(&Threads::new(threads as usize)),
    }
}

/// Runs an experiment on this many threads.
pub fn run(
    experiment: &Experiment,
    recorder: Option<Recorder>,
    threads: u64,
) -> Result<(Outcome, Option<Recorder>), String> {
    with(threads, |crew| run_with_crew(experiment, recorder, crew)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_meet_each_time() {
        let (threads, rounds) = (Threads::new(3), 1_000);
        let counts: Vec<AtomicUsize> = (0..rounds).map(|_| AtomicUsize::new(0)).collect();
        threads.work(&|_| {
            for count in &counts {
                count.fetch_add(1, Ordering::Relaxed);
                threads.meet();
                assert_eq!(count.load(Ordering::Relaxed), 3);
            }
        });
    }

    #[test]
    fn nobody_waits_for_one_that_panicked() {
        let threads = Threads::new(2);
        let done = std::panic::catch_unwind(|| {
            threads.work(&|worker| match worker {
                0 => threads.meet(),
                _ => resume_unwind(Box::new("planted")),
            });
        });
        assert!(done.is_err());
    }
}
