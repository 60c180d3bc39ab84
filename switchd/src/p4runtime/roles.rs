//! Access of roles whose controllers restrict it: `Role.config` holds a `stratum.P4RoleConfig`.
//!
//! A role without config may do everything. With one, it may write and read the objects that the
//! config names, exclusively or shared, and entities without id: multicast groups and clone sessions.
//! Two roles with controllers cannot both name an object if one of them claims it exclusively.

use super::Checked;
use p4rack_entities::plain::{Plans, Request, Step};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::bytes;
use p4rack_p4rt::errors::UpdateError;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{PacketMetadata, Role, Update};
use p4rack_p4rt::stratum::P4RoleConfig;
use prost::Message;
use prost_types::Any;
use std::collections::BTreeSet;

/// Suffix of the type URL in an [`Any`].
const TYPE: &str = "/stratum.P4RoleConfig";

/// Why an arbitration message is refused, which ends its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Canonical gRPC code.
    pub code: Code,
    /// The problem, and what to do about it.
    pub message: String,
}

/// Objects that a role may access.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The config as given.
    pub given: Any,
    exclusive: BTreeSet<u32>,
    shared: BTreeSet<u32>,
    packet_ins: bool,
    /// Metadata id and its value in the shortest form.
    filter: Option<(u32, Vec<u8>)>,
    /// Whether it may install programs.
    pub installs: bool,
}

impl Access {
    /// Access that a controller asks for; `None` is everything.
    pub fn of(role: Option<&Role>) -> Result<Option<Access>, Refusal> {
        let invalid = |message: String| Refusal { code: Code::InvalidArgument, message };
        let Some((role, given)) = role.and_then(|role| Some((role, role.config.as_ref()?))) else {
            return Ok(None);
        };
        if role.name.is_empty() {
            return Err(invalid(
                "the default role may do everything: name the role, or leave role.config unset".into(),
            ));
        }
        if !given.type_url.ends_with(TYPE) {
            let message =
                format!("role.config is of type `{}`; a stratum.P4RoleConfig is expected", given.type_url);
            return Err(invalid(message));
        }
        let config = P4RoleConfig::decode(&given.value[..])
            .map_err(|error| invalid(format!("role.config is no stratum.P4RoleConfig: {error}")))?;
        let filter = match config.packet_in_filter {
            Some(_) if !config.receives_packet_ins => {
                let message = "role.config has a packet_in_filter, but receives_packet_ins is not set";
                return Err(invalid(message.into()));
            }
            Some(filter) if filter.value.is_empty() => {
                return Err(invalid("role.config: the packet_in_filter has no value".into()));
            }
            filter => filter.map(|filter| (filter.metadata_id, bytes::canonical(&filter.value))),
        };
        Ok(Some(Access {
            given: given.clone(),
            exclusive: config.exclusive_p4_ids.into_iter().collect(),
            shared: config.shared_p4_ids.into_iter().collect(),
            packet_ins: config.receives_packet_ins,
            filter,
            installs: config.can_push_pipeline,
        }))
    }

    /// An id that both name and one of them claims exclusively.
    pub fn conflict(&self, other: &Access) -> Option<u32> {
        let wanted = |one: &Access, other: &Access| {
            one.exclusive.iter().find(|id| other.exclusive.contains(id) || other.shared.contains(id)).copied()
        };
        wanted(self, other).or_else(|| wanted(other, self))
    }

    /// Whether the role may access an object; 0 is no particular object.
    pub fn includes(&self, id: u32) -> bool {
        id == 0 || self.exclusive.contains(&id) || self.shared.contains(&id)
    }

    /// Whether the role receives a packet with this metadata.
    pub fn takes(&self, metadata: &[PacketMetadata]) -> bool {
        let passes = |(id, value): &(u32, Vec<u8>)| {
            metadata.iter().any(|given| given.metadata_id == *id && given.value == *value)
        };
        self.packet_ins && self.filter.as_ref().is_none_or(passes)
    }

    fn check(&self, id: u32) -> Checked<()> {
        if self.includes(id) {
            return Ok(());
        }
        let message = format!("the role's config does not name the object with id {id} (0x{id:08x})");
        Err(UpdateError::new(Code::PermissionDenied, message))
    }

    /// Rejects an entity outside of the role's access.
    pub fn check_entity(&self, entity: Option<&EntityKind>) -> Checked<()> {
        self.check(entity.map_or(0, id))
    }

    /// Rejects an update outside of the role's access.
    pub fn check_update(&self, update: &Update) -> Checked<()> {
        self.check_entity(update.entity.as_ref().and_then(|entity| entity.entity.as_ref()))
    }

    /// Rejects updates of a request outside of the role's access.
    pub fn check_request(&self, request: &mut Request, plans: &Plans) {
        for at in 0..request.steps.len() {
            let checked = match &request.steps[at] {
                Step::Plain(plain) => self.check(plans.table_id(plain)),
                Step::Message(update) => self.check_update(update),
                Step::Refused(_) => Ok(()),
            };
            if let Err(error) = checked {
                request.steps[at] = Step::Refused(error);
            }
        }
    }
}

/// P4Info id of an entity's object; 0 if it has none or is not set.
fn id(entity: &EntityKind) -> u32 {
    match entity {
        EntityKind::ExternEntry(entry) => entry.extern_id,
        EntityKind::TableEntry(entry) => entry.table_id,
        EntityKind::ActionProfileMember(member) => member.action_profile_id,
        EntityKind::ActionProfileGroup(group) => group.action_profile_id,
        EntityKind::MeterEntry(entry) => entry.meter_id,
        EntityKind::DirectMeterEntry(entry) => entry.table_entry.as_ref().map_or(0, |entry| entry.table_id),
        EntityKind::CounterEntry(entry) => entry.counter_id,
        EntityKind::DirectCounterEntry(entry) => entry.table_entry.as_ref().map_or(0, |entry| entry.table_id),
        EntityKind::PacketReplicationEngineEntry(_) => 0,
        EntityKind::ValueSetEntry(entry) => entry.value_set_id,
        EntityKind::RegisterEntry(entry) => entry.register_id,
        EntityKind::DigestEntry(entry) => entry.digest_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::p4::v1::{
        ActionProfileGroup, ActionProfileMember, CounterEntry, DigestEntry, DirectCounterEntry,
        DirectMeterEntry, Entity, ExternEntry, MeterEntry, PacketReplicationEngineEntry, RegisterEntry,
        TableEntry, ValueSetEntry,
    };
    use p4rack_p4rt::stratum::p4_role_config::PacketFilter;

    fn asked(config: &P4RoleConfig) -> Result<Option<Access>, Refusal> {
        let given = Any { type_url: format!("type.googleapis.com{TYPE}"), value: config.encode_to_vec() };
        Access::of(Some(&Role { name: "a".into(), config: Some(given), ..Default::default() }))
    }

    fn access(config: &P4RoleConfig) -> Access {
        asked(config).unwrap().unwrap()
    }

    fn named(exclusive: &[u32], shared: &[u32]) -> Access {
        access(&P4RoleConfig {
            exclusive_p4_ids: exclusive.to_vec(),
            shared_p4_ids: shared.to_vec(),
            ..Default::default()
        })
    }

    #[test]
    fn only_a_role_with_a_config_is_restricted() {
        assert_eq!(Access::of(None), Ok(None));
        assert_eq!(Access::of(Some(&Role { name: "a".into(), ..Default::default() })), Ok(None));
        let empty = access(&P4RoleConfig::default());
        assert!(!empty.installs && !empty.includes(1) && !empty.takes(&[]));
        assert!(access(&P4RoleConfig { can_push_pipeline: true, ..Default::default() }).installs);
    }

    #[test]
    fn roles_may_share_an_object_that_neither_has_for_itself() {
        for (one, other, conflict) in [
            (named(&[], &[7]), named(&[], &[7]), None),
            (named(&[7], &[]), named(&[8], &[9]), None),
            (named(&[6, 7], &[]), named(&[7, 8], &[]), Some(7)),
            (named(&[6, 7], &[]), named(&[8], &[7]), Some(7)),
            (named(&[6], &[7]), named(&[7], &[6]), Some(6)),
        ] {
            assert_eq!(one.conflict(&other), conflict, "{one:?}, {other:?}");
            assert_eq!(other.conflict(&one).is_some(), conflict.is_some(), "{other:?}, {one:?}");
        }
    }

    /// Every kind of entity by the id of its object; multicast groups and clone sessions have none.
    #[test]
    fn a_role_accesses_the_objects_that_its_config_names() {
        let table_entry = || Some(TableEntry { table_id: 7, ..Default::default() });
        let kinds = [
            EntityKind::ExternEntry(ExternEntry { extern_id: 7, ..Default::default() }),
            EntityKind::TableEntry(TableEntry { table_id: 7, ..Default::default() }),
            EntityKind::ActionProfileMember(ActionProfileMember {
                action_profile_id: 7,
                ..Default::default()
            }),
            EntityKind::ActionProfileGroup(ActionProfileGroup { action_profile_id: 7, ..Default::default() }),
            EntityKind::MeterEntry(MeterEntry { meter_id: 7, ..Default::default() }),
            EntityKind::DirectMeterEntry(DirectMeterEntry {
                table_entry: table_entry(),
                ..Default::default()
            }),
            EntityKind::CounterEntry(CounterEntry { counter_id: 7, ..Default::default() }),
            EntityKind::DirectCounterEntry(DirectCounterEntry {
                table_entry: table_entry(),
                ..Default::default()
            }),
            EntityKind::ValueSetEntry(ValueSetEntry { value_set_id: 7, ..Default::default() }),
            EntityKind::RegisterEntry(RegisterEntry { register_id: 7, ..Default::default() }),
            EntityKind::DigestEntry(DigestEntry { digest_id: 7, ..Default::default() }),
        ];
        let without_id = EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry::default());
        let code = |checked: Checked<()>| checked.err().map(|error| error.code);
        for (role, refused) in [
            (named(&[7], &[8]), None),
            (named(&[8], &[7]), None),
            (named(&[6], &[8]), Some(Code::PermissionDenied)),
        ] {
            for kind in &kinds {
                let entity = Some(Entity { entity: Some(kind.clone()) });
                let update = Update { r#type: 1, entity };
                assert_eq!(code(role.check_entity(Some(kind))), refused, "{role:?}: {kind:?}");
                assert_eq!(code(role.check_update(&update)), refused, "{role:?}: {kind:?}");
            }
            assert_eq!(code(role.check_entity(Some(&without_id))), None);
            assert_eq!(code(role.check_update(&Update::default())), None, "refused for what it lacks");
        }
        let refused = named(&[6], &[]).check_entity(Some(&kinds[1])).unwrap_err();
        assert!(refused.message.contains("id 7 (0x00000007)"), "{refused:?}");
    }

    /// A filter is one field and its value, however long the value is written.
    #[test]
    fn a_filter_selects_packets_by_one_metadata_field() {
        let field = |metadata_id, value: &[u8]| PacketMetadata { metadata_id, value: value.to_vec() };
        let wants = |packet_in_filter, receives_packet_ins| {
            asked(&P4RoleConfig { packet_in_filter, receives_packet_ins, ..Default::default() })
        };
        let filter = Some(PacketFilter { metadata_id: 3, value: vec![0, 2] });
        let role = wants(filter.clone(), true).unwrap().unwrap();
        for (metadata, is_taken) in [
            (vec![field(3, &[2])], true),
            (vec![field(1, &[5]), field(3, &[2])], true),
            (vec![field(3, &[3])], false),
            (vec![field(2, &[2])], false),
            (vec![field(2, &[2]), field(3, &[1])], false),
            (vec![], false),
        ] {
            assert_eq!(role.takes(&metadata), is_taken, "{metadata:?}");
        }
        assert!(wants(None, true).unwrap().unwrap().takes(&[]));
        assert!(!wants(None, false).unwrap().unwrap().takes(&[]));
        assert_eq!(wants(filter, false).unwrap_err().code, Code::InvalidArgument);
    }
}
