//! Entries of the device's own tables, by name and in a pipe.

use super::{DEVICE, EVERYWHERE, Link, program_error, unpack};
use crate::error::{CtrlError, refused};
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableEntry, TargetDevice, WriteRequest};
use tonic::Status;

/// Bits of a port's number within its pipe.
pub(super) const LOCAL_BITS: u32 = 7;

/// The pipe of a port.
pub(super) fn pipe_of(port: u32) -> TargetDevice {
    pipe(port >> LOCAL_BITS)
}

/// One pipe.
pub(super) fn pipe(pipe_id: u32) -> TargetDevice {
    TargetDevice { device_id: DEVICE, pipe_id, ..EVERYWHERE }
}

pub(super) fn number(entry: &Entry, field: &str) -> Result<u64, CtrlError> {
    let missing = || CtrlError::Program(format!("{entry}: the switch did not say `{field}`"));
    entry.get(field).and_then(Value::number).ok_or_else(missing)
}

pub(super) fn truth(entry: &Entry, field: &str) -> bool {
    entry.get(field) == Some(&Value::Bool(true))
}

pub(super) fn text<'e>(entry: &'e Entry, field: &str) -> &'e str {
    match entry.get(field) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

impl Link {
    /// The entry with a key. Errors: there is none.
    pub(super) async fn entry(&mut self, target: TargetDevice, wanted: Entry) -> Result<Entry, CtrlError> {
        let key = TableEntry { data: None, ..wanted.build(&self.bound()?.schema).map_err(program_error)? };
        let found = self.own_entries(target, key).await?.pop();
        found.ok_or_else(|| CtrlError::Program(format!("the switch has no entry {wanted}")))
    }

    /// All entries of a table.
    pub(super) async fn entries(
        &mut self,
        target: TargetDevice,
        table: &str,
    ) -> Result<Vec<Entry>, CtrlError> {
        let table_id = self.bound()?.schema.table(table).map_err(program_error)?.id;
        self.own_entries(target, TableEntry { table_id, ..Default::default() }).await
    }

    async fn own_entries(
        &mut self,
        target: TargetDevice,
        asked: TableEntry,
    ) -> Result<Vec<Entry>, CtrlError> {
        let found = self.ask(vec![TableEntry { entry_tgt: Some(target), ..asked }]).await?;
        let schema = &self.bound()?.schema;
        found.iter().map(|entry| Entry::read(schema, entry)).collect::<Result<_, _>>().map_err(program_error)
    }

    /// Changes entries in this order, all of them or none.
    pub(super) async fn change(
        &mut self,
        call: &'static str,
        target: TargetDevice,
        changes: Vec<(bfrt::update::Type, Entry)>,
    ) -> Result<(), CtrlError> {
        let updates = changes.into_iter().map(|(kind, entry)| self.fixed(kind, entry));
        let updates = updates.collect::<Result<_, _>>()?;
        let atomicity = bfrt::write_request::Atomicity::RollbackOnError as i32;
        let request = WriteRequest { atomicity, target: Some(target), ..self.request(updates)? };
        let Err(status) = self.grpc.write(request).await else { return Ok(()) };
        match unpack(&status).and_then(|outcomes| outcomes.into_iter().flatten().next()) {
            Some(error) => {
                Err(refused(call)(Status::new(tonic::Code::from(error.code as i32), error.message)))
            }
            None => Err(refused(call)(status)),
        }
    }
}
