//! Our own cases: each program in `tests/stf` (v1model) and `tests/tna` behaves as its STF file says.

use p4rack_switch::Pipeline;
use std::path::{Path, PathBuf};

/// Programs of a folder with their STF files, by name.
fn cases(folder: &str) -> Vec<(String, PathBuf, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(folder);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let programs = files.filter_map(|file| Some(file.ok()?.path()));
    let mut cases: Vec<_> = programs
        .filter(|path| path.extension().is_some_and(|ending| ending == "p4"))
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (name, path.clone(), path.with_extension("stf"))
        })
        .collect();
    cases.sort();
    cases
}

fn run(program: &Path, stf: &Path) -> Result<(), String> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| error.to_string());
    let (text, stf) = (read(program)?, read(stf)?);
    let compiled = p4rack_p4::compile(&text, &program.to_string_lossy(), &p4rack_p4::Options::default())
        .map_err(|diagnostics| diagnostics.render(false))?;
    for compile in [Pipeline::compile, Pipeline::compile_interpreted, Pipeline::compile_traced] {
        let pipeline = compile(&compiled.program).map_err(|error| error.to_string())?;
        let statements = p4rack_stf::parse(&stf).map_err(|error| error.to_string())?;
        let outcome =
            p4rack_stf::run(&compiled.program, pipeline, &statements).map_err(|error| error.to_string())?;
        if !outcome.passed() {
            return Err(outcome.to_string());
        }
    }
    Ok(())
}

#[test]
fn programs_do_what_their_stf_files_say() {
    let (v1model, tna) = (cases("stf"), cases("tna"));
    assert!(v1model.len() >= 70 && tna.len() >= 18, "only {} and {} were found", v1model.len(), tna.len());
    let cases: Vec<_> = v1model.into_iter().chain(tna).collect();
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|(name, program, stf)| Some(format!("== {name}\n{}", run(program, stf).err()?)))
        .collect();
    assert!(failed.is_empty(), "{} of {} fail:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

/// Statements without a meaning for programs for TNA: a case, a change to it, and the message.
const REFUSED: [(&str, &str, &str, &str); 12] = [
    ("resubmit", "bit<40> rest", "bit<48> rest", "at most 64 bits of data, not 72"),
    ("counter", "        counters = hits;", "", "a direct object that belongs to no table"),
    (
        "counter",
        "apply {\n        tm.u",
        "table other { actions = { less; } default_action = less(); }\n apply { other.apply(); tm.u",
        "a call from an action of table I.other",
    ),
    ("counter", "cells.count(hdr.h.b);", "hits.count();", "a call outside of an action"),
    (
        "direct_register",
        "apply {\n        tm.u",
        "table other { actions = { note; } default_action = note(); }\n apply { other.apply(); tm.u",
        "a call from an action of table I.other",
    ),
    ("parser", "left.set(hdr.h.b);", "verify(hdr.h.b == 0, error.NoMatch);", "`verify`"),
    ("functions", "16w0x4000, 12)", "16w0x4000, 4294967295)", "a shift by 4294967295: it is at most 16"),
    ("functions", "16w0x4000, 12)", "16w0x4000, -1)", "not a constant of 64 bits"),
    ("symmetric", r#""hdr.h.dst", "#, r#""hdr.h.kind", "#, "name two fields of equal width"),
    ("symmetric", "CRC16) both", "XOR16) both", "has to be a CRC"),
    (
        "minmax",
        "Register<bit<16>, bit<8>>(32) waits;\n    //",
        "Register<bit<16>, bit<8>>(32) waits;
    Register<bit<1>, bit<8>>(128) bits;
    MinMaxAction<bit<1>, bit<8>, bit<8>>(bits) of_bits = {
        void apply(inout bit<128> value, out bit<8> rv) { rv = this.max8(value, 0xffff); }
    };
    action search_bits() { of_bits.execute(0); }
    table never { actions = { search_bits; } default_action = search_bits(); }
    //",
        "needs cells of 8, 16, 32, 64 or 128 bits; these have 1",
    ),
    (
        "minmax",
        "this.max8(value.low, 0xf)",
        "this.max8((bit<12>) value.low, 0xf)",
        "parts of 8 bits in 128 at most, not in 12",
    ),
];

#[test]
fn what_a_program_for_tna_cannot_mean_is_refused() {
    for (name, from, to, said) in REFUSED {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/tna/{name}.p4"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(text.contains(from), "{name}: {from}");
        let text = text.replacen(from, to, 1);
        let options = p4rack_p4::Options::default();
        let error = match p4rack_p4::compile(&text, name, &options) {
            Ok(compiled) => Pipeline::compile(&compiled.program).expect_err(said).to_string(),
            Err(diagnostics) => diagnostics.render(false),
        };
        assert!(error.contains(said), "{name}: {said}: {error}");
    }
}

/// `mark_to_drop` of the packet's own metadata and of a copy that is copied back, on both sides of the queue.
const DROPS: &str = "#include <core.p4>\n#include <v1model.p4>
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct meta_t { }
void drop_it(inout standard_metadata_t copy) { mark_to_drop(copy); }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.h.a == 1) { mark_to_drop(sm); }
        if (hdr.h.a == 2) { standard_metadata_t copy = sm; mark_to_drop(copy); sm = copy; }
        if (hdr.h.a == 3) { drop_it(sm); }
        if (hdr.h.a == 9) { sm.egress_spec = 511; }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.a == 4) { mark_to_drop(sm); }
        if (hdr.h.a == 5) { standard_metadata_t copy = sm; mark_to_drop(copy); sm = copy; }
        if (hdr.h.a == 6) { drop_it(sm); }
    }
}
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;";

#[test]
fn what_is_marked_to_drop_is_dropped_whatever_the_drop_port() {
    let compiled = p4rack_p4::compile(DROPS, "drops.p4", &p4rack_p4::Options::default()).unwrap();
    for drop_port in [511, 1 << 8, 77] {
        let last = if drop_port == 511 { "no_packet" } else { "expect 511 09$" };
        let dropped: String = (1..=6).map(|a| format!("packet 5 0{a}\nno_packet\n")).collect();
        let text = format!("{dropped}packet 5 07\nexpect 1 07$\npacket 5 09\n{last}\n");
        let statements = p4rack_stf::parse(&text).unwrap();
        for compile in [Pipeline::compile, Pipeline::compile_interpreted, Pipeline::compile_traced] {
            let pipeline = compile(&compiled.program).unwrap();
            let outcome =
                p4rack_stf::run_with_drop_port(&compiled.program, pipeline, &statements, drop_port).unwrap();
            assert!(outcome.passed(), "drop port {drop_port}: {outcome}");
        }
    }
}

#[test]
fn a_wrong_frame_is_shown_with_its_place() {
    let text = "packet 0 00000000\nexpect 1 000a0001$\nexpect 2 00\n";
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/stf/for_in_range.p4");
    let source = std::fs::read_to_string(&program).unwrap();
    let compiled = p4rack_p4::compile(&source, "for_in_range.p4", &p4rack_p4::Options::default()).unwrap();
    let pipeline = Pipeline::compile(&compiled.program).unwrap();
    let outcome = p4rack_stf::run(&compiled.program, pipeline, &p4rack_stf::parse(text).unwrap()).unwrap();
    let shown = outcome.to_string();
    assert!(
        shown.contains("line 2: port 1, frame 1 of 1 (from the packet of line 1) differs first at byte 3"),
        "{shown}"
    );
    assert!(shown.contains("expected  00 0a 00 01"), "{shown}");
    assert!(shown.contains("line 3: port 2, frame 1 of 1: was not sent"), "{shown}");
}
