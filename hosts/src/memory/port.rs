//! EDM's messages as frames on a link.

use p4rack_fabric::Machine;
use p4rack_netdev::packet::{Frames, Options};
use p4rack_netdev::{Links, PacketSocket, Poller, link, packet};
use p4rack_wire::ethernet::overhead;
use p4rack_wire::{EtherType, MacAddr, Nanos, WireRate, edm};
use serde::{Deserialize, Serialize};
use std::io;

/// Time by which a late driver may catch up with its link.
const CATCH_UP: Nanos = Nanos::from_millis(1);

/// A node's attachment, and the other nodes.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// Interfaces to the rack, one for each of its switches. The host's agent may use them as well: only frames of `ether_type`
    /// come here. All frames go over all of them, and the node drops the copies.
    pub interfaces: Vec<String>,
    /// EtherType of EDM.
    pub ether_type: EtherType,
    /// Rate of a link, which frames are paced to: a veth has none of its own.
    pub rate_bps: u64,
    /// All nodes of the rack. A node's number is its position.
    pub nodes: Vec<NodeAddress>,
    /// Number of this node.
    pub own: u16,
}

/// A host of the rack, as a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// Name of the host.
    pub name: String,
    /// Its MAC address, the only source that its port of the switch accepts.
    pub mac: MacAddr,
}

/// Why a node did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum EdmPortError {
    /// The interface can't be used.
    #[error(transparent)]
    Device(#[from] p4rack_netdev::Error),
    /// No interface is named.
    #[error("no interface is named: a node has a link to each switch of its rack")]
    NoInterface,
    /// The number of this node is none of the rack's.
    #[error("node {0} is none of the rack's {1}")]
    NoSuchNode(u16, usize),
    /// The interface is not the link of this node's host.
    #[error(transparent)]
    NotHere(#[from] NotHere),
    /// The interface disappeared; of several, the last one.
    #[error("interface `{0}` vanished: the other end was removed, or the switch's namespace ended")]
    Gone(String),
    /// Waiting for frames failed.
    #[error("waiting for packets: {0}")]
    Wait(io::Error),
}

/// The interface is not a host's link, so no frame was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "interface `{interface}` is not {host}'s link to the rack: {why}; run this on {host}, e.g. `p4rack exec {host} -- COMMAND`{or}"
)]
pub struct NotHere {
    /// The interface.
    pub interface: String,
    /// Name of the host whose link it should be.
    pub host: String,
    /// Evidence of it.
    pub why: String,
    /// An alternative.
    pub or: String,
}

/// Checks that an interface is the link of `nodes[own]`: it has the host's MAC address, or the host's agent, whose TAP interface
/// has that address, has the link, which then has no address of the system's.
fn check_place(
    links: &mut Links,
    interface: &str,
    nodes: &[NodeAddress],
    own: &NodeAddress,
) -> Result<(), EdmPortError> {
    let all = links.all()?;
    let is_host = all.iter().any(|(_, link)| link.mac == own.mac);
    let address = link::ipv4_of(interface);
    let given = all.iter().find(|(name, _)| name == interface).map(|(_, link)| link);
    let is_agents = is_host && address.is_none();
    if given.is_some_and(|link| link.mac == own.mac) || is_agents {
        return Ok(());
    }
    let other = nodes.iter().find(|node| all.iter().any(|(_, link)| link.mac == node.mac));
    let (why, or) = match (other, address) {
        (Some(other), _) if other.name != own.name => {
            (format!("this is {}", other.name), format!(", or give {} as the name of this host", other.name))
        }
        (_, Some(address)) if is_host => (
            format!("the system itself uses it, with the address {address}"),
            ", and name its interface to the switch".to_owned(),
        ),
        _ => (
            format!("no interface here has {}'s MAC address {}", own.name, own.mac),
            format!(
                "; on a machine without an agent, give the link that address: `ip link set dev INTERFACE address {}`",
                own.mac
            ),
        ),
    };
    Err(NotHere { interface: interface.to_owned(), host: own.name.clone(), why, or }.into())
}

/// A machine of EDM's: messages with the numbers of the nodes that they come from and go to.
pub(super) trait EdmMachine:
    for<'a> Machine<Received<'a> = (u16, &'a [u8]), Sent = u16, Buffer = Vec<u8>>
{
}

impl<M: for<'a> Machine<Received<'a> = (u16, &'a [u8]), Sent = u16, Buffer = Vec<u8>>> EdmMachine for M {}

/// Counters of a port; the node and the kernel have their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStats {
    /// Frames that are not for this node, or of a sender that is none of the rack's.
    pub foreign: u64,
    /// Frames too short for their headers.
    pub malformed: u64,
    /// Errors while reading the link.
    pub read_errors: u64,
    /// Links whose interface vanished.
    pub links_gone: u64,
    /// Counters of the sockets. They include the kernel's drops.
    pub socket: packet::Stats,
}

/// A node's links, one for each switch.
#[derive(Debug)]
pub(super) struct EdmPort {
    config: PortConfig,
    sockets: Vec<PacketSocket>,
    /// Sockets whose interface has vanished.
    gone: Vec<bool>,
    links: Links,
    /// Addresses with their nodes, sorted.
    numbers: Vec<(MacAddr, u16)>,
    rate: WireRate,
    free_at: Nanos,
    stats: PortStats,
    message: Vec<u8>,
    frame: Vec<u8>,
}

impl EdmPort {
    /// Opens the interfaces in the calling thread's network namespace. They must be up, and the links of this node's host.
    pub fn open(config: PortConfig) -> Result<EdmPort, EdmPortError> {
        let Some(own) = config.nodes.get(usize::from(config.own)) else {
            return Err(EdmPortError::NoSuchNode(config.own, config.nodes.len()));
        };
        if config.interfaces.is_empty() {
            return Err(EdmPortError::NoInterface);
        }
        let mut links = Links::open()?;
        let options = Options { frames: Frames::Only(config.ether_type), ..Options::default() };
        let mut sockets = Vec::new();
        for interface in &config.interfaces {
            check_place(&mut links, interface, &config.nodes, own)?;
            sockets.push(PacketSocket::open(interface, &options)?);
        }
        let mut numbers: Vec<_> = config.nodes.iter().map(|node| node.mac).zip(0..).collect();
        numbers.sort_unstable();
        let rate = WireRate::new(config.rate_bps);
        let (message, frame) = (Vec::with_capacity(packet::MAX_FRAME), Vec::with_capacity(packet::MAX_FRAME));
        let (free_at, stats) = (Nanos::ZERO, PortStats::default());
        let gone = vec![false; sockets.len()];
        Ok(EdmPort { config, sockets, gone, links, numbers, rate, free_at, stats, message, frame })
    }

    /// Its configuration.
    pub fn config(&self) -> &PortConfig {
        &self.config
    }

    /// Adds its links to what a poller waits for. Returns their numbers there.
    pub fn watch(&self, poller: &mut Poller) -> Result<Vec<usize>, EdmPortError> {
        self.sockets
            .iter()
            .map(|socket| poller.add(socket))
            .collect::<io::Result<_>>()
            .map_err(EdmPortError::Wait)
    }

    /// Reads received frames of a link, at most a batch, and hands each message with the number of its sender to a node.
    pub fn receive(&mut self, nth: usize, node: &mut impl EdmMachine) -> Result<(), EdmPortError> {
        let (own, ether_type) = (self.config.nodes[usize::from(self.config.own)].mac, self.config.ether_type);
        let (numbers, stats) = (&self.numbers, &mut self.stats);
        let read = self.sockets[nth].receive(|frame, at| match edm::parse_frame(frame, ether_type) {
            None => stats.malformed += 1,
            Some((ethernet, _)) if ethernet.dst != own => stats.foreign += 1,
            Some((ethernet, bytes)) => {
                match numbers.binary_search_by_key(&ethernet.src, |(address, _)| *address) {
                    Ok(nth) => node.handle_link((numbers[nth].1, bytes), at, at),
                    Err(_) => stats.foreign += 1,
                }
            }
        });
        match read {
            Ok(_) => Ok(()),
            // A link that is down comes back; one that is gone does not.
            Err(_) if self.links.exists(&self.config.interfaces[nth]) => {
                self.stats.read_errors += 1;
                Ok(())
            }
            // It was reported.
            Err(_) if std::mem::replace(&mut self.gone[nth], true) => Ok(()),
            Err(_) => {
                self.stats.links_gone += 1;
                let interface = &self.config.interfaces[nth];
                if self.stats.links_gone == self.sockets.len() as u64 {
                    return Err(EdmPortError::Gone(interface.clone()));
                }
                tracing::warn!(
                    interface,
                    "the interface vanished; the other switch has a copy of each frame"
                );
                Ok(())
            }
        }
    }

    /// When the link is free for the next frame.
    pub fn free_at(&self) -> Nanos {
        self.free_at
    }

    /// Sends a node's messages, until it has none or the link is busy.
    pub fn drain(&mut self, node: &mut impl EdmMachine, now: Nanos) {
        let mut message = std::mem::take(&mut self.message);
        while self.free_at <= now
            && let Some(to) = node.poll_link(now, &mut message)
        {
            self.send(to, &message, now);
        }
        self.message = message;
        self.sockets.iter_mut().for_each(PacketSocket::flush);
    }

    fn send(&mut self, to: u16, message: &[u8], now: Nanos) {
        let Some(NodeAddress { mac: dst, .. }) = self.config.nodes.get(usize::from(to)) else { return };
        let src = self.config.nodes[usize::from(self.config.own)].mac;
        let mut length = 0;
        for socket in &mut self.sockets {
            edm::emit_frame(*dst, src, self.config.ether_type, message, &mut self.frame);
            length = self.frame.len();
            socket.send(&mut self.frame);
        }
        let start = self.free_at.max(now.saturating_sub(CATCH_UP));
        self.free_at = start.saturating_add(self.rate.time(overhead::wire_bytes(length as u64)));
    }

    /// Its counters, of all links together.
    pub fn stats(&mut self) -> PortStats {
        let each = self.sockets.iter_mut().map(PacketSocket::stats);
        PortStats { socket: each.fold(packet::Stats::default(), |sum, one| sum + one), ..self.stats }
    }
}
