//! Tests of `client`, in a file of their own: the model includes that one.

use crate::words;
use crate::{BadSet, Client, Kind, Layout, PollError, PollId, Refused, RequestId};
use p4rack_wire::cowbird::{ENTRIES_AT, RED_AT, Red};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const LAYOUT: Layout = Layout { entries: 2, request_bytes: 16, response_bytes: 64 };

struct Rings {
    client: Client<Arc<[AtomicU64]>>,
    red: Red,
}

/// Fresh memory of this many words.
fn memory(words: u64) -> Arc<[AtomicU64]> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

impl Rings {
    fn new() -> Rings {
        Rings::of(LAYOUT)
    }

    fn of(layout: Layout) -> Rings {
        let words = memory(layout.bytes() / 8);
        let client = Client::new(words, layout, vec![64]).expect("sizes are powers of two");
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

    /// Requests a word, and the engine brings it immediately.
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

/// A wait ends with the requested number of responses, and when no more can come, long before its time.
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

#[test]
fn a_set_needs_enough_fresh_memory() {
    let need = LAYOUT.bytes();
    let new = |words: Arc<[AtomicU64]>, layout| Client::new(words, layout, vec![64]).map(|_| ());
    let used = |at: u64| {
        let words = memory(need / 8);
        words[at as usize].store(1, Ordering::Relaxed);
        new(words, LAYOUT)
    };
    assert_eq!(new(memory(need / 8), LAYOUT), Ok(()));
    let small = BadSet::TooSmall { need, have: need - 8 };
    assert_eq!(new(memory(need / 8 - 1), LAYOUT), Err(small));
    assert_eq!(small.to_string(), format!("the rings need {need} bytes, the memory has {}", need - 8));
    let odd = new(memory(need), Layout { entries: 3, ..LAYOUT }).unwrap_err();
    assert!(matches!(odd, BadSet::Layout(why) if why == odd.to_string()));
    assert_eq!(
        [used(0), used(RED_AT / 8 + 5)],
        [Err(BadSet::Used); 2],
        "the first and the last word of the blocks"
    );
    assert_eq!(used(ENTRIES_AT / 8), Ok(()), "rings may hold anything");
    assert!(BadSet::Used.to_string().contains("take fresh memory"));
}

#[test]
fn refusals_say_what_to_do() {
    for (refused, words) in [
        (Refused::RequestsFull, "the request ring is full: try again"),
        (Refused::RequestDataFull, "the request data ring is full: try again"),
        (Refused::ResponseDataFull, "fetch responses first"),
        (Refused::UnknownRegion, "no such region"),
        (Refused::OutOfBounds, "beyond the region's end"),
        (Refused::BadLength, "1 byte to half of a data ring"),
        (Refused::Ended(3), "with code 3: set it up anew"),
    ] {
        assert!(refused.to_string().contains(words), "{refused}");
    }
    for (error, words) in [
        (PollError::UnknownGroup, "no such notification group"),
        (PollError::UnknownRequest, "never made, or its response was fetched"),
        (PollError::Twice, "in the group already"),
        (PollError::Ended(3), "with code 3: set it up anew"),
        (PollError::Corrupt, "more is done than was asked for"),
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// Regions of 64 bytes, and data rings of 16 and 64 bytes.
#[test]
fn requests_stay_in_their_region_and_half_of_a_ring() {
    for (region, at, length, refused) in [
        (0, 32, 32, None),
        (0, 63, 1, None),
        (0, 33, 32, Some(Refused::OutOfBounds)),
        (0, 64, 1, Some(Refused::OutOfBounds)),
        (0, u64::MAX, 1, Some(Refused::OutOfBounds)),
        (0, 0, 33, Some(Refused::BadLength)),
        (0, 0, 0, Some(Refused::BadLength)),
        (1, 0, 8, Some(Refused::UnknownRegion)),
    ] {
        let mut rings = Rings::new();
        assert_eq!(rings.client.async_read(region, at, length).err(), refused, "{length} bytes at {at}");
        assert_eq!(rings.client.outstanding(), u64::from(refused.is_none()));
    }
    for (at, length, refused) in [
        (56, 8, None),
        (57, 8, Some(Refused::OutOfBounds)),
        (0, 9, Some(Refused::BadLength)),
        (0, 0, Some(Refused::BadLength)),
    ] {
        let mut rings = Rings::new();
        assert_eq!(
            rings.client.async_write(0, &vec![1; length], at).err(),
            refused,
            "{length} bytes at {at}"
        );
    }
}

/// Room comes back in the order in which it was taken, and the engine learns of it.
#[test]
fn response_data_are_free_once_they_and_all_before_are_fetched() {
    let mut rings = Rings::of(Layout { entries: 4, ..LAYOUT });
    let poll = rings.client.poll_create();
    let read = |rings: &mut Rings, length| rings.client.async_read(0, 0, length);
    let ids = [read(&mut rings, 32).unwrap(), read(&mut rings, 32).unwrap()];
    assert_eq!(read(&mut rings, 8), Err(Refused::ResponseDataFull));
    rings.tell(|red| (red.request_head, red.read_progress, red.response_data_tail) = (2, 2, 64));
    let free = |rings: &mut Rings, id| {
        assert_eq!(rings.client.poll_add(poll, id), Ok(()));
        assert_eq!(rings.fetch(poll), [id]);
        // The green block: its fourth word is the head of the response data.
        u64::from_be(rings.client.words()[3].load(Ordering::Relaxed))
    };
    assert_eq!(free(&mut rings, ids[1]), 0, "the first one's bytes are still there");
    assert_eq!(read(&mut rings, 8), Err(Refused::ResponseDataFull));
    assert_eq!(free(&mut rings, ids[0]), 64);
    let more = [32, 24, 8].map(|length| read(&mut rings, length).is_ok());
    assert_eq!(more, [true; 3], "to the last byte");
    assert_eq!(read(&mut rings, 8), Err(Refused::ResponseDataFull));
}

/// Reads that are not fetched need a slot each, also small ones.
#[test]
fn there_are_as_many_unfetched_reads_as_entries() {
    let mut rings = Rings::new();
    let poll = rings.client.poll_create();
    let ids = [rings.read(), rings.read()];
    assert_eq!(rings.client.async_read(0, 0, 8), Err(Refused::ResponseDataFull));
    assert_eq!(rings.client.poll_add(poll, ids[0]), Ok(()));
    assert_eq!(rings.fetch(poll), [ids[0]]);
    assert!(rings.client.async_read(0, 0, 8).is_ok());
}

#[test]
fn a_response_has_its_own_bytes() {
    let mut rings = Rings::new();
    let poll = rings.client.poll_create();
    let id = rings.client.async_read(0, 5, 11).unwrap();
    rings.client.poll_add(poll, id).unwrap();
    let bytes: Vec<u8> = (1..=16).collect();
    words::write(rings.client.words(), LAYOUT.response_data_at() as usize, &bytes).unwrap();
    rings.tell(|red| (red.request_head, red.read_progress, red.response_data_tail) = (1, 1, 16));
    let mut seen = false;
    let count = rings.client.poll(poll, 1, |response| {
        let data = response.data.expect("it is a read");
        assert!(data.len() == 11 && !data.is_empty());
        assert_eq!(data.to_vec(), bytes[..11]);
        let (mut first, mut more) = ([0; 4], [99; 13]);
        data.copy_to(&mut first);
        data.copy_to(&mut more);
        assert_eq!((&first[..], &more[..11], &more[11..]), (&bytes[..4], &bytes[..11], &[99; 2][..]));
        seen = true;
    });
    assert!(seen && count == Ok(1));
}

#[test]
fn groups_hold_requests_that_were_made() {
    let mut rings = Rings::new();
    let polls = [(); 2].map(|()| rings.client.poll_create());
    assert_eq!(polls.map(PollId::number), [0, 1]);
    let (poll, unknown) = (PollId::of_number(1), PollId::of_number(2));
    assert_eq!(poll, polls[1]);
    let id = rings.read();
    for other in [RequestId::new(Kind::Read, 0, 2), RequestId::new(Kind::Write, 0, 1)] {
        assert_eq!(rings.client.poll_add(poll, other), Err(PollError::UnknownRequest), "{other:?}");
    }
    assert_eq!(rings.client.poll_add(unknown, id), Err(PollError::UnknownGroup));
    assert_eq!(rings.client.poll_remove(unknown, id), Err(PollError::UnknownGroup));
    assert_eq!(rings.client.poll(unknown, 1, |_| ()), Err(PollError::UnknownGroup));
    assert_eq!(rings.client.poll_add(poll, id), Ok(()));
    assert_eq!(
        (rings.client.poll_remove(poll, id), rings.client.poll_remove(poll, id)),
        (Ok(true), Ok(false))
    );
    assert_eq!(rings.fetch(poll), []);
}

#[test]
fn writes_come_first_and_no_more_than_asked_for() {
    let mut rings = Rings::new();
    let poll = rings.client.poll_create();
    let read = rings.client.async_read(0, 0, 8).unwrap();
    let write = rings.client.async_write(0, &[1; 8], 0).unwrap();
    assert_eq!((rings.client.poll_add(poll, read), rings.client.poll_add(poll, write)), (Ok(()), Ok(())));
    assert_eq!(rings.fetch(poll), [], "neither is done");
    rings.tell(|red| (red.request_head, red.read_progress, red.write_progress) = (2, 1, 1));
    let mut ids = Vec::new();
    for (max, fetched) in [(0, 0), (1, 1), (1, 1), (1, 0)] {
        let count = rings.client.poll(poll, max, |response| ids.push((response.id, response.data.is_some())));
        assert_eq!(count, Ok(fetched));
    }
    assert_eq!(ids, [(write, false), (read, true)]);
}

#[test]
fn a_wait_that_is_over_says_whether_the_set_has_ended() {
    let mut rings = Rings::new();
    let poll = rings.client.poll_create();
    for _ in 0..2 {
        let id = rings.client.async_read(0, 0, 8).unwrap();
        rings.client.poll_add(poll, id).unwrap();
    }
    let wait = |rings: &mut Rings| rings.client.poll_wait(poll, 2, Duration::ZERO, |_| ());
    assert_eq!((wait(&mut rings), rings.client.outstanding()), (Ok(0), 2));
    assert_eq!(rings.client.async_write(0, &[1; 8], 0), Err(Refused::RequestsFull));
    rings.tell(|red| (red.request_head, red.read_progress, red.refusal) = (1, 1, 3));
    assert_eq!(rings.client.outstanding(), 1);
    assert_eq!([wait(&mut rings), wait(&mut rings)], [Ok(1), Err(PollError::Ended(3))], "first what is done");
    assert!(rings.client.async_write(0, &[1; 8], 0).is_ok(), "there is an entry");
    assert_eq!(rings.client.async_write(0, &[1; 8], 0), Err(Refused::Ended(3)));
}

/// Responses that arrive during a wait count too.
#[test]
fn a_wait_ends_with_as_many_responses_as_were_asked_for() {
    let mut rings = Rings::of(Layout { entries: 4, ..LAYOUT });
    let poll = rings.client.poll_create();
    for _ in 0..4 {
        let id = rings.client.async_read(0, 0, 8).unwrap();
        rings.client.poll_add(poll, id).unwrap();
    }
    rings.tell(|red| (red.request_head, red.read_progress) = (1, 1));
    let words = rings.client.words().clone();
    let long = Duration::from_secs(1 << 20);
    // All others are done once the first response is there.
    let count = rings.client.poll_wait(poll, 3, long, |_| {
        words[(RED_AT / 8) as usize + 4].store(4u64.to_be(), Ordering::Relaxed);
    });
    assert_eq!(count, Ok(3));
    assert_eq!(rings.fetch(poll).len(), 1);
}
