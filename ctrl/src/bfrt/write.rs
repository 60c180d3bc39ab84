//! Writes of P4Runtime's entities.

use super::device::Unwritten;
use super::patience::Patience;
use super::{EVERYWHERE, Link, program_error, unpack};
use crate::client::name;
use crate::error::{CtrlError, UpdateFailure, refused};
use p4rack_bfrt::{Entry, Schema};
use p4rack_p4rt::bfrt_proto::bf_runtime_client::BfRuntimeClient;
use p4rack_p4rt::bfrt_proto::{self as bfrt, Entity, TableFlags, WriteRequest, entity};
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::{self, entity::Entity as Kind};
use p4rack_p4rt::schema as p4;
use tonic::transport::Channel;

/// Updates of a Write. There is one at a time: a driver executes them one by one, in a session that all of a client's share.
const BATCH: usize = 2048;

impl Link {
    /// Writes updates of P4Runtime's entities independently of each other. The error lists all refused ones.
    pub async fn write(&mut self, schema: &p4::Schema, updates: &[v1::Update]) -> Result<(), CtrlError> {
        self.write_phases(schema, std::iter::once(updates), updates.len()).await
    }

    /// Writes phase after phase. Stops after one with a refused update.
    pub(crate) async fn write_phases<'a>(
        &mut self,
        schema: &p4::Schema,
        phases: impl Iterator<Item = &'a [v1::Update]>,
        total: usize,
    ) -> Result<(), CtrlError> {
        let mut before = 0;
        for updates in phases {
            let mut failures = self.write_phase(updates).await?;
            if !failures.is_empty() {
                failures.sort_by_key(|(at, _)| *at);
                failures.dedup_by_key(|(at, _)| *at);
                let failure = |(at, error): (usize, UpdateError)| {
                    let what =
                        updates[at].entity.as_ref().map_or_else(String::new, |entity| name(schema, entity));
                    UpdateFailure { number: before + at + 1, total, what, error }
                };
                return Err(CtrlError::Updates { failures: failures.into_iter().map(failure).collect() });
            }
            before += updates.len();
        }
        Ok(())
    }

    async fn write_phase(&mut self, updates: &[v1::Update]) -> Result<Vec<(usize, UpdateError)>, CtrlError> {
        let mut failures = Vec::new();
        let (mut made, mut several) = (Vec::with_capacity(updates.len()), Vec::new());
        for (at, update) in updates.iter().enumerate() {
            let kind = update.entity.as_ref().and_then(|entity| entity.entity.as_ref());
            if matches!(kind, Some(Kind::PacketReplicationEngineEntry(_) | Kind::ValueSetEntry(_))) {
                several.push((at, update));
                continue;
            }
            match self.update(update) {
                Ok(one) => made.push((at, one)),
                Err(error) => failures.push((at, error)),
            }
        }
        for batch in made.chunks(BATCH) {
            failures.extend(self.write_batch(batch.iter().collect()).await?);
        }
        for (at, update) in several {
            match self.write_several(update).await {
                Ok(()) => {}
                Err(Unwritten::Refused(error)) => failures.push((at, error)),
                Err(Unwritten::Ended(error)) => return Err(error),
            }
        }
        Ok(failures)
    }

    /// Writes updates, each with its place. Returns those that were refused.
    async fn write_batch(
        &mut self,
        mut left: Vec<&(usize, bfrt::Update)>,
    ) -> Result<Vec<(usize, UpdateError)>, CtrlError> {
        let (mut failures, mut patience) = (Vec::new(), Patience::default());
        loop {
            let request = self.request(left.iter().map(|(_, update)| update.clone()).collect())?;
            let Err(status) = self.grpc.write(request).await else { return Ok(failures) };
            let Some(outcomes) = unpack(&status) else {
                match patience.after(&status).await {
                    true => continue,
                    false => return Err(refused("writing entries")(status)),
                }
            };
            let failed = left.iter().zip(outcomes).filter_map(|(one, outcome)| Some((*one, outcome?)));
            let (busy, refused): (Vec<_>, Vec<_>) =
                failed.partition(|(_, error)| error.code == Code::Unavailable);
            failures.extend(refused.into_iter().map(|((at, _), error)| (*at, error)));
            if busy.is_empty() || !patience.wait().await {
                failures.extend(busy.into_iter().map(|((at, _), error)| (*at, error)));
                return Ok(failures);
            }
            left = busy.into_iter().map(|(one, _)| one).collect();
        }
    }

    /// The client, an empty request, and the names, for callers that write themselves.
    pub(crate) fn writer(&self) -> Result<(BfRuntimeClient<Channel>, WriteRequest, &Schema), CtrlError> {
        Ok((self.grpc.clone(), self.request(Vec::new())?, &self.bound()?.schema))
    }

    pub(super) fn request(&self, updates: Vec<bfrt::Update>) -> Result<WriteRequest, CtrlError> {
        Ok(WriteRequest {
            target: Some(EVERYWHERE),
            client_id: self.client_id,
            updates,
            p4_name: self.bound()?.p4_name.clone(),
            ..Default::default()
        })
    }

    /// An update of one entry.
    fn update(&self, update: &v1::Update) -> Result<bfrt::Update, UpdateError> {
        let internal = |error: CtrlError| UpdateError::new(Code::FailedPrecondition, error.to_string());
        let translation = &self.bound().map_err(internal)?.translation;
        let Some(entity) = &update.entity else {
            return Err(UpdateError::new(Code::InvalidArgument, "the update's entity is not set"));
        };
        let mut entry = translation.entry(entity)?;
        let resets = matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.is_default_action && entry.action.is_none());
        let kind = match update.r#type() {
            _ if resets => bfrt::update::Type::Delete,
            v1::update::Type::Insert => bfrt::update::Type::Insert,
            v1::update::Type::Delete => bfrt::update::Type::Delete,
            _ => bfrt::update::Type::Modify,
        };
        if kind == bfrt::update::Type::Delete {
            entry.data = None;
        }
        if kind == bfrt::update::Type::Modify {
            // As P4Runtime means it: counters change if they are given, and a time to live starts again.
            let reset_stats =
                matches!(&entity.entity, Some(Kind::TableEntry(entry)) if entry.counter_data.is_some());
            entry.table_flags = Some(TableFlags { reset_stats, reset_ttl: true, ..Default::default() });
        }
        let entity = Some(entity::Entity::TableEntry(entry));
        Ok(bfrt::Update { r#type: kind as i32, entity: Some(Entity { entity }) })
    }

    /// Writes an entity that is several entries, or one of another kind: a multicast group, a clone session, a
    /// value set.
    async fn write_several(&mut self, update: &v1::Update) -> Result<(), Unwritten> {
        let kind = update.r#type();
        match update.entity.as_ref().and_then(|entity| entity.entity.as_ref()) {
            Some(Kind::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
                Some(Replication::MulticastGroupEntry(given)) => self.write_group(kind, given).await,
                Some(Replication::CloneSessionEntry(given)) => self.write_session(kind, given).await,
                None => Ok(()),
            },
            Some(Kind::ValueSetEntry(given)) => self.write_members(kind, given).await,
            _ => Ok(()),
        }
    }

    /// Replaces the members of a value set, each an entry, all of them or none.
    async fn write_members(
        &mut self,
        kind: v1::update::Type,
        given: &v1::ValueSetEntry,
    ) -> Result<(), Unwritten> {
        if kind != v1::update::Type::Modify || given.value_set_id == 0 {
            let message = "a value set always exists: MODIFY replaces its members".to_owned();
            return Err(UpdateError::new(Code::InvalidArgument, message).into());
        }
        let found = self.bound()?.translation.value_sets(given.value_set_id)?;
        let Some(set) = found.into_iter().next().cloned() else { return Ok(()) };
        let there = self.ask(vec![set.request()]).await?;
        let updates = set.updates(&there, given)?;
        if updates.is_empty() {
            return Ok(());
        }
        let atomicity = bfrt::write_request::Atomicity::RollbackOnError as i32;
        self.write_request(WriteRequest { atomicity, ..self.request(updates)? }).await
    }

    /// An update of one of the device's tables.
    pub(super) fn fixed(&self, kind: bfrt::update::Type, entry: Entry) -> Result<bfrt::Update, CtrlError> {
        let entry = entry.build(&self.bound()?.schema).map_err(program_error)?;
        let entity = Entity { entity: Some(entity::Entity::TableEntry(entry)) };
        Ok(bfrt::Update { r#type: kind as i32, entity: Some(entity) })
    }
}
