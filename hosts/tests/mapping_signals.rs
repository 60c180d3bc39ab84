//! A mapping in a process of its own: accesses that end in SIGBUS, children, and processes without privileges.

#![allow(clippy::unwrap_used)]

#[path = "common/range.rs"]
mod range;

use p4rack_hosts::paging::{Faults, Mapping, MappingConfig, MappingError};
use p4rack_hosts::region::{RegionConfig, RemoteRegion};
use p4rack_hosts::remote::{Abilities, Local, Operation, Outcome, Remote, RemoteError, Status};
use p4rack_wire::Nanos;
use range::{Range, may_map};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const BYTES: u64 = 4 << 20;
/// Names the role of a process of these tests.
const ROLE: &str = "P4RACK_MAPPING_ROLE";
/// Names what such a process does to its range.
const CALL: &str = "P4RACK_MAPPING_CALL";

/// Memory that is lost at some time.
struct Dying {
    local: Local,
    is_dead: Arc<AtomicBool>,
}

impl Remote for Dying {
    fn abilities(&self) -> &Abilities {
        self.local.abilities()
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        match self.is_dead.load(Ordering::Relaxed) {
            true => Err(Status::Gone),
            false => self.local.submit(tag, operation),
        }
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        self.local.poll(until, ended)
    }
}

fn config(faults: Faults) -> MappingConfig {
    MappingConfig { faults, ..MappingConfig::new(1 << 20) }
}

fn map(faults: Faults) -> (Mapping, Arc<AtomicBool>) {
    let is_dead = Arc::new(AtomicBool::new(false));
    let remote = Dying { local: Local::new(BYTES), is_dead: Arc::clone(&is_dead) };
    let region = RemoteRegion::new(Box::new(remote), &RegionConfig::new(256 << 10)).unwrap();
    (Mapping::new(Arc::new(region), &config(faults)).unwrap(), is_dead)
}

/// Runs a test of this file again, in a process with a role.
fn process(test: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}

/// The role of this process.
fn role() -> Option<Faults> {
    match std::env::var(ROLE).as_deref() {
        Ok("thread") => Some(Faults::InThread),
        Ok(_) => Some(Faults::ByThread),
        Err(_) => None,
    }
}

fn roles() -> impl Iterator<Item = &'static str> {
    ["thread", "threads"].into_iter().filter(|role| *role == "thread" || may_map())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn an_access_that_needs_lost_memory_ends_in_sigbus_with_the_reason() {
    if let Some(faults) = role() {
        let (mapping, is_dead) = map(faults);
        let range = Range::of(&mapping);
        (0..BYTES / 4_096).for_each(|page| range.write(page * 512, page));
        is_dead.store(true, Ordering::Relaxed);
        // Pages in place stay.
        assert_eq!(range.read(BYTES / 8 - 512), BYTES / 4_096 - 1);
        eprintln!("the last page is there");
        (0..BYTES / 4_096).for_each(|page| assert_eq!(range.read(page * 512), page));
        return;
    }
    for role in roles() {
        let test = "an_access_that_needs_lost_memory_ends_in_sigbus_with_the_reason";
        let output = process(test, role).output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{role}: {output:?}");
        let why =
            "p4rack: a mapping of remote memory is lost: remote memory is lost, and the region with it: a ";
        let said = said(&output);
        assert!(said.contains("the last page is there") && said.contains(why), "{role}: {said}");
        assert_eq!(said.matches("p4rack: ").count(), 1, "{role}: once: {said}");
    }
}

#[test]
fn pages_in_place_may_be_written_after_a_loss() {
    let test = "pages_in_place_may_be_written_after_a_loss";
    if let Some(faults) = role() {
        let (mapping, is_dead) = map(faults);
        let range = Range::of(&mapping);
        let pages = BYTES / 4_096;
        (0..pages).for_each(|page| range.write(page * 512, page));
        mapping.flush().unwrap();
        is_dead.store(true, Ordering::Relaxed);
        // The first flush finds the loss in the region, the second one at the latest in the mapping.
        for page in [pages - 3, pages - 2] {
            range.write(page * 512, 1);
            mapping.flush().unwrap_err();
        }
        assert!(matches!(mapping.flush(), Err(MappingError::Lost(_))));
        let word = (pages - 1) * 512;
        assert_eq!(range.read(word), pages - 1);
        range.write(word, 77);
        assert_eq!(range.read(word), 77);
        eprintln!("a page in place was written");
        range.read(0);
        return;
    }
    for role in roles() {
        let output = process(test, role).output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{role}: {output:?}");
        assert!(said(&output).contains("a page in place was written"), "{role}: {output:?}");
    }
}

#[test]
fn a_closed_descriptor_makes_the_range_inaccessible_with_the_reason() {
    let test = "a_closed_descriptor_makes_the_range_inaccessible_with_the_reason";
    if let Some(faults) = role() {
        let (mapping, _) = map(faults);
        let range = Range::of(&mapping);
        // More than have a place: most pages are absent in the end.
        let pages = BYTES / 4_096;
        (0..pages).for_each(|page| range.write(page * 512, page + 1));
        let files: Vec<_> = std::fs::read_dir("/proc/self/fd").unwrap().flatten().collect();
        for file in files {
            let name = std::fs::read_link(file.path()).unwrap_or_default();
            if name.to_string_lossy().contains("userfaultfd") {
                // SAFETY: the descriptor is the mapping's, closed under it on purpose.
                unsafe { libc::close(file.file_name().to_str().unwrap().parse().unwrap()) };
            }
        }
        for turn in 0..6_000 {
            let page = turn % pages;
            assert_eq!(range.read(page * 512), page + 1, "not what was written");
            std::thread::sleep(Duration::from_millis(10));
        }
        return;
    }
    for role in roles() {
        let output = process(test, role).output().unwrap();
        assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{role}: {output:?}");
        let said = said(&output);
        let why = "its faults can't be answered any more, as after the program closed the descriptor of userfaultfd";
        assert!(said.contains(why) && said.contains("All accesses to it end in SIGSEGV"), "{role}: {said}");
        assert_eq!(said.matches("p4rack: ").count(), 1, "{role}: once: {said}");
    }
}

/// Numbers of the process's open descriptors.
fn descriptors() -> Vec<i32> {
    let listed = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let numbers = listed.filter_map(|file| file.file_name().to_str().and_then(|name| name.parse().ok()));
    // SAFETY: it takes no pointers. The list's own descriptor is closed by now.
    numbers
        .collect::<Vec<_>>()
        .into_iter()
        .filter(|fd| unsafe { libc::fcntl(*fd, libc::F_GETFD) } >= 0)
        .collect()
}

#[test]
fn files_in_place_of_closed_descriptors_are_left_alone_in_the_end() {
    let test = "files_in_place_of_closed_descriptors_are_left_alone_in_the_end";
    if let Some(faults) = role() {
        // SAFETY: it takes no pointers. An end that never comes is a failure.
        unsafe { libc::alarm(300) };
        let before = descriptors();
        let (mapping, _) = map(faults);
        Range::of(&mapping).write(9, 9);
        let own: Vec<i32> = descriptors().into_iter().filter(|fd| !before.contains(fd)).collect();
        assert!(!own.is_empty());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"the program's").unwrap();
        let other = file.as_raw_fd();
        for fd in &own {
            // SAFETY: the descriptors are the mapping's, replaced under it on purpose.
            assert_eq!(unsafe { libc::dup2(other, *fd) }, *fd);
        }
        drop(mapping);
        let inode = |fd: i32| std::fs::metadata(format!("/proc/self/fd/{fd}")).unwrap().ino();
        assert!(own.iter().all(|fd| inode(*fd) == inode(other)), "closed: {own:?}");
        assert_eq!(file.metadata().unwrap().len(), 13, "written to");
        return;
    }
    for role in roles() {
        let output = process(test, role).output().unwrap();
        assert!(output.status.success(), "{role}: {output:?}");
    }
}

/// Runs a test of this file again for each kind of faults and each of these calls, in processes of their own.
fn processes(test: &str, calls: &[&str], check: impl Fn(&str, Output)) {
    for (role, call) in roles().flat_map(|role| calls.iter().map(move |call| (role, call))) {
        let output = process(test, role).env(CALL, call).output().unwrap();
        check(call, output);
    }
}

/// Pages of the range that the calls are about, and where they begin.
const PART: u64 = 256 << 12;

fn part(range: Range) -> *mut libc::c_void {
    range.bytes_mut()[PART as usize..].as_mut_ptr().cast()
}

/// The error of a flush, once the mapping has learnt that it is lost.
fn loss(mapping: &Mapping) -> String {
    loop {
        match mapping.flush() {
            Ok(()) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => return error.to_string(),
        }
    }
}

#[test]
fn a_part_that_the_program_unmaps_or_moves_ends_the_mapping_and_is_the_programs() {
    let test = "a_part_that_the_program_unmaps_or_moves_ends_the_mapping_and_is_the_programs";
    let (anonymous, access) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, libc::PROT_READ | libc::PROT_WRITE);
    if let Some(faults) = role() {
        // SAFETY: it takes no pointers. A call that never returns is a failure.
        unsafe { libc::alarm(300) };
        let (mapping, _) = map(faults);
        let range = Range::of(&mapping);
        let pages = BYTES / 4_096;
        (0..pages).for_each(|page| range.write(page * 512, page + 1));
        let (start, bytes) = (part(range), PART as usize);
        let call = std::env::var(CALL).unwrap();
        // SAFETY: the calls change the mapping's range, which the test is about; nothing refers to its bytes.
        let moved = unsafe {
            match call.as_str() {
                "mremap" => libc::mremap(start, bytes, 2 * bytes, libc::MREMAP_MAYMOVE),
                "mmap" => libc::mmap(start, bytes, access, anonymous | libc::MAP_FIXED, -1, 0),
                _ => {
                    assert_eq!(libc::munmap(start, bytes), 0);
                    // Threads of the mapping may start as late as now. The kernel puts what they map at the end of what is free.
                    libc::mmap(start, bytes / 2, access, anonymous | libc::MAP_FIXED_NOREPLACE, -1, 0)
                }
            }
        };
        assert_ne!(moved, libc::MAP_FAILED);
        eprintln!("{}", loss(&mapping));
        if call == "rest" {
            // Those in place are what they were; the first absent one ends the process.
            for page in (0..pages).filter(|page| !(256..512).contains(page)) {
                assert_eq!(range.read(page * 512), page + 1);
            }
        } else if call == "mremap" {
            // SAFETY: a signal ends the process here.
            unsafe { moved.cast::<u64>().add(512).read_volatile() };
        } else {
            let word = moved.cast::<u64>();
            // SAFETY: the program's own memory, in bounds.
            unsafe {
                assert_eq!(word.read_volatile(), 0);
                word.write_volatile(5);
                drop(mapping);
                assert_eq!(word.read_volatile(), 5);
            }
        }
        return;
    }
    processes(test, &["munmap", "mmap", "mremap", "rest"], |call, output| {
        let signal = match call {
            "mremap" => Some(libc::SIGSEGV),
            "rest" => Some(libc::SIGBUS),
            _ => None,
        };
        assert_eq!(output.status.signal(), signal, "{call}: {output:?}");
        assert!(signal.is_some() || output.status.success(), "{call}: {output:?}");
        let (said, what) = (said(&output), if call == "mremap" { "moved" } else { "unmapped" });
        let why = format!("p4rack: a mapping of remote memory is lost: the program has {what} ");
        assert_eq!(said.matches(&why).count(), 1, "{call}: {said}");
    });
}

#[test]
fn pages_in_place_that_the_program_drops_end_the_mapping() {
    let test = "pages_in_place_that_the_program_drops_end_the_mapping";
    if let Some(faults) = role() {
        // SAFETY: it takes no pointers. An access that never ends is a failure.
        unsafe { libc::alarm(300) };
        let (mapping, _) = map(faults);
        let range = Range::of(&mapping);
        let pages = BYTES / 4_096;
        (0..pages).for_each(|page| range.write(page * 512, page + 1));
        let call = std::env::var(CALL).unwrap();
        if call == "clean" {
            mapping.flush().unwrap();
        }
        let (start, bytes) = (range.bytes_mut().as_mut_ptr().cast(), BYTES as usize);
        // SAFETY: the pages are the mapping's, and the test is about their loss.
        assert_eq!(unsafe { libc::madvise(start, bytes, libc::MADV_DONTNEED) }, 0);
        eprintln!("dropped");
        match call.as_str() {
            "flush" => eprintln!("{}", mapping.flush().unwrap_err()),
            // The newest page was in place.
            "write" => range.write((pages - 1) * 512, 1),
            "read" | "clean" => drop(range.read((pages - 1) * 512)),
            // Absent pages come, and those in place have to leave for them.
            _ => (0..pages / 2).for_each(|page| assert_eq!(range.read(page * 512), page + 1)),
        }
        return;
    }
    processes(test, &["read", "write", "clean", "leave", "flush"], |call, output| {
        // A flush says it with its error, unless a page leaves just then.
        let is_said = call == "flush" && output.status.success();
        assert!(is_said || output.status.signal() == Some(libc::SIGBUS), "{call}: {output:?}");
        let said = said(&output);
        assert!(said.contains("dropped") && !said.contains("panicked"), "{call}: {said}");
        let why = "the program has dropped pages of it itself (by madvise)";
        // A handler that copies a page can't say why the copy ended it.
        assert!(said.contains(why) || call == "leave", "{call}: {said}");
    });
}

#[test]
fn an_access_behind_the_range_ends_in_a_signal() {
    let test = "an_access_behind_the_range_ends_in_a_signal";
    if let Some(faults) = role() {
        // SAFETY: it takes no pointers. An access that never ends is a failure.
        unsafe { libc::alarm(300) };
        let (mapping, _) = map(faults);
        // SAFETY: a signal ends the process here.
        unsafe { mapping.start().add(BYTES as usize).read_volatile() };
        return;
    }
    processes(test, &["read"], |call, output| {
        assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{call}: {output:?}");
    });
}

#[test]
fn a_child_does_not_have_the_range() {
    let test = "a_child_does_not_have_the_range";
    if let Some(faults) = role() {
        let (mapping, _) = map(faults);
        let range = Range::of(&mapping);
        range.write(0, 7);
        // SAFETY: the child only touches memory and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            range.read(0);
            // SAFETY: it ends the process.
            unsafe { libc::_exit(0) };
        }
        let mut status = 0;
        // SAFETY: `status` is live; the child is this process's.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV, "{status:#x}");
        assert_eq!(range.read(0), 7);
        // A program that the process runs is not affected.
        assert!(Command::new("true").status().unwrap().success());
        return;
    }
    for role in roles() {
        let output = process(test, role).output().unwrap();
        assert!(output.status.success(), "{role}: {output:?}");
    }
}

#[test]
fn a_process_without_privileges_is_told_what_to_do_and_may_serve_faults_in_the_thread() {
    let test = "a_process_without_privileges_is_told_what_to_do_and_may_serve_faults_in_the_thread";
    if role().is_some() {
        let region = RemoteRegion::new(Box::new(Local::new(BYTES)), &RegionConfig::new(256 << 10)).unwrap();
        let by_thread = Mapping::new(Arc::new(region), &config(Faults::ByThread)).map(drop);
        eprintln!("by thread: {}", by_thread.map_or_else(|error| error.to_string(), |()| "yes".to_owned()));
        let (mapping, _) = map(Faults::InThread);
        Range::of(&mapping).write(9, 9);
        eprintln!("in the thread: {}", Range::of(&mapping).read(9));
        return;
    }
    let setting = std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").unwrap_or_default();
    // SAFETY: it takes no pointers.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: needs root, to start another user's process, get it by `sudo`"
        );
        return;
    }
    if setting.trim() != "0" {
        let what = "skipped: needs a kernel that denies userfaultfd, get it by `sudo sysctl vm.unprivileged_userfaultfd=0`";
        let _ = writeln!(std::io::stderr(), "{what}");
        return;
    }
    // A copy that others may run.
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    Command::new("chmod").args(["-R", "a+rx"]).arg(folder.path()).status().unwrap();
    let mut command = Command::new(&copy);
    command.args([test, "--exact", "--nocapture"]).env(ROLE, "thread").uid(65_534).gid(65_534);
    let output = command.output().unwrap();
    let said = said(&output);
    assert!(output.status.success(), "{output:?}");
    assert!(
        said.contains("by thread: userfaultfd: opening it: /dev/userfaultfd: Permission denied"),
        "{said}"
    );
    assert!(
        said.contains("sudo sysctl vm.unprivileged_userfaultfd=1") && said.contains("in the thread: 9"),
        "{said}"
    );
}

#[test]
fn sigbus_of_other_memory_goes_where_it_went_before() {
    let test = "sigbus_of_other_memory_goes_where_it_went_before";
    if role().is_some() {
        let (mapping, _) = map(Faults::InThread);
        Range::of(&mapping).write(0, 1);
        let file = tempfile::tempfile().unwrap();
        let (access, flags) = (libc::PROT_READ, libc::MAP_PRIVATE);
        // SAFETY: a new mapping, whose only access is behind the file's end, which is a fault on purpose.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), 4_096, access, flags, file.as_raw_fd(), 0);
            assert_ne!(start, libc::MAP_FAILED);
            start.cast::<u8>().read_volatile();
        }
        unreachable!("the file has no bytes");
    }
    let output = process(test, "thread").output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGBUS), "{output:?}");
    assert!(!said(&output).contains("panicked"), "{output:?}");
}

#[test]
fn the_handler_serves_many_mappings_and_no_more_than_its_limit() {
    let one = || {
        let region = RemoteRegion::new(Box::new(Local::new(1 << 20)), &RegionConfig::new(256 << 10)).unwrap();
        Mapping::new(Arc::new(region), &config(Faults::InThread))
    };
    let mut all = Vec::new();
    let refused = loop {
        match one() {
            Ok(mapping) => all.push(mapping),
            Err(error) => break error,
        }
        assert!(all.len() <= 16);
    };
    assert_eq!(all.len(), 16, "other tests have theirs in other processes");
    assert!(refused.to_string().starts_with("16 mappings serve faults in the thread"), "{refused}");
    for (number, mapping) in all.iter().enumerate() {
        Range::of(mapping).write(5, number as u64 + 1);
        assert_eq!(Range::of(mapping).read(5), number as u64 + 1);
    }
    all.clear();
}
