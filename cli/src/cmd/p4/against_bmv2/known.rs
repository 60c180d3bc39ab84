//! Known reasons why the two switches may differ.

use super::Fate;

/// Why a difference is not a bug of this switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason(pub &'static str);

/// The packet's fate depends on random numbers.
pub const RANDOM: Reason = Reason("the program uses random numbers");
/// The packet's fate depends on the time.
pub const TIME: Reason = Reason("the program reads the time");
/// The packet's fate depends on values that the program never set.
pub const UNSET: Reason =
    Reason("the program reads a variable or a field of an invalid header that it never set");

const ASSERT: Reason = Reason("an assertion fails: BMv2 ends, here the packet is dropped");
const ENDLESS: Reason = Reason("a packet comes back for ever: here it is dropped after 64 times");

const INDEX: Reason = Reason("an index lies outside of a header stack: BMv2 ends");
const LOOP: Reason = Reason("p4c's code for BMv2 leaves a loop too early");
const ENDLESS_LOOP: Reason = Reason("a loop never ends: here the packet is dropped after 10000 passes");
const UNION: Reason = Reason("BMv2 can't load p4c's code, and says so only by ending at the first packet");
const LAST: Reason = Reason("BMv2 can't copy a stack's last header as a whole, and ends");
const CHECKSUM: Reason = Reason("the checksum is that of an invalid header: BMv2 accepts it");
const OUTSIDE: Reason = Reason("an index lies outside of a meter: v1model does not define the result");
const GONE: Reason = Reason("p4c's code for BMv2 leaves out a table that its P4Info has");
const INITIAL: Reason = Reason("BMv2 rejects entries for a table that has some in the program");

/// Programs that crash BMv2 or keep it in an endless loop. Earlier differences are not excused.
const ENDS: &[(&str, Reason)] = &[
    ("control-hs-index-test1.p4", INDEX),
    ("control-hs-index-test2.p4", INDEX),
    ("control-hs-index-test4.p4", INDEX),
    ("control-hs-index-test5.p4", INDEX),
    ("extract_for_header_union.p4", UNION),
    ("forloop-bmv2.p4", ENDLESS_LOOP),
    ("issue1607-bmv2.p4", LAST),
    ("issue2726-bmv2.p4", INDEX),
    ("runtime-index-2-bmv2.p4", INDEX),
    ("runtime-index-bmv2.p4", INDEX),
    ("stack_index.p4", INDEX),
];

/// Programs whose frames or entries differ for a reason in their text. An entry covers all differences of
/// that kind.
const DIFFER: &[(&str, Reason)] = &[
    ("checksum_update.p4", CHECKSUM),
    ("for_loop.p4", LOOP),
    ("gauntlet_nested_switch-bmv2.p4", GONE),
    ("init-entries-bmv2.p4", INITIAL),
    // Two thirds of its packets are dropped at random, so a packet's fate may not change in another run.
    ("issue1517-bmv2.p4", RANDOM),
    // 0, 2, 4, 6: four passes.
    ("issue4739.p4", LOOP),
    // 0, 3, 6, 1, 4: the variable of three bits wraps before it is 7.
    ("loop-3-clause-tricky2.p4", LOOP),
    ("meter_indirect.p4", OUTSIDE),
];

/// Updates that differ, by a part of either error message.
const UPDATES: &[(&str, Reason)] = &[];

/// Why BMv2 ended on a packet, or did not.
pub fn end(fate: &Fate, name: &str) -> Option<Reason> {
    if fate.drops.contains(&"assert_failed") {
        return Some(ASSERT);
    }
    if fate.drops.contains(&"recirculation_limit") {
        return Some(ENDLESS);
    }
    among(ENDS, name)
}

/// Why frames or entries of this program may differ.
pub fn of_program(name: &str) -> Option<Reason> {
    among(DIFFER, name)
}

fn among(programs: &[(&str, Reason)], name: &str) -> Option<Reason> {
    programs.iter().find(|(program, _)| *program == name).map(|(_, reason)| *reason)
}

/// Why only one of the switches may accept an update.
pub fn of_update(what: &str) -> Option<Reason> {
    UPDATES.iter().find(|(said, _)| what.contains(said)).map(|(_, reason)| *reason)
}
