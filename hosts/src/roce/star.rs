//! Hosts in namespaces of this machine whose adapters reach each other, for benches and tests.
//!
//! ```text
//! host 1: roce0 ═══ bridge of frames ═══ roce0, setup0: host 2 …    or a switch, if one runs
//!        setup0 ─── bridge of set-ups ───┘
//! ```

use p4rack_netdev::link::{VethEnd, set_sysctl};
use p4rack_netdev::{Error, Links, NetNs};
use p4rack_wire::MacAddr;
use std::net::Ipv4Addr;

/// Interface for an adapter.
pub const FRAMES: &str = "roce0";
/// Interface for the set-up.
const SETUP: &str = "setup0";
/// Bytes of the longest packet of the bridge of frames: enough for each MTU of an adapter.
const MTU: u32 = 9_000;

/// Hosts. They go when this is dropped.
#[derive(Debug)]
pub struct Star {
    hosts: Vec<NetNs>,
    /// Where the bridges are.
    hub: NetNs,
}

impl Star {
    /// Creates a star of `hosts` hosts, at most 250.
    pub fn create(hosts: u8) -> Result<Star, Error> {
        Star::with(hosts, true)
    }

    /// The same without a bridge of frames. Links of [`Star::port`] end in the [hub](Star::hub), where a switch may join them.
    pub fn without_bridge(hosts: u8) -> Result<Star, Error> {
        Star::with(hosts, false)
    }

    fn with(hosts: u8, bridge_frames: bool) -> Result<Star, Error> {
        let hub = NetNs::create()?;
        // The bridges have nothing to say themselves.
        let _ = hub.run(|| set_sysctl("ipv6/conf/all/disable_ipv6", "1"))?;
        let mut bridges = Links::open_in(&hub)?;
        for bridge in ["frames", "setups"] {
            bridges.add_bridge(bridge)?;
            bridges.set_up(bridge)?;
        }
        let mut made = Vec::new();
        for host in 0..hosts.min(250) {
            let ns = NetNs::create()?;
            for (name, bridge) in [(FRAMES, "frames"), (SETUP, "setups")] {
                let port = format!("{name}-{host}");
                let mac = (name == FRAMES).then(|| Star::mac(host));
                let end = |name, ns, mac| VethEnd { name, ns, mac };
                Links::add_veth(end(name, &ns, mac), end(&port, &hub, None))?;
                bridges.set_mtu(&port, MTU)?;
                if name == SETUP || bridge_frames {
                    bridges.set_bridge(&port, bridge)?;
                }
                bridges.set_up(&port)?;
            }
            let mut links = Links::open_in(&ns)?;
            links.add_address(SETUP, Star::setup_ip(host), 24)?;
            links.set_up(SETUP)?;
            made.push(ns);
        }
        bridges.add_address("setups", Star::hub_ip(), 24)?;
        Ok(Star { hosts: made, hub })
    }

    /// Where the links of all hosts end.
    pub fn hub(&self) -> &NetNs {
        &self.hub
    }

    /// Address of the hub for set-ups.
    pub fn hub_ip() -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 9, 254)
    }

    /// The hub's end of a host's link for frames.
    pub fn port(host: u8) -> String {
        format!("{FRAMES}-{host}")
    }

    /// MAC address of a host's interface for frames.
    pub fn mac(host: u8) -> MacAddr {
        MacAddr([2, 0, 0, 0, 0, host + 1])
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u8 {
        self.hosts.len() as u8
    }

    /// The namespace of a host, from 0.
    pub fn host(&self, number: u8) -> &NetNs {
        &self.hosts[usize::from(number)]
    }

    /// Address of a host for set-ups.
    pub fn setup_ip(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 9, host + 1)
    }

    /// Address that a host's adapter may have.
    pub fn ip(host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, host + 1)
    }
}
