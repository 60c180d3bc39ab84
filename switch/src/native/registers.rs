//! Generates code that reads and writes cells of registers.

use super::bounds::ceiling;
use super::call::Runtime;
use super::translate::{Translator, plain};
use crate::code::ops::Slot;
use crate::state::RegisterState;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use std::mem::offset_of;

impl Translator<'_, '_> {
    fn register(&self, instance: u16) -> Option<RegisterState> {
        self.registers[instance as usize].filter(|register| register.words == 1 && register.size > 0)
    }

    /// An address of a cell that certainly exists, and whether the index refers to it, unless that is certain.
    fn cell(&mut self, register: RegisterState, index: Slot) -> (Value, Option<Value>) {
        let mut index = self.get(index);
        let mut within = None;
        if ceiling(&self.b.func.dfg, index) >= register.size as u64 {
            let zero = self.number(0);
            let holds = self.b.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, register.size as i64);
            index = self.b.ins().select(holds, index, zero);
            within = Some(holds);
        }
        let offset = self.b.ins().ishl_imm_u(index, 3);
        let cells = self.load_lasting(offset_of!(Runtime, registers));
        let address = self.b.ins().iadd(cells, offset);
        (self.b.ins().iadd_imm_u(address, register.first as i64 * 8), within)
    }

    pub fn register_read(&mut self, instance: u16, index: Slot, dst: Slot) {
        let Some(register) = self.register(instance) else {
            self.rare();
            let words = self.registers[instance as usize].map_or(0, |register| register.words);
            return self.forget(dst, words);
        };
        let (address, within) = self.cell(register, index);
        let mut value = self.b.ins().load(types::I64, plain(), address, 0);
        if let Some(within) = within {
            let zero = self.number(0);
            value = self.b.ins().select(within, value, zero);
        }
        self.set(dst, value);
    }

    pub fn register_write(&mut self, instance: u16, index: Slot, a: Slot) {
        let Some(register) = self.register(instance) else {
            self.rare();
            return;
        };
        let (address, within) = self.cell(register, index);
        let mut value = self.get(a);
        if let Some(within) = within {
            let old = self.b.ins().load(types::I64, plain(), address, 0);
            value = self.b.ins().select(within, value, old);
        }
        self.b.ins().store(plain(), value, address, 0);
    }
}
