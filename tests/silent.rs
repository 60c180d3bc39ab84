//! Connections that say nothing, for tests of servers that let others in beside them. Test programs of several crates
//! include this file.

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Connections that a test opens.
const COUNT: usize = 1_100;
/// Handshakes that a server may have in progress. It has fewer if the system permits its process few descriptors.
const HANDSHAKES_MAX: usize = 1_024;

/// Connections to a server, from the calling thread's namespace.
pub fn connect(addr: &str) -> Vec<TcpStream> {
    (0..COUNT).map(|_| TcpStream::connect(addr).unwrap()).collect()
}

/// Waits until the server has closed all connections that exceed its limit. A server without limits closes none.
pub fn until_surplus_is_closed(silent: &[TcpStream]) {
    let until = Instant::now() + Duration::from_secs(30);
    for stream in silent {
        stream.set_nonblocking(true).unwrap();
    }
    loop {
        let closed = silent.iter().filter(|stream| is_closed(stream)).count();
        if closed >= COUNT - HANDSHAKES_MAX {
            return;
        }
        assert!(Instant::now() < until, "the server has closed {closed} of {COUNT} silent connections");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_closed(mut stream: &TcpStream) -> bool {
    match stream.read(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    }
}
