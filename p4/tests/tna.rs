//! Programs for TNA: what they are made of is accepted, and what is wrong in them is found.

use p4rack_p4::{Options, check};

const TWO_GENERATIONS: &str = include_str!("tna/two_generations.p4");
const TWO_PIPELINES: &str = include_str!("tna/two_pipelines.p4");
const SECOND_GENERATION: &str = include_str!("tna/second_generation.p4");

/// Errors and warnings, as shown; panics unless the program is accepted as `accepted` says.
fn shown(text: &str, defines: &[(&str, &str)], accepted: bool) -> String {
    let defines = defines.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let options = Options { include_dirs: vec![], defines };
    match check(text, "test.p4", &options) {
        Ok(program) => {
            assert!(accepted, "accepted");
            program.warnings().render(false)
        }
        Err(diagnostics) => {
            let text = diagnostics.render(false);
            assert!(!accepted, "{text}");
            text
        }
    }
}

#[test]
fn every_construct_is_accepted_without_a_warning_in_both_generations() {
    assert_eq!(shown(TWO_GENERATIONS, &[], true), "");
    assert_eq!(shown(TWO_GENERATIONS, &[("SECOND", "1")], true), "");
    assert_eq!(shown(TWO_GENERATIONS, &[("__TARGET_TOFINO__", "2")], true), "");
    assert_eq!(shown(SECOND_GENERATION, &[], true), "");
    assert_eq!(shown(TWO_PIPELINES, &[], true), "");
}

#[test]
fn mistakes_are_found() {
    let first = |from: &str, to: &str, message: &str| {
        assert!(TWO_GENERATIONS.contains(from), "{from}");
        let text = shown(&TWO_GENERATIONS.replacen(from, to, 1), &[], false);
        assert!(text.contains(message), "{message}: {text}");
    };
    // Abstract methods: another type, a parameter too many, none.
    first(
        "inout bit<32> value, out bit<32> rv)",
        "inout bit<16> value, out bit<32> rv)",
        "method `apply` differs",
    );
    first(
        "void apply(inout bit<32> value) {",
        "void apply(inout bit<32> value, out bit<32> a, out bit<32> b) {",
        "no abstract method `apply` like this",
    );
    first(
        "void apply(inout bit<32> value) { value = half.execute(value); }",
        "",
        "does not implement `apply`",
    );
    // Overloads are told apart by types.
    first("pace.execute(n, MeterColor_t.YELLOW)", "pace.execute(n, CounterType_t.BYTES)", "CounterType_t");
    // A block of another signature.
    first("EgressParser(), Egress()", "EgressParser(), Ingress()", "`Ingress` does not fit `EgressT`");
    first("Switch(pipe) main;", "Switch(pipe, 5) main;", "`IH1` of `Switch` cannot be inferred");
    first("sum.verify()", "sum.verified()", "no method `verified`");
    first("Hash<bit<16>>(HashAlgorithm_t.CRC16)", "Hash<bit<16>>(CounterType_t.BYTES)", "HashAlgorithm_t");
    let text = shown(&TWO_GENERATIONS.replace("idle_timeout", "idle_timeouts"), &[], true);
    assert!(text.contains("unknown property `idle_timeouts`"), "{text}");
}

#[test]
fn what_nothing_says_of_a_type_is_an_error_unless_nobody_asks() {
    let text = "control C<H>(inout H h); package P<A, B>(C<A> a, @optional C<B> b); struct S { bit<8> f; }
        control D<T>(inout T t) { apply { } } control E(inout S s) { apply { } }\n";
    assert_eq!(shown(&format!("{text} P(E()) main;"), &[], true), "");
    assert_eq!(shown(&format!("{text} P<S, _>(D()) main;"), &[], true), "");
    let refused = shown(&format!("{text} P(D()) main;"), &[], false);
    assert!(refused.contains("cannot be inferred"), "{refused}");
}
