//! Why the two may differ.

use super::ours::Fate;

/// Why a difference is none of this switch's faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub &'static str);

/// Other random numbers change the packet's fate here.
pub const RANDOM: Reason = Reason("the program asks for random numbers");
/// Another time changes it.
pub const TIME: Reason = Reason("the program looks at the time");
/// Other values of what the program never set change it.
pub const UNSET: Reason =
    Reason("the program reads a variable or a field of an invalid header that it never set");

const ASSERT: Reason = Reason("an assertion fails: BMv2 ends, here the packet is dropped");
const ENDLESS: Reason = Reason("a packet comes back for ever: here it is dropped after 64 times");

const INDEX: Reason = Reason("an index lies outside of a header stack: BMv2 ends");
const LOOP: Reason = Reason("p4c's code for BMv2 leaves a loop too early");
const ENDLESS_LOOP: Reason = Reason("a loop never ends: here the packet is dropped after 10000 passes");
const FAULT: Reason = Reason("a signal ends BMv2: why is not known");
const INITIAL: Reason = Reason("BMv2 takes no entries in a table that the program gives some");

/// Programs that differ for a reason that shows in their text, or end BMv2. An entry covers whatever differs in its program.
const PROGRAMS: &[(&str, Reason)] = &[
    ("control-hs-index-test1.p4", INDEX),
    ("control-hs-index-test2.p4", INDEX),
    ("control-hs-index-test4.p4", INDEX),
    ("control-hs-index-test5.p4", INDEX),
    ("extract_for_header_union.p4", FAULT),
    ("forloop-bmv2.p4", ENDLESS_LOOP),
    ("init-entries-bmv2.p4", INITIAL),
    // Two thirds of its packets are dropped at random, so a packet's fate may happen not to change.
    ("issue1517-bmv2.p4", RANDOM),
    ("issue1607-bmv2.p4", FAULT),
    ("issue2726-bmv2.p4", INDEX),
    ("issue2844-enum.p4", FAULT),
    ("issue298-bmv2.p4", FAULT),
    // 0, 2, 4, 6: four passes.
    ("issue4739.p4", LOOP),
    // 0, 3, 6, 1, 4: the variable of three bits wraps before it is 7.
    ("loop-3-clause-tricky2.p4", LOOP),
    ("runtime-index-2-bmv2.p4", INDEX),
    ("runtime-index-bmv2.p4", INDEX),
];

/// Updates that differ, by what one of both says.
const UPDATES: &[(&str, Reason)] = &[];

/// Why a packet made BMv2 end or not end.
pub fn end(fate: &Fate, name: &str) -> Option<Reason> {
    if fate.drops.contains(&"assert_failed") {
        return Some(ASSERT);
    }
    if fate.drops.contains(&"recirculation_limit") {
        return Some(ENDLESS);
    }
    of_program(name)
}

/// Why packets of this program may differ.
pub fn of_program(name: &str) -> Option<Reason> {
    PROGRAMS.iter().find(|(program, _)| *program == name).map(|(_, reason)| *reason)
}

/// Why an update may be taken by one of both alone.
pub fn of_update(what: &str) -> Option<Reason> {
    UPDATES.iter().find(|(said, _)| what.contains(said)).map(|(_, reason)| *reason)
}
