//! Elements of direct registers, and masks of keys, from the control plane.

use super::control::{direct, has_no};
use super::pipes::{table_in, table_of};
use super::{Running, Switch};
use crate::error::ControlError;
use crate::objects::EntryRef;
use crate::words::{limbs_of, number};
use num_bigint::BigUint;
use p4rack_p4::ir::TableId;

impl Switch {
    /// Reads an entry's element of its table's direct register; an `int` is in two's complement.
    pub fn direct_register_read(&self, table: TableId, entry: EntryRef<'_>) -> Result<BigUint, ControlError> {
        let (shape, state) = self.table(table)?;
        let at = direct(shape, state, entry)?;
        state.element(at).map(number).ok_or_else(|| has_no(shape, "register"))
    }

    /// Sets an entry's element of its table's direct register, whose width the caller has checked.
    pub fn direct_register_write(
        &mut self,
        table: TableId,
        entry: EntryRef<'_>,
        value: &BigUint,
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            let at = direct(shape, state, entry)?;
            if state.element(at).is_none() {
                return Err(has_no(shape, "register"));
            }
            let element = state.element_mut(at.checked_sub(1).map(|row| row as u32));
            element.copy_from_slice(&limbs_of(value, element.len()));
            Ok(())
        })
    }

    /// Sets which bits of a table's exact keys count, a mask per key. Fails if the table has entries, or if its keys are
    /// fixed.
    pub fn key_mask_set(&mut self, table: TableId, masks: &[BigUint]) -> Result<(), ControlError> {
        // All pipes take it, or none.
        for pipe in self.meant() {
            let Running { pipeline, state } = self.running()?;
            let (shape, state) = table_of(pipeline, state.of(pipe), table)?;
            state.check_key_mask(shape, masks)?;
        }
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            state.set_key_mask(shape, masks)
        })
    }

    /// Which bits of a table's keys count.
    pub fn key_mask(&self, table: TableId) -> Result<Vec<BigUint>, ControlError> {
        let (shape, state) = self.table(table)?;
        Ok(state.key_mask(shape))
    }
}
