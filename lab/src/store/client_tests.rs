use super::*;
use crate::store::slot::Slot;
use crate::sys;

/// A store in this process with a planted mistake in every hundredth operation.
struct Faulty {
    slots: Vec<Slot>,
    fault: Fault,
    operations: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Reads return the record before the last write.
    Stale,
    /// Reads return another record.
    OtherKey,
    /// Reads return parts of two values.
    Torn,
    /// A write is confirmed and not done.
    Forgotten,
    /// A write is done with the version that is there, as if two clients had written it.
    SameVersion,
    /// An operation is not answered.
    Lost,
}

impl Faulty {
    fn new(records: u32, fault: Fault) -> Faulty {
        let empty = |key: u32| Slot { key: key.into(), version: 0, value: Vec::new() };
        let mut store =
            Faulty { slots: (0..records).map(empty).collect(), fault: Fault::None, operations: 0 };
        load(&mut store, &config(records)).unwrap();
        store.fault = fault;
        store
    }

    fn now(&mut self, fault: Fault) -> bool {
        self.operations += 1;
        self.fault == fault && self.operations.is_multiple_of(100)
    }
}

impl Store for Faulty {
    fn get(&mut self, key: u32, _until_ns: u64) -> Result<Slot, Failure> {
        if self.now(Fault::Lost) {
            return Err(Failure::Lost);
        }
        let mut slot = self.slots[key as usize].clone();
        match self.fault {
            Fault::Stale if self.operations.is_multiple_of(100) => slot.version -= 1,
            Fault::OtherKey if self.operations.is_multiple_of(100) => slot.key += 1,
            Fault::Torn if self.operations.is_multiple_of(100) => return Err(Failure::Wrong),
            _ => {}
        }
        Ok(slot)
    }

    fn put(&mut self, key: u32, expected: u64, value: &[u8], _until_ns: u64) -> Result<Option<u64>, Failure> {
        let (forgotten, same) = (self.now(Fault::Forgotten), self.now(Fault::SameVersion));
        let slot = &mut self.slots[key as usize];
        if expected != ANY && expected != slot.version {
            return Ok(None);
        }
        if forgotten {
            return Ok(Some(slot.version + 1));
        }
        slot.value = value.to_vec();
        slot.version += u64::from(!same);
        Ok(Some(slot.version))
    }
}

fn config(records: u32) -> ClientConfig {
    ClientConfig {
        mixes: vec![Mix::A, Mix::B, Mix::C, Mix::F],
        records,
        value_bytes: 20,
        seed: 7,
        tells: true,
    }
}

/// One client's report, and the final contents.
fn ran(fault: Fault) -> (ClientReport, Contents) {
    let (records, mut store) = (50, Faulty::new(50, fault));
    let span = Span { start_ns: sys::monotonic_ns(), duration_ns: 800_000_000 };
    let report = run(&mut store, &config(records), span).unwrap();
    store.fault = Fault::None;
    (report, contents(&mut store, records).unwrap())
}

#[test]
fn a_store_without_faults_has_nothing_lost_or_wrong() {
    let (report, contents) = ran(Fault::None);
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

#[test]
fn each_fault_is_noticed() {
    for fault in [Fault::Stale, Fault::OtherKey, Fault::Torn, Fault::SameVersion] {
        let (report, _) = ran(fault);
        assert!(report.mixes.iter().any(|mix| mix.wrong > 0), "{fault:?}: {report:?}");
    }
    let (report, _) = ran(Fault::Lost);
    assert!(report.mixes.iter().any(|mix| mix.lost > 0), "{report:?}");
    let (report, contents) = ran(Fault::Forgotten);
    let wrong: u64 = report.mixes.iter().map(|mix| mix.wrong).sum();
    assert!(wrong + report.lost_writes > 0 && contents.versions < report.writes + 50, "{report:?}");
}

#[test]
fn progress_lines_are_read_from_the_last() {
    assert_eq!(SoFar::latest("x\n"), None);
    let latest = SoFar { operations: 300, p50_us: 5, p99_us: 70 };
    assert_eq!(SoFar::latest("done 100 4 60\ndone 300 5 70\ndone 4"), Some(latest));
}
