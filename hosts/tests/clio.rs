//! The way `clio`: clients of a board over UDP on this machine, without root.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

#[path = "common/board.rs"]
mod board;

use board::with_board;
use p4rack_fabric::remote::Way;
use p4rack_hosts::remote::{Held, Operation, Outcome, Place, Region, Remote, Shape, UnderWay, open};
use p4rack_netdev::clock;
use p4rack_wire::Nanos;

/// Long enough for a machine that other tests keep busy.
const LIMIT: Nanos = Nanos::from_secs(60);

fn shape(region_bytes: u64) -> Shape {
    let under_way = UnderWay::of(32, 4_096);
    Shape { region_bytes, reads: under_way, writes: under_way }
}

fn region(place: &Place, region_bytes: u64) -> (Region, Held) {
    let (remote, held) = open(Way::CLIO, place.clone(), shape(region_bytes)).unwrap();
    (Region::new(remote), held)
}

#[test]
fn clients_of_one_process_share_its_memory() {
    with_board(1 << 20, |place| {
        let ((mut one, _held), (mut other, _other)) = (region(place, 0), region(place, 0));
        assert_eq!(one.remote().abilities().region_bytes, 1 << 20);
        // Longer than a packet, than a page, and than the first windows.
        let bytes: Vec<u8> = (0..300_000u32).map(|nth| (nth * 7 + nth / 251) as u8).collect();
        one.write(4_000, &bytes).unwrap();
        let mut found = vec![0; bytes.len()];
        other.read(4_000, &mut found).unwrap();
        assert!(found == bytes);
        assert_eq!((one.cas(8, 0, 5).unwrap(), other.cas(8, 0, 6).unwrap()), (0, 5));
        assert_eq!(
            one.read(1 << 20, &mut [0]).unwrap_err().to_string().split(':').next(),
            Some("out of bounds")
        );
    });
}

/// Additions of several threads, many under way, and none is lost or executed twice.
#[test]
fn every_addition_of_every_client_counts_once() {
    const EACH: u64 = 2_000;
    with_board(1 << 16, |place| {
        let add = |remote: &mut dyn Remote| {
            let (mut asked, mut ended, until) = (0, 0, clock::now() + LIMIT);
            while ended < EACH {
                assert!(clock::now() < until, "{ended} of {EACH}");
                while asked < EACH && asked < ended + 16 {
                    let at = 8 * (asked % 4);
                    let opcode = p4rack_hosts::remote::Opcode::FetchAdd;
                    remote.submit(asked, Operation::Modify { at, opcode, operands: [1, 0] }).unwrap();
                    asked += 1;
                }
                remote
                    .poll(until, &mut |_, outcome| {
                        assert!(matches!(outcome, Outcome::Word(_)), "{outcome:?}");
                        ended += 1;
                    })
                    .unwrap();
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| add(open(Way::CLIO, place.clone(), shape(0)).unwrap().0.as_mut()));
            }
        });
        let (mut one, _held) = region(place, 0);
        let mut words = [0; 32];
        one.read(0, &mut words).unwrap();
        let sum: u64 = words.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).sum();
        assert_eq!(sum, 3 * EACH);
    });
}

#[test]
fn a_process_of_ones_own_is_apart_and_ends_with_its_client() {
    with_board(1 << 16, |place| {
        let own = Place { shared: false, ..place.clone() };
        let (mut all, _held) = region(place, 0);
        all.write(0, b"all").unwrap();
        let (mut mine, held) = region(&own, 40_000);
        let mut found = [9; 3];
        mine.read(0, &mut found).unwrap();
        assert_eq!(found, [0; 3], "zeros, and not what others wrote");
        mine.write(0, b"own").unwrap();
        all.read(0, &mut found).unwrap();
        assert_eq!(&found, b"all");
        let refused = open(Way::CLIO, own.clone(), shape(40_000)).err().unwrap().to_string();
        assert!(refused.contains("refuses"), "{refused}");
        drop((mine, held));
        // The board notices the end of the call, and frees the memory in steps.
        let until = clock::now() + LIMIT;
        let (mut again, _held) = loop {
            match open(Way::CLIO, own.clone(), shape(40_000)) {
                Ok((remote, held)) => break (Region::new(remote), held),
                Err(error) => assert!(clock::now() < until, "{error}"),
            }
        };
        again.read(0, &mut found).unwrap();
        assert_eq!(found, [0; 3], "nothing of the process before");
    });
}
