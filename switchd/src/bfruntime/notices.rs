//! What the bound client hears of by itself: digests and idle entries.

use super::DEVICE;
use super::loaded::Loaded;
use super::lookup::ALL_PIPES;
use super::service::Service;
use p4rack_bfrt::Kind;
use p4rack_entities::idle_message;
use p4rack_p4::ir::TableId;
use p4rack_p4rt::bfrt_proto::subscribe::Notifications;
use p4rack_p4rt::bfrt_proto::{
    DataField, DigestList, IdleTimeoutNotification, TableData, TableEntry as Sent, TargetDevice, data_field,
    idle_table, idle_timeout_notification, stream_message_response::Update, table_entry,
};
use p4rack_p4rt::p4::v1;
use p4rack_switch::{DigestMessage, TableEntry};

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
    /// Sends a digest to the bound client. Returns whether it wants digests and has room.
    pub async fn digest(&self, message: &DigestMessage) -> bool {
        if !self.clients.any_bound() {
            return false;
        }
        let Ok(loaded) = self.programs.loaded().await else { return false };
        let Some(list) = loaded.digest(message) else { return false };
        let wants = |wanted: &Notifications| wanted.enable_learn_notifications;
        self.clients.notice(&loaded.program, wants, Update::Digest(list))
    }

    /// Sends idle entries to the bound client, each once until it is hit again. Returns whether it wants them and has
    /// room.
    pub async fn idle(&self, entries: &[(TableId, TableEntry)]) -> bool {
        if !self.clients.any_bound() {
            return false;
        }
        let Ok(loaded) = self.programs.loaded().await else { return false };
        let mut sent = true;
        for (table, entry) in entries {
            let Some(message) = idle_message(&loaded.program, *table, entry) else { continue };
            let entity = v1::Entity { entity: Some(v1::entity::Entity::TableEntry(message)) };
            let Ok(found) = loaded.translation.entry(&entity) else { continue };
            let set = loaded.settings.idle(found.table_id);
            let notifies = set.idle_table_mode() == idle_table::IdleTableMode::IdleTableNotifyMode;
            let (true, true, Some(table_entry::Value::Key(key))) = (set.enable, notifies, &found.value)
            else {
                continue;
            };
            let (table, keys, priority) = (*table, entry.keys.clone(), entry.priority);
            let last_hit =
                move |switch: &mut p4rack_switch::Switch, _| switch.last_hit(table, &keys, priority);
            let Ok(Ok(last_hit)) = self.device.handle().call(last_hit).await else { continue };
            if !loaded.settings.reports(found.table_id, key, last_hit.0) {
                continue;
            }
            let pipe = if loaded.pipes > 1 { ALL_PIPES } else { 0 };
            let notification = IdleTimeoutNotification {
                target: target(pipe),
                table_entry: Some(Sent { data: None, ..found }),
                r#type: idle_timeout_notification::NotificationType::EntryIdle as i32,
            };
            let wants = |wanted: &Notifications| wanted.enable_idletimeout_notifications;
            let update = Update::IdleTimeoutNotification(notification);
            sent &= self.clients.notice(&loaded.program, wants, update);
        }
        sent
    }
}
