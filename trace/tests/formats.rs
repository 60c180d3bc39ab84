//! Readers and writers of traces, and their errors for bad ones.

use p4rack_trace::formats::{self, FORMATS, Options, oracle, own};
use p4rack_trace::{Access, TraceError};
use proptest::prelude::*;
use std::io::Cursor;

fn read(bytes: &[u8], format: Option<&str>) -> Result<Vec<Access>, TraceError> {
    formats::read(Box::new(Cursor::new(bytes.to_vec())), "trace", format, Options::default())?.collect()
}

fn refusal(bytes: &[u8], format: Option<&str>) -> String {
    read(bytes, format).expect_err("is not a trace").to_string()
}

fn access(address: u64, bytes: u32, write: bool) -> Access {
    Access { address, bytes, write, thread: 0 }
}

#[test]
fn lackeys_text_is_its_accesses_to_data() {
    let text =
        b"==4242== Lackey\n==4242== \nI  04025310,3\n L 1ffeffe7e0,8\n S 04222cac,1\r\n M 0421c7cc,4\n";
    let expected =
        [access(0x1f_feff_e7e0, 8, false), access(0x422_2cac, 1, true), access(0x421_c7cc, 4, true)];
    assert_eq!(read(text, None).expect("is Lackey's"), expected);
}

#[test]
fn twitters_keys_have_places_of_their_own() {
    let text = b"0,q:1,3,213,4,get,0\n1,q,2,1,10,5,set,60\n2,q:1,3,213,4,get,0\n";
    let accesses = read(text, None).expect("is Twitter's");
    assert_eq!(accesses[0], accesses[2]);
    assert_eq!((accesses[0].bytes, accesses[0].write, accesses[0].thread), (216, false, 4));
    // A key with a comma: `q,2`.
    assert_eq!((accesses[1].bytes, accesses[1].write, accesses[1].thread), (11, true, 5));
    assert!(accesses[1].address >= accesses[0].address + 216);
}

#[test]
fn oracle_general_names_units_and_the_next_access() {
    let mut bytes = Vec::new();
    oracle::write(&[7, 9, 7], &mut bytes).expect("memory");
    assert_eq!(bytes.len(), 3 * oracle::RECORD_BYTES);
    assert_eq!(&bytes[16..24], &3i64.to_le_bytes());
    assert_eq!(&bytes[40..48], &(-1i64).to_le_bytes());
    let expected = [7, 9, 7].map(|object| access(object * 512, 1, false));
    assert_eq!(read(&bytes, None).expect("is oracleGeneral"), expected);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let lackey = refusal(b" L 10,8\n L 10;8\n", None);
    assert!(lackey.starts_with("trace: line 2: \" L 10;8\"; expected lines such as"), "{lackey}");
    let high = refusal(b" L ffffffffffffff,8\n", None);
    assert!(
        high.contains("line 1: 8 bytes at 0xffffffffffffff; expected") && high.contains("2^48"),
        "{high}"
    );
    let mut oracle_bytes = Vec::new();
    oracle::write(&[1, 2, 3], &mut oracle_bytes).expect("memory");
    let short = refusal(&oracle_bytes[..60], None);
    assert!(
        short.contains("record 3: 12 bytes; expected records of 24 bytes: the trace was cut short"),
        "{short}"
    );
    let other = refusal(b"hello, world\n", None);
    assert!(other.contains("lackey") && other.contains("--format"), "{other}");
    let named = refusal(b"hello, world\n", Some("twitter"));
    assert!(named.contains("line 1: \"hello, world\"; expected time,key"), "{named}");
    let empty = refusal(b"", None);
    assert!(empty.contains("has no accesses"), "{empty}");
    let endless = refusal(&[b'x'; 10_000], Some("lackey"));
    assert!(endless.contains("a line that does not end"), "{endless}");
    let not_zstd = refusal(&[0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff], None);
    assert!(not_zstd.contains("zstd") || not_zstd.contains("trace:"), "{not_zstd}");
}

#[test]
fn a_trace_of_ours_that_was_cut_short_is_refused_wherever_it_was_cut() {
    let bytes = written(&[access(4096, 8, true), Access { thread: 3, ..access(64, 100, false) }]);
    for len in 1..bytes.len() {
        let said = refusal(&bytes[..len], Some("p4rack"));
        assert!(said.contains("the end of the file") && said.contains("cut short"), "{len}: {said}");
    }
}

#[test]
fn compressed_traces_are_read_as_they_are() {
    // ` L 1000,8\n S 2000,4\n`, compressed by zstd into one raw block.
    let text = b" L 1000,8\n S 2000,4\n";
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, text.len() as u8];
    let block = (text.len() as u32) << 3 | 1;
    bytes.extend_from_slice(&block.to_le_bytes()[..3]);
    bytes.extend_from_slice(text);
    assert_eq!(read(&bytes, None).expect("is zstd"), [access(0x1000, 8, false), access(0x2000, 4, true)]);
}

#[test]
fn formats_have_names_of_their_own() {
    for (index, format) in FORMATS.iter().enumerate() {
        assert!(FORMATS[..index].iter().all(|one| one.name != format.name), "{}", format.name);
    }
}

fn written(accesses: &[Access]) -> Vec<u8> {
    let mut writer = own::Writer::new(Vec::new()).expect("memory");
    accesses.iter().for_each(|access| writer.add(*access).expect("memory"));
    writer.finish().expect("memory")
}

proptest! {
    #[test]
    fn ours_reads_what_it_wrote(
        parts in prop::collection::vec((0u64..1 << 47, 1u32..100_000, any::<bool>(), 0u16..9), 1..200),
    ) {
        let accesses: Vec<Access> = parts
            .into_iter()
            .map(|(address, bytes, write, thread)| Access { address, bytes, write, thread })
            .collect();
        prop_assert_eq!(read(&written(&accesses), None).expect("was written here"), accesses);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..FORMATS.len()) {
        let _ = read(&bytes, Some(FORMATS[at].name));
        let _ = read(&bytes, None);
    }
}
