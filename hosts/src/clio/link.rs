//! The client library on a UDP socket to one board.

use super::{Attached, ClioError, Patience, client_config};
use crate::roce::setup::Server;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{Client, Config, Operation, Outcome, Refused};
use p4rack_netdev::{Poller, clock};
use p4rack_wire::Nanos;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};

/// Packets that are taken in a row.
const BATCH: usize = 64;
/// The only board, and the only thread.
const BOARD: u16 = 0;
const THREAD: u16 = 0;
/// Bytes of the longest packet that a socket is read for.
const PACKET_BYTES: usize = 1 << 16;

/// A client of a board, and its socket.
pub(crate) struct Link {
    client: Client,
    socket: UdpSocket,
    poller: Poller,
    out: Vec<u8>,
    input: Box<[u8]>,
}

impl Link {
    /// A link to the board whose set-up service has attached a client. `thread` is the number in words of locks, by default the one that
    /// the board has given the client.
    pub fn open(
        server: &Server,
        attached: &Attached,
        thread: Option<u16>,
        patience: Patience,
    ) -> Result<Link, ClioError> {
        let found = server.addr.to_socket_addrs()?.next();
        let found = found.ok_or_else(|| ClioError::Broken(format!("{} has no address", server.addr)))?;
        // The same host, at another port.
        let to = SocketAddr::new(found.ip(), attached.udp_port);
        let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let mut poller = Poller::new();
        poller.add(&socket)?;
        let config = Config {
            first_thread: thread.unwrap_or(attached.thread),
            ..client_config(patience, attached.memory, attached.mtu_bytes)
        };
        let client = Client::new(config, &[attached.credentials], attached.client);
        Ok(Link { client, socket, poller, out: Vec::new(), input: vec![0; PACKET_BYTES].into_boxed_slice() })
    }

    /// The client's parameters.
    pub fn config(&self) -> &Config {
        self.client.config()
    }

    /// Accepts an operation, which ends under this tag. It leaves with the next [`poll`](Self::poll).
    pub fn submit(&mut self, tag: u64, operation: Operation<'_>) -> Result<(), Refused> {
        self.client.submit(THREAD, BOARD, tag, operation, clock::now())
    }

    /// Delivers ended operations. If there are none, waits for one, at most until `until`. Errors: the socket failed.
    pub fn poll(&mut self, until: Nanos, ended: &mut dyn FnMut(u64, Outcome<'_>)) -> Result<(), ClioError> {
        loop {
            self.receive()?;
            self.client.handle_timeout(clock::now());
            self.send()?;
            let mut any = false;
            while let Some((tag, outcome)) = self.client.poll_completion() {
                any = true;
                ended(tag, outcome);
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
        while self.client.poll_link(now, &mut self.out).is_some() {
            match self.socket.send(&self.out) {
                Ok(_) => {}
                Err(error) if is_passing(error.kind()) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Takes a batch of packets: more than that must not keep `poll` from its end.
    fn receive(&mut self) -> Result<(), ClioError> {
        for _ in 0..BATCH {
            match self.socket.recv(&mut self.input) {
                Ok(bytes) => {
                    let now = clock::now();
                    self.client.handle_link((BOARD, &self.input[..bytes]), now, now);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // The board's host reports that nothing listens there: the board may start again.
                Err(error) if is_passing(error.kind()) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
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
