//! Headers that the device puts in front of a packet, as bytes.

use crate::pool::Meta;
use p4rack_wire::Nanos;

/// Ingress's own header, which metadata of the port follows.
const OWN: usize = 8;

/// Bytes in front of a packet that enters ingress: header and metadata of the port.
pub(super) const fn ingress_bytes(second: bool) -> usize {
    OWN + if second { 24 } else { 8 }
}

/// The same for a packet that enters ingress once more: the program's data take the place of the port's.
pub(super) const fn again_bytes(second: bool) -> usize {
    OWN + if second { 16 } else { 8 }
}

/// Bytes in front of a packet that enters egress.
pub(super) const fn egress_bytes(second: bool) -> usize {
    if second { 28 } else { 27 }
}

/// Writes the header in front of a packet in ingress. `data` follows the header; the rest is zero.
#[inline(always)]
pub(super) fn ingress<const SECOND: bool>(
    head: &mut [u8],
    port: u16,
    arrived: u64,
    again: bool,
    data: &[u8],
) {
    // resubmit flag, padding, packet version, padding; 9 bits of the port; 48 bits of time.
    let word = u64::from(again) << 63 | u64::from(port & 0x1ff) << 48 | arrived & 0xffff_ffff_ffff;
    let Some((own, rest)) = head.split_first_chunk_mut::<OWN>() else { return };
    *own = word.to_be_bytes();
    // Of a length that is known, which needs no call.
    match (SECOND, rest.first_chunk_mut::<8>()) {
        (false, Some(rest)) => *rest = [0; 8],
        _ => rest.fill(0),
    }
    // Few packets have any.
    if !data.is_empty() {
        let count = data.len().min(rest.len());
        rest[..count].copy_from_slice(&data[..count]);
    }
}

/// Writes the header in front of a packet in egress. `left` frames wait in its queue; the packet has `len` bytes.
#[inline(always)]
pub(super) fn egress<const SECOND: bool>(
    head: &mut [u8],
    meta: &Meta,
    left: u64,
    len: usize,
    now: Nanos,
    unit_ns: u64,
) {
    if let (true, Some(last)) = (SECOND, head.get_mut(27)) {
        *last = 0;
    }
    let Some(head) = head.first_chunk_mut::<27>() else { return };
    let time_mask = if SECOND { u32::MAX } else { 0x3_ffff };
    let depth = |frames: u64| frames.min(0x7_ffff);
    let units = |ns: u64| if unit_ns <= 1 { ns } else { ns / unit_ns };
    let time = |ns: u64| u64::from(units(ns) as u32 & time_mask);
    let (enqueued, waited) = (time(meta.enqueued.0), time(now.saturating_sub(meta.enqueued).0));
    // Word by word: port, depth on arrival, time of arrival; depth on leaving, time in the queue; replication id, whether
    // it is the first copy, queue. The length ends behind them.
    let words = [
        u64::from(meta.egress_port) << 48 | depth(meta.enqueued_depth.into()) << 24 | enqueued >> 16,
        enqueued << 48 | depth(left) << 24 | waited >> 24,
        waited << 40
            | u64::from(meta.rid) << 24
            | u64::from(meta.is_first) << 16
            | u64::from(meta.priority) << 8,
    ];
    for (at, word) in words.into_iter().enumerate() {
        head[8 * at..8 * at + 8].copy_from_slice(&word.to_be_bytes());
    }
    head[23..27].copy_from_slice(&(len.min(usize::from(u16::MAX)) as u32).to_be_bytes());
}
