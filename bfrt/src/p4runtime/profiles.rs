//! Members and groups of action profiles and selectors.

use super::tables::{ActionPlan, actions, from_action, to_action};
use super::{Translated, field_id, index, index_id, index_key, invalid, name_of};
use crate::schema::Table;
use p4rack_p4rt::bfrt_proto::data_field::{self, BoolArray, IntArray};
use p4rack_p4rt::bfrt_proto::{DataField, TableData, TableEntry};
use p4rack_p4rt::p4::config::v1::{self as config, P4Info};
use p4rack_p4rt::p4::v1::{ActionProfileGroup, ActionProfileMember, action_profile_group};

/// Suffix of the table that holds the members of a selector without an action profile.
const OF_SELECTOR: &str = "_ap";

/// The selector whose members this table holds, if it is such a table.
pub(super) fn of_selector<'a>(table: &Table, info: &'a P4Info) -> Option<&'a config::ActionProfile> {
    let name = table.name.strip_suffix(OF_SELECTOR)?;
    let inner = name.split_once('.').map_or(name, |(_, inner)| inner);
    let mut all = info.action_profiles.iter();
    all.find(|profile| [name, inner].contains(&name_of(profile.preamble.as_ref())))
}

/// A group lists a member once per unit of its weight, at most this often.
const MOST: usize = 1 << 16;

/// Members.
#[derive(Clone, Debug)]
pub(super) struct MemberPlan {
    name: String,
    p4_id: u32,
    key: u32,
    actions: Vec<ActionPlan>,
}

impl MemberPlan {
    pub(super) fn new(table: &Table, p4_id: u32, info: &P4Info) -> Result<MemberPlan, String> {
        Ok(MemberPlan {
            name: table.name.clone(),
            p4_id,
            key: index_id(table)?,
            actions: actions(table, info)?,
        })
    }

    pub(super) fn request(&self, entry: &TableEntry) -> Translated<ActionProfileMember> {
        let member_id = index(&self.name, self.key, entry)?;
        let member_id = member_id.map_or(Ok(0), |id| numbered(&self.name, id))?;
        Ok(ActionProfileMember { action_profile_id: self.p4_id, member_id, action: None })
    }

    pub(super) fn entity(&self, entry: &TableEntry) -> Translated<ActionProfileMember> {
        let mut member = self.request(entry)?;
        let of = format!("table `{}`", self.name);
        let data = entry.data.as_ref().filter(|data| data.action_id != 0);
        member.action = data.map(|data| to_action(&of, &self.actions, data)).transpose()?;
        Ok(member)
    }

    pub(super) fn entry(&self, member: &ActionProfileMember) -> Translated<TableEntry> {
        let of = format!("table `{}`", self.name);
        let data =
            member.action.as_ref().map(|action| from_action(&of, &self.actions, action)).transpose()?;
        Ok(TableEntry { value: index_key(self.key, member.member_id), data, ..Default::default() })
    }
}

/// P4Runtime has no member and no group 0: it means all.
fn numbered(name: &str, id: u32) -> Translated<u32> {
    match id {
        0 => invalid(format!("table `{name}`: members and groups are numbered from 1 here")),
        id => Ok(id),
    }
}

/// The groups of a selector.
#[derive(Clone, Debug)]
pub(super) struct GroupPlan {
    name: String,
    p4_id: u32,
    key: u32,
    members: u32,
    status: u32,
    size: Option<u32>,
}

impl GroupPlan {
    pub(super) fn new(table: &Table, p4_id: u32) -> Result<GroupPlan, String> {
        let need = |name: &str| {
            field_id(table, name).ok_or_else(|| format!("table `{}` has no field `{name}`", table.name))
        };
        Ok(GroupPlan {
            name: table.name.clone(),
            p4_id,
            key: index_id(table)?,
            members: need("$ACTION_MEMBER_ID")?,
            status: need("$ACTION_MEMBER_STATUS")?,
            size: field_id(table, "$MAX_GROUP_SIZE"),
        })
    }

    pub(super) fn request(&self, entry: &TableEntry) -> Translated<ActionProfileGroup> {
        let group_id = index(&self.name, self.key, entry)?;
        let group_id = group_id.map_or(Ok(0), |id| numbered(&self.name, id))?;
        Ok(ActionProfileGroup { action_profile_id: self.p4_id, group_id, ..Default::default() })
    }

    /// Inactive members are left out. A member that is listed several times has that weight.
    pub(super) fn entity(&self, entry: &TableEntry) -> Translated<ActionProfileGroup> {
        let mut group = self.request(entry)?;
        let (mut members, mut status) = (&[][..], None);
        for field in entry.data.iter().flat_map(|data| &data.fields) {
            match &field.value {
                Some(data_field::Value::IntArrVal(array)) if field.field_id == self.members => {
                    members = &array.val;
                }
                Some(data_field::Value::BoolArrVal(array)) if field.field_id == self.status => {
                    status = Some(&array.val[..]);
                }
                Some(data_field::Value::Stream(value)) if Some(field.field_id) == self.size => {
                    let size = super::u32_of(&self.name, value)?;
                    group.max_size = i32::try_from(size).unwrap_or(i32::MAX);
                }
                _ => {
                    let id = field.field_id;
                    return invalid(format!(
                        "table `{}`: field {id} is none of a group's, or of another kind",
                        self.name
                    ));
                }
            }
        }
        if let Some(status) = status
            && status.len() != members.len()
        {
            return invalid(format!(
                "table `{}`: {} members, but {} values of $ACTION_MEMBER_STATUS; give one for each",
                self.name,
                members.len(),
                status.len()
            ));
        }
        for (at, member_id) in members.iter().enumerate() {
            if !status.is_none_or(|status| status[at]) {
                continue;
            }
            let member_id = numbered(&self.name, *member_id)?;
            match group.members.iter_mut().find(|member| member.member_id == member_id) {
                Some(member) => member.weight += 1,
                None => group.members.push(action_profile_group::Member {
                    member_id,
                    weight: 1,
                    ..Default::default()
                }),
            }
        }
        Ok(group)
    }

    pub(super) fn entry(&self, group: &ActionProfileGroup) -> Translated<TableEntry> {
        let weight =
            |member: &action_profile_group::Member| usize::try_from(member.weight).unwrap_or(0).min(MOST);
        let each = |member| std::iter::repeat_n(member, weight(member)).map(|member| member.member_id);
        let val: Vec<u32> = group.members.iter().flat_map(each).collect();
        let status = data_field::Value::BoolArrVal(BoolArray { val: vec![true; val.len()] });
        let mut fields = vec![
            DataField { field_id: self.members, value: Some(data_field::Value::IntArrVal(IntArray { val })) },
            DataField { field_id: self.status, value: Some(status) },
        ];
        if let Some(field_id) = self.size {
            let size = u32::try_from(group.max_size).unwrap_or(0).to_be_bytes().to_vec();
            fields.push(DataField { field_id, value: Some(data_field::Value::Stream(size)) });
        }
        let data = Some(TableData { action_id: 0, fields });
        Ok(TableEntry { value: index_key(self.key, group.group_id), data, ..Default::default() })
    }
}
