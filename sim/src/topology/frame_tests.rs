use super::*;
use crate::transport::Transport;
use crate::transport::tcp::{Config, Control, Receiver, Sender};
use p4rack_wire::ipv4::checksum;

const SALT: Salt = Salt { magic: 0x7035, key: 0x1234_5678_9abc_def0 };

fn headers(is_tcp: bool) -> Headers {
    let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
    let ip = |last| Ipv4Addr::new(10, 0, 0, last);
    Headers::new(SALT, (mac(1), mac(2)), (ip(1), ip(2)), (4_000, 5_001), (is_tcp, 10))
}

const TAG: Tag = Tag { flow: 513, number: 70_000, time: Nanos(5_000_000_123), part: 1, last: 3 };

#[test]
fn a_datagram_is_found_behind_any_headers_and_damage_is_seen() {
    let mut frame = Vec::new();
    for bytes in [0, TAG_BYTES, 500, DATAGRAM_MAX] {
        headers(false).datagram(&TAG, bytes, &mut frame);
        assert_eq!(frame.len(), UDP_HEADERS + bytes.max(TAG_BYTES));
        assert_eq!(checksum(&frame[14..34]), 0);
        assert_eq!(find(&SALT, &frame), FrameContent::Datagram(TAG, true));
        let mut tunnelled = frame.clone();
        tunnelled.splice(12..12, [0x12, 0x12, 0, 7]);
        assert_eq!(find(&SALT, &tunnelled), FrameContent::Datagram(TAG, true));
    }
    frame[700] ^= 1;
    assert_eq!(find(&SALT, &frame), FrameContent::Datagram(TAG, false));
    frame[700] ^= 1;
    assert_eq!(find(&SALT, &frame[..900]), FrameContent::Datagram(TAG, false), "cut short");
    frame[50] ^= 1;
    assert_eq!(find(&SALT, &frame), FrameContent::Other);
    assert_eq!(find(&SALT, &[0; 20]), FrameContent::Other);
    assert_eq!(find(&SALT, &[]), FrameContent::Other);
}

#[test]
fn a_segment_survives_the_wire_with_marks_and_ranges() {
    let mut frame = Vec::new();
    let data = Segment {
        flow: 9,
        start: u32::MAX - 5,
        next: 77,
        bytes: MSS,
        push: true,
        marked: false,
        echo: false,
        ranges: [(0, 0); RANGES],
        count: 0,
    };
    headers(true).segment(&data, true, &mut frame);
    assert_eq!(find(&SALT, &frame), FrameContent::Segment(data, true));
    let pseudo = sum(&frame[26..34]) + u64::from(TCP) + (frame.len() - 34) as u64;
    assert_eq!(fold(pseudo + sum(&frame[34..])), 0, "TCP's checksum is right");
    frame[15] |= CE;
    assert_eq!(find(&SALT, &frame), FrameContent::Segment(Segment { marked: true, ..data }, true));
    frame.splice(34..34, [0; 4]);
    (frame[14], frame[17]) = (0x46, frame[17] + 4);
    assert_eq!(
        find(&SALT, &frame),
        FrameContent::Segment(Segment { marked: true, ..data }, true),
        "IPv4 options"
    );
    let ack =
        Segment { bytes: 0, echo: true, push: false, ranges: [(1, 2), (3, 4), (5, 6)], count: 3, ..data };
    headers(true).segment(&ack, false, &mut frame);
    assert_eq!(find(&SALT, &frame), FrameContent::Segment(ack, true));
}

#[test]
fn frames_of_other_runs_are_something_else() {
    let mut frame = Vec::new();
    headers(false).datagram(&TAG, 500, &mut frame);
    // Also where just the magic is the same, by chance.
    for other in [Salt { key: 7, ..SALT }, Salt { magic: 0x7037, ..SALT }] {
        assert_eq!(find(&other, &frame), FrameContent::Other);
    }
    let data = Segment { bytes: 0, ..segment_at(5) };
    headers(true).segment(&data, false, &mut frame);
    for other in [Salt { key: 7, ..SALT }, Salt { magic: 0x7037, ..SALT }] {
        assert_eq!(find(&other, &frame), FrameContent::Other);
    }
}

/// A full segment that begins at this offset.
fn segment_at(start: u64) -> Segment {
    Segment {
        flow: 9,
        start: start as u32,
        next: 0,
        bytes: MSS,
        push: false,
        marked: false,
        echo: false,
        ranges: [(0, 0); RANGES],
        count: 0,
    }
}

#[test]
fn numbers_are_those_next_to_what_is_known() {
    const WRAP: u64 = 1 << 32;
    assert_eq!(offset(3, WRAP - 3), Some(WRAP + 3));
    assert_eq!(offset(u32::MAX, WRAP), Some(WRAP - 1));
    assert_eq!(offset(u32::MAX - 5, 3 * WRAP + 7), Some(3 * WRAP - 6));
    assert_eq!(offset(u32::MAX, 5), None, "before the beginning");
    let listed = [(u32::MAX - 9, 10), (u32::MAX, 3), (0, 0)];
    let segment = Segment { ranges: listed, count: 2, ..segment_at(0) };
    assert_eq!(ranges(&segment, WRAP).collect::<Vec<_>>(), [(WRAP - 10, WRAP + 10), (WRAP - 1, WRAP + 3)]);
    assert_eq!(ranges(&segment, 20).count(), 0, "a range that begins before the beginning");
}

/// More than 4 GiB, the last 2 MiB of them around the wrap in frames, of which each 50th is lost.
#[test]
fn a_stream_goes_on_after_4_gib() {
    let config =
        Config { window_bytes: 1 << 20, rto_min: Nanos::from_millis(5), probe_min: Nanos::from_millis(1) };
    let mut sender = Sender::new(config, Control::new(Transport::Tcp, 1 << 20));
    let mut receiver = Receiver::default();
    for bytes in [u32::MAX, 1 << 20] {
        sender.write(0, bytes);
    }
    let total = sender.written();
    let (mut now, mut frame, mut sent, mut again) = (Nanos::ZERO, Vec::new(), 0, 0);
    while receiver.received() < total || sender.acknowledged() < total {
        now += Nanos::from_micros(10);
        let next = sender.handle_timeout(now).or_else(|| sender.poll(now));
        let Some(next) = next else { continue };
        let is_framed = next.start > total - (2 << 20);
        sent += u64::from(is_framed);
        again += u64::from(next.again);
        if is_framed && sent % 50 == 0 {
            continue;
        }
        let start = match is_framed {
            true => {
                let data = Segment { bytes: next.bytes, push: next.last, ..segment_at(next.start) };
                headers(true).segment(&data, false, &mut frame);
                let FrameContent::Segment(found, true) = find(&SALT, &frame) else { panic!("a segment") };
                offset(found.start, receiver.expected()).unwrap()
            }
            false => next.start,
        };
        assert_eq!(start, next.start);
        let (first, _, second) = receiver.handle(start, next.bytes.into(), next.last, false);
        for ack in first.into_iter().chain(second) {
            let data = Segment {
                bytes: 0,
                next: ack.next as u32,
                ranges: ack.ranges.map(|(from, to)| (from as u32, to as u32)),
                count: ack.count,
                ..segment_at(0)
            };
            let near = sender.acknowledged();
            let sacked: Vec<Range> = ranges(&data, near).collect();
            assert_eq!(sacked, ack.ranges[..ack.count]);
            sender.handle_ack(offset(data.next, near).unwrap(), false, &sacked, now);
        }
    }
    assert_eq!((receiver.received(), receiver.expected()), (total, total));
    assert!(again > 20 && sent > 1_400, "{again} of {sent} again");
}
