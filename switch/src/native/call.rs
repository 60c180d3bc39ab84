//! Functions that machine code calls, and the data it needs to call them.

use crate::code::ops::{Op, Vars};
use crate::code::plans::Code;
use crate::exec::{self, Cx};
use crate::state::State;
use crate::table::TableState;
use crate::table::direct::HIT;

/// State that machine code accesses besides variables and packet.
#[repr(C)]
pub(super) struct Runtime {
    /// The packet and its padding.
    pub bytes: *const u8,
    /// Bytes of the deparser's output. Not beside `out`: one load would then read both from the vector, whose
    /// fields were just stored one by one, and a processor cannot forward two stores to one load.
    pub out_len: usize,
    /// Cells of all registers.
    pub registers: *mut u64,
    /// All tables, which do not change during a run.
    pub tables: *const TableState,
    /// Output of the deparser.
    pub out: *mut u8,
    /// Bytes that fit before it has to ask for more room.
    pub out_room: usize,
    code: *const Code,
    state: *mut State,
    vars: *mut Vars,
}

impl Runtime {
    /// The data of one run.
    #[inline]
    pub fn new(code: &Code, state: &mut State, vars: &mut Vars, cx: &mut Cx<'_>) -> Runtime {
        Runtime {
            bytes: cx.bytes.as_ptr(),
            registers: state.pipe.registers.as_mut_ptr(),
            tables: state.pipe.tables.as_ptr(),
            out: cx.out.as_mut_ptr(),
            out_len: cx.out.len(),
            out_room: cx.out.capacity(),
            code,
            state,
            vars,
        }
    }

    /// Sets the output's length for its owner.
    #[inline]
    pub fn finish(&self, cx: &mut Cx<'_>) {
        // SAFETY: native code wrote the bytes below `out_len`, which it keeps within the capacity.
        unsafe { cx.out.set_len(self.out_len) };
    }
}

/// Runs the operation at a position of the code as the interpreter does. 0, or 1 and the number that the parser is to
/// raise.
///
/// # Safety
/// Both are those that [`super::Native::run`] passed on.
pub(super) unsafe extern "C" fn rare(cx: *mut Cx<'_>, runtime: *mut Runtime, at: u32) -> u64 {
    // SAFETY: they are alive during the run, and native code holds no references.
    let (cx, runtime) = unsafe { (&mut *cx, &mut *runtime) };
    // SAFETY: as in `rare`; each is an object of its own.
    let (code, state, vars) = unsafe { (&*runtime.code, &mut *runtime.state, &mut *runtime.vars) };
    runtime.finish(cx);
    let result = exec::rare(code, state, vars, cx, code.ops[at as usize]);
    runtime.out = cx.out.as_mut_ptr();
    runtime.out_len = cx.out.len();
    runtime.out_room = cx.out.capacity();
    match result {
        Ok(()) => 0,
        Err(error) => error + 1,
    }
}

/// Result of a lookup.
#[repr(C)]
pub(super) struct Found {
    /// 0, or 1 plus the action's position in the table's list; combined with [`HIT`] if an entry matched.
    pub action: u64,
    /// Words of the arguments, as many as the action takes; valid until the table changes.
    pub args: *const u64,
}

impl Found {
    #[inline(always)]
    fn new(table: &TableState, row: Option<u32>) -> Found {
        match (row, &table.default) {
            (Some(row), _) => {
                let (action, args) = table.call(row);
                Found { action: HIT | (u64::from(action) + 1), args: args.as_ptr() }
            }
            (None, Some(row)) => Found { action: u64::from(row.call.action) + 1, args: row.args.as_ptr() },
            (None, None) => Found { action: 0, args: std::ptr::null() },
        }
    }
}

/// Looks a key up by the number of its plan.
///
/// # Safety
/// As [`rare`].
pub(super) unsafe extern "C" fn look_up(cx: *mut Cx<'_>, runtime: *mut Runtime, plan: u32) -> Found {
    // SAFETY: as in `rare`.
    let (cx, runtime) = unsafe { (&mut *cx, &mut *runtime) };
    // SAFETY: as in `rare`.
    let (code, state, vars) = unsafe { (&*runtime.code, &mut *runtime.state, &*runtime.vars) };
    let (table, row) = exec::look_up(&code.applies[plan as usize], state, vars, cx);
    Found::new(table, row)
}

/// Looks a key of `N` words in the variables up in an exact table whose look-ups leave no trace, by the table's number.
///
/// # Safety
/// As [`rare`]; the table's keys have `N` words.
pub(super) unsafe extern "C" fn look_up_exact<const N: usize>(
    key: *const [u64; N],
    runtime: *mut Runtime,
    table: u32,
) -> Found {
    // SAFETY: as in `rare`; nothing writes to the variables during the look-up.
    let (state, key) = unsafe { (&*(*runtime).state, &*key) };
    let table = &state.pipe.tables[table as usize];
    Found::new(table, table.lookup_exact(key))
}

/// The result for a key without an entry, by the table's number.
///
/// # Safety
/// As [`rare`].
pub(super) unsafe extern "C" fn miss(_: *mut Cx<'_>, runtime: *mut Runtime, table: u32) -> Found {
    // SAFETY: as in `rare`.
    let state = unsafe { &*(*runtime).state };
    Found::new(&state.pipe.tables[table as usize], None)
}

/// Counts the packet; gives nothing of use.
///
/// # Safety
/// As [`rare`].
pub(super) unsafe extern "C" fn count(
    cx: *mut Cx<'_>,
    runtime: *mut Runtime,
    instance: u32,
    index: u64,
) -> u64 {
    // SAFETY: as in `rare`.
    let (cx, state) = unsafe { (&*cx, &mut *(*runtime).state) };
    exec::count(state, instance as u16, index, cx.counted);
    0
}

/// Has a meter judge the packet; gives the colour.
///
/// # Safety
/// As [`rare`].
pub(super) unsafe extern "C" fn meter(
    cx: *mut Cx<'_>,
    runtime: *mut Runtime,
    instance: u32,
    index: u64,
) -> u64 {
    // SAFETY: as in `rare`.
    let (cx, state) = unsafe { (&*cx, &mut *(*runtime).state) };
    exec::meter(state, cx, instance as u16, index)
}

/// Applies a table with an action profile by the number of its plan. 0, or 1 and the action's place in the list.
///
/// # Safety
/// As [`rare`].
pub(super) unsafe extern "C" fn apply_indirect(cx: *mut Cx<'_>, runtime: *mut Runtime, plan: u32) -> u64 {
    // SAFETY: as in `rare`.
    let (cx, runtime) = unsafe { (&mut *cx, &mut *runtime) };
    // SAFETY: as in `rare`.
    let (code, state, vars) = unsafe { (&*runtime.code, &mut *runtime.state, &mut *runtime.vars) };
    exec::indirect::apply(code, state, vars, cx, plan).map_or(0, |action| u64::from(action) + 1)
}

/// Whether the value set of the operation at a position has the key as a member.
///
/// # Safety
/// As [`rare`].
pub(super) unsafe extern "C" fn is_member(_: *mut Cx<'_>, runtime: *mut Runtime, at: u32) -> u64 {
    // SAFETY: as in `rare`.
    let runtime = unsafe { &*runtime };
    // SAFETY: as in `rare`.
    let (code, state, vars) = unsafe { (&*runtime.code, &*runtime.state, &*runtime.vars) };
    match code.ops[at as usize] {
        Op::JumpUnlessMember { plan, .. } => exec::is_member(code, state, vars, plan).into(),
        _ => 0,
    }
}
