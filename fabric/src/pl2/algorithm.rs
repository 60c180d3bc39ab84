//! The decisions of the paper's Algorithm 2 and equation 1, as pure functions.

use super::{Config, Mode};
use p4rack_wire::Nanos;
use p4rack_wire::pl2::Control;
use std::cmp::Ordering;

/// The wait chosen from a grant: `max(sendTimeslot, recvTimeslot)` (§4.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Time from the reservation's arrival at the switch to that of the burst.
    pub wait: Nanos,
    /// Comparison with t. Between ports of different rates, each side counts in its own slots.
    pub to_t: Ordering,
}

impl Chosen {
    /// Reads a grant for a destination whose port has slots of `peer_slot`.
    pub fn of(grant: &Control, config: &Config, peer_slot: Nanos) -> Chosen {
        let (send, recv) = (u64::from(grant.send_wait), u64::from(grant.recv_wait));
        let t = u64::from(config.t_slots);
        if config.mode == Mode::Counter {
            let slots = send.max(recv);
            return Chosen { wait: Nanos(slots.saturating_mul(config.slot.0)), to_t: slots.cmp(&t) };
        }
        let (send, recv) = (send.saturating_mul(config.time_unit.0), recv.saturating_mul(config.time_unit.0));
        Chosen {
            wait: Nanos(send.max(recv)),
            to_t: send.cmp(&t.saturating_mul(config.slot.0)).max(recv.cmp(&t.saturating_mul(peer_slot.0))),
        }
    }
}

/// Equation 1: `waitingTime = timeslotWait − rsvGrtDelay − pendingDataDelay`, from the arrival of the grant;
/// negative values count as zero.
///
/// `pending` is the NIC's backlog when the burst is handed to it, not when the grant arrived: data sent in
/// between no longer delays the burst.
pub(super) fn waiting_time(timeslot_wait: Nanos, rsv_grt_delay: Nanos, pending: Nanos) -> Nanos {
    timeslot_wait.saturating_sub(rsv_grt_delay).saturating_sub(pending)
}

/// Algorithm 2, line 8: whether a burst is sent together with its RSV. `last` is how the destination's last
/// grant compared with t, and when it came.
pub(super) fn goes_unsolicited(last: Option<(Ordering, Nanos)>, now: Nanos, fresh: Nanos) -> bool {
    last.is_some_and(|(to_t, at)| to_t.is_lt() && now.saturating_sub(at) <= fresh)
}

/// Fate of a burst when its grant comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It waits for its slots (line 12), also if it went unsolicited and has to be sent again (line 18).
    Send,
    /// It went unsolicited and the switch let it pass, so its slots stay unused.
    Done,
}

/// Algorithm 2, lines 12 and 16 to 20.
pub(super) fn on_grant(unsolicited: bool, to_t: Ordering) -> Verdict {
    if unsolicited && to_t.is_le() { Verdict::Done } else { Verdict::Send }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Ordering::{Equal, Greater, Less};
    use p4rack_wire::MacAddr;

    fn grant(send_wait: u32, recv_wait: u32) -> Control {
        Control {
            version: 1,
            kind: 2,
            demand: 4,
            cell: 0,
            unsolicited: 0,
            reserved: 0,
            id: 0,
            send_wait,
            recv_wait,
        }
    }

    #[test]
    fn chosen_is_the_later_of_both_ends() {
        let mut config = Config::new(MacAddr::default(), Mode::Counter, 100_000_000);
        config.slot = Nanos(1_000);
        for (send, recv, wait, to_t) in
            [(0, 0, 0, Less), (14, 3, 14_000, Less), (3, 15, 15_000, Equal), (16, 15, 16_000, Greater)]
        {
            assert_eq!(
                Chosen::of(&grant(send, recv), &config, Nanos(1_000)),
                Chosen { wait: Nanos(wait), to_t }
            );
        }
        // Clock mode: time units; a destination at a quarter of our rate has slots four times as long.
        config.mode = Mode::Clock;
        config.time_unit = Nanos(10);
        for (send, recv, wait, to_t) in [
            (1_499, 5_999, 59_990, Less),
            (1_500, 5_999, 59_990, Equal),
            (1_501, 0, 15_010, Greater),
            (0, 6_001, 60_010, Greater),
        ] {
            assert_eq!(
                Chosen::of(&grant(send, recv), &config, Nanos(4_000)),
                Chosen { wait: Nanos(wait), to_t }
            );
        }
        let far = Chosen::of(&grant(u32::MAX, u32::MAX), &config, Nanos(u64::MAX));
        assert_eq!(far.wait, Nanos(u64::from(u32::MAX) * 10));
    }

    #[test]
    fn equation_1() {
        // Figure 2: slot 5 at 100 Gb/s (123 ns a slot), RSV→GRT 1.06 µs: no time left to wait.
        assert_eq!(waiting_time(Nanos(5 * 123), Nanos(1_060), Nanos(0)), Nanos(0));
        // Slot 20, nothing pending; then with two full frames in the NIC.
        assert_eq!(waiting_time(Nanos(20 * 123), Nanos(1_060), Nanos(0)), Nanos(1_400));
        assert_eq!(waiting_time(Nanos(20 * 123), Nanos(1_060), Nanos(246)), Nanos(1_154));
        assert_eq!(waiting_time(Nanos(10), Nanos(4), Nanos(6)), Nanos(0));
        assert_eq!(waiting_time(Nanos(10), Nanos(4), Nanos(7)), Nanos(0));
    }

    #[test]
    fn algorithm_2_as_a_table() {
        let fresh = Nanos(100);
        for (last, now, expected) in [
            (None, 0, false), // lastResponseTime starts as 0: not current
            (Some((Less, Nanos(50))), 150, true),
            (Some((Less, Nanos(50))), 151, false),
            (Some((Equal, Nanos(50))), 60, false),
            (Some((Greater, Nanos(50))), 60, false),
        ] {
            assert_eq!(goes_unsolicited(last, Nanos(now), fresh), expected, "{last:?} {now}");
        }
        for (unsolicited, to_t, expected) in [
            (false, Less, Verdict::Send),
            (false, Equal, Verdict::Send),
            (false, Greater, Verdict::Send),
            (true, Less, Verdict::Done),
            (true, Equal, Verdict::Done),
            (true, Greater, Verdict::Send),
        ] {
            assert_eq!(on_grant(unsolicited, to_t), expected, "{unsolicited} {to_t:?}");
        }
    }
}
