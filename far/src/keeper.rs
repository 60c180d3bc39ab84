//! A thread of the library that keeps the figures current. It also works for threads of the program whose stacks are in
//! far memory: a fault on such a stack is served under the mapping's lock, so these threads must not hold that lock
//! themselves.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How often the figures are written.
const EVERY: Duration = Duration::from_millis(100);

/// Work for the thread.
#[derive(Clone, Copy, Debug)]
pub enum Job {
    /// Write the figures.
    Write,
    /// Drop the content of far memory: the offset of its first byte, and bytes.
    Discard(u64, u64),
}

/// The one job under way.
#[derive(Debug)]
enum Desk {
    Free,
    Asked(Job),
    Done(bool),
}

static DESK: Mutex<Desk> = Mutex::new(Desk::Free);
static CHANGED: Condvar = Condvar::new();

/// Has the thread do a job, and waits for it. Returns whether the job succeeded. Call it with signals blocked: a handler of the program
/// must not ask too.
pub fn ask(job: Job) -> bool {
    let desk = DESK.lock().unwrap_or_else(PoisonError::into_inner);
    let wait = |desk, until: fn(&mut Desk) -> bool| {
        CHANGED.wait_while(desk, move |desk| !until(desk)).unwrap_or_else(PoisonError::into_inner)
    };
    let mut desk = wait(desk, |desk| matches!(desk, Desk::Free));
    *desk = Desk::Asked(job);
    CHANGED.notify_all();
    let mut desk = wait(desk, |desk| matches!(desk, Desk::Done(_)));
    let done = matches!(*desk, Desk::Done(true));
    *desk = Desk::Free;
    CHANGED.notify_all();
    done
}

/// The thread: does jobs, and a [`Job::Write`] if there was none for a while.
pub fn serve(work: impl Fn(Job) -> bool) {
    loop {
        let desk = DESK.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = CHANGED.wait_timeout_while(desk, EVERY, |desk| !matches!(desk, Desk::Asked(_)));
        let (mut desk, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Desk::Asked(job) = *desk {
            // Those that ask wait for the answer anyway.
            *desk = Desk::Done(work(job));
            CHANGED.notify_all();
        } else {
            drop(desk);
            work(Job::Write);
        }
    }
}
