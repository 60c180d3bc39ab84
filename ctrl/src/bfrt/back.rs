//! Rollback to the program before an installation. A driver removes that program when the installation begins, so it has to
//! be installed again if the installation fails.

use super::ports::changes as port_changes;
use super::{Link, bind};
use crate::desired::DevicePort;
use crate::error::CtrlError;
use crate::readback;
use crate::reconcile::{changes, is_written};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::bfrt_proto::ForwardingPipelineConfig;
use p4rack_p4rt::p4::v1::Entity;
use p4rack_p4rt::schema as p4;
use std::collections::HashSet;

/// A program with its entries, and the device's ports.
#[derive(Debug)]
pub(super) struct Before {
    config: ForwardingPipelineConfig,
    names: p4::Schema,
    entities: Vec<Entity>,
    pub(super) ports: Vec<DevicePort>,
}

impl Before {
    /// Reads it beside the client that is bound to the program. `None`: no program runs.
    async fn read(link: &Link) -> Result<Option<Before>, CtrlError> {
        let mut reader = Link::to_read(link.target.clone()).await?;
        reader.client_id ^= bind::SECOND;
        let Some(config) = reader.installed().await?.0 else { return Ok(None) };
        let names = reader.learn(None).await?;
        let constant = reader.constant_defaults(&names)?;
        let is_constant = |entity: &Entity| {
            matches!(&entity.entity, Some(EntityKind::TableEntry(entry))
                if entry.is_default_action && constant.contains(&entry.table_id))
        };
        let mut entities = readback::read_all(&mut reader, &names).await?.entities;
        entities.retain(|entity| is_written(entity) && !is_constant(entity));
        Ok(Some(Before { config, names, entities, ports: reader.ports().await? }))
    }

    /// These ports, with the error correction that they have: it is chosen for their optics.
    pub(super) fn corrected(&self, wanted: &[DevicePort]) -> Vec<DevicePort> {
        let own = |port: &DevicePort| {
            let is_it = |own: &&DevicePort| (own.number, &own.speed) == (port.number, &port.speed);
            let fec = self.ports.iter().find(is_it).unwrap_or(port).fec.clone();
            DevicePort { fec, ..port.clone() }
        };
        wanted.iter().map(own).collect()
    }
}

impl Link {
    /// Ids of the tables whose default entry is the program's. They are in the schema, and not in P4Info that was made from it.
    fn constant_defaults(&self, names: &p4::Schema) -> Result<HashSet<u32>, CtrlError> {
        let schema = &self.bound()?.schema;
        let preambles = names.info().tables.iter().filter_map(|table| table.preamble.as_ref());
        let is_constant = |name: &str| schema.table(name).is_ok_and(|table| table.has_const_default_action);
        Ok(preambles.filter(|named| is_constant(&named.name)).map(|named| named.id).collect())
    }

    /// Remembers what runs, before an installation begins.
    pub(crate) async fn remember(&mut self) {
        if self.prepared {
            return;
        }
        self.before = Before::read(self).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "if the installation fails, the program before can't be installed again");
            None
        });
    }

    /// Adds the ports that were there before and are not again.
    pub(super) async fn add_former_ports(&mut self) -> Result<(), CtrlError> {
        let Some(before) = &self.before else { return Ok(()) };
        let former = before.ports.clone();
        let there = self.ports().await?;
        let missing: Vec<DevicePort> =
            former.into_iter().filter(|port| there.iter().all(|own| own.number != port.number)).collect();
        self.change_ports(&port_changes(&missing, &there)).await
    }

    /// Installs again what ran before an installation that has failed. Returns the error, with what the switch runs now.
    pub(crate) async fn give_back(mut self, error: CtrlError) -> CtrlError {
        if !self.prepared {
            return error;
        }
        let state = match self.before.take() {
            None => "a driver runs nothing until an installation ends: deploy again".to_owned(),
            Some(before) => {
                let what = format!("`{}`, which ran before,", before.config.p4_name);
                let count = before.entities.len();
                match self.restore(before).await {
                    Ok(()) => format!(
                        "{what} was installed again, with its {count} entries; its counters and registers begin at their first values"
                    ),
                    Err(again) => {
                        format!("{what} could not be installed again as a whole: {again}; deploy again")
                    }
                }
            }
        };
        CtrlError::NotInstalled { error: Box::new(error), state }
    }

    async fn restore(&mut self, before: Before) -> Result<(), CtrlError> {
        self.begin(before.config, &before.names).await?;
        let changes = changes(&before.entities, Vec::new());
        let phases = changes.phases.iter().map(Vec::as_slice);
        let written = self.write_phases(&before.names, phases, changes.len()).await;
        // Whatever is missing, it runs again.
        let there = self.ports().await?;
        self.change_ports(&port_changes(&before.ports, &there)).await?;
        self.end().await.and(written)
    }
}
