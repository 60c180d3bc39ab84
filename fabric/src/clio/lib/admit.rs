//! Operations that a client accepts, and which it refuses.

use super::client::Client;
use super::operation::{Operation, Refused};
use super::request::{Act, RangedAct};
use super::split::Split;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{AllocBody, Atomic, FreeBody, PageSize, ShareBody, WORD_BYTES};

impl Client {
    /// Accepts an operation of a thread by a [seat](super::Seat), on the memory of its process. Its outcome comes with `tag`; outcomes come as operations end.
    pub fn submit(
        &mut self,
        thread: u16,
        seat: u16,
        tag: u64,
        operation: Operation<'_>,
        now: Nanos,
    ) -> Result<(), Refused> {
        self.now = self.now.max(now);
        self.reclaim();
        match self.admit((thread, seat), tag, operation) {
            Ok(()) => {
                self.counters.requests += 1;
                Ok(())
            }
            Err(refused) => {
                self.counters.refused += 1;
                Err(refused)
            }
        }
    }

    fn admit(&mut self, ends: (u16, u16), tag: u64, operation: Operation<'_>) -> Result<(), Refused> {
        let order = self.orders.get_mut(usize::from(ends.0)).ok_or(Refused::NoSuchEnd)?;
        let seat = self.seats.get(usize::from(ends.1)).ok_or(Refused::NoSuchEnd)?;
        let thread = seat.first_thread.wrapping_add(ends.0);
        let (what, bytes) = checked(&operation, thread, self.config.request_bytes_max)?;
        let results_bytes = match operation {
            Operation::Call { results_bytes_max, .. }
                if results_bytes_max > self.config.request_bytes_max =>
            {
                return Err(Refused::BadLength);
            }
            Operation::Call { .. } if bytes > self.config.mtu_bytes => return Err(Refused::BadLength),
            Operation::Call { results_bytes_max, .. } => results_bytes_max,
            _ => 0,
        };
        let buffered_bytes = bytes.saturating_add(results_bytes);
        let buffered = self.buffered_bytes + u64::from(buffered_bytes);
        if order.is_full() || buffered > self.config.buffer_bytes_max {
            return Err(Refused::Full);
        }
        let split = match (what.act, PageSize::of_address(what.address)) {
            (Act::Read | Act::Write, Ok(page)) => {
                Split::new(what.address, bytes, self.config.mtu_bytes, page.bytes())
            }
            _ => Split::one(bytes),
        };
        // A packet's number has sixteen bits.
        if split.count() > u16::MAX.into() {
            return Err(Refused::BadLength);
        }
        let slot = self.free.pop().ok_or(Refused::Full)?;
        self.buffered_bytes = buffered;
        let request = &mut self.requests[usize::from(slot)];
        request.place(tag, ends, what, split);
        (request.buffered_bytes, request.admitted) = (buffered_bytes, self.now);
        match operation {
            Operation::Write { bytes, .. } | Operation::Call { arguments: bytes, .. } => {
                request.data.extend_from_slice(bytes);
            }
            Operation::Read { bytes, .. } => request.data.resize(bytes as usize, 0),
            _ => {}
        }
        if order.admit(slot, what.access(ends.1, self.config.granule)) {
            self.starting.push_back(slot);
            self.start();
        }
        Ok(())
    }
}

/// An operation as a request, and the bytes of its data. Errors: no board could execute it.
fn checked(operation: &Operation<'_>, thread: u16, bytes_max: u32) -> Result<(RangedAct, u32), Refused> {
    let lock = |atomic| Act::Atomic(atomic, [thread.into(), 0]);
    let word = u64::from(WORD_BYTES);
    let (act, address, range_bytes) = match *operation {
        Operation::Alloc { bytes, page_size, rights } => {
            let body = AllocBody { bytes, page_size: page_size as u8, rights: rights.code(), reserved: 0 };
            (Act::Alloc(body), 0, bytes)
        }
        Operation::Free { address, bytes } => (Act::Free(FreeBody { bytes }), address, bytes),
        Operation::Share { address, bytes, with: (pid, epoch), rights } => {
            let body = ShareBody { bytes, pid, epoch, rights: rights.code(), reserved: 0 };
            (Act::Share(body), address, bytes)
        }
        Operation::Read { address, bytes } => (Act::Read, address, bytes.into()),
        Operation::Write { address, bytes } => (Act::Write, address, bytes.len() as u64),
        Operation::Modify { address, change } => {
            let (atomic, operands) = change.operands();
            (Act::Atomic(atomic, operands), address, word)
        }
        Operation::Lock { address } => (lock(Atomic::Lock), address, word),
        Operation::Unlock { address } => (lock(Atomic::Unlock), address, word),
        Operation::Fence { all } => (Act::Fence { all }, 0, 0),
        Operation::Call { offload, function, arguments, results_bytes_max, is_ordered } => {
            (Act::Call { function, results_bytes_max, is_ordered }, offload, arguments.len() as u64)
        }
        Operation::Release => (Act::Release, 0, 0),
    };
    let what = RangedAct { act, address, range_bytes };
    let has_range = !matches!(act, Act::Fence { .. } | Act::Call { .. } | Act::Release);
    let data_bytes = if matches!(act, Act::Read | Act::Write | Act::Call { .. }) { range_bytes } else { 0 };
    match u32::try_from(data_bytes) {
        _ if has_range && range_bytes == 0 => Err(Refused::BadLength),
        Ok(bytes) if bytes <= bytes_max => match act {
            Act::Atomic(..) if !address.is_multiple_of(word) => Err(Refused::Unaligned),
            _ if has_range && !is_range(address, range_bytes) => Err(Refused::BadAddress),
            _ => Ok((what, bytes)),
        },
        _ => Err(Refused::BadLength),
    }
}

/// Whether all of a range is in the address space, and of one page size.
fn is_range(address: u64, bytes: u64) -> bool {
    let last = address.checked_add(bytes - 1).map(PageSize::of_address);
    matches!((PageSize::of_address(address), last), (Ok(first), Some(Ok(last))) if first == last)
}
