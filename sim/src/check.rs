//! Checks that are part of every simulation. Those of a scheme's promises are in its module of
//! [`scheme`](crate::scheme).

use p4rack_wire::Nanos;
use serde::Serialize;

/// Findings of the checks. All but `overlapping_grants` have to be zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Missing frames: neither delivered, nor dropped with a reason, nor on the way.
    pub unaccounted_frames: i64,
    /// Frames that reached an application after a later one of their flow, or twice.
    pub out_of_order: u64,
    /// Grants whose time overlaps another's at the destination's port. The paper's rule allows it
    /// (§4.1); their number is a property of the scheme.
    pub overlapping_grants: u64,
    /// Grants seen.
    pub grants: u64,
    /// Ports on which something was still reserved after everything had arrived.
    pub leaked_reservations: u64,
    /// The amount still reserved there: slots or time units.
    pub leaked_amount: u64,
    /// How often a buffer held more than its limit.
    pub over_limit: u64,
    /// Messages that were neither delivered nor known to be lost at the end.
    pub stuck_messages: u64,
    /// Frames that one part of the simulator passed to another after their time, a fault of the simulator itself.
    pub late_frames: u64,
}

impl Verdict {
    /// Problems in words; empty if there are none. `faulty`: hosts fail or links lose frames, so reservations may leak
    /// in the counter mode and order may break where links reorder.
    pub fn problems(&self) -> Vec<String> {
        let found = [
            (self.unaccounted_frames != 0, format!("{} frames unaccounted for", self.unaccounted_frames)),
            (self.out_of_order != 0, format!("{} frames out of order or twice", self.out_of_order)),
            (
                self.leaked_reservations != 0,
                format!("{} still reserved on {} ports", self.leaked_amount, self.leaked_reservations),
            ),
            (self.over_limit != 0, format!("{} buffers over their limit", self.over_limit)),
            (self.stuck_messages != 0, format!("{} messages stuck", self.stuck_messages)),
            (self.late_frames != 0, format!("{} frames simulated out of turn", self.late_frames)),
        ];
        found.into_iter().filter(|(wrong, _)| *wrong).map(|(_, text)| text).collect()
    }
}

/// A checksum of all frames, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest(pub u64);

impl Digest {
    /// It covers a frame up to here.
    pub const LOOKS_TO: usize = 44;

    pub fn new() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }

    #[inline]
    pub fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    /// Adds a frame and its time.
    #[inline]
    pub fn frame(&mut self, now: Nanos, frame: &[u8]) {
        // Behind the addresses, which the summed place implies: tags, then the fields of control frames and messages.
        let looked_at = frame.first_chunk::<{ Digest::LOOKS_TO }>();
        let chunk = |at: usize| {
            let whole = match looked_at {
                Some(bytes) => bytes.get(at..at + 8),
                None => frame.get(at..at + 8),
            };
            u64::from_le_bytes(whole.and_then(|chunk| chunk.try_into().ok()).unwrap_or_default())
        };
        // Independent products instead of a chain of multiplications.
        let [tags, first, second, third] = [chunk(12), chunk(20), chunk(28), chunk(36)];
        let mixed = tags.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ first.wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(16)
            ^ second.wrapping_mul(0x94d0_49bb_1331_11eb).rotate_left(32)
            ^ third.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(48);
        self.add(now.0 ^ (frame.len() as u64) << 48);
        self.add(mixed);
    }
}
