//! Which component is next: one due time each, on a wheel of nanoseconds.
//!
//! ```text
//!   base                                    base + SLOTS
//!    ├──┬──┬──┬──┬── … ──┬──┬──┬──┬──┬──┬──┬──┤
//!    │  │AC│  │B │       │  │  │  │  │D │  │  │   far: E, F …, until the wheel comes round to them
//!    └──┴──┴──┴──┴── … ──┴──┴──┴──┴──┴──┴──┴──┘
//! ```

use p4rack_wire::Nanos;

/// Nanoseconds that the wheel spans: 64 words of 64 bits say which of them somebody waits for.
const SLOTS: u64 = 64 * 64;
/// No component.
const NONE: u16 = u16::MAX;
/// In no slot, but in `far`.
const FAR: u16 = u16::MAX - 1;

/// Due times of a fixed set of components.
///
/// A component that holds many events (a link with frames on it) keeps them in order itself and
/// shows only the first, so setting a time is a few steps and allocates nothing.
/// Components due at the same time come in the order in which their times were set.
#[derive(Clone, Debug)]
pub struct Schedule {
    components: Vec<Component>,
    /// The first and the last component of each slot; slot `t % SLOTS` is that of time `t`.
    slots: Box<[(u16, u16); SLOTS as usize]>,
    /// Bit by slot: it is not empty. Bit by word of these: it is not zero.
    words: [u64; 64],
    summary: u64,
    /// The time that the wheel stands at.
    base: u64,
    far: Vec<u16>,
    /// Nobody in `far` is due earlier.
    far_from: u64,
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Component {
    /// `u64::MAX`: waits for nothing.
    due: u64,
    /// Counts what was set.
    sequence: u64,
    /// Its slot, `FAR` or `NONE`.
    slot: u16,
    next: u16,
    /// Of those in `far` their position.
    previous: u16,
}

/// What [`Schedule::next`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This component is due, then.
    Due(usize, Nanos),
    /// Somebody is, but later than asked for.
    Later,
    /// Nobody waits for anything.
    Nothing,
}

impl Schedule {
    /// A schedule of so many components, less than 2^16 - 1, none of which waits for anything.
    pub fn new(components: usize) -> Schedule {
        let idle = Component { due: u64::MAX, sequence: 0, slot: NONE, next: NONE, previous: NONE };
        Schedule {
            components: vec![idle; components.min(usize::from(FAR))],
            slots: Box::new([(NONE, NONE); SLOTS as usize]),
            words: [0; 64],
            summary: 0,
            base: 0,
            far: Vec::new(),
            far_from: u64::MAX,
            sequence: 0,
        }
    }

    /// When `component` is due; `None`: it waits for nothing. A time that has passed counts as now.
    #[inline]
    pub fn set(&mut self, component: usize, due: Option<Nanos>) {
        let due = due.map_or(u64::MAX, |due| due.0);
        let one = &mut self.components[component];
        if one.due == due {
            return;
        }
        one.due = due;
        self.sequence += 1;
        one.sequence = self.sequence;
        match one.slot {
            NONE => {}
            FAR => self.leave_far(component),
            slot => self.leave(component, slot),
        }
        if due != u64::MAX {
            self.place(component, due);
        }
    }

    /// The component that is due first, if that is not after `end`. The wheel turns to its time.
    #[inline]
    pub fn next(&mut self, end: Nanos) -> Next {
        loop {
            if self.summary != 0 {
                let slot = self.first();
                let time = self.base + (u64::from(slot).wrapping_sub(self.base) & (SLOTS - 1));
                if time > end.0 {
                    return Next::Later;
                }
                if time != self.base {
                    self.turn(time);
                }
                let first = self.slots[usize::from(slot)].0;
                return Next::Due(first.into(), Nanos(self.components[usize::from(first)].due));
            }
            if self.far.is_empty() {
                return Next::Nothing;
            }
            let times = self.far.iter().map(|component| self.components[usize::from(*component)].due);
            match times.min() {
                Some(first) if first <= end.0 => self.turn(first),
                _ => return Next::Later,
            }
        }
    }

    /// The first slot from `base` on that is not empty; there is one.
    #[inline]
    fn first(&self) -> u16 {
        let at = (self.base & (SLOTS - 1)) as u32;
        let (word, bit) = (at / 64, at % 64);
        let here = self.words[word as usize] >> bit;
        if here != 0 {
            return (at + here.trailing_zeros()) as u16;
        }
        // The last word looked at is this one again, for what lies almost a turn ahead.
        let word = (word + 1 + self.summary.rotate_right(word + 1).trailing_zeros()) % 64;
        (word * 64 + self.words[word as usize].trailing_zeros()) as u16
    }

    /// The wheel turns to a time that is not beyond anybody on it.
    #[inline]
    fn turn(&mut self, time: u64) {
        self.base = time;
        if self.far_from < time.saturating_add(SLOTS) {
            self.take_far();
        }
    }

    /// Who is far and no longer so comes onto the wheel.
    #[cold]
    fn take_far(&mut self) {
        let reach = self.base.saturating_add(SLOTS);
        let (mut near, far): (Vec<u16>, Vec<u16>) =
            self.far.iter().partition(|component| self.components[usize::from(**component)].due < reach);
        self.far = far;
        self.far_from = u64::MAX;
        for (position, &component) in self.far.iter().enumerate() {
            let one = &mut self.components[usize::from(component)];
            one.previous = position as u16;
            self.far_from = self.far_from.min(one.due);
        }
        near.sort_unstable_by_key(|component| self.components[usize::from(*component)].sequence);
        for component in near {
            let component = usize::from(component);
            self.place(component, self.components[component].due);
        }
    }

    #[inline]
    fn place(&mut self, component: usize, due: u64) {
        let due = due.max(self.base);
        if due - self.base >= SLOTS {
            let one = &mut self.components[component];
            (one.slot, one.previous) = (FAR, self.far.len() as u16);
            self.far.push(component as u16);
            self.far_from = self.far_from.min(due);
            return;
        }
        let slot = (due & (SLOTS - 1)) as usize;
        let ends = &mut self.slots[slot];
        let last = std::mem::replace(&mut ends.1, component as u16);
        if last == NONE {
            ends.0 = component as u16;
            self.words[slot / 64] |= 1 << (slot % 64);
            self.summary |= 1 << (slot / 64);
        } else {
            self.components[usize::from(last)].next = component as u16;
        }
        let one = &mut self.components[component];
        (one.slot, one.next, one.previous) = (slot as u16, NONE, last);
    }

    /// Takes a component out of its slot.
    #[inline]
    fn leave(&mut self, component: usize, slot: u16) {
        let one = &mut self.components[component];
        let (next, previous) = (one.next, one.previous);
        one.slot = NONE;
        let ends = &mut self.slots[usize::from(slot)];
        if (previous, next) == (NONE, NONE) {
            *ends = (NONE, NONE);
            let word = usize::from(slot / 64);
            self.words[word] &= !(1 << (slot % 64));
            if self.words[word] == 0 {
                self.summary &= !(1 << word);
            }
            return;
        }
        match previous {
            NONE => ends.0 = next,
            previous => self.components[usize::from(previous)].next = next,
        }
        match next {
            NONE => ends.1 = previous,
            next => self.components[usize::from(next)].previous = previous,
        }
    }

    /// Takes a component out of those that are far.
    fn leave_far(&mut self, component: usize) {
        let one = &mut self.components[component];
        let at = usize::from(one.previous);
        one.slot = NONE;
        self.far.swap_remove(at);
        if let Some(&moved) = self.far.get(at) {
            self.components[usize::from(moved)].previous = at as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: Nanos = Nanos(u64::MAX);

    #[test]
    fn earliest_first_and_ties_in_the_order_they_were_set() {
        let mut schedule = Schedule::new(7);
        assert_eq!(schedule.next(END), Next::Nothing);
        // 5 and 6 are far when they are set, so is their time; 2 comes to it later.
        for (component, due) in [(3, 50), (1, 20), (4, 20), (0, 20), (6, 9_000), (5, 9_000)] {
            schedule.set(component, Some(Nanos(due)));
        }
        assert_eq!(schedule.next(Nanos(19)), Next::Later);
        let mut order = Vec::new();
        while let Next::Due(component, due) = schedule.next(END) {
            order.push((component, due.0));
            schedule.set(component, None);
            if component == 3 {
                schedule.set(1, Some(Nanos(8_000)));
            } else if due.0 == 8_000 {
                schedule.set(2, Some(Nanos(9_000)));
            }
        }
        assert_eq!(
            order,
            [(1, 20), (4, 20), (0, 20), (3, 50), (1, 8_000), (6, 9_000), (5, 9_000), (2, 9_000)]
        );
        assert_eq!(schedule.next(END), Next::Nothing);
    }

    #[test]
    fn what_has_passed_is_due_now() {
        let mut schedule = Schedule::new(2);
        schedule.set(0, Some(Nanos(5_000)));
        assert_eq!(schedule.next(END), Next::Due(0, Nanos(5_000)));
        schedule.set(0, None);
        schedule.set(1, Some(Nanos(10)));
        assert_eq!(schedule.next(Nanos(5_000)), Next::Due(1, Nanos(10)));
    }

    /// Against a list that is searched: times near and far, set, moved and taken back.
    #[test]
    fn agrees_with_a_list() {
        let mut random = crate::random::Random::new(7);
        for components in [1, 5, 37, 300] {
            let mut schedule = Schedule::new(components);
            let mut list = vec![(u64::MAX, 0); components];
            let (mut now, mut sequence) = (0, 0);
            for _ in 0..20_000 {
                for _ in 0..random.below(3) {
                    let component = random.below(components as u64) as usize;
                    let due = match random.below(8) {
                        0 => None,
                        1 => Some(now + random.below(100_000)),
                        2 => Some(now + SLOTS - 2 + random.below(4)),
                        _ => Some(now + random.below(300)),
                    };
                    schedule.set(component, due.map(Nanos));
                    if list[component].0 != due.unwrap_or(u64::MAX) {
                        sequence += 1;
                        list[component] = (due.unwrap_or(u64::MAX), sequence);
                    }
                }
                let least = (0..components).min_by_key(|component| list[*component]).unwrap_or(0);
                let end = now + random.below(2_000);
                let expected = match list[least].0 {
                    u64::MAX => Next::Nothing,
                    due if due > end => Next::Later,
                    due => Next::Due(least, Nanos(due)),
                };
                assert_eq!(schedule.next(Nanos(end)), expected);
                if let Next::Due(component, due) = expected {
                    now = due.0;
                    schedule.set(component, None);
                    list[component] = (u64::MAX, 0);
                } else {
                    now = end;
                }
            }
        }
    }
}
