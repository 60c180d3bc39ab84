//! The device's ports: they are added before they work, and count their traffic.

use super::device::{key, number, pipe_of, text, truth};
use super::{EVERYWHERE, Link};
use crate::desired::{DevicePort, PortChange};
use crate::error::CtrlError;
use p4rack_bfrt::Entry;
use p4rack_p4rt::bfrt_proto::update::Type;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry::{Occupied, Vacant};

const PORT: &str = "$DEV_PORT";

impl PortChange {
    fn updates(&self) -> Vec<(Type, Entry)> {
        let (PortChange::Add(port) | PortChange::Replace(port) | PortChange::Enable(port)) = self;
        let key = || Entry::of("$PORT").exact(PORT, port.number.into());
        let enabled = || key().data("$PORT_ENABLE", port.enabled);
        let whole = || enabled().data("$SPEED", &*port.speed).data("$FEC", &*port.fec);
        match self {
            PortChange::Add(_) => vec![(Type::Insert, whole())],
            PortChange::Replace(_) => vec![(Type::Delete, key()), (Type::Insert, whole())],
            PortChange::Enable(_) => vec![(Type::Modify, enabled())],
        }
    }
}

/// Changes that turn the existing ports into the wanted ones. Other ports stay, and so does error correction, which is
/// chosen for a port's optics.
pub(super) fn changes(wanted: &[DevicePort], there: &[DevicePort]) -> Vec<PortChange> {
    let change = |port: &DevicePort| match there.iter().find(|own| own.number == port.number) {
        None => Some(PortChange::Add(port.clone())),
        Some(own) if own.speed != port.speed => Some(PortChange::Replace(port.clone())),
        Some(own) if own.enabled != port.enabled => {
            Some(PortChange::Enable(DevicePort { enabled: port.enabled, ..own.clone() }))
        }
        Some(_) => None,
    };
    wanted.iter().filter_map(change).collect()
}

/// Counters of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortStat {
    /// Its number.
    pub number: u32,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Bytes that wait, rounded up to cells.
    pub queue_bytes: u64,
    /// The most that have waited.
    pub queue_max_bytes: u64,
    /// Frames that found no room.
    pub drops: u64,
}

impl Link {
    /// The ports that were added.
    pub async fn ports(&mut self) -> Result<Vec<DevicePort>, CtrlError> {
        let found = self.entries(EVERYWHERE, "$PORT").await?;
        let read = |entry: &Entry| {
            Ok(DevicePort {
                number: key(entry, PORT)?,
                speed: text(entry, "$SPEED")?.to_owned(),
                fec: text(entry, "$FEC")?.to_owned(),
                enabled: truth(entry, "$PORT_ENABLE")?,
            })
        };
        found.iter().map(read).collect()
    }

    /// Changes that make these ports exist.
    pub async fn port_changes(&mut self, wanted: &[DevicePort]) -> Result<Vec<PortChange>, CtrlError> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let known = match &self.bound {
            Some(_) => Ok(()),
            None => self.learn(None).await.map(|_| ()),
        };
        let there = match known {
            Ok(()) => self.ports().await?,
            // Without a program for Tofino there is no schema with the tables' names, and a switch that never had one has no ports.
            Err(CtrlError::Program(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        let wanted = match &self.before {
            Some(before) => before.corrected(wanted),
            None => wanted.to_vec(),
        };
        Ok(changes(&wanted, &there))
    }

    /// Changes ports, one after the other.
    pub async fn change_ports(&mut self, changes: &[PortChange]) -> Result<(), CtrlError> {
        let changes = changes.iter().flat_map(PortChange::updates).collect();
        self.change("adding ports", EVERYWHERE, changes).await
    }

    /// Counters of the ports, with their queues.
    pub async fn port_stats(&mut self) -> Result<Vec<PortStat>, CtrlError> {
        let cell = self.cell_bytes().await?;
        let counted = self.entries(EVERYWHERE, "$PORT_STAT").await?;
        let mut found = Vec::with_capacity(counted.len());
        let mut queued = BTreeMap::new();
        for entry in &counted {
            let port = key(entry, PORT)?;
            let target = pipe_of(port);
            let queued = match queued.entry(target.pipe_id) {
                Vacant(pipe) => pipe.insert(self.entries(target, "tm.counter.eg_port").await?),
                Occupied(pipe) => pipe.into_mut(),
            };
            let is_it = |entry: &&Entry| entry.exact_number("dev_port") == Some(port.into());
            let missing = || CtrlError::Program(format!("the switch has no queues' counters of port {port}"));
            let queues = queued.iter().find(is_it).ok_or_else(missing)?;
            let of = |field| number(queues, field);
            found.push(PortStat {
                number: port,
                rx_bytes: number(entry, "$OctetsReceived")?,
                tx_bytes: number(entry, "$OctetsTransmittedTotal")?,
                queue_bytes: of("usage_cells")?.saturating_mul(cell),
                queue_max_bytes: of("watermark_cells")?.saturating_mul(cell),
                drops: of("drop_count_packets")?,
            });
        }
        Ok(found)
    }

    /// Bytes of the buffer that are taken, rounded up to cells, and the most that were. A driver counts each cell in a pool of
    /// ingress and in one of egress.
    pub async fn buffered(&mut self) -> Result<(u64, u64), CtrlError> {
        let cell = self.cell_bytes().await?;
        let pools = self.entries(EVERYWHERE, "tm.counter.pool").await?;
        let is_egress = |pool: &&Entry| pool.exact_text("pool").is_some_and(|name| name.starts_with("EG_"));
        let egress = || pools.iter().filter(is_egress);
        let sum = |field| egress().map(|pool| number(pool, field)).sum::<Result<u64, CtrlError>>();
        Ok((sum("usage_cells")?.saturating_mul(cell), sum("watermark_cells")?.saturating_mul(cell)))
    }

    async fn cell_bytes(&mut self) -> Result<u64, CtrlError> {
        number(&self.default_entry(EVERYWHERE, "tm.cfg").await?, "cell_size_bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_match_stay_and_so_does_error_correction() {
        let port = |number, speed: &str, fec: &str, enabled| DevicePort {
            number,
            speed: speed.into(),
            fec: fec.into(),
            enabled,
        };
        let wanted = [1, 2, 3, 4].map(|number| port(number, "BF_SPEED_10G", "BF_FEC_TYP_NONE", true));
        let there = [
            port(1, "BF_SPEED_10G", "BF_FEC_TYP_FIRECODE", true),
            port(2, "BF_SPEED_25G", "BF_FEC_TYP_NONE", true),
            port(3, "BF_SPEED_10G", "BF_FEC_TYP_FIRECODE", false),
            port(9, "BF_SPEED_10G", "BF_FEC_TYP_NONE", true),
        ];
        let enabled = PortChange::Enable(port(3, "BF_SPEED_10G", "BF_FEC_TYP_FIRECODE", true));
        let expected = [PortChange::Replace(wanted[1].clone()), enabled, PortChange::Add(wanted[3].clone())];
        assert_eq!(changes(&wanted, &there), expected);
        assert!(changes(&wanted, &wanted).is_empty());
    }
}
