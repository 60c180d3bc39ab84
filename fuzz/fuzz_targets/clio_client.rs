//! Clio's client library takes any packets, in any order. Each operation ends once, and the windows are empty when
//! nothing is under way.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{Change, Client, Config, Credentials, Operation};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Header, Kind, packet};
use std::collections::HashSet;

#[derive(Arbitrary, Debug)]
enum Step {
    Read(u8, u16, u16),
    Write(u8, u16, u16),
    Modify(u8, u16),
    Lock(u8, u16, bool),
    Release(u8),
    /// Any bytes.
    Bytes(u8, Vec<u8>),
    /// An answer to the last packet that left, with some fields changed.
    Answer {
        status: u8,
        is_nack: bool,
        index: u8,
        attempt: u8,
        address: i8,
        bytes: u8,
        is_damaged: bool,
    },
    /// That many packets leave and are lost.
    Send(u8),
    Wait(u16),
}

fuzz_target!(|steps: Vec<Step>| {
    let board = |token| Credentials { pid: 1, epoch: 1, token };
    let config = Config { threads: 3, requests_max: 16, mtu_bytes: 64, ..Config::default() };
    let mut client = Client::new(config, &[board(1), board(2)], 1);
    let (mut now, mut out, mut answer, mut asked) = (Nanos::ZERO, Vec::new(), Vec::new(), 0);
    // Tags of operations that have not ended.
    let mut open = HashSet::new();
    let mut last = None;
    let data = vec![7; 1 << 16];
    for step in steps {
        let (thread, operation) = match step {
            Step::Read(thread, at, bytes) => {
                (thread, Operation::Read { address: at.into(), bytes: bytes.into() })
            }
            Step::Write(thread, at, bytes) => {
                (thread, Operation::Write { address: at.into(), bytes: &data[..bytes.into()] })
            }
            Step::Modify(thread, at) => {
                (thread, Operation::Modify { address: at.into(), change: Change::FetchAdd(1) })
            }
            Step::Lock(thread, at, true) => (thread, Operation::Lock { address: at.into() }),
            Step::Lock(thread, at, false) => (thread, Operation::Unlock { address: at.into() }),
            Step::Release(thread) => (thread, Operation::Release),
            Step::Bytes(board, bytes) => {
                client.handle_link(((board % 3).into(), &bytes), now, now);
                continue;
            }
            Step::Answer { status, is_nack, index, attempt, address, bytes, is_damaged } => {
                if let Some((board, header)) = last {
                    let kind = if is_nack { Kind::Nack } else { Kind::Answer };
                    let bytes = if is_nack { 0 } else { bytes };
                    let header = Header {
                        kind: kind as u8,
                        code: status % 16,
                        index: header_index(header, index),
                        packets: u16::MAX,
                        attempt: header_attempt(header, attempt),
                        address: header.address.wrapping_add_signed(i64::from(address) * 8),
                        length: bytes.into(),
                        ..header
                    };
                    packet::compose(&header, &data[..bytes.into()], &mut answer);
                    if is_damaged {
                        answer[47] ^= 1;
                    }
                    client.handle_link((board, &answer), now, now);
                }
                continue;
            }
            Step::Send(count) => {
                for _ in 0..count {
                    let Some(board) = client.poll_link(now, &mut out) else { break };
                    last = packet::parse_intact(&out).ok().map(|packet| (board, packet.header));
                    assert!(last.is_some(), "it sends whole packets");
                }
                continue;
            }
            Step::Wait(us) => {
                now = now.saturating_add(Nanos::from_micros(us.into()));
                client.handle_timeout(now);
                close(&mut client, &mut open);
                continue;
            }
        };
        asked += 1;
        if client.submit((thread % 4).into(), (thread % 3).into(), asked, operation, now).is_ok() {
            open.insert(asked);
        }
    }
    // Nothing is answered any more: everything ends.
    for _ in 0..100_000 {
        while client.poll_link(now, &mut out).is_some() {}
        close(&mut client, &mut open);
        let Some(next) = client.next_call(Nanos::ZERO) else { break };
        now = now.max(next);
        client.handle_timeout(now);
    }
    close(&mut client, &mut open);
    assert!(open.is_empty(), "every operation ends");
    assert_eq!((client.under_way(0), client.under_way(1)), ((0, 0), (0, 0)));
});

/// Fetches outcomes.
fn close(client: &mut Client, open: &mut HashSet<u64>) {
    while let Some((tag, _)) = client.poll_completion() {
        assert!(open.remove(&tag), "an operation ends once");
    }
}

/// Mostly the packet's own.
fn header_index(header: Header, change: u8) -> u16 {
    if change < 200 { header.index } else { change.into() }
}

fn header_attempt(header: Header, change: u8) -> u8 {
    if change < 200 { header.attempt } else { change & 3 }
}
