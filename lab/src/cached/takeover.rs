//! Fate of the extents of a killed compute node.

use super::claim::Claim;
use super::extents::Extent;
use crate::error::LabError;
use crate::results::Takeover;
use crate::sys;
use p4rack_hosts::clio::{AskError, Session};
use serde::{Deserialize, Serialize};

/// Bytes of an extent that are read or written at a time.
const CHUNK_BYTES: u64 = 32 << 10;
/// Time for which an operation without an answer is repeated.
const PATIENCE_NS: u64 = 20_000_000_000;

/// Extents that a compute node held until a time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner<'a> {
    pub claims: &'a [Claim],
    pub until_ns: u64,
}

/// Extents that a compute node has taken over, and their content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Taken {
    /// The extents.
    pub claims: Vec<Claim>,
    /// Bytes that were not zero.
    pub foreign_bytes: u64,
    /// Bytes that were not read again as they were written.
    pub unlike_bytes: u64,
    /// Operations and records of its own store that were lost until then.
    pub lost: u64,
    /// Wrong answers of its own store until then.
    pub wrong: u64,
}

/// Pairs of extents that share bytes and were held at the same time.
pub(super) fn owned_twice(owners: &[Owner<'_>]) -> u64 {
    let all = owners.iter().flat_map(|owner| owner.claims.iter().map(|claim| (claim, owner.until_ns)));
    let all: Vec<(&Claim, u64)> = all.collect();
    let mut pairs = 0;
    for (nth, (one, one_until)) in all.iter().enumerate() {
        let twice = |(other, other_until): &&(&Claim, u64)| {
            one.meets(other) && one.since_ns < *other_until && other.since_ns < *one_until
        };
        pairs += all[nth + 1..].iter().filter(twice).count() as u64;
    }
    pairs
}

/// The outcome: `killed` are the extents of the killed compute node, `others` those of all others, and `taken` those
/// that one of them got.
pub(super) fn judge(
    (host, killed): (&str, Owner<'_>),
    others: &[Owner<'_>],
    (by, taken): (&str, &Taken),
    lease_ms: u64,
) -> Takeover {
    let got = |claim: &&Claim| taken.claims.iter().find(|got| got.is_same(claim));
    let last_ns = killed.claims.iter().map(|claim| got(&claim).map(|got| got.since_ns)).max().flatten();
    let count = killed.claims.iter().filter(|claim| got(claim).is_some()).count();
    let is_all = count == killed.claims.len();
    let all = [&[killed, Owner { claims: &taken.claims, until_ns: u64::MAX }], others].concat();
    Takeover {
        host: host.to_owned(),
        by: by.to_owned(),
        extents: killed.claims.len() as u64,
        taken: count as u64,
        after_ms: last_ns.filter(|_| is_all).map(|last| last.saturating_sub(killed.until_ns) / 1_000_000),
        lease_ms,
        foreign_bytes: taken.foreign_bytes,
        unlike_bytes: taken.unlike_bytes,
        owned_twice: owned_twice(&all),
    }
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::measurement("an extent that was taken over", error)
}

/// Repeats an operation as long as it has no answer.
fn ask<T>(
    session: &mut Session,
    mut operation: impl FnMut(&mut Session) -> Result<T, AskError>,
) -> Result<T, LabError> {
    let until_ns = sys::monotonic_ns() + PATIENCE_NS;
    loop {
        match operation(session) {
            Err(AskError::Unknown) if sys::monotonic_ns() < until_ns => {}
            ended => return ended.map_err(failed),
        }
    }
}

/// Looks at all bytes of an extent, writes them, and reads them again. Counts differences in `taken`.
pub(super) fn inspect(extent: &mut Extent, taken: &mut Taken) -> Result<(), LabError> {
    let session = &mut extent.session;
    let (address, bytes) = session.range();
    let chunks = || (0..bytes).step_by(CHUNK_BYTES as usize).map(|at| (at, CHUNK_BYTES.min(bytes - at)));
    let own =
        |at: u64, length: u64| -> Vec<u8> { (at..at + length).map(|at| (at % 251) as u8 | 1).collect() };
    for (at, length) in chunks() {
        let found = ask(session, |session| session.read(address + at, length as u32))?;
        taken.foreign_bytes += found.iter().filter(|byte| **byte != 0).count() as u64;
        ask(session, |session| session.write(address + at, &own(at, length)))?;
    }
    for (at, length) in chunks() {
        let found = ask(session, |session| session.read(address + at, length as u32))?;
        taken.unlike_bytes +=
            found.iter().zip(own(at, length)).filter(|(found, own)| *found != own).count() as u64;
    }
    taken.claims.push(extent.claim);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn claim(node: u16, start: u64, since_ns: u64) -> Claim {
        Claim { node, start: start * MIB, bytes: 2 * MIB, since_ns }
    }

    #[test]
    fn extents_with_two_owners_at_a_time_are_counted() {
        let first = [claim(0, 0, 10), claim(0, 2, 11)];
        let twice = |other: &[Claim], until_ns| {
            owned_twice(&[Owner { claims: &first, until_ns: 100 }, Owner { claims: other, until_ns }])
        };
        // Other bytes, another node, later, and all before.
        assert_eq!(twice(&[claim(0, 4, 12), claim(1, 0, 12), claim(0, 2, 100)], u64::MAX), 0);
        assert_eq!(twice(&[claim(0, 0, 1)], 10), 0);
        assert_eq!(twice(&[claim(0, 2, 99)], u64::MAX), 1);
        assert_eq!(twice(&[claim(0, 1, 50)], u64::MAX), 2, "half of each");
        // One owner has the same twice.
        assert_eq!(owned_twice(&[Owner { claims: &[first[0], first[0]], until_ns: 100 }]), 1);
    }

    #[test]
    fn a_takeover_is_of_the_same_extents_and_ends_with_the_last() {
        let held = [claim(0, 0, 10), claim(1, 2, 11)];
        let killed = Owner { claims: &held, until_ns: 5_000_000 };
        let other = [claim(0, 2, 12)];
        let others = [Owner { claims: &other, until_ns: u64::MAX }];
        let judged = |claims: Vec<Claim>| {
            let taken = Taken { claims, foreign_bytes: 3, ..Taken::default() };
            judge(("c1", killed), &others, ("c2", &taken), 2_000)
        };
        let all = judged(vec![claim(1, 2, 9_000_000), claim(0, 0, 2_005_000_000)]);
        assert_eq!((all.extents, all.taken, all.after_ms, all.owned_twice), (2, 2, Some(2_000), 0));
        assert_eq!((all.foreign_bytes, all.lease_ms), (3, 2_000));
        let some = judged(vec![claim(1, 2, 9_000_000), claim(1, 0, 9_000_000)]);
        assert_eq!((some.taken, some.after_ms), (1, None));
        let early = judged(vec![claim(1, 2, 4_000_000), claim(0, 2, 9_000_000)]);
        assert_eq!((early.taken, early.owned_twice), (1, 2), "before it was killed, and another's");
    }
}
