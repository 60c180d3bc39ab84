//! Kept racks: found, locked, never mistaken for another process.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

fn rack(name: &str, supervisor: Pid) -> KeptRack {
    KeptRack {
        name: name.to_owned(),
        scheme: Some("pl2-clock".to_owned()),
        supervisor,
        switches: vec![KeptSwitch {
            name: SWITCH.into(),
            process: supervisor,
            grpc_addr: "127.0.0.1:9559".parse().unwrap(),
            device_id: 1,
        }],
        hosts: vec![KeptHost {
            name: "h1".into(),
            ip: [10, 0, 0, 1].into(),
            place: NamespaceHolder::Process(supervisor),
        }],
    }
}

fn here() -> Pid {
    Pid::of(std::process::id()).unwrap()
}

#[test]
fn a_running_rack_is_found_alone_and_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::at(folder.path().join("p4rack"));
    let message = runtime.find(None).unwrap_err().to_string();
    assert!(message.contains("p4rack up --keep"), "{message}");
    runtime.write(&rack("a", here())).unwrap();
    assert_eq!(runtime.find(None).unwrap(), rack("a", here()));
    runtime.write(&rack("b", here())).unwrap();
    let message = runtime.find(None).unwrap_err().to_string();
    assert!(message.contains("a, b"), "{message}");
    assert_eq!(runtime.find(Some("b")).unwrap().name, "b");
    assert!(runtime.find(Some("c")).unwrap_err().to_string().contains("running: a, b"));
    runtime.remove("a");
    assert_eq!(runtime.find(None).unwrap().name, "b");
    let mode = fs::metadata(folder.path().join("p4rack")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_file_whose_process_is_gone_or_another_counts_for_nothing_and_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::at(folder.path());
    let other_start = Pid { start: here().start + 1, ..here() };
    runtime.write(&rack("reused-number", other_start)).unwrap();
    runtime.write(&rack("gone", Pid { pid: u32::MAX >> 2, start: 1 })).unwrap();
    fs::write(folder.path().join("torn.json"), "{\"name\"").unwrap();
    assert!(runtime.racks().unwrap().is_empty());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = Runtime::at(folder.path()).write(&rack("a", here())).unwrap_err();
    assert!(error.to_string().contains("nobody else"), "{error}");
}

#[test]
fn the_start_time_is_read_behind_any_name() {
    let tail = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
    assert_eq!(start_time(&format!("7 (a) b ({tail}) {tail}")), Some(4242));
    assert_eq!(start_time("7 (short) S 1"), None);
}

#[test]
fn a_name_is_taken_once_and_free_when_its_lock_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::at(folder.path().join("p4rack"));
    let lock = runtime.lock("a").unwrap().expect("free");
    assert!(runtime.lock("a").unwrap().is_none());
    assert!(runtime.lock("b").unwrap().is_some());
    drop(lock);
    let again = runtime.lock("a").unwrap();
    assert!(again.is_some());
    assert!(runtime.lock("a").unwrap().is_none());
}

#[test]
fn many_that_want_a_name_at_once_get_it_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::at(folder.path().join("p4rack"));
    let holders = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    if let Some(lock) = runtime.lock("a").unwrap() {
                        assert_eq!(holders.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        holders.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                        drop(lock);
                    }
                }
            });
        }
    });
}

/// A process that does nothing until its input ends.
fn bystander() -> std::process::Child {
    Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_process_with_a_number_used_again_gets_no_signal() {
    let mut child = bystander();
    let now = Pid::of(child.id()).unwrap();
    let before = Pid { start: now.start - 1, ..now };
    assert!(!before.signal(libc::SIGKILL).unwrap());
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(child.try_wait().unwrap().is_none(), "it lives on");
    assert!(now.signal(libc::SIGKILL).unwrap());
    child.wait().unwrap();
    assert!(!now.signal(libc::SIGKILL).unwrap());
}

#[test]
fn a_file_that_is_a_link_or_of_another_user_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::at(folder.path().join("p4rack"));
    runtime.write(&rack("a", here())).unwrap();
    let elsewhere = folder.path().join("planted.json");
    fs::rename(runtime.file("a"), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, runtime.file("a")).unwrap();
    assert!(runtime.racks().unwrap().is_empty());
    assert!(elsewhere.exists(), "only the link went");
}

#[test]
fn planted_links_are_neither_written_through_nor_locked() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    let runtime = Runtime::at(folder.path().join("p4rack"));
    runtime.prepare().unwrap();
    for name in ["a.json", "a.json.new"] {
        std::os::unix::fs::symlink(&victim, runtime.folder().join(name)).unwrap();
    }
    runtime.write(&rack("a", here())).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert_eq!(runtime.find(Some("a")).unwrap(), rack("a", here()));
    std::os::unix::fs::symlink(&victim, runtime.folder().join("b.lock")).unwrap();
    assert!(runtime.lock("b").is_err());
}

#[test]
fn a_folder_of_somebody_elses_or_behind_a_link_is_refused_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let real = Runtime::at(folder.path().join("real"));
    real.write(&rack("a", here())).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(real.folder(), &link).unwrap();
    assert!(Runtime::at(&link).find(None).unwrap_err().to_string().contains("belongs to you"));
    if sys::user_id() == 0 {
        std::os::unix::fs::chown(real.folder(), Some(1), Some(1)).unwrap();
        assert!(real.find(None).unwrap_err().to_string().contains("belongs to you"));
    }
}

#[test]
fn a_supervisor_is_known_by_its_words_and_its_folder() {
    let line =
        |words: &[&str]| words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect::<Vec<u8>>();
    let own =
        line(&["p4rack", "workload", "supervise", "/r.toml", "--runtime", "/run/p4rack", "--scheme", "l2"]);
    assert!(is_supervisor(&own, b"/run/p4rack"));
    assert!(!is_supervisor(&own, b"/run/p4rack2"));
    assert!(!is_supervisor(&line(&["vi", "workload", "notes", "--runtime", "/run/p4rack"]), b"/run/p4rack"));
    assert!(!is_supervisor(b"", b"/run/p4rack"));
}

#[test]
fn a_rack_that_has_ended_leaves_word_until_it_was_shown() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::at(folder.path().join("p4rack"));
    let _lock = runtime.lock("r").unwrap().unwrap();
    runtime.leave_word("r", "the switch ended, signal 9").unwrap();
    let error = runtime.find(Some("r")).unwrap_err().to_string();
    assert!(
        error.contains("no rack is running") && error.contains("r has ended: the switch ended"),
        "{error}"
    );
    runtime.leave_word("r", "the agent of h1 ended").unwrap();
    assert_eq!(runtime.take_word("r").as_deref(), Some("the agent of h1 ended"));
    assert_eq!(runtime.take_word("r"), None);
    runtime.leave_word("r", "again").unwrap();
    runtime.forget_words();
    assert!(!runtime.find(None).unwrap_err().to_string().contains("again"));
}
