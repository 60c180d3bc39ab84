//! Clients of several threads of a node, which share its windows.

use crate::clio_lib::board::credentials;
use crate::clio_lib::calls::sent;
use crate::clio_lib::seats::answer;
use crate::clio_lib::world::config;
use p4rack_fabric::Machine as _;
use p4rack_fabric::clio::lib::{Client, Config, NodeWindows, Operation, Outcome};
use p4rack_wire::Nanos;
use p4rack_wire::clio::{Header, PageSize};
use std::collections::VecDeque;

const CLIENTS: usize = 3;

/// Clients of board 0, each with twenty writes to make. Their windows shrink only after losses.
fn writers() -> Vec<Client> {
    let (timeout, queueing) = (Nanos::from_micros(100), Nanos::from_millis(1));
    let config = Config { timeout, timeout_max: timeout, queueing, ..config() };
    let client = |nth: u32| {
        let mut client = Client::new(config.clone(), &[credentials(0)], nth);
        for page in 1..=20 {
            let address = PageSize::K4.address_of(nth * 100 + page);
            client.submit(0, 0, page.into(), Operation::Write { address, bytes: &[1; 8] }, Nanos(0)).unwrap();
        }
        client
    };
    (0..CLIENTS as u32).map(client).collect()
}

/// Answers all requests, the oldest first, until nothing is under way. Returns how many each client has done, and the most that were under
/// way beyond the first one's window and a packet of each other one.
fn run(clients: &mut [Client]) -> (Vec<usize>, usize) {
    let (mut now, mut flying) = (Nanos(0), VecDeque::<(usize, Header)>::new());
    let (mut done, mut beyond) = (vec![0; clients.len()], 0);
    loop {
        for (nth, client) in clients.iter_mut().enumerate() {
            while let Some((_, header)) = sent(client, now) {
                flying.push_back((nth, header));
            }
        }
        let window = clients[0].window(0).unwrap() as usize;
        beyond = beyond.max(flying.len().saturating_sub(window + clients.len() - 1));
        let Some((nth, header)) = flying.pop_front() else { return (done, beyond) };
        now += Nanos(1_000);
        clients[nth].handle_link((0, &answer(header)), now, now);
        assert!(matches!(clients[nth].poll_completion(), Some((_, Outcome::Done))));
        done[nth] += 1;
    }
}

#[test]
fn clients_of_a_node_share_a_window_for_each_board() {
    let mut alone = writers();
    let (done, beyond) = run(&mut alone);
    assert_eq!(done, [20; CLIENTS]);
    assert!(beyond > 2, "each has a window of its own: {beyond}");
    let (mut together, node) = (writers(), NodeWindows::default());
    together.iter_mut().for_each(|client| client.share(&node, ["board"]));
    let (done, beyond) = run(&mut together);
    assert_eq!((done, beyond), (vec![20; CLIENTS], 0));
    let windows: Vec<_> = together.iter().map(|client| client.window(0).unwrap()).collect();
    assert!(windows[0] > 3.0 && windows.iter().all(|window| *window == windows[0]), "{windows:?}");
    // Another board has another window, and so has a board whose last client has gone.
    let mut other = writers().remove(0);
    other.share(&node, ["another board"]);
    assert_eq!(other.window(0), Some(1.0));
    other.share(&node, ["board"]);
    assert_eq!(other.window(0), Some(windows[0]));
    drop((together, other));
    let mut next = writers().remove(0);
    next.share(&node, ["board"]);
    assert_eq!(next.window(0), Some(1.0));
}

#[test]
fn a_loss_of_one_client_shrinks_the_window_of_all() {
    let (mut clients, node) = (writers(), NodeWindows::default());
    clients.iter_mut().for_each(|client| client.share(&node, [0]));
    run(&mut clients[..1]);
    let before = clients[1].window(0).unwrap();
    let mut now = Nanos::from_millis(1);
    assert!(sent(&mut clients[2], now).is_some());
    now += Nanos::from_micros(100);
    clients[2].handle_timeout(now);
    assert_eq!(clients[1].window(0), Some(before / 2.0));
}

#[test]
fn a_client_that_is_dropped_gives_its_room_back() {
    let (mut clients, node) = (writers(), NodeWindows::default());
    clients.iter_mut().for_each(|client| client.share(&node, [0]));
    run(&mut clients[..1]);
    let (window, now) = (clients[1].window(0).unwrap() as usize, Nanos::from_millis(1));
    let all = std::iter::from_fn(|| sent(&mut clients[2], now)).count();
    assert!(all >= window, "it takes all of the window: {all} of {window}");
    assert!(
        sent(&mut clients[1], now).is_some() && sent(&mut clients[1], now).is_none(),
        "one is always permitted"
    );
    clients.truncate(2);
    let more = std::iter::from_fn(|| sent(&mut clients[1], now)).count();
    assert_eq!(more, window.min(20) - 1);
}

#[test]
fn clients_of_a_node_share_its_window_for_answers() {
    for is_shared in [false, true] {
        // A node whose link carries 5 KB in two round trips.
        let config = Config { link_bps: 10_000_000_000, base: Nanos(2_000), cwnd_start: 16, ..config() };
        let node = NodeWindows::default();
        let mut clients: Vec<Client> =
            (0..2).map(|nth| Client::new(config.clone(), &[credentials(0)], nth)).collect();
        if is_shared {
            clients.iter_mut().for_each(|client| client.share(&node, [0]));
        }
        for (client, page) in [(0, 1), (0, 2), (1, 3), (1, 4), (1, 5)] {
            let read = Operation::Read { address: PageSize::K4.address_of(page), bytes: 1_500 };
            clients[client].submit(0, 0, page.into(), read, Nanos(0)).unwrap();
        }
        let mut expected = |client: usize| {
            while sent(&mut clients[client], Nanos(0)).is_some() {}
            clients[client].under_way(0).1
        };
        let (first, second) = (expected(0), expected(1));
        assert!((3_000..5_000).contains(&first), "{first}");
        match is_shared {
            true => assert!((500..2_500).contains(&second) && first + second < 6_000, "{second}"),
            false => assert!((3_500..5_000).contains(&second), "{second}"),
        }
        // What one expects no more has room for the other.
        clients.remove(0);
        while sent(&mut clients[0], Nanos(0)).is_some() {}
        assert!((3_500..5_000).contains(&clients[0].under_way(0).1));
    }
}
