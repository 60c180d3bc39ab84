//! Finds the interface of a host's link.

use crate::memory::NotHere;
use p4rack_fabric::remote::Link;
use p4rack_netdev::{Links, link};
use p4rack_wire::MacAddr;
use std::net::{Ipv4Addr, UdpSocket};

/// A program's host, as described.
#[derive(Clone, Copy, Debug)]
pub struct Own<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its MAC address.
    pub mac: MacAddr,
    /// Its address.
    pub ip: Ipv4Addr,
    /// Number of its links to the rack, one for each switch.
    pub links: usize,
}

/// Name of an interface to be found.
const NONE_NAMED: &str = "(none named)";

/// Properties by which an interface is recognised as a host's.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    name: String,
    mac: MacAddr,
    ip: Option<Ipv4Addr>,
}

impl Own<'_> {
    /// The interface of this host's link: the named one, or the only candidate. An adapter shares the interface that has the host's
    /// IP address, or takes the one with its MAC address; a node of EDM uses the link itself, whose addresses may be on an agent's
    /// interface. Errors: the named interface is another host's, no candidate is certain, or the kernel can't list interfaces. No
    /// frame is sent before this check.
    pub fn interface(&self, way: Link, named: Option<&str>) -> Result<String, NotHere> {
        let list = |mut links: Links| Ok((links.all()?, links.addresses()?));
        let (all, addresses) = Links::open().and_then(list).map_err(|error| {
            let interface = named.unwrap_or(NONE_NAMED);
            self.not_here(interface, format!("the kernel does not list its interfaces: {error}"))
        })?;
        // Of several addresses of an interface, this host's if it is one of them.
        let ip_of = |name: &str| {
            let of_interface = addresses.iter().filter(|(at, _)| at == name).map(|(_, ip)| *ip);
            of_interface.clone().find(|ip| *ip == self.ip).or(of_interface.clone().next())
        };
        let seen = |(name, info): (String, link::LinkInfo)| Seen { ip: ip_of(&name), mac: info.mac, name };
        self.choose(&all.into_iter().map(seen).collect::<Vec<_>>(), way, named)
    }

    /// Checks that the kernel here has this host's address, for ways that the kernel routes: without it, the machine's own routes
    /// lead elsewhere. Errors: it has not.
    pub fn address(&self) -> Result<(), NotHere> {
        UdpSocket::bind((self.ip, 0)).map(drop).map_err(|error| NotHere {
            or: ", or give the address of the memory's service (--memory; memory or board in programs)"
                .to_owned(),
            ..self.not_here(NONE_NAMED, format!("no interface here has the address {}: {error}", self.ip))
        })
    }

    fn choose(&self, all: &[Seen], way: Link, named: Option<&str>) -> Result<String, NotHere> {
        let has_ip = |seen: &&Seen| seen.ip == Some(self.ip);
        let has_mac = |seen: &&Seen| seen.mac == self.mac;
        if let Some(named) = named {
            let found = all.iter().find(|seen| seen.name == named);
            // EDM's port checks the link itself: behind an agent it has another address.
            if way == Link::Agent || found.is_some_and(|seen| has_ip(&seen) || has_mac(&seen)) {
                return Ok(named.to_owned());
            }
            let why = format!("it has neither the MAC address {} nor the address {}", self.mac, self.ip);
            return Err(self.not_here(named, why));
        }
        if way == Link::Agent && self.links > 1 {
            return self.all_links(all);
        }
        let by_mac = all.iter().find(has_mac);
        let found = match (way, by_mac) {
            (Link::Agent, Some(Seen { ip: None, .. })) => by_mac,
            // Behind an agent the link is the interface without an address. EDM's port checks that the agent is this host's.
            (Link::Agent, _) => {
                let mut bare = all.iter().filter(|seen| seen.ip.is_none() && seen.name != "lo");
                bare.next().filter(|_| bare.next().is_none())
            }
            (Link::Adapter | Link::Kernel, found) => all.iter().find(has_ip).or(found),
        };
        found.map(|seen| seen.name.clone()).ok_or_else(|| {
            let why = format!("no interface here is surely the one with MAC address {}", self.mac);
            self.not_here(NONE_NAMED, why)
        })
    }

    /// Names of all interfaces without an address, if there are as many as links: with commas between.
    fn all_links(&self, all: &[Seen]) -> Result<String, NotHere> {
        let bare = all.iter().filter(|seen| seen.ip.is_none() && seen.name != "lo");
        let mut names: Vec<&str> = bare.map(|seen| seen.name.as_str()).collect();
        names.sort_unstable();
        if names.len() == self.links {
            return Ok(names.join(","));
        }
        let why =
            format!("{} interfaces here have no address, and the host has {} links", names.len(), self.links);
        Err(self.not_here(NONE_NAMED, why))
    }

    fn not_here(&self, interface: &str, why: String) -> NotHere {
        NotHere {
            interface: interface.to_owned(),
            host: self.name.to_owned(),
            why,
            or: ", or name the link with --interface".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_found_by_what_the_rack_says_of_its_host() {
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        let ip = |last| Ipv4Addr::new(10, 0, 0, last);
        let own = Own { name: "h2", mac: mac(2), ip: ip(2), links: 1 };
        let seen = |name: &str, last, ip| Seen { name: name.to_owned(), mac: mac(last), ip };
        let lo = seen("lo", 0, Some(Ipv4Addr::LOCALHOST));
        let link = |all: &[Seen], way, named| own.choose(all, way, named).map_err(|error| error.to_string());
        // Behind an agent, whose own interface has the host's addresses.
        let behind = [lo.clone(), seen("app0", 2, Some(ip(2))), seen("eth0", 77, None)];
        assert_eq!(link(&behind, Link::Agent, None), Ok("eth0".to_owned()));
        assert_eq!(link(&behind, Link::Adapter, None), Ok("app0".to_owned()));
        // Without an agent.
        let bare = [lo.clone(), seen("eth1", 2, None), seen("eth0", 9, Some(ip(200)))];
        assert_eq!(link(&bare, Link::Agent, None), Ok("eth1".to_owned()));
        assert_eq!(link(&bare, Link::Adapter, Some("eth1")), Ok("eth1".to_owned()));
        assert!(link(&bare, Link::Adapter, Some("eth0")).unwrap_err().contains("is not h2's link"));
        // The machine's own interfaces are not a host's link.
        let machine = [lo, seen("eth0", 9, Some(ip(200)))];
        for way in [Link::Agent, Link::Adapter] {
            assert!(link(&machine, way, None).unwrap_err().contains("p4rack exec h2"));
        }
        // The kernel's routes are a host's if it has the host's address, on whichever interface.
        assert_eq!(Own { ip: Ipv4Addr::LOCALHOST, ..own }.address(), Ok(()));
        let documentation = Own { ip: Ipv4Addr::new(203, 0, 113, 77), ..own };
        let error = documentation.address().unwrap_err().to_string();
        assert!(error.contains("203.0.113.77") && error.contains("p4rack exec h2"), "{error}");
        assert!(error.contains("--memory"), "{error}");
        let several = [&behind[..], &[seen("eth1", 5, None)]].concat();
        assert!(link(&several, Link::Agent, None).unwrap_err().contains("--interface"));
        // At two switches these are the host's links.
        let twice = Own { links: 2, ..own };
        assert_eq!(twice.choose(&several, Link::Agent, None).unwrap(), "eth0,eth1");
        let error = twice.choose(&behind, Link::Agent, None).unwrap_err().to_string();
        assert!(error.contains("the host has 2 links"), "{error}");
    }
}
