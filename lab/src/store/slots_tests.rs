use super::*;
use p4rack_hosts::remote::Local;

/// Does one thing and waits for its end.
fn end(
    store: &mut Slots<Local>,
    begin: impl FnOnce(&mut Slots<Local>) -> Result<Option<Ended>, Error>,
) -> Ended {
    let mut how = begin(store).unwrap();
    while how.is_none() {
        let until = store.now() + PAUSE;
        store.wait(until, &mut |_, ended| how = Some(ended)).unwrap();
    }
    how.unwrap()
}

#[test]
fn a_slot_is_written_over_the_version_that_is_expected_and_no_other() {
    let mut store = Slots::new(Local::new(4 * slot_bytes(40) as u64), 40, 3, 4).unwrap();
    let until = store.now() + Nanos::from_secs(10);
    assert_eq!(end(&mut store, |store| store.put(0, 2, None, until)), Ended::Wrote(1));
    assert_eq!(end(&mut store, |store| store.put(0, 2, Some(0), until)), Ended::Changed);
    assert_eq!(end(&mut store, |store| store.put(0, 2, Some(1), until)), Ended::Wrote(2));
    assert_eq!(end(&mut store, |store| store.get(0, 2, until)), Ended::Found(2));
    // Another client has the lock and ends.
    let (locked, address) = (Word { version: 2, owner: 9 }, store.address(2) as usize);
    let word = store.words.bytes(locked.bits());
    store.memory().bytes()[address..][..8].copy_from_slice(&word);
    let until = store.now() + Nanos::from_millis(1);
    assert_eq!(end(&mut store, |store| store.put(0, 2, None, until)), Ended::Lost);
    assert_eq!(end(&mut store, |store| store.get(0, 2, until)), Ended::Found(2), "a lock changes no value");
}

/// Its own mark on a lock says that it has it, so two operations that write a record may not both lock it.
#[test]
fn writes_of_a_record_by_one_client_follow_each_other() {
    let mut store = Slots::new(Local::new(2 * slot_bytes(16) as u64), 16, 1, 2).unwrap();
    let until = store.now() + Nanos::from_secs(10);
    for token in 0..8 {
        assert_eq!(store.put(token, (token == 7).into(), None, until).unwrap(), None);
    }
    let mut all = Vec::new();
    while all.len() < 8 {
        store.wait(store.now() + PAUSE, &mut |token, ended| all.push((token, ended))).unwrap();
    }
    assert!(all.contains(&(7, Ended::Wrote(1))), "{all:?}");
    all.retain(|(token, _)| *token != 7);
    let one_by_one: Vec<_> = (0..7).map(|nth| (nth, Ended::Wrote(nth as u64 + 1))).collect();
    assert_eq!(all, one_by_one);
    assert_eq!(end(&mut store, |store| store.get(0, 0, until)), Ended::Found(7));
}

#[test]
fn another_record_and_parts_of_two_values_are_wrong() {
    let mut store = Slots::new(Local::new(2 * slot_bytes(40) as u64), 40, 1, 2).unwrap();
    let until = store.now() + Nanos::from_secs(10);
    for key in 0..2 {
        assert_eq!(end(&mut store, |store| store.put(0, key, None, until)), Ended::Wrote(1));
    }
    let (first, second) = store.memory().bytes().split_at_mut(slot_bytes(40));
    second.copy_from_slice(first);
    first[HEADER_BYTES] ^= 1;
    for key in 0..2 {
        assert_eq!(end(&mut store, |store| store.get(0, key, until)), Ended::Wrong);
    }
}

#[test]
fn a_way_that_lacks_something_is_refused_with_it() {
    let local = Local::new(4 * slot_bytes(40) as u64);
    let with = |change: fn(&mut Abilities)| {
        let mut abilities = local.abilities().clone();
        change(&mut abilities);
        lacks(&abilities, 40, 4)
    };
    assert_eq!(with(|_| {}), None);
    for (lack, says) in [
        (with(|abilities| abilities.atomics = &[]), "no atomic operations"),
        (with(|abilities| abilities.whole_bytes = 63), "writes 63 bytes in one step, and a slot has 64"),
        (with(|abilities| abilities.edge_bytes = 96), "divides writes at multiples of 96 bytes"),
        (with(|abilities| abilities.region_bytes = 255), "the slots need 256"),
    ] {
        assert!(lack.as_ref().is_some_and(|lack| lack.contains(says)), "{lack:?}");
    }
}
