//! Tests of `client`, in a file of their own: the model includes that one.

use crate::words;
use crate::{Client, Layout, PollError, PollId, Refused};
use p4rack_wire::cowbird::{RED_AT, Red};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

const LAYOUT: Layout = Layout { entries: 2, request_bytes: 16, response_bytes: 64 };

struct Rings {
    client: Client<Arc<[AtomicU64]>>,
    red: Red,
}

impl Rings {
    fn new() -> Rings {
        let words = (0..LAYOUT.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
        let client = Client::new(words, LAYOUT, vec![64]).expect("sizes are powers of two");
        let red = Red::parse(&[0; Red::BYTES]).expect("it has all of its bytes");
        Rings { client, red }
    }

    /// Does as the engine.
    fn tell(&mut self, change: impl FnOnce(&mut Red)) {
        change(&mut self.red);
        let mut block = [0; Red::BYTES];
        self.red.emit(&mut block);
        words::write(self.client.words(), RED_AT as usize, &block).expect("the block is in the set");
    }

    /// Asks for a word and has the engine bring it at once.
    fn read(&mut self) -> crate::RequestId {
        let id = self.client.async_read(0, 0, 8).expect("there is room");
        self.tell(|red| {
            red.request_head += 1;
            red.read_progress += 1;
            red.response_data_tail += 8;
        });
        id
    }

    fn fetch(&mut self, poll: PollId) -> Vec<crate::RequestId> {
        let mut ids = Vec::new();
        self.client.poll(poll, usize::MAX, |response| ids.push(response.id)).expect("the group exists");
        ids
    }
}

#[test]
fn a_response_is_fetched_once_also_when_its_slot_is_a_later_reads() {
    let mut rings = Rings::new();
    let [first, second] = [(); 2].map(|()| rings.client.poll_create());
    let id = rings.read();
    for poll in [first, second] {
        assert_eq!(rings.client.poll_add(poll, id), Ok(()));
    }
    assert_eq!(rings.client.poll_add(first, id), Err(PollError::Twice));
    assert_eq!(rings.fetch(first), [id]);
    assert_eq!(rings.client.poll_add(first, id), Err(PollError::UnknownRequest));
    // The third read has the first one's slot.
    let later = [rings.read(), rings.read()];
    assert_eq!(rings.fetch(second), []);
    for id in later {
        assert_eq!(rings.client.poll_add(first, id), Ok(()));
    }
    assert_eq!(rings.fetch(first), later);
}

#[test]
fn heads_ahead_of_their_tails_free_nothing() {
    let mut rings = Rings::new();
    let write = |rings: &mut Rings| rings.client.async_write(0, &[1; 8], 0);
    assert!(write(&mut rings).is_ok() && write(&mut rings).is_ok());
    rings.tell(|red| red.request_data_head = 1 << 40);
    assert_eq!([(); 2].map(|()| write(&mut rings)), [Err(Refused::RequestDataFull); 2]);
    rings.tell(|red| (red.request_data_head, red.request_head) = (16, 1 << 40));
    assert_eq!([(); 2].map(|()| write(&mut rings)), [Err(Refused::RequestsFull); 2]);
    assert_eq!(rings.client.outstanding(), 0);
    rings.tell(|red| red.request_head = 2);
    assert!(write(&mut rings).is_ok());
    rings.tell(|red| red.write_progress = 4);
    let poll = rings.client.poll_create();
    assert_eq!(rings.client.poll(poll, 1, |_| ()), Err(PollError::Corrupt));
}

/// A write takes the last free byte of the ring, even if the engine freed it after the client last looked.
#[test]
fn request_data_may_fill_its_ring() {
    let mut rings = Rings::new();
    let write = |rings: &mut Rings| rings.client.async_write(0, &[1; 8], 0);
    assert!(write(&mut rings).is_ok() && write(&mut rings).is_ok());
    rings.tell(|red| (red.request_head, red.request_data_head) = (1, 7));
    assert_eq!(write(&mut rings), Err(Refused::RequestDataFull));
    rings.tell(|red| red.request_data_head = 8);
    assert!(write(&mut rings).is_ok());
}

/// A wait ends with as many responses as were asked for, and when there are no more to come, long before its time.
#[test]
fn a_wait_ends_with_the_last_response() {
    let (mut rings, long) = (Rings::new(), Duration::from_secs(1 << 20));
    let poll = rings.client.poll_create();
    for _ in 0..2 {
        let id = rings.read();
        assert_eq!(rings.client.poll_add(poll, id), Ok(()));
    }
    assert_eq!(rings.client.poll_wait(poll, 1, long, |_| ()), Ok(1));
    assert_eq!(rings.client.poll_wait(poll, 5, long, |_| ()), Ok(1));
}
