//! Buffers of frames that are used again and again.

/// What held a frame shorter than this is for short ones again.
const SHORT: usize = 256;
/// Buffers that one who has too many keeps, and one who has too few asks for.
const KEPT: usize = 512;

/// Buffers that hold no frame at the moment.
///
/// Writing a long frame where a short one was clears what is new of the buffer, all of 1500 bytes that nobody reads: so
/// buffers are given back to their like.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    short: Vec<Vec<u8>>,
    long: Vec<Vec<u8>>,
}

impl Frames {
    /// A buffer for a frame that will probably be short or long.
    #[inline(always)]
    pub fn take(&mut self, short: bool) -> Vec<u8> {
        let (first, second) = match short {
            true => (&mut self.short, &mut self.long),
            false => (&mut self.long, &mut self.short),
        };
        first.pop().or_else(|| second.pop()).unwrap_or_else(|| Vec::with_capacity(1600))
    }

    /// Gives a buffer back.
    #[inline(always)]
    pub fn give_back(&mut self, frame: Vec<u8>) {
        let free = if frame.len() < SHORT { &mut self.short } else { &mut self.long };
        free.push(frame);
    }

    /// A second frame with the same bytes.
    pub fn copy(&mut self, frame: &[u8]) -> Vec<u8> {
        let mut copy = self.take(frame.len() < SHORT);
        copy.clear();
        copy.extend_from_slice(frame);
        copy
    }

    /// Whether it should [`share`](Frames::share) with others: frames come here that start elsewhere, or the other way
    /// round.
    #[inline]
    pub fn is_uneven(&self) -> bool {
        let count = self.short.len() + self.long.len();
        count == 0 || count > 4 * KEPT
    }

    /// Gives what it has too much of to `others`, or takes of theirs what it lacks.
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
        (0..5 * KEPT).for_each(|_| rich.give_back(vec![0; 60]));
        assert!(rich.is_uneven() && poor.is_uneven());
        rich.share(&mut common);
        poor.share(&mut common);
        assert!(!rich.is_uneven() && !poor.is_uneven());
        let counts = [&rich, &poor, &common].map(|frames| frames.short.len());
        assert_eq!((counts.iter().sum::<usize>(), counts[0], counts[1]), (5 * KEPT, KEPT, KEPT / 2));
    }
}
