//! Finds out which words of the variables have to be in memory.
//!
//! Machine code keeps values that it has just written, so it loads a word only where paths merge, or in another entry.
//! A word that is not loaded before the next write, and that neither the interpreter nor the switch reads in between,
//! needs no memory: it is neither stored nor cleared. A first, discarded translation records the words that each block
//! loads; a backward liveness analysis over the blocks then decides.

use super::known::Ways;
use crate::code::ops::{Op, Slot};
use crate::code::plans::{Code, DataList, EGRESS, HeaderAt, NO_STACK, ValueType, WidePlan};
use std::collections::BTreeMap;

/// A set of words, one bit each.
#[derive(Clone, Default, PartialEq, Eq)]
struct Words(Vec<u64>);

impl Words {
    fn insert(&mut self, slot: Slot) {
        let word = slot as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (slot % 64);
    }

    fn contains(&self, slot: Slot) -> bool {
        self.0.get(slot as usize / 64).is_some_and(|word| word >> (slot % 64) & 1 != 0)
    }

    /// Adds `of(n, w)` for the n-th 64 words `w` of another set.
    fn add(&mut self, other: &Words, of: impl Fn(usize, u64) -> u64) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (at, (word, other)) in self.0.iter_mut().zip(&other.0).enumerate() {
            *word |= of(at, *other);
        }
    }
}

/// A pseudo-block for the code before the first operation of an entry.
pub(super) const BEFORE: u32 = u32::MAX;

/// Reads and writes of a basic block.
#[derive(Default)]
struct Block {
    /// Words read from memory.
    read: Words,
    /// Those of `read` that the block has not written before.
    read_first: Words,
    /// Words written so far, on every path through the block.
    written: Words,
    /// Possible successors, each with the words written before. An error leads there from the middle of a
    /// block.
    next: Vec<(u32, Words)>,
    /// Words written before each point at which the entry may end.
    ends: Vec<Words>,
    /// Whether it reads words that another entry left.
    inherits: bool,
    /// Words read from memory in or behind it before they are written.
    live: Words,
    /// Words that have to be in memory if they are written here.
    wanted: Words,
}

/// The words read, over all entries of a program.
pub(super) struct ReadWords {
    /// Blocks by entry and first operation.
    blocks: BTreeMap<(usize, u32), Block>,
    /// The block being translated.
    at: (usize, u32),
    /// Words that have to be in memory when an entry ends, by its half: those that the switch itself and other entries
    /// read.
    outside: [Words; 2],
    /// The half of each entry.
    halves: Vec<usize>,
    /// Where constants begin. They are behind all other words and are never written, so no set contains them: sets stay
    /// a hundredth as long.
    constants_from: Slot,
    /// Whether the whole program has been recorded.
    complete: bool,
}

impl ReadWords {
    /// Starts with the words that the switch itself reads: intrinsic fields, saved variables and field lists.
    pub fn new(code: &Code) -> ReadWords {
        let outside = [0, 1].map(|half| {
            let spans = code.saved.iter().chain(code.lists.iter().flatten());
            let mut outside = Words::default();
            spans.flat_map(|(slot, count)| *slot..slot + count).for_each(|slot| outside.insert(slot));
            code.results[half].iter().for_each(|slot| outside.insert(*slot));
            outside
        });
        let halves = code.entries.iter().map(|entry| usize::from(entry.half == EGRESS)).collect();
        let constants_from = code.constants.iter().map(|(slot, _)| *slot).min().unwrap_or(Slot::MAX);
        ReadWords { blocks: BTreeMap::new(), at: (0, 0), outside, halves, constants_from, complete: false }
    }

    /// Which block of an entry leads to which.
    pub fn ways(&self, part: usize) -> Ways {
        let blocks = self.blocks.range((part, 0)..=(part, BEFORE));
        Ways::new(
            blocks.map(|((_, start), block)| (*start, block.next.iter().map(|(next, _)| *next).collect())),
        )
    }

    /// Starts recording a block.
    pub fn begin(&mut self, part: usize, start: u32) {
        self.at = (part, start);
        if !self.complete {
            self.blocks.entry(self.at).or_default();
        }
    }

    /// Ends recording and decides which words are wanted where.
    pub fn complete(&mut self) {
        // Earlier entries have to leave the words that an entry reads from them. Iterates to a fixed point.
        loop {
            self.spread();
            let before = self.outside.clone();
            for block in self.blocks.iter().filter(|((_, start), _)| *start == BEFORE).map(|(_, block)| block)
            {
                if block.inherits {
                    self.outside.iter_mut().for_each(|outside| outside.add(&block.live, |_, word| word));
                }
            }
            if self.outside == before {
                break;
            }
        }
        self.complete = true;
    }

    /// Propagates liveness backwards from the ends of each block.
    fn spread(&mut self) {
        let starts: Vec<(usize, u32)> = self.blocks.keys().rev().copied().collect();
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for at in &starts {
                let block = &self.blocks[at];
                let (mut live, mut wanted) = (block.read_first.clone(), block.read.clone());
                let mut behind = |words: &Words, written: &Words| {
                    wanted.add(words, |_, word| word);
                    live.add(words, |at, word| word & !written.0.get(at).copied().unwrap_or(0));
                };
                let outside = &self.outside[self.halves[at.0]];
                block.ends.iter().for_each(|written| behind(outside, written));
                for (next, written) in &block.next {
                    if let Some(next) = self.blocks.get(&(at.0, *next)) {
                        behind(&next.live, written);
                    }
                }
                if live != block.live || wanted != block.wanted {
                    changed = true;
                    let block = self.blocks.entry(*at).or_default();
                    (block.live, block.wanted) = (live, wanted);
                }
            }
        }
    }

    /// Whether a word written in the current block has to be in memory.
    pub fn wants(&self, slot: Slot) -> bool {
        !self.complete || self.blocks.get(&self.at).is_none_or(|block| block.wanted.contains(slot))
    }

    fn block(&mut self) -> Option<&mut Block> {
        if self.complete { None } else { self.blocks.get_mut(&self.at) }
    }

    /// Records that these words are read.
    pub fn note(&mut self, slot: Slot, count: u16) {
        let end = slot.saturating_add(count).min(self.constants_from);
        if let Some(block) = self.block() {
            for slot in slot..end {
                block.read.insert(slot);
                if !block.written.contains(slot) {
                    block.read_first.insert(slot);
                }
            }
        }
    }

    /// Records that this word is written.
    pub fn note_written(&mut self, slot: Slot) {
        if let Some(block) = self.block() {
            block.written.insert(slot);
        }
    }

    /// Records that this block may follow.
    pub fn note_next(&mut self, start: u32) {
        if let Some(block) = self.block() {
            let written = block.written.clone();
            block.next.push((start, written));
        }
    }

    /// Records that the block reads words that another entry left.
    pub fn note_inherits(&mut self) {
        if let Some(block) = self.block() {
            block.inherits = true;
        }
    }

    /// Records that the entry may end here.
    pub fn note_end(&mut self) {
        if let Some(block) = self.block() {
            let written = block.written.clone();
            block.ends.push(written);
        }
    }

    fn value(&mut self, slot: Slot, kind: ValueType) {
        self.note(slot, kind.words() as u16);
    }

    fn data(&mut self, data: &DataList) {
        data.iter().for_each(|(slot, kind)| self.value(*slot, *kind));
    }

    /// Adds all headers and stacks, because code that handles them as a whole may read any word.
    fn headers(&mut self, code: &Code) {
        code.headers.iter().for_each(|header| self.note(header.valid, header.words));
        code.stacks.iter().for_each(|stack| self.note(stack.next, 1));
    }

    fn header_at(&mut self, at: HeaderAt) {
        if at.stack != NO_STACK {
            self.note(at.index, 1);
        }
    }

    /// Records an operation that the interpreter executes, which reads its operands.
    pub fn note_operands(&mut self, code: &Code, op: Op) {
        match op {
            Op::MovN { a, n, .. } => self.note(a, n),
            Op::Wide { plan } => self.wide(code.wide[plan as usize]),
            Op::Emit { header } => {
                let header = &code.headers[header as usize];
                self.note(header.valid, header.words);
            }
            Op::ExtractVarbit { bits: slot, .. }
            | Op::ExtractNextVarbit { bits: slot, .. }
            | Op::ExtractAt { index: slot, .. }
            | Op::EmitAt { index: slot, .. }
            | Op::SetValidAt { index: slot, .. }
            | Op::LoadAt { index: slot, .. } => {
                self.note(slot, 1);
                self.headers(code);
            }
            Op::StoreAt { a, index, plan } => {
                self.note(a, code.indexed[plan as usize].words);
                self.note(index, 1);
                self.headers(code);
            }
            Op::CopyHeaderAt { plan } => {
                let plan = code.copies[plan as usize];
                self.header_at(plan.dst);
                self.header_at(plan.src);
                self.headers(code);
            }
            Op::Extract { .. }
            | Op::ExtractNext { .. }
            | Op::SetValid { .. }
            | Op::CopyHeader { .. }
            | Op::StackShift { .. } => self.headers(code),
            Op::Advance { bits: slot }
            | Op::Count { index: slot, .. }
            | Op::RegisterRead { index: slot, .. }
            | Op::Clone { session: slot, .. }
            | Op::Truncate { bytes: slot } => self.note(slot, 1),
            Op::Lookahead { plan, .. } => self.note(code.lookaheads[plan as usize].error, 1),
            Op::Hash { plan } => {
                let plan = &code.hashes[plan as usize];
                self.data(&plan.data);
                plan.bounds.iter().flat_map(|(base, max)| [base, max]).for_each(|slot| self.note(*slot, 1));
            }
            Op::MeterGiven { index, given, less, .. } => {
                [index, given, less].into_iter().for_each(|slot| self.note(slot, 1));
            }
            Op::DirectMeterGiven { given, less, .. } => {
                [given, less].into_iter().for_each(|slot| self.note(slot, 1));
            }
            Op::CountLess { index, less, .. } => {
                self.note(index, 1);
                self.note(less, 1);
            }
            Op::CloneWith { plan } | Op::ResubmitWith { plan } => {
                let plan = &code.prefixes[plan as usize];
                self.note(plan.session, 1);
                self.data(&plan.header);
            }
            Op::DirectCountLess { less, .. } => self.note(less, 1),
            Op::DirectRegisterWrite { a, words, .. } => self.note(a, words),
            Op::DirectCount { .. } | Op::DirectMeter { .. } | Op::DirectRegisterRead { .. } => {}
            Op::Smooth { index, a, .. } => {
                self.note(index, 1);
                self.note(a, 1);
            }
            Op::DirectSmooth { a, .. } | Op::Approximate { a, .. } => self.note(a, 1),
            Op::Random { lo, hi, .. } => {
                self.note(lo, 1);
                self.note(hi, 1);
            }
            Op::Digest { plan } => self.data(&code.digests[plan as usize].data),
            Op::VerifyChecksum { plan } | Op::UpdateChecksum { plan } => {
                let plan = &code.checksums[plan as usize];
                self.data(&plan.data);
                self.value(plan.value, plan.kind);
                self.note(plan.wrong, 1);
            }
            Op::Log { plan } => self.data(&code.logs[plan as usize].args),
            Op::JumpUnlessMember { plan, .. } => self.data(&code.value_sets[plan as usize].keys),
            Op::Apply { plan } => {
                let plan = &code.applies[plan as usize];
                self.note(plan.key, plan.words);
            }
            Op::ApplyIndirect { plan } => {
                let indirect = &code.indirects[plan as usize];
                let plan = &code.applies[indirect.apply as usize];
                self.note(plan.key, plan.words);
                self.data(&indirect.selector);
            }
            Op::Zero { .. } | Op::DirectColor { .. } | Op::Resubmit { .. } | Op::Recirculate { .. } => {}
            // Registers with wide cells, and operations not listed above.
            _ => self.note(0, Slot::MAX),
        }
    }

    fn wide(&mut self, plan: WidePlan) {
        match plan {
            WidePlan::Unary { a, kind, .. } => self.value(a, kind),
            WidePlan::Binary { a, b, kind, right, .. } => {
                self.value(a, kind);
                self.value(b, right);
            }
            WidePlan::Cast { a, from, .. } | WidePlan::Slice { a, from, .. } => self.value(a, from),
            WidePlan::Concat { a, left, b, right, .. } => {
                self.value(a, left);
                self.value(b, right);
            }
            WidePlan::Insert { dst, whole, a, hi, lo } => {
                self.value(dst, whole);
                self.note(a, (hi - lo) as u16 / 64 + 1);
            }
        }
    }
}
