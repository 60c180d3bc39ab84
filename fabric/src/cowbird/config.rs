//! Parameters and counters of an engine.

use super::set::Corruption;
use crate::common::counters;
use p4rack_wire::Nanos;

/// Parameters of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Read responses written to the compute node together: the paper's BATCH_SIZE. Fewer if no more are in flight.
    pub batch_reads: usize,
    /// Maximum bytes of responses written together.
    pub batch_bytes: usize,
    /// Maximum number of entries read together.
    pub fetch_entries: u64,
    /// Entries read speculatively beside the probe of a set with nothing in flight, which saves the first requests of a burst
    /// a round trip. 0: none.
    pub guess_entries: u64,
    /// Maximum requests of an instance in flight; it buffers at most that many messages.
    pub active_max: usize,
    /// Maximum probes of a set in flight.
    pub probes_max: usize,
    /// Time between two probes of a busy set.
    pub probe_min: Nanos,
    /// Maximum time between two probes of an idle set: the interval doubles with each probe that finds nothing.
    pub probe_max: Nanos,
    /// Maximum bytes of a request, so half of a ring; at most the adapter's `message_bytes_max`.
    pub message_bytes_max: u32,
    /// Longest RDMA READ of a request's data: longer ones are read in pieces. So no response is longer than the bytes that its owner
    /// may have in flight, and the switch's buffer has room for it.
    pub piece_bytes: u32,
    /// Maximum entries of a set's request ring: the engine keeps each fetched entry until it is done.
    pub entries_max: u64,
    /// Maximum RDMA requests of a queue pair in flight; at most the adapter's `requests_max`.
    pub requests_max: usize,
    /// Maximum RDMA requests of an owner in flight while other owners have sets too, so that theirs don't queue behind it.
    pub owner_requests_max: usize,
    /// Bytes of these requests, read or written, from which on no further one starts.
    pub owner_bytes_max: usize,
    /// Requests of an instance before its owner's next one has a turn, while other owners have sets too; at least 1.
    pub turn_requests: usize,
    /// Maximum number of instances.
    pub instances_max: usize,
    /// Reads wait for all earlier writes, as in the P4 engine, instead of those to the same bytes.
    pub pause_reads: bool,
}

/// Time in which a link carries an owner's limit in flight beside others: a round trip of engines and adapters that are
/// processes.
const OWNER_TIME: Nanos = Nanos::from_micros(300);
/// Fewest bytes of an owner in flight: a few packets of the longest MTU.
const OWNER_BYTES_MIN: usize = 8 << 10;

impl Config {
    /// The same on a link of this rate. On a slow link, one owner's requests in flight would delay the others for
    /// milliseconds, so pieces are shorter there, and an owner has fewer bytes in flight.
    pub fn on_link(self, rate_bps: u64) -> Config {
        let carried = u128::from(rate_bps) * u128::from(OWNER_TIME.0) / 8_000_000_000;
        let bytes = usize::try_from(carried).unwrap_or(usize::MAX);
        let owner_bytes_max = bytes.max(OWNER_BYTES_MIN).min(self.owner_bytes_max);
        let piece_bytes = self.piece_bytes.min(owner_bytes_max as u32 / 4);
        Config { owner_bytes_max, piece_bytes, ..self }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            batch_reads: 16,
            batch_bytes: 64 << 10,
            fetch_entries: 64,
            guess_entries: 8,
            active_max: 64,
            probes_max: 1,
            probe_min: Nanos::from_micros(2),
            probe_max: Nanos::from_micros(100),
            message_bytes_max: 1 << 20,
            piece_bytes: 16 << 10,
            entries_max: 1 << 14,
            requests_max: 512,
            owner_requests_max: 64,
            owner_bytes_max: 64 << 10,
            turn_requests: 16,
            instances_max: 256,
            pause_reads: false,
        }
    }
}

counters! {
    /// An engine's counters.
    Counters {
        /// Probes.
        probes,
        /// Probes that found new requests.
        probes_useful,
        /// Reads done.
        reads,
        /// Writes done.
        writes,
        /// Bytes read and written for compute nodes.
        bytes,
        /// RDMA WRITEs of responses; each brings one or more.
        batches,
        /// RDMA WRITEs of red blocks.
        reds,
        /// Times a request had to wait for one before it that concerns the same bytes.
        overlaps,
        /// Requests found done by an engine before this one.
        recovered,
        /// Sets refused: a tail went back, or too far ahead.
        corrupt_tail,
        /// Sets refused: an entry is neither read nor write.
        corrupt_type,
        /// Sets refused: an entry's region is not theirs.
        corrupt_region,
        /// Sets refused: an entry reaches beyond its region.
        corrupt_bounds,
        /// Sets refused: an entry's length is 0 or more than half of a ring.
        corrupt_length,
        /// Sets refused: an entry's data is not where it belongs.
        corrupt_place,
        /// Sets refused: an entry's id is not the next one.
        corrupt_id,
        /// Sets lost: a queue pair failed.
        lost,
    }
}

impl Counters {
    pub(super) fn count(&mut self, corruption: Corruption) {
        *(match corruption {
            Corruption::Tail => &mut self.corrupt_tail,
            Corruption::Type => &mut self.corrupt_type,
            Corruption::Region => &mut self.corrupt_region,
            Corruption::Bounds => &mut self.corrupt_bounds,
            Corruption::Length => &mut self.corrupt_length,
            Corruption::Place => &mut self.corrupt_place,
            Corruption::Id => &mut self.corrupt_id,
        }) += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_have_less_in_flight_on_slow_links() {
        let bounds = |rate_bps| {
            let config = Config::default().on_link(rate_bps);
            (config.owner_bytes_max, config.piece_bytes)
        };
        assert_eq!(bounds(100_000_000_000), (64 << 10, 16 << 10));
        assert_eq!(bounds(1_000_000_000), (37_500, 9_375));
        assert_eq!(bounds(100_000_000), (8 << 10, 2 << 10));
        assert_eq!(bounds(1), (8 << 10, 2 << 10));
        assert_eq!(bounds(u64::MAX), (64 << 10, 16 << 10));
    }
}
