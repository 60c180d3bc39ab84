//! Members and groups of action profiles.

use super::table::ActionItem;
use crate::error::CtrlError;
use p4rack_p4rt::bytes;
use p4rack_p4rt::p4::v1::action_profile_group::{Member, member::WatchKind};
use p4rack_p4rt::p4::v1::{ActionProfileGroup, ActionProfileMember};
use p4rack_p4rt::schema::{Schema, id_of, name_of};
use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter};

/// A member of an action profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberItem {
    /// Name of the action profile.
    pub profile: String,
    /// Id of the member.
    pub member: u32,
    /// Action of the member.
    #[serde(flatten)]
    pub action: Option<ActionItem>,
}

/// A group of an action profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupItem {
    /// Name of the action profile.
    pub profile: String,
    /// Id of the group.
    pub group: u32,
    /// Members of the group.
    pub members: Vec<GroupMember>,
    /// Maximum members; 0 is as many as the profile allows.
    #[serde(default)]
    pub max_size: i32,
}

/// A member in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMember {
    /// Id of the member.
    pub member: u32,
    /// Weight relative to the other members.
    pub weight: i32,
    /// The member is only chosen while this port is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch_port: Option<u32>,
}

impl MemberItem {
    pub(super) fn message(&self, schema: &Schema) -> Result<ActionProfileMember, CtrlError> {
        Ok(ActionProfileMember {
            action_profile_id: id_of(schema.profile(&self.profile)?.preamble.as_ref()),
            member_id: self.member,
            action: self.action.as_ref().map(|action| action.called(schema)).transpose()?,
        })
    }

    pub(super) fn of(schema: &Schema, member: &ActionProfileMember) -> Result<MemberItem, CtrlError> {
        let action =
            member.action.as_ref().map(|action| ActionItem::of_action(schema, action)).transpose()?;
        let profile = profile_name(schema, member.action_profile_id)?;
        Ok(MemberItem { profile, member: member.member_id, action })
    }
}

impl GroupItem {
    pub(super) fn message(&self, schema: &Schema) -> Result<ActionProfileGroup, CtrlError> {
        let member = |member: &GroupMember| Member {
            member_id: member.member,
            weight: member.weight,
            watch_kind: member.watch_port.map(|port| WatchKind::WatchPort(bytes::from_u128(port.into()))),
        };
        Ok(ActionProfileGroup {
            action_profile_id: id_of(schema.profile(&self.profile)?.preamble.as_ref()),
            group_id: self.group,
            members: self.members.iter().map(member).collect(),
            max_size: self.max_size,
        })
    }

    pub(super) fn of(schema: &Schema, group: &ActionProfileGroup) -> Result<GroupItem, CtrlError> {
        let member = |member: &Member| GroupMember {
            member: member.member_id,
            weight: member.weight,
            watch_port: match &member.watch_kind {
                Some(WatchKind::WatchPort(port)) => {
                    bytes::to_u128(port).and_then(|port| u32::try_from(port).ok())
                }
                _ => None,
            },
        };
        Ok(GroupItem {
            profile: profile_name(schema, group.action_profile_id)?,
            group: group.group_id,
            members: group.members.iter().map(member).collect(),
            max_size: group.max_size,
        })
    }
}

fn profile_name(schema: &Schema, id: u32) -> Result<String, CtrlError> {
    Ok(name_of(schema.profile_by_id(id)?.preamble.as_ref()).into())
}

impl std::str::FromStr for GroupMember {
    type Err = String;

    /// `MEMBER`, `MEMBER:WEIGHT` or `MEMBER:WEIGHT@PORT`.
    fn from_str(text: &str) -> Result<GroupMember, String> {
        let wrong = || format!("`{text}` is not MEMBER, MEMBER:WEIGHT or MEMBER:WEIGHT@PORT");
        let (rest, port) = match text.split_once('@') {
            Some((rest, port)) => (rest, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let (member, weight) = rest.split_once(':').unwrap_or((rest, "1"));
        Ok(GroupMember {
            member: member.parse().map_err(|_| wrong())?,
            weight: weight.parse().map_err(|_| wrong())?,
            watch_port: port,
        })
    }
}

impl Display for MemberItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "action profile {} member {}", self.profile, self.member)?;
        match &self.action {
            Some(action) => write!(f, " -> {action}"),
            None => Ok(()),
        }
    }
}

impl Display for GroupItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "action profile {} group {}", self.profile, self.group)?;
        for GroupMember { member, weight, watch_port } in &self.members {
            write!(f, " {member}:{weight}")?;
            if let Some(port) = watch_port {
                write!(f, "@{port}")?;
            }
        }
        Ok(())
    }
}
