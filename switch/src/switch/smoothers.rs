//! Smoothers from the control plane.

use super::Switch;
use super::control::{cell, direct, has_no, is_no};
use super::pipes::{instance_in, table_in};
use crate::error::ControlError;
use crate::objects::EntryRef;
use crate::smooth::SmootherConfig;
use crate::state::InstanceState;
use p4rack_p4::ir::{InstanceId, TableId};

impl Switch {
    /// Configures a cell of a smoother, which starts again. With `None` values pass and nothing is
    /// dropped.
    pub fn smoother_config(
        &mut self,
        instance: InstanceId,
        index: u64,
        config: Option<SmootherConfig>,
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = instance_in(pipeline, state, instance)?;
            match state {
                InstanceState::Smoother { drops, cells } => {
                    check(&shape.name, *drops, config)?;
                    let at = cell(shape, index, cells.len())?;
                    cells[at].configure(config);
                    Ok(())
                }
                _ => Err(is_no(shape, "smoother")),
            }
        })
    }

    /// Configuration of a cell of a smoother.
    pub fn smoother_read(
        &self,
        instance: InstanceId,
        index: u64,
    ) -> Result<Option<SmootherConfig>, ControlError> {
        let (shape, state) = self.instance(instance)?;
        match state {
            InstanceState::Smoother { cells, .. } => Ok(cells[cell(shape, index, cells.len())?].config()),
            _ => Err(is_no(shape, "smoother")),
        }
    }

    /// Configures an entry's smoother, which starts again.
    pub fn direct_smoother_config(
        &mut self,
        table: TableId,
        entry: EntryRef<'_>,
        config: Option<SmootherConfig>,
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            check(&shape.name, shape.smoother == Some(true), config)?;
            let at = direct(shape, state, entry)?;
            state.smoothers.get_mut(at).ok_or_else(|| has_no(shape, "smoother"))?.configure(config);
            Ok(())
        })
    }

    /// Configuration of an entry's smoother.
    pub fn direct_smoother_read(
        &self,
        table: TableId,
        entry: EntryRef<'_>,
    ) -> Result<Option<SmootherConfig>, ControlError> {
        let (shape, state) = self.table(table)?;
        let at = direct(shape, state, entry)?;
        state.smoothers.get(at).map(|cell| cell.config()).ok_or_else(|| has_no(shape, "smoother"))
    }
}

/// Rejects a configuration of the other kind, and values out of range.
fn check(name: &str, drops: bool, config: Option<SmootherConfig>) -> Result<(), ControlError> {
    let refuse = |what: &str| Err(ControlError::Invalid(format!("{name}: {what}")));
    let time = |ns: f64| ns.is_finite() && ns >= 0.0;
    match config {
        Some(SmootherConfig::Average { .. }) if drops => refuse("it decides on drops and gives no average"),
        Some(SmootherConfig::EarlyDrop { .. }) if !drops => refuse("it gives an average and drops nothing"),
        Some(SmootherConfig::Average { gain_ns, decay_ns, .. }) if !time(gain_ns) || !time(decay_ns) => {
            refuse("a time constant is 0 or more")
        }
        Some(SmootherConfig::EarlyDrop { time_ns, min, max, probability }) => {
            match (time(time_ns), min <= max, (0.0..=1.0).contains(&probability)) {
                (false, ..) => refuse("a time constant is 0 or more"),
                (_, false, _) => refuse("the first threshold is above the second"),
                (.., false) => refuse("a probability is 0 to 1"),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}
