//! The client library as a machine: operations in, packets to boards out, and back.

use super::config::{Config, REQUESTS_MAX};
use super::operation::{Ending, Outcome};
use super::order::Order;
use super::request::{Act, Request, State};
use super::silence::Silence;
use super::timers::Timers;
use super::turns::Turns;
use super::window::{Congestion, Incast};
use crate::common::{Delay, SplitMix, counters};
use p4rack_wire::Nanos;
use p4rack_wire::clio::Status;
use std::collections::VecDeque;

counters! {
    /// Counters of a client.
    Counters {
        /// Operations accepted.
        requests,
        /// Operations refused before they left.
        refused,
        /// Operations that the boards have executed.
        done,
        /// Operations that a board refused.
        failed,
        /// Operations without an answer to any attempt, or of a board that was found silent.
        unknown,
        /// Those of them that had attempts left: their board had answered to none of another operation's.
        given_up,
        /// Packets sent.
        packets_out,
        /// Packets without an answer in time, of a READ one for each of its answers.
        timeouts,
        /// Packets that were sent again.
        retries,
        /// Retries that were not sent, because the board could have forgotten the operation.
        too_late,
        /// Packets that a board, or the client, found corrupt.
        corrupt,
        /// Packets for which a board was too busy, or had no page yet.
        busy,
        /// Answers dropped: copies, or refusals of an earlier attempt.
        stale,
        /// Answers dropped: no request in flight has this id and packet.
        unasked,
        /// Answers dropped: no packet of Clio's, or one that doesn't fit its request.
        malformed,
    }
}

/// Bits of an id for the number of the client.
pub const NUMBER_BITS: u32 = 28;
/// Bits for the requests that its slot had before.
const GENERATION_BITS: u32 = 24;
/// Bits for the slot.
const SLOT_BITS: u32 = REQUESTS_MAX.trailing_zeros();

/// A process's proof of identity towards a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The process.
    pub pid: u32,
    /// Which of those that had this PID.
    pub epoch: u16,
    /// The board's token for both.
    pub token: u64,
}

/// A process of a client's node at a board. Operations name one by its place in the client's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Number of the board: the seats of several processes at one board share its congestion window.
    pub board: u16,
    /// The process there.
    pub credentials: Credentials,
    /// Its number there, of 28 bits, which differs from those of all other clients of the process, earlier ones too: ids of operations
    /// begin with it.
    pub number: u32,
    /// Number of its first thread in the board's words of locks.
    pub first_thread: u16,
}

/// What a client keeps of a board.
#[derive(Clone, Debug)]
pub(super) struct Board {
    pub window: Congestion,
    pub silence: Silence,
}

/// What a client keeps of a seat.
#[derive(Clone, Debug)]
pub(super) struct Seated {
    pub board: usize,
    pub credentials: Credentials,
    number: u32,
    pub first_thread: u16,
    /// Requests with packets to send. They take turns, a packet each.
    pub ready: VecDeque<u16>,
}

/// The client library of a compute node: of one process, or of several.
///
/// ```text
///   threads ── submit ─▶ ┌────────┐ ── poll_link ──▶ requests, to boards
///   outcomes ◀ poll_completion    │ ◀─ handle_link ─ responses
///               clock ◀─ └────────┘ ◀─ handle_timeout, at next_timeout
/// ```
///
/// Operations of a thread keep its order; congestion windows are per board, the incast window is the node's, and so all processes of the
/// client share them, seat by seat in turn. In a steady state nothing is allocated.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) config: Config,
    pub(super) boards: Vec<Board>,
    pub(super) seats: Vec<Seated>,
    pub(super) orders: Vec<Order>,
    pub(super) requests: Vec<Request>,
    pub(super) free: Vec<u16>,
    pub(super) timers: Timers,
    pub(super) incast: Incast,
    ended: VecDeque<u16>,
    /// The slot whose outcome the caller was given last.
    lent: Option<u16>,
    /// Requests that may start. Empty between calls.
    pub(super) starting: VecDeque<u16>,
    pub(super) buffered_bytes: u64,
    /// The seat whose turn it is.
    pub(super) turn: usize,
    /// Seats with requests to send.
    pub(super) turns: Turns,
    pub(super) random: SplitMix,
    pub(super) counters: Counters,
    pub(super) now: Nanos,
}

impl Client {
    /// A client that has the same number at all of its boards, and threads from [`Config::first_thread`] on.
    pub fn new(config: Config, boards: &[Credentials], number: u32) -> Client {
        let first_thread = config.first_thread;
        let seat = |(board, credentials): (u16, &Credentials)| Seat {
            board,
            credentials: *credentials,
            number,
            first_thread,
        };
        Client::seated(config, &(0..).zip(boards).map(seat).collect::<Vec<_>>())
    }

    /// A client of boards that each give it a number of their own, or of several processes on each. Boards are numbered from 0 on.
    /// [`Config::first_thread`] means nothing here.
    pub fn seated(config: Config, seats: &[Seat]) -> Client {
        let config = config.clamped();
        let slots = usize::from(config.requests_max);
        let boards = seats.iter().map(|seat| usize::from(seat.board) + 1).max().unwrap_or(0);
        let board = Board { window: Congestion::new(&config), silence: Silence::default() };
        let seated = |seat: &Seat| Seated {
            board: seat.board.into(),
            credentials: seat.credentials,
            number: seat.number & ((1 << NUMBER_BITS) - 1),
            first_thread: seat.first_thread,
            ready: VecDeque::with_capacity(slots),
        };
        // Clones would have no room.
        let order = |_| Order::new(config.thread_requests_max.into());
        Client {
            boards: vec![board; boards],
            seats: seats.iter().map(seated).collect(),
            orders: (0..config.threads).map(order).collect(),
            requests: vec![Request::new(); slots],
            free: (0..config.requests_max).rev().collect(),
            timers: Timers::new(config.requests_max),
            incast: Incast::new(config.link_bps),
            ended: VecDeque::with_capacity(slots),
            lent: None,
            starting: VecDeque::with_capacity(slots),
            buffered_bytes: 0,
            turn: 0,
            turns: Turns::new(seats.len()),
            random: SplitMix(seats.first().map_or(0, |seat| seat.number.into())),
            counters: Counters::default(),
            now: Nanos::ZERO,
            config,
        }
    }

    /// Its counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Its parameters, each in its range.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Number of the first thread in words of locks of a seat's board. `None`: there is no such seat.
    pub fn first_thread(&self, seat: u16) -> Option<u16> {
        Some(self.seats.get(usize::from(seat))?.first_thread)
    }

    /// The delay to a board, and its congestion window in packets. `None`: there is no such board.
    pub fn window(&self, board: u16) -> Option<(&Delay, f64)> {
        self.boards.get(usize::from(board)).map(|board| (board.window.delay(), board.window.cwnd()))
    }

    /// Packets under way to and from a board, and bytes of answers that are expected from all boards.
    pub fn under_way(&self, board: u16) -> (u32, u64) {
        let packets = self.boards.get(usize::from(board)).map_or(0, |board| board.window.outstanding());
        (packets, self.incast.expected_bytes())
    }

    /// Operations of a thread that have not ended.
    pub fn unfinished(&self, thread: u16) -> usize {
        self.orders.get(usize::from(thread)).map_or(0, Order::len)
    }

    /// The board of a slot's request.
    pub(super) fn board_of(&self, slot: u16) -> usize {
        self.seats[usize::from(self.requests[usize::from(slot)].seat)].board
    }

    /// Starts requests whose turn has come. A release has no packets, so it ends, and others may start; so does what has waited for others
    /// while its board was found silent.
    pub(super) fn start(&mut self) {
        while let Some(slot) = self.starting.pop_front() {
            let request = &mut self.requests[usize::from(slot)];
            request.state = State::Active;
            let is_given_up =
                self.boards[self.seats[usize::from(request.seat)].board].silence.includes(request.admitted);
            match request.what.act {
                Act::Release => self.close(slot, Ending::Done),
                _ if is_given_up => self.give_up(slot),
                _ => self.queue(slot),
            }
        }
    }

    /// Puts a request with packets to send into its seat's queue; first, if its operation may have been executed, or if the board may be
    /// dead and it was sent before.
    pub(super) fn queue(&mut self, slot: u16) {
        let request = &mut self.requests[usize::from(slot)];
        let Some(nth) = request.next_part().filter(|_| !request.is_queued) else { return };
        request.is_queued = true;
        self.turns.set(request.seat.into(), true);
        let Seated { board, ready, .. } = &mut self.seats[usize::from(request.seat)];
        let is_probe = self.boards[*board].silence.is_suspected() && request.attempt(nth) > 0;
        match is_probe || request.unsure_since(nth).is_some() {
            true => ready.push_front(slot),
            false => ready.push_back(slot),
        }
    }

    /// Removes a request from its seat's queue. Most have left the queue before they end.
    pub(super) fn unqueue(&mut self, slot: u16) {
        let request = &mut self.requests[usize::from(slot)];
        if std::mem::take(&mut request.is_queued) {
            let ready = &mut self.seats[usize::from(request.seat)].ready;
            ready.retain(|queued| *queued != slot);
            self.turns.set(request.seat.into(), !ready.is_empty());
        }
    }

    /// Ends a request, and starts those that waited for it.
    pub(super) fn end(&mut self, slot: u16, ending: Ending) {
        self.close(slot, ending);
        self.start();
    }

    pub(super) fn close(&mut self, slot: u16, ending: Ending) {
        self.settle(slot);
        self.timers.clear(slot);
        self.unqueue(slot);
        let request = &mut self.requests[usize::from(slot)];
        // An offload's status is that of all attempts: boards remember it.
        let is_final =
            |status: Status| matches!(request.what.act, Act::Call { .. }) && !status.is_temporary();
        request.ending = match ending {
            // An attempt without an answer may still arrive.
            Ending::Refused(status) if request.is_unsure() && !is_final(status) => Ending::Unknown,
            ending => ending,
        };
        *match request.ending {
            Ending::Refused(_) => &mut self.counters.failed,
            Ending::Unknown => &mut self.counters.unknown,
            _ => &mut self.counters.done,
        } += 1;
        request.state = State::Ended;
        self.ended.push_back(slot);
        let starting = &mut self.starting;
        self.orders[usize::from(request.thread)].finish(slot, |slot| starting.push_back(slot));
    }

    /// Removes a request's packets in flight from the windows.
    pub(super) fn settle(&mut self, slot: u16) {
        let request = &mut self.requests[usize::from(slot)];
        self.boards[self.seats[usize::from(request.seat)].board].window.left(request.give_up());
        self.incast.settle(std::mem::take(&mut request.expected_bytes));
    }

    /// The id of the request in a slot. It names the slot, so that a response is matched without a search:
    ///
    /// ```text
    ///   number of the client (28) │ generation of the slot (24) │ slot (12)
    /// ```
    pub(super) fn id(&self, slot: u16) -> u64 {
        let request = &self.requests[usize::from(slot)];
        let number = u64::from(self.seats[usize::from(request.seat)].number);
        let generation = u64::from(request.generation) & ((1 << GENERATION_BITS) - 1);
        number << (GENERATION_BITS + SLOT_BITS) | generation << SLOT_BITS | u64::from(slot)
    }

    /// The slot of the request with this id, if it is under way.
    pub(super) fn find(&self, id: u64) -> Option<u16> {
        let slot = id as u16 & (REQUESTS_MAX - 1);
        let request = self.requests.get(usize::from(slot))?;
        (request.state == State::Active && self.id(slot) == id).then_some(slot)
    }

    /// The next outcome, with the tag of its operation. Its bytes are valid until the next call.
    pub fn poll_completion(&mut self) -> Option<(u64, Outcome<'_>)> {
        self.poll_completion_of_seat().map(|(_, tag, outcome)| (tag, outcome))
    }

    /// The same with the seat of the operation.
    pub fn poll_completion_of_seat(&mut self) -> Option<(u16, u64, Outcome<'_>)> {
        self.reclaim();
        let slot = self.ended.pop_front()?;
        self.lent = Some(slot);
        let request = &self.requests[usize::from(slot)];
        let outcome = match request.ending {
            Ending::Done if request.what.act == Act::Read => Outcome::Read(&request.data),
            Ending::Done if matches!(request.what.act, Act::Call { .. }) => {
                Outcome::Results(request.results.bytes())
            }
            Ending::Done => Outcome::Done,
            Ending::Word(word) => Outcome::Word(word),
            Ending::Address(address) => Outcome::Address(address),
            Ending::Held(owner) => Outcome::Held(owner),
            Ending::Refused(status) => Outcome::Refused(status),
            Ending::Unknown => Outcome::Unknown,
        };
        Some((request.seat, request.tag, outcome))
    }

    /// Frees the slot whose outcome has been seen.
    pub(super) fn reclaim(&mut self) {
        if let Some(slot) = self.lent.take() {
            let request = &mut self.requests[usize::from(slot)];
            self.buffered_bytes -= u64::from(request.buffered_bytes);
            request.vacate();
            self.free.push(slot);
        }
    }
}
