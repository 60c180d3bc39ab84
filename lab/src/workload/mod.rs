//! Traffic programs that `up` starts on its hosts, on the application side of the TAP.
//!
//! Each runs between two times of the monotonic clock, exits at the second one, and prints one line of JSON.
//! [`capture`] is the exception: it runs until SIGTERM.

pub mod capture;
pub mod rpc;
pub mod udp;

use p4rack_codegen::rack::{Rack, Workload};
use serde::{Deserialize, Serialize};
use std::io;

/// Bytes of IPv4 and UDP headers: with them, a datagram is the Ethernet payload.
pub const UDP_OVERHEAD_BYTES: u64 = 28;
/// Width of a bucket of a [`Timeline`].
pub const BUCKET_NS: u64 = 100_000_000;
/// Maximum buckets of a program: an hour and a half.
const BUCKETS_MAX: usize = 54_000;

/// Rate that each of a workload's sending programs offers.
pub fn rate_bps(rack: &Rack, workload: &Workload) -> u64 {
    let (one, many) = workload.ends();
    let shared_bps = rack.host(one).map_or(0, |host| host.rate_bps);
    let total_bps = u128::from(shared_bps) * u128::from(workload.load_percent) / 100;
    (total_bps / many.len().max(1) as u128) as u64
}

/// Seed of the sending program at this position, from the run's.
pub fn seed(seed: u64, position: usize) -> u64 {
    seed.wrapping_mul(1_000).wrapping_add(position as u64)
}

/// When a program runs. All programs of a run have the same start.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Start, on the monotonic clock.
    pub start_ns: u64,
    /// Duration.
    pub duration_ns: u64,
}

impl Span {
    /// End, on the monotonic clock.
    pub fn end_ns(&self) -> u64 {
        self.start_ns.saturating_add(self.duration_ns)
    }
}

/// Bytes over time, in buckets of [`BUCKET_NS`] since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Bytes in each bucket.
    pub bytes: Vec<u64>,
}

impl Timeline {
    /// Counts `bytes` at `since_start_ns`.
    pub fn add(&mut self, since_start_ns: u64, bytes: u64) {
        let index = ((since_start_ns / BUCKET_NS) as usize).min(BUCKETS_MAX);
        if self.bytes.len() <= index {
            self.bytes.resize(index + 1, 0);
        }
        self.bytes[index] += bytes;
    }

    /// Bytes between two times since the start; both are rounded to whole buckets.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let bucket = |ns: u64| (((ns + BUCKET_NS / 2) / BUCKET_NS) as usize).min(self.bytes.len());
        let (from, to) = (bucket(from_ns), bucket(to_ns));
        self.bytes.get(from..to.max(from)).unwrap_or_default().iter().sum()
    }

    /// Mean rate between two times since the start, in bits a second.
    pub fn rate_bps(&self, from_ns: u64, to_ns: u64) -> f64 {
        let span_ns = to_ns.saturating_sub(from_ns);
        if span_ns == 0 { 0.0 } else { self.between(from_ns, to_ns) as f64 * 8e9 / span_ns as f64 }
    }

    /// Sum of several timelines, bucket by bucket.
    pub fn sum<'a>(lines: impl IntoIterator<Item = &'a Timeline>) -> Timeline {
        let mut total = Timeline::default();
        for line in lines {
            total.bytes.resize(total.bytes.len().max(line.bytes.len()), 0);
            for (sum, bytes) in total.bytes.iter_mut().zip(&line.bytes) {
                *sum += bytes;
            }
        }
        total
    }
}

/// Prints a program's result as one line of JSON.
pub fn print_result(result: &impl Serialize) -> io::Result<()> {
    use io::Write;
    let mut line = serde_json::to_string(result)?;
    line.push('\n');
    io::stdout().write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeline_counts_by_bucket_and_reports_rates() {
        let mut line = Timeline::default();
        line.add(0, 100);
        line.add(BUCKET_NS - 1, 100);
        line.add(2 * BUCKET_NS, 1_000);
        assert_eq!(line.bytes, [200, 0, 1_000]);
        assert_eq!(line.between(0, BUCKET_NS), 200);
        assert_eq!(line.between(BUCKET_NS, 10 * BUCKET_NS), 1_000);
        assert_eq!(line.between(10 * BUCKET_NS, 0), 0);
        // 1,200 bytes in 300 ms.
        assert!((line.rate_bps(0, 3 * BUCKET_NS) - 32_000.0).abs() < 1e-6);
        assert_eq!(line.rate_bps(5, 5), 0.0);
    }

    #[test]
    fn timelines_add_up_even_when_of_different_length() {
        let (mut a, mut b) = (Timeline::default(), Timeline::default());
        a.add(0, 1);
        b.add(BUCKET_NS, 2);
        assert_eq!(Timeline::sum([&a, &b]).bytes, [1, 2]);
        assert_eq!(Timeline::sum([]).bytes, Vec::<u64>::new());
    }

    #[test]
    fn a_timeline_is_bounded() {
        let mut line = Timeline::default();
        line.add(u64::MAX, 7);
        assert_eq!(line.bytes.len(), BUCKETS_MAX + 1);
        assert_eq!(*line.bytes.last().unwrap(), 7);
    }
}
