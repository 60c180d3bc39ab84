//! Which component is next: one due time each, the earliest found by a tournament.

use p4rack_wire::Nanos;

/// Due times of a fixed set of components.
///
/// A component that holds many events (a link with frames on it) keeps them in order itself and
/// shows only the first, so setting a time costs one path up a small tree and allocates nothing.
/// Components due at the same time come in the order in which their times were set.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Keys: time, sequence number and component, from the top. A component that waits for nothing has
    /// `u128::MAX`. Node 1 is the root, each node the lesser of its two, the leaves are the components.
    tree: Vec<u128>,
    sequence: u64,
}

/// Bits of a key below its sequence number.
const COMPONENT_BITS: u32 = 16;

impl Schedule {
    /// A schedule of so many components, none of which waits for anything. There are at most 2^16.
    pub fn new(components: usize) -> Schedule {
        let leaves = components.clamp(2, 1 << COMPONENT_BITS).next_power_of_two();
        Schedule { tree: vec![u128::MAX; 2 * leaves], sequence: 0 }
    }

    /// When `component` is due; `None`: it waits for nothing.
    #[inline]
    pub fn set(&mut self, component: usize, due: Option<Nanos>) {
        let due = due.map_or(u64::MAX, |due| due.0);
        let mut node = component + self.tree.len() / 2;
        if (self.tree[node] >> 64) as u64 == due {
            return;
        }
        self.sequence += 1;
        let order = (u128::from(self.sequence) << COMPONENT_BITS) | component as u128;
        self.tree[node] = if due == u64::MAX { u128::MAX } else { (u128::from(due) << 64) | order };
        while node > 1 {
            node /= 2;
            let least = self.tree[2 * node].min(self.tree[2 * node + 1]);
            // Another one goes before it, as it did: nothing changes further up.
            if self.tree[node] == least {
                return;
            }
            self.tree[node] = least;
        }
    }

    /// The component that is due first, and when.
    #[inline]
    pub fn next(&self) -> Option<(usize, Nanos)> {
        let first = self.tree[1];
        let due = (first >> 64) as u64;
        (due != u64::MAX).then_some((first as usize & ((1 << COMPONENT_BITS) - 1), Nanos(due)))
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
