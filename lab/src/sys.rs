//! The few system calls that `std` does not wrap.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of a rack share, so that a start time chosen by one
/// is valid in the others.
pub fn monotonic_ns() -> u64 {
    p4rack_netdev::clock::now().0
}

/// Sleeps until the monotonic clock shows `at_ns`. Returns immediately if that has passed.
pub fn sleep_until(at_ns: u64) {
    let now_ns = monotonic_ns();
    if at_ns > now_ns {
        std::thread::sleep(std::time::Duration::from_nanos(at_ns - now_ns));
    }
}

/// Requests a receive buffer of `bytes`, beyond the system's limit if permitted.
pub fn set_receive_buffer(socket: &impl AsRawFd, bytes: u32) {
    for option in [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF] {
        // SAFETY: the value is four readable bytes, as its length says; the descriptor is open.
        let result = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                (&raw const bytes).cast(),
                size_of::<u32>() as libc::socklen_t,
            )
        };
        if result == 0 {
            return;
        }
    }
}

/// Makes a full transmit queue visible to the sender of a datagram (`ENOBUFS`).
pub fn report_send_errors(socket: &impl AsRawFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: as above.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_RECVERR,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Name of the congestion control that a TCP connection uses.
pub fn congestion_control(connection: &impl AsRawFd) -> String {
    let mut name = [0u8; 16];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: `name` is writable for `length` bytes; the kernel writes no more and updates `length`.
    let result = unsafe {
        libc::getsockopt(
            connection.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &mut length,
        )
    };
    let end = if result == 0 { name.iter().position(|byte| *byte == 0).unwrap_or(name.len()) } else { 0 };
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// An anonymous file in memory for the output of children. Nothing of it remains when the processes are gone.
pub fn memory_file(name: &str) -> io::Result<std::fs::File> {
    let name = std::ffi::CString::new(name).map_err(io::Error::other)?;
    // SAFETY: `name` is a terminated string that outlives the call.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just created and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// A descriptor of the process that has id `pid` now. It never refers to a later process.
pub fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just created and has no other owner; the kernel gives an int.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Sends `signal` to the process behind a descriptor of [`open_process`].
pub fn signal_process(process: &OwnedFd, signal: libc::c_int) -> io::Result<()> {
    let nothing: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: the descriptor is open; without further information the kernel reads no memory.
    let result =
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), signal, nothing, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Locks an open file as long as it stays open. Returns false if another process has the lock.
pub fn try_lock(file: &std::fs::File) -> io::Result<bool> {
    // SAFETY: no memory is involved; the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::WouldBlock { Ok(false) } else { Err(error) }
}

/// Sets the name of the calling thread, and so of the process, in `ps` and `top` (15 bytes). Call this on the
/// main thread.
pub fn set_process_name(name: &str) {
    let mut bytes: Vec<u8> = name.bytes().filter(|byte| *byte != 0).take(15).collect();
    bytes.push(0);
    // SAFETY: `bytes` is a terminated string that outlives the call. A name that was refused does no harm.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

/// Sends `signal` to a child that has not been waited for.
pub fn kill(pid: u32, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is involved.
    let result = unsafe { libc::kill(pid as libc::pid_t, signal) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends `signal` to a process group whose leader is a child that has not been waited for.
pub fn kill_group(leader: u32, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: no memory is involved.
    let result = unsafe { libc::kill(-(leader as libc::pid_t), signal) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// From now on reads fail with `WouldBlock` where they would wait.
pub fn set_nonblocking(file: &impl AsRawFd, on: bool) -> io::Result<()> {
    // SAFETY: no memory is involved; the descriptor is open.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    let wanted = if on { flags | libc::O_NONBLOCK } else { flags & !libc::O_NONBLOCK };
    // SAFETY: as above.
    if flags < 0 || unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, wanted) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether processes that are started from now on get huge pages without asking. They are fast, and cost megabytes in each of
/// many small processes.
pub fn allow_huge_pages(allow: bool) {
    let disable = libc::c_ulong::from(!allow);
    // SAFETY: this command takes integers. A kernel without it has no such setting, and memory is all that it costs.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, disable, 0, 0, 0) };
}

/// Real user id of this process.
pub fn user_id() -> u32 {
    // SAFETY: no memory is involved; the call can't fail.
    unsafe { libc::getuid() }
}

/// Makes this process a session leader, detached from the terminal.
pub fn detach() -> io::Result<()> {
    // SAFETY: no memory is involved.
    let result = unsafe { libc::setsid() };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Redirects standard output and standard error to /dev/null, so that readers see their end.
pub fn release_output() -> io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    for target in [libc::STDOUT_FILENO, libc::STDERR_FILENO] {
        // SAFETY: both are descriptors; nothing in this process holds the targets as its own.
        if unsafe { libc::dup2(nowhere.as_raw_fd(), target) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// From now on, what this process and its children print goes to standard error. Returns what was standard output.
pub fn print_to_stderr() -> io::Result<std::fs::File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both are descriptors; nothing in this process holds the target as its own.
    if unsafe { libc::dup2(libc::STDERR_FILENO, libc::STDOUT_FILENO) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(output.into())
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn interrupt(_signal: libc::c_int) {
    if INTERRUPTED.swap(true, Ordering::Relaxed) {
        // Asked twice: no tidying up. The children end because this process does.
        // SAFETY: `_exit` may be called from a signal handler.
        unsafe { libc::_exit(1) }
    }
}

/// From now on Ctrl-C, SIGTERM and SIGHUP only set [`interrupted`]; a second signal ends the process.
pub fn catch_interrupts() {
    // SAFETY: `sigaction` is plain data for which zero is a valid value: no flags, nothing masked.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = interrupt as *const () as libc::sighandler_t;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `action` is initialised and outlives the call; the handler only touches an atomic
        // and calls `_exit`, both allowed in a handler.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
}

static CTRL_C: AtomicBool = AtomicBool::new(false);

extern "C" fn note_ctrl_c(_signal: libc::c_int) {
    CTRL_C.store(true, Ordering::Relaxed);
}

/// From now on Ctrl-C only sets what [`take_ctrl_c`] returns: at a prompt it ends the command in the foreground.
pub fn catch_at_prompt() {
    // SAFETY: as above.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = note_ctrl_c as *const () as libc::sighandler_t;
    // SAFETY: as above; the handler only touches an atomic.
    unsafe { libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut()) };
}

/// Whether Ctrl-C was pressed since the last call.
pub fn take_ctrl_c() -> bool {
    CTRL_C.swap(false, Ordering::Relaxed)
}

/// Reads a line from standard input, and not a byte more: commands that follow may read the rest. `None` if it does not begin
/// within `limit`, `Some(None)` at the end.
pub fn read_line(limit: std::time::Duration) -> io::Result<Option<Option<String>>> {
    let mut poll = libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 };
    let limit_ms = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
    // SAFETY: `poll` is one entry that outlives the call.
    match unsafe { libc::poll(&mut poll, 1, limit_ms) } {
        0 => return Ok(None),
        n if n < 0 => {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted { Ok(None) } else { Err(error) };
        }
        _ => {}
    }
    let mut line = Vec::new();
    loop {
        let mut byte = 0u8;
        // SAFETY: one byte is writable there.
        match unsafe { libc::read(libc::STDIN_FILENO, (&raw mut byte).cast(), 1) } {
            0 if line.is_empty() => return Ok(Some(None)),
            0 => break,
            n if n < 0 => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::Interrupted if line.is_empty() || interrupted() => return Ok(None),
                    io::ErrorKind::Interrupted => {}
                    _ => return Err(error),
                }
            }
            _ if byte == b'\n' => break,
            _ => line.push(byte),
        }
    }
    Ok(Some(Some(String::from_utf8_lossy(&line).into_owned())))
}

/// Whether the process was asked to end.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
