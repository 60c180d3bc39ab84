//! The passes of a packet in each architecture. Calls go through the enum and are inlined, so a frame pays no
//! indirect call.

mod tna;
mod v1model;

pub(crate) use tna::{Engine, PacketApps, PortData};
pub use tna::{
    PACKET_BUFFER_BYTES, PacketApp, PacketCounts, PacketPort, PacketTrigger, REPLICATION_SET,
    ReplicationConfig, ReplicationGroup, ReplicationLag, ReplicationMember, ReplicationNode, ReplicationPort,
};
pub(crate) use v1model::Returning;

use crate::arch::Arch;
use crate::pool::PacketId;
use crate::switch::Switch;
use p4rack_wire::Nanos;

impl Arch {
    /// Processes the frame in [`Switch::arrival`], which is already counted. With `THROUGH`, a frame whose
    /// egress port is idle is left in `out` and its port returned; without, every frame goes to a queue. With
    /// `GIVEN`, the frame may be sent from the buffer of its arrival.
    #[inline(always)]
    pub(super) fn arrive<const THROUGH: bool, const GIVEN: bool>(
        self,
        switch: &mut Switch,
        port: u16,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> Option<u16> {
        match self {
            Arch::V1model => v1model::arrive::<THROUGH, GIVEN>(switch, port, now, out),
            Arch::Tna => tna::arrive::<false, THROUGH>(switch, port, now, out),
            Arch::SecondTna => tna::arrive::<true, THROUGH>(switch, port, now, out),
        }
    }

    /// Runs ingress for a packet of the pool.
    pub(super) fn ingress(self, switch: &mut Switch, id: PacketId, now: Nanos) {
        match self {
            Arch::V1model => v1model::ingress(switch, id, now),
            Arch::Tna => tna::ingress::<false>(switch, id, now),
            Arch::SecondTna => tna::ingress::<true>(switch, id, now),
        }
    }

    /// Runs egress for a packet that has left the queue of the port at position `at`; `left` packets remain
    /// in it. Returns true if `out` holds the frame to send, in which case the caller still owns the packet,
    /// and false if the packet went elsewhere.
    #[inline(always)]
    pub(super) fn egress(
        self,
        switch: &mut Switch,
        id: PacketId,
        at: usize,
        left: u64,
        now: Nanos,
        out: &mut Vec<u8>,
    ) -> bool {
        match self {
            Arch::V1model => v1model::egress(switch, id, at, left, now, out),
            Arch::Tna => tna::egress::<false>(switch, id, at, left, now, out),
            Arch::SecondTna => tna::egress::<true>(switch, id, at, left, now, out),
        }
    }
}
