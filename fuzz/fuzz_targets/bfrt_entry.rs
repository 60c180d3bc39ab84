//! Any entry of BFRuntime is refused or becomes P4Runtime's, and that one comes back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4rack_bfrt::p4runtime::{Translation, info};
use p4rack_bfrt::{Entry, Schema};
use p4rack_p4rt::bfrt_proto::TableEntry;
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

fuzz_target!(|data: &[u8]| {
    let _ = Schema::parse(data);
    let (schema, translation) = &*BOTH;
    let Ok(mut entry) = TableEntry::decode(data) else { return };
    entry.table_id = TABLE;
    let _ = Entry::read(schema, &entry);
    let _ = translation.request(&entry);
    if let Ok(entity) = translation.entity(&entry) {
        let back = translation.entry(&entity).expect("what was accepted comes back");
        assert_eq!(translation.entity(&back).expect("and is accepted again"), entity);
    }
});
