//! The real board as these tests' node.

use crate::clio_lib::world::Node;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::board::{self, Board, Pool, Quota};
use p4rack_fabric::clio::lib::{Client, Config, Credentials, Operation, Outcome};
use p4rack_fabric::clio::token::Secret;
use p4rack_wire::Nanos;
use p4rack_wire::clio::{PAGE_SIZES, PageSize, Rights};

/// Number of the test's own client, and where its answers go.
const OWN: usize = 999;
const FRAMES: u32 = 32;

pub struct Real {
    board: Board<Vec<u8>, usize>,
    credentials: Credentials,
    /// Allocates, and looks.
    own: Client,
}

impl Real {
    /// A board with few frames that are ready, and little room to remember: both are short now and then.
    pub fn new(config: &Config) -> Real {
        let pool = Pool { size: PageSize::K4, frames: FRAMES, ready: 1 };
        let parameters = board::Config {
            data_bytes_max: config.mtu_bytes,
            retry_keep: config.memory,
            retry_entries: 64,
            step: Nanos(2_000),
            ..board::Config::new(vec![pool])
        };
        let memory = vec![0; FRAMES as usize * 4_096];
        let mut board = Board::new(parameters, Secret::new([7; 16]), memory).unwrap();
        let grant = board.begin([Quota { reserved: 0, limit: u32::MAX, shared: 0 }; PAGE_SIZES]).unwrap();
        let (pid, epoch, token) = (grant.space.pid, grant.space.epoch, grant.token);
        let credentials = Credentials { pid, epoch, token };
        let patient = Config { slow_timeout: Nanos::from_millis(1), ..config.clone() };
        Real { board, credentials, own: Client::new(patient, &[credentials], OWN as u32) }
    }

    /// Has the board do something of the test's own.
    fn call(&mut self, operation: Operation<'_>, now: &mut Nanos) -> u64 {
        self.own.submit(0, 0, 0, operation, *now).unwrap();
        let mut out = Vec::new();
        loop {
            self.own.handle_timeout(*now);
            while self.own.poll_link(*now, &mut out).is_some() {
                self.board.handle_link((OWN, &out), *now, *now);
            }
            self.board.handle_timeout(*now);
            while let Some(sent) = self.board.poll_link(*now, &mut out) {
                assert_eq!(sent.to, OWN);
                self.own.handle_link((0, &out), *now, *now);
            }
            match self.own.poll_completion() {
                Some((_, Outcome::Address(address))) => return address,
                Some((_, Outcome::Read(bytes))) => return u64::from_le_bytes(bytes.try_into().unwrap()),
                Some((_, other)) => panic!("{other:?}"),
                None => *now += Nanos(1_000),
            }
        }
    }
}

impl Node for Real {
    fn credentials(&self) -> Credentials {
        self.credentials
    }

    fn handle(&mut self, client: usize, bytes: &[u8], now: Nanos) {
        self.board.handle_link((client, bytes), now, now);
    }

    fn poll(&mut self, now: Nanos) -> Option<(usize, Vec<u8>)> {
        let mut out = Vec::new();
        self.board.poll_link(now, &mut out).map(|sent| (sent.to, out))
    }

    fn next_call(&self) -> Option<Nanos> {
        self.board.next_call(Nanos::ZERO)
    }

    fn handle_timeout(&mut self, now: Nanos) {
        self.board.handle_timeout(now);
    }

    fn allocate(&mut self, pages: u32, now: &mut Nanos) -> u64 {
        let bytes = 4_096 * u64::from(pages);
        self.call(Operation::Alloc { bytes, page_size: PageSize::K4, rights: Rights::ALL }, now)
    }

    fn look(&mut self, address: u64, now: &mut Nanos) -> u64 {
        self.call(Operation::Read { address, bytes: 8 }, now)
    }

    fn counts(&self) -> [u64; 2] {
        let counters = self.board.counters();
        [counters.repeated, counters.nacks]
    }
}
