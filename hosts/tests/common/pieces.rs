//! Gathers and scatters, which each way has.

use p4rack_hosts::remote::{Operation, Outcome, Piece, Remote, Status};
use p4rack_wire::Nanos;

/// Submits an operation and waits for its end. Returns the bytes of a read, otherwise nothing.
fn end(remote: &mut dyn Remote, operation: Operation<'_>) -> Result<Vec<u8>, Status> {
    const TAG: u64 = u64::MAX - 7;
    remote.submit(TAG, operation)?;
    let (mut ended, until) = (None, remote.now() + Nanos::from_secs(20));
    while ended.is_none() {
        remote
            .poll(until, &mut |tag, outcome| {
                assert_eq!(tag, TAG);
                ended = Some(match outcome {
                    Outcome::Read(bytes) => Ok(bytes.to_vec()),
                    Outcome::Written => Ok(Vec::new()),
                    Outcome::Word(word) => Ok(word.to_be_bytes().to_vec()),
                    Outcome::Failed(status) => Err(status),
                });
            })
            .unwrap();
        assert!(remote.now() < until, "nothing ends");
    }
    ended.unwrap()
}

/// Scatters over a region of at least 4 KiB from `start` on, gathers in another order, and submits invalid gathers.
pub fn gathers_and_scatters(remote: &mut dyn Remote, start: u64) {
    let most = remote.abilities().pieces_max;
    assert!(most >= 16, "{most}");
    let pieces: Vec<Piece> =
        (0..16).map(|nth| Piece { at: start + 200 * nth, bytes: 3 + nth as u32 }).collect();
    let all: u32 = pieces.iter().map(|piece| piece.bytes).sum();
    let bytes: Vec<u8> = (1..=all as u8).collect();
    assert_eq!(end(remote, Operation::Scatter { pieces: &pieces, bytes: &bytes }), Ok(Vec::new()));
    let back: Vec<Piece> = pieces.iter().rev().copied().collect();
    let mut expected = Vec::new();
    let mut from = bytes.len();
    for piece in &back {
        from -= piece.bytes as usize;
        expected.extend_from_slice(&bytes[from..from + piece.bytes as usize]);
    }
    // The end of a write may mean that it has left.
    let until = remote.now() + Nanos::from_secs(10);
    let mut gathered = end(remote, Operation::Gather { pieces: &back });
    while gathered.as_ref() != Ok(&expected) && remote.now() < until {
        gathered = end(remote, Operation::Gather { pieces: &back });
    }
    assert_eq!(gathered, Ok(expected));
    // Nothing else was written.
    let between = Operation::Read { at: start + 3, bytes: 100 };
    assert_eq!(end(remote, between), Ok(vec![0; 100]));
    for (operation, status) in [
        (Operation::Gather { pieces: &[] }, Status::BadLength),
        (Operation::Gather { pieces: &vec![pieces[0]; most + 1] }, Status::BadLength),
        (Operation::Gather { pieces: &[pieces[0], Piece { at: u64::MAX, bytes: 2 }] }, Status::OutOfBounds),
        (Operation::Scatter { pieces: &pieces[..2], bytes: &[0; 3] }, Status::BadLength),
    ] {
        assert_eq!(end(remote, operation), Err(status), "{operation:?}");
    }
}
