//! A simulated switch takes whatever the daemon takes: the same random valid entities, by both ways, read back equal and
//! do the same to frames.

use super::*;
use crate::random::Random;
use p4rack_conformance::random::Case;
use p4rack_entities::plain::Request;
use p4rack_entities::{Outcomes, each, read};
use p4rack_p4::{Options, compile};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::config::v1::{P4Info, Preamble};
use p4rack_p4rt::p4::v1::action_profile_action_set::{ActionSelectionMode, SizeSemantics};
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{
    self as v1, ActionProfileAction, ActionProfileActionSet, ActionProfileGroup, CounterEntry, DigestEntry,
    DirectCounterEntry, DirectMeterEntry, Entity, FieldMatch, Index, MeterEntry,
    PacketReplicationEngineEntry, ReadRequest, RegisterEntry, TableAction, TableEntry, Update, ValueSetEntry,
    ValueSetMember, action_profile_group, digest_entry, field_match, field_match::FieldMatchType, p4_data,
    table_action,
};
use p4rack_p4rt::schema::id_of;
use prost::Message;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// The program of the daemon's own tests, with every kind of match and of object.
const PROGRAM: &str = include_str!("../../../switchd/tests/p4runtime/rig.p4");
const SEEDS: u64 = 60;
const PACKETS: usize = 30;

fn config() -> Config {
    let ports = (0..8).map(|port| PortConfig::new(port, 0)).collect();
    Config { ports, cpu_port: Some(510), ..Config::default() }
}

fn candidate() -> Candidate {
    Candidate::compile(PROGRAM, "rig.p4", &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn update(kind: Type, entity: EntityKind) -> Update {
    Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity) }) }
}

fn request(updates: Vec<Update>) -> WriteRequest {
    WriteRequest { updates, ..WriteRequest::default() }
}

fn id(preamble: Option<&Option<Preamble>>) -> u32 {
    id_of(preamble.and_then(Option::as_ref))
}

/// Valid updates of every kind: entries, then the objects that they refer to and those that belong to them.
fn updates(case: Case, info: &P4Info, random: &mut Random) -> Vec<Update> {
    let mut updates = case.updates;
    let entity = |update: &Update| update.entity.clone()?.entity;
    let written: Vec<EntityKind> = updates.iter().filter_map(entity).collect();
    let members: Vec<_> = written
        .iter()
        .filter_map(|entity| match entity {
            EntityKind::ActionProfileMember(member) => Some(member.clone()),
            _ => None,
        })
        .collect();
    let action_profile_id = id(info.action_profiles.first().map(|profile| &profile.preamble));
    let group_members = members.iter().map(|member| action_profile_group::Member {
        member_id: member.member_id,
        weight: 1 + random.below(2) as i32,
        ..Default::default()
    });
    let group =
        ActionProfileGroup { action_profile_id, group_id: 9, members: group_members.collect(), max_size: 16 };
    updates.push(update(Type::Insert, EntityKind::ActionProfileGroup(group)));
    let mut indirect = |entry: &TableEntry, random: &mut Random| {
        let action = match random.below(3) {
            0 => return,
            1 => table_action::Type::ActionProfileGroupId(9),
            _ => {
                let one = |member: &v1::ActionProfileMember| ActionProfileAction {
                    action: member.action.clone(),
                    weight: 1 + random.below(2) as i32,
                    ..Default::default()
                };
                table_action::Type::ActionProfileActionSet(ActionProfileActionSet {
                    action_profile_actions: members.iter().map(one).collect(),
                    action_selection_mode: ActionSelectionMode::Hash as i32,
                    size_semantics: SizeSemantics::SumOfWeights as i32,
                    group_action: None,
                })
            }
        };
        let action = Some(TableAction { r#type: Some(action) });
        updates.push(update(Type::Modify, EntityKind::TableEntry(TableEntry { action, ..entry.clone() })));
    };
    let (mut metered, mut counted) = (Vec::new(), Vec::new());
    let with = |preamble: &Option<Preamble>, tables: &[u32]| tables.contains(&id_of(preamble.as_ref()));
    for entity in &written {
        let EntityKind::TableEntry(entry) = entity else { continue };
        let table = info.tables.iter().find(|table| with(&table.preamble, &[entry.table_id])).unwrap();
        if table.implementation_id != 0 && !entry.is_default_action {
            indirect(entry, random);
        }
        let named = |ids: Vec<u32>| table.direct_resource_ids.iter().any(|id| ids.contains(id));
        if named(info.direct_meters.iter().map(|meter| id_of(meter.preamble.as_ref())).collect()) {
            metered.push(entry.clone());
        }
        if named(info.direct_counters.iter().map(|counter| id_of(counter.preamble.as_ref())).collect()) {
            counted.push(entry.clone());
        }
    }
    let mut meter_config = || v1::MeterConfig {
        cir: 1000 + random.below(9) as i64,
        cburst: 2000,
        pir: 5000 + random.below(9) as i64,
        pburst: 6000,
        ..Default::default()
    };
    updates.extend(metered.into_iter().map(|entry| {
        let entry =
            DirectMeterEntry { table_entry: Some(entry), config: Some(meter_config()), ..Default::default() };
        update(Type::Modify, EntityKind::DirectMeterEntry(entry))
    }));
    let meter = MeterEntry {
        meter_id: id(info.meters.first().map(|meter| &meter.preamble)),
        index: Some(Index { index: 2 }),
        config: Some(meter_config()),
        ..Default::default()
    };
    let mut data = || v1::CounterData { packet_count: random.below(99) as i64, byte_count: 0 };
    updates.extend(counted.into_iter().map(|entry| {
        let entry = DirectCounterEntry { table_entry: Some(entry), data: Some(data()) };
        update(Type::Modify, EntityKind::DirectCounterEntry(entry))
    }));
    let counter = CounterEntry {
        counter_id: id(info.counters.first().map(|counter| &counter.preamble)),
        index: Some(Index { index: 3 }),
        data: Some(data()),
    };
    let cell = vec![1 + random.below(15) as u8, random.below(256) as u8];
    let register = RegisterEntry {
        register_id: id(info.registers.first().map(|register| &register.preamble)),
        index: Some(Index { index: random.below(16) as i64 }),
        data: Some(v1::P4Data { data: Some(p4_data::Data::Bitstring(cell)) }),
    };
    let ether_type = FieldMatchType::Exact(field_match::Exact { value: vec![8, random.below(2) as u8] });
    let member =
        ValueSetMember { r#match: vec![FieldMatch { field_id: 1, field_match_type: Some(ether_type) }] };
    let set = ValueSetEntry {
        value_set_id: id(info.value_sets.first().map(|set| &set.preamble)),
        members: vec![member],
    };
    let digest = DigestEntry {
        digest_id: id(info.digests.first().map(|digest| &digest.preamble)),
        config: Some(digest_entry::Config { max_list_size: 3, ..Default::default() }),
    };
    updates.extend(
        [
            EntityKind::MeterEntry(meter),
            EntityKind::CounterEntry(counter),
            EntityKind::RegisterEntry(register),
            EntityKind::ValueSetEntry(set),
        ]
        .map(|entity| update(Type::Modify, entity)),
    );
    updates.push(update(Type::Insert, EntityKind::DigestEntry(digest)));
    updates
}

/// The request as the daemon makes it: from its bytes, in turns.
fn as_the_daemon(program: &Arc<Program>, request: &WriteRequest, switch: &mut Switch) -> Outcomes {
    let request = Request::decode(request.encode_to_vec().into(), &program.plans).unwrap();
    let mut job = each(program, request);
    loop {
        if let ControlFlow::Break(outcomes) = job(switch, Nanos::ZERO) {
            return outcomes;
        }
    }
}

/// All that can be read, by kind.
fn everything(program: &Arc<Program>, switch: &Switch) -> BTreeMap<&'static str, Vec<Entity>> {
    let replication =
        |what| EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(what) });
    let of_all = |is_default_action| TableEntry {
        is_default_action,
        meter_config: Some(v1::MeterConfig::default()),
        counter_data: Some(v1::CounterData::default()),
        ..Default::default()
    };
    let wanted = [
        ("entries", EntityKind::TableEntry(of_all(false))),
        ("default entries", EntityKind::TableEntry(of_all(true))),
        ("members", EntityKind::ActionProfileMember(Default::default())),
        ("groups", EntityKind::ActionProfileGroup(Default::default())),
        ("multicast groups", replication(Replication::MulticastGroupEntry(Default::default()))),
        ("clone sessions", replication(Replication::CloneSessionEntry(Default::default()))),
        (
            "direct meters",
            EntityKind::DirectMeterEntry(DirectMeterEntry {
                table_entry: Some(Default::default()),
                ..Default::default()
            }),
        ),
        (
            "direct counters",
            EntityKind::DirectCounterEntry(DirectCounterEntry {
                table_entry: Some(Default::default()),
                ..Default::default()
            }),
        ),
        ("meters", EntityKind::MeterEntry(Default::default())),
        ("counters", EntityKind::CounterEntry(Default::default())),
        ("registers", EntityKind::RegisterEntry(Default::default())),
        ("value sets", EntityKind::ValueSetEntry(Default::default())),
        ("digests", EntityKind::DigestEntry(Default::default())),
    ];
    let read = |(name, entity)| {
        let request = ReadRequest { entities: vec![Entity { entity: Some(entity) }], ..Default::default() };
        let (found, outcomes) = read(program, request, switch, Nanos::ZERO);
        assert_eq!(outcomes, [Ok(())], "{name}");
        (name, found)
    };
    wanted.into_iter().map(read).collect()
}

#[test]
fn a_simulated_switch_takes_what_the_daemon_takes() {
    let compiled = compile(PROGRAM, "rig.p4", &Options::default()).unwrap();
    let (mut seen, mut kinds, mut sent) = (BTreeMap::new(), BTreeMap::new(), 0);
    for seed in 0..SEEDS {
        let case = Case::new(&compiled.program, &compiled.p4info, seed, PACKETS);
        let packets = case.packets.clone();
        let request = request(updates(case, &compiled.p4info, &mut Random::new(seed)));
        let mut simulated = P4::load(candidate(), config(), Scheme::L2, Vec::new());
        let mut switch = Switch::new(config());
        let program = candidate().load(None, &mut switch);
        let outcomes = simulated.write(&request);
        assert_eq!(outcomes, as_the_daemon(&program, &request, &mut switch), "seed {seed}");
        accepted(outcomes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let held = everything(&simulated.program, &simulated.switch);
        assert_eq!(held, everything(&program, &switch), "seed {seed}");
        for (kind, found) in held {
            *seen.entry(kind).or_insert(0) += found.len();
            for entity in found {
                let Some(EntityKind::TableEntry(entry)) = entity.entity else { continue };
                for field in entry.r#match {
                    let kind = field.field_match_type.unwrap();
                    *kinds.entry(format!("{kind:?}").split('(').next().unwrap().to_owned()).or_insert(0) += 1;
                }
                if let Some(kind) = entry.action.and_then(|action| action.r#type) {
                    *kinds.entry(format!("{kind:?}").split('(').next().unwrap().to_owned()).or_insert(0) += 1;
                }
            }
        }
        for (number, packet) in packets.iter().enumerate() {
            let now = Nanos::from_micros(number as u64);
            simulated.take(packet.port, &packet.frame, now);
            switch.handle_frame(packet.port, &packet.frame, now);
            let (mut one, mut other) = (Vec::new(), Vec::new());
            loop {
                let port = simulated.poll_transmit(now, &mut one);
                assert_eq!(port, switch.poll_transmit(now, &mut other), "seed {seed}");
                assert_eq!(one, other, "seed {seed}");
                if port.is_none() {
                    break;
                }
                sent += 1;
            }
        }
        assert_eq!(
            simulated.stats(Nanos::from_millis(1)),
            switch.stats(Nanos::from_millis(1)),
            "seed {seed}"
        );
    }
    println!("{seen:?} {kinds:?} {sent} frames");
    assert!(seen.values().all(|count| *count >= SEEDS as usize), "{seen:?}");
    let forms = [
        "Exact",
        "Lpm",
        "Ternary",
        "Range",
        "Optional",
        "Action",
        "ActionProfileMemberId",
        "ActionProfileGroupId",
        "ActionProfileActionSet",
    ];
    assert!(forms.iter().all(|form| kinds.get(*form).is_some_and(|count| *count > 10)), "{kinds:?}");
    assert!(sent > 100, "{sent} frames");
}
