//! Anonymous network namespaces: they live as long as a descriptor refers to them or a process is in them.

use crate::error::Context;
use crate::netlink::{Netlink, Request, ifinfo};
use crate::{Error, sys};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A network namespace, held by a descriptor. It disappears when this is dropped and no process is left in
/// it.
#[derive(Debug)]
pub struct NetNs {
    net: OwnedFd,
    /// The user namespace to enter first, if it is not the caller's own.
    user: Option<OwnedFd>,
}

/// How this process gets to create namespaces and interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// It already has the privilege.
    Granted,
    /// It has moved to a user namespace of its own, in which it is root.
    UserNamespace,
}

const NO_WAY: &str = "neither root nor a user namespace is available here. Either run as root, or let \
     users create namespaces: `sysctl -w user.max_user_namespaces=15000`, on Debian and Ubuntu also \
     `sysctl -w kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0`; \
     in a container, start it with `--cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add NET_RAW`";

fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: takes no pointers.
    sys::check(unsafe { libc::unshare(flags) }).map(drop)
}

fn setns(fd: BorrowedFd<'_>, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: takes no pointers.
    sys::check(unsafe { libc::setns(fd.as_raw_fd(), kind) }).map(drop)
}

/// Makes sure that this process may create network namespaces and interfaces, if necessary by moving it to a
/// user namespace of its own. Call this first: only a single-threaded process can move.
pub fn acquire() -> Result<Privilege, Error> {
    if NetNs::create().is_ok() {
        return Ok(Privilege::Granted);
    }
    // SAFETY: both take no pointers and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    unshare(libc::CLONE_NEWUSER)
        .context(|| "creating a user namespace".to_owned())
        .map_err(|error| error.help(NO_WAY))?;
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).context(|| format!("writing /proc/self/{file}"))
    };
    // Without this, the kernel rejects a group map written by an ordinary user.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("0 {user} 1"))?;
    write("gid_map", format!("0 {group} 1"))?;
    NetNs::create().map(|_| Privilege::UserNamespace).map_err(|error| error.help(NO_WAY))
}

/// Index of the loopback interface in every namespace.
const LOOPBACK_INDEX: i32 = 1;

/// Switches the loopback interface of the calling thread's namespace on.
fn set_up_loopback() -> io::Result<()> {
    let up = libc::IFF_UP as u32;
    Netlink::open()?.call(Request::new(libc::RTM_NEWLINK, 0, &ifinfo(LOOPBACK_INDEX, up, up))).map(drop)
}

impl NetNs {
    /// Creates a namespace with only a loopback interface, which is up.
    pub fn create() -> Result<NetNs, Error> {
        let what = || "creating a network namespace".to_owned();
        let made = std::thread::scope(|scope| {
            // On its own thread, because `unshare` moves the calling thread.
            let thread = scope.spawn(|| {
                unshare(libc::CLONE_NEWNET).context(what).map_err(|e| e.help_if_denied(NO_WAY))?;
                let net = File::open("/proc/thread-self/ns/net").context(what)?;
                set_up_loopback().context(|| "setting the state of interface `lo`".to_owned())?;
                Ok(NetNs { net: net.into(), user: None })
            });
            thread.join()
        });
        made.unwrap_or_else(|_| Err(Error::new(what(), io::Error::other("the helping thread panicked"))))
    }

    /// The calling thread's namespace.
    pub fn current() -> Result<NetNs, Error> {
        let net =
            File::open("/proc/thread-self/ns/net").context(|| "opening the current namespace".to_owned())?;
        Ok(NetNs { net: net.into(), user: None })
    }

    /// The namespace of a running process of the same user; root may use any.
    pub fn of_process(pid: u32) -> Result<NetNs, Error> {
        let open = |kind: &str| {
            let path = format!("/proc/{pid}/ns/{kind}");
            File::open(&path).context(|| format!("opening {path}")).map_err(|error| {
                error.help_if_denied("a process of another user: run as that user or as root")
            })
        };
        let same =
            fs::read_link(format!("/proc/{pid}/ns/user")).ok() == fs::read_link("/proc/self/ns/user").ok();
        let user = if same { None } else { Some(open("user")?.into()) };
        Ok(NetNs { net: open("net")?.into(), user })
    }

    /// The namespace that a running process of the same user holds open; root may use any's.
    pub fn held_by(pid: u32, descriptor: RawFd) -> Result<NetNs, Error> {
        let path = format!("/proc/{pid}/fd/{descriptor}");
        let net = File::open(&path).context(|| format!("opening {path}")).map_err(|error| {
            error.help_if_denied("a process of another user: run as that user or as root")
        })?;
        let NetNs { user, .. } = NetNs::of_process(pid)?;
        Ok(NetNs { net: net.into(), user })
    }

    /// The descriptor by which this process holds the namespace, for [`NetNs::held_by`].
    pub fn descriptor(&self) -> RawFd {
        self.raw_net()
    }

    /// Whether a process is in the namespace now, as far as this process may know.
    pub fn has_process(&self, pid: u32) -> bool {
        let (Ok(its), Ok(own)) = (
            fs::metadata(format!("/proc/{pid}/ns/net")),
            fs::metadata(format!("/proc/self/fd/{}", self.raw_net())),
        ) else {
            return false;
        };
        (its.dev(), its.ino()) == (own.dev(), own.ino())
    }

    pub(crate) fn raw_net(&self) -> RawFd {
        self.net.as_raw_fd()
    }

    /// Runs a closure on a new thread inside the namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| self.enter().map(|()| work()));
            match thread.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Moves the calling thread, and threads that it starts later, into the namespace.
    ///
    /// Errors: a namespace that belongs to another user namespace can only be entered by a process
    /// with a single thread; use [`NetNs::command`] for that.
    pub fn enter(&self) -> Result<(), Error> {
        enter(self.user.as_ref().map(OwnedFd::as_fd), self.net.as_fd())
            .context(|| "entering a network namespace".to_owned())
            .map_err(|error| error.help_if_denied(NO_WAY))
    }

    /// Makes `command` start inside the namespace. With `die_with_parent`, the kernel kills it (SIGKILL) when
    /// the thread that started it ends, so nothing is left behind.
    pub fn command(&self, command: &mut Command, die_with_parent: bool) -> Result<(), Error> {
        let copy = |fd: &OwnedFd| fd.try_clone().context(|| "copying a descriptor".to_owned());
        let net = copy(&self.net)?;
        let user = self.user.as_ref().map(copy).transpose()?;
        // SAFETY: takes no pointers and cannot fail.
        let parent = unsafe { libc::getpid() };
        let before_exec = move || {
            enter(user.as_ref().map(OwnedFd::as_fd), net.as_fd())?;
            if die_with_parent {
                // After the moves, because a change of credentials clears this setting.
                die_with(parent)?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure only makes system calls (setns, prctl, getppid);
        // it neither allocates nor takes locks.
        unsafe { command.pre_exec(before_exec) };
        Ok(())
    }
}

/// Makes `command`, which [`NetNs::command`] has prepared, see its namespace's interfaces under /sys, in a mount namespace of
/// its own. Where that is not permitted, /sys stays as it is.
pub fn show_own_interfaces(command: &mut Command) {
    let before_exec = || {
        let (kind, place, root) = (c"sysfs".as_ptr(), c"/sys".as_ptr(), c"/".as_ptr());
        // SAFETY: the strings are constants; without data, the kernel reads nothing else.
        unsafe {
            let is_private = libc::unshare(libc::CLONE_NEWNS) == 0
                && libc::mount(kind, root, kind, libc::MS_REC | libc::MS_PRIVATE, std::ptr::null()) == 0;
            if is_private {
                libc::mount(kind, place, kind, 0, std::ptr::null());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls; it neither allocates nor takes locks.
    unsafe { command.pre_exec(before_exec) };
}

fn enter(user: Option<BorrowedFd<'_>>, net: BorrowedFd<'_>) -> io::Result<()> {
    if let Some(user) = user {
        setns(user, libc::CLONE_NEWUSER)?;
    }
    setns(net, libc::CLONE_NEWNET)
}

/// Asks the kernel to kill the calling process when the thread that started it ends.
fn die_with(parent: libc::pid_t) -> io::Result<()> {
    // SAFETY: this command takes one integer.
    sys::check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) })?;
    // The parent may have ended before the request.
    // SAFETY: takes no pointers and cannot fail.
    match unsafe { libc::getppid() } {
        now if now == parent => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::ESRCH)),
    }
}
