//! Sources whose datagrams a UDP socket refuses: the kernel drops them before they take room in its buffer.

use crate::filter::{BYTE, HALF, IF_EQUAL, RETURN, WORD, step};
use crate::sys;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

/// Sources that a socket refuses at most: a program of the kernel has 4096 instructions, and each packet runs through it.
pub const SOURCES_MAX: usize = 16;

/// Refuses datagrams of these sources, with port 0 of all ports, and takes those of all others: earlier refusals end. Sources beyond
/// [`SOURCES_MAX`] are taken. Errors: the socket is none that has a filter.
pub fn refuse(socket: &impl AsFd, sources: &[SocketAddr]) -> io::Result<()> {
    let taken = sources.iter().take(SOURCES_MAX);
    let mut program: Vec<libc::sock_filter> = taken.flat_map(|source| drops(*source)).collect();
    program.push(step(RETURN, 0, u32::MAX));
    sys::attach_filter(socket.as_fd(), &program)
}

/// Instructions that drop a source's datagrams, and pass others on to the next ones.
fn drops(source: SocketAddr) -> Vec<libc::sock_filter> {
    // From the IP header on; a socket's own bytes begin with the UDP header.
    let header = |at: u32| (libc::SKF_NET_OFF as u32).wrapping_add(at);
    let (version, at, words) = match source.ip().to_canonical() {
        IpAddr::V4(ip) => (4, 12, vec![ip.to_bits()]),
        IpAddr::V6(ip) => (
            6,
            8,
            ip.octets()
                .chunks_exact(4)
                .map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
                .collect(),
        ),
    };
    let mut steps = vec![
        step(BYTE, 0, header(0)),
        step(libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K, 0, 4),
        step(IF_EQUAL, 0, version),
    ];
    for (nth, word) in (0..).zip(words) {
        steps.extend([step(WORD, 0, header(at + 4 * nth)), step(IF_EQUAL, 0, word)]);
    }
    if source.port() > 0 {
        steps.extend([step(HALF, 0, 0), step(IF_EQUAL, 0, source.port().into())]);
    }
    steps.push(step(RETURN, 0, 0));
    // A comparison that fails leaves out all that follow it here.
    let count = steps.len();
    let compares = |one: &&mut libc::sock_filter| u32::from(one.code) == IF_EQUAL;
    for (nth, one) in steps.iter_mut().enumerate().filter(|(_, one)| compares(one)) {
        one.jf = (count - 1 - nth) as u8;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn refused_sources_are_not_heard_and_all_others_are() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let [taker, first, second] = [0; 3].map(|_| UdpSocket::bind(any).unwrap());
            taker.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let to = taker.local_addr().unwrap();
            let [one, two] = [&first, &second].map(|socket| socket.local_addr().unwrap());
            // Datagrams on loopback come in order, so the last one ends the wait.
            let heard = |sources: &[SocketAddr]| {
                refuse(&taker, sources).unwrap();
                first.send_to(&[1], to).unwrap();
                second.send_to(&[2], to).unwrap();
                refuse(&taker, &[]).unwrap();
                second.send_to(&[3], to).unwrap();
                let (mut byte, mut all) = ([0], Vec::new());
                while all.last() != Some(&3) {
                    taker.recv_from(&mut byte).unwrap();
                    all.push(byte[0]);
                }
                all
            };
            assert_eq!(heard(&[]), [1, 2, 3]);
            assert_eq!(heard(&[one]), [2, 3]);
            assert_eq!(heard(&[SocketAddr::new(one.ip(), 1), two]), [1, 3]);
            assert_eq!(heard(&[SocketAddr::new(one.ip(), 0)]), [3]);
            let strangers = ["192.0.2.1:0", "[2001:db8::1]:0"].map(|addr| addr.parse().unwrap());
            assert_eq!(heard(&strangers), [1, 2, 3]);
        }
    }
}
