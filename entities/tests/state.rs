//! Entities read back as written, and writes that conflict with the state are refused.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_entities::{Candidate, Checked, Program, digest_list, read, write};
use p4rack_p4::Options;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::action_profile_group::Member;
use p4rack_p4rt::p4::v1::field_match::{Exact, FieldMatchType, Range};
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileGroup, ActionProfileMember, CloneSessionEntry, CounterData, CounterEntry,
    DirectCounterEntry, DirectMeterEntry, Entity, FieldMatch, Index, MeterConfig, MeterCounterData,
    MulticastGroupEntry, P4Data, P4StructLike, PacketReplicationEngineEntry, ReadRequest, TableAction,
    TableEntry, Update, WriteRequest, action, p4_data, table_action,
};
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

const PROGRAM: &str = r#"
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> c; bit<32> d; }
struct headers_t { h_t h; }
struct meta_t {}
enum colour_t { red, green }
struct seen_t { bit<8> a; bool large; colour_t colour; error why; }
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<8>>(MeterType.bytes) pace;
    action none() {}
    action set(bit<8> x) { hdr.h.a = x; }
    action met(bit<8> x) { pace.read(hdr.h.c); hits.count(); hdr.h.a = x; }
    action port(bit<9> port) { sm.egress_spec = port; }
    @id(1) table t {
        key = { hdr.h.a: exact; hdr.h.c: range; }
        actions = { met; }
        counters = hits;
        meters = pace;
        size = 64;
    }
    @id(2) table u {
        key = { hdr.h.a: exact; }
        actions = { set; none; }
        default_action = set(7);
        size = 64;
    }
    @max_group_size(3)
    action_selector(HashAlgorithm.crc32, 64, 16) selector;
    @id(3) table balanced {
        key = { hdr.h.a: exact; hdr.h.d: selector; }
        actions = { port; }
        implementation = selector;
        size = 64;
    }
    counter(4, CounterType.packets) cells;
    @id(4) table fixed {
        key = { hdr.h.a: exact; }
        actions = { set; }
        const entries = { 8w1: set(2); }
    }
    @id(5) table aged {
        key = { hdr.h.a: exact; }
        actions = { none; }
        default_action = none();
        support_timeout = true;
        size = 64;
    }
    apply {
        t.apply();
        u.apply();
        balanced.apply();
        fixed.apply();
        aged.apply();
        cells.count(0);
        digest<seen_t>(1, { hdr.h.a, hdr.h.c > 9, colour_t.green, sm.parser_error });
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {} }
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"#;

const T: u32 = 0x0200_0001;
const U: u32 = 0x0200_0002;
const BALANCED: u32 = 0x0200_0003;
const FIXED: u32 = 0x0200_0004;
const AGED: u32 = 0x0200_0005;

struct Rig {
    program: Arc<Program>,
    switch: Switch,
}

impl Rig {
    fn new() -> Rig {
        Rig::of(PROGRAM)
    }

    fn of(text: &str) -> Rig {
        let ports = (1..9).map(|port| PortConfig { port, rate_bps: 1_000_000_000, queue_limit_bytes: None });
        let mut switch = Switch::new(Config { ports: ports.collect(), ..Config::default() });
        let candidate = Candidate::compile(text, "state.p4", &Options::default()).unwrap();
        Rig { program: candidate.load(None, &mut switch), switch }
    }

    fn update(&mut self, kind: Type, entity: &EntityKind) -> Checked<()> {
        let update = Update { r#type: kind as i32, entity: Some(Entity { entity: Some(entity.clone()) }) };
        let request = WriteRequest { updates: vec![update], ..Default::default() };
        write(&self.program, &request, &mut self.switch, Nanos::ZERO).remove(0)
    }

    fn code(&mut self, kind: Type, entity: &EntityKind) -> Option<Code> {
        self.update(kind, entity).err().map(|error| error.code)
    }

    fn read(&self, entity: EntityKind) -> Vec<EntityKind> {
        self.try_read(entity).unwrap()
    }

    fn try_read(&self, entity: EntityKind) -> Checked<Vec<EntityKind>> {
        let request = ReadRequest { entities: vec![Entity { entity: Some(entity) }], ..Default::default() };
        let (found, mut outcomes) = read(&self.program, request, &self.switch, Nanos::ZERO);
        outcomes.remove(0).map(|()| found.into_iter().filter_map(|found| found.entity).collect())
    }

    fn call(&self, name: &str, params: &[u8]) -> Option<TableAction> {
        let mut actions = self.program.info.actions.iter().filter_map(|action| action.preamble.as_ref());
        let action_id = actions.find(|preamble| preamble.name == format!("I.{name}")).unwrap().id;
        let param =
            |(at, value): (usize, &u8)| action::Param { param_id: at as u32 + 1, value: vec![*value] };
        let params = params.iter().enumerate().map(param).collect();
        Some(TableAction { r#type: Some(table_action::Type::Action(Action { action_id, params })) })
    }
}

fn key(field_id: u32, kind: FieldMatchType) -> FieldMatch {
    FieldMatch { field_id, field_match_type: Some(kind) }
}

fn exact(value: u8) -> FieldMatch {
    key(1, FieldMatchType::Exact(Exact { value: vec![value] }))
}

fn range(low: u8, high: u8) -> FieldMatch {
    key(2, FieldMatchType::Range(Range { low: vec![low], high: vec![high] }))
}

fn all(table_id: u32) -> TableEntry {
    TableEntry { table_id, ..Default::default() }
}

/// Counters, meters and long metadata come with an entry where they are asked for; ranges of everything are left out.
#[test]
fn entries_are_read_back_as_they_were_written() {
    let mut rig = Rig::new();
    let count = CounterData { byte_count: 700, packet_count: 2 };
    let rates = MeterConfig { cir: 1_000, cburst: 2_000, pir: 3_000, pburst: 4_000, ..Default::default() };
    let action = rig.call("met", &[5]);
    let entry = |keys: Vec<FieldMatch>, priority| TableEntry {
        r#match: keys,
        priority,
        action: action.clone(),
        ..all(T)
    };
    let whole = TableEntry {
        counter_data: Some(count),
        meter_config: Some(rates),
        metadata: vec![1; 300],
        ..entry(vec![exact(1), range(3, 9)], 1)
    };
    let open = entry(vec![exact(2)], 2);
    for one in [&whole, &open] {
        rig.update(Type::Insert, &EntityKind::TableEntry(one.clone())).unwrap();
    }
    let bare = TableEntry { counter_data: None, meter_config: None, ..whole.clone() };
    let mut found = rig.read(EntityKind::TableEntry(all(T)));
    found.sort_by_key(|one| matches!(one, EntityKind::TableEntry(one) if one.priority == 2));
    assert_eq!(found, [EntityKind::TableEntry(bare.clone()), EntityKind::TableEntry(open)]);
    // Each part alone, and all of them.
    let asked = |counter: bool, meter: bool, colors: bool| TableEntry {
        counter_data: counter.then(CounterData::default),
        meter_config: meter.then(MeterConfig::default),
        meter_counter_data: colors.then(MeterCounterData::default),
        ..TableEntry { action: None, metadata: Vec::new(), ..bare.clone() }
    };
    let none = CounterData::default();
    let zero = MeterCounterData { green: Some(none), yellow: Some(none), red: Some(none) };
    for (counter, meter, colors) in [
        (false, false, false),
        (true, false, false),
        (false, true, false),
        (false, false, true),
        (true, true, true),
    ] {
        let expected = TableEntry {
            counter_data: counter.then_some(count),
            meter_config: meter.then_some(rates),
            meter_counter_data: colors.then_some(zero),
            ..bare.clone()
        };
        let found = rig.read(EntityKind::TableEntry(asked(counter, meter, colors)));
        assert_eq!(found, [EntityKind::TableEntry(expected)], "{counter} {meter} {colors}");
    }
}

/// A key that is matched exactly is part of every entry; others may be left out.
#[test]
fn exact_keys_are_given() {
    let mut rig = Rig::new();
    let met = rig.call("met", &[5]);
    for (keys, expected) in [
        (vec![range(3, 9)], Some(Code::InvalidArgument)),
        (vec![], Some(Code::InvalidArgument)),
        (vec![exact(1)], None),
        (vec![exact(1), range(3, 255)], None),
    ] {
        let entry = TableEntry { r#match: keys, priority: 1, action: met.clone(), ..all(T) };
        let entry = EntityKind::TableEntry(entry);
        assert_eq!(rig.code(Type::Insert, &entry), expected, "{entry:?}");
        // A range up to the largest number is no range of everything.
        if let (None, EntityKind::TableEntry(entry)) = (expected, entry) {
            let asked = EntityKind::TableEntry(TableEntry { action: None, ..entry.clone() });
            assert_eq!(rig.read(asked), [EntityKind::TableEntry(entry)]);
        }
    }
}

#[test]
fn reads_are_of_what_they_ask_for() {
    let mut rig = Rig::new();
    let (set, none) = (rig.call("set", &[3]), rig.call("none", &[]));
    let entry = |a, action: &Option<TableAction>| {
        EntityKind::TableEntry(TableEntry { r#match: vec![exact(a)], action: action.clone(), ..all(U) })
    };
    for (a, action) in [(1, &set), (2, &none), (3, &none)] {
        rig.update(Type::Insert, &entry(a, action)).unwrap();
    }
    let of = |rig: &Rig, action: &Option<TableAction>| {
        rig.read(EntityKind::TableEntry(TableEntry { action: action.clone(), ..all(U) }))
    };
    assert_eq!(of(&rig, &set), [entry(1, &set)]);
    assert_eq!(of(&rig, &none).len(), 2);
    assert_eq!(of(&rig, &None).len(), 3);
    let default = TableEntry { is_default_action: true, ..all(U) };
    let shown = TableEntry { action: rig.call("set", &[7]), ..default.clone() };
    assert_eq!(rig.read(EntityKind::TableEntry(default)), [EntityKind::TableEntry(shown)]);
}

/// A group's members are no more than the program says, and weigh as it says.
#[test]
fn groups_have_the_programs_limits() {
    let mut rig = Rig::new();
    let profile = rig.program.info.action_profiles[0].preamble.as_ref().unwrap().id;
    for member_id in 1..5 {
        let Some(TableAction { r#type: Some(table_action::Type::Action(action)) }) = rig.call("port", &[1])
        else {
            panic!("no action")
        };
        let member = ActionProfileMember { action_profile_id: profile, member_id, action: Some(action) };
        let member = EntityKind::ActionProfileMember(member);
        assert_eq!(rig.code(Type::Modify, &member), Some(Code::NotFound));
        rig.update(Type::Insert, &member).unwrap();
        assert_eq!(rig.code(Type::Insert, &member), Some(Code::AlreadyExists));
    }
    let group = |members: &[(u32, i32)]| {
        let one = |(member_id, weight): &(u32, i32)| Member {
            member_id: *member_id,
            weight: *weight,
            ..Default::default()
        };
        EntityKind::ActionProfileGroup(ActionProfileGroup {
            action_profile_id: profile,
            group_id: 1,
            members: members.iter().map(one).collect(),
            ..Default::default()
        })
    };
    for (members, expected) in [
        (&[(1, 1), (2, 1), (3, 1), (4, 1)][..], Some(Code::ResourceExhausted)),
        (&[(1, 4)], Some(Code::ResourceExhausted)),
        (&[(1, 0)], Some(Code::InvalidArgument)),
        (&[(9, 1)], Some(Code::NotFound)),
        (&[(1, 1), (2, 2)], None),
    ] {
        assert_eq!(rig.code(Type::Insert, &group(members)), expected, "{members:?}");
    }
    let entry = |group| {
        let action = Some(TableAction { r#type: Some(table_action::Type::ActionProfileGroupId(group)) });
        EntityKind::TableEntry(TableEntry { r#match: vec![exact(1)], action, ..all(BALANCED) })
    };
    assert_eq!(rig.code(Type::Insert, &entry(2)), Some(Code::NotFound));
    rig.update(Type::Insert, &entry(1)).unwrap();
    assert_eq!(rig.read(EntityKind::TableEntry(all(BALANCED))), [entry(1)]);
    assert_eq!(rig.code(Type::Delete, &group(&[])), Some(Code::FailedPrecondition), "it is used");
}

/// Each entity is inserted once, and modified and deleted only while it exists.
#[test]
fn updates_are_of_what_there_is() {
    let mut rig = Rig::new();
    let replication = |entry| {
        EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(entry) })
    };
    let group = MulticastGroupEntry { multicast_group_id: 4, ..Default::default() };
    let session = CloneSessionEntry { session_id: 4, ..Default::default() };
    let entry = TableEntry { r#match: vec![exact(1)], action: rig.call("none", &[]), ..all(U) };
    for entity in [
        replication(Replication::MulticastGroupEntry(group)),
        replication(Replication::CloneSessionEntry(session)),
        EntityKind::TableEntry(entry),
    ] {
        let mut code = |kind| rig.code(kind, &entity);
        assert_eq!([Type::Modify, Type::Delete].map(&mut code), [Some(Code::NotFound); 2], "{entity:?}");
        assert_eq!(
            [Type::Insert, Type::Insert, Type::Modify].map(&mut code),
            [None, Some(Code::AlreadyExists), None],
            "{entity:?}"
        );
        assert_eq!([Type::Delete, Type::Delete].map(&mut code), [None, Some(Code::NotFound)], "{entity:?}");
    }
}

/// The program's own entries are permanent, and no others can be added.
#[test]
fn entries_of_the_program_are_fixed() {
    let mut rig = Rig::new();
    let entry =
        |rig: &Rig, a, x| TableEntry { r#match: vec![exact(a)], action: rig.call("set", &[x]), ..all(FIXED) };
    let own = TableEntry { is_const: true, ..entry(&rig, 1, 2) };
    assert_eq!(rig.read(EntityKind::TableEntry(all(FIXED))), [EntityKind::TableEntry(own.clone())]);
    let [changed, other] = [entry(&rig, 1, 3), entry(&rig, 2, 3)].map(EntityKind::TableEntry);
    assert!(rig.update(Type::Insert, &other).is_err());
    assert!(rig.update(Type::Modify, &changed).is_err());
    assert!(rig.update(Type::Delete, &changed).is_err());
    assert_eq!(rig.read(EntityKind::TableEntry(all(FIXED))), [EntityKind::TableEntry(own)]);
}

/// Entries grow old where the program says so; a default action does nowhere.
#[test]
fn timeouts_are_for_tables_that_have_them() {
    let mut rig = Rig::new();
    let none = rig.call("none", &[]);
    let entry = |table, idle_timeout_ns| TableEntry {
        r#match: vec![exact(1)],
        action: none.clone(),
        idle_timeout_ns,
        ..all(table)
    };
    let default = |idle_timeout_ns| TableEntry {
        is_default_action: true,
        r#match: Vec::new(),
        ..entry(AGED, idle_timeout_ns)
    };
    for (kind, entry, is_accepted) in [
        (Type::Insert, entry(U, 1_000_000), false),
        (Type::Insert, entry(U, 0), true),
        (Type::Insert, entry(AGED, -1), false),
        (Type::Insert, entry(AGED, 1_000_000), true),
        (Type::Modify, default(1_000_000), false),
        (Type::Modify, default(0), true),
    ] {
        let outcome = rig.update(kind, &EntityKind::TableEntry(entry.clone()));
        assert_eq!(outcome.is_ok(), is_accepted, "{entry:?}: {outcome:?}");
    }
    let found = rig.read(EntityKind::TableEntry(all(AGED)));
    assert_eq!(found, [EntityKind::TableEntry(entry(AGED, 1_000_000))]);
}

#[test]
fn ids_are_set_and_known() {
    let mut rig = Rig::new();
    for (id, code) in [(0, Code::InvalidArgument), (0x0bad, Code::NotFound)] {
        let entry = TableEntry { r#match: vec![exact(1)], action: rig.call("none", &[]), ..all(id) };
        assert_eq!(rig.code(Type::Insert, &EntityKind::TableEntry(entry)), Some(code));
        let cell = CounterEntry { counter_id: id, ..Default::default() };
        assert_eq!(rig.code(Type::Modify, &EntityKind::CounterEntry(cell)), Some(code));
    }
}

/// Entries have a priority where they may overlap, and nowhere else.
#[test]
fn priorities_are_for_tables_whose_entries_may_overlap() {
    let mut rig = Rig::new();
    let (met, none) = (rig.call("met", &[5]), rig.call("none", &[]));
    for (table_id, action) in [(T, met), (U, none)] {
        for priority in [-1, 0, 1] {
            let keys = vec![exact(9)];
            let entry = TableEntry { r#match: keys, action: action.clone(), priority, ..all(table_id) };
            let expected = if table_id == T { priority == 1 } else { priority == 0 };
            let outcome = rig.code(Type::Insert, &EntityKind::TableEntry(entry));
            assert_eq!(outcome, (!expected).then_some(Code::InvalidArgument), "{table_id:#x}, {priority}");
        }
    }
}

#[test]
fn clone_sessions_have_eight_classes_and_short_packets() {
    let mut rig = Rig::new();
    for (session_id, class_of_service, packet_length_bytes, is_accepted) in
        [(1, 7, 65_535, true), (2, 8, 0, false), (3, 0, 65_536, false), (4, 0, -1, false), (0, 0, 0, false)]
    {
        let session =
            CloneSessionEntry { session_id, class_of_service, packet_length_bytes, ..Default::default() };
        let session = Replication::CloneSessionEntry(session);
        let entity =
            EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry { r#type: Some(session) });
        let expected = (!is_accepted).then_some(Code::InvalidArgument);
        assert_eq!(rig.code(Type::Insert, &entity), expected, "{entity:?}");
    }
}

/// Of a table that has none, nothing can be read; a read of all tables has those that have some.
#[test]
fn direct_counters_and_meters_are_of_tables_that_have_them() {
    let mut rig = Rig::new();
    let entry = TableEntry { r#match: vec![exact(1)], priority: 1, action: rig.call("met", &[5]), ..all(T) };
    rig.update(Type::Insert, &EntityKind::TableEntry(entry)).unwrap();
    let other = TableEntry { r#match: vec![exact(1)], action: rig.call("none", &[]), ..all(U) };
    rig.update(Type::Insert, &EntityKind::TableEntry(other)).unwrap();
    let counter = |table_id| {
        let entry = DirectCounterEntry { table_entry: Some(all(table_id)), data: None };
        EntityKind::DirectCounterEntry(entry)
    };
    let meter = |table_id| {
        EntityKind::DirectMeterEntry(DirectMeterEntry {
            table_entry: Some(all(table_id)),
            ..Default::default()
        })
    };
    let found = |entity| rig.try_read(entity).map(|found| found.len()).map_err(|error| error.code);
    for (table_id, expected) in [(T, Ok(1)), (0, Ok(1)), (U, Err(Code::InvalidArgument))] {
        assert_eq!([found(counter(table_id)), found(meter(table_id))], [expected; 2], "{table_id:#x}");
    }
    let nothing = EntityKind::DirectCounterEntry(DirectCounterEntry::default());
    assert_eq!(found(nothing), Err(Code::InvalidArgument));
}

/// The last cell of an array, and the one behind it.
#[test]
fn cells_are_within_their_array() {
    let mut rig = Rig::new();
    let counter_id = rig.program.info.counters[0].preamble.as_ref().unwrap().id;
    let cell = |index, packet_count| {
        let data = Some(CounterData { byte_count: 0, packet_count });
        EntityKind::CounterEntry(CounterEntry { counter_id, index: Some(Index { index }), data })
    };
    for (index, is_there) in [(0, true), (3, true), (4, false), (-1, false)] {
        assert_eq!(rig.update(Type::Modify, &cell(index, index + 5)).is_ok(), is_there, "{index}");
    }
    assert_eq!(rig.read(cell(3, 0)), [cell(3, 8)]);
    let all = CounterEntry { counter_id, ..Default::default() };
    let found = rig.read(EntityKind::CounterEntry(all));
    assert_eq!(found, [(0, 5), (1, 0), (2, 0), (3, 8)].map(|(index, count)| cell(index, count)));
}

#[test]
fn digests_have_the_types_of_their_program() {
    let rig = Rig::new();
    let id = rig.program.info.digests[0].preamble.as_ref().unwrap().id;
    assert_eq!(rig.program.digest(id).unwrap(), 0);
    assert_eq!(rig.program.digest(0).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(rig.program.digest(id + 1).unwrap_err().code, Code::NotFound);
    let errors = &rig.program.ir.errors;
    let too_short = errors.iter().position(|name| name == "PacketTooShort").unwrap();
    let list = [vec![5u32.into(), 1u32.into(), 1u32.into(), (too_short as u32).into()]];
    let made = digest_list(&rig.program, 0, 9, &list, Nanos(7));
    let one = |data| P4Data { data: Some(data) };
    let members = vec![
        one(p4_data::Data::Bitstring(vec![5])),
        one(p4_data::Data::Bool(true)),
        one(p4_data::Data::Enum("green".into())),
        one(p4_data::Data::Error("PacketTooShort".into())),
    ];
    assert_eq!(made.data, [one(p4_data::Data::Struct(P4StructLike { members }))]);
    assert_eq!((made.digest_id, made.list_id, made.timestamp), (id, 9, 7));
    let ids = [0, 1, 2].map(|at| rig.program.table_id(p4rack_p4::ir::TableId(at)));
    assert_eq!(
        (ids, rig.program.table_id(p4rack_p4::ir::TableId(9))),
        ([Some(T), Some(U), Some(BALANCED)], None)
    );
}

#[test]
fn a_digest_of_a_single_value_carries_it() {
    let more = "digest(2, hdr.h.d); digest(3, colour_t.green); digest<seen_t>(1,";
    let rig = Rig::of(&PROGRAM.replace("digest<seen_t>(1,", more));
    let one = |digest, value: u32| {
        let made = digest_list(&rig.program, digest, 9, &[vec![value.into()]], Nanos(7));
        made.data.into_iter().next().and_then(|data| data.data)
    };
    assert_eq!(one(0, 0x1234), Some(p4_data::Data::Bitstring(vec![0x12, 0x34])));
    assert_eq!(one(1, 1), Some(p4_data::Data::Enum("green".into())));
}

/// Its name comes from its type.
#[test]
fn a_profile_created_in_place_has_members() {
    let text = PROGRAM
        .replace("action_selector(HashAlgorithm.crc32, 64, 16) selector;", "")
        .replace("@max_group_size(3)", "")
        .replace("hdr.h.d: selector;", "")
        .replace("implementation = selector;", "implementation = action_profile(8);");
    let mut rig = Rig::of(&text);
    let profiles: Vec<_> =
        rig.program.info.action_profiles.iter().filter_map(|one| one.preamble.as_ref()).collect();
    assert_eq!((profiles.len(), profiles[0].name.as_str()), (1, "action_profile_0"));
    let action_profile_id = profiles[0].id;
    let member = EntityKind::ActionProfileMember(ActionProfileMember {
        action_profile_id,
        member_id: 1,
        action: match rig.call("port", &[3]).and_then(|action| action.r#type) {
            Some(table_action::Type::Action(action)) => Some(action),
            _ => None,
        },
    });
    rig.update(Type::Insert, &member).unwrap();
    assert_eq!(rig.read(member.clone()), [member]);
}

/// What the front end says of the text's entries is what a switch with the program shows.
#[test]
fn entries_of_the_text_are_read_as_the_front_end_gives_them() {
    let text = PROGRAM.replace(
        "    @id(5) table aged {",
        "    action_profile(8) profile;
    @id(6) table own {
        key = { hdr.h.a: exact; hdr.h.d: lpm; }
        actions = { set; none; }
        size = 64;
        entries = {
            (8w1, 0x0a000000 &&& 0xff000000): set(2);
            (8w1, 0x0a000001): none();
            const (8w2, _): set(255);
        }
    }
    @id(7) table ranked {
        key = { hdr.h.a: ternary; hdr.h.c: range; hdr.h.d: optional; }
        actions = { port; none; }
        size = 64;
        entries = {
            priority = 9: (0x1f &&& 0x0f, 3..5, 32w7): port(257);
            priority = 7: (_, 0..255, _): none();
            priority = 7: (_, 0..255, _): port(1);
            priority = 5: (8w3, 8w4, _): none();
        }
    }
    action rename(name_t name, class_t class) { meta.name = name; meta.class = class; }
    @id(9) table named {
        key = { meta.name: exact; meta.class: optional; }
        actions = { rename; none; }
        size = 64;
        entries = {
            priority = 3: ((name_t)7, (class_t)3): rename((name_t)9, (class_t)1);
            priority = 2: ((name_t)8, (class_t)4): rename((name_t)10, (class_t)3);
            priority = 1: ((name_t)9, _): none();
        }
    }
    @id(8) table shared {
        key = { hdr.h.a: exact; }
        actions = { port; }
        implementation = profile;
        size = 64;
        entries = { 8w5: port(3); }
    }
    @id(5) table aged {",
    );
    let text = text.replace(
        "fixed.apply();",
        "fixed.apply(); own.apply(); ranked.apply(); shared.apply(); named.apply();",
    );
    let text = text.replace(
        "struct meta_t {}",
        r#"@p4runtime_translation("", string)
@p4runtime_translation_mappings({ {"uplink", 7}, {"9", 10} })
type bit<8> name_t;
@p4runtime_translation("", bit<32>)
@p4runtime_translation_mappings({ {1000, 3} })
type bit<8> class_t;
struct meta_t { name_t name; class_t class; }"#,
    );
    let compiled = p4rack_p4::compile(&text, "own.p4", &Options::default());
    let compiled = compiled.unwrap_or_else(|why| panic!("{}", why.render(false)));
    let rig = Rig::of(&text);
    let (mut given, mut read) = (compiled.initial_entries(), Vec::new());
    for table in &rig.program.info.tables {
        let found = rig.read(EntityKind::TableEntry(all(table.preamble.as_ref().unwrap().id)));
        read.extend(found.into_iter().map(|found| match found {
            EntityKind::TableEntry(entry) => entry,
            other => panic!("{other:?}"),
        }));
    }
    let order = |entry: &TableEntry| format!("{entry:?}");
    given.sort_by_key(order);
    read.sort_by_key(order);
    assert_eq!(given.len(), 11, "one of the fixed table, three, three of four, one, three");
    assert_eq!(given, read);
}
