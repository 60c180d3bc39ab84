//! Faults as SIGBUS in the thread that faults, and signals kept from threads that must not run the program's handlers.
//!
//! **Safety of the handler.** It runs in a thread that touched an absent or protected page of a range. It takes locks and may allocate,
//! which a handler may do only if the thread can't hold those locks. It doesn't: see [`Inner`] for the mapping's and the region's; and
//! the allocator's are free because an allocator whose own data are in a range is excluded by [`Mapping`](super::Mapping). While the
//! handler runs, all other signals are blocked, so no other handler can fault on top of it.

use super::error::MappingError;
use super::inner::Inner;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Mappings whose faults arrive as signals, of a process.
const MAPPINGS: usize = 16;
static SERVED: [AtomicPtr<Inner>; MAPPINGS] = [const { AtomicPtr::new(ptr::null_mut()) }; MAPPINGS];
/// The former action of SIGBUS; set once the handler is installed.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A mapping's place in the handler.
pub(super) struct Served {
    place: &'static AtomicPtr<Inner>,
    /// Keeps the pointer valid.
    _inner: Arc<Inner>,
}

impl Served {
    /// Has the handler serve the faults of a mapping.
    pub fn new(inner: &Arc<Inner>) -> Result<Served, MappingError> {
        if !cfg!(target_arch = "x86_64") {
            return Err(MappingError::Processor);
        }
        install()?;
        let pointer = Arc::as_ptr(inner).cast_mut();
        let is_ours = |place: &&AtomicPtr<Inner>| {
            place.compare_exchange(ptr::null_mut(), pointer, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        let place = SERVED.iter().find(is_ours).ok_or(MappingError::Mappings(MAPPINGS))?;
        Ok(Served { place, _inner: Arc::clone(inner) })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.place.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Installs the handler once. A fault before `PREVIOUS` is set is repeated until it is.
fn install() -> Result<(), MappingError> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if PREVIOUS.get().is_some() {
        return Ok(());
    }
    let (mut action, mut previous) = (MaybeUninit::<libc::sigaction>::zeroed(), MaybeUninit::zeroed());
    // SAFETY: both are live and exclusive, zeroes are a value of them, and the handler has the type that SA_SIGINFO asks for.
    let previous = unsafe {
        let action = action.as_mut_ptr();
        (*action).sa_sigaction = handle as *const () as libc::sighandler_t;
        (*action).sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&mut (*action).sa_mask);
        if libc::sigaction(libc::SIGBUS, action, previous.as_mut_ptr()) != 0 {
            return Err(MappingError::last("installing a handler of SIGBUS"));
        }
        previous.assume_init()
    };
    let _ = PREVIOUS.set(previous);
    Ok(())
}

/// The handler of SIGBUS.
///
/// # Safety
/// The kernel calls it.
unsafe extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: errno is this thread's; `info` and `context` are the kernel's, live until the handler returns. A mapping's pointer is valid
    // while it is in `SERVED`; a program whose threads touch a range while its mapping is dropped uses memory after its end.
    unsafe {
        let errno = *libc::__errno_location();
        let address = (*info).si_addr() as u64;
        // Others are sent by a program, and have no address.
        let is_fault = (*info).si_code > 0;
        for place in SERVED.iter().filter(|_| is_fault) {
            let Some(inner) = place.load(Ordering::Acquire).as_ref() else { continue };
            let Some(page) = inner.memory.page_at(address) else { continue };
            let (writes, is_absent) = kind(context);
            if inner.serve(page, writes, is_absent).is_ok() {
                *libc::__errno_location() = errno;
                return;
            }
        }
        *libc::__errno_location() = errno;
        pass_on(signal, info, context);
    }
}

/// Whether the access that faulted writes, and whether its page is absent.
///
/// # Safety
/// The context is a handler's.
#[cfg(target_arch = "x86_64")]
unsafe fn kind(context: *mut libc::c_void) -> (bool, bool) {
    const PRESENT: i64 = 1;
    const WRITES: i64 = 1 << 1;
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: by the caller's promise.
    let error = unsafe { (*context).uc_mcontext.gregs[libc::REG_ERR as usize] };
    (error & WRITES != 0, error & PRESENT == 0)
}

/// The same elsewhere: nothing installs the handler there.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn kind(_: *mut libc::c_void) -> (bool, bool) {
    (true, false)
}

/// Runs the former action of SIGBUS.
///
/// # Safety
/// As [`handle`].
unsafe fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let Some(previous) = PREVIOUS.get() else { return };
    // SAFETY: a handler has the type that its flags say; zeroes are the default action.
    unsafe {
        match previous.sa_sigaction {
            libc::SIG_IGN if (*info).si_code <= 0 => {}
            // The signal is blocked until the handler returns, and ends the process then.
            libc::SIG_DFL | libc::SIG_IGN => {
                let action = MaybeUninit::<libc::sigaction>::zeroed();
                libc::sigaction(signal, action.as_ptr(), ptr::null_mut());
                libc::raise(signal);
            }
            handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
                type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                std::mem::transmute::<libc::sighandler_t, Handler>(handler)(signal, info, context);
            }
            handler => {
                type Handler = unsafe extern "C" fn(libc::c_int);
                std::mem::transmute::<libc::sighandler_t, Handler>(handler)(signal);
            }
        }
    }
}
