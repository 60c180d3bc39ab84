//! Statements of an STF file, with names not looked up yet.

use num_bigint::BigUint;

/// A statement and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Line number, from 1.
    pub line: u32,
    /// The statement's command.
    pub command: Command,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `packet PORT HEX`: sends a frame to the switch.
    Packet {
        /// Ingress port.
        port: u16,
        /// The frame, without FCS.
        bytes: Vec<u8>,
    },
    /// `expect PORT [HEX]`: the next frame that this port sends.
    Expect {
        /// Egress port.
        port: u16,
        /// Pattern of the frame; `None` matches any frame.
        pattern: Option<Pattern>,
    },
    /// `no_packet`: nothing was sent for the previous packet.
    NoPacket,
    /// `wait`: lets time pass.
    Wait,
    /// `add TABLE [PRIORITY] KEY:VALUE … ACTION(NAME:VALUE, …) [= HANDLE]`
    Add {
        /// Name of the table.
        table: String,
        /// Priority; the larger one wins.
        priority: Option<u32>,
        /// Keys, by name.
        keys: Vec<(String, KeyText)>,
        /// Action of the entry.
        target: EntryAction,
        /// Name by which counters of the entry are checked.
        handle: Option<String>,
    },
    /// `remove all`: removes all entries that are not `const`.
    RemoveAll,
    /// `setdefault TABLE ACTION(…)`
    SetDefault {
        /// Name of the table.
        table: String,
        /// The action on a miss.
        call: Call,
    },
    /// `check_counter COUNTER(INDEX) [packets|bytes OP NUMBER]`
    CheckCounter {
        /// Name of the counter.
        counter: String,
        /// Index of the cell, or handle of an entry.
        index: Index,
        /// Whether to check bytes rather than packets.
        bytes: bool,
        /// The comparison.
        compare: Compare,
        /// The value to compare with.
        value: u64,
    },
    /// `check_register REGISTER(INDEX) OP NUMBER`
    CheckRegister {
        /// Name of the register.
        register: String,
        /// Index of the cell.
        index: u64,
        /// The comparison.
        compare: Compare,
        /// The value to compare with.
        value: BigUint,
    },
    /// `counter_read NAME INDEX`: reports the value.
    CounterRead(String, u64),
    /// `counter_write NAME INDEX PACKETS BYTES`
    CounterWrite(String, u64, u64, u64),
    /// `register_read NAME [INDEX]`: reports the value.
    RegisterRead(String, u64),
    /// `register_write NAME INDEX VALUE`
    RegisterWrite(String, u64, BigUint),
    /// `register_reset NAME`: sets all cells to 0.
    RegisterReset(String),
    /// `meter_get_rates NAME INDEX`: reports the rates.
    MeterGet(String, u64),
    /// `meter_set_rates NAME INDEX RATE:BURST RATE:BURST`; for all cells, `meter_array_set_rates NAME …`.
    MeterSet {
        /// Name of the meter.
        meter: String,
        /// Index of the cell; `None` is all cells.
        index: Option<u64>,
        /// Committed, then peak: units per second, and burst in units.
        rates: [(u64, u64); 2],
    },
    /// `mirroring_add SESSION PORT`
    MirrorPort(u32, u16),
    /// `mirroring_add_mc SESSION GROUP`
    MirrorGroup(u32, u32),
    /// `mirroring_delete SESSION`
    MirrorDelete(u32),
    /// `mirroring_get SESSION`: checks that the session exists.
    MirrorGet(u32),
    /// `mc_mgrp_create GROUP`
    GroupCreate(u32),
    /// `mc_node_create RID PORT …`. Nodes are numbered from 0 in order of creation.
    NodeCreate(u16, Vec<u16>),
    /// `mc_node_update NODE PORT …`
    NodeUpdate(u32, Vec<u16>),
    /// `mc_node_associate GROUP NODE`
    NodeAssociate(u32, u32),
    /// `member_add PROFILE MEMBER ACTION(…)`
    MemberAdd {
        /// Name of the action profile or selector.
        profile: String,
        /// Number of the member.
        member: u32,
        /// Action of the member.
        call: Call,
    },
    /// `group_add PROFILE GROUP MEMBER …`
    GroupAdd {
        /// Name of the action selector.
        profile: String,
        /// Number of the group.
        group: u32,
        /// Members; each has weight 1.
        members: Vec<u32>,
    },
    /// `value_set_add SET KEY …`
    ValueSetAdd(String, Vec<KeyText>),
}

/// Action of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// Runs an action.
    Call(Call),
    /// `member(NUMBER)`
    Member(u32),
    /// `group(NUMBER)`
    Group(u32),
}

/// `ACTION(NAME:VALUE, …)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Name of the action.
    pub action: String,
    /// Arguments, by name.
    pub args: Vec<(String, BigUint)>,
}

/// The cell of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// The cell with this index.
    Number(u64),
    /// The cell of the entry with this handle.
    Handle(String),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

impl Compare {
    /// Whether the comparison holds.
    pub fn holds<T: Ord>(self, left: &T, right: &T) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::NotEqual => left != right,
            Compare::Less => left < right,
            Compare::AtMost => left <= right,
            Compare::Greater => left > right,
            Compare::AtLeast => left >= right,
        }
    }

    /// The operator as written.
    pub fn symbol(self) -> &'static str {
        match self {
            Compare::Equal => "==",
            Compare::NotEqual => "!=",
            Compare::Less => "<",
            Compare::AtMost => "<=",
            Compare::Greater => ">",
            Compare::AtLeast => ">=",
        }
    }
}

/// A number in which digits may be `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Value, with 0 for each `*`.
    pub value: BigUint,
    /// Mask of the given digits; `None` if all are given.
    pub mask: Option<BigUint>,
    /// Number of bits that the digits represent (0x, 0o and 0b only).
    pub bits: Option<u32>,
}

/// The match of a key, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyText {
    /// `*`
    Any,
    /// `0x12`, `0x12**`
    Value(Number),
    /// `0x1200/8`
    Prefix(Number, u32),
    /// `0x12&&&0xff`
    Mask(Number, Number),
    /// `1..5`
    Range(Number, Number),
}

/// The expected digits of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// One per hex digit; `None` matches any.
    pub digits: Vec<Option<u8>>,
    /// Whether it ends with `$`, so that a longer frame is wrong.
    pub whole: bool,
}
