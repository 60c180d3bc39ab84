//! What the bound client hears of by itself: digests and idle entries.

use super::DEVICE;
use super::loaded::Loaded;
use super::service::{Seen, Service, Watched};
use super::settings::{ALL_PIPES, Scope};
use p4rack_bfrt::Kind;
use p4rack_entities::{Program, idle_message};
use p4rack_p4rt::bfrt_proto::subscribe::Notifications;
use p4rack_p4rt::bfrt_proto::{
    DataField, DigestList, IdleTimeoutNotification, TableData, TableEntry as Sent, TargetDevice, data_field,
    idle_table, idle_timeout_notification, stream_message_response::Update, table_entry,
};
use p4rack_p4rt::p4::v1;
use p4rack_switch::{DigestMessage, IdleEntry, Pipes, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;
use std::time::Duration;

/// Digests that wait longer than this wait for others.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// The longest that a digest waits for others.
const MOST_WAIT: Duration = Duration::from_secs(10);
/// Maximum digests of a list.
const DIGESTS: usize = 64;

fn target(pipe_id: u32) -> Option<TargetDevice> {
    Some(TargetDevice { device_id: DEVICE, pipe_id, direction: 0xff, prsr_id: 0xff })
}

impl Loaded {
    /// A digest as a list of one.
    fn digest(&self, message: &DigestMessage) -> Option<DigestList> {
        let described = self.program.ir.digests.get(message.digest as usize)?;
        let name = &described.named.name;
        let is_it = |own: &str| own == name || own.split_once('.').is_some_and(|(_, rest)| rest == name);
        let learn = self.schema.learns().iter().find(|learn| is_it(&learn.name))?;
        let one = |(field, value): (&p4rack_bfrt::Field, &num_bigint::BigUint)| {
            let bytes = value.to_bytes_be();
            let value = match field.kind {
                Kind::Bits(width) => {
                    let length = width.div_ceil(8) as usize;
                    let kept = bytes.len().min(length);
                    let mut fixed = vec![0; length];
                    fixed[length - kept..].copy_from_slice(&bytes[bytes.len() - kept..]);
                    data_field::Value::Stream(fixed)
                }
                Kind::Bool => data_field::Value::BoolVal(bytes != [0]),
                _ => return None,
            };
            Some(DataField { field_id: field.id, value: Some(value) })
        };
        let fields = learn.fields.iter().zip(&message.values).map(one).collect::<Option<_>>()?;
        let data = vec![TableData { action_id: 0, fields }];
        let pipe = u32::try_from(message.pipe).unwrap_or(0);
        Some(DigestList { digest_id: learn.id, list_id: 0, data, target: target(pipe) })
    }
}

impl Service {
    /// Sends a digest to the bound client, with others if the device's configuration says that it may wait for them.
    /// Returns whether the client wants digests and has room.
    pub async fn digest(&self, message: &DigestMessage) -> bool {
        if !self.clients.any_bound() {
            return false;
        }
        let Ok(loaded) = self.programs.loaded().await else { return false };
        let Some(list) = loaded.digest(message) else { return false };
        let timeout = loaded.fixed.learn_timeout();
        if timeout < LEAST_WAIT {
            return self.send_digests(&loaded.program, list);
        }
        if !self.clients.wants(|wanted| wanted.enable_learn_notifications) {
            return false;
        }
        let mut sent = true;
        let mut waiting = self.waiting();
        match &mut *waiting {
            Some((_, all)) if all.digest_id == list.digest_id && all.target == list.target => {
                all.data.extend(list.data);
            }
            _ => {
                sent = waiting.take().is_none_or(|(program, before)| self.send_digests(&program, before));
                *waiting = Some((loaded.program.clone(), list));
                let service = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(timeout.min(MOST_WAIT)).await;
                    let waited = service.waiting().take();
                    waited.map(|(program, list)| service.send_digests(&program, list))
                });
            }
        }
        if waiting.as_ref().is_some_and(|(_, all)| all.data.len() >= DIGESTS)
            && let Some((program, all)) = waiting.take()
        {
            sent &= self.send_digests(&program, all);
        }
        sent
    }

    /// Sends digests to the bound client. Returns whether it wants them and has room.
    fn send_digests(&self, program: &Arc<Program>, list: DigestList) -> bool {
        self.clients.notice(program, |wanted| wanted.enable_learn_notifications, Update::Digest(list))
    }

    /// Sends idle entries to the bound client, each once until it is hit again. Returns whether it wants them and has
    /// room.
    pub async fn idle(&self, entries: &[IdleEntry]) -> bool {
        if !self.clients.any_bound() {
            return false;
        }
        let Ok(loaded) = self.programs.loaded().await else { return false };
        let mut sent = true;
        for idle in entries {
            let Some(message) = idle_message(&loaded.program, idle.table, &idle.entry) else { continue };
            let entity = v1::Entity { entity: Some(v1::entity::Entity::TableEntry(message)) };
            let Ok(found) = loaded.translation.entry(&entity) else { continue };
            let set = loaded.settings.idle(found.table_id);
            let notifies = set.idle_table_mode() == idle_table::IdleTableMode::IdleTableNotifyMode;
            let (true, true, Some(table_entry::Value::Key(key))) = (set.enable, notifies, &found.value)
            else {
                continue;
            };
            let (pipe, pipes) = match loaded.settings.scope(found.table_id) {
                Scope::All if loaded.pipes > 1 => (ALL_PIPES, Pipes::ALL),
                Scope::All => (0, Pipes::ALL),
                _ => (u32::try_from(idle.pipe).unwrap_or(0), Pipes::of([idle.pipe])),
            };
            let seen = Seen { table: idle.table, entry: idle.entry.clone(), pipes, last_hit: Nanos(0) };
            let Some(last_hit) = self.last_hits(vec![seen.clone()]).await.pop().flatten() else { continue };
            if !loaded.settings.reports(found.table_id, pipe, key, last_hit.0) {
                continue;
            }
            sent &= self.tell_of(&loaded, &found, pipe, false);
            self.watch(Watched {
                program: Arc::downgrade(&loaded.program),
                seen: Seen { last_hit, ..seen },
                found,
                pipe,
            });
        }
        sent
    }

    /// Tells the bound client of reported entries that were hit meanwhile. Returns whether any are left.
    pub async fn active(&self) -> bool {
        let watched = std::mem::take(&mut *self.watched());
        let Ok(loaded) = self.programs.loaded().await else { return false };
        let own = |one: &Watched| std::ptr::eq(one.program.as_ptr(), Arc::as_ptr(&loaded.program));
        let watched: Vec<Watched> = watched.into_iter().filter(own).collect();
        for some in watched.chunks(WATCHED_A_TURN) {
            let hits = self.last_hits(some.iter().map(|one| one.seen.clone()).collect()).await;
            for (one, hit) in some.iter().zip(hits) {
                match hit {
                    Some(hit) if hit == one.seen.last_hit => self.watch(one.clone()),
                    Some(_) => drop(self.tell_of(&loaded, &one.found, one.pipe, true)),
                    // It is gone.
                    None => {}
                }
            }
        }
        !self.watched().is_empty()
    }

    /// When entries were last hit; `None` for those that are gone.
    async fn last_hits(&self, all: Vec<Seen>) -> Vec<Option<Nanos>> {
        let read = move |switch: &mut Switch, _| {
            let one = |seen: Seen| {
                let entry = seen.entry;
                let hit = switch
                    .within(seen.pipes, |switch| switch.last_hit(seen.table, &entry.keys, entry.priority));
                hit.and_then(|hit| hit).ok()
            };
            all.into_iter().map(one).collect()
        };
        self.device.handle().call(read).await.unwrap_or_default()
    }

    /// Watches a reported entry, unless the client does not want to hear of it again.
    fn watch(&self, one: Watched) {
        let mut watched = self.watched();
        if watched.len() < MOST_WATCHED
            && self.clients.wants(|wanted| wanted.enable_entry_active_notifications)
        {
            watched.push(one);
        }
    }

    /// Tells the bound client that an entry is idle, or is active again. Returns whether it wants that and has room.
    fn tell_of(&self, loaded: &Loaded, found: &Sent, pipe: u32, is_active: bool) -> bool {
        use idle_timeout_notification::NotificationType;
        let kind = if is_active { NotificationType::EntryActive } else { NotificationType::EntryIdle };
        let notification = IdleTimeoutNotification {
            target: target(pipe),
            table_entry: Some(Sent { data: None, ..found.clone() }),
            r#type: kind as i32,
        };
        let wants = |wanted: &Notifications| match is_active {
            true => wanted.enable_entry_active_notifications,
            false => wanted.enable_idletimeout_notifications,
        };
        let update = Update::IdleTimeoutNotification(notification);
        self.clients.notice(&loaded.program, wants, update)
    }
}

/// Maximum reported entries that are watched, and how many of them in one turn of the data plane.
const MOST_WATCHED: usize = 1 << 16;
const WATCHED_A_TURN: usize = 256;
