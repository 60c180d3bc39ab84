//! What PL2's endpoint counts and measures beside what any machine does.

use crate::common::{Delay, counters};
use p4rack_wire::Nanos;

counters! {
    /// Events that are part of PL2's work.
    Counters {
        /// Data frames sent in reserved slots.
        scheduled_out,
        /// Data frames sent unsolicited (DEI = 1).
        unsolicited_out,
        /// Frames sent in reserved slots that had gone unsolicited before.
        resent_out,
        /// Data frames received with our tag.
        data_in,
        /// RSVs sent with a demand, first attempts and repeated ones.
        rsv_out,
        /// Of these, repeated because no grant came in time.
        rsv_repeated,
        /// RSVs sent only to give slots back.
        rsv_bare,
        /// Grants that were used.
        grt_used,
        /// Grants for an RSV that a newer one has replaced, or whose burst has gone.
        grt_surplus,
        /// Answers that the lane's reservation has not begun or nothing is free now; the RSV is repeated.
        grt_not_now,
        /// Answers to RSVs that only gave slots back.
        grt_bare,
        /// Copies of grants for us as destination.
        notify_in,
        /// Senders that were granted slots to send to us and fell silent.
        senders_silent,
    }
}

/// What PL2 counts and measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Events.
    pub counters: Counters,
    /// From an RSV's leaving to its grant's arrival.
    pub rsv_grt: Delay,
    /// How much later than granted bursts began to leave.
    pub lateness: Delay,
}

impl Stats {
    pub(super) fn new(delay_window: Nanos) -> Self {
        Stats {
            counters: Counters::default(),
            rsv_grt: Delay::new(delay_window),
            lateness: Delay::new(delay_window),
        }
    }
}
