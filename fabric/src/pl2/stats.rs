//! Counters and delays of PL2's endpoint, in addition to those that every machine has.

use crate::common::{Delay, counters};
use p4rack_wire::Nanos;

counters! {
    /// Events of PL2.
    Counters {
        /// Data frames sent in reserved slots.
        scheduled_out,
        /// Data frames sent unsolicited (DEI = 1).
        unsolicited_out,
        /// Frames sent in reserved slots after they had gone unsolicited.
        resent_out,
        /// Data frames received with our tag.
        data_in,
        /// RSVs sent with a demand, including repeated ones.
        rsv_out,
        /// Of these, RSVs repeated because no grant came in time.
        rsv_repeated,
        /// RSVs sent only to give slots back.
        rsv_bare,
        /// Grants that were used.
        grt_used,
        /// Grants for an RSV that was replaced by a newer one, or whose burst is gone.
        grt_surplus,
        /// Refusals: the lane's reservation has not begun, or nothing is free. The RSV is repeated.
        grt_not_now,
        /// Answers to RSVs that only gave slots back.
        grt_bare,
        /// Copies of grants for us as destination.
        notify_in,
        /// Senders with unused grants to send to us that fell silent.
        senders_silent,
    }
}

/// PL2's counters and delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Events.
    pub counters: Counters,
    /// Frames that count as sent because they went unsolicited and need no slots.
    pub unsolicited_done: u64,
    /// Time from sending an RSV to the arrival of its grant.
    pub rsv_grt: Delay,
    /// How late granted bursts started to leave.
    pub lateness: Delay,
}

impl Stats {
    pub(super) fn new(delay_window: Nanos) -> Self {
        Stats {
            counters: Counters::default(),
            unsolicited_done: 0,
            rsv_grt: Delay::new(delay_window),
            lateness: Delay::new(delay_window),
        }
    }
}
