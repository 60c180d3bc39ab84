//! Clients' settings of whole tables, and handles of entries. They end with the program.

use super::outcome::invalid;
use p4rack_entities::{Checked, refuse};
use p4rack_p4rt::bfrt_proto::{EntryScope, IdleTable, Mode, TableEntry, TableKey, idle_table, mode};
use p4rack_p4rt::google::rpc::Code;
use p4rack_switch::Pipes;
use prost::Message;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum handles, and maximum idle entries that are remembered as reported.
const MOST: usize = 1 << 18;
/// Handle of each table's default entry, and the first one of the others.
const DEFAULT_HANDLE: u32 = 1;
const FIRST_HANDLE: usize = 2;
/// All pipes.
pub const ALL_PIPES: u32 = 0xffff;
/// Interval in milliseconds at which drivers look for idle entries unless a client sets another one.
const QUERY_MS: u32 = 5000;

/// Which pipes have entries of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All pipes have the same entries.
    #[default]
    All,
    /// Each pipe has its own.
    Single,
    /// Sets of pipes, a byte each.
    Sets(u64),
}

impl Scope {
    /// The scope in an attribute.
    pub fn read(mode: Option<&Mode>) -> Checked<Scope> {
        match mode.and_then(|mode| mode.scope) {
            None => Ok(Scope::All),
            Some(mode::Scope::Predef(kind)) if kind == mode::PredefinedMode::All as i32 => Ok(Scope::All),
            Some(mode::Scope::Predef(kind)) if kind == mode::PredefinedMode::Single as i32 => {
                Ok(Scope::Single)
            }
            Some(mode::Scope::Predef(kind)) => invalid(format!("there is no entry scope {kind}")),
            Some(mode::Scope::UserDefined(sets)) => {
                let all = sets.to_be_bytes();
                let twice =
                    all.iter().fold((0, 0), |(seen, twice), set| (seen | set, twice | (seen & set))).1;
                if twice != 0 {
                    return invalid(format!("the entry scope 0x{sets:x} has a pipe in two sets"));
                }
                Ok(Scope::Sets(sets))
            }
        }
    }

    /// As a message.
    pub fn message(self) -> Mode {
        let scope = match self {
            Scope::All => mode::Scope::Predef(mode::PredefinedMode::All as i32),
            Scope::Single => mode::Scope::Predef(mode::PredefinedMode::Single as i32),
            Scope::Sets(sets) => mode::Scope::UserDefined(sets),
        };
        Mode { scope: Some(scope), args: 0 }
    }

    /// The pipes that an entry for one pipe is in. Errors: this pipe represents no scope.
    pub fn pipes(self, pipe: u32) -> Checked<Pipes> {
        match self {
            Scope::Single => Ok(Pipes::of([pipe as usize])),
            Scope::All => {
                invalid(format!("entries have the scope of all pipes; name all, 0xffff, not pipe {pipe}"))
            }
            Scope::Sets(sets) => {
                let own =
                    sets.to_be_bytes().into_iter().find(|set| *set != 0 && set.trailing_zeros() == pipe);
                match own {
                    Some(set) => Ok(Pipes::of((0..8).filter(|at| set >> at & 1 != 0))),
                    None => refuse(
                        Code::NotFound,
                        format!("pipe {pipe} is not the lowest one of a set of the entry scope 0x{sets:x}"),
                    ),
                }
            }
        }
    }
}

/// The entry scopes of a table: of pipes, and the values given for directions and parsers.
#[derive(Clone, Debug, Default)]
pub struct Scopes {
    /// Scopes of pipes.
    pub pipes: Scope,
    /// As given; the parts that are not are ALL.
    pub given: EntryScope,
}

impl Scopes {
    /// As a message, with all parts.
    pub fn message(&self) -> EntryScope {
        let all = || Some(Scope::All.message());
        EntryScope {
            gress_scope: self.given.gress_scope.or_else(all),
            pipe_scope: self.given.pipe_scope.or_else(all),
            prsr_scope: self.given.prsr_scope.or_else(all),
        }
    }
}

/// An entry: its table, its pipe and its key, serialised.
pub type EntryKey = (u32, u32, Vec<u8>);

#[derive(Debug, Default)]
struct State {
    scopes: HashMap<u32, Scopes>,
    idle: HashMap<u32, IdleTable>,
    /// Bytes that meters add to the length of each packet, by table and pipe.
    adjustments: HashMap<(u32, u32), i32>,
    /// When the entries that were reported as idle were last hit, in nanoseconds.
    reported: HashMap<EntryKey, u64>,
    handles: HashMap<EntryKey, u32>,
    /// Entries of handles, from the first handle on.
    places: Vec<EntryKey>,
}

fn kept<K: Clone + Eq + Hash, V: Clone>(all: &HashMap<K, V>, has: impl Fn(&K) -> bool) -> HashMap<K, V> {
    all.iter().filter(|(key, _)| has(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The settings of a program's tables.
#[derive(Debug, Default)]
pub struct Settings(Mutex<State>);

impl Settings {
    fn state(&self) -> MutexGuard<'_, State> {
        // No change can panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entry scopes of a table.
    pub fn scopes(&self, table_id: u32) -> Scopes {
        self.state().scopes.get(&table_id).cloned().unwrap_or_default()
    }

    /// The entry scope of a table, of pipes.
    pub fn scope(&self, table_id: u32) -> Scope {
        self.state().scopes.get(&table_id).map_or(Scope::All, |scopes| scopes.pipes)
    }

    /// Sets the entry scopes of a table.
    pub fn set_scopes(&self, table_id: u32, scopes: Scopes) {
        self.state().scopes.insert(table_id, scopes);
    }

    /// Takes over the attributes of tables that `has` names.
    pub fn take_over(&self, before: &Settings, has: impl Fn(u32) -> bool) {
        let before = before.state();
        let mut state = self.state();
        state.scopes = kept(&before.scopes, |table| has(*table));
        state.idle = kept(&before.idle, |table| has(*table));
        state.adjustments = kept(&before.adjustments, |(table, _)| has(*table));
    }

    /// Bytes that the meters of a table add to each packet's length in a pipe.
    pub fn adjustment(&self, table_id: u32, pipe: u32) -> i32 {
        self.state().adjustments.get(&(table_id, pipe)).copied().unwrap_or(0)
    }

    /// Sets it.
    pub fn set_adjustment(&self, table_id: u32, pipe: u32, bytes: i32) {
        self.state().adjustments.insert((table_id, pipe), bytes);
    }

    /// How a table's idle entries are detected; initially not at all.
    pub fn idle(&self, table_id: u32) -> IdleTable {
        let notify = idle_table::IdleTableMode::IdleTableNotifyMode as i32;
        let none = IdleTable { ttl_query_interval: QUERY_MS, idle_table_mode: notify, ..Default::default() };
        self.state().idle.get(&table_id).copied().unwrap_or(none)
    }

    /// Sets it. A table whose idle entries are not looked for has the default interval.
    pub fn set_idle(&self, table_id: u32, mut given: IdleTable) {
        if given.idle_table_mode() == idle_table::IdleTableMode::IdleTablePollMode {
            given.ttl_query_interval = 0;
        } else if !given.enable || given.ttl_query_interval == 0 {
            given.ttl_query_interval = QUERY_MS;
        }
        let mut state = self.state();
        state.idle.insert(table_id, given);
        state.reported.retain(|(table, ..), _| *table != table_id);
    }

    /// Whether an idle entry is to be reported: once, until it was hit again.
    pub fn reports(&self, place: &EntryKey, last_hit_ns: u64) -> bool {
        let mut state = self.state();
        if state.reported.len() >= MOST {
            state.reported.clear();
        }
        state.reported.insert(place.clone(), last_hit_ns) != Some(last_hit_ns)
    }

    /// The handle of an entry. Errors: there are too many.
    pub fn handle(&self, table_id: u32, pipe: u32, key: &TableKey) -> Checked<u32> {
        let mut state = self.state();
        let place = (table_id, pipe, key.encode_to_vec());
        if let Some(handle) = state.handles.get(&place) {
            return Ok(*handle);
        }
        if state.places.len() >= MOST {
            return refuse(Code::ResourceExhausted, format!("{MOST} handles are in use, which is the limit"));
        }
        state.places.push(place.clone());
        let handle = state.places.len() as u32 + DEFAULT_HANDLE;
        state.handles.insert(place, handle);
        Ok(handle)
    }

    /// The entry with a handle, with the key in place of it, and its pipe.
    pub fn with_key(&self, entry: &TableEntry, handle: u32) -> Checked<(TableEntry, u32)> {
        use p4rack_p4rt::bfrt_proto::table_entry::Value;
        if handle == DEFAULT_HANDLE {
            return Ok((TableEntry { value: None, is_default_entry: true, ..entry.clone() }, ALL_PIPES));
        }
        let state = self.state();
        let place = (handle as usize).checked_sub(FIRST_HANDLE).and_then(|at| state.places.get(at));
        let place = place.filter(|(table, ..)| *table == entry.table_id);
        let Some((_, pipe, key)) = place else {
            return refuse(Code::NotFound, format!("the table has no entry with handle {handle}"));
        };
        let key = TableKey::decode(&key[..]).map(Value::Key).ok();
        Ok((TableEntry { value: key, ..entry.clone() }, *pipe))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test that cannot go on should panic
mod tests {
    use super::*;

    #[test]
    fn sets_of_pipes_are_named_by_their_lowest() {
        let sets = Scope::read(Some(&Scope::Sets(0xc03).message())).unwrap();
        assert_eq!(sets.pipes(0).unwrap(), Pipes::of([0, 1]));
        assert_eq!(sets.pipes(2).unwrap(), Pipes::of([2, 3]));
        assert!(sets.pipes(1).is_err() && sets.pipes(3).is_err() && Scope::All.pipes(0).is_err());
        assert!(Scope::read(Some(&Scope::Sets(0x303).message())).is_err(), "pipe 0 is in both");
        assert_eq!(Scope::Single.pipes(3).unwrap(), Pipes::of([3]));
    }

    #[test]
    fn handles_stay_and_idle_entries_are_reported_once() {
        let settings = Settings::default();
        let key = TableKey::default();
        assert_eq!(settings.handle(7, 0, &key).unwrap(), settings.handle(7, 0, &key).unwrap());
        let second = settings.handle(7, 1, &key).unwrap();
        let entry = TableEntry { table_id: 7, ..Default::default() };
        assert_eq!(settings.with_key(&entry, second).unwrap().1, 1);
        assert!(settings.with_key(&entry, 9).is_err() && settings.with_key(&entry, 0).is_err());
        assert!(settings.with_key(&entry, 1).unwrap().0.is_default_entry);
        let place = |pipe| (7, pipe, key.encode_to_vec());
        assert!(
            settings.reports(&place(0), 5)
                && !settings.reports(&place(0), 5)
                && settings.reports(&place(0), 6)
                && settings.reports(&place(1), 6)
        );
    }
}
