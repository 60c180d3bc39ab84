//! A board on a UDP socket with 1 to 4096 processes, which share the same number of pages: latency of 16 B reads, one at a time, and
//! memory and processor time of the board's own process. Over the loopback: no root, no switch.
//!
//! ```sh
//! cargo bench --profile verify -p p4rack-hosts --bench clio_processes
//! ```
// Any error ends the benchmark.
#![allow(clippy::unwrap_used)]

use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{Config, Pool};
use p4rack_fabric::clio::lib::{self, Client, Credentials, Operation, Outcome, Seat};
use p4rack_hosts::clio::server::Server;
use p4rack_netdev::{Poller, clock, process};
use p4rack_wire::clio::PageSize;
use p4rack_wire::{Histogram, Nanos, SplitMix};
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};

const PROCESSES: [u32; 5] = [1, 16, 256, 1_024, 4_096];
const PAGE: PageSize = PageSize::K4;
const FRAMES: u32 = 2 * PAGES;
const READ_BYTES: u32 = 16;
/// Pages that are in use at each board, whatever its processes are: pages of clients are no state of the board.
const PAGES: u32 = 4_096;
/// Turns of all boards, and reads of each per turn, so that the machine's other load affects all alike.
const TURNS: usize = 100;
const READS: usize = 200;
/// First argument of a process that is a board.
const BOARD: &str = "--board";

/// A board with as many processes, until its input ends. Prints its port, and each process's credentials.
fn serve(processes: u32) {
    let config = Config {
        processes_max: 8_192,
        retry_entries: 1 << 12,
        ..Config::new(vec![Pool { size: PAGE, frames: FRAMES, ready: 64 }])
    };
    let mut server = Server::open((Ipv4Addr::LOCALHOST, 0).into(), config, 0).unwrap();
    // No list of them: it would count as the board's memory.
    println!("{}", server.addr().unwrap().port());
    for _ in 0..processes {
        let (Credentials { pid, epoch, token }, range) =
            server.begin(u64::from(PAGES / processes) * PAGE.bytes()).unwrap();
        println!("{pid} {epoch} {token} {}", range.address);
    }
    let input = std::io::stdin();
    let ends = server.watch(&input).unwrap();
    println!("ready");
    while !server.ready(ends) {
        server.turn(None).unwrap();
    }
}

/// A board's process, and a client of all of its processes.
struct Asked {
    child: Child,
    client: Client,
    addresses: Vec<u64>,
    socket: UdpSocket,
    poller: Poller,
    latencies: Histogram,
    random: SplitMix,
    bytes: Box<[u8]>,
    out: Vec<u8>,
}

impl Asked {
    fn start(processes: u32) -> Asked {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([BOARD, &processes.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let port: u16 = lines.next().unwrap().parse().unwrap();
        let (mut credentials, mut addresses) = (Vec::new(), Vec::new());
        for line in lines.take_while(|line| line != "ready") {
            let numbers: Vec<u64> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            credentials.push(Credentials {
                pid: numbers[0] as u32,
                epoch: numbers[1] as u16,
                token: numbers[2],
            });
            addresses.push(numbers[3]);
        }
        assert_eq!(addresses.len(), processes as usize);
        let config = lib::Config {
            requests_max: 4,
            timeout: Nanos::from_millis(200),
            timeout_max: Nanos::from_millis(200),
            memory: Nanos::from_secs(10),
            // As on hosts, where wake-ups look like queues: else the window shrinks to a pause.
            queueing: Nanos::from_millis(20),
            ..lib::Config::default()
        };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
        socket.set_nonblocking(true).unwrap();
        let mut poller = Poller::new();
        poller.add(&socket).unwrap();
        // As the library of one node, so that it keeps no more for each process than it needs.
        let seat = |(nth, credentials)| Seat { board: 0, credentials, number: nth, first_thread: 0 };
        let client = Client::seated(config, &(1..).zip(credentials).map(seat).collect::<Vec<_>>());
        let (bytes, out) = (vec![0; 1 << 16].into_boxed_slice(), Vec::new());
        let (latencies, random) = (Histogram::new(), SplitMix(u64::from(processes)));
        Asked { child, client, addresses, socket, poller, latencies, random, bytes, out }
    }

    /// Reads from any page of all, and so of any process.
    fn read_any(&mut self) -> Nanos {
        let page = self.random.between(0, u64::from(PAGES) - 1);
        self.read(page)
    }

    /// Reads from one of all pages.
    fn read(&mut self, page: u64) -> Nanos {
        let processes = self.addresses.len() as u64;
        let (nth, page) = ((page % processes) as usize, page / processes);
        let start = clock::now();
        let read = Operation::Read { address: self.addresses[nth] + page * PAGE.bytes(), bytes: READ_BYTES };
        self.client.submit(0, nth as u16, 0, read, start).unwrap();
        loop {
            let now = clock::now();
            self.client.handle_timeout(now);
            while self.client.poll_link(now, &mut self.out).is_some() {
                self.socket.send(&self.out).unwrap();
            }
            while let Ok(bytes) = self.socket.recv(&mut self.bytes) {
                let now = clock::now();
                self.client.handle_link((nth as u16, &self.bytes[..bytes]), now, now);
            }
            if let Some((_, outcome)) = self.client.poll_completion() {
                assert!(
                    matches!(outcome, Outcome::Read(bytes) if bytes.len() == READ_BYTES as usize),
                    "{outcome:?}"
                );
                return clock::now() - start;
            }
            self.poller.wait(self.client.next_call(Nanos::ZERO)).unwrap();
        }
    }

    fn resident_kib(&self) -> u64 {
        process::resident_bytes(self.child.id()).unwrap() >> 10
    }

    fn cpu(&self) -> Nanos {
        process::cpu(self.child.id()).unwrap()
    }
}

fn measure(turns: usize) {
    let mut all = PROCESSES.map(Asked::start);
    // The first access to a page is a page fault.
    for asked in &mut all {
        (0..PAGES).for_each(|page| _ = asked.read(page.into()));
    }
    let before = all.each_ref().map(|asked| (asked.cpu(), asked.resident_kib()));
    for _ in 0..turns {
        for asked in &mut all {
            for _ in 0..READS {
                let latency = asked.read_any();
                asked.latencies.record(latency.0);
            }
        }
    }
    println!(
        "16 B reads over the loopback, one at a time, each of any of {PAGES} pages; {turns} turns of {READS}"
    );
    println!(
        "aims: p50 at most 5 % above that of one process, memory at most 1 MiB more than with one, and at the end\n"
    );
    println!(
        "{:>9}  {:>9}  {:>7}  {:>9}  {:>12}  {:>12}  {:>12}",
        "processes", "p50", "÷ first", "p99", "board's CPU", "its memory", "more at end"
    );
    let first = all[0].latencies.at(0.5).max(1);
    for ((mut asked, processes), (cpu, resident)) in all.into_iter().zip(PROCESSES).zip(before) {
        let reads = asked.latencies.len().max(1);
        let us = |ns: u64| format!("{:.1} µs", ns as f64 / 1e3);
        println!(
            "{processes:>9}  {:>9}  {:>7.2}  {:>9}  {:>12}  {:>8} KiB  {:>8} KiB",
            us(asked.latencies.at(0.5)),
            asked.latencies.at(0.5) as f64 / first as f64,
            us(asked.latencies.at(0.99)),
            us((asked.cpu() - cpu).0 / reads),
            resident,
            asked.resident_kib() as i64 - resident as i64
        );
        drop(asked.child.stdin.take());
        assert!(asked.child.wait().unwrap().success());
    }
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().position(|word| word == BOARD) {
        Some(at) => serve(words[at + 1].parse().unwrap()),
        // Without this, cargo only looks whether it runs.
        None => measure(if words.iter().any(|word| word == "--bench") { TURNS } else { 1 }),
    }
}
