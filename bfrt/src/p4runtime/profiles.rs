//! Members and groups of action profiles and selectors.

use super::tables::{ActionPlan, actions, from_action, to_action};
use super::{Translated, field_id, from_number, index, index_id, index_key, invalid, name_of, to_number};
use crate::schema::{Schema, Table};
use p4rack_p4rt::bfrt_proto::data_field::{self, BoolArray, IntArray};
use p4rack_p4rt::bfrt_proto::{DataField, TableData, TableEntry};
use p4rack_p4rt::p4::config::v1::{self as config, P4Info};
use p4rack_p4rt::p4::v1::{ActionProfileGroup, ActionProfileMember, action_profile_group};
use std::collections::HashMap;

/// Suffix of the table that holds the members of a selector without an action profile.
const OF_SELECTOR: &str = "_ap";

/// The selector whose members a table holds: P4Runtime gives them to the selector, in any form of the program.
pub(super) fn of_selector<'a>(
    table: &Table,
    schema: &Schema,
    info: &'a P4Info,
) -> Option<&'a config::ActionProfile> {
    let mut selectors = schema.tables().iter().filter(|other| other.table_type == "Selector");
    let user = selectors.find(|selector| selector.depends_on.contains(&table.id));
    let name = user.map_or_else(|| table.name.strip_suffix(OF_SELECTOR), |user| Some(&user.name))?;
    let inner = name.split_once('.').map_or(name, |(_, inner)| inner);
    let mut all = info.action_profiles.iter();
    all.find(|profile| [name, inner].contains(&name_of(profile.preamble.as_ref())))
}

/// Members of a group, each named as often as it weighs.
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
        let member_id = member_id.map_or(Ok(0), |id| to_number(&self.name, id))?;
        Ok(ActionProfileMember { action_profile_id: self.p4_id, member_id, action: None })
    }

    pub(super) fn entity(&self, entry: &TableEntry) -> Translated<ActionProfileMember> {
        let mut member = self.request(entry)?;
        let of = format!("table `{}`", self.name);
        let given = entry.data.as_ref();
        let action = given.and_then(|data| self.actions.iter().find(|plan| plan.is(data.action_id)));
        let mut fields = given.iter().flat_map(|data| &data.fields).map(|field| field.field_id);
        if let Some(id) = fields.find(|id| !action.is_some_and(|action| action.owns(*id))) {
            return invalid(format!("{of}: a member with this action has no field with id {id}"));
        }
        let data = given.filter(|data| data.action_id != 0);
        member.action = data.map(|data| to_action(&of, &self.actions, data)).transpose()?;
        Ok(member)
    }

    pub(super) fn entry(&self, member: &ActionProfileMember) -> Translated<TableEntry> {
        let of = format!("table `{}`", self.name);
        let data =
            member.action.as_ref().map(|action| from_action(&of, &self.actions, action)).transpose()?;
        Ok(TableEntry {
            value: index_key(self.key, from_number(member.member_id)),
            data,
            ..Default::default()
        })
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
        let group_id = group_id.map_or(Ok(0), |id| to_number(&self.name, id))?;
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
        if members.len() > MOST {
            let (name, count) = (&self.name, members.len());
            return invalid(format!("table `{name}`: {count} members in a group; {MOST} are the limit"));
        }
        let mut places = HashMap::new();
        for (at, member_id) in members.iter().enumerate() {
            if !status.is_none_or(|status| status[at]) {
                continue;
            }
            let member_id = to_number(&self.name, *member_id)?;
            let place = *places.entry(member_id).or_insert(group.members.len());
            match group.members.get_mut(place) {
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
        let each =
            |member| std::iter::repeat_n(member, weight(member)).map(|member| from_number(member.member_id));
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
        Ok(TableEntry { value: index_key(self.key, from_number(group.group_id)), data, ..Default::default() })
    }
}
