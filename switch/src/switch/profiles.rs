//! Action profiles and selectors from the control plane: members, groups, and which ports are up.

use super::control::is_no;
use super::pipes::{Turn, instance_in};
use super::{Running, Switch};
use crate::error::ControlError;
use crate::objects::{Indirect, Share};
use crate::profile::{Group, Member, Profile};
use crate::shape::TableShape;
use crate::state::InstanceState;
use p4rack_p4::ir::{ActionCall, InstanceId};
use std::collections::BTreeMap;

/// Maximum groups of a selector.
const MAX_GROUPS: usize = 65_536;
/// Maximum sum of weights in a group. The program's own limits are enforced by the control plane.
const MAX_WEIGHT: u64 = 65_536;

impl Switch {
    /// Adds or replaces a member of an action profile. Its action is numbered in the list of the tables that
    /// use the profile.
    pub fn member_set(
        &mut self,
        profile: InstanceId,
        member: u32,
        call: ActionCall,
    ) -> Result<(), ControlError> {
        let Running { pipeline, .. } = self.running()?;
        let name = self.instance(profile)?.0.name.clone();
        let user = pipeline.tables.iter().find(|table| table.implementation == Some(profile));
        let user = user.ok_or_else(|| ControlError::Invalid(format!("no table uses {name}")))?;
        let args = user.args(&call, false)?;
        self.agree_on_profile(profile)?;
        let mut added = Some(Member { call, args });
        self.each_profile(profile, |state, turn| {
            if state.members.len() as u64 >= state.size && !state.members.contains_key(&member) {
                return Err(ControlError::ResourceExhausted { object: name.clone(), limit: state.size });
            }
            state.members.extend(turn.share(&mut added).map(|added| (member, added)));
            Ok(())
        })
    }

    /// Removes a member that no entry and no group uses.
    pub fn member_remove(&mut self, profile: InstanceId, member: u32) -> Result<(), ControlError> {
        let what = format!("member {member} of {}", self.instance(profile)?.0.name);
        self.unused(profile, &Indirect::Member(member), &what)?;
        self.agree_on_profile(profile)?;
        let of = |group: &Group| group.shares.iter().any(|(found, _)| *found == member);
        self.each_profile(profile, |state, _| {
            if let Some((group, _)) = state.groups.iter().find(|(_, group)| of(group)) {
                return Err(ControlError::InUse(format!("{what} is in group {group}: take it out first")));
            }
            let gone = state.members.remove(&member);
            gone.map(|_| ()).ok_or_else(|| ControlError::NotFound(what.clone()))
        })
    }

    /// Whether an action profile has a member.
    pub fn has_member(&self, profile: InstanceId, member: u32) -> Result<bool, ControlError> {
        Ok(self.profile(profile)?.members.contains_key(&member))
    }

    /// A member of an action profile.
    pub fn member(&self, profile: InstanceId, member: u32) -> Result<Option<ActionCall>, ControlError> {
        Ok(self.profile(profile)?.members.get(&member).map(|member| member.call.clone()))
    }

    /// All members of an action profile, by number.
    pub fn members(&self, profile: InstanceId) -> Result<Vec<(u32, ActionCall)>, ControlError> {
        let members = &self.profile(profile)?.members;
        Ok(members.iter().map(|(&number, member)| (number, member.call.clone())).collect())
    }

    /// Adds or replaces a group of an action selector, with members and weights. A member may occur several times.
    pub fn group_set(
        &mut self,
        profile: InstanceId,
        group: u32,
        shares: Vec<(u32, Share)>,
    ) -> Result<(), ControlError> {
        let what = format!("group {group} of {}", self.instance(profile)?.0.name);
        self.check_watched(&what, shares.iter().map(|(_, share)| share))?;
        self.agree_on_profile(profile)?;
        let down = self.down.clone();
        let total: u64 = shares.iter().map(|(_, share)| u64::from(share.weight)).sum();
        if total > MAX_WEIGHT {
            return Err(ControlError::ResourceExhausted { object: what, limit: MAX_WEIGHT });
        }
        let mut shares = Some(shares);
        self.each_profile(profile, |state, turn| {
            if state.groups.len() >= MAX_GROUPS && !state.groups.contains_key(&group) {
                let limit = MAX_GROUPS as u64;
                return Err(ControlError::ResourceExhausted { object: what.clone(), limit });
            }
            let shares = turn.share(&mut shares).unwrap_or_default();
            for (member, share) in &shares {
                if !state.members.contains_key(member) {
                    return Err(ControlError::NotFound(format!("{what}: member {member}")));
                }
                if share.weight == 0 {
                    return Err(ControlError::Invalid(format!("{what}: member {member} has weight 0")));
                }
            }
            state.groups.insert(group, Group::new(shares, &down));
            Ok(())
        })
    }

    /// Records whether a port can send. While it can't, members that watch it get no packets, and backup
    /// replicas replace those on it.
    pub fn set_port_up(&mut self, port: u16, up: bool) {
        let changed = if up { self.down.remove(&port) } else { self.down.insert(port) };
        if !changed {
            return;
        }
        self.links_changed = true;
        self.route_copies();
        if !up {
            self.port_has_gone(port);
        }
        let Some(Running { state, .. }) = self.running.as_mut() else { return };
        state.down.clone_from(&self.down);
        for pipe in 0..state.pipes() {
            for instance in &mut state.of_mut(pipe).instances {
                if let InstanceState::Profile(profile) = instance {
                    profile.groups.values_mut().for_each(|group| group.share(&self.down));
                }
            }
        }
    }

    /// Routes the copies of groups and clone sessions to ports that are up.
    pub(crate) fn route_copies(&mut self) {
        let sessions = self.sessions.values_mut().map(|session| &mut session.replicas);
        self.groups.values_mut().chain(sessions).for_each(|replicas| replicas.route(&self.down));
    }

    /// Whether a port counts as able to send.
    pub fn is_port_up(&self, port: u16) -> bool {
        !self.down.contains(&port)
    }

    /// Calls `tell` if links of ports went up or down since its last call that returned true.
    pub fn poll_links(&mut self, tell: impl FnOnce() -> bool) {
        self.links_changed = self.links_changed && !tell();
    }

    /// Removes a group that no entry uses.
    pub fn group_remove(&mut self, profile: InstanceId, group: u32) -> Result<(), ControlError> {
        let what = format!("group {group} of {}", self.instance(profile)?.0.name);
        self.unused(profile, &Indirect::Group(group), &what)?;
        self.agree_on_profile(profile)?;
        self.each_profile(profile, |state, _| {
            let gone = state.groups.remove(&group);
            gone.map(|_| ()).ok_or_else(|| ControlError::NotFound(what.clone()))
        })
    }

    /// The members and shares of a group, if there is one.
    pub fn group(&self, profile: InstanceId, group: u32) -> Result<Option<Vec<(u32, Share)>>, ControlError> {
        Ok(self.profile(profile)?.groups.get(&group).map(|group| group.shares.clone()))
    }

    /// The number of the next group of an action selector from a number on.
    pub fn next_group(&self, profile: InstanceId, from: u32) -> Result<Option<u32>, ControlError> {
        Ok(self.profile(profile)?.groups.range(from..).next().map(|(number, _)| *number))
    }

    /// Number of groups of an action selector.
    pub fn group_count(&self, profile: InstanceId) -> Result<usize, ControlError> {
        Ok(self.profile(profile)?.groups.len())
    }

    /// The member of a group that packets with this hash get, if any.
    pub fn selected_member(
        &self,
        profile: InstanceId,
        group: u32,
        hash: u64,
    ) -> Result<Option<u32>, ControlError> {
        Ok(self.profile(profile)?.selected(group, hash))
    }

    /// Whether the pipes that are meant may have different members and groups.
    pub fn profile_is_apart(&self, profile: InstanceId) -> bool {
        let apart = |running: &Running| running.state.profiles_apart.get(profile.0 as usize).copied();
        self.running.as_ref().and_then(apart).unwrap_or(false)
    }

    /// Whether an entry refers to a group.
    pub fn uses_group(&self, profile: InstanceId, group: u32) -> Result<bool, ControlError> {
        Ok(self.user(profile, &Indirect::Group(group))?.is_some())
    }

    /// All groups of an action selector, by number, with members and shares.
    pub fn groups(&self, profile: InstanceId) -> Result<BTreeMap<u32, Vec<(u32, Share)>>, ControlError> {
        let groups = &self.profile(profile)?.groups;
        Ok(groups.iter().map(|(&number, group)| (number, group.shares.clone())).collect())
    }

    /// Rejects a watched port that does not exist.
    fn check_watched<'a>(
        &self,
        what: &str,
        mut shares: impl Iterator<Item = &'a Share>,
    ) -> Result<(), ControlError> {
        let missing =
            shares.find_map(|share| share.watch.filter(|port| self.manager.find((*port).into()).is_none()));
        match missing {
            Some(port) => Err(ControlError::Invalid(format!("{what}: there is no port {port} to watch"))),
            None => Ok(()),
        }
    }

    /// Rejects a reference to a member or group that a profile does not have.
    pub(crate) fn check_indirect(
        &self,
        shape: &TableShape,
        indirect: Option<&Indirect>,
    ) -> Result<(), ControlError> {
        match (shape.implementation, indirect) {
            (_, Some(Indirect::Set(set))) => {
                self.check_watched(&shape.name, set.actions.iter().map(|(_, share)| share))
            }
            (Some(profile), Some(indirect)) if !self.profile(profile)?.has(indirect) => {
                Err(ControlError::NotFound(format!("{}: {indirect}", shape.name)))
            }
            _ => Ok(()),
        }
    }

    /// Rejects the removal of something that an entry uses.
    fn unused(&self, profile: InstanceId, indirect: &Indirect, what: &str) -> Result<(), ControlError> {
        match self.user(profile, indirect)? {
            Some(table) => Err(ControlError::InUse(format!(
                "{what} is used by an entry of {}: change that first",
                table.name
            ))),
            None => Ok(()),
        }
    }

    /// A table with an entry that uses a member or group.
    fn user(&self, profile: InstanceId, indirect: &Indirect) -> Result<Option<&TableShape>, ControlError> {
        let Running { pipeline, state } = self.running()?;
        let users = self.meant().flat_map(|pipe| pipeline.tables.iter().zip(&state.of(pipe).tables));
        let mut users = users.filter(|(shape, _)| shape.implementation == Some(profile));
        let user = users.find(|(_, table)| {
            let on_miss = table.default.as_ref().and_then(|row| row.indirect.as_ref());
            let mut entries = table.rows_from(0).filter_map(|row| table.indirect(row)).chain(on_miss);
            entries.any(|found| found == indirect)
        });
        Ok(user.map(|(shape, _)| shape))
    }

    fn profile(&self, profile: InstanceId) -> Result<&Profile, ControlError> {
        match self.instance(profile)? {
            (_, InstanceState::Profile(state)) => Ok(state),
            (shape, _) => Err(is_no(shape, "action profile")),
        }
    }

    fn each_profile(
        &mut self,
        profile: InstanceId,
        mut change: impl FnMut(&mut Profile, Turn) -> Result<(), ControlError>,
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, turn| match instance_in(pipeline, state, profile)? {
            (_, InstanceState::Profile(state)) => change(state, turn),
            (shape, _) => Err(is_no(shape, "action profile")),
        })
    }
}
