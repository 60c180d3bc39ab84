//! Generates code that reads packet fields and writes headers.

use super::call::Runtime;
use super::known::Fact;
use super::translate::{Translator, anywhere, plain};
use crate::code::ops::Slot;
use crate::code::plans::{FieldPlan, HeaderPlan};
use crate::exec::bits::ASIDE;
use crate::words::ones;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use std::mem::offset_of;

/// Positions in the packet below this are part of an instruction.
const FAR: u64 = 1 << 20;

impl Translator<'_, '_> {
    /// Address of the first byte that is not parsed, as a base and bits behind it.
    fn here(&mut self) -> (Value, u32) {
        let bytes = self.load_lasting(offset_of!(Runtime, bytes));
        match self.known.cursor {
            Some(Fact::Number(cursor)) if cursor < FAR => (bytes, cursor as u32 * 8),
            _ => {
                let cursor = self.cursor();
                (self.b.ins().iadd(bytes, cursor), 0)
            }
        }
    }

    /// Loads `w` bits (1 to 64) from bit `bit` after an address. Reads up to 8 bytes.
    fn load_bits(&mut self, address: Value, bit: u32, w: u32) -> Value {
        let (at, shift) = ((bit / 8) as i32, bit % 8);
        // The smallest load that holds all bits, so that bytes stored before can be forwarded without a
        // stall.
        let (value, read) = match shift + w {
            0..=8 => (self.b.ins().uload8(types::I64, anywhere(), address, at), 8),
            9..=16 => {
                let raw = self.b.ins().load(types::I16, anywhere(), address, at);
                let value = self.b.ins().bswap(raw);
                (self.b.ins().uextend(types::I64, value), 16)
            }
            17..=32 => {
                let raw = self.b.ins().load(types::I32, anywhere(), address, at);
                let value = self.b.ins().bswap(raw);
                (self.b.ins().uextend(types::I64, value), 32)
            }
            _ => {
                let raw = self.b.ins().load(types::I64, anywhere(), address, at);
                (self.b.ins().bswap(raw), 64)
            }
        };
        if shift + w > 64 {
            let over = shift + w - 64;
            let rest = self.b.ins().uload8(types::I64, anywhere(), address, at + 8);
            let high = self.b.ins().ishl_imm_u(value, i64::from(over));
            let low = self.b.ins().ushr_imm_u(rest, i64::from(8 - over));
            let value = self.b.ins().bor(high, low);
            return self.mask(value, w);
        }
        let value = match read - shift - w {
            0 => value,
            below => self.b.ins().ushr_imm_u(value, i64::from(below)),
        };
        if shift == 0 { value } else { self.mask(value, w) }
    }

    fn mask(&mut self, value: Value, w: u32) -> Value {
        if w >= 64 { value } else { self.b.ins().band_imm_u(value, ones(w) as i64) }
    }

    /// Reads the fields of a header whose fields all fit a word.
    pub fn extract(&mut self, header: u16) {
        let header: &HeaderPlan = &self.code.headers[header as usize];
        let len = self.frame_len();
        let end = self.ahead(u64::from(header.fixed_bits / 8));
        let short = self.b.ins().icmp(IntCC::UnsignedLessThan, len, end);
        let error = self.number(self.code.errors.packet_too_short);
        self.raise_if(short, error);
        let (here, behind) = self.here();
        let (one, zero) = (self.number(1), self.number(0));
        self.set(header.valid, one);
        for &sibling in &header.siblings {
            self.set(sibling, zero);
        }
        for field in &header.fields {
            let value = self.load_bits(here, behind + field.offset, field.kind.width);
            self.set(field.slot, value);
        }
        self.move_to(end);
    }

    /// Skips bits. A number of them is checked here.
    pub fn advance(&mut self, bits: Slot) {
        let errors = self.code.errors;
        let bits = self.get(bits);
        let number = match self.fact(bits) {
            Fact::Number(number) => Some(number),
            Fact::Value(_) => None,
        };
        if number.is_none_or(|number| number % 8 != 0) {
            let part = self.b.ins().band_imm_u(bits, 7);
            let invalid = self.number(errors.parser_invalid_argument);
            self.raise_if(part, invalid);
        }
        let len = self.frame_len();
        let error = self.number(errors.packet_too_short);
        let cursor = self.cursor();
        let left = self.b.ins().isub(len, cursor);
        let bytes = self.b.ins().ushr_imm_u(bits, 3);
        let short = self.b.ins().icmp(IntCC::UnsignedGreaterThan, bytes, left);
        self.raise_if(short, error);
        let end = match number {
            Some(number) => self.ahead(number / 8),
            None => self.b.ins().iadd(cursor, bytes),
        };
        self.move_to(end);
    }

    /// Makes a header valid. One that was not begins with zeros.
    pub fn set_valid(&mut self, header: u16) {
        let header: &HeaderPlan = &self.code.headers[header as usize];
        let (valid, one, zero) = (self.get(header.valid), self.number(1), self.number(0));
        for slot in header.valid + 1..header.valid + header.words {
            let word = match self.fact(valid) {
                Fact::Number(0) => zero,
                Fact::Number(_) => break,
                Fact::Value(_) => {
                    let word = self.get(slot);
                    self.b.ins().select(valid, word, zero)
                }
            };
            self.set(slot, word);
        }
        self.set(header.valid, one);
        for &sibling in &header.siblings {
            self.set(sibling, zero);
        }
    }

    /// Copies a header. Of a union's headers, the others are no longer valid then.
    pub fn copy_header(&mut self, dst: u16, src: u16) {
        let (dst, src): (&HeaderPlan, &HeaderPlan) =
            (&self.code.headers[dst as usize], &self.code.headers[src as usize]);
        let words: Vec<Value> = (0..src.words).map(|word| self.get(src.valid + word)).collect();
        (dst.valid..).zip(&words).for_each(|(slot, word)| self.set(slot, *word));
        for &sibling in &dst.siblings {
            let (zero, before) = (self.number(0), self.get(sibling));
            let after = self.b.ins().select(words[0], zero, before);
            self.set(sibling, after);
        }
    }

    /// Reads a word ahead of the cursor.
    pub fn look_ahead(&mut self, dst: Slot, plan: u32) {
        let plan = self.code.lookaheads[plan as usize];
        let len = self.frame_len();
        // Whole bytes, because the packet and the cursor are.
        let end = self.ahead(u64::from(plan.total.div_ceil(8)));
        let short = self.b.ins().icmp(IntCC::UnsignedLessThan, len, end);
        let error = self.get(plan.error);
        self.raise_if(short, error);
        let (here, behind) = self.here();
        let value = self.load_bits(here, behind + plan.offset, plan.kind.width);
        self.set(dst, value);
    }

    /// Appends a header if it is valid.
    pub fn emit(&mut self, header: u16) {
        let header: &HeaderPlan = &self.code.headers[header as usize];
        let valid = self.get(header.valid);
        let (write, next) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(valid, write, &[], next, &[]);
        self.b.switch_to_block(write);
        // Facts established in the branch do not hold after it.
        let known = self.known.clone();
        if header.narrow && header.fixed_bits as usize <= ASIDE * 8 {
            self.emit_narrow(header);
        } else {
            self.rare();
        }
        self.known = known;
        self.b.ins().jump(next, &[]);
        self.b.switch_to_block(next);
    }

    fn emit_narrow(&mut self, header: &HeaderPlan) {
        let bytes = i64::from(header.fixed_bits / 8);
        let len = self.load_runtime(offset_of!(Runtime, out_len));
        let room = self.load_runtime(offset_of!(Runtime, out_room));
        // The last store may write up to seven bytes more.
        let needed = self.b.ins().iadd_imm_u(len, bytes + 8);
        let fits = self.b.ins().icmp(IntCC::UnsignedLessThanOrEqual, needed, room);
        let (here, grow, next) = (self.b.create_block(), self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(grow);
        self.b.ins().brif(fits, here, &[], grow, &[]);
        self.b.switch_to_block(grow);
        self.rare();
        self.b.ins().jump(next, &[]);
        self.b.switch_to_block(here);
        let out = self.load_runtime(offset_of!(Runtime, out));
        let address = self.b.ins().iadd(out, len);
        self.store_fields(address, &header.fields);
        let end = self.b.ins().iadd_imm_u(len, bytes);
        self.b.ins().store(plain(), end, self.runtime, offset_of!(Runtime, out_len) as i32);
        self.b.ins().jump(next, &[]);
        self.b.switch_to_block(next);
    }

    /// Packs fields into words in wire order.
    fn store_fields(&mut self, address: Value, fields: &[FieldPlan]) {
        // The `held` low bits of `word` are not written yet.
        let (mut word, mut held, mut at) = (None, 0u32, 0);
        for field in fields {
            let (value, w) = (self.get(field.slot), field.kind.width);
            let joined = match word {
                None => value,
                Some(_) if held + w > 64 => value,
                Some(word) => {
                    let high = if w == 64 { word } else { self.b.ins().ishl_imm_u(word, i64::from(w)) };
                    self.b.ins().bor(high, value)
                }
            };
            if held + w < 64 {
                (word, held) = (Some(joined), held + w);
                continue;
            }
            let rest = held + w - 64;
            let full = match word {
                Some(word) if rest > 0 => {
                    let high = self.b.ins().ishl_imm_u(word, i64::from(64 - held));
                    let low = self.b.ins().ushr_imm_u(value, i64::from(rest));
                    self.b.ins().bor(high, low)
                }
                _ => joined,
            };
            self.store_word(address, at, full);
            at += 8;
            word = (rest > 0).then(|| self.mask(value, rest));
            held = rest;
        }
        if let Some(word) = word {
            let high = self.b.ins().ishl_imm_u(word, i64::from(64 - held));
            self.store_word(address, at, high);
        }
    }

    fn store_word(&mut self, address: Value, at: i32, word: Value) {
        let raw = self.b.ins().bswap(word);
        self.b.ins().store(anywhere(), raw, address, at);
    }
}
