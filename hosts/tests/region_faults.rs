//! Cached regions over a way with faults: operations that are refused, fail or never end, memory that starts again, a way that panics.

#![allow(clippy::unwrap_used)]

use p4rack_hosts::region::{RegionConfig, RegionError, RemoteRegion};
use p4rack_hosts::remote::{
    Abilities, Delayed, Local, Operation, Outcome, Pieces, Remote, RemoteError, Status, Written,
};
use p4rack_wire::{Nanos, SplitMix};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const REGION_BYTES: u64 = 1 << 20;

fn config(policy: &str) -> RegionConfig {
    RegionConfig { policy: policy.to_owned(), ..RegionConfig::new(128 << 10) }
}

/// Local memory behind a way with faults, in a time of its own.
struct Faulty {
    local: Local,
    abilities: Abilities,
    random: SplitMix,
    ends: VecDeque<(u64, Result<Vec<u8>, Status>)>,
    /// Operations so far.
    count: u64,
    now: Nanos,
    fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Refuses some operations, on submission or later.
    Busy,
    /// Refuses some operations on submission, but not the first of three: a block has three. Refuses all of these
    /// permanently.
    InPart(Status),
    /// Refuses all operations later.
    AlwaysBusy,
    /// Never answers a read.
    Silent,
    /// Writes end like this, one after the other.
    Writes([Status; 3]),
}

impl Remote for Faulty {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        if self.ends.len() >= self.abilities.under_way_max {
            return Err(Status::Full);
        }
        let chance = self.random.next() % 8;
        self.count += 1;
        match (self.fault, operation) {
            (Fault::Busy, _) if chance == 0 => return Err(Status::Busy),
            (Fault::InPart(status), _) if self.count % 3 != 1 && (chance < 4 || !status.is_passing()) => {
                return Err(status);
            }
            (Fault::Busy, _) if chance == 1 => self.ends.push_back((tag, Err(Status::Busy))),
            (Fault::AlwaysBusy, _) => self.ends.push_back((tag, Err(Status::Busy))),
            (Fault::Busy, Operation::Read { .. }) if chance == 2 => {
                self.ends.push_back((tag, Err(Status::Unknown)));
            }
            (Fault::Silent, Operation::Read { .. }) => {}
            (Fault::Writes(statuses), Operation::Write { .. }) => {
                let status = statuses[(self.count % 3) as usize];
                self.ends.push_back((tag, Err(status)));
            }
            _ => {
                self.local.submit(tag, operation)?;
                let ends = &mut self.ends;
                self.local
                    .poll(Nanos::ZERO, &mut |tag, outcome| {
                        let bytes =
                            if let Outcome::Read(bytes) = outcome { bytes.to_vec() } else { Vec::new() };
                        ends.push_back((tag, Ok(bytes)));
                    })
                    .map_err(|_| Status::Gone)?;
            }
        }
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.now = self.now.max(until) + Nanos::from_micros(1);
        // Some ends, in any order.
        for _ in 0..self.random.between(0, 3).min(self.ends.len() as u64) {
            let at = self.random.between(0, self.ends.len() as u64 - 1) as usize;
            match self.ends.remove(at) {
                Some((tag, Ok(bytes))) if bytes.is_empty() => ended(tag, Outcome::Written),
                Some((tag, Ok(bytes))) => ended(tag, Outcome::Read(&bytes)),
                Some((tag, Err(status))) => ended(tag, Outcome::Failed(status)),
                None => {}
            }
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.now
    }
}

fn faulty(fault: Fault, seed: u64, longest: u32, region_bytes: u64) -> Box<dyn Remote> {
    let local = Local::new(region_bytes);
    let abilities = Abilities {
        read_bytes_max: longest,
        write_bytes_max: longest,
        under_way_max: 9,
        pieces_max: 0,
        ..local.abilities().clone()
    };
    let (random, ends) = (SplitMix(seed), VecDeque::new());
    Box::new(Faulty { local, abilities, random, ends, count: 0, now: Nanos(1), fault })
}

/// Operations shorter than blocks, in any order, some refused, on submission in the middle of a block too; a region that ends within a
/// block.
#[test]
fn a_busy_memory_with_short_operations_is_asked_again() {
    for seed in 0..16 {
        let region_bytes = (64 << 10) + 40;
        let fault =
            [Fault::Busy, Fault::InPart(Status::Busy), Fault::InPart(Status::Full)][seed as usize % 3];
        let remote = faulty(fault, seed, 200, region_bytes);
        let policy = ["runs", "kona", "lru", "arc"][seed as usize % 4].to_owned();
        let config = RegionConfig { policy, block_bytes: Some(512), ..RegionConfig::new(24 << 10) };
        let region = RemoteRegion::new(remote, &config).unwrap();
        let mut plain = vec![0u8; region_bytes as usize];
        let mut random = SplitMix(seed);
        for step in 0..4_000u32 {
            let at = random.between(0, region_bytes - 1) as usize;
            let len = random.between(0, 700).min(region_bytes - at as u64) as usize;
            if random.next().is_multiple_of(3) {
                plain[at..at + len].fill(step as u8);
                region.write(at as u64, &vec![step as u8; len]).unwrap();
            } else {
                let mut bytes = vec![0xff; len];
                region.read(at as u64, &mut bytes).unwrap();
                assert!(bytes == plain[at..at + len], "{fault:?}, seed {seed}, step {step}");
            }
        }
        region.flush().unwrap();
        assert!(region.statistics().local_bytes <= 24 << 10);
        let mut all = vec![0; plain.len()];
        region.read(0, &mut all).unwrap();
        assert!(all == plain, "{fault:?}, seed {seed}");
    }
}

/// Memory that counts the bytes that it is read, and says that it is busy to some reads.
struct Counted {
    local: Local,
    read_bytes: Arc<AtomicU64>,
    busy: Arc<AtomicU64>,
}

impl Remote for Counted {
    fn abilities(&self) -> &Abilities {
        self.local.abilities()
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        if let Operation::Read { bytes, .. } = operation {
            if self.busy.load(Ordering::Relaxed) > 0 {
                self.busy.fetch_sub(1, Ordering::Relaxed);
                return Err(Status::Busy);
            }
            self.read_bytes.fetch_add(bytes.into(), Ordering::Relaxed);
        }
        self.local.submit(tag, operation)
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.local.poll(until, ended)
    }
}

/// Fetches of blocks of which every second one is zeros: what is fetched is what was read, however often the memory was busy.
#[test]
fn zeros_of_a_fetch_that_comes_again_count_once() {
    const BLOCK: u64 = 512;
    let (read_bytes, busy) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let local = Local::new(REGION_BYTES);
    let remote = Counted { local, read_bytes: Arc::clone(&read_bytes), busy: Arc::clone(&busy) };
    // This policy fetches several blocks together.
    let config = RegionConfig { starts_zeroed: true, block_bytes: Some(BLOCK as u32), ..config("runs") };
    let region = RemoteRegion::new(Box::new(remote), &config).unwrap();
    for at in (BLOCK..REGION_BYTES).step_by(2 * BLOCK as usize) {
        region.write(at, &[7; BLOCK as usize]).unwrap();
    }
    region.flush().unwrap();
    let (mut found, mut refused) = (vec![1; 16 * BLOCK as usize], 0);
    for at in (0..2 * REGION_BYTES).step_by(found.len()) {
        // What was asked for ahead arrives, too, before the memory is busy again.
        let began = Instant::now();
        while region.statistics().fetched_bytes() != read_bytes.load(Ordering::Relaxed) {
            assert!(began.elapsed() < Duration::from_secs(20), "{read_bytes:?}, {:?}", region.statistics());
            std::thread::yield_now();
        }
        busy.store(5, Ordering::Relaxed);
        region.read(at % REGION_BYTES, &mut found).unwrap();
        refused += 5 - busy.swap(0, Ordering::Relaxed);
        for (nth, block) in found.chunks(BLOCK as usize).enumerate() {
            let expected = if nth % 2 == 1 { 7 } else { 0 };
            assert!(block.iter().all(|byte| *byte == expected), "at {at}, block {nth}");
        }
    }
    assert!(refused > 100 && region.statistics().zeroed > 100, "{refused}, {:?}", region.statistics());
}

#[test]
fn a_block_that_is_too_long_for_the_way_is_refused() {
    let narrow = RemoteRegion::new(faulty(Fault::Busy, 1, 16, REGION_BYTES), &config("lru")).unwrap_err();
    assert!(narrow.to_string().contains("takes 32 operations on this way, of at most 9"), "{narrow}");
}

#[test]
fn failures_for_good_lose_the_region_and_say_why() {
    let region = |fault| RemoteRegion::new(faulty(fault, 1, 200, REGION_BYTES), &config("lru")).unwrap();
    let read = |fault| region(fault).read(0, &mut [0]).unwrap_err().to_string();
    let silent = read(Fault::Silent);
    assert!(silent.contains("no answer for 10 s"), "{silent}");
    let busy = read(Fault::AlwaysBusy);
    assert!(busy.contains(&format!("no success for 10 s; the last failure: {}", Status::Busy)), "{busy}");
    let refused = read(Fault::InPart(Status::NotPermitted));
    assert!(refused.contains("a read of block 0 failed: the region does not permit it"), "{refused}");
}

/// A write that may still be carried out could undo a newer one, so it is never repeated, whatever else has failed.
#[test]
fn a_write_with_an_unknown_result_loses_the_region() {
    let [unknown, busy] = [Status::Unknown, Status::Busy];
    for statuses in [[unknown; 3], [unknown, busy, busy], [busy, unknown, busy], [busy, busy, unknown]] {
        for seed in 0..4 {
            let remote = faulty(Fault::Writes(statuses), seed, 200, REGION_BYTES);
            let region = RemoteRegion::new(remote, &config("lru")).unwrap();
            region.write(7, &[1]).unwrap();
            let why = region.flush().unwrap_err().to_string();
            assert!(why.contains("a write of block 0 failed: no answer in time"), "{statuses:?}: {why}");
        }
    }
}

/// Memory whose host starts again when a test says so: then it has zeros.
struct Restarted {
    local: Local,
    abilities: Abilities,
    starts: Arc<AtomicU64>,
    seen: u64,
}

impl Restarted {
    fn new(writes: Written) -> (Restarted, Arc<AtomicU64>) {
        let local = Local::new(REGION_BYTES);
        let abilities = Abilities { writes, pieces_max: 0, ..local.abilities().clone() };
        let starts = Arc::new(AtomicU64::new(0));
        (Restarted { local, abilities, starts: starts.clone(), seen: 0 }, starts)
    }
}

impl Remote for Restarted {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        let starts = self.starts.load(Ordering::Relaxed);
        if starts > self.seen {
            self.seen = starts;
            self.local.bytes().fill(0);
        }
        self.local.submit(tag, operation)
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.local.poll(until, ended)
    }

    fn losses(&self) -> u64 {
        self.seen
    }
}

#[test]
fn memory_that_starts_again_is_lost_and_never_read_as_old_or_zero() {
    for writes in [Written::There, Written::Sent] {
        let (memory, starts) = Restarted::new(writes);
        // Wrappers pass losses on.
        let remote = Pieces::new(Delayed::new(memory, Nanos::from_micros(5)));
        let region = RemoteRegion::new(Box::new(remote), &config("runs")).unwrap();
        region.write(0, &vec![7; REGION_BYTES as usize]).unwrap();
        region.flush().unwrap();
        starts.fetch_add(1, Ordering::Relaxed);
        let lost = (0..REGION_BYTES).step_by(512).find_map(|at| {
            let mut byte = [1];
            let read = region.read(at, &mut byte);
            assert!(read.is_err() || byte == [7], "{writes:?}: byte {at} is {byte:?}");
            read.err()
        });
        let Some(RegionError::Lost(why)) = lost else { panic!("{writes:?}: nothing was lost") };
        assert!(why.contains("may have started again"), "{why}");
        assert!(matches!(region.write(0, &[1]), Err(RegionError::Lost(_))));
    }
}

/// A view's bytes stay as they are, and no other access sees them.
#[test]
fn views_keep_their_bytes_after_a_loss() {
    let (memory, starts) = Restarted::new(Written::There);
    let region = RemoteRegion::new(Box::new(memory), &config("lru")).unwrap();
    region.write(0, &[3; 1_024]).unwrap();
    let (read, mut written) = (region.view(0, 512).unwrap(), region.view_mut(512, 512).unwrap());
    starts.fetch_add(1, Ordering::Relaxed);
    assert!(matches!(region.read(REGION_BYTES / 2, &mut [0]), Err(RegionError::Lost(_))));
    written.fill(4);
    assert!(read.iter().all(|byte| *byte == 3) && written.iter().all(|byte| *byte == 4));
    assert!(matches!(region.view(0, 1).map(drop), Err(RegionError::Lost(_))));
    drop((read, written));
    assert!(matches!(region.flush(), Err(RegionError::Lost(_))));
}

/// A thread that panics in the way leaves it to no other: these get an error, and do not wait.
#[test]
fn a_way_that_panics_loses_the_region() {
    struct Panics(Local);
    impl Remote for Panics {
        fn abilities(&self) -> &Abilities {
            self.0.abilities()
        }
        fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
            self.0.submit(tag, operation)
        }
        fn poll(&mut self, _: Nanos, _: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            panic!("a planted panic of the way")
        }
    }
    let region = &RemoteRegion::new(Box::new(Panics(Local::new(REGION_BYTES))), &config("lru")).unwrap();
    std::thread::scope(|scope| {
        let reads: Vec<_> =
            (0..4u64).map(|thread| scope.spawn(move || region.read(thread * 4_096, &mut [0]))).collect();
        let ends: Vec<_> = reads.into_iter().map(|read| read.join()).collect();
        assert!(ends.iter().filter(|end| end.is_err()).count() <= 1, "one thread is in the way");
        assert!(ends.iter().flatten().all(|end| matches!(end, Err(RegionError::Lost(_)))), "{ends:?}");
    });
    let why = region.read(0, &mut [0]).unwrap_err().to_string();
    assert!(why.contains("has panicked"), "{why}");
}
