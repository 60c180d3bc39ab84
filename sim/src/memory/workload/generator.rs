//! Random messages.

use super::BYTES_MAX;
use crate::memory::message::{Message, Operation};
use crate::random::{Distribution, Random};
use crate::ycsb::Zipf;

/// Operations of one kind in a mix.
#[derive(Clone, Debug)]
pub struct Part {
    /// Share of all operations.
    pub share: f64,
    /// Kind of the operations.
    pub operation: Operation,
    /// Sizes in bytes.
    pub sizes: Distribution,
}

/// Keys of a store, of which each compute node has a part in its own memory.
#[derive(Clone, Debug)]
struct Keys {
    /// Popularity of the keys.
    zipf: Zipf,
    /// For each key, its place in a random order: the first ones are local.
    places: Vec<u32>,
}

impl Keys {
    /// This many keys, in an order that the seed decides; `exponent` as for [`Zipf`].
    fn new(count: u32, exponent: f64, seed: u64) -> Keys {
        let mut random = Random::stream(seed, 0x6e7);
        let mut places: Vec<u32> = (0..count).collect();
        for last in (1..places.len()).rev() {
            places.swap(last, random.below(last as u64 + 1) as usize);
        }
        Keys { zipf: Zipf::new(count, exponent), places }
    }
}

/// Random messages, with uniformly chosen destinations. Without a load, they have no times: a closed loop gives them one each.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Number of nodes.
    pub nodes: u16,
    /// The first of them that ask, where the others have the memory. `None`: all do both.
    pub compute_nodes: Option<u16>,
    /// Rate of the links.
    pub rate_bps: u64,
    /// Payload as a share of the links' rate: messages come at exponential intervals.
    pub load: Option<f64>,
    /// Kinds of operations; their shares add up to 1.
    pub mix: Vec<Part>,
    /// Share of operations, or of keys, for which a node's own memory is used.
    pub local: f64,
    /// Keys, if popularity decides which ones are local.
    pub keys: Option<(u32, f64)>,
}

impl Generator {
    /// Mean bytes of a message.
    pub fn mean_bytes(&self) -> f64 {
        self.mix.iter().map(|part| part.share * part.sizes.mean()).sum()
    }

    /// Draws this many messages, sorted by time.
    pub fn messages(&self, count: usize, seed: u64) -> Vec<Message> {
        let mut random = Random::stream(seed, 0xed);
        let message_ps = self.mean_bytes() * 8e12 / self.rate_bps as f64;
        let mean_ps = self.load.map(|load| message_ps / load / f64::from(self.nodes));
        let keys = self.keys.map(|(count, exponent)| Keys::new(count, exponent, seed));
        let asking = self.compute_nodes.unwrap_or(self.nodes);
        let mut at_ps = 0.0;
        let message = |nth: usize| {
            // In a closed loop all nodes ask for the same number.
            let compute = match mean_ps {
                Some(mean_ps) => {
                    at_ps += random.exponential(mean_ps);
                    random.below(asking.into()) as u16
                }
                None => (nth % usize::from(asking)) as u16,
            };
            let memory = match self.compute_nodes {
                Some(asking) => asking + random.below(u64::from(self.nodes - asking)) as u16,
                None => {
                    let other = random.below(u64::from(self.nodes) - 1) as u16;
                    other + u16::from(other >= compute)
                }
            };
            let part = self.part(&mut random);
            let bytes = part.sizes.sample(&mut random).clamp(1, BYTES_MAX) as u32;
            let is_local = self.is_local(keys.as_ref(), &mut random);
            let memory = if is_local { compute } else { memory };
            Message { at_ps: at_ps as u64, operation: part.operation, compute, memory, bytes }
        };
        (0..count).map(message).collect()
    }

    fn part(&self, random: &mut Random) -> &Part {
        let last = self.mix.len() - 1;
        let mut left = if last == 0 { 0.0 } else { random.unit() };
        for part in &self.mix[..last] {
            if left < part.share {
                return part;
            }
            left -= part.share;
        }
        &self.mix[last]
    }

    fn is_local(&self, keys: Option<&Keys>, random: &mut Random) -> bool {
        match keys {
            Some(keys) => {
                let place = keys.places[keys.zipf.sample(random) as usize];
                f64::from(place) < self.local * keys.places.len() as f64
            }
            None => random.chance(self.local),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator(mix: Vec<Part>, load: Option<f64>) -> Generator {
        let rate_bps = 100_000_000_000;
        Generator { nodes: 16, compute_nodes: None, rate_bps, load, mix, local: 0.0, keys: None }
    }

    fn part(share: f64, operation: Operation, bytes: u32) -> Part {
        Part { share, operation, sizes: Distribution::constant(bytes) }
    }

    #[test]
    fn random_messages_have_the_load_that_was_asked_for() {
        let mix = vec![part(0.25, Operation::Read, 64), part(0.75, Operation::Write, 64)];
        let messages = generator(mix, Some(0.7)).messages(50_000, 3);
        let span_ps = messages[messages.len() - 1].at_ps as f64;
        let load = 50_000.0 * 64.0 * 8.0 * 10.0 / span_ps / 16.0;
        assert!((load / 0.7 - 1.0).abs() < 0.02, "{load}");
        let reads = messages.iter().filter(|message| message.operation == Operation::Read).count();
        assert!((11_500..13_500).contains(&reads), "{reads}");
        assert!(messages.iter().all(|message| message.compute != message.memory && message.memory < 16));
        assert!(messages.windows(2).all(|pair| pair[0].at_ps <= pair[1].at_ps));
    }

    #[test]
    fn kinds_have_their_shares_and_sizes() {
        let mix = vec![
            part(0.5, Operation::Read, 1_024),
            part(0.3, Operation::Write, 100),
            part(0.2, Operation::Write, 8),
        ];
        let generator = generator(mix, Some(0.5));
        assert!((generator.mean_bytes() - 543.6).abs() < 1e-9);
        let messages = generator.messages(20_000, 1);
        for (operation, bytes, share) in
            [(Operation::Read, 1_024, 0.5), (Operation::Write, 100, 0.3), (Operation::Write, 8, 0.2)]
        {
            let like = |message: &&Message| (message.operation, message.bytes) == (operation, bytes);
            let found = messages.iter().filter(like).count() as f64 / 20_000.0;
            assert!((found - share).abs() < 0.02, "{operation:?} {bytes}: {found}");
        }
        let bytes: f64 = messages.iter().map(|message| f64::from(message.bytes)).sum();
        let load = bytes * 8.0 * 10.0 / messages[19_999].at_ps as f64 / 16.0;
        assert!((load / 0.5 - 1.0).abs() < 0.05, "{load}");
    }

    #[test]
    fn some_nodes_ask_and_others_have_the_memory() {
        let all = generator(vec![part(1.0, Operation::Read, 64)], None);
        let messages = Generator { compute_nodes: Some(4), ..all }.messages(400, 1);
        for node in 0..4 {
            assert_eq!(messages.iter().filter(|message| message.compute == node).count(), 100);
        }
        assert!(messages.iter().all(|message| (4..16).contains(&message.memory) && message.at_ps == 0));
    }

    #[test]
    fn a_share_of_operations_or_of_keys_is_local() {
        let all = generator(vec![part(1.0, Operation::Read, 64)], None);
        let share = |generator: &Generator, seed: u64| {
            let messages = generator.messages(20_000, seed);
            messages.iter().filter(|message| message.is_local()).count() as f64 / 20_000.0
        };
        let shared = Generator { local: 0.3, ..all.clone() };
        assert!((share(&shared, 1) - 0.3).abs() < 0.02, "{}", share(&shared, 1));
        // Which of the popular keys are local differs from seed to seed; on average it is the keys' share.
        let keyed = Generator { local: 0.3, keys: Some((1_000, 0.99)), ..all };
        let shares: Vec<f64> = (0..40).map(|seed| share(&keyed, seed)).collect();
        let mean = shares.iter().sum::<f64>() / 40.0;
        let spread = shares.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / 40.0;
        assert!((mean - 0.3).abs() < 0.07 && spread.sqrt() > 0.03, "{mean} {spread}");
    }
}
