//! Ports as clients configure them, and their statistics.

use super::{Fixed, Step, Table, id, not_offered};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, Snapshot, refuse};
use p4rack_p4rt::bfrt_proto::{TableEntry, update::Type};
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::{DropReason, PortStats, Switch};
use p4rack_wire::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The table of ports.
pub const PORTS: &str = "$PORT";
const PORT: &str = "$DEV_PORT";
const ENABLE: &str = "$PORT_ENABLE";

#[derive(Debug, Default)]
struct State {
    rows: BTreeMap<u16, Entry>,
    /// Ports that were up at the last notification.
    up: BTreeSet<u16>,
    /// Whether notifications are enabled.
    notifies: bool,
    /// Whether rows changed since the last notification.
    changed: bool,
}

/// Ports as configured by clients; they outlive programs.
#[derive(Clone, Debug, Default)]
pub struct Ports(Arc<Mutex<State>>);

impl Ports {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No change can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether subscribed clients are notified of ports that go up or down.
    pub fn notifies(&self) -> bool {
        self.lock().notifies
    }

    /// Disables notifications.
    pub fn silence(&self) {
        self.lock().notifies = false;
    }

    /// A change that enables or disables notifications.
    pub fn notify_step(&self, enable: bool) -> Step {
        let (saving, changing) = (self.clone(), self.clone());
        let snapshot: Snapshot = Box::new(move |_| {
            let before = saving.notifies();
            Box::new(move |_| saving.lock().notifies = before)
        });
        let change: Change = Box::new(move |switch, _| {
            let mut state = changing.lock();
            state.notifies = enable;
            state.up = state.now_up(switch);
            Ok(())
        });
        Step { snapshot: Some(snapshot), change }
    }

    /// Whether rows changed since the last call.
    pub fn take_changed(&self) -> bool {
        std::mem::take(&mut self.lock().changed)
    }

    /// Ports that went up or down since the last time, and whether they are up.
    pub fn news(&self, switch: &Switch) -> Vec<(u16, bool)> {
        let mut state = self.lock();
        let up = state.now_up(switch);
        let before = std::mem::replace(&mut state.up, up);
        state.up.symmetric_difference(&before).map(|port| (*port, state.up.contains(port))).collect()
    }
}

impl State {
    fn now_up(&self, switch: &Switch) -> BTreeSet<u16> {
        let up = |(port, row): &(&u16, &Entry)| is_up(**port, row, switch);
        self.rows.iter().filter(up).map(|(port, _)| *port).collect()
    }
}

/// A port that is enabled is up with its link.
fn is_up(port: u16, row: &Entry, switch: &Switch) -> bool {
    is_enabled(row) && switch.is_port_up(port)
}

fn is_enabled(entry: &Entry) -> bool {
    entry.get(ENABLE) == Some(&Value::Bool(true))
}

impl Fixed {
    /// The key of a port's row.
    pub fn port_key(&self, port: u16) -> Option<TableEntry> {
        let entry = Entry::of(PORTS).exact(PORT, port.into()).build(&self.schema).ok()?;
        Some(TableEntry { data: None, ..entry })
    }

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
                Some(port) => vec![(port, saving.lock().rows.get(&port).cloned())],
                None => saving.lock().rows.iter().map(|(port, entry)| (*port, Some(entry.clone()))).collect(),
            };
            Box::new(move |_| {
                let rows = &mut saving.lock().rows;
                for (port, entry) in before {
                    match entry {
                        Some(entry) => rows.insert(port, entry),
                        None => rows.remove(&port),
                    };
                }
            })
        });
        let ports = self.ports.clone();
        let change: Change = Box::new(move |switch, _| {
            let state = &mut *ports.lock();
            state.changed = true;
            let ports = &mut state.rows;
            let Some(port) = port else {
                ports.clear();
                return Ok(());
            };
            // Clients may remove missing rows.
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
            PORTS => Box::new(move |fixed, switch, _| Ok((ports(&fixed.ports, switch, wanted), None))),
            _ => Box::new(move |_, switch, now| Ok((statistics(switch, now, wanted), None))),
        })
    }
}

fn ports(ports: &Ports, switch: &Switch, wanted: Option<u32>) -> Vec<Entry> {
    let state = ports.lock();
    let fits = |port: &u16| wanted.is_none_or(|wanted| wanted == u32::from(*port));
    let one = |(port, entry): (&u16, &Entry)| {
        let up = is_up(*port, entry, switch);
        let entry = entry.clone().data("$PORT_UP", up).data("$IS_VALID", true);
        entry.data("$PORT_NAME", &*format!("{port}/0"))
    };
    state.rows.iter().filter(|(port, _)| fits(port)).map(one).collect()
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
