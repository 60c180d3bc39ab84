//! Translated values, restrictions and references, as a controller meets them.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_entities::{Candidate, Checked, Program, read, write};
use p4rack_p4::Options;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::action_profile_action::WatchKind;
use p4rack_p4rt::p4::v1::field_match::{self, FieldMatchType};
use p4rack_p4rt::p4::v1::packet_replication_engine_entry::Type as Replication;
use p4rack_p4rt::p4::v1::update::Type;
use p4rack_p4rt::p4::v1::write_request::Atomicity;
use p4rack_p4rt::p4::v1::{
    Action, ActionProfileAction, ActionProfileActionSet, ActionProfileMember, Entity, FieldMatch,
    MulticastGroupEntry, PacketMetadata, PacketReplicationEngineEntry, ReadRequest, Replica, TableAction,
    TableEntry, Update, WriteRequest, action, replica, table_action,
};
use p4rack_switch::{Config, PortConfig, Switch};
use p4rack_wire::Nanos;
use std::sync::Arc;

const PROGRAM: &str = include_str!("rules.p4");
const TABLES: [&str; 8] = ["vrfs", "hops", "routes", "neighbors", "links", "acl", "balanced", "replicas"];

struct Rig {
    program: Arc<Program>,
    switch: Switch,
}

impl Rig {
    fn new() -> Rig {
        let ports = (1..9).map(|port| PortConfig { port, rate_bps: 1_000_000_000, queue_limit_bytes: None });
        let mut switch = Switch::new(Config { ports: ports.collect(), ..Config::default() });
        let candidate = Candidate::compile(PROGRAM, "rules.p4", &Options::default()).unwrap();
        Rig { program: candidate.load(None, &mut switch), switch }
    }

    fn update(&mut self, kind: Type, entity: EntityKind) -> Checked<()> {
        self.updates(&[(kind, entity)], Atomicity::ContinueOnError).remove(0)
    }

    fn updates(&mut self, updates: &[(Type, EntityKind)], atomicity: Atomicity) -> Vec<Checked<()>> {
        let update = |(kind, entity): &(Type, EntityKind)| Update {
            r#type: *kind as i32,
            entity: Some(Entity { entity: Some(entity.clone()) }),
        };
        let updates = updates.iter().map(update).collect();
        let request = WriteRequest { updates, atomicity: atomicity as i32, ..Default::default() };
        write(&self.program, &request, &mut self.switch, Nanos(0))
    }

    fn insert(&mut self, entity: EntityKind) -> Checked<()> {
        self.update(Type::Insert, entity)
    }

    fn delete(&mut self, entity: EntityKind) -> Checked<()> {
        self.update(Type::Delete, entity)
    }

    fn action(&self, name: &str, args: &[&[u8]]) -> Action {
        let mut actions = self.program.info.actions.iter().filter_map(|action| action.preamble.as_ref());
        let action_id = actions.find(|preamble| preamble.name == format!("I.{name}")).unwrap().id;
        let param =
            |(at, value): (usize, &&[u8])| action::Param { param_id: at as u32 + 1, value: value.to_vec() };
        Action { action_id, params: args.iter().enumerate().map(param).collect() }
    }

    /// An entry with exact keys.
    fn entry(&self, table: &str, keys: &[&[u8]], action: Option<(&str, &[&[u8]])>) -> TableEntry {
        let exact = |(at, value): (usize, &&[u8])| exact(at as u32 + 1, value);
        let call =
            |(name, args)| TableAction { r#type: Some(table_action::Type::Action(self.action(name, args))) };
        TableEntry {
            table_id: id(table),
            r#match: keys.iter().enumerate().map(exact).collect(),
            action: action.map(call),
            ..Default::default()
        }
    }

    fn simple(&self, table: &str, keys: &[&[u8]], action: &str, args: &[&[u8]]) -> EntityKind {
        EntityKind::TableEntry(self.entry(table, keys, Some((action, args))))
    }

    fn key(&self, table: &str, keys: &[&[u8]]) -> EntityKind {
        EntityKind::TableEntry(self.entry(table, keys, None))
    }

    fn route(&self, vrf: &str, dst: u8, action: &str, args: &[&[u8]]) -> EntityKind {
        let mut entry = self.entry("routes", &[vrf.as_bytes()], Some((action, args)));
        let prefix = field_match::Lpm { value: vec![dst, 0, 0, 0], prefix_len: 8 };
        entry.r#match.push(FieldMatch { field_id: 2, field_match_type: Some(FieldMatchType::Lpm(prefix)) });
        EntityKind::TableEntry(entry)
    }

    fn read(&self, entity: EntityKind) -> Vec<EntityKind> {
        let entities = vec![Entity { entity: Some(entity) }];
        let (found, outcomes) =
            read(&self.program, ReadRequest { entities, ..Default::default() }, &self.switch, Nanos(0));
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        found.into_iter().filter_map(|found| found.entity).collect()
    }
}

fn id(table: &str) -> u32 {
    0x0200_0000 | (TABLES.iter().position(|name| *name == table).unwrap() as u32 + 1)
}

fn exact(field_id: u32, value: &[u8]) -> FieldMatch {
    let value = field_match::Exact { value: value.to_vec() };
    FieldMatch { field_id, field_match_type: Some(FieldMatchType::Exact(value)) }
}

fn group(id: u32, replicas: &[(&str, u32)]) -> EntityKind {
    let replica = |(port, instance): &(&str, u32)| Replica {
        instance: *instance,
        port_kind: Some(replica::PortKind::Port(port.as_bytes().to_vec())),
        ..Default::default()
    };
    let entry = MulticastGroupEntry {
        multicast_group_id: id,
        replicas: replicas.iter().map(replica).collect(),
        ..Default::default()
    };
    EntityKind::PacketReplicationEngineEntry(PacketReplicationEngineEntry {
        r#type: Some(Replication::MulticastGroupEntry(entry)),
    })
}

fn refusal(outcome: Checked<()>) -> (Code, String) {
    let error = outcome.unwrap_err();
    (error.code, error.message)
}

#[test]
fn names_are_read_back_as_they_were_written() {
    let mut rig = Rig::new();
    let hop = rig.simple("hops", &[b"spine-1"], "send", &[b"3", &[0x01, 0x02, 0x03]]);
    let vrf = rig.simple("vrfs", &[b"red"], "none", &[]);
    let route = rig.route("red", 10, "to_hop", &[b"spine-1"]);
    for entity in [&hop, &vrf, &route] {
        rig.insert(entity.clone()).unwrap();
    }
    for entity in [&hop, &vrf, &route] {
        let EntityKind::TableEntry(entry) = entity else { unreachable!() };
        let all = TableEntry { table_id: entry.table_id, ..Default::default() };
        assert_eq!(rig.read(EntityKind::TableEntry(all)), std::slice::from_ref(entity));
        let one = TableEntry { action: None, ..entry.clone() };
        assert_eq!(rig.read(EntityKind::TableEntry(one)), std::slice::from_ref(entity));
    }
    assert_eq!(rig.read(rig.key("vrfs", &[b"blue"])), [], "no entry has that name");
    let none = rig.delete(rig.key("vrfs", &[b"blue"]));
    assert_eq!(
        refusal(none),
        (Code::NotFound, "table I.vrfs key `vrf`: there is no `vrf_t` \"blue\"".into())
    );
    // The data plane has numbers: a decimal one is itself.
    let entry = rig.switch.entries(p4rack_p4::ir::TableId(table_number(&rig, "I.hops"))).unwrap().remove(0);
    assert_eq!(entry.call.args, [3u32.into(), 62u32.into()]);
}

#[test]
fn refusals_have_the_names_of_controllers() {
    let mut rig = Rig::new();
    rig.insert(rig.simple("vrfs", &[b"red"], "none", &[])).unwrap();
    let route = rig.route("red", 10, "none", &[]);
    rig.insert(route.clone()).unwrap();
    let key = "entry vrf=red dst=10.0.0.0/8 of table I.routes";
    assert_eq!(refusal(rig.insert(route.clone())), (Code::AlreadyExists, format!("{key} already exists")));
    rig.delete(route.clone()).unwrap();
    assert_eq!(refusal(rig.delete(route)), (Code::NotFound, format!("{key} not found")));
}

fn table_number(rig: &Rig, name: &str) -> u32 {
    rig.program.ir.tables.iter().position(|table| table.named.name == name).unwrap() as u32
}

#[test]
fn names_end_with_the_last_entry_that_uses_them_also_if_a_request_is_undone() {
    let mut rig = Rig::new();
    let hop = |rig: &Rig, name: &str, port: &str| {
        rig.simple("hops", &[name.as_bytes()], "send", &[port.as_bytes(), &[1]])
    };
    // More names than there are numbers, one after the other.
    for number in 0..5_000 {
        let name = format!("hop-{number}");
        rig.insert(hop(&rig, &name, "1")).unwrap();
        rig.delete(rig.key("hops", &[name.as_bytes()])).unwrap();
    }
    rig.insert(hop(&rig, "kept", "1")).unwrap();
    let before = rig.read(EntityKind::TableEntry(TableEntry { table_id: id("hops"), ..Default::default() }));
    let bad = rig.simple("vrfs", &[b""], "none", &[]);
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let updates = [
            (Type::Delete, rig.key("hops", &[b"kept"])),
            (Type::Insert, hop(&rig, "other", "2")),
            (Type::Insert, bad.clone()),
        ];
        assert_eq!(refusal(rig.updates(&updates, atomicity).remove(2)).0, Code::InvalidArgument);
        let all = EntityKind::TableEntry(TableEntry { table_id: id("hops"), ..Default::default() });
        assert_eq!(rig.read(all), before);
        assert_eq!(refusal(rig.delete(rig.key("hops", &[b"other"]))).0, Code::NotFound);
    }
}

#[test]
fn what_an_entry_refers_to_must_exist() {
    let mut rig = Rig::new();
    let route = rig.route("red", 10, "to_hop", &[b"a"]);
    assert_eq!(
        refusal(rig.insert(route.clone())),
        (
            Code::InvalidArgument,
            "an entry of I.routes refers to something that does not exist: there is no entry of I.vrfs with vrf = \"red\""
                .into()
        )
    );
    rig.insert(rig.simple("vrfs", &[b"red"], "none", &[])).unwrap();
    assert_eq!(
        refusal(rig.insert(route.clone())),
        (
            Code::InvalidArgument,
            "action I.to_hop refers to something that does not exist: there is no entry of I.hops with hop = \"a\"".into()
        )
    );
    rig.insert(rig.simple("hops", &[b"a"], "send", &[b"1", &[1]])).unwrap();
    rig.insert(route).unwrap();
    // Modifications are checked as well, and release their former references.
    let group_route = rig.route("red", 10, "to_group", &[&[4]]);
    assert_eq!(
        refusal(rig.update(Type::Modify, group_route.clone())).1,
        "action I.to_group refers to something that does not exist: there is no multicast group 4"
    );
    rig.insert(group(4, &[])).unwrap();
    rig.update(Type::Modify, group_route).unwrap();
    rig.delete(rig.key("hops", &[b"a"])).unwrap();
    assert_eq!(
        refusal(rig.delete(group(4, &[]))),
        (
            Code::FailedPrecondition,
            "the multicast group 4 is in use: action I.to_group refers to it (1 in all); delete what refers to it first"
                .into()
        )
    );
}

#[test]
fn what_is_referred_to_stays() {
    let mut rig = Rig::new();
    rig.insert(rig.simple("vrfs", &[b"red"], "none", &[])).unwrap();
    rig.insert(rig.simple("hops", &[b"a"], "send", &[b"1", &[1]])).unwrap();
    for dst in 1..4 {
        rig.insert(rig.route("red", dst, "to_hop", &[b"a"])).unwrap();
    }
    assert_eq!(
        refusal(rig.delete(rig.key("vrfs", &[b"red"]))),
        (
            Code::FailedPrecondition,
            "the entry of I.vrfs with vrf = \"red\" is in use: an entry of I.routes refers to it (3 in all); delete what \
             refers to it first"
                .into()
        )
    );
    // Its action may change.
    rig.update(Type::Modify, rig.simple("hops", &[b"a"], "send", &[b"2", &[2]])).unwrap();
    // An undone deletion of a referrer refers again.
    let updates = [
        (Type::Delete, rig.route("red", 1, "none", &[])),
        (Type::Delete, rig.route("red", 2, "none", &[])),
        (Type::Delete, rig.key("hops", &[b"a"])),
    ];
    let outcomes = rig.updates(&updates, Atomicity::RollbackOnError);
    assert_eq!(refusal(outcomes[2].clone()).0, Code::FailedPrecondition);
    assert!(refusal(rig.delete(rig.key("hops", &[b"a"]))).1.contains("(3 in all)"));
    for dst in 1..4 {
        rig.delete(rig.route("red", dst, "none", &[])).unwrap();
    }
    rig.delete(rig.key("hops", &[b"a"])).unwrap();
    rig.delete(rig.key("vrfs", &[b"red"])).unwrap();
}

#[test]
fn references_to_one_table_belong_together() {
    let mut rig = Rig::new();
    for (site, host) in [(1, 1), (2, 2)] {
        rig.insert(rig.simple("neighbors", &[&[site], &[host]], "none", &[])).unwrap();
    }
    let link = |rig: &Rig, tag: u8, host: u8| rig.simple("links", &[&[tag]], "link", &[&[1], &[host]]);
    assert_eq!(
        refusal(rig.insert(link(&rig, 1, 2))).1,
        "action I.link refers to something that does not exist: there is no entry of I.neighbors with site = 1, host = 2"
    );
    rig.insert(link(&rig, 1, 1)).unwrap();
    assert_eq!(refusal(rig.delete(rig.key("neighbors", &[&[1], &[1]]))).0, Code::FailedPrecondition);
    rig.delete(rig.key("neighbors", &[&[2], &[2]])).unwrap();
    // The default action refers, too.
    let default =
        TableEntry { is_default_action: true, ..rig.entry("links", &[], Some(("link", &[&[1], &[1]]))) };
    rig.update(Type::Modify, EntityKind::TableEntry(default.clone())).unwrap();
    rig.delete(rig.key("links", &[&[1]])).unwrap();
    assert_eq!(refusal(rig.delete(rig.key("neighbors", &[&[1], &[1]]))).0, Code::FailedPrecondition);
    rig.update(Type::Modify, EntityKind::TableEntry(TableEntry { action: None, ..default })).unwrap();
    rig.delete(rig.key("neighbors", &[&[1], &[1]])).unwrap();
}

#[test]
fn replicas_refer_to_the_table_that_says_so() {
    let mut rig = Rig::new();
    assert_eq!(
        refusal(rig.insert(group(9, &[("2", 5)]))).1,
        "a replica of a multicast group refers to something that does not exist: there is no entry of E.replicas with port \
         = 2, instance = 5"
    );
    let replica = |rig: &Rig, port: u8, instance: u8| {
        let none = rig.entry("neighbors", &[], Some(("none", &[]))).action;
        let mut entry = rig.entry("replicas", &[&[port], &[instance]], None);
        let action = &mut entry.action;
        *action = none;
        if let Some(TableAction { r#type: Some(table_action::Type::Action(action)) }) = action {
            let mut actions = rig.program.info.actions.iter().filter_map(|action| action.preamble.as_ref());
            action.action_id = actions.find(|preamble| preamble.name == "E.none").unwrap().id;
        }
        EntityKind::TableEntry(entry)
    };
    rig.insert(replica(&rig, 2, 5)).unwrap();
    // Ports are named as the program says, in replicas, too.
    rig.insert(replica(&rig, 7, 1)).unwrap();
    rig.insert(group(9, &[("2", 5), ("uplink", 1)])).unwrap();
    assert_eq!(rig.read(group(9, &[])), [group(9, &[("2", 5), ("uplink", 1)])]);
    let error = refusal(rig.insert(group(8, &[("lost", 1)])));
    assert_eq!(error.0, Code::InvalidArgument);
    assert!(error.1.starts_with("replica port: \"lost\" is no port of type `port_t`"), "{}", error.1);
    assert_eq!(
        refusal(rig.insert(group(8, &[("02", 5)]))).0,
        Code::InvalidArgument,
        "no number has zeros in front"
    );
    assert_eq!(refusal(rig.delete(rig.key("replicas", &[&[7], &[1]]))).0, Code::FailedPrecondition);
    rig.update(Type::Modify, group(9, &[("2", 5)])).unwrap();
    rig.delete(rig.key("replicas", &[&[7], &[1]])).unwrap();
    rig.delete(group(9, &[])).unwrap();
    rig.delete(rig.key("replicas", &[&[2], &[5]])).unwrap();
}

#[test]
fn members_and_action_sets_have_names_and_references() {
    let mut rig = Rig::new();
    let profile = rig.program.info.action_profiles[0].preamble.as_ref().unwrap().id;
    let member = |rig: &Rig, hop: &str| {
        EntityKind::ActionProfileMember(ActionProfileMember {
            action_profile_id: profile,
            member_id: 1,
            action: Some(rig.action("to_hop", &[hop.as_bytes()])),
        })
    };
    assert_eq!(refusal(rig.insert(member(&rig, "a"))).0, Code::InvalidArgument);
    for hop in ["a", "b"] {
        rig.insert(rig.simple("hops", &[hop.as_bytes()], "send", &[b"1", &[1]])).unwrap();
    }
    rig.insert(member(&rig, "a")).unwrap();
    let all = ActionProfileMember { action_profile_id: profile, ..Default::default() };
    assert_eq!(rig.read(EntityKind::ActionProfileMember(all)), [member(&rig, "a")]);
    assert_eq!(refusal(rig.delete(rig.key("hops", &[b"a"]))).0, Code::FailedPrecondition);
    rig.update(Type::Modify, member(&rig, "b")).unwrap();
    rig.delete(rig.key("hops", &[b"a"])).unwrap();
    rig.delete(member(&rig, "b")).unwrap();
    rig.delete(rig.key("hops", &[b"b"])).unwrap();

    let set = |rig: &Rig, group_action: Option<Action>| {
        let one = |port: &str| ActionProfileAction {
            action: Some(rig.action("to_hop", &[b"c"])),
            weight: 1,
            watch_kind: Some(WatchKind::WatchPort(port.as_bytes().to_vec())),
        };
        let set = ActionProfileActionSet {
            action_profile_actions: vec![one("2"), one("uplink")],
            group_action,
            ..Default::default()
        };
        let action = TableAction { r#type: Some(table_action::Type::ActionProfileActionSet(set)) };
        EntityKind::TableEntry(TableEntry { action: Some(action), ..rig.entry("balanced", &[&[1]], None) })
    };
    assert_eq!(refusal(rig.insert(set(&rig, None))).0, Code::InvalidArgument);
    rig.insert(rig.simple("hops", &[b"c"], "send", &[b"1", &[1]])).unwrap();
    let of_the_next_version = refusal(rig.insert(set(&rig, Some(rig.action("none", &[])))));
    assert_eq!(of_the_next_version.0, Code::Unimplemented);
    assert!(of_the_next_version.1.contains("group_action, of P4Runtime 1.6"), "{}", of_the_next_version.1);
    rig.insert(set(&rig, None)).unwrap();
    assert_eq!(rig.read(rig.key("balanced", &[&[1]])), [set(&rig, None)]);
    assert!(refusal(rig.delete(rig.key("hops", &[b"c"]))).1.contains("(2 in all)"));
    rig.delete(rig.key("balanced", &[&[1]])).unwrap();
    rig.delete(rig.key("hops", &[b"c"])).unwrap();
}

#[test]
fn restrictions_name_the_clause_that_does_not_hold() {
    let mut rig = Rig::new();
    assert_eq!(
        refusal(rig.insert(rig.simple("vrfs", &[b""], "none", &[]))),
        (
            Code::InvalidArgument,
            "table I.vrfs: the entry is against its @entry_restriction `vrf != 0`".into()
        )
    );
    assert_eq!(
        refusal(rig.insert(rig.route("red", 1, "to_group", &[&[0]]))),
        (
            Code::InvalidArgument,
            "table I.routes: action I.to_group is against its @action_restriction `group != 0`".into()
        )
    );
    let ternary = |field_id, value: u8, mask: &[u8]| FieldMatch {
        field_id,
        field_match_type: Some(FieldMatchType::Ternary(field_match::Ternary {
            value: vec![value],
            mask: mask.to_vec(),
        })),
    };
    let prefix = |prefix_len| FieldMatch {
        field_id: 3,
        field_match_type: Some(FieldMatchType::Lpm(field_match::Lpm { value: vec![0], prefix_len })),
    };
    let range = |low: u8, high: u8| FieldMatch {
        field_id: 4,
        field_match_type: Some(FieldMatchType::Range(field_match::Range {
            low: vec![low],
            high: vec![high],
        })),
    };
    let host = ternary(2, 1, &[0xff]);
    let (dst, tag) = (prefix(8), range(0x10, 0x20));
    for (keys, priority, clause) in [
        (vec![dst.clone(), tag.clone()], 1, None),
        (vec![ternary(1, 3, &[0xff]), host.clone(), dst.clone(), tag.clone()], 2, None),
        (
            vec![ternary(1, 3, &[0x0f]), host.clone(), dst.clone(), tag.clone()],
            3,
            Some("host::mask != 0 -> site == 3"),
        ),
        (vec![host, dst.clone(), tag.clone()], 4, Some("host::mask != 0 -> site == 3")),
        (vec![prefix(7), tag.clone()], 5, Some("dst::prefix_length >= 8")),
        (vec![tag.clone()], 6, Some("dst::prefix_length >= 8")),
        (vec![dst.clone(), tag], 1000, Some("::priority < 1000")),
        (vec![dst.clone()], 7, Some("tag::low >= 0x10 || tag == 5")),
        (vec![dst.clone(), range(5, 6)], 8, Some("tag::low >= 0x10 || tag == 5")),
        (vec![dst, range(5, 5)], 9, None),
    ] {
        let entry = rig.entry("acl", &[], Some(("none", &[])));
        let outcome = rig.insert(EntityKind::TableEntry(TableEntry { r#match: keys, priority, ..entry }));
        let expected = clause.map(|clause| {
            let message = format!("table I.acl: the entry is against its @entry_restriction `{clause}`");
            (Code::InvalidArgument, message)
        });
        assert_eq!(outcome.err().map(|error| (error.code, error.message)), expected, "priority {priority}");
    }
}

#[test]
fn packets_to_and_from_controllers_name_ports() {
    let rig = Rig::new();
    let metadata = |value: &[u8]| vec![PacketMetadata { metadata_id: 1, value: value.to_vec() }];
    let frame = rig.program.packet_out.prepend(&metadata(b"uplink"), b"xy").unwrap();
    assert_eq!(frame, [0x03, 0x80, b'x', b'y']);
    assert_eq!(rig.program.packet_out.prepend(&metadata(b"3"), b"").unwrap(), [0x01, 0x80]);
    let error = rig.program.packet_out.prepend(&metadata(b"down"), b"").unwrap_err();
    assert!(
        error.message.starts_with("packet_out metadata field `egress`: \"down\" is no port of type `port_t`")
    );
    let seen = |frame: &[u8]| rig.program.packet_in.split(frame).unwrap().0.remove(0).value;
    assert_eq!((seen(&[0x03, 0x80]), seen(&[0x02, 0x00])), (b"uplink".to_vec(), b"4".to_vec()));
}

#[test]
fn a_table_with_rules_takes_the_general_way_and_others_do_not() {
    let rig = Rig::new();
    // Nothing of these can be read as plain entries, so nothing is written as such.
    for table in TABLES {
        assert!(rig.program.plans.read(id(table), &rig.switch, 0, 1).is_none(), "{table}");
    }
}
