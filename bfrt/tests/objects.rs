//! An entry of each kind of table, and the entity of P4Runtime that means the same: each becomes the other.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_bfrt::p4runtime::{self, Translation};
use p4rack_bfrt::{Entry, Match, Schema, Value};
use p4rack_p4rt::bfrt_proto;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::{P4Info, Preamble};
use p4rack_p4rt::p4::v1::entity::Entity as Kind;
use p4rack_p4rt::p4::v1::field_match::{Exact, FieldMatchType, Lpm, Range, Ternary};
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileGroup, ActionProfileMember, CounterData, CounterEntry, Entity, FieldMatch, Index,
    MeterConfig, MeterEntry, P4Data, RegisterEntry, TableAction, TableEntry, action, action_profile_group,
    p4_data, table_action,
};
use std::sync::LazyLock;

struct Objects {
    schema: Schema,
    info: P4Info,
    translation: Translation,
}

static OBJECTS: LazyLock<Objects> = LazyLock::new(|| {
    let compiled =
        p4rack_p4::compile(include_str!("objects.p4"), "objects", &p4rack_p4::Options::default()).unwrap();
    let schema = Schema::parse(compiled.bf_rt().unwrap().to_string().as_bytes()).unwrap();
    let translation = Translation::new(&schema, &compiled.p4info).unwrap();
    Objects { schema, info: compiled.p4info, translation }
});

/// P4Runtime's id of the object with this name.
fn id(name: &str) -> u32 {
    let info = &OBJECTS.info;
    let all = (info.tables.iter().map(|it| &it.preamble))
        .chain(info.actions.iter().map(|it| &it.preamble))
        .chain(info.action_profiles.iter().map(|it| &it.preamble))
        .chain(info.counters.iter().map(|it| &it.preamble))
        .chain(info.meters.iter().map(|it| &it.preamble))
        .chain(info.registers.iter().map(|it| &it.preamble));
    let mut all = all.flatten();
    all.find(|it| it.name.ends_with(&format!(".{name}"))).unwrap_or_else(|| panic!("no {name}")).id
}

fn call(name: &str, params: &[&[u8]]) -> Action {
    let param =
        |(at, value): (usize, &&[u8])| action::Param { param_id: at as u32 + 1, value: value.to_vec() };
    Action { action_id: id(name), params: params.iter().enumerate().map(param).collect() }
}

fn does(action: table_action::Type) -> Option<TableAction> {
    Some(TableAction { r#type: Some(action) })
}

fn matched(field_id: u32, kind: FieldMatchType) -> FieldMatch {
    FieldMatch { field_id, field_match_type: Some(kind) }
}

fn exact(value: &[u8]) -> Vec<FieldMatch> {
    vec![matched(1, FieldMatchType::Exact(Exact { value: value.to_vec() }))]
}

fn index(index: i64) -> Option<Index> {
    Some(Index { index })
}

fn member(member_id: u32, weight: i32) -> action_profile_group::Member {
    action_profile_group::Member { member_id, weight, ..Default::default() }
}

fn register(name: &str, at: i64, value: &[u8]) -> Kind {
    let data = Some(P4Data { data: Some(p4_data::Data::Bitstring(value.to_vec())) });
    Kind::RegisterEntry(RegisterEntry { register_id: id(name), index: index(at), data })
}

fn pairs() -> Vec<(Entry, Kind)> {
    let send = || call("send", &[&[5], &[3]]);
    let sends = |entry: Entry| entry.action("I.send").data("port", 5u16).data("queue", 3u16);
    let config = |cir, pir, cburst, pburst| MeterConfig { cir, pir, cburst, pburst, ..Default::default() };
    let by_bytes = |entry: Entry| {
        entry
            .data("$METER_SPEC_CIR_KBPS", 1_000u64)
            .data("$METER_SPEC_PIR_KBPS", 2_000u64)
            .data("$METER_SPEC_CBS_KBITS", 3u64)
            .data("$METER_SPEC_PBS_KBITS", 4u64)
    };
    let count = CounterData { byte_count: 700, packet_count: 2 };
    let counts = |entry: Entry| entry.data("$COUNTER_SPEC_BYTES", 700u64).data("$COUNTER_SPEC_PKTS", 2u64);
    vec![
        (
            counts(Entry::of("tallied").exact("hdr.ethernet.dst", 7).action("I.counted").data("port", 9u16)),
            Kind::TableEntry(TableEntry {
                table_id: id("tallied"),
                r#match: exact(&[7]),
                action: does(table_action::Type::Action(call("counted", &[&[9]]))),
                counter_data: Some(count),
                ..Default::default()
            }),
        ),
        (
            by_bytes(Entry::of("limited").exact("hdr.ethernet.dst", 0x100).action("I.policed")),
            Kind::TableEntry(TableEntry {
                table_id: id("limited"),
                r#match: exact(&[1, 0]),
                action: does(table_action::Type::Action(call("policed", &[]))),
                meter_config: Some(config(125_000, 250_000, 375, 500)),
                ..Default::default()
            }),
        ),
        (
            Entry::of("acl")
                .key("hdr.ethernet.src", Match::Ternary(vec![0x10], vec![0xf0]))
                .key("hdr.ethernet.etherType", Match::Range(vec![8, 0], vec![8, 6]))
                .exact("$MATCH_PRIORITY", 3)
                .action("I.deny"),
            Kind::TableEntry(TableEntry {
                table_id: id("acl"),
                r#match: vec![
                    matched(1, FieldMatchType::Ternary(Ternary { value: vec![0x10], mask: vec![0xf0] })),
                    matched(2, FieldMatchType::Range(Range { low: vec![8, 0], high: vec![8, 6] })),
                ],
                priority: (1 << 24) - 3,
                action: does(table_action::Type::Action(call("deny", &[]))),
                ..Default::default()
            }),
        ),
        (
            Entry::default_of("acl").action("I.deny"),
            Kind::TableEntry(TableEntry {
                table_id: id("acl"),
                is_default_action: true,
                action: does(table_action::Type::Action(call("deny", &[]))),
                ..Default::default()
            }),
        ),
        (
            sends(Entry::of("routes").key("hdr.ethernet.dst", Match::Lpm(vec![2, 0, 0, 0, 0, 0], 9)))
                .data("$ENTRY_TTL", 250u32),
            Kind::TableEntry(TableEntry {
                table_id: id("routes"),
                r#match: vec![matched(
                    1,
                    FieldMatchType::Lpm(Lpm { value: vec![2, 0, 0, 0, 0, 0], prefix_len: 9 }),
                )],
                action: does(table_action::Type::Action(send())),
                idle_timeout_ns: 250_000_000,
                ..Default::default()
            }),
        ),
        (
            sends(Entry::of("profile").exact("$ACTION_MEMBER_ID", 11)),
            Kind::ActionProfileMember(ActionProfileMember {
                action_profile_id: id("selector"),
                member_id: 11,
                action: Some(send()),
            }),
        ),
        (
            Entry::of("selector")
                .exact("$SELECTOR_GROUP_ID", 0)
                .data("$ACTION_MEMBER_ID", Value::Numbers(vec![11, 0, 0]))
                .data("$ACTION_MEMBER_STATUS", Value::Bools(vec![true, true, true]))
                .data("$MAX_GROUP_SIZE", 16u32),
            Kind::ActionProfileGroup(ActionProfileGroup {
                action_profile_id: id("selector"),
                // 0 means all of them in P4Runtime.
                group_id: u32::MAX,
                members: vec![member(11, 1), member(u32::MAX, 2)],
                max_size: 16,
            }),
        ),
        (
            Entry::of("balanced").exact("hdr.ethernet.dst", 7).data("$ACTION_MEMBER_ID", 11u32),
            Kind::TableEntry(TableEntry {
                table_id: id("balanced"),
                r#match: exact(&[7]),
                action: does(table_action::Type::ActionProfileMemberId(11)),
                ..Default::default()
            }),
        ),
        (
            Entry::of("balanced").exact("hdr.ethernet.dst", 8).data("$SELECTOR_GROUP_ID", 0u32),
            Kind::TableEntry(TableEntry {
                table_id: id("balanced"),
                r#match: exact(&[8]),
                action: does(table_action::Type::ActionProfileGroupId(u32::MAX)),
                ..Default::default()
            }),
        ),
        (
            counts(Entry::of("seen").exact("$COUNTER_INDEX", 300)),
            Kind::CounterEntry(CounterEntry { counter_id: id("seen"), index: index(300), data: Some(count) }),
        ),
        (
            by_bytes(Entry::of("rate").exact("$METER_INDEX", 4)),
            Kind::MeterEntry(MeterEntry {
                meter_id: id("rate"),
                index: index(4),
                config: Some(config(125_000, 250_000, 375, 500)),
                ..Default::default()
            }),
        ),
        (
            Entry::of("pace")
                .exact("$METER_INDEX", 0)
                .data("$METER_SPEC_CIR_PPS", 1u64)
                .data("$METER_SPEC_PIR_PPS", 2u64)
                .data("$METER_SPEC_CBS_PKTS", 3u64)
                .data("$METER_SPEC_PBS_PKTS", 4u64),
            Kind::MeterEntry(MeterEntry {
                meter_id: id("pace"),
                index: index(0),
                config: Some(config(1, 2, 3, 4)),
                ..Default::default()
            }),
        ),
        (
            Entry::of("last").exact("$REGISTER_INDEX", 15).data("I.last.f1", 0x0102_0304u32),
            register("last", 15, &[1, 2, 3, 4]),
        ),
        (
            Entry::of("pairs")
                .exact("$REGISTER_INDEX", 1)
                .data("I.pairs.low", 5u16)
                .data("I.pairs.high", 6u16),
            register("pairs", 1, &[5, 6]),
        ),
    ]
}

#[test]
fn each_kind_of_entry_becomes_its_entity_and_comes_back() {
    let Objects { schema, translation, .. } = &*OBJECTS;
    for (entry, kind) in pairs() {
        let built = entry.build(schema).unwrap_or_else(|error| panic!("{entry}: {error}"));
        let entity = Entity { entity: Some(kind) };
        assert_eq!(translation.entity(&built), Ok(entity.clone()), "{entry}");
        let back = translation.entry(&entity).unwrap();
        let ids = |entry: &bfrt_proto::TableEntry| {
            let mut ids: Vec<u32> =
                entry.data.iter().flat_map(|data| &data.fields).map(|it| it.field_id).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&back), ids(&built), "{entry}");
        let read = Entry::read(schema, &built).unwrap();
        for key in &schema.table(entry.table()).unwrap().keys {
            assert_eq!(read.matched(&key.name), entry.matched(&key.name), "{entry}: {}", key.name);
        }
        assert_eq!(Entry::read(schema, &back).unwrap(), Entry::read(schema, &built).unwrap(), "{entry}");
        assert!(translation.has(built.table_id), "{entry}");
    }
}

/// Without data it is a read, of one or of all of a table; an id of 0 asks for all of a kind.
#[test]
fn each_kind_of_entry_is_asked_for() {
    let Objects { schema, translation, .. } = &*OBJECTS;
    for (entry, kind) in pairs() {
        let built = entry.build(schema).unwrap();
        let asked = bfrt_proto::TableEntry { data: None, ..built.clone() };
        let request = translation.request(&asked).unwrap();
        assert_eq!(translation.keys(&request), Ok(vec![asked.clone()]), "{entry}");
        let all = bfrt_proto::TableEntry { table_id: built.table_id, ..Default::default() };
        let request = translation.request(&all).unwrap();
        assert_eq!(translation.keys(&request), Ok(vec![all.clone()]), "{entry}");
        let unknown = bfrt_proto::TableEntry { table_id: 1, ..all };
        assert_eq!(translation.request(&unknown).unwrap_err().code, Code::NotFound);
        let cells = matches!(kind, Kind::CounterEntry(_) | Kind::MeterEntry(_) | Kind::RegisterEntry(_));
        let is_register = matches!(kind, Kind::RegisterEntry(_));
        let has_keys = matches!(kind, Kind::TableEntry(_));
        let told = (translation.has_cells(built.table_id), translation.is_register(built.table_id));
        assert_eq!((told, translation.has_keys(built.table_id)), ((cells, is_register), has_keys), "{entry}");
        // A change of a whole entry needs nothing of the old one, unless its meter is to stay.
        let is_group = matches!(kind, Kind::ActionProfileGroup(_));
        assert_eq!(translation.is_whole(&built), !is_group && entry.table() != "limited", "{entry}");
    }
    let all = |kind| translation.keys(&Entity { entity: Some(kind) }).map(|entries| entries.len());
    assert_eq!(all(Kind::TableEntry(TableEntry::default())), Ok(5));
    assert_eq!(all(Kind::ActionProfileMember(ActionProfileMember::default())), Ok(1));
    assert_eq!(all(Kind::ActionProfileGroup(ActionProfileGroup::default())), Ok(1));
    assert_eq!(all(Kind::CounterEntry(CounterEntry::default())), Ok(1));
    assert_eq!(all(Kind::MeterEntry(MeterEntry::default())), Ok(2));
    assert_eq!(all(Kind::RegisterEntry(RegisterEntry::default())), Ok(2));
    let unknown = Kind::CounterEntry(CounterEntry { counter_id: 1, ..Default::default() });
    assert_eq!(all(unknown).unwrap_err().code, Code::NotFound);
}

/// A rate that is left out of a meter, or is as large as the device's largest, has no limit.
#[test]
fn a_device_has_largest_rates() {
    let mut translation = OBJECTS.translation.clone();
    translation.set_device(false);
    let meter = |config| {
        let entry = MeterEntry { meter_id: id("rate"), index: index(4), config, ..Default::default() };
        Entity { entity: Some(Kind::MeterEntry(entry)) }
    };
    let unlimited = translation.entry(&meter(None)).unwrap();
    assert_eq!(translation.entity(&unlimited), Ok(meter(None)));
    let fields = unlimited.data.clone().unwrap().fields;
    assert_eq!(fields.len(), 4);
    let half = bfrt_proto::TableEntry {
        data: Some(bfrt_proto::TableData { action_id: 0, fields: fields[..2].to_vec() }),
        ..unlimited.clone()
    };
    assert_eq!(translation.entity(&half), Ok(meter(None)));
    assert!(translation.is_whole(&unlimited) && !translation.is_whole(&half));
    let one =
        MeterConfig { cir: 125, pir: i64::MAX, cburst: i64::MAX, pburst: i64::MAX, ..Default::default() };
    let limited = translation.entry(&meter(Some(one))).unwrap();
    assert_eq!(translation.entity(&limited), Ok(meter(Some(one))));
    assert_eq!(limited.data.unwrap().fields[1..], fields[1..]);
    // As the driver reads a meter of packets that was never set.
    let (rate, burst) = (649_481_027_584u64, 547_608_330_240u64);
    let read = Entry::of("pace")
        .exact("$METER_INDEX", 0)
        .data("$METER_SPEC_CIR_PPS", rate)
        .data("$METER_SPEC_PIR_PPS", rate)
        .data("$METER_SPEC_CBS_PKTS", burst)
        .data("$METER_SPEC_PBS_PKTS", burst);
    let unset = MeterEntry { meter_id: id("pace"), index: index(0), ..Default::default() };
    let unset = Entity { entity: Some(Kind::MeterEntry(unset)) };
    let read = read.build(&OBJECTS.schema).unwrap();
    assert_eq!(translation.entity(&read), Ok(unset.clone()));
    assert_eq!(translation.entry(&unset).unwrap(), read);
}

/// Fields of groups that are none, of another kind, or of another number than members.
#[test]
fn groups_that_make_no_sense_are_refused() {
    let Objects { schema, translation, .. } = &*OBJECTS;
    let group = |ids: Vec<u32>, status: Vec<bool>| {
        let entry = Entry::of("selector")
            .exact("$SELECTOR_GROUP_ID", 1)
            .data("$ACTION_MEMBER_ID", Value::Numbers(ids))
            .data("$ACTION_MEMBER_STATUS", Value::Bools(status))
            .data("$MAX_GROUP_SIZE", 16u32);
        translation.entity(&entry.build(schema).unwrap()).map(|entity| match entity.entity {
            Some(Kind::ActionProfileGroup(group)) => {
                group.members.iter().map(|member| (member.member_id, member.weight)).collect()
            }
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(group(vec![3, 4, 3, 5], vec![true, true, true, false]), Ok(vec![(3, 2), (4, 1)]));
    assert_eq!(group(vec![3, 4], vec![true]).unwrap_err().code, Code::InvalidArgument);
    assert_eq!(group(vec![u32::MAX], vec![true]).unwrap_err().code, Code::InvalidArgument);
    assert!(group(vec![3; 1 << 16], vec![true; 1 << 16]).is_ok());
    assert_eq!(
        group(vec![3; (1 << 16) + 1], vec![true; (1 << 16) + 1]).unwrap_err().code,
        Code::InvalidArgument
    );
}

/// A range of everything is no match; one that lacks a value at either end is.
#[test]
fn ranges_of_everything_match_nothing_in_particular() {
    let Objects { schema, translation, .. } = &*OBJECTS;
    for (low, high, is_all) in [
        ([0, 0], [0xff, 0xff], true),
        ([0, 0], [0x7f, 0xff], false),
        ([0, 0], [0xff, 0xfe], false),
        ([0, 1], [0xff, 0xff], false),
        ([0, 0], [0, 0xff], false),
    ] {
        let key = Match::Range(low.to_vec(), high.to_vec());
        let entry = Entry::of("acl").key("hdr.ethernet.etherType", key).exact("$MATCH_PRIORITY", 1);
        let built = entry.action("I.deny").build(schema).unwrap();
        let read = Entry::read(schema, &built).unwrap();
        assert_eq!(read.matched("hdr.ethernet.etherType").is_none(), is_all, "{low:?} {high:?}");
        let Some(Kind::TableEntry(entity)) = translation.entity(&built).unwrap().entity else {
            panic!("no entry")
        };
        assert_eq!(entity.r#match.is_empty(), is_all, "{low:?} {high:?}");
    }
}

/// Cells have their own fields, and no others.
#[test]
fn fields_of_other_tables_are_refused() {
    let Objects { schema, translation, .. } = &*OBJECTS;
    for (entry, kind) in pairs() {
        let mut built = entry.build(schema).unwrap();
        let cells = matches!(kind, Kind::CounterEntry(_) | Kind::MeterEntry(_) | Kind::RegisterEntry(_));
        if let Some(data) = built.data.as_mut().filter(|_| cells) {
            data.fields[0].field_id = 99;
            assert_eq!(translation.entity(&built).unwrap_err().code, Code::InvalidArgument, "{entry}");
        }
    }
    let entry = Entry::of("tallied").exact("port", 0x1_0000).exact_text_key("name", "h1");
    assert_eq!((entry.exact_number("port"), entry.exact_text("name")), (Some(0x1_0000), Some("h1")));
    let long = Entry::of("tallied").exact("port", 1 << 64);
    assert_eq!((long.exact_number("port"), long.exact_number("name")), (None, None));
}

/// Without a P4Info, the schema names the same objects.
#[test]
fn the_schema_alone_tells_of_the_same_objects() {
    let Objects { schema, info, .. } = &*OBJECTS;
    let named = |info: &P4Info| {
        let name = |preamble: &Option<Preamble>| preamble.as_ref().unwrap().name.clone();
        let counters =
            info.counters.iter().map(|it| (name(&it.preamble), it.size, it.spec.map(|spec| spec.unit)));
        let meters =
            info.meters.iter().map(|it| (name(&it.preamble), it.size, it.spec.map(|spec| spec.unit)));
        let registers = info.registers.iter().map(|it| (name(&it.preamble), i64::from(it.size), None));
        let tables = info.tables.iter().map(|it| (name(&it.preamble), 0, None));
        let selectors = info.action_profiles.iter().filter(|it| it.with_selector);
        let selectors = selectors.map(|it| (name(&it.preamble), 1, None));
        let mut all: Vec<_> =
            counters.chain(meters).chain(registers).chain(tables).chain(selectors).collect();
        all.sort();
        all
    };
    assert_eq!(named(&p4runtime::info(schema)), named(info));
}
