//! How long the front end takes for a program of 1,000 lines: text to IR and P4Info.

use criterion::{Criterion, criterion_group, criterion_main};
use p4rack_p4::Options;
use std::fmt::Write as _;
use std::hint::black_box;

/// Lines wanted, those of the included files not counted.
const LINES: usize = 1_000;

/// Headers, a parser over them, and as many tables with actions as it takes.
fn program() -> String {
    let mut headers = String::new();
    let mut members = String::new();
    let mut states = String::new();
    for i in 0..20 {
        let _ = writeln!(
            headers,
            "header h{i}_t {{\n    bit<8> kind;\n    bit<24> id;\n    bit<32> data;\n    bit<16> next;\n}}"
        );
        let _ = writeln!(members, "    h{i}_t h{i};");
        let _ = writeln!(
            states,
            "    state s{i} {{\n        pkt.extract(hdr.h{i});\n        transition select(hdr.h{i}.next) {{\n            \
             {i}: s{};\n            16w0x800 &&& 16w0xFF00: accept;\n            default: reject;\n        }}\n    }}",
            (i + 1) % 20
        );
    }
    let (mut tables, mut apply) = (String::new(), String::new());
    let mut text = String::new();
    for i in 0.. {
        let h = i % 20;
        let _ = writeln!(
            tables,
            "    register<bit<32>>(1024) r{i};\n    action set{i}(bit<32> value, bit<9> port) {{\n        \
             hdr.h{h}.data = value |+| (bit<32>) hdr.h{h}.kind;\n        sm.egress_spec = port;\n        \
             r{i}.write(hdr.h{h}.data & 1023, hdr.h{h}.id ++ 8w{h});\n    }}\n    table t{i} {{\n        key = {{\n            \
             hdr.h{h}.id: exact;\n            hdr.h{h}.data[15:0]: ternary;\n        }}\n        actions = {{\n            \
             set{i};\n            NoAction;\n        }}\n        default_action = NoAction();\n        size = 4096;\n    }}"
        );
        let _ = writeln!(
            apply,
            "        if (hdr.h{h}.isValid() && hdr.h{h}.kind != {h}) {{\n            t{i}.apply();\n        }} else {{\n            \
             meta.sum = meta.sum + (bit<32>) hdr.h{h}.next;\n        }}"
        );
        text = format!(
            "#include <core.p4>\n#include <v1model.p4>\n{headers}struct hdr_t {{\n{members}}}\n\
             struct meta_t {{ bit<32> sum; }}\n\
             parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{\n    \
             state start {{ transition s0; }}\n{states}}}\n\
             control V(inout hdr_t hdr, inout meta_t meta) {{ apply {{ }} }}\n\
             control I(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{\n{tables}    \
             apply {{\n{apply}    }}\n}}\n\
             control E(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}\n\
             control C(inout hdr_t hdr, inout meta_t meta) {{ apply {{ }} }}\n\
             control D(packet_out pkt, in hdr_t hdr) {{ apply {{ pkt.emit(hdr); }} }}\n\
             V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
        );
        if text.lines().count() >= LINES {
            break;
        }
    }
    text
}

fn check(c: &mut Criterion) {
    let text = program();
    let lines = text.lines().count();
    if let Err(diagnostics) = p4rack_p4::compile(&text, "bench.p4", &Options::default()) {
        panic!("{diagnostics}");
    }
    c.bench_function(&format!("check_{lines}_lines"), |b| {
        b.iter(|| black_box(p4rack_p4::compile(black_box(&text), "bench.p4", &Options::default()).is_ok()));
    });
}

criterion_group!(benches, check);
criterion_main!(benches);
