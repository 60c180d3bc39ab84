//! Translation between the two interfaces, at the edges: features that only one of them has, and entries that make
//! no sense.

mod cells;
mod program;
mod tables;

use p4rack_bfrt::Schema;
use p4rack_bfrt::p4runtime::{Translated, Translation, info};
use p4rack_p4rt::bfrt_proto::{DataField, KeyField, TableData, TableEntry, TableKey};
use p4rack_p4rt::bfrt_proto::{data_field, key_field, table_entry};
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::P4Info;

/// Objects of every kind. Their ids in P4Runtime are the same.
const TABLES: &str = include_str!("tables.json");

const ACL: u32 = 7;
const LIMITED: u32 = 8;
const PROFILE: u32 = 20;
const SELECTOR: u32 = 21;
const BALANCED: u32 = 22;
const SEEN: u32 = 30;
const RATE: u32 = 31;
const PAIRS: u32 = 32;
const FLAG: u32 = 33;

/// The schema and the program's P4Info.
fn both() -> (Schema, P4Info) {
    let schema = Schema::parse(TABLES.as_bytes()).unwrap();
    let info = info(&schema);
    (schema, info)
}

fn translation() -> Translation {
    let (schema, info) = both();
    Translation::new(&schema, &info).unwrap()
}

fn exact(field_id: u32, value: &[u8]) -> KeyField {
    let exact = key_field::Exact { value: value.to_vec() };
    KeyField { field_id, match_type: Some(key_field::MatchType::Exact(exact)) }
}

fn number(field_id: u32, value: &[u8]) -> DataField {
    DataField { field_id, value: Some(data_field::Value::Stream(value.to_vec())) }
}

fn truth(field_id: u32, value: bool) -> DataField {
    DataField { field_id, value: Some(data_field::Value::BoolVal(value)) }
}

fn entry(table_id: u32, keys: Vec<KeyField>, action_id: u32, fields: Vec<DataField>) -> TableEntry {
    TableEntry {
        table_id,
        value: Some(table_entry::Value::Key(TableKey { fields: keys })),
        data: Some(TableData { action_id, fields }),
        ..Default::default()
    }
}

/// Why something is refused as an invalid argument.
fn invalid<T: std::fmt::Debug>(translated: Translated<T>) -> String {
    let error = translated.unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument, "{error:?}");
    error.message
}
