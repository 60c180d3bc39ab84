//! Mistakes planted in a mapping with real threads, pages and faults: reads show each of them, and nothing without one.

use super::plant::Plant;
use super::{Faults, Mapping, MappingConfig};
use crate::region::{RegionConfig, RemoteRegion};
use crate::remote::Local;
use p4rack_netdev::clock;
use p4rack_wire::{Nanos, SplitMix};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

const BYTES: u64 = 1 << 20;
const THREADS: u64 = 4;
/// Words of a thread: every [`THREADS`]th one, so that threads share all pages.
const WORDS: u64 = BYTES / 8 / THREADS;

/// State that threads share.
struct Run {
    mapping: Mapping,
    /// The first read that was wrong.
    wrong: OnceLock<String>,
    is_over: AtomicBool,
}

impl Run {
    fn word(&self, number: u64) -> &AtomicU64 {
        assert!(number < BYTES / 8);
        // SAFETY: in bounds and aligned; the mapping lives as long as this value, and threads use words atomically.
        unsafe { AtomicU64::from_ptr(self.mapping.start().cast::<u64>().add(number as usize).as_ptr()) }
    }

    /// A thread: random accesses, few of which write, so that a page has few changes while it is dirty.
    fn thread(&self, thread: u64, steps: u64) {
        let mut random = SplitMix(thread);
        let mut written = vec![0u64; WORDS as usize];
        for step in 0..steps {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let own = random.between(0, WORDS - 1);
            let (word, last) = (self.word(own * THREADS + thread), &mut written[own as usize]);
            if random.next().is_multiple_of(4) {
                *last = step + 1;
                word.store(*last, Ordering::Relaxed);
                continue;
            }
            let seen = word.load(Ordering::Relaxed);
            if seen != *last {
                let _ = self.wrong.set(format!("thread {thread}, step {step}: {seen}, not {last}"));
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Four threads and flushes, with a mistake, until a read is wrong or the steps are over. Returns that read.
fn run(plant: Option<Plant>, steps: u64) -> Option<String> {
    let region = RemoteRegion::new(Box::new(Local::new(BYTES)), &RegionConfig::new(256 << 10)).unwrap();
    let config = MappingConfig { faults: Faults::InThread, ..MappingConfig::new(400 << 10) };
    let mapping = Mapping::new(Arc::new(region), &config).unwrap();
    mapping.inner.lock().pages.plant = plant;
    mapping.inner.pauses.store(plant.is_some(), Ordering::Relaxed);
    let run = Run { mapping, wrong: OnceLock::new(), is_over: AtomicBool::new(false) };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let run = &run;
                scope.spawn(move || run.thread(thread, steps))
            })
            .collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            run.mapping.flush().unwrap();
        }
    });
    run.wrong.into_inner()
}

#[test]
fn threads_see_no_mistake_where_none_is_planted() {
    assert_eq!(run(None, 50_000), None);
}

#[test]
fn threads_see_planted_mistakes() {
    for plant in [Plant::TwinTooLate, Plant::ShelvedWritable, Plant::WriteDuringWriteBackLost] {
        let until = clock::now() + Nanos::from_secs(300);
        let is_seen = std::iter::repeat_with(|| run(Some(plant), 20_000))
            .find_map(|wrong| (wrong.is_some() || clock::now() > until).then(|| wrong.is_some()));
        assert_eq!(is_seen, Some(true), "{plant:?} was not seen");
    }
}
