//! Cowbird's rings as a way to remote memory. Programs that need the rings without this layer's cost use `p4rack_cowbird`.

use super::{
    Abilities, Attachment, Held, Lease, Opened, Operation, Order, Outcome, Remote, RemoteError, Shape,
};
use super::{Status, WordOrder, Written};
use crate::commands::Gone;
use crate::cowbird::node::{CowbirdNode, NodeConfig, ThreadClient};
use crate::roce::Loss;
use p4rack_cowbird::{Layout, PollError, PollId, Refused};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;
use std::collections::VecDeque;
use std::time::Duration;

/// How long a thread sleeps if the rings have no completion.
const NAP: Duration = Duration::from_micros(200);

/// A thread's rings, as a way to the first region of a compute node.
struct Rings {
    client: ThreadClient,
    abilities: Abilities,
    poll: PollId,
    /// Tags of reads and of writes: the rings end each kind in order.
    reads: VecDeque<u64>,
    writes: VecDeque<u64>,
    buffer: Vec<u8>,
}

impl Remote for Rings {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let (id, tags) = match operation {
            Operation::Read { at, bytes } => (self.client.async_read(0, at, bytes), &mut self.reads),
            Operation::Write { at, bytes } => (self.client.async_write(0, bytes, at), &mut self.writes),
            Operation::Modify { .. } | Operation::Gather { .. } | Operation::Scatter { .. } => {
                return Err(Status::BadOperation);
            }
        };
        let id = id.map_err(status)?;
        // A new request belongs to no group.
        self.client.poll_add(self.poll, id).map_err(|_| Status::Gone)?;
        tags.push_back(tag);
        Ok(())
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        let (buffer, reads, writes) = (&mut self.buffer, &mut self.reads, &mut self.writes);
        let mut unasked = false;
        let fetched = self.client.poll(self.poll, usize::MAX, |response| match response.data {
            Some(data) => match reads.pop_front() {
                Some(tag) => {
                    data.copy_to(buffer);
                    ended(tag, Outcome::Read(&buffer[..data.len()]));
                }
                None => unasked = true,
            },
            None => match writes.pop_front() {
                Some(tag) => ended(tag, Outcome::Written),
                None => unasked = true,
            },
        });
        let fetched = fetched.map_err(|error: PollError| RemoteError::Broken(error.to_string()))?;
        if unasked {
            return Err(RemoteError::Broken("the rings brought an answer that nothing had asked for".into()));
        }
        if fetched == 0 {
            let left = Duration::from_nanos(until.saturating_sub(clock::now()).0);
            std::thread::sleep(left.min(NAP));
        }
        Ok(())
    }
}

fn status(refused: Refused) -> Status {
    match refused {
        Refused::RequestsFull | Refused::RequestDataFull | Refused::ResponseDataFull => Status::Full,
        Refused::UnknownRegion | Refused::OutOfBounds => Status::OutOfBounds,
        Refused::BadLength => Status::BadLength,
        Refused::Ended(_) => Status::Gone,
    }
}

impl Lease for CowbirdNode {
    fn adapter_cpu(&self) -> Result<Option<Nanos>, Gone> {
        CowbirdNode::adapter_cpu(self).map(Some)
    }
}

/// Starts a compute node with one thread's rings.
pub(super) fn open(attachment: Attachment, shape: Shape) -> Result<Opened, RemoteError> {
    let pool = attachment.memory("a pool")?.clone();
    let mtu_bytes = attachment.adapter.mtu.bytes();
    let layout = Layout {
        entries: (shape.reads.count + shape.writes.count + 1).next_power_of_two().max(256),
        request_bytes: shape.writes.ring_bytes(),
        response_bytes: shape.reads.ring_bytes(),
    };
    let node = NodeConfig {
        interface: attachment.interface,
        ip: attachment.ip,
        adapter: attachment.adapter,
        loss: Loss::default(),
        pool,
        engines: attachment.engines,
        layout,
        threads: 1,
        region_bytes: vec![shape.region_bytes],
    };
    let (node, mut clients) = CowbirdNode::start(node)?;
    let client = clients.pop().ok_or_else(|| RemoteError::Broken("the node has no thread".into()))?;
    let mut client: ThreadClient = client;
    let poll = client.poll_create();
    let abilities = Abilities {
        region_bytes: shape.region_bytes,
        read_bytes_max: shape.reads.longest_bytes,
        write_bytes_max: shape.writes.longest_bytes,
        whole_bytes: mtu_bytes,
        edge_bytes: u64::MAX,
        pieces_max: 0,
        under_way_max: (shape.reads.count + shape.writes.count) as usize,
        atomics: &[],
        words: WordOrder::LittleEndian,
        writes: Written::There,
        order: Order::ReadsAfterWrites,
    };
    let buffer = vec![0; shape.reads.longest_bytes as usize];
    let (reads, writes) = (VecDeque::new(), VecDeque::new());
    let rings = Rings { client, abilities, poll, reads, writes, buffer };
    Ok((Box::new(rings), Held(Some(Box::new(node)))))
}
