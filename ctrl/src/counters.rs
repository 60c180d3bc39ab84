//! Counters of the program that runs, by name.

use crate::client::Client;
use crate::error::CtrlError;
use p4rack_p4rt::p4::v1::{CounterEntry, Entity, entity};
use p4rack_p4rt::schema::id_of;

impl Client {
    /// Packets in each cell of an indirect counter, in the order of their index.
    pub async fn counter(&mut self, name: &str) -> Result<Vec<u64>, CtrlError> {
        let schema = self.schema().await?;
        let counter = schema.counter(name).map_err(|error| CtrlError::Program(error.to_string()))?;
        let wanted = CounterEntry { counter_id: id_of(counter.preamble.as_ref()), ..Default::default() };
        let all = Entity { entity: Some(entity::Entity::CounterEntry(wanted)) };
        let mut cells: Vec<(i64, u64)> = Vec::new();
        for found in self.read(vec![all]).await? {
            if let Some(entity::Entity::CounterEntry(entry)) = found.entity {
                let index = entry.index.map_or(0, |index| index.index);
                let packets = entry.data.map_or(0, |data| data.packet_count.try_into().unwrap_or(0));
                cells.push((index, packets));
            }
        }
        cells.sort_unstable();
        Ok(cells.into_iter().map(|(_, packets)| packets).collect())
    }
}
