//! Generates code for tables and their actions.

use super::call::{self, Runtime};
use super::graph::applied;
use super::translate::{Translator, lasting, plain};
use crate::code::ops::{Op, Slot};
use crate::code::plans::ApplyPlan;
use crate::exec::Exit;
use crate::table::TableState;
use crate::table::direct::{HIT, places};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value, types};
use cranelift_frontend::Switch;
use std::mem::offset_of;

impl Translator<'_, '_> {
    /// Looks up a key and jumps to the action.
    pub fn apply(&mut self) {
        let Some(plan) = applied(self.code, self.at) else { return };
        let site = self.graph.sites.iter().position(|at| *at == self.at).unwrap_or(0);
        let site = self.b.ins().iconst(types::I32, site as i64);
        self.b.def_var(self.site, site);
        match self.code.ops[self.at as usize] {
            Op::ApplyIndirect { plan: number } => self.apply_indirect(plan, number),
            Op::Apply { plan: number } => self.apply_direct(plan, number),
            _ => {}
        }
    }

    /// Calls the interpreter to look up the key and load the arguments.
    fn apply_indirect(&mut self, plan: &ApplyPlan, number: u32) {
        let found = self.call(call::apply_indirect as *const () as usize, number);
        let actions = &self.code.actions[plan.table as usize];
        for slot in actions.iter().flat_map(|action| &action.args).chain([&plan.hit, &plan.action_run]) {
            self.forget(*slot, 1);
        }
        let mut switch = Switch::new();
        for (number, action) in (1..).zip(actions) {
            let block = self.block(action.pc);
            switch.set_entry(number, block);
        }
        let next = self.block(self.at + 1);
        switch.emit(&mut self.b, found, next);
    }

    /// Calls a lookup and loads the arguments inline, with one block per action.
    fn apply_direct(&mut self, plan: &ApplyPlan, number: u32) {
        let tables = self.tables;
        let table = &tables[plan.table as usize];
        if let Some(rows) = table.fixed_rows() {
            return self.apply_fixed(plan, &rows);
        }
        let (found, args) = match table.direct_widths() {
            Some((widths, stride)) => self.look_up_direct(plan, widths, stride),
            None => self.look_up(plan, table, number),
        };
        if plan.hit != 0 {
            let hit = self.b.ins().ushr_imm_u(found, i64::from(HIT.trailing_zeros()));
            self.set(plan.hit, hit);
        }
        let found = self.b.ins().ireduce(types::I32, found);
        let mut switch = Switch::new();
        let actions = &self.code.actions[plan.table as usize];
        let landings: Vec<ir::Block> = actions.iter().map(|_| self.b.create_block()).collect();
        for (number, landing) in (1..).zip(&landings) {
            switch.set_entry(number, *landing);
        }
        let next = self.block(self.at + 1);
        switch.emit(&mut self.b, found, next);
        let known = self.known.clone();
        for ((number, action), landing) in (0..).zip(actions).zip(landings) {
            self.b.switch_to_block(landing);
            self.known = known.clone();
            if plan.action_run != 0 {
                let number = self.number(number);
                self.set_at_times(plan.action_run, number);
            }
            for (word, &slot) in (0..).zip(&action.args) {
                let value = self.b.ins().load(types::I64, plain(), args, word * 8);
                self.set_at_times(slot, value);
            }
            self.jump(action.pc);
        }
    }

    /// Calls a lookup.
    fn look_up(&mut self, plan: &ApplyPlan, table: &TableState, number: u32) -> (Value, Value) {
        let exact = match table.plain_words() {
            Some(1) => Some(call::look_up_exact::<1> as *const ()),
            Some(2) => Some(call::look_up_exact::<2> as *const ()),
            Some(3) => Some(call::look_up_exact::<3> as *const ()),
            _ => None,
        };
        self.read.note(plan.key, plan.words);
        match exact {
            Some(function) => {
                let key = self.address(plan.key);
                self.find(function as usize, key, plan.table)
            }
            None => self.find(call::look_up as *const () as usize, self.cx, number),
        }
    }

    /// Calls a function that finds an action and arguments.
    fn find(&mut self, function: usize, first: Value, about: u32) -> (Value, Value) {
        let callee = self.number(function as u64);
        let about = self.b.ins().iconst(types::I32, i64::from(about));
        let call = self.b.ins().call_indirect(self.finder, callee, &[first, self.runtime, about]);
        match *self.b.inst_results(call) {
            [found, args] => (found, args),
            _ => (callee, callee),
        }
    }

    /// Reads the answer of a table with short keys where it is. Only a miss is a call.
    fn look_up_direct(&mut self, plan: &ApplyPlan, widths: &[u32], stride: usize) -> (Value, Value) {
        let key = self.side_by_side(plan.key, widths);
        let tables = self.load_lasting(offset_of!(Runtime, tables));
        let table = plan.table as usize * size_of::<TableState>();
        let table = self.b.ins().iadd_imm_u(tables, table as i64);
        let of_table =
            |own: &mut Self, place: usize| own.b.ins().load(types::I64, lasting(), table, place as i32);
        let [within, miss, found] = [(); 3].map(|()| self.b.create_block());
        self.b.append_block_param(found, types::I64);
        self.b.append_block_param(found, types::I64);
        self.b.set_cold_block(miss);
        let keys = of_table(self, places::KEYS);
        let is_within = self.b.ins().icmp(IntCC::UnsignedLessThan, key, keys);
        self.b.ins().brif(is_within, within, &[], miss, &[]);
        self.b.switch_to_block(within);
        let (answers, offset) =
            (of_table(self, places::ADDRESS), self.b.ins().imul_imm_u(key, stride as i64 * 8));
        let answer = self.b.ins().iadd(answers, offset);
        let action = self.b.ins().load(types::I64, plain(), answer, 0);
        let args = self.b.ins().iadd_imm_u(answer, 8);
        self.b.ins().brif(action, found, &[action.into(), args.into()], miss, &[]);
        self.b.switch_to_block(miss);
        let (action, args) = self.find(call::miss as *const () as usize, self.cx, plan.table);
        self.b.ins().jump(found, &[action.into(), args.into()]);
        self.b.switch_to_block(found);
        match *self.b.block_params(found) {
            [found, args] => (found, args),
            _ => (key, key),
        }
    }

    /// A key's fields as one number.
    fn side_by_side(&mut self, key: Slot, widths: &[u32]) -> Value {
        let mut whole = self.get(key);
        for (width, after) in widths.iter().skip(1).zip(1..) {
            let (high, field) = (self.b.ins().ishl_imm_u(whole, i64::from(*width)), self.get(key + after));
            whole = self.b.ins().bor(high, field);
        }
        whole
    }

    /// Returns from an action to where its table was applied, or to the end of the enclosing block.
    pub fn back(&mut self) {
        let exit = matches!(self.code.ops[self.at as usize], Op::Exit);
        let Some(callers) = self.graph.callers.get(&self.at) else { return self.leave(Exit::Done) };
        let target = |site: usize| {
            let at = self.graph.sites[site];
            if exit { applied(self.code, at).map_or(at + 1, |plan| plan.exit) } else { at + 1 }
        };
        let targets: Vec<(usize, u32)> = callers.iter().map(|&site| (site, target(site))).collect();
        let Some((&(_, last), others)) = targets.split_last() else { return self.leave(Exit::Done) };
        let mut switch = Switch::new();
        for &(site, to) in others {
            let block = self.block(to);
            switch.set_entry(site as u128, block);
        }
        let (site, last) = (self.b.use_var(self.site), self.block(last));
        switch.emit(&mut self.b, site, last);
    }
}
