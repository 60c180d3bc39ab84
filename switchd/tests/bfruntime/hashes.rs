//! Hashes that clients change, as packets see them.

use crate::kinds::{KINDS, TWO_PIPES, answer};
use crate::rig::*;
use p4rack_bfrt::{Entry, Schema, Value};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::bfrt_proto::write_request::Atomicity;
use p4rack_p4rt::bfrt_proto::*;
use p4rack_p4rt::google::rpc::Code;

/// CRC-16/ARC of 1, 2, 3, as other programs compute it; and of 2, 3, 1.
const ARC: [u16; 2] = [0xa110, 0xf060];

/// A part of a field: names and values.
type Part = Vec<(String, Value)>;

fn part(start: u64, length: Option<u64>, order: u64) -> Part {
    let named = |name: &str, value: u64| (name.to_owned(), Value::from(value));
    let length = length.map(|length| named("length", length));
    [named("start_bit", start), named("order", order)].into_iter().chain(length).collect()
}

fn configure(fields: &[(&str, Vec<Part>)]) -> Entry {
    let entry = Entry::default_of("mixed.configure");
    fields.iter().fold(entry, |entry, (name, parts)| entry.data(name, Value::Groups(parts.clone())))
}

async fn default_of(client: &mut Client, schema: &Schema, table: &str) -> Entry {
    let wanted = TableEntry { data: None, ..Entry::default_of(table).build(schema).unwrap() };
    let found = client.read(vec![entity::Entity::TableEntry(wanted)]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    Entry::read(schema, found).unwrap()
}

#[tokio::test]
async fn what_is_hashed_is_chosen() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    assert_eq!(answer(&rig, 1, [11, 1, 2, 3]).await, ARC[0]);
    let shown = default_of(&mut client, &schema, "mixed.configure").await;
    assert_eq!(
        shown.get("hdr.h.c"),
        Some(&Value::Groups(vec![part(0, Some(16), 2)].into_iter().map(sorted).collect()))
    );
    let turned = configure(&[("hdr.h.b", vec![part(0, None, 9)]), ("hdr.h.c", vec![part(0, None, 4)])]);
    client.one(Type::Modify, turned.build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, [11, 1, 2, 3]).await, ARC[1]);
    // Both halves of one field may be exchanged, and the other one does not count.
    let halves = configure(&[("hdr.h.c", vec![part(0, Some(8), 1), part(8, Some(99), 1)])]);
    client.one(Type::Modify, halves.build(&schema).unwrap()).await.unwrap();
    let same = answer(&rig, 1, [11, 1, 2, 3]).await;
    assert_eq!(same, answer(&rig, 1, [11, 77, 3, 2]).await);
    assert_ne!(same, answer(&rig, 1, [11, 1, 2, 4]).await);
    client.one(Type::Delete, Entry::default_of("mixed.configure").build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, [11, 1, 2, 3]).await, ARC[0], "the program's again");
}

/// The fields of a part as they are shown.
fn sorted(mut part: Part) -> Part {
    let place = |name: &str| ["start_bit", "length", "order"].iter().position(|other| *other == name);
    part.sort_by_key(|(name, _)| place(name));
    part
}

#[tokio::test]
async fn parts_that_make_no_sense_are_refused() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let c = |parts: &[(u64, u64, u64)]| {
        let parts = parts.iter().map(|(start, length, order)| part(*start, Some(*length), *order));
        configure(&[("hdr.h.c", parts.collect())])
    };
    for (wrong, said) in [
        (c(&[(0, 8, 1), (7, 2, 2)]), "overlap"),
        (c(&[(16, 1, 1)]), "none from 16 on"),
        (c(&[(0, 8, 0)]), "nothing would be hashed"),
        (c(&[(0, 2, 1), (2, 2, 1), (4, 2, 1)]), "at most 2"),
        (c(&[(0, 2, 1), (2, 3, 1)]), "different lengths"),
        (c(&vec![(0, 1, 0); 17]), "fewer bits than parts"),
        (configure(&[("hdr.h.c", vec![vec![("length".into(), Value::from(3u64))]])]), "no `order`"),
    ] {
        let refused = client.one(Type::Modify, wrong.build(&schema).unwrap()).await.unwrap_err();
        assert_eq!(refused.0, Code::InvalidArgument as i32, "{refused:?}");
        assert!(refused.1.contains(said), "{said}: {refused:?}");
    }
    assert_eq!(answer(&rig, 1, [11, 1, 2, 3]).await, ARC[0]);
    // A batch that fails changes nothing.
    let good = configure(&[("hdr.h.b", vec![part(0, None, 1)])]).build(&schema).unwrap();
    let batch =
        vec![update(Type::Modify, good), update(Type::Modify, c(&[(16, 1, 1)]).build(&schema).unwrap())];
    client.write(Atomicity::RollbackOnError, batch).await.unwrap_err();
    assert_eq!(answer(&rig, 1, [11, 1, 2, 3]).await, ARC[0]);
}

#[tokio::test]
async fn the_algorithm_is_chosen_and_computed() {
    let rig = Rig::with_ports(&TWO_PIPES).await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let shown = default_of(&mut client, &schema, "mixed.algorithm").await;
    assert_eq!(shown.get("algorithm_name"), Some(&Value::from("crc_16")));
    let algorithm = || Entry::default_of("mixed.algorithm");
    let named = algorithm().action("pre_defined").data("algorithm_name", "crc_8").data("rotate", 4u32);
    client.one(Type::Modify, named.build(&schema).unwrap()).await.unwrap();
    // CRC-8 of 1, 2, 3 is 0x48.
    assert_eq!(answer(&rig, 1, [11, 1, 2, 3]).await, 0x480);
    let shown = default_of(&mut client, &schema, "mixed.algorithm").await;
    assert_eq!(shown.get("algorithm_name"), Some(&Value::from("crc_8")));
    let own = algorithm().action("user_defined").data("polynomial", 0x07u64).data("hash_bit_width", 8u64);
    let own = own.data("init", 0x5u64).data("extend", true).data("rotate", 0u32);
    client.one(Type::Modify, own.build(&schema).unwrap()).await.unwrap();
    let shown = default_of(&mut client, &schema, "mixed.algorithm").await;
    assert_eq!(shown.action_name(), Some("user_defined"));
    assert_eq!(shown.get("init").and_then(Value::number), Some(5));
    let sent = answer(&rig, 1, [11, 1, 2, 3]).await;
    assert_eq!(sent >> 8, sent & 0xff, "8 bits, twice");
    assert_eq!(sent, answer(&rig, 129, [11, 1, 2, 3]).await, "of all pipes");
    let wanted = Entry::of("mixed.compute").exact("hdr.h.b", 1).exact("hdr.h.c", 0x0203);
    let wanted = wanted.build(&schema).unwrap();
    let found = client.read(vec![entity::Entity::TableEntry(wanted.clone())]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    let found = Entry::read(&schema, found).unwrap();
    assert_eq!(found.get("hash_value").and_then(Value::number), Some(sent.into()));
    assert!(client.one(Type::Insert, wanted).await.unwrap_err().1.contains("can only be read"));
    // Of another hash the program takes the upper half.
    let wanted = Entry::of("upper.compute").exact("hdr.h.b", 9).exact("hdr.h.c", 0x0203);
    let found = client.read(vec![entity::Entity::TableEntry(wanted.build(&schema).unwrap())]).await.unwrap();
    let Some(entity::Entity::TableEntry(found)) = &found[0].entity else { panic!("{found:?}") };
    let found = Entry::read(&schema, found).unwrap().get("hash_value").and_then(Value::number);
    assert_eq!(found, Some(answer(&rig, 1, [12, 9, 2, 3]).await.into()));
    for (wrong, code) in [
        (algorithm().data("msb", true), Code::Unimplemented),
        (algorithm().data("seed", 1u32), Code::Unimplemented),
        (algorithm().action("pre_defined").data("algorithm_name", "XOR"), Code::Unimplemented),
        (algorithm().action("user_defined").data("polynomial", 8u64), Code::InvalidArgument),
        (
            algorithm().action("user_defined").data("polynomial", 0x107u64).data("hash_bit_width", 8u64),
            Code::InvalidArgument,
        ),
    ] {
        let refused = client.one(Type::Modify, wrong.build(&schema).unwrap()).await.unwrap_err();
        assert_eq!(refused.0, code as i32, "{refused:?}");
    }
    client.one(Type::Delete, algorithm().build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, [11, 1, 2, 3]).await, ARC[0]);
}

#[tokio::test]
async fn an_algorithm_of_the_programs_own_is_written_back_as_it_was_read() {
    let rig = Rig::start().await;
    let mut client = rig.bound_to(KINDS).await;
    let schema = schema(&mut client).await;
    let (frame, table) = ([13, 1, 2, 3], "folded.algorithm");
    let before = answer(&rig, 1, frame).await;
    let shown = default_of(&mut client, &schema, table).await;
    assert_eq!(shown.get("algorithm_name"), Some(&Value::from("XOR")));
    let other = Entry::default_of(table).action("pre_defined").data("algorithm_name", "crc_16");
    client.one(Type::Modify, other.build(&schema).unwrap()).await.unwrap();
    assert_ne!(answer(&rig, 1, frame).await, before);
    client.one(Type::Modify, shown.build(&schema).unwrap()).await.unwrap();
    assert_eq!(answer(&rig, 1, frame).await, before);
    assert_eq!(default_of(&mut client, &schema, table).await, shown);
}
