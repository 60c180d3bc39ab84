//! A server of bytes and clients that mean it no good.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use p4rack_hosts::remote::tcp::{HELLO_BYTES, MAGIC, Served, Tcp};
use p4rack_hosts::remote::{Operation, Remote, Status};
use p4rack_netdev::clock;
use p4rack_netdev::wait::Waker;
use p4rack_wire::Nanos;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

const WRITE: u8 = 1;
const REQUEST_BYTES: usize = 16;
const LONGEST_BYTES: u32 = 1 << 24;
const LIMIT: Duration = Duration::from_secs(60);

/// Ends the server, however the test ends.
struct Wakes<'a>(&'a Waker);

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

fn with(served: Arc<Served<Vec<u8>>>, test: impl FnOnce(&str)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let end = Waker::new().unwrap();
    std::thread::scope(|scope| {
        let ends = end.try_clone().unwrap();
        scope.spawn(move || served.serve(&listener, &ends).unwrap());
        let _wakes = Wakes(&end);
        test(&address);
    });
}

/// Reads the first byte.
fn reads(tcp: &mut Tcp) -> bool {
    tcp.submit(1, Operation::Read { at: 0, bytes: 1 }).unwrap();
    let (until, mut ended) = (clock::now() + Nanos::from_secs(60), false);
    while !ended && clock::now() < until {
        tcp.poll(until, &mut |_, outcome| ended = format!("{outcome:?}") == "Read([0])").unwrap();
    }
    ended
}

/// A request's fixed part.
fn request(what: u8, bytes: u32) -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    request[0] = what;
    request[4..8].copy_from_slice(&bytes.to_be_bytes());
    request
}

/// Waits until this number of connections were closed for silence.
fn ends(served: &Served<Vec<u8>>, count: u64) {
    let until = Instant::now() + LIMIT;
    while served.ended() < count {
        assert!(Instant::now() < until, "{} of {count}", served.ended());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A connection from an address of this machine.
fn from(ip: &str, to: &str) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{ip}:0").parse().unwrap()).unwrap();
        let stream = socket.connect(to.parse().unwrap()).await.unwrap().into_std().unwrap();
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream
    })
}

/// Whether the server lets it in: it says hello then.
fn is_let_in(mut stream: &TcpStream) -> bool {
    stream.read_exact(&mut [0; HELLO_BYTES]).is_ok()
}

/// Waits until the server closes it.
fn is_closed(mut stream: &TcpStream) -> bool {
    !matches!(stream.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn silent_connections_of_one_address_lock_no_other_out() {
    with(Served::new(vec![0u8; 1 << 20], false), |address| {
        let silent: Vec<_> = (0..256).map(|_| from("127.0.0.1", address)).collect();
        let let_in = silent.iter().filter(|stream| is_let_in(stream)).count();
        assert_eq!(let_in, 144, "half of 256, and the part of one of eight in the other half");
        assert!(is_let_in(&from("127.0.0.2", address)));
        drop(silent);
        let until = Instant::now() + LIMIT;
        while !is_let_in(&from("127.0.0.1", address)) {
            assert!(Instant::now() < until, "shares are not given back");
        }
    });
}

#[test]
fn a_client_that_stops_in_the_middle_loses_its_connection_and_an_idle_one_does_not() {
    let served = Served::patient(vec![0u8; 1 << 20], false, Duration::from_secs(2));
    with(served.clone(), |address| {
        let mut idle = Tcp::connect(address, 1 << 20).unwrap();
        assert!(reads(&mut idle));
        let [without_hello, within_head, within_data] = [0; 3].map(|_| from("127.0.0.1", address));
        let write = request(WRITE, 100);
        (&within_head).write_all(&[&MAGIC[..], &write[..9]].concat()).unwrap();
        (&within_data).write_all(&[&MAGIC[..], &write, &[1; 50]].concat()).unwrap();
        for stream in [&without_hello, &within_head, &within_data] {
            assert!(is_let_in(stream) && is_closed(stream));
        }
        ends(&served, 3);
        // It has been silent for as long as those.
        assert!(reads(&mut idle));
    });
}

#[test]
fn a_client_that_takes_no_answer_loses_its_connection() {
    let served = Served::patient(vec![0u8; LONGEST_BYTES as usize], false, Duration::from_secs(1));
    with(served.clone(), |address| {
        let stream = from("127.0.0.1", address);
        let read = request(0, LONGEST_BYTES);
        (&stream).write_all(&[&MAGIC[..], &read, &read].concat()).unwrap();
        ends(&served, 1);
    });
}

/// Bytes behind the pieces of a gather would be counted as an answer too long to need room.
#[test]
fn a_gather_with_more_than_its_pieces_is_refused() {
    with(Served::new(vec![0u8; LONGEST_BYTES as usize], false), |address| {
        let stream = from("127.0.0.1", address);
        assert!(is_let_in(&stream));
        let mut gather = request(3, 24);
        gather[15] = 1;
        let piece = |bytes: u32| [&0u64.to_be_bytes()[..], &bytes.to_be_bytes()].concat();
        let asked = [&MAGIC[..], &gather, &piece(LONGEST_BYTES), &piece(u32::MAX)].concat();
        (&stream).write_all(&asked).unwrap();
        let mut answer = [0; 8];
        (&stream).read_exact(&mut answer).unwrap();
        assert_eq!(answer, [Status::BadLength as u8, 0, 0, 0, 0, 0, 0, 0]);
    });
}
