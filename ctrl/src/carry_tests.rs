use super::*;
use crate::entries;
use crate::items::Item;
use p4rack_p4rt::p4::v1::{ActionProfileMember, TableAction};

const PROGRAM: &str = "#include <core.p4>\n#include <v1model.p4>\n
    header e_t { bit<48> dst; bit<48> src; bit<16> kind; }
    struct h_t { e_t e; }
    struct m_t { bit<8> class; }
    parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) {
        state start { p.extract(h.e); transition accept; }
    }
    control V(inout h_t h, inout m_t m) { apply { } }
    control I(inout h_t h, inout m_t m, inout standard_metadata_t s) {
        meter(8, MeterType.packets) pace;
        action to(bit<9> port, bit<8> class) { s.egress_spec = port; m.class = class; }
        action lost() { mark_to_drop(s); }
        table one { key = { h.e.dst: exact; h.e.kind: ternary; } actions = { to; lost; } default_action = lost(); size = 4; }
        table two { key = { h.e.src: exact; } actions = { to; } implementation = action_profile(4); }
        apply { one.apply(); two.apply(); pace.execute_meter((bit<32>) m.class, m.class); }
    }
    control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { } }
    control C(inout h_t h, inout m_t m) { apply { } }
    control D(packet_out p, in h_t h) { apply { p.emit(h.e); } }
    V1Switch(P(), V(), I(), E(), C(), D()) main;";
const ENTRIES: &str = "one dst=02:00:00:00:00:01 kind=0x800 --priority 1 --action to port=1 class=2
    one dst=02:00:00:00:00:02 --priority 1 --action lost
    one --default --action to port=3 class=0
    --multicast 1 1 2
    --clone 5 4";

fn schema(text: &str) -> Schema {
    let compiled = p4rack_p4::compile(text, "t.p4", &p4rack_p4::Options::default());
    Schema::new(compiled.unwrap_or_else(|why| panic!("{why}")).p4info).unwrap()
}

fn entities() -> Vec<Entity> {
    entries::read(ENTRIES, &schema(PROGRAM)).unwrap()
}

/// What becomes of the entities if the text is replaced: in words, and why others are dropped.
fn carried(from: &str, to: &str) -> (Vec<String>, Vec<String>, bool) {
    assert!(PROGRAM.contains(from), "{from}");
    let new = schema(&PROGRAM.replace(from, to));
    let carried = carry(&schema(PROGRAM), &new, &entities(), &BTreeMap::new());
    let kept = carried.kept.iter().map(|(_, entity)| Item::of(&new, entity).unwrap().to_string());
    let dropped = carried.dropped.iter().map(|(_, dropped)| format!("{}: {}", dropped.what, dropped.why));
    (kept.collect(), dropped.collect(), carried.is_whole)
}

#[test]
fn the_same_names_hold_everything() {
    let (kept, dropped, is_whole) = carried("size = 4", "size = 8");
    assert_eq!((kept.len(), dropped.len(), is_whole), (5, 0, true), "{dropped:?}");
    assert_eq!(carried("h.e.dst: exact; h.e.kind: ternary;", "h.e.dst: exact; h.e.kind: ternary;").0, kept);
}

/// Ids of keys and parameters are their positions.
#[test]
fn values_follow_their_names_not_their_places() {
    let before = carried("size = 4", "size = 8").0;
    for (from, to) in [
        ("h.e.dst: exact; h.e.kind: ternary;", "h.e.kind: ternary; h.e.dst: exact;"),
        ("to(bit<9> port, bit<8> class)", "to(bit<8> class, bit<9> port)"),
    ] {
        let (kept, dropped, is_whole) = carried(from, to);
        assert_eq!((kept, dropped, is_whole), (before.clone(), vec![], false), "{to}");
    }
}

#[test]
fn what_does_not_fit_says_why() {
    for (from, to, kept, why) in [
        ("table one", "@name(\"uno\") table one", 2, "there is no table I.one now"),
        ("h.e.kind: ternary;", "", 3, "there is no key h.e.kind now"),
        ("h.e.kind: ternary;", "h.e.kind: ternary; m.class: exact;", 3, "there is a key m.class now"),
        ("h.e.kind: ternary", "h.e.kind: optional", 3, "was ternary and is optional now"),
        ("bit<16> kind", "bit<8> kind", 3, "key h.e.kind was of 16 bits and is of 8 bits now"),
        (
            "to(bit<9> port, bit<8> class)",
            "to(bit<9> port, bit<7> class)",
            3,
            "was of 8 bits and is of 7 bits now",
        ),
        (
            "actions = { to; lost; }",
            "actions = { lost; NoAction; }",
            3,
            "the table does not offer action I.to now",
        ),
        (
            "actions = { to; lost; }",
            "actions = { @tableonly to; lost; }",
            4,
            "can't be the table's default now",
        ),
        ("default_action = lost()", "const default_action = lost()", 4, "default action is constant now"),
        ("size = 4", "size = 1", 4, "the table has room for 1 entries now"),
    ] {
        let from_is = match to.contains("bit<7>") {
            // The argument is a constant of the new width.
            true => PROGRAM.replace("m.class = class;", "m.class = 1w0 ++ class;"),
            false => PROGRAM.to_owned(),
        };
        let new = schema(&from_is.replace(from, to));
        let carried = carry(&schema(PROGRAM), &new, &entities(), &BTreeMap::new());
        assert_eq!(carried.kept.len(), kept, "{to}: {:?}", carried.dropped);
        assert!(!carried.is_whole, "{to}");
        let said: Vec<&str> = carried.dropped.iter().map(|(_, dropped)| dropped.why.as_str()).collect();
        assert!(said.iter().any(|said| said.contains(why)), "{to}: {said:?}");
    }
}

#[test]
fn what_refers_to_a_member_that_does_not_fit_goes_with_it() {
    let old = schema(PROGRAM);
    let profile = id_of(old.info().action_profiles[0].preamble.as_ref());
    let Some(EntityKind::TableEntry(one)) = entities()[0].entity.clone() else { panic!("an entry") };
    let Some(table_action::Type::Action(call)) = one.action.unwrap().r#type else { panic!("an action") };
    let member = ActionProfileMember { action_profile_id: profile, member_id: 7, action: Some(call) };
    let refers = TableEntry {
        table_id: id_of(old.table("two").unwrap().preamble.as_ref()),
        r#match: vec![FieldMatch { field_id: 1, field_match_type: one.r#match[0].field_match_type.clone() }],
        action: Some(TableAction { r#type: Some(table_action::Type::ActionProfileMemberId(7)) }),
        ..Default::default()
    };
    let wrap = |kind| Entity { entity: Some(kind) };
    // In the other order, too.
    let all = [wrap(EntityKind::TableEntry(refers)), wrap(EntityKind::ActionProfileMember(member))];
    assert!(carry(&old, &old, &all, &BTreeMap::new()).is_whole);
    let renamed =
        PROGRAM.replace("bit<8> class)", "bit<8> grade)").replace("m.class = class", "m.class = grade");
    let carried = carry(&old, &schema(&renamed), &all, &BTreeMap::new());
    let said: Vec<&str> = carried.dropped.iter().map(|(_, dropped)| dropped.why.as_str()).collect();
    assert_eq!(said, ["action I.to has a parameter grade now", "its member 7 does not fit"]);
}

#[test]
fn rates_of_an_entry_are_kept_only_where_its_meter_has_their_unit() {
    let with_meter = |unit: &str| {
        let meter = format!("direct_meter<bit<8>>(MeterType.{unit}) rate;");
        let declared = PROGRAM.replace("meter(8,", &format!("{meter} meter(8,"));
        let table = declared.replace(
            "default_action = lost(); size = 4;",
            "default_action = lost(); size = 4; meters = rate;",
        );
        schema(&table.replace("m.class = class; }", "m.class = class; rate.read(m.class); }").replace(
            "action lost() { mark_to_drop(s); }",
            "action lost() { mark_to_drop(s); rate.read(m.class); }",
        ))
    };
    let (bytes, packets, none) = (with_meter("bytes"), with_meter("packets"), schema(PROGRAM));
    let mut entity = entities()[0].clone();
    let Some(EntityKind::TableEntry(entry)) = &mut entity.entity else { panic!("an entry") };
    entry.meter_config =
        Some(p4rack_p4rt::p4::v1::MeterConfig { cir: 1, cburst: 2, pir: 3, pburst: 4, eburst: 0 });
    let all = [entity];
    assert!(carry(&bytes, &bytes, &all, &BTreeMap::new()).is_whole);
    for (new, why) in [(&packets, "measures another unit now"), (&none, "has no direct meter now")] {
        let carried = carry(&bytes, new, &all, &BTreeMap::new());
        assert!(carried.dropped[0].1.why.contains(why), "{:?}", carried.dropped);
    }
}

#[test]
fn constant_entries_of_the_new_text_hold_the_same_ones_and_exclude_others() {
    let new_text = PROGRAM.replace("lost(); size = 4;", "lost(); size = 1; ");
    let new = schema(&new_text);
    let constants = |entries: &str| -> BTreeMap<Key, Entity> {
        let read = entries::read(entries, &new).unwrap().into_iter().map(normal);
        read.map(|entity| (key(&entity), entity)).collect()
    };
    let first = "one dst=02:00:00:00:00:01 kind=0x800 --priority 1 --action to port=1 class=2";
    let told = |constants: &BTreeMap<Key, Entity>| {
        let carried = carry(&schema(PROGRAM), &new, &entities(), constants);
        let why: Vec<String> = carried.dropped.into_iter().map(|(_, dropped)| dropped.why).collect();
        (carried.given.len(), carried.kept.len(), why, carried.is_whole)
    };
    // The second entry has the room that the first, which the text gives, does not need.
    assert_eq!(told(&constants(first)), (1, 4, vec![], true));
    let other = first.replace("port=1", "port=2");
    let why = "the program has another, constant entry with this key now".to_owned();
    assert_eq!(told(&constants(&other)), (0, 4, vec![why], false));
}
