//! Any bytes as a trace, in the format that its first byte chooses or its beginning shows: no panic, no hang, no address above
//! 2^48. A trace that was read can be written in our own format and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4rack_trace::formats::{FORMATS, Options, own, read};
use p4rack_trace::{ADDRESS_END, Access};
use std::io::Cursor;

/// Compressed input may grow without end.
const ACCESSES_MAX: usize = 100_000;

fuzz_target!(|data: &[u8]| {
    let Some((choice, bytes)) = data.split_first() else { return };
    let format = FORMATS.get(usize::from(*choice)).map(|format| format.name);
    let Ok(accesses) = read(Box::new(Cursor::new(bytes.to_vec())), "fuzz", format, Options::default()) else {
        return;
    };
    let accesses: Vec<Access> = accesses.map_while(Result::ok).take(ACCESSES_MAX).collect();
    let mut writer = own::Writer::new(Vec::new()).expect("memory");
    for access in &accesses {
        assert!(access.bytes > 0 && access.address + u64::from(access.bytes) <= ADDRESS_END);
        writer.add(*access).expect("memory");
    }
    let written = writer.finish().expect("memory");
    let again = own::Reader::new(Cursor::new(written), "again").map(|access| access.expect("was written here"));
    assert!(again.eq(accesses));
});
