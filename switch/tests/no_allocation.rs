//! The packet path allocates nothing once it has run.

mod common;

use p4rack_wire::Nanos;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn forwarding_allocates_nothing_in_steady_state() {
    let mut switch = common::l2_switch().switch;
    let frame = |port, len: usize| common::eth(common::mac(port), 0x88b5, &vec![7; len - 14]);
    let frames = [frame(2, 64), frame(3, 1514), frame(9, 64)];
    let mut out = Vec::new();
    let mut sent = 0;
    let mut pass = |switch: &mut p4rack_switch::Switch, rounds: u64, from: u64| {
        for round in from..from + rounds {
            let now = Nanos(round * 1_000);
            for frame in &frames {
                switch.handle_frame(1, frame, now);
                switch.handle_frame(1, frame, now);
            }
            while switch.poll_transmit(now, &mut out).is_some() {
                sent += 1;
            }
        }
    };
    pass(&mut switch, 10, 0);
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    pass(&mut switch, 10_000, 10);
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0);
    assert_eq!(sent, 4 * 10_010);
}
