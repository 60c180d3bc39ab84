//! Where versions say which write a read saw, an interval gives the search's answer.

use p4rack_history::{Act as _, Entry, Order, Outcome, Records, Word, linearizable};
use p4rack_wire::SplitMix;
use p4rack_wire::edm::Opcode;

/// Operations of a history, and the versions that its reads may claim to have found.
const OPERATIONS: u64 = 7;
const VERSIONS: u64 = 4;

/// A record that a thread uses, and the same as a word with a clock.
struct Both {
    records: Records,
    entries: Vec<Entry<Word>>,
    clock: u64,
    /// Reads under way: the entry, and the newest version at that time.
    reads: Vec<(usize, u64)>,
}

impl Both {
    fn new(records: Records) -> Both {
        Both { records, entries: Vec::new(), clock: 0, reads: Vec::new() }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn add(&mut self, act: Word) -> usize {
        let asked = self.tick();
        self.entries.push(Entry { asked, outcome: Outcome::Unknown, act });
        self.entries.len() - 1
    }

    fn end(&mut self, nth: usize) {
        self.entries[nth].outcome = Outcome::Known(self.tick());
    }

    fn write(&mut self) -> usize {
        let version = self.records.write(0);
        self.add(Word::Write(version))
    }

    fn read(&mut self) {
        let nth = self.add(Word::Read(0));
        self.reads.push((nth, self.records.newest(0)));
    }

    /// Ends a read with a version. Returns whether the interval has it.
    fn found(&mut self, which: usize, version: u64) -> bool {
        let (nth, least) = self.reads.remove(which);
        self.entries[nth].act = Word::Read(version);
        self.end(nth);
        self.records.found(0, least, version).is_ok()
    }

    fn explained(&self, order: Order) -> bool {
        linearizable(&self.entries, &0, order).is_ok()
    }
}

/// Both answers about many random histories have to be the same, and each has to occur.
fn agree(mut history: impl FnMut(&mut SplitMix) -> (bool, bool, String)) {
    let (mut random, mut right) = (SplitMix(1), 0);
    const COUNT: u32 = 5_000;
    for _ in 0..COUNT {
        let (interval, search, entries) = history(&mut random);
        assert_eq!(interval, search, "{entries}");
        right += u32::from(search);
    }
    assert!((COUNT / 20..COUNT * 19 / 20).contains(&right), "{right} of {COUNT} have an order");
}

#[test]
fn one_writer_whose_reads_overlap() {
    agree(|random| {
        let (mut both, mut right) = (Both::new(Records::alone(1)), true);
        for _ in 0..OPERATIONS {
            match random.next() % 3 {
                0 => {
                    let nth = both.write();
                    both.end(nth);
                }
                1 => both.read(),
                _ if !both.reads.is_empty() => {
                    let which = random.next() as usize % both.reads.len();
                    right &= both.found(which, random.next() % VERSIONS);
                }
                _ => {}
            }
        }
        (right, both.explained(Order::Any), format!("{:?}", both.entries))
    });
}

#[test]
fn one_thread_whose_operations_keep_their_order() {
    agree(|random| {
        let (mut both, mut right, mut writes) = (Both::new(Records::in_order(1)), true, Vec::new());
        for _ in 0..OPERATIONS {
            match random.next() % 4 {
                0 => writes.push(both.write()),
                1 => both.read(),
                2 if !writes.is_empty() => {
                    let nth = writes.remove(0);
                    both.end(nth);
                }
                3 if !both.reads.is_empty() => right &= both.found(0, random.next() % VERSIONS),
                _ => {}
            }
        }
        (right, both.explained(Order::Issued), format!("{:?}", both.entries))
    });
}

/// Every write adds one to the version, and others have written as often as versions say, at any time.
#[test]
fn one_of_many_writers() {
    let add = |found| Word::Modify(Opcode::FetchAdd, [1, 0], found);
    agree(|random| {
        let (mut both, mut right) = (Both::new(Records::shared(1)), true);
        for _ in 0..OPERATIONS {
            let version = both.records.newest(0) + random.next() % 3;
            if random.next().is_multiple_of(2) {
                right &= both.records.wrote(0, both.records.newest(0), version).is_ok();
                let nth = both.add(add(Some(version.wrapping_sub(1))));
                both.end(nth);
            } else {
                both.read();
                right &= both.found(0, version.saturating_sub(1));
            }
        }
        let others = Entry { asked: 0, outcome: Outcome::Unknown, act: add(None) };
        both.entries.extend(std::iter::repeat_n(others, both.records.newest(0) as usize));
        (right, both.explained(Order::Any), format!("{:?}", both.entries))
    });
}

/// Several operations of one of many writers at a time: only an interval is checked, so an explainable history is never
/// refused, and most others are.
#[test]
fn one_of_many_writers_whose_operations_overlap() {
    let add = |found| Word::Modify(Opcode::FetchAdd, [1, 0], found);
    let (mut random, mut refused, mut unseen) = (SplitMix(1), 0, 0);
    for _ in 0..5_000 {
        let (mut both, mut right, mut writes) = (Both::new(Records::shared(1)), true, Vec::new());
        for _ in 0..OPERATIONS {
            match random.next() % 4 {
                0 => {
                    let least = both.records.newest(0);
                    writes.push((both.add(add(None)), least));
                }
                1 => both.read(),
                2 if !writes.is_empty() => {
                    let (nth, least) = writes.remove(random.next() as usize % writes.len());
                    let version = 1 + random.next() % VERSIONS;
                    right &= both.records.wrote(0, least, version).is_ok();
                    both.entries[nth].act = add(Some(version - 1));
                    both.end(nth);
                }
                3 if !both.reads.is_empty() => {
                    let which = random.next() as usize % both.reads.len();
                    right &= both.found(which, random.next() % VERSIONS);
                }
                _ => {}
            }
        }
        let others = Entry { asked: 0, outcome: Outcome::Unknown, act: add(None) };
        both.entries.extend(std::iter::repeat_n(others, VERSIONS as usize));
        let has_order = both.explained(Order::Any);
        assert!(right || !has_order, "refused: {:?}", both.entries);
        refused += u32::from(!right);
        unseen += u32::from(right && !has_order);
    }
    assert!(refused > 500 && unseen < refused, "{refused} refused, {unseen} not seen");
}

/// Whether an order explains them, by trying all: `done` are those that have taken effect.
fn by_enumeration(entries: &[Entry<Word>], done: u32, value: u64) -> bool {
    let left = |nth: &usize| done >> nth & 1 == 0;
    let known = |entry: &Entry<Word>| entry.outcome.known();
    if (0..entries.len()).filter(left).all(|nth| known(&entries[nth]).is_none()) {
        return true;
    }
    let first_answer = (0..entries.len()).filter(left).filter_map(|nth| known(&entries[nth])).min();
    (0..entries.len()).filter(left).any(|nth| {
        let Entry { asked, act, .. } = &entries[nth];
        let may = first_answer.is_none_or(|answer| *asked <= answer);
        may && act.apply(&value).is_some_and(|value| by_enumeration(entries, done | 1 << nth, value))
    })
}

/// Writes, additions and reads, each with or without an answer: the search only omits orders that need not be tried.
#[test]
fn the_search_finds_an_order_if_there_is_one() {
    let mut explained = [0, 0];
    for seed in 0..40_000 {
        let mut random = SplitMix(seed);
        let entries: Vec<Entry<Word>> = (0..OPERATIONS)
            .map(|nth| {
                let (value, asked) = (random.next() % VERSIONS, 10 * nth + random.next() % 20);
                let answer = Outcome::Known(asked + 1 + random.next() % 40);
                let is_known = random.next().is_multiple_of(2);
                let add = |found| Word::Modify(Opcode::FetchAdd, [1, 0], found);
                let act = match random.next() % 4 {
                    0 => Word::Read(value),
                    1 => add(is_known.then_some(value)),
                    _ => Word::Write(value),
                };
                Entry { asked, outcome: if is_known { answer } else { Outcome::Unknown }, act }
            })
            .collect();
        let expected = by_enumeration(&entries, 0, 0);
        assert_eq!(linearizable(&entries, &0, Order::Any).is_ok(), expected, "seed {seed}: {entries:?}");
        explained[usize::from(expected)] += 1;
    }
    assert!(explained.iter().all(|count| *count > 4_000), "{explained:?}");
}
