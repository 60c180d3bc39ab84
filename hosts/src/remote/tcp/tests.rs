//! Client and server together.

use super::*;
use p4rack_netdev::wait::Waker;
use std::net::TcpListener;

fn with_server(read_only: bool, test: impl FnOnce(&str)) {
    let served = Served::new(vec![0u8; 1 << 20], read_only);
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

/// Ends the server, however the test ends.
struct Wakes<'a>(&'a Waker);

impl Drop for Wakes<'_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

fn finish(tcp: &mut Tcp, count: usize) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    while all.len() < count {
        let until = clock::now() + Nanos::from_secs(20);
        tcp.poll(until, &mut |tag, outcome| all.push((tag, format!("{outcome:?}")))).unwrap();
        assert!(clock::now() < until, "no answer");
    }
    all
}

#[test]
fn a_batch_takes_effect_in_order_and_is_answered_in_order() {
    with_server(false, |address| {
        let mut tcp = Tcp::connect(address, 1 << 20).unwrap();
        let write = |at, bytes| Operation::Write { at, bytes };
        tcp.submit(1, write(8, &7u64.to_be_bytes())).unwrap();
        tcp.submit(2, Operation::cas(8, 7, 9)).unwrap();
        tcp.submit(3, Operation::cas(8, 7, 10)).unwrap();
        tcp.submit(4, Operation::Read { at: 14, bytes: 2 }).unwrap();
        assert_eq!(tcp.submit(5, Operation::cas(4, 0, 1)), Err(Status::BadOperation));
        assert_eq!(tcp.submit(5, Operation::Read { at: 1 << 20, bytes: 1 }), Err(Status::OutOfBounds));
        let expected = ["Written", "Word(7)", "Word(9)", "Read([0, 9])"];
        let ended = finish(&mut tcp, 4);
        assert_eq!(ended, (1..5).zip(expected.map(str::to_owned)).collect::<Vec<_>>());
    });
}

/// More than all buffers of a connection hold, both ways: the two ends must not deadlock.
#[test]
fn many_long_operations_do_not_block_each_other() {
    with_server(false, |address| {
        let mut tcp = Tcp::connect(address, 1 << 20).unwrap();
        let long = vec![3; 512 << 10];
        for nth in 0..64 {
            tcp.submit(2 * nth, Operation::Write { at: nth, bytes: &long }).unwrap();
            tcp.submit(2 * nth + 1, Operation::Read { at: nth, bytes: long.len() as u32 }).unwrap();
        }
        let (mut ended, mut bytes) = (0, 0);
        let until = clock::now() + Nanos::from_secs(60);
        while ended < 128 {
            tcp.poll(until, &mut |tag, outcome| {
                assert_eq!(tag, ended);
                ended += 1;
                if let Outcome::Read(read) = outcome {
                    assert!(read.iter().all(|byte| *byte == 3));
                    bytes += read.len();
                }
            })
            .unwrap();
            assert!(clock::now() < until, "no answer");
        }
        assert_eq!(bytes, 64 * long.len());
    });
}

#[test]
fn what_a_region_does_not_permit_is_refused() {
    with_server(true, |address| {
        assert!(Tcp::connect(address, 2 << 20).unwrap_err().to_string().contains("are needed"));
        let mut tcp = Tcp::connect(address, 1 << 20).unwrap();
        tcp.submit(1, Operation::Write { at: 0, bytes: &[1] }).unwrap();
        tcp.submit(2, Operation::Read { at: 0, bytes: 1 }).unwrap();
        let ended = finish(&mut tcp, 2);
        assert_eq!(ended[0].1, "Failed(NotPermitted)");
        assert_eq!(ended[1].1, "Read([0])");
    });
}
