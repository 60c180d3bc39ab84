//! Unsolicited messages: to the bound client about digests and entries that are idle or were hit again, to all subscribed
//! clients about ports.

use super::digests::{Lists, Waiting, target};
use super::loaded::Loaded;
use super::service::{Seen, Service, Watched};
use super::settings::{ALL_PIPES, EntryKey, Scope};
use p4rack_entities::idle_message;
use p4rack_p4rt::bfrt_proto::subscribe::Notifications;
use p4rack_p4rt::bfrt_proto::{
    IdleTimeoutNotification, PortStatusChgNotification, TableEntry as Sent, idle_table,
    idle_timeout_notification, stream_message_response::Update, table_entry,
};
use p4rack_p4rt::p4::v1;
use p4rack_switch::{DigestMessage, IdleEntry, Pipes, Switch};
use p4rack_wire::Nanos;
use prost::Message;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

/// Digests that may wait for longer than this wait for others.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// Maximum reported entries that are watched, and how many entries are looked up in one turn of the data plane.
const MOST_WATCHED: usize = 1 << 16;
const LOOKED_UP_A_TURN: usize = 256;

/// The report of an idle entry, with its pipe; `None` if its table does not report idle entries.
fn reportable(loaded: &Loaded, idle: &IdleEntry) -> Option<Watched> {
    let message = idle_message(&loaded.program, idle.table, &idle.entry)?;
    let entity = v1::Entity { entity: Some(v1::entity::Entity::TableEntry(message)) };
    let found = loaded.translation.entry(&entity).ok()?;
    let set = loaded.settings.idle(found.table_id);
    if !set.enable || set.idle_table_mode() != idle_table::IdleTableMode::IdleTableNotifyMode {
        return None;
    }
    let (pipe, pipes) = match loaded.settings.scope(found.table_id) {
        Scope::All if loaded.pipes > 1 => (ALL_PIPES, Pipes::ALL),
        Scope::All => (0, Pipes::ALL),
        _ => (u32::try_from(idle.pipe).unwrap_or(0), idle.pipes),
    };
    let seen = Seen { table: idle.table, entry: idle.entry.clone(), pipes, last_hit: idle.last_hit };
    Some(Watched { program: Arc::downgrade(&loaded.program), seen, found, pipe })
}

impl Watched {
    /// Its identity, if its key is known.
    fn place(&self) -> Option<EntryKey> {
        let Some(table_entry::Value::Key(key)) = &self.found.value else { return None };
        Some((self.found.table_id, self.pipe, key.encode_to_vec()))
    }

    /// Whether it is an entry of this program.
    fn is_of(&self, loaded: &Loaded) -> bool {
        std::ptr::eq(self.program.as_ptr(), Arc::as_ptr(&loaded.program))
    }
}

impl Service {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        // Every change is a single assignment, addition or removal.
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a digest to the bound client, or keeps it for a longer list if the device's configuration says so. Returns
    /// whether the client wants digests and has room.
    pub async fn digest(&self, message: &DigestMessage) -> bool {
        if !self.clients.any_bound() || !self.clients.wants(|wanted| wanted.enable_learn_notifications) {
            return false;
        }
        let Ok(loaded) = self.programs.loaded().await else { return false };
        let Some(list) = loaded.digest(message) else { return false };
        let timeout = loaded.fixed.learn_timeout();
        let list = Waiting::new(loaded.program.clone(), list, timeout);
        let mut lists = self.lists();
        if timeout < LEAST_WAIT {
            // In order of arrival.
            let mut sent = true;
            for list in lists.take().into_iter().chain([list]) {
                sent &= self.send_digests(list);
            }
            return sent;
        }
        let (ready, is_new) = lists.add(list);
        if is_new && std::mem::replace(&mut lists.is_timed, true) {
            // It may be due before all others.
            self.sooner.notify_one();
        } else if is_new {
            tokio::spawn(self.clone().send_lists());
        }
        ready.is_none_or(|ready| self.send_digests(ready))
    }

    /// Sends lists when they are due, until none waits.
    async fn send_lists(self) {
        loop {
            let next = {
                let mut lists = self.lists();
                for due in lists.take_due() {
                    if !self.send_digests(due) {
                        self.device.handle().count_lost();
                    }
                }
                let Some(next) = lists.next() else {
                    lists.is_timed = false;
                    return;
                };
                next
            };
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.sooner.notified() => {}
            }
        }
    }

    /// Sends digests to the bound client. Returns whether it wants them and has room.
    fn send_digests(&self, Waiting { program, list, .. }: Waiting) -> bool {
        self.clients.notice(&program, |wanted| wanted.enable_learn_notifications, Update::Digest(list))
    }

    /// Sends idle entries to the bound client, each once until it is hit again. Returns whether it wants them and has
    /// room.
    pub async fn idle(&self, entries: &[IdleEntry]) -> bool {
        if !self.clients.any_bound() {
            return false;
        }
        let Ok(loaded) = self.programs.loaded().await else { return false };
        let mut sent = true;
        for some in entries.chunks(LOOKED_UP_A_TURN) {
            let reported = some.iter().filter_map(|idle| reportable(&loaded, idle)).filter(|one| {
                one.place().is_some_and(|place| loaded.settings.reports(&place, one.seen.last_hit.0))
            });
            let reported: Vec<Watched> = reported.collect();
            let hits = self.last_hits(reported.iter().map(|one| one.seen.clone()).collect()).await;
            for (one, hit) in reported.into_iter().zip(hits) {
                // It is gone.
                if hit.is_none() {
                    continue;
                }
                // One that is idle once more was active before.
                let before = one.place().and_then(|place| self.watched().remove(&place));
                if before.is_some_and(|before| before.is_of(&loaded)) {
                    self.tell_of(&loaded, &one.found, one.pipe, true);
                }
                sent &= self.tell_of(&loaded, &one.found, one.pipe, false);
                self.watch(one);
            }
        }
        sent
    }

    /// Notifies the bound client of reported entries that were hit again. Returns whether any are left.
    pub async fn active(&self) -> bool {
        let watched = std::mem::take(&mut *self.watched());
        let Ok(loaded) = self.programs.loaded().await else { return false };
        let watched: Vec<Watched> = watched.into_values().filter(|one| one.is_of(&loaded)).collect();
        for some in watched.chunks(LOOKED_UP_A_TURN) {
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

    /// Reports ports that went up or down since the last call, if a client has enabled such notifications.
    pub async fn ports(&self) {
        let Ok(loaded) = self.programs.loaded().await else { return };
        if !loaded.fixed.ports().notifies() {
            return;
        }
        let clients = self.clients.clone();
        // In the thread of the data plane, so that each port's news stay in order.
        let tell = move |switch: &mut Switch, _| {
            for (port, port_up) in loaded.fixed.ports().news(switch) {
                let table_entry = loaded.fixed.port_key(port);
                let notification = PortStatusChgNotification { table_entry, port_up };
                clients.tell_of_ports(&Update::PortStatusChangeNotification(notification));
            }
        };
        // Without a switch there is nothing to report.
        let _ = self.device.handle().call(tell).await;
    }

    /// When entries were last hit; `None` for those that are gone.
    async fn last_hits(&self, all: Vec<Seen>) -> Vec<Option<Nanos>> {
        if all.is_empty() {
            return Vec::new();
        }
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
        let Some(place) = one.place() else { return };
        let mut watched = self.watched();
        if watched.len() < MOST_WATCHED
            && self.clients.wants(|wanted| wanted.enable_entry_active_notifications)
        {
            watched.insert(place, one);
        }
    }

    /// Notifies the bound client that an entry is idle, or active again. Returns whether the client wants this and has
    /// room.
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
