//! Reservations asked for and not answered, and, in counter mode, the books over this port's own
//! register at the switch.
//!
//! A grant that doesn't come leaves open whether the RSV was lost (nothing was reserved) or the
//! grant (slots are reserved that nobody will use). Giving back what was never reserved would steal
//! slots from other hosts; giving back nothing would leak them. Three rules settle it without help:
//!
//! 1. Every RSV has a number of its own, also a repeated one, and is remembered: a late grant
//!    proves that its reservation was made, and if the burst was served meanwhile, the slots go back.
//! 2. `inReservation` of this port is changed by this host alone, so the host knows what the switch
//!    should find there: all slots it asked for, less those given back, less the frames it sent in
//!    reserved slots. A grant's `sendWait` says what the switch did find. When the only doubt is
//!    about overdue RSVs to one destination, the difference tells which of them were made; with
//!    several destinations it does when all or none of them were.
//! 3. What can't be told apart stays untouched: the host never gives back what it cannot prove,
//!    forgets the doubt after a while and takes the switch's count as it is. Such a leak (also: data
//!    lost on the way to the switch, a host that died) is for the controller's reset.
//!
//! In clock mode unused slots pass by themselves and nothing of this is needed.

use p4rack_wire::Nanos;
use p4rack_wire::pl2::Control;
use std::collections::VecDeque;

/// Answered reservations that are remembered to recognise copies of their grants.
const ANSWERED_MAX: usize = 64;
/// Grants that may pass over a doubt before it is forgotten.
const PASSES_MAX: u8 = 8;

/// One RSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub id: u32,
    pub destination: usize,
    /// The burst it is for; an RSV that only gives slots back has none.
    pub burst: Option<u64>,
    pub demand: u8,
    pub release: u8,
    /// When it left.
    pub emitted_at: Option<Nanos>,
    /// What the switch should find in our register, if every RSV before this one arrived.
    expected: i64,
    passes: u8,
}

impl Attempt {
    /// What it adds to the registers.
    fn delta(&self) -> i64 {
        i64::from(self.demand) - i64::from(self.release)
    }

    fn overdue(&self, now: Nanos, patience: Nanos) -> bool {
        self.emitted_at.is_some_and(|at| at.saturating_add(patience) <= now)
    }
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    attempt: Attempt,
    replies: (u32, u32),
}

/// What a grant answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// This attempt, for the first time.
    Known(Attempt),
    /// One that was answered before.
    Duplicate,
    /// One with another demand or destination.
    Mismatch,
    /// None.
    Unasked,
}

/// All RSVs of an endpoint in the order in which they leave.
#[derive(Clone, Debug)]
pub(super) struct Reservations {
    counting: bool,
    open_max: usize,
    next_id: u32,
    open: VecDeque<Attempt>,
    answered: VecDeque<Answered>,
    /// What our register at the switch should hold once everything sent so far has arrived.
    balance: i64,
    /// Slots found to be given back, by destination; the endpoint takes them.
    pub credits: Vec<(usize, i64)>,
    /// Doubts settled, forgotten, and times the switch's count was adopted.
    pub settled: u64,
    pub forgotten: u64,
    pub adopted: u64,
}

impl Reservations {
    pub fn new(counting: bool, first_id: u32, open_max: usize) -> Self {
        Reservations {
            counting,
            open_max,
            next_id: first_id,
            open: VecDeque::new(),
            answered: VecDeque::new(),
            balance: 0,
            credits: Vec::new(),
            settled: 0,
            forgotten: 0,
            adopted: 0,
        }
    }

    /// Notes an RSV that will leave after all those noted before; its number.
    pub fn ask(&mut self, destination: usize, burst: Option<u64>, demand: u8, release: u8) -> u32 {
        if self.open.len() >= self.open_max {
            self.open.pop_front();
            self.forgotten += 1;
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        let attempt =
            Attempt { id, destination, burst, demand, release, emitted_at: None, expected: 0, passes: 0 };
        self.open.push_back(attempt);
        id
    }

    /// The RSV leaves now.
    pub fn emitted(&mut self, id: u32, now: Nanos) -> Option<Attempt> {
        let attempt = self.open.iter_mut().rev().find(|attempt| attempt.id == id)?;
        attempt.emitted_at = Some(now);
        attempt.expected = (self.balance - i64::from(attempt.release)).max(0);
        self.balance = attempt.expected + i64::from(attempt.demand);
        Some(*attempt)
    }

    /// A frame leaves in a reserved slot.
    pub fn frame_sent(&mut self) {
        self.balance = (self.balance - 1).max(0);
    }

    /// Matches a grant. `patience`: how long an RSV is not overdue.
    pub fn answer(&mut self, destination: usize, grant: &Control, now: Nanos, patience: Nanos) -> Answer {
        let matches = |attempt: &Attempt| attempt.id == grant.id && attempt.emitted_at.is_some();
        let Some(at) = self.open.iter().position(matches) else {
            return self.seen_before(destination, grant);
        };
        let attempt = self.open[at];
        if attempt.destination != destination || attempt.demand != grant.demand {
            return Answer::Mismatch;
        }
        if self.answered.len() == ANSWERED_MAX {
            self.answered.pop_front();
        }
        self.answered.push_back(Answered { attempt, replies: (grant.send_wait, grant.recv_wait) });
        self.open.remove(at);
        if self.counting {
            self.audit(at, i64::from(grant.send_wait) - attempt.expected, now, patience);
        }
        Answer::Known(attempt)
    }

    fn seen_before(&mut self, destination: usize, grant: &Control) -> Answer {
        let found = self.answered.iter_mut().rev().find(|answered| answered.attempt.id == grant.id);
        let Some(answered) = found.filter(|answered| answered.attempt.destination == destination) else {
            return Answer::Unasked;
        };
        let replies = (grant.send_wait, grant.recv_wait);
        if answered.replies != replies && self.counting {
            // Another answer to the same RSV: the RSV itself came twice and reserved twice.
            answered.replies = replies;
            let (destination, delta) = (answered.attempt.destination, answered.attempt.delta());
            self.credits.push((destination, delta));
            self.shift(0, delta);
        }
        Answer::Duplicate
    }

    /// Compares the books with the switch's count at the arrival of the RSV that stood at `at`.
    /// `surplus`: what the switch found beyond what was expected with all of `open[..at]` made.
    fn audit(&mut self, at: usize, surplus: i64, now: Nanos, patience: Nanos) {
        if at == 0 {
            if surplus != 0 {
                self.shift(0, surplus);
                self.adopted += 1;
            }
            return;
        }
        let doubtful = || self.open.iter().take(at);
        if !doubtful().all(|attempt| attempt.overdue(now, patience)) {
            return;
        }
        let total: i64 = doubtful().map(Attempt::delta).sum();
        let least: i64 = doubtful().map(|attempt| attempt.delta().min(0)).sum();
        let most: i64 = doubtful().map(|attempt| attempt.delta().max(0)).sum();
        let made = total + surplus;
        let first = self.open[0].destination;
        let one_destination = doubtful().all(|attempt| attempt.destination == first);
        // With deltas of both signs, "all" and "none" could look alike.
        let one_sign = least == 0 || most == 0;
        if one_destination && (least..=most).contains(&made) {
            let releases: i64 = doubtful().map(|attempt| i64::from(attempt.release)).sum();
            self.credits.push((first, releases + made));
            self.settled += at as u64;
        } else if one_sign && (made == 0 || made == total) {
            let all_made = made == total;
            let back = |a: &Attempt| (a.destination, i64::from(if all_made { a.demand } else { a.release }));
            self.credits.extend(self.open.iter().take(at).map(back));
            self.settled += at as u64;
        } else {
            for attempt in self.open.iter_mut().take(at) {
                attempt.passes += 1;
            }
            if self.open.iter().take(at).all(|attempt| attempt.passes < PASSES_MAX) {
                return;
            }
            self.forgotten += at as u64;
            self.adopted += 1;
        }
        self.shift(at, surplus);
        self.open.drain(..at);
    }

    /// Corrects the books from `open[from]` on.
    fn shift(&mut self, from: usize, by: i64) {
        self.balance = (self.balance + by).max(0);
        for attempt in self.open.iter_mut().skip(from).filter(|attempt| attempt.emitted_at.is_some()) {
            attempt.expected = (attempt.expected + by).max(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Nanos = Nanos(100);

    fn grant(id: u32, demand: u8, send_wait: i64) -> Control {
        let send_wait = send_wait as u32;
        Control { version: 1, kind: 2, demand, release: 0, reserved: 0, id, send_wait, recv_wait: 9 }
    }

    /// A host with its register at the switch.
    struct Bench {
        books: Reservations,
        register: i64,
        now: Nanos,
    }

    impl Bench {
        fn new() -> Self {
            Bench { books: Reservations::new(true, 0, 64), register: 0, now: Nanos(0) }
        }

        /// Sends an RSV; what its grant would be, had it arrived and been answered.
        fn rsv(&mut self, destination: usize, demand: u8, release: u8, arrives: bool) -> (usize, Control) {
            let id = self.books.ask(destination, Some(0), demand, release);
            self.books.emitted(id, self.now);
            let reply = (self.register - i64::from(release)).max(0);
            if arrives {
                self.register = reply + i64::from(demand);
            }
            (destination, grant(id, demand, reply))
        }

        fn data(&mut self, frames: u8) {
            for _ in 0..frames {
                self.books.frame_sent();
                self.register = (self.register - 1).max(0);
            }
        }

        fn answer(&mut self, (destination, grant): (usize, Control)) -> Answer {
            self.now += Nanos(1);
            self.books.answer(destination, &grant, self.now, PATIENCE)
        }

        fn wait(&mut self) {
            self.now += PATIENCE;
        }
    }

    #[test]
    fn without_loss_the_books_agree() {
        let mut bench = Bench::new();
        for _ in 0..5 {
            let (first, second) = (bench.rsv(0, 4, 0, true), bench.rsv(1, 2, 1, true));
            assert!(matches!(bench.answer(first), Answer::Known(_)));
            bench.data(4);
            assert!(matches!(bench.answer(second), Answer::Known(_)));
            bench.data(1);
        }
        assert_eq!((bench.books.balance, bench.books.adopted), (0, 0));
        assert_eq!(bench.books.credits, []);
    }

    #[test]
    fn a_lost_grant_is_found_by_the_next_one() {
        let mut bench = Bench::new();
        bench.rsv(0, 4, 0, true); // the grant is lost
        bench.wait();
        let again = bench.rsv(0, 4, 0, true);
        bench.answer(again);
        assert_eq!(bench.books.credits, [(0, 4)], "four slots were reserved in vain");
        assert_eq!(bench.books.balance, bench.register);
    }

    #[test]
    fn a_lost_rsv_reserved_nothing_and_released_nothing() {
        let mut bench = Bench::new();
        bench.register = 3;
        bench.books.balance = 3;
        bench.rsv(0, 4, 3, false);
        bench.wait();
        let again = bench.rsv(0, 4, 0, true);
        bench.answer(again);
        assert_eq!(bench.books.credits, [(0, 3)], "the release is still to be made");
        assert_eq!(bench.books.balance, bench.register);
    }

    #[test]
    fn one_of_two_lost_attempts_had_been_made() {
        for made_first in [true, false] {
            let mut bench = Bench::new();
            bench.rsv(0, 4, 0, made_first);
            bench.wait();
            bench.rsv(0, 4, 0, !made_first);
            bench.wait();
            let again = bench.rsv(0, 4, 0, true);
            bench.answer(again);
            assert_eq!(bench.books.credits, [(0, 4)]);
            assert_eq!((bench.books.balance, bench.register), (8, 8));
        }
    }

    #[test]
    fn with_two_destinations_only_all_or_none_is_settled() {
        for (made, credits) in [
            ([true, true], vec![(0, 4), (1, 2)]),
            ([false, false], vec![(0, 0), (1, 0)]),
            ([true, false], vec![]),
        ] {
            let mut bench = Bench::new();
            bench.rsv(0, 4, 0, made[0]);
            bench.rsv(1, 2, 0, made[1]);
            bench.wait();
            let again = bench.rsv(2, 1, 0, true);
            bench.answer(again);
            assert_eq!(bench.books.credits, credits, "{made:?}");
            for _ in 0..PASSES_MAX {
                let next = bench.rsv(2, 1, 0, true);
                bench.answer(next);
            }
            assert_eq!(bench.books.open.len(), 0, "a doubt is not kept for good");
            assert_eq!(bench.books.balance, bench.register);
        }
    }

    #[test]
    fn what_is_not_overdue_is_not_judged() {
        let mut bench = Bench::new();
        let first = bench.rsv(0, 4, 0, true);
        let second = bench.rsv(0, 4, 0, true);
        bench.answer(second);
        assert_eq!((bench.books.credits.len(), bench.books.adopted), (0, 0));
        assert!(matches!(bench.answer(first), Answer::Known(_)));
        assert_eq!((bench.books.credits.len(), bench.books.adopted), (0, 0));
    }

    #[test]
    fn a_register_that_was_reset_is_adopted() {
        let mut bench = Bench::new();
        bench.rsv(0, 4, 0, true);
        let second = bench.rsv(0, 4, 0, true);
        bench.books.open.clear();
        bench.answer(second);
        bench.register = 0;
        let third = bench.rsv(0, 4, 0, true);
        bench.books.open.drain(..bench.books.open.len() - 1);
        bench.answer(third);
        assert_eq!((bench.books.balance, bench.register), (4, 4));
        assert_eq!(bench.books.credits, []);
    }

    #[test]
    fn copies_and_strangers() {
        let mut bench = Bench::new();
        let rsv = bench.rsv(0, 4, 0, true);
        assert_eq!(bench.answer((1, rsv.1)), Answer::Mismatch);
        assert_eq!(bench.answer((0, grant(0, 3, 0))), Answer::Mismatch);
        assert!(matches!(bench.answer(rsv), Answer::Known(_)));
        assert_eq!(bench.answer(rsv), Answer::Duplicate);
        assert_eq!(bench.books.credits, [], "the same grant twice");
        // The RSV came twice: the second reservation found the first one's four slots.
        bench.register += 4;
        assert_eq!(bench.answer((0, grant(0, 4, 4))), Answer::Duplicate);
        assert_eq!(bench.books.credits, [(0, 4)]);
        assert_eq!(bench.books.balance, bench.register);
        assert_eq!(bench.answer((0, grant(77, 4, 0))), Answer::Unasked);
    }
}
