use super::*;
use crate::sys;

/// A store in this process with a planted mistake in every hundredth operation. Operations take effect when they are
/// asked for, and end in any order.
struct Faulty {
    versions: Vec<u64>,
    fault: Fault,
    operations: u64,
    /// Results not yet handed over.
    ended: Vec<(usize, Ended)>,
    /// Whether operations end later than they are asked for.
    late: bool,
    /// Numbers of the operations that asked, in the order in which they did.
    numbers: Vec<u64>,
    random: Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Reads return the record before the last write.
    Stale,
    /// Reads return parts of two values.
    Torn,
    /// A write is confirmed and not done.
    Forgotten,
    /// A write reuses the current version, as if two clients had written it.
    SameVersion,
    /// An operation is not answered.
    Lost,
}

impl Faulty {
    fn new(records: u32, fault: Fault, depth: usize) -> Faulty {
        let mut store = Faulty {
            versions: vec![0; records as usize],
            fault: Fault::None,
            operations: 0,
            ended: Vec::new(),
            late: depth > 1,
            numbers: Vec::new(),
            random: Random::new(3),
        };
        Client::new(&mut store, &config(records, depth)).load().unwrap();
        store.fault = fault;
        store
    }

    fn now(&mut self, fault: Fault) -> bool {
        self.operations += 1;
        self.fault == fault && self.operations.is_multiple_of(100)
    }

    fn end(&mut self, token: usize, ended: Ended) -> Option<Ended> {
        if !self.late {
            return Some(ended);
        }
        self.ended.push((token, ended));
        None
    }
}

impl Store for Faulty {
    fn begin(&mut self, number: u64) {
        self.numbers.push(number);
    }

    fn get(&mut self, token: usize, key: u32, _: Nanos) -> Result<Option<Ended>, Error> {
        if self.now(Fault::Lost) {
            return Ok(self.end(token, Ended::Lost));
        }
        let version = self.versions[key as usize];
        let is_now = self.operations.is_multiple_of(100);
        let ended = match self.fault {
            Fault::Stale if is_now => Ended::Found(version - 1),
            Fault::Torn if is_now => Ended::Wrong,
            _ => Ended::Found(version),
        };
        Ok(self.end(token, ended))
    }

    fn put(
        &mut self,
        token: usize,
        key: u32,
        expected: Option<u64>,
        _: Nanos,
    ) -> Result<Option<Ended>, Error> {
        let (forgotten, same) = (self.now(Fault::Forgotten), self.now(Fault::SameVersion));
        let version = &mut self.versions[key as usize];
        if expected.is_some_and(|expected| expected != *version) {
            return Ok(self.end(token, Ended::Changed));
        }
        if forgotten {
            let next = *version + 1;
            return Ok(self.end(token, Ended::Wrote(next)));
        }
        *version += u64::from(!same);
        let version = *version;
        Ok(self.end(token, Ended::Wrote(version)))
    }

    fn wait(&mut self, _: Nanos, ended: &mut dyn FnMut(usize, Ended)) -> Result<bool, Error> {
        let any = !self.ended.is_empty();
        while !self.ended.is_empty() {
            let nth = self.random.next() as usize % self.ended.len();
            let (token, how) = self.ended.swap_remove(nth);
            ended(token, how);
        }
        Ok(any)
    }
}

fn config(records: u32, depth: usize) -> ClientConfig {
    let mixes = vec![Mix::A, Mix::B, Mix::C, Mix::F];
    ClientConfig { mixes, records, depth, seed: 7, tells: true }
}

/// One client's report, and the final contents.
fn ran(fault: Fault, depth: usize) -> (ClientReport, Contents) {
    let (records, mut store) = (50, Faulty::new(50, fault, depth));
    let span = Span { start_ns: sys::monotonic_ns(), duration_ns: 800_000_000 };
    let report = run(&mut store, &config(records, depth), span).unwrap();
    store.fault = Fault::None;
    let contents = Client::new(&mut store, &config(records, depth)).contents().unwrap();
    (report, contents)
}

#[test]
fn a_store_without_faults_has_nothing_lost_or_wrong() {
    for depth in [1, 16] {
        let (report, contents) = ran(Fault::None, depth);
        let names: Vec<&str> = report.mixes.iter().map(|mix| mix.mix.as_str()).collect();
        assert_eq!(names, ["A", "B", "C", "F"]);
        for mix in &report.mixes {
            assert!(mix.operations > 10 && (mix.lost, mix.wrong) == (0, 0), "{mix:?}");
            assert_eq!(mix.latencies.iter().map(|(_, count)| count).sum::<u64>(), mix.operations);
        }
        let [a, b, c, f] = report.mixes.as_slice() else { panic!("{report:?}") };
        assert!(a.values == a.operations && b.values == b.operations && c.values == c.operations);
        assert!(f.values > f.operations, "changes read and write: {f:?}");
        assert_eq!(report.lost_writes, 0);
        assert_eq!(contents, Contents { versions: report.writes + 50, lost: 0, wrong: 0 });
    }
}

#[test]
fn a_number_of_operations_is_that_number() {
    for depth in [1, 16] {
        let mut store = Faulty::new(50, Fault::None, depth);
        let mut client = Client::new(&mut store, &config(50, depth));
        for (mix, count) in [(Mix::A, 1_000), (Mix::F, 7)] {
            let report = client.operations(mix, count).unwrap();
            assert_eq!((report.operations, report.lost, report.wrong), (count, 0, 0));
        }
    }
}

/// A change asks twice, with one number; so a choice by number is the same in a store that answers late.
#[test]
fn operations_have_the_same_numbers_whatever_the_store() {
    let numbers = |depth| {
        let mut store = Faulty::new(50, Fault::None, depth);
        store.numbers.clear();
        Client::new(&mut store, &config(50, 1)).operations(Mix::F, 100).unwrap();
        store.numbers
    };
    let soon = numbers(1);
    assert!(soon.len() > 100, "{soon:?}");
    let mut distinct = soon.clone();
    distinct.dedup();
    assert_eq!(distinct, (1..=100).collect::<Vec<u64>>());
    assert_eq!(numbers(16), soon, "a store that answers later");
}

#[test]
fn each_fault_is_noticed() {
    for fault in [Fault::Stale, Fault::Torn, Fault::SameVersion] {
        let (report, _) = ran(fault, 1);
        assert!(report.mixes.iter().any(|mix| mix.wrong > 0), "{fault:?}: {report:?}");
    }
    for depth in [1, 16] {
        let (report, _) = ran(Fault::Lost, depth);
        assert!(report.mixes.iter().any(|mix| mix.lost > 0), "{report:?}");
        let (report, contents) = ran(Fault::Forgotten, depth);
        let wrong: u64 = report.mixes.iter().map(|mix| mix.wrong).sum();
        assert!(wrong + report.lost_writes > 0 && contents.versions < report.writes + 50, "{report:?}");
        // Of writes that overlap, versions in the end say that one is missing.
        let (report, contents) = ran(Fault::SameVersion, depth);
        assert!(contents.versions < report.writes + 50, "{report:?}");
        let (report, _) = ran(Fault::Torn, depth);
        assert!(report.mixes.iter().any(|mix| mix.wrong > 0), "{report:?}");
    }
}
