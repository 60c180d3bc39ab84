//! Configurable hashes: their inputs, their algorithm, and their results for given values.

use super::super::fixed::Step;
use super::super::outcome::invalid;
use super::algorithms;
use super::{Lookup, Own, not_offered};
use num_bigint::BigUint;
use p4rack_bfrt::{Entry, Match, Value};
use p4rack_entities::{Change, Checked, Program, Snapshot, control};
use p4rack_p4::ir::{HashAlgorithm, InstanceId, InstanceKind, Ty};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_switch::{HashConfig, HashPart, Switch};
use std::sync::Arc;

/// Names of a part's fields.
const PART: [&str; 3] = ["start_bit", "length", "order"];

/// One of a hash's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    Configure,
    Algorithm,
    Compute,
}

impl Aspect {
    /// By the type of the table; with the end of the table's name.
    pub fn of(table_type: &str) -> Option<(Aspect, &'static str)> {
        match table_type {
            "DynHashConfigure" => Some((Aspect::Configure, ".configure")),
            "DynHashAlgorithm" => Some((Aspect::Algorithm, ".algorithm")),
            "DynHashCompute" => Some((Aspect::Compute, ".compute")),
            _ => None,
        }
    }
}

/// A hash as the program has it.
fn hash(program: &Program, instance: InstanceId) -> (HashAlgorithm, &[(String, Ty)]) {
    match program.ir.instances.get(instance.0 as usize).map(|found| &found.kind) {
        Some(InstanceKind::Hash { algorithm, fields, .. }) => (*algorithm, fields),
        _ => (HashAlgorithm::Identity, &[]),
    }
}

fn unchanged() -> HashConfig {
    HashConfig { parts: None, algorithm: None, rotate: 0, extend: false }
}

/// The parts that an entry names. Fields without any are not hashed; a part of order 0 isn't either.
fn parts(entry: &Entry, fields: &[(String, Ty)]) -> Checked<Vec<HashPart>> {
    let table = entry.table();
    let mut found: Vec<HashPart> = Vec::new();
    for (field, (name, ty)) in fields.iter().enumerate() {
        let Some(Value::Groups(groups)) = entry.get(name) else { continue };
        if groups.len() > ty.width() as usize {
            return invalid(format!("table `{table}`: `{name}` has fewer bits than parts are given"));
        }
        for group in groups {
            let number = |name: &str| {
                let value = group.iter().find(|(other, _)| other == name);
                value.and_then(|(_, value)| value.number())
            };
            let [start, length, order] = PART.map(number);
            let start = start.unwrap_or(0);
            let Some(left) = u64::from(ty.width()).checked_sub(start).filter(|left| *left > 0) else {
                let width = ty.width();
                return invalid(format!("table `{table}`: `{name}` has {width} bits, none from {start} on"));
            };
            let Some(order) = order else {
                return invalid(format!("table `{table}`: a part of `{name}` has no `order`"));
            };
            let bits = length.unwrap_or(left).min(left);
            if order > 0 && bits > 0 {
                found.push(HashPart { field, start: start as u32, bits: bits as u32, order });
            }
        }
    }
    if found.is_empty() {
        return invalid(format!("table `{table}`: nothing would be hashed; give a field an `order` above 0"));
    }
    let mut places: Vec<&HashPart> = found.iter().collect();
    places.sort_by_key(|part| (part.field, part.start));
    if let Some(pair) = places
        .windows(2)
        .find(|pair| pair[0].field == pair[1].field && pair[0].start + pair[0].bits > pair[1].start)
    {
        return invalid(format!("table `{table}`: parts of `{}` overlap", fields[pair[0].field].0));
    }
    let mut orders: Vec<&HashPart> = found.iter().collect();
    orders.sort_by_key(|part| part.order);
    for same in orders.chunk_by(|one, other| one.order == other.order) {
        let order = same[0].order;
        if same.len() > 2 {
            return invalid(format!("table `{table}`: {} parts of order {order}; at most 2", same.len()));
        }
        if same.iter().any(|part| part.bits != same[0].bits) {
            return invalid(format!("table `{table}`: parts of order {order} are of different lengths"));
        }
    }
    Ok(found)
}

/// A hash's inputs, as an entry.
fn shown_parts(table: &str, fields: &[(String, Ty)], config: Option<&HashConfig>) -> Entry {
    let given = config.and_then(|config| config.parts.as_ref());
    let group = |start: u32, bits: u32, order: u64| {
        let values = [start.into(), bits.into(), order].map(Value::from);
        PART.iter().map(|name| (*name).to_owned()).zip(values).collect::<Vec<_>>()
    };
    let mut entry = Entry::default_of(table);
    for (at, (name, ty)) in fields.iter().enumerate() {
        let groups: Vec<_> = match given {
            None => vec![group(0, ty.width(), at as u64 + 1)],
            Some(parts) => {
                let own = parts.iter().filter(|part| part.field == at);
                own.map(|part| group(part.start, part.bits, part.order)).collect()
            }
        };
        if !groups.is_empty() {
            entry = entry.data(name, Value::Groups(groups));
        }
    }
    entry
}

impl Own {
    /// An update of a hash's inputs or algorithm.
    pub(super) fn hash_step(
        self: &Arc<Own>,
        kind: Type,
        entry: &Entry,
        instance: InstanceId,
        aspect: Aspect,
    ) -> Checked<Step> {
        let table = entry.table();
        if aspect == Aspect::Compute {
            return invalid(format!("table `{table}` can only be read"));
        }
        if !entry.is_default() {
            return invalid(format!("table `{table}` has nothing but its default entry"));
        }
        let resets = match kind {
            Type::Modify | Type::InsertOrModify => false,
            Type::Delete => true,
            _ => return not_offered(entry, "INSERT of the default entry, which is always there,"),
        };
        let (own, fields) = hash(&self.program, instance);
        type Edit = Box<dyn FnOnce(&mut HashConfig) + Send>;
        let edit: Edit = match (aspect, resets) {
            (Aspect::Configure, true) => Box::new(|config| config.parts = None),
            (Aspect::Configure, false) => {
                let parts = parts(entry, fields)?;
                Box::new(move |config| config.parts = Some(parts))
            }
            (_, true) => {
                Box::new(|config| *config = HashConfig { parts: config.parts.take(), ..unchanged() })
            }
            (_, false) => {
                let chosen = algorithms::chosen(entry, own)?;
                Box::new(move |config| chosen.put(config))
            }
        };
        let snapshot: Snapshot = Box::new(move |switch| {
            let before = switch.hash_read(instance);
            Box::new(move |switch| {
                let _ = before.and_then(|before| switch.hash_config(instance, before));
            })
        });
        let change: Change = Box::new(move |switch: &mut Switch, _| {
            let mut config = control(switch.hash_read(instance))?.unwrap_or_else(unchanged);
            edit(&mut config);
            let config = (config != unchanged()).then_some(config);
            control(switch.hash_config(instance, config))
        });
        Ok(Step { snapshot: Some(snapshot), change })
    }

    /// A read of a hash's configuration, or of its result.
    pub(super) fn hash_lookup(
        self: &Arc<Own>,
        entry: Entry,
        instance: InstanceId,
        aspect: Aspect,
    ) -> Checked<Lookup> {
        let own = self.clone();
        Ok(Box::new(move |switch| {
            let (algorithm, fields) = hash(&own.program, instance);
            let found = match aspect {
                Aspect::Configure => {
                    let config = control(switch.hash_read(instance))?;
                    shown_parts(entry.table(), fields, config.as_ref())
                }
                Aspect::Algorithm => {
                    let config = control(switch.hash_read(instance))?;
                    algorithms::shown(entry.table(), algorithm, config.as_ref())
                }
                Aspect::Compute => {
                    let value = |name: &String| match entry.matched(name) {
                        Some(Match::Exact(value)) => BigUint::from_bytes_be(value),
                        _ => BigUint::ZERO,
                    };
                    let values: Vec<BigUint> = fields.iter().map(|(name, _)| value(name)).collect();
                    let hash = control(switch.hash_compute(instance, &values))?;
                    let keyed = fields.iter().zip(&values).fold(Entry::of(entry.table()), |keyed, field| {
                        keyed.key(&field.0.0, Match::Exact(field.1.to_bytes_be()))
                    });
                    keyed.data("hash_value", hash)
                }
            };
            Ok((vec![own.build(&found)?], None))
        }))
    }
}
