//! Entries by name, against the schema of a generated program.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_bfrt::{Entry, Kind, Match, MatchType, Schema, Table, Value};
use p4rack_codegen::scheme::l2;
use p4rack_codegen::{Arch, Rack, Scheme, generate};
use p4rack_p4rt::bfrt_proto::{DataField, KeyField, TableData, TableEntry, TableKey, table_entry};
use p4rack_p4rt::bfrt_proto::{data_field, key_field};
use proptest::prelude::*;
use std::path::Path;
use std::sync::LazyLock;

/// The example rack's switch on Tofino.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pl2-incast.toml");
    let artefacts = generate(&Rack::load(example).unwrap(), Scheme::L2, Arch::Tna).unwrap();
    Schema::parse(artefacts.bf_rt.unwrap().to_string().as_bytes()).unwrap()
});

/// A table with a key of every kind.
const KINDS: &str = include_str!("kinds.json");

static ACL: LazyLock<Schema> = LazyLock::new(|| Schema::parse(KINDS.as_bytes()).unwrap());

#[test]
fn generated_entries_have_numbers() {
    let entry =
        Entry::of(l2::L2_FORWARD).exact("hdr.ethernet.dstAddr", 2).action(l2::FORWARD).data("port", 3u16);
    let message = entry.build(&SCHEMA).unwrap();
    let table = SCHEMA.table(&format!("pipe.{}", l2::L2_FORWARD)).unwrap();
    assert_eq!(message.table_id, table.id);
    let Some(table_entry::Value::Key(TableKey { fields })) = &message.value else { panic!("no key") };
    let Some(key_field::MatchType::Exact(exact)) = &fields[0].match_type else { panic!("not exact") };
    assert_eq!(exact.value, [0, 0, 0, 0, 0, 2]);
    let data = message.data.as_ref().unwrap();
    assert_eq!(data.action_id, table.action(l2::FORWARD).unwrap().id);
    assert_eq!(data.fields[0].value, Some(data_field::Value::Stream(vec![0, 3])));
    let read = Entry::read(&SCHEMA, &message).unwrap();
    assert_eq!(read.to_string(), format!("{} hdr.ethernet.dstAddr=0x02", table.name));
    assert_eq!(read.action_name(), Some(l2::FORWARD));
    assert_eq!(read.get("port"), Some(&Value::from(3u16)));
}

#[test]
fn faults_are_named() {
    let fault = |entry: Entry| entry.build(&ACL).unwrap_err().to_string();
    let acl = || Entry::of("acl").exact("port", 1);
    let whole = "pipe.Ingress.acl";
    assert_eq!(fault(Entry::of("acls")), "there is no table `acls`; did you mean acl?");
    assert_eq!(fault(Entry::of("acl")), format!("an entry of table `{whole}` needs key `port`"));
    assert_eq!(
        fault(Entry::of("acl").exact("port", 512)),
        format!("key `port` of table `{whole}`: 512 needs 10 bits, but the field has 9")
    );
    assert_eq!(
        fault(acl().exact("prot", 1)),
        format!("there is no key of table `{whole}`: `prot`; did you mean port?")
    );
    assert_eq!(
        fault(acl().exact("dst", 1)),
        format!("key `dst` of table `{whole}` is matched Lpm, not as given")
    );
    assert_eq!(
        fault(acl().key("dst", Match::Lpm(vec![1], 34))),
        format!("key `dst` of table `{whole}`: prefix of 34 bits, but the key has 33")
    );
    assert_eq!(
        fault(acl().key("sport", Match::Range(vec![2], vec![1]))),
        format!("key `sport` of table `{whole}`: the range ends before it begins")
    );
    assert_eq!(fault(acl().action("set")), "action `set` needs parameter `a`");
    assert_eq!(
        fault(acl().action("set").data("a", true)),
        format!("field `a` of table `{whole}`: the field holds a number, not a truth value")
    );
    assert_eq!(
        fault(acl().action("NoAction")),
        format!("`NoAction` can't be an entry's action of table `{whole}`")
    );
    assert!(Entry::default_of("acl").action("NoAction").build(&ACL).is_ok());
}

#[test]
fn schemas_that_are_none_are_refused() {
    let fault = |json: &str| Schema::parse(json.as_bytes()).unwrap_err().to_string();
    assert!(fault("{").starts_with("not a BFRuntime schema: "));
    assert_eq!(
        fault(&KINDS.replace("\"type\": \"uint32\"", "\"type\": \"uint33\"")),
        "field `$ENTRY_TTL` of `pipe.Ingress.acl` has a type that no field has: uint33"
    );
    assert_eq!(
        fault(&KINDS.replace("\"width\": 33", "\"width\": 4294967295")),
        "field `dst` of `pipe.Ingress.acl` has a type that no field has: bytes of 4294967295 bits"
    );
    let mut twice = Schema::parse(KINDS.as_bytes()).unwrap();
    assert_eq!(
        twice.add(KINDS.as_bytes()).unwrap_err().to_string(),
        "the schema has two tables `pipe.Ingress.acl`"
    );
}

fn number(bits: u32) -> impl Strategy<Value = Vec<u8>> {
    any::<u64>().prop_map(move |number| {
        let number = u128::from(number) & ((1 << bits.min(64)) - 1);
        p4rack_p4rt::bytes::from_u128(number)
    })
}

/// A random entry of a table, in its canonical form: bits that no mask keeps are zero.
fn entry(table: &'static Table) -> impl Strategy<Value = Entry> {
    let keys: Vec<_> = table
        .keys
        .iter()
        .map(|key| {
            let Kind::Bits(bits) = key.kind else { panic!("{} is no number", key.name) };
            (number(bits), number(bits), 1..=bits).prop_map(move |(one, other, length)| {
                match key.match_type {
                    MatchType::Exact => Match::Exact(one),
                    MatchType::Optional => Match::Optional(one),
                    MatchType::Lpm => Match::Lpm(one, length),
                    MatchType::Ternary => Match::Ternary(one, other),
                    MatchType::Range => {
                        let (low, high) = if (one.len(), &one) <= (other.len(), &other) {
                            (one, other)
                        } else {
                            (other, one)
                        };
                        Match::Range(low, high)
                    }
                }
            })
        })
        .collect();
    keys.prop_map(move |keys| {
        table
            .keys
            .iter()
            .zip(keys)
            .fold(Entry::of(&table.name), |entry, (key, one)| entry.key(&key.name, one))
    })
}

proptest! {
    /// A built message is read, and the result builds the same message.
    #[test]
    fn what_is_built_is_read(built in entry(ACL.table("acl").unwrap()), a in 0u16..512, ttl: u32) {
        let built = built.action("Ingress.set").data("a", a).data("$ENTRY_TTL", ttl);
        let message = built.build(&ACL).unwrap();
        let read = Entry::read(&ACL, &message).unwrap();
        let again = read.build(&ACL).unwrap();
        prop_assert_eq!(Entry::read(&ACL, &again).unwrap(), read.clone());
        prop_assert_eq!(read.get("a"), Some(&Value::from(a)));
        prop_assert_eq!(read.get("$ENTRY_TTL"), Some(&Value::from(ttl)));
        // All bytes are there, and only bits that some mask keeps.
        let Some(table_entry::Value::Key(key)) = &message.value else { panic!("no key") };
        for field in &key.fields {
            match field.match_type.as_ref().unwrap() {
                key_field::MatchType::Exact(exact) => prop_assert_eq!(exact.value.len(), 2),
                key_field::MatchType::Lpm(lpm) => {
                    prop_assert_eq!(lpm.value.len(), 5);
                    let value = lpm.value.iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
                    prop_assert_eq!(value & ((1 << (33 - lpm.prefix_len)) - 1), 0);
                }
                key_field::MatchType::Ternary(ternary) => {
                    let outside = ternary.value.iter().zip(&ternary.mask).any(|(value, mask)| value & !mask != 0);
                    prop_assert!(!outside);
                }
                _ => {}
            }
        }
    }

    /// Any message of a peer is read or refused.
    #[test]
    fn any_message_is_read_or_refused(
        table_id in prop_oneof![Just(7u32), any::<u32>()],
        keys in prop::collection::vec((0u32..7, 0u8..6, prop::collection::vec(any::<u8>(), 0..6), any::<i32>()), 0..6),
        action_id in prop_oneof![Just(0u32), Just(11), Just(12), any::<u32>()],
        fields in prop::collection::vec((prop_oneof![0u32..4, Just(65536)], 0u8..4, prop::collection::vec(any::<u8>(), 0..6)), 0..4),
    ) {
        let keys = keys.into_iter().map(|(field_id, kind, value, prefix_len)| {
            let mask = value.clone();
            let match_type = match kind {
                0 => Some(key_field::MatchType::Exact(key_field::Exact { value })),
                1 => Some(key_field::MatchType::Lpm(key_field::Lpm { value, prefix_len })),
                2 => Some(key_field::MatchType::Ternary(key_field::Ternary { value, mask })),
                3 => Some(key_field::MatchType::Range(key_field::Range { low: value, high: mask })),
                4 => Some(key_field::MatchType::Optional(key_field::Optional { value, is_valid: prefix_len > 0 })),
                _ => None,
            };
            KeyField { field_id, match_type }
        });
        let fields = fields.into_iter().map(|(field_id, kind, bytes)| {
            let value = match kind {
                0 => Some(data_field::Value::Stream(bytes)),
                1 => Some(data_field::Value::BoolVal(true)),
                2 => Some(data_field::Value::StrVal(String::new())),
                _ => None,
            };
            DataField { field_id, value }
        });
        let message = TableEntry {
            table_id,
            value: Some(table_entry::Value::Key(TableKey { fields: keys.collect() })),
            data: Some(TableData { action_id, fields: fields.collect() }),
            ..Default::default()
        };
        let read = Entry::read(&ACL, &message);
        if table_id != 7 {
            prop_assert!(read.is_err());
        }
    }
}

/// The example's schema and P4Info, which a program on Tofino has both.
static BOTH: LazyLock<p4rack_bfrt::p4runtime::Translation> = LazyLock::new(|| {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pl2-incast.toml");
    let artefacts = generate(&Rack::load(example).unwrap(), Scheme::L2, Arch::Tna).unwrap();
    let info = p4rack_p4rt::text::parse(&artefacts.p4info).unwrap();
    p4rack_bfrt::p4runtime::Translation::new(&SCHEMA, &info).unwrap()
});

/// [`KINDS`] with P4Info made from it.
static ACL_BOTH: LazyLock<p4rack_bfrt::p4runtime::Translation> = LazyLock::new(|| {
    p4rack_bfrt::p4runtime::Translation::new(&ACL, &p4rack_bfrt::p4runtime::info(&ACL)).unwrap()
});

#[test]
fn generated_entries_are_the_same_in_both_interfaces() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/pl2-incast.toml");
    let artefacts = generate(&Rack::load(example).unwrap(), Scheme::L2, Arch::Tna).unwrap();
    let entries: p4rack_p4rt::p4::v1::WriteRequest = p4rack_p4rt::text::parse(&artefacts.entries).unwrap();
    let mut count = 0;
    for entity in entries.updates.into_iter().filter_map(|update| update.entity) {
        use p4rack_p4rt::p4::v1::entity::Entity::PacketReplicationEngineEntry;
        if matches!(entity.entity, Some(PacketReplicationEngineEntry(_))) {
            continue;
        }
        let entry = BOTH.entry(&entity).unwrap();
        assert_eq!(BOTH.entity(&entry).unwrap(), entity);
        count += 1;
    }
    assert!(count > 2);
}

proptest! {
    /// BFRuntime's entry as P4Runtime's and back.
    #[test]
    fn there_and_back_is_the_same(built in entry(ACL.table("acl").unwrap()), a in 0u16..512, b in 0u16..16, ttl in 0u32..1 << 20) {
        let built = built.action("Ingress.set").data("a", a).data("b", b).data("$ENTRY_TTL", ttl);
        let message = built.build(&ACL).unwrap();
        let entity = ACL_BOTH.entity(&message).unwrap();
        let back = ACL_BOTH.entry(&entity).unwrap();
        prop_assert_eq!(Entry::read(&ACL, &back).unwrap(), Entry::read(&ACL, &message).unwrap());
        prop_assert_eq!(ACL_BOTH.entity(&back).unwrap(), entity);
    }

    /// Any bytes of a peer are translated or refused.
    #[test]
    fn any_bytes_are_translated_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64), table_id in prop_oneof![Just(7u32), any::<u32>()]) {
        if let Ok(mut entry) = <TableEntry as prost::Message>::decode(&bytes[..]) {
            entry.table_id = table_id;
            for both in [&*BOTH, &*ACL_BOTH] {
                if let Ok(entity) = both.entity(&entry) {
                    let back = both.entry(&entity).unwrap();
                    prop_assert_eq!(both.entity(&back).unwrap(), entity);
                }
                let _ = both.request(&entry);
            }
        }
    }
}
