//! Rules for controllers' writes, from annotations of tables, actions, keys and parameters.

use super::{ActionId, TableId};
use num_bigint::BigInt;

/// The rules of a program.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// `@entry_restriction`: condition for the entries of a table.
    pub entries: Vec<(TableId, Restriction)>,
    /// `@action_restriction`: condition for the arguments of an action.
    pub actions: Vec<(ActionId, Restriction)>,
    /// `@refers_to` and `@referenced_by`: values that must exist elsewhere.
    pub references: Vec<Reference>,
}

/// Clauses that must all hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restriction {
    /// The clauses, in the order of the text.
    pub clauses: Vec<Clause>,
}

/// A part of a restriction that messages quote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Its text, on one line and without comments.
    pub text: String,
    /// Condition that must hold.
    pub test: Test,
}

/// A truth value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// `true`, `false`
    Const(bool),
    /// `!a`
    Not(Box<Test>),
    /// `a && b && …`
    All(Vec<Test>),
    /// `a || b || …`
    Any(Vec<Test>),
    /// `a == b` of truth values
    Same(Box<Test>, Box<Test>),
    /// A comparison of numbers.
    Compare(Comparison, Number, Number),
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A number in a restriction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Number {
    /// A constant.
    Const(BigInt),
    /// A part of the match of the key with this position.
    Key(usize, KeyPart),
    /// The argument of the action's parameter with this position.
    Argument(usize),
    /// The entry's priority.
    Priority,
    /// `-a`
    Negative(Box<Number>),
    /// The lowest bits of a number, as many as given.
    Low(Box<Number>, u32),
}

/// A part of a key's match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// The value; 0 of a key that is left out.
    Value,
    /// The mask; all ones of an optional key that is given.
    Mask,
    /// Bits of the prefix.
    PrefixLength,
    /// The lowest value of a range.
    Low,
    /// The highest value of a range.
    High,
}

/// Values that must exist elsewhere, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Holder of the values.
    pub from: Referrer,
    /// Where they must exist.
    pub to: Referent,
    /// Pairs of positions: of a key or parameter of `from`, and of the key of `to` that has its value.
    pub fields: Vec<(usize, usize)>,
}

/// Referring key or parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Referrer {
    /// Keys of a table.
    Table(TableId),
    /// Parameters of an action.
    Action(ActionId),
    /// Replicas of multicast groups: [`REPLICA_PORT`], [`REPLICA_INSTANCE`].
    Replicas,
}

/// Target of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Referent {
    /// Keys of a table.
    Table(TableId),
    /// Ids of multicast groups, at position 0.
    Groups,
}

/// Position of a replica's port.
pub const REPLICA_PORT: usize = 0;
/// Position of a replica's instance.
pub const REPLICA_INSTANCE: usize = 1;
