//! A board on a UDP socket, or on an interface. One thread owns it and calls [`Server::turn`]; the set-up service reaches it through a [`Handle`].

use super::arrivals::Arrivals;
use super::background::Background;
use super::costs::Costs;
pub use super::error::BoardError;
use super::memory::Fresh;
use super::names::{LOADED_MAX, Names};
use super::port::Port;
pub use super::port::{At, Peer};
use super::threads::{GIVEN, Threads};
use crate::commands::{Commands, Handle};
use crate::outlet::Counts;
use crate::roce::Loss;
use crate::roce::setup::draw_token;
use p4rack_fabric::clio::board::{Board, Config, Grant, Quotas, Space};
use p4rack_fabric::clio::lib::Credentials;
use p4rack_fabric::clio::token::Secret;
use p4rack_netdev::Poller;
use p4rack_netdev::pages::prefer_huge;
use p4rack_offload::{Offloads, PointerChase};
use p4rack_wire::clio::PageSize;
use p4rack_wire::{Nanos, SplitMix};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

/// Processes of offloads: the board's own two, and loaded ones.
const OFFLOADS: u32 = 2 + LOADED_MAX as u32;
/// Calls of offloads that wait, run, or have results that wait.
pub(super) const CALLS: usize = 256;
/// Calls of one process, so that others find room.
const CALLS_OF_PROCESS: usize = 128;
/// Others' time for each time that long calls take, and that the slow path takes.
const LONG_CALLS_OTHERS: u64 = 9;
const SLOW_PATH_OTHERS: u64 = 3;
/// Maximum bytes that a call reads; they take half a millisecond.
const CALL_READ_BYTES: u64 = 512 << 10;
/// At most 1/`TO_ALL_SHARED` of the board's bytes may be shared with the process that is offered to all.
const TO_ALL_SHARED: u64 = 8;

/// A range of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
}

/// Bytes that a process may have in pages of the first pool's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Frames for these are kept for it.
    pub reserved: u64,
    /// Those that it may have allocated, its range included. Frames beyond the reserved ones are taken where some are left.
    pub limit: u64,
    /// Those that other processes may share with it, beside these.
    pub shared: u64,
}

/// A board's offer to clients.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The process whose memory is offered to all, and its range.
    pub to_all: (Credentials, Range),
    /// Limits of that process.
    pub bounds: Bounds,
    /// Size of the pages of ranges.
    pub page: PageSize,
    /// Port at which the board takes packets.
    pub udp_port: u16,
    /// Data bytes of the longest packet.
    pub mtu_bytes: u32,
    /// How long the board remembers, in nanoseconds.
    pub memory_ns: u64,
    /// Maximum processes that clients reserve.
    pub processes_max: u64,
    /// Maximum bytes of their ranges together.
    pub reserve_bytes_max: u64,
}

/// A board and its socket, as commands see them.
#[derive(Debug)]
pub struct Host {
    pub(super) board: Board<Fresh, Peer>,
    pub(super) offloads: Offloads,
    pub(super) names: Names,
    pub(super) threads: Threads,
    /// The process whose memory is offered to all.
    pub(super) to_all: Option<Credentials>,
    pub(super) port: Port,
    pub(super) arrivals: Arrivals,
    pub(super) page: PageSize,
    pub(super) out: Vec<u8>,
    /// Time of long calls, and of the slow path.
    pub(super) long_calls: Background,
    pub(super) slow_path: Background,
    /// Packets that the port did not take: clients ask again.
    pub(super) unsent: u64,
    /// Which packets are lost on purpose, and how many were: received, and to be sent.
    pub(super) loss: Loss,
    pub(super) random: SplitMix,
    pub(super) lost: [u64; 2],
}

/// A board on a UDP socket.
#[derive(Debug)]
pub struct Server {
    host: Host,
    poller: Poller,
    socket_number: usize,
    commands: Commands<Host>,
    commands_number: usize,
    /// The last batch was full, or calls wait.
    more: bool,
    /// Bytes of the range that is offered to all.
    bytes: u64,
    /// Maximum processes that clients reserve.
    processes_max: u64,
}

/// Parameters of a board that has a store of `store_bytes` bytes and the server's limits of offloads.
pub fn with_offloads(config: Config, store_bytes: u64) -> Config {
    Config {
        processes_max: config.processes_max.saturating_add(OFFLOADS),
        calls_max: [CALLS_OF_PROCESS, CALLS],
        call_read_bytes_max: CALL_READ_BYTES,
        ..config.with_store(store_bytes)
    }
}

pub(super) fn credentials_of(grant: Grant) -> Credentials {
    let Space { pid, epoch } = grant.space;
    Credentials { pid, epoch, token: grant.token }
}

impl Server {
    /// Opens a board with these parameters, which takes packets at `addr`. One of its processes is offered to all, with a range of
    /// the first pool's size. Beside that pool's memory it has `store_bytes` for the key-value store; with 0 there is no store. Calls of
    /// offloads have the server's own limits. Errors: the address can't be had, a parameter is out of range, the machine has less memory.
    pub fn open(addr: SocketAddr, config: Config, store_bytes: u64) -> Result<Server, BoardError> {
        Server::open_at(&At::Udp(addr), config, store_bytes)
    }

    /// The same on a UDP socket or an interface. Errors: the interface can't be used, too.
    pub fn open_at(at: &At, config: Config, store_bytes: u64) -> Result<Server, BoardError> {
        config.check()?;
        let (page, bytes) = (config.pools[0].size, config.pools[0].bytes());
        let processes_max = config.processes_max.saturating_sub(1);
        let config = with_offloads(config, store_bytes);
        config.check()?;
        let memory = Fresh::new(config.bytes())?;
        let secret: [u8; 16] = draw_token()?.bytes().try_into().map_err(io::Error::other)?;
        let seed = Secret::new(secret).seed("store");
        let mut board = Board::new(config, Secret::new(secret), memory)?;
        board.prefault();
        // Without huge pages it works as well.
        board.tables().into_iter().for_each(|table| _ = prefer_huge(table));
        let data_bytes_max = board.config().data_bytes_max;
        let port = Port::open(at, data_bytes_max)?;
        let costs = Costs { data_bytes_max, read_bytes_max: board.config().read_bytes_max };
        let arrivals = Arrivals::new(costs, Secret::new(secret).seed("arrivals"));
        let (mut poller, commands) = (Poller::new(), Commands::new()?);
        let (socket_number, commands_number) = (poller.add(&port)?, poller.add(&commands)?);
        let mut offloads = Offloads::default();
        let (mut names, chase) = (Names::default(), board.begin(Quotas::default())?);
        let number = offloads.add(chase.space, Box::new(PointerChase));
        names.add_own("chase", number, credentials_of(chase), 0);
        let (loss, random) = (Loss::default(), SplitMix(0));
        let mut host = Host {
            board,
            offloads,
            names,
            threads: Threads::new(GIVEN),
            to_all: None,
            port,
            arrivals,
            page,
            out: Vec::new(),
            long_calls: Background::new(LONG_CALLS_OTHERS),
            slow_path: Background::new(SLOW_PATH_OTHERS),
            unsent: 0,
            loss,
            random,
            lost: [0; 2],
        };
        if store_bytes > 0 {
            host.add_store(store_bytes, seed)?;
        } else {
            // Clients of the store must not reach another offload.
            host.offloads.skip();
        }
        let processes_max = processes_max.into();
        Ok(Server {
            host,
            poller,
            socket_number,
            commands,
            commands_number,
            more: false,
            bytes,
            processes_max,
        })
    }

    /// Begins the process whose memory is offered to all. Returns the set-up service's offer.
    pub fn offer(&mut self) -> Result<Offer, BoardError> {
        // It may allocate as much again: frames are taken at the first access.
        // Ranges that clients share with it stay when they end, as do their allocations in it.
        let shared = self.bytes.div_ceil(TO_ALL_SHARED);
        let bounds = Bounds { reserved: 0, limit: self.bytes.saturating_mul(2), shared };
        let to_all = self.host.begin(self.bytes, bounds)?;
        self.host.to_all = Some(to_all.0);
        Ok(Offer {
            to_all,
            bounds,
            page: self.host.page,
            udp_port: self.host.port.addr()?.port(),
            mtu_bytes: self.host.board.config().data_bytes_max,
            memory_ns: self.host.board.config().retry_keep.0,
            processes_max: self.processes_max,
            reserve_bytes_max: self.bytes,
        })
    }

    /// Begins a process with a range of `bytes` bytes, which ends with the board. Errors: the board has no process or no addresses left.
    pub fn begin(&mut self, bytes: u64) -> Result<(Credentials, Range), BoardError> {
        self.host.create(bytes, false)
    }

    /// Where it takes packets.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.host.port.addr()
    }

    /// Access from other threads.
    pub fn handle(&self) -> Handle<Host> {
        self.commands.handle()
    }

    /// Has [`turn`](Self::turn) also wait for input on a descriptor. Returns its number for [`ready`](Self::ready).
    pub fn watch(&mut self, fd: impl AsFd) -> io::Result<usize> {
        self.poller.add(fd)
    }

    /// Whether there was input on a descriptor when the board last waited.
    pub fn ready(&self, number: usize) -> bool {
        self.poller.ready(number)
    }

    /// Counters of board and socket, drops and refusals included.
    pub fn counts(&mut self) -> Counts {
        let [lost_in, lost_out] = self.host.lost;
        let own = [
            ("unsent", self.host.unsent),
            ("over_share", self.host.arrivals.dropped()),
            ("hosts_refused", self.host.arrivals.refusals()),
            ("too_long", self.host.arrivals.too_long()),
            ("lost_in", lost_in),
            ("lost_out", lost_out),
        ];
        Counts::default()
            .of("board", self.host.board.counters().iter())
            .of("refused", self.host.board.refusals().iter())
            .of("socket", own.into_iter().chain(self.host.port.counts()))
    }

    /// Loses packets on purpose from now on, in both directions.
    pub fn lose(&mut self, loss: Loss) {
        (self.host.loss, self.host.random) = (loss, SplitMix(loss.seed));
    }

    /// Waits until something happens, at most until `until`, and handles it: packets, the slow path, commands. Errors: the socket
    /// failed.
    pub fn turn(&mut self, until: Option<Nanos>) -> io::Result<()> {
        let until = match self.more {
            true => Some(Nanos::ZERO),
            false => until.into_iter().chain(self.host.next_call()).min(),
        };
        self.poller.wait(until)?;
        if std::mem::take(&mut self.more) || self.poller.ready(self.socket_number) {
            self.more = self.host.receive()?;
        }
        if self.poller.ready(self.commands_number) {
            self.commands.clear();
            while let Some(command) = self.commands.next() {
                command(&mut self.host);
            }
            // A command that waited for the board has taken packets off the port.
            self.more |= !self.host.arrivals.is_empty();
        }
        self.host.go_on();
        self.host.execute();
        self.host.send(None);
        self.more |= self.host.board.has_new_calls();
        Ok(())
    }
}
