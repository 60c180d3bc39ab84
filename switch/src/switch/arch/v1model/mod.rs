//! v1model: the way of a packet.
//!
//! ```text
//!  pass: parser ─ verify ─ ingress ┊ egress ┊ compute ─ deparser     one packet through one entry, wherever it is
//!  arrival: a frame that has come in, to the end of its way if nothing keeps it
//!  queued:  a packet of the pool: queues, further passes
//!  copies:  groups and clones
//!  returning: packets between two passes, if that takes time
//! ```

mod arrival;
mod copies;
mod pass;
mod queued;
mod returning;

use crate::pool::PacketId;
use crate::switch::Switch;
use p4rack_wire::Nanos;

pub(super) use arrival::arrive;
pub(super) use queued::egress;
pub(crate) use returning::Returning;

pub(super) fn ingress(switch: &mut Switch, id: PacketId, now: Nanos) {
    queued::ingress(switch, id, None, now);
}
