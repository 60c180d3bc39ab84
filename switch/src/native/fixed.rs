//! Generates code for tables that no controller can change: comparisons instead of a look-up, arguments as numbers.

use super::known::Known;
use super::translate::Translator;
use crate::code::ops::Slot;
use crate::code::plans::ApplyPlan;
use crate::table::fixed::{FixedRow, Test};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder};

/// Result of a comparison.
enum Outcome {
    Known(bool),
    Asked(ir::Value),
}

/// An action with its arguments, for a key that an entry has or for one that none has.
struct Call<'r> {
    hit: bool,
    action: u32,
    args: &'r [u64],
}

impl Translator<'_, '_> {
    /// Compares a key with the rows one after the other and jumps to the action of the first that matches. Consecutive
    /// rows with the same first comparison make it once.
    pub fn apply_fixed(&mut self, plan: &ApplyPlan, rows: &[FixedRow<'_>]) {
        for test in rows.iter().flat_map(|row| &row.tests) {
            self.get(plan.key + test.word as Slot);
        }
        if plan.hit != 0 {
            self.read.note_written(plan.hit);
        }
        let known = self.known.clone();
        let miss = self.b.create_block();
        self.choose(plan, rows, 0, &known, miss);
        self.b.switch_to_block(miss);
        self.known = known;
        let tables = self.tables;
        match &tables[plan.table as usize].default {
            Some(row) => {
                self.take(plan, Call { hit: false, action: row.call.action, args: &row.args });
            }
            None => {
                self.tell_hit(plan, false);
                self.jump(self.at + 1);
            }
        }
    }

    /// Chooses among rows that agree with the comparisons so far, `asked` for each.
    fn choose(
        &mut self,
        plan: &ApplyPlan,
        mut rows: &[FixedRow<'_>],
        asked: usize,
        known: &Known,
        miss: ir::Block,
    ) {
        while let [row, ..] = rows {
            let Some(test) = row.tests.get(asked) else {
                self.known = known.clone();
                return self.take(plan, Call { hit: true, action: row.action, args: row.args });
            };
            let same = rows.iter().take_while(|row| row.tests.get(asked) == Some(test)).count();
            let (alike, rest) = rows.split_at(same);
            rows = rest;
            let next = self.b.create_block();
            match self.compare(plan, *test, known) {
                Outcome::Known(false) => continue,
                Outcome::Known(true) => {}
                Outcome::Asked(holds) => {
                    let inner = self.b.create_block();
                    self.b.ins().brif(holds, inner, &[], next, &[]);
                    self.b.switch_to_block(inner);
                }
            }
            self.choose(plan, alike, asked + 1, known, next);
            self.b.switch_to_block(next);
        }
        self.b.ins().jump(miss, &[]);
    }

    fn compare(&mut self, plan: &ApplyPlan, test: Test, known: &Known) -> Outcome {
        let slot = plan.key + test.word as Slot;
        if let Some(number) = self.constant(slot) {
            return Outcome::Known(number & test.mask == test.value);
        }
        self.known = known.clone();
        let word = self.get(slot);
        let bits = if test.mask == u64::MAX { word } else { self.b.ins().band_imm_u(word, test.mask as i64) };
        Outcome::Asked(self.b.ins().icmp_imm_u(IntCC::Equal, bits, test.value as i64))
    }

    fn tell_hit(&mut self, plan: &ApplyPlan, hit: bool) {
        if plan.hit != 0 {
            let hit = self.number(hit.into());
            self.store(plan.hit, hit);
        }
    }

    /// Sets the action's inputs, and jumps there.
    fn take(&mut self, plan: &ApplyPlan, call: Call<'_>) {
        self.tell_hit(plan, call.hit);
        let actions = &self.code.actions[plan.table as usize];
        let Some(action) = actions.get(call.action as usize) else { return self.jump(self.at + 1) };
        if plan.action_run != 0 {
            let number = self.number(call.action.into());
            self.set_at_times(plan.action_run, number);
        }
        for (&slot, &word) in action.args.iter().zip(call.args) {
            let value = self.number(word);
            self.set_at_times(slot, value);
        }
        self.jump(action.pc);
    }
}
