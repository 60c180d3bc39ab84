//! Attributes of tables that a program has from the one whose place it takes, if both have the same name.

use super::loaded::Loaded;
use crate::p4runtime::Device;
use num_bigint::BigUint;
use p4rack_bfrt::Table;
use p4rack_entities::{Checked, control};
use p4rack_p4::ir::{InstanceId, InstanceKind, TableId};
use p4rack_switch::{Pipes, Switch};
use tonic::Status;

/// Masks of a table's keys in each pipe.
type Masks = (TableId, Vec<Vec<BigUint>>);

/// The meters of a table.
#[derive(Clone, Copy, Debug)]
pub enum Meters {
    /// An object of their own.
    Object(InstanceId),
    /// Attributes of a table's entries.
    Direct(TableId),
}

impl Meters {
    /// Lets them add to the length of each packet.
    pub fn adjust(self, switch: &mut Switch, bytes: i32) -> Checked<()> {
        match self {
            Meters::Object(meter) => control(switch.meter_adjust(meter, bytes)),
            Meters::Direct(table) => control(switch.direct_meter_adjust(table, bytes)),
        }
    }
}

/// Whether entries of one table have the keys of the other's.
fn same_keys(one: &Table, other: &Table) -> bool {
    let key = |table: &Table| -> Vec<(u32, Option<u32>)> {
        table.keys.iter().map(|key| (key.id, key.kind.width())).collect()
    };
    one.name == other.name && key(one) == key(other)
}

impl Loaded {
    /// The meters of a table, if it has any.
    pub fn meters(&self, table: &Table) -> Option<Meters> {
        let ir = &self.program.ir;
        let meter = ir.instances.iter().position(|instance| {
            matches!(instance.kind, InstanceKind::Meter { .. }) && table.is_named(&instance.named.name)
        });
        let metered =
            || ir.tables.iter().position(|found| found.meter.is_some() && table.is_named(&found.named.name));
        match meter {
            Some(at) => Some(Meters::Object(InstanceId(at as u32))),
            None => metered().map(|at| Meters::Direct(TableId(at as u32))),
        }
    }

    /// Takes over the attributes of tables that both programs have. Errors: the other one is gone.
    pub async fn inherit(&self, before: &Loaded, device: &Device) -> Result<(), Status> {
        let pairs = self.schema.tables().iter().filter_map(|table| {
            let other = before.schema.table_by_id(table.id).filter(|other| same_keys(table, other))?;
            Some((table, other))
        });
        let pairs: Vec<(&Table, &Table)> = pairs.collect();
        let has = |id| pairs.iter().any(|(table, _)| table.id == id);
        self.settings.take_over(&before.settings, has);
        let masked = pairs
            .iter()
            .filter_map(|(table, other)| Some((self.masked(table).ok()?, before.masked(other).ok()?)));
        let (own, old): (Vec<TableId>, Vec<TableId>) = masked.unzip();
        let adjusted = pairs.iter().filter_map(|(table, _)| Some((table.id, self.meters(table)?)));
        let adjusted = adjusted.flat_map(|(id, meters)| {
            (0..self.pipes).map(move |pipe| (pipe, meters, self.settings.adjustment(id, pipe)))
        });
        let adjusted: Vec<(u32, Meters, i32)> = adjusted.filter(|(.., bytes)| *bytes != 0).collect();
        let masks = if old.is_empty() { Vec::new() } else { before.masks(device, old).await? };
        let masks: Vec<Masks> = own.into_iter().zip(masks).collect();
        let set = move |switch: &mut Switch, _| {
            for (pipe, meters, bytes) in adjusted {
                let _ = switch.within(Pipes::of([pipe as usize]), |switch| meters.adjust(switch, bytes));
            }
            for (table, masks) in masks {
                for (pipe, masks) in masks.into_iter().enumerate() {
                    // A table that begins with entries keeps its whole keys.
                    let _ = switch.within(Pipes::of([pipe]), |switch| switch.key_mask_set(table, &masks));
                }
            }
        };
        self.call(device, set).await
    }

    /// Which bits of the keys of tables count, in each pipe.
    async fn masks(&self, device: &Device, tables: Vec<TableId>) -> Result<Vec<Vec<Vec<BigUint>>>, Status> {
        let pipes = self.pipes as usize;
        let of = move |switch: &mut Switch, table: TableId| -> Vec<Vec<BigUint>> {
            let one = |pipe| {
                let mask = switch.within(Pipes::of([pipe]), |switch| switch.key_mask(table));
                mask.and_then(|mask| mask).unwrap_or_default()
            };
            (0..pipes).map(one).collect()
        };
        let all = move |switch: &mut Switch, _| tables.into_iter().map(|table| of(switch, table)).collect();
        let _held = self.hold(device).await?;
        self.call(device, all).await
    }
}
