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
use std::sync::atomic::{AtomicU8, Ordering};

/// Requests before the count begins, and of the count.
const WARM_UP: u64 = 4_000;
const REQUESTS: u64 = 12_000;
/// Requests under way.
const UNDER_WAY: u64 = 8;
/// Bytes of the range, and of a page.
const BYTES: u64 = 1 << 20;
const PAGE: u64 = 64 << 10;
/// Bytes of the longest request of the warm-up and of the count, and packets of the latter. One that crosses a page has a packet more.
const SHORT: usize = 2_500;
const LONGEST: usize = 5_000;
const PACKETS: u64 = 4;

/// Stages: both threads run; the board is to stop; it has stopped; the count is to begin.
const RUNS: u8 = 0;
const STOP: u8 = 1;
const STOPPED: u8 = 2;
const COUNT: u8 = 3;

/// Sets a stage, and waits until the other thread has set that which follows.
fn pass(stage: &AtomicU8, to: u8, then: u8) {
    stage.store(to, Ordering::SeqCst);
    while stage.load(Ordering::SeqCst) != then {
        std::thread::yield_now();
    }
}

/// A client with a socket.
struct Asker {
    client: Client,
    socket: UdpSocket,
    poller: Poller,
    input: Vec<u8>,
    out: Vec<u8>,
    start: u64,
    submitted: u64,
    done: u64,
}

impl Asker {
    fn new(addr: SocketAddr, credentials: Credentials, start: u64) -> Asker {
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
        let client = Client::new(config, &[credentials], 1);
        let (input, out) = (vec![0; 1 << 16], Vec::with_capacity(1 << 16));
        Asker { client, socket, poller, input, out, start, submitted: 0, done: 0 }
    }

    fn submit(&mut self, operation: Operation<'_>) {
        self.client.submit(0, 0, self.submitted, operation, clock::now()).unwrap();
        self.submitted += 1;
    }

    fn send(&mut self) {
        let now = clock::now();
        self.client.handle_timeout(now);
        while self.client.poll_link(now, &mut self.out).is_some() {
            self.socket.send(&self.out).unwrap();
        }
    }

    /// Sends what may leave, takes what has come, and if that ended nothing, waits for more.
    fn turn(&mut self) {
        let before = self.done;
        self.send();
        while let Ok(bytes) = self.socket.recv(&mut self.input) {
            let now = clock::now();
            self.client.handle_link((0, &self.input[..bytes]), now, now);
        }
        while let Some((_, outcome)) = self.client.poll_completion() {
            assert!(!matches!(outcome, Outcome::Unknown | Outcome::Refused(_)), "{outcome:?}");
            self.done += 1;
        }
        if self.done == before {
            self.poller.wait(self.client.next_call(Nanos::ZERO)).unwrap();
        }
    }

    /// Reads and writes of up to `longest` bytes, and additions, several at a time.
    fn ask(&mut self, requests: u64, longest: usize) {
        let (data, until) = ([7; LONGEST], self.submitted + requests);
        while self.done < until {
            while self.submitted < until.min(self.done + UNDER_WAY) {
                let nth = self.submitted;
                let bytes = 1 + nth as usize * 37 % longest;
                let address = self.start + nth * 977 % (BYTES - LONGEST as u64) / 8 * 8;
                self.submit(match nth % 3 {
                    0 => Operation::Read { address, bytes: bytes as u32 },
                    1 => Operation::Write { address, bytes: &data[..bytes] },
                    _ => Operation::Modify { address, change: Change::FetchAdd(1) },
                });
            }
            self.turn();
        }
    }

    /// Has more packets wait for the board than requests of `ask` can have under way, so no queue is longer later. None of these requests
    /// crosses a page: the first one that does has more packets than any before.
    fn fill(&mut self, stage: &AtomicU8) {
        pass(stage, STOP, STOPPED);
        for nth in 0..2 * UNDER_WAY {
            let address = self.start + nth * PAGE;
            self.submit(Operation::Write { address, bytes: &[7; LONGEST] });
        }
        self.send();
        let (packets, _) = self.client.under_way(0);
        stage.store(RUNS, Ordering::SeqCst);
        assert_eq!(u64::from(packets), 2 * UNDER_WAY * PACKETS);
        while self.done < self.submitted {
            self.turn();
        }
    }
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
    let (addr, stage) = (server.addr().unwrap(), AtomicU8::new(RUNS));
    let counts = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut asker = Asker::new(addr, credentials, range.address);
            asker.ask(WARM_UP, SHORT);
            asker.fill(&stage);
            pass(&stage, COUNT, RUNS);
            let before = allocations::count();
            asker.ask(REQUESTS, LONGEST);
            allocations::count() - before
        });
        let mut before = None;
        while !client.is_finished() {
            server.turn(Some(clock::now() + Nanos::from_millis(10))).unwrap();
            match stage.load(Ordering::SeqCst) {
                STOP => pass(&stage, STOPPED, RUNS),
                COUNT => {
                    before = Some(allocations::count());
                    stage.store(RUNS, Ordering::SeqCst);
                }
                _ => {}
            }
        }
        [allocations::count() - before.unwrap(), client.join().unwrap()]
    });
    assert_eq!(counts, [0, 0], "allocations at the board and at the client, of {REQUESTS} requests");
}
