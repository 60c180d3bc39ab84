//! One destination's queue and its bursts: Algorithm 2's state.
//!
//! ```text
//!            RSV                 grant                       its time (eq. 1)
//!   queued ───────▶ Asked ──────────────────▶ Granted ───────────────────────▶ NIC
//!            │        │ ▲ timeout: RSV again     ▲
//!            │        └─┘                        │ chosen > t: again, scheduled
//!            └▶ also sent unsolicited (DEI) ─────┤
//!                                                └ chosen ≤ t: done, slots left over
//! ```
//!
//! A burst is a count, not a set of frames: the bursts cover the queue's first frames in order, so
//! frames of one flow leave in the order they came, whichever grant comes first. If flows have queues of their own,
//! frames that no burst covers yet wait by flow ([`Flows`]); they join the queue with the burst that covers them.

use super::Peer;
use super::algorithm::{Verdict, on_grant};
use super::flows::{Flows, Waiting};
use super::lanes::Lanes;
use crate::common::FrameId;
use p4rack_wire::pl2::{Control, NOT_NOW};
use p4rack_wire::{MacAddr, Nanos};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// A reservation in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    /// Cell of its reservation; no other burst of this destination has the same.
    pub cell: u8,
    /// Number of its newest RSV. Older ones no longer count: the switch has replaced their reservations, or refused
    /// this one.
    pub id: u32,
    /// When that RSV left; `None` once it is answered.
    pub left_at: Option<Nanos>,
    /// Number of frames that it covers.
    pub frames: u16,
    /// Slots, or parts of slots: one per frame, or fewer if clocks do not count frames and short ones share a
    /// slot.
    pub demand: u8,
    /// The flow for whose frames it was requested.
    pub flow: u8,
    /// Whether its frames went out with the first RSV and no RSV was repeated since.
    pub unsolicited: bool,
    pub state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for a grant; `deadline` is set once the RSV has left.
    Asked { tries: u32, deadline: Option<Nanos> },
    /// Waits for its slots.
    Granted { leave_at: Nanos },
}

/// The request that a grant answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The newest RSV of a burst, for the first time, and when it left.
    Burst(Nanos),
    /// An RSV that gave slots back, and when it left.
    Release(Nanos),
    /// The newest RSV of a burst, which was already answered.
    Duplicate,
    /// One with another demand.
    Mismatch,
    /// An abandoned RSV.
    Other,
}

/// Whether a grant grants nothing now.
pub(super) fn refuses(grant: &Control) -> bool {
    (grant.send_wait, grant.recv_wait) == (NOT_NOW, NOT_NOW)
}

/// Effect of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Granted {
    /// The burst waits for its slots.
    Waits,
    /// The burst went unsolicited and arrived.
    Done(Burst),
    /// No burst waits for it.
    Surplus,
}

/// Parameters of how frames fill slots.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    /// Bytes of a full frame, which fills a slot.
    pub bytes: u64,
    /// Parts of a slot that a reservation can ask for.
    pub parts: u64,
    /// Maximum slots of a reservation.
    pub k: u64,
    /// Slots of a reservation for a flow with more than `k` slots of frames.
    pub piece: u64,
}

/// Demand of the next reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The flow whose turn it is.
    pub flow: u8,
    /// Number of frames.
    pub frames: u16,
    /// Slots, or parts of slots.
    pub demand: u8,
}

/// State of one destination.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    pub mac: MacAddr,
    pub slot: Nanos,
    /// Whether it is in another pipe of the switch.
    pub far: bool,
    /// Frames that bursts cover, and leftovers of bursts whose slots were full. If all flows share one queue, the other
    /// frames follow.
    queue: VecDeque<Waiting>,
    /// The other frames, if flows have queues of their own.
    flows: Flows,
    bursts: VecDeque<Burst>,
    /// The next time at which something is due here; `Nanos::MAX` is never.
    due: Nanos,
    /// Granted bursts handed to the NIC of which no frame has left. They count as in flight: if the next
    /// reservation were requested immediately, a host whose own port is the bottleneck would accumulate
    /// reservations faster than it can use them.
    pub in_nic: usize,
    /// End of the slots reserved for the last unsolicited burst. Until then the next burst waits for its
    /// grant; otherwise a few senders, each of which sees a wait below t, would together send more than the
    /// port carries.
    pub reserved_until: Nanos,
    /// The last grant: its comparison with t, and when it came (Algorithm 2's two variables).
    pub last: Option<(Ordering, Nanos)>,
    /// The lanes of its reservations at the switch.
    lanes: Lanes,
    /// Frames in the NIC that go unsolicited, and those that go in their slots.
    pub unsolicited_in_nic: usize,
    pub scheduled_in_nic: usize,
    pub next_sequence: u32,
    /// Frames of this destination in the NIC as best effort.
    pub unscheduled: usize,
    /// Maximum reservations in flight, beyond those that flows have of their own.
    in_flight: usize,
    /// Whether the first frame was too long for the slots of the last burst, whose grant came before that of a longer
    /// one. The next reservation is long enough for it; otherwise bursts requested for short frames behind it could pass
    /// it forever.
    pub passed_over: bool,
}

impl Destination {
    /// An idle one, with at most `in_flight` reservations in flight, and those of `flows`.
    pub fn new(
        Peer { mac, slot, far }: Peer,
        first_sequence: u32,
        lanes: Lanes,
        (in_flight, flows): (usize, Flows),
    ) -> Self {
        Destination {
            mac,
            slot,
            far,
            queue: VecDeque::new(),
            flows,
            bursts: VecDeque::new(),
            due: Nanos::MAX,
            in_nic: 0,
            reserved_until: Nanos::ZERO,
            last: None,
            lanes,
            unsolicited_in_nic: 0,
            scheduled_in_nic: 0,
            next_sequence: first_sequence,
            unscheduled: 0,
            in_flight,
            passed_over: false,
        }
    }

    /// Appends a frame of flow `number`.
    #[inline]
    pub fn push_frame(&mut self, number: u32, frame: Waiting) {
        match self.flows.are_told_apart() {
            true => self.flows.push(number, frame),
            false => self.queue.push_back(frame),
        }
    }

    /// The frame at `at` of those that bursts cover.
    pub fn covered(&self, at: usize) -> Option<FrameId> {
        self.queue.get(at).map(|waiting| waiting.frame)
    }

    /// Takes the first frame that a burst covers.
    pub fn pop_frame(&mut self) -> Option<FrameId> {
        self.queue.pop_front().map(|waiting| waiting.frame)
    }

    /// Bursts in progress, in the order of the frames that they cover.
    pub fn bursts(&self) -> &VecDeque<Burst> {
        &self.bursts
    }

    /// Appends a burst.
    pub fn push(&mut self, burst: Burst) {
        debug_assert_eq!(burst.state, State::Asked { tries: 0, deadline: None }, "nothing is due with it");
        debug_assert!(self.bursts.iter().all(|other| other.cell != burst.cell), "a cell has one burst");
        self.bursts.push_back(burst);
    }

    /// Removes the first burst.
    pub fn pop(&mut self) -> Option<Burst> {
        let first = self.bursts.pop_front();
        self.look();
        first
    }

    /// Recomputes the next due work after a change.
    fn look(&mut self) {
        let mut due = self.leave_at().unwrap_or(Nanos::MAX);
        for burst in &self.bursts {
            if let State::Asked { deadline: Some(deadline), .. } = burst.state {
                due = due.min(deadline);
            }
        }
        self.due = due.min(self.lanes.due());
    }

    /// Whether another reservation may be requested, if frames wait. Beyond the limit of those in flight one may be while a
    /// flow with more than a piece has none.
    #[inline]
    pub fn may_ask(&self, now: Nanos) -> bool {
        (self.bursts.len() + self.in_nic < self.in_flight || self.flows.has_own())
            && self.lanes.has_free(now, self.unsolicited_in_nic == 0)
    }

    /// Number of waiting frames.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.queue.len() + self.flows.len() + self.unscheduled
    }

    /// Of these, frames of flow `number` that no reservation covers; 0 if all flows share one queue.
    pub fn waiting_of(&self, number: u32) -> usize {
        self.flows.len_of(number)
    }

    /// The next burst, if another reservation may be requested.
    ///
    /// It covers all that waits of the flow whose turn it is if this fits in K slots, and a piece otherwise. If there
    /// are pieces, flows with little to send share a reservation as long as one.
    pub fn next_wanted(&mut self, slots: Slots, now: Nanos) -> Option<Wanted> {
        if !self.may_ask(now) {
            return None;
        }
        let covered = self.bursts.iter().map(|burst| usize::from(burst.frames)).sum();
        // Slots filled with frames that came since are those of the next bursts no more.
        while self.queue.len() < covered
            && let Some(flow) = self.flows.next()
            && let Some(frame) = self.flows.pop(flow)
        {
            self.queue.push_back(frame);
        }
        let left_over = self.queue.len().saturating_sub(covered);
        let flow = self.flows.next().unwrap_or(0);
        let in_pieces = slots.piece < slots.k;
        let more = in_pieces && self.is_more(covered, flow, slots.k * slots.bytes);
        let room = if more { slots.piece } else { slots.k } * slots.bytes;
        let (mut frames, mut taken) = (0u16, 0);
        for waiting in self.queue.iter().skip(covered).chain(self.flows.frames(flow)) {
            let more = taken + u64::from(waiting.bytes);
            if more > room || frames == u16::MAX {
                break;
            }
            (frames, taken) = (frames + 1, more);
        }
        if frames == 0 {
            return None;
        }
        for _ in left_over..frames.into() {
            self.queue.extend(self.flows.pop(flow));
        }
        self.flows.ask(flow);
        if in_pieces && !more {
            self.add_flows(slots, (&mut frames, &mut taken));
        }
        if let Some(first) = self.queue.front().filter(|_| self.passed_over) {
            taken = taken.max(first.bytes.into());
        }
        let demand = (taken * slots.parts).div_ceil(slots.bytes.max(1)).max(1) as u8;
        Some(Wanted { flow: flow as u8, frames, demand })
    }

    /// Whether more waits than `room` bytes: left over behind the `covered` frames, and of the flow at `flow`.
    fn is_more(&self, covered: usize, flow: usize, room: u64) -> bool {
        let mut sum = self.flows.bytes(flow);
        self.queue.iter().skip(covered).any(|waiting| {
            sum += u64::from(waiting.bytes);
            sum > room
        }) || sum > room
    }

    /// Adds all that waits of further flows to a reservation, as long as it is no longer than a piece.
    fn add_flows(&mut self, slots: Slots, (frames, taken): (&mut u16, &mut u64)) {
        let most = slots.piece * slots.bytes;
        while *taken < most
            && let Some(flow) = self.flows.next()
            && *taken + self.flows.bytes(flow) <= most
        {
            *taken += self.flows.bytes(flow);
            while let Some(waiting) = self.flows.pop(flow) {
                self.queue.push_back(waiting);
                *frames += 1;
            }
        }
    }

    /// Records that a reservation for this flow is in flight no more.
    pub fn ended(&mut self, flow: u8) {
        self.flows.ended(flow);
    }

    /// Number of frames at the front of the queue that fit into the slots of `burst`, whose turn it is: those
    /// it was requested for, and short ones that came since. Later bursts then cover the frames behind it. The switch
    /// counts bytes. Other bursts may have taken the frames that this one was requested for; frames that don't fit wait
    /// for the next burst.
    pub fn fitting(&mut self, burst: &Burst, slots: Slots) -> u16 {
        let room = u64::from(burst.demand) * slots.bytes / slots.parts.max(1);
        let (mut taken, mut frames) = (0, 0);
        while frames < u16::MAX {
            let next = match self.queue.get(usize::from(frames)) {
                Some(waiting) => *waiting,
                None => {
                    let Some(flow) = self.flows.next() else { break };
                    let Some(first) = self.flows.frames(flow).next().copied() else { break };
                    if taken + u64::from(first.bytes) <= room {
                        self.queue.extend(self.flows.pop(flow));
                    }
                    first
                }
            };
            taken += u64::from(next.bytes);
            if taken > room {
                break;
            }
            frames += 1;
        }
        frames
    }

    /// Records that the RSV `id` has left; it is overdue at `deadline`.
    pub fn left(&mut self, id: u32, now: Nanos, deadline: impl FnOnce(u32) -> Nanos) {
        // Usually the newest one has left last.
        let Some(burst) = self.bursts.iter_mut().rev().find(|burst| burst.id == id) else {
            self.lanes.release_left(id, now, deadline);
            return self.look();
        };
        burst.left_at = Some(now);
        if let State::Asked { tries, deadline: at } = &mut burst.state {
            let before = at.replace(deadline(*tries));
            match (before, *at) {
                (None, Some(deadline)) => self.due = self.due.min(deadline),
                _ => self.look(),
            }
        }
    }

    /// The request that a grant answers. A second grant with the same number is a duplicate.
    pub fn answer(&mut self, grant: &Control) -> Answer {
        let is_it = |burst: &&mut Burst| (burst.cell, burst.id) == (grant.cell, grant.id);
        if let Some(burst) = self.bursts.iter_mut().find(is_it) {
            return match (burst.left_at, burst.state) {
                _ if burst.demand != grant.demand => Answer::Mismatch,
                (None, State::Asked { deadline: None, .. }) => Answer::Other,
                (None, _) => Answer::Duplicate,
                (Some(left_at), _) => {
                    burst.left_at = None;
                    Answer::Burst(left_at)
                }
            };
        }
        match grant.demand {
            0 => match self.lanes.released(grant.cell, grant.id, refuses(grant)) {
                Some(left_at) => {
                    self.look();
                    Answer::Release(left_at)
                }
                None => Answer::Other,
            },
            _ => Answer::Other,
        }
    }

    /// The switch has nothing for the burst in `cell` now; requests it again at `at`.
    pub fn refused(&mut self, cell: u8, at: Nanos) {
        let burst = self.bursts.iter_mut().find(|burst| burst.cell == cell);
        if let Some(Burst { state: State::Asked { deadline, .. }, .. }) = burst {
            *deadline = Some(at);
        }
        self.look();
    }

    /// A burst with an overdue grant, prepared to be requested again as `id`: cell and demand. The fate of frames sent
    /// unsolicited is unknown from now on, so they are sent again, scheduled.
    pub fn take_overdue(&mut self, now: Nanos, id: u32) -> Option<(u8, u8)> {
        let overdue = self.bursts.iter_mut().find_map(|burst| match burst.state {
            State::Asked { tries, deadline: Some(at) } if at <= now => {
                burst.state = State::Asked { tries: tries.saturating_add(1), deadline: None };
                (burst.id, burst.left_at, burst.unsolicited) = (id, None, false);
                Some((burst.cell, burst.demand))
            }
            _ => None,
        });
        if overdue.is_some() {
            self.look();
        }
        overdue
    }

    /// Handles a grant for the burst in `cell`, which would leave at `leave_at`.
    pub fn grant(&mut self, cell: u8, to_t: Ordering, leave_at: Nanos) -> Granted {
        let is_it = |burst: &Burst| burst.cell == cell && matches!(burst.state, State::Asked { .. });
        let Some(at) = self.bursts.iter().position(is_it) else { return Granted::Surplus };
        if on_grant(self.bursts[at].unsolicited, to_t) == Verdict::Done {
            // Unsolicited bursts start with nothing before them, so it is the first.
            let done = self.bursts.remove(at);
            self.look();
            return done.map_or(Granted::Surplus, Granted::Done);
        }
        self.bursts[at].unsolicited = false;
        // Bursts are counts: the first one granted covers the first frames, behind those granted already and
        // behind a burst whose unsolicited frames may have to be sent again.
        let ahead = |burst: &&Burst| burst.unsolicited || matches!(burst.state, State::Granted { .. });
        let first = self.bursts.iter().take(at).take_while(ahead).count();
        let earliest = match first.checked_sub(1).map(|before| self.bursts[before].state) {
            Some(State::Granted { leave_at }) => leave_at,
            _ => Nanos::ZERO,
        };
        // Usually it is the first already.
        if at != first
            && let Some(burst) = self.bursts.remove(at)
        {
            self.bursts.insert(first, burst);
        }
        self.bursts[first].state = State::Granted { leave_at: leave_at.max(earliest) };
        self.look();
        Granted::Waits
    }

    /// When the first burst may leave, if it is granted.
    pub fn leave_at(&self) -> Option<Nanos> {
        match self.bursts.front()?.state {
            State::Granted { leave_at } => Some(leave_at),
            State::Asked { .. } => None,
        }
    }

    /// Takes a cell for the next reservation.
    pub fn take_cell(&mut self, now: Nanos) -> Option<u8> {
        let (cell, was_due) = self.lanes.take(now, self.unsolicited_in_nic == 0)?;
        if was_due <= self.due {
            self.look();
        }
        Some(cell)
    }

    /// The first frame of the burst in `cell` has left; see [`Lanes::begun`].
    pub fn begun(&mut self, cell: u8, due: Nanos) {
        self.in_nic -= 1;
        if self.lanes.begun(cell, due) {
            self.due = self.due.min(due);
        }
    }

    /// The burst in `cell` sends nothing in its slots; see [`Lanes::unused`].
    pub fn unused(&mut self, cell: u8, starts_at: Nanos, due: Nanos) {
        self.lanes.unused(cell, starts_at, due);
        self.look();
    }

    /// The switch answered an abandoned RSV, so `cell` may hold slots.
    pub fn hold(&mut self, cell: u8, due: Nanos) {
        if self.bursts.iter().all(|burst| burst.cell != cell) {
            self.lanes.hold(cell, due);
            self.look();
        }
    }

    /// Whether a lane has become free by now.
    pub fn notice_passed(&mut self, now: Nanos) -> bool {
        let any = self.lanes.notice_passed(now);
        if any {
            self.look();
        }
        any
    }

    /// A cell to give back with the RSV `id`. While frames that may be its own wait in the NIC, it is
    /// postponed until `later`.
    pub fn take_release(&mut self, now: Nanos, later: Nanos, id: u32) -> Option<u8> {
        let cell = self.lanes.to_release(now)?;
        let given = self.unsolicited_in_nic + self.scheduled_in_nic == 0;
        match given {
            true => self.lanes.releasing(cell, id),
            false => self.lanes.postpone(now, later),
        }
        self.look();
        given.then_some(cell)
    }

    /// Whether something may become due here.
    pub fn is_active(&self) -> bool {
        !self.bursts.is_empty() || self.lanes.is_active()
    }

    /// The next time at which something is due here; `Nanos::MAX` is never.
    #[inline]
    pub fn due(&self) -> Nanos {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::Pool;
    use Ordering::{Greater, Less};

    const NOW: Nanos = Nanos(0);

    fn destination(frames: usize) -> Destination {
        short_frames(frames, 1)
    }

    fn short_frames(frames: usize, bytes: u32) -> Destination {
        with_flows(None, &vec![(0, bytes); frames])
    }

    /// Frames of a byte each, which is a slot.
    fn by_flow(own_frames: Option<usize>, frames: &[u32]) -> Destination {
        with_flows(own_frames, &frames.iter().map(|number| (*number, 1)).collect::<Vec<_>>())
    }

    fn with_flows(own_frames: Option<usize>, frames: &[(u32, u32)]) -> Destination {
        let flows = (1, Flows::new(own_frames));
        let peer = Peer { mac: MacAddr::default(), slot: Nanos(1), far: false };
        let mut destination = Destination::new(peer, 0, Lanes::new(8, true), flows);
        let mut pool = Pool::<()>::new(usize::MAX);
        for (number, bytes) in frames {
            destination.push_frame(*number, Waiting { frame: pool.store(&[b""]), bytes: *bytes });
        }
        destination
    }

    /// A burst in the next cell; its RSV has its number.
    fn ask(destination: &mut Destination, demand: u8, unsolicited: bool) -> u8 {
        let state = State::Asked { tries: 0, deadline: None };
        let cell = destination.take_cell(NOW).unwrap();
        let (id, frames) = (cell.into(), demand.into());
        destination.push(Burst { cell, id, left_at: None, frames, demand, flow: 0, unsolicited, state });
        cell
    }

    fn grant(cell: u8, id: u32, demand: u8) -> Control {
        Control {
            version: 1,
            kind: 2,
            demand,
            cell,
            unsolicited: 0,
            reserved: 0,
            id,
            send_wait: 0,
            recv_wait: 9,
        }
    }

    /// A slot a frame.
    fn demand(destination: &Destination, in_flight: usize, k: u8) -> Option<u8> {
        let slots = Slots { bytes: 1, parts: 1, k: k.into(), piece: k.into() };
        let mut destination = Destination { in_flight, ..destination.clone() };
        destination.next_wanted(slots, NOW).map(|wanted| wanted.demand)
    }

    #[test]
    fn reserves_what_is_queued_up_to_k_in_flight_and_lanes() {
        let mut d = destination(6);
        assert_eq!(demand(&d, 2, 4), Some(4));
        ask(&mut d, 4, false);
        assert_eq!(demand(&d, 1, 4), None);
        assert_eq!(demand(&d, 2, 4), Some(2));
        ask(&mut d, 2, false);
        assert_eq!(demand(&d, 3, 4), None, "nothing left");
        d.bursts.clear();
        d.in_nic = 1;
        assert_eq!(
            (demand(&d, 1, 4), demand(&d, 2, 4)),
            (None, Some(4)),
            "what waits in the NIC is in flight"
        );
        (0..6).for_each(|_| assert!(d.take_cell(NOW).is_some()));
        assert_eq!(demand(&d, 9, 4), None, "all lanes are taken");
    }

    #[test]
    fn short_frames_share_slots() {
        let ask_in = |parts, bytes| {
            let slots = Slots { bytes: 100, parts, k: 2, piece: 2 };
            let wanted = short_frames(9, bytes).next_wanted(slots, NOW);
            wanted.map(|wanted| (wanted.frames, wanted.demand))
        };
        let ask = |share| ask_in(1, share);
        assert_eq!(
            (ask(10), ask(30), ask(60), ask(100)),
            (Some((9, 1)), Some((6, 2)), Some((3, 2)), Some((2, 2)))
        );
        // The same frames in quarters of slots.
        assert_eq!(
            (ask_in(4, 2), ask_in(4, 10), ask_in(4, 30), ask_in(4, 60), ask_in(4, 100)),
            (Some((9, 1)), Some((9, 4)), Some((6, 8)), Some((3, 8)), Some((2, 8)))
        );
    }

    /// Grants may come in another order than their bursts, so a burst requested for short frames may meet a long one.
    #[test]
    fn a_long_frame_is_not_passed_over_forever() {
        let slots = Slots { bytes: 100, parts: 4, k: 4, piece: 4 };
        let mut d = Destination { in_flight: 2, ..with_flows(None, &[(0, 100), (0, 10), (0, 10)]) };
        assert_eq!(d.next_wanted(slots, NOW).map(|wanted| wanted.demand), Some(5), "all three");
        ask(&mut d, 1, false);
        let next = |d: &Destination| d.clone().next_wanted(slots, NOW).map(|wanted| wanted.demand);
        assert_eq!(next(&d), Some(1), "the two behind the first");
        d.passed_over = true;
        assert_eq!(next(&d), Some(4), "and slots in which the first fits");
    }

    /// Frames of a slot each.
    fn wanted(destination: &mut Destination, k: u64, piece: u64) -> Option<(u8, u16, u8)> {
        let wanted = destination.next_wanted(Slots { bytes: 1, parts: 1, k, piece }, NOW)?;
        let state = State::Asked { tries: 0, deadline: None };
        let (cell, Wanted { flow, frames, demand }) = (destination.take_cell(NOW)?, wanted);
        destination.push(Burst {
            cell,
            id: cell.into(),
            left_at: None,
            frames,
            demand,
            flow,
            unsolicited: false,
            state,
        });
        Some((flow, frames, demand))
    }

    #[test]
    fn a_flow_is_served_whole_or_in_pieces() {
        let mut d = by_flow(Some(5), &[[1; 10].as_slice(), &[2; 25], &[3; 5]].concat());
        assert_eq!(wanted(&mut d, 20, 4), Some((1, 10, 10)), "all that waits");
        assert_eq!(wanted(&mut d, 20, 4), Some((2, 4, 4)), "more than K: a piece");
        assert_eq!(wanted(&mut d, 20, 4), Some((3, 5, 5)));
        assert_eq!(wanted(&mut d, 20, 4), None, "each long flow has one");
        d.ended(2);
        assert_eq!(wanted(&mut d, 20, 4), Some((2, 4, 4)));
        d.ended(2);
        assert_eq!(wanted(&mut d, 20, 4), Some((2, 17, 17)), "the rest fits");
        assert_eq!(d.queue.len(), 40);
    }

    #[test]
    fn flows_with_little_to_send_share_a_reservation() {
        let mut d = by_flow(Some(5), &[1, 2, 3, 3, 4]);
        assert_eq!(wanted(&mut d, 20, 4), Some((1, 4, 4)), "1 to 3; 4 is too much");
        assert_eq!(wanted(&mut d, 20, 4), None, "one in flight, and 4 may have none of its own");
        let mut paper = by_flow(Some(1), &[1, 2, 3, 3, 4]);
        let asked: Vec<_> = std::iter::from_fn(|| wanted(&mut paper, 4, 4)).collect();
        assert_eq!(asked, [(1, 1, 1), (2, 1, 1), (3, 2, 2), (4, 1, 1)], "as the paper's threads");
    }

    #[test]
    fn what_came_meanwhile_fills_the_slots() {
        let burst = |frames, demand| {
            let state = State::Granted { leave_at: Nanos(0) };
            Burst { cell: 0, id: 1, left_at: None, frames, demand, flow: 0, unsolicited: false, state }
        };
        let slots = Slots { bytes: 100, parts: 1, k: 4, piece: 4 };
        let fitting = |burst: Burst, bytes| short_frames(9, bytes).fitting(&burst, slots);
        assert_eq!(
            (
                fitting(burst(1, 1), 30),
                fitting(burst(2, 2), 30),
                fitting(burst(2, 2), 100),
                fitting(burst(3, 9), 5)
            ),
            (3, 6, 2, 9)
        );
        let quarters = |demand| short_frames(9, 20).fitting(&burst(1, demand), Slots { parts: 4, ..slots });
        assert_eq!((quarters(1), quarters(2), quarters(4), quarters(5)), (1, 2, 5, 6));
    }

    #[test]
    fn the_first_grant_serves_the_first_frames() {
        let mut d = destination(6);
        let (one, two) = (ask(&mut d, 4, false), ask(&mut d, 2, false));
        assert_eq!(d.grant(two, Greater, Nanos(70)), Granted::Waits);
        assert_eq!((d.bursts[0].cell, d.leave_at()), (two, Some(Nanos(70))));
        assert_eq!(d.grant(one, Greater, Nanos(50)), Granted::Waits);
        assert_eq!(d.bursts[1].state, State::Granted { leave_at: Nanos(70) }, "never before its elder");
        assert_eq!(d.grant(one, Greater, Nanos(50)), Granted::Surplus);
    }

    #[test]
    fn a_later_burst_waits_for_the_fate_of_unsolicited_frames() {
        let mut d = destination(8);
        let (one, two) = (ask(&mut d, 4, true), ask(&mut d, 4, false));
        assert_eq!(d.grant(two, Less, Nanos(5)), Granted::Waits);
        assert_eq!(d.leave_at(), None);
        let mut resent = d.clone();
        let Granted::Done(burst) = d.grant(one, Less, Nanos(9)) else { panic!("it arrived") };
        assert_eq!((burst.frames, burst.demand), (4, 4));
        assert_eq!(d.leave_at(), Some(Nanos(5)));
        assert_eq!(resent.grant(one, Greater, Nanos(9)), Granted::Waits);
        assert_eq!((resent.bursts[0].cell, resent.leave_at()), (one, Some(Nanos(9))));
    }

    #[test]
    fn a_repeated_rsv_makes_unsolicited_frames_go_again() {
        let mut d = destination(4);
        let cell = ask(&mut d, 4, true);
        d.left(0, NOW, |tries| Nanos(10 + u64::from(tries)));
        assert_eq!(d.take_overdue(Nanos(9), 7), None);
        assert_eq!(d.due(), Nanos(10));
        assert_eq!(d.take_overdue(Nanos(10), 7), Some((cell, 4)));
        assert_eq!(d.take_overdue(Nanos(10), 8), None);
        d.left(7, Nanos(11), |tries| Nanos(20 + u64::from(tries)));
        assert_eq!(d.due(), Nanos(21));
        assert_eq!(d.grant(cell, Less, Nanos(30)), Granted::Waits);
    }

    #[test]
    fn only_the_newest_rsv_is_answered_and_once() {
        let mut d = destination(4);
        let cell = ask(&mut d, 4, false);
        assert_eq!(d.answer(&grant(cell, 0, 4)), Answer::Other, "it is still in the NIC");
        d.left(0, NOW, |_| Nanos(10));
        d.take_overdue(Nanos(10), 7);
        d.left(7, Nanos(11), |_| Nanos(20));
        assert_eq!(d.answer(&grant(cell, 0, 4)), Answer::Other, "an older one");
        assert_eq!(d.answer(&grant(cell + 1, 7, 4)), Answer::Other, "another cell");
        assert_eq!(d.answer(&grant(cell, 7, 3)), Answer::Mismatch);
        assert_eq!(d.answer(&grant(cell, 7, 4)), Answer::Burst(Nanos(11)));
        assert_eq!(d.answer(&grant(cell, 7, 4)), Answer::Duplicate);
    }

    #[test]
    fn what_was_refused_is_asked_for_again_at_its_time() {
        let mut d = destination(4);
        let cell = ask(&mut d, 4, false);
        d.left(0, NOW, |_| Nanos(100));
        d.refused(cell, Nanos(20));
        assert_eq!((d.take_overdue(Nanos(19), 7), d.take_overdue(Nanos(20), 7)), (None, Some((cell, 4))));
        assert_eq!(d.grant(cell, Less, Nanos(30)), Granted::Waits);
    }

    #[test]
    fn nothing_is_given_back_that_frames_in_the_nic_may_use() {
        let mut d = destination(0);
        let cell = d.take_cell(NOW).unwrap();
        d.in_nic = 1;
        d.begun(cell, Nanos(5));
        d.scheduled_in_nic = 1;
        assert_eq!((d.take_release(Nanos(5), Nanos(9), 1), d.due()), (None, Nanos(9)));
        d.scheduled_in_nic = 0;
        assert_eq!(d.take_release(Nanos(9), Nanos(13), 1), Some(cell));
        d.left(1, Nanos(10), |_| Nanos(40));
        assert_eq!((d.due(), d.answer(&grant(cell, 1, 0))), (Nanos(40), Answer::Release(Nanos(10))));
        assert_eq!((d.due(), d.is_active()), (Nanos::MAX, false));
    }
}
