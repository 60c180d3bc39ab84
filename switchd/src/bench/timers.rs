//! Measures how late a sleeping thread is woken, which bounds the slots that this machine can keep.

use p4rack_netdev::sched::{self, Granted};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::{Histogram, Nanos};
use serde::Serialize;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Results of one measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Lateness {
    /// Scheduling granted to the sleeping thread; `None` if it did not ask.
    pub scheduling: Option<Granted>,
    /// Number of ordinary threads spinning at the same time.
    pub spinning_threads: usize,
    /// Number of sleeps.
    pub samples: usize,
    /// Median lateness.
    pub p50_ns: u64,
    /// 99th percentile of the lateness.
    pub p99_ns: u64,
    /// 99.9th percentile of the lateness.
    pub p999_ns: u64,
    /// Maximum lateness.
    pub max_ns: u64,
}

/// Sleeps for `interval` repeatedly over `span`, with and without real-time priority, on a quiet machine and
/// beside two spinning threads per processor.
pub fn run(interval: Nanos, span: Nanos) -> io::Result<Vec<Lateness>> {
    let spinners = std::thread::available_parallelism().map_or(2, |n| n.get() * 2);
    let mut results = Vec::new();
    for spinning_threads in [0, spinners] {
        for prompt in [false, true] {
            results.push(measure(interval, span, prompt, spinning_threads)?);
        }
    }
    Ok(results)
}

fn measure(interval: Nanos, span: Nanos, prompt: bool, spinning_threads: usize) -> io::Result<Lateness> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..spinning_threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        // On its own thread, so that the caller does not keep the priority.
        let sleeper = scope.spawn(|| {
            let scheduling = prompt.then(|| sched::prompt(sched::SWITCH_PRIORITY));
            sleeps(interval, span).map(|late| (scheduling, late))
        });
        let measured = sleeper.join();
        stop.store(true, Ordering::Relaxed);
        let (scheduling, late) = measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(Lateness {
            scheduling,
            spinning_threads,
            samples: late.len() as usize,
            p50_ns: late.at(0.5),
            p99_ns: late.at(0.99),
            p999_ns: late.at(0.999),
            max_ns: late.max(),
        })
    })
}

/// Lateness of each wake-up.
fn sleeps(interval: Nanos, span: Nanos) -> io::Result<Histogram> {
    let mut poller = Poller::new();
    let mut late = Histogram::new();
    let end = clock::now() + span;
    loop {
        let until = clock::now() + interval;
        if until > end {
            break;
        }
        poller.wait(Some(until))?;
        late.record(clock::now().saturating_sub(until).0);
    }
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_cases_are_measured_in_order() {
        let results = run(Nanos::from_micros(100), Nanos::from_millis(20)).unwrap();
        assert_eq!(results.len(), 4);
        for r in results {
            assert!(r.samples > 0 && r.p50_ns <= r.p99_ns && r.p99_ns <= r.p999_ns && r.p999_ns <= r.max_ns);
        }
    }
}
