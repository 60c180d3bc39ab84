//! What the control plane sees: tables, actions, extern objects, value sets, digests, types.

use super::*;
use crate::ast::Direction;
use num_bigint::BigUint;

/// How a key matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatchKind {
    Exact,
    Lpm,
    Ternary,
    Range,
    Optional,
    Selector,
}

/// An annotation that P4Info shows or that fixes a name or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// Without `@`.
    pub name: String,
    /// As written between the brackets, tokens joined as p4c does.
    pub body: String,
    /// Structured (`@x[...]`): expression list or key-value list.
    pub structured: Option<Structured>,
}

/// Body of a structured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Structured {
    /// `@x[1, "a", true]`
    List(Vec<AnnotationValue>),
    /// `@x[k = 1]`
    KeyValues(Vec<(String, AnnotationValue)>),
}

/// A compile-time value in a structured annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AnnotationValue {
    Str(String),
    Int(i64),
    Bool(bool),
}

/// What P4Info says of every object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Control-plane name, `MyIngress.table` or what `@name` says.
    pub name: String,
    /// `@id`, the 24 low bits or whole, when given.
    pub id: Option<u32>,
    /// `@hidden`: not in P4Info.
    pub hidden: bool,
    /// Others, in order, those that p4c leaves out of P4Info (`name`, `id`, `hidden`, …) left out.
    pub annotations: Vec<Annotation>,
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name and id.
    pub named: Named,
    /// Keys in order.
    pub keys: Vec<Key>,
    /// Actions in order; entries refer to the position.
    pub actions: Vec<TableAction>,
    /// Position in `actions` and arguments; `None` is `NoAction` of a table without the property.
    pub default_action: Option<ActionCall>,
    /// `const default_action`
    pub default_is_const: bool,
    /// `const entries` (immutable) or `entries` (initial).
    pub entries: Vec<Entry>,
    /// Whether the entries are `const`.
    pub entries_const: bool,
    /// `size`; 1024 when absent.
    pub size: u64,
    /// Action profile or selector.
    pub implementation: Option<InstanceId>,
    /// Direct counter.
    pub counter: Option<InstanceId>,
    /// Direct meter.
    pub meter: Option<InstanceId>,
    /// `support_timeout = true`
    pub idle_timeout: bool,
}

/// A table key.
#[derive(Clone, Debug)]
pub struct Key {
    /// Control-plane name (`@name` or the expression's text).
    pub named: Named,
    /// What is matched.
    pub expr: Expr,
    /// Its type.
    pub ty: Ty,
    /// How.
    pub kind: MatchKind,
    /// Name of a `type` (P4Runtime translation) or serializable enum.
    pub type_name: Option<String>,
}

/// An action in a table's list.
#[derive(Clone, Debug)]
pub struct TableAction {
    /// Which (already specialised when the list binds arguments).
    pub action: ActionId,
    /// `@tableonly`
    pub table_only: bool,
    /// `@defaultonly`
    pub default_only: bool,
    /// Annotations of the reference.
    pub annotations: Vec<Annotation>,
}

/// An action with its control-plane arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionCall {
    /// Position in [`Table::actions`].
    pub action: u32,
    /// One value a parameter.
    pub args: Vec<BigUint>,
}

/// A constant or initial entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// One matcher a key; LPM as `Mask`.
    pub keys: Vec<Matcher>,
    /// What to do.
    pub call: ActionCall,
    /// Larger wins (already in P4Runtime's order).
    pub priority: i32,
    /// `const`
    pub is_const: bool,
}

/// An action.
#[derive(Clone, Debug)]
pub struct Action {
    /// Name and id.
    pub named: Named,
    /// Control-plane parameters.
    pub params: Vec<ActionParam>,
    /// What it does.
    pub body: Vec<Stmt>,
    /// Whether any table lists it (others are kept for P4Info).
    pub in_table: bool,
}

/// A control-plane parameter of an action.
#[derive(Clone, Debug)]
pub struct ActionParam {
    /// Name and annotations.
    pub named: Named,
    /// Where the executor puts the value.
    pub var: VarId,
    /// Its type.
    pub ty: Ty,
    /// Name of a `type` or serializable enum.
    pub type_name: Option<String>,
}

/// What counters and meters count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Unit {
    Packets,
    Bytes,
    Both,
}

/// An extern object.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Name and id.
    pub named: Named,
    /// What it is.
    pub kind: InstanceKind,
}

/// Kinds of extern objects.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum InstanceKind {
    Counter {
        size: u64,
        unit: Unit,
        index_type: Option<String>,
    },
    DirectCounter {
        table: Option<TableId>,
        unit: Unit,
    },
    Meter {
        size: u64,
        unit: Unit,
        index_type: Option<String>,
    },
    DirectMeter {
        table: Option<TableId>,
        unit: Unit,
    },
    /// A struct is kept as the concatenation of its fields, the first one highest.
    Register {
        size: u64,
        /// How an element is stored.
        ty: Ty,
        /// As the control plane sees an element.
        data: DataTy,
        index_type: Option<String>,
    },
    ActionProfile {
        size: u64,
    },
    ActionSelector {
        size: u64,
        algorithm: HashAlgorithm,
        output_width: u32,
        max_group_size: u64,
    },
}

/// A body that the program gives an abstract method of an extern object. Whoever calls it sets the variables of its
/// parameters before, and reads those of its `out` parameters and of its result after.
#[derive(Clone, Debug)]
pub struct Method {
    /// Full name of the object.
    pub object: String,
    /// Name of the method.
    pub name: String,
    /// In order.
    pub params: Vec<MethodParam>,
    /// Scalars of what it returns.
    pub result: Vec<VarId>,
    /// What it does; `Return` leaves it.
    pub body: Vec<Stmt>,
}

/// A parameter of a [`Method`].
#[derive(Clone, Debug)]
pub struct MethodParam {
    /// Which way it goes.
    pub direction: Direction,
    /// Its scalars.
    pub vars: Vec<VarId>,
}

/// A parser value set.
#[derive(Clone, Debug)]
pub struct ValueSet {
    /// Name and id.
    pub named: Named,
    /// Capacity.
    pub size: u64,
    /// Fields of an element: name, type, match kind.
    pub fields: Vec<(Named, Ty, MatchKind)>,
}

/// A digest.
#[derive(Clone, Debug)]
pub struct Digest {
    /// Name and id.
    pub named: Named,
    /// Name of the struct type.
    pub type_name: String,
    /// Fields in order.
    pub fields: Vec<(String, Ty)>,
    /// The type with its names.
    pub data: DataTy,
}

/// A type as the control plane sees it, names kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataTy {
    /// Without a name.
    Scalar(Ty),
    /// `error`
    Error,
    /// One of [`Program::enums`].
    Enum(String),
    /// One of [`Program::ser_enums`].
    SerEnum(String),
    /// One of [`Program::new_types`].
    NewType(String),
    /// One of [`Program::data_structs`].
    Struct(String),
    /// One of [`Program::data_structs`].
    Header(String),
    /// `tuple<...>`
    Tuple(Vec<DataTy>),
}

/// A struct or header that a digest sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataStruct {
    /// Name.
    pub name: String,
    /// Fields in order.
    pub fields: Vec<(String, DataTy)>,
}

/// `@controller_header`
#[derive(Clone, Debug)]
pub struct ControllerHeader {
    /// `packet_in` or `packet_out`, and annotations.
    pub named: Named,
    /// Fields in wire order: name and annotations, type, name of its `type`.
    pub fields: Vec<(Named, Ty, Option<String>)>,
    /// Name of the header type.
    pub type_name: String,
}

/// `type T N`
#[derive(Clone, Debug)]
pub struct NewType {
    /// Name.
    pub name: String,
    /// How it is stored.
    pub ty: Ty,
    /// The type it stands for, through other `type`s.
    pub inner: DataTy,
    /// In order.
    pub annotations: Vec<Annotation>,
    /// URI and width of `@p4runtime_translation` (`None` width: string).
    pub translation: Option<(String, Option<u32>)>,
}

/// `enum bit<W> E`
#[derive(Clone, Debug)]
pub struct SerEnum {
    /// Name.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// Names and values.
    pub members: Vec<(String, BigUint)>,
}
