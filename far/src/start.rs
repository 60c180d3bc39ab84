//! Opens far memory before the program's first instruction, and keeps its page of figures current.

use crate::{far, threads};
use p4rack_memory::far::{Figures, Settings, VARIABLE, Writer, open};
use p4rack_memory::mapping::with_signals_blocked;
use p4rack_netdev::clock;
use std::sync::OnceLock;
use std::time::Duration;

/// How often the figures are written.
const EVERY: Duration = Duration::from_millis(100);

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
    // What the program executes later has near memory: far memory has one process.
    // SAFETY: the program has no threads yet.
    unsafe {
        std::env::remove_var(VARIABLE);
        match std::env::var(PRELOAD).ok().and_then(|list| without_own(&list)) {
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
fn without_own(list: &str) -> Option<String> {
    let is_other = |one: &&str| !one.is_empty() && !one.ends_with(p4rack_memory::far::LIBRARY);
    let others: Vec<&str> = list.split([':', ' ']).filter(is_other).collect();
    (!others.is_empty()).then(|| others.join(":"))
}

fn begin(settings: &str) -> Result<(), String> {
    let settings = Settings::parse(settings)?;
    let writer =
        Writer::open(&settings.page).map_err(|error| format!("{}: {error}", settings.page.display()))?;
    // The program's signal handlers must not run on the library's threads.
    let memory = with_signals_blocked(|| {
        let memory = open(&settings).map_err(|error| error.to_string())?;
        // Starts before the library's threads are counted.
        let keeper = std::thread::Builder::new().name("p4rack-far".to_owned()).spawn(keep_current);
        keeper.map_err(|error| format!("starting a thread: {error}"))?;
        threads::take_over().map_err(|error| format!("the library's threads: {error}"))?;
        Ok::<_, String>(memory)
    })?;
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

/// In a forked child.
extern "C" fn leave() {
    far::leave();
}

/// Writes the last figures when the program ends in order.
extern "C" fn end() {
    if !far::is_forked() {
        write();
    }
}

fn keep_current() {
    loop {
        std::thread::sleep(EVERY);
        write();
    }
}

fn write() {
    if let (Some(writer), Some(figures)) = (WRITER.get(), far::figures()) {
        writer.write(&Figures { at_ns: clock::now().0, pid: std::process::id().into(), ..figures });
    }
}

#[cfg(test)]
mod tests {
    use super::without_own;

    #[test]
    fn other_preloaded_libraries_stay() {
        assert_eq!(without_own("/a/libp4rack_far.so"), None);
        assert_eq!(without_own("/a/x.so:/a/libp4rack_far.so y.so"), Some("/a/x.so:y.so".to_owned()));
    }
}
