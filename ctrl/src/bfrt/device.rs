//! Entries of the device's own tables, by name and in a pipe.

use super::patience::Patience;
use super::{DEVICE, EVERYWHERE, Link, program_error, unpack};
use crate::error::{CtrlError, refused};
use p4rack_bfrt::{Entry, Value};
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableEntry, TargetDevice, WriteRequest};
use p4rack_p4rt::errors::UpdateError;
use tonic::Status;

/// Why one of P4Runtime's updates is not written.
pub(super) enum Unwritten {
    /// It is refused; the others are written.
    Refused(UpdateError),
    /// The whole Write ends.
    Ended(CtrlError),
}

impl From<UpdateError> for Unwritten {
    fn from(error: UpdateError) -> Unwritten {
        Unwritten::Refused(error)
    }
}

impl From<CtrlError> for Unwritten {
    fn from(error: CtrlError) -> Unwritten {
        Unwritten::Ended(error)
    }
}

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

/// A missing value is an error, not zero.
fn said<T>(entry: &Entry, field: &str, value: Option<T>) -> Result<T, CtrlError> {
    value.ok_or_else(|| CtrlError::Program(format!("{entry}: the switch did not say `{field}`")))
}

pub(super) fn number(entry: &Entry, field: &str) -> Result<u64, CtrlError> {
    said(entry, field, entry.get(field).and_then(Value::number))
}

/// A number of the entry's key.
pub(super) fn key(entry: &Entry, field: &str) -> Result<u32, CtrlError> {
    said(entry, field, entry.exact_number(field).and_then(|number| u32::try_from(number).ok()))
}

pub(super) fn truth(entry: &Entry, field: &str) -> Result<bool, CtrlError> {
    let Some(Value::Bool(truth)) = entry.get(field) else { return said(entry, field, None) };
    Ok(*truth)
}

pub(super) fn text<'e>(entry: &'e Entry, field: &str) -> Result<&'e str, CtrlError> {
    let Some(Value::Text(text)) = entry.get(field) else { return said(entry, field, None) };
    Ok(text)
}

impl Link {
    /// The entry with a key. Errors: there is none.
    pub(super) async fn entry(&mut self, target: TargetDevice, wanted: Entry) -> Result<Entry, CtrlError> {
        let key = TableEntry { data: None, ..wanted.build(&self.bound()?.schema).map_err(program_error)? };
        let found = self.own_entries(target, key).await?.pop();
        found.ok_or_else(|| CtrlError::Program(format!("the switch has no entry {wanted}")))
    }

    /// The default entry of a table. Tables of settings have nothing else, and a driver answers for it only by its name.
    pub(super) async fn default_entry(
        &mut self,
        target: TargetDevice,
        table: &str,
    ) -> Result<Entry, CtrlError> {
        let table_id = self.bound()?.schema.table(table).map_err(program_error)?.id;
        let asked = TableEntry { table_id, is_default_entry: true, ..Default::default() };
        let found = self.own_entries(target, asked).await?.pop();
        found.ok_or_else(|| CtrlError::Program(format!("the switch has no default entry of table `{table}`")))
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

    /// Changes entries in this order, each in a Write of its own, until one is refused: a driver's transactions don't cover its
    /// own tables, and some of them refuse to take part in one.
    pub(super) async fn change(
        &mut self,
        call: &'static str,
        target: TargetDevice,
        changes: Vec<(bfrt::update::Type, Entry)>,
    ) -> Result<(), CtrlError> {
        for (kind, entry) in changes {
            let update = self.fixed(kind, entry)?;
            self.write_one(target, update).await.map_err(|error| match error {
                Unwritten::Ended(error) => error,
                Unwritten::Refused(error) => {
                    refused(call)(Status::new(tonic::Code::from(error.code as i32), error.message))
                }
            })?;
        }
        Ok(())
    }

    /// Writes one update of one of the device's own tables.
    pub(super) async fn write_one(
        &mut self,
        target: TargetDevice,
        update: bfrt::Update,
    ) -> Result<(), Unwritten> {
        self.write_request(WriteRequest { target: Some(target), ..self.request(vec![update])? }).await
    }

    /// Sends a Write of one update, or of several that are made together. Errors: the first one of its updates.
    pub(super) async fn write_request(&mut self, request: WriteRequest) -> Result<(), Unwritten> {
        let mut patience = Patience::default();
        let status = loop {
            match self.grpc.write(request.clone()).await {
                Ok(_) => return Ok(()),
                Err(status) if patience.after(&status).await => {}
                Err(status) => break status,
            }
        };
        match unpack(&status).and_then(|outcomes| outcomes.into_iter().flatten().next()) {
            Some(error) => Err(error.into()),
            None => Err(refused("writing entries")(status).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_switch_did_not_say_is_no_zero() {
        let told =
            Entry::of("t").exact("port", 7).data("frames", 3u64).data("up", false).data("speed", "10G");
        assert_eq!((key(&told, "port").ok(), number(&told, "frames").ok()), (Some(7), Some(3)));
        assert_eq!((truth(&told, "up").ok(), text(&told, "speed").ok()), (Some(false), Some("10G")));
        let silent = Entry::of("t");
        let errors = [
            key(&silent, "port").err(),
            number(&silent, "frames").err(),
            truth(&silent, "up").err(),
            text(&silent, "speed").err(),
        ];
        for (error, field) in errors.into_iter().zip(["port", "frames", "up", "speed"]) {
            let text = error.map(|error| error.to_string());
            assert!(text.as_ref().is_some_and(|text| text.contains(&format!("`{field}`"))), "{text:?}");
        }
    }
}
