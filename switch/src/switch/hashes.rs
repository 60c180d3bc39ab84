//! Hashes from the control plane.

use super::Switch;
use super::control::is_no;
use super::pipes::instance_in;
use crate::error::ControlError;
use crate::hash::Hasher;
use crate::rehash::{HashConfig, Rehash};
use crate::state::InstanceState;
use num_bigint::BigUint;
use p4rack_p4::ir::{InstanceId, InstanceKind};

impl Switch {
    /// Changes a hash's configuration. `None` restores the program's.
    pub fn hash_config(
        &mut self,
        instance: InstanceId,
        config: Option<HashConfig>,
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = instance_in(pipeline, state, instance)?;
            match (state, &shape.kind) {
                (InstanceState::Hash(changed), InstanceKind::Hash { algorithm, width, fields, .. }) => {
                    let widths: Vec<u32> = fields.iter().map(|(_, ty)| ty.width()).collect();
                    *changed = config
                        .clone()
                        .map(|config| Box::new(Rehash::new(config, *algorithm, &widths, *width)));
                    Ok(())
                }
                _ => Err(is_no(shape, "hash that can be changed")),
            }
        })
    }

    /// A hash's configuration, if it replaces the program's.
    pub fn hash_read(&self, instance: InstanceId) -> Result<Option<HashConfig>, ControlError> {
        let (shape, state) = self.instance(instance)?;
        match state {
            InstanceState::Hash(changed) => Ok(changed.as_ref().map(|changed| changed.config.clone())),
            _ => Err(is_no(shape, "hash that can be changed")),
        }
    }

    /// Result of a hash for the program with these values of its fields.
    pub fn hash_compute(&self, instance: InstanceId, values: &[BigUint]) -> Result<u64, ControlError> {
        let (shape, state) = self.instance(instance)?;
        let (InstanceState::Hash(changed), InstanceKind::Hash { algorithm, fields, taken, .. }) =
            (state, &shape.kind)
        else {
            return Err(is_no(shape, "hash that can be changed"));
        };
        let (mut all, mut bits) = (BigUint::ZERO, 0);
        for ((_, ty), value) in fields.iter().zip(values) {
            let mask = (BigUint::from(1u8) << ty.width()) - 1u8;
            all = (all << ty.width()) | (value & mask);
            bits += ty.width();
        }
        let length = bits.div_ceil(8) as usize;
        let shown = (all << (length as u32 * 8 - bits)).to_bytes_be();
        let mut data = vec![0; length];
        let from = length.saturating_sub(shown.len());
        data[from..].copy_from_slice(&shown[shown.len().saturating_sub(length)..]);
        let value = match changed {
            Some(changed) => changed.hash(&data, &mut Vec::new()),
            None => Hasher::from(*algorithm).hash(&data, || 0),
        };
        let (high, low) = *taken;
        Ok(value.checked_shr(low).unwrap_or(0) & (u64::MAX >> 63u32.saturating_sub(high.saturating_sub(low))))
    }
}
