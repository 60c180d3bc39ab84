//! Access to bytes of any length and place, in pieces that remote memory takes.

use p4rack_hosts::remote::{Operation, Order, Outcome, Piece, Pieces, Remote, Shape, Status, Written};
use p4rack_wire::Nanos;
use std::io;
use std::time::{Duration, Instant};

/// Longest wait without any completion. Replacing an engine takes a second.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait between two checks of the time.
const WAIT: Nanos = Nanos::from_millis(5);
/// Tag of writes; that of a read is the position of its bytes.
const WRITE: u64 = u64::MAX;
/// Pieces of a read that are requested together, at most.
const PIECES_MAX: u64 = 64;

/// A region with a length, like a file.
///
/// A write returns when it is submitted. A later read sees it: most ways keep the order of a program's writes and later reads, and
/// with other ways the read waits. Only [`Region::sync`] waits for all writes.
pub struct Region {
    remote: Box<dyn Remote>,
    shape: Shape,
    len: u64,
    /// Offset from which the region still has its initial zeros.
    touched: u64,
    /// Writes in flight.
    writing: u64,
    /// The first error. Since then, the contents of remote memory are unknown.
    failed: Option<String>,
}

impl Region {
    /// An empty region. Errors: a size is 0, or the end of a write does not mean that it is in the memory.
    pub fn new(remote: Box<dyn Remote>, shape: Shape) -> io::Result<Region> {
        let sizes = [
            shape.reads.count,
            shape.reads.longest_bytes.into(),
            shape.writes.count,
            shape.writes.longest_bytes.into(),
        ];
        if sizes.contains(&0) {
            let why = "remote memory that takes no reads or no writes can't be a storage";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        if remote.abilities().writes != Written::There {
            let why = "this way does not say when a write is in the memory: put a `Certain` in front of it";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let gathers = remote.abilities().pieces_max > 0;
        let remote = if gathers { remote } else { Box::new(Pieces::new(remote)) };
        Ok(Region { remote, shape, len: 0, touched: 0, writing: 0, failed: None })
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    /// Sets the length. New bytes are 0. Errors: the region is smaller.
    pub fn set_len(&mut self, len: u64) -> io::Result<()> {
        if len > self.shape.region_bytes {
            let why =
                format!("{len} bytes, but the region has {}: reserve a larger one", self.shape.region_bytes);
            return Err(io::Error::new(io::ErrorKind::StorageFull, why));
        }
        let (old, dirty) = (self.len, self.touched.min(len));
        self.len = len;
        let zeros = vec![0; self.shape.writes.longest_bytes as usize];
        let mut at = old;
        while at < dirty {
            let bytes = zeros.len().min((dirty - at) as usize);
            self.write(at, &zeros[..bytes])?;
            at += bytes as u64;
        }
        Ok(())
    }

    /// Submits a write. Errors: beyond the end.
    pub fn write(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        self.check(at, data.len())?;
        let mut place = at;
        for piece in data.chunks(self.shape.writes.longest_bytes as usize) {
            let most = match self.remote.abilities().order {
                Order::None => 1,
                Order::Program | Order::ReadsAfterWrites | Order::SameBytes | Order::Dependent => {
                    self.shape.writes.count
                }
            };
            while self.writing >= most {
                self.wait(&mut [], &mut 0)?;
            }
            self.submit(WRITE, Operation::Write { at: place, bytes: piece })?;
            self.writing += 1;
            place += piece.len() as u64;
        }
        self.touched = self.touched.max(place);
        Ok(())
    }

    /// Reads into `out`. Errors: beyond the end.
    pub fn read(&mut self, at: u64, out: &mut [u8]) -> io::Result<()> {
        self.check(at, out.len())?;
        if matches!(self.remote.abilities().order, Order::SameBytes | Order::None) {
            self.sync()?;
        }
        // Together they come as one answer where the way has that.
        let piece_bytes = u64::from(self.shape.reads.longest_bytes);
        let together = self.shape.reads.count.min(PIECES_MAX).min(self.remote.abilities().pieces_max as u64);
        let all_bytes = (piece_bytes * together).min(self.shape.reads.bytes.max(piece_bytes)) as usize;
        let (mut asked, mut pieces) = (0, Vec::new());
        while asked < out.len() {
            let part = all_bytes.max(1).min(out.len() - asked);
            let (start, end) = (at + asked as u64, at + (asked + part) as u64);
            let firsts = (start..end).step_by(piece_bytes as usize);
            pieces.clear();
            pieces.extend(firsts.map(|at| Piece { at, bytes: piece_bytes.min(end - at) as u32 }));
            self.submit(asked as u64, Operation::Gather { pieces: &pieces })?;
            asked += part;
            let mut came = asked - part;
            while came < asked {
                self.wait(&mut out[..asked], &mut came)?;
            }
        }
        Ok(())
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> io::Result<()> {
        self.remote.submit(tag, operation).map_err(|status| self.refused(status))
    }

    fn refused(&mut self, status: Status) -> io::Error {
        self.fail(io::ErrorKind::Other, format!("a request was refused: {status}"))
    }

    /// Waits until all writes are in remote memory.
    pub fn sync(&mut self) -> io::Result<()> {
        self.check(0, 0)?;
        while self.writing > 0 {
            self.wait(&mut [], &mut 0)?;
        }
        Ok(())
    }

    fn check(&self, at: u64, bytes: usize) -> io::Result<()> {
        if let Some(failed) = &self.failed {
            return Err(io::Error::other(format!("remote memory failed before: {failed}")));
        }
        match at.checked_add(bytes as u64) {
            Some(end) if end <= self.len => Ok(()),
            _ => {
                let why =
                    format!("bytes {at} to {} of a storage of {}", at.saturating_add(bytes as u64), self.len);
                Err(io::Error::new(io::ErrorKind::UnexpectedEof, why))
            }
        }
    }

    /// Keeps an error for all later calls.
    fn fail(&mut self, kind: io::ErrorKind, why: String) -> io::Error {
        self.failed = Some(why.clone());
        io::Error::new(kind, why)
    }

    /// Waits for completions. Bytes of reads go to their place in `out`; `came` counts them.
    fn wait(&mut self, out: &mut [u8], came: &mut usize) -> io::Result<()> {
        let start = Instant::now();
        loop {
            let (mut written, mut any, mut wrong, mut failed) = (0, false, false, None);
            let until = self.remote.now() + WAIT;
            let polled = self.remote.poll(until, &mut |tag, outcome| {
                any = true;
                match outcome {
                    Outcome::Written if tag == WRITE => written += 1,
                    Outcome::Read(bytes) => {
                        let place = usize::try_from(tag).unwrap_or(usize::MAX);
                        match out.get_mut(place..place.saturating_add(bytes.len())) {
                            Some(place) => place.copy_from_slice(bytes),
                            None => wrong = true,
                        }
                        *came += bytes.len();
                    }
                    Outcome::Failed(status) => failed = Some(status),
                    Outcome::Written | Outcome::Word(_) => wrong = true,
                }
            });
            polled.map_err(|error| self.fail(io::ErrorKind::Other, error.to_string()))?;
            if let Some(status) = failed {
                return Err(self.refused(status));
            }
            match self.writing.checked_sub(written) {
                Some(left) if !wrong => self.writing = left,
                _ => {
                    let why = "remote memory answered what was not asked for";
                    return Err(self.fail(io::ErrorKind::InvalidData, why.to_owned()));
                }
            }
            if any {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                let why = format!("remote memory has not answered for {} s", PATIENCE.as_secs());
                return Err(self.fail(io::ErrorKind::TimedOut, why));
            }
        }
    }
}

#[cfg(test)]
#[path = "region_tests.rs"]
mod tests;
