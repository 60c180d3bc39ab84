//! Any text as an STF file, run against a program with one of everything, and any bytes as a capture: no panic, no
//! hang, no memory without bound. Frames read from a capture can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use p4rack_p4::{Compiled, Options};
use p4rack_wire::pcap::{MAX_FRAME, Reader, Writer};
use p4rack_switch::Pipeline;
use std::sync::OnceLock;

const PROGRAM: &str = include_str!("../seeds/stf_pcap.p4");

fn program() -> &'static (Compiled, Pipeline) {
    static LOADED: OnceLock<(Compiled, Pipeline)> = OnceLock::new();
    LOADED.get_or_init(|| {
        let compiled = p4rack_p4::compile(PROGRAM, "stf_pcap.p4", &Options::default())
            .unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let pipeline = Pipeline::compile(&compiled.program).unwrap_or_else(|error| panic!("{error}"));
        (compiled, pipeline)
    })
}

fuzz_target!(|data: &[u8]| {
    if let Ok(reader) = Reader::new(data) {
        let mut writer = Writer::default();
        let records: Vec<_> = reader.map_while(Result::ok).collect();
        for record in &records {
            assert!(record.frame.len() <= MAX_FRAME);
            writer.add(record.time, record.frame);
        }
        let again = Reader::new(writer.bytes()).expect("was written here");
        assert!(
            again
                .map(|record| record.expect("was written here"))
                .map(|r| r.frame)
                .eq(records.iter().map(|r| r.frame))
        );
        return;
    }
    let Ok(statements) = p4rack_stf::parse(&String::from_utf8_lossy(data)) else { return };
    let (compiled, pipeline) = program();
    if let Ok(outcome) = p4rack_stf::run(&compiled.program, pipeline.clone(), &statements) {
        assert_eq!(outcome.passed(), outcome.to_string().is_empty());
    }
});
