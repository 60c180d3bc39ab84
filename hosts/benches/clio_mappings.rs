//! Cost of a 16 B read at a board of Clio on one core, with many mappings or many processes: packet in to packet out.
//!
//! Pages have 4 MB, the paper's; 4 TB are 2^20 entries of the page table, all valid. No machine has that memory, so all frames are the
//! same 4 MB here, and are not zeroed: reads, translations and the page table are those of a real board. Packets come in batches, and
//! buckets and processes of a batch are loaded ahead, as a board on a host does, and in every second round are not. With
//! P4RACK_SMALL_PAGES set, the table is kept in ordinary pages, also where the system gives huge ones unasked.
//!
//! ```sh
//! cargo bench --profile verify -p p4rack-hosts --bench clio_mappings
//! ```

// Of the tests, which may panic and need more of it.
#[allow(clippy::unwrap_used, dead_code)]
#[path = "../../fabric/tests/clio/client.rs"]
mod client;

use client::{ALL, Client, header};
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Config, Grant, PhysicalMemory, Pool};
use p4rack_netdev::clock;
use p4rack_netdev::pages::{prefer_huge, prefer_small, prefetch};
use p4rack_wire::clio::{Header, Kind, PageSize, Status, packet};
use p4rack_wire::quantiles::of_sorted;
use p4rack_wire::{Nanos, SplitMix};
use std::ops::Range;

const PAGE: PageSize = PageSize::M4;
/// Requests between two looks at the clock, those of a batch, and how often, with and without loading ahead each.
const REQUESTS: usize = 256;
const BATCH: usize = 16;
const ROUNDS: usize = 5_000;
const READ_BYTES: u32 = 16;
/// Offset of the address in a packet.
const ADDRESS_AT: usize = 16;

/// One page behind all addresses.
struct OneFrame {
    frame: Vec<u8>,
    bytes: u64,
}

impl PhysicalMemory for OneFrame {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn at(&self, range: Range<u64>) -> &[u8] {
        let start = (range.start % PAGE.bytes()) as usize;
        &self.frame[start..start + (range.end - range.start) as usize]
    }

    fn at_mut(&mut self, range: Range<u64>) -> &mut [u8] {
        let start = (range.start % PAGE.bytes()) as usize;
        &mut self.frame[start..start + (range.end - range.start) as usize]
    }

    fn zero(&mut self, _range: Range<u64>) {}
}

/// A board with this many frames, and a process that has read each of its pages.
fn board(pages: u64, processes: u32) -> (Client<OneFrame>, Vec<(Grant, u64)>) {
    let frames = u32::try_from(pages).unwrap_or_else(|error| panic!("{error}"));
    let pool = Pool { size: PAGE, frames, ready: frames.min(1 << 16) };
    let config = Config {
        processes_max: processes,
        // Zeroing takes time that is not measured.
        step_zero_bytes: 1 << 40,
        step_pages: 1 << 16,
        ..Config::new(vec![pool])
    };
    let bytes = config.bytes();
    let mut client = Client::new(config, OneFrame { frame: vec![0; PAGE.bytes() as usize], bytes });
    let is_small = std::env::var_os("P4RACK_SMALL_PAGES").is_some();
    for table in client.board.tables() {
        if is_small {
            prefer_small(table);
        } else {
            // As a board on a host does.
            prefer_huge(table);
        }
    }
    let each = pages / u64::from(processes);
    let mut ranges = Vec::new();
    for _ in 0..processes {
        let grant = client.board.begin(ALL).unwrap_or_else(|error| panic!("{error}"));
        let address = client.alloc(&grant, PAGE, each).unwrap_or_else(|status| panic!("{status:?}"));
        for page in 0..each {
            let read = header(&grant, Kind::Read, 0, address + page * PAGE.bytes(), 1);
            while client.ask(&read, &[]).code == Status::NoPageYet as u8 {
                client.now += Nanos(100_000);
                client.board.handle_timeout(client.now);
            }
        }
        ranges.push((grant, address));
    }
    (client, ranges)
}

/// Reads in a range of any client, each time elsewhere, so that processor caches hold little of a large table.
fn main() {
    println!("aim: 4 TB mapped take at most 1.3 times as long as 1 GB\n");
    let mapped = [("1 GB mapped", 256, 1), ("64 GB mapped", 1 << 14, 1), ("4 TB mapped", 1 << 20, 1)];
    let many = [("16 processes", 4_096, 16), ("256 processes", 4_096, 256), ("4096 processes", 4_096, 4_096)];
    let mut first = None;
    for (name, pages, processes) in mapped.into_iter().chain([("1 process", 4_096, 1)]).chain(many) {
        let (mut client, ranges) = board(pages, processes);
        let (each, mut random) = (pages / u64::from(processes), SplitMix(7));
        let packets = ranges.iter().map(|(grant, address)| {
            let mut bytes = Vec::new();
            let header: Header = header(grant, Kind::Read, 0, *address, READ_BYTES);
            packet::compose(&Header { id: 1 << 40, ..header }, &[], &mut bytes);
            (bytes, *address)
        });
        let packets: Vec<(Vec<u8>, u64)> = packets.collect();
        let mut batch = vec![Vec::new(); BATCH];
        let (mut out, mut times_ns) = (Vec::new(), [Vec::new(), Vec::new()]);
        for round in 0..2 * ROUNDS {
            let is_ahead = round % 2 == 0;
            let before = client.board.counters().reads;
            let start = clock::now();
            for _ in 0..REQUESTS / BATCH {
                for place in &mut batch {
                    let nth = random.between(0, packets.len() as u64 - 1) as usize;
                    let page = random.between(0, each - 1);
                    let (bytes, start) = &packets[nth];
                    let at = *start + page * PAGE.bytes() + random.between(0, 100_000) * 8;
                    place.clone_from(bytes);
                    place[ADDRESS_AT..ADDRESS_AT + 8].copy_from_slice(&at.to_be_bytes());
                    packet::seal(place);
                    if is_ahead {
                        client.board.ahead(place).into_iter().flatten().for_each(prefetch);
                    }
                }
                for packet in &batch {
                    client.board.handle_link(((), packet), client.now, client.now);
                }
                for _ in &batch {
                    client.board.poll_link(client.now, &mut out);
                }
            }
            let took = clock::now().saturating_sub(start).0 as f64;
            times_ns[usize::from(!is_ahead)].push(took / REQUESTS as f64);
            assert_eq!(client.board.counters().reads - before, REQUESTS as u64, "not refused");
            assert!(packet::parse(&out).is_ok_and(|answer| answer.data.len() == READ_BYTES as usize));
        }
        times_ns.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        let at = |times: &[f64], share| of_sorted(times, share).expect("there were rounds");
        let [ahead, not] = &times_ns;
        let first = *first.get_or_insert(at(ahead, 0.5));
        println!(
            "{name:>16}: {:4.0} ns a read, median of {ROUNDS} rounds, {:.2} × the first; {:4.0} in the fastest tenth; {:4.0} and \
             {:4.0} without loading ahead",
            at(ahead, 0.5),
            at(ahead, 0.5) / first,
            at(ahead, 0.1),
            at(not, 0.5),
            at(not, 0.1)
        );
    }
}
