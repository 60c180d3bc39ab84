//! Reads and writes remote memory at random and checks every byte that comes back.
//!
//! The thread's part of a region is divided into records, which contain their number and version. A read is right if it returns
//! a whole version that is not older than the last one written before the read, nor than one that an earlier read
//! returned, nor newer than the last one written when the response arrived.

use super::node::ThreadClient;
use p4rack_cowbird::{Kind, PollError, PollId, Refused, RequestId};
use p4rack_fabric::common::SplitMix;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a record at least: its version.
pub const RECORD_BYTES_MIN: u32 = 8;

/// Work of a thread.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Region that it uses.
    pub region: u16,
    /// First byte in it.
    pub start: u64,
    /// Bytes from there on.
    pub bytes: u64,
    /// Bytes of a record: a multiple of 8.
    pub record_bytes: u32,
    /// Reads and writes.
    pub operations: u64,
    /// Which ones.
    pub seed: u64,
    /// Time limit without any response.
    pub patience: Duration,
}

/// Results of a thread without errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Verified {
    /// Records read and found right.
    pub reads: u64,
    /// Records written.
    pub writes: u64,
    /// Time that it took.
    pub seconds: f64,
}

/// A detected error.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(&'static str),
    /// A request was refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A read returned wrong bytes.
    #[error("record {record}: {what}")]
    Wrong {
        /// Which one.
        record: u64,
        /// Description of the error.
        what: String,
    },
    /// Responses came in another order than requests.
    #[error("responses came out of order: {0:?} instead of {1:?}")]
    Order(RequestId, Option<RequestId>),
    /// Nothing can come any more.
    #[error("{0} requests under way are not done")]
    Lost(u64),
    /// Nothing came.
    #[error("no response for {0:?} with {1} requests under way")]
    Silence(Duration, u64),
}

/// Parameters shared by all threads.
#[derive(Debug, Default)]
pub struct News {
    /// No further reads and writes: each record is read once more.
    pub over: AtomicBool,
    /// The remote memory is lost: nothing comes any more.
    pub lost: AtomicBool,
}

/// A refusal of the client library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Of a request.
    #[error("{0}")]
    Request(Refused),
    /// Of waiting.
    #[error("{0}")]
    Poll(PollError),
}

/// A read in flight: its record, and the oldest version that it may return.
#[derive(Clone, Copy, Debug)]
struct Read {
    id: RequestId,
    record: u64,
    least: u64,
}

struct Checker<'a> {
    client: &'a mut ThreadClient,
    news: &'a News,
    poll: PollId,
    plan: Plan,
    /// Last version requested, of each record.
    asked: Vec<u64>,
    /// Newest version that a read brought, of each record.
    seen: Vec<u64>,
    reads: VecDeque<Read>,
    writes: VecDeque<RequestId>,
    last: Instant,
    done: Verified,
    /// Buffers for reads and writes.
    buffers: [Vec<u8>; 2],
}

/// Writes a record's version over `into`.
fn fill(record: u64, version: u64, into: &mut [u8]) {
    let mut random = SplitMix(record << 40 ^ version);
    for (nth, word) in into.chunks_exact_mut(8).enumerate() {
        let content = match (version, nth) {
            (0, _) => 0,
            (_, 0) => version,
            _ => random.next(),
        };
        word.copy_from_slice(&content.to_le_bytes());
    }
}

/// Carries a plan out, or as much of it as there is time for before it is over; then reads every record. The memory held
/// zeros.
pub fn run(client: &mut ThreadClient, plan: Plan, news: &News) -> Result<Verified, VerifyError> {
    let records = plan.bytes / u64::from(plan.record_bytes.max(1));
    if plan.record_bytes < RECORD_BYTES_MIN || !plan.record_bytes.is_multiple_of(8) {
        return Err(VerifyError::Plan("a record has to have a multiple of 8 bytes"));
    }
    if records == 0 {
        return Err(VerifyError::Plan("not even one record fits into the memory"));
    }
    let poll = client.poll_create();
    let each = vec![0; records as usize];
    let mut checker = Checker {
        client,
        news,
        poll,
        plan,
        asked: each.clone(),
        seen: each,
        reads: VecDeque::new(),
        writes: VecDeque::new(),
        last: Instant::now(),
        done: Verified::default(),
        buffers: [(); 2].map(|()| vec![0; plan.record_bytes as usize]),
    };
    let (start, mut random) = (Instant::now(), SplitMix(plan.seed));
    for _ in 0..plan.operations {
        if news.over.load(Ordering::Relaxed) {
            break;
        }
        let record = random.next() % records;
        match random.next().is_multiple_of(2) {
            true => checker.write(record)?,
            false => checker.read(record)?,
        }
    }
    // In the end each record has its last version.
    for record in 0..records {
        checker.read(record)?;
    }
    while !(checker.reads.is_empty() && checker.writes.is_empty()) {
        checker.wait()?;
    }
    checker.done.seconds = start.elapsed().as_secs_f64();
    Ok(checker.done)
}

impl Checker<'_> {
    fn at(&self, record: u64) -> u64 {
        self.plan.start + record * u64::from(self.plan.record_bytes)
    }

    fn write(&mut self, record: u64) -> Result<(), VerifyError> {
        let version = self.asked[record as usize] + 1;
        let mut bytes = std::mem::take(&mut self.buffers[1]);
        fill(record, version, &mut bytes);
        let (region, at) = (self.plan.region, self.at(record));
        let asked = self.ask(|client| client.async_write(region, &bytes, at));
        self.buffers[1] = bytes;
        self.writes.push_back(asked?);
        self.asked[record as usize] = version;
        Ok(())
    }

    fn read(&mut self, record: u64) -> Result<(), VerifyError> {
        let (region, at, length) = (self.plan.region, self.at(record), self.plan.record_bytes);
        let id = self.ask(|client| client.async_read(region, at, length))?;
        let least = self.asked[record as usize].max(self.seen[record as usize]);
        self.reads.push_back(Read { id, record, least });
        Ok(())
    }

    /// Retries until there is room, and fetches responses.
    fn ask(
        &mut self,
        request: impl Fn(&mut ThreadClient) -> Result<RequestId, Refused>,
    ) -> Result<RequestId, VerifyError> {
        loop {
            match request(self.client) {
                Ok(id) => {
                    self.client.poll_add(self.poll, id).map_err(Refusal::Poll)?;
                    return Ok(id);
                }
                Err(Refused::RequestsFull | Refused::RequestDataFull | Refused::ResponseDataFull) => {
                    self.wait()?
                }
                Err(refused) => return Err(Refusal::Request(refused).into()),
            }
        }
    }

    /// Waits a moment for responses and checks them.
    fn wait(&mut self) -> Result<(), VerifyError> {
        let Checker { client, reads, writes, asked, seen, buffers: [buffer, _], done, .. } = self;
        let mut wrong = None;
        let fetched = client.poll_wait(self.poll, 1, Duration::from_millis(1), |response| {
            let checked = match response.id.kind() {
                Kind::Write => {
                    done.writes += 1;
                    match writes.pop_front() {
                        Some(id) if id == response.id => Ok(()),
                        other => Err(VerifyError::Order(response.id, other)),
                    }
                }
                Kind::Read => {
                    done.reads += 1;
                    match (reads.pop_front(), response.data) {
                        (Some(read), Some(data)) if read.id == response.id => {
                            data.copy_to(buffer);
                            let record = read.record as usize;
                            let least = read.least.max(seen[record]);
                            check(read.record, buffer, least, asked[record])
                                .map(|version| seen[record] = version)
                        }
                        (other, _) => Err(VerifyError::Order(response.id, other.map(|read| read.id))),
                    }
                }
            };
            if let Err(error) = checked {
                wrong.get_or_insert(error);
            }
        });
        match (wrong, fetched.map_err(Refusal::Poll)?) {
            (Some(error), _) => Err(error),
            (None, 0) if self.news.lost.load(Ordering::Relaxed) => {
                Err(VerifyError::Lost(self.client.outstanding()))
            }
            (None, 0) if self.last.elapsed() > self.plan.patience => {
                Err(VerifyError::Silence(self.plan.patience, self.client.outstanding()))
            }
            (None, 0) => Ok(()),
            (None, _) => {
                self.last = Instant::now();
                Ok(())
            }
        }
    }
}

/// Which version a record is in. Errors: it is older or newer than it can be, or not whole.
fn check(record: u64, bytes: &[u8], least: u64, most: u64) -> Result<u64, VerifyError> {
    let wrong = |what: String| Err(VerifyError::Wrong { record, what });
    let Some(first) = bytes.first_chunk() else { return wrong("it is empty".into()) };
    let version = u64::from_le_bytes(*first);
    if !(least..=most).contains(&version) {
        return wrong(format!("it is in version {version}, and can be in {least} to {most}"));
    }
    let mut expected = vec![0; bytes.len()];
    fill(record, version, &mut expected);
    match bytes == expected {
        true => Ok(version),
        false => wrong(format!("it has not the bytes of version {version}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_newer_or_not_whole_is_seen() {
        let mut bytes = [0; 24];
        assert_eq!(check(3, &bytes, 0, 2).unwrap(), 0);
        fill(3, 2, &mut bytes);
        assert_eq!(check(3, &bytes, 2, 2).unwrap(), 2);
        for (least, most) in [(3, 4), (0, 1)] {
            assert!(check(3, &bytes, least, most).unwrap_err().to_string().contains("version 2"));
        }
        assert!(check(4, &bytes, 0, 2).is_err(), "another record's bytes");
        bytes[23] ^= 1;
        assert!(check(3, &bytes, 0, 2).unwrap_err().to_string().contains("not the bytes"));
        assert!(check(3, &[], 0, 2).is_err());
    }
}
