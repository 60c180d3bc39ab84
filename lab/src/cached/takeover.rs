//! Fate of the extents of a killed compute node.

use super::claim::Claim;
use super::extents::Extent;
use crate::error::LabError;
use crate::results::Takeover;
use crate::sys;
use p4rack_hosts::remote::{Region, Remote, RemoteError, Status};
use p4rack_wire::SplitMix;
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

/// The outcome: `killed` is what the killed compute node held, until its lease ended, and when it was killed; `others` are what all others hold, and `taken` is what one of them got.
pub(super) fn judge(
    (host, killed_ns, killed): (&str, u64, Owner<'_>),
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
        after_ms: last_ns.filter(|_| is_all).map(|last| last.saturating_sub(killed_ns) / 1_000_000),
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
fn ask<R: Remote>(
    region: &mut Region<R>,
    mut operation: impl FnMut(&mut Region<R>) -> Result<(), RemoteError>,
) -> Result<(), LabError> {
    let until_ns = sys::monotonic_ns() + PATIENCE_NS;
    loop {
        match operation(region) {
            Err(RemoteError::Failed(Status::Unknown)) if sys::monotonic_ns() < until_ns => {}
            ended => return ended.map_err(failed),
        }
    }
}

/// Bytes of an extent.
trait Bytes {
    fn count(&self) -> u64;
    /// Reads `length` bytes from an offset.
    fn read(&mut self, at: u64, length: u64) -> Result<Vec<u8>, LabError>;
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), LabError>;
}

impl<R: Remote> Bytes for Region<R> {
    fn count(&self) -> u64 {
        self.abilities().region_bytes
    }

    fn read(&mut self, at: u64, length: u64) -> Result<Vec<u8>, LabError> {
        let mut bytes = vec![0; length as usize];
        ask(self, |region| region.read(at, &mut bytes))?;
        Ok(bytes)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), LabError> {
        ask(self, |region| region.write(at, bytes))
    }
}

/// What is written to bytes of an extent, none of it zero: other bytes in each extent and at each offset.
fn pattern(claim: &Claim, at: u64, length: u64) -> Vec<u8> {
    let place = SplitMix(claim.start ^ u64::from(claim.node) << 48).next();
    let words =
        (at / 8..(at + length).div_ceil(8)).flat_map(|word| SplitMix(place ^ word).next().to_le_bytes());
    words.map(|byte| byte.max(1)).skip((at % 8) as usize).take(length as usize).collect()
}

/// Looks at all bytes of an extent, writes them, and reads them again. Counts what differs in `taken`.
pub(super) fn inspect(extent: Extent, taken: &mut Taken) -> Result<(), LabError> {
    let Extent { claim, way, held: _held } = extent;
    inspect_bytes(&claim, &mut Region::new(way), taken)
}

fn inspect_bytes(claim: &Claim, extent: &mut impl Bytes, taken: &mut Taken) -> Result<(), LabError> {
    let bytes = extent.count();
    let chunks = || (0..bytes).step_by(CHUNK_BYTES as usize).map(|at| (at, CHUNK_BYTES.min(bytes - at)));
    for (at, length) in chunks() {
        let found = extent.read(at, length)?;
        taken.foreign_bytes += found.iter().filter(|byte| **byte != 0).count() as u64;
        extent.write(at, &pattern(claim, at, length))?;
    }
    for (at, length) in chunks() {
        let (found, own) = (extent.read(at, length)?, pattern(claim, at, length));
        taken.unlike_bytes += found.iter().zip(own).filter(|(found, own)| *found != own).count() as u64;
    }
    taken.claims.push(*claim);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn claim(node: u16, start: u64, since_ns: u64) -> Claim {
        Claim { node, start: start * MIB, bytes: 2 * MIB, since_ns }
    }

    /// Two extents of 2 MiB: bytes, and where each begins.
    struct Memory {
        bytes: Vec<u8>,
        start: usize,
    }

    const BYTES: usize = 2 << 20;

    impl Bytes for Memory {
        fn count(&self) -> u64 {
            BYTES as u64
        }

        fn read(&mut self, at: u64, length: u64) -> Result<Vec<u8>, LabError> {
            let at = self.start + at as usize;
            Ok(self.bytes[at..at + length as usize].to_vec())
        }

        fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), LabError> {
            let at = self.start + at as usize;
            self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
    }

    #[test]
    fn bytes_that_are_not_zero_or_not_kept_are_counted() {
        let mut memory = Memory { bytes: vec![0; 2 * BYTES], start: 0 };
        let mut taken = Taken::default();
        inspect_bytes(&claim(0, 0, 1), &mut memory, &mut taken).unwrap();
        assert_eq!((taken.foreign_bytes, taken.unlike_bytes, taken.claims.len()), (0, 0, 1));
        // Half of an extent that overlaps it is not zero.
        memory.start = BYTES / 2;
        inspect_bytes(&claim(0, 1, 1), &mut memory, &mut taken).unwrap();
        assert_eq!((taken.foreign_bytes, taken.unlike_bytes), (BYTES as u64 / 2, 0));
        // All bytes at the same place: each chunk but the last is overwritten by the next one.
        struct Folded(Vec<u8>);
        impl Bytes for Folded {
            fn count(&self) -> u64 {
                BYTES as u64
            }
            fn read(&mut self, _: u64, length: u64) -> Result<Vec<u8>, LabError> {
                Ok(self.0[..length as usize].to_vec())
            }
            fn write(&mut self, _: u64, bytes: &[u8]) -> Result<(), LabError> {
                self.0[..bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
        }
        let mut taken = Taken::default();
        inspect_bytes(&claim(0, 0, 1), &mut Folded(vec![0; BYTES]), &mut taken).unwrap();
        assert!(taken.unlike_bytes > BYTES as u64 * 9 / 10, "{}", taken.unlike_bytes);
    }

    #[test]
    fn patterns_differ_by_extent_and_offset() {
        let pattern = |of: &Claim, at| pattern(of, at, 4_096);
        let all = [(0, 0, 0), (0, 2, 0), (1, 0, 0), (0, 0, 4_096)]
            .map(|(node, start, at)| pattern(&claim(node, start, 1), at));
        for (nth, one) in all.iter().enumerate() {
            assert!(!one.contains(&0) && one.len() == 4_096);
            for other in &all[nth + 1..] {
                let same = one.iter().zip(other).filter(|(one, other)| one == other).count();
                assert!(same < 100, "{same} bytes are the same");
            }
        }
        let own = claim(0, 0, 1);
        assert_eq!(super::pattern(&own, 3, 10), pattern(&own, 0)[3..13], "wherever it is cut");
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
        // Its lease of 2 s was renewed 1 ms before it was killed.
        let killed = Owner { claims: &held, until_ns: 2_004_000_000 };
        let other = [claim(0, 2, 12)];
        let others = [Owner { claims: &other, until_ns: u64::MAX }];
        let judged = |claims: Vec<Claim>| {
            let taken = Taken { claims, foreign_bytes: 3, ..Taken::default() };
            judge(("c1", 5_000_000, killed), &others, ("c2", &taken), 2_000)
        };
        let all = judged(vec![claim(1, 2, 2_004_000_000), claim(0, 0, 2_005_000_000)]);
        assert_eq!((all.extents, all.taken, all.after_ms, all.owned_twice), (2, 2, Some(2_000), 0));
        assert_eq!((all.foreign_bytes, all.lease_ms), (3, 2_000));
        let some = judged(vec![claim(1, 2, 2_009_000_000), claim(1, 0, 2_009_000_000)]);
        assert_eq!((some.taken, some.after_ms), (1, None));
        let early = judged(vec![claim(1, 2, 2_003_000_000), claim(0, 2, 2_009_000_000)]);
        assert_eq!((early.taken, early.owned_twice), (1, 2), "before its lease has ended, and another's");
    }
}
