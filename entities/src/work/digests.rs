//! Digests of a program: subscriptions, and the messages that carry lists.

use super::{Answer, Change, Query, Snapshot};
use crate::Checked;
use crate::program::Program;
use num_bigint::BigUint;
use p4rack_p4::ir::{self, DataTy};
use p4rack_p4rt::EntityKind;
use p4rack_p4rt::p4::v1::digest_entry::Config;
use p4rack_p4rt::p4::v1::{DigestEntry, DigestList, Entity, P4Data, P4Header, P4StructLike, p4_data, update};
use p4rack_wire::Nanos;
use std::sync::Arc;

/// Checks an update of a digest.
pub fn write(program: &Arc<Program>, kind: update::Type, entry: &DigestEntry) -> Checked<Change> {
    let (program, digest, config) = (program.clone(), program.digest(entry.digest_id)?, entry.config);
    Ok(Box::new(move |_, _| program.digests().configure(kind, digest, config)))
}

/// Checks a read of digests.
pub fn read(program: &Arc<Program>, request: &DigestEntry) -> Checked<Vec<Query>> {
    let wanted = match request.digest_id {
        0 => None,
        id => Some(program.digest(id)?),
    };
    let program = program.clone();
    Ok(vec![Box::new(move |_, _| {
        let configured: Vec<_> = program.digests().configured().collect();
        Ok(Answer::whole(Box::new(move || {
            let chosen = configured.into_iter().filter(|(digest, _)| wanted.is_none_or(|one| one == *digest));
            chosen.map(|(digest, config)| self::entity(program.digest_id(digest), config)).collect()
        })))
    })])
}

/// Prepares to undo an update of a digest.
pub fn snapshot(program: &Arc<Program>, entry: &DigestEntry) -> Checked<Snapshot> {
    let (program, digest) = (program.clone(), program.digest(entry.digest_id)?);
    Ok(Box::new(move |_| {
        let before = program.digests().config(digest);
        Box::new(move |_| program.digests().restore(digest, before))
    }))
}

/// The message for a list.
pub fn message(
    program: &Program,
    digest: u32,
    list_id: u64,
    list: &[Vec<BigUint>],
    now: Nanos,
) -> DigestList {
    let described = &program.ir.digests[digest as usize];
    let one = |values: &Vec<BigUint>| {
        let mut values = values.iter();
        let mut types = described.fields.iter().map(|(_, ty)| *ty);
        data(program, &described.data, &mut values, &mut types)
    };
    DigestList {
        digest_id: program.digest_id(digest),
        list_id,
        data: list.iter().map(one).collect(),
        timestamp: now.0 as i64,
    }
}

/// A value of a type, from the flat values of its parts.
fn data<'v>(
    program: &Program,
    ty: &DataTy,
    values: &mut impl Iterator<Item = &'v BigUint>,
    types: &mut impl Iterator<Item = ir::Ty>,
) -> P4Data {
    use p4_data::Data;
    let mut fields = |name: &str, program: &Program| -> Vec<P4Data> {
        let found = program.ir.data_structs.iter().find(|found| found.name == name);
        let fields = found.map_or(&[][..], |found| &found.fields);
        fields.iter().map(|(_, ty)| data(program, ty, values, types)).collect()
    };
    let data = match ty {
        DataTy::Struct(name) => Data::Struct(P4StructLike { members: fields(name, program) }),
        DataTy::Header(name) => {
            let bits = |member: P4Data| match member.data {
                Some(Data::Bitstring(bits) | Data::EnumValue(bits)) => bits,
                Some(Data::Bool(value)) => vec![u8::from(value)],
                _ => Vec::new(),
            };
            let bitstrings = fields(name, program).into_iter().map(bits).collect();
            Data::Header(P4Header { is_valid: true, bitstrings })
        }
        DataTy::Tuple(items) => {
            let members = items.iter().map(|ty| self::data(program, ty, values, types)).collect();
            Data::Tuple(P4StructLike { members })
        }
        DataTy::NewType(name) => {
            if let Some(names) = program.names.of(Some(name)) {
                types.next();
                let value = values.next().cloned().unwrap_or_default();
                return P4Data { data: Some(Data::Bitstring(names.shown(&value))) };
            }
            return match program.ir.new_types.iter().find(|found| found.name == *name) {
                Some(found) => self::data(program, &found.inner, values, types),
                None => P4Data { data: None },
            };
        }
        scalar => {
            let (value, ty) = (values.next().cloned().unwrap_or_default(), types.next());
            let index = value.iter_u32_digits().next().unwrap_or(0) as usize;
            let member = |names: Option<&Vec<String>>| names.and_then(|names| names.get(index)).cloned();
            match scalar {
                DataTy::Error => Data::Error(member(Some(&program.ir.errors)).unwrap_or_default()),
                DataTy::Enum(name) => {
                    let found = program.ir.enums.iter().find(|(found, _)| found == name);
                    Data::Enum(member(found.map(|(_, members)| members)).unwrap_or_default())
                }
                DataTy::SerEnum(_) => Data::EnumValue(value.to_bytes_be()),
                _ if ty == Some(ir::Ty::Bool) => Data::Bool(index != 0),
                _ => Data::Bitstring(value.to_bytes_be()),
            }
        }
    };
    P4Data { data: Some(data) }
}

/// The entity that carries a digest's configuration.
fn entity(digest_id: u32, config: Config) -> Entity {
    Entity { entity: Some(EntityKind::DigestEntry(DigestEntry { digest_id, config: Some(config) })) }
}
