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
#[path = "sender_tests.rs"]
mod tests;
