//! Memory of a node, with a word for each unit, and keys.

use super::super::{Access, Extent, Memory};
use super::UNIT;
use super::store::{Store, units};
use std::collections::BTreeMap;

/// The memory.
#[derive(Clone, Debug)]
pub struct Dram {
    pub words: Vec<u64>,
    /// First unit, and the one behind the last, by key.
    pub keys: BTreeMap<u64, (u64, u64)>,
    last_key: u64,
    /// How often it is asked until an extent is zeroed.
    slow: u32,
    asked: BTreeMap<u64, u32>,
    /// A violated rule.
    pub problem: Option<String>,
}

impl Dram {
    /// Whether some key reaches one of these units.
    fn is_reached(&self, (start, end): (u64, u64)) -> bool {
        self.keys.values().any(|(from, to)| *from < end && start < *to)
    }

    /// The key of a granted access.
    pub fn key(access: &Access) -> u64 {
        u64::from_le_bytes(access.bytes().try_into().unwrap())
    }
}

impl Memory for Dram {
    fn grant(&mut self, extent: &Extent) -> Option<Access> {
        let range = units(extent);
        if self.is_reached(range) {
            self.problem = Some(format!("{extent:?} has two owners"));
        }
        self.last_key += 1;
        self.keys.insert(self.last_key, range);
        Access::new(&self.last_key.to_le_bytes())
    }

    fn revoke(&mut self, extent: &Extent) {
        let range = units(extent);
        self.keys.retain(|_, of| *of != range);
    }

    fn zero(&mut self, extent: &Extent) -> bool {
        let (start, end) = units(extent);
        if self.is_reached((start, end)) {
            self.problem = Some(format!("{extent:?} is zeroed although it has a key"));
        }
        let asked = self.asked.entry(start).or_default();
        *asked += 1;
        if *asked <= self.slow {
            return false;
        }
        self.asked.remove(&start);
        self.words[start as usize..end as usize].fill(0);
        true
    }
}

impl Store for Dram {
    const WORLDS: u64 = 120;
    const UNCLEAN: &'static str = "reads";

    fn new(units: u64, slow: u32, instance: u64) -> Dram {
        let (words, keys, asked) = (vec![0; units as usize], BTreeMap::new(), BTreeMap::new());
        Dram { words, keys, last_key: instance << 32, slow, asked, problem: None }
    }

    fn write(&mut self, access: &Access, nth: u64, word: u64) -> bool {
        let Some((start, end)) = self.keys.get(&Dram::key(access)).copied() else { return false };
        self.words[(start + nth % (end - start)) as usize] = word;
        true
    }

    fn read(&self, access: &Access) -> Option<Vec<u64>> {
        let (start, end) = self.keys.get(&Dram::key(access))?;
        Some(self.words[*start as usize..*end as usize].to_vec())
    }

    fn reached(&self) -> Vec<(u64, u64)> {
        self.keys.values().map(|(start, end)| (start * UNIT, end * UNIT)).collect()
    }

    fn is_clean(&self) -> bool {
        self.keys.is_empty() && self.words.iter().all(|word| *word == 0)
    }

    fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }
}
