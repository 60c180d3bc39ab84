//! Multicast groups, clone sessions, digests and value sets.

use crate::error::CtrlError;
use crate::values::{parse_match, show_match};
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::v1::{
    BackupReplica, CloneSessionEntry, DigestEntry, FieldMatch, MulticastGroupEntry, Replica, ValueSetEntry,
    ValueSetMember, digest_entry, replica,
};
use p4rack_p4rt::schema::{Schema, id_of, name_of};
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

/// A copy of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaItem {
    /// Where the copy goes.
    #[serde(flatten)]
    pub at: PlaceItem,
    /// Where it goes instead while the preceding ports are down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backups: Vec<PlaceItem>,
}

/// A port with an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlaceItem {
    /// Egress port of the copy.
    pub port: u32,
    /// Distinguishes copies at one port.
    pub instance: u32,
}

/// A multicast group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MulticastItem {
    /// Id of the group.
    pub group: u32,
    /// Copies to make.
    pub replicas: Vec<ReplicaItem>,
}

/// A clone session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloneItem {
    /// Id of the session.
    pub session: u32,
    /// Copies to make.
    pub replicas: Vec<ReplicaItem>,
    /// Class of service of the copies.
    #[serde(default)]
    pub class_of_service: u32,
    /// Length to which copies are truncated, in bytes; 0 is not at all.
    #[serde(default)]
    pub packet_length_bytes: i32,
}

/// Configuration of a digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestItem {
    /// Name of the digest.
    pub digest: String,
    /// Maximum time that a message waits for others, in ns.
    pub max_timeout_ns: i64,
    /// Maximum messages per list; 0 is no limit.
    pub max_list_size: i32,
    /// How long duplicates are suppressed without an acknowledgement, in ns.
    pub ack_timeout_ns: i64,
}

/// The members of a parser value set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueSetItem {
    /// Name of the value set.
    pub value_set: String,
    /// Members, each with the set's fields in order.
    pub members: Vec<Vec<String>>,
}

impl std::str::FromStr for ReplicaItem {
    type Err = String;

    /// `PORT` or `PORT:INSTANCE`; backups after slashes.
    fn from_str(text: &str) -> Result<ReplicaItem, String> {
        let (at, backups) = text.split_once('/').map_or((text, None), |(at, rest)| (at, Some(rest)));
        let backups = backups.into_iter().flat_map(|rest| rest.split('/')).map(place);
        Ok(ReplicaItem { at: place(at)?, backups: backups.collect::<Result<_, _>>()? })
    }
}

fn place(text: &str) -> Result<PlaceItem, String> {
    let wrong = || format!("`{text}` is not PORT or PORT:INSTANCE; backups follow after /, as in 1/2:5");
    let (port, instance) = text.split_once(':').unwrap_or((text, "1"));
    Ok(PlaceItem {
        port: port.parse().map_err(|_| wrong())?,
        instance: instance.parse().map_err(|_| wrong())?,
    })
}

impl Display for ReplicaItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.at.port, self.at.instance)?;
        self.backups.iter().try_for_each(|place| write!(f, "/{}:{}", place.port, place.instance))
    }
}

fn backup(place: &PlaceItem) -> BackupReplica {
    BackupReplica { port: bytes::from_u128(place.port.into()), instance: place.instance }
}

/// Uses the older of the two ways to name a port, which every server supports.
fn to_replicas(items: &[ReplicaItem]) -> Vec<Replica> {
    #[allow(deprecated)]
    let replica = |item: &ReplicaItem| Replica {
        port_kind: Some(replica::PortKind::EgressPort(item.at.port)),
        instance: item.at.instance,
        backup_replicas: item.backups.iter().map(backup).collect(),
    };
    items.iter().map(replica).collect()
}

fn of_replicas(replicas: &[Replica]) -> Vec<ReplicaItem> {
    let number =
        |port: &[u8]| bytes::to_u128(port).and_then(|port| u32::try_from(port).ok()).unwrap_or(u32::MAX);
    #[allow(deprecated)]
    let port = |replica: &Replica| match &replica.port_kind {
        Some(replica::PortKind::EgressPort(port)) => *port,
        Some(replica::PortKind::Port(port)) => number(port),
        None => 0,
    };
    let backup = |backup: &BackupReplica| PlaceItem { port: number(&backup.port), instance: backup.instance };
    let item = |replica: &Replica| ReplicaItem {
        at: PlaceItem { port: port(replica), instance: replica.instance },
        backups: replica.backup_replicas.iter().map(backup).collect(),
    };
    replicas.iter().map(item).collect()
}

impl MulticastItem {
    pub(super) fn message(&self) -> Result<MulticastGroupEntry, CtrlError> {
        let replicas = to_replicas(&self.replicas);
        Ok(MulticastGroupEntry { multicast_group_id: self.group, replicas, ..Default::default() })
    }

    pub(super) fn of(group: &MulticastGroupEntry) -> MulticastItem {
        MulticastItem { group: group.multicast_group_id, replicas: of_replicas(&group.replicas) }
    }
}

impl CloneItem {
    pub(super) fn message(&self) -> Result<CloneSessionEntry, CtrlError> {
        Ok(CloneSessionEntry {
            session_id: self.session,
            replicas: to_replicas(&self.replicas),
            class_of_service: self.class_of_service,
            packet_length_bytes: self.packet_length_bytes,
        })
    }

    pub(super) fn of(session: &CloneSessionEntry) -> CloneItem {
        CloneItem {
            session: session.session_id,
            replicas: of_replicas(&session.replicas),
            class_of_service: session.class_of_service,
            packet_length_bytes: session.packet_length_bytes,
        }
    }
}

impl DigestItem {
    pub(super) fn message(&self, schema: &Schema) -> Result<DigestEntry, CtrlError> {
        let DigestItem { max_timeout_ns, max_list_size, ack_timeout_ns, .. } = *self;
        Ok(DigestEntry {
            digest_id: id_of(schema.digest(&self.digest)?.preamble.as_ref()),
            config: Some(digest_entry::Config { max_timeout_ns, max_list_size, ack_timeout_ns }),
        })
    }

    pub(super) fn of(schema: &Schema, entry: &DigestEntry) -> Result<DigestItem, CtrlError> {
        let config = entry.config.unwrap_or_default();
        Ok(DigestItem {
            digest: name_of(schema.digest_by_id(entry.digest_id)?.preamble.as_ref()).into(),
            max_timeout_ns: config.max_timeout_ns,
            max_list_size: config.max_list_size,
            ack_timeout_ns: config.ack_timeout_ns,
        })
    }
}

impl ValueSetItem {
    pub(super) fn message(&self, schema: &Schema) -> Result<ValueSetEntry, CtrlError> {
        let set = schema.value_set(&self.value_set)?;
        let name = name_of(set.preamble.as_ref());
        let member = |values: &Vec<String>| {
            if values.len() != set.r#match.len() {
                let need = set.r#match.len();
                return Err(CtrlError::Input(format!("value set {name}: a member has {need} values")));
            }
            let mut keys = Vec::new();
            for (value, field) in values.iter().zip(&set.r#match) {
                let key = parse_match(value, field)
                    .map_err(|why| CtrlError::Input(format!("value set {name}: {why}")))?;
                if key.is_some() {
                    keys.push(FieldMatch { field_id: field.id, field_match_type: key });
                }
            }
            Ok(ValueSetMember { r#match: keys })
        };
        let members = self.members.iter().map(member).collect::<Result<_, CtrlError>>()?;
        Ok(ValueSetEntry { value_set_id: id_of(set.preamble.as_ref()), members })
    }

    pub(super) fn of(schema: &Schema, entry: &ValueSetEntry) -> Result<ValueSetItem, CtrlError> {
        let set = schema.value_set_by_id(entry.value_set_id)?;
        let member = |member: &ValueSetMember| {
            let value = |field: &p4rack_p4rt::p4::config::v1::MatchField| {
                let key = member.r#match.iter().find(|key| key.field_id == field.id);
                show_match(key.and_then(|key| key.field_match_type.as_ref()), field)
            };
            set.r#match.iter().map(value).collect()
        };
        Ok(ValueSetItem {
            value_set: name_of(set.preamble.as_ref()).into(),
            members: entry.members.iter().map(member).collect(),
        })
    }
}

fn show_replicas(replicas: &[ReplicaItem]) -> String {
    let show = |replica: &ReplicaItem| match &replica.at {
        PlaceItem { port, instance: 1 } if replica.backups.is_empty() => format!(" {port}"),
        _ => format!(" {replica}"),
    };
    let shown: String = replicas.iter().map(show).collect();
    if shown.is_empty() { shown } else { format!(" ports{shown}") }
}

impl Display for MulticastItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "multicast group {}{}", self.group, show_replicas(&self.replicas))
    }
}

impl Display for CloneItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "clone session {}{}", self.session, show_replicas(&self.replicas))
    }
}

impl Display for DigestItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let DigestItem { digest, max_timeout_ns, max_list_size, ack_timeout_ns } = self;
        write!(
            f,
            "digest {digest} max_timeout_ns={max_timeout_ns} max_list_size={max_list_size} \
             ack_timeout_ns={ack_timeout_ns}"
        )
    }
}

impl Display for ValueSetItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let members: Vec<String> = self.members.iter().map(|member| member.join(",")).collect();
        write!(f, "value set {} {{{}}}", self.value_set, members.join(" "))
    }
}
