//! Transports that messages may use, as machines without input or output: TCP (Cubic, DCTCP, or with
//! congestion control off) and a receiver-driven scheme.
//!
//! A flow's first frame is its first data: no connection is set up. A message's bytes go in
//! frames of their own, as a sender without Nagle's algorithm pushes each of its writes.

pub(crate) mod rds;
pub(crate) mod tcp;
pub(crate) mod wire;

use serde::{Deserialize, Serialize};

/// How a traffic's messages are carried.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// As Ethernet frames, nothing acknowledged, nothing repeated.
    #[default]
    Raw,
    /// TCP without congestion control: the window alone limits. For networks that control it themselves.
    Tcp,
    /// TCP Cubic.
    Cubic,
    /// DCTCP; the switch marks.
    Dctcp,
    /// Receiver-driven, in Homa's manner.
    Rds,
}

impl Transport {
    /// Whether it is one of TCP's.
    pub fn is_tcp(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Cubic | Transport::Dctcp)
    }

    /// Most bytes of a message in a frame, and what headers take beside them.
    pub(crate) fn framing(self) -> (u64, u64) {
        match self.is_tcp() {
            true => (u64::from(tcp::MSS), tcp::HEADER_BYTES as u64),
            false => (u64::from(crate::message::MTU), 0),
        }
    }
}

/// `[transport]`: parameters of the transports.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransportSpec {
    /// TCP: receive window, bytes.
    pub window_bytes: u32,
    /// TCP: least retransmission timeout.
    pub rto_min_us: u64,
    /// TCP: least time until the last frame is sent again as a probe.
    pub probe_min_us: u64,
    /// The switch marks frames that find more than this in their port's queues.
    pub ecn_threshold_bytes: u64,
    /// RDS: bytes of a message sent without a grant.
    pub rds_blind_bytes: u32,
    /// RDS: messages, the oldest first, that a receiver grants to in turn; 0: to all.
    pub rds_active: usize,
    /// RDS: silence after which frames count as lost.
    pub rds_timeout_us: u64,
}

impl Default for TransportSpec {
    /// TCP's are Linux's, RDS's those of PL2's §6.1.
    fn default() -> TransportSpec {
        TransportSpec {
            window_bytes: 1 << 20,
            rto_min_us: 200_000,
            probe_min_us: 2_000,
            ecn_threshold_bytes: 100_000,
            rds_blind_bytes: 61 * 1_024,
            rds_active: 0,
            rds_timeout_us: 1_000,
        }
    }
}
