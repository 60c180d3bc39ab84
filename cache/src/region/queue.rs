//! Frames that wait for something, in turn: a bit for each.

use super::Frame;

/// Frames of a word.
const WORD: u32 = u64::BITS;

/// A hand goes over the frames, so each is taken within one round.
pub(super) struct Queue {
    words: Vec<u64>,
    /// A bit for each word that isn't 0.
    summary: Vec<u64>,
    len: u32,
    hand: Frame,
}

fn place(number: u32) -> (usize, u64) {
    ((number / WORD) as usize, 1 << (number % WORD))
}

/// The first bit from `from` on in a word.
fn first(word: u64, from: u32) -> Option<u32> {
    let rest = word & (u64::MAX << from);
    (rest != 0).then(|| rest.trailing_zeros())
}

impl Queue {
    /// Of this many frames, none of which waits.
    pub fn new(frames: u32) -> Queue {
        let words = frames.div_ceil(WORD);
        let summary = vec![0; words.div_ceil(WORD) as usize];
        Queue { words: vec![0; words as usize], summary, len: 0, hand: 0 }
    }

    pub fn bytes(&self) -> u64 {
        ((self.words.len() + self.summary.len()) * size_of::<u64>()) as u64
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn contains(&self, frame: Frame) -> bool {
        let (word, bit) = place(frame);
        self.words[word] & bit != 0
    }

    /// Enters a frame, unless it is here.
    pub fn insert(&mut self, frame: Frame) {
        let (word, bit) = place(frame);
        self.len += u32::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
        let (summary, bit) = place(word as u32);
        self.summary[summary] |= bit;
    }

    /// Enters a frame that was taken, which is the next one again.
    pub fn put_back(&mut self, frame: Frame) {
        self.insert(frame);
        self.hand = frame;
    }

    /// Takes a frame out, if it is here.
    fn remove(&mut self, frame: Frame) {
        let (word, bit) = place(frame);
        self.len -= u32::from(self.words[word] & bit != 0);
        self.words[word] &= !bit;
        if self.words[word] == 0 {
            let (summary, bit) = place(word as u32);
            self.summary[summary] &= !bit;
        }
    }

    /// Takes the next frame.
    pub fn pop(&mut self) -> Option<Frame> {
        if self.is_empty() {
            return None;
        }
        let frame = self.from(self.hand).or_else(|| self.from(0))?;
        self.remove(frame);
        self.hand = frame + 1;
        Some(frame)
    }

    /// The first frame from this one on.
    fn from(&self, frame: Frame) -> Option<Frame> {
        let word = frame / WORD;
        if let Some(bit) = first(*self.words.get(word as usize)?, frame % WORD) {
            return Some(word * WORD + bit);
        }
        let (mut at, mut from) = ((word + 1) / WORD, (word + 1) % WORD);
        loop {
            if let Some(bit) = first(*self.summary.get(at as usize)?, from) {
                let word = at * WORD + bit;
                return first(self.words[word as usize], 0).map(|bit| word * WORD + bit);
            }
            (at, from) = (at + 1, 0);
        }
    }

    pub fn clear(&mut self) {
        self.words.fill(0);
        self.summary.fill(0);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn frames_are_taken_in_turn(
            frames in 1u32..9_000,
            steps in prop::collection::vec((0u8..5, any::<u32>()), 1..200),
        ) {
            let (mut queue, mut model, mut hand) = (Queue::new(frames), BTreeSet::new(), 0);
            for (step, number) in steps {
                let frame = number % frames;
                match step {
                    0 | 1 => {
                        queue.insert(frame);
                        model.insert(frame);
                    }
                    2 => {
                        queue.remove(frame);
                        model.remove(&frame);
                    }
                    3 => {
                        let next = model.range(hand..).next().or(model.first()).copied();
                        prop_assert_eq!(queue.pop(), next);
                        next.inspect(|frame| {
                            model.remove(frame);
                            hand = frame + 1;
                        });
                    }
                    _ => {
                        queue.put_back(frame);
                        model.insert(frame);
                        hand = frame;
                    }
                }
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                prop_assert_eq!(queue.contains(frame), model.contains(&frame));
            }
            queue.clear();
            prop_assert_eq!(queue.pop(), None);
        }
    }
}
