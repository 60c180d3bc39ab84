//! A large table is small in memory.

mod common;

use common::{Parts, exact};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_million_exact_keys_take_less_than_64_mb() {
    let before = HELD.load(Ordering::Relaxed);
    let mut bench = Parts {
        ingress_locals: "
            action forward(bit<9> port) { sm.egress_spec = port; }
            table t { key = { hdr.eth.dst: exact; } actions = { forward; }
                      default_action = forward(1); size = 1000000; }",
        ingress: "t.apply();",
        ..common::L2
    }
    .run();
    for number in 0..1_000_000u64 {
        bench.add("t", vec![exact(number * 77_777)], 0, "forward", &[number % 3 + 2]);
    }
    let held = HELD.load(Ordering::Relaxed) - before;
    println!("{:.1} MB", held as f64 / 1e6);
    assert!(held < 64_000_000, "{held} bytes");
    for number in [0, 1, 500_000, 999_999] {
        let (port, _) = bench.pass(1, &common::eth(number * 77_777, 0x88b5, &[0; 50]));
        assert_eq!(u64::from(port), number % 3 + 2);
    }
    assert_eq!(bench.pass(1, &common::eth(5, 0x88b5, &[0; 50])).0, 1);
}
