//! Ids and aliases of P4Info objects.

use crate::ir::{ActionId, InstanceId, InstanceKind, Named, Program, TableId};
use p4rack_p4rt::alias::Aliases;
use p4rack_p4rt::p4::config::v1::p4_ids::Prefix;
use std::collections::{BTreeMap, BTreeSet};

/// P4Info ids, indexed by the IR's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ids {
    /// Table ids, by [`TableId`].
    pub tables: Vec<u32>,
    /// Action ids, by [`ActionId`]. Actions that differ only in the arguments a table binds share an id.
    pub actions: Vec<u32>,
    /// Ids of extern objects, by [`InstanceId`].
    pub instances: Vec<u32>,
    /// Ids by number of the value set.
    pub value_sets: Vec<u32>,
    /// Ids by number of the digest.
    pub digests: Vec<u32>,
    /// Ids by number of the controller header.
    pub controller_headers: Vec<u32>,
}

impl Ids {
    /// The table with this id.
    pub fn table(&self, id: u32) -> Option<TableId> {
        position(&self.tables, id).map(TableId)
    }

    /// The first action with this id. A table's own variant is found through the [`Ids::actions`] of its
    /// list.
    pub fn action(&self, id: u32) -> Option<ActionId> {
        position(&self.actions, id).map(ActionId)
    }

    /// The counter, meter, register or action profile with this id.
    pub fn instance(&self, id: u32) -> Option<InstanceId> {
        position(&self.instances, id).map(InstanceId)
    }

    /// Number of the digest with this id, from 0.
    pub fn digest(&self, id: u32) -> Option<u32> {
        position(&self.digests, id)
    }

    /// Number of the value set with this id, from 0.
    pub fn value_set(&self, id: u32) -> Option<u32> {
        position(&self.value_sets, id)
    }
}

fn position(list: &[u32], id: u32) -> Option<u32> {
    list.iter().position(|i| *i == id).map(|i| i as u32)
}

/// Names, ids and aliases of all objects.
pub(super) struct Symbols {
    pub ids: Ids,
    aliases: Aliases,
}

impl Symbols {
    pub fn new(program: &Program) -> Symbols {
        let kind = |kind: &InstanceKind| match kind {
            InstanceKind::Counter { .. } => Prefix::Counter,
            InstanceKind::DirectCounter { .. } => Prefix::DirectCounter,
            InstanceKind::Meter { .. } => Prefix::Meter,
            InstanceKind::DirectMeter { .. } => Prefix::DirectMeter,
            InstanceKind::Register { .. } | InstanceKind::DirectRegister { .. } => Prefix::Register,
            // Hidden.
            InstanceKind::Smoother { .. }
            | InstanceKind::DirectSmoother { .. }
            | InstanceKind::Hash { .. } => Prefix::Register,
            InstanceKind::ActionProfile { .. } | InstanceKind::ActionSelector { .. } => Prefix::ActionProfile,
        };
        // P4Info lists controller headers by their annotation, but ids and aliases use the type's name.
        let headers: Vec<Named> = program
            .controller_headers
            .iter()
            .map(|h| Named { name: h.type_name.clone(), ..h.named.clone() })
            .collect();
        let mut wanted: Vec<(Prefix, &Named)> = Vec::new();
        wanted.extend(program.tables.iter().map(|t| (Prefix::Table, &t.named)));
        wanted.extend(program.actions.iter().map(|a| (Prefix::Action, &a.named)));
        wanted.extend(program.instances.iter().map(|i| (kind(&i.kind), &i.named)));
        wanted.extend(program.value_sets.iter().map(|v| (Prefix::ValueSet, &v.named)));
        wanted.extend(program.digests.iter().map(|d| (Prefix::Digest, &d.named)));
        wanted.extend(headers.iter().map(|h| (Prefix::ControllerHeader, h)));

        let assigned = assign(&wanted);
        let of = |prefix: Prefix, named: &Named| {
            assigned.get(&(prefix as u32, named.name.clone())).copied().unwrap_or_default()
        };
        let ids = Ids {
            tables: program.tables.iter().map(|t| of(Prefix::Table, &t.named)).collect(),
            actions: program.actions.iter().map(|a| of(Prefix::Action, &a.named)).collect(),
            instances: program.instances.iter().map(|i| of(kind(&i.kind), &i.named)).collect(),
            value_sets: program.value_sets.iter().map(|v| of(Prefix::ValueSet, &v.named)).collect(),
            digests: program.digests.iter().map(|d| of(Prefix::Digest, &d.named)).collect(),
            controller_headers: headers.iter().map(|h| of(Prefix::ControllerHeader, h)).collect(),
        };
        let aliases = Aliases::new(wanted.iter().map(|(_, named)| named.name.as_str()));
        Symbols { ids, aliases }
    }

    /// The shortest suffix of a name that no other name has.
    pub fn alias(&self, name: &str) -> String {
        self.aliases.of(name).to_owned()
    }
}

/// An id for each kind and name: from `@id`, else a hash of the name; a clash takes the next free id.
fn assign(wanted: &[(Prefix, &Named)]) -> BTreeMap<(u32, String), u32> {
    let mut done = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (prefix, named) in wanted {
        let Some(id) = named.id else { continue };
        let id = (*prefix as u32) << 24 | (id & 0x00ff_ffff);
        if done.insert((*prefix as u32, named.name.clone()), id).is_none() {
            taken.insert(id);
        }
    }
    // Sorted by name, so that clashes are always resolved the same way.
    let rest: BTreeSet<(u32, &str)> = wanted.iter().map(|(p, n)| (*p as u32, n.name.as_str())).collect();
    for (prefix, name) in rest {
        if done.contains_key(&(prefix, name.to_owned())) {
            continue;
        }
        let mut low = jenkins_hash(name.as_bytes());
        let mut id = prefix << 24 | (low & 0x00ff_ffff);
        while taken.contains(&id) {
            low = low.wrapping_add(1);
            id = prefix << 24 | (low & 0x00ff_ffff);
        }
        taken.insert(id);
        done.insert((prefix, name.to_owned()), id);
    }
    done
}

/// Jenkins' one-at-a-time hash, from which ids are derived.
pub fn jenkins_hash(key: &[u8]) -> u32 {
    let mut hash: u32 = 0;
    for byte in key {
        hash = hash.wrapping_add(u32::from(*byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// Ids of parts (match fields, parameters): `@id`, or the next number from 1 that no `@id` uses.
pub(super) fn part_ids<'n>(parts: impl Iterator<Item = &'n Named> + Clone) -> Vec<u32> {
    let given: BTreeSet<u32> = parts.clone().filter_map(|n| n.id).collect();
    let mut next = 1;
    parts
        .map(|named| match named.id {
            Some(id) => {
                next += 1;
                id
            }
            None => {
                while given.contains(&next) {
                    next += 1;
                }
                next += 1;
                next - 1
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_is_the_known_one() {
        // Reference values of the published hash function.
        assert_eq!(jenkins_hash(b"a"), 0xca2e_9442);
        assert_eq!(jenkins_hash(b"The quick brown fox jumps over the lazy dog"), 0x519e_91f5);
    }

    #[test]
    fn parts_leave_given_ids_out() {
        let named = |id| Named { id, ..Named::default() };
        let parts = [named(None), named(Some(1)), named(None), named(Some(9)), named(None)];
        assert_eq!(part_ids(parts.iter()), vec![2, 1, 4, 9, 6]);
    }
}
