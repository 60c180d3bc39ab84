//! A thread's handling of completed requests.

use super::{PendingRequest, Plan, RecordPath, Step, Tally, Thread};
use crate::cowbird::nic::{HostMemory, ps};
use crate::cowbird::records;
use p4rack_cowbird::Kind;
use p4rack_fabric::roce::{Adapter, Completion, Outcome};
use std::collections::BTreeMap;

impl Thread {
    /// Fetches completed requests and checks the records.
    pub(super) fn fetch(&mut self, now_ps: u64, adapter: &mut Adapter<HostMemory>, plan: &Plan) -> Step {
        let (cpu, measured) = (&plan.cpu, Thread::is_measured(now_ps, plan));
        let mut ended = Ended { plan, now_ps, measured, records: 0, count: 0 };
        let Thread { path, reads, writes, versions, record, tally, .. } = self;
        let (mut each_ns, mut more_ns, mut rung) = (cpu.fetch_ns, 0, false);
        match path {
            RecordPath::Local => {}
            RecordPath::Cowbird { client, poll } => {
                let fetched = client.poll(*poll, plan.batch as usize, |response| match response.id.kind() {
                    Kind::Read => {
                        let brought = response.data.is_some_and(|data| {
                            data.copy_to(record);
                            data.len() == record.len()
                        });
                        ended.one(
                            reads.pop_front(),
                            Some(record.as_slice()).filter(|_| brought),
                            versions,
                            tally,
                        );
                    }
                    Kind::Write => ended.one(writes.pop_front(), None, versions, tally),
                });
                if fetched.is_err() {
                    tally.failed += 1;
                }
            }
            RecordPath::Handed { brought, .. } => {
                while ended.count < plan.batch
                    && let Some(record) = brought.pop_front()
                {
                    ended.one(reads.pop_front(), record.as_deref(), versions, tally);
                }
            }
            RecordPath::Verbs { qpn, done, two_sided, unrung } => {
                each_ns = cpu.completion_ns;
                // Requests posted before a probe without room may still need a doorbell.
                if std::mem::take(unrung) > 0 {
                    (more_ns, rung) = (cpu.doorbell_ns, true);
                }
                while ended.count < plan.batch
                    && let Some(completion) = done.pop_front()
                {
                    match completion {
                        // The message was sent; only the answer counts.
                        Completion::Request(_, Outcome::Done) if *two_sided => {}
                        Completion::Request(_, Outcome::Read(bytes)) => {
                            ended.one(reads.pop_front(), Some(&bytes), versions, tally);
                        }
                        Completion::Request(_, Outcome::Done) => {
                            ended.one(reads.pop_front(), None, versions, tally);
                        }
                        Completion::Receive(received) => {
                            more_ns += cpu.receive_ns;
                            if adapter.handle_receive(*qpn, plan.record_bytes).is_err() {
                                tally.failed += 1;
                            }
                            let bytes = Some(&received.bytes[..]).filter(|bytes| !bytes.is_empty());
                            ended.one(reads.pop_front(), bytes, versions, tally);
                        }
                        Completion::Request(..) => {
                            tally.failed += 1;
                            reads.pop_front();
                        }
                    }
                }
            }
        }
        let (count, records) = (ended.count, ended.records);
        let work_ps = u64::from(records) * ps(cpu.record_ns(plan.record_bytes));
        let look_ps = ps(cpu.look_ns);
        let (communication_ps, waiting_ps) = match count {
            0 => (ps(more_ns), look_ps),
            count => (look_ps + u64::from(count) * ps(each_ns) + ps(more_ns), 0),
        };
        self.note(work_ps, communication_ps, waiting_ps, measured);
        Step { took_ps: work_ps + communication_ps + waiting_ps, rung }
    }
}

/// Result of a fetch.
struct Ended<'a> {
    plan: &'a Plan,
    now_ps: u64,
    measured: bool,
    count: u32,
    records: u32,
}

impl Ended<'_> {
    /// Handles the end of a request, with a record if it was a read.
    fn one(
        &mut self,
        asked: Option<PendingRequest>,
        record: Option<&[u8]>,
        versions: &BTreeMap<u64, u32>,
        tally: &mut Tally,
    ) {
        self.count += 1;
        let Some(asked) = asked else {
            tally.wrong += 1;
            return;
        };
        let right = match (asked.is_write, record) {
            (true, None) => true,
            (false, Some(record)) => {
                self.records += 1;
                // A read sees all writes before its issue, and perhaps later ones.
                let newest = versions.get(&asked.key).copied().unwrap_or(0);
                let first = asked.key * u64::from(self.plan.record_bytes) / 8;
                record.len() == self.plan.record_bytes as usize
                    && records::is_right(record, first, asked.version..=newest)
            }
            _ => false,
        };
        tally.wrong += u64::from(!right);
        if self.measured {
            tally.probes += 1;
            tally.remote += 1;
            // Probes issued before the measurement count if they end in it. As many end after it.
            tally.latency.record((self.now_ps - asked.at_ps) / 1_000);
        }
    }
}
