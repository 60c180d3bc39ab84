//! Rates of meters as a chip holds them.
//!
//! ```text
//!  rate  = mantissa (9 bits) · 2^-exponent, per cycle     1 000 kb/s are read as 999
//!  burst = mantissa (8 bits) · 2^exponent
//! ```
//!
//! Both are rounded down, and the driver returns what is left: by `pipe_mgr_meter_drv_get_rate_params`, less than one part in
//! 256 of a rate, and one in 128 of a burst. Without this, each deployment would write all meters, and find them different.

use crate::normal::{Key, key, normal};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{Entity, MeterConfig};
use std::collections::HashMap;

/// Gives meters that were read the wanted configuration, where they have the one to which a chip rounds it.
pub(super) fn as_wanted(wanted: &[Entity], found: &mut [Entity]) {
    let metered = wanted.iter().filter_map(|entity| Some((key_of(entity)?, *config(&mut entity.clone())?)));
    let wanted: HashMap<Key, MeterConfig> = metered.collect();
    for entity in found {
        let Some(wanted) = key_of(entity).and_then(|key| wanted.get(&key)) else { continue };
        if let Some(held) = config(entity)
            && is_rounded(wanted, held)
        {
            *held = *wanted;
        }
    }
}

/// The key of an entity with a meter.
fn key_of(entity: &Entity) -> Option<Key> {
    let mut entity = entity.clone();
    config(&mut entity)?;
    Some(key(&normal(entity)))
}

fn config(entity: &mut Entity) -> Option<&mut MeterConfig> {
    match entity.entity.as_mut()? {
        EntityKind::MeterEntry(meter) => meter.config.as_mut(),
        EntityKind::DirectMeterEntry(meter) => meter.config.as_mut(),
        EntityKind::TableEntry(entry) => entry.meter_config.as_mut(),
        _ => None,
    }
}

fn is_rounded(wanted: &MeterConfig, held: &MeterConfig) -> bool {
    let near =
        |wanted: i64, held: i64, part: i64| held <= wanted && wanted.saturating_sub(held) <= wanted / part;
    near(wanted.cir, held.cir, 256)
        && near(wanted.pir, held.pir, 256)
        && near(wanted.cburst, held.cburst, 128)
        && near(wanted.pburst, held.pburst, 128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::v1::{Index, MeterEntry, TableEntry};

    fn meter(index: i64, [cir, pir, cburst, pburst]: [i64; 4]) -> Entity {
        let config = MeterConfig { cir, pir, cburst, pburst, ..Default::default() };
        let index = Some(Index { index });
        let meter = MeterEntry { meter_id: 1, index, config: Some(config), ..Default::default() };
        Entity { entity: Some(EntityKind::MeterEntry(meter)) }
    }

    #[test]
    fn what_a_chip_rounds_is_as_wanted_and_nothing_else() {
        let wanted = [meter(3, [125_000, 250_000, 12_500, 12_500])];
        let becomes = |held: Entity| {
            let mut found = [held];
            as_wanted(&wanted, &mut found);
            found[0] == wanted[0]
        };
        assert!(becomes(meter(3, [124_875, 249_750, 12_500, 12_500])), "999 and 1998 kb/s");
        assert!(becomes(meter(3, [125_000, 250_000, 12_403, 12_500])));
        assert!(!becomes(meter(3, [124_500, 250_000, 12_500, 12_500])), "996 kb/s");
        assert!(!becomes(meter(3, [125_125, 250_000, 12_500, 12_500])), "a chip rounds down");
        assert!(!becomes(meter(3, [125_000, 250_000, 12_402, 12_500])));
        assert!(!becomes(meter(4, [125_000, 250_000, 12_500, 12_500])), "another cell");
        let zero = meter(3, [0; 4]);
        let mut found = [meter(3, [1, 0, 0, 0])];
        as_wanted(std::slice::from_ref(&zero), &mut found);
        assert_ne!(found[0], zero);
    }

    #[test]
    fn entries_keep_what_else_they_have() {
        let entry = |cir, priority| {
            let meter_config =
                Some(MeterConfig { cir, pir: cir, cburst: 100, pburst: 100, ..Default::default() });
            let entry = TableEntry { table_id: 7, priority, meter_config, ..Default::default() };
            Entity { entity: Some(EntityKind::TableEntry(entry)) }
        };
        let mut found = [entry(999, 1), entry(999, 2)];
        as_wanted(&[entry(1000, 1)], &mut found);
        assert_eq!(found, [entry(1000, 1), entry(999, 2)]);
    }
}
