//! Whose addresses the ends of connections may have: those of the caller, where the rack is known.

use super::setup::Station;
use p4rack_p4rt::transport::Caller;
use std::net::IpAddr;
use tonic::Status;

/// A host of the rack, or the engine in its switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name, which its certificate has as subjectAltName.
    pub name: String,
    /// Addresses of its adapter.
    pub station: Station,
    /// Its address in the network of set-ups, if that is another one than the adapter's.
    pub setup: Option<IpAddr>,
}

/// The members of a rack. A set-up service that knows them refuses addresses that are not its caller's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members(Vec<Member>);

impl Members {
    /// The members of a rack.
    pub fn new(members: Vec<Member>) -> Members {
        Members(members)
    }

    /// Errors: MAC and IP address are not those of one member, or the caller is not that one.
    pub fn check(&self, caller: &Caller, station: &Station) -> Result<(), Status> {
        let member = self.0.iter().find(|member| member.station == *station).ok_or_else(|| {
            Status::permission_denied(format!(
                "end has the MAC address {} and the IP address {}, which no host of the rack has",
                station.mac, station.ip
            ))
        })?;
        self.check_caller(caller, &member.name)
    }

    /// Fails if the caller is known to be another member, or has another member's certificate.
    pub fn check_caller(&self, caller: &Caller, name: &str) -> Result<(), Status> {
        let denied = |why: String| {
            Err(Status::permission_denied(format!("end has the addresses of {name}, and {why}")))
        };
        if caller.is_named(name) == Some(false) {
            return denied(format!(
                "the caller's certificate is another's: it needs the subjectAltName DNS:{name}"
            ));
        }
        let addr = caller.addr.ip();
        let has = |member: &Member| IpAddr::V4(member.station.ip) == addr || member.setup == Some(addr);
        match self.0.iter().find(|member| has(member)) {
            Some(member) if member.name != name => denied(format!("the caller is {}", member.name)),
            // Where all members' addresses are known, others are strangers.
            None if self.0.iter().any(|member| member.setup.is_some()) => {
                denied(format!("the caller's address, {addr}, is no host's"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4rack_wire::MacAddr;
    use std::net::{Ipv4Addr, SocketAddr};

    fn member(n: u8, setup: bool) -> Member {
        let setup = setup.then_some(IpAddr::V4(Ipv4Addr::new(192, 168, 9, n)));
        let station = Station { mac: MacAddr([2, 0, 0, 0, 0, n]), ip: Ipv4Addr::new(10, 0, 0, n) };
        Member { name: format!("h{n}"), station, setup }
    }

    fn refused(members: &Members, caller: [u8; 4], station: Station) -> String {
        let caller = Caller { addr: SocketAddr::from((caller, 5_000)), certificate: None };
        members.check(&caller, &station).err().map(|status| status.message().to_owned()).unwrap_or_default()
    }

    #[test]
    fn an_end_has_the_callers_own_addresses() {
        let (one, two) = (member(1, true), member(2, true));
        let members = Members::new(vec![one.clone(), two.clone()]);
        assert_eq!(refused(&members, [192, 168, 9, 1], one.station), "");
        assert_eq!(refused(&members, [10, 0, 0, 1], one.station), "");
        assert!(refused(&members, [192, 168, 9, 2], one.station).contains("the caller is h2"));
        assert!(refused(&members, [192, 168, 9, 7], one.station).contains("192.168.9.7, is no host's"));
        // One's MAC address with another's IP address.
        let mixed = Station { ip: two.station.ip, ..one.station };
        assert!(refused(&members, [192, 168, 9, 1], mixed).contains("which no host of the rack has"));
    }

    #[test]
    fn a_caller_from_elsewhere_passes_where_the_network_of_set_ups_is_unknown() {
        let (one, two) = (member(1, false), member(2, false));
        let members = Members::new(vec![one.clone(), two]);
        assert_eq!(refused(&members, [172, 16, 0, 9], one.station), "");
        assert!(refused(&members, [10, 0, 0, 2], one.station).contains("the caller is h2"));
    }
}
