//! Views of a cached region, and threads that wait for views and for each other.

#![allow(clippy::unwrap_used)]

use p4rack_hosts::region::{RegionConfig, RegionError, RemoteRegion};
use p4rack_hosts::remote::{Delayed, Local};
use p4rack_netdev::clock;
use p4rack_wire::{Nanos, SplitMix};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

const REGION_BYTES: u64 = 1 << 20;

fn config(policy: &str) -> RegionConfig {
    RegionConfig { policy: policy.to_owned(), ..RegionConfig::new(128 << 10) }
}

/// Waits for a condition that another thread brings about.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = clock::now() + Nanos::from_secs(60);
    while !is_so() {
        assert!(clock::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends threads that would go on for ever.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn views_have_a_limit_and_lie_in_a_block() {
    let remote = Box::new(Local::new(REGION_BYTES));
    let region = RemoteRegion::new(remote, &RegionConfig { guards: Some(2), ..config("lru") }).unwrap();
    region.write(1_000, &[7; 100]).unwrap();
    let first = region.view(1_000, 100).unwrap();
    let second = region.view(1_000, 100).unwrap();
    assert_eq!((first.len(), second.iter().sum::<u8>()), (24, 168), "to the end of the block");
    assert_eq!(region.view(1_024, 8).unwrap_err(), RegionError::Guards(2));
    drop(first);
    let mut writes = region.view_mut(1_024, 8).unwrap();
    writes.copy_from_slice(b"12345678");
    drop(writes);
    let mut bytes = [0; 10];
    region.read(1_023, &mut bytes).unwrap();
    assert_eq!(&bytes, b"\x0712345678\x07");
}

/// Accesses that wait for a view leave everything else alone, however many they are.
#[test]
fn threads_that_wait_for_a_view_do_not_stop_others() {
    const WAITING: usize = 40;
    let late = Delayed::new(Local::new(REGION_BYTES), Nanos::from_micros(20));
    let region = &RemoteRegion::new(Box::new(late), &config("lru")).unwrap();
    let mut view = region.view_mut(0, 8).unwrap();
    std::thread::scope(|scope| {
        let read = || {
            let mut bytes = [0; 8];
            region.read(0, &mut bytes).unwrap();
            bytes
        };
        let waiting: Vec<_> = (0..WAITING).map(|_| scope.spawn(read)).collect();
        wait_until("all threads sleep", || region.statistics().sleeping == WAITING as u32);
        for at in (512..REGION_BYTES).step_by(512) {
            region.read(at, &mut [0; 8]).unwrap();
        }
        view.copy_from_slice(b"written!");
        drop(view);
        for thread in waiting {
            assert_eq!(&thread.join().unwrap(), b"written!");
        }
    });
    assert_eq!(region.statistics().late, 0, "each was woken");
}

/// Nothing else happens: only the end of the view can wake them.
#[test]
fn the_end_of_a_view_wakes_those_that_wait_for_it() {
    let region = &RemoteRegion::new(Box::new(Local::new(REGION_BYTES)), &config("lru")).unwrap();
    let view = region.view_mut(0, 8).unwrap();
    std::thread::scope(|scope| {
        let waiting = [(); 4].map(|()| scope.spawn(|| region.read(0, &mut [0; 8])));
        wait_until("all threads sleep", || region.statistics().sleeping == 4);
        drop(view);
        assert!(waiting.into_iter().all(|thread| thread.join().unwrap() == Ok(())));
    });
    assert_eq!(region.statistics().late, 0, "each was woken");
}

/// More threads than may wait for fetches, and than may have views: each is woken when it may go on. One that is not sleeps until its
/// wait of 20 s ends, and counts as late if its access can go on then.
#[test]
fn threads_that_wait_for_each_other_are_woken() {
    let late = Delayed::new(Local::new(REGION_BYTES), Nanos::from_micros(20));
    // Two blocks for fetches that accesses wait for.
    let config = RegionConfig { guards: Some(2), block_bytes: Some(4_096), ..config("lru") };
    let region = &RemoteRegion::new(Box::new(late), &config).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..12 {
            scope.spawn(move || {
                let mut random = SplitMix(thread);
                for _ in 0..1_000 {
                    let at = random.between(0, REGION_BYTES / 4_096 - 1) * 4_096;
                    match random.next() % 4 {
                        0 => region.write(at, &[1; 64]).unwrap(),
                        1 => match region.view_mut(at, 64).map(drop) {
                            Ok(()) | Err(RegionError::Guards(2)) => {}
                            Err(error) => panic!("{error}"),
                        },
                        _ => region.read(at, &mut [0; 64]).unwrap(),
                    }
                }
            });
        }
    });
    let statistics = region.statistics();
    assert_eq!((statistics.sleeping, statistics.late), (0, 0));
}

/// The error names the view, of accesses and of a flush that has to write the block back.
#[test]
fn a_view_that_stays_open_is_an_error_for_those_that_wait() {
    let region = &RemoteRegion::new(Box::new(Local::new(REGION_BYTES)), &config("lru")).unwrap();
    let view = region.view_mut(0, 8).unwrap();
    std::thread::scope(|scope| {
        let ends = [
            scope.spawn(|| region.read(0, &mut [0])),
            scope.spawn(|| region.write(REGION_BYTES - 1, &[0]).and_then(|()| region.write(511, &[0, 0]))),
            scope.spawn(|| region.view(0, 8).map(drop)),
            scope.spawn(|| region.flush()),
        ];
        for end in ends {
            assert_eq!(end.join().unwrap(), Err(RegionError::Held(20)));
        }
    });
    drop(view);
    assert_eq!((region.read(0, &mut [0]), region.flush()), (Ok(()), Ok(())));
}

/// A flush that a view holds up has no end of others' fetches to hope for.
#[test]
fn a_flush_that_a_view_holds_up_ends_while_others_use_the_way() {
    let late = Delayed::new(Local::new(REGION_BYTES), Nanos::from_micros(20));
    let region = &RemoteRegion::new(Box::new(late), &config("lru")).unwrap();
    let mut view = region.view_mut(0, 8).unwrap();
    view.fill(1);
    let is_over = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        // However the test ends.
        let _ends = Ends(is_over);
        for thread in 0..4 {
            scope.spawn(move || {
                let mut random = SplitMix(thread);
                while !is_over.load(Ordering::Relaxed) {
                    let at = random.between(1, REGION_BYTES / 512 - 1) * 512;
                    match random.next() % 4 {
                        0 => region.write(at, &[1; 8]).unwrap(),
                        _ => region.read(at, &mut [0; 8]).unwrap(),
                    }
                }
            });
        }
        let fetched = || region.counters().fetched;
        wait_until("the others fetch", || fetched() > 0);
        let before = fetched();
        let (done, flushed) = mpsc::channel();
        scope.spawn(move || done.send(region.flush()).unwrap());
        let flushed = flushed.recv_timeout(Duration::from_secs(120)).expect("the flush never ends");
        assert_eq!(flushed, Err(RegionError::Held(20)));
        assert!(fetched() > before, "the others went on");
    });
    drop(view);
    assert_eq!(region.flush(), Ok(()));
}
