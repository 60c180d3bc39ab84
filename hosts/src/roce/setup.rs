//! Set-up of a connection between two adapters: over gRPC, while their frames travel on a link of their own.
//!
//! A connection lasts as long as the call that set it up. So a caller that dies or loses the network leaves nothing behind: HTTP/2's
//! pings notice it within [`SILENCE_MAX`].

use super::error::SetupError;
use p4rack_fabric::common::SplitMix;
use p4rack_fabric::roce::{Adapter, Config, Connection, PairError, Party, RegisteredMemory, Rights};
pub use p4rack_fabric::roce::{Offer, Token};
use p4rack_netdev::clock;
use p4rack_p4rt::p4rack::roce::v1::roce_client::RoceClient;
use p4rack_p4rt::p4rack::roce::v1::{self, AttachRequest, AttachResponse, ReserveRequest, ReserveResponse};
use p4rack_p4rt::transport::innermost;
use p4rack_p4rt::transport::tls::{ClientTls, objection};
use p4rack_wire::MacAddr;
use p4rack_wire::roce::QPN_MAX;
use p4rack_wire::roce::frame::Path;
use std::fs::File;
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status, Streaming};

/// Interval of pings on a silent connection, and how long to wait for the answer.
pub const KEEPALIVE: Duration = Duration::from_secs(2);
/// Maximum time until a dead peer is detected.
pub const SILENCE_MAX: Duration = Duration::from_secs(4);
/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// Queue pairs of a connection at most.
pub const PAIRS_MAX: u32 = 2_048;
/// Source ports of RoCEv2, the dynamic ones.
const SOURCE_PORTS: std::ops::RangeInclusive<u16> = 0xc000..=0xffff;

/// Addresses of an adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// Of the interface.
    pub mac: MacAddr,
    /// Of the adapter: the kernel's on an interface that they share, otherwise one that the kernel doesn't have.
    pub ip: Ipv4Addr,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Its addresses.
    pub station: Station,
    /// UDP port from which it sends.
    pub udp_port: u16,
    /// Number of its queue pair.
    pub qpn: u32,
    /// Sequence number of its first packet.
    pub psn: u32,
}

impl End {
    /// An end with numbers drawn from `random`.
    pub fn draw(station: Station, random: &mut SplitMix) -> End {
        let ports = u64::from(SOURCE_PORTS.end() - SOURCE_PORTS.start()) + 1;
        End {
            station,
            udp_port: SOURCE_PORTS.start() + (random.next() % ports) as u16,
            // 0 and 1 are the standard's own; others of the connection follow.
            qpn: 2 + (random.next() % u64::from(QPN_MAX - 1 - PAIRS_MAX)) as u32,
            psn: random.next() as u32 & QPN_MAX,
        }
    }

    /// The end of another queue pair of the same connection.
    pub fn nth(&self, number: u32) -> End {
        End { qpn: self.qpn.saturating_add(number), ..*self }
    }

    /// Whether that many queue pairs have numbers from this end's on. Errors: some would be beyond the largest.
    pub fn check_pairs(&self, pairs: u32) -> Result<(), String> {
        let last = u64::from(self.qpn) + u64::from(pairs.saturating_sub(1));
        match last <= u64::from(QPN_MAX) {
            true => Ok(()),
            false => {
                Err(format!("end.qpn is {}; {pairs} queue pairs from there go beyond {QPN_MAX}", self.qpn))
            }
        }
    }

    /// This end's view of the connection with `peer`.
    pub fn connection(&self, peer: &End, domain: u32) -> Connection {
        let path = Path {
            src_mac: self.station.mac,
            dst_mac: peer.station.mac,
            src_ip: self.station.ip,
            dst_ip: peer.station.ip,
            src_port: self.udp_port,
            dscp: 0,
        };
        Connection { path, peer_qpn: peer.qpn, send_psn: self.psn, receive_psn: peer.psn, domain }
    }

    /// As a message.
    pub fn message(&self) -> v1::End {
        v1::End {
            mac: self.station.mac.0.to_vec(),
            ip: self.station.ip.octets().to_vec(),
            udp_port: self.udp_port.into(),
            qpn: self.qpn,
            psn: self.psn,
        }
    }

    /// From a message. Errors: which field is missing or out of range.
    pub fn of(message: Option<&v1::End>) -> Result<End, String> {
        let message = message.ok_or("end is missing")?;
        let mac = <[u8; 6]>::try_from(message.mac.as_slice())
            .map_err(|_| format!("end.mac has {} bytes; a MAC address has six", message.mac.len()))?;
        let ip = <[u8; 4]>::try_from(message.ip.as_slice())
            .map_err(|_| format!("end.ip has {} bytes; an IPv4 address has four", message.ip.len()))?;
        let udp_port = u16::try_from(message.udp_port)
            .map_err(|_| format!("end.udp_port {} is too large", message.udp_port))?;
        for (name, number, least) in [("qpn", message.qpn, 2), ("psn", message.psn, 0)] {
            if !(least..=QPN_MAX).contains(&number) {
                return Err(format!("end.{name} is {number}; expected {least} to {QPN_MAX}"));
            }
        }
        let mac = MacAddr(mac);
        if mac.0[0] & 1 == 1 {
            return Err(format!("end.mac {mac} is a group's; expected one station's"));
        }
        let station = Station { mac, ip: Ipv4Addr::from(ip) };
        Ok(End { station, udp_port, qpn: message.qpn, psn: message.psn })
    }
}

/// Memory that the server offers, as a message.
pub(crate) fn region(offer: &Offer) -> v1::Region {
    v1::Region {
        key: offer.key,
        address: offer.address,
        bytes: offer.bytes,
        readable: offer.rights.read,
        writable: offer.rights.write,
        modifiable: offer.rights.atomic,
    }
}

/// Memory that the server offers, from a message.
fn offer_of(message: &v1::Region) -> Offer {
    let rights = Rights { read: message.readable, write: message.writable, atomic: message.modifiable };
    Offer { key: message.key, address: message.address, bytes: message.bytes, rights }
}

/// An unguessable token. Errors: the system has no random numbers.
pub fn draw_token() -> io::Result<Token> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Token::new(bytes))
}

/// Checks that the parameters of both ends of a connection match. Errors: the difference.
pub(crate) fn agree(mtu_bytes: u32, reads_max: u32, ours: &Config) -> Result<(), String> {
    let ours = [("mtu_bytes", mtu_bytes, ours.mtu.bytes()), ("reads_max", reads_max, ours.reads_max as u32)];
    match ours.into_iter().find(|(_, theirs, ours)| theirs != ours) {
        Some((name, theirs, ours)) => {
            Err(format!("{name} is {theirs} there and {ours} here: both ends need the same"))
        }
        None => Ok(()),
    }
}

/// Numbers for queue pairs, sequences and keys that no other process draws too.
pub fn numbers() -> SplitMix {
    SplitMix(clock::wall_ns() ^ u64::from(std::process::id()) << 32)
}

/// Adds queue pairs whose numbers follow those of both ends. Errors: why not; none is left then.
pub(crate) fn add_pairs<M: RegisteredMemory>(
    adapter: &mut Adapter<M>,
    ends: &[End; 2],
    pairs: u32,
    domain: u32,
) -> Result<(), PairError> {
    add_pairs_of(adapter, ends, pairs, domain, Party::Peer(ends[1].station.ip))
}

/// The same, whose frames take the turns of a party.
pub(crate) fn add_pairs_of<M: RegisteredMemory>(
    adapter: &mut Adapter<M>,
    ends: &[End; 2],
    pairs: u32,
    domain: u32,
    party: Party,
) -> Result<(), PairError> {
    for number in 0..pairs {
        let [own, peer] = ends.map(|end| end.nth(number));
        if let Err(error) = adapter.add_pair_of(own.qpn, own.connection(&peer, domain), party) {
            remove_pairs(adapter, ends, number, domain);
            return Err(error);
        }
    }
    Ok(())
}

/// Removes those of these queue pairs that are still there: they may have gone before, and their numbers be others'.
pub(crate) fn remove_pairs<M: RegisteredMemory>(
    adapter: &mut Adapter<M>,
    ends: &[End; 2],
    pairs: u32,
    domain: u32,
) {
    for number in 0..pairs {
        let [own, peer] = ends.map(|end| end.nth(number));
        if adapter.connection(own.qpn) == Some(&own.connection(&peer, domain)) {
            adapter.remove_pair(own.qpn);
        }
    }
}

/// A number of queue pairs, as messages have it. Errors: there are too many.
pub(crate) fn pairs_of(field: &str, number: u32) -> Result<u32, String> {
    match number.max(1) {
        pairs if pairs <= PAIRS_MAX => Ok(pairs),
        pairs => Err(format!("{field} is {pairs}; expected at most {PAIRS_MAX}")),
    }
}

/// A set-up service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// `host:port`
    pub addr: String,
    /// Encryption; `None` is plain text.
    pub tls: Option<ClientTls>,
}

/// An open call: its resources are released when this is dropped.
#[derive(Debug)]
pub(crate) struct Call<T>(Streaming<T>);

impl<T> Call<T> {
    /// Resolves when the server has ended the call, or is gone. Returns why.
    pub(crate) async fn ended(&mut self) -> String {
        match self.0.message().await {
            Ok(_) => "the server ended the call".to_owned(),
            Err(status) => status.message().to_owned(),
        }
    }
}

/// A connection. It ends when this is dropped.
#[derive(Debug)]
pub struct Connected {
    /// Our queue pair.
    pub qpn: u32,
    /// Parameters for adding it to our adapter.
    pub connection: Connection,
    /// Memory of the server that the connection reaches.
    pub offers: Vec<Offer>,
    call: Call<AttachResponse>,
}

impl Connected {
    /// Resolves when the server has ended the connection, or is gone. Returns why.
    pub async fn ended(&mut self) -> String {
        self.call.ended().await
    }
}

/// Private memory of a pool. It is freed when this is dropped.
#[derive(Debug)]
pub struct Reserved {
    /// Its regions.
    pub offers: Vec<Offer>,
    /// For parties that may attach to it.
    pub token: Token,
    call: Call<ReserveResponse>,
}

impl Reserved {
    /// Resolves when the pool is gone, and the memory with it. Returns why.
    pub async fn ended(&mut self) -> String {
        self.call.ended().await
    }
}

impl Server {
    /// A channel to it.
    pub(crate) async fn channel(&self) -> Result<Channel, SetupError> {
        let fail = |reason: String| SetupError::Connect { addr: self.addr.clone(), reason };
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}", self.addr))
            .map_err(|error| fail(error.to_string()))?
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEPALIVE)
            .keep_alive_timeout(KEEPALIVE)
            .tcp_nodelay(true);
        if let Some(tls) = &self.tls {
            endpoint = endpoint.tls_config(tls.config()?).map_err(|error| fail(innermost(&error)))?;
        }
        endpoint.connect().await.map_err(|error| match objection(&error) {
            Some(objection) => fail(objection.to_owned()),
            None => fail(innermost(&error)),
        })
    }

    /// Connects a queue pair of ours, with a reservation if there is a token. `config` is our adapter's.
    pub async fn connect(
        &self,
        station: Station,
        config: &Config,
        token: Option<&Token>,
        random: &mut SplitMix,
    ) -> Result<Connected, SetupError> {
        self.connect_pairs(station, config, token, 1, random).await
    }

    /// The same for several queue pairs, with numbers that follow each other at both ends.
    pub(crate) async fn connect_pairs(
        &self,
        station: Station,
        config: &Config,
        token: Option<&Token>,
        pairs: u32,
        random: &mut SplitMix,
    ) -> Result<Connected, SetupError> {
        let end = End::draw(station, random);
        let request = AttachRequest {
            end: Some(end.message()),
            mtu_bytes: config.mtu.bytes(),
            reads_max: config.reads_max as u32,
            token: token.map(|token| token.bytes().to_vec()).unwrap_or_default(),
            pairs,
        };
        let mut client = RoceClient::new(self.channel().await?);
        let (answer, call) = self.answer(client.attach(request).await).await?;
        let peer = End::of(answer.end.as_ref()).map_err(|reason| self.nonsense(reason))?;
        let offers = answer.regions.iter().map(offer_of).collect();
        Ok(Connected { qpn: end.qpn, connection: end.connection(&peer, 0), offers, call })
    }

    /// Reserves memory, in regions of this many bytes.
    pub async fn reserve(&self, region_bytes: Vec<u64>) -> Result<Reserved, SetupError> {
        let count = region_bytes.len();
        let mut client = RoceClient::new(self.channel().await?);
        let (answer, call) = self.answer(client.reserve(ReserveRequest { region_bytes }).await).await?;
        let token = Token::of(&answer.token).map_err(|reason| self.nonsense(reason))?;
        let offers: Vec<Offer> = answer.regions.iter().map(offer_of).collect();
        match offers.len() == count {
            true => Ok(Reserved { offers, token, call }),
            false => Err(self.nonsense(format!("{} regions came instead of {count}", offers.len()))),
        }
    }

    /// The one answer of a call that stays open.
    pub(crate) async fn answer<T>(
        &self,
        called: Result<Response<Streaming<T>>, Status>,
    ) -> Result<(T, Call<T>), SetupError> {
        let refused = |status: Status| self.refused(&status);
        let mut call = called.map_err(refused)?.into_inner();
        let answer = call.message().await.map_err(refused)?;
        let answer = answer.ok_or_else(|| self.nonsense("no answer came".into()))?;
        Ok((answer, Call(call)))
    }

    pub(crate) fn refused(&self, status: &Status) -> SetupError {
        let is_broken = std::error::Error::source(status).is_some();
        let is_unknown = self.tls.as_ref().is_some_and(|tls| tls.identity.is_none());
        let reason = match objection(status) {
            Some(objection) => objection.to_owned(),
            // TLS closes the connection behind its objection, which may be lost with it.
            None if is_broken && is_unknown => format!(
                "{}: the connection broke. A server that demands a client certificate does that, too: --cert and --private-key give one",
                status.message()
            ),
            None => status.message().to_owned(),
        };
        SetupError::Refused { addr: self.addr.clone(), reason }
    }

    pub(crate) fn nonsense(&self, reason: String) -> SetupError {
        SetupError::Nonsense { addr: self.addr.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end() -> End {
        let station = Station { mac: MacAddr([2, 0, 0, 0, 0, 1]), ip: Ipv4Addr::new(10, 0, 0, 1) };
        End::draw(station, &mut SplitMix(7))
    }

    #[test]
    fn ends_survive_the_journey_and_their_numbers_have_24_bits() {
        let mut random = SplitMix(1);
        for _ in 0..1_000 {
            let end = End::draw(end().station, &mut random);
            assert!((2..=QPN_MAX).contains(&end.qpn) && end.psn <= QPN_MAX && end.udp_port >= 0xc000);
            assert_eq!(End::of(Some(&end.message())), Ok(end));
        }
    }

    #[test]
    fn what_is_wrong_with_an_end_is_named() {
        let refused = |change: fn(&mut v1::End)| {
            let mut message = end().message();
            change(&mut message);
            End::of(Some(&message)).unwrap_err()
        };
        assert!(End::of(None).unwrap_err().contains("end is missing"));
        assert!(refused(|end| end.mac.truncate(5)).contains("end.mac has 5 bytes"));
        assert!(refused(|end| end.mac[0] |= 1).contains("group"));
        assert!(refused(|end| end.ip.push(0)).contains("end.ip has 5 bytes"));
        assert!(refused(|end| end.udp_port = 70_000).contains("end.udp_port 70000"));
        assert!(refused(|end| end.qpn = 1).contains("end.qpn is 1"));
        assert!(refused(|end| end.psn = 1 << 24).contains("end.psn"));
    }
}
