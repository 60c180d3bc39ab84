//! Packets under way, and their faults.

use super::plant::{ClioPlant, damage_unseen, tamper};
use crate::random::Random;
use p4rack_wire::Nanos;

/// Delay of a way, and how much it varies: packets overtake each other.
const DELAY: Nanos = Nanos(800);
const JITTER_NS: u64 = 700;
/// Maximum delay of a packet, which clients take for granted: the longest TIMEOUT.
pub(super) const DELAY_MAX: Nanos = Nanos::from_micros(40);

/// Shares of packets with a fault.
#[derive(Debug)]
pub(super) struct Network {
    random: Random,
    lost: f64,
    copied: f64,
    damaged: f64,
    late: f64,
    /// No faults from this time on.
    end: Nanos,
    plant: Option<ClioPlant>,
    /// Packets with a fault: lost, copied, damaged, late.
    pub counts: [u64; 4],
}

impl Network {
    /// The faults of a seed.
    pub fn new(seed: u64, end: Nanos, plant: Option<ClioPlant>) -> Network {
        let mut random = Random::stream(seed, 1);
        let mut share = || [0.0, 0.02, 0.06, 0.15][random.below(4) as usize];
        let (lost, copied, damaged, late) = (share(), share(), share() / 2.0, share());
        Network { random, lost, copied, damaged, late, end, plant, counts: [0; 4] }
    }

    /// Arrival times and bytes of a packet's copies.
    pub fn send(&mut self, to_board: bool, mut bytes: Vec<u8>, now: Nanos) -> Vec<(Nanos, Vec<u8>)> {
        tamper(self.plant, &mut bytes, to_board);
        let is_faulty = now < self.end;
        if is_faulty && self.random.chance(self.lost) {
            self.counts[0] += 1;
            return Vec::new();
        }
        let is_copied = is_faulty && self.random.chance(self.copied);
        self.counts[1] += u64::from(is_copied);
        (0..1 + u64::from(is_copied)).map(|_| self.arrival(is_faulty, bytes.clone(), now)).collect()
    }

    fn arrival(&mut self, is_faulty: bool, mut bytes: Vec<u8>, now: Nanos) -> (Nanos, Vec<u8>) {
        if is_faulty && self.random.chance(self.damaged) {
            self.counts[2] += 1;
            let bit = self.random.next();
            if self.plant != Some(ClioPlant::DamageAccepted) || !damage_unseen(&mut bytes, bit) {
                let bit = bit as usize % (8 * bytes.len());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
        }
        let delay = DELAY + Nanos(self.random.below(JITTER_NS));
        if is_faulty && self.random.chance(self.late) {
            self.counts[3] += 1;
            let late = self.random.below(DELAY_MAX.0 - delay.0);
            return (now + delay + Nanos(late), bytes);
        }
        (now + delay, bytes)
    }
}
