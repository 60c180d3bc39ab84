//! A queue pair whose values were exchanged by hand: with another implementation of RoCE, or with a network adapter.

use p4rack_fabric::roce::Connection;
use p4rack_hosts::roce::pool::DOMAIN;
use p4rack_hosts::roce::setup::Station;
use p4rack_wire::MacAddr;
use p4rack_wire::roce::frame::Path;
use std::net::Ipv4Addr;

/// UDP port from which we send: any will do.
const UDP_PORT: u16 = 0xc000;

/// Values of both ends, instead of a set-up. All of them, or none.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Values exchanged by hand, instead of a set-up")]
pub(super) struct ByHand {
    /// The peer's MAC address
    #[arg(long, value_name = "MAC", requires_all = ["peer_ip", "peer_qpn", "peer_psn", "qpn", "psn"])]
    peer_mac: Option<MacAddr>,
    /// The peer's IPv4 address: the last four bytes of its GID
    #[arg(long, value_name = "IP", requires = "peer_mac")]
    peer_ip: Option<Ipv4Addr>,
    /// The peer's queue pair
    #[arg(long, value_name = "N", requires = "peer_mac", value_parser = number)]
    peer_qpn: Option<u64>,
    /// Sequence number of the first packet that the peer sends
    #[arg(long, value_name = "N", requires = "peer_mac", value_parser = number)]
    peer_psn: Option<u64>,
    /// Our queue pair
    #[arg(long, value_name = "N", requires = "peer_mac", value_parser = number)]
    qpn: Option<u64>,
    /// Sequence number of the first packet that we send
    #[arg(long, value_name = "N", requires = "peer_mac", value_parser = number)]
    psn: Option<u64>,
    /// Key of the memory (rkey): of ours where it is offered, of the peer's where it is used
    #[arg(long, value_name = "N", requires = "peer_mac", value_parser = number)]
    pub(super) rkey: Option<u64>,
    /// Address of the memory's first byte
    #[arg(long, value_name = "N", requires = "peer_mac", value_parser = number)]
    pub(super) address: Option<u64>,
}

fn number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "write a number, decimal or 0x…".to_owned())
}

impl ByHand {
    /// Our queue pair, and what it is connected with; none without these values. Errors: a number is too large.
    pub(super) fn connection(&self, own: Station) -> Result<Option<(u32, Connection)>, String> {
        let (Some(dst_mac), Some(dst_ip)) = (self.peer_mac, self.peer_ip) else { return Ok(None) };
        let narrow = |name: &str, value: Option<u64>| {
            let value = value.unwrap_or_default();
            u32::try_from(value).map_err(|_| format!("--{name}: {value} has more than 32 bits"))
        };
        let path = Path { src_mac: own.mac, dst_mac, src_ip: own.ip, dst_ip, src_port: UDP_PORT, dscp: 0 };
        let connection = Connection {
            path,
            peer_qpn: narrow("peer-qpn", self.peer_qpn)?,
            send_psn: narrow("psn", self.psn)?,
            receive_psn: narrow("peer-psn", self.peer_psn)?,
            domain: DOMAIN,
        };
        Ok(Some((narrow("qpn", self.qpn)?, connection)))
    }

    /// A key of memory. Errors: it is too large.
    pub(super) fn key(&self) -> Result<Option<u32>, String> {
        let narrow = |key| u32::try_from(key).map_err(|_| format!("--rkey: {key} has more than 32 bits"));
        self.rkey.map(narrow).transpose()
    }
}
