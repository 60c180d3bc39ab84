//! The rack's wiring: a namespace for the switch, one per host, and a veth pair to each.

use crate::error::LabError;
use crate::sys;
use p4rack_codegen::Rack;
use p4rack_codegen::rack::Host;
use p4rack_fabric::common::Station;
use p4rack_netdev::link::{self, VethEnd};
use p4rack_netdev::{Links, NetNs, ethtool};
use p4rack_wire::MacAddr;
use p4rack_wire::roce::Mtu;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::Ipv4Addr;

/// Interface of a host to the switch, or to the first one of two.
pub const HOST_INTERFACE: &str = "eth0";
/// Interfaces of a host to all switches of its rack.
pub fn host_interfaces(rack: &Rack) -> Vec<String> {
    (0..rack.switch.tors).map(|tor| format!("eth{tor}")).collect()
}

/// TAP interface that applications use.
pub const TAP_INTERFACE: &str = "app0";
/// MTU of a link: a full frame, tag, shim, and some room.
pub(crate) const LINK_MTU: u32 = 1_600;
/// A full frame as the kernel counts it.
const KERNEL_FRAME_BYTES: u32 = 1_514;
/// TCP's congestion control on every host.
const CONGESTION_CONTROL: &str = "cubic";
/// File with the kernel's counters of interfaces in the calling thread's namespace; the next, of protocols.
const INTERFACES: &str = "/proc/thread-self/net/dev";
const PROTOCOLS: &str = "/proc/thread-self/net/snmp";
/// A reading of [`INTERFACES`] that takes longer was disturbed and is repeated, at most this many times.
const READ_NS: u64 = 200_000;
const READ_TRIES: usize = 20;

/// How a host's programs use its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Through the host's agent, which gives them a TAP interface.
    Agent,
    /// Through the kernel, which has the host's addresses on the link itself and sends at the link's rate, as on a host
    /// without a protocol.
    Kernel,
    /// They open the link themselves, for packets of this payload, and have a network beside it for set-ups.
    Adapter(Mtu),
}

/// Namespaces and links of a rack. They disappear with this value and the processes inside.
#[derive(Debug)]
pub struct Network {
    /// Namespace of the switch, or of both.
    pub switch: NetNs,
    /// Namespaces of the hosts, in the description's order.
    pub hosts: Vec<NetNs>,
    /// How programs use the links.
    pub access: Access,
    /// Congestion control of the hosts.
    pub tcp: String,
    /// Whether it is set per route. The kernel lets namespaces set it as default only if the machine's own
    /// default is among the permitted ones.
    tcp_by_route: bool,
}

/// Interface of a host for the set-up of adapters.
const SETUP_INTERFACE: &str = "setup0";
/// Bridge of these in the switch's namespace.
const SETUP_BRIDGE: &str = "setups";
/// First address of the set-up's network, and bits of its prefix: link-local, so no rack's own.
const SETUP_IP: Ipv4Addr = Ipv4Addr::new(169, 254, 0, 1);
const SETUP_PREFIX: u8 = 16;
/// Bytes that RDMA over UDP adds to a payload at most: IPv4, UDP, BTH, RETH, iCRC.
const ROCE_BYTES: u32 = 20 + 8 + 12 + 16 + 4;

/// Address of the switch's namespace for the set-up of adapters.
pub fn switch_setup_ip() -> Ipv4Addr {
    SETUP_IP
}

/// Address of a host for the set-up of adapters, by its position.
pub fn setup_ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::from_bits(SETUP_IP.to_bits() + 1 + host as u32)
}

/// Interface of a topology's switch at a port, as Mininet calls it.
pub(crate) fn port_interface(switch: &str, port: impl Display) -> String {
    format!("{switch}-eth{port}")
}

/// Name of a switch's interface for a port. Switches count from 0.
pub fn switch_interface(tor: usize, port: u16) -> String {
    match tor {
        0 => format!("port{port}"),
        _ => format!("tor{}-port{port}", tor + 1),
    }
}

impl Network {
    /// Creates everything; all links are up.
    pub fn create(rack: &Rack, access: Access) -> Result<Network, LabError> {
        if rack.has_shared_ports() {
            let message =
                "hosts that share a port can only be simulated (p4rack sim): give each its own port here";
            return Err(LabError::Unfit(message.to_owned()));
        }
        let switch = namespace()?;
        let (mut tcp, mut tcp_by_route) = (String::new(), false);
        let mut hosts = Vec::new();
        for host in &rack.hosts {
            let ns = namespace()?;
            (tcp, tcp_by_route) = match ns.run(|| link::set_congestion_control(CONGESTION_CONTROL))? {
                Ok(in_force) => (in_force, false),
                Err(_) => (CONGESTION_CONTROL.to_owned(), true),
            };
            for (tor, interface) in host_interfaces(rack).iter().enumerate() {
                let port = switch_interface(tor, host.port);
                Links::add_veth(
                    VethEnd { name: interface, ns: &ns, mac: None },
                    VethEnd { name: &port, ns: &switch, mac: None },
                )?;
                switch.run(|| Links::open()?.make_pipe(&port, LINK_MTU))??;
                if access != Access::Kernel {
                    ns.run(|| Links::open()?.make_pipe(interface, LINK_MTU))??;
                }
            }
            if access == Access::Kernel {
                ns.run(|| KernelLink::of_rack(rack, host).set_up().map(drop))??;
            }
            hosts.push(ns);
        }
        let network = Network { switch, hosts, access, tcp, tcp_by_route };
        match access {
            Access::Agent => {}
            Access::Kernel => network.choose_tcp(rack)?,
            Access::Adapter(mtu) => network.admit_adapters(rack, mtu.bytes())?,
        }
        Ok(network)
    }

    /// Interface of a host that its applications use.
    pub fn application_interface(&self) -> &'static str {
        match self.access {
            Access::Agent => TAP_INTERFACE,
            Access::Kernel | Access::Adapter(_) => HOST_INTERFACE,
        }
    }

    /// Gives the hosts' links the hosts' own addresses and room for packets of `mtu_bytes`, and adds the network for set-ups.
    fn admit_adapters(&self, rack: &Rack, mtu_bytes: u32) -> Result<(), LabError> {
        let mut bridges = Links::open_in(&self.switch)?;
        bridges.add_bridge(SETUP_BRIDGE)?;
        bridges.set_up(SETUP_BRIDGE)?;
        bridges.add_address(SETUP_BRIDGE, switch_setup_ip(), SETUP_PREFIX)?;
        for (position, (host, ns)) in rack.hosts.iter().zip(&self.hosts).enumerate() {
            let link_mtu = LINK_MTU.max(mtu_bytes + ROCE_BYTES);
            for (ns, name) in [(ns, HOST_INTERFACE), (&self.switch, &switch_interface(0, host.port))] {
                ns.run(|| Links::open()?.make_pipe(name, link_mtu))??;
            }
            let port = format!("setup{}", host.port);
            Links::add_veth(
                VethEnd { name: SETUP_INTERFACE, ns, mac: None },
                VethEnd { name: &port, ns: &self.switch, mac: None },
            )?;
            bridges.set_bridge(&port, SETUP_BRIDGE)?;
            bridges.set_up(&port)?;
            let mut links = Links::open_in(ns)?;
            links.set_mac(HOST_INTERFACE, host.mac)?;
            links.add_address(SETUP_INTERFACE, setup_ip(position), SETUP_PREFIX)?;
            links.set_up(SETUP_INTERFACE)?;
        }
        Ok(())
    }

    /// All namespaces: the switch's, then the hosts'.
    pub fn namespaces(&self) -> impl Iterator<Item = &NetNs> {
        std::iter::once(&self.switch).chain(&self.hosts)
    }

    /// Sets TCP's congestion control by route, where that is necessary, once the hosts have their addresses.
    pub fn choose_tcp(&self, rack: &Rack) -> Result<(), LabError> {
        for (host, ns) in rack.hosts.iter().zip(&self.hosts).filter(|_| self.tcp_by_route) {
            let mut links = Links::open_in(ns)?;
            links.set_route_congestion_control(
                self.application_interface(),
                host.ip,
                host.prefix,
                &self.tcp,
            )?;
        }
        Ok(())
    }
}

/// A host's link as the kernel should have it.
pub(crate) struct KernelLink {
    pub(crate) mac: MacAddr,
    pub(crate) ip: Ipv4Addr,
    pub(crate) prefix: u8,
    /// Rate at which it sends, in bit/s; `None`: unlimited.
    pub(crate) rate_bps: Option<u64>,
    /// Hosts that need no ARP.
    pub(crate) neighbours: Vec<(Ipv4Addr, MacAddr)>,
}

impl KernelLink {
    fn of_rack(rack: &Rack, host: &Host) -> KernelLink {
        let others = rack.hosts.iter().filter(|other| other.name != host.name);
        KernelLink {
            mac: host.mac,
            ip: host.ip,
            prefix: host.prefix,
            rate_bps: Some(host.rate_bps),
            neighbours: others.map(|other| (other.ip, other.mac)).collect(),
        }
    }

    /// Gives the link, in the calling thread's namespace, to the kernel. No offloads: what the switch gets has to be what a
    /// wire would carry.
    pub(crate) fn set_up(&self) -> Result<Links, p4rack_netdev::Error> {
        let mut links = Links::open()?;
        ethtool::offloads_off(HOST_INTERFACE)?;
        links.set_mac(HOST_INTERFACE, self.mac)?;
        links.add_address(HOST_INTERFACE, self.ip, self.prefix)?;
        if let Some(rate_bps) = self.rate_bps {
            // A NIC's queue is as long as an agent's.
            let limit_frames = Station::new(self.mac, rate_bps).queue_limit_frames as u32;
            links.set_rate(HOST_INTERFACE, rate_bps, limit_frames * KERNEL_FRAME_BYTES)?;
        }
        links.set_up(HOST_INTERFACE)?;
        for (ip, mac) in &self.neighbours {
            links.add_neighbour(HOST_INTERFACE, *ip, *mac)?;
        }
        Ok(links)
    }
}

/// A namespace without IPv6: neighbour discovery would be noise on every link.
pub(crate) fn namespace() -> Result<NetNs, LabError> {
    let ns = NetNs::create()?;
    ns.run(|| {
        for which in ["all", "default"] {
            // A kernel without IPv6 has nothing to disable.
            let _ = link::set_sysctl(&format!("ipv6/conf/{which}/disable_ipv6"), "1");
        }
    })?;
    Ok(ns)
}

/// The kernel's counters of an interface, from `/proc/net/dev`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Bytes received, including Ethernet headers.
    pub rx_bytes: u64,
    /// Frames received.
    pub rx_frames: u64,
    /// Frames dropped before sending.
    pub tx_dropped: u64,
}

impl std::ops::Add for InterfaceCounts {
    type Output = InterfaceCounts;
    fn add(self, more: InterfaceCounts) -> InterfaceCounts {
        InterfaceCounts {
            rx_bytes: self.rx_bytes + more.rx_bytes,
            rx_frames: self.rx_frames + more.rx_frames,
            tx_dropped: self.tx_dropped + more.tx_dropped,
        }
    }
}

/// Counters of an interface inside a namespace, and the time of the reading.
///
/// The clock is read before and after. If the thread was delayed in between, the reading is repeated.
pub fn interface_counts(ns: &NetNs, interface: &str) -> Result<(u64, InterfaceCounts), LabError> {
    let read = || {
        let mut best: Option<(u64, u64, String)> = None;
        for _ in 0..READ_TRIES {
            let before_ns = sys::monotonic_ns();
            let text = std::fs::read_to_string(INTERFACES).map_err(LabError::file(INTERFACES))?;
            let took_ns = sys::monotonic_ns() - before_ns;
            if best.as_ref().is_none_or(|&(_, least_ns, _)| took_ns < least_ns) {
                best = Some((before_ns + took_ns / 2, took_ns, text));
            }
            if took_ns < READ_NS {
                break;
            }
        }
        best.ok_or_else(|| LabError::measurement(INTERFACES, "not read"))
    };
    let (at_ns, _, text) = ns.run(read)??;
    let counts = parse_dev(&text, interface);
    let missing = || LabError::measurement(INTERFACES, format!("no counts of interface {interface}"));
    Ok((at_ns, counts.ok_or_else(missing)?))
}

/// Bytes that came in and went out at each port of a topology's switch, in the calling thread's namespace.
pub fn port_bytes(switch: &str) -> Result<BTreeMap<u16, [u64; 2]>, LabError> {
    let text = std::fs::read_to_string(INTERFACES).map_err(LabError::file(INTERFACES))?;
    Ok(parse_ports(&text, &port_interface(switch, "")))
}

/// The same from the kernel's text. Names of the ports' interfaces are `prefix` and a number.
fn parse_ports(text: &str, prefix: &str) -> BTreeMap<u16, [u64; 2]> {
    let ports = columns(text).filter_map(|(name, counts)| {
        let port = name.strip_prefix(prefix)?.parse().ok()?;
        Some((port, [*counts.first()?, *counts.get(8)?]))
    });
    ports.collect()
}

/// Interfaces with their counters: 8 of what came in, then 8 of what went out.
fn columns(text: &str) -> impl Iterator<Item = (&str, Vec<u64>)> {
    text.lines().filter_map(|line| {
        let (name, counts) = line.split_once(':')?;
        Some((name.trim(), counts.split_whitespace().filter_map(|word| word.parse().ok()).collect()))
    })
}

fn parse_dev(text: &str, interface: &str) -> Option<InterfaceCounts> {
    let (_, counts) = columns(text).find(|(name, _)| *name == interface)?;
    Some(InterfaceCounts {
        rx_bytes: *counts.first()?,
        rx_frames: *counts.get(1)?,
        tx_dropped: *counts.get(11)?,
    })
}

/// Datagrams that UDP sockets in a namespace lost because their buffers were full.
pub fn udp_buffer_drops(ns: &NetNs) -> Result<u64, LabError> {
    let text = ns.run(|| std::fs::read_to_string(PROTOCOLS))?.map_err(LabError::file(PROTOCOLS))?;
    parse_snmp(&text, "Udp", "RcvbufErrors")
        .ok_or_else(|| LabError::measurement(PROTOCOLS, "missing field `Udp: RcvbufErrors`"))
}

fn parse_snmp(text: &str, protocol: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(protocol)?.strip_prefix(": "));
    let (names, values) = (lines.next()?, lines.next()?);
    let index = names.split_whitespace().position(|word| word == name)?;
    values.split_whitespace().nth(index)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_counts_come_from_their_columns() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n    \
            lo:       1       2    0    0    0     0          0         0        1       2    0    0    0     0       0          0\n  \
            app0: 1514000    1000    1    2    3     4          5         6    99998      77    8    9   10    11      12         13\n";
        let counts = parse_dev(text, "app0").unwrap();
        assert_eq!(counts, InterfaceCounts { rx_bytes: 1_514_000, rx_frames: 1_000, tx_dropped: 9 });
        assert_eq!(parse_dev(text, "app"), None);
        assert_eq!(parse_dev("app0: 1 2", "app0"), None);
        assert_eq!(parse_ports(text, "app"), BTreeMap::from([(0, [1_514_000, 99_998])]));
    }

    #[test]
    fn snmp_counts_are_found_by_name() {
        let text = "Icmp: A B\nIcmp: 1 2\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 10 0 3 7 42\nUdpLite: InDatagrams\nUdpLite: 0\n";
        assert_eq!(parse_snmp(text, "Udp", "RcvbufErrors"), Some(42));
        assert_eq!(parse_snmp(text, "Udp", "Nothing"), None);
        assert_eq!(parse_snmp("", "Udp", "RcvbufErrors"), None);
    }
}
