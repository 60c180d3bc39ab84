//! Programs around the piece that a test is about.

#![allow(dead_code)]

use p4rack_p4::ir::{Program, Role, Task};
use p4rack_p4::{Compiled, Diagnostics, Options, Severity};

/// Types and blocks of a small program; the given declarations and statements become ingress.
pub fn program(globals: &str, parser: &str, locals: &str, apply: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header eth_t {{ bit<48> dst; bit<48> src; bit<16> type; }}
header tag_t {{ bit<4> pri; bit<12> vid; bit<16> type; }}
struct inner_t {{ bit<8> x; bit<8> y; }}
struct hdr_t {{ eth_t eth; eth_t other; tag_t[3] tags; }}
{globals}
struct meta_t {{ bit<8> a; bit<8> b; bit<16> w; int<8> s; bool flag; inner_t inner; }}
parser P(packet_in pkt, out hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    {}
}}
control V(inout hdr_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{
    {locals}
    apply {{ {apply} }}
}}
control E(inout hdr_t hdr, inout meta_t meta, inout standard_metadata_t sm) {{ apply {{ }} }}
control C(inout hdr_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out pkt, in hdr_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
",
        if parser.is_empty() { "state start { pkt.extract(hdr.eth); transition accept; }" } else { parser }
    )
}

pub fn try_compile(text: &str) -> Result<Compiled, Diagnostics> {
    p4rack_p4::compile(text, "test.p4", &Options::default())
}

/// Compiles or fails the test with the messages.
pub fn compile(text: &str) -> Compiled {
    match try_compile(text) {
        Ok(compiled) => compiled,
        Err(diagnostics) => panic!("refused:\n{diagnostics}"),
    }
}

/// Ingress as text.
pub fn ingress_text(program: &Program) -> String {
    program.text_of(program.control(Role::ingress(Task::Process)))
}

/// Translation of ingress, as text.
pub fn ingress(globals: &str, locals: &str, apply: &str) -> String {
    let compiled = compile(&program(globals, "", locals, apply));
    ingress_text(&compiled.program)
}

/// Messages of the errors, in order.
pub fn errors(text: &str) -> Vec<String> {
    match try_compile(text) {
        Ok(_) => Vec::new(),
        Err(d) => {
            d.items.iter().filter(|d| d.severity == Severity::Error).map(|d| d.message.clone()).collect()
        }
    }
}

/// Lines without indentation, for comparison with text written in a test.
pub fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim_end).filter(|l| !l.trim().is_empty()).map(str::to_owned).collect()
}

/// Columns by which a test indents all but the first line of the text that it expects.
const MARGIN: usize = 9;

/// Fails unless both texts have the same lines.
pub fn assert_lines(found: &str, expected: &str) {
    let expected = lines(expected);
    let cut = |(at, line): (usize, &String)| if at == 0 { line.clone() } else { line[MARGIN..].to_owned() };
    let expected: Vec<String> = expected.iter().enumerate().map(cut).collect();
    assert_eq!(lines(found), expected, "found:\n{found}");
}
