//! Fences on a board's socket: packets as they are, without a client library, whose own order would hide the board's.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::board;

use board::with_board_and_store;
use p4rack_hosts::clio::{Attached, Wanted, attach};
use p4rack_wire::clio::packet::{self, READ_BYTES_MAX};
use p4rack_wire::clio::{Header, Kind, Status, VERSION, flags};
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

/// Bytes of a write, the last ones that the read asks for.
const BYTES: u32 = 8;

/// A client without order, windows and retries: nothing is lost here.
struct Client {
    socket: UdpSocket,
    attached: Attached,
    next: u64,
}

impl Client {
    /// Sends a request. Returns its id.
    fn ask(&mut self, kind: Kind, flags: u8, (address, length): (u64, u32), data: &[u8]) -> u64 {
        let Attached { credentials, client, .. } = &self.attached;
        self.next += 1;
        let header = Header {
            version: VERSION,
            kind: kind as u8,
            code: 0,
            flags,
            attempt: 0,
            index: 0,
            packets: 1,
            id: u64::from(*client) << 36 | self.next,
            address,
            pid: credentials.pid,
            length,
            token: credentials.token,
            epoch: credentials.epoch,
            reserved: 0,
            crc: 0,
        };
        let mut out = Vec::new();
        packet::compose(&header, data, &mut out);
        self.socket.send(&out).unwrap();
        header.id
    }

    /// The next answer: its id, status and data.
    fn answer(&self) -> (u64, Status, Vec<u8>) {
        let mut input = [0; 9_000];
        let bytes = self.socket.recv(&mut input).expect("an answer, soon");
        let packet = packet::parse_intact(&input[..bytes]).unwrap();
        assert_eq!(packet.kind, Kind::Answer);
        (packet.header.id, Status::of(packet.header.code).unwrap(), packet.data.to_vec())
    }
}

fn with_client(test: impl FnOnce(Client, u64)) {
    with_board_and_store(1 << 20, 0, |place, _| {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = place.memory.clone().unwrap();
        let attached = runtime.block_on(attach(&server, Wanted::bytes(256 << 10))).unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect((Ipv4Addr::LOCALHOST, attached.udp_port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert!(attached.page_size.bytes() >= READ_BYTES_MAX.into(), "a read stays in a page");
        let address = attached.range.0;
        let mut client = Client { socket, attached, next: 0 };
        // The page's frame may have to be zeroed first.
        loop {
            client.ask(Kind::Write, 0, (address, BYTES), &[0; BYTES as usize]);
            match client.answer().1 {
                Status::Done => break,
                status => assert!(status.is_temporary(), "{status:?}"),
            }
        }
        test(client, address);
    });
}

#[test]
fn what_comes_behind_a_fence_is_executed_after_all_answers_to_what_came_before() {
    with_client(|mut client, address| {
        let last = address + u64::from(READ_BYTES_MAX - BYTES);
        // The answers of a read get their bytes as they leave: the write would be in the last one.
        for round in 0..50u64 {
            let read = client.ask(Kind::Read, 0, (address, READ_BYTES_MAX), &[]);
            let fence = client.ask(Kind::Fence, 0, (0, 0), &[]);
            let write = client.ask(Kind::Write, 0, (last, BYTES), &(round + 1).to_le_bytes());
            let mut found = Vec::new();
            while found.len() < READ_BYTES_MAX as usize {
                let (id, status, data) = client.answer();
                assert_eq!((id, status), (read, Status::Done), "{round}: {} bytes before", found.len());
                found.extend(data);
            }
            assert_eq!(found[found.len() - BYTES as usize..], round.to_le_bytes(), "{round}");
            for id in [fence, write] {
                assert_eq!(client.answer(), (id, Status::Done, Vec::new()), "{round}");
            }
        }
    });
}

#[test]
fn a_fence_for_all_processes_needs_the_boards_permission() {
    with_client(|mut client, address| {
        let fence = client.ask(Kind::Fence, flags::ALL, (0, 0), &[]);
        assert_eq!(client.answer(), (fence, Status::NotPermitted, Vec::new()));
        let write = client.ask(Kind::Write, 0, (address, BYTES), &[1; BYTES as usize]);
        assert_eq!(client.answer(), (write, Status::Done, Vec::new()), "it orders nothing");
    });
}
