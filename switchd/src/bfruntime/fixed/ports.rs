//! Ports as clients configure them, and their statistics.

use super::{Fixed, Table, id, invalid, not_offered};
use p4rack_bfrt::{Entry, Value};
use p4rack_entities::{Change, Checked, refuse};
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
const SPEED: &str = "$SPEED";
const FEC: &str = "$FEC";
const NO_FEC: &str = "BF_FEC_TYP_NONE";

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

    /// A change that enables or disables notifications.
    pub fn notify_change(&self, enable: bool) -> Change {
        let ports = self.clone();
        Box::new(move |switch, _| {
            let mut state = ports.lock();
            state.notifies = enable;
            state.up = state.now_up(switch);
            Ok(())
        })
    }

    /// Removes all rows, and disables notifications: so does a driver when an installation begins.
    pub fn clear(&self) {
        let mut state = self.lock();
        (state.notifies, state.rows) = Default::default();
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

    pub(super) fn port_step(self: &Arc<Fixed>, kind: Type, entry: Entry, all: bool) -> Checked<Change> {
        if !matches!(kind, Type::Insert | Type::Modify | Type::Delete) {
            return not_offered(&entry, kind.as_str_name());
        }
        let port = if all { None } else { Some(id(&entry, PORT)?) };
        let Ok(port) = port.map(u16::try_from).transpose() else {
            return invalid(&entry, format!("there is no port {}", port.unwrap_or(0)));
        };
        if kind == Type::Insert
            && let Some(missing) = [SPEED, FEC].iter().find(|field| entry.get(field).is_none())
        {
            return invalid(&entry, format!("a port is added with {SPEED} and {FEC}; {missing} is not set"));
        }
        let ports = self.ports.clone();
        Ok(Box::new(move |switch, _| {
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
                return invalid(&entry, format!("the switch has no port {port}"));
            }
            match (kind, ports.remove(&port)) {
                (Type::Modify, None) => return refuse(Code::NotFound, format!("port {port} was not added")),
                (_, None) => drop(ports.insert(port, entry)),
                (_, Some(before)) => drop(ports.insert(port, changed(kind, before, &entry))),
            }
            Ok(())
        }))
    }

    pub(super) fn port_lookup(&self, entry: &Entry, all: bool) -> Checked<Table> {
        let wanted = if all { None } else { Some(id(entry, PORT)?) };
        Ok(match entry.table() {
            PORTS => Box::new(move |fixed, switch, _| Ok((ports(&fixed.ports, switch, wanted), None))),
            _ => Box::new(move |_, switch, now| Ok((statistics(switch, now, wanted), None))),
        })
    }
}

/// A row after an update. As with a driver, a port that is added again keeps its speed and error correction, and one whose
/// speed is modified has no error correction unless that is given, too.
fn changed(kind: Type, before: Entry, given: &Entry) -> Entry {
    let kept = |entry: Entry, field: &str| match before.get(field) {
        Some(value) => entry.data(field, value.clone()),
        None => entry,
    };
    let after = before.clone().updated(given);
    match kind {
        Type::Insert => kept(kept(after, SPEED), FEC),
        _ if given.get(SPEED).is_some() && given.get(FEC).is_none() => after.data(FEC, NO_FEC),
        _ => after,
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
