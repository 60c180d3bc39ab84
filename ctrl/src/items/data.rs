//! Contents of cells: counts of counters, rates of meters.

use crate::error::CtrlError;
use p4rack_p4rt::p4::config::v1::{MeterSpec, meter_spec};
use p4rack_p4rt::p4::v1::{CounterData, MeterConfig};
use p4rack_p4rt::schema::Schema;
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

/// What a meter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MeterUnit {
    /// Its rates are in bytes per second.
    Bytes,
    /// Its rates are in packets per second.
    Packets,
}

impl MeterUnit {
    /// That of a meter's declaration, if it says it.
    fn of(spec: Option<&MeterSpec>) -> Option<MeterUnit> {
        match spec?.unit() {
            meter_spec::Unit::Bytes => Some(MeterUnit::Bytes),
            meter_spec::Unit::Packets => Some(MeterUnit::Packets),
            meter_spec::Unit::Unspecified => None,
        }
    }

    /// That of an array of meters.
    pub(super) fn of_array(schema: &Schema, meter_id: u32) -> Option<MeterUnit> {
        MeterUnit::of(schema.meter_by_id(meter_id).ok()?.spec.as_ref())
    }

    /// That of a table's direct meter.
    pub(super) fn of_table(schema: &Schema, table_id: u32) -> Option<MeterUnit> {
        let mut direct = schema.info().direct_meters.iter();
        MeterUnit::of(direct.find(|direct| direct.direct_table_id == table_id)?.spec.as_ref())
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            MeterUnit::Bytes => "bytes",
            MeterUnit::Packets => "packets",
        }
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
    /// Unit of these numbers. In a request, it need not be given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<MeterUnit>,
}

impl Rates {
    /// The message for a meter with this unit. Refuses rates in another one; `meter` names it in errors.
    pub(super) fn config(&self, unit: Option<MeterUnit>, meter: &str) -> Result<MeterConfig, CtrlError> {
        let Rates { cir, cburst, pir, pburst, unit: given } = *self;
        match (given, unit) {
            (Some(given), Some(unit)) if given != unit => Err(CtrlError::Input(format!(
                "meter {meter} counts {}, and the rates are in {}: convert them",
                unit.name(),
                given.name()
            ))),
            _ => Ok(MeterConfig { cir, cburst, pir, pburst, ..Default::default() }),
        }
    }

    pub(super) fn of(config: &MeterConfig, unit: Option<MeterUnit>) -> Rates {
        Rates { cir: config.cir, cburst: config.cburst, pir: config.pir, pburst: config.pburst, unit }
    }
}
