//! Which pipes the control plane means. Pipes have entries and cells of their own; usually it means all of them, and
//! their entries stay alike.

use super::Switch;
use crate::compile::{InstanceShape, Pipeline};
use crate::error::ControlError;
use crate::objects::Pipes;
use crate::shape::TableShape;
use crate::state::{InstanceState, PipeState};
use crate::switch::Running;
use crate::table::TableState;
use p4rack_p4::ir::{InstanceId, Matcher, TableId};

/// Which of several pipes has its turn in a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub first: bool,
    pub last: bool,
}

impl Turn {
    /// A value for this pipe: the value itself for the last one.
    pub fn share<T: Clone>(self, value: &mut Option<T>) -> Option<T> {
        if self.last { value.take() } else { value.clone() }
    }

    /// A sum over all pipes: the first one has all of it.
    pub fn whole<T: Default>(self, value: T) -> T {
        if self.first { value } else { T::default() }
    }
}

impl Switch {
    /// Number of pipes that have entries and cells of their own.
    pub fn pipes(&self) -> usize {
        self.running.as_ref().map_or(1, |running| running.state.pipes())
    }

    /// Applies the control-plane calls in `run` to these pipes: writes go to all of them; reads return the first
    /// one's state, of counters the sum, of registers the first cell that isn't 0. Outside of it calls mean all pipes. Fails if the switch has none of these.
    pub fn within<T>(&mut self, pipes: Pipes, run: impl FnOnce(&mut Switch) -> T) -> Result<T, ControlError> {
        let count = self.pipes();
        if pipes.below(count).next().is_none() {
            return Err(ControlError::NotFound(format!("a pipe of these (there are 0 to {})", count - 1)));
        }
        let before = std::mem::replace(&mut self.meant, pipes);
        let result = run(self);
        self.meant = before;
        Ok(result)
    }

    /// Whether a pipe is meant.
    pub fn means(&self, pipe: usize) -> bool {
        self.meant.has(pipe) && pipe < self.pipes()
    }

    /// Whether not all pipes are meant.
    pub fn is_partial(&self) -> bool {
        self.meant().count() < self.pipes()
    }

    /// The pipes that are meant.
    pub(super) fn meant(&self) -> impl Iterator<Item = usize> + use<> {
        self.meant.below(self.pipes())
    }

    /// The first selected pipe that runs the pipeline of an object.
    pub(super) fn home(&self, pipeline: usize) -> usize {
        self.homes(pipeline).next().unwrap_or(0)
    }

    /// The selected pipes that run the pipeline of an object, or the first selected one if none does.
    pub(super) fn homes(&self, pipeline: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.running.as_ref().map_or(1, |running| running.pipeline.code.pipelines.len().max(1));
        let runs = move |pipe: &usize| pipe % count == pipeline;
        let other = if self.meant().any(|pipe| runs(&pipe)) { None } else { self.meant().next() };
        self.meant().filter(runs).chain(other)
    }

    /// Changes each selected pipe. Nothing is changed if the first one refuses; the others then would, too.
    pub(super) fn each_pipe<T>(
        &mut self,
        mut change: impl FnMut(&Pipeline, &mut PipeState, Turn) -> Result<T, ControlError>,
    ) -> Result<T, ControlError> {
        let (mut pipes, mut first) = (self.meant().peekable(), None);
        let Running { pipeline, state } = self.running_mut()?;
        while let Some(pipe) = pipes.next() {
            let turn = Turn { first: first.is_none(), last: pipes.peek().is_none() };
            let result = change(pipeline, state.of_mut(pipe), turn)?;
            first.get_or_insert(result);
        }
        first.ok_or_else(|| ControlError::NotFound("a pipe".into()))
    }

    /// Whether the entries of a table may differ between the pipes that are meant.
    pub(super) fn is_apart(&self, table: TableId) -> bool {
        let apart = |running: &Running| running.state.apart.get(table.0 as usize).copied();
        self.meant().nth(1).is_some() && self.running.as_ref().and_then(apart).unwrap_or(false)
    }

    /// Makes sure that all pipes that are meant take the change of an entry, or all refuse it.
    pub(super) fn agree(
        &mut self,
        table: TableId,
        keys: &[Matcher],
        priority: i32,
    ) -> Result<(), ControlError> {
        let some = self.meant().count() < self.pipes();
        if let Some(apart) = self.running_mut()?.state.apart.get_mut(table.0 as usize) {
            *apart |= some;
        }
        if !self.is_apart(table) {
            return Ok(());
        }
        let Running { pipeline, state } = self.running()?;
        let mut answers = self.meant().map(|pipe| {
            let (shape, table) = table_of(pipeline, state.of(pipe), table)?;
            Ok((table.row(shape, keys, priority).is_ok(), table.is_full(shape)))
        });
        let first = answers.next().transpose()?;
        match answers.find(|answer| answer.as_ref().ok() != first.as_ref()) {
            None => Ok(()),
            Some(_) => Err(differ(&table_of(pipeline, &state.pipe, table)?.0.name)),
        }
    }

    /// Whether no pipe has members or groups of a profile.
    fn is_empty_profile(&self, profile: InstanceId) -> bool {
        let Some(Running { pipeline, state }) = &self.running else { return true };
        let is_empty = |pipe| match instance_of(pipeline, state.of(pipe), profile) {
            Ok((_, InstanceState::Profile(own))) => own.members.is_empty() && own.groups.is_empty(),
            _ => true,
        };
        (0..state.pipes()).all(is_empty)
    }

    /// Makes sure that a profile's pipes are alike, if several are meant.
    pub(super) fn agree_on_profile(&mut self, profile: InstanceId) -> Result<(), ControlError> {
        let (several, some) = (self.meant().nth(1).is_some(), self.meant().count() < self.pipes());
        let name = self.instance(profile)?.0.name.clone();
        let is_empty = self.is_empty_profile(profile);
        match self.running_mut()?.state.profiles_apart.get_mut(profile.0 as usize) {
            // Nothing is left that could differ.
            Some(apart) if *apart && several && is_empty => {
                *apart = false;
                Ok(())
            }
            Some(true) if several => Err(differ(&name)),
            Some(apart) => {
                *apart |= some;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

fn differ(name: &str) -> ControlError {
    ControlError::Invalid(format!("the pipes differ in {name}: write to one pipe at a time"))
}

pub(super) fn table_of<'a>(
    pipeline: &'a Pipeline,
    state: &'a PipeState,
    table: TableId,
) -> Result<(&'a TableShape, &'a TableState), ControlError> {
    let found = pipeline.tables.get(table.0 as usize).zip(state.tables.get(table.0 as usize));
    found.ok_or_else(|| ControlError::NotFound(format!("table {}", table.0)))
}

pub(super) fn table_in<'a>(
    pipeline: &'a Pipeline,
    state: &'a mut PipeState,
    table: TableId,
) -> Result<(&'a TableShape, &'a mut TableState), ControlError> {
    let found = pipeline.tables.get(table.0 as usize).zip(state.tables.get_mut(table.0 as usize));
    found.ok_or_else(|| ControlError::NotFound(format!("table {}", table.0)))
}

pub(super) fn instance_of<'a>(
    pipeline: &'a Pipeline,
    state: &'a PipeState,
    instance: InstanceId,
) -> Result<(&'a InstanceShape, &'a InstanceState), ControlError> {
    let at = instance.0 as usize;
    let found = pipeline.instances.get(at).zip(state.instances.get(at));
    found.ok_or_else(|| ControlError::NotFound(format!("extern object {at}")))
}

pub(super) fn instance_in<'a>(
    pipeline: &'a Pipeline,
    state: &'a mut PipeState,
    instance: InstanceId,
) -> Result<(&'a InstanceShape, &'a mut InstanceState), ControlError> {
    let at = instance.0 as usize;
    let found = pipeline.instances.get(at).zip(state.instances.get_mut(at));
    found.ok_or_else(|| ControlError::NotFound(format!("extern object {at}")))
}
