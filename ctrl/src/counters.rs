//! Counters of the installed program, by name.

use crate::client::Client;
use crate::error::CtrlError;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::{CounterEntry, Entity};
use p4rack_p4rt::schema::id_of;

impl Client {
    /// Packets in each cell of an indirect counter, ordered by index.
    pub async fn counter(&mut self, name: &str) -> Result<Vec<u64>, CtrlError> {
        let schema = self.schema().await?;
        let counter = schema.counter(name).map_err(|error| CtrlError::Program(error.to_string()))?;
        let wanted = CounterEntry { counter_id: id_of(counter.preamble.as_ref()), ..Default::default() };
        let all = Entity { entity: Some(EntityKind::CounterEntry(wanted)) };
        let mut cells: Vec<(i64, u64)> = Vec::new();
        for found in self.read(vec![all]).await? {
            if let Some(EntityKind::CounterEntry(entry)) = found.entity {
                let missing =
                    |what| CtrlError::Program(format!("counter {name}: a cell came without {what}"));
                let index = entry.index.ok_or_else(|| missing("its index"))?.index;
                let packets = entry.data.ok_or_else(|| missing("its counts"))?.packet_count;
                cells.push((index, packets.try_into().map_err(|_| missing("a count that is possible"))?));
            }
        }
        cells.sort_unstable();
        Ok(cells.into_iter().map(|(_, packets)| packets).collect())
    }
}
