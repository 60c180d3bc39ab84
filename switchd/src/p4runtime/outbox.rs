//! Messages waiting for one controller, limited in number and bytes.

use super::limits::Permit;
use prost::Message;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status;

/// Maximum messages waiting for one controller.
const MESSAGES: usize = 1024;
/// Part of these reserved for messages other than packet-ins, digests and errors.
const RESERVE: usize = 64;
/// Maximum bytes of packet-ins, digests, idle notifications and errors waiting for one controller.
const BYTES: usize = 2 << 20;
/// The same limit for adding an error, because any client can provoke errors.
const ERROR_BYTES: usize = 64 << 10;

type Item<M> = Result<M, Status>;

/// The sending end for a stream's messages.
#[derive(Debug)]
pub struct Outbox<M> {
    sender: mpsc::Sender<Item<M>>,
    bytes: Arc<AtomicUsize>,
}

impl<M> Clone for Outbox<M> {
    fn clone(&self) -> Outbox<M> {
        Outbox { sender: self.sender.clone(), bytes: self.bytes.clone() }
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Stored<M> {
    receiver: mpsc::Receiver<Item<M>>,
    bytes: Arc<AtomicUsize>,
    _permit: Option<Arc<Permit>>,
}

fn bytes_of<M: Message>(item: &Item<M>) -> usize {
    item.as_ref().map_or(0, Message::encoded_len)
}

impl<M: Message> Outbox<M> {
    /// An empty queue for the stream with this permit.
    pub fn new(permit: Arc<Permit>) -> (Outbox<M>, Stored<M>) {
        Outbox::with(Some(permit))
    }

    fn with(permit: Option<Arc<Permit>>) -> (Outbox<M>, Stored<M>) {
        let (sender, receiver) = mpsc::channel(MESSAGES);
        let bytes = Arc::new(AtomicUsize::new(0));
        (Outbox { sender, bytes: bytes.clone() }, Stored { receiver, bytes, _permit: permit })
    }

    /// Sends a message that may be dropped. Returns whether there was room.
    pub fn offer(&self, message: M) -> bool {
        self.offer_within(BYTES, message)
    }

    /// Sends an error, which is dropped first if a controller does not read. Returns whether there was room.
    pub fn offer_error(&self, message: M) -> bool {
        self.offer_within(ERROR_BYTES, message)
    }

    fn offer_within(&self, most: usize, message: M) -> bool {
        let waiting = self.bytes.load(Ordering::Relaxed);
        let has_room = self.sender.capacity() > RESERVE && waiting + message.encoded_len() <= most;
        has_room && self.send(Ok(message))
    }

    /// Sends a message that must not be dropped. A controller that lets a thousand messages wait has stopped
    /// reading, and its keep-alive will end the stream.
    pub fn send(&self, item: Item<M>) -> bool {
        let bytes = bytes_of(&item);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let sent = self.sender.try_send(item).is_ok();
        if !sent {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        sent
    }
}

impl<M: Message> Stream for Stored<M> {
    type Item = Item<M>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item<M>>> {
        let next = self.receiver.poll_recv(context);
        if let Poll::Ready(Some(item)) = &next {
            self.bytes.fetch_sub(bytes_of(item), Ordering::Relaxed);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::v1::{PacketIn, StreamMessageResponse, stream_message_response::Update};
    use tokio_stream::StreamExt;

    fn packet(bytes: usize) -> StreamMessageResponse {
        let packet = PacketIn { payload: vec![0; bytes], metadata: Vec::new() };
        StreamMessageResponse { update: Some(Update::Packet(packet)) }
    }

    #[tokio::test]
    async fn bytes_and_messages_have_a_limit_and_taking_makes_room() {
        let (outbox, mut stored) = Outbox::with(None);
        assert!(outbox.offer(packet(BYTES - 100)));
        assert!(!outbox.offer(packet(200)), "too many bytes");
        assert!(outbox.send(Ok(packet(200))), "what matters has room");
        stored.next().await.unwrap().unwrap();
        assert!(outbox.offer(packet(200)));
        while outbox.offer(packet(1)) {}
        assert_eq!(outbox.sender.capacity(), RESERVE);
        for _ in 0..RESERVE {
            assert!(outbox.send(Ok(packet(1))));
        }
        assert!(!outbox.send(Ok(packet(1))));
        while !stored.receiver.is_empty() {
            stored.next().await.unwrap().unwrap();
        }
        assert_eq!(stored.bytes.load(Ordering::Relaxed), 0);
    }
}
