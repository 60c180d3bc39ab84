//! Requests a second that a board of Clio executes on one core, packet in to packet out: CRC, token, translation and memory included.

// Of the tests, which may panic and need more of it.
#[allow(clippy::unwrap_used, dead_code)]
#[path = "../tests/clio/client.rs"]
mod client;

use client::{ALL, Client, header};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Config, Grant, Pool};
use p4rack_wire::clio::{Atomic, Header, Kind, PageSize, packet};
use p4rack_wire::{Nanos, SplitMix};

const REQUESTS: u64 = 1_024;

/// Packets of requests to pages anywhere in a range.
fn packets(
    grant: &Grant,
    address: u64,
    pages: u64,
    request: impl Fn(u64) -> (Header, Vec<u8>),
) -> Vec<Vec<u8>> {
    let mut random = SplitMix(grant.token);
    let mut packets = Vec::new();
    for id in 0..REQUESTS {
        let at = address + random.between(0, pages - 1) * 4_096 + random.between(0, 200) * 8;
        let (header, data) = request(at);
        let mut bytes = Vec::new();
        packet::compose(&Header { id: (1 << 40) + id, ..header }, &data, &mut bytes);
        packets.push(bytes);
    }
    packets
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("board");
    group.throughput(Throughput::Elements(REQUESTS));
    for (hits, pages) in [("TLB hits", 32u64), ("misses", 16_384)] {
        let pool = Pool { size: PageSize::K4, frames: 16_384, ready: 16_384 };
        let config = Config { retry_keep: Nanos::ZERO, ..Config::new(vec![pool]) };
        let memory = vec![0; config.bytes() as usize];
        let mut client = Client::new(config, memory);
        let grant = client.board.begin(ALL).unwrap_or_else(|error| panic!("{error}"));
        let address = client.alloc(&grant, PageSize::K4, pages).unwrap_or_else(|status| panic!("{status:?}"));
        for page in 0..pages {
            while client.ask(&header(&grant, Kind::Read, 0, address + page * 4_096, 1), &[]).code != 0 {
                client.now += Nanos(100_000);
                client.board.handle_timeout(client.now);
            }
        }
        let read = |bytes| move |at| (header(&grant, Kind::Read, 0, at, bytes), Vec::new());
        let write =
            |bytes: usize| move |at| (header(&grant, Kind::Write, 0, at, bytes as u32), vec![7; bytes]);
        let add = |at| (header(&grant, Kind::Atomic, Atomic::FetchAdd as u8, at, 8), vec![1; 8]);
        let loads = [
            ("16 B reads", packets(&grant, address, pages, read(16))),
            ("1 KB reads", packets(&grant, address, pages, read(1_024))),
            ("16 B writes", packets(&grant, address, pages, write(16))),
            ("1 KB writes", packets(&grant, address, pages, write(1_024))),
            ("atomics", packets(&grant, address, pages, add)),
        ];
        for (name, mut packets) in loads {
            let (mut out, mut round) = (Vec::new(), 0u16);
            group.bench_function(format!("{name}, {hits}"), |bencher| {
                bencher.iter(|| {
                    // Other ids, so that writes are not taken for retries.
                    round = round.wrapping_add(1);
                    for bytes in &mut packets {
                        bytes[8..10].copy_from_slice(&round.to_be_bytes());
                        packet::seal(bytes);
                        client.board.handle_link(((), bytes), client.now, client.now);
                        client.board.poll_link(client.now, &mut out);
                    }
                    out.len()
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
