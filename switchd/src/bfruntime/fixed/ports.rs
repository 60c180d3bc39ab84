//! Ports as clients configure them, and their statistics.

use super::{Fixed, Step, Table, id, not_offered};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, Snapshot, refuse};
use p4rack_p4rt::bfrt_proto::update::Type;
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{DropReason, PortStats, Switch};
use p4rack_wire::Nanos;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PORT: &str = "$DEV_PORT";
const ENABLE: &str = "$PORT_ENABLE";

/// Ports as configured by clients; they outlive programs.
#[derive(Clone, Debug, Default)]
pub struct Ports(Arc<Mutex<BTreeMap<u16, Entry>>>);

impl Ports {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u16, Entry>> {
        // Every change is a single insertion or removal.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_enabled(entry: &Entry) -> bool {
    entry.get(ENABLE) == Some(&Value::Bool(true))
}

impl Fixed {
    pub(super) fn port_step(self: &Arc<Fixed>, kind: Type, entry: Entry, all: bool) -> Checked<Step> {
        if matches!(kind, Type::ModifyInc | Type::Reset) {
            return not_offered(&entry, kind.as_str_name());
        }
        let port = if all { None } else { Some(id(&entry, PORT)?) };
        let Ok(port) = port.map(u16::try_from).transpose() else {
            return refuse(Code::InvalidArgument, format!("there is no port {}", port.unwrap_or(0)));
        };
        let saving = self.ports.clone();
        let snapshot: Snapshot = Box::new(move |_| {
            let before: Vec<(u16, Option<Entry>)> = match port {
                Some(port) => vec![(port, saving.lock().get(&port).cloned())],
                None => saving.lock().iter().map(|(port, entry)| (*port, Some(entry.clone()))).collect(),
            };
            Box::new(move |_| {
                for (port, entry) in before {
                    match entry {
                        Some(entry) => saving.lock().insert(port, entry),
                        None => saving.lock().remove(&port),
                    };
                }
            })
        });
        let ports = self.ports.clone();
        let change: Change = Box::new(move |switch, _| {
            let mut ports = ports.lock();
            let Some(port) = port else {
                ports.clear();
                return Ok(());
            };
            // Clients may remove what is not there.
            if kind == Type::Delete {
                ports.remove(&port);
                return Ok(());
            }
            if !switch.config().ports.iter().any(|own| own.port == port) {
                return refuse(Code::InvalidArgument, format!("the switch has no port {port}"));
            }
            match (kind, ports.contains_key(&port)) {
                (Type::Insert, true) => {
                    return refuse(Code::AlreadyExists, format!("port {port} was added before"));
                }
                (Type::Modify, false) => {
                    return refuse(Code::NotFound, format!("port {port} was not added"));
                }
                _ => {}
            }
            let before = ports.remove(&port);
            let merged = before.map_or_else(|| entry.clone(), |before| before.updated(&entry));
            ports.insert(port, merged);
            Ok(())
        });
        Ok(Step { snapshot: Some(snapshot), change })
    }

    pub(super) fn port_lookup(&self, entry: &Entry, all: bool) -> Checked<Table> {
        let wanted = if all { None } else { Some(id(entry, PORT)?) };
        Ok(match entry.table() {
            "$PORT" => Box::new(move |fixed, switch, _| Ok((ports(&fixed.ports, switch, wanted), None))),
            _ => Box::new(move |_, switch, now| Ok((statistics(switch, now, wanted), None))),
        })
    }
}

fn ports(ports: &Ports, switch: &Switch, wanted: Option<u32>) -> Vec<Entry> {
    let ports = ports.lock();
    let fits = |port: &u16| wanted.is_none_or(|wanted| wanted == u32::from(*port));
    let one = |(port, entry): (&u16, &Entry)| {
        let up = is_enabled(entry) && switch.is_port_up(*port);
        let entry = entry.clone().data("$PORT_UP", up).data("$IS_VALID", true);
        entry.data("$PORT_NAME", &*format!("{port}/0"))
    };
    ports.iter().filter(|(port, _)| fits(port)).map(one).collect()
}

fn statistics(switch: &Switch, now: Nanos, wanted: Option<u32>) -> Vec<Entry> {
    let stats = switch.stats(now);
    let is_own = |port: u16| switch.config().ports.iter().any(|own| own.port == port);
    let wanted = |port: u16| is_own(port) && wanted.is_none_or(|wanted| wanted == u32::from(port));
    let ports = stats.ports.iter().filter(|port| wanted(port.port));
    let one = |port: &PortStats| {
        let full = [DropReason::BufferFull, DropReason::BestEffortFull, DropReason::QueueLimit];
        let dropped: u64 =
            port.drops.iter().filter(|(why, _)| full.contains(why)).map(|(_, count)| count).sum();
        Entry::of("$PORT_STAT")
            .exact(PORT, port.port.into())
            .data("$FramesReceivedOK", port.rx_frames)
            .data("$FramesReceivedAll", port.rx_frames)
            .data("$OctetsReceivedinGoodFrames", port.rx_bytes)
            .data("$OctetsReceived", port.rx_bytes)
            .data("$FramesDroppedBufferFull", dropped)
            .data("$FramesTransmittedOK", port.tx_frames)
            .data("$FramesTransmittedAll", port.tx_frames)
            .data("$OctetsTransmittedwithouterror", port.tx_bytes)
            .data("$OctetsTransmittedTotal", port.tx_bytes)
    };
    ports.map(one).collect()
}
