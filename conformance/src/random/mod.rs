//! Random packets and table entries for a program, derived from the program itself: packets follow its parser
//! and entries its P4Info. Both draw from the same few values, so that they match often.

mod entries;
mod packets;
mod unset;

pub use unset::with_unset_values;

use num_bigint::BigUint;
use p4rack_p4::ir::{Matcher, Program};
use p4rack_p4rt::p4::config::v1::P4Info;
use p4rack_p4rt::p4::v1::Update;
use p4rack_wire::SplitMix;
use std::collections::BTreeMap;

/// Number of ingress ports, and of most ports that entries name.
const PORTS: u64 = 8;
/// Width of a port in bits.
const PORT_BITS: u32 = 9;

/// Input for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Entries, groups and sessions, in the order in which to write them.
    pub updates: Vec<Update>,
    /// Packets, in the order in which to send them.
    pub packets: Vec<Packet>,
}

/// A packet to send to the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Ingress port, 0 to 7.
    pub port: u16,
    /// The frame without FCS; at least one byte.
    pub frame: Vec<u8>,
}

impl Case {
    /// Generates a case. The same program, seed and number of packets give the same case.
    pub fn new(program: &Program, info: &P4Info, seed: u64, packets: usize) -> Case {
        let mut values = Values::new(program, seed);
        let updates = entries::updates(info, &mut values);
        let packets = (0..packets).map(|_| packets::packet(program, &mut values)).collect();
        Case { updates, packets }
    }
}

/// Random numbers of a seed.
struct Rng(SplitMix);

impl Rng {
    /// A number below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0.next() % end.max(1)
    }

    /// True with a probability of one in `times`.
    fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn bits(&mut self, width: u32) -> BigUint {
        let words: Vec<u32> = (0..width.div_ceil(32)).map(|_| self.0.next() as u32).collect();
        BigUint::new(words) & max(width)
    }
}

/// The largest number with this many bits.
fn max(width: u32) -> BigUint {
    (BigUint::from(1u8) << width) - 1u8
}

/// Random values, most of them from a small set per width.
struct Values {
    rng: Rng,
    pools: BTreeMap<u32, Vec<BigUint>>,
}

impl Values {
    fn new(program: &Program, seed: u64) -> Values {
        let mut pools: BTreeMap<u32, Vec<BigUint>> = BTreeMap::new();
        // Values that the program's own entries match should occur.
        for table in &program.tables {
            for (key, matcher) in table.entries.iter().flat_map(|entry| table.keys.iter().zip(&entry.keys)) {
                let (Matcher::Exact(value) | Matcher::Mask { value, .. } | Matcher::Range { lo: value, .. }) =
                    matcher
                else {
                    continue;
                };
                pools.entry(key.ty.width()).or_default().push(value.clone());
            }
        }
        Values { rng: Rng(SplitMix(seed)), pools }
    }

    fn value(&mut self, width: u32) -> BigUint {
        if self.rng.one_in(4) {
            return self.rng.bits(width);
        }
        let rng = &mut self.rng;
        let pool = self.pools.entry(width).or_default();
        if pool.len() < 5 {
            let few = (0..PORTS).map(BigUint::from).filter(|value| *value <= max(width));
            match width {
                PORT_BITS => pool.extend(few),
                _ => {
                    pool.extend(few.take(3));
                    pool.push(max(width));
                    pool.extend((0..3).map(|_| rng.bits(width)));
                }
            }
        }
        pool[rng.below(pool.len() as u64) as usize].clone()
    }
}
