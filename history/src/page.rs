//! Pages: bytes of remote memory that one thread reads and writes, many operations at a time, in Cowbird's order.

use super::search::{Done, Reached, search};
use super::{Act, Entry, Order, Outcome};
use std::collections::VecDeque;

/// An operation on some bytes of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The first one.
    pub at: usize,
    /// Bytes that a read found there, or that a write leaves there.
    pub bytes: Vec<u8>,
    /// Which of both it is.
    pub is_read: bool,
}

impl Act for Access {
    type State = Vec<u8>;

    fn apply(&self, page: &Vec<u8>) -> Option<Vec<u8>> {
        let place = self.at..self.at + self.bytes.len();
        if self.is_read {
            return (page.get(place) == Some(&self.bytes)).then(|| page.clone());
        }
        let mut page = page.clone();
        page.get_mut(place)?.copy_from_slice(&self.bytes);
        Some(page)
    }

    fn is_read(&self) -> bool {
        self.is_read
    }

    fn finds(&self) -> bool {
        self.is_read
    }
}

/// A request under way.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    id: u64,
    length: usize,
    /// Its position among the entries.
    nth: usize,
}

/// A thread's operations on its page, and their results. The page starts with zeros.
#[derive(Clone, Debug)]
pub struct Page {
    entries: Vec<Entry<Access>>,
    /// Reads and writes under way, in the order of asking.
    reads: VecDeque<PendingRequest>,
    writes: VecDeque<PendingRequest>,
    /// The page after the writes that are done.
    content: Vec<u8>,
    /// How far an order explains the entries.
    explained: Reached<Vec<u8>>,
    /// Counts events: only the order of times matters.
    clock: u64,
}

impl Page {
    /// A page of this many bytes.
    pub fn new(bytes: usize) -> Page {
        Page {
            entries: Vec::new(),
            reads: VecDeque::new(),
            writes: VecDeque::new(),
            content: vec![0; bytes],
            explained: (Done::default(), vec![0; bytes]),
            clock: 0,
        }
    }

    /// The thread requests a write.
    pub fn write(&mut self, id: u64, at: usize, bytes: Vec<u8>) {
        let nth = self.entries.len();
        self.writes.push_back(PendingRequest { id, length: bytes.len(), nth });
        self.asks(Access { at, bytes, is_read: false });
    }

    /// The thread requests a read.
    pub fn read(&mut self, id: u64, at: usize, length: usize) {
        let nth = self.entries.len();
        self.reads.push_back(PendingRequest { id, length, nth });
        self.asks(Access { at, bytes: Vec::new(), is_read: true });
    }

    fn asks(&mut self, act: Access) {
        self.clock += 1;
        self.entries.push(Entry { asked: self.clock, outcome: Outcome::Unknown, act });
    }

    /// A request is done, with the bytes that it read, or `None` for a write. Errors: another one should have ended
    /// first, the length is wrong, or no order explains the bytes.
    pub fn done(&mut self, id: u64, read: Option<&[u8]>) -> Result<(), String> {
        let queue = if read.is_some() { &mut self.reads } else { &mut self.writes };
        let asked = queue.pop_front().ok_or("more is done than was asked for")?;
        if asked.id != id {
            return Err(format!("request {id:#x} is done before {:#x}, which was asked for first", asked.id));
        }
        self.clock += 1;
        let entry = &mut self.entries[asked.nth];
        entry.outcome = Outcome::Known(self.clock);
        match read {
            Some(read) => read.clone_into(&mut entry.act.bytes),
            None => {
                let Access { at, bytes, .. } = &entry.act;
                self.content[*at..*at + bytes.len()].copy_from_slice(bytes);
            }
        }
        match read {
            Some(read) if read.len() != asked.length => {
                Err(format!("request {id:#x} brought {} bytes instead of {}", read.len(), asked.length))
            }
            Some(_) => self.explain(),
            None => Ok(()),
        }
    }

    /// Continues the order that was found before. It has the fewest writes that explain the reads so far, and more can
    /// follow in their order: if it can't be continued, no other can. Errors: it can't.
    fn explain(&mut self) -> Result<(), String> {
        let explained = search(&self.entries, self.explained.clone(), Order::Issued);
        self.explained = explained.map_err(|unexplained| format!("{unexplained} {:?}", self.entries))?;
        Ok(())
    }

    /// Requested writes.
    pub fn writes(&self) -> u64 {
        self.entries.iter().filter(|entry| !entry.act.is_read()).count() as u64
    }

    /// Requests that are done.
    pub fn count_done(&self) -> usize {
        self.entries.len() - self.reads.len() - self.writes.len()
    }

    /// Whether all requests are done.
    pub fn is_done(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// Each byte in memory is the one that the writes that are done have left, or that of a later write. An engine that
    /// restarts may repeat writes that it has not reported done, so others may even go back to an earlier one of these.
    /// Errors: the first byte that is neither.
    pub fn kept(&self, memory: &[u8]) -> Result<(), String> {
        for (place, (byte, expected)) in memory.iter().zip(&self.content).enumerate() {
            let is_later = |asked: &PendingRequest| {
                let Access { at, bytes, .. } = &self.entries[asked.nth].act;
                bytes.get(place.wrapping_sub(*at)) == Some(byte)
            };
            if byte != expected && !self.writes.iter().any(is_later) {
                return Err(format!(
                    "byte {place} is {byte:#x}, not what the last write that is done left: {expected:#x}"
                ));
            }
        }
        Ok(())
    }

    /// All requests are done, and memory has the bytes of the last writes. Errors: the violated condition.
    pub fn end(&self, memory: &[u8]) -> Result<(), String> {
        if !self.is_done() {
            return Err(format!("{} requests are not done", self.reads.len() + self.writes.len()));
        }
        self.kept(memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_see_the_writes_before_them_in_order() {
        let mut page = Page::new(8);
        page.read(1, 0, 4);
        page.write(2, 0, vec![1; 4]);
        page.write(3, 2, vec![2; 4]);
        page.read(4, 0, 8);
        // The first read was overtaken by one write, or by both.
        assert_eq!(page.done(1, Some(&[1; 4])), Ok(()));
        assert_eq!(page.done(2, None), Ok(()));
        assert_eq!(page.kept(&[1, 1, 2, 2, 2, 2, 0, 0]), Ok(()));
        assert_eq!(page.kept(&[1, 1, 1, 2, 0, 0, 0, 0]), Ok(()), "byte for byte");
        assert!(page.kept(&[1, 0, 1, 1, 0, 0, 0, 0]).unwrap_err().starts_with("byte 1 is 0x0"));
        let stale = page.clone().done(4, Some(&[1, 1, 1, 1, 0, 0, 0, 0])).unwrap_err();
        assert!(stale.starts_with("no order explains"), "{stale}");
        assert_eq!(page.done(4, Some(&[1, 1, 2, 2, 2, 2, 0, 0])), Ok(()));
        assert_eq!((page.writes(), page.count_done(), page.is_done()), (2, 3, false));
        assert_eq!(page.end(&[0; 8]), Err("1 requests are not done".to_owned()));
        assert_eq!(page.done(3, None), Ok(()));
        assert_eq!(page.end(&[1, 1, 2, 2, 2, 2, 0, 0]), Ok(()));
        assert!(page.end(&[1, 1, 1, 1, 2, 2, 0, 0]).is_err());
    }

    #[test]
    fn what_ends_out_of_order_or_too_short_is_seen() {
        let mut page = Page::new(8);
        page.read(1, 0, 4);
        page.read(2, 0, 4);
        assert!(page.clone().done(2, Some(&[0; 4])).unwrap_err().contains("0x2 is done before 0x1"));
        assert!(page.clone().done(1, Some(&[0; 3])).unwrap_err().contains("3 bytes instead of 4"));
        assert!(page.done(7, None).unwrap_err().contains("more is done"));
    }

    #[test]
    fn a_write_that_is_done_may_be_behind_a_read_under_way() {
        let mut page = Page::new(1);
        page.read(1, 0, 1);
        page.read(2, 0, 1);
        page.write(3, 0, vec![5]);
        assert_eq!(page.done(3, None), Ok(()));
        assert_eq!(page.done(1, Some(&[0])), Ok(()));
        page.read(4, 0, 1);
        assert_eq!(page.done(2, Some(&[0])), Ok(()));
        assert!(page.clone().done(4, Some(&[0])).is_err());
        assert_eq!(page.done(4, Some(&[5])), Ok(()));
    }
}
