//! Members of parser value sets, each an entry. The switch replaces all members of a set together.

use super::super::fixed::Step;
use super::super::outcome::invalid;
use super::{Lookup, Own};
use num_bigint::BigUint;
use p4rack_bfrt::{Entry, Key, Match};
use p4rack_entities::{Change, Checked, Snapshot, control, refuse};
use p4rack_p4::ir::{MatchKind, Matcher, Ty, ValueSetId};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::google::rpc::Code;
use std::sync::Arc;

impl Own {
    /// A set's fields in its order: names in the schema, the largest values, and whether they match exactly in P4Runtime.
    fn member_fields(&self, entry: &Entry, set: ValueSetId) -> Checked<Vec<(String, BigUint, bool)>> {
        let table = self.schema.table(entry.table()).or_else(|error| invalid(error.to_string()))?;
        let fields = self.program.ir.value_sets.get(set.0 as usize).map_or(&[][..], |set| &set.fields);
        let one = |(key, (_, ty, kind)): (&Key, &(_, Ty, MatchKind))| {
            let ones = (BigUint::from(1u8) << ty.width()) - 1u8;
            (key.name.clone(), ones, *kind == MatchKind::Exact)
        };
        Ok(table.keys.iter().zip(fields).map(one).collect())
    }

    /// The member in an entry's key. A field that is not given matches anything.
    fn member(&self, entry: &Entry, set: ValueSetId) -> Checked<Vec<Matcher>> {
        let one = |(name, ones, is_exact): &(String, BigUint, bool)| match entry.matched(name) {
            Some(Match::Ternary(value, mask)) => {
                let (value, mask) = (BigUint::from_bytes_be(value), BigUint::from_bytes_be(mask));
                match *is_exact && mask == *ones {
                    true => Matcher::Exact(value),
                    false => Matcher::Mask { value: value & &mask, mask },
                }
            }
            _ => Matcher::Any,
        };
        Ok(self.member_fields(entry, set)?.iter().map(one).collect())
    }

    /// An update of a member, or, with `all`, the deletion of all.
    pub(super) fn members_step(
        self: &Arc<Own>,
        kind: Type,
        entry: &Entry,
        all: bool,
        set: ValueSetId,
    ) -> Checked<Step> {
        let member = self.member(entry, set)?;
        let table = entry.table().to_owned();
        let snapshot: Snapshot = Box::new(move |switch| {
            let before = switch.value_set_get(set).map(<[_]>::to_vec);
            Box::new(move |switch| {
                let _ = before.and_then(|before| switch.value_set_set(set, before));
            })
        });
        let change: Change = Box::new(move |switch, _| {
            let mut members = control(switch.value_set_get(set))?.to_vec();
            let there = members.iter().position(|there| *there == member);
            match (kind, there) {
                _ if all => members.clear(),
                (Type::Insert, Some(_)) => {
                    return refuse(Code::AlreadyExists, format!("table `{table}` has this member"));
                }
                (Type::Insert | Type::InsertOrModify, None) => members.push(member),
                (Type::Delete, Some(at)) => drop(members.remove(at)),
                (Type::Modify | Type::InsertOrModify, Some(_)) => return Ok(()),
                // As with the driver.
                (Type::Delete, None) => return Ok(()),
                (_, None) => return refuse(Code::NotFound, format!("table `{table}` has no such member")),
                _ => return invalid(format!("table `{table}`: a member is inserted or deleted")),
            }
            control(switch.value_set_set(set, members))
        });
        Ok(Step { snapshot: Some(snapshot), change })
    }

    /// A read of one member or of all.
    pub(super) fn members_lookup(
        self: &Arc<Own>,
        entry: Entry,
        all: bool,
        set: ValueSetId,
    ) -> Checked<Lookup> {
        let wanted = if all { None } else { Some(self.member(&entry, set)?) };
        let (own, fields) = (self.clone(), self.member_fields(&entry, set)?);
        Ok(Box::new(move |switch| {
            let members = control(switch.value_set_get(set))?;
            let fits = |member: &&Vec<Matcher>| wanted.as_ref().is_none_or(|wanted| wanted == *member);
            let one = |member: &Vec<Matcher>| {
                let pairs = fields.iter().zip(member);
                let entry = pairs.fold(Entry::of(entry.table()), |entry, ((name, ones, _), matcher)| {
                    let none = BigUint::default();
                    let (value, mask) = match matcher {
                        Matcher::Mask { value, mask } => (value, mask),
                        Matcher::Exact(value) => (value, ones),
                        _ => (&none, &none),
                    };
                    entry.key(name, Match::Ternary(value.to_bytes_be(), mask.to_bytes_be()))
                });
                own.build(&entry)
            };
            let found = members.iter().filter(fits).map(one).collect::<Checked<Vec<_>>>()?;
            match found.is_empty() && wanted.is_some() {
                true => refuse(Code::NotFound, format!("table `{}` has no such member", entry.table())),
                false => Ok((found, None)),
            }
        }))
    }
}
