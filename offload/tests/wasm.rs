//! Offloads as WebAssembly modules, called by packets.
// A test that cannot go on should panic.
#![allow(clippy::unwrap_used)]

use crate::common;

use common::{ALL, PAGE, Rig};
use p4rack_offload::Progress;
use p4rack_offload::wasm::{Limits, LoadError, Program, Wasm};
use p4rack_wire::clio::{Kind, Status};

const SUM: &str = include_str!("../../examples/offload/sum.wat");
/// Imports of all tests' modules.
const IMPORTS: &str = r#"
    (import "clio" "arguments" (func $arguments (param i32)))
    (import "clio" "read" (func $read (param i32 i64 i32 i32) (result i32)))
    (import "clio" "write" (func $write (param i32 i64 i32 i32) (result i32)))
    (import "clio" "result" (func $result (param i32 i32)))
    (import "clio" "own_start" (func $own_start (result i64)))
    (import "clio" "own_bytes" (func $own_bytes (result i64)))
"#;

fn load(text: &str, limits: Limits) -> Result<Program, LoadError> {
    Program::new(&wat::parse_str(text).unwrap(), limits)
}

/// A module whose `call` is this.
fn module(memory: &str, call: &str) -> String {
    format!(
        r#"(module {IMPORTS} {memory}
        (func $call (export "call") (param $function i32) (param $bytes i32) (result i32) {call}))"#
    )
}

/// A rig with the module as an offload, and its number.
fn rig(text: &str, limits: Limits) -> (Rig, u64) {
    let mut rig = Rig::new();
    let own = rig.board.begin(ALL).unwrap();
    let start = rig.alloc(&own, 2);
    let wasm = Wasm::new(load(text, limits).unwrap(), own.space, (start, 2 * PAGE));
    let number = rig.offloads.add(own.space, Box::new(wasm));
    (rig, number)
}

fn call(rig: &mut Rig, number: u64, function: u8, arguments: &[u8]) -> Result<Vec<u8>, Status> {
    let caller = rig.caller;
    let (status, _, results) = rig.ask(&caller, Kind::Call, function, number, arguments);
    if status == Status::Done { Ok(results) } else { Err(status) }
}

/// Calls a module with one body, and returns how it ended and why it failed.
fn fails(body: &str) -> (Result<Vec<u8>, Status>, String) {
    let (mut rig, number) = rig(&module(r#"(memory (export "memory") 1)"#, body), Limits::default());
    let ended = call(&mut rig, number, 1, &[]);
    (ended, rig.offloads.facts(number).unwrap().failure.unwrap_or_default())
}

#[test]
fn the_example_sums_the_callers_words_and_counts_in_its_own_memory() {
    let (mut rig, number) = rig(SUM, Limits::default());
    let caller = rig.caller;
    let start = rig.alloc(&caller, 3);
    let words: Vec<u64> = (0..1_300).map(|nth| nth * nth).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    rig.write(start + 40, &bytes);
    let arguments = [&(start + 40).to_le_bytes()[..], &1_300u32.to_le_bytes()].concat();
    let sum = words.iter().sum::<u64>().to_le_bytes().to_vec();
    assert_eq!(call(&mut rig, number, 1, &arguments), Ok(sum));
    let beyond = [&(start + 40).to_le_bytes()[..], &2_000u32.to_le_bytes()].concat();
    assert_eq!(call(&mut rig, number, 1, &beyond), Err(Status::NoSuchAddress));
    assert_eq!(call(&mut rig, number, 1, &[1]), Err(Status::BadLength));
    assert_eq!(call(&mut rig, number, 9, &[]), Err(Status::NoSuchOffload));
    for more in [5u64, 6] {
        assert_eq!(call(&mut rig, number, 2, &more.to_le_bytes()), Ok(vec![]));
    }
    assert_eq!(call(&mut rig, number, 3, &[]), Ok(11u64.to_le_bytes().to_vec()));
    let facts = rig.offloads.facts(number).unwrap();
    assert_eq!((facts.calls, facts.failed, facts.failure), (7, 0, None), "refusals are no failures");
}

#[test]
fn what_a_call_may_use_is_limited() {
    let (ended, why) = fails("(loop $again (br $again)) (i32.const 0)");
    assert_eq!((ended, &*why), (Err(Status::OffloadFailed), "it has used up its fuel"));
    let (ended, why) = fails("(call $call (local.get 0) (local.get 1))");
    assert_eq!(ended, Err(Status::OffloadFailed), "a call within calls, for ever: {why}");
    assert!(why.contains("stack") || why.contains("depth"), "{why}");
    let (ended, why) = fails("unreachable");
    assert!(ended == Err(Status::OffloadFailed) && why.contains("unreachable"), "{why}");
    // Growing beyond the limit fails, and the module goes on.
    let grows = "(if (i32.ne (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
        (if (i32.eq (memory.grow (i32.const 15)) (i32.const -1)) (then unreachable)) (i32.const 13)";
    assert_eq!(fails(grows), (Err(Status::NotFound), String::new()));
    // Accesses cost fuel as they cost the board time.
    let reads =
        "(loop $again (drop (call $read (i32.const 0) (call $own_start) (i32.const 0) (i32.const 64)))
        (br $again)) (i32.const 0)";
    let (ended, why) = fails(reads);
    assert_eq!((ended, &*why), (Err(Status::OffloadFailed), "it has used up its fuel"));
}

/// Without fuel, a long loop would not be stopped: only the limit ends it.
#[test]
fn fuel_ends_a_long_loop() {
    let counts = module(
        r#"(memory (export "memory") 1)"#,
        "(local $left i32) (local.set $left (i32.const 3000000))
        (loop $again (br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1))))) (i32.const 0)",
    );
    for (fuel, ended) in [(Limits::default().fuel, Err(Status::OffloadFailed)), (u64::MAX, Ok(Vec::new()))] {
        let (mut rig, number) = rig(&counts, Limits { fuel, ..Limits::default() });
        assert_eq!(call(&mut rig, number, 1, &[]), ended, "fuel {fuel}");
    }
}

#[test]
fn a_module_can_not_leave_its_memory_nor_name_other_processes() {
    for (body, said) in [
        ("(call $read (i32.const 1) (i64.const 0) (i32.const 65530) (i32.const 8))", "outside of its memory"),
        ("(call $read (i32.const 1) (i64.const 0) (i32.const -4) (i32.const 8))", "outside of its memory"),
        ("(call $write (i32.const 1) (i64.const 0) (i32.const 0) (i32.const -1))", "fuel"),
        ("(call $read (i32.const 2) (i64.const 0) (i32.const 0) (i32.const 8))", "names space 2"),
        ("(call $result (i32.const 65000) (i32.const 1000)) (i32.const 0)", "outside of its memory"),
        (
            "(call $result (i32.const 0) (i32.const 65536)) (call $result (i32.const 0) (i32.const 1)) (i32.const 0)",
            "more than 65536 bytes",
        ),
        ("(i32.const 99)", "returned 99"),
        (
            "(drop (call $write (i32.const 0) (call $own_start) (i32.const 0) (i32.const 8))) (i32.const 5)",
            "returned busy, after it had written",
        ),
        ("(i32.const -1)", "returned -1"),
        (
            "(drop (call $write (i32.const 0) (call $own_start) (i32.const 0) (i32.const 8)))
            (call $result (i32.const 0) (i32.const 1)) (i32.const 0)",
            "it has written",
        ),
        (
            "(call $result (i32.const 0) (i32.const 1))
            (call $write (i32.const 0) (call $own_start) (i32.const 0) (i32.const 8))",
            "it has results",
        ),
    ] {
        let (ended, why) = fails(body);
        assert!(ended == Err(Status::OffloadFailed) && why.contains(said), "{body}: {ended:?} {why}");
    }
    // An address that is not allocated is an answer, no trap.
    let (ended, _) = fails("(call $read (i32.const 0) (i64.const 77) (i32.const 0) (i32.const 8))");
    assert_eq!(ended, Err(Status::NoSuchAddress));
    assert_eq!(fails("(i64.store (i32.const 0) (call $own_bytes)) (call $result (i32.const 0) (i32.const 8)) (i32.const 0)").0,
        Ok((2 * PAGE).to_le_bytes().to_vec()));
}

#[test]
fn modules_are_refused_by_name() {
    let refused = |text: &str| load(text, Limits::default()).err().unwrap().to_string();
    let no_wasm = Program::new(b"\x7fELF....", Limits::default()).err().unwrap();
    assert_eq!(no_wasm, LoadError::NotWasm);
    let cut = &wat::parse_str(SUM).unwrap()[..100];
    assert!(matches!(Program::new(cut, Limits::default()), Err(LoadError::Invalid(_))));
    let long = vec![0; Limits::default().module_bytes + 1];
    assert!(matches!(Program::new(&long, Limits::default()), Err(LoadError::TooLarge { .. })));
    let said = refused(r#"(module (import "env" "print" (func)))"#);
    assert!(
        said.starts_with("the module imports `env.print`; it may import from `clio`: arguments"),
        "{said}"
    );
    let said = refused(r#"(module (import "clio" "print" (func)))"#);
    assert!(said.starts_with("the module imports `clio.print`"), "{said}");
    assert!(refused("(module)").contains("`memory`"));
    assert!(refused(r#"(module (memory (export "memory") 1))"#).contains("`call`"));
    let other = r#"(module (memory (export "memory") 1) (func (export "call") (result i64) (i64.const 0)))"#;
    assert!(refused(other).contains("(function: i32, argument_bytes: i32) -> i32"));
    for (memory, call) in [
        (r#"(import "clio" "read" (func (param i32))) (memory (export "memory") 1)"#, "(i32.const 0)"),
        (r#"(memory (export "memory") 17)"#, "(i32.const 0)"),
        (r#"(memory (export "memory") 1) (data (i32.const 65530) "longer than that")"#, "(i32.const 0)"),
        (r#"(memory (export "memory") 1) (table 100000 funcref)"#, "(i32.const 0)"),
    ] {
        let imports = if memory.contains("import") { "" } else { IMPORTS };
        let text = format!(
            r#"(module {imports} {memory} (func (export "call") (param i32 i32) (result i32) {call}))"#
        );
        let error = load(&text, Limits::default()).err();
        assert!(matches!(error, Some(LoadError::Instance(_))), "{memory}: {error:?}");
    }
    let start = r#"(module (memory (export "memory") 1) (func $start (loop $again (br $again))) (start $start)
        (func (export "call") (param i32 i32) (result i32) (i32.const 0)))"#;
    assert!(load(start, Limits::default()).is_err(), "nothing runs before a call");
}

/// A function that goes on behind its end: `end; local.get 0; end`.
#[test]
fn operators_behind_the_end_of_a_function_are_refused() {
    let module = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x07\x01\x05\0\x0b\x20\0\x0b";
    assert!(matches!(Program::new(module, Limits::default()), Err(LoadError::Invalid(_))));
}

/// Between the slices of a long call, others have their turn; its result is as of one that runs through.
#[test]
fn a_long_call_lets_others_pass() {
    let long = "(local $left i32) (local.set $left (i32.const 100000))
        (loop $again (local.set $left (i32.sub (local.get $left) (i32.const 1))) (br_if $again (local.get $left)))
        (call $arguments (i32.const 0)) (call $result (i32.const 0) (local.get $bytes)) (i32.const 0)";
    let (mut rig, number) = rig(&module(r#"(memory (export "memory") 1)"#, long), Limits::default());
    let caller = rig.caller;
    rig.send(&caller, Kind::Call, 1, number, b"first");
    rig.send(&caller, Kind::Call, 1, number, b"second");
    rig.send(&caller, Kind::Call, 1, 99, b"");
    let mut steps = 0;
    while rig.board.counters().offloads == 0 {
        assert_ne!(rig.offloads.step(&mut rig.board, rig.now), Progress::Idle);
        steps += 1;
    }
    assert_eq!(steps, 3, "the third call comes between slices");
    let mut answers = rig.answers();
    assert_eq!(answers.pop().unwrap().0, Status::NoSuchOffload);
    while rig.offloads.step(&mut rig.board, rig.now) != Progress::Idle {
        steps += 1;
    }
    assert!((50..300).contains(&steps), "{steps} slices");
    assert_eq!(rig.answers(), [(Status::Done, b"first".to_vec()), (Status::Done, b"second".to_vec())]);
}

/// A process that ends, or an offload that is removed, leaves no call behind that others would wait for.
#[test]
fn calls_end_with_their_process_and_their_offload() {
    let endless = module(r#"(memory (export "memory") 1)"#, "(loop $again (br $again)) (i32.const 0)");
    let (mut rig, number) = rig(&endless, Limits { fuel: u64::MAX, ..Limits::default() });
    let (caller, other) = (rig.caller, rig.board.begin(ALL).unwrap());
    rig.send(&caller, Kind::Call, 1, number, b"");
    for _ in 0..3 {
        assert_ne!(rig.offloads.step(&mut rig.board, rig.now), Progress::Idle);
    }
    assert!(rig.board.end(caller.space, rig.now));
    rig.offloads.forget(caller.space);
    assert_eq!(rig.offloads.step(&mut rig.board, rig.now), Progress::Idle, "nothing waits");
    rig.send(&other, Kind::Call, 1, number, b"");
    for _ in 0..3 {
        assert_ne!(rig.offloads.step(&mut rig.board, rig.now), Progress::Idle);
    }
    assert!(rig.offloads.remove(number).is_some() && rig.offloads.remove(number).is_none());
    while rig.offloads.step(&mut rig.board, rig.now) != Progress::Idle {}
    assert_eq!(rig.answers(), [(Status::NoSuchOffload, vec![])]);
}
