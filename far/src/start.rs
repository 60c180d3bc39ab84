//! Opens far memory before the program's first instruction, and writes its page of figures.

use crate::keeper::{self, Job};
use crate::{descriptors, far, process, threads};
use p4rack_memory::far::{Figures, Settings, VARIABLE, Writer, open};
use p4rack_memory::mapping::with_signals_blocked;
use p4rack_netdev::clock;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::OnceLock;

static WRITER: OnceLock<Writer> = OnceLock::new();

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

/// Opens far memory if the process was started with it. A program without its far memory does not start.
extern "C" fn start() {
    let Some(settings) = std::env::var_os(VARIABLE) else { return };
    // Programs that this one executes later have near memory: far memory belongs to one process. SAFETY:
    // the program has no threads yet.
    unsafe {
        std::env::remove_var(VARIABLE);
        match std::env::var_os(PRELOAD).and_then(|list| without_own(&list)) {
            Some(list) => std::env::set_var(PRELOAD, list),
            None => std::env::remove_var(PRELOAD),
        }
    }
    if let Err(error) = settings.to_str().ok_or("not in UTF-8".to_owned()).and_then(begin) {
        crate::say("", &error);
        // SAFETY: ends the process without handlers: the program has set up none.
        unsafe { libc::_exit(1) };
    }
}

/// The dynamic linker's list of libraries.
const PRELOAD: &str = "LD_PRELOAD";

/// The other libraries of the list; `None`: there are none.
fn without_own(list: &OsStr) -> Option<OsString> {
    let own = p4rack_memory::far::LIBRARY.as_bytes();
    let others = list.as_bytes().split(|byte| b": ".contains(byte));
    let others: Vec<&[u8]> = others.filter(|one| !one.is_empty() && !one.ends_with(own)).collect();
    (!others.is_empty()).then(|| OsString::from_vec(others.join(&b':')))
}

fn begin(settings: &str) -> Result<(), String> {
    let settings = Settings::parse(settings)?;
    let programs = descriptors::all().map_err(|error| format!("the program's descriptors: {error}"))?;
    let writer =
        Writer::open(&settings.page).map_err(|error| format!("{}: {error}", settings.page.display()))?;
    // The program's signal handlers must not run on the library's threads.
    let memory = with_signals_blocked(|| {
        let memory = open(&settings).map_err(|error| error.to_string())?;
        // Starts before the library's threads are counted.
        let keeper = std::thread::Builder::new().name("p4rack-far".to_owned()).spawn(|| keeper::serve(work));
        keeper.map_err(|error| format!("starting a thread: {error}"))?;
        threads::take_over().map_err(|error| format!("the library's threads: {error}"))?;
        Ok::<_, String>(memory)
    })?;
    process::mark().map_err(|error| format!("marking the process: {error}"))?;
    descriptors::protect_all_but(&programs).map_err(|error| format!("the library's descriptors: {error}"))?;
    // SAFETY: the handler is a function without arguments that lives as long as the process.
    let failed = unsafe { libc::pthread_atfork(None, None, Some(leave)) };
    if failed != 0 {
        return Err(format!("watching for forks: {}", std::io::Error::from_raw_os_error(failed)));
    }
    // Called once.
    let _ = WRITER.set(writer);
    far::publish(memory, settings.min_bytes as usize, settings.full);
    write();
    Ok(())
}

/// In a forked child: all that it has of the parent's far memory ends.
extern "C" fn leave() {
    if far::is_forked() {
        descriptors::close_all();
    }
}

/// Writes the last figures when the program ends in order.
extern "C" fn end() {
    if far::is_forked() {
        return;
    }
    match far::is_stack_far() {
        true => drop(with_signals_blocked(|| keeper::ask(Job::Write))),
        false => write(),
    }
}

/// Runs the library's thread.
fn work(job: Job) -> bool {
    match job {
        Job::Write => write(),
        Job::Discard(at, bytes) => return far::discard(at, bytes),
    }
    true
}

fn write() {
    if let (Some(writer), Some(figures)) = (WRITER.get(), far::figures()) {
        writer.write(&Figures { at_ns: clock::now().0, pid: std::process::id().into(), ..figures });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_preloaded_libraries_stay() {
        let of = |list: &[u8]| without_own(OsStr::from_bytes(list)).map(OsString::into_vec);
        assert_eq!(of(b"/a/libp4rack_far.so"), None);
        assert_eq!(of(b"/a/\xff.so:/a/libp4rack_far.so y.so"), Some(b"/a/\xff.so:y.so".to_vec()));
    }
}
