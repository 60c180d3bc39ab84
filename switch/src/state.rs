//! State of a running program: tables, extern objects, value sets, queues to the controller.

use crate::aging::Aging;
use crate::code::ops::{Slot, Vars};
use crate::code::plans::{DigestPlan, ValueType};
use crate::config::Config;
use crate::meter::Meter;
use crate::objects::{CounterData, DigestMessage};
use crate::profile::Profile;
use crate::rehash::Rehash;
use crate::smooth::Smoother;
use crate::table::TableState;
use crate::trace::Trace;
use crate::words::{limbs_of, number};
use num_bigint::BigUint;
use p4rack_p4::ir::Matcher;
use p4rack_wire::{Nanos, SplitMix};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// State of an extern object.
#[derive(Clone, Debug)]
pub(crate) enum InstanceState {
    /// An object whose state is in a table, or which has none.
    None,
    Counter(Vec<CounterData>),
    Meter {
        bytes: bool,
        /// Added to the length of each packet.
        adjust_bytes: i32,
        cells: Vec<Meter>,
    },
    Register(RegisterState),
    Smoother {
        drops: bool,
        cells: Vec<Smoother>,
    },
    Profile(Profile),
    /// A hash, with the configuration that replaces the program's.
    Hash(Option<Box<Rehash>>),
}

/// Position of a register's cells in [`State::registers`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisterState {
    /// Index of the first word.
    pub first: usize,
    /// Words per cell.
    pub words: usize,
    /// Number of cells.
    pub size: usize,
}

impl RegisterState {
    /// The words of a cell, if it exists.
    pub fn cell(&self, index: u64) -> Option<Range<usize>> {
        let index = usize::try_from(index).ok().filter(|index| *index < self.size)?;
        let first = self.first + index * self.words;
        Some(first..first + self.words)
    }
}

/// Values that a field of a value set's member accepts.
#[derive(Clone, Debug)]
enum FieldMatch {
    Mask(Vec<u64>, Vec<u64>),
    Range(Vec<u64>, Vec<u64>),
}

/// A parser value set.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValueSetState {
    pub members: Vec<Vec<Matcher>>,
    packed: Vec<Vec<FieldMatch>>,
}

impl ValueSetState {
    /// Replaces the members, which are already checked.
    pub fn set(&mut self, members: Vec<Vec<Matcher>>, fields: &[ValueType]) {
        let pack = |matcher: &Matcher, kind: &ValueType| {
            let full = (BigUint::from(1u8) << kind.width) - 1u8;
            let limbs = |value: &BigUint| limbs_of(value, kind.limbs());
            match matcher {
                Matcher::Exact(value) => FieldMatch::Mask(limbs(value), limbs(&full)),
                Matcher::Mask { value, mask } => FieldMatch::Mask(limbs(&(value & mask)), limbs(mask)),
                Matcher::Range { lo, hi } => FieldMatch::Range(limbs(lo), limbs(hi)),
                Matcher::Any | Matcher::ValueSet(_) => {
                    FieldMatch::Mask(limbs(&BigUint::ZERO), limbs(&BigUint::ZERO))
                }
            }
        };
        self.packed = members
            .iter()
            .map(|member| member.iter().zip(fields).map(|(matcher, kind)| pack(matcher, kind)).collect())
            .collect();
        self.members = members;
    }

    /// Whether a member accepts the keys.
    pub fn contains(&self, vars: &Vars, keys: &[(Slot, ValueType)]) -> bool {
        self.packed.iter().any(|member| {
            member.iter().zip(keys).all(|(field, (slot, kind))| {
                let key = &vars[*slot as usize..][..kind.limbs()];
                match field {
                    FieldMatch::Mask(value, mask) => {
                        key.iter().zip(mask).zip(value).all(|((key, mask), value)| key & mask == *value)
                    }
                    FieldMatch::Range(lo, hi) => {
                        lo.iter().rev().le(key.iter().rev()) && key.iter().rev().le(hi.iter().rev())
                    }
                }
            })
        })
    }
}

/// Digests waiting for the controller, as flat words.
#[derive(Clone, Debug, Default)]
pub(crate) struct DigestQueue {
    limit: usize,
    /// Number, time and pipe of each.
    heads: VecDeque<(u32, Nanos, usize)>,
    words: VecDeque<u64>,
    pub lost: u64,
}

impl DigestQueue {
    /// Adds a digest with its values from the variables.
    pub fn push(&mut self, plan: &DigestPlan, vars: &Vars, now: Nanos, pipe: usize) {
        if self.heads.len() >= self.limit {
            self.lost += 1;
            return;
        }
        self.heads.push_back((plan.digest, now, pipe));
        for (slot, kind) in &plan.data {
            self.words.extend(&vars[*slot as usize..][..kind.words()]);
        }
    }

    /// Removes the oldest digest. `shapes` are the types of each digest's fields.
    pub fn pop(&mut self, shapes: &[Vec<ValueType>]) -> Option<DigestMessage> {
        let (digest, time, pipe) = self.heads.pop_front()?;
        let mut values = Vec::new();
        for kind in shapes.get(digest as usize).into_iter().flatten() {
            let words: Vec<u64> = self.words.drain(..kind.words().min(self.words.len())).collect();
            values.push(number(&words[usize::from(kind.varbit)..]));
        }
        Some(DigestMessage { digest, values, time, pipe })
    }
}

/// Log messages of the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Maximum messages stored; 0 stores none.
    pub limit: usize,
    pub messages: VecDeque<String>,
    pub count: u64,
}

/// State of each pipe.
#[derive(Clone, Debug, Default)]
pub(crate) struct PipeState {
    pub tables: Vec<TableState>,
    pub instances: Vec<InstanceState>,
    /// Cells of all registers, register after register.
    pub registers: Vec<u64>,
    pub value_sets: Vec<ValueSetState>,
}

impl PipeState {
    /// Initial state of a program with these tables and extern objects, and this many value sets.
    pub fn new(tables: Vec<TableState>, instances: Vec<InstanceState>, value_sets: usize) -> PipeState {
        let words = |instance: &InstanceState| match instance {
            InstanceState::Register(register) => register.size * register.words,
            _ => 0,
        };
        PipeState {
            registers: vec![0; instances.iter().map(words).sum()],
            tables,
            instances,
            value_sets: vec![ValueSetState::default(); value_sets],
        }
    }
}

/// All state of a running program.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// Of the pipe that processes a packet.
    pub pipe: PipeState,
    /// Number of that pipe.
    pub active: usize,
    /// Of the others, by number, with nothing at that pipe's place; empty if there is one pipe.
    others: Vec<PipeState>,
    /// Tables whose entries may differ between pipes.
    pub apart: Vec<bool>,
    /// Action profiles, by extern object, whose members may.
    pub profiles_apart: Vec<bool>,
    pub digests: DigestQueue,
    pub aging: Aging,
    /// Ports that are down.
    pub down: BTreeSet<u16>,
    pub log: Log,
    pub trace: Trace,
    pub rng: SplitMix,
    /// Scratch space for the input of hashes and checksums.
    pub scratch: Vec<u8>,
    /// Scratch space for the parts that a changed hash takes of it.
    pub parts: Vec<u8>,
    /// Header that precedes the clone asked for last.
    pub clone_header: Vec<u8>,
    /// Header that precedes the resubmitted packet.
    pub pass_header: Vec<u8>,
}

impl State {
    /// Initial state of a program with these pipes. With `traced`, every packet records events.
    pub fn new(first: PipeState, mut others: Vec<PipeState>, traced: bool, config: &Config) -> State {
        if !others.is_empty() {
            others.insert(0, PipeState::default());
        }
        State {
            apart: vec![false; first.tables.len()],
            profiles_apart: vec![false; first.instances.len()],
            pipe: first,
            active: 0,
            others,
            aging: Aging::default(),
            down: BTreeSet::new(),
            digests: DigestQueue { limit: config.digest_queue, ..DigestQueue::default() },
            log: Log { limit: config.log_messages, ..Log::default() },
            trace: Trace::new(traced),
            rng: SplitMix(config.seed),
            scratch: Vec::new(),
            parts: Vec::new(),
            clone_header: Vec::new(),
            pass_header: Vec::new(),
        }
    }

    /// Number of pipes.
    pub fn pipes(&self) -> usize {
        self.others.len().max(1)
    }

    /// Lets a pipe process a packet. Numbers beyond the last pipe wrap around to the first.
    #[inline(always)]
    pub fn enter(&mut self, pipe: usize) {
        if !self.others.is_empty() {
            self.exchange(pipe % self.others.len());
        }
    }

    #[inline(never)]
    fn exchange(&mut self, pipe: usize) {
        if pipe != self.active {
            std::mem::swap(&mut self.pipe, &mut self.others[self.active]);
            std::mem::swap(&mut self.pipe, &mut self.others[pipe]);
            self.active = pipe;
        }
    }

    /// State of a pipe below [`State::pipes`].
    pub fn of(&self, pipe: usize) -> &PipeState {
        match self.others.get(pipe) {
            Some(other) if pipe != self.active => other,
            _ => &self.pipe,
        }
    }

    /// State of a pipe below [`State::pipes`], to change it.
    pub fn of_mut(&mut self, pipe: usize) -> &mut PipeState {
        match self.others.get_mut(pipe) {
            Some(other) if pipe != self.active => other,
            _ => &mut self.pipe,
        }
    }
}
