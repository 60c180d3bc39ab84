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
#[derive(clap::Args, Debug, Default)]
pub(super) struct ByHand {
    /// The peer's MAC address
    #[arg(long, help_heading = HEADING, value_name = "MAC", requires_all = ["peer_ip", "peer_qpn", "peer_psn", "qpn", "psn"])]
    peer_mac: Option<MacAddr>,
    /// The peer's IPv4 address: the last four bytes of its GID
    #[arg(long, help_heading = HEADING, value_name = "IP", requires = "peer_mac")]
    peer_ip: Option<Ipv4Addr>,
    /// The peer's queue pair
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "peer_mac", value_parser = crate::numbers::within::<u32>(..1 << 24))]
    peer_qpn: Option<u32>,
    /// Sequence number of the first packet that the peer sends
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "peer_mac", value_parser = crate::numbers::within::<u32>(..1 << 24))]
    peer_psn: Option<u32>,
    /// Our queue pair
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "peer_mac", value_parser = crate::numbers::within::<u32>(..1 << 24))]
    qpn: Option<u32>,
    /// Sequence number of the first packet that we send
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "peer_mac", value_parser = crate::numbers::within::<u32>(..1 << 24))]
    psn: Option<u32>,
    /// Key of the memory (rkey): of our own memory to offer, or of the peer's to use
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "peer_mac", value_parser = crate::numbers::number::<u32>)]
    pub(super) rkey: Option<u32>,
    /// Address of the memory's first byte
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "peer_mac", value_parser = crate::numbers::number::<u64>)]
    pub(super) address: Option<u64>,
}

/// Each argument sets its heading itself, since later arguments have another one.
const HEADING: &str = "Values exchanged by hand, instead of a set-up";

impl ByHand {
    /// Whether there are such values.
    pub(super) fn is_used(&self) -> bool {
        self.peer_mac.is_some()
    }

    /// Our queue pair, and its connection; `None` without these values.
    pub(super) fn connection(&self, own: Station) -> Option<(u32, Connection)> {
        let (dst_mac, dst_ip) = (self.peer_mac?, self.peer_ip?);
        let path = Path { src_mac: own.mac, dst_mac, src_ip: own.ip, dst_ip, src_port: UDP_PORT, dscp: 0 };
        let connection = Connection {
            path,
            peer_qpn: self.peer_qpn?,
            send_psn: self.psn?,
            receive_psn: self.peer_psn?,
            domain: DOMAIN,
        };
        Some((self.qpn?, connection))
    }

    /// Key and address of the peer's memory; none without these values. Errors: one of the two is missing.
    pub(super) fn memory(&self) -> Result<Option<(u32, u64)>, String> {
        if !self.is_used() {
            return Ok(None);
        }
        let key = self.rkey.ok_or("give the key of the peer's memory with --rkey")?;
        Ok(Some((key, self.address.ok_or("give the address of the peer's memory with --address")?)))
    }
}
