use super::*;
use crate::ycsb::{Client, ClientConfig, Contents};
use p4rack_codegen::rack::Mix;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Planted fault of an offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Every thousandth update is confirmed and not done.
    Forgets,
    /// Every thousandth update is done twice.
    Repeats,
    /// Every thousandth value is another key's.
    Mixes,
}

#[derive(Default)]
struct Board {
    values: BTreeMap<Vec<u8>, (u64, Vec<u8>)>,
    fault: Option<Fault>,
    calls: u64,
}

/// An offload in this process, which executes a call when its answer is fetched.
#[derive(Clone, Default)]
struct Model {
    board: Rc<RefCell<Board>>,
    asked: VecDeque<(u64, Vec<u8>, Owned)>,
    now: u64,
}

#[derive(Clone)]
enum Owned {
    Read,
    Create(Vec<u8>),
    Update(Option<u64>, Vec<u8>),
}

impl Board {
    fn call(&mut self, key: &[u8], ask: Owned) -> (u64, Option<Vec<u8>>, Answer<'static>) {
        self.calls += 1;
        let now = |board: &Board, fault| board.fault == Some(fault) && board.calls.is_multiple_of(1_000);
        match (ask, self.values.get(key).cloned()) {
            (Owned::Read, Some((version, value))) => {
                let other = self.values.values().next().map(|(_, value)| value.clone());
                let value = other.filter(|_| now(self, Fault::Mixes)).unwrap_or(value);
                (version, Some(value), Answer::Done)
            }
            (Owned::Create(_), Some(_)) => (0, None, Answer::Exists),
            (Owned::Create(value), None) => {
                self.values.insert(key.to_vec(), (1, value));
                (0, None, Answer::Done)
            }
            (Owned::Update(wanted, _), Some((version, _)))
                if wanted.is_some_and(|wanted| wanted != version) =>
            {
                (0, None, Answer::NotFound)
            }
            (Owned::Update(_, value), Some((version, _))) => {
                let more = if now(self, Fault::Repeats) { 2 } else { 1 };
                if !now(self, Fault::Forgets) {
                    self.values.insert(key.to_vec(), (version + more, value));
                }
                (0, None, Answer::Done)
            }
            (_, None) => (0, None, Answer::NotFound),
        }
    }
}

impl Keys for Model {
    fn ask(&mut self, tag: u64, key: &[u8], ask: Ask<'_>) -> Result<(), Error> {
        let owned = match ask {
            Ask::Read => Owned::Read,
            Ask::Create(value) => Owned::Create(value.to_vec()),
            Ask::Update(value) => Owned::Update(None, value.to_vec()),
            Ask::UpdateVersion(version, value) => Owned::Update(Some(version), value.to_vec()),
        };
        self.asked.push_back((tag, key.to_vec(), owned));
        Ok(())
    }

    fn poll(&mut self, until: Nanos, came: &mut dyn FnMut(u64, Answer<'_>)) -> Result<(), Error> {
        self.now += 1_000;
        let Some((tag, key, owned)) = self.asked.pop_front() else {
            self.now = self.now.max(until.0);
            return Ok(());
        };
        let (version, value, answer) = self.board.borrow_mut().call(&key, owned);
        match &value {
            Some(value) => came(tag, Answer::Value(version, value)),
            None => came(tag, answer),
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        Nanos(self.now)
    }
}

/// Two clients that take turns on one board. Returns wrong and lost operations, the versions of all records, and the writes.
fn two_clients(fault: Option<Fault>) -> (u64, u64, Contents, u64) {
    let model = Model::default();
    let of = |own: u16| KeyStore::new(model.clone(), 64, own, 20);
    let config = |seed| ClientConfig { mixes: vec![Mix::F], records: 20, depth: 4, seed, tells: false };
    let (mut first, mut second) = (of(1), of(2));
    let (mut one, mut two) = (Client::new(&mut first, &config(1)), Client::new(&mut second, &config(2)));
    one.load().unwrap();
    model.board.borrow_mut().fault = fault;
    let (mut wrong, mut lost) = (0, 0);
    for turn in 0..20 {
        for client in [&mut one, &mut two] {
            let mix = if turn % 2 == 0 { Mix::F } else { Mix::A };
            let end = client.store().now() + Nanos(300_000);
            let report = client.mix(mix, end).unwrap();
            (wrong, lost) = (wrong + report.wrong, lost + report.lost);
        }
    }
    model.board.borrow_mut().fault = None;
    let writes = one.writes() + two.writes();
    (wrong, lost, one.contents().unwrap(), writes)
}

#[test]
fn each_write_is_a_version_of_its_own() {
    let (wrong, lost, contents, writes) = two_clients(None);
    assert_eq!((wrong, lost, contents.wrong, contents.lost), (0, 0, 0, 0));
    assert!(writes > 1_000, "{writes}");
    assert_eq!(contents.versions, 20 + writes);
}

#[test]
fn what_an_offload_does_wrong_is_seen() {
    let (_, _, contents, writes) = two_clients(Some(Fault::Forgets));
    assert!(contents.versions < 20 + writes, "{contents:?} {writes}");
    let (_, _, contents, writes) = two_clients(Some(Fault::Repeats));
    assert!(contents.versions > 20 + writes, "{contents:?} {writes}");
    let (wrong, ..) = two_clients(Some(Fault::Mixes));
    assert!(wrong > 0);
}

/// Begins an operation, which may end as it does.
type Begin<'a> = &'a mut dyn FnMut(&mut KeyStore<Model>) -> Result<Option<Ended>, Error>;

#[test]
fn a_value_is_replaced_in_the_version_that_was_read_and_no_other() {
    let model = Model::default();
    let mut store = KeyStore::new(model.clone(), 16, 1, 2);
    let mut end = |begin: Begin| {
        let mut how = begin(&mut store).unwrap();
        while how.is_none() {
            store.wait(Nanos::MAX, &mut |_, ended| how = Some(ended)).unwrap();
        }
        how.unwrap()
    };
    let until = Nanos::MAX;
    assert_eq!(end(&mut |store| store.get(0, 1, until)), Ended::Wrong, "no key, and nothing was deleted");
    assert_eq!(end(&mut |store| store.put(0, 1, None, until)), Ended::Wrote(1));
    assert_eq!(end(&mut |store| store.put(0, 1, Some(1), until)), Ended::Wrote(2));
    assert_eq!(end(&mut |store| store.put(0, 1, Some(1), until)), Ended::Changed);
    assert_eq!(end(&mut |store| store.get(0, 1, until)), Ended::Found(2));
    assert_eq!(end(&mut |store| store.put(0, 1, None, until)), Ended::Wrote(3));
    // A client that comes later finds the keys there.
    let mut later = KeyStore::new(model, 16, 2, 2);
    let mut how = later.put(0, 1, None, until).unwrap();
    while how.is_none() {
        later.wait(Nanos::MAX, &mut |_, ended| how = Some(ended)).unwrap();
    }
    assert_eq!(how, Some(Ended::Wrote(1)), "at least one more than it knew of");
}
