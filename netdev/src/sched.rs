//! Requests prompt scheduling and reports the granted kind.

use crate::sys;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Real-time priority of a switch's data plane: above that of hosts, which wait for its answers, and below the kernel's own
/// threads. With the same priority, a host beside the switch would keep the processor until it waits for something.
pub const SWITCH_PRIORITY: i32 = 30;
/// Real-time priority of a host's threads at its link: agents, nodes, adapters.
pub const HOST_PRIORITY: i32 = 20;

/// Whether this process has locked its memory.
static LOCKED: Mutex<bool> = Mutex::new(false);

/// Scheduling that the kernel granted to the calling thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// Real-time priority; `None` if it was denied (no CAP_SYS_NICE and no RLIMIT_RTPRIO).
    pub fifo_priority: Option<i32>,
    /// Whether the process's memory is locked.
    pub memory_locked: bool,
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fifo_priority {
            Some(priority) => write!(f, "SCHED_FIFO {priority}")?,
            None => write!(f, "no real-time priority (needs root or `ulimit -r`)")?,
        }
        write!(f, ", memory {}", if self.memory_locked { "locked" } else { "not locked" })
    }
}

/// Requests real-time priority 1 to 99, exact timers and locked memory for the calling thread, as far as the
/// system permits. Never fails; the result names the granted scheduling.
///
/// Only this thread gets the priority: children and later threads start with the default.
pub fn prompt(fifo_priority: i32) -> Granted {
    // Sleeps of ordinary threads end up to 50 µs late on purpose; ask for 1 ns instead.
    // SAFETY: this command takes one integer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
    let parameters = libc::sched_param { sched_priority: fifo_priority };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread; `parameters` outlives the call.
    let fifo = sys::check(unsafe { libc::sched_setscheduler(0, policy, &parameters) }).is_ok();
    Granted { fifo_priority: fifo.then_some(fifo_priority), memory_locked: lock_memory() }
}

/// Locks current mappings, and future ones only if locked memory is unlimited: with a limit, a later
/// allocation would fail.
fn lock_memory() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is live and exclusive.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) } == 0;
    // SAFETY: takes no pointers.
    let root = unsafe { libc::geteuid() } == 0;
    if !(root || known && limit.rlim_cur == libc::RLIM_INFINITY) {
        return false;
    }
    let mut locked = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    *locked |= lock_all();
    *locked
}

fn lock_all() -> bool {
    // MCL_ONFAULT: thread stacks and the allocator's arenas are mapped far larger than they are used.
    // SAFETY: takes no pointers.
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) == 0 }
}

/// Does what gives memory back to the kernel, which takes none that is locked (`madvise` fails with EINVAL). Locked memory is
/// unlocked for some milliseconds, in which the kernel might evict a page. Returns whether all is locked that was locked before.
pub fn while_unlocked(give_back: impl FnOnce()) -> bool {
    // Of two threads, one would lock the other's memory again too early.
    let locked = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    if *locked {
        // SAFETY: takes no pointers.
        unsafe { libc::munlockall() };
    }
    give_back();
    !*locked || lock_all()
}
