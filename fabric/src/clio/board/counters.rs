//! A board's counters.

use crate::common::counters;
use p4rack_wire::clio::Status;

counters! {
    /// Events at a board. Every drop has a reason.
    Counters {
        /// Packets that came.
        packets_in,
        /// Packets that were sent.
        packets_out,
        /// Reads that were accepted.
        reads,
        /// Packets of writes that were executed.
        writes,
        /// Atomic operations that were executed.
        atomics,
        /// Fences that completed.
        fences,
        /// Calls of the slow path that were done.
        calls,
        /// Calls of offloads that were finished.
        offloads,
        /// Copies and retries of executed requests: answered with the first result.
        repeated,
        /// Copies and retries of calls that are being done: dropped, the call's answer is theirs.
        joined,
        /// Translations by the TLB.
        tlb_hits,
        /// Translations by the page table.
        tlb_misses,
        /// First accesses to pages.
        faults,
        /// Bytes of frames that were zeroed.
        zeroed_bytes,
        /// Requests that waited for a fence.
        held,
        /// Tries of allocations that met a full bucket.
        search_retries,
        /// Locks that were released because their lease ended, or their process.
        locks_ended,
        /// Damaged packets that were answered by a NACK.
        nacks,
        /// Dropped: cut short, of an unknown kind, or with an invalid field.
        malformed,
        /// Dropped: another version of the format.
        wrong_version,
        /// Dropped: not as many bytes as announced.
        wrong_length,
        /// Dropped: no process has this PID.
        wrong_pid,
        /// Dropped: the process with this PID is another one, or has ended.
        wrong_epoch,
        /// Dropped: the token is wrong.
        wrong_token,
        /// Dropped: answers and NACKs, which no board takes.
        not_requests,
        /// Dropped: damaged, beyond the rate of NACKs.
        damaged,
        /// Dropped: too many answers wait for the link, of the process or of all.
        overflows,
        /// Dropped: requests and answers of a process that has ended.
        ended,
    }
}

/// Requests that were not executed, by [`Status`]. [`Done`](Status::Done) stays 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals([u64; Status::ALL.len()]);

impl Refusals {
    pub(super) fn new() -> Refusals {
        Refusals([0; Status::ALL.len()])
    }

    pub(super) fn count(&mut self, status: Status) {
        self.0[status as usize] += u64::from(status != Status::Done);
    }

    /// Number of requests that ended with this status.
    pub fn of(&self, status: Status) -> u64 {
        self.0[status as usize]
    }

    /// Names and counts, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Status::ALL.into_iter().skip(1).map(|(status, name)| (name, self.of(status)))
    }
}
