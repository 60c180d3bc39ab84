//! What a description allows and its switch may not hold.

use super::units::show_size;
use super::{Rack, Scheme, Target};
use p4rack_wire::ethernet::overhead::PREAMBLE_GAP;

impl Rack {
    /// What is allowed, and may cost what PL2 promises; each names the field and says what fits.
    pub fn warnings(&self) -> Vec<String> {
        self.burst_beyond_buffer().into_iter().collect()
    }

    /// A host may send what all of its cells hold at once, and so may all others to the same port.
    fn burst_beyond_buffer(&self) -> Option<String> {
        let pl2 = self.pl2.as_ref()?;
        // BMv2's buffer has no part for scheduled frames.
        if self.switch.target != Target::Embedded {
            return None;
        }
        let (buffer, reserved) = (self.switch.buffer_bytes, self.switch.reserved_bytes);
        let sources = self.hosts.len().saturating_sub(1) as u64;
        // As they are kept in the buffer: with FCS.
        let frame = self.wire_bytes(Scheme::Pl2Clock) - PREAMBLE_GAP;
        let lane = 2 * u64::from(pl2.k) * sources * frame;
        let needed = u64::from(pl2.lanes) * lane;
        if needed <= reserved {
            return None;
        }
        let fits = match reserved / lane.max(1) {
            0 => String::new(),
            lanes => format!("lanes = {lanes} (or fewer reservations_in_flight) would fit, or "),
        };
        let instead = match reserved {
            0 => "write a reserved_percent".to_owned(),
            _ => format!(
                "write a buffer of {}",
                show_size((needed * buffer).div_ceil(reserved).next_multiple_of(1 << 10))
            ),
        };
        Some(format!(
            "switch.buffer: {sources} hosts of {} lanes, each with 2 bursts of {} frames, may send {} to one port at once, but \
             {} are reserved for scheduled frames: {fits}{instead}",
            pl2.lanes,
            pl2.k,
            show_size(needed),
            show_size(reserved)
        ))
    }
}
