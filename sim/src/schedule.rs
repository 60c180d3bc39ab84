//! Which component is next: one due time each, the earliest found by a tournament.

use p4rack_wire::Nanos;

/// Due times of a fixed set of components.
///
/// A component that holds many events (a link with frames on it) keeps them in order itself and
/// shows only the first, so setting a time costs one path up a small tree and allocates nothing.
/// Components due at the same time come in the order in which their times were set.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Time and below it a sequence number; a component that waits for nothing has `u128::MAX`.
    keys: Vec<u128>,
    /// Winners: node 1 is the root, leaves start at `keys.len()`.
    tree: Vec<u32>,
    sequence: u64,
}

impl Schedule {
    /// A schedule of so many components, none of which waits for anything.
    pub fn new(components: usize) -> Schedule {
        let leaves = components.max(2).next_power_of_two();
        let mut tree = vec![0; 2 * leaves];
        for node in (1..2 * leaves).rev() {
            tree[node] = if node >= leaves { (node - leaves) as u32 } else { tree[2 * node] };
        }
        Schedule { keys: vec![u128::MAX; leaves], tree, sequence: 0 }
    }

    /// When `component` is due; `None`: it waits for nothing.
    #[inline]
    pub fn set(&mut self, component: usize, due: Option<Nanos>) {
        let due = due.map_or(u64::MAX, |due| due.0);
        if (self.keys[component] >> 64) as u64 == due {
            return;
        }
        self.sequence += 1;
        self.keys[component] =
            if due == u64::MAX { u128::MAX } else { u128::from(due) << 64 | u128::from(self.sequence) };
        let mut node = (component + self.keys.len()) / 2;
        while node > 0 {
            let (a, b) = (self.tree[2 * node], self.tree[2 * node + 1]);
            let first = if self.keys[b as usize] < self.keys[a as usize] { b } else { a };
            // Another one goes before it, as it did: nothing changes further up.
            if first == self.tree[node] && first as usize != component {
                return;
            }
            self.tree[node] = first;
            node /= 2;
        }
    }

    /// The component that is due first, and when.
    #[inline]
    pub fn next(&self) -> Option<(usize, Nanos)> {
        let first = self.tree[1] as usize;
        let due = (self.keys[first] >> 64) as u64;
        (due != u64::MAX).then_some((first, Nanos(due)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earliest_first_and_ties_in_the_order_they_were_set() {
        let mut schedule = Schedule::new(5);
        assert_eq!(schedule.next(), None);
        for (component, due) in [(3, 50), (1, 20), (4, 20), (0, 20)] {
            schedule.set(component, Some(Nanos(due)));
        }
        let mut order = Vec::new();
        while let Some((component, due)) = schedule.next() {
            order.push((component, due.0));
            schedule.set(component, None);
        }
        assert_eq!(order, [(1, 20), (4, 20), (0, 20), (3, 50)]);
    }

    #[test]
    fn agrees_with_a_sorted_list() {
        let mut schedule = Schedule::new(37);
        let mut times = vec![u64::MAX; 37];
        let mut random = crate::random::Random::new(7);
        for _ in 0..2_000 {
            let (component, due) = (random.below(37) as usize, random.below(1_000));
            times[component] = due;
            schedule.set(component, Some(Nanos(due)));
            let least = times.iter().min().copied();
            assert_eq!(schedule.next().map(|(_, due)| due.0), least);
        }
    }
}
