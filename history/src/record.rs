//! Records whose writes are counted: each write of a record leaves its next version.
//!
//! A read that names the version it found is explained by an order if that version is in an interval: not below the
//! version that had to be there at its request, not above the versions requested before its answer (Gibbons and Korach,
//! SIAM Journal on Computing 1997: a search is only needed where a read does not name the write that it saw). So a
//! check costs a comparison, and no history has to be kept.

use p4rack_wire::SplitMix;
use std::ops::RangeInclusive;

/// Writes a record's contents in a version: the version, and bytes derived from record and version; of version 0,
/// zeros. A record has a multiple of eight bytes.
pub fn fill(record: u64, version: u64, into: &mut [u8]) {
    for (word, content) in into.chunks_exact_mut(8).zip(words(record, version)) {
        word.copy_from_slice(&content.to_le_bytes());
    }
}

/// The version of a record with these bytes; `None` if that version of it has others.
pub fn version_of(record: u64, bytes: &[u8]) -> Option<u64> {
    let version = u64::from_le_bytes(*bytes.first_chunk()?);
    let mut both = bytes.chunks_exact(8).zip(words(record, version));
    both.all(|(word, content)| word == content.to_le_bytes()).then_some(version)
}

fn words(record: u64, version: u64) -> impl Iterator<Item = u64> {
    let mut random = SplitMix(record.rotate_left(32) ^ version);
    let rest = move || if version == 0 { 0 } else { random.next() };
    std::iter::once(version).chain(std::iter::repeat_with(rest))
}

/// A read found a version that no order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The version that it found.
    pub version: u64,
    /// Versions that it can have found.
    pub possible: RangeInclusive<u64>,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "it is in version {}, and can be in {} to ", self.version, self.possible.start())?;
        match *self.possible.end() {
            u64::MAX => f.write_str("any later one"),
            most => write!(f, "{most}"),
        }
    }
}

/// Other writers of the records, and the guaranteed order of reads.
#[derive(Clone, Debug)]
enum Kind {
    /// This thread alone; a write has taken effect when its call returns, and reads overlap.
    Alone,
    /// This thread alone; operations are [`Issued`](super::Order::Issued). By record, the newest version that a read found.
    InOrder(Vec<u64>),
    /// Others as well; operations overlap.
    Shared,
}

/// A thread's knowledge of records.
#[derive(Clone, Debug)]
pub struct Records {
    /// By record, the newest version: that this thread requested, or with other writers, that it knows of.
    newest: Vec<u64>,
    kind: Kind,
}

impl Records {
    /// Records that this thread alone writes, where a write has taken effect when its call returns. All are in version 0.
    pub fn alone(count: usize) -> Records {
        Records { newest: vec![0; count], kind: Kind::Alone }
    }

    /// Records that this thread alone writes, whose operations keep the order [`Issued`](super::Order::Issued).
    pub fn in_order(count: usize) -> Records {
        Records { newest: vec![0; count], kind: Kind::InOrder(vec![0; count]) }
    }

    /// Records that others write as well. Only the ends of this thread's own operations add knowledge.
    pub fn shared(count: usize) -> Records {
        Records { newest: vec![0; count], kind: Kind::Shared }
    }

    /// The newest version that this thread knows of: a read requested now finds no older one.
    #[inline]
    pub fn newest(&self, record: usize) -> u64 {
        self.newest[record]
    }

    /// This thread, which alone does so, writes a record. Returns the version that this leaves.
    #[inline]
    pub fn write(&mut self, record: usize) -> u64 {
        self.newest[record] += 1;
        self.newest[record]
    }

    /// A write has left this version; `least` was [`newest`](Self::newest) when it was asked for. Errors: it is not behind those before,
    /// or where this thread alone writes, not the next one: so one of two writes is lost.
    #[inline]
    pub fn wrote(&mut self, record: usize, least: u64, version: u64) -> Result<(), Wrong> {
        let newest = &mut self.newest[record];
        let possible = match &self.kind {
            Kind::Alone | Kind::InOrder(_) => *newest + 1..=*newest + 1,
            Kind::Shared => least + 1..=u64::MAX,
        };
        if !possible.contains(&version) {
            return Err(Wrong { version, possible });
        }
        *newest = version.max(*newest);
        Ok(())
    }

    /// A read has found a version; `least` was [`newest`](Self::newest) when it was asked for. Errors: no order explains that.
    #[inline]
    pub fn found(&mut self, record: usize, least: u64, version: u64) -> Result<(), Wrong> {
        let newest = &mut self.newest[record];
        let possible = match &self.kind {
            Kind::Alone => least..=*newest,
            Kind::InOrder(seen) => least.max(seen[record])..=*newest,
            Kind::Shared => least..=u64::MAX,
        };
        if !possible.contains(&version) {
            return Err(Wrong { version, possible });
        }
        match &mut self.kind {
            Kind::Alone => {}
            Kind::InOrder(seen) => seen[record] = version,
            Kind::Shared => *newest = version.max(*newest),
        }
        Ok(())
    }

    /// Versions of all records together: as many as all writes.
    pub fn versions(&self) -> u64 {
        self.newest.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_another_version_or_record_have_none() {
        let mut bytes = [0; 64];
        assert_eq!(version_of(3, &bytes), Some(0));
        fill(3, 2, &mut bytes);
        assert_eq!(version_of(3, &bytes), Some(2));
        assert_eq!(version_of(4, &bytes), None, "another record's");
        for at in 0..64 {
            let mut bytes = bytes;
            bytes[at] ^= 1;
            assert_ne!(version_of(3, &bytes), Some(2), "byte {at}");
        }
        assert_eq!(version_of(3, &[]), None);
    }

    #[test]
    fn a_version_that_cannot_be_is_named_with_those_that_can() {
        let mut records = Records::in_order(1);
        assert_eq!(records.write(0), 1);
        let wrong = records.found(0, 1, 2).unwrap_err().to_string();
        assert_eq!(wrong, "it is in version 2, and can be in 1 to 1");
        let mut records = Records::shared(1);
        records.found(0, 0, 5).unwrap();
        assert_eq!(
            records.wrote(0, 5, 5).unwrap_err().to_string(),
            "it is in version 5, and can be in 6 to any later one"
        );
        assert_eq!(records.wrote(0, 5, 9), Ok(()));
        let mut records = Records::alone(1);
        assert_eq!((records.wrote(0, 0, 1), records.wrote(0, 0, 1).is_err()), (Ok(()), true));
    }
}
