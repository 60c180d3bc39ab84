//! Time that a thread spends to issue a request and to fetch its response, as in the paper's Figure 2, without the time in
//! between. For comparison: a queue with the lock, the fences and the doorbell of an RDMA verbs driver (`ibv_post_send`,
//! `ibv_poll_cq`), in ordinary memory. A real doorbell is a store across PCIe and costs more.

use crate::{Client, Layout, PollId};
use p4rack_wire::cowbird::{RED_AT, Red};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// Requests issued before their responses are fetched.
const BATCH: u64 = 64;
/// Entries of both queues.
const ENTRIES: u64 = 256;
/// Bytes of the region. It has no memory, because the bench moves no data.
const REGION: u64 = 1 << 30;

/// Costs of one operation on both queues.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Costs {
    /// Bytes of a record.
    pub bytes: u32,
    /// Whether records are written; else they are read.
    pub write: bool,
    /// Operations that were timed.
    pub operations: u64,
    /// Cowbird: issuing, nanoseconds per operation.
    pub issue_ns: f64,
    /// Cowbird: fetching the response, with its bytes.
    pub poll_ns: f64,
    /// Verbs: posting.
    pub post_ns: f64,
    /// Verbs: polling the completion queue; a read's bytes are copied here too.
    pub completion_ns: f64,
}

impl Costs {
    /// Issuing and fetching together.
    pub fn cowbird_ns(&self) -> f64 {
        self.issue_ns + self.poll_ns
    }

    /// Posting and polling together.
    pub fn verbs_ns(&self) -> f64 {
        self.post_ns + self.completion_ns
    }
}

fn memory(words: u64) -> Arc<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

/// Measures for `seconds`, alternating between both queues so that other work on the machine affects both.
pub fn run(bytes: u32, write: bool, seconds: f64) -> Costs {
    let rounds = Duration::from_secs_f64(seconds.clamp(0.001, 60.0));
    let mut cowbird = Cowbird::new(bytes, write);
    let mut verbs = Verbs::new(bytes, write);
    let (start, mut times, mut operations) = (Instant::now(), [Duration::ZERO; 4], 0);
    let mut record = vec![0; bytes as usize];
    // The first round warms caches up.
    cowbird.round(&mut record);
    verbs.round(&mut record);
    while start.elapsed() < rounds {
        let (issue, poll) = cowbird.round(&mut record);
        let (post, completion) = verbs.round(&mut record);
        for (sum, time) in times.iter_mut().zip([issue, poll, post, completion]) {
            *sum += time;
        }
        operations += BATCH;
    }
    let [issue_ns, poll_ns, post_ns, completion_ns] =
        times.map(|time| time.as_nanos() as f64 / operations.max(1) as f64);
    Costs { bytes, write, operations, issue_ns, poll_ns, post_ns, completion_ns }
}

struct Cowbird {
    client: Client<Arc<[AtomicU64]>>,
    poll: PollId,
    bytes: u32,
    write: bool,
    done: u64,
    data: u64,
}

impl Cowbird {
    fn new(bytes: u32, write: bool) -> Cowbird {
        let ring = (u64::from(bytes).next_multiple_of(8) * ENTRIES).next_power_of_two();
        let layout = Layout { entries: ENTRIES, request_bytes: ring, response_bytes: ring };
        let words = memory(layout.bytes() / 8);
        let mut client = Client::new(words, layout, vec![REGION]).expect("sizes are powers of two");
        let poll = client.poll_create();
        Cowbird { client, poll, bytes, write, done: 0, data: 0 }
    }

    fn round(&mut self, record: &mut [u8]) -> (Duration, Duration) {
        let start = Instant::now();
        for nth in 0..BATCH {
            let at = nth * 4_096;
            let id = match self.write {
                true => self.client.async_write(0, record, at),
                false => self.client.async_read(0, at, self.bytes),
            };
            let id = id.expect("the rings hold more than a batch");
            self.client.poll_add(self.poll, id).expect("the request is new");
        }
        let issued = start.elapsed();
        self.complete();
        let start = Instant::now();
        let fetched = self.client.poll_wait(self.poll, BATCH as usize, Duration::from_secs(1), |response| {
            if let Some(data) = response.data {
                data.copy_to(record);
            }
        });
        let polled = start.elapsed();
        assert_eq!(fetched, Ok(BATCH as usize));
        (issued, polled)
    }

    /// Does as the engine: all requests are done.
    fn complete(&mut self) {
        self.done += BATCH;
        self.data += BATCH * u64::from(self.bytes).next_multiple_of(8);
        let (writes, reads) = if self.write { (self.done, 0) } else { (0, self.done) };
        let red = Red {
            request_head: self.done,
            request_data_head: if self.write { self.data } else { 0 },
            response_data_tail: if self.write { 0 } else { self.data },
            write_progress: writes,
            read_progress: reads,
            refusal: 0,
        };
        let mut block = [0; Red::BYTES];
        red.emit(&mut block);
        crate::words::write(self.client.words(), RED_AT as usize, &block).expect("the block is in the set");
    }
}

/// A send queue of work requests of 64 bytes, a completion queue of entries of 64 bytes, and their doorbells.
struct Verbs {
    lock: AtomicBool,
    requests: Arc<[AtomicU64]>,
    completions: Arc<[AtomicU64]>,
    doorbell: AtomicU64,
    register: AtomicU64,
    consumer: AtomicU64,
    buffer: Arc<[AtomicU64]>,
    posted: u64,
    polled: u64,
    write: bool,
}

/// Words of a work request, and of a completion.
const SLOT: u64 = 8;

impl Verbs {
    fn new(bytes: u32, write: bool) -> Verbs {
        Verbs {
            lock: AtomicBool::new(false),
            requests: memory(ENTRIES * SLOT),
            completions: memory(ENTRIES * SLOT),
            doorbell: AtomicU64::new(0),
            register: AtomicU64::new(0),
            consumer: AtomicU64::new(0),
            buffer: memory(u64::from(bytes).div_ceil(8) * ENTRIES),
            posted: 0,
            polled: 0,
            write,
        }
    }

    fn locked<T>(&mut self, work: impl FnOnce(&mut Verbs) -> T) -> T {
        while self.lock.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let done = work(self);
        self.lock.store(false, Ordering::Release);
        done
    }

    /// As a driver does: control, remote address and data segment, the doorbell record, the doorbell.
    fn post(&mut self, address: u64, bytes: usize) {
        self.locked(|queue| {
            let slot = queue.posted % ENTRIES * SLOT;
            let word = |nth: u64| &queue.requests[(slot + nth) as usize];
            word(0).store(queue.posted << 8 | 0x10, Ordering::Relaxed);
            word(1).store(bytes as u64, Ordering::Relaxed);
            word(2).store(address.to_be(), Ordering::Relaxed);
            word(3).store(0x77, Ordering::Relaxed);
            word(4).store((bytes as u64).to_be(), Ordering::Relaxed);
            word(5).store(slot, Ordering::Relaxed);
            queue.posted += 1;
            // Request before doorbell record, record before doorbell, and the doorbell immediately.
            fence(Ordering::SeqCst);
            queue.doorbell.store(queue.posted, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            queue.register.store(queue.posted, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        });
    }

    /// Looks for one completion.
    fn completion(&mut self) -> Option<u64> {
        self.locked(|queue| {
            let slot = queue.polled % ENTRIES * SLOT;
            let turn = queue.completions[(slot + 7) as usize].load(Ordering::Relaxed);
            if turn != queue.polled / ENTRIES + 1 {
                return None;
            }
            fence(Ordering::SeqCst);
            let id = queue.completions[slot as usize].load(Ordering::Relaxed);
            queue.polled += 1;
            queue.consumer.store(queue.polled, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            Some(id)
        })
    }

    fn round(&mut self, record: &mut [u8]) -> (Duration, Duration) {
        let words = record.len().div_ceil(8) as u64;
        let start = Instant::now();
        for nth in 0..BATCH {
            if self.write {
                let at = (self.posted % ENTRIES * words) as usize;
                crate::words::put(&self.buffer, at, record);
            }
            self.post(nth * 4_096, record.len());
        }
        let posted = start.elapsed();
        for number in self.posted - BATCH..self.posted {
            let slot = number % ENTRIES * SLOT;
            self.completions[slot as usize].store(number, Ordering::Relaxed);
            self.completions[(slot + 7) as usize].store(number / ENTRIES + 1, Ordering::Release);
        }
        let start = Instant::now();
        while self.polled < self.posted {
            if let Some(number) = self.completion()
                && !self.write
            {
                crate::words::get(&self.buffer, (number % ENTRIES * words) as usize, record);
            }
        }
        (posted, start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_queues_are_timed() {
        for (bytes, write) in [(1, true), (8, false), (64, true), (512, false)] {
            let costs = run(bytes, write, 0.005);
            assert!(costs.operations > 0);
            for ns in [costs.issue_ns, costs.poll_ns, costs.post_ns, costs.completion_ns] {
                assert!(ns > 0.0, "{costs:?}");
            }
            assert_eq!(costs.cowbird_ns(), costs.issue_ns + costs.poll_ns);
            assert_eq!(costs.verbs_ns(), costs.post_ns + costs.completion_ns);
        }
    }

    fn words(queue: &Arc<[AtomicU64]>, from: u64, count: usize) -> Vec<u64> {
        queue[from as usize..][..count].iter().map(|word| word.load(Ordering::Relaxed)).collect()
    }

    /// The benchmark has each step of a driver, so the comparison is fair: the request, its doorbells, the completion.
    #[test]
    fn the_other_queue_does_the_work_of_a_driver() {
        let mut verbs = Verbs::new(16, true);
        for posted in [1, 2] {
            verbs.post(0x1000, 16);
            let bells = [&verbs.doorbell, &verbs.register].map(|bell| bell.load(Ordering::Relaxed));
            assert_eq!((verbs.posted, bells), (posted, [posted; 2]));
        }
        let request = |nth: u64| [nth << 8 | 0x10, 16, 0x1000u64.to_be(), 0x77, 16u64.to_be(), nth * SLOT];
        assert_eq!(words(&verbs.requests, 0, 6), request(0));
        assert_eq!(words(&verbs.requests, SLOT, 6), request(1));
        assert!(!verbs.lock.load(Ordering::Relaxed));

        // A completion counts in its own turn of the queue.
        for (turn, expected) in [(0, None), (2, None), (1, Some(9))] {
            verbs.completions[0].store(9, Ordering::Relaxed);
            verbs.completions[7].store(turn, Ordering::Relaxed);
            assert_eq!(verbs.completion(), expected, "turn {turn}");
        }
        assert_eq!((verbs.polled, verbs.consumer.load(Ordering::Relaxed)), (1, 1));
        (verbs.posted, verbs.polled) = (ENTRIES, ENTRIES);
        assert_eq!(verbs.completion(), None, "its first turn is over");
        verbs.completions[7].store(2, Ordering::Relaxed);
        assert_eq!(verbs.completion(), Some(9));
        verbs.post(0x1000, 16);
        assert_eq!(words(&verbs.requests, 0, 1), [ENTRIES << 8 | 0x10], "the first slot again");
    }

    /// Records of both go through the buffers, and each round is done.
    #[test]
    fn rounds_move_their_records() {
        for bytes in [8u32, 12] {
            let (mut record, mut verbs) = (vec![7; bytes as usize], Verbs::new(bytes, true));
            for rounds in 1..=5 {
                verbs.round(&mut record);
                assert_eq!([verbs.posted, verbs.polled], [rounds * BATCH; 2]);
            }
            let mut last = vec![0; bytes as usize];
            let slot = (5 * BATCH - 1) % ENTRIES * u64::from(bytes).div_ceil(8);
            crate::words::get(&verbs.buffer, slot as usize, &mut last);
            assert_eq!(last, record);
            let mut read = Verbs::new(bytes, false);
            crate::words::put(&read.buffer, (BATCH - 1) as usize * bytes.div_ceil(8) as usize, &record);
            let mut into = vec![0; bytes as usize];
            read.round(&mut into);
            assert_eq!(into, record);

            let mut cowbird = Cowbird::new(bytes, true);
            for rounds in 1..=5 {
                cowbird.round(&mut record);
                assert_eq!((cowbird.done, cowbird.client.outstanding()), (rounds * BATCH, 0));
            }
            let mut cowbird = Cowbird::new(bytes, false);
            cowbird.round(&mut into);
            assert_eq!(into, vec![0; bytes as usize], "the response ring is empty");
        }
    }
}
