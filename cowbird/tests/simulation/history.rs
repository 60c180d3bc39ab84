//! What a thread asked for and what came of it, and whether that is in order.
//!
//! A thread is alone with its span of remote memory. So after its first k writes the span has one content, and a read is right
//! if it brought that content for some k: not below the writes asked for before the read (read-after-write), not above
//! those asked for when the read was done, and not below the k of a read before it (reads in order).

use p4rack_cowbird::RequestId;

/// A write: where in the span, and what.
#[derive(Clone, Debug)]
struct Write {
    at: usize,
    bytes: Vec<u8>,
    done: bool,
}

#[derive(Clone, Debug)]
struct Read {
    id: RequestId,
    at: usize,
    length: usize,
    /// Writes asked for before.
    before: usize,
    done: bool,
}

/// The history of a thread.
#[derive(Clone, Debug)]
pub struct History {
    span: usize,
    writes: Vec<Write>,
    reads: Vec<Read>,
    /// The least k that the reads so far allow.
    seen: usize,
}

impl History {
    pub fn new(span: usize) -> History {
        History { span, writes: Vec::new(), reads: Vec::new(), seen: 0 }
    }

    pub fn write(&mut self, at: usize, bytes: Vec<u8>) {
        self.writes.push(Write { at, bytes, done: false });
    }

    pub fn read(&mut self, id: RequestId, at: usize, length: usize) {
        self.reads.push(Read { id, at, length, before: self.writes.len(), done: false });
    }

    /// The span after the first `count` writes.
    pub fn content(&self, count: usize) -> Vec<u8> {
        let mut content = vec![0; self.span];
        for write in &self.writes[..count] {
            content[write.at..write.at + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        content
    }

    /// The next write is done: the pool's span has each of its bytes, or one of a later write.
    pub fn written(&mut self, pool: &[u8]) -> Result<(), String> {
        let nth =
            self.writes.iter().position(|write| !write.done).ok_or("more writes done than asked for")?;
        self.writes[nth].done = true;
        let Write { at, bytes, .. } = &self.writes[nth];
        for (place, byte) in (*at..).zip(bytes) {
            let newer = self.writes[nth + 1..].iter().any(|later| {
                later.at <= place
                    && place < later.at + later.bytes.len()
                    && later.bytes[place - later.at] == pool[place]
            });
            if pool[place] != *byte && !newer {
                return Err(format!("write {nth} is done, and byte {place} is not there"));
            }
        }
        Ok(())
    }

    /// A read is done.
    pub fn was_read(&mut self, id: RequestId, bytes: &[u8]) -> Result<(), String> {
        let nth = self.reads.iter().position(|read| !read.done).ok_or("more reads done than asked for")?;
        self.reads[nth].done = true;
        let Read { id: expected, at, length, before, .. } = self.reads[nth];
        if (id, bytes.len()) != (expected, length) {
            return Err(format!("read {nth} ended out of order or with {} bytes", bytes.len()));
        }
        let mut content = self.content(before.max(self.seen));
        for count in before.max(self.seen)..=self.writes.len() {
            if count > before.max(self.seen) {
                let write = &self.writes[count - 1];
                content[write.at..write.at + write.bytes.len()].copy_from_slice(&write.bytes);
            }
            if content[at..at + length] == *bytes {
                self.seen = count;
                return Ok(());
            }
        }
        Err(format!("read {nth} brought what no number of writes from {before} on explains"))
    }

    /// Writes asked for.
    pub fn writes(&self) -> u64 {
        self.writes.len() as u64
    }

    /// Whether all that was asked for is done.
    pub fn is_done(&self) -> bool {
        self.writes.iter().all(|write| write.done) && self.reads.iter().all(|read| read.done)
    }

    /// The first writes, which are told done, are in the pool, whatever became of those behind them.
    pub fn kept(&self, pool: &[u8]) -> Result<(), String> {
        let done = self.writes.iter().take_while(|write| write.done).count();
        let content = self.content(done);
        for (place, byte) in pool.iter().enumerate() {
            let is_later = |write: &Write| write.bytes.get(place.wrapping_sub(write.at)) == Some(byte);
            if *byte != content[place] && !self.writes[done..].iter().any(is_later) {
                return Err(format!("{done} writes are done, and byte {place} is not there"));
            }
        }
        Ok(())
    }

    /// Requests that are told done.
    pub fn done(&self) -> usize {
        let writes = self.writes.iter().filter(|write| write.done).count();
        writes + self.reads.iter().filter(|read| read.done).count()
    }

    /// All that was asked for is done, and the pool has what the last writes left.
    pub fn end(&self, pool: &[u8]) -> Result<(), String> {
        if !self.is_done() {
            return Err("something is not done".into());
        }
        let content = self.content(self.writes.len());
        if content != pool { Err("the pool has something else at the end".into()) } else { Ok(()) }
    }
}
