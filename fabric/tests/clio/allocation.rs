//! The fast path allocates nothing once it has run.

#[path = "../../../tests/allocations.rs"]
mod allocations;

use crate::clio::client::{ALL, Client, header};
use p4rack_fabric::clio::board::{Config, Pool};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Atomic, Kind, PageSize, Status};

#[test]
fn requests_allocate_nothing_in_steady_state() {
    let config = Config {
        tlb_entries: 8,
        retry_entries: 256,
        retry_keep: Nanos::ZERO,
        ..Config::new(vec![Pool { size: PageSize::K4, frames: 64, ready: 64 }])
    };
    let memory = vec![0; config.bytes() as usize];
    let mut client = Client::new(config, memory);
    let grant = client.board.begin(ALL).unwrap();
    let address = client.alloc(&grant, PageSize::K4, 32).unwrap();
    let pass = |client: &mut Client<Vec<u8>>, rounds: u64| {
        for round in 0..rounds {
            client.now += Nanos(100);
            let at = address + round % 32 * 4_096;
            let read = header(&grant, Kind::Read, 0, at, 4_000);
            let write = header(&grant, Kind::Write, 0, at, 16);
            let add = header(&grant, Kind::Atomic, Atomic::FetchAdd as u8, at, 8);
            let lock = header(&grant, Kind::Atomic, Atomic::Lock as u8, at + 64, 8);
            let fence = header(&grant, Kind::Fence, 0, 0, 0);
            let requests: [(_, &[u8]); 5] =
                [(read, &[]), (write, &[7; 16]), (add, &[1; 8]), (lock, &[0; 8]), (fence, &[])];
            for (header, data) in requests {
                assert_eq!(client.ask(&header, data).code, Status::Done as u8);
            }
        }
    };
    pass(&mut client, 200);
    let before = allocations::count();
    pass(&mut client, 5_000);
    assert_eq!(allocations::count() - before, 0);
    let counters = client.board.counters();
    assert!(
        counters.faults == 32 && counters.tlb_misses > 1_000 && counters.tlb_hits > 1_000,
        "{counters:?}"
    );
}
