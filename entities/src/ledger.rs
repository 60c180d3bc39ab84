//! References of entries, with counts.

use super::names::{Held, Kind};
use num_bigint::BigUint;
use std::collections::HashMap;
use std::sync::Arc;

/// References of one object: names, values that it needs elsewhere, values that others may need.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    pub named: Vec<(Arc<Kind>, BigUint)>,
    /// References by number, with the values.
    pub wanted: Vec<(usize, Vec<BigUint>)>,
    pub offered: Vec<(usize, Vec<BigUint>)>,
}

/// How often values are wanted and offered, by number of the reference.
#[derive(Debug, Default)]
pub(crate) struct Ledger(HashMap<(usize, Vec<BigUint>), Counts>);

/// How often some values are wanted and offered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub wanted: u64,
    pub offered: u64,
}

impl Uses {
    /// Whether there is nothing to follow.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.wanted.is_empty() && self.offered.is_empty()
    }

    /// Keeps the names used until the result is dropped.
    pub fn hold(&self) -> Vec<Held> {
        self.named.iter().filter_map(|(kind, number)| kind.hold(number)).collect()
    }
}

impl Ledger {
    /// How often values are wanted and offered.
    pub fn counts(&self, key: &(usize, Vec<BigUint>)) -> Counts {
        self.0.get(key).copied().unwrap_or_default()
    }

    /// Changes how often values are wanted and offered.
    pub fn change(&mut self, key: &(usize, Vec<BigUint>), change: impl FnOnce(&mut Counts)) {
        let counts = self.0.entry(key.clone()).or_default();
        change(counts);
        if (counts.wanted, counts.offered) == (0, 0) {
            self.0.remove(key);
        }
    }
}
