//! A board against the plainest model of it: pages of each process in a map, and how each request ended.

use super::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

/// A client's step. Numbers choose among the existing objects.
#[derive(Clone, Debug)]
enum Step {
    Alloc {
        process: usize,
        large: bool,
        pages: u64,
        rights: u8,
    },
    Free {
        process: usize,
        page: usize,
        pages: u64,
    },
    Write {
        process: usize,
        page: usize,
        at: u64,
        data: Vec<u8>,
        index: u16,
    },
    Read {
        process: usize,
        page: usize,
        at: u64,
        bytes: u32,
    },
    Add {
        process: usize,
        page: usize,
        at: u64,
        add: u64,
    },
    Swap {
        process: usize,
        page: usize,
        at: u64,
        expected: u64,
        new: u64,
    },
    /// An earlier packet comes once more: as a copy, as a retry, or as an attempt that was late.
    Again {
        which: usize,
        attempt: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (process, page, at) = (0usize..2, 0usize..8, prop_oneof![0u64..64, 4_000u64..4_100]);
    let place = (process.clone(), page.clone(), at);
    let data = prop::collection::vec(any::<u8>(), 0..60);
    prop_oneof![
        3 => (process.clone(), any::<bool>(), 0u64..4, 0u8..5)
            .prop_map(|(process, large, pages, rights)| Step::Alloc { process, large, pages, rights }),
        2 => (process, page, 0u64..3).prop_map(|(process, page, pages)| Step::Free { process, page, pages }),
        5 => (place.clone(), data, 0u16..2)
            .prop_map(|((process, page, at), data, index)| Step::Write { process, page, at, data, index }),
        5 => (place.clone(), 0u32..200).prop_map(|((process, page, at), bytes)| Step::Read { process, page, at, bytes }),
        2 => (place.clone(), any::<u64>()).prop_map(|((process, page, at), add)| Step::Add { process, page, at, add }),
        2 => (place, 0u64..2, 0u64..2)
            .prop_map(|((process, page, at), expected, new)| Step::Swap { process, page, at, expected, new }),
        4 => (any::<usize>(), 0u8..3).prop_map(|(which, attempt)| Step::Again { which, attempt }),
    ]
}

/// A page as a process should see it.
#[derive(Clone, Debug)]
struct Page {
    rights: Rights,
    /// `None` before the first access.
    bytes: Option<Vec<u8>>,
}

struct Model {
    rig: Rig,
    grants: [Grant; 2],
    /// Pages by process and address.
    pages: [BTreeMap<u64, Page>; 2],
    /// Requests that were executed or refused by process, id and index, with the word of their answer.
    ended: BTreeMap<(usize, u64, u16), Result<Vec<u8>, Status>>,
    /// All packets that were sent, but calls.
    sent: Vec<(usize, Header, Vec<u8>)>,
    /// The id of the write whose parts are being sent.
    long_write: [u64; 2],
}

const RESERVED: [u32; 2] = [4, 0];
const LIMIT: u32 = 9;

impl Model {
    fn new(plant: Option<Plant>, zeroes: bool, index: Index) -> Model {
        // A run takes less than a second: nothing is forgotten.
        let config = Config { index, retry_keep: Nanos::from_secs(1), ..config() };
        let mut rig = Rig::planted(config, plant);
        rig.board.memory.zeroes = zeroes;
        let grants = RESERVED.map(|reserved| rig.board.begin(quotas(reserved, LIMIT)).unwrap());
        Model {
            rig,
            grants,
            pages: Default::default(),
            ended: BTreeMap::new(),
            sent: Vec::new(),
            long_write: [0; 2],
        }
    }

    fn address(&self, process: usize, page: usize, at: u64) -> u64 {
        let pages = &self.pages[process];
        let nth = pages.keys().nth(page % pages.len().max(1)).copied();
        nth.unwrap_or(PageSize::K4.address_of(1)) + at
    }

    /// Slots that both processes have a right to, after one of them has allocated pages.
    fn slots_with(&self, process: usize, size: PageSize, pages: u32) -> u32 {
        let count = |of: usize, other: PageSize| {
            let has =
                self.pages[of].keys().filter(|at| PageSize::of_address(**at) == Ok(other)).count() as u32;
            has + if (of, other) == (process, size) { pages } else { 0 }
        };
        let of = |of: usize| count(of, PageSize::K4).max(RESERVED[of]) + count(of, PageSize::K64);
        of(0) + of(1)
    }

    fn taken(&self, process: usize, size: PageSize) -> u32 {
        let is_taken =
            |(at, page): (&u64, &Page)| PageSize::of_address(*at) == Ok(size) && page.bytes.is_some();
        self.pages[process].iter().filter(|one| is_taken(*one)).count() as u32
    }

    /// The page's bytes from an address on, as an access should find them. Maps the page if this is its first
    /// access.
    fn access(
        &mut self,
        process: usize,
        address: u64,
        bytes: u32,
        rights: Rights,
    ) -> Result<&mut [u8], Status> {
        let size = PageSize::of_address(address).map_err(|_| Status::NoSuchAddress)?;
        let at = size.offset_of(address);
        if bytes == 0 || at + u64::from(bytes) > size.bytes() {
            return Err(Status::BadLength);
        }
        let start = address - at;
        let frames = self.rig.board.usage(size).frames;
        let all: u32 = (0..2).map(|process| self.taken(process, size)).sum();
        let reserved = |process: usize| if size == PageSize::K4 { RESERVED[process] } else { 0 };
        let promised: u32 =
            (0..2).map(|process| reserved(process).saturating_sub(self.taken(process, size))).sum();
        let has_frame = self.taken(process, size) < reserved(process) || frames - all > promised;
        let page = self.pages[process].get_mut(&start).ok_or(Status::NoSuchAddress)?;
        if !page.rights.include(rights) {
            return Err(Status::NotPermitted);
        }
        if page.bytes.is_none() && !has_frame {
            return Err(Status::NoMemory);
        }
        let contents = page.bytes.get_or_insert_with(|| vec![0; size.bytes() as usize]);
        Ok(&mut contents[at as usize..at as usize + bytes as usize])
    }

    /// Sends a packet of the fast path; the error describes a wrong answer.
    fn send(&mut self, process: usize, header: Header, data: Vec<u8>) -> Result<(), String> {
        let (status, answer, found) = self.rig.ask(&header, &data);
        let key = (process, header.id, header.index);
        let is_read = header.kind == Kind::Read as u8;
        let known = self.ended.get(&key).filter(|_| !is_read).cloned();
        let is_repeated = known.is_some();
        let wanted = known.unwrap_or_else(|| self.executes(process, &header, &data));
        if is_repeated != (answer.flags == flags::REPEATED) {
            return Err(format!("{header:?}: repeated is {}", !is_repeated));
        }
        let got = if status == Status::Done { Ok(found) } else { Err(status) };
        if got != wanted {
            return Err(format!("{header:?}: {got:?} instead of {wanted:?}"));
        }
        if !is_read {
            self.ended.insert(key, wanted);
        }
        self.sent.push((process, header, data));
        Ok(())
    }

    /// Applies the request to the model; returns its answer.
    fn executes(&mut self, process: usize, header: &Header, data: &[u8]) -> Result<Vec<u8>, Status> {
        let (address, length) = (header.address, header.length);
        let rights = |read, write| Rights { read, write };
        match Kind::of(header.kind).unwrap() {
            Kind::Read => {
                self.access(process, address, length, rights(true, false)).map(|bytes| bytes.to_vec())
            }
            Kind::Write => {
                self.access(process, address, length, rights(false, true))?.copy_from_slice(data);
                Ok(Vec::new())
            }
            _ if address % 8 != 0 => Err(Status::BadRequest),
            _ => {
                let word = self.access(process, address, 8, Rights::ALL)?;
                let old = word.to_vec();
                let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
                let new = match Atomic::of(header.code).unwrap() {
                    Atomic::FetchAdd => number(&old).wrapping_add(number(data)),
                    _ if old == data[..8] => number(&data[8..]),
                    _ => number(&old),
                };
                word.copy_from_slice(&new.to_le_bytes());
                Ok(old)
            }
        }
    }

    fn run(&mut self, step: Step) -> Result<(), String> {
        let grants = self.grants;
        match step {
            Step::Alloc { process, large, pages, rights } => {
                let size = if large { PageSize::K64 } else { PageSize::K4 };
                let rights = Rights::of(rights).unwrap_or(Rights::ALL);
                let has =
                    self.pages[process].keys().filter(|at| PageSize::of_address(**at) == Ok(size)).count();
                let fits = has as u64 + pages <= LIMIT.into();
                let slots = self.slots_with(process, size, pages as u32);
                let has_slots = u64::from(slots) <= self.rig.board.table().slots();
                let is_tight = self.rig.board.table().room().contains(&0);
                match self.rig.alloc(&grants[process], size, pages * size.bytes(), rights) {
                    Ok(address) if fits && has_slots && pages > 0 => {
                        for nth in 0..pages {
                            let page = Page { rights, bytes: None };
                            if self.pages[process].insert(address + nth * size.bytes(), page).is_some() {
                                return Err(format!("{address:#x} was given out twice"));
                            }
                        }
                    }
                    Err(Status::BadLength) if pages == 0 => {}
                    Err(Status::NoAddressSpace) if !has_slots => {}
                    Err(Status::NoMemory) if !fits && has_slots => {}
                    // No neighbouring pages whose buckets all have room. For one page there always is a bucket.
                    Err(Status::NoAddressSpace) if fits && pages > 1 && is_tight => {}
                    other => return Err(format!("alloc of {pages} pages: {other:?}")),
                }
            }
            Step::Free { process, page, pages } => {
                let address = self.address(process, page, 0);
                let size = PageSize::of_address(address).unwrap();
                let range = (0..pages).map(|nth| address + nth * size.bytes());
                let is_taken = range.clone().all(|at| self.pages[process].contains_key(&at));
                let wanted = match (pages, is_taken) {
                    (0, _) => Status::BadLength,
                    (_, true) => Status::Done,
                    (_, false) => Status::NoSuchAddress,
                };
                let status = self.rig.free(&grants[process], address, pages * size.bytes());
                if status != wanted {
                    return Err(format!(
                        "free of {pages} pages at {address:#x}: {status:?} instead of {wanted:?}"
                    ));
                }
                if status == Status::Done {
                    range.for_each(|at| drop(self.pages[process].remove(&at)));
                }
            }
            Step::Write { process, page, at, data, index } => {
                let address = self.address(process, page, at);
                let mut header =
                    self.rig.header(&grants[process], Kind::Write, 0, address, data.len() as u32);
                (header.index, header.packets) = (index, 2);
                // Part 1 is of the write of which part 0 was sent last.
                match index {
                    0 => self.long_write[process] = header.id,
                    _ => header.id = self.long_write[process],
                }
                return self.send(process, header, data);
            }
            Step::Read { process, page, at, bytes } => {
                let address = self.address(process, page, at);
                let header = self.rig.header(&grants[process], Kind::Read, 0, address, bytes);
                return self.send(process, header, Vec::new());
            }
            Step::Add { process, page, at, add } => {
                let (address, code) = (self.address(process, page, at), Atomic::FetchAdd as u8);
                let header = self.rig.header(&grants[process], Kind::Atomic, code, address, 8);
                return self.send(process, header, add.to_le_bytes().to_vec());
            }
            Step::Swap { process, page, at, expected, new } => {
                let (address, code) = (self.address(process, page, at), Atomic::CompareSwap as u8);
                let header = self.rig.header(&grants[process], Kind::Atomic, code, address, 16);
                return self.send(process, header, [expected.to_le_bytes(), new.to_le_bytes()].concat());
            }
            Step::Again { which, attempt } => {
                let Some(again) = self.sent.get(which % self.sent.len().max(1)).cloned() else {
                    return Ok(());
                };
                let (process, header, data) = again;
                return self.send(process, Header { attempt, ..header }, data);
            }
        }
        Ok(())
    }

    /// Nothing is left of the processes when they have ended.
    fn end(&mut self) -> Result<(), String> {
        for grant in self.grants {
            self.rig.board.end(grant.space, self.rig.now);
        }
        (0..20).for_each(|_| self.rig.pause());
        let board = &self.rig.board;
        let taken: u32 = [PageSize::K4, PageSize::K64]
            .map(|size| board.usage(size).taken + board.usage(size).promised)
            .iter()
            .sum();
        match (board.processes(), board.table().taken(), taken, board.next_timeout()) {
            (0, 0, 0, None) => Ok(()),
            left => Err(format!("processes, entries, frames, timeout at the end: {left:?}")),
        }
    }
}

/// Runs steps. The error says what the board does wrong.
fn check(plant: Option<Plant>, zeroes: bool, index: Index, steps: Vec<Step>) -> Result<(), String> {
    let mut model = Model::new(plant, zeroes, index);
    steps.into_iter().try_for_each(|step| model.run(step))?;
    model.end()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_board_is_memory_by_process(steps in prop::collection::vec(step(), 1..120), salted: bool) {
        let index = if salted { Index::Salted } else { Index::Mixed };
        check(None, true, index, steps).map_err(TestCaseError::fail)?;
    }
}

/// Runs with a planted bug.
const RUNS: usize = 100;

/// The model finds each planted bug by its effect. The last number is a floor for the runs that find it: about
/// half of the runs that did.
#[test]
fn planted_bugs_are_found() {
    let problems = |plant, zeroes, index| -> Vec<String> {
        let mut runner = TestRunner::deterministic();
        let steps = prop::collection::vec(step(), 100..120);
        let run = |_| check(plant, zeroes, index, steps.new_tree(&mut runner).unwrap().current()).err();
        (0..RUNS).filter_map(run).collect()
    };
    for index in [Index::Salted, Index::Mixed] {
        assert_eq!(problems(None, true, index), Vec::<String>::new());
    }
    let (salted, mixed) = (Index::Salted, Index::Mixed);
    for (name, plant, zeroes, index, words, floor) in [
        ("a page fault is forgotten", Some(Plant::FaultForgotten), true, salted, "instead of", 50),
        ("entries stay in the TLB", Some(Plant::StaleTlb), true, salted, "Err(Closing) instead of", 15),
        ("no retry memory", Some(Plant::NoRetryMemory), true, salted, "repeated is false", 50),
        ("no packet index", Some(Plant::RetryWithoutIndex), true, salted, "repeated is true", 50),
        ("a late original is executed", Some(Plant::LateOriginal), true, salted, "repeated is false", 50),
        ("rights are not checked", Some(Plant::NoRights), true, salted, "instead of Err(NotPermitted)", 45),
        // Frames begin with bytes of 238.
        ("frames are not zeroed", None, false, salted, "238, 238", 45),
        // Single pages of few processes rarely share a bucket, unless a hash scatters them.
        (
            "a full bucket is ignored",
            Some(Plant::BucketOverflow),
            true,
            mixed,
            "Err(NoSuchAddress) instead of",
            15,
        ),
    ] {
        let all = problems(plant, zeroes, index);
        let found = all.iter().filter(|problem| problem.contains(words)).count();
        println!("{name}: {found} of {RUNS}");
        assert!(
            found >= floor,
            "{name}: {found} of {RUNS} runs show `{words}`, and first: {:?}",
            all.first()
        );
    }
}
