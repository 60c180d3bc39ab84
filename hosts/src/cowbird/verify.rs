//! Reads and writes remote memory at random and checks every byte that comes back.
//!
//! The thread's part of a region is divided into [records](p4rack_history::Records), which contain their number and version. A read is
//! right if it returns a whole version that an order of the thread's operations explains.

use super::node::ThreadClient;
use p4rack_cowbird::{Kind, PollError, PollId, Refused, RequestId};
use p4rack_fabric::common::SplitMix;
use p4rack_history::{Records, fill, version_of};
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
    /// No more results can come.
    #[error("{0} requests under way are not done")]
    Lost(u64),
    /// Nothing came.
    #[error("no response for {0:?} with {1} requests under way")]
    Silence(Duration, u64),
}

impl VerifyError {
    fn wrong(record: u64, what: impl ToString) -> VerifyError {
        VerifyError::Wrong { record, what: what.to_string() }
    }
}

/// Parameters shared by all threads.
#[derive(Debug, Default)]
pub struct News {
    /// No further reads and writes: each record is read once more.
    pub over: AtomicBool,
    /// The remote memory is lost: no more results come.
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
    records: Records,
    reads: VecDeque<Read>,
    writes: VecDeque<RequestId>,
    last: Instant,
    done: Verified,
    /// Buffers for reads and writes.
    buffers: [Vec<u8>; 2],
}

/// Executes a plan as far as time permits; then reads every record. The memory held zeros.
pub fn run(client: &mut ThreadClient, plan: Plan, news: &News) -> Result<Verified, VerifyError> {
    let records = plan.bytes / u64::from(plan.record_bytes.max(1));
    if plan.record_bytes < RECORD_BYTES_MIN || !plan.record_bytes.is_multiple_of(8) {
        return Err(VerifyError::Plan("a record has to have a multiple of 8 bytes"));
    }
    if records == 0 {
        return Err(VerifyError::Plan("not even one record fits into the memory"));
    }
    let poll = client.poll_create();
    let mut checker = Checker {
        client,
        news,
        poll,
        plan,
        records: Records::in_order(records as usize),
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
        let version = self.records.newest(record as usize) + 1;
        let mut bytes = std::mem::take(&mut self.buffers[1]);
        fill(record, version, &mut bytes);
        let (region, at) = (self.plan.region, self.at(record));
        let asked = self.ask(|client| client.async_write(region, &bytes, at));
        self.buffers[1] = bytes;
        self.writes.push_back(asked?);
        self.records.write(record as usize);
        Ok(())
    }

    fn read(&mut self, record: u64) -> Result<(), VerifyError> {
        let (region, at, length) = (self.plan.region, self.at(record), self.plan.record_bytes);
        let id = self.ask(|client| client.async_read(region, at, length))?;
        let least = self.records.newest(record as usize);
        self.reads.push_back(Read { id, record, least });
        Ok(())
    }

    /// Retries until a ring has room; fetches responses between tries.
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
        let Checker { client, reads, writes, records, buffers: [buffer, _], done, .. } = self;
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
                            check(records, read.record, read.least, buffer)
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

/// Checks a read's bytes. Errors: it is older or newer than it can be, or not whole.
fn check(records: &mut Records, record: u64, least: u64, bytes: &[u8]) -> Result<(), VerifyError> {
    match version_of(record, bytes) {
        Some(version) => {
            records.found(record as usize, least, version).map_err(|wrong| VerifyError::wrong(record, wrong))
        }
        None => Err(VerifyError::wrong(record, "it has not the bytes of the version that it begins with")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_newer_or_not_whole_is_seen() {
        let (mut records, mut bytes) = (Records::in_order(5), [0; 24]);
        assert_eq!([records.write(3), records.write(3)], [1, 2]);
        check(&mut records, 3, 0, &bytes).unwrap();
        fill(3, 2, &mut bytes);
        check(&mut records, 3, 2, &bytes).unwrap();
        fill(3, 1, &mut bytes);
        let older = check(&mut records, 3, 0, &bytes).unwrap_err().to_string();
        assert_eq!(
            older, "record 3: it is in version 1, and can be in 2 to 2",
            "a read before has seen a newer one"
        );
        fill(3, 3, &mut bytes);
        assert!(check(&mut records, 3, 2, &bytes).unwrap_err().to_string().contains("version 3"));
        assert!(check(&mut records, 4, 0, &bytes).is_err(), "another record's bytes");
        bytes[23] ^= 1;
        assert!(check(&mut records, 3, 0, &bytes).unwrap_err().to_string().contains("not the bytes"));
        assert!(check(&mut records, 3, 0, &[]).is_err());
    }
}
