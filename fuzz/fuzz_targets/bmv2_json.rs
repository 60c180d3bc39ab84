//! Any JSON goes through the reader of BMv2's files and, if it is a program, into the switch: no panic, no hang, no
//! memory without bound.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4rack_switch::Pipeline;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    match p4rack_bmv2::read(&text, "fuzz.json", None) {
        Ok(compiled) => drop(Pipeline::compile(&compiled.program)),
        Err(error) => assert!(error.starts_with("fuzz.json: ")),
    }
});
