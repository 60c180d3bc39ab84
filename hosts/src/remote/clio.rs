//! A range of a Clio board's memory as a way, over a UDP socket of the thread's own.

use super::{Abilities, Held, Lease, Opened, Operation, Order, Outcome, Place, Remote, RemoteError, Shape};
use super::{Opcode, Status, WordOrder, Written};
use crate::clio::{Attached, attach, client_config};
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{self, Change, Client, Refused};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{PageSize, Status as Said};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use tokio::runtime::Runtime;

/// The only board, and the only thread.
const BOARD: u16 = 0;
const THREAD: u16 = 0;
/// Bytes of the longest packet that a socket is read for.
const PACKET_BYTES: usize = 1 << 16;

struct Clio {
    client: Client,
    socket: UdpSocket,
    poller: Poller,
    abilities: Abilities,
    /// Address of the range's first byte.
    start: u64,
    out: Vec<u8>,
    input: Box<[u8]>,
}

impl Clio {
    /// Sends what the windows permit. What a full socket does not take is lost, and sent again after TIMEOUT.
    fn send(&mut self) -> Result<(), RemoteError> {
        let now = clock::now();
        while self.client.poll_link(now, &mut self.out).is_some() {
            match self.socket.send(&self.out) {
                Ok(_) => {}
                Err(error) if is_passing(error.kind()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), RemoteError> {
        loop {
            match self.socket.recv(&mut self.input) {
                Ok(bytes) => {
                    let now = clock::now();
                    self.client.handle_link((BOARD, &self.input[..bytes]), now, now);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // The board's host says that nothing listens there: perhaps it starts again.
                Err(error) if is_passing(error.kind()) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Delivers ended operations. Returns whether there were any.
    fn deliver(&mut self, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> bool {
        let mut any = false;
        while let Some((tag, outcome)) = self.client.poll_completion() {
            any = true;
            ended(tag, outcome_of(outcome));
        }
        any
    }
}

/// Whether a packet was only not sent or received now.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::OutOfMemory
    )
}

fn outcome_of(outcome: lib::Outcome<'_>) -> Outcome<'_> {
    match outcome {
        lib::Outcome::Done => Outcome::Written,
        lib::Outcome::Read(bytes) => Outcome::Read(bytes),
        lib::Outcome::Word(word) => Outcome::Word(word),
        lib::Outcome::Unknown => Outcome::Failed(Status::Unknown),
        lib::Outcome::Refused(why) => Outcome::Failed(status(why)),
        // None of them is asked for.
        lib::Outcome::Address(_) | lib::Outcome::Held(_) | lib::Outcome::Results(_) => {
            Outcome::Failed(Status::BadOperation)
        }
    }
}

fn status(why: Said) -> Status {
    match why {
        Said::NoSuchAddress | Said::Closing => Status::OutOfBounds,
        Said::NotPermitted => Status::NotPermitted,
        Said::BadLength => Status::BadLength,
        Said::Busy | Said::NoPageYet | Said::NoMemory => Status::Busy,
        _ => Status::BadOperation,
    }
}

impl Remote for Clio {
    fn abilities(&self) -> &Abilities {
        &self.abilities
    }

    fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Status> {
        self.abilities.check(&operation)?;
        let operation = match operation {
            Operation::Read { at, bytes } => lib::Operation::Read { address: self.start + at, bytes },
            Operation::Write { at, bytes } => lib::Operation::Write { address: self.start + at, bytes },
            Operation::Gather { .. } | Operation::Scatter { .. } => return Err(Status::BadOperation),
            Operation::Modify { at, opcode, operands: [first, second] } => {
                let change = match opcode {
                    Opcode::Cas => Change::CompareSwap(first, second),
                    Opcode::FetchAdd => Change::FetchAdd(first),
                    Opcode::Swap => Change::Swap(first),
                    _ => return Err(Status::BadOperation),
                };
                lib::Operation::Modify { address: self.start + at, change }
            }
        };
        let submitted = self.client.submit(THREAD, BOARD, tag, operation, clock::now());
        submitted.map_err(|refused| match refused {
            Refused::Full => Status::Full,
            Refused::BadLength => Status::BadLength,
            Refused::BadAddress | Refused::NoSuchEnd => Status::OutOfBounds,
            Refused::Unaligned => Status::BadOperation,
        })
    }

    fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), RemoteError> {
        loop {
            self.receive()?;
            self.client.handle_timeout(clock::now());
            self.send()?;
            if self.deliver(ended) || clock::now() >= until {
                return Ok(());
            }
            self.poller.wait(Some(self.client.next_call(Nanos::ZERO).map_or(until, |at| at.min(until))))?;
        }
    }
}

/// Guard of a client: the board ends its process when this is dropped.
struct ClioLease {
    _attached: Attached,
    _runtime: Runtime,
}

impl Lease for ClioLease {}

/// The board of a set-up service: the same host, at another port.
fn board(addr: &str, udp_port: u16) -> Result<SocketAddr, RemoteError> {
    let found = addr.to_socket_addrs()?.next();
    let found = found.ok_or_else(|| RemoteError::Broken(format!("{addr} has no address")))?;
    Ok(SocketAddr::new(found.ip(), udp_port))
}

/// Becomes a client of a board.
pub(super) fn open(place: Place, shape: Shape) -> Result<Opened, RemoteError> {
    let server = place.memory("a board")?;
    let runtime = super::runtime()?;
    let reserve_bytes = if place.shared { 0 } else { shape.region_bytes };
    let attached = runtime.block_on(attach(server, reserve_bytes))?;
    let (start, region_bytes) = attached.range;
    if region_bytes < shape.region_bytes {
        let needed = shape.region_bytes;
        let why = format!("the board offers {region_bytes} bytes, and {needed} are needed");
        return Err(RemoteError::Broken(why));
    }
    let page = PageSize::of_address(start)
        .map_err(|error| RemoteError::Broken(format!("the board's range at {start:#x}: {error}")))?;
    let to = board(&server.addr, attached.udp_port)?;
    let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    let mut poller = Poller::new();
    poller.add(&socket)?;
    let config = lib::Config {
        first_thread: attached.client as u16,
        ..client_config(attached.memory, attached.mtu_bytes)
    };
    let abilities = Abilities {
        region_bytes,
        read_bytes_max: config.request_bytes_max,
        write_bytes_max: config.request_bytes_max,
        whole_bytes: attached.mtu_bytes,
        edge_bytes: page.bytes(),
        pieces_max: 0,
        under_way_max: config.requests_max.into(),
        atomics: &[Opcode::Cas, Opcode::FetchAdd, Opcode::Swap],
        words: WordOrder::LittleEndian,
        writes: Written::There,
        order: Order::Dependent,
    };
    let client = Client::new(config, &[attached.credentials], attached.client);
    let (out, input) = (Vec::new(), vec![0; PACKET_BYTES].into_boxed_slice());
    let clio = Clio { client, socket, poller, abilities, start, out, input };
    let lease = ClioLease { _attached: attached, _runtime: runtime };
    Ok((Box::new(clio), Held(Some(Box::new(lease)))))
}
