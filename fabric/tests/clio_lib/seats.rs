//! Several processes of a node at one board.

use crate::clio_lib::board::credentials;
use crate::clio_lib::calls::sent;
use crate::clio_lib::world::config;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{Client, Config, Credentials, Operation, Outcome, Seat};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Header, Kind, PageSize, Status, packet};
use std::collections::VecDeque;

/// Credentials of another process of board 0.
fn neighbour() -> Credentials {
    Credentials { pid: 8, token: 0x1235, ..credentials(0) }
}

/// The client of a node with two processes at one board, and its first window of a packet.
fn two_processes() -> Client {
    let seat = |number, credentials| Seat { board: 0, credentials, number, first_thread: 0 };
    let config = Config { silence: Nanos::from_micros(20), ..config() };
    Client::seated(config, &[seat(1, credentials(0)), seat(2, neighbour())])
}

/// The board's answer to a request.
fn answer(request: Header) -> Vec<u8> {
    let mut out = Vec::new();
    let header = Header { kind: Kind::Answer as u8, code: Status::Done as u8, length: 0, ..request };
    packet::compose(&header, &[], &mut out);
    out
}

/// A window is a node's for a board, so a second process adds no packets to those under way, and each has its turn.
#[test]
fn processes_of_a_node_share_its_window_for_a_board_in_turns() {
    let mut client = two_processes();
    let address = PageSize::K4.address_of(1);
    let page = |nth: u64| address + 4_096 * nth;
    for nth in 0..4 {
        let write = |client: &mut Client, seat: u16| {
            let operation = Operation::Write { address: page(nth), bytes: &[1; 8] };
            client.submit(seat, seat, u64::from(seat), operation, Nanos(0)).unwrap();
        };
        write(&mut client, 0);
        write(&mut client, 1);
    }
    let (mut now, mut served, mut most) = (Nanos(0), Vec::new(), 0);
    let mut flying: VecDeque<(u16, Header)> = VecDeque::new();
    while served.len() < 8 {
        while let Some((seat, header)) = sent(&mut client, now) {
            let own = [credentials(0), neighbour()][usize::from(seat)];
            assert_eq!((header.pid, header.token), (own.pid, own.token));
            flying.push_back((seat, header));
        }
        assert!(flying.len() <= client.window(0).unwrap().1 as usize, "more than the window");
        most = most.max(flying.len());
        let (seat, header) = flying.pop_front().unwrap();
        now += Nanos(1_000);
        // The other process has not asked for it.
        client.handle_link((1 - seat, &answer(header)), now, now);
        assert_eq!(client.poll_completion_of_seat(), None);
        client.handle_link((seat, &answer(header)), now, now);
        let ended = client.poll_completion_of_seat();
        assert_eq!(ended, Some((seat, u64::from(seat), Outcome::Done)));
        served.push(seat);
    }
    assert_eq!(served, [0, 1, 0, 1, 0, 1, 0, 1]);
    assert!(most > 1 && client.under_way(0) == (0, 0), "{most}");
}

/// A board that answers one process is not dead for another one; one that answers none is for both.
#[test]
fn a_board_is_silent_for_all_processes_of_a_node_or_for_none() {
    let address = PageSize::K4.address_of(1);
    for answers in [true, false] {
        let mut client = two_processes();
        let mut now = Nanos(0);
        let read = Operation::Read { address, bytes: 8 };
        client.submit(0, 0, 0, read, now).unwrap();
        let (mut ended, mut asked) = (Vec::new(), 0);
        while ended.is_empty() && now < Nanos::from_millis(50) {
            // The second process writes again and again.
            if client.unfinished(1) == 0 && asked < 1_000 {
                asked += 1;
                client.submit(1, 1, 1, Operation::Write { address, bytes: &[1; 8] }, now).unwrap();
            }
            while let Some((seat, header)) = sent(&mut client, now) {
                if seat == 1 && answers {
                    client.handle_link((seat, &answer(header)), now, now);
                }
            }
            now += Nanos(1_000);
            client.handle_timeout(now);
            while let Some((seat, _, outcome)) = client.poll_completion_of_seat() {
                if outcome == Outcome::Unknown {
                    ended.push(seat);
                }
            }
        }
        let given_up = client.counters().given_up;
        match answers {
            true => assert_eq!((ended.as_slice(), given_up), (&[0][..], 0)),
            false => assert_eq!((ended.len(), given_up), (2, 1), "{ended:?}"),
        }
    }
}
