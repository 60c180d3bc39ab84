use super::*;
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Pre;
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileGroup, ActionProfileMember, FieldMatch, MeterConfig, MeterEntry,
    MulticastGroupEntry, PacketReplicationEngineEntry, RegisterEntry, TableAction, action,
    action_profile_group, field_match, field_match::FieldMatchType, table_action,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn entity(kind: EntityKind) -> Entity {
    Entity { entity: Some(kind) }
}

fn act(value: u8) -> Action {
    Action { action_id: 9, params: vec![action::Param { param_id: 1, value: vec![0, value] }] }
}

fn member(id: u32, value: u8) -> Entity {
    let action = Some(act(value));
    entity(EntityKind::ActionProfileMember(ActionProfileMember {
        action_profile_id: 1,
        member_id: id,
        action,
    }))
}

fn group(id: u32, members: &BTreeSet<u32>) -> Entity {
    let member = |id: &u32| action_profile_group::Member { member_id: *id, weight: 1, watch_kind: None };
    let members = members.iter().map(member).collect();
    entity(EntityKind::ActionProfileGroup(ActionProfileGroup {
        action_profile_id: 1,
        group_id: id,
        members,
        max_size: 0,
    }))
}

fn entry(key: u8, action: table_action::Type) -> Entity {
    let exact = field_match::Exact { value: vec![0, 0, key] };
    entity(EntityKind::TableEntry(TableEntry {
        table_id: 5,
        r#match: vec![FieldMatch { field_id: 1, field_match_type: Some(FieldMatchType::Exact(exact)) }],
        action: Some(TableAction { r#type: Some(action) }),
        ..Default::default()
    }))
}

fn multicast(id: u32, class: &[u8]) -> Entity {
    let group = MulticastGroupEntry { multicast_group_id: id, metadata: class.into(), ..Default::default() };
    let r#type = Some(Pre::MulticastGroupEntry(group));
    entity(EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type }))
}

/// Parts of a state before its references are made to fit.
#[derive(Clone, Debug)]
struct Seed {
    members: BTreeMap<u32, u8>,
    groups: BTreeMap<u32, BTreeSet<u32>>,
    entries: BTreeMap<u8, (u8, u32)>,
    multicast: BTreeMap<u32, u8>,
}

impl Seed {
    fn state(&self) -> Vec<Entity> {
        let mut state: Vec<Entity> = self.members.iter().map(|(id, value)| member(*id, *value)).collect();
        for (id, members) in &self.groups {
            let members = members.iter().filter(|id| self.members.contains_key(id)).copied().collect();
            state.push(group(*id, &members));
        }
        for (key, (kind, id)) in &self.entries {
            let action = match kind {
                1 if self.members.contains_key(id) => table_action::Type::ActionProfileMemberId(*id),
                2 if self.groups.contains_key(id) => table_action::Type::ActionProfileGroupId(*id),
                _ => table_action::Type::Action(act(*id as u8)),
            };
            state.push(entry(*key, action));
        }
        state.extend(self.multicast.iter().map(|(id, class)| multicast(*id, &[*class])));
        state
    }
}

fn seed() -> impl Strategy<Value = Seed> {
    use proptest::collection::{btree_map, btree_set};
    let members = btree_map(1u32..6, 0u8..3, 0..6);
    let groups = btree_map(1u32..5, btree_set(1u32..6, 0..4), 0..4);
    let entries = btree_map(0u8..8, (0u8..3, 1u32..6), 0..8);
    let multicast = btree_map(1u32..4, 0u8..2, 0..3);
    (members, groups, entries, multicast).prop_map(|(members, groups, entries, multicast)| Seed {
        members,
        groups,
        entries,
        multicast,
    })
}

/// A switch that refuses the same writes as the standard.
struct Model(BTreeMap<Key, Entity>);

impl Model {
    fn new(state: &[Entity]) -> Model {
        Model(state.iter().cloned().map(normal).map(|entity| (key(&entity), entity)).collect())
    }

    fn apply(&mut self, update: &Update) {
        let entity = update.entity.clone().expect("set");
        let key = key(&entity);
        match update.r#type() {
            Type::Insert => assert!(self.0.insert(key, entity).is_none(), "inserted twice"),
            Type::Modify => assert!(self.0.insert(key, entity).is_some(), "modified what is not there"),
            Type::Delete => assert!(self.0.remove(&key).is_some(), "deleted what is not there"),
            Type::Unspecified => panic!("no type"),
        }
        self.check_references();
    }

    fn check_references(&self) {
        let (mut members, mut groups) = (BTreeSet::new(), BTreeSet::new());
        for entity in self.0.values() {
            match &entity.entity {
                Some(EntityKind::ActionProfileMember(member)) => drop(members.insert(member.member_id)),
                Some(EntityKind::ActionProfileGroup(group)) => drop(groups.insert(group.group_id)),
                _ => {}
            }
        }
        for entity in self.0.values() {
            match &entity.entity {
                Some(EntityKind::ActionProfileGroup(group)) => {
                    assert!(group.members.iter().all(|member| members.contains(&member.member_id)));
                }
                Some(EntityKind::TableEntry(entry)) => {
                    match entry.action.as_ref().and_then(|a| a.r#type.as_ref()) {
                        Some(table_action::Type::ActionProfileMemberId(id)) => assert!(members.contains(id)),
                        Some(table_action::Type::ActionProfileGroupId(id)) => assert!(groups.contains(id)),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }
}

proptest! {
    #[test]
    fn changes_make_the_one_into_the_other_in_any_order_of_a_phase(
        before in seed(), after in seed(), shuffle: u64,
    ) {
        let (before, after) = (before.state(), after.state());
        let changes = changes(&after, before.clone());
        let mut model = Model::new(&before);
        for phase in &changes.phases {
            let mut order: Vec<usize> = (0..phase.len()).collect();
            order.sort_by_key(|position| (*position as u64 + 1).wrapping_mul(shuffle | 1).rotate_left(31));
            for position in order {
                model.apply(&phase[position]);
            }
        }
        prop_assert_eq!(&model.0, &Model::new(&after).0);
        // No key twice, and no change that changes nothing: the set is the least.
        let keys: BTreeSet<Key> = changes.iter().map(|update| {
            key(&key_entity(update.entity.as_ref().expect("set")))
        }).collect();
        prop_assert_eq!(keys.len(), changes.len());
        let (old, new) = (Model::new(&before).0, Model::new(&after).0);
        let differ = old.keys().chain(new.keys()).collect::<BTreeSet<_>>().into_iter()
            .filter(|key| old.get(*key) != new.get(*key)).count();
        prop_assert_eq!(changes.len(), differ);
    }

    #[test]
    fn nothing_is_changed_when_nothing_differs(state in seed()) {
        let state = state.state();
        prop_assert!(changes(&state, state.clone()).is_empty());
    }
}

fn meter(index: i64, rate: Option<i64>) -> Entity {
    let config = rate.map(|cir| MeterConfig { cir, pir: cir, ..Default::default() });
    let index = Some(p4rack_p4rt::p4::v1::Index { index });
    entity(EntityKind::MeterEntry(MeterEntry { meter_id: 3, index, config, counter_data: None }))
}

#[test]
fn what_stays_is_modified_and_set_back() {
    let there = vec![meter(0, None), meter(1, Some(7)), meter(2, Some(8)), meter(3, Some(9))];
    let changes = changes(&[meter(0, Some(5)), meter(2, Some(8))], there);
    let made: Vec<_> = changes.iter().cloned().collect();
    let modify = |entity| Update { r#type: Type::Modify as i32, entity: Some(entity) };
    assert_eq!(made, [modify(meter(0, Some(5))), modify(meter(1, None)), modify(meter(3, None))]);
}

#[test]
fn constant_entries_and_registers_are_left_alone() {
    let mut constant = entry(1, table_action::Type::Action(act(1)));
    if let Some(EntityKind::TableEntry(entry)) = &mut constant.entity {
        entry.is_const = true;
    }
    let register = entity(EntityKind::RegisterEntry(RegisterEntry::default()));
    assert!(changes(std::slice::from_ref(&register), vec![constant, register.clone()]).is_empty());
}
