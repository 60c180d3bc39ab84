//! Digests: lists of learned fields, which have the schema's ids in P4Runtime too.

use super::{Translated, invalid, refuse};
use crate::schema::{Field, Learn, Schema};
use crate::value::Kind;
use p4rack_p4rt::bfrt_proto::{self as bfrt, TableData, data_field};
use p4rack_p4rt::bytes;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::v1::{self, P4Data, P4StructLike, p4_data};

/// A list as P4Runtime's, whose digests are tuples of the schema's fields in their order.
pub fn digest_list(schema: &Schema, list: &bfrt::DigestList) -> Translated<v1::DigestList> {
    let id = list.digest_id;
    let Some(learn) = schema.learns().iter().find(|learn| learn.id == id) else {
        return refuse(Code::NotFound, format!("the schema has no digest with id {id} (0x{id:08x})"));
    };
    let data = list.data.iter().map(|data| digest(learn, data)).collect::<Translated<_>>()?;
    Ok(v1::DigestList { digest_id: id, list_id: list.list_id.into(), data, ..Default::default() })
}

fn digest(learn: &Learn, data: &TableData) -> Translated<P4Data> {
    let value = |field: &Field| {
        let sent = data.fields.iter().find(|sent| sent.field_id == field.id);
        let value = match (&field.kind, sent.and_then(|sent| sent.value.as_ref())) {
            (Kind::Bits(_), Some(data_field::Value::Stream(sent))) => {
                p4_data::Data::Bitstring(bytes::canonical(sent))
            }
            (Kind::Bool, Some(data_field::Value::BoolVal(sent))) => p4_data::Data::Bool(*sent),
            _ => {
                return invalid(format!(
                    "digest `{}` comes without a value of its field `{}`",
                    learn.name, field.name
                ));
            }
        };
        Ok(P4Data { data: Some(value) })
    };
    let members = learn.fields.iter().map(value).collect::<Translated<_>>()?;
    Ok(P4Data { data: Some(p4_data::Data::Tuple(P4StructLike { members })) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_p4rt::bfrt_proto::DataField;

    const SCHEMA: &str = r#"{"tables": [], "learn_filters": [{"id": 7, "name": "pipe.D.seen", "fields": [
        {"id": 1, "name": "src", "type": {"type": "bytes", "width": 48}},
        {"id": 2, "name": "known", "type": {"type": "bool"}}]}]}"#;

    fn list(digest_id: u32, fields: Vec<DataField>) -> bfrt::DigestList {
        let data = vec![TableData { action_id: 0, fields }];
        bfrt::DigestList { digest_id, list_id: 3, data, target: None }
    }

    fn field(field_id: u32, value: data_field::Value) -> DataField {
        DataField { field_id, value: Some(value) }
    }

    #[test]
    fn fields_come_in_the_schemas_order_and_all_of_them() {
        let schema = Schema::parse(SCHEMA.as_bytes()).unwrap();
        let known = || field(2, data_field::Value::BoolVal(true));
        let src = || field(1, data_field::Value::Stream(vec![0, 0, 0, 0, 1, 2]));
        let read = digest_list(&schema, &list(7, vec![known(), src()])).unwrap();
        let one = |data| P4Data { data: Some(data) };
        let members = vec![one(p4_data::Data::Bitstring(vec![1, 2])), one(p4_data::Data::Bool(true))];
        assert_eq!((read.digest_id, read.list_id), (7, 3));
        assert_eq!(read.data, [one(p4_data::Data::Tuple(P4StructLike { members }))]);
        let wrong = field(1, data_field::Value::BoolVal(true));
        for fields in [vec![src()], vec![known()], vec![wrong, known()]] {
            assert!(digest_list(&schema, &list(7, fields)).is_err());
        }
        assert!(digest_list(&schema, &list(8, Vec::new())).is_err());
    }
}
