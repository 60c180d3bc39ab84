//! Action profiles and selectors: members, groups, and references from table entries.

use super::{Answer, Change, Messages, Query, Snapshot};
use crate::ledger::Uses;
use crate::names::{Held, Look, PORT_BITS};
use crate::program::{Program, TableRef};
use crate::value::number;
use crate::{Checked, control, refuse};
use p4rack_p4::ir::{ActionCall, InstanceId, TableId};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::ActionProfile;
use p4rack_p4rt::p4::v1::{
    ActionProfileAction, ActionProfileActionSet, ActionProfileGroup, ActionProfileMember, Entity,
    TableAction, action_profile_action_set, action_profile_group, action_profile_group::member::WatchKind,
    table_action, update,
};
use p4rack_p4rt::schema::name_of;
use p4rack_p4rt::{API_VERSION, EntityKind};
use p4rack_switch::{self as switch, ActionSet, Indirect, Pick, Share, SizeOf, Switch};
use p4rack_wire::Nanos;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The action of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// An action of the entry itself.
    Call(ActionCall),
    /// A reference to an action profile.
    Indirect(Indirect),
}

/// Reads the action part of an entry's message. `held` gets the names that it uses.
pub(crate) fn doing(
    table: &TableRef<'_>,
    action: &TableAction,
    is_default: bool,
    held: &mut Vec<Held>,
) -> Checked<Doing> {
    let name = table.name();
    let invalid = |message: &str| refuse(Code::InvalidArgument, format!("table {name}: {message}"));
    let Some(kind) = &action.r#type else {
        return invalid("the action's type is not set");
    };
    let Some(profile) = table.ir.implementation else {
        return match kind {
            table_action::Type::Action(action) => {
                Ok(Doing::Call(table.call(action, is_default, Look::Take(held))?))
            }
            _ => invalid("it has no action profile; give it an action"),
        };
    };
    if is_default {
        return match kind {
            table_action::Type::Action(action) => {
                Ok(Doing::Call(table.call(action, true, Look::Take(held))?))
            }
            _ => invalid("the default entry takes an action, also where there is an action profile"),
        };
    }
    let selects = table.program.selects(profile);
    let indirect = match kind {
        table_action::Type::Action(_) => {
            return invalid(
                "its entries refer to an action profile; give a member, a group or an action set",
            );
        }
        table_action::Type::ActionProfileMemberId(member) => Indirect::Member(*member),
        _ if !selects => return invalid("its action profile has no selector; give it a member"),
        table_action::Type::ActionProfileGroupId(group) => Indirect::Group(*group),
        table_action::Type::ActionProfileActionSet(set) => {
            Indirect::Set(one_shot(table, set, Rules::of(table.program, profile), held)?)
        }
    };
    Ok(Doing::Indirect(indirect))
}

/// Rules of a selector for the weights and sizes of its groups.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    /// Whether weights are not given, so that all members get equal shares.
    weightless: bool,
    /// Whether the size is the number of members rather than the sum of weights.
    counts_members: bool,
    /// Maximum weight of a member; 0 is no limit.
    max_weight: u32,
    /// Maximum size of a group; 0 is no limit.
    max_size: u64,
}

impl Rules {
    fn new(info: &ActionProfile) -> Rules {
        use p4rack_p4rt::p4::config::v1::action_profile::SelectorSizeSemantics as Size;
        let (counts_members, max_weight) = match &info.selector_size_semantics {
            Some(Size::SumOfMembers(members)) => {
                (true, u32::try_from(members.max_member_weight).unwrap_or(0))
            }
            Some(Size::SumOfWeights(_)) | None => (false, 0),
        };
        let max_size = u64::try_from(info.max_group_size).unwrap_or(0);
        Rules { weightless: info.weights_disallowed, counts_members, max_weight, max_size }
    }

    fn of(program: &Program, profile: InstanceId) -> Rules {
        let mut all = program.info.action_profiles.iter();
        let info = all.find(|info| {
            info.preamble.as_ref().is_some_and(|it| program.profile(it.id).is_ok_and(|it| it.0 == profile))
        });
        info.map_or(Rules::default(), Rules::new)
    }

    /// A weight in the form that the switch needs.
    fn weight(&self, name: &str, weight: i32) -> Checked<u32> {
        let wrong = |why: String| refuse(Code::InvalidArgument, format!("{name}: weight {weight} {why}"));
        match u32::try_from(weight) {
            Ok(0) if self.weightless => Ok(1),
            _ if self.weightless => wrong("is given, but the selector finds weights itself".into()),
            Ok(weight @ 1..) if self.max_weight == 0 || weight <= self.max_weight => Ok(weight),
            Ok(1..) => wrong(format!("is over the selector's max_member_weight {}", self.max_weight)),
            _ => wrong("is not positive".into()),
        }
    }

    /// A weight in the form that the controller gave.
    fn shown(&self, share: &Share) -> i32 {
        if self.weightless { 0 } else { share.weight as i32 }
    }

    fn size<'a>(&self, shares: impl Iterator<Item = &'a Share>) -> u64 {
        shares.map(|share| if self.counts_members { 1 } else { u64::from(share.weight) }).sum()
    }
}

fn one_shot(
    table: &TableRef<'_>,
    set: &ActionProfileActionSet,
    mut rules: Rules,
    held: &mut Vec<Held>,
) -> Checked<ActionSet> {
    use action_profile_action_set::{ActionSelectionMode as Mode, SizeSemantics as Size};
    let name = table.name();
    let invalid = |what: String| refuse(Code::InvalidArgument, format!("table {name}: {what}"));
    if set.group_action.is_some() {
        let message = format!(
            "table {name}: group_action, of P4Runtime 1.6, is not offered; this switch offers {API_VERSION}: give each \
             action of the set the group's parameters too"
        );
        return refuse(Code::Unimplemented, message);
    }
    let pick = match Mode::try_from(set.action_selection_mode) {
        Ok(Mode::DefaultModeDeterminedByActionSelector) => Pick::Selector,
        Ok(Mode::Hash) => Pick::Hash,
        Ok(Mode::Random) => Pick::Random,
        Err(_) => return invalid(format!("no action selection mode {}", set.action_selection_mode)),
    };
    let size = match Size::try_from(set.size_semantics) {
        Ok(Size::DefaultSizeDeterminedByActionSelector) => SizeOf::Selector,
        Ok(Size::SumOfWeights) => SizeOf::Weights,
        Ok(Size::SumOfMembers) => SizeOf::Members,
        Err(_) => return invalid(format!("no size semantics {}", set.size_semantics)),
    };
    match size {
        SizeOf::Selector => {}
        SizeOf::Weights => (rules.counts_members, rules.max_weight) = (false, 0),
        SizeOf::Members => rules.counts_members = true,
    }
    let actions = set.action_profile_actions.iter().map(|action| one_action(table, action, rules, held));
    let actions = actions.collect::<Checked<Vec<_>>>()?;
    if actions.is_empty() {
        return invalid("the action set is empty".into());
    }
    let used = rules.size(actions.iter().map(|(_, share)| share));
    if rules.max_size != 0 && used > rules.max_size {
        return invalid(format!("the action set's size is {used}, over max_group_size {}", rules.max_size));
    }
    Ok(ActionSet { actions, pick, size })
}

fn one_action(
    table: &TableRef<'_>,
    action: &ActionProfileAction,
    rules: Rules,
    held: &mut Vec<Held>,
) -> Checked<(ActionCall, Share)> {
    let name = format!("table {}", table.name());
    use p4rack_p4rt::p4::v1::action_profile_action::WatchKind;
    let watch = match &action.watch_kind {
        None => None,
        #[allow(deprecated)]
        Some(WatchKind::Watch(port)) => watch_number(&name, *port)?,
        Some(WatchKind::WatchPort(port)) => watched(table.program, &name, port)?,
    };
    let Some(call) = &action.action else {
        return refuse(Code::InvalidArgument, format!("{name}: an action of the set is not set"));
    };
    Ok((
        table.call(call, false, Look::Take(held))?,
        Share { weight: rules.weight(&name, action.weight)?, watch, is_active: true },
    ))
}

/// A port to watch; empty is none. The switch checks whether it exists.
fn watched(program: &Program, name: &str, port: &[u8]) -> Checked<Option<u16>> {
    if port.is_empty() {
        return Ok(None);
    }
    match program.names.port(format_args!("{name} watch port"), port) {
        Ok(port) => Ok(Some(port)),
        Err(error) => refuse(Code::InvalidArgument, error.message),
    }
}

/// A port to watch, as a number, which is never translated.
fn watch_number(name: &str, port: i32) -> Checked<Option<u16>> {
    match number(format_args!("{name} watch port"), &port.to_be_bytes(), PORT_BITS) {
        Ok(port) => Ok(port.iter_u64_digits().next().map_or(Some(0), |port| u16::try_from(port).ok())),
        Err(error) => refuse(Code::InvalidArgument, error.message),
    }
}

/// The action part of an entry's message.
pub fn table_action(table: &TableRef<'_>, entry: &switch::TableEntry) -> Option<TableAction> {
    let kind = match &entry.indirect {
        None => table_action::Type::Action(table.action(&entry.call)?),
        Some(Indirect::Member(member)) => table_action::Type::ActionProfileMemberId(*member),
        Some(Indirect::Group(group)) => table_action::Type::ActionProfileGroupId(*group),
        Some(Indirect::Set(set)) => {
            use action_profile_action_set::{ActionSelectionMode as Mode, SizeSemantics as Size};
            use p4rack_p4rt::p4::v1::action_profile_action::WatchKind;
            let rules = Rules::of(table.program, table.ir.implementation?);
            let one = |(call, share): &(ActionCall, Share)| ActionProfileAction {
                action: table.action(call),
                weight: rules.shown(share),
                watch_kind: share
                    .watch
                    .map(|port| WatchKind::WatchPort(table.program.names.shown_port(port))),
            };
            let mode = match set.pick {
                Pick::Selector => Mode::DefaultModeDeterminedByActionSelector,
                Pick::Hash => Mode::Hash,
                Pick::Random => Mode::Random,
            };
            let size = match set.size {
                SizeOf::Selector => Size::DefaultSizeDeterminedByActionSelector,
                SizeOf::Weights => Size::SumOfWeights,
                SizeOf::Members => Size::SumOfMembers,
            };
            table_action::Type::ActionProfileActionSet(ActionProfileActionSet {
                action_profile_actions: set.actions.iter().map(one).collect(),
                action_selection_mode: mode as i32,
                size_semantics: size as i32,
                group_action: None,
            })
        }
    };
    Some(TableAction { r#type: Some(kind) })
}

impl Program {
    /// Whether an action profile has a selector.
    fn selects(&self, profile: InstanceId) -> bool {
        let kind = self.ir.instances.get(profile.0 as usize).map(|instance| &instance.kind);
        matches!(kind, Some(p4rack_p4::ir::InstanceKind::ActionSelector { .. }))
    }

    /// A table that uses the profile. Members refer to its list of actions.
    fn user(&self, info: &ActionProfile) -> Checked<TableRef<'_>> {
        match info.table_ids.first() {
            Some(table) => self.table(*table),
            None => {
                let name = name_of(info.preamble.as_ref());
                refuse(Code::InvalidArgument, format!("no table uses action profile {name}"))
            }
        }
    }
}

fn exists(switch: &Switch, profile: InstanceId, member: u32) -> bool {
    switch.has_member(profile, member).unwrap_or(false)
}

/// Checks the type of an update against what exists.
fn expect(kind: update::Type, exists: bool, what: &str) -> Checked<()> {
    match (kind, exists) {
        (update::Type::Insert, true) => refuse(Code::AlreadyExists, format!("{what} already exists")),
        (update::Type::Modify | update::Type::Delete, false) => {
            refuse(Code::NotFound, format!("there is no {what}"))
        }
        _ => Ok(()),
    }
}

/// Checks an update of a member.
pub fn write_member(
    program: &Arc<Program>,
    kind: update::Type,
    entry: &ActionProfileMember,
) -> Checked<Change> {
    let (profile, info) = program.profile(entry.action_profile_id)?;
    let (number, name) = (entry.member_id, name_of(info.preamble.as_ref()));
    if number == 0 {
        return refuse(Code::InvalidArgument, "member 0 means all in reads; number them from 1");
    }
    let what = format!("member {number} of {name}");
    if kind == update::Type::Delete {
        let program = program.clone();
        return Ok(Box::new(move |switch, _| {
            expect(kind, exists(switch, profile, number), &what)?;
            let before = uses_of_member(&program, switch, profile, number);
            program.exchange(&before, &Uses::default(), || control(switch.member_remove(profile, number)))
        }));
    }
    let Some(action) = &entry.action else {
        return refuse(Code::InvalidArgument, format!("{what}: the action is not set"));
    };
    let mut held = Vec::new();
    let user = program.user(info)?;
    let (table, call) = (user.id, user.call(action, false, Look::Take(&mut held))?);
    let program = program.clone();
    Ok(Box::new(move |switch, _| {
        expect(kind, exists(switch, profile, number), &what)?;
        let before = uses_of_member(&program, switch, profile, number);
        let after = match program.follows(table) {
            true => program.uses_of_call(table, Some(&call)),
            false => Uses::default(),
        };
        program.exchange(&before, &after, || control(switch.member_set(profile, number, call)))?;
        drop(held);
        Ok(())
    }))
}

/// References of a member.
fn uses_of_member(program: &Program, switch: &Switch, profile: InstanceId, member: u32) -> Uses {
    let tables = &program.ir.tables;
    let Some(table) = tables.iter().position(|table| table.implementation == Some(profile)) else {
        return Uses::default();
    };
    let table = TableId(table as u32);
    if !program.follows(table) {
        return Uses::default();
    }
    program.uses_of_call(table, switch.member(profile, member).ok().flatten().as_ref())
}

/// Checks an update of a group.
pub fn write_group(
    program: &Arc<Program>,
    kind: update::Type,
    entry: &ActionProfileGroup,
) -> Checked<Change> {
    let (profile, info) = program.profile(entry.action_profile_id)?;
    let (number, name) = (entry.group_id, name_of(info.preamble.as_ref()));
    if !program.selects(profile) {
        return refuse(Code::InvalidArgument, format!("action profile {name} has no selector, so no groups"));
    }
    if number == 0 {
        return refuse(Code::InvalidArgument, "group 0 means all in reads; number them from 1");
    }
    let what = format!("group {number} of {name}");
    if kind == update::Type::Delete {
        let program = program.clone();
        return Ok(Box::new(move |switch, _| {
            let exists = control(switch.group(profile, number))?.is_some();
            expect(kind, exists, &what)?;
            control(switch.group_remove(profile, number))?;
            program.group_limits().set(switch, profile, number, None);
            Ok(())
        }));
    }
    if entry.max_size < 0 || (info.max_group_size != 0 && entry.max_size > info.max_group_size) {
        let message = format!("{what}: max_size {} is not 0 to {}", entry.max_size, info.max_group_size);
        return refuse(Code::InvalidArgument, message);
    }
    let rules = Rules::new(info);
    let mut weights = Vec::with_capacity(entry.members.len());
    let mut seen = HashSet::with_capacity(entry.members.len());
    for member in &entry.members {
        if !seen.insert(member.member_id) {
            let message = format!("{what}: member {} occurs twice", member.member_id);
            return refuse(Code::InvalidArgument, message);
        }
        let watch = match &member.watch_kind {
            None => None,
            #[allow(deprecated)]
            Some(WatchKind::Watch(port)) => watch_number(&what, *port)?,
            Some(WatchKind::WatchPort(port)) => watched(program, &what, port)?,
        };
        let share = Share { weight: rules.weight(&what, member.weight)?, watch, is_active: true };
        weights.push((member.member_id, share));
    }
    let size = rules.size(weights.iter().map(|(_, share)| share));
    let max_size = entry.max_size;
    let program = program.clone();
    Ok(Box::new(move |switch, _| {
        let exists = control(switch.group(profile, number))?.is_some();
        expect(kind, exists, &what)?;
        let mut limits = program.group_limits();
        let limit = limits.get(switch, profile, number).unwrap_or(max_size);
        if exists && limit != max_size {
            return refuse(Code::InvalidArgument, format!("{what}: max_size can't be changed"));
        }
        let limits_here = [("max_size", max_size as u64), ("max_group_size", rules.max_size)];
        if let Some((limit, most)) = limits_here.into_iter().find(|(_, most)| *most != 0 && size > *most) {
            let message = format!("{what}: its size is {size}, over {limit} {most}");
            return refuse(Code::ResourceExhausted, message);
        }
        control(switch.group_set(profile, number, weights))?;
        limits.set(switch, profile, number, Some(max_size));
        Ok(())
    }))
}

/// The profiles that a read selects: one, or with id 0 all.
fn selected(program: &Program, id: u32) -> Checked<Vec<(u32, InstanceId)>> {
    if id != 0 {
        return Ok(vec![(id, program.profile(id)?.0)]);
    }
    let ids = program.info.action_profiles.iter().filter_map(|info| Some(info.preamble.as_ref()?.id));
    ids.map(|id| Ok((id, program.profile(id)?.0))).collect()
}

/// Reads members: one, those of a profile, or all.
pub fn read_members(program: &Arc<Program>, request: &ActionProfileMember) -> Checked<Vec<Query>> {
    let wanted = request.member_id;
    let query = |(id, profile): (u32, InstanceId)| {
        let program = program.clone();
        Box::new(move |switch: &Switch, _: Nanos| {
            let members = match wanted {
                0 => control(switch.members(profile))?,
                _ => {
                    control(switch.member(profile, wanted))?.map(|call| (wanted, call)).into_iter().collect()
                }
            };
            let messages: Messages = Box::new(move || {
                let table = program.profile(id).and_then(|(_, info)| program.user(info));
                let message = |(member_id, call): (u32, ActionCall)| ActionProfileMember {
                    action_profile_id: id,
                    member_id,
                    action: table.as_ref().ok().and_then(|table| table.action(&call)),
                };
                let entity = |member| Entity { entity: Some(EntityKind::ActionProfileMember(member)) };
                members.into_iter().map(message).map(entity).collect()
            });
            Ok(Answer::whole(messages))
        }) as Query
    };
    Ok(selected(program, request.action_profile_id)?.into_iter().map(query).collect())
}

/// The members of a group as P4Runtime has them: each once, and only those that get packets.
fn shown_members(shares: Vec<(u32, Share)>) -> Vec<(u32, Share)> {
    let (mut places, mut shown) = (HashMap::new(), Vec::<(u32, Share)>::new());
    for (member, share) in shares.into_iter().filter(|(_, share)| share.is_active) {
        let place = *places.entry(member).or_insert(shown.len());
        match shown.get_mut(place) {
            Some((_, before)) => before.weight = before.weight.saturating_add(share.weight),
            None => shown.push((member, share)),
        }
    }
    shown
}

/// Reads groups: one, those of a selector, or all.
pub fn read_groups(program: &Arc<Program>, request: &ActionProfileGroup) -> Checked<Vec<Query>> {
    let wanted = request.group_id;
    let profiles = selected(program, request.action_profile_id)?;
    let query = |(id, profile): (u32, InstanceId)| {
        let program = program.clone();
        Box::new(move |switch: &Switch, _: Nanos| {
            let groups = match wanted {
                0 => control(switch.groups(profile))?,
                _ => control(switch.group(profile, wanted))?
                    .map(|shares| (wanted, shares))
                    .into_iter()
                    .collect(),
            };
            let with_limit = {
                let limits = program.group_limits();
                let limit = |group| limits.get(switch, profile, group).unwrap_or(0);
                groups.into_iter().map(|(group, shares)| (group, shares, limit(group))).collect::<Vec<_>>()
            };
            let rules = Rules::of(&program, profile);
            let messages: Messages = Box::new(move || {
                let member = |(member_id, share): (u32, Share)| action_profile_group::Member {
                    member_id,
                    weight: rules.shown(&share),
                    watch_kind: share.watch.map(|port| WatchKind::WatchPort(program.names.shown_port(port))),
                };
                let message =
                    |(group_id, weights, max_size): (u32, Vec<(u32, Share)>, i32)| ActionProfileGroup {
                        action_profile_id: id,
                        group_id,
                        members: shown_members(weights).into_iter().map(member).collect(),
                        max_size,
                    };
                let entity = |group| Entity { entity: Some(EntityKind::ActionProfileGroup(group)) };
                with_limit.into_iter().map(message).map(entity).collect()
            });
            Ok(Answer::whole(messages))
        }) as Query
    };
    Ok(profiles.into_iter().filter(|(_, profile)| program.selects(*profile)).map(query).collect())
}

/// Saves a member for an undo.
pub fn snapshot_member(program: &Arc<Program>, entry: &ActionProfileMember) -> Checked<Snapshot> {
    let (profile, _) = program.profile(entry.action_profile_id)?;
    let (program, number) = (program.clone(), entry.member_id);
    Ok(Box::new(move |switch| {
        let before = switch.member(profile, number).ok().flatten();
        let uses = uses_of_member(&program, switch, profile, number);
        let held = uses.hold();
        Box::new(move |switch| {
            program.replace(&uses_of_member(&program, switch, profile, number), &uses);
            drop(held);
            let _ = match before {
                Some(call) => switch.member_set(profile, number, call),
                None => switch.member_remove(profile, number),
            };
        })
    }))
}

/// Saves a group for an undo.
pub fn snapshot_group(program: &Arc<Program>, entry: &ActionProfileGroup) -> Checked<Snapshot> {
    let (profile, _) = program.profile(entry.action_profile_id)?;
    let (program, number) = (program.clone(), entry.group_id);
    Ok(Box::new(move |switch| {
        let before = switch.group(profile, number).ok().flatten();
        let limit = program.group_limits().get(switch, profile, number);
        Box::new(move |switch| {
            let _ = match before {
                Some(weights) => switch.group_set(profile, number, weights),
                None => switch.group_remove(profile, number),
            };
            program.group_limits().set(switch, profile, number, limit);
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_within_the_selectors_rules() {
        let rules = |weightless, max_weight| Rules { weightless, max_weight, ..Rules::default() };
        let weight = |rules: Rules, weight| rules.weight("member 7", weight).map_err(|error| error.message);
        assert_eq!(weight(rules(false, 0), i32::MAX), Ok(i32::MAX as u32), "no limit");
        assert_eq!(weight(rules(false, 3), 3), Ok(3));
        let over = "member 7: weight 4 is over the selector's max_member_weight 3";
        assert_eq!(weight(rules(false, 3), 4), Err(over.to_owned()));
        assert_eq!(weight(rules(false, 3), 0), Err("member 7: weight 0 is not positive".to_owned()));
        assert_eq!(weight(rules(false, 3), -1), Err("member 7: weight -1 is not positive".to_owned()));
        assert_eq!(weight(rules(true, 0), 0), Ok(1));
        assert!(weight(rules(true, 0), 1).is_err_and(|error| error.contains("finds weights itself")));
    }
}
