//! Parameters of a client.

use p4rack_wire::Nanos;
use p4rack_wire::clio::PageSize;
use p4rack_wire::clio::packet::{DATA_BYTES_MAX, READ_BYTES_MAX};

/// Requests, with unfetched outcomes, that a client has at most. A request's id has twelve bits for its slot.
pub const REQUESTS_MAX: u16 = 1 << 12;
/// Pauses in a row because a board was busy, after which it refuses the request.
pub(super) const PAUSES_MAX: u8 = 32;

/// In what units accesses depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granule {
    /// Pages, as in the paper (§4.5): other bytes of the same page depend on each other, too.
    Page,
    /// Bytes. Ranges make them as cheap as pages.
    Byte,
}

impl Granule {
    /// Bits of an address within a granule.
    pub(super) fn shift(self, address: u64) -> u32 {
        match self {
            Granule::Page => PageSize::of_address(address).map_or(0, PageSize::shift),
            Granule::Byte => 0,
        }
    }
}

/// Parameters of a client.
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads that ask, each with an order of its own.
    pub threads: u16,
    /// Number of the first thread in words of locks: the threads of a process on all nodes have different ones.
    pub first_thread: u16,
    /// Requests and unfetched outcomes, at most [`REQUESTS_MAX`].
    pub requests_max: u16,
    /// Unfinished requests of a thread.
    pub thread_requests_max: u16,
    /// Bytes of a request.
    pub request_bytes_max: u32,
    /// Bytes of all writes under way and reads not fetched, together.
    pub buffer_bytes_max: u64,
    /// Bytes of data in a packet, the same as the boards': a long answer is cut like a long request.
    pub mtu_bytes: u32,
    /// Packets of an answer: a read asks for as many in one request.
    pub read_packets_max: u16,
    /// Units of dependencies.
    pub granule: Granule,
    /// TIMEOUT: time without an answer after which a packet is sent again. It is 4 × the mean delay if that is longer, up to
    /// [`timeout_max`](Self::timeout_max).
    pub timeout: Nanos,
    /// The longest TIMEOUT, and the longest time that a packet is assumed to take to a board.
    pub timeout_max: Nanos,
    /// How long boards remember what they have executed, three of the longest TIMEOUT in the paper. A retry that could come later
    /// is not sent, so it has to be longer than the retries of a slow call take, too.
    pub memory: Nanos,
    /// TIMEOUT of requests to the slow path, which allocates and frees.
    pub slow_timeout: Nanos,
    /// Retries after losses and corrupt packets. The paper has 2.
    pub retries: u8,
    /// How long a board has to have sent nothing, when an operation's retries are over, for its other operations to end, too.
    pub silence: Nanos,
    /// Pause before a request goes again to a board that was busy. It doubles each time, up to `timeout_max`.
    pub busy_wait: Nanos,
    /// Delay without queues before the first measurement.
    pub base: Nanos,
    /// How long the smallest delay counts as one without queues.
    pub base_window: Nanos,
    /// Delay in queues up to which the congestion window grows.
    pub queueing: Nanos,
    /// Congestion window at first, in packets.
    pub cwnd_start: u32,
    /// Largest congestion window, in packets.
    pub cwnd_max: u32,
    /// Rate of the node's link, for the incast window; 0: no limit.
    pub link_bps: u64,
    /// Bytes that a response takes on the link beside its data.
    pub overhead_bytes: u32,
}

impl Default for Config {
    /// The paper's setting: 10 Gb/s, TIMEOUT = 8 µs.
    fn default() -> Config {
        Config {
            threads: 1,
            first_thread: 0,
            requests_max: 256,
            thread_requests_max: 64,
            request_bytes_max: 1 << 24,
            buffer_bytes_max: 1 << 26,
            mtu_bytes: DATA_BYTES_MAX,
            read_packets_max: 16,
            granule: Granule::Page,
            timeout: Nanos::from_micros(8),
            timeout_max: Nanos::from_micros(40),
            memory: Nanos::from_micros(1_200),
            slow_timeout: Nanos::from_micros(400),
            retries: 2,
            silence: Nanos::from_micros(1_200),
            busy_wait: Nanos::from_micros(2),
            base: Nanos::from_micros(3),
            base_window: Nanos::from_secs(1),
            queueing: Nanos::from_micros(5),
            cwnd_start: 1,
            cwnd_max: 4_096,
            link_bps: 10_000_000_000,
            overhead_bytes: 120,
        }
    }
}

/// Timeouts and retries of a client on a host, and its target delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// TIMEOUT: time without an answer after which a packet is sent again.
    pub timeout: Nanos,
    /// Maximum retries. With long TIMEOUTs, the board's memory permits fewer.
    pub retries: u8,
    /// Delay in queues up to which the congestion window grows.
    pub target_delay: Nanos,
}

impl Default for Patience {
    /// Enough for processes that share a machine and wake late, which looks like a queue.
    fn default() -> Patience {
        Patience { timeout: Nanos::from_millis(20), retries: 12, target_delay: Nanos::from_millis(20) }
    }
}

impl Config {
    /// Parameters of a client on a host, beside a board that remembers for `memory`.
    pub fn on_host(patience: Patience, memory: Nanos, mtu_bytes: u32) -> Config {
        let us = Nanos::from_micros;
        let timeout_max = Nanos(memory.0 / 3);
        Config {
            // Pieces of a store's records share pages.
            granule: Granule::Byte,
            requests_max: 1_024,
            thread_requests_max: 1_024,
            mtu_bytes,
            timeout: timeout_max.min(patience.timeout),
            timeout_max,
            memory,
            retries: patience.retries,
            slow_timeout: timeout_max,
            silence: timeout_max,
            busy_wait: us(50),
            base: us(100),
            queueing: patience.target_delay,
            // As many packets as a socket's buffer holds.
            cwnd_max: 64,
            ..Config::default()
        }
    }

    /// The same with every number in its range.
    pub(super) fn clamped(self) -> Config {
        let requests_max = self.requests_max.clamp(1, REQUESTS_MAX);
        let mtu_bytes = self.mtu_bytes.clamp(8, u16::MAX.into());
        Config {
            requests_max,
            mtu_bytes,
            thread_requests_max: self.thread_requests_max.clamp(1, requests_max),
            read_packets_max: self.read_packets_max.clamp(1, (READ_BYTES_MAX / mtu_bytes).max(1) as u16),
            retries: self.retries.min(16),
            timeout_max: self.timeout_max.max(self.timeout),
            busy_wait: self.busy_wait.max(Nanos(1)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_retries_of_a_slow_call_are_in_time() {
        let Config { slow_timeout, retries, timeout_max, memory, .. } = Config::default();
        assert!(slow_timeout.0 * u64::from(retries) + timeout_max.0 <= memory.0);
    }

    #[test]
    fn reads_ask_for_no_more_than_boards_answer() {
        for mtu_bytes in [8, DATA_BYTES_MAX, 8_920, u16::MAX.into()] {
            let config = Config { mtu_bytes, read_packets_max: u16::MAX, ..Config::default() }.clamped();
            assert!(u32::from(config.read_packets_max) * config.mtu_bytes <= READ_BYTES_MAX, "{mtu_bytes}");
            assert!(config.read_packets_max >= 1);
        }
    }
}
