//! Transports for messages, as machines without I/O: TCP (Cubic, DCTCP, or without congestion control) and a
//! receiver-driven scheme.
//!
//! A flow's first frame carries data: connections are not set up. Each message starts a new frame, because
//! the sender pushes each write, without Nagle's algorithm.

pub(crate) mod rds;
pub(crate) mod tcp;
pub(crate) mod wire;

use serde::{Deserialize, Serialize};

/// Transport of a traffic's messages.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// Plain Ethernet frames, without acknowledgements or retransmissions.
    #[default]
    Raw,
    /// TCP without congestion control: only the window limits. For networks that control congestion
    /// themselves.
    Tcp,
    /// TCP Cubic.
    Cubic,
    /// DCTCP; the switch marks frames.
    Dctcp,
    /// Receiver-driven, like Homa.
    Rds,
}

impl Transport {
    /// Whether it is a variant of TCP.
    pub fn is_tcp(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Cubic | Transport::Dctcp)
    }

    /// Maximum bytes of a message in a frame, and the bytes of headers besides.
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
    /// TCP: receive window in bytes.
    pub window_bytes: u32,
    /// TCP: minimum retransmission timeout.
    pub rto_min_us: u64,
    /// TCP: minimum time before the last frame is sent again as a probe.
    pub probe_min_us: u64,
    /// Queue depth of a port, in bytes, above which the switch marks frames.
    pub ecn_threshold_bytes: u64,
    /// RDS: bytes of a message sent without a grant.
    pub rds_blind_bytes: u32,
    /// RDS: number of messages, oldest first, to which a receiver grants in turn; 0 is all.
    pub rds_active: usize,
    /// RDS: silence after which frames count as lost.
    pub rds_timeout_us: u64,
}

impl Default for TransportSpec {
    /// Linux's values for TCP, those of PL2's §6.1 for RDS.
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
