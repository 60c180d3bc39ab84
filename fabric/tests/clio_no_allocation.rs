//! Clio's client allocates nothing once it has run.

#[path = "../../tests/allocations.rs"]
mod allocations;

use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{Change, Client, Config, Credentials, Operation, Outcome};
use p4rack_wire::Nanos;
use p4rack_wire::clio::packet;
use p4rack_wire::clio::{Header, Kind};

/// Reads, writes, atomic operations and releases, eight at a time; every seventh packet is lost.
#[test]
fn requests_allocate_nothing_in_steady_state() {
    let boards = [Credentials { pid: 1, epoch: 1, token: 5 }];
    let mut client = Client::new(Config::default(), &boards, 1);
    let (mut out, mut answer, mut now, mut sent) = (Vec::new(), Vec::new(), Nanos(0), 0u64);
    let data = [7u8; 4_096];
    let (mut read, mut ended, mut lost) = (0, 0, 0u64);
    let mut round = |count: u64| {
        for nth in 0..count {
            for page in 0..8 {
                let address = 4_096 * (1 + page);
                let operation = match (nth + page) % 4 {
                    0 => Operation::Write { address, bytes: &data[..8 << (nth % 9)] },
                    1 => Operation::Read { address, bytes: 4_096 },
                    2 => Operation::Modify { address, change: Change::FetchAdd(1) },
                    _ => Operation::Release,
                };
                client.submit(0, 0, page, operation, now).expect("there is room");
            }
            while client.unfinished(0) > 0 {
                client.handle_timeout(now);
                while client.poll_link(now, &mut out).is_some() {
                    sent += 1;
                    let packet = packet::parse(&out).expect("it is whole");
                    let (header, kind) = (packet.header, Kind::Answer as u8);
                    if sent.is_multiple_of(7) {
                        lost += 1;
                        continue;
                    }
                    let (mut at, end) = (0, if packet.kind == Kind::Read { header.length } else { 1 });
                    while at < end {
                        let bytes = match packet.kind {
                            Kind::Read => (end - at).min(client.config().mtu_bytes),
                            Kind::Atomic => 8,
                            _ => 0,
                        };
                        let address = header.address + u64::from(at);
                        let header = Header { kind, code: 0, length: bytes, address, ..header };
                        packet::compose(&header, &data[..bytes as usize], &mut answer);
                        client.handle_link((0, &answer), now, now);
                        at += bytes.max(1);
                    }
                }
                while let Some((_, outcome)) = client.poll_completion() {
                    ended += 1;
                    read += u64::from(matches!(outcome, Outcome::Read(_)));
                }
                now = client.next_call(now).unwrap_or(now).max(now + Nanos(1_000));
            }
        }
    };
    round(200);
    let before = allocations::count();
    round(5_000);
    assert_eq!(allocations::count() - before, 0);
    assert_eq!((ended, read), (5_200 * 8, 5_200 * 2));
    assert!(lost > 3_000);
}
