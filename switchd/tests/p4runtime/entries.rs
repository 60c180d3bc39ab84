use crate::rig::*;
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::entity::Entry;
use p4rack_p4rt::errors::unpack;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::field_match::FieldMatchType;
use p4rack_p4rt::p4::v1::update::Type::{Delete, Insert, Modify};
use p4rack_p4rt::p4::v1::*;

fn acl() -> Entry {
    Entry::of("acl").ternary("hdr.ethernet.type", 0x0800, 0xff00).action("drop").priority(3)
}

fn built(entry: Entry) -> TableEntry {
    entry.build(schema()).unwrap()
}

pub fn route(n: u32) -> Entry {
    let value = [&n.to_be_bytes()[..], &[0, 0]].concat();
    Entry::of("routes").lpm("hdr.ethernet.src", value.as_slice(), 32).action("pass")
}

fn code(result: Result<(), p4rack_p4rt::errors::UpdateError>) -> Code {
    result.expect_err("refused").code
}

fn value_of(entry: &mut TableEntry) -> &mut Vec<u8> {
    match entry.r#match[0].field_match_type.as_mut().unwrap() {
        FieldMatchType::Exact(key) => &mut key.value,
        FieldMatchType::Lpm(key) => &mut key.value,
        FieldMatchType::Ternary(key) => &mut key.value,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn entries_read_back_as_they_were_written() {
    let (_rig, mut client) = Rig::ready().await;
    let entries = [
        built(dmac(1, 300)),
        built(Entry::of("routes").lpm("hdr.ethernet.src", [2, 3, 0, 0, 0, 0], 16).action("pass")),
        TableEntry {
            metadata: b"mine".to_vec(),
            ..built(acl().optional("hdr.ethernet.src", 5).range("sm.ingress_port", 1, 3))
        },
    ];
    for entry in &entries {
        client.entry(Insert, entry.clone()).await.unwrap();
        let one = TableEntry { action: None, metadata: Vec::new(), ..entry.clone() };
        assert_eq!(client.table(one).await, [entry.clone()]);
        let wildcard = TableEntry { table_id: entry.table_id, ..Default::default() };
        assert_eq!(client.table(wildcard).await, [entry.clone()]);
    }
    let all = client.table(wildcard("")).await;
    assert_eq!(all.len(), entries.len() + 2, "and the constant ones");
}

#[tokio::test]
async fn byte_strings_any_zero_padded_length_in_shortest_form_out() {
    let (_rig, mut client) = Rig::ready().await;
    let mut padded = built(dmac(1, 1));
    *value_of(&mut padded) = [vec![0; 30], vec![2, 0, 0, 0, 0, 1]].concat();
    client.entry(Insert, padded.clone()).await.unwrap();
    assert_eq!(client.table(wildcard("dmac")).await, [built(dmac(1, 1))]);
    let again = client.entry(Insert, built(dmac(1, 2))).await;
    assert_eq!(code(again), Code::AlreadyExists, "the same value is the same key");
    *value_of(&mut padded) = vec![0];
    client.entry(Insert, padded).await.unwrap();
}

#[tokio::test]
async fn byte_strings_empty_or_too_wide_are_out_of_range() {
    let (_rig, mut client) = Rig::ready().await;
    for wrong in [vec![], vec![1, 0, 0, 0, 0, 0, 0]] {
        let mut entry = built(dmac(1, 1));
        *value_of(&mut entry) = wrong.clone();
        assert_eq!(code(client.entry(Insert, entry).await), Code::OutOfRange);
        let mut entry = built(dmac(1, 1));
        let Some(table_action::Type::Action(action)) = &mut entry.action.as_mut().unwrap().r#type else {
            panic!()
        };
        action.params[0].value = wrong;
        assert_eq!(code(client.entry(Insert, entry).await), Code::OutOfRange);
    }
}

#[tokio::test]
async fn wildcard_table_read_leaves_the_default_entry_out() {
    let (_rig, mut client) = Rig::ready().await;
    assert_eq!(client.table(wildcard("dmac")).await, []);
    let default = client.table(TableEntry { is_default_action: true, ..wildcard("dmac") }).await;
    assert_eq!(default, [TableEntry { is_default_action: true, ..built(Entry::of("dmac").action("drop")) }]);
}

#[tokio::test]
async fn the_default_entry_can_only_be_modified_and_is_reset_without_action() {
    let (_rig, mut client) = Rig::ready().await;
    let initial = client.table(TableEntry { is_default_action: true, ..wildcard("dmac") }).await;
    let changed = built(Entry::default_of("dmac").action("forward").param("port", 3));
    assert_eq!(code(client.entry(Insert, changed.clone()).await), Code::InvalidArgument);
    assert_eq!(code(client.entry(Delete, changed.clone()).await), Code::InvalidArgument);
    client.entry(Modify, changed.clone()).await.unwrap();
    let read = TableEntry { is_default_action: true, ..wildcard("dmac") };
    assert_eq!(client.table(read.clone()).await, [changed.clone()]);
    client.entry(Modify, built(Entry::default_of("dmac"))).await.unwrap();
    assert_eq!(client.table(read).await, initial);
    let keyed = TableEntry { r#match: built(dmac(1, 1)).r#match, ..changed };
    assert_eq!(code(client.entry(Modify, keyed).await), Code::InvalidArgument);
    let constant = built(Entry::default_of("routes").action("only_default"));
    assert_eq!(code(client.entry(Modify, constant).await), Code::PermissionDenied);
    // Those that can't be changed say so.
    for (table, is_const) in [("routes", true), ("dmac", false)] {
        let read = client.table(TableEntry { is_default_action: true, ..wildcard(table) }).await;
        assert_eq!(read[0].is_const, is_const, "{table}");
    }
}

#[tokio::test]
async fn action_scopes_are_kept() {
    let (_rig, mut client) = Rig::ready().await;
    let drop = Entry::of("dmac").exact("hdr.ethernet.dst", 1).action("drop");
    assert_eq!(code(client.insert(drop).await), Code::PermissionDenied);
    let pass = built(Entry::default_of("dmac").action("pass"));
    assert_eq!(code(client.entry(Modify, pass).await), Code::PermissionDenied);
    let mut foreign = built(dmac(1, 1));
    foreign.action = built(Entry::of("routes").lpm("hdr.ethernet.src", 0, 1).action("only_default")).action;
    assert_eq!(code(client.entry(Insert, foreign).await), Code::InvalidArgument);
}

#[tokio::test]
async fn writing_a_const_table_is_permission_denied() {
    let (_rig, mut client) = Rig::ready().await;
    let new = built(Entry::of("fixed").exact("hdr.ethernet.type", 5).action("drop"));
    let there = built(Entry::of("fixed").exact("hdr.ethernet.type", 0x0800).action("pass"));
    for (kind, entry) in [(Insert, &new), (Modify, &there), (Delete, &there)] {
        assert_eq!(code(client.entry(kind, entry.clone()).await), Code::PermissionDenied);
    }
    let read = client.table(wildcard("fixed")).await;
    assert_eq!(read.len(), 2);
    assert!(read.iter().all(|entry| entry.is_const));
}

#[tokio::test]
async fn dont_care_matches_are_omitted_and_masked_bits_zero() {
    let (_rig, mut client) = Rig::ready().await;
    let with = |table: &str, field_id, field_match_type| {
        let action = match table {
            "routes" => built(Entry::of("routes").action("pass")).action,
            _ => built(acl()).action,
        };
        TableEntry {
            r#match: vec![FieldMatch { field_id, field_match_type: Some(field_match_type) }],
            action,
            priority: if table == "acl" { 1 } else { 0 },
            ..wildcard(table)
        }
    };
    let lpm = |value: Vec<u8>, prefix_len| FieldMatchType::Lpm(field_match::Lpm { value, prefix_len });
    let ternary = |value: u8, mask: u8| {
        FieldMatchType::Ternary(field_match::Ternary { value: vec![value], mask: vec![mask] })
    };
    let range = |low: u16, high: u16| {
        let (low, high) = (low.to_be_bytes().to_vec(), high.to_be_bytes().to_vec());
        FieldMatchType::Range(field_match::Range { low, high })
    };
    let wrong = [
        with("routes", 1, lpm(vec![0], 0)),
        with("routes", 1, lpm(vec![1], 47)),
        with("routes", 1, lpm(vec![1], 49)),
        with("routes", 1, lpm(vec![1], -1)),
        with("acl", 1, ternary(0, 0)),
        with("acl", 1, ternary(3, 1)),
        with("acl", 3, range(0, 511)),
        with("acl", 3, range(4, 3)),
        with("acl", 9, ternary(1, 1)),
        with("acl", 1, range(1, 2)),
    ];
    for entry in wrong {
        let refused = client.entry(Insert, entry.clone()).await;
        assert_eq!(code(refused), Code::InvalidArgument, "{entry:?}");
    }
    assert_eq!(client.table(wildcard("acl")).await, []);
    let missing = TableEntry { r#match: Vec::new(), ..built(dmac(1, 1)) };
    assert_eq!(code(client.entry(Insert, missing).await), Code::InvalidArgument, "exact keys must be given");
    let mut twice = built(dmac(1, 1));
    twice.r#match.push(twice.r#match[0].clone());
    assert_eq!(code(client.entry(Insert, twice).await), Code::InvalidArgument);
}

#[tokio::test]
async fn priority_is_non_zero_exactly_for_ternary_range_and_optional() {
    let (_rig, mut client) = Rig::ready().await;
    assert_eq!(code(client.insert(acl().priority(0)).await), Code::InvalidArgument);
    assert_eq!(code(client.insert(acl().priority(-1)).await), Code::InvalidArgument);
    assert_eq!(code(client.insert(dmac(1, 1).priority(1)).await), Code::InvalidArgument);
    client.insert(acl()).await.unwrap();
    client.insert(acl().priority(4)).await.expect("another priority is another entry");
    assert_eq!(code(client.insert(acl()).await), Code::AlreadyExists);
    assert_eq!(client.table(TableEntry { priority: 4, ..wildcard("acl") }).await.len(), 1);
}

#[tokio::test]
async fn delete_looks_at_the_key_only() {
    let (_rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 1)).await.unwrap();
    let mut delete = built(dmac(1, 1));
    delete.action = Some(TableAction {
        r#type: Some(table_action::Type::Action(Action { action_id: 12345, params: Vec::new() })),
    });
    delete.metadata = b"other".to_vec();
    client.entry(Delete, delete.clone()).await.unwrap();
    assert_eq!(code(client.entry(Delete, delete).await), Code::NotFound);
}

#[tokio::test]
async fn modify_needs_the_entry_and_replaces_its_action() {
    let (_rig, mut client) = Rig::ready().await;
    assert_eq!(code(client.entry(Modify, built(dmac(1, 1))).await), Code::NotFound);
    client.insert(dmac(1, 1)).await.unwrap();
    client.entry(Modify, built(dmac(1, 4))).await.unwrap();
    assert_eq!(client.table(wildcard("dmac")).await, [built(dmac(1, 4))]);
}

#[tokio::test]
async fn a_full_table_is_resource_exhausted() {
    let (_rig, mut client) = Rig::ready().await;
    for last in 0..4 {
        client.insert(dmac(last, 1)).await.unwrap();
    }
    assert_eq!(code(client.insert(dmac(9, 1)).await), Code::ResourceExhausted);
}

#[tokio::test]
async fn partial_failure_is_unknown_with_one_error_per_update_in_order() {
    let (_rig, mut client) = Rig::ready().await;
    let update = |entry: Entry| entry.update(schema()).unwrap();
    let unset = Update { r#type: Insert as i32, entity: None };
    let updates = vec![update(dmac(1, 1)), update(dmac(1, 1)), unset, update(dmac(2, 1))];
    let status = client.write_all(updates).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unknown);
    let codes: Vec<Code> = unpack(status.details())
        .unwrap()
        .into_iter()
        .map(|outcome| outcome.err().map_or(Code::Ok, |error| error.code))
        .collect();
    assert_eq!(codes, [Code::Ok, Code::AlreadyExists, Code::InvalidArgument, Code::Ok]);
    assert_eq!(client.table(wildcard("dmac")).await.len(), 2, "the good ones were applied");
}

#[tokio::test]
async fn unset_entity_or_type_is_an_invalid_argument() {
    let (_rig, mut client) = Rig::ready().await;
    let (read, _) = client.read_all(vec![Entity { entity: None }]).await;
    let outcomes = unpack(read.unwrap_err().details()).unwrap();
    assert_eq!(outcomes[0].as_ref().unwrap_err().code, Code::InvalidArgument);
    let entry = EntityKind::TableEntry(built(dmac(1, 1)));
    assert_eq!(code(client.write(update::Type::Unspecified, entry).await), Code::InvalidArgument);
}

#[tokio::test]
async fn a_read_with_a_bad_request_returns_the_others_and_says_which() {
    let (_rig, mut client) = Rig::ready().await;
    client.insert(dmac(1, 1)).await.unwrap();
    let request = |table_id| {
        let entry = TableEntry { table_id, ..Default::default() };
        Entity { entity: Some(EntityKind::TableEntry(entry)) }
    };
    let (read, found) = client.read_all(vec![request(table_id("dmac")), request(0x02ff_ffff)]).await;
    assert_eq!(found, 1);
    let status = read.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unknown);
    let outcomes = unpack(status.details()).unwrap();
    assert_eq!(outcomes[0], Ok(()));
    assert_eq!(outcomes[1].as_ref().unwrap_err().code, Code::NotFound);
}

#[tokio::test]
async fn a_large_write_and_read_go_through() {
    let (_rig, mut client) = Rig::ready().await;
    let updates = (0..1000).map(|n| route(n).update(schema()).unwrap()).collect();
    client.write_all(updates).await.unwrap();
    assert_eq!(client.table(wildcard("routes")).await.len(), 1000);
}
