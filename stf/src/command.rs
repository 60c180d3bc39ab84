//! What the statements of an STF file say, names not yet looked up.

use num_bigint::BigUint;

/// A statement and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Line, from 1.
    pub line: u32,
    /// What it says.
    pub command: Command,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `packet PORT HEX`: a frame comes in.
    Packet {
        /// Port it comes in at.
        port: u16,
        /// Without FCS.
        bytes: Vec<u8>,
    },
    /// `expect PORT [HEX]`: the next frame that this port sends.
    Expect {
        /// Port it leaves at.
        port: u16,
        /// What it looks like; `None` is anything.
        pattern: Option<Pattern>,
    },
    /// `no_packet`: the packet before was sent nowhere.
    NoPacket,
    /// `wait`: time passes.
    Wait,
    /// `add TABLE [PRIORITY] KEY:VALUE … ACTION(NAME:VALUE, …) [= HANDLE]`
    Add {
        /// Table.
        table: String,
        /// Larger wins.
        priority: Option<u32>,
        /// Keys by name.
        keys: Vec<(String, KeyText)>,
        /// What to do.
        target: EntryAction,
        /// Name under which counters are checked.
        handle: Option<String>,
    },
    /// `remove all`: all entries of all tables that the program does not declare constant.
    RemoveAll,
    /// `setdefault TABLE ACTION(…)`
    SetDefault {
        /// Table.
        table: String,
        /// What a miss does.
        call: Call,
    },
    /// `check_counter COUNTER(INDEX) [packets|bytes OP NUMBER]`
    CheckCounter {
        /// Counter.
        counter: String,
        /// Cell, or handle of an entry.
        index: Index,
        /// Bytes, not packets.
        bytes: bool,
        /// How to compare.
        compare: Compare,
        /// With what.
        value: u64,
    },
    /// `check_register REGISTER(INDEX) OP NUMBER`
    CheckRegister {
        /// Register.
        register: String,
        /// Cell.
        index: u64,
        /// How to compare.
        compare: Compare,
        /// With what.
        value: BigUint,
    },
    /// `counter_read NAME INDEX`: the value is reported.
    CounterRead(String, u64),
    /// `counter_write NAME INDEX PACKETS BYTES`
    CounterWrite(String, u64, u64, u64),
    /// `register_read NAME [INDEX]`: the value is reported.
    RegisterRead(String, u64),
    /// `register_write NAME INDEX VALUE`
    RegisterWrite(String, u64, BigUint),
    /// `register_reset NAME`: all cells become 0.
    RegisterReset(String),
    /// `meter_get_rates NAME INDEX`: the rates are reported.
    MeterGet(String, u64),
    /// `meter_set_rates NAME INDEX RATE:BURST RATE:BURST`, or all cells: `meter_array_set_rates NAME …`.
    MeterSet {
        /// Meter.
        meter: String,
        /// Cell; `None` is every one.
        index: Option<u64>,
        /// Committed, then peak: units a second, burst in units.
        rates: [(u64, u64); 2],
    },
    /// `mirroring_add SESSION PORT`
    MirrorPort(u32, u16),
    /// `mirroring_add_mc SESSION GROUP`
    MirrorGroup(u32, u32),
    /// `mirroring_delete SESSION`
    MirrorDelete(u32),
    /// `mirroring_get SESSION`: must exist.
    MirrorGet(u32),
    /// `mc_mgrp_create GROUP`
    GroupCreate(u32),
    /// `mc_node_create RID PORT …`; nodes are numbered from 0 in order of creation.
    NodeCreate(u16, Vec<u16>),
    /// `mc_node_update NODE PORT …`
    NodeUpdate(u32, Vec<u16>),
    /// `mc_node_associate GROUP NODE`
    NodeAssociate(u32, u32),
    /// `member_add PROFILE MEMBER ACTION(…)`
    MemberAdd {
        /// Action profile or selector.
        profile: String,
        /// Number.
        member: u32,
        /// What it does.
        call: Call,
    },
    /// `group_add PROFILE GROUP MEMBER …`
    GroupAdd {
        /// Action selector.
        profile: String,
        /// Number.
        group: u32,
        /// One of each weight.
        members: Vec<u32>,
    },
    /// `value_set_add SET KEY …`
    ValueSetAdd(String, Vec<KeyText>),
}

/// What an entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryAction {
    /// An action.
    Call(Call),
    /// `member(NUMBER)`
    Member(u32),
    /// `group(NUMBER)`
    Group(u32),
}

/// `ACTION(NAME:VALUE, …)`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Action.
    pub action: String,
    /// Arguments by name.
    pub args: Vec<(String, BigUint)>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Index {
    /// By number.
    Number(u64),
    /// Of the entry with this handle.
    Handle(String),
}

/// A comparison.
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
    /// Whether it holds.
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

    /// As written.
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

/// A number, some of whose digits may be `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Value, with 0 for `*`.
    pub value: BigUint,
    /// Ones where a digit is given; `None` when every digit is.
    pub mask: Option<BigUint>,
    /// Bits of the digits that are given (0x, 0o and 0b only).
    pub bits: Option<u32>,
}

/// What a key is to be.
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

/// Digits of an expected frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// One a hex digit; `None` is any.
    pub digits: Vec<Option<u8>>,
    /// Ends with `$`: a longer frame is wrong.
    pub whole: bool,
}
