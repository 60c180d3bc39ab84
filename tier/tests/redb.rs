//! redb over a pool, an engine and a compute node of this machine: committed values are read back over every way.

#![allow(clippy::unwrap_used)]

use p4rack_hosts::remote::setting::{Setting, Way};
use p4rack_hosts::remote::{Shape, UnderWay};
use p4rack_netdev::NetNs;
use p4rack_tier::ColdTier;
use redb::{Database, ReadableDatabase, TableDefinition};
use std::io::Write;

const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("values");
const SHAPE: Shape =
    Shape { region_bytes: 8 << 20, reads: UnderWay::of(16, 4_096), writes: UnderWay::of(64, 4_096) };
const KEYS: u64 = 2_000;

fn value(key: u64, round: u64) -> Vec<u8> {
    (0..64 + key % 200).map(|at| (key * 31 + round * 7 + at) as u8).collect()
}

fn commits_are_read(way: Way) {
    let (remote, _serves) = Setting::start(way, SHAPE).unwrap().split();
    let tier = ColdTier::new(remote, SHAPE).unwrap();
    // Nearly no cache, so that pages are fetched repeatedly.
    let database = Database::builder().set_cache_size(64 << 10).create_with_backend(tier).unwrap();
    for round in 0..3 {
        let change = database.begin_write().unwrap();
        {
            let mut table = change.open_table(TABLE).unwrap();
            for key in (0..KEYS).filter(|key| key % (round + 1) == 0) {
                table.insert(key, &value(key, round)[..]).unwrap();
            }
        }
        change.commit().unwrap();
        let dropped = database.begin_write().unwrap();
        dropped.open_table(TABLE).unwrap().insert(0, &[0; 9][..]).unwrap();
        dropped.abort().unwrap();
        let read = database.begin_read().unwrap();
        let table = read.open_table(TABLE).unwrap();
        for key in 0..KEYS {
            let last = (0..=round).rev().find(|round| key % (round + 1) == 0).unwrap();
            assert_eq!(table.get(key).unwrap().unwrap().value(), value(key, last), "{key} after {round}");
        }
    }
}

/// Whether network namespaces can be made here; prints the reason if not.
fn can_make_namespaces() -> bool {
    let made = NetNs::create().is_ok();
    if !made {
        // Bypasses the harness, which hides the output of passing tests.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root or user namespaces, get it by `unshare -rn cargo test`"
        );
    }
    made
}

#[test]
fn what_was_committed_is_read() {
    if !can_make_namespaces() {
        return;
    }
    commits_are_read(Way::COWBIRD_SPOT);
    commits_are_read(Way::RDMA_SYNC);
}

#[test]
fn a_region_that_is_too_small_says_so() {
    if !can_make_namespaces() {
        return;
    }
    let shape = Shape { region_bytes: 64 << 10, ..SHAPE };
    let (remote, _serves) = Setting::start(Way::RDMA_SYNC, shape).unwrap().split();
    let refused = Database::builder().create_with_backend(ColdTier::new(remote, shape).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("reserve a larger one"), "{refused}");
}
