//! Metadata that parsers read in front of the packets of a port.

use super::super::fixed::Step;
use super::super::outcome::invalid;
use super::{Lookup, Own};
use num_bigint::BigUint;
use p4rack_bfrt::{Entry, Kind, Table, Value};
use p4rack_entities::{Change, Checked, Snapshot, control, refuse};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::Switch;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Ports of a pipe.
const OF_A_PIPE: u32 = 128;

/// The ports with metadata, each with its bytes. The others have zeros.
#[derive(Debug, Default)]
pub struct Ports(Mutex<BTreeMap<u16, Vec<u8>>>);

impl Ports {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, Vec<u8>>> {
        // Every change is a single insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces those that a table has.
    fn restore(&self, switch: &mut Switch, before: BTreeMap<u16, Vec<u8>>, has: impl Fn(u16) -> bool) {
        let mut ports = self.lock();
        let others = ports.clone().into_iter().filter(|(port, _)| !has(*port));
        let before: BTreeMap<u16, Vec<u8>> =
            before.into_iter().filter(|(port, _)| has(*port)).chain(others).collect();
        for port in ports.keys() {
            let _ = switch.port_metadata_set(*port, &[]);
        }
        for (port, bytes) in &before {
            let _ = switch.port_metadata_set(*port, bytes);
        }
        *ports = before;
    }
}

/// Fields with their widths. The first one is the most significant.
fn widths(table: &Table) -> Vec<(&str, u32)> {
    let width = |kind: &Kind| match kind {
        Kind::Bits(width) => *width,
        _ => 1,
    };
    table.fields.iter().map(|field| (field.name.as_str(), width(&field.kind))).collect()
}

/// The fields as bytes, beginning with the first bit; those that are not given are as before.
fn bytes(table: &Table, entry: &Entry, before: Option<&Vec<u8>>) -> Vec<u8> {
    let widths = widths(table);
    let total: u32 = widths.iter().map(|(_, width)| width).sum();
    let length = total.div_ceil(8) as usize;
    let (mut whole, mut behind) = (BigUint::default(), total);
    let old = BigUint::from_bytes_be(before.map_or(&[], |bytes| bytes)) >> (length as u32 * 8 - total);
    for (name, width) in widths {
        behind -= width;
        let value = match entry.get(name) {
            Some(Value::Number(number)) => BigUint::from_bytes_be(number),
            Some(Value::Bool(truth)) => BigUint::from(u8::from(*truth)),
            _ => &old >> behind & ((BigUint::from(1u8) << width) - 1u8),
        };
        whole |= value << behind;
    }
    let shifted = (whole << (length as u32 * 8 - total)).to_bytes_be();
    let mut bytes = vec![0; length.saturating_sub(shifted.len())];
    bytes.extend_from_slice(&shifted[shifted.len().saturating_sub(length)..]);
    bytes
}

/// The reverse of [`bytes`].
fn entry_of(table: &Table, key: &str, port: u16, bytes: &[u8]) -> Entry {
    let widths = widths(table);
    let total: u32 = widths.iter().map(|(_, width)| width).sum();
    let whole = BigUint::from_bytes_be(bytes) >> (bytes.len() as u32 * 8).saturating_sub(total);
    let (mut entry, mut behind) = (Entry::of(&table.name).exact(key, port.into()), total);
    for (name, width) in widths {
        behind -= width;
        let value = &whole >> behind & ((BigUint::from(1u8) << width) - 1u8);
        entry = entry.data(name, Value::Number(value.to_bytes_be()));
    }
    entry
}

impl Own {
    fn ports_table(&self, entry: &Entry) -> Checked<(&Table, &str)> {
        let table = self.schema.table(entry.table()).or_else(|error| invalid(error.to_string()))?;
        let key = table.keys.first().map_or("", |key| &key.name);
        Ok((table, key))
    }

    /// Whether a table is that of a port's pipe: each pipeline of the program has its own, and pipes have them in turn.
    fn has_port(&self, table: &str, port: u16) -> bool {
        let all = &self.program.ir.pipelines;
        let number =
            all.iter().position(|own| table.strip_prefix(own).is_some_and(|rest| rest.starts_with('.')));
        all.len() < 2 || number == Some(usize::from(port) / OF_A_PIPE as usize % all.len())
    }

    /// The port in an entry's key.
    fn port(&self, entry: &Entry, key: &str) -> Checked<u16> {
        match entry.exact_number(key).and_then(|port| u16::try_from(port).ok()) {
            Some(port) if u32::from(port) < self.pipes * OF_A_PIPE && self.has_port(entry.table(), port) => {
                Ok(port)
            }
            Some(port) if u32::from(port) < self.pipes * OF_A_PIPE => {
                invalid(format!("table `{}`: port {port} is in a pipe with another pipeline", entry.table()))
            }
            Some(port) => {
                let pipes = self.pipes;
                invalid(format!("table `{}`: no pipe of {pipes} has a port {port}", entry.table()))
            }
            None => invalid(format!("table `{}`: the entry's key needs `{key}`", entry.table())),
        }
    }

    /// An update of a port's metadata, or, with `all`, their deletion.
    pub(super) fn ports_step(self: &Arc<Own>, kind: Type, entry: &Entry, all: bool) -> Checked<Step> {
        let (table, key) = self.ports_table(entry)?;
        let port = if all { None } else { Some(self.port(entry, key)?) };
        let (table, entry) = (table.clone(), entry.clone());
        let (saved, changed) = (self.clone(), self.clone());
        let snapshot: Snapshot = Box::new(move |_| {
            let Some(port) = port else {
                let before = saved.ports.lock().clone();
                return Box::new(move |switch| saved.ports.restore(switch, before, |_| true));
            };
            let before = saved.ports.lock().get(&port).cloned();
            Box::new(move |switch| {
                let _ = switch.port_metadata_set(port, before.as_deref().unwrap_or(&[]));
                let mut ports = saved.ports.lock();
                match before {
                    Some(before) => ports.insert(port, before),
                    None => ports.remove(&port),
                };
            })
        });
        let change: Change = Box::new(move |switch, _| {
            let Some(port) = port else {
                let has = |port| changed.has_port(&table.name, port);
                changed.ports.restore(switch, BTreeMap::new(), has);
                return Ok(());
            };
            let mut ports = changed.ports.lock();
            let before = ports.get(&port);
            match (kind, before) {
                (Type::Insert, Some(_)) => {
                    return refuse(Code::AlreadyExists, format!("port {port} has metadata; modify them"));
                }
                (Type::Modify | Type::Delete, None) => {
                    return refuse(Code::NotFound, format!("port {port} has no metadata"));
                }
                (Type::Delete, _) => {
                    ports.remove(&port);
                    return control(switch.port_metadata_set(port, &[]));
                }
                _ => {}
            }
            let bytes = bytes(&table, &entry, before);
            control(switch.port_metadata_set(port, &bytes))?;
            ports.insert(port, bytes);
            Ok(())
        });
        Ok(Step { snapshot: Some(snapshot), change })
    }

    /// A read of a port's metadata, or of all in the order of their ports.
    pub(super) fn ports_lookup(self: &Arc<Own>, entry: Entry, all: bool) -> Checked<Lookup> {
        let (_, key) = self.ports_table(&entry)?;
        let port = if all { None } else { Some(self.port(&entry, key)?) };
        let own = self.clone();
        Ok(Box::new(move |_| {
            let (table, key) = own.ports_table(&entry)?;
            let ports = own.ports.lock();
            let wanted = ports
                .iter()
                .filter(|(at, _)| own.has_port(&table.name, **at) && port.is_none_or(|port| port == **at));
            let found = wanted.map(|(port, bytes)| own.build(&entry_of(table, key, *port, bytes)));
            let found = found.collect::<Checked<Vec<_>>>()?;
            match port {
                Some(port) if found.is_empty() => {
                    refuse(Code::NotFound, format!("port {port} has no metadata"))
                }
                _ => Ok((found, None)),
            }
        }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on should panic
mod tests {
    use super::*;
    use p4rack_bfrt::Schema;
    use proptest::prelude::*;

    fn table(widths: &[u32]) -> Table {
        let field = |(at, width): (usize, &u32)| {
            let ty = serde_json::json!({ "type": "bytes", "width": width });
            let field = serde_json::json!({ "id": at + 1, "name": format!("f{at}"), "type": ty });
            serde_json::json!({ "mandatory": false, "read_only": false, "singleton": field })
        };
        let data: Vec<_> = widths.iter().enumerate().map(field).collect();
        let table = serde_json::json!({
            "id": 1, "name": "p", "table_type": "PortMetadata", "key": [], "data": data
        });
        let text = serde_json::json!({ "tables": [table] }).to_string();
        Schema::parse(text.as_bytes()).unwrap().tables()[0].clone()
    }

    #[test]
    fn fields_follow_each_other_from_the_first_bit_on() {
        let table = table(&[4, 9, 1]);
        let entry = Entry::of("p").data("f0", 0xau16).data("f1", 0x101u16).data("f2", 1u16);
        // 1010 1 0000 0001 1, then zeros.
        assert_eq!(bytes(&table, &entry, None), [0xa8, 0x0c]);
        let changed = bytes(&table, &Entry::of("p").data("f0", 1u16), Some(&vec![0xa8, 0x0c]));
        assert_eq!(changed, [0x18, 0x0c], "the others stay");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(fields in prop::collection::vec((1u32..40, any::<u64>()), 1..5)) {
            let widths: Vec<u32> = fields.iter().map(|(width, _)| *width).collect();
            let table = table(&widths);
            let mut entry = Entry::of("p").exact("port", 7);
            for (at, (width, value)) in fields.iter().enumerate() {
                entry = entry.data(&format!("f{at}"), value >> (64 - width));
            }
            let read = entry_of(&table, "port", 7, &bytes(&table, &entry, None));
            for at in 0..fields.len() {
                let name = format!("f{at}");
                prop_assert_eq!(read.get(&name).unwrap().number(), entry.get(&name).unwrap().number());
            }
        }
    }
}
