//! Whether a call is the program's. Threads of the way and of the mapping, and calls that the library itself makes on a thread of the
//! program, get near memory and the kernel's own mappings.
//!
//! The mark of a thread is a value of a pthread key: reading it neither allocates nor locks, unlike thread-local storage of a library.
//!
//! A thread without a mark is looked up by its id and the time of its start: the kernel gives the id of a thread that has ended to another
//! one, which may be the program's.

use std::io::{self, Write};
use std::sync::OnceLock;

/// Marks of a thread; a thread without one is looked up.
const PROGRAMS: usize = 1;
const OURS: usize = 2;

/// A thread of this process, of all that ever were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    id: libc::pid_t,
    /// When it started, in the kernel's ticks since its own start.
    started: u64,
}

/// The key, and the threads that were started with far memory.
#[derive(Debug)]
pub struct Threads {
    key: libc::pthread_key_t,
    own: Vec<Thread>,
}

static THREADS: OnceLock<Threads> = OnceLock::new();

/// Takes all threads but the calling one for the library's: called when far memory is open, before the program's first instruction.
pub fn take_over() -> io::Result<()> {
    let mut key = 0;
    // SAFETY: `key` is live and exclusive; there is no destructor.
    let failed = unsafe { libc::pthread_key_create(&mut key, None) };
    if failed != 0 {
        return Err(io::Error::from_raw_os_error(failed));
    }
    let ids = std::fs::read_dir("/proc/self/task")?
        .map(|entry| entry.map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())))
        .filter_map(Result::transpose)
        .collect::<io::Result<Vec<libc::pid_t>>>()?;
    let others = ids.into_iter().filter(|id| *id != this_thread());
    let found = others.filter_map(|id| match Thread::find(id) {
        Some(thread) => Some(Ok(thread)),
        // It has ended since.
        None if !std::path::Path::new(&format!("/proc/self/task/{id}")).exists() => None,
        // It would count as the program's, get far memory, and might wait for itself.
        None => Some(Err(io::Error::other(format!("the start of thread {id} can't be read")))),
    });
    let own = found.collect::<io::Result<Vec<_>>>()?;
    // Called once: a second call would find the same threads.
    let _ = THREADS.set(Threads { key, own });
    Ok(())
}

fn this_thread() -> libc::pid_t {
    // SAFETY: it has no arguments and can't fail.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

impl Thread {
    /// The thread that has this id now. Neither allocates nor locks; by system calls, as this library takes the place of `close`.
    fn find(id: libc::pid_t) -> Option<Thread> {
        let (mut path, mut stat) = ([0; 64], [0; 512]);
        write!(&mut path[..63], "/proc/self/task/{id}/stat").ok()?;
        // SAFETY: the path ends with a zero, and pointer and length describe `stat`.
        let bytes = unsafe {
            let flags = libc::O_RDONLY | libc::O_CLOEXEC;
            let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags);
            let bytes = libc::syscall(libc::SYS_read, file, stat.as_mut_ptr(), stat.len());
            libc::syscall(libc::SYS_close, file);
            usize::try_from(bytes).ok()?
        };
        Some(Thread { id, started: started(stat.get(..bytes)?)? })
    }
}

/// The time of a thread's start in its line of `/proc`: the 22nd field. The second one is its name in brackets, which may contain anything.
fn started(stat: &[u8]) -> Option<u64> {
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    let field = stat[name_ends + 1..].split(|byte| *byte == b' ').nth(22 - 2)?;
    std::str::from_utf8(field).ok()?.parse().ok()
}

impl Threads {
    /// Whether this thread is one of those that were started with far memory. Where that can't be found out, its id decides.
    fn has_this(&self) -> bool {
        let id = this_thread();
        let Some(own) = self.own.iter().find(|own| own.id == id) else { return false };
        Thread::find(id).is_none_or(|this| this == *own)
    }

    fn mark(&self) -> usize {
        // SAFETY: the key was created.
        let mark = unsafe { libc::pthread_getspecific(self.key) } as usize;
        if mark != 0 {
            return mark;
        }
        let mark = if self.has_this() { OURS } else { PROGRAMS };
        self.set(mark);
        mark
    }

    fn set(&self, mark: usize) {
        // SAFETY: the key was created. A failure leaves the thread without a mark: it is looked up again.
        unsafe { libc::pthread_setspecific(self.key, mark as *const libc::c_void) };
    }
}

/// A call that the library makes on a thread of the program.
#[derive(Debug)]
pub struct Inside(&'static Threads);

impl Inside {
    /// `None` if this thread's call is not the program's: it is inside already, or the thread is the library's.
    pub fn enter() -> Option<Inside> {
        let threads = THREADS.get()?;
        (threads.mark() == PROGRAMS).then(|| {
            threads.set(OURS);
            Inside(threads)
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.set(PROGRAMS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_start_behind_any_name() {
        let line = b"7 (a) 1 b) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 2200 23\n";
        assert_eq!(started(line), Some(2_200));
        assert_eq!((started(b"7 (name) S 4"), started(b"")), (None, None));
    }

    #[test]
    fn another_thread_with_the_id_of_an_own_one_is_the_programs() {
        let this = Thread::find(this_thread()).unwrap();
        let has_this = |own: Vec<Thread>| Threads { key: 0, own }.has_this();
        assert!(has_this(vec![this]));
        assert!(!has_this(vec![Thread { started: this.started - 1, ..this }]));
        assert!(!has_this(vec![Thread { id: this.id + 1, ..this }]));
        assert_eq!(Thread::find(-1), None);
    }
}
