//! Events by time, in ticks of a [`Clock`](super::Clock).

use std::collections::VecDeque;

/// Bits of a time that a level distinguishes.
const BITS: u32 = 3;
/// Lists of a level.
const LISTS: usize = 1 << BITS;
/// Levels, for times of 64 bits.
const LEVELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// Events in order of time; those of the same time in the order in which they were added.
///
/// A radix heap (Ahuja, Mehlhorn, Orlin and Tarjan, JACM 1990), with eight lists for each level: time does not go back,
/// so events are sorted only by the first digit in which their times differ from now. Events of the same time are
/// always in the same list, which keeps their order.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    now: u64,
    /// Events of now.
    current: VecDeque<E>,
    /// Later ones with their times: by the place of that digit, from the last one, and by the digit.
    later: Vec<Vec<(u64, E)>>,
    /// Which of these lists have events: a bit for each.
    filled: [u64; (LEVELS * LISTS).div_ceil(64)],
    /// Room for a list that is being distributed.
    spare: Vec<(u64, E)>,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        let later = (0..LEVELS * LISTS).map(|_| Vec::new()).collect();
        Agenda { now: 0, current: VecDeque::new(), later, filled: Default::default(), spare: Vec::new() }
    }
}

impl<E> Agenda<E> {
    /// Adds an event. It happens now if its time has passed.
    #[inline]
    pub fn add(&mut self, at: u64, event: E) {
        debug_assert!(at >= self.now, "{at} is before {}", self.now);
        self.put(at.max(self.now), event);
    }

    #[inline]
    fn put(&mut self, at: u64, event: E) {
        let Some(bit) = (at ^ self.now).checked_ilog2() else { return self.current.push_back(event) };
        let level = bit / BITS;
        let list = level as usize * LISTS + (at >> (level * BITS)) as usize % LISTS;
        self.filled[list / 64] |= 1 << (list % 64);
        self.later[list].push((at, event));
    }

    /// Whether no event is to come.
    pub fn is_empty(&self) -> bool {
        self.current.is_empty() && self.filled.iter().all(|lists| *lists == 0)
    }

    /// The next event and its time.
    #[inline]
    pub fn next(&mut self) -> Option<(u64, E)> {
        self.next_until(u64::MAX)
    }

    /// The next event and its time, unless that is after `until`.
    #[inline]
    pub fn next_until(&mut self, until: u64) -> Option<(u64, E)> {
        if self.current.is_empty() {
            self.advance(until);
        }
        if self.now > until {
            return None;
        }
        Some((self.now, self.current.pop_front()?))
    }

    /// Goes on to the next events, unless they are after `until`. They are all in the first list, and go to those before it.
    fn advance(&mut self, until: u64) {
        let Some(word) = self.filled.iter().position(|lists| *lists != 0) else { return };
        let events = &mut self.later[word * 64 + self.filled[word].trailing_zeros() as usize];
        let Some(next) = events.iter().map(|(at, _)| *at).min().filter(|next| *next <= until) else { return };
        self.now = next;
        self.filled[word] &= self.filled[word] - 1;
        if events.len() == 1 {
            return self.current.extend(events.pop().map(|(_, event)| event));
        }
        let mut events = std::mem::replace(events, std::mem::take(&mut self.spare));
        events.drain(..).for_each(|(at, event)| self.put(at, event));
        self.spare = events;
    }
}

impl<E> Extend<(u64, E)> for Agenda<E> {
    fn extend<I: IntoIterator<Item = (u64, E)>>(&mut self, events: I) {
        events.into_iter().for_each(|(at, event)| self.add(at, event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    #[test]
    fn events_come_in_order_of_time_and_then_as_they_were_added() {
        for seed in 0..20 {
            let (mut agenda, mut model, mut random) =
                (Agenda::default(), BinaryHeap::new(), Random::new(seed));
            let (mut added, mut now) = (0, 0);
            for _ in 0..20_000 {
                if random.chance(0.52) {
                    let bits = random.below(1 + 3 * seed);
                    let at = now + random.below(1 << bits);
                    agenda.add(at, added);
                    model.push(Reverse((at, added)));
                    added += 1;
                } else {
                    let until = now + (1 << random.below(20));
                    let due = model.peek().is_some_and(|Reverse((at, _))| *at <= until);
                    let expected = if due || random.chance(0.5) { model.pop() } else { None };
                    let next =
                        if due || expected.is_none() { agenda.next_until(until) } else { agenda.next() };
                    assert_eq!(next, expected.map(|Reverse(next)| next), "seed {seed}");
                    now = next.map_or(now, |(at, _)| at);
                }
            }
            while let Some(next) = agenda.next() {
                assert_eq!(Some(next), model.pop().map(|Reverse(next)| next));
            }
            assert_eq!(model.pop(), None);
        }
    }
}
