//! Reads: translates each requested entity to lookups in the switch, done in turns, and their results to entries.

use super::fixed;
use super::loaded::Loaded;
use super::lookup::Target;
use super::outcome::{Options, Told, invalid, overall};
use super::own::Page;
use super::settings::{ALL_PIPES, Scope};
use super::weigh::{CHUNK, CHUNK_BYTES, Entities, LARGE_ENTITY};
use super::write::in_pipes;
use crate::core::Isolation;
use crate::p4runtime::{Charge, Device, status};
use num_bigint::BigUint;
use p4rack_bfrt::Key;
use p4rack_entities::{Checked, Query, ReadResults, Reading, control, query_keyed, refuse};
use p4rack_p4rt::bfrt_proto::{
    DataField, DynKeyMask, Entity, HandleId, KeyFieldMask, ReadResponse, TableAttribute, TableEntry,
    TableUsage, TargetDevice, entity, handle_id, table_attribute, table_entry,
};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1;
use p4rack_switch::{Pipes, Switch};
use prost::Message;
use prost::bytes::Bytes;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tonic::Status;

/// Approximate length of a message in bytes.
const BYTES_A_MESSAGE: usize = 32 << 10;
/// Turns of the data plane per part of a Read.
const TURNS_A_PART: usize = 16;
/// A Read is ended if its client reads nothing for this long.
const STALLED: Duration = Duration::from_secs(30);

/// Messages of a Read.
pub type Answers = mpsc::Sender<Result<Bytes, Status>>;

/// Contents of a Read request.
pub struct ReadQuery {
    pub target: Option<TargetDevice>,
    pub entities: Entities,
    pub options: Options,
}

/// Why an entity is not answered.
enum Unanswered {
    /// It is refused; the Read continues with the next entity.
    Refused(UpdateError),
    /// The whole Read ends.
    Ended(Status),
}

impl From<UpdateError> for Unanswered {
    fn from(error: UpdateError) -> Unanswered {
        Unanswered::Refused(error)
    }
}

impl From<Status> for Unanswered {
    fn from(status: Status) -> Unanswered {
        Unanswered::Ended(status)
    }
}

fn absent() -> UpdateError {
    UpdateError::new(Code::NotFound, "there is no such entry")
}

/// A Read in progress.
pub struct Answering<'a> {
    device: &'a Device,
    loaded: &'a Arc<Loaded>,
    answers: &'a Answers,
    ready: ReadResponse,
    bytes: usize,
}

/// Answers a Read: first the results, then the errors, in the last message if the client requested that, or in the
/// call's status.
pub async fn read(
    device: &Device,
    loaded: &Arc<Loaded>,
    request: ReadQuery,
    answers: &Answers,
    charge: &Charge,
) -> Result<(), Status> {
    let mut answering = Answering { device, loaded, answers, ready: ReadResponse::default(), bytes: 0 };
    let target = Target::of(request.target.as_ref(), loaded.pipes);
    let mut told = Told::new(request.options.errors_in_answer);
    let mut entities = request.entities;
    let mut next = entities.next();
    while next.is_some() {
        let (mut chunk, mut bytes) = (Vec::new(), 0);
        while let Some(entity) = next.take_if(|_| chunk.len() < CHUNK && bytes < CHUNK_BYTES) {
            let (entity, length) = entity?;
            chunk.push(entity);
            // A large one is a chunk of its own.
            bytes += if length > LARGE_ENTITY { CHUNK_BYTES } else { length };
            next = entities.next();
        }
        let mut found = answering.prefetch(target, &chunk).await?.into_iter();
        for entity in &chunk {
            let answered = match (found.next().flatten(), &entity.entity) {
                (Some(Ok(found)), _) if found.is_empty() => Err(absent().into()),
                (Some(Ok(found)), Some(entity::Entity::TableEntry(entry))) => {
                    let target = target.or(entry.entry_tgt.as_ref()).unwrap_or(target);
                    let found = found.into_iter().take(1).collect();
                    answering.give_found(target, entry, false, found).await
                }
                (Some(Err(error)), _) => Err(error.into()),
                _ => answering.entity(target, entity).await,
            };
            let outcome = match answered {
                Ok(()) => Ok(()),
                Err(Unanswered::Refused(error)) => Err(error),
                Err(Unanswered::Ended(status)) => return Err(status),
            };
            told.tell(outcome, charge)?;
        }
    }
    answering.flush().await?;
    match told {
        Told::InStatus(outcomes) => overall(&outcomes),
        Told::InAnswer { bytes, .. } if bytes.is_empty() => Ok(()),
        Told::InAnswer { bytes, .. } => answering.send(bytes.into()).await,
    }
}

impl Answering<'_> {
    /// Looks up the entries with a key in a single call of the data plane, as far as that finds them.
    async fn prefetch(
        &self,
        target: Target,
        chunk: &[Entity],
    ) -> Result<Vec<Option<Checked<Vec<v1::Entity>>>>, Status> {
        if chunk.len() < 2 {
            return Ok(Vec::new());
        }
        let loaded = self.loaded;
        let one = |entity: &Entity| {
            let Some(entity::Entity::TableEntry(entry)) = &entity.entity else { return None };
            let is_keyed = matches!(entry.value, Some(table_entry::Value::Key(_)))
                && loaded.translation.has_keys(entry.table_id)
                && !loaded.own.has(entry.table_id);
            if !is_keyed {
                return None;
            }
            let target = target.or(entry.entry_tgt.as_ref()).ok()?;
            loaded.check_readable(target, entry, None).ok()?;
            let queries = query_keyed(&loaded.program, &loaded.translation.request(entry).ok()?).ok()?;
            Some((target.read(), queries))
        };
        let queries: Vec<_> = chunk.iter().map(one).collect();
        if queries.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let all = move |switch: &mut Switch, now| {
            let mut one = |(pipes, queries): (Option<Pipes>, Vec<Query>)| {
                in_pipes(switch, pipes, |switch| {
                    let found =
                        queries.into_iter().map(|query| query(switch, now).map(|answer| answer.found));
                    found.collect::<Checked<Vec<ReadResults>>>()
                })
                .flatten()
            };
            queries.into_iter().map(|queries| queries.map(&mut one)).collect::<Vec<_>>()
        };
        let _held = loaded.hold(self.device).await?;
        let found = loaded.call(self.device, all).await?;
        let messages = |found: Vec<ReadResults>| found.into_iter().flat_map(ReadResults::messages).collect();
        Ok(found.into_iter().map(|found| found.map(|found| found.map(messages))).collect())
    }

    /// Answers for one entity.
    async fn entity(&mut self, target: Target, entity: &Entity) -> Result<(), Unanswered> {
        let answer = match &entity.entity {
            Some(entity::Entity::TableEntry(entry)) => return self.entries(target, entry).await,
            Some(entity::Entity::TableUsage(usage)) => return self.usage(target, usage).await,
            Some(entity::Entity::TableAttribute(asked))
                if matches!(asked.attribute, Some(table_attribute::Attribute::DynKeyMask(_))) =>
            {
                return self.key_mask(target, asked.table_id).await;
            }
            Some(entity::Entity::TableAttribute(asked)) => self.loaded.attribute(target, asked),
            Some(entity::Entity::ObjectId(asked)) => self.loaded.object_id(asked),
            Some(entity::Entity::Handle(asked)) => return self.handle(target, asked).await,
            Some(entity::Entity::TableOperation(_)) => {
                refuse(Code::InvalidArgument, "operations can only be written")
            }
            None => refuse(Code::InvalidArgument, "the entity is not set"),
        };
        let answer = answer?;
        target.or(None)?;
        Ok(self.give(answer).await?)
    }

    /// Which bits of a table's exact keys count.
    async fn key_mask(&mut self, target: Target, table_id: u32) -> Result<(), Unanswered> {
        let loaded = self.loaded.clone();
        let checked = target.or(None).and_then(|target| {
            let table = loaded.table(table_id)?;
            Ok((target.read(), table, loaded.masked(table)?))
        });
        let (pipes, table, id) = checked?;
        let read =
            move |switch: &mut Switch, _| in_pipes(switch, pipes, |switch| control(switch.key_mask(id)));
        let held = self.loaded.hold(self.device).await?;
        let masks = self.loaded.call(self.device, read).await???;
        drop(held);
        let one = |(key, mask): (&Key, &BigUint)| {
            let length = key.kind.width().unwrap_or(0).div_ceil(8) as usize;
            let (mut bytes, short) = (vec![0; length], mask.to_bytes_be());
            // Zero has one byte.
            let kept = short.len().min(length);
            bytes[length - kept..].copy_from_slice(&short[short.len() - kept..]);
            KeyFieldMask { field_id: key.id, mask: bytes }
        };
        let fields = table.keys.iter().zip(&masks).map(one).collect();
        let attribute = Some(table_attribute::Attribute::DynKeyMask(DynKeyMask { fields }));
        let attribute = TableAttribute { table_id, attribute };
        self.give(Entity { entity: Some(entity::Entity::TableAttribute(attribute)) }).await?;
        Ok(())
    }

    /// The handle of the entry with a key.
    async fn handle(&mut self, target: Target, asked: &HandleId) -> Result<(), Unanswered> {
        let Some(handle_id::Value::Key(key)) = &asked.value else {
            return Ok(refuse(Code::InvalidArgument, "a handle is asked for by a key; it is not set")?);
        };
        let value = Some(table_entry::Value::Key(key.clone()));
        let entry = TableEntry { table_id: asked.table_id, value, ..Default::default() };
        let checked = target.or(None).and_then(|target| {
            if !self.loaded.translation.has_keys(asked.table_id) {
                return refuse(Code::InvalidArgument, "only entries of match-action tables have handles");
            }
            Ok((target, self.loaded.translation.request(&entry)?))
        });
        let (target, wanted) = checked?;
        let found = self.keyed(target, &wanted).await?;
        let found = found.first().ok_or_else(absent)?;
        let pipe = target.pipe().unwrap_or(ALL_PIPES);
        let handle = match &self.loaded.translation.entry(found)?.value {
            Some(table_entry::Value::Key(key)) => self.loaded.settings.handle(asked.table_id, pipe, key)?,
            _ => return Err(absent().into()),
        };
        let told = HandleId { table_id: asked.table_id, value: Some(handle_id::Value::HandleId(handle)) };
        Ok(self.give(Entity { entity: Some(entity::Entity::Handle(told)) }).await?)
    }

    async fn entries(&mut self, target: Target, entry: &TableEntry) -> Result<(), Unanswered> {
        let loaded = self.loaded;
        let mut target = target.or(entry.entry_tgt.as_ref())?;
        let with_key;
        let is_by_handle = matches!(entry.value, Some(table_entry::Value::HandleId(_)));
        let entry = match &entry.value {
            Some(table_entry::Value::HandleId(handle)) => {
                let found = loaded.settings.with_key(entry, *handle).and_then(|(entry, pipe)| {
                    loaded.check_readable(target, &entry, Some(pipe))?;
                    let device = TargetDevice { pipe_id: pipe, ..target.message() };
                    let own = Some(device).filter(|_| pipe != ALL_PIPES && target.pipe().is_none());
                    Ok((TableEntry { entry_tgt: own.or(entry.entry_tgt), ..entry }, target.or(own.as_ref())?))
                });
                (with_key, target) = found?;
                &with_key
            }
            _ => {
                loaded.check_readable(target, entry, None)?;
                entry
            }
        };
        if loaded.fixed.has(entry.table_id) {
            if target.pipe().is_none() && loaded.fixed.needs_pipe(entry) {
                return Ok(invalid("a queue's row is in one pipe; name that, not all, as pipe_id")?);
            }
            let mut from = Some(0);
            while let Some(at) = from {
                let lookup = loaded.fixed.lookup(entry, at)?;
                let found;
                (found, from) = self.fixed(target, entry.table_id, lookup).await?;
                for found in found {
                    self.give_entry(entry, found).await?;
                }
            }
            if loaded.fixed.is_nameless(entry) {
                return Ok(refuse(Code::Unimplemented, "the table has no rows; ask for its default entry")?);
            }
            return Ok(());
        }
        if loaded.own.has(entry.table_id) {
            let mut from = Some(0);
            while let Some(at) = from {
                let found;
                (found, from) = self.own(target, entry, at).await?;
                for found in found {
                    self.give_entry(entry, found).await?;
                }
            }
            return Ok(());
        }
        let wanted = requests(loaded, entry)?;
        let single = entry.value.is_some();
        let mut count = 0;
        if single
            && let [wanted] = &wanted[..]
            && loaded.translation.has_keys(entry.table_id)
        {
            let found = self.keyed(target, wanted).await?;
            if found.is_empty() {
                return Err(absent().into());
            }
            let found = found.into_iter().take(1).collect();
            return self.give_found(target, entry, false, found).await;
        }
        if loaded.pipes > 1 && target.pipe().is_none() && loaded.translation.is_register(entry.table_id) {
            return self.of_each_pipe(target, entry, wanted).await;
        }
        let mut reading = self.begin(wanted);
        loop {
            if let Some(outcomes) = reading.outcomes() {
                let failed = outcomes.iter().find_map(|outcome| outcome.clone().err());
                return match failed {
                    Some(error) => Err(error.into()),
                    None if single && count == 0 => Err(absent().into()),
                    None => Ok(()),
                };
            }
            let found;
            (reading, found) = self.part(target, reading).await?;
            let found: Vec<v1::Entity> = found.into_iter().flat_map(ReadResults::messages).collect();
            count += found.len();
            self.give_found(target, entry, is_by_handle, found).await?;
        }
    }

    /// Sends the results, with the fields that P4Runtime does not have. Clients don't expect that an entry
    /// requested by its handle is the default entry.
    async fn give_found(
        &mut self,
        target: Target,
        asked: &TableEntry,
        is_by_handle: bool,
        found: Vec<v1::Entity>,
    ) -> Result<(), Unanswered> {
        let (loaded, table_id) = (self.loaded.clone(), asked.table_id);
        let mut extras = Vec::new();
        if loaded.extras.has(table_id) {
            let place = |entity: &v1::Entity| match &entity.entity {
                Some(v1::entity::Entity::TableEntry(entry)) => Some(loaded.extras.place(entry).ok()?),
                _ => None,
            };
            let places: Vec<_> = found.iter().map(place).collect();
            let pipes = Some(loaded.pipes).filter(|pipes| *pipes > 1 && target.pipe().is_none());
            let (read, within) = (loaded.extras.clone(), target.read());
            let all = move |switch: &mut Switch, _| {
                // An entry may be gone by now; it is shown as it was found.
                let one = |switch: &mut Switch, place: &Option<_>| {
                    let place = place.as_ref()?;
                    read.read(switch, table_id, place, pipes).ok()
                };
                in_pipes(switch, within, |switch| {
                    places.iter().map(|place| one(switch, place).unwrap_or_default()).collect()
                })
            };
            let _held = self.loaded.hold(self.device).await?;
            extras = self.loaded.call(self.device, all).await??;
        }
        let mut extras: std::vec::IntoIter<Vec<DataField>> = Vec::into_iter(extras);
        for entity in found {
            let mut shown = loaded.found(table_id, entity)?;
            if !is_from_switch(asked) {
                loaded.shadows.show(target.pipe(), &mut shown);
            }
            let own = extras.next().unwrap_or_default();
            if let (Some(wanted), Some(data)) = (&asked.data, &shown.data)
                && ![0, data.action_id].contains(&wanted.action_id)
            {
                if asked.value.is_some() {
                    return Ok(invalid("the entry has another action than the one that is asked for")?);
                }
                continue;
            }
            shown.is_default_entry &= !is_by_handle;
            if let Some(data) = &mut shown.data {
                data.fields.extend(own);
            }
            self.give_entry(asked, shown).await?;
        }
        Ok(())
    }

    /// A part of a table of the device.
    async fn fixed(
        &self,
        target: Target,
        table_id: u32,
        lookup: fixed::Lookup,
    ) -> Result<fixed::Page, Unanswered> {
        let pipes = target.read().filter(|_| self.loaded.fixed.has_pipes(table_id));
        let one = move |switch: &mut Switch, now| in_pipes(switch, pipes, |switch| lookup(switch, now))?;
        if self.loaded.fixed.is_of_device(table_id) {
            return Ok(self.device.handle().call(one).await.map_err(Status::from)??);
        }
        let _held = self.loaded.hold(self.device).await?;
        Ok(self.loaded.call(self.device, one).await??)
    }

    /// A part of a table that P4Runtime does not have.
    async fn own(&self, target: Target, entry: &TableEntry, from: u64) -> Result<Page, Unanswered> {
        let lookup = self.loaded.own.lookup(entry, from)?;
        let _held = self.loaded.hold(self.device).await?;
        let pipes = target.read();
        let one = move |switch: &mut Switch, _| in_pipes(switch, pipes, |switch| lookup(switch))?;
        Ok(self.loaded.call(self.device, one).await??)
    }

    /// Reads registers: cells with a value of each pipe.
    async fn of_each_pipe(
        &mut self,
        target: Target,
        entry: &TableEntry,
        wanted: Vec<v1::Entity>,
    ) -> Result<(), Unanswered> {
        let targets: Vec<Target> = (0..self.loaded.pipes).map(|pipe| target.of_pipe(pipe)).collect();
        let mut readings: Vec<Reading> = targets.iter().map(|_| self.begin(wanted.clone())).collect();
        loop {
            let failed = |outcomes: &Vec<Checked<()>>| outcomes.iter().find_map(|one| one.clone().err());
            if let Some(outcomes) = readings[0].outcomes() {
                return failed(outcomes).map_or(Ok(()), |error| Err(error.into()));
            }
            // All pipes have the same cells, in the same order.
            let mut cells: Vec<TableEntry> = Vec::new();
            for (target, reading) in targets.iter().zip(std::mem::take(&mut readings)) {
                let (rest, found) = self.part(*target, reading).await?;
                readings.push(rest);
                for (at, entity) in found.into_iter().flat_map(ReadResults::messages).enumerate() {
                    let mut cell = self.loaded.translation.entry(&entity)?;
                    if !is_from_switch(entry) {
                        self.loaded.shadows.show(target.pipe(), &mut cell);
                    }
                    match (cells.get_mut(at).and_then(|first| first.data.as_mut()), cell.data) {
                        (Some(first), Some(data)) => first.fields.extend(data.fields),
                        (_, data) => cells.push(TableEntry { data, ..cell }),
                    }
                }
            }
            for cell in cells {
                self.give_entry(entry, cell).await?;
            }
        }
    }

    /// Number of entries of a table.
    async fn usage(&mut self, target: Target, usage: &TableUsage) -> Result<(), Unanswered> {
        let entry = TableEntry { table_id: usage.table_id, ..Default::default() };
        if self.loaded.own.has(usage.table_id) {
            let (mut count, mut from) = (0, Some(0));
            while let Some(at) = from {
                let found;
                (found, from) = self.own(target.or(None)?, &entry, at).await?;
                count += found.len();
            }
            let usage = TableUsage { usage: u32::try_from(count).unwrap_or(u32::MAX), ..*usage };
            self.give(Entity { entity: Some(entity::Entity::TableUsage(usage)) }).await?;
            return Ok(());
        }
        let checked =
            target.or(None).and_then(|target| Ok((target, self.loaded.translation.request(&entry)?)));
        let (target, wanted) = checked?;
        let mut reading = self.begin(vec![wanted]);
        let mut count = 0;
        while reading.outcomes().is_none() {
            let found;
            (reading, found) = self.part(target, reading).await?;
            count += found.into_iter().map(|found| found.messages().len()).sum::<usize>();
        }
        let failed =
            reading.outcomes().and_then(|outcomes| outcomes.iter().find_map(|one| one.clone().err()));
        if let Some(error) = failed {
            return Err(error.into());
        }
        let usage = TableUsage { usage: u32::try_from(count).unwrap_or(u32::MAX), ..*usage };
        self.give(Entity { entity: Some(entity::Entity::TableUsage(usage)) }).await?;
        Ok(())
    }

    fn begin(&self, entities: Vec<v1::Entity>) -> Reading {
        let request = v1::ReadRequest { entities, ..Default::default() };
        Reading::new(self.loaded.program.clone(), request, Box::new(|_| Ok(())))
    }

    /// The entry with a key, if there is one.
    async fn keyed(&self, target: Target, wanted: &v1::Entity) -> Result<Vec<v1::Entity>, Unanswered> {
        let queries = query_keyed(&self.loaded.program, wanted)?;
        let _held = self.loaded.hold(self.device).await?;
        let pipes = target.read();
        let one = move |switch: &mut Switch, now| {
            in_pipes(switch, pipes, |switch| {
                let found = queries.into_iter().map(|query| query(switch, now).map(|answer| answer.found));
                found.collect::<Checked<Vec<ReadResults>>>()
            })?
        };
        let found = self.loaded.call(self.device, one).await??;
        Ok(found.into_iter().flat_map(ReadResults::messages).collect())
    }

    async fn part(&self, target: Target, reading: Reading) -> Result<(Reading, Vec<ReadResults>), Status> {
        let _permit = self.device.part().await;
        let _held = self.loaded.hold(self.device).await?;
        let (pipes, mut part) = (target.read(), reading.part(TURNS_A_PART));
        // The target's pipes have been checked.
        let turn = move |switch: &mut Switch, now| match pipes {
            None => part(switch, now),
            Some(pipes) => {
                let turn = switch.within(pipes, |switch| part(switch, now));
                turn.unwrap_or(ControlFlow::Continue(()))
            }
        };
        self.loaded.in_turns(self.device, Isolation::Whole, turn).await
    }

    async fn give_entry(&mut self, asked: &TableEntry, mut found: TableEntry) -> Result<(), Status> {
        let key_only = asked.table_flags.as_ref().is_some_and(|flags| flags.key_only);
        if key_only {
            found.data = None;
        } else if let (Some(data), Some(asked)) = (&mut found.data, &asked.data)
            && !asked.fields.is_empty()
        {
            let wanted = |id: u32| asked.fields.iter().any(|field| field.field_id == id);
            data.fields.retain(|field| wanted(field.field_id));
        }
        // Clients expect it where they gave it, and nowhere else.
        found.entry_tgt = asked.entry_tgt;
        self.give(Entity { entity: Some(entity::Entity::TableEntry(found)) }).await
    }

    async fn give(&mut self, entity: Entity) -> Result<(), Status> {
        self.bytes += entity.encoded_len();
        self.ready.entities.push(entity);
        if self.bytes >= BYTES_A_MESSAGE { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), Status> {
        if self.ready.entities.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let message = Bytes::from(std::mem::take(&mut self.ready).encode_to_vec());
        self.send(message).await
    }

    async fn send(&self, message: Bytes) -> Result<(), Status> {
        match tokio::time::timeout(STALLED, self.answers.send(Ok(message))).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(status(Code::Cancelled, "the client has left")),
            Err(_) => {
                let message =
                    format!("nothing of the answer was taken for {} s; read again", STALLED.as_secs());
                Err(status(Code::DeadlineExceeded, message))
            }
        }
    }
}

/// Whether a read shows counters and registers as the switch has them now.
#[allow(deprecated)] // older clients use its first flag
fn is_from_switch(asked: &TableEntry) -> bool {
    asked.table_flags.is_some_and(|flags| flags.from_hw)
        || asked.table_read_flag.is_some_and(|flag| flag.from_hw)
}

/// The entities to read from P4Runtime's core. All of a table includes its default entry.
fn requests(loaded: &Loaded, entry: &TableEntry) -> Checked<Vec<v1::Entity>> {
    let wanted = loaded.translation.request(entry)?;
    if entry.value.is_some() || entry.is_default_entry {
        return Ok(vec![wanted]);
    }
    let is_table = matches!(&wanted.entity, Some(v1::entity::Entity::TableEntry(_)));
    let default = TableEntry { is_default_entry: true, ..entry.clone() };
    match is_table {
        true => Ok(vec![wanted, loaded.translation.request(&default)?]),
        false => Ok(vec![wanted]),
    }
}

impl Loaded {
    /// Checks that the pipe of a read can have the entry: any pipe that has it if it is read from hardware, otherwise
    /// the one that represents its scope. `named_in` is the pipe of its handle.
    fn check_readable(&self, target: Target, entry: &TableEntry, named_in: Option<u32>) -> Checked<()> {
        let all = entry.value.is_none() && !entry.is_default_entry;
        if all || !self.translation.has_keys(entry.table_id) {
            return Ok(());
        }
        let from_hardware = entry.table_flags.as_ref().is_none_or(|flags| flags.from_hw);
        let absent = || refuse(Code::NotFound, "there is no such entry in the software's view of this pipe");
        let scope = self.settings.scope(entry.table_id);
        match (target.pipe(), named_in) {
            (None, None) if scope == Scope::All => Ok(()),
            (None, None) if entry.is_default_entry => {
                invalid("pipes have default entries of their own; name one, not all")
            }
            (None, None) => refuse(Code::NotFound, "there is no such entry of all pipes; name one pipe"),
            (None, Some(_)) => Ok(()),
            (Some(_), _) if entry.is_default_entry => Ok(()),
            (Some(pipe), Some(own)) if !from_hardware => {
                if pipe == own {
                    Ok(())
                } else {
                    absent()
                }
            }
            (Some(pipe), Some(own)) => {
                let has_it = own == ALL_PIPES || scope.pipes(own)?.has(pipe as usize);
                if has_it {
                    Ok(())
                } else {
                    invalid(format!("the entry with this handle is not in pipe {pipe}"))
                }
            }
            (Some(_), None) if from_hardware => Ok(()),
            (Some(_), None) if scope == Scope::All => absent(),
            (Some(pipe), None) => scope.pipes(pipe).map(drop),
        }
    }

    /// An entry as clients see it: with the remaining time to live, if the table's idle entries are monitored.
    fn found(&self, table_id: u32, mut found: v1::Entity) -> Checked<TableEntry> {
        if let Some(v1::entity::Entity::TableEntry(entry)) = &mut found.entity
            && !self.settings.idle(table_id).enable
        {
            entry.time_since_last_hit = None;
        }
        self.translation.entry(&found)
    }
}
