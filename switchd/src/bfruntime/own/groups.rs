//! Groups of selectors: members in their order, each with its status, and how many there may be. P4Runtime's groups have
//! neither order nor members that are inactive.

use super::super::fixed::Step;
use super::super::outcome::invalid;
use super::{Lookup, Own, PAGE};
use p4rack_bfrt::p4runtime::{from_number, to_number};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, Program, Snapshot, control, refuse};
use p4rack_p4::ir::InstanceId;
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{Share, Switch};
use std::sync::Arc;

/// Members of a group.
const MOST: usize = 1 << 16;

const GROUP: &str = "$SELECTOR_GROUP_ID";
const MEMBERS: &str = "$ACTION_MEMBER_ID";
const STATUS: &str = "$ACTION_MEMBER_STATUS";
const SIZE: &str = "$MAX_GROUP_SIZE";
const HASH: &str = "hash_value";

/// A selector.
#[derive(Clone, Copy, Debug)]
pub struct Selector {
    pub instance: InstanceId,
    /// Members of its largest group.
    pub most: u32,
    /// Maximum number of groups; 0: the switch's limit.
    pub groups: u64,
}

/// A group as an update gives it.
#[derive(Clone, Debug)]
struct Given {
    members: Option<Vec<(u32, Share)>>,
    size: Option<u32>,
}

/// Members of a selector's largest group, as far as the switch takes them.
pub fn most_members(selector: Selector) -> usize {
    (selector.most as usize).min(MOST)
}

fn number_in_switch(entry: &Entry, id: u64) -> Checked<u32> {
    match u32::try_from(id) {
        Ok(id) => to_number(entry.table(), id),
        Err(_) => invalid(format!("table `{}`: members and groups have numbers of 32 bits", entry.table())),
    }
}

fn group_of(entry: &Entry) -> Checked<u32> {
    match entry.exact_number(GROUP) {
        Some(id) => number_in_switch(entry, id),
        None => invalid(format!("table `{}`: the entry's key needs `{GROUP}`", entry.table())),
    }
}

fn given(entry: &Entry, selector: Selector) -> Checked<Given> {
    let table = entry.table();
    let status = match entry.get(STATUS) {
        Some(Value::Bools(status)) => Some(status),
        _ => None,
    };
    let members = match entry.get(MEMBERS) {
        Some(Value::Numbers(members)) => Some(members),
        _ if status.is_some_and(|status| !status.is_empty()) => {
            return invalid(format!("table `{table}`: {STATUS} is given without {MEMBERS}"));
        }
        _ => None,
    };
    if let (Some(status), Some(members)) = (status, members)
        && status.len() != members.len()
    {
        return invalid(format!(
            "table `{table}`: {} members, but {} values of {STATUS}; give one for each",
            members.len(),
            status.len()
        ));
    }
    if members.is_some_and(|members| members.len() > MOST) {
        return invalid(format!("table `{table}`: more than {MOST} members in a group"));
    }
    let share = |(at, id): (usize, &u32)| {
        let is_active = status.is_none_or(|status| status.get(at).copied().unwrap_or(true));
        Ok((number_in_switch(entry, (*id).into())?, Share { is_active, ..Share::from(1) }))
    };
    let members = members.map(|members| members.iter().enumerate().map(share).collect::<Checked<_>>());
    let size = entry.get(SIZE).and_then(Value::number).map(|size| u32::try_from(size).unwrap_or(u32::MAX));
    if size.is_some_and(|size| size == 0 || size > selector.most) {
        let most = selector.most;
        return invalid(format!("table `{table}`: {SIZE} is 1 to {most}, as the program says"));
    }
    Ok(Given { members: members.transpose()?, size })
}

/// The largest size of a group as it was written.
fn size_of(program: &Program, switch: &Switch, selector: Selector, group: u32) -> u32 {
    let limit = program.group_limits().get(switch, selector.instance, group);
    limit.and_then(|limit| u32::try_from(limit).ok()).filter(|size| *size > 0).unwrap_or(selector.most)
}

fn set_size(program: &Program, switch: &Switch, selector: Selector, group: u32, size: Option<u32>) {
    let size = size.and_then(|size| i32::try_from(size).ok());
    program.group_limits().set(switch, selector.instance, group, size);
}

/// Changes one group, or removes it.
fn change(
    own: &Own,
    switch: &mut Switch,
    kind: Type,
    (table, selector, group): (&str, Selector, u32),
    given: Given,
) -> Checked<()> {
    let instance = selector.instance;
    let there = control(switch.group(instance, group))?;
    let shown = from_number(group);
    match (kind, &there) {
        (Type::Insert, Some(_)) => {
            return refuse(Code::AlreadyExists, format!("table `{table}` has group {shown}"));
        }
        (Type::Modify | Type::Delete, None) => {
            return refuse(Code::NotFound, format!("table `{table}` has no group {shown}"));
        }
        (Type::Insert | Type::InsertOrModify, None) if selector.groups > 0 => {
            let count = control(switch.group_count(instance))? as u64;
            if count >= selector.groups {
                let message = format!("table `{table}` is full: it has {count} groups");
                return refuse(Code::ResourceExhausted, message);
            }
        }
        _ => {}
    }
    if kind == Type::Delete {
        control(switch.group_remove(instance, group))?;
        set_size(&own.program, switch, selector, group, None);
        return Ok(());
    }
    let is_given = given.members.is_some();
    let mut members = given.members.or(there).unwrap_or_default();
    let size = given.size.unwrap_or_else(|| size_of(&own.program, switch, selector, group));
    if members.len() > size as usize {
        let message = format!("table `{table}`: {} members, and the group's size is {size}", members.len());
        return invalid(message);
    }
    if is_given && !own.config.selector_member_order() {
        members.sort_by_key(|(member, _)| from_number(*member));
    }
    if !members.iter().any(|(_, share)| share.is_active) && control(switch.uses_group(instance, group))? {
        return invalid(format!(
            "table `{table}`: entries refer to group {shown}, so it needs a member that is active"
        ));
    }
    control(switch.group_set(instance, group, members))?;
    set_size(&own.program, switch, selector, group, Some(size));
    Ok(())
}

impl Own {
    /// An update of a group, or, with `all`, the deletion of all.
    pub(super) fn groups_step(
        self: &Arc<Own>,
        kind: Type,
        entry: &Entry,
        all: bool,
        selector: Selector,
    ) -> Checked<Step> {
        let group = if all { None } else { Some(group_of(entry)?) };
        let given = match kind {
            Type::Delete => Given { members: None, size: None },
            _ => given(entry, selector)?,
        };
        let (instance, saved) = (selector.instance, self.program.clone());
        let snapshot: Snapshot = Box::new(move |switch| {
            let before = match group {
                Some(group) => vec![(group, switch.group(instance, group).ok().flatten())],
                None => {
                    let all = switch.groups(instance).unwrap_or_default().into_iter();
                    all.map(|(group, shares)| (group, Some(shares))).collect()
                }
            };
            let sizes: Vec<Option<i32>> = {
                let limits = saved.group_limits();
                before.iter().map(|(group, _)| limits.get(switch, instance, *group)).collect()
            };
            Box::new(move |switch| {
                for ((group, shares), size) in before.into_iter().zip(sizes) {
                    let _ = match shares {
                        Some(shares) => switch.group_set(instance, group, shares),
                        None => switch.group_remove(instance, group),
                    };
                    set_size(&saved, switch, selector, group, size.and_then(|size| u32::try_from(size).ok()));
                }
            })
        });
        let (own, table) = (self.clone(), entry.table().to_owned());
        let change: Change = Box::new(move |switch, _| match group {
            Some(group) => {
                // All pipes have it, or each has its own.
                let is_common = switch.is_partial() && !switch.profile_is_apart(instance);
                if is_common && control(switch.group(instance, group))?.is_some() {
                    let group = from_number(group);
                    return refuse(
                        Code::NotFound,
                        format!("table `{table}`: group {group} is one of all pipes; name all, 0xffff"),
                    );
                }
                change(&own, switch, kind, (&table, selector, group), given)
            }
            None => {
                let groups: Vec<u32> = control(switch.groups(instance))?.into_keys().collect();
                for group in &groups {
                    if control(switch.uses_group(instance, *group))? {
                        let group = from_number(*group);
                        let message =
                            format!("table `{table}`: entries refer to group {group}; delete them first");
                        return refuse(Code::FailedPrecondition, message);
                    }
                }
                groups.into_iter().try_for_each(|group| {
                    change(&own, switch, Type::Delete, (&table, selector, group), given.clone())
                })
            }
        });
        Ok(Step { snapshot: Some(snapshot), change })
    }

    /// A read of a group, or of those from a number on.
    pub(super) fn groups_lookup(
        self: &Arc<Own>,
        entry: &Entry,
        all: bool,
        from: u64,
        selector: Selector,
    ) -> Checked<Lookup> {
        let wanted = if all { None } else { Some(group_of(entry)?) };
        let (own, table) = (self.clone(), entry.table().to_owned());
        Ok(Box::new(move |switch| {
            let instance = selector.instance;
            let one = |group: u32, shares: Vec<(u32, Share)>| {
                let each = |(member, share): (u32, Share)| {
                    std::iter::repeat_n((from_number(member), share.is_active), share.weight as usize)
                };
                let (ids, status) = shares.into_iter().flat_map(each).take(MOST).unzip();
                let shown = Entry::of(&table)
                    .exact(GROUP, from_number(group).into())
                    .data(MEMBERS, Value::Numbers(ids))
                    .data(STATUS, Value::Bools(status))
                    .data(SIZE, size_of(&own.program, switch, selector, group));
                own.build(&shown)
            };
            if let Some(group) = wanted {
                return match control(switch.group(instance, group))? {
                    Some(shares) => Ok((vec![one(group, shares)?], None)),
                    None => {
                        refuse(Code::NotFound, format!("table `{table}` has no group {}", from_number(group)))
                    }
                };
            }
            let (mut next, mut found) = (u32::try_from(from).ok(), Vec::new());
            while let Some(at) = next.take_if(|_| (found.len() as u64) < PAGE) {
                let Some(group) = control(switch.next_group(instance, at))? else { break };
                if let Some(shares) = control(switch.group(instance, group))? {
                    found.push(one(group, shares)?);
                }
                next = group.checked_add(1);
            }
            Ok((found, next.map(u64::from)))
        }))
    }

    /// A read of the member that packets with a hash get.
    pub(super) fn selected_lookup(self: &Arc<Own>, entry: &Entry, instance: InstanceId) -> Checked<Lookup> {
        let group = group_of(entry)?;
        let Some(hash) = entry.exact_number(HASH) else {
            return invalid(format!("table `{}`: the entry's key needs `{HASH}`", entry.table()));
        };
        let (own, table) = (self.clone(), entry.table().to_owned());
        Ok(Box::new(move |switch| {
            let shown = from_number(group);
            match control(switch.selected_member(instance, group, hash))? {
                Some(member) => {
                    let found = Entry::of(&table)
                        .exact(GROUP, shown.into())
                        .exact(HASH, hash.into())
                        .data(MEMBERS, from_number(member));
                    Ok((vec![own.build(&found)?], None))
                }
                None => {
                    let message = format!("table `{table}`: group {shown} has no member that is active");
                    refuse(Code::NotFound, message)
                }
            }
        }))
    }
}
