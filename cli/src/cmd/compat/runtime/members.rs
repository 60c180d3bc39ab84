//! Members and groups of action profiles.
//!
//! P4Runtime's ids are 1 more than handles, because id 0 means all in reads and BMv2 counts from 0.

use super::refusals::{Of, refused};
use super::words::{at_least, call, exactly, find, meant, number};
use super::{Call, Done, Failure, mistake};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::{Action, ActionProfile};
use p4rack_p4rt::p4::v1::action_profile_group::Member;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{ActionProfileGroup, ActionProfileMember};
use p4rack_p4rt::schema::{id_of, name_of};

/// The id of a member or group with this handle.
pub(super) fn id_of_handle(handle: u32) -> Done<u32> {
    handle
        .checked_add(1)
        .ok_or_else(|| Failure(format!("Error: Bad format for handle: {handle} is too large")))
}

/// The handle of a member or group with this id.
pub(super) fn handle_of_id(id: u32) -> u32 {
    id.wrapping_sub(1)
}

/// The number behind the largest one.
fn after(ids: impl Iterator<Item = u32>) -> u32 {
    ids.max().map_or(1, |id| id.saturating_add(1))
}

impl Call<'_> {
    pub(super) async fn member_command(&mut self, name: &str, args: &[&str]) -> Done {
        let ([profile_name], rest) = at_least::<1>(args)?;
        let profiles = &self.schema.info().action_profiles;
        let profile = find("action profile", profile_name, profiles, |one| one.preamble.as_ref())?.clone();
        let needs_selector = name.contains("group");
        if needs_selector && !profile.with_selector {
            return mistake("Cannot run this command on an action profile without selector");
        }
        match name {
            "act_prof_create_member" => self.create_member(&profile, rest).await,
            "act_prof_modify_member" => self.modify_member(&profile, rest).await,
            "act_prof_delete_member" => {
                let [handle] = exactly::<1>(rest)?;
                let member = self.member(&profile, handle).await?;
                let member = ActionProfileMember { action: None, ..member };
                let done = self.write(Type::Delete, EntityKind::ActionProfileMember(member)).await;
                done.map_err(refused(Of::Member))
            }
            "act_prof_create_group" => {
                exactly::<0>(rest)?;
                let group_id = after(self.groups(&profile, 0).await?.iter().map(|group| group.group_id));
                let group =
                    ActionProfileGroup { action_profile_id: id(&profile), group_id, ..Default::default() };
                self.write(Type::Insert, EntityKind::ActionProfileGroup(group))
                    .await
                    .map_err(refused(Of::Group))?;
                self.say(format!("Group has been created with handle {}", handle_of_id(group_id)));
                Ok(())
            }
            "act_prof_delete_group" => {
                let [handle] = exactly::<1>(rest)?;
                let group = self.group(&profile, handle).await?;
                let group = ActionProfileGroup { members: Vec::new(), ..group };
                self.write(Type::Delete, EntityKind::ActionProfileGroup(group))
                    .await
                    .map_err(refused(Of::Group))
            }
            "act_prof_add_member_to_group" | "act_prof_remove_member_from_group" => {
                let [member, group] = exactly::<2>(rest)?;
                let member_id = self.member(&profile, member).await?.member_id;
                let mut group = self.group(&profile, group).await?;
                let there = group.members.iter().position(|other| other.member_id == member_id);
                match (there, name == "act_prof_add_member_to_group") {
                    (None, true) => group.members.push(Member { member_id, weight: 1, ..Default::default() }),
                    (Some(at), false) => drop(group.members.remove(at)),
                    (Some(_), true) => {
                        let why = format!("member {member} is in the group already");
                        return Err(Of::Group.refusal("MBR_ALREADY_IN_GRP", why));
                    }
                    (None, false) => {
                        let why = format!("member {member} is not in the group");
                        return Err(Of::Group.refusal("MBR_NOT_IN_GRP", why));
                    }
                }
                self.write(Type::Modify, EntityKind::ActionProfileGroup(group))
                    .await
                    .map_err(refused(Of::Group))
            }
            "act_prof_dump" => {
                exactly::<0>(rest)?;
                self.dump_profile(&profile).await
            }
            "act_prof_dump_member" => {
                let [handle] = exactly::<1>(rest)?;
                let member = self.member(&profile, handle).await?;
                self.dump_member(&member);
                Ok(())
            }
            "act_prof_dump_group" => {
                let [handle] = exactly::<1>(rest)?;
                let group = self.group(&profile, handle).await?;
                self.dump_group(&group);
                Ok(())
            }
            _ => self.unknown(name),
        }
    }

    /// An action that members of a profile may have: one of its tables'.
    fn member_action(&self, profile: &ActionProfile, name: &str) -> Done<Action> {
        let info = self.schema.info();
        let tables =
            info.tables.iter().filter(|table| profile.table_ids.contains(&id_of(table.preamble.as_ref())));
        let ids: Vec<u32> = tables.flat_map(|table| &table.action_refs).map(|action| action.id).collect();
        let actions: Vec<Action> = info
            .actions
            .iter()
            .filter(|action| ids.contains(&id_of(action.preamble.as_ref())))
            .cloned()
            .collect();
        find("action", name, &actions, |action| action.preamble.as_ref()).cloned().or_else(|_| {
            let profile = name_of(profile.preamble.as_ref());
            let help = meant(name, &actions, |action| action.preamble.as_ref());
            mistake(format!("Action profile '{profile}' has no action '{name}'{help}"))
        })
    }

    async fn create_member(&mut self, profile: &ActionProfile, rest: &[&str]) -> Done {
        let ([action], params) = at_least::<1>(rest)?;
        let action = Some(call(&self.member_action(profile, action)?, params)?);
        let member_id = after(self.members(profile, 0).await?.iter().map(|member| member.member_id));
        let member = ActionProfileMember { action_profile_id: id(profile), member_id, action };
        self.write(Type::Insert, EntityKind::ActionProfileMember(member))
            .await
            .map_err(refused(Of::Member))?;
        self.say(format!("Member has been created with handle {}", handle_of_id(member_id)));
        Ok(())
    }

    async fn modify_member(&mut self, profile: &ActionProfile, rest: &[&str]) -> Done {
        let ([action, handle], params) = at_least::<2>(rest)?;
        let params = params.strip_prefix(&["=>"]).unwrap_or(params);
        let action = Some(call(&self.member_action(profile, action)?, params)?);
        let member = ActionProfileMember { action, ..self.member(profile, handle).await? };
        self.write(Type::Modify, EntityKind::ActionProfileMember(member)).await.map_err(refused(Of::Member))
    }

    /// The member with an id, or with 0 all.
    async fn members(&mut self, profile: &ActionProfile, member_id: u32) -> Done<Vec<ActionProfileMember>> {
        let asked = ActionProfileMember { action_profile_id: id(profile), member_id, action: None };
        let found = self.read(EntityKind::ActionProfileMember(asked)).await?;
        let members = found.into_iter().filter_map(|kind| match kind {
            EntityKind::ActionProfileMember(member) => Some(member),
            _ => None,
        });
        Ok(members.collect())
    }

    async fn groups(&mut self, profile: &ActionProfile, group_id: u32) -> Done<Vec<ActionProfileGroup>> {
        let asked = ActionProfileGroup { action_profile_id: id(profile), group_id, ..Default::default() };
        let found = self.read(EntityKind::ActionProfileGroup(asked)).await?;
        let groups = found.into_iter().filter_map(|kind| match kind {
            EntityKind::ActionProfileGroup(group) => Some(group),
            _ => None,
        });
        Ok(groups.collect())
    }

    pub(super) async fn member(
        &mut self,
        profile: &ActionProfile,
        handle: &str,
    ) -> Done<ActionProfileMember> {
        let id = id_of_handle(number(handle, "member handle")?)?;
        let found = self.members(profile, id).await?.into_iter().next();
        found.ok_or_else(|| Of::Member.refusal("INVALID_MBR_HANDLE", format!("there is no member {handle}")))
    }

    pub(super) async fn group(&mut self, profile: &ActionProfile, handle: &str) -> Done<ActionProfileGroup> {
        let id = id_of_handle(number(handle, "group handle")?)?;
        let found = self.groups(profile, id).await?.into_iter().next();
        found.ok_or_else(|| Of::Group.refusal("INVALID_GRP_HANDLE", format!("there is no group {handle}")))
    }

    fn dump_member(&mut self, member: &ActionProfileMember) {
        self.say(format!("Dumping member {}", handle_of_id(member.member_id)));
        match &member.action {
            Some(action) => self.dump_call(action),
            None => self.say("EMPTY"),
        }
    }

    fn dump_group(&mut self, group: &ActionProfileGroup) {
        let members: Vec<String> =
            group.members.iter().map(|member| handle_of_id(member.member_id).to_string()).collect();
        self.say(format!("Dumping group {}", handle_of_id(group.group_id)));
        self.say(format!("Members: [{}]", members.join(", ")));
    }

    /// All members and groups of an action profile.
    pub(super) async fn dump_profile(&mut self, profile: &ActionProfile) -> Done {
        let (members, groups) = (
            self.members(profile, 0).await?,
            match profile.with_selector {
                true => self.groups(profile, 0).await?,
                false => Vec::new(),
            },
        );
        self.say("==========\nMEMBERS");
        for member in &members {
            self.say("**********");
            self.dump_member(member);
        }
        if profile.with_selector {
            self.say("==========\nGROUPS");
            for group in &groups {
                self.say("**********");
                self.dump_group(group);
            }
        }
        Ok(())
    }
}

fn id(profile: &ActionProfile) -> u32 {
    id_of(profile.preamble.as_ref())
}
