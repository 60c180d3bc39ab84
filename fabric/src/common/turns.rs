//! Parties that share a link in turn, however much each of them has to send: a deficit round robin.

use std::collections::{BTreeMap, VecDeque};

/// What a party may be charged beyond its credit, in turns.
const DEBT_TURNS: u64 = 64;
/// Unused memory that is kept: of this many queues, each with room for at most as many entries.
const SPARES_MAX: usize = 64;

/// Entries that each party has to send, in order. `K` names a party.
#[derive(Clone, Debug)]
pub struct Turns<K, T> {
    /// Of those that have a place in the order: nothing is kept of the others, however many there are.
    queues: BTreeMap<K, Queue<T>>,
    /// Memory of former queues, for the next ones.
    spares: Vec<VecDeque<(u64, T)>>,
    /// The order of turns. A party that has sent its last entry keeps its place until that comes: one that has a single entry at a time
    /// would otherwise wait behind all others with each.
    order: VecDeque<K>,
    /// Whether the turn of the first one has begun.
    begun: bool,
    /// Bytes that a turn adds to the rest of the previous one.
    turn_bytes: u64,
    len: usize,
}

#[derive(Clone, Debug)]
struct Queue<T> {
    entries: VecDeque<(u64, T)>,
    /// Bytes that it may still send; below 0, it has been charged for more.
    credit: i64,
}

impl<K: Copy + Ord, T> Turns<K, T> {
    /// Without entries.
    pub fn new(turn_bytes: u64) -> Turns<K, T> {
        let (queues, order, spares) = (BTreeMap::new(), VecDeque::new(), Vec::new());
        Turns { queues, spares, order, begun: false, turn_bytes, len: 0 }
    }

    /// Adds an entry of `party` that costs `bytes`. One that costs more than a turn's bytes waits for several turns.
    pub fn push(&mut self, party: K, bytes: u64, what: T) {
        let Turns { queues, spares, order, .. } = self;
        let queue = queues.entry(party).or_insert_with(|| {
            order.push_back(party);
            Queue { entries: spares.pop().unwrap_or_default(), credit: 0 }
        });
        if queue.entries.is_empty() {
            // Turns without anything to send are not saved up.
            queue.credit = 0;
        }
        queue.entries.push_back((bytes, what));
        self.len += 1;
    }

    /// Takes the next entry.
    pub fn pop(&mut self) -> Option<T> {
        self.pop_if(|_| true)
    }

    /// Takes the next entry that may leave. A party whose first entry may not is passed over, and its turns are not saved up.
    pub fn pop_if(&mut self, may: impl Fn(&T) -> bool) -> Option<T> {
        let mut passed = 0;
        while passed < self.order.len() {
            let party = *self.order.front()?;
            let queue = self.queues.get_mut(&party)?;
            let Some((bytes, first)) = queue.entries.front() else {
                self.order.pop_front();
                self.remove(party);
                continue;
            };
            let (bytes, may_leave) = (*bytes, may(first));
            if may_leave && !std::mem::replace(&mut self.begun, true) {
                queue.credit = queue.credit.saturating_add_unsigned(self.turn_bytes);
            }
            if !may_leave || queue.credit < bytes.cast_signed() {
                passed = if may_leave { 0 } else { passed + 1 };
                self.begun = false;
                self.order.rotate_left(1);
                continue;
            }
            let (bytes, what) = queue.entries.pop_front()?;
            queue.credit = queue.credit.saturating_sub_unsigned(bytes);
            self.len -= 1;
            if queue.entries.is_empty() {
                self.begun = false;
                self.order.rotate_left(1);
            }
            return Some(what);
        }
        None
    }

    /// Charges `party` for bytes of no entry, at most for those of some turns: it waits until its turns have paid for them. Without entries
    /// it isn't charged, as it doesn't save turns up.
    pub fn charge(&mut self, party: K, bytes: u64) {
        let least = self.turn_bytes.saturating_mul(DEBT_TURNS).cast_signed().saturating_neg();
        if let Some(queue) = self.queues.get_mut(&party).filter(|queue| !queue.entries.is_empty()) {
            queue.credit = queue.credit.saturating_sub_unsigned(bytes).max(least);
        }
    }

    /// Takes the last entry of `party`.
    pub fn pop_last_of(&mut self, party: K) -> Option<T> {
        let queue = self.queues.get_mut(&party)?;
        let (_, what) = queue.entries.pop_back()?;
        self.len -= 1;
        if queue.entries.is_empty() {
            self.leave(party);
        }
        Some(what)
    }

    /// A party without entries has no turn.
    fn leave(&mut self, party: K) {
        self.begun &= self.order.front() != Some(&party);
        self.order.retain(|other| *other != party);
        self.remove(party);
    }

    /// Removes the queue of a party that has no place.
    fn remove(&mut self, party: K) {
        let removed = self.queues.remove(&party).map(|queue| queue.entries);
        let may_stay = |entries: &VecDeque<_>| entries.is_empty() && entries.capacity() <= SPARES_MAX;
        if self.spares.len() < SPARES_MAX {
            self.spares.extend(removed.filter(may_stay));
        }
    }

    /// The first entry of the one whose turn it is.
    pub fn first(&self) -> Option<&T> {
        let first = |party| self.queues.get(party)?.entries.front();
        self.order.iter().find_map(first).map(|(_, what)| what)
    }

    /// Entries of all parties.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no party has an entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The party with most entries.
    pub fn longest(&self) -> Option<K> {
        let busy = self.order.iter().copied().filter(|party| self.len_of(*party) > 0);
        busy.max_by_key(|party| self.len_of(*party))
    }

    /// How many entries `party` has.
    pub fn len_of(&self, party: K) -> usize {
        self.queues.get(&party).map_or(0, |queue| queue.entries.len())
    }

    /// The entries of `party`, in order.
    pub fn of(&self, party: K) -> impl Iterator<Item = &T> {
        self.queues.get(&party).into_iter().flat_map(|queue| queue.entries.iter().map(|(_, what)| what))
    }

    /// Keeps the entries of `party` for which `keep` holds.
    pub fn retain_of(&mut self, party: K, keep: impl Fn(&T) -> bool) {
        let Some(queue) = self.queues.get_mut(&party) else { return };
        let before = queue.entries.len();
        queue.entries.retain(|(_, what)| keep(what));
        self.len -= before - queue.entries.len();
        if queue.entries.is_empty() && before > 0 {
            self.leave(party);
        }
    }

    /// Removes `party` with all its entries.
    pub fn forget(&mut self, party: K) {
        self.retain_of(party, |_| false);
        self.leave(party);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_send_as_many_bytes_however_much_they_have() {
        let mut turns = Turns::new(100);
        for nth in 0..1_000 {
            turns.push(1, 100, (1, nth));
            turns.push(2, 30, (2, nth));
            if nth < 3 {
                turns.push(3, 100, (3, nth));
            }
        }
        let first: Vec<(u16, i32)> = (0..320).map_while(|_| turns.pop()).collect();
        let of = |party: u16| first.iter().filter(|one| one.0 == party).count();
        assert_eq!(of(3), 3);
        let bytes = [of(1) * 100, of(2) * 30];
        assert!(bytes[0].abs_diff(bytes[1]) <= 2 * 100, "{bytes:?}");
        for party in 1..=3 {
            let of: Vec<i32> = first.iter().filter(|one| one.0 == party).map(|one| one.1).collect();
            assert!(of.iter().copied().eq(0..of.len() as i32), "{party}: those of each stay in order");
        }
        assert_eq!(turns.len(), 2_003 - 320);
    }

    #[test]
    fn long_entries_and_charges_cost_a_party_its_turns() {
        // One has entries of five turns, two has short ones, three has short ones and is charged as much for each.
        let mut turns = Turns::new(100);
        for nth in 0..1_000 {
            turns.push(1, 500, (1, nth));
            turns.push(2, 100, (2, nth));
            turns.push(3, 100, (3, nth));
        }
        let mut of = [0u32; 4];
        for _ in 0..170 {
            let (party, _) = turns.pop().unwrap();
            of[party as usize] += 1u32;
            if party == 3 {
                turns.charge(3, 100);
            }
        }
        assert!(of[1].abs_diff(20) <= 1 && of[2].abs_diff(100) <= 2 && of[3].abs_diff(50) <= 2, "{of:?}");
        // A debt has a limit, and one without entries has none.
        let mut turns = Turns::new(100);
        turns.charge(1, 1_000);
        turns.push(1, 100, (1, 0));
        turns.push(1, 100, (1, 1));
        assert_eq!(turns.pop(), Some((1, 0)));
        turns.charge(1, u64::MAX);
        (0..200).for_each(|nth| turns.push(2, 100, (2, nth)));
        let waited = std::iter::from_fn(|| turns.pop()).position(|one| one.0 == 1);
        assert!((60..70).contains(&waited.unwrap()), "{waited:?}");
    }

    #[test]
    fn a_party_that_may_not_send_is_passed_over_and_saves_nothing_up() {
        let mut turns = Turns::new(100);
        for nth in 0..30 {
            turns.push(1, 300, (1, nth));
            turns.push(2, 100, (2, nth));
        }
        let only = |party: u16| move |one: &(u16, i32)| one.0 == party;
        assert!((0..10).all(|nth| turns.pop_if(only(2)) == Some((2, nth))));
        assert_eq!(turns.pop_if(|_| false), None);
        // Three turns for each entry of the first one, as if there had been none before.
        let first = std::iter::from_fn(|| turns.pop()).position(|one| one.0 == 1);
        assert!((2..=3).contains(&first.unwrap()), "{first:?}");
    }

    /// One party always has entries; two others have one at a time, each two turns after the previous one.
    #[test]
    fn a_party_with_one_entry_at_a_time_has_a_turn_of_each_round() {
        let (mut turns, mut due, mut of) = (Turns::new(100), [0, 0], [0u32; 3]);
        for now in 0..300 {
            turns.push(2, 100, 2);
            for party in [0, 1] {
                if due[party] <= now && turns.len_of(party) == 0 {
                    turns.push(party, 100, party);
                }
            }
            let sent = turns.pop().unwrap();
            of[sent] += 1;
            if sent < 2 {
                // It returns after the next turn has begun.
                due[sent] = now + 3;
            }
        }
        assert!(of.iter().all(|turns| turns.abs_diff(100) <= 2), "{of:?}");
    }

    #[test]
    fn a_party_that_is_forgotten_has_no_place() {
        let mut turns = Turns::new(100);
        (0..3).for_each(|_| turns.push(1, 100, 1));
        turns.push(2, 100, 2);
        assert_eq!([turns.pop(), turns.pop()], [Some(1), Some(2)]);
        // It has sent its last entry, and its place has not come again.
        turns.forget(2);
        assert_eq!(std::iter::from_fn(|| turns.pop()).collect::<Vec<i32>>(), [1; 2]);
        assert_eq!((turns.first(), turns.longest(), turns.is_empty()), (None, None, true));
    }

    /// Thousands of parties that have one entry each, a few at a time: memory is that of a few.
    #[test]
    fn parties_that_have_nothing_to_send_take_no_memory() {
        let mut turns = Turns::new(100);
        for round in 0..1_000u32 {
            for nth in 0..4 {
                turns.push(4 * round + nth, 100, nth);
            }
            assert!((0..4).all(|nth| turns.pop() == Some(nth)) && turns.pop().is_none());
            assert_eq!((turns.queues.len(), turns.spares.len()), (0, 4));
        }
        // Neither many queues nor a long one are kept.
        (0..1_000).for_each(|party| turns.push(party, 100, 0));
        (0..1_000).for_each(|_| turns.push(0, 100, 0));
        assert_eq!(std::iter::from_fn(|| turns.pop()).count(), 2_000);
        assert_eq!((turns.queues.len(), turns.spares.len()), (0, SPARES_MAX));
        assert!(turns.spares.iter().all(|spare| spare.capacity() <= SPARES_MAX));
    }

    #[test]
    fn what_has_just_come_waits_for_one_turn_of_each_other() {
        let mut turns = Turns::new(100);
        (0..50).for_each(|nth| turns.push(1, 100, (1, nth)));
        (0..50).for_each(|nth| turns.push(2, 50, (2, nth)));
        assert_eq!(turns.pop(), Some((1, 0)));
        turns.push(3, 100, (3, 0));
        let before = std::iter::from_fn(|| turns.pop()).position(|one| one.0 == 3);
        assert_eq!(before, Some(2), "two short ones of the second one's turn");
        assert_eq!(turns.longest(), Some(1));
        // The last entry of a party leaves before the others.
        turns.push(3, 100, (3, 1));
        assert_eq!((turns.pop_last_of(3), turns.pop_last_of(3), turns.len_of(3)), (Some((3, 1)), None, 0));
        // Nothing of a requester that is forgotten is sent.
        turns.forget(1);
        assert_eq!(turns.pop().map(|one| one.0), Some(2));
        turns.retain_of(2, |one| one.1 == 49);
        assert_eq!((turns.len(), turns.first()), (1, Some(&(2, 49))));
        assert_eq!((turns.pop(), turns.pop(), turns.first()), (Some((2, 49)), None, None));
    }
}
