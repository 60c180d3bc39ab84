//! State that a Write with ROLLBACK_ON_ERROR saves for undo. A few bytes of a request may save a whole table, so this is
//! limited and charged.

use super::loaded::Loaded;
use super::own::Extent;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::{Update, entity};
use tonic::Status;

/// Maximum cells that a Write saves; a single update may save more.
const CELLS: usize = 1 << 22;
/// Approximate bytes of a cell: a member of a group.
const CELL_BYTES: usize = 16;
/// Cells of a small table.
const SMALL: usize = 1 << 10;
/// Cells of a table as far as they count. A table that is cleared twice is empty the second time.
const TABLE: usize = 1 << 18;
/// Cells for each entry of a table, or for each element of an object.
const OF_AN_ENTRY: usize = 16;

/// Memory of this many entries.
fn entries(count: u64) -> usize {
    usize::try_from(count).unwrap_or(TABLE).saturating_mul(OF_AN_ENTRY).min(TABLE)
}

impl Loaded {
    /// Maximum bytes that updates save, beyond each update's own charge. Errors: too much.
    pub fn saved_bytes(&self, updates: &[Update]) -> Result<usize, Status> {
        let cells = updates.iter().map(|update| self.saved_cells(update)).fold(0, usize::saturating_add);
        if cells > CELLS && updates.len() > 1 {
            let tables = CELLS / TABLE;
            return Err(Status::invalid_argument(format!(
                "the request changes more than can be undone together: the limit is {tables} whole tables, or groups with \
                 {CELLS} members; split it, or use CONTINUE_ON_ERROR"
            )));
        }
        Ok(cells.min(CELLS) * CELL_BYTES)
    }

    fn saved_cells(&self, update: &Update) -> usize {
        let Some(entity::Entity::TableEntry(entry)) =
            update.entity.as_ref().and_then(|entity| entity.entity.as_ref())
        else {
            return 0;
        };
        let removes = update.r#type == Type::Delete as i32;
        let all = entry.value.is_none() && !entry.is_default_entry && removes;
        if self.own.has(entry.table_id) {
            return match self.own.saved(entry.table_id, all) {
                Extent::Table => TABLE,
                Extent::Entries(count) => entries(count),
                Extent::Members(count) => count,
            };
        }
        match self.schema.table_by_id(entry.table_id) {
            // Changes of the device are not undone.
            Some(_) if self.fixed.has(entry.table_id) => 0,
            Some(table) if all => entries(table.size).max(SMALL),
            _ => 0,
        }
    }
}
