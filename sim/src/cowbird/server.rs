//! A thread of the pool that answers messages one after the other, each with one request or a batch.

use super::costs::CpuSpec;
use super::nic::{HostMemory, ps};
use super::records::POOL_KEY;
use super::thread::ASK_BYTES;
use p4rack_fabric::roce::{Adapter, RegisteredMemory, RemoteAddress, Request};
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Server {
    inbox: VecDeque<(u32, Vec<u8>)>,
    pub busy: bool,
    /// Requests that were invalid or could not be answered.
    pub failed: u64,
}

impl Server {
    /// Takes a request of a queue pair. Returns whether the server has to be woken.
    pub fn ask(&mut self, qpn: u32, bytes: Vec<u8>) -> bool {
        self.inbox.push_back((qpn, bytes));
        !std::mem::replace(&mut self.busy, true)
    }

    /// Answers the next message. Returns the duration, or `None` if there is none. `batch`: maximum requests of a message.
    pub fn answer(
        &mut self,
        adapter: &mut Adapter<HostMemory>,
        cpu: &CpuSpec,
        record_bytes: u32,
        batch: u32,
    ) -> Option<u64> {
        let Some((qpn, message)) = self.inbox.pop_front() else {
            self.busy = false;
            return None;
        };
        let (mut asks, mut bytes, mut count, mut done) = (&message[..], Vec::new(), 0, true);
        while done && !asks.is_empty() {
            count += 1;
            done = Server::one(&mut asks, adapter, record_bytes, &mut bytes).is_some();
        }
        let answered = adapter.handle_request(qpn, Request::Send { bytes, immediate: None }).is_ok();
        let posted = adapter.handle_receive(qpn, batch * (ASK_BYTES as u32 + record_bytes)).is_ok();
        self.failed += u64::from(!(done && answered && posted));
        let calls_ns = cpu.completion_ns + cpu.receive_ns + cpu.request_ns + cpu.doorbell_ns;
        Some(ps(calls_ns + count * cpu.record_ns(record_bytes)))
    }

    /// Executes the first request of `requests` and appends its data to `answer`. `None`: it is invalid.
    fn one(
        asks: &mut &[u8],
        adapter: &mut Adapter<HostMemory>,
        record_bytes: u32,
        answer: &mut Vec<u8>,
    ) -> Option<()> {
        let (ask, behind) = asks.split_first_chunk::<ASK_BYTES>()?;
        let [address, is_write] =
            [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|byte| ask[at + byte])));
        let place = RemoteAddress { domain: 0, key: POOL_KEY, address };
        if is_write == 0 {
            let start = answer.len();
            answer.resize(start + record_bytes as usize, 0);
            adapter.memory().read(place, &mut answer[start..]).ok()?;
            *asks = behind;
        } else {
            let (record, behind) = behind.split_at_checked(record_bytes as usize)?;
            adapter.memory_mut().write(place, record).ok()?;
            *asks = behind;
        }
        Some(())
    }
}
