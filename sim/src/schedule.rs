//! Due times of components: a tournament that knows which one is next, or a list that only knows when.
//!
//! ```text
//!              3                  the component that is due first wins a match
//!        ┌─────┴─────┐
//!        0           3            tree[1]: the winner of all
//!     ┌──┴──┐     ┌──┴──┐         tree[2], tree[3] …
//!     0     1     2     3         components
//! ```

use p4rack_wire::Nanos;

/// Due times that can be moved forward.
pub(crate) trait Hasten {
    /// Makes `component` due at this time, if that is earlier.
    fn hasten(&mut self, component: usize, due: Nanos);
}

/// Due times of a fixed set of components.
///
/// A component with several events (a link with frames on it) keeps them in order itself and shows only the
/// first. Setting a time replays the matches on one path to the root: logarithmic in the number of
/// components, in memory that stays in the processor's cache. Ties are broken pseudo-randomly, by the time
/// and the components, so no component is always first, and the order of calls does not matter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    /// Due time of each component.
    due: Vec<Nanos>,
    /// Winners of matches; the final is at 1, matches between components start at `due.len() / 2`.
    tree: Vec<u16>,
}

/// Which of two components that are due at the same time comes first.
#[cold]
#[inline(never)]
fn by_lot(left: usize, right: usize, due: Nanos) -> usize {
    // Tie-break keys are unique.
    let lot = |component: usize| {
        let mixed = due.0 ^ (component as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed & !0xffff | component as u64
    };
    if lot(right) < lot(left) { right } else { left }
}

impl Schedule {
    /// A schedule of at most 2^16 components, none of which is due.
    pub fn new(components: usize) -> Schedule {
        let leaves = components.clamp(2, 1 << 16).next_power_of_two();
        let mut tree: Vec<u16> = vec![0; leaves];
        for at in (1..leaves).rev() {
            let left = 2 * at;
            tree[at] = if left < leaves { tree[left] } else { (left - leaves) as u16 };
        }
        Schedule { due: vec![Nanos::MAX; leaves], tree }
    }

    /// Sets when `component` is due; `Nanos::MAX` is never.
    pub fn set(&mut self, component: usize, due: Nanos) {
        let Some(known) = self.due.get_mut(component).filter(|known| **known != due) else { return };
        *known = due;
        let mut at = (component + self.due.len()) / 2;
        let (mut left, mut right) = (component & !1, component | 1);
        loop {
            let (a, b) = (self.due[left], self.due[right]);
            // The winner is unpredictable, so there must be no branch on it. Ties are rare, except between two
            // that are never due, where either may win.
            let mut winner = if b < a { right } else { left };
            if a == b {
                winner = by_lot(left, right, a);
            }
            self.tree[at] = winner as u16;
            if at == 1 {
                return;
            }
            // The opponent in the next match.
            let other = usize::from(self.tree[at ^ 1]);
            (left, right) = (winner, other);
            at /= 2;
        }
    }

    /// The component that is due first, and when; `Nanos::MAX` if none is.
    #[inline]
    pub fn first(&self) -> (usize, Nanos) {
        let first = usize::from(self.tree[1]);
        (first, self.due[first])
    }

    /// When the first component is due.
    #[inline]
    pub fn first_due(&self) -> Nanos {
        self.first().1
    }
}

impl Hasten for Schedule {
    #[inline]
    fn hasten(&mut self, component: usize, due: Nanos) {
        if due < self.due[component] {
            self.set(component, due);
        }
    }
}

/// Due times of components whose order does not matter.
#[derive(Clone, Debug)]
pub(crate) struct Dues {
    due: Vec<Nanos>,
    first: Nanos,
}

impl Dues {
    /// A set of components, none of which is due.
    pub fn new(components: usize) -> Dues {
        Dues { due: vec![Nanos::MAX; components], first: Nanos::MAX }
    }

    /// When the first component is due.
    #[inline]
    pub fn first(&self) -> Nanos {
        self.first
    }

    /// When a component is due.
    #[inline]
    pub fn of(&self, component: usize) -> Nanos {
        self.due[component]
    }

    /// Sets when `component` is due. Once all have had their turn, [`begin_with`](Self::begin_with) has to
    /// set when the first is.
    #[inline]
    pub fn set(&mut self, component: usize, due: Nanos) {
        self.due[component] = due;
    }

    /// Sets when the first component is due.
    #[inline]
    pub fn begin_with(&mut self, first: Nanos) {
        debug_assert_eq!(self.due.iter().min().copied().unwrap_or(Nanos::MAX), first);
        self.first = first;
    }
}

impl Default for Dues {
    fn default() -> Dues {
        Dues::new(0)
    }
}

impl Hasten for Dues {
    #[inline]
    fn hasten(&mut self, component: usize, due: Nanos) {
        let known = &mut self.due[component];
        *known = due.min(*known);
        self.first = due.min(self.first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(schedule: &mut Schedule) -> Vec<(usize, u64)> {
        let next = || {
            let (component, due) = schedule.first();
            schedule.set(component, Nanos::MAX);
            (due != Nanos::MAX).then_some((component, due.0))
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn earliest_first() {
        let mut schedule = Schedule::new(7);
        assert_eq!(schedule.first_due(), Nanos::MAX);
        for (component, due) in [(3, 50), (1, 20), (4, 21), (0, 60), (6, 9_000), (5, 9_001)] {
            schedule.set(component, Nanos(due));
        }
        schedule.hasten(1, Nanos(30));
        schedule.hasten(5, Nanos(8_000));
        schedule.set(0, Nanos(10));
        assert_eq!(order(&mut schedule), [(0, 10), (1, 20), (4, 21), (3, 50), (5, 8_000), (6, 9_000)]);
    }

    #[test]
    fn the_first_is_known_after_each_has_had_its_turn() {
        let mut dues = Dues::new(3);
        assert_eq!(dues.first(), Nanos::MAX);
        dues.hasten(2, Nanos(7));
        dues.hasten(0, Nanos(9));
        dues.hasten(2, Nanos(8));
        assert_eq!((dues.first(), dues.of(2), dues.of(1)), (Nanos(7), Nanos(7), Nanos::MAX));
        dues.set(2, Nanos(20));
        dues.begin_with(Nanos(9));
        assert_eq!((dues.first(), dues.of(2)), (Nanos(9), Nanos(20)));
    }

    #[test]
    fn at_the_same_time_each_is_first_as_often_whoever_came_before() {
        let mut first = [0; 4];
        for due in 0..4_000 {
            let [mut up, mut down] = [Schedule::new(4), Schedule::new(4)];
            (0..4).for_each(|component| up.set(component, Nanos(due)));
            (0..4).rev().for_each(|component| down.set(component, Nanos(due)));
            let order = order(&mut up);
            assert_eq!(order, self::order(&mut down));
            first[order[0].0] += 1;
        }
        assert!(first.iter().all(|times| (850..1_150).contains(times)), "{first:?}");
    }

    /// Against a list that is searched: times set, moved and taken back.
    #[test]
    fn agrees_with_a_list() {
        let mut random = crate::random::Random::new(7);
        for components in [1, 2, 3, 5, 37, 300] {
            let mut schedule = Schedule::new(components);
            let mut list = vec![Nanos::MAX; components];
            for _ in 0..20_000 {
                let component = random.below(components as u64) as usize;
                let due = if random.chance(0.2) { Nanos::MAX } else { Nanos(random.below(100)) };
                schedule.set(component, due);
                list[component] = due;
                let (first, due) = schedule.first();
                let least = list.iter().min().copied().unwrap();
                assert_eq!(due, least);
                assert!(least == Nanos::MAX || list[first] == least);
            }
        }
    }
}
