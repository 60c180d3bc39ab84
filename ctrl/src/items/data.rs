//! Contents of cells: counts of counters, rates of meters.

use p4rack_p4rt::p4::v1::{CounterData, MeterConfig};
use serde::{Deserialize, Serialize};

/// Counts of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Number of packets.
    pub packets: i64,
    /// Number of bytes.
    pub bytes: i64,
}

impl From<&CounterData> for Counts {
    fn from(data: &CounterData) -> Counts {
        Counts { packets: data.packet_count, bytes: data.byte_count }
    }
}

impl From<&Counts> for CounterData {
    fn from(counts: &Counts) -> CounterData {
        CounterData { packet_count: counts.packets, byte_count: counts.bytes }
    }
}

/// Rates and bursts of a meter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Committed rate, in bytes or packets per second.
    pub cir: i64,
    /// Committed burst size.
    pub cburst: i64,
    /// Peak rate, in bytes or packets per second.
    pub pir: i64,
    /// Peak burst size.
    pub pburst: i64,
}

impl Rates {
    pub(super) fn config(&self) -> MeterConfig {
        let Rates { cir, cburst, pir, pburst } = *self;
        MeterConfig { cir, cburst, pir, pburst, ..Default::default() }
    }

    pub(super) fn of(config: &MeterConfig) -> Rates {
        Rates { cir: config.cir, cburst: config.cburst, pir: config.pir, pburst: config.pburst }
    }
}
