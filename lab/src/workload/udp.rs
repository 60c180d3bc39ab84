//! Datagrams at a constant bit rate, and their sink.

use super::{Span, Timeline, UDP_OVERHEAD_BYTES};
use crate::sys;
use p4rack_wire::SplitMix;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Interval at which the sender wakes and sends the frames that the rate allows per interval.
const TICK_NS: u64 = 1_000_000;
/// Maximum backlog, in ticks, that a late sender makes up for; the rest is never offered.
const BACKLOG_TICKS: u64 = 4;
/// Datagrams after which the sender looks at the time.
const LOOK: u64 = 64;
/// Interval at which the sink drains its socket.
const DRAIN_NS: u64 = 2_000_000;
/// Receive buffer of the sink: 80 ms at 400 Mb/s.
const SINK_BUFFER_BYTES: u32 = 4 << 20;
/// Maximum sources that the sink distinguishes; the others share an entry.
const SOURCES_MAX: usize = 256;
/// Datagrams of a source from this number on are not looked for twice; a bit each is 16 MiB.
const NUMBERS_MAX: u64 = 1 << 27;
/// Largest datagram: an Ethernet payload of 1500 bytes.
pub const PAYLOAD_MAX_BYTES: usize = 1_472;

/// Parameters of the sender.
#[derive(Clone, Debug)]
pub struct SendConfig {
    /// Address of the sink.
    pub to: SocketAddr,
    /// Rate of offered Ethernet payload.
    pub rate_bps: u64,
    /// Bytes in a datagram.
    pub payload_bytes: usize,
    /// When to send.
    pub span: Span,
    /// Seed for the phase of this sender's bursts.
    pub seed: u64,
}

/// Results of the sender.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SendReport {
    /// Datagrams that the kernel accepted.
    pub datagrams: u64,
    /// Datagrams rejected because a queue was full.
    pub no_buffer: u64,
    /// Datagrams rejected for other reasons.
    pub errors: u64,
    /// Datagrams not sent because the sender was woken too late.
    pub skipped: u64,
    /// Ethernet payload offered over time, whether or not the kernel accepted it.
    pub offered: Timeline,
}

/// Sends until the span is over.
pub fn send(config: &SendConfig) -> io::Result<SendReport> {
    let socket = UdpSocket::bind((IpAddr::from([0, 0, 0, 0]), 0))?;
    socket.connect(config.to)?;
    socket.set_nonblocking(true)?;
    sys::report_send_errors(&socket)?;
    let mut payload = vec![0u8; config.payload_bytes.clamp(8, PAYLOAD_MAX_BYTES)];
    let frame_bytes = payload.len() as u64 + UDP_OVERHEAD_BYTES;
    let burst_max = due(config.rate_bps, frame_bytes, BACKLOG_TICKS * TICK_NS).max(4);
    let phase_ns = SplitMix(config.seed).next() % TICK_NS;

    let mut report = SendReport::default();
    let mut passed = 0; // datagrams whose time has come, offered or skipped
    let mut sequence = 0u64;
    let mut wake_ns = config.span.start_ns + phase_ns;
    while wake_ns < config.span.end_ns() {
        sys::sleep_until(wake_ns);
        let since_start_ns = sys::monotonic_ns().saturating_sub(config.span.start_ns);
        let due = due(config.rate_bps, frame_bytes, since_start_ns.min(config.span.duration_ns));
        let skipped = due.saturating_sub(burst_max).saturating_sub(passed);
        report.skipped += skipped;
        passed += skipped;
        while passed < due {
            // What it can't send in its time is not made up for.
            if passed.is_multiple_of(LOOK) && sys::monotonic_ns() >= config.span.end_ns() {
                break;
            }
            passed += 1;
            payload[..8].copy_from_slice(&sequence.to_be_bytes());
            sequence += 1;
            report.offered.add(since_start_ns, frame_bytes);
            match socket.send(&payload) {
                Ok(_) => report.datagrams += 1,
                Err(error) if full(&error) => report.no_buffer += 1,
                Err(_) => report.errors += 1,
            }
        }
        // The next tick on the grid: waking late does not shift the grid.
        let late_ticks = (since_start_ns + config.span.start_ns).saturating_sub(wake_ns) / TICK_NS;
        wake_ns = wake_ns.saturating_add((late_ticks + 1) * TICK_NS);
        report.skipped += due - passed;
        passed = due;
    }
    Ok(report)
}

/// Offered load of a sender that is never late: nanoseconds since the start of the traffic, and frames at that
/// time.
pub fn schedule(
    rate_bps: u64,
    frame_bytes: u64,
    seed: u64,
    duration_ns: u64,
) -> impl Iterator<Item = (u64, u64)> {
    let mut passed = 0;
    ((SplitMix(seed).next() % TICK_NS)..duration_ns).step_by(TICK_NS as usize).map(move |at_ns| {
        let due = due(rate_bps, frame_bytes, at_ns);
        let frames = due - passed;
        passed = due;
        (at_ns, frames)
    })
}

/// Frames of `frame_bytes` that `rate_bps` gives in `since_start_ns`.
fn due(rate_bps: u64, frame_bytes: u64, since_start_ns: u64) -> u64 {
    (u128::from(rate_bps) * u128::from(since_start_ns) / (u128::from(frame_bytes) * 8_000_000_000)) as u64
}

fn full(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Results of the sink.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SinkReport {
    /// Number of datagrams.
    pub datagrams: u64,
    /// Ethernet payload over time, by source address.
    pub by_source: BTreeMap<String, Timeline>,
    /// Datagrams that had come before, by source address, of those that sent some.
    #[serde(default)]
    pub repeated: BTreeMap<String, u64>,
    /// Longest time between two reads of the socket that found datagrams of the same source, or from the last one to the end of the
    /// span; `None` if no datagram came.
    pub longest_gap_ns: Option<u64>,
}

/// Datagrams of a source.
#[derive(Debug, Default)]
struct Source {
    line: Timeline,
    /// Bits of the numbers that have come.
    seen: Vec<u64>,
    last_ns: Option<u64>,
    repeated: u64,
}

impl Source {
    /// Records a datagram. Returns whether its number is new.
    fn came(&mut self, datagram: &[u8]) -> bool {
        let number = datagram.first_chunk().map_or(u64::MAX, |number| u64::from_be_bytes(*number));
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if number >= NUMBERS_MAX {
            return true;
        }
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        let is_new = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        is_new
    }
}

/// Receives on `bind` until the span is over.
pub fn sink(bind: SocketAddr, span: Span) -> io::Result<SinkReport> {
    let socket = UdpSocket::bind(bind)?;
    socket.set_nonblocking(true)?;
    sys::set_receive_buffer(&socket, SINK_BUFFER_BYTES);
    let mut by_source: BTreeMap<IpAddr, Source> = BTreeMap::new();
    let (mut datagrams, mut longest_gap_ns) = (0, None);
    let mut buffer = [0u8; 2048];
    loop {
        let now_ns = sys::monotonic_ns();
        loop {
            match socket.recv_from(&mut buffer) {
                Ok((length, source)) => {
                    let known = by_source.contains_key(&source.ip()) || by_source.len() < SOURCES_MAX;
                    let source = if known { source.ip() } else { IpAddr::from([0, 0, 0, 0]) };
                    datagrams += 1;
                    let bytes = length as u64 + UDP_OVERHEAD_BYTES;
                    let source = by_source.entry(source).or_default();
                    source.line.add(now_ns.saturating_sub(span.start_ns), bytes);
                    let gap_ns = now_ns - source.last_ns.replace(now_ns).unwrap_or(now_ns);
                    longest_gap_ns = longest_gap_ns.max(Some(gap_ns));
                    // Numbers of sources that share an entry say nothing.
                    source.repeated += u64::from(known && !source.came(&buffer[..length]));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // An ICMP error of an earlier datagram, or a signal: nothing was received.
                Err(_) => break,
            }
        }
        if now_ns >= span.end_ns() {
            break;
        }
        sys::sleep_until(now_ns + DRAIN_NS);
    }
    // A sender that stops for ever has its longest gap at the end.
    let to_end_ns =
        by_source.values().filter_map(|source| Some(span.end_ns().saturating_sub(source.last_ns?)));
    let longest_gap_ns = longest_gap_ns.max(to_end_ns.max());
    let of = by_source.iter().filter(|(_, source)| source.repeated > 0);
    let repeated = of.map(|(address, source)| (address.to_string(), source.repeated)).collect();
    let by_source =
        by_source.into_iter().map(|(address, source)| (address.to_string(), source.line)).collect();
    Ok(SinkReport { datagrams, by_source, repeated, longest_gap_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_gives_frames_without_drift() {
        // 1,500 bytes at 12 Mb/s: one each millisecond.
        assert_eq!(due(12_000_000, 1_500, 0), 0);
        assert_eq!(due(12_000_000, 1_500, 999_999), 0);
        assert_eq!(due(12_000_000, 1_500, 1_000_000), 1);
        assert_eq!(due(12_000_000, 1_500, 3_600_000_000_000), 3_600_000);
    }

    #[test]
    fn a_sender_that_is_never_late_offers_its_rate() {
        let offered: Vec<(u64, u64)> = schedule(8_000_000, 1_000, 1, 500_000_000).collect();
        assert_eq!(offered.iter().map(|(_, frames)| frames).sum::<u64>(), 499);
        assert!(offered.windows(2).all(|pair| pair[1].0 - pair[0].0 == TICK_NS));
        assert!(offered.iter().skip(1).all(|(_, frames)| *frames <= 1), "one a millisecond");
    }

    /// The burst of its first millisecond alone would take minutes.
    #[test]
    fn a_sender_that_falls_behind_ends_at_its_time() {
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        let span = Span { start_ns: sys::monotonic_ns(), duration_ns: 200_000_000 };
        let config = SendConfig {
            to: sink.local_addr().unwrap(),
            rate_bps: 1_000_000_000_000_000,
            payload_bytes: 972,
            span,
            seed: 1,
        };
        let sent = send(&config).unwrap();
        let took_ns = sys::monotonic_ns() - span.start_ns;
        assert!(took_ns < 20_000_000_000, "{took_ns}");
        assert!(sent.datagrams > 0 && sent.skipped > sent.datagrams, "{sent:?}");
    }

    #[test]
    fn a_sender_offers_its_rate_and_the_sink_counts_it_by_source() {
        let probe = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = probe.local_addr().unwrap();
        drop(probe);
        let span = Span { start_ns: sys::monotonic_ns() + 50_000_000, duration_ns: 500_000_000 };
        let sink = std::thread::spawn(move || {
            super::sink(to, Span { duration_ns: span.duration_ns + 100_000_000, ..span }).unwrap()
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        let sent = send(&SendConfig { to, rate_bps: 8_000_000, payload_bytes: 972, span, seed: 1 }).unwrap();
        let received = sink.join().unwrap();
        // 1,000 bytes of Ethernet payload at 8 Mb/s for half a second: 500 datagrams. However late the sender
        // woke, each was sent or skipped, except those of the last millisecond.
        assert!((498..=500).contains(&(sent.datagrams + sent.skipped)), "{sent:?}");
        assert!(sent.datagrams > 0, "{sent:?}");
        assert_eq!(received.datagrams, sent.datagrams);
        assert_eq!(received.by_source["127.0.0.1"].between(0, u64::MAX / 2), sent.datagrams * 1_000);
        assert!(received.repeated.is_empty(), "{received:?}");
        // The sink went on for 100 ms after the last datagram.
        assert!(received.longest_gap_ns.unwrap() >= 90_000_000, "{received:?}");
        let mut source = Source::default();
        assert_eq!(
            [0u64, 70, 0, 70, 1].map(|number| source.came(&number.to_be_bytes())),
            [true, true, false, false, true]
        );
        assert_eq!(sent.offered.between(0, u64::MAX / 2), sent.datagrams * 1_000);
    }
}
