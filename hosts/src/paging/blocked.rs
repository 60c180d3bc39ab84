//! Threads whose signals are blocked.

use std::mem::MaybeUninit;
use std::ptr;

/// Runs `f` with all signals blocked in this thread, and so in threads that it starts; but not those of its own faults.
///
/// Open the region of a mapping within it. A handler of the program that ran on a thread of the region, and touched the range, could wait
/// for its own thread.
pub fn with_signals_blocked<T>(f: impl FnOnce() -> T) -> T {
    struct Before(libc::sigset_t);
    impl Drop for Before {
        fn drop(&mut self) {
            // SAFETY: the set is the kernel's.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
        }
    }
    let (mut all, mut before) = (MaybeUninit::<libc::sigset_t>::zeroed(), MaybeUninit::zeroed());
    // SAFETY: `all` is initialised before it is read, and the kernel fills `before`; zeroes are a value of it too.
    let _before = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        for fault in [libc::SIGBUS, libc::SIGSEGV, libc::SIGILL, libc::SIGFPE] {
            libc::sigdelset(all.as_mut_ptr(), fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
        Before(before.assume_init())
    };
    f()
}
