//! A thread of the pool that answers two-sided requests, one after the other.

use super::costs::CpuSpec;
use super::nic::{HostMemory, ps};
use super::records::POOL_KEY;
use super::thread::ASK_BYTES;
use p4rack_fabric::roce::{Adapter, Memory, Place, Request};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Server {
    inbox: VecDeque<(u32, Vec<u8>)>,
    pub busy: bool,
    /// Requests that made no sense, or could not be answered.
    pub failed: u64,
}

impl Server {
    /// A request came on a queue pair. Returns whether the server has to be woken.
    pub fn ask(&mut self, qpn: u32, bytes: Vec<u8>) -> bool {
        self.inbox.push_back((qpn, bytes));
        !std::mem::replace(&mut self.busy, true)
    }

    /// Answers the next request. Returns what that takes, or `None` if there is none.
    pub fn answer(
        &mut self,
        adapter: &mut Adapter<HostMemory>,
        cpu: &CpuSpec,
        record_bytes: u32,
    ) -> Option<u64> {
        let Some((qpn, ask)) = self.inbox.pop_front() else {
            self.busy = false;
            return None;
        };
        let word = |at: usize| Some(u64::from_le_bytes(ask.get(at..at + 8)?.try_into().ok()?));
        let place = word(0).map(|address| Place { domain: 0, key: POOL_KEY, address });
        let mut bytes = Vec::new();
        let done = match (place, word(8)) {
            (Some(place), Some(0)) => {
                bytes.resize(record_bytes as usize, 0);
                adapter.memory().read(place, &mut bytes).is_ok()
            }
            (Some(place), Some(_)) => adapter.memory_mut().write(place, &ask[ASK_BYTES..]).is_ok(),
            _ => false,
        };
        let answered = adapter.handle_request(qpn, Request::Send { bytes, immediate: None }).is_ok();
        let posted = adapter.handle_receive(qpn, ASK_BYTES as u32 + record_bytes).is_ok();
        self.failed += u64::from(!(done && answered && posted));
        let calls_ns = cpu.completion_ns + cpu.receive_ns + cpu.request_ns + cpu.doorbell_ns;
        Some(ps(calls_ns + cpu.record_ns(record_bytes)))
    }
}
