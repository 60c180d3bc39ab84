//! Bits of a packet: reading fields and writing headers.

use crate::code::ops::{Slot, Vars};
use crate::code::plans::{HeaderPlan, ValueType};
use crate::words::ones;

/// Zero bytes after a packet in its buffer, so that eight bytes can be read at any position in it.
pub(crate) const PADDING: usize = 16;

#[inline(always)]
fn eight(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()) {
        Some(bytes) => u64::from_be_bytes(bytes),
        None => 0,
    }
}

/// Reads `w` bits (1 to 64) from bit `bit` on. The caller has checked that they exist.
#[inline(always)]
pub(crate) fn load(bytes: &[u8], bit: usize, w: u32) -> u64 {
    let (at, shift) = (bit / 8, (bit % 8) as u32);
    let word = eight(bytes, at) << shift;
    if shift + w <= 64 {
        word >> (64 - w)
    } else {
        let rest = u64::from(bytes.get(at + 8).copied().unwrap_or(0));
        (word | rest >> (8 - shift)) >> (64 - w)
    }
}

/// Reads `width` bits from bit `bit` on into words, low word first. Clears the words above.
pub(crate) fn load_wide(bytes: &[u8], bit: usize, width: u32, words: &mut [u64]) {
    words.fill(0);
    let mut left = width;
    for word in words {
        let w = left.min(64);
        if w == 0 {
            break;
        }
        left -= w;
        *word = load(bytes, bit + left as usize, w);
    }
}

/// Reads the fields of a header without varbit at a byte and marks it valid.
#[inline]
pub(crate) fn extract(vars: &mut Vars, header: &HeaderPlan, bytes: &[u8], cursor: usize) {
    vars[header.valid as usize] = 1;
    for &sibling in &header.siblings {
        vars[sibling as usize] = 0;
    }
    if header.narrow {
        let here = bytes.get(cursor..).unwrap_or(&[]);
        for field in &header.fields {
            vars[field.slot as usize] = load(here, field.offset as usize, field.kind.width);
        }
        return;
    }
    extract_wide(vars, header, bytes, cursor);
}

#[inline(never)]
fn extract_wide(vars: &mut Vars, header: &HeaderPlan, bytes: &[u8], cursor: usize) {
    for field in &header.fields {
        let bit = cursor * 8 + field.offset as usize;
        let words = &mut vars[field.slot as usize..][..field.kind.limbs()];
        load_wide(bytes, bit, field.kind.width, words);
    }
}

/// Reads the fields of a header whose varbit field has `varbit` bits.
pub(crate) fn extract_varbit(vars: &mut Vars, header: &HeaderPlan, bytes: &[u8], cursor: usize, varbit: u32) {
    vars[header.valid as usize] = 1;
    for &sibling in &header.siblings {
        vars[sibling as usize] = 0;
    }
    let mut bit = cursor * 8;
    for field in &header.fields {
        let mut slot = field.slot as usize;
        let mut width = field.kind.width;
        if field.kind.varbit {
            width = varbit;
            vars[slot] = u64::from(varbit);
            slot += 1;
        }
        load_wide(bytes, bit, width, &mut vars[slot..][..field.kind.limbs()]);
        bit += width as usize;
    }
}

/// Appends bits to bytes, high bit first.
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Accumulates bits; the `held` low ones are not written yet.
    word: u64,
    held: u32,
}

impl<'a> BitWriter<'a> {
    pub fn new(out: &'a mut Vec<u8>) -> BitWriter<'a> {
        BitWriter { out, word: 0, held: 0 }
    }

    /// Appends the `w` low bits of a value, `w` from 0 to 64. Its higher bits are 0.
    #[inline(always)]
    pub fn put(&mut self, value: u64, w: u32) {
        if self.held + w < 64 {
            self.word = self.word << w | value;
            self.held += w;
            return;
        }
        let rest = self.held + w - 64;
        let high = if self.held == 0 { 0 } else { self.word << (64 - self.held) };
        self.out.extend_from_slice(&(high | value >> rest).to_be_bytes());
        self.word = value & ones(rest);
        self.held = rest;
    }

    /// Appends a value of any type.
    #[inline(always)]
    pub fn put_value(&mut self, vars: &Vars, slot: Slot, kind: ValueType) {
        if kind.narrow() {
            self.put(vars[slot as usize], kind.width);
        } else {
            self.put_wide(vars, slot, kind);
        }
    }

    #[inline(never)]
    fn put_wide(&mut self, vars: &Vars, slot: Slot, kind: ValueType) {
        let (width, from) = match kind.varbit {
            true => ((vars[slot as usize] as u32).min(kind.width), slot as usize + 1),
            false => (kind.width, slot as usize),
        };
        let limbs = (width as usize).div_ceil(64);
        for (index, &word) in vars[from..][..limbs].iter().enumerate().rev() {
            let w = (width - 64 * index as u32).min(64);
            self.put(word & ones(w), w);
        }
    }

    /// Writes the remaining bits, padded with zeros to a byte.
    #[inline(always)]
    pub fn finish(self) {
        if self.held > 0 {
            let bytes = (self.word << (64 - self.held)).to_be_bytes();
            self.out.extend_from_slice(&bytes[..self.held.div_ceil(8) as usize]);
        }
    }
}

/// Bytes of the scratch buffer in which a header is assembled.
pub(crate) const ASIDE: usize = 64;

/// Appends a header if it is valid.
#[inline]
pub(crate) fn emit(vars: &Vars, header: &HeaderPlan, out: &mut Vec<u8>) {
    if vars[header.valid as usize] == 0 {
        return;
    }
    if header.narrow && header.fixed_bits as usize <= ASIDE * 8 {
        emit_narrow(vars, header, out);
    } else {
        emit_any(vars, header, out);
    }
}

/// Appends a header whose fields all fit a word. The output's capacity is checked only once.
#[inline]
fn emit_narrow(vars: &Vars, header: &HeaderPlan, out: &mut Vec<u8>) {
    let mut aside = [[0; 8]; ASIDE / 8 + 1];
    let (mut word, mut held, mut at) = (0, 0, 0);
    for field in &header.fields {
        let (value, w) = (vars[field.slot as usize], field.kind.width);
        if held + w < 64 {
            word = word << w | value;
            held += w;
            continue;
        }
        let rest = held + w - 64;
        let high = if held == 0 { 0 } else { word << (64 - held) };
        aside[at] = (high | value >> rest).to_be_bytes();
        at += 1;
        word = value & ones(rest);
        held = rest;
    }
    if held > 0 {
        aside[at] = (word << (64 - held)).to_be_bytes();
    }
    out.extend_from_slice(&aside.as_flattened()[..header.fixed_bits as usize / 8]);
}

#[inline(never)]
fn emit_any(vars: &Vars, header: &HeaderPlan, out: &mut Vec<u8>) {
    let mut writer = BitWriter::new(out);
    for field in &header.fields {
        writer.put_value(vars, field.slot, field.kind);
    }
    writer.finish();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_loaded(fields in proptest::collection::vec((any::<u64>(), 0u32..=64), 0..40)) {
            let mut out = Vec::new();
            let mut writer = BitWriter::new(&mut out);
            for (value, w) in &fields {
                writer.put(value & ones(*w), *w);
            }
            writer.finish();
            let bits: usize = fields.iter().map(|(_, w)| *w as usize).sum();
            prop_assert_eq!(out.len(), bits.div_ceil(8));
            out.resize(out.len() + PADDING, 0xff);
            let mut bit = 0;
            for (value, w) in &fields {
                if *w > 0 {
                    prop_assert_eq!(load(&out, bit, *w), value & ones(*w));
                }
                bit += *w as usize;
            }
        }

        #[test]
        fn wide_loads_agree_with_bytes(bytes in proptest::collection::vec(any::<u8>(), 40), shift in 0usize..8) {
            let mut padded = bytes.clone();
            padded.resize(bytes.len() + PADDING, 0);
            let mut words = [7u64; 5];
            load_wide(&padded, shift, 256, &mut words);
            let whole = num_bigint::BigUint::from_bytes_be(&bytes[..33]) >> (8 - shift);
            let mask = (num_bigint::BigUint::from(1u8) << 256u32) - 1u8;
            let expect = whole & mask;
            let mut digits = expect.to_u64_digits();
            digits.resize(5, 0);
            prop_assert_eq!(&words[..], &digits[..]);
        }
    }
}
