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

/// Programs that differ for a reason that shows in their text.
const PROGRAMS: &[(&str, Reason)] = &[];

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
