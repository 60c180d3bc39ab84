//! Whether a call is the program's. Threads of the way and of the mapping, and calls that the library itself makes on a thread of the
//! program, get near memory and the kernel's own mappings.
//!
//! The mark of a thread is a value of a pthread key: reading it neither allocates nor locks, unlike thread-local storage of a library.

use std::io;
use std::sync::OnceLock;

/// Marks of a thread; a thread without one is looked up.
const PROGRAMS: usize = 1;
const OURS: usize = 2;

/// The key, and the ids of the threads that were started with far memory.
#[derive(Debug)]
pub struct Threads {
    key: libc::pthread_key_t,
    own: Vec<libc::pid_t>,
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
    let own = std::fs::read_dir("/proc/self/task")?
        .map(|entry| entry.map(|entry| entry.file_name().to_str().and_then(|name| name.parse().ok())))
        .filter_map(Result::transpose)
        .filter(|id| !id.as_ref().is_ok_and(|id| *id == this_thread()))
        .collect::<io::Result<Vec<_>>>()?;
    // Called once: a second call would find the same threads.
    let _ = THREADS.set(Threads { key, own });
    Ok(())
}

fn this_thread() -> libc::pid_t {
    // SAFETY: it has no arguments and can't fail.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

impl Threads {
    fn mark(&self) -> usize {
        // SAFETY: the key was created.
        let mark = unsafe { libc::pthread_getspecific(self.key) } as usize;
        if mark != 0 {
            return mark;
        }
        let mark = if self.own.contains(&this_thread()) { OURS } else { PROGRAMS };
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
