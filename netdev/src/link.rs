//! Creates and configures interfaces over rtnetlink, and sets per-namespace options under `/proc/sys/net`.

use crate::carrier::carries;
use crate::error::{Context, NEED_PRIVILEGE};
use crate::netlink::{Netlink, Request, attributes, ifinfo};
use crate::{Error, NetNs, sys};
use p4rack_wire::MacAddr;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;

/// Attribute of a veth's own data: the peer.
const VETH_INFO_PEER: u16 = 1;
/// Queueing disciplines, from the kernel's `pkt_sched.h` and `rtnetlink.h`.
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_LINKLAYER_ETHERNET: u8 = 1;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
/// Bytes of a frame that the kernel doesn't count: FCS, preamble, gap; and the bytes of the smallest frame with them.
const WIRE_OVERHEAD_BYTES: u16 = 24;
const WIRE_BYTES_MIN: u16 = 84;
/// Bytes that may follow a pause without gaps: two full frames.
const TBF_BURST_BYTES: u32 = 3_200;
/// Metric of a route: TCP's congestion control.
const RTAX_CC_ALGO: u16 = 16;

/// File that lists the interfaces of the calling thread's namespace.
const INTERFACES: &str = "/proc/thread-self/net/dev";

/// The kernel's report on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkInfo {
    /// Index of the interface in its namespace.
    pub index: i32,
    /// Maximum payload of a frame.
    pub mtu: u32,
    /// MAC address of the interface.
    #[serde(with = "mac_as_text")]
    pub mac: MacAddr,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it can carry frames: it and its peer are up.
    pub carries: bool,
    /// Length of its transmit queue in frames.
    pub tx_queue_frames: u32,
    /// Frames received.
    pub rx_frames: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Received frames dropped.
    pub rx_dropped: u64,
    /// Frames dropped before sending; for a TAP, those not read fast enough.
    pub tx_dropped: u64,
}

mod mac_as_text {
    use super::MacAddr;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(mac: &MacAddr, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(mac)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<MacAddr, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// One end of a veth pair.
#[derive(Clone, Copy, Debug)]
pub struct VethEnd<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Namespace in which it appears.
    pub ns: &'a NetNs,
    /// MAC address; `None` lets the kernel choose.
    pub mac: Option<MacAddr>,
}

/// The interfaces of one network namespace.
#[derive(Debug)]
pub struct Links {
    netlink: Netlink,
}

fn denied(error: Error) -> Error {
    error.help_if_denied(NEED_PRIVILEGE)
}

impl Links {
    /// The interfaces of the calling thread's namespace.
    pub fn open() -> Result<Links, Error> {
        Netlink::open().map(|netlink| Links { netlink }).context(|| "opening a netlink socket".to_owned())
    }

    /// The interfaces of another namespace. The calling thread stays in its own.
    pub fn open_in(ns: &NetNs) -> Result<Links, Error> {
        ns.run(Links::open)?
    }

    /// Creates a veth pair, each end in its namespace; both are down.
    pub fn add_veth(a: VethEnd<'_>, b: VethEnd<'_>) -> Result<(), Error> {
        let what = || format!("creating the veth pair `{}` and `{}`", a.name, b.name);
        sys::check_name(a.name).and_then(|()| sys::check_name(b.name)).context(what)?;
        let end = |request: Request, end: VethEnd<'_>| {
            let request = request
                .text(libc::IFLA_IFNAME, end.name)
                .attribute(libc::IFLA_NET_NS_FD, &end.ns.raw_net().to_ne_bytes());
            match end.mac {
                Some(mac) => request.attribute(libc::IFLA_ADDRESS, &mac.0),
                None => request,
            }
        };
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request =
            end(Request::new(libc::RTM_NEWLINK, flags, &ifinfo(0, 0, 0)), a).nest(libc::IFLA_LINKINFO, |r| {
                r.text(libc::IFLA_INFO_KIND, "veth").nest(libc::IFLA_INFO_DATA, |r| {
                    r.nest_with(VETH_INFO_PEER, &ifinfo(0, 0, 0), |r| end(r, b))
                })
            });
        // Requested from within `a`'s namespace, so that nothing ever appears in the caller's own.
        Links::open_in(a.ns)?.netlink.call(request).context(what).map(drop).map_err(denied)
    }

    /// Creates a bridge, which is down. Without spanning tree it forwards as soon as it and its ports are up.
    pub fn add_bridge(&mut self, name: &str) -> Result<(), Error> {
        let what = || format!("creating the bridge `{name}`");
        sys::check_name(name).context(what)?;
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let request = Request::new(libc::RTM_NEWLINK, flags, &ifinfo(0, 0, 0))
            .text(libc::IFLA_IFNAME, name)
            .nest(libc::IFLA_LINKINFO, |r| r.text(libc::IFLA_INFO_KIND, "bridge"));
        self.netlink.call(request).context(what).map(drop).map_err(denied)
    }

    /// Makes an interface a port of a bridge.
    pub fn set_bridge(&mut self, name: &str, bridge: &str) -> Result<(), Error> {
        let index = self.get(bridge)?.index;
        self.change(name, (0, 0), &format!("bridge `{bridge}`"), |r| {
            r.attribute(libc::IFLA_MASTER, &index.to_ne_bytes())
        })
    }

    /// The kernel's report on an interface.
    pub fn get(&mut self, name: &str) -> Result<LinkInfo, Error> {
        let what = || format!("looking for interface `{name}`");
        sys::check_name(name).context(what)?;
        let request = Request::new(libc::RTM_GETLINK, 0, &ifinfo(0, 0, 0)).text(libc::IFLA_IFNAME, name);
        let answer =
            self.netlink.call(request).context(what).map_err(|error| match error.source.raw_os_error() {
                Some(libc::ENODEV) => error.help("`ip link` lists the interfaces there are"),
                _ => error,
            })?;
        let info = answer.as_deref().and_then(parse_link);
        info.ok_or_else(|| Error::new(what(), io::Error::from(io::ErrorKind::InvalidData)))
    }

    /// All interfaces of the calling thread's namespace, which must be this value's, with the kernel's reports on them.
    pub fn all(&mut self) -> Result<Vec<(String, LinkInfo)>, Error> {
        let text = fs::read_to_string(INTERFACES).context(|| format!("reading {INTERFACES}"))?;
        // Two lines of headings; each other line begins with a name and a colon.
        let names =
            text.lines().skip(2).filter_map(|line| line.trim_start().rsplit_once(':').map(|(name, _)| name));
        // One may vanish between the two looks.
        Ok(names.filter_map(|name| Some((name.to_owned(), self.get(name).ok()?))).collect())
    }

    /// IPv4 addresses of the interfaces of the calling thread's namespace, which must be this value's. Those of an interface are in the
    /// system's order: the first one is that of [`ipv4_of`].
    pub fn addresses(&mut self) -> Result<Vec<(String, Ipv4Addr)>, Error> {
        // `struct ifaddrmsg`: family, prefix length, flags, scope, index.
        let mut fixed = [0u8; 8];
        fixed[0] = libc::AF_INET as u8;
        let request = Request::new(libc::RTM_GETADDR, libc::NLM_F_DUMP, &fixed);
        let found =
            self.netlink.list(request).context(|| "listing the addresses of interfaces".to_owned())?;
        let names: Vec<(String, i32)> =
            self.all()?.into_iter().map(|(name, info)| (name, info.index)).collect();
        let parse = |body: &Vec<u8>| {
            let index = i32::from_ne_bytes(body.get(4..8)?.try_into().ok()?);
            let (_, local) = attributes(body.get(8..)?).find(|(kind, _)| *kind == libc::IFA_LOCAL)?;
            let (name, _) = names.iter().find(|(_, one)| *one == index)?;
            Some((name.clone(), Ipv4Addr::from(<[u8; 4]>::try_from(local).ok()?)))
        };
        Ok(found.iter().filter_map(parse).collect())
    }

    /// Whether there is such an interface.
    pub fn exists(&mut self, name: &str) -> bool {
        self.get(name).is_ok()
    }

    /// Removes an interface; for a veth, the pair.
    pub fn delete(&mut self, name: &str) -> Result<(), Error> {
        let index = self.get(name)?.index;
        let request = Request::new(libc::RTM_DELLINK, 0, &ifinfo(index, 0, 0));
        self.netlink
            .call(request)
            .context(|| format!("removing interface `{name}`"))
            .map(drop)
            .map_err(denied)
    }

    fn change(
        &mut self,
        name: &str,
        (flags, mask): (i32, i32),
        what: &str,
        with: impl FnOnce(Request) -> Request,
    ) -> Result<(), Error> {
        let index = self.get(name)?.index;
        let request = with(Request::new(libc::RTM_NEWLINK, 0, &ifinfo(index, flags as u32, mask as u32)));
        self.netlink
            .call(request)
            .context(|| format!("setting {what} of interface `{name}`"))
            .map(drop)
            .map_err(denied)
    }

    /// Switches an interface on.
    pub fn set_up(&mut self, name: &str) -> Result<(), Error> {
        self.change(name, (libc::IFF_UP, libc::IFF_UP), "the state", |r| r)
    }

    /// Disables ARP by the system on an interface that an agent or a switch drives exclusively.
    pub fn set_no_arp(&mut self, name: &str) -> Result<(), Error> {
        self.change(name, (libc::IFF_NOARP, libc::IFF_NOARP), "NOARP", |r| r)
    }

    /// Sets the maximum payload of a frame.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<(), Error> {
        self.change(name, (0, 0), &format!("MTU {mtu}"), |r| r.attribute(libc::IFLA_MTU, &mtu.to_ne_bytes()))
    }

    /// Sets the MAC address.
    pub fn set_mac(&mut self, name: &str, mac: MacAddr) -> Result<(), Error> {
        self.change(name, (0, 0), &format!("MAC address {mac}"), |r| r.attribute(libc::IFLA_ADDRESS, &mac.0))
    }

    /// Sets the length of the transmit queue in frames.
    pub fn set_tx_queue(&mut self, name: &str, frames: u32) -> Result<(), Error> {
        self.change(name, (0, 0), &format!("transmit queue {frames}"), |r| {
            r.attribute(libc::IFLA_TXQLEN, &frames.to_ne_bytes())
        })
    }

    /// Makes the kernel send at a rate, which counts all bytes of frames on a wire. Frames that would wait longer than
    /// `limit_bytes` take are dropped; senders of datagrams notice (`ENOBUFS`). Takes the kernel's token bucket
    /// (`sch_tbf`).
    pub fn set_rate(&mut self, name: &str, rate_bps: u64, limit_bytes: u32) -> Result<(), Error> {
        let index = self.get(name)?.index;
        // `struct tcmsg`: family, padding (3), index, handle, parent, info.
        let mut fixed = [0u8; 20];
        fixed[4..8].copy_from_slice(&index.to_ne_bytes());
        fixed[12..16].copy_from_slice(&TC_H_ROOT.to_ne_bytes());
        let rate = rate_bps / 8;
        // `struct tc_tbf_qopt`: the rate, a peak rate (none), limit, and two fields that attributes replace. The rate is
        // `struct tc_ratespec`: cell log, link layer, overhead, alignment, smallest frame, bytes a second.
        let mut options = [0u8; 36];
        options[1] = TC_LINKLAYER_ETHERNET;
        options[2..4].copy_from_slice(&WIRE_OVERHEAD_BYTES.to_ne_bytes());
        options[6..8].copy_from_slice(&WIRE_BYTES_MIN.to_ne_bytes());
        options[8..12].copy_from_slice(&u32::try_from(rate).unwrap_or(u32::MAX).to_ne_bytes());
        options[24..28].copy_from_slice(&limit_bytes.to_ne_bytes());
        let flags = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let request =
            Request::new(libc::RTM_NEWQDISC, flags, &fixed).text(TCA_KIND, "tbf").nest(TCA_OPTIONS, |r| {
                r.attribute(TCA_TBF_PARMS, &options)
                    .attribute(TCA_TBF_RATE64, &rate.to_ne_bytes())
                    .attribute(TCA_TBF_BURST, &TBF_BURST_BYTES.to_ne_bytes())
            });
        let what = || format!("giving interface `{name}` a rate of {rate_bps} b/s");
        self.netlink.call(request).context(what).map(drop).map_err(|error| {
            match error.source.raw_os_error() {
                Some(libc::ENOENT) => error.help("the kernel lacks sch_tbf: load that module"),
                _ => denied(error),
            }
        })
    }

    /// Adds an IPv4 address, and with it the route to its network. Does nothing if the interface has the
    /// address already.
    pub fn add_address(&mut self, name: &str, address: Ipv4Addr, prefix: u8) -> Result<(), Error> {
        let index = self.get(name)?.index;
        // `struct ifaddrmsg`: family, prefix length, flags, scope, index.
        let mut fixed = [libc::AF_INET as u8, prefix, 0, 0, 0, 0, 0, 0];
        fixed[4..].copy_from_slice(&index.to_ne_bytes());
        let mut request = Request::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &fixed)
            .attribute(libc::IFA_LOCAL, &address.octets())
            .attribute(libc::IFA_ADDRESS, &address.octets());
        if prefix < 31 {
            let broadcast = u32::from(address) | u32::MAX.checked_shr(u32::from(prefix)).unwrap_or(0);
            request = request.attribute(libc::IFA_BROADCAST, &broadcast.to_be_bytes());
        }
        self.netlink
            .call(request)
            .context(|| format!("giving interface `{name}` the address {address}/{prefix}"))
            .map(drop)
            .map_err(denied)
    }

    /// Adds a permanent neighbour, so that no ARP request is sent for it.
    pub fn add_neighbour(&mut self, name: &str, address: Ipv4Addr, mac: MacAddr) -> Result<(), Error> {
        let index = self.get(name)?.index;
        // `struct ndmsg`: family, padding (3), index, state, flags, type.
        let mut fixed = [0u8; 12];
        fixed[0] = libc::AF_INET as u8;
        fixed[4..8].copy_from_slice(&index.to_ne_bytes());
        fixed[8..10].copy_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        let request = Request::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &fixed)
            .attribute(libc::NDA_DST, &address.octets())
            .attribute(libc::NDA_LLADDR, &mac.0);
        self.netlink
            .call(request)
            .context(|| format!("adding the neighbour {address} at {mac} to interface `{name}`"))
            .map(drop)
            .map_err(denied)
    }

    /// Adds the default route, by a router on the interface's network. Replaces one that exists.
    pub fn add_default_route(&mut self, name: &str, gateway: Ipv4Addr) -> Result<(), Error> {
        let index = self.get(name)?.index;
        // `struct rtmsg`, as below: an empty destination, and the widest scope.
        let mut fixed = [0u8; 12];
        fixed[0] = libc::AF_INET as u8;
        fixed[4] = libc::RT_TABLE_MAIN;
        fixed[5] = libc::RTPROT_STATIC;
        fixed[6] = libc::RT_SCOPE_UNIVERSE;
        fixed[7] = libc::RTN_UNICAST;
        let request = Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &fixed)
            .attribute(libc::RTA_GATEWAY, &gateway.octets())
            .attribute(libc::RTA_OIF, &index.to_ne_bytes());
        self.netlink
            .call(request)
            .context(|| format!("adding the default route by {gateway} to interface `{name}`"))
            .map(drop)
            .map_err(denied)
    }

    /// Sets TCP's congestion control for connections to an interface's own network. Unlike
    /// [`set_congestion_control`], this accepts any algorithm that the kernel has.
    pub fn set_route_congestion_control(
        &mut self,
        name: &str,
        address: Ipv4Addr,
        prefix: u8,
        wanted: &str,
    ) -> Result<(), Error> {
        let index = self.get(name)?.index;
        let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
        let network = u32::from(address) & mask;
        // `struct rtmsg`: family, prefix lengths of destination and source, type of service, table, protocol,
        // scope, type, flags (4). As in the kernel's own route, which it replaces.
        let mut fixed = [0u8; 12];
        fixed[0] = libc::AF_INET as u8;
        fixed[1] = prefix;
        fixed[4] = libc::RT_TABLE_MAIN;
        fixed[5] = libc::RTPROT_KERNEL;
        fixed[6] = libc::RT_SCOPE_LINK;
        fixed[7] = libc::RTN_UNICAST;
        let request = Request::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &fixed)
            .attribute(libc::RTA_DST, &network.to_be_bytes())
            .attribute(libc::RTA_OIF, &index.to_ne_bytes())
            .attribute(libc::RTA_PREFSRC, &address.octets())
            .nest(libc::RTA_METRICS, |r| r.text(RTAX_CC_ALGO, wanted));
        self.netlink
            .call(request)
            .context(|| format!("choosing TCP congestion control {wanted} on interface `{name}`"))
            .map(drop)
            .map_err(denied)
    }

    /// Turns an interface into a plain pipe that this process drives exclusively: no offloads, no ARP or IPv6
    /// by the system, an MTU of at least `mtu`, and up. Returns the offloads that could not be switched off.
    /// Requires that the calling thread is in this value's namespace.
    ///
    /// Errors: the interface has an IPv4 address, so the system itself uses it.
    pub fn make_pipe(&mut self, name: &str, mtu: u32) -> Result<Vec<&'static str>, Error> {
        let info = self.get(name)?;
        if let Some(address) = ipv4_of(name) {
            let source = io::Error::new(io::ErrorKind::AddrInUse, format!("it has the address {address}"));
            return Err(Error::new(format!("taking interface `{name}`"), source).help(format!(
                "the system would no longer be reached over it. Name another interface, or take the \
                 address away: `ip address flush dev {name}`"
            )));
        }
        if info.mtu < mtu {
            self.set_mtu(name, mtu).map_err(|error| {
                error.help(format!("frames of {mtu} bytes after the Ethernet header must pass this link"))
            })?;
        }
        let stayed = crate::ethtool::offloads_off(name)?;
        self.set_no_arp(name)?;
        // A kernel without IPv6 has nothing to disable.
        let _ = set_sysctl(&format!("ipv6/conf/{name}/disable_ipv6"), "1");
        self.set_up(name)?;
        Ok(stayed)
    }
}

fn parse_link(answer: &[u8]) -> Option<LinkInfo> {
    let word = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?));
    let flags = word(answer.get(8..)?)?;
    let mut info = LinkInfo {
        index: word(answer.get(4..)?)? as i32,
        up: flags & libc::IFF_UP as u32 != 0,
        carries: carries(flags),
        ..LinkInfo::default()
    };
    for (kind, value) in attributes(answer.get(16..)?) {
        match kind {
            libc::IFLA_MTU => info.mtu = word(value)?,
            libc::IFLA_TXQLEN => info.tx_queue_frames = word(value)?,
            libc::IFLA_ADDRESS => info.mac = value.try_into().map(MacAddr).unwrap_or_default(),
            // `struct rtnl_link_stats64`: rx and tx packets, bytes, errors, drops.
            libc::IFLA_STATS64 => {
                let at = |i: usize| {
                    value.get(i * 8..i * 8 + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
                };
                (info.rx_frames, info.tx_frames) = (at(0), at(1));
                (info.rx_dropped, info.tx_dropped) = (at(6), at(7));
            }
            _ => {}
        }
    }
    Some(info)
}

/// The first IPv4 address of an interface in the calling thread's namespace.
pub fn ipv4_of(name: &str) -> Option<Ipv4Addr> {
    let socket = sys::socket(libc::AF_INET, libc::SOCK_DGRAM, 0).ok()?;
    let mut request = sys::ifreq(name).ok()?;
    sys::ioctl_ifreq(socket.as_fd(), libc::SIOCGIFADDR as libc::Ioctl, &mut request).ok()?;
    // SAFETY: this request fills the union with a socket address, and every bit pattern is one.
    let address = unsafe { request.ifr_ifru.ifru_addr };
    // An Internet address holds the port first, then the four bytes.
    let bytes = [2, 3, 4, 5].map(|i: usize| address.sa_data[i] as u8);
    (i32::from(address.sa_family) == libc::AF_INET).then(|| Ipv4Addr::from(bytes))
}

/// Writes a setting under `/proc/sys/net` in the calling thread's namespace, such as `ipv4/ip_forward`.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/net/{name}");
    fs::write(&path, value).context(|| format!("setting {path} to {value}"))
}

/// Reads a setting under `/proc/sys/net` in the calling thread's namespace.
pub fn sysctl(name: &str) -> Result<String, Error> {
    let path = format!("/proc/sys/net/{name}");
    fs::read_to_string(&path).map(|text| text.trim().to_owned()).context(|| format!("reading {path}"))
}

/// Sets TCP's congestion control in the calling thread's namespace. Returns the algorithm in force
/// afterwards, which is the old one if the kernel does not have `wanted`.
pub fn set_congestion_control(wanted: &str) -> Result<String, Error> {
    const CHOSEN: &str = "ipv4/tcp_congestion_control";
    let available = sysctl("ipv4/tcp_available_congestion_control")?;
    if available.split_whitespace().any(|name| name == wanted) {
        set_sysctl(CHOSEN, wanted)?;
    }
    sysctl(CHOSEN)
}
