//! The client library on UDP sockets, one for each board.

use super::{Attached, ClioError, Patience};
use crate::roce::setup::Server;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{Client, Config, Operation, Outcome, Refused, Seat};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Packets that are taken in a row.
const BATCH: usize = 64;
/// The only thread.
const THREAD: u16 = 0;
/// Bytes of the longest packet that a socket is read for.
const PACKET_BYTES: usize = 1 << 16;

/// A client of boards, and its sockets.
pub(crate) struct Link {
    client: Client,
    /// Those of the boards.
    sockets: Vec<UdpSocket>,
    poller: Poller,
    out: Vec<u8>,
    input: Box<[u8]>,
}

impl Link {
    /// A link to the boards whose set-up services have attached a client. `thread` is the number in words of locks, by default the one
    /// that each board has given the client. Errors: there is no board, or their packets differ in length.
    pub fn open(
        servers: &[Server],
        attached: &[Attached],
        thread: Option<u16>,
        patience: Patience,
    ) -> Result<Link, ClioError> {
        let none = || ClioError::Broken("there is no board: name one at least".to_owned());
        let mtu_bytes = attached.first().ok_or_else(none)?.mtu_bytes;
        let mut poller = Poller::new();
        let mut sockets = Vec::with_capacity(servers.len());
        for (server, attached) in servers.iter().zip(attached) {
            // An answer is cut as the client expects it.
            if attached.mtu_bytes != mtu_bytes {
                let [first, other] = [mtu_bytes, attached.mtu_bytes];
                let why =
                    format!("{}: packets have {other} bytes, those of the first board {first}", server.addr);
                return Err(ClioError::Broken(why));
            }
            let socket = connect(server, attached.udp_port)?;
            poller.add(&socket)?;
            sockets.push(socket);
        }
        // What one board has forgotten is not asked for again.
        let memory = attached.iter().map(|attached| attached.memory).min().unwrap_or_default();
        let seat = |(board, attached): (u16, &Attached)| Seat {
            board,
            credentials: attached.credentials,
            number: attached.client,
            first_thread: thread.unwrap_or(attached.thread),
        };
        let seats: Vec<Seat> = (0..).zip(attached).map(seat).collect();
        let client = Client::seated(Config::on_host(patience, memory, mtu_bytes), &seats);
        Ok(Link { client, sockets, poller, out: Vec::new(), input: vec![0; PACKET_BYTES].into_boxed_slice() })
    }

    /// The client's parameters.
    pub fn config(&self) -> &Config {
        self.client.config()
    }

    /// Number of the first thread in a board's words of locks. `None`: there is no such board.
    pub fn first_thread(&self, board: u16) -> Option<u16> {
        self.client.first_thread(board)
    }

    /// Accepts an operation, which ends under this tag. It leaves with the next [`poll`](Self::poll).
    pub fn submit(&mut self, board: u16, tag: u64, operation: Operation<'_>) -> Result<(), Refused> {
        self.client.submit(THREAD, board, tag, operation, clock::now())
    }

    /// Delivers ended operations, with their board and tag. If there are none, waits for one, at most until `until`. Errors: the socket failed.
    pub fn poll(
        &mut self,
        until: Nanos,
        ended: &mut dyn FnMut(u16, u64, Outcome<'_>),
    ) -> Result<(), ClioError> {
        if self.sockets.len() > 1 {
            self.poller.wait(Some(Nanos::ZERO))?;
        }
        loop {
            self.receive()?;
            self.client.handle_timeout(clock::now());
            self.send()?;
            let mut any = false;
            while let Some((board, tag, outcome)) = self.client.poll_completion_of_seat() {
                any = true;
                ended(board, tag, outcome);
            }
            if any || clock::now() >= until {
                return Ok(());
            }
            let next = self.client.next_call(Nanos::ZERO);
            self.poller.wait(Some(next.map_or(until, |at| at.min(until))))?;
        }
    }

    /// Sends packets as the windows permit. Packets that a full socket does not take are lost, and sent again after
    /// TIMEOUT.
    fn send(&mut self) -> Result<(), ClioError> {
        let now = clock::now();
        while let Some(board) = self.client.poll_link(now, &mut self.out) {
            match self.sockets[usize::from(board)].send(&self.out) {
                Ok(_) => {}
                Err(error) if is_passing(error.kind()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes a batch of packets of each board that has sent some: more than that must not keep `poll` from its end. With one board, a look
    /// at its socket costs less than asking which one is ready.
    fn receive(&mut self) -> Result<(), ClioError> {
        let Link { client, sockets, poller, input, .. } = self;
        let is_one = sockets.len() == 1;
        for (board, socket) in (0..).zip(sockets) {
            // The poller has the sockets alone, in their order.
            if !is_one && !poller.ready(usize::from(board)) {
                continue;
            }
            for _ in 0..BATCH {
                match socket.recv(input) {
                    Ok(bytes) => {
                        let now = clock::now();
                        client.handle_link((board, &input[..bytes]), now, now);
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // Among others: the board's host reports that nothing listens there. The board may start again.
                    Err(error) if is_passing(error.kind()) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }
}

/// Checks that no two names are of the same board. Errors: their set-up services have an address in common.
pub(crate) fn all_differ(servers: &[Server]) -> Result<(), ClioError> {
    // Names that aren't resolved are an error when the board is attached.
    let resolve =
        |server: &Server| server.addr.to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect);
    let found: Vec<(&Server, Vec<SocketAddr>)> =
        servers.iter().filter(|_| servers.len() > 1).map(|server| (server, resolve(server))).collect();
    for (nth, (server, addrs)) in found.iter().enumerate() {
        let is_same =
            |(_, others): &&(&Server, Vec<SocketAddr>)| others.iter().any(|addr| addrs.contains(addr));
        if let Some((earlier, _)) = found[..nth].iter().find(is_same) {
            let why =
                format!("{} and {} are the same board: name each board once", earlier.addr, server.addr);
            return Err(ClioError::Broken(why));
        }
    }
    Ok(())
}

/// A socket to the port of the board's packets, on the host of its set-up service.
fn connect(server: &Server, udp_port: u16) -> Result<UdpSocket, ClioError> {
    let found = server.addr.to_socket_addrs()?.next();
    let found = found.ok_or_else(|| ClioError::Broken(format!("{} has no address", server.addr)))?;
    let to = SocketAddr::new(found.ip(), udp_port);
    let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Whether the error is temporary.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock
            | ErrorKind::Interrupted
            | ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown
            | ErrorKind::OutOfMemory
            // By a firewall.
            | ErrorKind::PermissionDenied
    )
}
