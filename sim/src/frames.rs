//! Frame buffers, which are reused.

use std::ops::{Deref, DerefMut};

/// A frame on its way, boxed because it is passed on by value: one word instead of four.
pub(crate) type Frame = Box<Buffer>;

/// A frame's bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    /// How many switches of a topology have sent it so far.
    pub hops: u16,
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Buffer {
        Buffer { bytes, hops: 0 }
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;
    #[inline(always)]
    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// Buffers of frames shorter than this are kept for short frames.
const SHORT: usize = 256;
/// Number of buffers that owners with too many keep, and owners with too few ask for.
const KEPT: usize = 512;

/// Free buffers.
///
/// A long frame in a buffer that held a short one would first clear 1500 bytes for nothing, so there are two
/// lists.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    short: Vec<Frame>,
    long: Vec<Frame>,
}

impl Frames {
    /// A buffer for a frame that will probably be short, or long.
    #[inline(always)]
    pub fn take(&mut self, short: bool) -> Frame {
        let (first, second) = match short {
            true => (&mut self.short, &mut self.long),
            false => (&mut self.long, &mut self.short),
        };
        first.pop().or_else(|| second.pop()).unwrap_or_else(|| Box::new(Vec::with_capacity(1600).into()))
    }

    /// Returns a buffer.
    #[inline(always)]
    pub fn release(&mut self, frame: Frame) {
        let free = if frame.len() < SHORT { &mut self.short } else { &mut self.long };
        free.push(frame);
    }

    /// A copy of a frame.
    pub fn copy(&mut self, frame: &[u8]) -> Frame {
        let mut copy = self.take(frame.len() < SHORT);
        copy.clear();
        copy.extend_from_slice(frame);
        copy
    }

    /// Whether it should [`share`](Frames::share) with others, because frames begin here and end elsewhere, or the
    /// other way round.
    #[inline]
    pub fn is_uneven(&self) -> bool {
        let count = self.short.len() + self.long.len();
        count == 0 || count > 4 * KEPT
    }

    /// Gives surplus buffers to `others`, or takes missing ones from them.
    #[cold]
    pub fn share(&mut self, others: &mut Frames) {
        for (own, others) in [(&mut self.short, &mut others.short), (&mut self.long, &mut others.long)] {
            let missing = (KEPT / 2).saturating_sub(own.len()).min(others.len());
            own.extend(others.drain(others.len() - missing..));
            if own.len() > KEPT {
                others.extend(own.drain(KEPT..));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_too_many_gives_to_who_has_none() {
        let (mut rich, mut poor, mut common) = (Frames::default(), Frames::default(), Frames::default());
        (0..5 * KEPT).for_each(|_| rich.release(Box::new(vec![0; 60].into())));
        assert!(rich.is_uneven() && poor.is_uneven());
        rich.share(&mut common);
        poor.share(&mut common);
        assert!(!rich.is_uneven() && !poor.is_uneven());
        let counts = [&rich, &poor, &common].map(|frames| frames.short.len());
        assert_eq!((counts.iter().sum::<usize>(), counts[0], counts[1]), (5 * KEPT, KEPT, KEPT / 2));
    }
}
