//! A board on a socket, and a client of it, allocate nothing for a request once they have run.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/allocations.rs"]
mod allocations;

use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Config, Pool};
use p4rack_fabric::clio::lib::{self, Change, Client, Credentials, Operation, Outcome};
use p4rack_hosts::clio::server::Server;
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use p4rack_wire::clio::PageSize;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests before the count begins, and of the count.
const WARM_UP: u64 = 4_000;
const REQUESTS: u64 = 12_000;
/// Requests under way.
const UNDER_WAY: u64 = 8;
/// Bytes of the range.
const BYTES: u64 = 1 << 20;

/// Reads, writes of up to four packets, and additions, several at a time. Counts in `ended` how many have ended. Returns its allocations in the
/// counted part.
fn ask(addr: SocketAddr, credentials: Credentials, start: u64, ended: &AtomicU64) -> u64 {
    let (socket, mut poller) = (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), Poller::new());
    socket.connect(addr).unwrap();
    socket.set_nonblocking(true).unwrap();
    poller.add(&socket).unwrap();
    let timeout = Nanos::from_secs(5);
    let config = lib::Config {
        granule: lib::Granule::Byte,
        timeout,
        timeout_max: timeout,
        memory: Nanos::from_secs(600),
        queueing: Nanos::from_secs(1),
        ..lib::Config::default()
    };
    let mut client = Client::new(config, &[credentials], 1);
    let (data, mut input, mut out) = ([7; 5_000], vec![0; 1 << 16], Vec::with_capacity(1 << 16));
    let (mut submitted, mut done, mut before) = (0, 0, 0);
    while done < WARM_UP + REQUESTS {
        while submitted < done + UNDER_WAY && submitted < WARM_UP + REQUESTS {
            let bytes = 1 + (submitted * 37 % 5_000) as usize;
            let address = start + submitted * 977 % (BYTES - 5_000) / 8 * 8;
            let operation = match submitted % 3 {
                0 => Operation::Read { address, bytes: bytes as u32 },
                1 => Operation::Write { address, bytes: &data[..bytes] },
                _ => Operation::Modify { address, change: Change::FetchAdd(1) },
            };
            client.submit(0, 0, submitted, operation, clock::now()).unwrap();
            submitted += 1;
        }
        let now = clock::now();
        client.handle_timeout(now);
        while client.poll_link(now, &mut out).is_some() {
            socket.send(&out).unwrap();
        }
        while let Ok(bytes) = socket.recv(&mut input) {
            let now = clock::now();
            client.handle_link((0, &input[..bytes]), now, now);
        }
        while let Some((_, outcome)) = client.poll_completion() {
            assert!(!matches!(outcome, Outcome::Unknown | Outcome::Refused(_)), "{outcome:?}");
            done += 1;
            if done == WARM_UP {
                before = allocations::count();
            }
            ended.store(done, Ordering::Relaxed);
        }
        // What has ended makes room for others.
        if submitted == done + UNDER_WAY || submitted == WARM_UP + REQUESTS {
            let until = now + timeout;
            poller.wait(Some(client.next_call(Nanos::ZERO).map_or(until, |at| at.min(until)))).unwrap();
        }
    }
    allocations::count() - before
}

#[test]
fn a_request_over_a_socket_allocates_nothing_at_either_end() {
    let pool = Pool { size: PageSize::K64, frames: 32, ready: 16 };
    // A result is remembered for as long as the table has room.
    let config = Config {
        retry_entries: 1 << 14,
        retry_keep: Nanos::from_millis(1),
        processes_max: 8,
        ..Config::new(vec![pool])
    };
    let mut server = Server::open((Ipv4Addr::LOCALHOST, 0).into(), config, 0).unwrap();
    let (credentials, range) = server.begin(BYTES).unwrap();
    let (addr, ended) = (server.addr().unwrap(), AtomicU64::new(0));
    let [at_board, at_client] = std::thread::scope(|scope| {
        let client = scope.spawn(|| ask(addr, credentials, range.address, &ended));
        let mut before = None;
        while !client.is_finished() {
            server.turn(Some(clock::now() + Nanos::from_millis(10))).unwrap();
            if before.is_none() && ended.load(Ordering::Relaxed) >= WARM_UP {
                before = Some(allocations::count());
            }
        }
        [allocations::count() - before.unwrap(), client.join().unwrap()]
    });
    // A buffer may still grow to a length that it has not had before; a request has none of its own.
    let each = [at_board, at_client].map(|count| count * 1_000 / REQUESTS);
    assert_eq!(each, [0, 0], "{at_board} at the board and {at_client} at the client, of {REQUESTS} requests");
}
