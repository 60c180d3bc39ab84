//! Parser value sets: one entity in P4Runtime, an entry for each member in BFRuntime.

use super::{Translated, id_of, invalid, refuse, sent, taken};
use crate::schema::{Key, Table};
use crate::value::{Kind, ones};
use p4rack_p4rt::bfrt_proto::key_field::{MatchType as Sent, Ternary};
use p4rack_p4rt::bfrt_proto::{Entity as Wrapped, KeyField, TableEntry, TableKey, Update};
use p4rack_p4rt::bfrt_proto::{entity, table_entry, update};
use p4rack_p4rt::bytes;
use p4rack_p4rt::google::rpc::Code;
use p4rack_p4rt::p4::config::v1::{self as config, match_field::MatchType};
use p4rack_p4rt::p4::v1::field_match::{self, FieldMatchType};
use p4rack_p4rt::p4::v1::{self, FieldMatch, ValueSetEntry, ValueSetMember};
use p4rack_p4rt::schema::match_type;

/// A field of the members.
#[derive(Clone, Debug)]
struct Field {
    id: u32,
    p4_id: u32,
    name: String,
    width: u32,
    /// How P4Runtime matches it; in BFRuntime all are ternary.
    matched: MatchType,
}

/// Value and mask of each field, as long as the field.
type Member = Vec<(Vec<u8>, Vec<u8>)>;

/// A value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    table_id: u32,
    p4_id: u32,
    name: String,
    fields: Vec<Field>,
}

impl ValueSet {
    pub(super) fn new(table: &Table, wanted: &config::ValueSet) -> Result<ValueSet, String> {
        let (given, known) = (wanted.r#match.len(), table.keys.len());
        if given != known {
            return Err(format!("value set `{}` has {given} fields, in the schema {known}", table.name));
        }
        // In the same order; the field of a set of plain values has a name in the schema only.
        let field = |(key, field): (&Key, &config::MatchField)| {
            let width = match key.kind {
                Kind::Bits(width) => width,
                _ => 1,
            };
            if width != field.bitwidth as u32 {
                return Err(format!(
                    "field `{}` of value set `{}` has {} bits in the program, {width} in the schema",
                    key.name, table.name, field.bitwidth
                ));
            }
            let (id, p4_id, name) = (key.id, field.id, key.name.clone());
            Ok(Field { id, p4_id, name, width, matched: match_type(field) })
        };
        Ok(ValueSet {
            table_id: table.id,
            p4_id: id_of(wanted.preamble.as_ref()),
            name: table.name.clone(),
            fields: table.keys.iter().zip(&wanted.r#match).map(field).collect::<Result<_, _>>()?,
        })
    }

    /// Whether P4Runtime has this number for it, or the one for all.
    pub(super) fn is(&self, p4_id: u32) -> bool {
        p4_id == 0 || p4_id == self.p4_id
    }

    /// Requests that read all its members.
    pub fn request(&self) -> TableEntry {
        TableEntry { table_id: self.table_id, ..Default::default() }
    }

    /// The set with these members.
    pub fn entity(&self, entries: &[TableEntry]) -> Translated<v1::Entity> {
        let member = |entry: &TableEntry| {
            let member = self.of_entry(entry)?;
            let pairs = self.fields.iter().zip(&member);
            let one = |(field, (value, mask)): (&Field, &(Vec<u8>, Vec<u8>))| field.to_p4(self, value, mask);
            let keys = pairs.map(one).collect::<Translated<Vec<_>>>()?;
            Ok(ValueSetMember { r#match: keys.into_iter().flatten().collect() })
        };
        let members = entries.iter().map(member).collect::<Translated<_>>()?;
        let set = ValueSetEntry { value_set_id: self.p4_id, members };
        Ok(v1::Entity { entity: Some(v1::entity::Entity::ValueSetEntry(set)) })
    }

    /// Updates from the existing members to the wanted ones: deletions, then insertions.
    pub fn updates(&self, there: &[TableEntry], wanted: &ValueSetEntry) -> Translated<Vec<Update>> {
        let there = there.iter().map(|entry| self.of_entry(entry)).collect::<Translated<Vec<Member>>>()?;
        let wanted = wanted.members.iter().map(|member| self.of_p4(member));
        let wanted = wanted.collect::<Translated<Vec<Member>>>()?;
        let goes = there.iter().filter(|member| !wanted.contains(member));
        let comes = wanted.iter().filter(|member| !there.contains(member));
        let goes = goes.map(|member| self.update(update::Type::Delete, member));
        Ok(goes.chain(comes.map(|member| self.update(update::Type::Insert, member))).collect())
    }

    fn update(&self, kind: update::Type, member: &Member) -> Update {
        let one = |(field, (value, mask)): (&Field, &(Vec<u8>, Vec<u8>))| {
            let ternary = Ternary { value: value.clone(), mask: mask.clone() };
            KeyField { field_id: field.id, match_type: Some(Sent::Ternary(ternary)) }
        };
        let key = TableKey { fields: self.fields.iter().zip(member).map(one).collect() };
        let entry = TableEntry { value: Some(table_entry::Value::Key(key)), ..self.request() };
        let entity = Wrapped { entity: Some(entity::Entity::TableEntry(entry)) };
        Update { r#type: kind as i32, entity: Some(entity) }
    }

    fn of(&self) -> String {
        format!("value set `{}`", self.name)
    }

    /// A field that is not given matches anything.
    fn of_entry(&self, entry: &TableEntry) -> Translated<Member> {
        let given = match &entry.value {
            Some(table_entry::Value::Key(key)) => &key.fields[..],
            _ => return invalid(format!("{}: a member has a key", self.of())),
        };
        let one = |field: &Field| match given.iter().find(|key| key.field_id == field.id) {
            Some(KeyField { match_type: Some(Sent::Ternary(Ternary { value, mask })), .. }) => {
                taken(&self.of(), &field.name, value, field.width)?;
                taken(&self.of(), &field.name, mask, field.width)?;
                Ok(masked(value.clone(), mask.clone()))
            }
            Some(_) => invalid(format!("{}: field `{}` is matched ternary", self.of(), field.name)),
            None => field.anything(self),
        };
        self.fields.iter().map(one).collect()
    }

    fn of_p4(&self, member: &ValueSetMember) -> Translated<Member> {
        let is_unknown = |key: &&FieldMatch| !self.fields.iter().any(|field| field.p4_id == key.field_id);
        if let Some(key) = member.r#match.iter().find(is_unknown) {
            return invalid(format!("{} has no field with P4Runtime's id {}", self.of(), key.field_id));
        }
        let one = |field: &Field| {
            let given = member.r#match.iter().find(|key| key.field_id == field.p4_id);
            field.of_p4(self, given.and_then(|key| key.field_match_type.as_ref()))
        };
        self.fields.iter().map(one).collect()
    }
}

fn masked(mut value: Vec<u8>, mask: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    value.iter_mut().zip(&mask).for_each(|(byte, mask)| *byte &= mask);
    (value, mask)
}

impl Field {
    fn anything(&self, set: &ValueSet) -> Translated<(Vec<u8>, Vec<u8>)> {
        let nothing = sent(&set.of(), &self.name, &[0], self.width)?;
        Ok((nothing.clone(), nothing))
    }

    fn of_p4(&self, set: &ValueSet, given: Option<&FieldMatchType>) -> Translated<(Vec<u8>, Vec<u8>)> {
        let fit = |value: &[u8]| sent(&set.of(), &self.name, value, self.width);
        Ok(match given {
            None => self.anything(set)?,
            Some(FieldMatchType::Exact(exact)) => (fit(&exact.value)?, ones(self.width)),
            Some(FieldMatchType::Optional(optional)) => (fit(&optional.value)?, ones(self.width)),
            Some(FieldMatchType::Ternary(ternary)) => masked(fit(&ternary.value)?, fit(&ternary.mask)?),
            Some(FieldMatchType::Lpm(lpm)) => {
                let Some(mask) = u32::try_from(lpm.prefix_len).ok().and_then(|bits| self.prefix(bits)) else {
                    return invalid(format!("{}: field `{}` has {} bits", set.of(), self.name, self.width));
                };
                masked(fit(&lpm.value)?, mask)
            }
            Some(_) => {
                let message = format!("{}: field `{}`: BFRuntime's members have masks", set.of(), self.name);
                return refuse(Code::Unimplemented, message);
            }
        })
    }

    /// The mask of a prefix, if it is no longer than the field.
    fn prefix(&self, bits: u32) -> Option<Vec<u8>> {
        let mut mask = ones(self.width);
        crate::entry::clear_behind(&mut mask, self.width, Some(bits).filter(|bits| *bits <= self.width)?);
        Some(mask)
    }

    /// P4Runtime's match; `None` if it matches anything.
    fn to_p4(&self, set: &ValueSet, value: &[u8], mask: &[u8]) -> Translated<Option<FieldMatch>> {
        let value = bytes::canonical(value);
        let is_all = *mask == ones(self.width);
        let matched = match self.matched {
            _ if mask.iter().all(|byte| *byte == 0) => return Ok(None),
            MatchType::Exact if is_all => FieldMatchType::Exact(field_match::Exact { value }),
            MatchType::Optional if is_all => FieldMatchType::Optional(field_match::Optional { value }),
            MatchType::Ternary => {
                FieldMatchType::Ternary(field_match::Ternary { value, mask: bytes::canonical(mask) })
            }
            MatchType::Lpm => match (1..=self.width).find(|bits| self.prefix(*bits).as_deref() == Some(mask))
            {
                Some(bits) => FieldMatchType::Lpm(field_match::Lpm { value, prefix_len: bits as i32 }),
                None => return self.unsaid(set),
            },
            _ => return self.unsaid(set),
        };
        Ok(Some(FieldMatch { field_id: self.p4_id, field_match_type: Some(matched) }))
    }

    fn unsaid<T>(&self, set: &ValueSet) -> Translated<T> {
        let (of, name, matched) = (set.of(), &self.name, self.matched.as_str_name());
        let message =
            format!("{of}: a member's mask of field `{name}` can't be said in P4Runtime: {matched}");
        refuse(Code::Unimplemented, message)
    }
}
