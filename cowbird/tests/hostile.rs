//! The client library beside an engine that writes anything anywhere in the set: it never panics, and its statements
//! stay true.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_cowbird::{Client, Kind, Layout, PollError, Refused, RequestId, words};
use p4rack_wire::cowbird::{Entry, RED_AT, Red};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const LAYOUT: Layout = Layout { entries: 4, request_bytes: 64, response_bytes: 64 };
/// Bytes of each region.
const REGIONS: [u64; 2] = [64, 24];

#[derive(Clone, Debug)]
enum Step {
    Read {
        region: u16,
        at: u64,
        length: u32,
    },
    Write {
        region: u16,
        at: u64,
        length: usize,
    },
    /// A word of the red block: far from the true value, or near it.
    Tell {
        word: usize,
        value: u64,
    },
    /// All requests are done.
    Finish,
    /// Bytes anywhere in the set.
    Ruin {
        at: usize,
        bytes: Vec<u8>,
    },
    Fetch {
        max: usize,
    },
    /// The newest request leaves its group, and comes back.
    Regroup,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let near = prop_oneof![0..12u64, any::<u64>(), Just(u64::MAX), Just(1 << 47)];
    let bytes = prop::collection::vec(any::<u8>(), 1..80);
    let step = prop_oneof![
        4 => (0..3u16, 0..80u64, 0..40u32).prop_map(|(region, at, length)| Step::Read { region, at, length }),
        4 => (0..3u16, 0..80u64, 0..40usize).prop_map(|(region, at, length)| Step::Write { region, at, length }),
        4 => (0..6usize, near).prop_map(|(word, value)| Step::Tell { word, value }),
        2 => Just(Step::Finish),
        1 => (0..LAYOUT.bytes() as usize, bytes).prop_map(|(at, bytes)| Step::Ruin { at, bytes }),
        4 => (0..6usize).prop_map(|max| Step::Fetch { max }),
        1 => Just(Step::Regroup),
    ];
    prop::collection::vec(step, 1..80)
}

/// The thread's record of a request.
struct Asked {
    id: RequestId,
    length: usize,
    /// Where in the response ring a read's bytes will be.
    place: std::ops::Range<u64>,
}

struct World {
    client: Client<Arc<[AtomicU64]>>,
    reads: VecDeque<Asked>,
    writes: VecDeque<Asked>,
    made: u64,
    /// Numbers of the newest read and write.
    newest: [u64; 2],
}

impl World {
    /// Writes a true engine's words for the end of all requests, except the free space of request data.
    fn finish(&self) {
        let [reads, writes] = self.newest;
        for (word, value) in [(0, self.made), (3, writes), (4, reads), (5, 0)] {
            self.write(RED_AT as usize + 8 * word, &value.to_be_bytes());
        }
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        let end = bytes.len().min(LAYOUT.bytes() as usize - at);
        words::write(self.client.words(), at, &bytes[..end]).unwrap();
    }

    /// The entry of an accepted request describes it, within the rings and beside all parts in use.
    fn accepted(&mut self, id: RequestId, length: usize) {
        let mut bytes = [0; Entry::BYTES];
        words::read(self.client.words(), LAYOUT.entry_at(self.made) as usize, &mut bytes).unwrap();
        let entry = Entry::parse(&bytes).unwrap();
        assert_eq!((entry.request_id, entry.length as usize), (id.0, length));
        let (address, first, last) = match id.kind() {
            Kind::Read => (entry.resp_addr, LAYOUT.response_data_at(), LAYOUT.bytes()),
            Kind::Write => (entry.req_addr, LAYOUT.request_data_at(), LAYOUT.response_data_at()),
        };
        let place = address..address + length as u64;
        assert!(first <= place.start && place.end <= last, "{entry:?}");
        let beside = |other: &Asked| other.place.end <= place.start || place.end <= other.place.start;
        let asked = match id.kind() {
            Kind::Read => {
                // A response that was not fetched is never overwritten, with any words of the engine.
                assert!(self.reads.iter().all(beside), "{entry:?}");
                &mut self.reads
            }
            Kind::Write => &mut self.writes,
        };
        asked.push_back(Asked { id, length, place });
        self.newest[usize::from(id.kind() == Kind::Write)] = id.number();
        self.made += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_an_engine_writes_confuses_a_client(steps in steps()) {
        let words = (0..LAYOUT.bytes() / 8).map(|_| AtomicU64::new(0)).collect();
        let mut client = Client::new(words, LAYOUT, REGIONS.to_vec()).unwrap();
        let poll = client.poll_create();
        let mut world = World { client, reads: VecDeque::new(), writes: VecDeque::new(), made: 0, newest: [0; 2] };
        for step in steps {
            let asked = match step {
                Step::Read { region, at, length } => {
                    Some((world.client.async_read(region, at, length), region, at, length as usize))
                }
                Step::Write { region, at, length } => {
                    Some((world.client.async_write(region, &vec![7; length], at), region, at, length))
                }
                Step::Tell { word, value } => {
                    world.write(RED_AT as usize + 8 * word, &value.to_be_bytes());
                    None
                }
                Step::Finish => {
                    world.finish();
                    None
                }
                Step::Ruin { at, bytes } => {
                    world.write(at, &bytes);
                    None
                }
                Step::Fetch { max } => {
                    let mut red = [0; Red::BYTES];
                    words::read(world.client.words(), RED_AT as usize, &mut red).unwrap();
                    let red = Red::parse(&red).unwrap();
                    let mut fetched = Vec::new();
                    let told = world.client.poll(poll, max, |response| {
                        fetched.push((response.id, response.data.map(|data| data.to_vec().len())));
                    });
                    let lies = red.read_progress > world.newest[0] || red.write_progress > world.newest[1];
                    prop_assert_eq!(told, if lies { Err(PollError::Corrupt) } else { Ok(fetched.len()) });
                    prop_assert!(fetched.len() <= max && (!lies || fetched.is_empty()));
                    for (id, length) in fetched {
                        let (queue, progress) = match id.kind() {
                            Kind::Read => (&mut world.reads, red.read_progress),
                            Kind::Write => (&mut world.writes, red.write_progress),
                        };
                        // Each once, in order, of the requested length, and only those reported done.
                        let asked = queue.pop_front().unwrap();
                        prop_assert_eq!(asked.id, id);
                        prop_assert!(length.is_none_or(|length| length == asked.length) && id.is_done(progress));
                        prop_assert_eq!(length.is_some(), id.kind() == Kind::Read);
                    }
                    None
                }
                Step::Regroup => {
                    if let Some(id) = world.reads.back().map(|asked| asked.id) {
                        prop_assert_eq!(world.client.poll_remove(poll, id), Ok(true));
                        prop_assert_eq!(world.client.poll_add(poll, id), Ok(()));
                    }
                    None
                }
            };
            let Some((answer, region, at, length)) = asked else { continue };
            let sense = REGIONS.get(usize::from(region)).is_some_and(|size| at + length as u64 <= *size);
            match answer {
                Ok(id) => {
                    prop_assert!(sense && (1..=32).contains(&length));
                    world.accepted(id, length);
                    prop_assert_eq!(world.client.poll_add(poll, id), Ok(()));
                }
                Err(Refused::UnknownRegion) => prop_assert!(usize::from(region) >= REGIONS.len()),
                Err(Refused::OutOfBounds) => prop_assert!(!sense),
                Err(Refused::BadLength) => prop_assert!(!(1..=32).contains(&length)),
                // The engine's words decide about room and the end.
                Err(_) => {}
            }
        }
        // Once the engine writes true words, all requests end, and there is room.
        world.finish();
        let left = world.reads.len() + world.writes.len();
        prop_assert_eq!(world.client.poll(poll, usize::MAX, |_| ()), Ok(left));
        prop_assert!(world.client.async_read(0, 0, 32).is_ok());
    }
}
