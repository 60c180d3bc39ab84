//! The control plane's side: tables, counters, meters, registers, replication, digests.
//!
//! Objects are named by their index in the program; names and P4Info ids are the caller's. Every call
//! checks before it changes anything, so a refused one leaves no trace.

use crate::error::ControlError;
use crate::switch::Switch;
use num_bigint::BigUint;
use p4rack_p4::ir::{ActionCall, InstanceId, Matcher, TableId, ValueSetId};
use p4rack_wire::Nanos;

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// One matcher a key: exact as `Exact`; LPM and ternary as `Mask`; optional as `Exact`; range as `Range`; don't care as `Any`.
    pub keys: Vec<Matcher>,
    /// Larger wins. Positive where the table has a ternary, range or optional key, else 0.
    pub priority: i32,
    /// What to do.
    pub call: ActionCall,
    /// Comes from `const entries`: can be neither modified nor deleted.
    pub is_const: bool,
    /// The controller's own, kept and returned.
    pub metadata: Vec<u8>,
    /// Idle timeout in nanoseconds; 0 is none.
    pub idle_timeout_ns: u64,
}

impl TableEntry {
    /// An entry without priority and metadata.
    pub fn new(keys: Vec<Matcher>, call: ActionCall) -> TableEntry {
        TableEntry { keys, priority: 0, call, is_const: false, metadata: Vec::new(), idle_timeout_ns: 0 }
    }
}

/// What happens on a miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultEntry {
    /// The action; `None` is a table without any (nothing happens).
    pub call: Option<ActionCall>,
    /// Whether it is still the program's own.
    pub is_initial: bool,
}

/// Names an entry whose direct counter or meter is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryRef<'a> {
    /// The default entry.
    Default,
    /// The entry with these keys and this priority.
    Keys(&'a [Matcher], i32),
}

/// A counter's cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterData {
    /// Packets counted.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A two-rate three-colour meter (RFC 2698), in bytes or packets as the program says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeterConfig {
    /// Committed rate a second.
    pub cir: u64,
    /// Committed burst.
    pub cburst: u64,
    /// Peak rate a second.
    pub pir: u64,
    /// Peak burst.
    pub pburst: u64,
}

/// A copy that the replication engine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Egress port.
    pub port: u16,
    /// `egress_rid` of the copy.
    pub instance: u16,
}

/// Where clones go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CloneSession {
    /// Copies.
    pub replicas: Vec<Replica>,
    /// Their priority in the traffic manager, 0 to 7.
    pub class_of_service: u8,
    /// Cut to so many bytes; 0 is not at all.
    pub packet_length_bytes: u16,
}

/// A digest that the program sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestMessage {
    /// Index into [`p4rack_p4::ir::Program::digests`].
    pub digest: u32,
    /// One value a field.
    pub values: Vec<BigUint>,
    /// When.
    pub time: Nanos,
}

impl Switch {
    /// Adds an entry.
    pub fn insert(&mut self, table: TableId, entry: TableEntry) -> Result<(), ControlError> {
        let _ = entry;
        Err(no_table(table))
    }

    /// Replaces action and arguments of an entry.
    pub fn modify(&mut self, table: TableId, entry: TableEntry) -> Result<(), ControlError> {
        let _ = entry;
        Err(no_table(table))
    }

    /// Removes an entry.
    pub fn delete(&mut self, table: TableId, keys: &[Matcher], priority: i32) -> Result<(), ControlError> {
        let _ = (keys, priority);
        Err(no_table(table))
    }

    /// Changes what happens on a miss; `None` goes back to what the program says.
    pub fn set_default(&mut self, table: TableId, call: Option<ActionCall>) -> Result<(), ControlError> {
        let _ = call;
        Err(no_table(table))
    }

    /// What happens on a miss.
    pub fn default_entry(&self, table: TableId) -> Result<DefaultEntry, ControlError> {
        Err(no_table(table))
    }

    /// All entries, in order of insertion.
    pub fn entries(&self, table: TableId) -> Result<Vec<TableEntry>, ControlError> {
        Err(no_table(table))
    }

    /// One entry.
    pub fn entry(&self, table: TableId, keys: &[Matcher], priority: i32) -> Result<TableEntry, ControlError> {
        let _ = (keys, priority);
        Err(no_table(table))
    }

    /// When the entry was last hit or, if never, inserted (kept for tables with `support_timeout` only).
    pub fn last_hit(&self, table: TableId, keys: &[Matcher], priority: i32) -> Result<Nanos, ControlError> {
        let _ = (keys, priority);
        Err(no_table(table))
    }

    /// Number of cells of a counter, meter or register.
    pub fn instance_size(&self, instance: InstanceId) -> Result<u64, ControlError> {
        Err(no_instance(instance))
    }

    /// Reads a counter's cell.
    pub fn counter_read(&self, instance: InstanceId, index: u64) -> Result<CounterData, ControlError> {
        let _ = index;
        Err(no_instance(instance))
    }

    /// Sets a counter's cell.
    pub fn counter_write(
        &mut self,
        instance: InstanceId,
        index: u64,
        data: CounterData,
    ) -> Result<(), ControlError> {
        let _ = (index, data);
        Err(no_instance(instance))
    }

    /// Reads the direct counter of an entry.
    pub fn direct_counter_read(
        &self,
        table: TableId,
        entry: EntryRef<'_>,
    ) -> Result<CounterData, ControlError> {
        let _ = entry;
        Err(no_table(table))
    }

    /// Sets the direct counter of an entry.
    pub fn direct_counter_write(
        &mut self,
        table: TableId,
        entry: EntryRef<'_>,
        data: CounterData,
    ) -> Result<(), ControlError> {
        let _ = (entry, data);
        Err(no_table(table))
    }

    /// Configures a meter's cell; `None`: everything is green.
    pub fn meter_config(
        &mut self,
        instance: InstanceId,
        index: u64,
        config: Option<MeterConfig>,
    ) -> Result<(), ControlError> {
        let _ = (index, config);
        Err(no_instance(instance))
    }

    /// A meter's cell.
    pub fn meter_read(&self, instance: InstanceId, index: u64) -> Result<Option<MeterConfig>, ControlError> {
        let _ = index;
        Err(no_instance(instance))
    }

    /// Configures the direct meter of an entry.
    pub fn direct_meter_config(
        &mut self,
        table: TableId,
        entry: EntryRef<'_>,
        config: Option<MeterConfig>,
    ) -> Result<(), ControlError> {
        let _ = (entry, config);
        Err(no_table(table))
    }

    /// The direct meter of an entry.
    pub fn direct_meter_read(
        &self,
        table: TableId,
        entry: EntryRef<'_>,
    ) -> Result<Option<MeterConfig>, ControlError> {
        let _ = entry;
        Err(no_table(table))
    }

    /// Reads a register's cell.
    pub fn register_read(&self, instance: InstanceId, index: u64) -> Result<BigUint, ControlError> {
        let _ = index;
        Err(no_instance(instance))
    }

    /// Sets a register's cell.
    pub fn register_write(
        &mut self,
        instance: InstanceId,
        index: u64,
        value: &BigUint,
    ) -> Result<(), ControlError> {
        let _ = (index, value);
        Err(no_instance(instance))
    }

    /// Adds or replaces a multicast group (1 to 65535).
    pub fn multicast_group_set(&mut self, group: u32, replicas: Vec<Replica>) -> Result<(), ControlError> {
        let _ = (group, replicas);
        Ok(())
    }

    /// Removes a multicast group.
    pub fn multicast_group_remove(&mut self, group: u32) -> Result<(), ControlError> {
        Err(ControlError::NotFound(format!("multicast group {group}")))
    }

    /// A multicast group.
    pub fn multicast_group_get(&self, group: u32) -> Option<&[Replica]> {
        let _ = group;
        None
    }

    /// All multicast groups, by number.
    pub fn multicast_groups(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Adds or replaces a clone session.
    pub fn clone_session_set(&mut self, session: u32, config: CloneSession) -> Result<(), ControlError> {
        let _ = (session, config);
        Ok(())
    }

    /// Removes a clone session.
    pub fn clone_session_remove(&mut self, session: u32) -> Result<(), ControlError> {
        Err(ControlError::NotFound(format!("clone session {session}")))
    }

    /// A clone session.
    pub fn clone_session_get(&self, session: u32) -> Option<&CloneSession> {
        let _ = session;
        None
    }

    /// All clone sessions, by number.
    pub fn clone_sessions(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Replaces the members of a parser value set; a member has one matcher a field.
    pub fn value_set_set(&mut self, set: ValueSetId, members: Vec<Vec<Matcher>>) -> Result<(), ControlError> {
        let _ = members;
        Err(ControlError::NotFound(format!("value set {}", set.0)))
    }

    /// Members of a parser value set.
    pub fn value_set_get(&self, set: ValueSetId) -> Result<&[Vec<Matcher>], ControlError> {
        Err(ControlError::NotFound(format!("value set {}", set.0)))
    }

    /// The oldest digest that waits.
    pub fn poll_digest(&mut self) -> Option<DigestMessage> {
        None
    }

    /// The oldest message of `log_msg` that waits.
    pub fn poll_log(&mut self) -> Option<String> {
        None
    }
}

fn no_table(table: TableId) -> ControlError {
    ControlError::NotFound(format!("table {}", table.0))
}

fn no_instance(instance: InstanceId) -> ControlError {
    ControlError::NotFound(format!("instance {}", instance.0))
}
