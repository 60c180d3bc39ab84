//! A host that uses each reservation twice: it sends its burst unsolicited, and again in its slots.

use p4rack_wire::Nanos;
use p4rack_wire::pl2::cell;

/// The next frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An RSV for this cell.
    Rsv(u8),
    /// A frame of this cell's burst.
    Data {
        /// Cell of the reservation.
        cell: u8,
        /// Whether it is sent before the burst's slots.
        unsolicited: bool,
    },
}

/// State of a lane's reservation.
#[derive(Clone, Copy, Debug)]
enum State {
    Free,
    /// Waits for an answer; repeats the RSV after a timeout.
    Asked {
        id: u32,
        until: Nanos,
    },
    /// Waits for its slots.
    Granted {
        starts_at: Nanos,
        left: u8,
    },
}

/// State of all lanes to the victim.
#[derive(Clone, Debug)]
pub(super) struct Twice {
    k: u8,
    lanes: Vec<(u8, State)>,
    /// The burst that is being sent unsolicited, and the frames left of it.
    burst: (u8, u8),
}

impl Twice {
    pub fn new(cells: u8, k: u8) -> Twice {
        Twice { k, lanes: vec![(0, State::Free); usize::from(cells.div_ceil(2))], burst: (0, 0) }
    }

    /// Time of the next frame to send.
    pub fn due(&self) -> Nanos {
        if self.burst.1 > 0 {
            return Nanos::ZERO;
        }
        let due = self.lanes.iter().map(|(_, state)| match *state {
            State::Free => Nanos::ZERO,
            State::Asked { until, .. } => until,
            State::Granted { starts_at, .. } => starts_at,
        });
        due.min().unwrap_or(Nanos::MAX)
    }

    /// The frame to send now, if one is due. An RSV gets the number `id` and is repeated at `until`.
    pub fn step(&mut self, now: Nanos, id: u32, until: Nanos) -> Option<Step> {
        if self.burst.1 > 0 {
            self.burst.1 -= 1;
            return Some(Step::Data { cell: self.burst.0, unsolicited: true });
        }
        for (lane, (half, state)) in self.lanes.iter_mut().enumerate() {
            if let State::Granted { starts_at, left } = state
                && *starts_at <= now
            {
                let at = cell(lane as u8, *half);
                *left -= 1;
                if *left == 0 {
                    (*half, *state) = (1 - *half, State::Free);
                }
                return Some(Step::Data { cell: at, unsolicited: false });
            }
        }
        let may_ask = |state: &State| match state {
            State::Free => true,
            State::Asked { until, .. } => *until <= now,
            State::Granted { .. } => false,
        };
        let (lane, (half, state)) =
            self.lanes.iter_mut().enumerate().find(|(_, (_, state))| may_ask(state))?;
        *state = State::Asked { id, until };
        let at = cell(lane as u8, *half);
        self.burst = (at, self.k);
        Some(Step::Rsv(at))
    }

    /// An RSV was answered: either its slots begin at a time, or it is to be repeated.
    pub fn answered(&mut self, answered: u32, starts_at: Option<Nanos>, again_at: Nanos) {
        for (_, state) in &mut self.lanes {
            if let State::Asked { id, .. } = *state
                && id == answered
            {
                *state = match starts_at {
                    Some(starts_at) => State::Granted { starts_at, left: self.k },
                    None => State::Asked { id: 0, until: again_at },
                };
            }
        }
    }
}
