//! Any entry of BFRuntime is refused or becomes P4Runtime's, and the result translates back to the same. An update that
//! is translated without messages in between has the same meaning as with them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4rack_bfrt::p4runtime::{Scratch, Translation, info};
use p4rack_bfrt::{Entry, Schema};
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableEntry, entity};
use p4rack_p4rt::p4::v1;
use prost::Message;
use std::sync::LazyLock;

/// A table with a key of every kind.
const KINDS: &str = include_str!("../../bfrt/tests/kinds.json");
/// Its number.
const TABLE: u32 = 7;

static BOTH: LazyLock<(Schema, Translation)> = LazyLock::new(|| {
    let schema = Schema::parse(KINDS.as_bytes()).expect("the schema is one");
    let translation = Translation::new(&schema, &info(&schema)).expect("its P4Info is made from it");
    (schema, translation)
});

/// The entry of an update of P4Runtime, its matches in the order of their fields.
fn sorted(entity: Option<v1::Entity>) -> v1::TableEntry {
    let Some(v1::entity::Entity::TableEntry(mut entry)) = entity.and_then(|entity| entity.entity) else {
        panic!("an entry of a table")
    };
    entry.r#match.sort_by_key(|field| field.field_id);
    entry
}

/// Compares both ways of an update, if the way without messages takes it.
fn direct(translation: &Translation, update: &[u8]) {
    let mut made = Vec::new();
    if translation.direct(update, |_, _| true, &mut Scratch::default(), &mut made).is_none() {
        return;
    }
    let mut made = v1::WriteRequest::decode(&made[..]).expect("it is a request").updates;
    let made = made.pop().expect("with an update");
    let update = bfrt::Update::decode(update).expect("messages read it, too");
    let Some(entity::Entity::TableEntry(mut entry)) = update.entity.and_then(|entity| entity.entity) else {
        panic!("an entry of a table")
    };
    if made.r#type == v1::update::Type::Delete as i32 {
        entry.data = None;
    }
    let expected = translation.entity(&entry).expect("messages translate it, too");
    assert_eq!(sorted(made.entity), sorted(Some(expected)));
}

fuzz_target!(|data: &[u8]| {
    let _ = Schema::parse(data);
    let (schema, translation) = &*BOTH;
    direct(translation, data);
    let Ok(mut entry) = TableEntry::decode(data) else { return };
    entry.table_id = TABLE;
    let _ = Entry::read(schema, &entry);
    let _ = translation.request(&entry);
    if let Ok(entity) = translation.entity(&entry) {
        let back = translation.entry(&entity).expect("what was accepted comes back");
        assert_eq!(translation.entity(&back).expect("and is accepted again"), entity);
    }
});
