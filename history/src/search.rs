//! Wing and Gong's search (Journal of Parallel and Distributed Computing, 1993) for an order of operations, which visits no state
//! twice.

use super::{Act, Entry, Outcome};
use std::borrow::Borrow;
use std::collections::HashSet;

/// Operations at most between the first one that has not taken effect and the last one that has.
const WINDOW: usize = 128;
/// States that are tried for one object at most.
const STATES_MAX: usize = 2_000_000;

/// In which order operations that are under way together take effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In any.
    Any,
    /// One thread has requested all of them, and they keep Cowbird's order: writes take effect in the order of
    /// requests, so do reads, and reads take effect behind the writes requested before them. A write may overtake a
    /// read.
    Issued,
}

/// Why no order was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unexplained {
    /// There is none.
    NoOrder,
    /// Too many operations overlap to try all orders.
    TooMany,
}

impl std::fmt::Display for Unexplained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unexplained::NoOrder => "no order explains",
            Unexplained::TooMany => "too many operations overlap to order",
        })
    }
}

/// Operations that have taken effect, by their position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Done {
    /// All before this one.
    before: usize,
    /// And of those from there on, one for each bit.
    behind: u128,
}

impl Done {
    fn has(self, nth: usize) -> bool {
        nth < self.before || nth - self.before < WINDOW && self.behind >> (nth - self.before) & 1 == 1
    }

    /// The same with another one, which is in the window.
    fn with(self, nth: usize) -> Done {
        let behind = self.behind | 1 << (nth - self.before);
        let more = behind.trailing_ones();
        Done { before: self.before + more as usize, behind: behind.checked_shr(more).unwrap_or(0) }
    }
}

/// Operations that have taken effect, and the object's state behind them.
pub(crate) type Reached<S> = (Done, S);

/// Whether an order explains the operations' results, if the object was in the state `first` before them: each one
/// takes effect once, between request and answer. Those without an answer take effect once or never; those that were
/// refused, never.
pub fn linearizable<A: Act>(entries: &[Entry<A>], first: &A::State, order: Order) -> Result<(), Unexplained> {
    let mut entries: Vec<&Entry<A>> = entries.iter().collect();
    entries.sort_by_key(|entry| entry.asked);
    search(&entries, (Done::default(), first.clone()), order).map(drop)
}

/// Searches for an order that continues a former result; `entries` are sorted by the time of asking. Returns the
/// reached operations: all that have a result, and no more than these need.
pub(crate) fn search<A: Act, E: Borrow<Entry<A>>>(
    entries: &[E],
    from: Reached<A::State>,
    order: Order,
) -> Result<Reached<A::State>, Unexplained> {
    let found = |nth: &usize| {
        let entry = entries[*nth].borrow();
        entry.outcome.known().is_some() && entry.act.finds()
    };
    let left = (from.0.before..entries.len()).filter(|nth| !from.0.has(*nth)).filter(found).count();
    let (mut seen, mut open) = (HashSet::new(), vec![(from, left)]);
    let (mut next, mut behind, mut is_cut) = (Vec::new(), Vec::new(), false);
    while let Some((reached, left)) = open.pop() {
        if left == 0 {
            return Ok(reached);
        }
        if seen.contains(&reached) {
            continue;
        }
        if seen.len() >= STATES_MAX {
            return Err(Unexplained::TooMany);
        }
        let (done, state) = &reached;
        if !candidates(entries, *done, order, &mut next) {
            is_cut = true;
            // The oldest one may never take effect: without it, the window continues.
            if order == Order::Any && entries[done.before].borrow().outcome.known().is_none() {
                open.push(((done.with(done.before), state.clone()), left));
            }
        }
        // Those requested first are tried first.
        for nth in next.drain(..).rev() {
            let entry = entries[nth].borrow();
            let Some(state) = entry.act.apply(state) else { continue };
            let done = done.with(nth);
            // Without an answer, and hidden before anything could see it, it may as well never take effect: so it takes effect right
            // before something that sees it. In the order of asking, later writes come behind it all the same.
            if order == Order::Any && entry.outcome == Outcome::Unknown && entry.act.overwrites() {
                is_cut |= !candidates(entries, done, order, &mut behind);
                for second in behind.drain(..).rev() {
                    let act = &entries[second].borrow().act;
                    if !act.overwrites()
                        && let Some(state) = act.apply(&state)
                    {
                        open.push(((done.with(second), state), left - usize::from(found(&second))));
                    }
                }
                continue;
            }
            open.push(((done, state), left - usize::from(found(&nth))));
        }
        seen.insert(reached);
    }
    Err(if is_cut { Unexplained::TooMany } else { Unexplained::NoOrder })
}

/// Fills in the operations of which one may take effect next. Returns whether these are all: none is behind the window.
fn candidates<A: Act, E: Borrow<Entry<A>>>(
    entries: &[E],
    done: Done,
    order: Order,
    next: &mut Vec<usize>,
) -> bool {
    let (mut first_answer, mut is_read_left, mut is_write_left) = (u64::MAX, false, false);
    for (nth, entry) in entries.iter().map(Borrow::borrow).enumerate().skip(done.before) {
        // An operation that was requested after another one's answer is behind that one, and so are all later ones.
        if entry.asked > first_answer {
            break;
        }
        if nth - done.before >= WINDOW {
            return false;
        }
        let is_read = entry.act.is_read();
        // A read without an answer says nothing.
        let says = match entry.outcome {
            Outcome::Known(_) => true,
            Outcome::Unknown => !is_read,
            Outcome::Refused => false,
        };
        if done.has(nth) || !says {
            continue;
        }
        if order == Order::Any || !(is_write_left || is_read && is_read_left) {
            next.push(nth);
        }
        first_answer = first_answer.min(entry.outcome.known().unwrap_or(u64::MAX));
        is_read_left |= is_read;
        is_write_left |= !is_read;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Word;
    use p4rack_wire::edm::Opcode;

    fn entry(asked: u64, answered: u64, act: Word) -> Entry<Word> {
        let outcome = if answered > 0 { Outcome::Known(answered) } else { Outcome::Unknown };
        Entry { asked, outcome, act }
    }

    fn explained(entries: &[Entry<Word>], order: Order) -> bool {
        match linearizable(entries, &0, order) {
            Ok(()) => true,
            Err(Unexplained::NoOrder) => false,
            Err(Unexplained::TooMany) => panic!("{entries:?} are few"),
        }
    }

    #[test]
    fn what_an_order_explains() {
        let add = |found| Word::Modify(Opcode::FetchAdd, [1, 0], found);
        for (entries, expected) in [
            (vec![entry(1, 2, Word::Read(0))], true),
            (vec![entry(1, 2, Word::Read(1))], false),
            // A write without an answer: before, after, or never.
            (vec![entry(1, 0, Word::Write(7)), entry(5, 6, Word::Read(0)), entry(7, 8, Word::Read(7))], true),
            (
                vec![entry(1, 0, Word::Write(7)), entry(5, 6, Word::Read(7)), entry(7, 8, Word::Read(0))],
                false,
            ),
            (vec![entry(6, 0, Word::Write(7)), entry(1, 5, Word::Read(7))], false),
            // Once.
            (vec![entry(1, 2, add(Some(0))), entry(3, 4, add(Some(1))), entry(5, 6, Word::Read(2))], true),
            (vec![entry(1, 2, add(Some(0))), entry(3, 4, add(Some(2)))], false),
            (vec![entry(1, 0, add(None)), entry(3, 4, add(Some(1)))], true),
            (vec![entry(1, 0, add(None)), entry(3, 4, add(Some(2)))], false),
            (vec![entry(1, 9, add(Some(1))), entry(2, 8, add(Some(0)))], true),
        ] {
            assert_eq!(explained(&entries, Order::Any), expected, "{entries:?}");
        }
    }

    /// Each of them may have taken effect or not: as many orders as there are sets of them.
    #[test]
    fn writes_without_an_answer_cost_nothing_while_they_are_not_seen() {
        let never = (0..60u64).map(|n| entry(10 + n, 0, Word::Write(100 + n)));
        let reads = [0, 130, 117, 159].into_iter().zip(0..);
        let reads = reads.map(|(value, n)| entry(1_000 + 10 * n, 1_005 + 10 * n, Word::Read(value)));
        let mut entries: Vec<_> = never.chain(reads).collect();
        assert!(explained(&entries, Order::Any));
        // Two of them, and one of them again.
        entries.push(entry(2_000, 2_001, Word::Read(130)));
        assert!(!explained(&entries, Order::Any));
        // An addition to one of them sees it.
        entries.pop();
        entries.push(entry(1_500, 0, Word::Modify(Opcode::FetchAdd, [1_000, 0], None)));
        entries.push(entry(2_000, 2_001, Word::Read(1_101)));
        assert!(explained(&entries, Order::Any));
    }

    #[test]
    fn what_was_refused_has_no_effect() {
        let refused = Entry { asked: 1, outcome: Outcome::Refused, act: Word::Write(7) };
        assert!(explained(&[refused, entry(5, 6, Word::Read(0))], Order::Any));
        assert!(!explained(&[refused, entry(5, 6, Word::Read(7))], Order::Any));
    }

    #[test]
    fn one_thread_keeps_the_order_in_which_it_asked() {
        let (one, two) = (entry(1, 9, Word::Write(1)), entry(2, 9, Word::Write(2)));
        for (entries, expected) in [
            // Writes in order.
            (vec![one, two, entry(10, 11, Word::Read(2))], true),
            (vec![one, two, entry(10, 11, Word::Read(1))], false),
            // A read is behind the writes before it; a later write may overtake it.
            (vec![one, entry(2, 9, Word::Read(0))], false),
            (vec![entry(1, 9, Word::Read(2)), two], true),
            // Reads in order.
            (vec![entry(1, 9, Word::Read(0)), entry(2, 8, Word::Read(2)), entry(3, 9, Word::Write(2))], true),
            (
                vec![entry(1, 9, Word::Read(2)), entry(2, 8, Word::Read(0)), entry(3, 9, Word::Write(2))],
                false,
            ),
        ] {
            assert_eq!(explained(&entries, Order::Issued), expected, "{entries:?}");
            assert!(explained(&entries, Order::Any), "{entries:?}");
        }
    }

    #[test]
    fn long_histories_are_searched_while_few_operations_overlap() {
        let long =
            |first: u64| (0..1_000u64).map(move |n| entry(10 + 2 * n, 11 + 2 * n, Word::Write(first + n)));
        let last = entry(5_000, 5_001, Word::Read(1_999));
        assert!(explained(&long(1_000).chain([last]).collect::<Vec<_>>(), Order::Any));
        assert!(!explained(&long(1_001).chain([last]).collect::<Vec<_>>(), Order::Any));
        // One that stays under way, and takes effect at last.
        let reads = (0..2 * WINDOW as u64).map(|n| entry(10 + 2 * n, 11 + 2 * n, Word::Read(0)));
        let with = |first| [first].into_iter().chain(reads.clone()).collect::<Vec<_>>();
        let entries = with(entry(1, 10_000, Word::Write(7)));
        assert!(explained(&entries[..WINDOW], Order::Any));
        assert_eq!(linearizable(&entries, &0, Order::Any), Err(Unexplained::TooMany));
        // One that may never take effect rules no order out, nor do reads without an answer, seen or not.
        assert!(explained(&with(entry(1, 0, Word::Write(7))), Order::Any));
        let writes = long(1_000).take(2 * WINDOW).collect::<Vec<_>>();
        let last = entry(5_000, 5_001, Word::Read(1_000 + 2 * WINDOW as u64 - 1));
        for never in [Word::Write(7), Word::Read(7)] {
            let entries: Vec<_> =
                [entry(1, 0, never)].into_iter().chain(writes.clone()).chain([last]).collect();
            assert!(explained(&entries, Order::Any), "{never:?}");
        }
    }
}
