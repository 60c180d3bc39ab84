//! A region over memory that answers late, in pieces, or wrongly.

use super::*;
use p4rack_hosts::remote::{Abilities, RemoteError, UnderWay, WordOrder};
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Requests in order.
enum Asked {
    Read(u64, u64, u32),
    Write(u64, u64, Vec<u8>),
}

/// Memory that executes requests only during a wait, one or two at a time.
struct Late {
    memory: Arc<Mutex<Vec<u8>>>,
    asked: VecDeque<Asked>,
    shape: Shape,
    abilities: Abilities,
    /// Requests still answered before an error.
    good: usize,
}

impl Late {
    fn under_way(&self) -> (u64, u64) {
        let reads = self.asked.iter().filter(|asked| matches!(asked, Asked::Read(..))).count() as u64;
        (reads, self.asked.len() as u64 - reads)
    }
}

fn abilities(shape: Shape) -> Abilities {
    Abilities {
        region_bytes: shape.region_bytes,
        read_bytes_max: shape.reads.longest_bytes,
        write_bytes_max: shape.writes.longest_bytes,
        whole_bytes: 1,
        edge_bytes: u64::MAX,
        pieces_max: 0,
        under_way_max: 100,
        atomics: &[],
        words: WordOrder::BigEndian,
        writes: Written::There,
        order: Order::ReadsAfterWrites,
    }
}

impl Remote for Late {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation).unwrap();
        let (reads, writes) = self.under_way();
        match operation {
            Operation::Read { at, bytes } => {
                assert!(reads < self.shape.reads.count);
                self.asked.push_back(Asked::Read(tag, at, bytes));
            }
            Operation::Write { at, bytes } => {
                assert!(writes < self.shape.writes.count);
                self.asked.push_back(Asked::Write(tag, at, bytes.to_vec()));
            }
            Operation::Gather { .. } | Operation::Scatter { .. } | Operation::Modify { .. } => unreachable!(),
        }
        Ok(())
    }

    fn poll(&mut self, _: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        let mut memory = self.memory.lock().unwrap();
        for _ in 0..1 + self.asked.len() % 2 {
            let Some(asked) = self.asked.pop_front() else { break };
            let Some(good) = self.good.checked_sub(1) else {
                return Err(RemoteError::Broken("the pool is lost".into()));
            };
            self.good = good;
            match asked {
                Asked::Read(tag, at, bytes) => {
                    ended(tag, Outcome::Read(&memory[at as usize..][..bytes as usize]));
                }
                Asked::Write(tag, at, bytes) => {
                    memory[at as usize..][..bytes.len()].copy_from_slice(&bytes);
                    ended(tag, Outcome::Written);
                }
            }
        }
        Ok(())
    }
}

const REGION_BYTES: u64 = 600;

fn region(shape: Shape, good: usize) -> (Region, Arc<Mutex<Vec<u8>>>) {
    let memory = Arc::new(Mutex::new(vec![0; shape.region_bytes as usize]));
    let late =
        Late { memory: memory.clone(), asked: VecDeque::new(), shape, abilities: abilities(shape), good };
    (Region::new(Box::new(late), shape).unwrap(), memory)
}

fn small() -> Shape {
    Shape { region_bytes: REGION_BYTES, reads: UnderWay::of(3, 16), writes: UnderWay::of(2, 10) }
}

#[derive(Clone, Debug)]
enum Step {
    SetLen(u64),
    Write(u64, Vec<u8>),
    Read(u64, usize),
    Sync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = 0..REGION_BYTES;
    let step = prop_oneof![
        (0..REGION_BYTES + 50).prop_map(Step::SetLen),
        (at.clone(), prop::collection::vec(1u8.., 0..80)).prop_map(|(at, data)| Step::Write(at, data)),
        (at, 0usize..120).prop_map(|(at, bytes)| Step::Read(at, bytes)),
        Just(Step::Sync),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Compares a region with a vector: the same bytes, and the same refusals.
    #[test]
    fn it_is_as_good_as_a_file(steps in steps()) {
        let (mut region, memory) = region(small(), usize::MAX);
        let mut file: Vec<u8> = Vec::new();
        for step in steps {
            match step {
                Step::SetLen(len) => {
                    prop_assert_eq!(region.set_len(len).is_ok(), len <= REGION_BYTES);
                    if len <= REGION_BYTES {
                        file.resize(len as usize, 0);
                    }
                }
                Step::Write(at, data) => {
                    let fits = at as usize + data.len() <= file.len();
                    prop_assert_eq!(region.write(at, &data).is_ok(), fits);
                    if fits {
                        file[at as usize..][..data.len()].copy_from_slice(&data);
                    }
                }
                Step::Read(at, bytes) => {
                    let mut out = vec![0xaa; bytes];
                    let fits = at as usize + bytes <= file.len();
                    prop_assert_eq!(region.read(at, &mut out).is_ok(), fits);
                    if fits {
                        prop_assert_eq!(&out, &file[at as usize..][..bytes]);
                    }
                }
                Step::Sync => {
                    region.sync().unwrap();
                    prop_assert_eq!(&memory.lock().unwrap()[..file.len()], &file[..], "sync returned too early");
                }
            }
            prop_assert_eq!(region.len(), file.len() as u64);
        }
    }
}

#[test]
fn after_an_error_nothing_is_believed() {
    let (mut region, _) = region(small(), 2);
    region.set_len(100).unwrap();
    region.write(0, &[1; 20]).unwrap();
    let first = region.write(20, &[1; 40]).unwrap_err();
    assert_eq!(first.to_string(), "the pool is lost");
    for error in [region.sync().unwrap_err(), region.read(0, &mut [0]).unwrap_err()] {
        assert_eq!(error.to_string(), "remote memory failed before: the pool is lost");
    }
}

#[test]
fn what_nobody_asked_for_is_an_error() {
    struct Chatty(Abilities);
    impl Remote for Chatty {
        fn abilities(&self) -> &Abilities {
            &self.0
        }
        fn submit(&mut self, _: u64, _: Operation<'_>) -> Result<(), Status> {
            Ok(())
        }
        fn poll(&mut self, _: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
            ended(0, Outcome::Read(&[0; 64]));
            Ok(())
        }
    }
    let chatty = || Box::new(Chatty(Abilities { pieces_max: 64, ..abilities(small()) }));
    let mut region = Region::new(chatty(), small()).unwrap();
    region.set_len(10).unwrap();
    assert_eq!(region.read(0, &mut [0; 4]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    let nothing = Shape { reads: UnderWay::of(0, 16), ..small() };
    assert!(Region::new(chatty(), nothing).is_err());
    let sends = Abilities { writes: Written::Sent, ..abilities(small()) };
    assert!(Region::new(Box::new(Chatty(sends)), small()).is_err());
}
