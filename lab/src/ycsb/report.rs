//! A client's reports, during the run and at its end.

use p4rack_wire::Histogram;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};

/// Interval between two progress lines.
const TELL_NS: u64 = 250_000_000;

/// Results of a client under one mix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MixReport {
    /// The mix.
    pub mix: String,
    /// Operations that succeeded in time.
    pub operations: u64,
    /// Operations that were not answered in time.
    pub lost: u64,
    /// Wrong answers: bytes that were never written, another key, or a version that can't have been there.
    pub wrong: u64,
    /// Values that were read or written.
    pub values: u64,
    /// Time from the first operation to the end of the last.
    pub elapsed_ns: u64,
    /// Latencies in nanoseconds, with their counts; lost operations count with the time they waited.
    pub latencies: Vec<(u64, u64)>,
    /// Values that were read from remote memory, of a store that has others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cold_reads: Option<u64>,
    /// Processor time of the client's thread, kernel included; of a process of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_cpu_ns: Option<u64>,
}

/// Results of a client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientReport {
    /// Results of each mix.
    pub mixes: Vec<MixReport>,
    /// Confirmed writes, in all mixes together.
    pub writes: u64,
    /// Records with an older version at the end than this client had written.
    pub lost_writes: u64,
}

/// Contents of the store after all clients have finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Versions of all records together: every write adds one.
    pub versions: u64,
    /// Records that could not be read.
    pub lost: u64,
    /// Records that no client has written so.
    pub wrong: u64,
}

/// A progress line: operations so far; percentiles of the latest latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Operations that ended well.
    pub operations: u64,
    /// Their 50th percentile since the line before.
    pub p50_us: u64,
    /// Their 99th percentile since the line before.
    pub p99_us: u64,
}

impl SoFar {
    /// The latest one in a client's output.
    pub fn latest(output: &str) -> Option<SoFar> {
        output.lines().rev().find_map(|line| {
            let mut numbers = line.strip_prefix("done ")?.split(' ').map_while(|word| word.parse().ok());
            Some(SoFar { operations: numbers.next()?, p50_us: numbers.next()?, p99_us: numbers.next()? })
        })
    }

    fn tell(&self) -> io::Result<()> {
        let mut out = io::stdout();
        writeln!(out, "done {} {} {}", self.operations, self.p50_us, self.p99_us)?;
        out.flush()
    }
}

/// Prints a progress line at intervals.
#[derive(Debug)]
pub(crate) struct Teller {
    so_far: SoFar,
    recent: Histogram,
    tell_ns: u64,
}

impl Teller {
    /// From a time on.
    pub(crate) fn new(start_ns: u64) -> Teller {
        Teller { so_far: SoFar::default(), recent: Histogram::new(), tell_ns: start_ns + TELL_NS }
    }

    /// Counts an operation that has ended now.
    pub(crate) fn ended(&mut self, took_ns: u64, now_ns: u64) -> io::Result<()> {
        self.so_far.operations += 1;
        self.recent.record(took_ns);
        if now_ns < self.tell_ns {
            return Ok(());
        }
        self.tell_ns = now_ns + TELL_NS;
        let quantile_us = |q: f64| self.recent.at(q) / 1_000;
        (self.so_far.p50_us, self.so_far.p99_us) = (quantile_us(0.5), quantile_us(0.99));
        self.recent.reset();
        self.so_far.tell()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_lines_are_read_from_the_last() {
        assert_eq!(SoFar::latest("x\n"), None);
        let latest = SoFar { operations: 300, p50_us: 5, p99_us: 70 };
        assert_eq!(SoFar::latest("done 100 4 60\ndone 300 5 70\ndone 4"), Some(latest));
    }
}
