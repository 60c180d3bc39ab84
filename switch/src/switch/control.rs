//! Control-plane operations: tables, counters, meters, registers, replication, digests.
//!
//! Objects are identified by their index in the program; names and P4Info ids are up to the caller. Every
//! call checks before it changes anything, so a rejected call has no effect.

use crate::code::plans::ValueType;
use crate::compile::{InstanceShape, Pipeline};
use crate::error::ControlError;
use crate::objects::{
    CloneSession, CounterData, DefaultEntry, DigestMessage, EntryRef, Indirect, TableEntry,
};
use crate::replicas::Replicas;
use crate::shape::{Style, TableShape};
use crate::state::{InstanceState, PipeState};
use crate::switch::event::{self, TraceEvent};
use crate::switch::pipes::{instance_in, instance_of, table_in, table_of};
use crate::switch::{Running, Switch};
use crate::table::{PlainEntry, PlainUpdate, TableState};
use crate::words::{limbs_of, number};
use num_bigint::BigUint;
use p4rack_p4::ir::{ActionCall, InstanceId, InstanceKind, Matcher, TableId, ValueSetId};
use p4rack_wire::Nanos;
use std::ops::Range;

/// Maximum multicast groups, and maximum clone sessions.
const MAX_GROUPS: usize = 65_535;

impl Switch {
    /// Adds an entry.
    pub fn insert(&mut self, table: TableId, mut entry: TableEntry) -> Result<(), ControlError> {
        let now = self.now;
        self.check_indirect(self.table(table)?.0, entry.indirect.as_ref())?;
        self.agree(table, &entry.keys, entry.priority)?;
        entry.is_const = false;
        let (timeout_ns, mut entry) = (entry.idle_timeout_ns, Some(entry));
        let row = self.each_pipe(|pipeline, state, turn| {
            let (shape, state) = table_in(pipeline, state, table)?;
            let Some(entry) = turn.share(&mut entry) else { return Ok(None) };
            let row = state.insert(shape, entry, false)?;
            Ok(state.last_hit.get_mut(row as usize).map(|last_hit| {
                *last_hit = now.0;
                row
            }))
        })?;
        if let Some(row) = row {
            self.start_aging(table, row, timeout_ns);
        }
        Ok(())
    }

    /// Replaces action, arguments, metadata and idle timeout of an entry. Its counter continues.
    pub fn modify(&mut self, table: TableId, entry: TableEntry) -> Result<(), ControlError> {
        self.check_indirect(self.table(table)?.0, entry.indirect.as_ref())?;
        self.agree(table, &entry.keys, entry.priority)?;
        let (timeout_ns, mut entry) = (entry.idle_timeout_ns, Some(entry));
        let row = self.each_pipe(|pipeline, state, turn| {
            let (shape, state) = table_in(pipeline, state, table)?;
            let Some(entry) = turn.share(&mut entry) else { return Ok(None) };
            let row = state.modify(shape, entry)?;
            Ok(state.aged.then_some(row))
        })?;
        if let Some(row) = row {
            self.start_aging(table, row, timeout_ns);
        }
        Ok(())
    }

    /// Removes an entry.
    pub fn delete(&mut self, table: TableId, keys: &[Matcher], priority: i32) -> Result<(), ControlError> {
        self.agree(table, keys, priority)?;
        let row = self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            let row = state.delete(shape, keys, priority)?;
            Ok(state.aged.then_some(row))
        })?;
        if let Some(row) = row {
            self.start_aging(table, row, 0);
        }
        Ok(())
    }

    /// Applies an update in the table's own words. Returns false without changing anything if it is rejected;
    /// the same request through the general calls gives the reason.
    pub fn write_plain(&mut self, table: TableId, update: &PlainUpdate<'_>) -> bool {
        if self.pipes() > 1 && (self.is_apart(table) || self.meant().count() < self.pipes()) {
            return false;
        }
        let written = self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            if state.write_plain(shape, update) { Ok(()) } else { Err(ControlError::Invalid(String::new())) }
        });
        written.is_ok()
    }

    /// Like [`Switch::entries_from`], in the table's own words: calls `each` with every entry and returns the
    /// position after them. `None` if an entry is not plain, or if `each` returns false.
    pub fn read_plain(
        &self,
        table: TableId,
        from: u32,
        most: usize,
        each: impl FnMut(PlainEntry<'_>) -> bool,
    ) -> Option<Option<u32>> {
        self.table(table).ok()?.1.read_plain(from, most, each)
    }

    /// Changes the action on a miss. `None` restores the program's.
    pub fn set_default(&mut self, table: TableId, call: Option<ActionCall>) -> Result<(), ControlError> {
        let mut call = Some(call);
        self.each_pipe(|pipeline, state, turn| {
            let (shape, state) = table_in(pipeline, state, table)?;
            state.set_default(shape, turn.share(&mut call).flatten())
        })
    }

    /// Lets a table with an action profile refer to it on a miss.
    pub fn set_default_indirect(&mut self, table: TableId, indirect: Indirect) -> Result<(), ControlError> {
        self.check_indirect(self.table(table)?.0, Some(&indirect))?;
        self.each_pipe(|pipeline, state, _| {
            let (shape, state) = table_in(pipeline, state, table)?;
            state.set_default_indirect(shape, indirect.clone())
        })
    }

    /// The action on a miss.
    pub fn default_entry(&self, table: TableId) -> Result<DefaultEntry, ControlError> {
        let (_, state) = self.table(table)?;
        let indirect = state.default.as_ref().and_then(|row| row.indirect.clone());
        let call = state.default.as_ref().filter(|_| indirect.is_none()).map(|row| row.call.clone());
        Ok(DefaultEntry { call, indirect, is_initial: state.default_is_initial })
    }

    /// Whether entries of a table have a priority.
    pub fn needs_priority(&self, table: TableId) -> Result<bool, ControlError> {
        Ok(self.table(table)?.0.style == Style::Ternary)
    }

    /// An entry's key in the words of errors.
    pub fn describe_entry(&self, table: TableId, keys: &[Matcher]) -> Result<String, ControlError> {
        Ok(self.table(table)?.0.describe(keys))
    }

    /// All entries, in order of insertion.
    pub fn entries(&self, table: TableId) -> Result<Vec<TableEntry>, ControlError> {
        let (shape, state) = self.table(table)?;
        Ok(state.rows().into_iter().filter_map(|row| state.entry(shape, row)).collect())
    }

    /// Up to `most` entries from a position on, in no particular order, and the position after them if there
    /// may be more. Start at position 0. An entry that exists throughout the iteration is returned exactly
    /// once.
    pub fn entries_from(
        &self,
        table: TableId,
        from: u32,
        most: usize,
    ) -> Result<(Vec<TableEntry>, Option<u32>), ControlError> {
        let (shape, state) = self.table(table)?;
        let rows: Vec<u32> = state.rows_from(from).take(most).collect();
        let next = rows.last().filter(|_| rows.len() == most).map(|row| row + 1);
        Ok((rows.into_iter().filter_map(|row| state.entry(shape, row)).collect(), next))
    }

    /// One entry.
    pub fn entry(&self, table: TableId, keys: &[Matcher], priority: i32) -> Result<TableEntry, ControlError> {
        let (shape, state) = self.table(table)?;
        let row = state.row(shape, keys, priority)?;
        state.entry(shape, row).ok_or_else(|| ControlError::NotFound(format!("an entry of {}", shape.name)))
    }

    /// Time of an entry's last hit, or of its insertion if there was none. Only recorded for tables with
    /// `support_timeout`.
    pub fn last_hit(&self, table: TableId, keys: &[Matcher], priority: i32) -> Result<Nanos, ControlError> {
        let Running { pipeline, state } = self.running()?;
        let mut last = Err(ControlError::NotFound("a pipe".into()));
        for pipe in self.meant() {
            let (shape, state) = table_of(pipeline, state.of(pipe), table)?;
            let hit = state.row(shape, keys, priority).map(|row| state.last_hit.get(row as usize).copied());
            last = match (last, hit) {
                (Ok(last), Ok(hit)) => Ok(hit.max(last)),
                (Ok(last), Err(_)) => Ok(last),
                (Err(_), hit) => hit,
            };
        }
        Ok(Nanos(last?.unwrap_or(0)))
    }

    /// Number of cells of a counter, meter or register.
    pub fn instance_size(&self, instance: InstanceId) -> Result<u64, ControlError> {
        let (shape, state) = self.instance(instance)?;
        Ok(match state {
            InstanceState::None | InstanceState::Profile(_) | InstanceState::Hash(_) => {
                return Err(ControlError::Invalid(format!("{} has no cells of its own", shape.name)));
            }
            InstanceState::Counter(cells) => cells.len() as u64,
            InstanceState::Meter { cells, .. } => cells.len() as u64,
            InstanceState::Register(register) => register.size as u64,
            InstanceState::Smoother { cells, .. } => cells.len() as u64,
        })
    }

    /// Reads a cell of a counter, the sum of all pipes.
    pub fn counter_read(&self, instance: InstanceId, index: u64) -> Result<CounterData, ControlError> {
        let Running { pipeline, state } = self.running()?;
        let mut sum = CounterData::default();
        for pipe in self.meant() {
            let (shape, state) = instance_of(pipeline, state.of(pipe), instance)?;
            match state {
                InstanceState::Counter(cells) => sum += cells[cell(shape, index, cells.len())?],
                _ => return Err(is_no(shape, "counter")),
            }
        }
        Ok(sum)
    }

    /// Sets a cell of a counter: in the first pipe; those of others become 0.
    pub fn counter_write(
        &mut self,
        instance: InstanceId,
        index: u64,
        data: CounterData,
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, turn| {
            let (shape, state) = instance_in(pipeline, state, instance)?;
            match state {
                InstanceState::Counter(cells) => {
                    let at = cell(shape, index, cells.len())?;
                    cells[at] = turn.whole(data);
                    Ok(())
                }
                _ => Err(is_no(shape, "counter")),
            }
        })
    }

    /// Reads the direct counter of an entry, the sum of all pipes.
    pub fn direct_counter_read(
        &self,
        table: TableId,
        entry: EntryRef<'_>,
    ) -> Result<CounterData, ControlError> {
        let mut sum = CounterData::default();
        self.each_direct(table, entry, |shape, state, at| {
            sum += *state.counters.get(at).ok_or_else(|| has_no(shape, "counter"))?;
            Ok(())
        })?;
        Ok(sum)
    }

    /// Sets the direct counter of an entry.
    pub fn direct_counter_write(
        &mut self,
        table: TableId,
        entry: EntryRef<'_>,
        data: CounterData,
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, turn| {
            let (shape, state) = table_in(pipeline, state, table)?;
            let at = direct(shape, state, entry)?;
            *state.counters.get_mut(at).ok_or_else(|| has_no(shape, "counter"))? = turn.whole(data);
            Ok(())
        })
    }

    /// Reads a cell of a register; an `int` is in two's complement. Of several pipes it is the first cell that isn't 0, since a
    /// program for hosts in several pipes uses the cell of a link in the pipe of its port.
    pub fn register_read(&self, instance: InstanceId, index: u64) -> Result<BigUint, ControlError> {
        let Running { pipeline, state } = self.running()?;
        let home = pipeline.homes[1].get(instance.0 as usize).copied().unwrap_or(0);
        for pipe in self.homes(home) {
            let state = state.of(pipe);
            let (_, cell) = register_cell(pipeline, state, instance, index)?;
            let words = state.registers.get(cell).unwrap_or(&[]);
            if words.iter().any(|word| *word != 0) {
                return Ok(number(words));
            }
        }
        Ok(number(&[]))
    }

    /// Sets a cell of a register.
    pub fn register_write(
        &mut self,
        instance: InstanceId,
        index: u64,
        value: &BigUint,
    ) -> Result<(), ControlError> {
        self.each_pipe(|pipeline, state, _| {
            let (shape, cell) = register_cell(pipeline, state, instance, index)?;
            if let InstanceKind::Register { ty, .. } = &shape.kind
                && value.bits() > u64::from(ty.width())
            {
                let width = ty.width();
                return Err(ControlError::Invalid(format!(
                    "{value} needs more than {width} bits, the cells of {}",
                    shape.name
                )));
            }
            if let Some(words) = state.registers.get_mut(cell) {
                words.copy_from_slice(&limbs_of(value, words.len()));
            }
            Ok(())
        })
    }

    /// Visits an entry's place among the direct objects of each selected pipe.
    pub(super) fn each_direct(
        &self,
        table: TableId,
        entry: EntryRef<'_>,
        mut visit: impl FnMut(&TableShape, &TableState, usize) -> Result<(), ControlError>,
    ) -> Result<(), ControlError> {
        let Running { pipeline, state } = self.running()?;
        for pipe in self.meant() {
            let (shape, state) = table_of(pipeline, state.of(pipe), table)?;
            visit(shape, state, direct(shape, state, entry)?)?;
        }
        Ok(())
    }

    /// Adds or replaces a multicast group (1 to 65535).
    pub fn multicast_group_set(
        &mut self,
        group: u32,
        replicas: impl Into<Replicas>,
    ) -> Result<(), ControlError> {
        self.running()?;
        let mut replicas = replicas.into();
        if group == 0 || group > u32::from(u16::MAX) {
            return Err(ControlError::Invalid(format!("multicast group {group} is not within 1 to 65535")));
        }
        replicas.check(&format!("multicast group {group}"))?;
        replicas.route(&self.down);
        self.groups.insert(group, replicas);
        Ok(())
    }

    /// Removes a multicast group.
    pub fn multicast_group_remove(&mut self, group: u32) -> Result<(), ControlError> {
        let gone = self.groups.remove(&group);
        gone.map(|_| ()).ok_or_else(|| ControlError::NotFound(format!("multicast group {group}")))
    }

    /// A multicast group.
    pub fn multicast_group_get(&self, group: u32) -> Option<&Replicas> {
        self.groups.get(&group)
    }

    /// All multicast groups, by number.
    pub fn multicast_groups(&self) -> Vec<u32> {
        self.groups.keys().copied().collect()
    }

    /// Adds or replaces a clone session.
    pub fn clone_session_set(&mut self, session: u32, mut config: CloneSession) -> Result<(), ControlError> {
        self.running()?;
        let name = format!("clone session {session}");
        if config.class_of_service > 7 {
            let class = config.class_of_service;
            return Err(ControlError::Invalid(format!(
                "{name}: class of service {class} is not within 0 to 7"
            )));
        }
        config.replicas.check(&name)?;
        if self.sessions.len() >= MAX_GROUPS && !self.sessions.contains_key(&session) {
            return Err(ControlError::ResourceExhausted {
                object: "the set of clone sessions".into(),
                limit: MAX_GROUPS as u64,
            });
        }
        config.replicas.route(&self.down);
        self.sessions.insert(session, config);
        Ok(())
    }

    /// Removes a clone session.
    pub fn clone_session_remove(&mut self, session: u32) -> Result<(), ControlError> {
        let gone = self.sessions.remove(&session);
        gone.map(|_| ()).ok_or_else(|| ControlError::NotFound(format!("clone session {session}")))
    }

    /// A clone session.
    pub fn clone_session_get(&self, session: u32) -> Option<&CloneSession> {
        self.sessions.get(&session)
    }

    /// All clone sessions, by number.
    pub fn clone_sessions(&self) -> Vec<u32> {
        self.sessions.keys().copied().collect()
    }

    /// Replaces the members of a parser value set. A member has one matcher per field.
    pub fn value_set_set(&mut self, set: ValueSetId, members: Vec<Vec<Matcher>>) -> Result<(), ControlError> {
        let mut members = Some(members);
        self.each_pipe(|pipeline, state, turn| {
            let found = pipeline.value_sets.get(set.0 as usize).zip(state.value_sets.get_mut(set.0 as usize));
            let (shape, state) =
                found.ok_or_else(|| ControlError::NotFound(format!("value set {}", set.0)))?;
            let members = turn.share(&mut members).unwrap_or_default();
            if members.len() as u64 > shape.size {
                return Err(ControlError::ResourceExhausted {
                    object: shape.name.clone(),
                    limit: shape.size,
                });
            }
            for member in &members {
                check_member(&shape.name, member, &shape.fields)?;
            }
            state.set(members, &shape.fields);
            Ok(())
        })
    }

    /// Members of a parser value set.
    pub fn value_set_get(&self, set: ValueSetId) -> Result<&[Vec<Matcher>], ControlError> {
        let Running { pipeline, state } = self.running()?;
        let home = self.home(pipeline.homes[2].get(set.0 as usize).copied().unwrap_or(0));
        state
            .of(home)
            .value_sets
            .get(set.0 as usize)
            .map(|set| set.members.as_slice())
            .ok_or_else(|| ControlError::NotFound(format!("value set {}", set.0)))
    }

    /// The oldest waiting digest.
    pub fn poll_digest(&mut self) -> Option<DigestMessage> {
        let Running { pipeline, state } = self.running.as_mut()?;
        state.digests.pop(&pipeline.digests)
    }

    /// The oldest waiting log message of the program.
    pub fn poll_log(&mut self) -> Option<String> {
        self.running.as_mut()?.state.log.messages.pop_front()
    }

    /// The next trace event, if the program was compiled with [`crate::Pipeline::compile_traced`].
    pub fn poll_trace(&mut self) -> Option<TraceEvent> {
        let Running { pipeline, state } = self.running.as_mut()?;
        let (_, _, raw) = state.trace.pop()?;
        Some(event::named(raw, pipeline, &state.pipe.tables))
    }

    pub(crate) fn running(&self) -> Result<&Running, ControlError> {
        self.running.as_ref().ok_or_else(no_program)
    }

    pub(crate) fn running_mut(&mut self) -> Result<&mut Running, ControlError> {
        self.running.as_mut().ok_or_else(no_program)
    }

    /// A table, in the first selected pipe.
    pub(crate) fn table(&self, table: TableId) -> Result<(&TableShape, &TableState), ControlError> {
        let Running { pipeline, state } = self.running()?;
        let home = self.home(pipeline.homes[0].get(table.0 as usize).copied().unwrap_or(0));
        table_of(pipeline, state.of(home), table)
    }

    /// An extern object, in the first selected pipe.
    pub(crate) fn instance(
        &self,
        instance: InstanceId,
    ) -> Result<(&InstanceShape, &InstanceState), ControlError> {
        let Running { pipeline, state } = self.running()?;
        let home = self.home(pipeline.homes[1].get(instance.0 as usize).copied().unwrap_or(0));
        instance_of(pipeline, state.of(home), instance)
    }
}

/// A register, and the words of one of its cells.
fn register_cell<'a>(
    pipeline: &'a Pipeline,
    state: &PipeState,
    instance: InstanceId,
    index: u64,
) -> Result<(&'a InstanceShape, Range<usize>), ControlError> {
    let shape = pipeline.instances.get(instance.0 as usize);
    let found = shape.zip(state.instances.get(instance.0 as usize));
    let (shape, state) =
        found.ok_or_else(|| ControlError::NotFound(format!("extern object {}", instance.0)))?;
    let InstanceState::Register(register) = state else {
        return Err(is_no(shape, "register"));
    };
    cell(shape, index, register.size)?;
    Ok((shape, register.cell(index).unwrap_or_default()))
}

fn no_program() -> ControlError {
    ControlError::NotFound("a program (none is loaded yet)".into())
}

pub(crate) fn is_no(shape: &InstanceShape, what: &str) -> ControlError {
    ControlError::Invalid(format!("{} is no {what}", shape.name))
}

pub(crate) fn has_no(shape: &TableShape, what: &str) -> ControlError {
    ControlError::Invalid(format!("{} has no direct {what}", shape.name))
}

/// Checks the index of a cell.
pub(crate) fn cell(shape: &InstanceShape, index: u64, size: usize) -> Result<usize, ControlError> {
    match usize::try_from(index) {
        Ok(at) if at < size => Ok(at),
        _ => Err(ControlError::OutOfRange { object: shape.name.clone(), index, size: size as u64 }),
    }
}

/// Position of an entry's direct objects.
pub(crate) fn direct(
    shape: &TableShape,
    state: &TableState,
    entry: EntryRef<'_>,
) -> Result<usize, ControlError> {
    match entry {
        EntryRef::Default => Ok(0),
        EntryRef::Keys(keys, priority) => Ok(state.row(shape, keys, priority)? as usize + 1),
    }
}

fn check_member(name: &str, member: &[Matcher], fields: &[ValueType]) -> Result<(), ControlError> {
    if member.len() != fields.len() {
        return Err(ControlError::Invalid(format!(
            "{name} has {} fields, not {}; give one matcher per field",
            fields.len(),
            member.len()
        )));
    }
    for (matcher, kind) in member.iter().zip(fields) {
        let largest = match matcher {
            Matcher::Any => continue,
            Matcher::Exact(value) => value,
            Matcher::Mask { value, mask } => value.max(mask),
            Matcher::Range { hi, .. } => hi,
            Matcher::ValueSet(_) => {
                return Err(ControlError::Invalid(format!("{name}: a member can't be a value set")));
            }
        };
        if largest.bits() > u64::from(kind.width) {
            let width = kind.width;
            return Err(ControlError::Invalid(format!("{name}: {largest} needs more than {width} bits")));
        }
    }
    Ok(())
}
