//! Meters from the control plane: configuration and counts of their cells.

use super::control::{cell, direct, has_no, is_no};
use super::pipes::{instance_in, instance_of, table_in};
use super::{Running, Switch};
use crate::error::ControlError;
use crate::meter::Meter;
use crate::objects::{CounterData, EntryRef, MeterConfig};
use crate::state::InstanceState;
use p4rack_p4::ir::{InstanceId, TableId};

impl Switch {
    /// Configures a cell of a meter. With `None` everything is green.
    pub fn meter_config(
        &mut self,
        instance: InstanceId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<(), ControlError> {
        let now = self.now;
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = instance_in(pipeline, state, instance)?;
            check_meter(&shape.name, config)?;
            match state {
                InstanceState::Meter { cells, .. } => {
                    let at = cell(shape, index, cells.len())?;
                    cells[at].configure(config, now.0);
                    Ok(())
                }
                _ => Err(is_no(shape, "meter")),
            }
        })
    }

    /// Configuration of a cell of a meter.
    pub fn meter_read(&self, instance: InstanceId, index: u64) -> Result<Option<MeterConfig>, ControlError> {
        let (shape, state) = self.instance(instance)?;
        match state {
            InstanceState::Meter { cells, .. } => Ok(cells[cell(shape, index, cells.len())?].config()),
            _ => Err(is_no(shape, "meter")),
        }
    }

    /// Lets a meter add this many bytes to the length of each packet, or take them from it.
    pub fn meter_adjust(&mut self, instance: InstanceId, bytes: i32) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = instance_in(pipeline, state, instance)?;
            match state {
                InstanceState::Meter { adjust_bytes, .. } => {
                    *adjust_bytes = bytes;
                    Ok(())
                }
                _ => Err(is_no(shape, "meter")),
            }
        })
    }

    /// Bytes that a meter adds to the length of each packet.
    pub fn meter_adjustment(&self, instance: InstanceId) -> Result<i32, ControlError> {
        match self.instance(instance)? {
            (_, InstanceState::Meter { adjust_bytes, .. }) => Ok(*adjust_bytes),
            (shape, _) => Err(is_no(shape, "meter")),
        }
    }

    /// The same for the direct meters of a table.
    pub fn direct_meter_adjust(&mut self, table: TableId, bytes: i32) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            if state.meters.is_empty() {
                return Err(has_no(shape, "meter"));
            }
            state.meter_adjust_bytes = bytes;
            Ok(())
        })
    }

    /// Bytes that the direct meters of a table add to the length of each packet.
    pub fn direct_meter_adjustment(&self, table: TableId) -> Result<i32, ControlError> {
        let (shape, state) = self.table(table)?;
        if state.meters.is_empty() { Err(has_no(shape, "meter")) } else { Ok(state.meter_adjust_bytes) }
    }

    /// Counts of a cell of a meter: green, yellow, red.
    pub fn meter_counts(&self, instance: InstanceId, index: u64) -> Result<[CounterData; 3], ControlError> {
        let Running { pipeline, state } = self.running()?;
        let mut sums = [CounterData::default(); 3];
        for pipe in self.meant() {
            let (shape, state) = instance_of(pipeline, state.of(pipe), instance)?;
            match state {
                InstanceState::Meter { cells, .. } => {
                    add(&mut sums, &cells[cell(shape, index, cells.len())?].counts);
                }
                _ => return Err(is_no(shape, "meter")),
            }
        }
        Ok(sums)
    }

    /// Sets the counts of a cell of a meter.
    pub fn meter_counts_write(
        &mut self,
        instance: InstanceId,
        index: u64,
        counts: [CounterData; 3],
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, turn| {
            let (shape, state) = instance_in(pipeline, state, instance)?;
            match state {
                InstanceState::Meter { cells, .. } => {
                    let at = cell(shape, index, cells.len())?;
                    cells[at].counts = turn.whole(counts);
                    Ok(())
                }
                _ => Err(is_no(shape, "meter")),
            }
        })
    }

    /// Counts of an entry's direct meter: green, yellow, red.
    pub fn direct_meter_counts(
        &self,
        table: TableId,
        entry: EntryRef<'_>,
    ) -> Result<[CounterData; 3], ControlError> {
        let mut sums = [CounterData::default(); 3];
        self.each_direct(table, entry, |shape, state, at| {
            add(&mut sums, &state.meters.get(at).ok_or_else(|| has_no(shape, "meter"))?.counts);
            Ok(())
        })?;
        Ok(sums)
    }

    /// Sets the counts of an entry's direct meter.
    pub fn direct_meter_counts_write(
        &mut self,
        table: TableId,
        entry: EntryRef<'_>,
        counts: [CounterData; 3],
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, turn| {
            let (shape, state) = table_in(pipeline, state, table)?;
            let at = direct(shape, state, entry)?;
            state.meters.get_mut(at).ok_or_else(|| has_no(shape, "meter"))?.counts = turn.whole(counts);
            Ok(())
        })
    }

    /// Configures an entry's direct meter.
    pub fn direct_meter_config(
        &mut self,
        table: TableId,
        entry: EntryRef<'_>,
        config: Option<MeterConfig>,
    ) -> Result<(), ControlError> {
        let now = self.now;
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            check_meter(&shape.name, config)?;
            let at = direct(shape, state, entry)?;
            state.meters.get_mut(at).ok_or_else(|| has_no(shape, "meter"))?.configure(config, now.0);
            Ok(())
        })
    }

    /// Configuration of an entry's direct meter.
    pub fn direct_meter_read(
        &self,
        table: TableId,
        entry: EntryRef<'_>,
    ) -> Result<Option<MeterConfig>, ControlError> {
        let (shape, state) = self.table(table)?;
        let at = direct(shape, state, entry)?;
        state.meters.get(at).map(Meter::config).ok_or_else(|| has_no(shape, "meter"))
    }
}

/// Adds counts of three colours.
fn add(sums: &mut [CounterData; 3], counts: &[CounterData; 3]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += *count);
}

fn check_meter(name: &str, config: Option<MeterConfig>) -> Result<(), ControlError> {
    match config {
        Some(config) if config.pir < config.cir => Err(ControlError::Invalid(format!(
            "{name}: the peak rate {} is less than the committed rate {}",
            config.pir, config.cir
        ))),
        _ => Ok(()),
    }
}
