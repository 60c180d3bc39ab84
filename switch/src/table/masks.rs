//! Tables whose exact keys have a mask that is set at run time: they look up like prefixes of a single length.

use super::TableState;
use crate::error::ControlError;
use crate::shape::{KeyShape, PackedKey, TableShape};
use crate::words::{limbs_of, number};
use num_bigint::BigUint;
use p4rack_p4::ir::Matcher;

impl TableState {
    /// Packs a key. Bits outside of the table's mask don't count.
    pub fn packed(
        &self,
        shape: &TableShape,
        keys: &[Matcher],
        priority: i32,
    ) -> Result<PackedKey, ControlError> {
        let mut key = shape.pack(keys, priority)?;
        for (at, mask) in self.key_mask.iter().enumerate() {
            key.value[at] &= mask;
            key.mask[at] &= mask;
        }
        Ok(key)
    }

    /// Checks a mask, one number per key field. Fails if there are entries, or if the table has a fixed key.
    pub fn check_key_mask(&self, shape: &TableShape, masks: &[BigUint]) -> Result<(), ControlError> {
        if !shape.masked {
            return Err(ControlError::Invalid(format!("{} has no mask of its key", shape.name)));
        }
        if self.used > 0 {
            return Err(ControlError::InUse(format!("{} has entries, so the mask of its key", shape.name)));
        }
        let fits = |(key, mask): (&KeyShape, &BigUint)| mask.bits() <= u64::from(key.width);
        if masks.len() != shape.keys.len() || !shape.keys.iter().zip(masks).all(fits) {
            let count = shape.keys.len();
            return Err(ControlError::Invalid(format!(
                "{}: give {count} masks as wide as its keys",
                shape.name
            )));
        }
        Ok(())
    }

    /// Sets the mask, after the same checks.
    pub fn set_key_mask(&mut self, shape: &TableShape, masks: &[BigUint]) -> Result<(), ControlError> {
        self.check_key_mask(shape, masks)?;
        let words = shape.keys.iter().zip(masks).flat_map(|(key, mask)| limbs_of(mask, key.limbs));
        self.key_mask = words.collect();
        Ok(())
    }

    /// The mask of each key field.
    pub fn key_mask(&self, shape: &TableShape) -> Vec<BigUint> {
        let one = |key: &KeyShape| match self.key_mask.get(key.offset..key.offset + key.limbs) {
            Some(words) => number(words),
            None => (BigUint::from(1u8) << key.width) - 1u8,
        };
        shape.keys.iter().map(one).collect()
    }
}
